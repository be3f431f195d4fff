#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use super::*;
use crate::iceberg::manifest::{
    ColumnStatistics, DeleteDetails, FileContent, FileFormat, PartitionTuple,
};
use crate::iceberg::partition::SpecId;

fn metadata() -> TableMetadata {
    let json = r#"{"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-sequence-number": 9, "last-updated-ms": 0, "last-column-id": 99, "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "long", "required": false, "type": "long"},
            {"id": 2, "name": "text", "required": false, "type": "string"},
            {"id": 3, "name": "double", "required": false, "type": "double"}]}],
        "current-schema-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0,
        "last-partition-id": 1000, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0}"#;
    TableMetadata::parse(json.as_bytes()).unwrap()
}

/// A column's id, bounds and null count.
type Column<'a> = (i32, &'a [u8], &'a [u8], Option<u64>);

/// A file that says this of its columns.
fn file(columns: &[Column<'_>]) -> DataFile {
    let id = |id: i32| FieldId(id);
    DataFile {
        content: FileContent::Data,
        path: "f".into(),
        format: FileFormat::Parquet,
        spec_id: SpecId(0),
        partition: Arc::new(PartitionTuple::default()),
        record_count: 1,
        file_size: 1,
        split_offsets_count: 0,
        first_row_id: None,
        key_metadata: false,
        column_statistics: Some(Box::new(ColumnStatistics {
            lower_bounds: columns
                .iter()
                .map(|(column, lower, _, _)| (id(*column), (*lower).into()))
                .collect(),
            upper_bounds: columns
                .iter()
                .map(|(column, _, upper, _)| (id(*column), (*upper).into()))
                .collect(),
            null_value_counts: columns
                .iter()
                .filter_map(|(column, _, _, nulls)| Some((id(*column), (*nulls)?)))
                .collect(),
        })),
        delete_details: Some(Box::new(DeleteDetails {
            equality_ids: columns.iter().map(|(column, ..)| id(*column)).collect(),
            ..DeleteDetails::default()
        })),
    }
}

fn longs(lower: i64, upper: i64, nulls: Option<u64>) -> DataFile {
    file(&[(1, &lower.to_le_bytes(), &upper.to_le_bytes(), nulls)])
}

fn texts(lower: &str, upper: &str) -> DataFile {
    file(&[(2, lower.as_bytes(), upper.as_bytes(), Some(0))])
}

fn hits(delete: &DataFile, data: &DataFile) -> bool {
    may_hit(delete, data, &metadata())
}

#[test]
fn rule_29_bounds_that_do_not_meet_put_a_delete_aside() {
    assert!(!hits(&longs(1, 5, Some(0)), &longs(6, 9, Some(0))));
    assert!(!hits(&longs(10, 11, Some(0)), &longs(6, 9, Some(0))));
    assert!(hits(&longs(1, 6, Some(0)), &longs(6, 9, Some(0))));
    assert!(!hits(&longs(-3, -2, Some(0)), &longs(-1, 9, Some(0))));
    let int = |value: i32| value.to_le_bytes();
    let before_promotion = file(&[(1, &int(-7), &int(-6), Some(0))]);
    assert!(!hits(&before_promotion, &longs(-5, 0, Some(0))));
    assert!(hits(&before_promotion, &longs(-6, 0, Some(0))));
}

#[test]
fn rule_29_null_in_both_files_keeps_a_delete() {
    assert!(hits(&longs(1, 5, Some(1)), &longs(6, 9, Some(1))));
    assert!(hits(&longs(1, 5, None), &longs(6, 9, Some(1))));
    assert!(hits(&longs(1, 5, None), &longs(6, 9, None)));
    assert!(!hits(&longs(1, 5, Some(0)), &longs(6, 9, None)));
    assert!(!hits(&longs(1, 5, Some(1)), &longs(6, 9, Some(0))));
}

#[test]
fn rule_43_cut_and_non_ascii_text_bounds_keep_a_delete() {
    assert!(!hits(&texts("a", "b"), &texts("c", "d")));
    assert!(
        hits(&texts("a", "c"), &texts("cat", "dog")),
        "c may stand for cat, cut short"
    );
    assert!(hits(&texts("a", "é"), &texts("\u{1F600}", "\u{1F601}")));
}

#[test]
fn rule_30_what_is_unknown_or_not_to_be_relied_on_keeps_a_delete() {
    assert!(
        hits(
            &file(&[(1, &[1, 2, 3], &[1, 2, 3], Some(0))]),
            &longs(6, 9, Some(0))
        ),
        "garbage"
    );
    let mut unbounded = longs(1, 5, Some(0));
    let statistics = &mut unbounded.column_statistics;
    statistics.get_or_insert_default().upper_bounds.clear();
    assert!(hits(&unbounded, &longs(6, 9, Some(0))));
    let double = |value: f64| file(&[(3, &value.to_le_bytes(), &value.to_le_bytes(), Some(0))]);
    assert!(hits(&double(1.0), &double(2.0)), "NaN may stand in both");
    let unknown = |value: i64| file(&[(77, &value.to_le_bytes(), &value.to_le_bytes(), Some(0))]);
    assert!(hits(&unknown(1), &unknown(2)));
}

#[test]
fn rule_29_one_column_that_cannot_be_equal_is_enough() {
    let bytes = |value: i64| value.to_le_bytes();
    let pair = |long: i64, text: &str| {
        file(&[
            (1, &bytes(long), &bytes(long), Some(0)),
            (2, text.as_bytes(), text.as_bytes(), Some(0)),
        ])
    };
    assert!(hits(&pair(1, "x"), &pair(1, "x")));
    assert!(!hits(&pair(1, "x"), &pair(1, "y")));
    assert!(!hits(&pair(2, "x"), &pair(1, "x")));
}
