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
    let json = br#"{"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-updated-ms": 0, "current-schema-id": 0, "default-spec-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "ts", "required": false, "type": "timestamp"}]}],
        "partition-specs": [{"spec-id": 0, "fields": [
            {"source-id": 1, "field-id": 1000, "name": "d", "transform": "day"}]}]}"#;
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
