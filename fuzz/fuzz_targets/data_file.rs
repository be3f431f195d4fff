//! Any bytes as a data file: a Parquet footer and page header, an Avro file, an ORC file.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use bergfs::as_parquet;
use bergfs::cache::Cache;
use bergfs::counters::Counters;
use bergfs::iceberg::manifest::{DataFile, FileContent, FileFormat, PartitionTuple};
use bergfs::iceberg::partition::SpecId;
use bergfs::parquet::format::{FileMetaData, PageHeader};
use bergfs::parquet::source::SourceFooter;
use bergfs::storage::{Storage, StorageOptions};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

struct Table {
    directory: TempDir,
    storage: Storage,
    counters: Arc<Counters>,
}

thread_local! {
    static TABLE: RefCell<Option<Table>> = const { RefCell::new(None) };
}

fn table() -> Table {
    let directory = tempfile::tempdir().expect("a directory");
    let counters = Arc::new(Counters::default());
    let options = StorageOptions::new(Arc::clone(&counters));
    let root = directory.path().into();
    let storage =
        Storage::new(&options, &root, &Default::default(), "/t", &[]).expect("a table's storage");
    Table {
        directory,
        storage,
        counters,
    }
}

/// What a manifest would say of the input.
fn entry(format: &FileFormat, bytes: &[u8]) -> DataFile {
    DataFile {
        content: FileContent::Data,
        path: "/t/f".to_owned(),
        format: format.clone(),
        spec_id: SpecId(0),
        partition: Arc::new(PartitionTuple::default()),
        record_count: 1,
        file_size: bytes.len() as u64,
        lower_bounds: vec![],
        upper_bounds: vec![],
        null_value_counts: vec![],
        split_offsets_count: 0,
        equality_ids: vec![],
        first_row_id: None,
        referenced_data_file: None,
        content_offset: None,
        content_size: None,
        key_metadata: false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let _ = FileMetaData::parse(bytes);
    let _ = PageHeader::parse(bytes);
    TABLE.with_borrow_mut(|slot| {
        let table = slot.get_or_insert_with(table);
        std::fs::write(table.directory.path().join("f"), bytes).expect("a file");
        for format in [FileFormat::Parquet, FileFormat::Avro, FileFormat::Orc] {
            // Nothing is kept: the file is another one each time, at one place.
            let cache = Cache::new(0, Arc::clone(&table.counters));
            if let Ok(file) = as_parquet::open(&table.storage, &cache, &entry(&format, bytes)) {
                let footer = SourceFooter::read(&file, &table.counters);
                assert!(
                    footer.is_ok() || format == FileFormat::Parquet,
                    "{footer:?}"
                );
            }
        }
    });
});
