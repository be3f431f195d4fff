//! A bucket with tables in it, served, and bergfs over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use bergfs::cache::Cache;
use bergfs::catalog::Catalog;
use bergfs::catalog::directory::StoreDirectoryCatalog;
use bergfs::counters::Counters;
use bergfs::parquet::Splitting;
use bergfs::storage::{Properties, StorageOptions};
use bergfs::text::TextOptions;
use bergfs::tree::{Lineage, Tree, TreeOptions};
use tempfile::TempDir;
use url::Url;

use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::server::Server;

/// Milliseconds that a test's store may be silent: long enough for a loaded machine.
const TIMEOUT: &str = "30000";

/// The same where the test waits for it to pass.
pub const SHORT_TIMEOUT: &str = "1000";

/// Columns of [`wide`], each of about 400 KB a row group.
pub const COLUMNS: usize = 8;
pub const ROWS: usize = 50_000;

/// A bucket `b`, with what tests put into it.
pub struct Shelf {
    pub directory: TempDir,
    pub server: Server,
    pub timeout: &'static str,
}

impl Shelf {
    pub fn new() -> Shelf {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("b")).unwrap();
        let server = Server::start(directory.path().to_owned());
        Shelf {
            directory,
            server,
            timeout: TIMEOUT,
        }
    }

    /// Puts a built table into the bucket.
    pub fn put(&self, table: &TableBuilder, place: &str) -> PathBuf {
        let to = self.directory.path().join("b").join(place);
        copy(&table.root(), &to);
        to
    }

    pub fn properties(&self) -> Properties {
        let pairs = [
            ("s3.endpoint", self.server.url()),
            ("s3.region", "us-east-1".to_owned()),
            ("s3.access-key-id", "key".to_owned()),
            ("s3.secret-access-key", "secret".to_owned()),
            ("gcs.service.host", self.server.url()),
            ("gcs.oauth2.token", "Credential=key/".to_owned()),
            ("store.timeout-ms", self.timeout.to_owned()),
        ];
        Properties(pairs.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Opens a URL as `bergfs mount` does.
    pub fn open(&self, url: &str) -> Opened {
        self.open_as(url, |options, url, properties| {
            StoreDirectoryCatalog::open(url, options, properties)
                .map(|catalog| Box::new(catalog) as Box<dyn Catalog>)
                .map_err(|error| error.to_string())
        })
    }

    /// Opens a URL with a catalog of the test's own.
    pub fn open_as(
        &self,
        url: &str,
        catalog: impl FnOnce(&StorageOptions, &Url, &Properties) -> Result<Box<dyn Catalog>, String>,
    ) -> Opened {
        let counters = Arc::new(Counters::default());
        let cache = Arc::new(Cache::new(64 << 20, Arc::clone(&counters)));
        let storage = StorageOptions::new(Arc::clone(&counters)).with_cache(&cache);
        self.open_with(url, storage, cache, counters, catalog)
    }

    pub fn open_with(
        &self,
        url: &str,
        storage: StorageOptions,
        cache: Arc<Cache>,
        counters: Arc<Counters>,
        catalog: impl FnOnce(&StorageOptions, &Url, &Properties) -> Result<Box<dyn Catalog>, String>,
    ) -> Opened {
        let url = Url::parse(url).unwrap();
        let catalog = match catalog(&storage, &url, &self.properties()) {
            Ok(catalog) => catalog,
            Err(message) => return Opened::Refused { message },
        };
        let options = TreeOptions {
            // The tests count what a look costs once.
            refresh: Duration::from_secs(3600),
            lineage: Lineage::Auto,
            metadata_columns: false,
            storage,
            text: TextOptions::default(),
            splitting: Splitting::default(),
        };
        Opened::Tree {
            tree: Box::new(Tree::new(catalog, cache, options)),
            counters,
        }
    }
}

/// A table of one file: columns of random numbers in two row groups, which nothing makes smaller.
pub fn wide() -> TableBuilder {
    wide_with(false, &[])
}

/// The same with columns that may be null, as the table has them: its chunks are served as they are stored.
pub fn wide_of_optional_columns() -> TableBuilder {
    wide_with(true, &[])
}

/// [`wide`] with rows deleted from both row groups: each chunk is made, from one that has a dictionary.
pub fn wide_with_deletes() -> TableBuilder {
    wide_with(false, &[1, ROWS as i64 + 1])
}

fn wide_with(nullable: bool, deleted: &[i64]) -> TableBuilder {
    let schema: Vec<String> = (0..COLUMNS)
        .map(|c| format!("{} c{c}: long", c + 1))
        .collect();
    let mut table = TableBuilder::new(2, &schema.join(", "));
    let mut state = 1u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as i64
    };
    let columns = (0..COLUMNS).map(|c| {
        let values: Int64Array = (0..2 * ROWS).map(|_| Some(random())).collect();
        (format!("c{c}"), Arc::new(values) as ArrayRef, nullable)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = table.write(Data::batch(batch).row_groups_of(ROWS));
    let deleted: Vec<_> = deleted.iter().map(|at| (file.path.as_str(), *at)).collect();
    let deletes = (!deleted.is_empty()).then(|| table.position_deletes(&deleted));
    table.commit(Commit::of([file]));
    if let Some(deletes) = deletes {
        table.commit(Commit::of([deletes]));
    }
    table.save();
    table
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
