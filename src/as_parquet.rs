//! Avro and ORC files as Parquet files.
//!
//! Such a file has no column chunks that could be served, and no bound on what its columns will take, so it is
//! converted as a whole the first time anybody asks: to a Parquet file with the same rows in the same order, the same
//! names, the same field ids. All that follows (projection, deletes by position or by value, row lineage, layouts) knows
//! Parquet alone. The bytes are the same on every machine: they follow from the file and this code.
//!
//! ```text
//! Avro block ─┐
//!             ├─► columns: levels and values, a row group at a time ─► Parquet ─► the process's spill file
//! ORC stripe ─┘
//! ```
//!
//! Memory is bounded by a block or stripe and a row group; what is made lies in the [`Spill`](crate::storage::Spill)
//! file for as long as a view uses it or the cache keeps it. The cache on disk, if there is one, keeps it across mounts.

use std::io::{self, BufWriter};
use std::sync::Arc;

use crate::cache::disk::{DiskCache, DiskKey, Payload};
use crate::cache::{Cache, CacheKey, Tag};
use crate::iceberg::FormatError;
use crate::iceberg::manifest::{DataFile, FileFormat};
use crate::storage::{
    Expected, SourceFile, SpillWriter, Spilled, SpilledReader, Storage, StorageError,
};

mod avro;
mod columns;
mod orc;
mod schema;

/// What the Parquet writer collects before it is written to the spill file, in bytes.
const WRITE_BUFFER: usize = 1 << 20;

/// Why a file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    #[error("{path}: {feature} is not supported")]
    Unsupported { path: String, feature: String },
    #[error("{path}: {reason}")]
    Corrupt { path: String, reason: String },
    /// The converted file cannot be kept.
    #[error("{path}: its conversion to Parquet: {source}")]
    Write { path: String, source: io::Error },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why, without the file's name.
#[derive(Debug)]
enum Failure {
    Unsupported(String),
    Corrupt(String),
    Write(io::Error),
    Storage(StorageError),
}

impl Failure {
    fn in_file(self, path: &str) -> ConvertError {
        let path = path.to_owned();
        match self {
            Failure::Unsupported(feature) => ConvertError::Unsupported { path, feature },
            Failure::Corrupt(reason) => ConvertError::Corrupt { path, reason },
            Failure::Write(source) => ConvertError::Write { path, source },
            Failure::Storage(error) => ConvertError::Storage(error),
        }
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Failure::Storage(error)
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Self {
        if error.is_unsupported() {
            Failure::Unsupported(error.to_string())
        } else {
            Failure::Corrupt(error.to_string())
        }
    }
}

/// Opens a data file or delete file of a table: itself where it is Parquet, converted where it is Avro or ORC.
///
/// # Errors
/// The file cannot be opened, is of another format, breaks its own, or holds what Parquet has no column for.
pub fn open(
    storage: &Storage,
    cache: &Cache,
    file: &DataFile,
) -> Result<Arc<SourceFile>, ConvertError> {
    let path = &file.path;
    let mut expected = Expected {
        size: Some(file.file_size),
        first: None,
    };
    let convert: fn(&SourceFile, BufWriter<SpillWriter>) -> _ = match &file.format {
        FileFormat::Parquet => return Ok(storage.open_expecting(path, &expected)?),
        FileFormat::Avro => avro::convert,
        FileFormat::Orc => orc::convert,
        other => {
            return Err(ConvertError::Unsupported {
                path: path.clone(),
                feature: format!("the file format {other:?}"),
            });
        }
    };
    if file.format == FileFormat::Avro {
        // It is read from its beginning.
        expected.first = Some(0..avro::HEADER);
    }
    let source = storage.open_expecting(path, &expected)?;
    let key = CacheKey {
        kind: "as-parquet",
        id: format!("{:?}", source.identity()),
    };
    let made = cache.get_or_write(key, Tag::NONE, || {
        let spill = || {
            let spill = storage.spill().writer();
            spill.map_err(|e| Failure::Write(e).in_file(path))
        };
        let disk_key = DiskKey {
            kind: "as-parquet",
            id: format!("{:?} {:?}", file.format, source.identity()),
            tag: Tag::NONE,
        };
        let disk = cache.disk().filter(|_| source.identity().is_lasting());
        if let Some(disk) = disk
            && let Some(made) = kept(disk, &disk_key, spill()?)
        {
            let len = made.len();
            return Ok((Kept(Arc::new(made)), len));
        }
        let made = convert(&source, BufWriter::with_capacity(WRITE_BUFFER, spill()?))
            .map_err(|failure| failure.in_file(path))?;
        storage.counters().files_converted.add(1);
        let made = Arc::new(made);
        if let Some(disk) = disk {
            let (len, made) = (made.len(), Arc::clone(&made));
            let read = Box::new(SpilledReader::new(made));
            disk.put(&disk_key, Payload::Stream { len, read });
        }
        let len = made.len();
        Ok::<_, ConvertError>((Kept(made), len))
    })?;
    Ok(Arc::new(source.made_into(Arc::clone(&made.0))))
}

/// What was converted in another mount, copied to the spill file.
fn kept(disk: &DiskCache, key: &DiskKey, spill: SpillWriter) -> Option<Spilled> {
    let mut out = BufWriter::with_capacity(WRITE_BUFFER, spill);
    disk.get_to(key, &mut out)?;
    Some(out.into_inner().ok()?.finish())
}

/// What the cache holds of a converted file: its bytes lie on disk, and go when neither it nor a view wants them.
#[derive(Debug)]
struct Kept(Arc<Spilled>);
