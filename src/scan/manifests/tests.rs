#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::parallel::in_parallel;

use super::*;
use crate::iceberg::manifest::SequenceNumber;
use crate::iceberg::metadata::SnapshotId;
use crate::iceberg::partition::SpecId;

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
