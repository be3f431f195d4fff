//! Any bytes as a file of a table: a Parquet footer and page header, an Avro file, an ORC file, and position deletes in each.
#![no_main]

use std::sync::Arc;

use bergfs::as_parquet;
use bergfs::iceberg::manifest::{FileContent, FileFormat, SequenceNumber};
use bergfs::parquet::format::{FileMetaData, PageHeader};
use bergfs::parquet::source::SourceFooter;
use bergfs::rows::position_deletes::deleted_positions;
use bergfs::scan::{DeleteFile, FileDeletes};
use bergfs_fuzz::{FORMATS, PATH, Table, entry, scanned, with_file};
use libfuzzer_sys::fuzz_target;

/// Rows of the file whose rows the deletes name.
const ROWS: u64 = 100;

fuzz_target!(|bytes: &[u8]| {
    let _ = FileMetaData::parse(bytes);
    let _ = PageHeader::parse(bytes);
    with_file(bytes, |table| {
        for format in FORMATS {
            read(table, &format, bytes.len());
        }
    });
});

fn read(table: &Table, format: &FileFormat, len: usize) {
    let data = entry(FileContent::Data, format, len, ROWS);
    let Ok(file) = as_parquet::open(&table.storage, &table.cache(0), &data) else {
        return;
    };
    let Ok(footer) = SourceFooter::read(&file, &table.counters) else {
        // What was converted is sound.
        assert_eq!(format, &FileFormat::Parquet);
        return;
    };
    let rows = footer.metadata.num_rows.try_into().unwrap_or(0);
    let delete = DeleteFile {
        file: Arc::new(entry(FileContent::PositionDeletes, format, len, rows)),
        sequence_number: SequenceNumber(1),
    };
    let deletes = FileDeletes {
        position: vec![Arc::new(delete)],
        ..FileDeletes::default()
    };
    let data = scanned(data, deletes);
    if let Ok(deleted) = deleted_positions(&data, &table.storage, &table.cache(0)) {
        assert!(deleted.max().is_none_or(|last| last < ROWS), "of {PATH}");
    }
}
