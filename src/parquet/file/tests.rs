#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cache::Cache;
use crate::iceberg::manifest::FileContent;
use crate::iceberg::metadata::TableMetadata;
use crate::iceberg::schema::reserved;
use crate::parquet::layout::SegmentBytes;
use crate::parquet::{Splitting, ViewColumns};
use crate::rows::test_table::{LOCATION, TestTable, column, deletes, scan_file};
use crate::scan::FileDeletes;
use crate::storage::{Storage, StorageOptions};

/// A view of one file of 200 rows in row groups of 50, with these positions deleted and one column added since.
fn view(deleted: &[i64]) -> (TestTable, Arc<View>, ParquetFile) {
    let table = TestTable::new();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..200));
    let names: ArrayRef = Arc::new(StringArray::from_iter(
        (0..200).map(|i| (i % 3 > 0).then(|| format!("name {i}"))),
    ));
    let columns = vec![
        column(Some(1), "id", false, ids),
        column(Some(2), "name", true, names),
    ];
    let mut data = table.parquet(FileContent::Data, "data.parquet", 50, columns);
    data.first_row_id = Some(1000);
    let mut applied = FileDeletes::default();
    if !deleted.is_empty() {
        let path = table.path("data.parquet");
        let paths: ArrayRef = Arc::new(StringArray::from(vec![path.as_str(); deleted.len()]));
        let positions: ArrayRef = Arc::new(Int64Array::from(deleted.to_vec()));
        let file = table.parquet(
            FileContent::PositionDeletes,
            "deletes.parquet",
            1000,
            vec![
                column(
                    Some(reserved::DELETE_FILE_PATH.0),
                    "file_path",
                    false,
                    paths,
                ),
                column(Some(reserved::DELETE_FILE_POS.0), "pos", false, positions),
            ],
        );
        applied.position.push(deletes(file));
    }
    let metadata = json!({
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": LOCATION,
        "last-sequence-number": 1, "last-updated-ms": 0, "last-column-id": 3, "next-row-id": 2000,
        "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long"},
            {"id": 2, "name": "name", "required": false, "type": "string"},
            {"id": 3, "name": "added", "required": false, "type": "int", "initial-default": 7}]}],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "snapshots": [],
    });
    let metadata = TableMetadata::parse(metadata.to_string().as_bytes()).unwrap();
    let options = StorageOptions::new(Arc::clone(&table.counters));
    let storage = Storage::new(
        &options,
        &table.directory.path().into(),
        &Default::default(),
        LOCATION,
        &[],
    )
    .unwrap();
    let view = Arc::new(View {
        storage: Arc::new(storage),
        cache: Arc::new(Cache::new(1 << 20, Arc::clone(&table.counters))),
        schema: Arc::clone(metadata.current_schema().unwrap()),
        metadata: Arc::new(metadata),
        snapshot: None,
        columns: ViewColumns {
            lineage: true,
            metadata: true,
        },
        splitting: Splitting::default(),
    });
    let file = ParquetFile::open(&view, &[Arc::new(scan_file(data, applied))]).unwrap();
    (table, view, file)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_segments_tile_the_file_from_the_magic_to_the_reserved_tail(
        deleted in prop::collection::btree_set(0i64..200, 0..200),
    ) {
        let (_table, _view, file) = view(&deleted.into_iter().collect::<Vec<_>>());
        let mut at = MAGIC.len() as u64;
        for segment in &file.layout.segments {
            prop_assert_eq!(segment.offset, at);
            prop_assert!(segment.len > 0);
            at += segment.len;
        }
        prop_assert_eq!(at, file.layout.end);
        let tail = file.footer().unwrap().len() as u64;
        prop_assert!(file.layout.end + tail <= file.len);
        let leaves = file.target.leaves.len();
        prop_assert_eq!(file.layout.segments.len(), file.layout.groups.len() * leaves);
    }

    #[test]
    fn any_two_overlapping_reads_agree(
        deleted in prop::collection::btree_set(0i64..200, 0..60),
        reads in prop::collection::vec((any::<u64>(), 0usize..5000), 1..20),
    ) {
        let (_table, _view, file) = view(&deleted.into_iter().collect::<Vec<_>>());
        let mut whole = vec![0; file.len as usize];
        prop_assert_eq!(file.read_at(0, &mut whole).unwrap(), whole.len());
        for (offset, len) in reads {
            let offset = offset % (file.len + 10);
            let mut buffer = vec![0xaa; len];
            let read = file.read_at(offset, &mut buffer).unwrap();
            let there = whole.get(offset as usize..).unwrap_or_default();
            prop_assert_eq!(read, there.len().min(len));
            prop_assert_eq!(&buffer[..read], &there[..read]);
        }
    }
}

#[test]
fn a_row_group_that_lost_all_its_rows_is_not_laid_out() {
    let (_table, _view, file) = view(&(50..100).collect::<Vec<_>>());
    let groups: Vec<usize> = file.layout.groups.iter().map(|group| group.group).collect();
    assert_eq!(groups, [0, 2, 3]);
}

#[test]
fn only_a_row_group_that_lost_rows_has_slots_for_stored_columns() {
    let (_table, _view, file) = view(&[120]);
    for (index, group) in file.layout.groups.iter().enumerate() {
        let stored = [0, 1].map(|leaf| file.layout.segment(index, leaf).unwrap().bytes);
        let are_slots = stored.map(|bytes| bytes == SegmentBytes::Slot);
        assert_eq!(
            are_slots,
            [group.group == 2; 2],
            "row group {}",
            group.group
        );
    }
}

#[test]
fn laying_out_reads_no_page_and_the_footer_none_but_of_clustered_columns() {
    let (table, _view, file) = view(&[120]);
    assert_eq!(table.counters.pages_decoded.get(), 0);
    file.footer().unwrap();
    // `id` rises from row group to row group; its one page of the row group that lost a row is looked at.
    assert_eq!(table.counters.pages_decoded.get(), 1);
    assert_eq!(table.counters.chunks_transcoded.get(), 0);
}

#[test]
fn bounds_of_a_column_stand_in_every_row_group_or_in_none() {
    let (_table, view, file) = view(&[0]);
    let input = FooterInput {
        view: &view,
        target: &file.target,
        parts: &file.parts,
        layout: &file.layout,
        clustered: &[false; 16],
    };
    let footer = input.make(|part| file.deleted(part)).unwrap();
    let footer = crate::parquet::format::FileMetaData::parse(&footer).unwrap();
    let bounds = footer.row_groups.iter().map(|group| {
        let statistics = group.columns[0].statistics.as_ref();
        statistics.and_then(|s| s.min_value.clone())
    });
    assert!(
        bounds.clone().all(|min| min.is_none()),
        "{:?}",
        bounds.collect::<Vec<_>>()
    );
}

#[test]
fn a_piece_of_a_made_chunk_is_shared_and_a_slot_read_to_its_end_is_looked_for_once() {
    let (table, _view, file) = view(&[120]);
    let index = file.layout.segments.iter();
    let index = index
        .clone()
        .position(|s| s.bytes == SegmentBytes::Slot && s.len > 400);
    let index = index.unwrap();
    let segment = file.layout.segments[index];
    file.make_ahead(index);
    let mut whole = vec![0; segment.len as usize];
    file.read_at(segment.offset, &mut whole).unwrap();
    let hits = table.counters.cache_hits.get();
    let shared = file.read_shared(segment.offset + 3, 20).unwrap();
    assert_eq!(shared.as_deref(), Some(&whole[3..23]));
    assert_eq!(table.counters.cache_hits.get(), hits + 1);
    let shared = file.read_shared(segment.offset, whole.len()).unwrap();
    assert_eq!(shared, None);
    assert_eq!(table.counters.cache_hits.get(), hits + 1);
}
