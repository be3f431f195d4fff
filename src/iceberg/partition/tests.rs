#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value as Json, json};

use super::transform::bucket_hash;
use super::{PartitionSpec, SpecId, Transform};
use crate::iceberg::types::{FieldId, PrimitiveType};
use crate::iceberg::value::Value;

fn spec(fields: Json) -> Result<PartitionSpec, String> {
    PartitionSpec::from_json(&json!({"spec-id": 3, "fields": fields})).map_err(|e| e.to_string())
}

fn apply(transform: &str, value: Value) -> Value {
    Transform::parse(transform)
        .unwrap()
        .apply(Some(&value))
        .unwrap()
        .unwrap()
}

#[test]
fn rule_10_sources_are_one_id_or_several() {
    let read = spec(json!([
        {"source-id": 1, "field-id": 1000, "name": "a", "transform": "identity"},
        {"source-ids": [1, 2], "field-id": 1001, "name": "b", "transform": "bucketV2[4]"},
    ]));
    let read = read.unwrap();
    assert_eq!(read.id, SpecId(3));
    assert_eq!(read.fields[0].source_ids, [FieldId(1)]);
    assert_eq!(read.fields[1].source_ids, [FieldId(1), FieldId(2)]);
    assert!(
        spec(json!([{"field-id": 1000, "name": "a", "transform": "identity"}]))
            .unwrap_err()
            .contains("source-id")
    );
}

#[test]
fn rule_10_unknown_transforms_are_kept_by_name() {
    let unknown = Transform::parse("zorder[3]").unwrap();
    assert_eq!(unknown, Transform::Unknown("zorder[3]".into()));
    assert_eq!(unknown.to_string(), "zorder[3]");
    assert!(
        unknown
            .apply(Some(&Value::Int(1)))
            .unwrap_err()
            .is_unsupported()
    );
    assert_eq!(unknown.result_type(&PrimitiveType::Int), None);
}

#[test]
fn rule_10_known_transforms_read_back() {
    for text in [
        "identity",
        "bucket[16]",
        "truncate[4]",
        "year",
        "month",
        "day",
        "hour",
        "void",
    ] {
        let transform = Transform::parse(text).unwrap();
        assert!(!matches!(transform, Transform::Unknown(_)), "{text}");
        assert_eq!(transform.to_string(), text);
    }
    for text in [
        "bucket[0]",
        "bucket[-1]",
        "bucket[]",
        "truncate[x]",
        "bucket[2147483648]",
    ] {
        assert!(Transform::parse(text).is_err(), "{text}");
    }
}

#[test]
fn rule_10_the_case_of_letters_does_not_matter_as_in_the_reference() {
    assert_eq!(Transform::parse("Bucket[16]"), Ok(Transform::Bucket(16)));
    assert_eq!(Transform::parse("IDENTITY"), Ok(Transform::Identity));
    assert_eq!(
        Transform::parse("MyOwn"),
        Ok(Transform::Unknown("MyOwn".into()))
    );
}

#[test]
fn rule_11_v1_fields_without_ids_are_numbered_from_1000() {
    let json = json!([
        {"source-id": 1, "name": "a", "transform": "identity"},
        {"source-id": 2, "name": "b", "transform": "day"},
    ]);
    let spec = PartitionSpec::from_fields_json(SpecId(0), &json).unwrap();
    let ids: Vec<i32> = spec.fields.iter().map(|field| field.field_id.0).collect();
    assert_eq!(ids, [1000, 1001]);
}

#[test]
fn a_partition_field_id_used_twice_is_an_error() {
    let field = json!({"source-id": 1, "field-id": 1000, "name": "a", "transform": "identity"});
    assert!(
        spec(json!([field, field]))
            .unwrap_err()
            .contains("used twice")
    );
}

#[test]
fn rule_29_a_spec_of_voids_is_unpartitioned() {
    let void = json!([{"source-id": 1, "field-id": 1000, "name": "a", "transform": "void"}]);
    assert!(spec(void).unwrap().is_unpartitioned());
    assert!(spec(json!([])).unwrap().is_unpartitioned());
}

#[test]
fn rule_47_times_floor_towards_minus_infinity() {
    let before_epoch = Value::Timestamp(-1_000_000); // 1969-12-31T23:59:59
    assert_eq!(apply("hour", before_epoch.clone()), Value::Int(-1));
    assert_eq!(apply("day", before_epoch.clone()), Value::Date(-1));
    assert_eq!(apply("month", before_epoch.clone()), Value::Int(-1));
    assert_eq!(apply("year", before_epoch), Value::Int(-1));
    // 2017-12-01T10:12:55.038194, of the reference implementation's tests.
    let later = Value::Timestamp(1_512_123_175_038_194);
    assert_eq!(apply("year", later.clone()), Value::Int(47));
    assert_eq!(apply("month", later.clone()), Value::Int(575));
    assert_eq!(apply("day", later.clone()), Value::Date(17_501));
    assert_eq!(apply("hour", later), Value::Int(420_034));
    assert_eq!(apply("hour", Value::TimestampNs(-1)), Value::Int(-1));
    assert_eq!(apply("month", Value::Date(17_486)), Value::Int(574));
}

/// Examples of the spec's "Truncate Transform Details".
#[test]
fn rule_47_truncate_uses_floor_and_code_points() {
    assert_eq!(apply("truncate[10]", Value::Int(1)), Value::Int(0));
    assert_eq!(apply("truncate[10]", Value::Int(-1)), Value::Int(-10));
    assert_eq!(apply("truncate[10]", Value::Long(-1)), Value::Long(-10));
    assert_eq!(
        apply("truncate[50]", Value::Decimal(1065)),
        Value::Decimal(1050)
    );
    assert_eq!(
        apply("truncate[3]", Value::String("iceberg".into())),
        Value::String("ice".into())
    );
    assert_eq!(
        apply("truncate[2]", Value::String("ß🧊c".into())),
        Value::String("ß🧊".into())
    );
    assert_eq!(
        apply("truncate[3]", Value::Binary(vec![1, 2, 3, 4])),
        Value::Binary(vec![1, 2, 3])
    );
}

#[test]
fn rule_47_bucket_masks_the_sign_and_takes_the_remainder() {
    // Hash -653330422 of 2017-11-16 (Appendix B), masked 1494153226, modulo 16.
    assert_eq!(apply("bucket[16]", Value::Date(17_486)), Value::Int(10));
    // Hash 1210000089 of "iceberg".
    assert_eq!(
        apply("bucket[16]", Value::String("iceberg".into())),
        Value::Int(9)
    );
    // Hash -500754589 of 14.20, masked 1646729059, modulo 1000.
    assert_eq!(apply("bucket[1000]", Value::Decimal(1420)), Value::Int(59));
    assert!(
        Transform::Bucket(4)
            .apply(Some(&Value::double(1.0)))
            .is_err()
    );
}

#[test]
fn rule_47_hashes_of_promoted_values_are_equal() {
    assert_eq!(bucket_hash(&Value::Int(34)), bucket_hash(&Value::Long(34)));
    assert_eq!(
        bucket_hash(&Value::Decimal(-1)),
        Some(super::super::murmur3::hash(&[0xFF]))
    );
    assert_eq!(
        bucket_hash(&Value::Decimal(128)),
        Some(super::super::murmur3::hash(&[0, 0x80]))
    );
    assert_eq!(
        bucket_hash(&Value::Decimal(0)),
        Some(super::super::murmur3::hash(&[0]))
    );
}

#[test]
fn rule_45_nanoseconds_hash_as_their_microseconds() {
    let micros = Value::Timestamp(1_510_871_468_000_001);
    assert_eq!(
        bucket_hash(&Value::TimestampNs(1_510_871_468_000_001_999)),
        bucket_hash(&micros)
    );
    assert_eq!(
        bucket_hash(&Value::TimestampNs(-1)),
        bucket_hash(&Value::Timestamp(-1))
    );
}

#[test]
fn rule_47_null_stays_null_and_void_makes_null() {
    assert_eq!(Transform::Bucket(4).apply(None), Ok(None));
    assert_eq!(Transform::Void.apply(Some(&Value::Int(1))), Ok(None));
}

#[test]
fn rule_24_day_makes_dates() {
    assert_eq!(
        Transform::Day.result_type(&PrimitiveType::Timestamptz),
        Some(PrimitiveType::Date)
    );
    assert_eq!(
        Transform::Hour.result_type(&PrimitiveType::Timestamp),
        Some(PrimitiveType::Int)
    );
    assert_eq!(
        Transform::Bucket(4).result_type(&PrimitiveType::String),
        Some(PrimitiveType::Int)
    );
    assert_eq!(
        Transform::Truncate(4).result_type(&PrimitiveType::String),
        Some(PrimitiveType::String)
    );
}
