//! Any bytes as a data file: a Parquet footer and page header, an Avro file, an ORC file.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use bergfs::as_parquet;
use bergfs::cache::Cache;
use bergfs::counters::Counters;
use bergfs::iceberg::manifest::FileFormat;
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

fuzz_target!(|bytes: &[u8]| {
    let _ = FileMetaData::parse(bytes);
    let _ = PageHeader::parse(bytes);
    TABLE.with_borrow_mut(|slot| {
        let table = slot.get_or_insert_with(table);
        std::fs::write(table.directory.path().join("f"), bytes).expect("a file");
        for format in [FileFormat::Parquet, FileFormat::Avro, FileFormat::Orc] {
            // Nothing is kept: the file is another one each time, at one place.
            let cache = Cache::new(0, Arc::clone(&table.counters));
            if let Ok(file) = as_parquet::open(&table.storage, &cache, "/t/f", &format) {
                let footer = SourceFooter::read(&file, &table.counters);
                assert!(
                    footer.is_ok() || format == FileFormat::Parquet,
                    "{footer:?}"
                );
            }
        }
    });
});
