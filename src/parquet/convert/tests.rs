#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn rule_42_int_to_long_and_float_to_double_keep_the_value() {
    let ints: Vec<u8> = [-1i32, i32::MAX]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let longs: Vec<u8> = [-1i64, i64::from(i32::MAX)]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    assert_eq!(Conversion::Int32ToInt64.apply(&ints).unwrap(), longs);
    let float = 0.1f32;
    let double = f64::from(float).to_le_bytes();
    assert_eq!(
        Conversion::FloatToDouble
            .apply(&float.to_le_bytes())
            .unwrap(),
        double
    );
}

#[test]
fn rule_42_a_date_becomes_the_timestamp_of_its_midnight() {
    let to_micros = Conversion::DateTo {
        per_day: MICROS_PER_DAY,
    };
    let before_the_epoch = (-1i32).to_le_bytes();
    assert_eq!(
        to_micros.apply(&before_the_epoch).unwrap(),
        (-86_400_000_000i64).to_le_bytes()
    );
}

#[test]
fn rule_42_a_date_beyond_the_range_of_timestamps_is_an_error() {
    let to_nanos = Conversion::DateTo {
        per_day: NANOS_PER_DAY,
    };
    // The last day of nanosecond timestamps is 2262-04-11, day 106751.
    assert!(to_nanos.apply(&106_751i32.to_le_bytes()).is_ok());
    assert!(to_nanos.apply(&106_752i32.to_le_bytes()).is_err());
}

#[test]
fn decimals_go_between_all_their_physical_types() {
    let unscaled = -12_345i64;
    let fixed = Conversion::IntToFixed { from: 8, to: 5 }
        .apply(&unscaled.to_le_bytes())
        .unwrap();
    assert_eq!(fixed, [0xff, 0xff, 0xff, 0xcf, 0xc7]);
    let wider = Conversion::FixedToFixed { from: 5, to: 16 }
        .apply(&fixed)
        .unwrap();
    assert_eq!(wider, i128::from(unscaled).to_be_bytes());
    let back = Conversion::FixedToInt { from: 16, to: 8 }
        .apply(&wider)
        .unwrap();
    assert_eq!(back, unscaled.to_le_bytes());
    let narrow = Conversion::FixedToInt { from: 16, to: 4 };
    assert!(
        narrow.apply(&(1i128 << 40).to_be_bytes()).is_err(),
        "it does not fit"
    );
}

#[test]
fn values_that_end_in_the_middle_of_one_are_an_error() {
    assert!(Conversion::Int32ToInt64.apply(&[0; 7]).is_err());
    assert!(
        Conversion::FixedToInt { from: 3, to: 8 }
            .apply(&[0; 7])
            .is_err()
    );
}
