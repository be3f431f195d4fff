//! Keys that are integers: the same rows go whatever kinds of pages hold them, and no more keys are looked for than need be.

#![allow(clippy::unwrap_used)]

use arrow::array::{Int32Array, UInt32Array};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::*;

const ROWS: usize = 5000;
const GROUP: usize = 1003;

/// Three rows each have the same key, and some have none.
fn key(row: usize, nulls: &str) -> Option<i32> {
    let value = row as i32 / 3 * 2 - 1000;
    let is_null = match nulls {
        "scattered" => row % 7 == 3,
        "in runs" => row / 100 % 4 == 1,
        "all" => true,
        _ => false,
    };
    (!is_null).then_some(value)
}

fn is_deleted(key: i32) -> bool {
    key % 5 == 0 || (100..150).contains(&key)
}

fn ways() -> Vec<(&'static str, WriterPropertiesBuilder)> {
    let new = || {
        WriterProperties::builder()
            .set_max_row_group_row_count(Some(GROUP))
            .set_write_batch_size(64)
            .set_compression(Compression::SNAPPY)
    };
    let plain = || new().set_dictionary_enabled(false);
    vec![
        ("dictionary", new()),
        ("small pages", new().set_data_page_row_count_limit(64)),
        (
            "dictionary, then plain",
            new().set_dictionary_page_size_limit(512),
        ),
        ("plain", plain().set_data_page_size_limit(700)),
        (
            "deltas",
            plain().set_encoding(Encoding::DELTA_BINARY_PACKED),
        ),
        (
            "byte streams",
            plain().set_encoding(Encoding::BYTE_STREAM_SPLIT),
        ),
    ]
}

#[test]
fn rule_29_integer_keys_are_found_in_every_kind_of_page() {
    for (ty, version, nulls, null_goes) in [
        ("int", WriterVersion::PARQUET_1_0, "none", false),
        ("int", WriterVersion::PARQUET_2_0, "scattered", true),
        ("long", WriterVersion::PARQUET_1_0, "scattered", false),
        ("long", WriterVersion::PARQUET_1_0, "in runs", true),
        ("long", WriterVersion::PARQUET_2_0, "in runs", false),
        ("long", WriterVersion::PARQUET_2_0, "none", true),
        ("long", WriterVersion::PARQUET_1_0, "all", true),
    ] {
        for (way, properties) in ways() {
            let table = TestTable::new();
            let keys: Vec<Option<i32>> = (0..ROWS).map(|row| key(row, nulls)).collect();
            let array = |keys: Vec<Option<i32>>| -> ArrayRef {
                match ty {
                    "int" => Arc::new(Int32Array::from(keys)),
                    _ => longs(
                        &keys
                            .iter()
                            .map(|key| key.map(i64::from))
                            .collect::<Vec<_>>(),
                    ),
                }
            };
            let properties = properties.set_writer_version(version).build();
            let columns = vec![column(Some(1), "a", nulls != "none", array(keys.clone()))];
            let data = table.parquet_as(FileContent::Data, "data", properties, columns);
            let mut deleted: Vec<Option<i32>> = (-2000..6000)
                .filter(|key| is_deleted(*key))
                .map(Some)
                .collect();
            deleted.extend(null_goes.then_some(None));
            let columns = vec![column(Some(1), "a", true, array(deleted))];
            let deletes = table.parquet(FileContent::EqualityDeletes, "eq", 9999, columns);
            let file = under(data, vec![equality_on(deletes, &[1])]);
            let found = deleted_by(&table, &metadata(&[&field(1, "a", ty)]), &file).unwrap();
            let goes = |row: &usize| keys[*row].map_or(null_goes, is_deleted);
            let expected: Vec<u64> = (0..ROWS).filter(goes).map(|row| row as u64).collect();
            assert_eq!(
                found, expected,
                "{ty} {version:?} {nulls} {null_goes} {way}"
            );
        }
    }
}

#[test]
fn rule_29_unsigned_integers_are_not_taken_for_signed_ones() {
    let data = UInt32Array::from(vec![3_000_000_000, 1, u32::MAX]);
    let deleted = longs(&[Some(3_000_000_000), Some(-1)]);
    assert_eq!(one_column("long", Arc::new(data), deleted), [0]);
}

#[test]
fn an_entry_of_a_dictionary_is_looked_for_once_however_many_rows_have_it() {
    let table = TestTable::new();
    let values: Vec<Option<i64>> = (0..60_000).map(|row| Some(row % 10)).collect();
    let columns = vec![column(Some(1), "a", false, longs(&values))];
    let data = table.parquet(FileContent::Data, "data", 30_000, columns);
    let columns = vec![column(Some(1), "a", false, longs(&[Some(3), Some(12)]))];
    let deletes = table.parquet(FileContent::EqualityDeletes, "eq", 9999, columns);
    let file = under(data, vec![equality_on(deletes, &[1])]);
    let found = deleted_by(&table, &metadata(&[&field(1, "a", "long")]), &file).unwrap();
    assert!(
        found
            .iter()
            .copied()
            .eq((0..60_000).filter(|row| row % 10 == 3))
    );
    // Ten entries in each of two row groups.
    assert_eq!(table.counters.equality_keys_asked.get(), 20);
}
