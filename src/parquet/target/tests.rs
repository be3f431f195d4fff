use super::*;

#[test]
fn a_decimal_takes_as_few_bytes_as_hold_all_its_digits() {
    // From the Iceberg spec, Appendix A: the minimum number of bytes for P digits.
    for (precision, width) in [
        (1, 1),
        (2, 1),
        (3, 2),
        (9, 4),
        (10, 5),
        (18, 8),
        (19, 9),
        (38, 16),
    ] {
        assert_eq!(decimal_width(precision), width, "{precision} digits");
    }
}

#[test]
fn a_decimal_keeps_its_physical_type_only_where_parquet_lets_it() {
    let decimal = |precision| PrimitiveType::Decimal {
        precision,
        scale: 0,
    };
    assert!(holds(&decimal(9), Physical::Int32));
    assert!(
        !holds(&decimal(10), Physical::Int32),
        "widened past 9 digits"
    );
    assert!(holds(&decimal(9), Physical::Int64));
    assert!(!holds(&decimal(19), Physical::Int64));
    assert!(holds(&decimal(9), Physical::Fixed(16)));
    assert!(!holds(&decimal(18), Physical::Fixed(4)));
    assert!(!holds(&decimal(18), Physical::ByteArray));
}
