#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::parallel::in_parallel;

use super::*;
use crate::iceberg::manifest::{FileFormat, PartitionTuple, SequenceNumber};
use crate::iceberg::metadata::SnapshotId;
use crate::iceberg::partition::SpecId;
use crate::scan::ScanFile;

#[test]
fn rule_17_only_known_zero_counts_skip_a_manifest() {
    let with = |added_files_count, existing_files_count| {
        is_surely_empty(&ManifestFile {
            path: "m".into(),
            length: None,
            spec_id: SpecId(0),
            content: ManifestContent::Data,
            sequence_number: SequenceNumber(1),
            min_sequence_number: SequenceNumber(1),
            added_snapshot_id: SnapshotId(1),
            added_files_count,
            existing_files_count,
            first_row_id: None,
            key_metadata: false,
        })
    };
    assert!(with(Some(0), Some(0)));
    assert!(!with(None, None));
    assert!(!with(Some(0), None));
    assert!(!with(None, Some(0)));
    assert!(!with(Some(0), Some(1)));
}

#[test]
fn manifests_read_in_parallel_keep_their_order() {
    let items: Vec<usize> = (0..100).collect();
    assert_eq!(
        in_parallel(&items, |item| item * 2),
        (0..100).map(|item| item * 2).collect::<Vec<_>>()
    );
}

/// A million of them take 700 MB, with what the tree keeps of each.
#[test]
fn a_planned_file_with_a_path_of_150_bytes_takes_at_most_600() {
    let entry = ManifestEntry {
        snapshot_id: SnapshotId(1),
        sequence_number: SequenceNumber(1),
        file: Arc::new(DataFile {
            content: FileContent::Data,
            path: "p".repeat(150),
            format: FileFormat::Parquet,
            spec_id: SpecId(0),
            partition: Arc::new(PartitionTuple::default()),
            record_count: 1,
            file_size: 1,
            split_offsets_count: 1,
            first_row_id: None,
            column_statistics: None,
            delete_details: None,
            key_metadata: false,
        }),
    };
    let planned = size_of::<Arc<ScanFile>>() + SHARED + size_of::<ScanFile>();
    let bytes = weight(&entry) + planned;
    assert!(bytes <= 600, "{bytes} bytes");
}
