#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use apache_avro::{Codec, DeflateSettings, Writer, ZstandardSettings, types::Value as AvroValue};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::iceberg::metadata::{Snapshot, SnapshotManifests, TableMetadata};
use crate::iceberg::partition::{SpecId, Transform};

/// An Avro file by another writer than ours.
fn avro(schema: &Json, header: &[(&str, &str)], codec: Codec, records: &[Json]) -> Vec<u8> {
    let schema = apache_avro::Schema::parse(schema).unwrap();
    let mut writer = Writer::with_codec(&schema, Vec::new(), codec).unwrap();
    for (key, value) in header {
        writer.add_user_metadata((*key).to_owned(), value).unwrap();
    }
    for record in records {
        writer
            .append_value(avro_value(record).resolve(&schema).unwrap())
            .unwrap();
    }
    writer.into_inner().unwrap()
}

fn avro_value(json: &Json) -> AvroValue {
    match json {
        Json::Null => AvroValue::Null,
        Json::Bool(v) => AvroValue::Boolean(*v),
        Json::Number(v) => match v.as_i64() {
            Some(v) => i32::try_from(v).map_or(AvroValue::Long(v), AvroValue::Int),
            None => AvroValue::Double(v.as_f64().unwrap()),
        },
        Json::String(v) => AvroValue::String(v.clone()),
        Json::Array(items) => AvroValue::Array(items.iter().map(avro_value).collect()),
        Json::Object(map) => AvroValue::Map(
            map.iter()
                .map(|(key, v)| (key.clone(), avro_value(v)))
                .collect(),
        ),
    }
}

fn optional(name: &str, id: i32, ty: Json) -> Json {
    json!({"name": name, "type": ["null", ty], "default": null, "field-id": id})
}

fn required(name: &str, id: i32, ty: Json) -> Json {
    json!({"name": name, "type": ty, "field-id": id})
}

fn record(name: &str, fields: Vec<Json>) -> Json {
    json!({"type": "record", "name": name, "fields": fields})
}

fn int_map(name: &str, key: i32, value: i32, ty: Json) -> Json {
    let entry = record(
        name,
        vec![
            required("key", key, json!("int")),
            required("value", value, ty),
        ],
    );
    json!({"type": "array", "logicalType": "map", "items": entry})
}

fn list_schema() -> Json {
    record(
        "manifest_file",
        vec![
            required("manifest_path", 500, json!("string")),
            required("manifest_length", 501, json!("long")),
            required("partition_spec_id", 502, json!("int")),
            required("content", 517, json!("int")),
            required("sequence_number", 515, json!("long")),
            required("min_sequence_number", 516, json!("long")),
            required("added_snapshot_id", 503, json!("long")),
            optional("added_files_count", 504, json!("int")),
            optional("existing_files_count", 505, json!("int")),
            optional("key_metadata", 519, json!("bytes")),
            optional("first_row_id", 520, json!("long")),
        ],
    )
}

fn list_entry() -> Json {
    json!({
        "manifest_path": "s3://b/m1.avro", "manifest_length": 7000, "partition_spec_id": 1, "content": 0,
        "sequence_number": 5, "min_sequence_number": 2, "added_snapshot_id": -77, "added_files_count": 2,
        "existing_files_count": null, "key_metadata": null, "first_row_id": 100,
    })
}

fn list(records: &[Json]) -> Vec<u8> {
    avro(&list_schema(), &[], Codec::Null, records)
}

/// The fields of a data file, with a partition of this Avro type.
fn file_fields(partition_type: Json) -> Vec<Json> {
    let partition_fields = vec![
        optional("day", 1000, partition_type),
        optional("gone", 1001, json!("string")),
    ];
    vec![
        required("content", 134, json!("int")),
        required("file_path", 100, json!("string")),
        required("file_format", 101, json!("string")),
        required("partition", 102, record("r102", partition_fields)),
        required("record_count", 103, json!("long")),
        required("file_size_in_bytes", 104, json!("long")),
        optional(
            "column_sizes",
            108,
            int_map("k117_v118", 117, 118, json!("long")),
        ),
        optional(
            "null_value_counts",
            110,
            int_map("k121_v122", 121, 122, json!("long")),
        ),
        optional(
            "lower_bounds",
            125,
            int_map("k126_v127", 126, 127, json!("bytes")),
        ),
        optional(
            "upper_bounds",
            128,
            int_map("k129_v130", 129, 130, json!("bytes")),
        ),
        optional(
            "split_offsets",
            132,
            json!({"type": "array", "items": "long", "element-id": 133}),
        ),
        optional(
            "equality_ids",
            135,
            json!({"type": "array", "items": "int", "element-id": 136}),
        ),
        optional("first_row_id", 142, json!("long")),
        optional("referenced_data_file", 143, json!("string")),
        optional("content_offset", 144, json!("long")),
        optional("content_size_in_bytes", 145, json!("long")),
    ]
}

fn entry_schema(file_fields: Vec<Json>) -> Json {
    record(
        "manifest_entry",
        vec![
            required("status", 0, json!("int")),
            optional("snapshot_id", 1, json!("long")),
            optional("sequence_number", 3, json!("long")),
            optional("file_sequence_number", 4, json!("long")),
            required("data_file", 2, record("r2", file_fields)),
        ],
    )
}

/// An added file of three rows, everything that can be inherited null.
fn file(path: &str) -> Json {
    json!({
        "status": 1, "snapshot_id": null, "sequence_number": null, "file_sequence_number": null,
        "data_file": {
            "content": 0, "file_path": path, "file_format": "PARQUET", "partition": {"day": 19000, "gone": null},
            "record_count": 3, "file_size_in_bytes": 1000, "column_sizes": [{"key": 1, "value": 9}],
            "null_value_counts": [{"key": 1, "value": 2}, {"key": 2, "value": -1}],
            "lower_bounds": [{"key": 1, "value": "\u{1}"}], "upper_bounds": null, "split_offsets": [4, 400],
            "equality_ids": null, "first_row_id": null, "referenced_data_file": null, "content_offset": null,
            "content_size_in_bytes": null,
        },
    })
}

fn with(mut entry: Json, changes: &[(&str, Json)]) -> Json {
    for (key, value) in changes {
        let at = if entry.get(*key).is_some() {
            &mut entry
        } else {
            &mut entry["data_file"]
        };
        at[*key] = value.clone();
    }
    entry
}

fn manifest(entries: &[Json]) -> Vec<u8> {
    avro(
        &entry_schema(file_fields(json!({"type": "int", "logicalType": "date"}))),
        &[],
        Codec::Null,
        entries,
    )
}

/// A table whose spec 1 is day(ts), void(b), day(ts) again by another name that manifests lack.
fn table() -> TableMetadata {
    let metadata = json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b",
        "last-updated-ms": 0,
        "current-schema-id": 0, "default-spec-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "ts", "required": false, "type": "timestamp"},
            {"id": 2, "name": "b", "required": false, "type": "string"}]}],
        "partition-specs": [{"spec-id": 1, "fields": [
            {"source-id": 1, "field-id": 1000, "name": "d", "transform": "day"},
            {"source-id": 2, "field-id": 1001, "name": "b", "transform": "void"}]}],
    });
    TableMetadata::parse(metadata.to_string().as_bytes()).unwrap()
}

fn listed() -> ManifestFile {
    parse_manifest_list(&list(&[list_entry()]))
        .unwrap()
        .remove(0)
}

fn read(entries: &[Json], listed: &ManifestFile) -> Result<Vec<ManifestEntry>, String> {
    parse_manifest(&manifest(entries), listed, &table(), &Statistics::All)
        .map_err(|e| e.to_string())
}

#[test]
fn rule_17_manifest_lists_are_read_by_field_id() {
    let read = listed();
    let expected = ManifestFile {
        path: "s3://b/m1.avro".into(),
        length: Some(7000),
        spec_id: SpecId(1),
        content: ManifestContent::Data,
        sequence_number: SequenceNumber(5),
        min_sequence_number: SequenceNumber(2),
        added_snapshot_id: SnapshotId(-77),
        added_files_count: Some(2),
        existing_files_count: None,
        first_row_id: Some(100),
        key_metadata: false,
    };
    assert_eq!(read, expected);
}

#[test]
fn rule_17_unknown_counts_are_not_zero() {
    let mut entry = list_entry();
    entry["added_files_count"] = json!(-1);
    let read = parse_manifest_list(&list(&[entry])).unwrap();
    assert_eq!(
        (read[0].added_files_count, read[0].existing_files_count),
        (None, None)
    );
}

#[test]
fn rule_03_a_v1_manifest_list_has_zeros_for_what_it_lacks() {
    let schema = record(
        "manifest_file",
        vec![
            required("manifest_path", 500, json!("string")),
            required("manifest_length", 501, json!("long")),
            required("partition_spec_id", 502, json!("int")),
            required("added_snapshot_id", 503, json!("long")),
        ],
    );
    let entry = json!({"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "added_snapshot_id": 9});
    let read = parse_manifest_list(&avro(&schema, &[], Codec::Null, &[entry]))
        .unwrap()
        .remove(0);
    assert_eq!(
        (read.sequence_number, read.min_sequence_number),
        (SequenceNumber(0), SequenceNumber(0))
    );
    assert_eq!(
        (read.content, read.first_row_id),
        (ManifestContent::Data, None)
    );
}

#[test]
fn rule_18_fields_are_resolved_by_id_not_by_name() {
    let mut schema = list_schema();
    let fields = schema["fields"].as_array_mut().unwrap();
    // The names of path and key metadata swapped round, the order turned, a field nobody knows added.
    for field in fields.iter_mut() {
        field["name"] = match field["name"].as_str().unwrap() {
            "manifest_path" => json!("manifest_length"),
            "manifest_length" => json!("added_rows"),
            name => json!(name),
        };
    }
    fields.reverse();
    fields.push(json!({"name": "new", "type": {"type": "map", "values": ["null", "double"]}, "field-id": 9999}));
    let mut entry = list_entry();
    entry["manifest_length"] = json!("s3://b/m1.avro");
    entry["added_rows"] = json!(7000);
    entry["new"] = json!({"a": 1.5, "b": null});
    let read = parse_manifest_list(&avro(&schema, &[], Codec::Null, &[entry])).unwrap();
    assert_eq!(read, [listed()]);
}

#[test]
fn rule_18_names_count_only_where_no_field_has_an_id() {
    let mut schema = list_schema();
    for field in schema["fields"].as_array_mut().unwrap() {
        field.as_object_mut().unwrap().shift_remove("field-id");
    }
    let read = parse_manifest_list(&avro(&schema, &[], Codec::Null, &[list_entry()])).unwrap();
    assert_eq!(read, [listed()]);
}

#[test]
fn rule_18_all_codecs_are_read() {
    let schema = entry_schema(file_fields(json!({"type": "int", "logicalType": "date"})));
    let entries: Vec<Json> = (0..2000).map(|i| file(&format!("f{i}"))).collect();
    let plain = parse_manifest(&manifest(&entries), &listed(), &table(), &Statistics::All).unwrap();
    assert_eq!(plain.len(), 2000);
    let codecs = [
        Codec::Deflate(DeflateSettings::default()),
        Codec::Snappy,
        Codec::Zstandard(ZstandardSettings::default()),
    ];
    for codec in codecs {
        let bytes = avro(&schema, &[], codec, &entries);
        assert_eq!(
            parse_manifest(&bytes, &listed(), &table(), &Statistics::All).unwrap(),
            plain,
            "{codec:?}"
        );
    }
}

#[test]
fn rule_18_names_that_avro_does_not_allow_are_read() {
    let mut fields = file_fields(json!("int"));
    fields[3]["type"]["fields"][0]["name"] = json!("day_of_x");
    let entry = with(
        file("f"),
        &[("partition", json!({"day_of_x": 7, "gone": null}))],
    );
    let bytes = avro(&entry_schema(fields), &[], Codec::Null, &[entry]);
    // Same length, so the header stays sound.
    let at = bytes
        .windows(8)
        .position(|window| window == b"day_of_x")
        .unwrap();
    let mut renamed = bytes;
    renamed[at..at + 8].copy_from_slice(b"day of-x");
    let read = parse_manifest(&renamed, &listed(), &table(), &Statistics::All).unwrap();
    assert_eq!(read[0].file.partition.fields[0].1, Some(Value::Date(7)));
}

#[test]
fn rule_22_a_data_file_is_read_whole() {
    let read = read(&[file("s3://b/f.parquet")], &listed())
        .unwrap()
        .remove(0);
    let partition = PartitionTuple {
        fields: vec![
            (FieldId(1000), Some(Value::Date(19000))),
            (FieldId(1001), None),
        ],
    };
    let expected = DataFile {
        content: FileContent::Data,
        path: "s3://b/f.parquet".into(),
        format: FileFormat::Parquet,
        spec_id: SpecId(1),
        partition: Arc::new(partition),
        record_count: 3,
        file_size: 1000,
        split_offsets_count: 2,
        first_row_id: Some(100),
        key_metadata: false,
        column_statistics: Some(Box::new(ColumnStatistics {
            lower_bounds: vec![(FieldId(1), Box::from([1]))],
            upper_bounds: Vec::new(),
            null_value_counts: vec![(FieldId(1), 2)],
        })),
        delete_details: None,
    };
    assert_eq!(*read.file, expected);
}

#[test]
fn statistics_that_nobody_asks_for_are_not_kept() {
    let counts = json!([{"key": 1, "value": 2}, {"key": 7, "value": 0}]);
    let bounds = json!([{"key": 1, "value": "\u{1}"}, {"key": 7, "value": "\u{2}"}]);
    let entry = with(
        file("f"),
        &[
            ("null_value_counts", counts),
            ("lower_bounds", bounds.clone()),
            ("upper_bounds", bounds),
        ],
    );
    let kept = |statistics| {
        let read = parse_manifest(
            &manifest(std::slice::from_ref(&entry)),
            &listed(),
            &table(),
            &statistics,
        );
        let file = read.unwrap().remove(0).file;
        assert_eq!(file.split_offsets_count, 2);
        let ids = |bounds: &ColumnBounds| bounds.iter().map(|(id, _)| id.0).collect::<Vec<_>>();
        let counted: Vec<i32> = file
            .statistics()
            .null_value_counts
            .iter()
            .map(|(id, _)| id.0)
            .collect();
        assert_eq!(ids(&file.statistics().lower_bounds), counted);
        assert_eq!(ids(&file.statistics().upper_bounds), counted);
        counted
    };
    assert_eq!(kept(Statistics::All), [1, 7]);
    assert_eq!(kept(Statistics::Of(vec![FieldId(7)])), [7]);
    assert_eq!(kept(Statistics::Of(vec![])), [0; 0]);
}

#[test]
fn rule_22_delete_files_keep_what_they_delete_by() {
    let mut deletes = listed();
    deletes.content = ManifestContent::Deletes;
    let vector = with(
        file("v.puffin"),
        &[
            ("content", json!(1)),
            ("file_format", json!("puffin")),
            ("referenced_data_file", json!("f")),
            ("content_offset", json!(4)),
            ("content_size_in_bytes", json!(40)),
        ],
    );
    let equality = with(
        file("e"),
        &[("content", json!(2)), ("equality_ids", json!([2, 1]))],
    );
    let entries = read(&[vector, equality], &deletes).unwrap();
    let vector = &entries[0].file;
    assert_eq!(
        (vector.content, &vector.format),
        (FileContent::PositionDeletes, &FileFormat::Puffin)
    );
    assert_eq!(
        (
            vector.deletes().content_offset,
            vector.deletes().content_size
        ),
        (Some(4), Some(40))
    );
    assert_eq!(vector.deletes().referenced_data_file.as_deref(), Some("f"));
    assert_eq!(entries[1].file.content, FileContent::EqualityDeletes);
    assert_eq!(
        entries[1].file.deletes().equality_ids,
        [FieldId(2), FieldId(1)]
    );
    assert_eq!(vector.first_row_id, None, "delete files have no row ids");
}

#[test]
fn rule_22_a_delete_file_in_a_data_manifest_is_an_error() {
    let error = read(&[with(file("f"), &[("content", json!(1))])], &listed()).unwrap_err();
    assert_eq!(
        error,
        "manifest[0].data_file.content: a file of content 1 cannot stand in a manifest of Data"
    );
}

#[test]
fn rule_22_a_delete_file_must_say_what_it_deletes() {
    let mut deletes = listed();
    deletes.content = ManifestContent::Deletes;
    let error = read(&[with(file("e"), &[("content", json!(2))])], &deletes).unwrap_err();
    assert_eq!(
        error,
        "manifest[0].data_file.equality_ids: is required for EqualityDeletes but missing"
    );
    let vector = with(
        file("v"),
        &[("content", json!(1)), ("file_format", json!("PUFFIN"))],
    );
    let error = read(&[vector], &deletes).unwrap_err();
    assert_eq!(
        error,
        "manifest[0].data_file.referenced_data_file: is required for PositionDeletes but missing"
    );
}

#[test]
fn rule_20_deleted_entries_need_not_be_sound() {
    let deleted = with(
        file("gone"),
        &[("status", json!(2)), ("record_count", json!(-1))],
    );
    assert_eq!(read(&[deleted], &listed()), Ok(Vec::new()));
}

#[test]
fn rule_22_a_negative_record_count_is_an_error() {
    let error = read(
        &[file("f"), with(file("g"), &[("record_count", json!(-1))])],
        &listed(),
    )
    .unwrap_err();
    assert_eq!(error, "manifest[1].data_file.record_count: is -1");
}

#[test]
fn rule_20_deleted_entries_are_not_live() {
    let deleted = with(file("gone"), &[("status", json!(2))]);
    let existing = with(
        file("old"),
        &[
            ("status", json!(0)),
            ("sequence_number", json!(3)),
            ("snapshot_id", json!(8)),
        ],
    );
    let entries = read(&[deleted, existing, file("new")], &listed()).unwrap();
    let paths: Vec<&str> = entries
        .iter()
        .map(|entry| entry.file.path.as_str())
        .collect();
    assert_eq!(paths, ["old", "new"]);
    assert!(
        read(&[with(file("f"), &[("status", json!(3))])], &listed())
            .unwrap_err()
            .contains("expected 0, 1 or 2")
    );
}

#[test]
fn rule_21_added_entries_inherit_and_others_do_not() {
    let existing = with(
        file("old"),
        &[
            ("status", json!(0)),
            ("sequence_number", json!(3)),
            ("snapshot_id", json!(8)),
        ],
    );
    let entries = read(&[file("new"), existing], &listed()).unwrap();
    assert_eq!(
        (entries[0].sequence_number, entries[0].snapshot_id),
        (SequenceNumber(5), SnapshotId(-77))
    );
    assert_eq!(
        (entries[1].sequence_number, entries[1].snapshot_id),
        (SequenceNumber(3), SnapshotId(8))
    );
    let error = read(&[with(file("old"), &[("status", json!(0))])], &listed()).unwrap_err();
    assert!(error.contains("sequence_number"), "{error}");
    let mut v1 = listed();
    v1.sequence_number = SequenceNumber(0);
    let entries = read(&[with(file("old"), &[("status", json!(0))])], &v1).unwrap();
    assert_eq!(entries[0].sequence_number, SequenceNumber(0));
}

#[test]
fn rule_21_columns_may_be_wholly_absent() {
    let schema = record(
        "manifest_entry",
        vec![
            required("status", 0, json!("int")),
            required("data_file", 2, record("r2", file_fields(json!("int")))),
        ],
    );
    let entry = json!({"status": 1, "data_file": file("f")["data_file"]});
    let read = parse_manifest(
        &avro(&schema, &[], Codec::Null, &[entry]),
        &listed(),
        &table(),
        &Statistics::All,
    )
    .unwrap();
    assert_eq!(
        (read[0].sequence_number, read[0].snapshot_id),
        (SequenceNumber(5), SnapshotId(-77))
    );
}

#[test]
fn rule_24_day_partitions_are_int_or_date_and_equal() {
    let bytes = avro(
        &entry_schema(file_fields(json!("int"))),
        &[],
        Codec::Null,
        &[file("f")],
    );
    let as_int = parse_manifest(&bytes, &listed(), &table(), &Statistics::All).unwrap();
    let as_date = read(&[file("f")], &listed()).unwrap();
    assert_eq!(as_int[0].file.partition, as_date[0].file.partition);
}

#[test]
fn rule_24_void_is_null_and_a_dropped_source_takes_the_writers_type() {
    let with_void = with(file("f"), &[("partition", json!({"day": 1, "gone": "x"}))]);
    let entries = read(&[with_void], &listed()).unwrap();
    assert_eq!(entries[0].file.partition.fields[1], (FieldId(1001), None));
    let mut dropped = table();
    let mut spec = (**dropped.partition_specs.get(&SpecId(1)).unwrap()).clone();
    spec.fields[0].source_ids = vec![FieldId(99)];
    spec.fields[0].transform = Transform::Identity;
    dropped.partition_specs.insert(SpecId(1), Arc::new(spec));
    let entries = parse_manifest(
        &manifest(&[file("f")]),
        &listed(),
        &dropped,
        &Statistics::All,
    )
    .unwrap();
    assert_eq!(
        entries[0].file.partition.fields[0],
        (FieldId(1000), Some(Value::Date(19000)))
    );
}

#[test]
fn rule_25_files_of_one_partition_share_their_tuple() {
    let other = with(file("c"), &[("partition", json!({"day": 2, "gone": null}))]);
    let entries = read(&[file("a"), file("b"), other], &listed()).unwrap();
    assert!(Arc::ptr_eq(
        &entries[0].file.partition,
        &entries[1].file.partition
    ));
    assert_ne!(entries[0].file.partition, entries[2].file.partition);
}

#[test]
fn rule_19_a_spec_that_the_table_lacks_is_taken_from_the_manifest() {
    let schema = entry_schema(file_fields(json!("int")));
    let header = [(
        "partition-spec",
        r#"[{"source-id": 1, "field-id": 1000, "name": "d", "transform": "identity"}]"#,
    )];
    let mut manifest = listed();
    manifest.spec_id = SpecId(9);
    let read = parse_manifest(
        &avro(&schema, &header, Codec::Null, &[file("f")]),
        &manifest,
        &table(),
        &Statistics::All,
    );
    let error = read.unwrap_err().to_string();
    assert!(
        error.contains("Int(19000) is no value of type timestamp"),
        "{error}"
    );
    let header = [(
        "partition-spec",
        r#"[{"source-id": 1, "field-id": 1000, "name": "d", "transform": "hour"}]"#,
    )];
    let read = parse_manifest(
        &avro(&schema, &header, Codec::Null, &[file("f")]),
        &manifest,
        &table(),
        &Statistics::All,
    )
    .unwrap();
    assert_eq!(
        read[0].file.partition.fields,
        [(FieldId(1000), Some(Value::Int(19000)))]
    );
    let none = parse_manifest(
        &avro(&schema, &[], Codec::Null, &[file("f")]),
        &manifest,
        &table(),
        &Statistics::All,
    );
    assert!(none.unwrap_err().to_string().contains("spec 9 is neither"));
}

#[test]
fn rule_16_inline_manifests_take_snapshot_and_spec_from_elsewhere() {
    let snapshot = Snapshot {
        id: SnapshotId(4),
        parent_id: None,
        sequence_number: SequenceNumber(0),
        timestamp_ms: 0,
        manifests: SnapshotManifests::Inline(vec!["m".into()]),
        summary: Default::default(),
        schema_id: None,
        first_row_id: None,
        added_rows: None,
        key_id: None,
    };
    let inline = ManifestFile::inline("m", &snapshot);
    assert_eq!(
        (
            inline.added_files_count,
            inline.existing_files_count,
            inline.length
        ),
        (None, None, None)
    );
    let schema = entry_schema(file_fields(json!("int")));
    let bytes = avro(
        &schema,
        &[("partition-spec-id", "1")],
        Codec::Null,
        &[file("f")],
    );
    let read = parse_manifest(&bytes, &inline, &table(), &Statistics::All).unwrap();
    assert_eq!(
        (read[0].snapshot_id, read[0].sequence_number),
        (SnapshotId(4), SequenceNumber(0))
    );
    assert_eq!(read[0].file.spec_id, SpecId(1));
}

#[test]
fn rule_35_row_ids_count_added_and_existing_files_without_their_own() {
    let existing = with(
        file("b"),
        &[
            ("status", json!(0)),
            ("sequence_number", json!(1)),
            ("record_count", json!(10)),
        ],
    );
    let deleted = with(
        file("c"),
        &[("status", json!(2)), ("sequence_number", json!(1))],
    );
    let own = with(file("d"), &[("first_row_id", json!(7))]);
    let entries = read(&[file("a"), existing, deleted, own, file("e")], &listed()).unwrap();
    let ids: Vec<Option<i64>> = entries
        .iter()
        .map(|entry| entry.file.first_row_id)
        .collect();
    assert_eq!(ids, [Some(100), Some(103), Some(7), Some(113)]);
}

#[test]
fn rule_36_without_a_manifests_first_row_id_there_are_none() {
    let mut before_upgrade = listed();
    before_upgrade.first_row_id = None;
    let entries = read(
        &[file("a"), with(file("d"), &[("first_row_id", json!(7))])],
        &before_upgrade,
    )
    .unwrap();
    assert!(
        entries
            .iter()
            .all(|entry| entry.file.first_row_id.is_none())
    );
}

#[test]
fn rule_13_key_metadata_is_noticed() {
    let mut entry = list_entry();
    entry["key_metadata"] = json!("key");
    assert!(parse_manifest_list(&list(&[entry])).unwrap()[0].key_metadata);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn damaged_manifests_never_panic(flips in prop::collection::vec((0_usize..100_000, 0..8), 1..4), cut: Option<u16>) {
        let sound = [(list(&[list_entry(), list_entry()]), true), (manifest(&[file("a"), file("b")]), false)];
        for (mut bytes, is_list) in sound {
            for (at, bit) in &flips {
                let at = at % bytes.len();
                bytes[at] ^= 1_u8 << bit;
            }
            if let Some(cut) = cut {
                bytes.truncate(usize::from(cut));
            }
            if is_list {
                let _ = parse_manifest_list(&bytes);
            } else {
                let _ = parse_manifest(&bytes, &listed(), &table(), &Statistics::All);
            }
        }
    }
}

#[test]
fn a_data_file_of_which_no_statistics_are_kept_takes_little_memory() {
    let read = parse_manifest(
        &manifest(&[file("f")]),
        &listed(),
        &table(),
        &Statistics::Of(vec![]),
    );
    let file = read.unwrap().remove(0).file;
    assert_eq!(
        (&file.column_statistics, &file.delete_details),
        (&None, &None)
    );
    assert!(size_of::<DataFile>() <= 128, "{}", size_of::<DataFile>());
}
