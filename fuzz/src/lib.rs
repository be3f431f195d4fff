//! What the fuzz targets share: a table of one file, whose bytes are the input.

use std::cell::RefCell;
use std::panic;
use std::sync::{Arc, Once};

use bergfs::cache::Cache;
use bergfs::counters::Counters;
use bergfs::iceberg::manifest::{
    DataFile, FileContent, FileFormat, PartitionTuple, SequenceNumber,
};
use bergfs::iceberg::partition::SpecId;
use bergfs::scan::{FileDeletes, ScanFile};
use bergfs::storage::{Storage, StorageOptions};
use tempfile::TempDir;

/// Every format that a table's file may have.
pub const FORMATS: [FileFormat; 3] = [FileFormat::Parquet, FileFormat::Avro, FileFormat::Orc];

/// What the file is called.
pub const PATH: &str = "/t/f";

/// A table's directory, and all that is needed to read in it.
pub struct Table {
    directory: TempDir,
    pub storage: Arc<Storage>,
    pub counters: Arc<Counters>,
}

thread_local! {
    static TABLE: RefCell<Option<Table>> = const { RefCell::new(None) };
}

/// The decoders of the Parquet crate may panic at broken pages, and bergfs catches that; all else is a find.
fn spare_the_decoders() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map_or("", |place| place.file());
            let of_crate = |name: &str| place.contains(&format!("/{name}"));
            if !(of_crate("registry/") && ["parquet-", "arrow-"].into_iter().any(of_crate)) {
                hook(info);
            }
        }));
    });
}

/// Runs something on the table whose only file has these bytes.
pub fn with_file<T>(bytes: &[u8], run: impl FnOnce(&Table) -> T) -> T {
    spare_the_decoders();
    TABLE.with_borrow_mut(|slot| {
        let table = slot.get_or_insert_with(Table::new);
        std::fs::write(table.directory.path().join("f"), bytes).expect("a file");
        run(table)
    })
}

impl Table {
    fn new() -> Table {
        let directory = tempfile::tempdir().expect("a directory");
        let counters = Arc::new(Counters::default());
        let options = StorageOptions::new(Arc::clone(&counters));
        let root = directory.path().into();
        let storage = Storage::new(&options, &root, &Default::default(), "/t", &[]);
        Table {
            directory,
            storage: Arc::new(storage.expect("a table's storage")),
            counters,
        }
    }

    /// A cache that knows nothing: the file is another one each time, at one place.
    pub fn cache(&self, budget: usize) -> Cache {
        Cache::new(budget, Arc::clone(&self.counters))
    }
}

/// What a manifest would say of the file.
pub fn entry(content: FileContent, format: &FileFormat, len: usize, record_count: u64) -> DataFile {
    DataFile {
        content,
        path: PATH.to_owned(),
        format: format.clone(),
        spec_id: SpecId(0),
        partition: Arc::new(PartitionTuple::default()),
        record_count,
        file_size: len as u64,
        split_offsets_count: 0,
        first_row_id: None,
        key_metadata: false,
        column_statistics: None,
        delete_details: None,
    }
}

/// A data file of a plan.
pub fn scanned(file: DataFile, deletes: FileDeletes) -> ScanFile {
    ScanFile {
        file: Arc::new(file),
        sequence_number: SequenceNumber(1),
        deletes,
    }
}
