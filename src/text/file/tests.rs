//! Readers and renderers of one text, at once. What is rendered is checked in `tests/text.rs`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use serde_json::json;

use super::*;
use crate::cache::Cache;
use crate::iceberg::manifest::FileContent;
use crate::iceberg::metadata::TableMetadata;
use crate::iceberg::schema::reserved;
use crate::parquet::{Splitting, View, ViewColumns};
use crate::rows::test_table::{LOCATION, TestTable, column, deletes, scan_file};
use crate::scan::FileDeletes;
use crate::storage::{Storage, StorageOptions};
use crate::text::TextOptions;

/// Rows of a strip.
const STRIP: i64 = 8192;

/// How long what must happen may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The text of so many rows in one row group, of which the second is deleted, with so much memory; and what it is.
fn text(rows: i64, budget: usize) -> (TestTable, Arc<TextFile>, Vec<u8>) {
    let table = TestTable::new();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..rows).map(|i| format!("name {i}")),
    ));
    let columns = vec![
        column(Some(1), "id", false, ids),
        column(Some(2), "name", true, names),
    ];
    let data = table.parquet(FileContent::Data, "data.parquet", 1 << 20, columns);
    let paths: ArrayRef = Arc::new(StringArray::from(vec![table.path("data.parquet")]));
    let positions: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let columns = vec![
        column(
            Some(reserved::DELETE_FILE_PATH.0),
            "file_path",
            false,
            paths,
        ),
        column(Some(reserved::DELETE_FILE_POS.0), "pos", false, positions),
    ];
    let deleted = table.parquet(FileContent::PositionDeletes, "deletes.parquet", 10, columns);
    let mut applied = FileDeletes::default();
    applied.position.push(deletes(deleted));
    let metadata = json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": LOCATION,
        "last-sequence-number": 1, "last-updated-ms": 0, "last-column-id": 2,
        "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long"},
            {"id": 2, "name": "name", "required": false, "type": "string"}]}],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "snapshots": [],
    });
    let metadata = TableMetadata::parse(metadata.to_string().as_bytes()).unwrap();
    let options = StorageOptions::new(Arc::clone(&table.counters));
    let root = table.directory.path().into();
    let storage = Storage::new(&options, &root, &Default::default(), LOCATION, &[]).unwrap();
    let cache = Arc::new(Cache::new(budget, Arc::clone(&table.counters)));
    let view = Arc::new(View {
        storage: Arc::new(storage),
        cache: Arc::clone(&cache),
        schema: Arc::clone(metadata.current_schema().unwrap()),
        metadata: Arc::new(metadata),
        snapshot: None,
        columns: ViewColumns {
            lineage: false,
            metadata: false,
        },
        splitting: Splitting::default(),
    });
    let parquet = ParquetFile::open(&view, &[Arc::new(scan_file(data, applied))]).unwrap();
    let engine = Engine::new(TextOptions::default(), cache, Arc::clone(&table.counters));
    let text = Arc::new(Text::new(Format::Csv));
    let file = TextFile::open(&text, Arc::new(parquet), &Arc::new(engine)).unwrap();
    let lines = (0..rows)
        .filter(|i| *i != 1)
        .map(|i| format!("{i},name {i}\n"));
    let expected = "id,name\n".to_owned() + &lines.collect::<String>();
    (table, Arc::new(file), expected.into_bytes())
}

fn read(file: &Arc<TextFile>, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let read = file.read_at(offset as u64, &mut bytes, &Cursor::default());
    bytes.truncate(read.unwrap());
    bytes
}

/// Renders nothing in place of a piece of a text until it is told to go on: whoever wants the piece waits for that.
fn block(file: &Arc<TextFile>, strip: usize) -> impl FnOnce() + use<> {
    let (go_on, told) = channel();
    let (begin, begun) = channel();
    let key = file.piece_key(PieceId { strip, number: 0 });
    let cache = Arc::clone(&file.engine.cache);
    let blocked = thread::spawn(move || {
        let blocked = cache.get_or_make(key, || {
            begin.send(()).unwrap();
            told.recv_timeout(LIMIT).unwrap();
            Err::<(Rendered, usize), ()>(())
        });
        assert!(blocked.is_err());
    });
    begun.recv_timeout(LIMIT).unwrap();
    move || {
        go_on.send(()).unwrap();
        blocked.join().unwrap();
    }
}

#[test]
fn a_reader_of_a_known_piece_does_not_wait_for_another_that_is_rendered() {
    let (table, file, expected) = text(3 * STRIP, 1 << 20);
    assert_eq!(read(&file, 0, 100), expected[..100]);
    let first = table.counters.text_pieces_rendered.get();
    assert_eq!(first, 1);
    let go_on = block(&file, 1);
    let sizing = file.size();
    let far = expected.len() / 2;
    let waits = thread::spawn({
        let file = Arc::clone(&file);
        move || read(&file, far, 50)
    });
    let (answer, answered) = channel();
    let known = thread::spawn({
        let file = Arc::clone(&file);
        move || answer.send(read(&file, 1000, 500)).unwrap()
    });
    assert_eq!(answered.recv_timeout(LIMIT).unwrap(), expected[1000..1500]);
    known.join().unwrap();
    assert!(!waits.is_finished() && file.len().is_none());
    go_on();
    assert_eq!(waits.join().unwrap(), expected[far..far + 50]);
    assert_eq!(sizing.wait().unwrap(), expected.len() as u64);
    // Those who waited shared the rendering.
    assert_eq!(table.counters.text_pieces_rendered.get(), 3);
}

#[test]
fn pieces_that_are_rendered_in_any_order_stand_in_order() {
    let (table, file, expected) = text(5 * STRIP, 1 << 20);
    let go_on = block(&file, 1);
    let sizing = file.size();
    // All but the first wait for the second.
    let begun = std::time::Instant::now();
    while table.counters.text_pieces_rendered.get() < 2 && begun.elapsed() < LIMIT {
        thread::yield_now();
    }
    go_on();
    assert_eq!(sizing.wait().unwrap(), expected.len() as u64);
    assert!(read(&file, 0, expected.len() + 1) == expected);
    assert_eq!(table.counters.text_pieces_rendered.get(), 5);
}

#[test]
fn a_text_transcodes_each_chunk_once_however_little_memory_there_is() {
    for budget in [1 << 24, 1 << 16, 1 << 10] {
        let (table, file, expected) = text(4 * STRIP, budget);
        assert_eq!(file.size().wait().unwrap(), expected.len() as u64);
        assert!(read(&file, 0, expected.len()) == expected);
        assert_eq!(table.counters.chunks_transcoded.get(), 2, "{budget}");
    }
}

#[test]
fn a_text_leaves_nothing_in_the_cache_that_is_read_once() {
    let (_table, file, _) = text(4 * STRIP, 1 << 24);
    let before = file.engine.cache.bytes();
    file.size().wait().unwrap();
    // The list of the deleted row stays, for whoever reads the Parquet file.
    let list = 512;
    assert!(file.engine.cache.bytes() < before + list);
}

#[test]
fn a_text_whose_file_does_not_give_its_bytes_is_rendered_again() {
    let (_table, file, expected) = text(4 * STRIP, 1 << 24);
    file.size().wait().unwrap();
    let kept = file.backing().unwrap();
    rustix::fs::ftruncate(&*kept, 0).unwrap();
    let (done, outcome) = channel();
    thread::spawn(move || done.send(read(&file, 0, expected.len()) == expected));
    assert!(outcome.recv_timeout(LIMIT).unwrap());
}
