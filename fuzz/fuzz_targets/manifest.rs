//! Any bytes as a manifest list, and as a manifest of data and of deletes.
#![no_main]

use std::sync::LazyLock;

use bergfs::iceberg::manifest::{
    ManifestContent, ManifestFile, SequenceNumber, Statistics, parse_manifest, parse_manifest_list,
};
use bergfs::iceberg::metadata::{SnapshotId, TableMetadata};
use bergfs::iceberg::partition::SpecId;
use libfuzzer_sys::fuzz_target;

static TABLE: LazyLock<TableMetadata> = LazyLock::new(|| {
    let json = br#"{"format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-updated-ms": 0, "current-schema-id": 0, "default-spec-id": 0, "next-row-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "ts", "required": false, "type": "timestamp"},
            {"id": 2, "name": "s", "required": false, "type": "string"},
            {"id": 3, "name": "d", "required": false, "type": "decimal(20, 2)"},
            {"id": 4, "name": "u", "required": false, "type": "uuid"},
            {"id": 5, "name": "x", "required": false, "type": "double"}]}],
        "partition-specs": [{"spec-id": 0, "fields": [
            {"source-id": 1, "field-id": 1000, "name": "day", "transform": "day"},
            {"source-id": 2, "field-id": 1001, "name": "s", "transform": "truncate[4]"},
            {"source-id": 3, "field-id": 1002, "name": "d", "transform": "identity"},
            {"source-id": 4, "field-id": 1003, "name": "u", "transform": "identity"},
            {"source-id": 4, "field-id": 1004, "name": "b", "transform": "bucket[16]"},
            {"source-id": 5, "field-id": 1005, "name": "x", "transform": "void"}]}]}"#;
    TableMetadata::parse(json).expect("sound metadata")
});

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_manifest_list(bytes);
    for content in [ManifestContent::Data, ManifestContent::Deletes] {
        let listed = ManifestFile {
            path: "m.avro".to_owned(),
            length: Some(bytes.len() as u64),
            spec_id: SpecId(0),
            content,
            sequence_number: SequenceNumber(1),
            min_sequence_number: SequenceNumber(1),
            added_snapshot_id: SnapshotId(1),
            added_files_count: None,
            existing_files_count: None,
            first_row_id: Some(0),
            key_metadata: false,
        };
        let _ = parse_manifest(bytes, &listed, &TABLE, &Statistics::All);
    }
});
