//! The builder against readers that are not ours: what it writes is what it says.

use std::fs::File;

use apache_avro::Reader;
use apache_avro::types::Value as AvroValue;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::builder::avro::Codec;
use crate::builder::rows::json_rows;
use crate::builder::{Commit, Data, Entry, Style, TableBuilder};

/// A table of each format version with each kind of delete that the version has.
fn every_kind(version: u8) -> (TableBuilder, Entry) {
    let mut t = TableBuilder::new(
        version,
        "1 id: long, 2 name: string, 3 at: struct<4 x: double, 5 ys: list<6 int>>",
    );
    let rows = json!([[1, "a", {"x": 1.5, "ys": [1, null]}], [2, null, null], [3, "c", {"x": null, "ys": []}]]);
    let a = t.data(rows);
    t.commit(Commit::of([a.clone()]));
    if version == 2 {
        let d = t.position_deletes(&[(&a.path, 0)]);
        t.commit(Commit::of([d]));
    }
    if version == 3 {
        let d = t.vector(&a, &[0]);
        t.commit(Commit::of([d]));
    }
    if version >= 2 {
        let d = t.equality_deletes(&[1], "1 id: long", json!([[2]]));
        t.commit(Commit::of([d]));
    }
    (t, a)
}

#[test]
fn data_files_read_back_as_written() {
    let (t, a) = every_kind(2);
    let file = File::open(t.local(&a.path)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .build()
        .unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    let rows = json!([[1, "a", {"x": 1.5, "ys": [1, null]}], [2, null, null], [3, "c", {"x": null, "ys": []}]]);
    assert_eq!(json!(json_rows(&batches)), rows);
}

#[test]
fn manifests_and_lists_are_avro_whatever_the_codec_and_version() {
    for version in 1..=3 {
        for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
            for renamed in [false, true] {
                let mut t =
                    TableBuilder::new(version, "1 id: long, 2 day: date, 3 amount: decimal(9, 2)");
                t.partition_by(
                    0,
                    "1000 day = identity(2), 1001 b = bucket[4](1), 1002 amount = identity(3)",
                );
                let partition = json!([19000, 3, "12.34"]);
                let a = t.write(Data::rows(json!([[1, 19000, "12.34"]])).partition(0, partition));
                let a = a.with(|e| {
                    e.lower_bounds = vec![(1, vec![1])];
                    e.null_counts = vec![(1, 0), (2, -1)];
                    e.split_offsets = vec![4];
                });
                let style = Style {
                    codec,
                    renamed,
                    ..Style::default()
                };
                t.commit(
                    Commit::of([a.clone(), a])
                        .style(style.clone())
                        .list_style(style),
                );
                let list = t.snapshots[0].json["manifest-list"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                for (path, count) in [
                    (list.as_str(), 1),
                    (t.snapshots[0].manifests[0].path.as_str(), 2),
                ] {
                    let reader = Reader::new(File::open(path).unwrap()).unwrap();
                    let records: Vec<AvroValue> = reader.map(Result::unwrap).collect();
                    assert_eq!(records.len(), count, "{path}");
                }
            }
        }
    }
}

#[test]
fn tables_are_saved() {
    for version in 1..=3 {
        let (mut t, _) = every_kind(version);
        assert!(t.save().exists());
    }
}
