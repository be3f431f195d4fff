#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use arrow::array::{ArrayRef, DictionaryArray, Int64Array, StringArray};
use arrow::datatypes::{Field, Int32Type};
use proptest::prelude::*;

use super::*;
use crate::iceberg::manifest::{DataFile, DeleteDetails, FileContent, FileFormat};
use crate::rows::test_table::{LOCATION, TestTable, column, deletes, scan_file};
use crate::scan::FileDeletes;

const PATH_ID: Option<i32> = Some(2147483546);
const POS_ID: Option<i32> = Some(2147483545);

fn columns(rows: &[(&str, i64)]) -> Vec<(Field, ArrayRef)> {
    let paths: StringArray = rows.iter().map(|(path, _)| Some(*path)).collect();
    let positions: Int64Array = rows.iter().map(|(_, pos)| Some(*pos)).collect();
    vec![
        column(PATH_ID, "file_path", false, Arc::new(paths)),
        column(POS_ID, "pos", false, Arc::new(positions)),
    ]
}

fn position_file(table: &TestTable, name: &str, rows: &[(&str, i64)]) -> Arc<DeleteFile> {
    deletes(table.parquet(FileContent::PositionDeletes, name, 3, columns(rows)))
}

/// A data file of ten rows with these position deletes. It need not be there: it is not read.
fn data_file(table: &TestTable, name: &str, position: &[Arc<DeleteFile>]) -> ScanFile {
    let deletes = FileDeletes {
        position: position.to_vec(),
        ..Default::default()
    };
    scan_file(table.entry(FileContent::Data, name, 10), deletes)
}

fn deleted(table: &TestTable, file: &ScanFile) -> Vec<u64> {
    deleted_positions(file, &table.storage, &table.cache)
        .unwrap()
        .iter()
        .collect()
}

fn error(table: &TestTable, file: &ScanFile) -> RowsError {
    deleted_positions(file, &table.storage, &table.cache).unwrap_err()
}

#[test]
fn rule_26_positions_of_all_files_are_united_and_each_file_is_read_once() {
    let table = TestTable::new();
    let (a, b) = (table.path("a"), table.path("b"));
    let one = position_file(
        &table,
        "one",
        &[(&a, 1), (&a, 3), (&a, 4), (&b, 2), (&b, 9)],
    );
    let two = position_file(&table, "two", &[(&a, 3), (&a, 0)]);
    let both = [one, two];
    assert_eq!(
        deleted(&table, &data_file(&table, "a", &both)),
        [0, 1, 3, 4]
    );
    assert_eq!(deleted(&table, &data_file(&table, "b", &both)), [2, 9]);
    assert_eq!(
        deleted(&table, &data_file(&table, "c", &both)),
        [] as [u64; 0]
    );
    assert_eq!(table.counters.position_deletes_read.get(), 2);
}

#[test]
fn rule_26_paths_match_in_any_spelling_of_a_moved_table() {
    let table = TestTable::new();
    let here = format!("file:{}/a", table.directory.path().display());
    let s3a = format!("{}/a", LOCATION.replace("s3:", "s3a:"));
    let other = "s3://bucket/other/a";
    let file = position_file(
        &table,
        "p",
        &[(&here, 1), (&s3a, 2), (other, 3), (&table.path("a"), 4)],
    );
    assert_eq!(deleted(&table, &data_file(&table, "a", &[file])), [1, 2, 4]);
}

#[test]
fn rule_26_columns_are_found_by_id_and_by_name_only_without_ids() {
    let table = TestTable::new();
    let a = table.path("a");
    let paths = || -> ArrayRef { Arc::new(StringArray::from(vec![a.as_str()])) };
    let positions = |pos| -> ArrayRef { Arc::new(Int64Array::from(vec![pos])) };
    let write =
        |name, columns| deletes(table.parquet(FileContent::PositionDeletes, name, 10, columns));

    let renamed = write(
        "renamed",
        vec![
            column(Some(7), "pos", true, positions(5)),
            column(POS_ID, "p", true, positions(6)),
            column(PATH_ID, "f", true, paths()),
        ],
    );
    assert_eq!(deleted(&table, &data_file(&table, "a", &[renamed])), [6]);
    let no_ids = write(
        "no-ids",
        vec![
            column(None, "file_path", true, paths()),
            column(None, "pos", true, positions(7)),
        ],
    );
    assert_eq!(deleted(&table, &data_file(&table, "a", &[no_ids])), [7]);
    let lacking = write("lacking", vec![column(PATH_ID, "file_path", true, paths())]);
    assert!(
        error(&table, &data_file(&table, "a", &[lacking]))
            .to_string()
            .contains("without the column pos")
    );
}

#[test]
fn rule_26_dictionary_encoded_paths_are_read() {
    let table = TestTable::new();
    let a = table.path("a");
    let paths: DictionaryArray<Int32Type> = [a.as_str(), "s3://bucket/table/b", a.as_str()]
        .into_iter()
        .collect();
    let columns = vec![
        column(PATH_ID, "file_path", false, Arc::new(paths)),
        column(
            POS_ID,
            "pos",
            false,
            Arc::new(Int64Array::from(vec![8, 1, 2])),
        ),
    ];
    let file = deletes(table.parquet(FileContent::PositionDeletes, "p", 10, columns));
    assert_eq!(deleted(&table, &data_file(&table, "a", &[file])), [2, 8]);
}

#[test]
fn rule_26_null_and_negative_positions_are_errors_naming_the_delete_file() {
    let table = TestTable::new();
    let a = table.path("a");
    let negative = position_file(&table, "negative", &[(&a, -1)]);
    let message = error(&table, &data_file(&table, "a", &[negative])).to_string();
    assert_eq!(
        message,
        "s3://bucket/table/negative: a position delete of position -1"
    );

    let nulls = vec![
        column(
            PATH_ID,
            "file_path",
            true,
            Arc::new(StringArray::from(vec![Some(a.as_str()), None])),
        ),
        column(POS_ID, "pos", true, Arc::new(Int64Array::from(vec![1, 2]))),
    ];
    let nulls = deletes(table.parquet(FileContent::PositionDeletes, "nulls", 10, nulls));
    assert!(
        error(&table, &data_file(&table, "a", &[nulls]))
            .to_string()
            .contains("without a path or a position")
    );
}

#[test]
fn rule_26_positions_past_the_end_delete_nothing() {
    let table = TestTable::new();
    let file = position_file(
        &table,
        "p",
        &[(&table.path("a"), 9), (&table.path("a"), 10)],
    );
    assert_eq!(deleted(&table, &data_file(&table, "a", &[file])), [9]);
}

#[test]
fn rule_50_position_deletes_in_an_unknown_format_are_refused() {
    let table = TestTable::new();
    fs::write(table.directory.path().join("p.lance"), "").unwrap();
    let other = DataFile {
        format: FileFormat::Other("LANCE".to_owned()),
        ..table.entry(FileContent::PositionDeletes, "p.lance", 1)
    };
    let error = error(&table, &data_file(&table, "a", &[deletes(other)]));
    assert!(
        error.is_unsupported() && error.to_string().contains("p.lance"),
        "{error}"
    );
}

#[test]
fn a_damaged_position_delete_file_is_an_error() {
    let table = TestTable::new();
    let whole = position_file(&table, "p", &[(&table.path("a"), 1), (&table.path("a"), 2)]);
    let at = table.directory.path().join("p");
    let bytes = fs::read(&at).unwrap();
    for cut in [0, 3, 4, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&at, &bytes[..cut]).unwrap();
        let error = error(
            &table,
            &data_file(&table, "a", std::slice::from_ref(&whole)),
        );
        assert!(error.to_string().contains("/p: "), "{error}");
    }
    fs::remove_file(&at).unwrap();
    assert!(matches!(
        error(&table, &data_file(&table, "a", &[whole])),
        RowsError::Storage(_)
    ));
}

#[test]
fn a_bit_flipped_position_delete_file_is_an_error_or_read_and_never_a_panic() {
    let table = TestTable::new();
    let rows: Vec<(String, i64)> = (0..40).map(|n| (table.path("a"), n % 10)).collect();
    let rows: Vec<(&str, i64)> = rows
        .iter()
        .map(|(path, pos)| (path.as_str(), *pos))
        .collect();
    let whole = position_file(&table, "p", &rows);
    let at = table.directory.path().join("p");
    let bytes = fs::read(&at).unwrap();
    for bit in (0..bytes.len() * 8).step_by(149) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&at, &flipped).unwrap();
        let file = data_file(&table, "a", std::slice::from_ref(&whole));
        if let Ok(positions) = deleted_positions(&file, &table.storage, &table.cache) {
            assert!(positions.max().is_none_or(|last| last < 10));
        }
        table.cache.clear();
    }
}

/// A `deletion-vector-v1` blob (spec, Puffin) of positions below 2^32.
fn vector_blob(positions: &[u32]) -> Vec<u8> {
    let bitmap = roaring::RoaringBitmap::from_iter(positions);
    let mut body = vec![0xD1, 0xD3, 0x39, 0x64];
    body.extend(1u64.to_le_bytes());
    body.extend(0u32.to_le_bytes());
    bitmap.serialize_into(&mut body).unwrap();
    let mut blob = (body.len() as u32).to_be_bytes().to_vec();
    blob.extend(&body);
    blob.extend(crc32fast::hash(&body).to_be_bytes());
    blob
}

fn with_vector(table: &TestTable, positions: &[u32], record_count: u64) -> ScanFile {
    let blob = vector_blob(positions);
    let mut puffin = b"something before".to_vec();
    let offset = puffin.len() as u64;
    puffin.extend(&blob);
    fs::write(table.directory.path().join("v.puffin"), puffin).unwrap();
    let entry = DataFile {
        format: FileFormat::Puffin,
        delete_details: Some(Box::new(DeleteDetails {
            content_offset: Some(offset),
            content_size: Some(blob.len() as u64),
            ..DeleteDetails::default()
        })),
        ..table.entry(FileContent::PositionDeletes, "v.puffin", record_count)
    };
    let deletes = FileDeletes {
        vector: Some(deletes(entry)),
        ..Default::default()
    };
    scan_file(table.entry(FileContent::Data, "a", 10), deletes)
}

#[test]
fn rule_32_a_vector_is_read_by_its_offset_alone() {
    let table = TestTable::new();
    assert_eq!(
        deleted(&table, &with_vector(&table, &[0, 3, 9], 3)),
        [0, 3, 9]
    );
    assert_eq!(table.counters.position_deletes_read.get(), 1);
}

#[test]
fn rule_32_a_vector_of_another_cardinality_than_its_record_count_is_an_error() {
    let table = TestTable::new();
    let message = error(&table, &with_vector(&table, &[0, 3, 9], 4)).to_string();
    assert!(
        message.contains("v.puffin") && message.contains("table/a"),
        "{message}"
    );
}

#[test]
fn rule_27_a_vector_past_the_end_of_its_file_is_an_error_naming_both() {
    let table = TestTable::new();
    assert_eq!(
        error(&table, &with_vector(&table, &[3, 10], 2)).to_string(),
        "s3://bucket/table/v.puffin: the deletion vector of s3://bucket/table/a: deletes position 10, past the end of \
         the data file (10 rows)"
    );
}

#[test]
fn rule_32_a_vector_of_an_impossible_size_is_not_read() {
    let table = TestTable::new();
    let mut file = with_vector(&table, &[1], 1);
    let mut vector = file.deletes.vector.as_deref().unwrap().clone();
    let details = &mut Arc::make_mut(&mut vector.file).delete_details;
    details.get_or_insert_default().content_size = Some(1 << 40);
    file.deletes.vector = Some(Arc::new(vector));
    assert!(
        error(&table, &file)
            .to_string()
            .contains("where 10 rows need")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn rule_26_deleted_positions_are_those_of_a_plain_reading(
        files in prop::collection::vec(prop::collection::vec((0usize..3, 0i64..14), 1..30), 1..4),
    ) {
        let table = TestTable::new();
        let paths: Vec<String> = ["a", "b", "c"].iter().map(|name| table.path(name)).collect();
        let position: Vec<_> = files
            .iter()
            .enumerate()
            .map(|(n, rows)| {
                let rows: Vec<_> = rows.iter().map(|(path, pos)| (paths[*path].as_str(), *pos)).collect();
                position_file(&table, &format!("p{n}"), &rows)
            })
            .collect();
        for (index, name) in ["a", "b", "c"].iter().enumerate() {
            let mut expected: Vec<u64> =
                files.iter().flatten().filter(|(path, pos)| *path == index && *pos < 10).map(|(_, pos)| *pos as u64).collect();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(deleted(&table, &data_file(&table, name, &position)), expected);
        }
    }
}
