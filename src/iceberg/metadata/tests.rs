#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::iceberg::partition::Transform;

fn snapshot(id: i64, timestamp_ms: i64) -> Json {
    json!({"snapshot-id": id, "sequence-number": 1, "timestamp-ms": timestamp_ms, "manifest-list": "s3://b/l.avro",
           "summary": {"operation": "append"}, "schema-id": 0})
}

fn v2() -> Json {
    json!({
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/table",
        "last-sequence-number": 2,
        "last-updated-ms": 1_602_638_573_590_i64,
        "last-column-id": 3,
        "current-schema-id": 1,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "x", "required": true, "type": "int"},
                {"id": 2, "name": "gone", "required": false, "type": "timestamp"}]},
            {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "x", "required": true, "type": "long"}]},
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": [
            {"source-id": 1, "field-id": 1000, "name": "x", "transform": "identity"},
            {"source-id": 2, "field-id": 1001, "name": "d", "transform": "day"},
            {"source-id": 2, "field-id": 1002, "name": "u", "transform": "new-one"},
            {"source-id": 9, "field-id": 1003, "name": "n", "transform": "identity"}]}],
        "last-partition-id": 1003,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "current-snapshot-id": 20,
        "snapshots": [snapshot(10, 1000), snapshot(20, 2000)],
        "snapshot-log": [
            {"snapshot-id": 20, "timestamp-ms": 2000},
            {"snapshot-id": 10, "timestamp-ms": 1000}],
        "properties": {"write.data.path": "s3://data"},
    })
}

fn parse(json: &Json) -> Result<TableMetadata, FormatError> {
    TableMetadata::parse(json.to_string().as_bytes())
}

fn with(key: &str, value: Json) -> Json {
    let mut json = v2();
    json[key] = value;
    json
}

fn without(key: &str) -> Json {
    let mut json = v2();
    json.as_object_mut().unwrap().shift_remove(key);
    json
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn rule_01_versions_above_3_are_not_supported() {
    for version in [4, 5, 1000] {
        let error = parse(&with("format-version", json!(version))).unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        assert_eq!(
            error.to_string(),
            format!("table format version {version} is not supported")
        );
    }
    for version in [json!(0), json!(-1), json!("2"), Json::Null] {
        assert!(
            !parse(&with("format-version", version))
                .unwrap_err()
                .is_unsupported()
        );
    }
    for version in [2, 3] {
        assert_eq!(
            parse(&with("format-version", json!(version)))
                .unwrap()
                .format_version,
            version
        );
    }
}

#[test]
fn metadata_of_very_many_values_is_refused_before_they_take_memory() {
    let many = "0,".repeat(1 << 24);
    let error = TableMetadata::parse(format!("[{many}0]").as_bytes()).unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

#[test]
fn rule_02_gzip_is_recognised_by_its_first_bytes_also_in_several_members() {
    let text = v2().to_string();
    assert_eq!(
        TableMetadata::parse(&gzip(text.as_bytes()))
            .unwrap()
            .snapshots
            .len(),
        2
    );
    let (a, b) = text.as_bytes().split_at(100);
    assert_eq!(
        TableMetadata::parse(&[gzip(a), gzip(b)].concat())
            .unwrap()
            .snapshots
            .len(),
        2
    );
    let mut cut = gzip(text.as_bytes());
    cut.truncate(cut.len() / 2);
    assert!(TableMetadata::parse(&cut).is_err());
}

#[test]
fn rule_02_zstandard_is_recognised_too() {
    let packed = zstd::stream::encode_all(v2().to_string().as_bytes(), 1).unwrap();
    assert_eq!(TableMetadata::parse(&packed).unwrap().snapshots.len(), 2);
}

#[test]
fn rule_03_v1_falls_back_on_schema_and_partition_spec() {
    let json = json!({
        "format-version": 1,
        "location": "s3://bucket/table",
        "last-updated-ms": 1,
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "x", "required": true, "type": "long"}]},
        "partition-spec": [{"name": "x", "transform": "bucket[4]", "source-id": 1}],
        "snapshots": [{"snapshot-id": 1, "timestamp-ms": 5, "manifests": ["s3://b/m1.avro", "s3://b/m2.avro"]}],
        "current-snapshot-id": 1,
    });
    let table = parse(&json).unwrap();
    assert_eq!(
        (
            table.table_uuid,
            table.current_schema_id,
            table.default_spec_id
        ),
        (None, SchemaId(0), SpecId(0))
    );
    let spec = table.partition_spec(SpecId(0)).unwrap();
    assert_eq!(
        (spec.fields[0].field_id, &spec.fields[0].transform),
        (FieldId(1000), &Transform::Bucket(4))
    );
    let snapshot = table.snapshot(SnapshotId(1)).unwrap();
    assert_eq!(snapshot.sequence_number, SequenceNumber(0));
    let inline = SnapshotManifests::Inline(vec!["s3://b/m1.avro".into(), "s3://b/m2.avro".into()]);
    assert_eq!(snapshot.manifests, inline);
}

#[test]
fn rule_03_later_versions_have_no_such_fallbacks() {
    for key in [
        "schemas",
        "partition-specs",
        "current-schema-id",
        "default-spec-id",
        "table-uuid",
        "location",
    ] {
        let error = parse(&without(key)).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("table metadata.{key}: is required but missing")
        );
    }
}

#[test]
fn rule_03_snapshots_from_before_an_upgrade_lack_what_later_ones_have() {
    let mut json = with("format-version", json!(3));
    json["snapshots"][0]
        .as_object_mut()
        .unwrap()
        .shift_remove("sequence-number");
    let table = parse(&json).unwrap();
    let snapshot = table.snapshot(SnapshotId(10)).unwrap();
    assert_eq!(
        (
            snapshot.sequence_number,
            snapshot.first_row_id,
            snapshot.added_rows
        ),
        (SequenceNumber(0), None, None)
    );
}

#[test]
fn rule_04_current_snapshot_null_absent_and_minus_one_mean_no_snapshot() {
    for json in [
        with("current-snapshot-id", Json::Null),
        with("current-snapshot-id", json!(-1)),
        without("current-snapshot-id"),
    ] {
        let table = parse(&json).unwrap();
        assert_eq!(table.current_snapshot_id, None);
        assert!(table.refs.is_empty());
        assert_eq!(table.current_schema().unwrap().id, SchemaId(1));
    }
}

#[test]
fn rule_05_main_is_made_up_where_refs_lack_it() {
    let main = SnapshotRef {
        snapshot_id: SnapshotId(20),
        kind: RefKind::Branch,
    };
    for json in [
        without("refs"),
        with("refs", Json::Null),
        with("refs", json!({})),
    ] {
        assert_eq!(
            parse(&json).unwrap().refs,
            BTreeMap::from([("main".to_owned(), main)])
        );
    }
}

#[test]
fn rule_05_ref_names_are_any_text() {
    let refs = json!({
        "../a%/ü": {"snapshot-id": 10, "type": "tag", "max-ref-age-ms": 1},
        "": {"snapshot-id": 20, "type": "branch"}});
    let table = parse(&with("refs", refs)).unwrap();
    assert_eq!(
        table.refs["../a%/ü"],
        SnapshotRef {
            snapshot_id: SnapshotId(10),
            kind: RefKind::Tag
        }
    );
    assert_eq!(table.refs[""].kind, RefKind::Branch);
    assert_eq!(table.refs["main"].snapshot_id, SnapshotId(20));
    assert!(
        parse(&with(
            "refs",
            json!({"a": {"snapshot-id": 10, "type": "twig"}})
        ))
        .is_err()
    );
}

#[test]
fn rule_06_main_and_the_current_snapshot_must_agree() {
    let refs = json!({"main": {"snapshot-id": 10, "type": "branch"}});
    let error = parse(&with("refs", refs.clone())).unwrap_err().to_string();
    assert_eq!(
        error,
        "table metadata.refs: main is at 10, but current-snapshot-id is 20"
    );
    let mut none = with("refs", refs);
    none["current-snapshot-id"] = json!(-1);
    assert!(
        parse(&none)
            .unwrap_err()
            .to_string()
            .contains("current-snapshot-id is none")
    );
}

#[test]
fn rule_06_snapshot_ids_are_any_64_bits_and_no_more() {
    let negative = snapshot(i64::MIN, 1);
    let mut json = with("snapshots", json!([negative]));
    json["current-snapshot-id"] = json!(i64::MIN);
    assert_eq!(
        parse(&json).unwrap().current_snapshot_id,
        Some(SnapshotId(i64::MIN))
    );
    let error = parse(&with(
        "current-snapshot-id",
        json!(9_876_543_210_123_456_789_u64),
    ))
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("expected a 64-bit integer, found 9876543210123456789"),
        "{error}"
    );
    assert!(parse(&with("snapshots", json!([snapshot(1, 1), snapshot(1, 2)]))).is_err());
}

#[test]
fn rule_07_times_are_looked_up_in_the_log_whatever_its_order() {
    let table = parse(&v2()).unwrap();
    assert_eq!(table.snapshot_at(1000), Ok(SnapshotId(10)));
    assert_eq!(table.snapshot_at(1999), Ok(SnapshotId(10)));
    assert_eq!(table.snapshot_at(2000), Ok(SnapshotId(20)));
    assert_eq!(table.snapshot_at(i64::MAX), Ok(SnapshotId(20)));
    let error = table.snapshot_at(999).unwrap_err().to_string();
    assert_eq!(
        error,
        "snapshot-log: nothing at or before 999 ms; the earliest is at 1000 ms"
    );
    let error = parse(&without("snapshot-log"))
        .unwrap()
        .snapshot_at(5000)
        .unwrap_err()
        .to_string();
    assert!(error.contains("the table has none"));
}

#[test]
fn rule_08_a_snapshot_is_read_with_its_own_schema_or_the_current_one() {
    let mut json = v2();
    json["snapshots"][1]
        .as_object_mut()
        .unwrap()
        .shift_remove("schema-id");
    let table = parse(&json).unwrap();
    assert_eq!(
        table
            .schema_for_snapshot(&table.snapshots[&SnapshotId(10)])
            .unwrap()
            .id,
        SchemaId(0)
    );
    assert_eq!(
        table
            .schema_for_snapshot(&table.snapshots[&SnapshotId(20)])
            .unwrap()
            .id,
        SchemaId(1)
    );
    json["snapshots"][0]["schema-id"] = json!(5);
    let table = parse(&json).unwrap();
    let error = table
        .schema_for_snapshot(&table.snapshots[&SnapshotId(10)])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "snapshot 10.schemas: the table has no schema with id 5"
    );
}

#[test]
fn rule_08_the_current_schema_must_exist() {
    assert!(
        parse(&with("current-schema-id", json!(7)))
            .unwrap_err()
            .to_string()
            .contains("schema 7 is not in schemas")
    );
}

#[test]
fn rule_10_partition_types_follow_transforms_and_dropped_columns() {
    let table = parse(&v2()).unwrap();
    let types = table.partition_type(table.partition_spec(SpecId(0)).unwrap());
    assert_eq!(
        types,
        [
            Some(PrimitiveType::Long),
            Some(PrimitiveType::Date),
            None,
            None
        ]
    );
    assert_eq!(
        table.field_by_id_any_schema(FieldId(2)).unwrap().name,
        "gone"
    );
    assert!(table.field_by_id_any_schema(FieldId(3)).is_none());
}

#[test]
fn rule_12_statistics_sort_orders_and_unknown_keys_do_not_matter() {
    let mut json = v2();
    json["statistics"] = json!("anything");
    json["partition-statistics"] = json!([{"snapshot-id": "x"}]);
    json["sort-orders"] = json!(17);
    json["brand-new"] = json!([{}]);
    assert_eq!(parse(&json).unwrap().snapshots.len(), 2);
}

#[test]
fn rule_13_encryption_keys_are_noticed() {
    assert!(
        !parse(&with("encryption-keys", json!([])))
            .unwrap()
            .encrypted
    );
    assert!(
        parse(&with("encryption-keys", json!([{"key-id": "k"}])))
            .unwrap()
            .encrypted
    );
}

#[test]
fn rule_41_the_name_mapping_is_a_property() {
    assert_eq!(parse(&v2()).unwrap().name_mapping(), Ok(None));
    let mapping =
        json!({"schema.name-mapping.default": r#"[{"field-id": 1, "names": ["x", "y"]}]"#});
    let mapping = parse(&with("properties", mapping))
        .unwrap()
        .name_mapping()
        .unwrap()
        .unwrap();
    assert_eq!(mapping.find("y").unwrap().field_id, Some(FieldId(1)));
    let broken = parse(&with(
        "properties",
        json!({"schema.name-mapping.default": "{"}),
    ))
    .unwrap();
    assert!(
        broken
            .name_mapping()
            .unwrap_err()
            .to_string()
            .contains("schema.name-mapping.default")
    );
}

#[test]
fn data_paths_are_properties() {
    assert_eq!(parse(&v2()).unwrap().data_paths(), ["s3://data"]);
}

#[test]
fn properties_that_are_not_text_are_taken_as_their_json() {
    let table = parse(&with("properties", json!({"a": 1, "b": true, "c": null}))).unwrap();
    assert_eq!(
        table.properties,
        BTreeMap::from([("a".into(), "1".into()), ("b".into(), "true".into())])
    );
}

#[test]
fn json_nested_without_end_is_an_error() {
    assert!(TableMetadata::parse(&[b'['; 100_000]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn damaged_metadata_never_panics(flips in prop::collection::vec((0_usize..100_000, any::<u8>()), 1..4)) {
        let mut bytes = v2().to_string().into_bytes();
        for (at, byte) in flips {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Ok(table) = TableMetadata::parse(&bytes) {
            let _ = table.snapshot_at(1500);
            let _ = table.name_mapping();
            for spec in table.partition_specs.values() {
                table.partition_type(spec);
            }
        }
    }
}
