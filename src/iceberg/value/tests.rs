#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cmp::Ordering;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{Value, calendar};
use crate::iceberg::types::{PrimitiveType, Type};

fn ty(text: &str) -> PrimitiveType {
    text.parse().unwrap()
}

fn from_bytes(text: &str, bytes: &[u8]) -> Value {
    Value::from_bytes(&ty(text), bytes).unwrap()
}

fn from_json(text: &str, json: Json) -> Option<Value> {
    Value::from_json(&Type::Primitive(ty(text)), &json).ok()
}

#[test]
fn rule_43_bounds_decode_by_their_length() {
    assert_eq!(from_bytes("boolean", &[0]), Value::Boolean(false));
    assert_eq!(from_bytes("boolean", &[1]), Value::Boolean(true));
    assert_eq!(from_bytes("int", &[0xD2, 4, 0, 0]), Value::Int(1234));
    assert_eq!(
        from_bytes("long", &[0xD2, 4, 0, 0, 0, 0, 0, 0]),
        Value::Long(1234)
    );
    assert_eq!(
        from_bytes("long", &[0xFF, 0xFF, 0xFF, 0xFF]),
        Value::Long(-1)
    );
    assert_eq!(
        from_bytes("double", &1.5_f64.to_le_bytes()),
        Value::double(1.5)
    );
    assert_eq!(
        from_bytes("double", &(-4.5_f32).to_le_bytes()),
        Value::double(-4.5)
    );
    assert_eq!(
        from_bytes("timestamp", &[1, 0, 0, 0]),
        Value::Timestamp(86_400_000_000)
    );
    assert_eq!(
        from_bytes("timestamp_ns", &[1, 0, 0, 0]),
        Value::TimestampNs(86_400_000_000_000)
    );
    assert_eq!(from_bytes("uuid", &[7; 16]), Value::Uuid([7; 16]));
    assert_eq!(from_bytes("string", b"ABC"), Value::String("ABC".into()));
    assert_eq!(from_bytes("fixed[5]", b"AB"), Value::Binary(b"AB".to_vec()));
}

#[test]
fn rule_43_decimals_of_any_length_are_sign_extended() {
    assert_eq!(from_bytes("decimal(9,2)", &[5, 0x8C]), Value::Decimal(1420));
    assert_eq!(
        from_bytes("decimal(9,2)", &[0, 0, 0, 5, 0x8C]),
        Value::Decimal(1420)
    );
    assert_eq!(from_bytes("decimal(9,2)", &[0xFF]), Value::Decimal(-1));
    assert_eq!(
        from_bytes(
            "decimal(38,0)",
            &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        ),
        Value::Decimal(i128::MIN)
    );
    assert!(Value::from_bytes(&ty("decimal(9,2)"), &[]).is_err());
    assert!(Value::from_bytes(&ty("decimal(9,2)"), &[1; 17]).is_err());
}

#[test]
fn rule_43_wrong_lengths_are_errors() {
    for text in [
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
    ] {
        for length in [0, 3, 9] {
            assert!(
                Value::from_bytes(&ty(text), &vec![0; length]).is_err(),
                "{text} of {length} bytes"
            );
        }
    }
    assert!(
        Value::from_bytes(&ty("timestamptz"), &[0; 4]).is_err(),
        "a date does not become a timestamptz"
    );
    assert!(Value::from_bytes(&ty("string"), &[0xFF]).is_err());
}

#[test]
fn rule_43_minus_zero_is_less_than_plus_zero() {
    assert_eq!(
        Value::double(-0.0).compare(&Value::double(0.0)),
        Some(Ordering::Less)
    );
    assert_eq!(
        Value::float(-0.0).compare(&Value::float(0.0)),
        Some(Ordering::Less)
    );
    assert_eq!(
        Value::float(f32::NAN).compare(&Value::float(f32::INFINITY)),
        Some(Ordering::Greater)
    );
    assert_eq!(
        Value::String("é".into()).compare(&Value::String("z".into())),
        Some(Ordering::Greater)
    );
    assert_eq!(
        Value::Binary(vec![0x80]).compare(&Value::Binary(vec![0x7F, 1])),
        Some(Ordering::Greater)
    );
    assert_eq!(Value::Int(1).compare(&Value::Long(1)), None);
}

#[test]
fn rule_25_nan_is_one_value_and_zeros_are_two() {
    assert_eq!(
        Value::float(f32::from_bits(0xFFC0_0001)),
        Value::float(f32::NAN)
    );
    assert_eq!(
        Value::double(f64::from_bits(0x7FF8_0000_0000_0001)),
        Value::double(f64::NAN)
    );
    assert_ne!(Value::double(-0.0), Value::double(0.0));
}

#[test]
fn rule_42_values_are_promoted_and_overflow_is_noticed() {
    assert_eq!(
        Value::Int(-5).promote(&PrimitiveType::Long),
        Some(Value::Long(-5))
    );
    assert_eq!(
        Value::float(0.5).promote(&PrimitiveType::Double),
        Some(Value::double(0.5))
    );
    assert_eq!(
        Value::Date(-1).promote(&PrimitiveType::Timestamp),
        Some(Value::Timestamp(-86_400_000_000))
    );
    assert_eq!(
        Value::Date(1).promote(&PrimitiveType::TimestampNs),
        Some(Value::TimestampNs(86_400_000_000_000))
    );
    assert_eq!(
        Value::Date(200_000).promote(&PrimitiveType::TimestampNs),
        None,
        "the year 2517 in nanoseconds"
    );
    assert_eq!(Value::Date(1).promote(&PrimitiveType::Timestamptz), None);
    assert_eq!(
        Value::Decimal(1420).promote(&ty("decimal(38,2)")),
        Some(Value::Decimal(1420))
    );
    assert_eq!(Value::Long(1).promote(&PrimitiveType::Int), None);
}

#[test]
fn rule_42_values_of_before_a_promotion_are_those_that_were_promoted() {
    use PrimitiveType as T;
    let back = |value: Value, from: T| value.before_promotion(&from);
    assert_eq!(back(Value::Long(-5), T::Int), Some(Value::Int(-5)));
    assert_eq!(back(Value::Long(1 << 31), T::Int), None);
    assert_eq!(
        back(Value::double(-0.0), T::Float),
        Some(Value::float(-0.0))
    );
    assert_eq!(
        back(Value::double(f64::NAN), T::Float),
        Some(Value::float(f32::NAN))
    );
    assert_eq!(back(Value::double(0.1), T::Float), None);
    assert_eq!(
        back(Value::Timestamp(-86_400_000_000), T::Date),
        Some(Value::Date(-1))
    );
    assert_eq!(back(Value::Timestamp(1), T::Date), None);
    assert_eq!(
        back(Value::TimestampNs(86_400_000_000_000), T::Date),
        Some(Value::Date(1))
    );
    assert_eq!(back(Value::Int(1), T::Long), None);
}

/// The examples of the spec's Appendix D, "JSON single-value serialization".
#[test]
fn rule_44_json_forms_are_those_of_appendix_d() {
    let examples = [
        ("boolean", json!(true), Value::Boolean(true)),
        ("int", json!(34), Value::Int(34)),
        ("long", json!(34), Value::Long(34)),
        ("float", json!(1.0), Value::float(1.0)),
        ("double", json!(1.0), Value::double(1.0)),
        ("decimal(9,2)", json!("14.20"), Value::Decimal(1420)),
        ("date", json!("2017-11-16"), Value::Date(17_486)),
        (
            "time",
            json!("22:31:08.123456"),
            Value::Time(81_068_123_456),
        ),
        (
            "timestamp",
            json!("2017-11-16T22:31:08.123456"),
            Value::Timestamp(1_510_871_468_123_456),
        ),
        (
            "timestamptz",
            json!("2017-11-16T22:31:08.123456+00:00"),
            Value::Timestamp(1_510_871_468_123_456),
        ),
        (
            "timestamp_ns",
            json!("2017-11-16T22:31:08.123456789"),
            Value::TimestampNs(1_510_871_468_123_456_789),
        ),
        (
            "timestamptz_ns",
            json!("2017-11-16T22:31:08.123456789+00:00"),
            Value::TimestampNs(1_510_871_468_123_456_789),
        ),
        ("string", json!("iceberg"), Value::String("iceberg".into())),
        (
            "fixed[4]",
            json!("000102ff"),
            Value::Binary(vec![0, 1, 2, 0xFF]),
        ),
        (
            "binary",
            json!("000102ff"),
            Value::Binary(vec![0, 1, 2, 0xFF]),
        ),
    ];
    for (text, json, value) in examples {
        assert_eq!(from_json(text, json.clone()), Some(value.clone()), "{text}");
        assert_eq!(value.to_json(&Type::Primitive(ty(text))), json, "{text}");
    }
    let uuid = "f79c3e09-677c-4bbd-a479-3f349cb785e7";
    assert_eq!(
        from_json("uuid", json!(uuid))
            .unwrap()
            .to_json(&Type::Primitive(PrimitiveType::Uuid)),
        json!(uuid)
    );
}

#[test]
fn rule_44_decimals_keep_their_scale_also_with_an_exponent() {
    assert_eq!(
        from_json("decimal(20,10)", json!("0E-10")),
        Some(Value::Decimal(0))
    );
    assert_eq!(
        from_json("decimal(20,10)", json!("-1.5E-9")),
        Some(Value::Decimal(-15))
    );
    assert_eq!(
        from_json("decimal(9,2)", json!("-0.05")),
        Some(Value::Decimal(-5))
    );
    assert_eq!(
        Value::Decimal(-5).to_json(&Type::Primitive(ty("decimal(9,2)"))),
        json!("-0.05")
    );
    for wrong in [
        json!("14.2"),
        json!("14.200"),
        json!("12345678.90"),
        json!(14.20),
        json!("1-.00"),
        json!(""),
    ] {
        assert_eq!(from_json("decimal(9,2)", wrong.clone()), None, "{wrong}");
    }
}

#[test]
fn rule_44_timestamptz_must_be_in_utc() {
    assert!(from_json("timestamptz", json!("2017-11-16T22:31:08.123456+01:00")).is_none());
    assert!(from_json("timestamptz", json!("2017-11-16T22:31:08.123456")).is_none());
    assert!(from_json("timestamp", json!("2017-11-16T22:31:08.123456+00:00")).is_none());
}

#[test]
fn rule_44_values_out_of_range_are_errors() {
    for (text, json) in [
        ("int", json!(2_147_483_648_i64)),
        ("date", json!("2017-02-29")),
        ("date", json!("2017-1-1")),
        ("time", json!("24:00:00")),
        ("timestamp", json!("2017-11-16T22:31:08.1234567")),
        ("timestamp_ns", json!("9999-01-01T00:00:00")),
        ("fixed[4]", json!("0001")),
        ("binary", json!("0g")),
        ("binary", json!("0")),
        ("binary", json!("é")),
        ("uuid", json!("f79c3e09")),
        ("unknown", json!(1)),
    ] {
        assert_eq!(from_json(text, json.clone()), None, "{text} {json}");
    }
}

#[test]
fn rule_44_lists_and_maps_hold_nulls() {
    let list = crate::iceberg::schema::Schema::from_json(&json!({"type": "struct", "fields": [
        {"id": 1, "name": "l", "required": false, "type": {
            "type": "list", "element-id": 2, "element-required": false, "element": "int"}},
        {"id": 3, "name": "m", "required": false, "type": {
            "type": "map", "key-id": 4, "key": "string", "value-id": 5, "value-required": false, "value": "int"}},
    ]}))
    .unwrap();
    let [l, m] = &list.fields.fields[..] else {
        panic!()
    };
    let (list_json, map_json) = (
        json!([1, null]),
        json!({"keys": ["a", "b"], "values": [1, null]}),
    );
    let value = Value::from_json(&l.ty, &list_json).unwrap();
    assert_eq!(value, Value::List(vec![Some(Value::Int(1)), None]));
    assert_eq!(value.to_json(&l.ty), list_json);
    let value = Value::from_json(&m.ty, &map_json).unwrap();
    assert_eq!(
        value,
        Value::Map(vec![
            (Value::String("a".into()), Some(Value::Int(1))),
            (Value::String("b".into()), None)
        ])
    );
    assert_eq!(value.to_json(&m.ty), map_json);
    assert!(Value::from_json(&m.ty, &json!({"keys": ["a"], "values": []})).is_err());
}

#[test]
fn dates_outside_four_digit_years_keep_their_sign() {
    let date = Type::Primitive(PrimitiveType::Date);
    for text in ["-0001-12-31", "0000-02-29", "1969-12-31", "+10000-01-01"] {
        let value = Value::from_json(&date, &json!(text)).unwrap();
        assert_eq!(value.to_json(&date), json!(text));
    }
    assert_eq!(
        from_json("date", json!("1969-12-31")),
        Some(Value::Date(-1))
    );
}

proptest! {
    #[test]
    fn every_count_of_days_is_one_date(days: i32) {
        let (year, month, day) = calendar::civil_from_days(days);
        prop_assert_eq!(calendar::days_from_civil(year.into(), month, day), Some(days));
    }

    #[test]
    fn bytes_of_any_kind_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        for text in ["boolean", "int", "long", "float", "double", "decimal(9,2)", "date", "timestamp", "timestamp_ns",
                     "uuid", "string", "binary", "variant", "unknown"] {
            if let Ok(value) = Value::from_bytes(&ty(text), &bytes) {
                value.to_json(&Type::Primitive(ty(text)));
            }
        }
    }

    #[test]
    fn text_of_any_kind_never_panics(text in "[-+0-9T:.Ee ZÀ-ÿ]{0,32}") {
        for name in ["decimal(38,10)", "date", "time", "timestamp", "timestamptz_ns", "uuid", "binary", "fixed[2]"] {
            from_json(name, json!(text.clone()));
        }
    }
}

#[test]
fn numbers_of_any_length() {
    assert_eq!(super::decimal_be(&[]), None);
    assert_eq!(super::decimal_be(&[0xff]), Some(-1));
    assert_eq!(super::decimal_be(&[0x80, 0]), Some(-32768));
    assert_eq!(super::decimal_be(&[0; 20]), Some(0));
    assert_eq!(super::decimal_be(&[0xff; 17]), Some(-1));
    let mut wide = [0; 17];
    wide[1] = 0x80;
    assert_eq!(super::decimal_be(&wide), None);
}
