//! Any bytes as a table's only data file, read through the virtual file and as text: table metadata, a zero byte, one byte
//! that chooses the file's format, what deletes its rows and which columns are shown, and the file.
#![no_main]

use std::sync::Arc;

use bergfs::as_parquet;
use bergfs::iceberg::manifest::{DeleteDetails, FileContent, FileFormat, SequenceNumber};
use bergfs::iceberg::metadata::TableMetadata;
use bergfs::iceberg::types::FieldId;
use bergfs::parquet::source::SourceFooter;
use bergfs::parquet::{ParquetFile, Splitting, View, ViewColumns};
use bergfs::scan::{DeleteFile, FileDeletes};
use bergfs::text::{Cursor, Engine, Format, Text, TextFile, TextOptions};
use bergfs_fuzz::{FORMATS, Table, entry, scanned, with_file};
use libfuzzer_sys::fuzz_target;

/// Bytes that are read of the beginning of a virtual file, and of its end.
const READ: u64 = 4 << 20;

/// Of a text.
const TEXT: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|byte| *byte == 0) else {
        return;
    };
    let (json, rest) = bytes.split_at(end);
    let ([_, how, file @ ..], Ok(metadata)) = (rest, TableMetadata::parse(json)) else {
        return;
    };
    with_file(file, |table| read(table, metadata, *how, file.len()));
});

fn read(table: &Table, metadata: TableMetadata, how: u8, len: usize) {
    let format = &FORMATS[usize::from(how & 0x7F) % FORMATS.len()];
    // The field that equality deletes compare, if there are any.
    let key = usize::from(how & 0x7F) / FORMATS.len();
    // Whether row ids and the like are shown.
    let all_columns = how & 0x80 != 0;
    let Some(rows) = rows_of(table, format, len) else {
        return;
    };
    let Ok(schema) = metadata.current_schema().cloned() else {
        return;
    };
    let mut deletes = FileDeletes::default();
    if key > 0 {
        let mut file = entry(FileContent::EqualityDeletes, format, len, rows);
        file.delete_details = Some(Box::new(DeleteDetails {
            equality_ids: vec![FieldId(key as i32)],
            ..DeleteDetails::default()
        }));
        deletes.equality = vec![Arc::new(DeleteFile {
            file: Arc::new(file),
            sequence_number: SequenceNumber(2),
        })];
    }
    let mut file = entry(FileContent::Data, format, len, rows);
    file.first_row_id = all_columns.then_some(1000);
    let file = scanned(file, deletes);
    let cache = Arc::new(table.cache(16 << 20));
    let view = Arc::new(View {
        storage: Arc::clone(&table.storage),
        cache: Arc::clone(&cache),
        metadata: Arc::new(metadata),
        schema,
        snapshot: None,
        columns: ViewColumns {
            lineage: all_columns,
            metadata: all_columns,
        },
        splitting: Splitting {
            rows: 8,
            page_rows: 1,
            growth: 1000,
        },
    });
    let Ok(parquet) = ParquetFile::open(&view, &[Arc::new(file)]) else {
        return;
    };
    let mut piece = vec![0; 128 << 10];
    let len = parquet.len();
    for (from, to) in [(len.saturating_sub(READ), len), (0, READ.min(len))] {
        let mut at = from;
        while at < to
            && let Ok(read) = parquet.read_at(at, &mut piece)
        {
            at += read as u64;
        }
    }
    let engine = Engine::new(TextOptions::default(), cache, Arc::clone(&table.counters));
    let (parquet, engine) = (Arc::new(parquet), Arc::new(engine));
    for format in Format::ALL {
        let text = Arc::new(Text::new(format));
        let Ok(file) = TextFile::open(&text, Arc::clone(&parquet), &engine) else {
            return;
        };
        let (file, cursor) = (Arc::new(file), Cursor::default());
        let mut at = 0;
        while at < TEXT
            && let Ok(read @ 1..) = file.read_at(at, &mut piece, &cursor)
        {
            at += read as u64;
        }
    }
}

/// Rows of the file, if it is of that format.
fn rows_of(table: &Table, format: &FileFormat, len: usize) -> Option<u64> {
    let file = entry(FileContent::Data, format, len, 0);
    let file = as_parquet::open(&table.storage, &table.cache(0), &file).ok()?;
    let footer = SourceFooter::read(&file, &table.counters).ok()?;
    footer.metadata.num_rows.try_into().ok()
}
