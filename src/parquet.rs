//! Virtual Parquet files: source footers, layouts of segments, slots, transcoding of column chunks, new footers.

use std::sync::Arc;

use crate::cache::Cache;
use crate::iceberg::metadata::{SnapshotId, TableMetadata};
use crate::iceberg::schema::Schema;
use crate::scan::ScanFile;
use crate::storage::Storage;

pub mod bits;
pub mod codec;
pub mod delta;
mod error;
pub mod format;
pub mod keep;
pub mod page;
pub mod plain;
pub mod rle;
pub mod source;
pub mod thrift;

pub use error::DecodeError;

/// What a view is made from: a table state, the schema it is read with, and the columns it shows.
#[derive(Debug)]
pub struct View {
    pub storage: Arc<Storage>,
    pub cache: Arc<Cache>,
    pub metadata: Arc<TableMetadata>,
    pub schema: Arc<Schema>,
    /// `None`: a table without a snapshot.
    pub snapshot: Option<SnapshotId>,
    pub columns: ViewColumns,
}

/// Columns a view shows beside the schema's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ViewColumns {
    /// `_row_id` and `_last_updated_sequence_number`.
    pub lineage: bool,
    /// `_file`, `_pos`, `_spec_id`, `_partition`.
    pub metadata: bool,
}

/// Why a virtual file could not be laid out or read.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    #[error("{path}: {feature} is not supported")]
    Unsupported { path: String, feature: String },
    #[error("{path}: {reason}")]
    Corrupt { path: String, reason: String },
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
}

/// A virtual Parquet file over some data files of a view, in their order. Its size is known; its bytes are made as read.
#[derive(Debug)]
pub struct ParquetFile {}

impl ParquetFile {
    /// Lays the file out: reads the source footers, position deletes and vectors; no data page, no equality delete.
    pub fn open(_view: &Arc<View>, _files: &[Arc<ScanFile>]) -> Result<ParquetFile, ParquetError> {
        unimplemented!()
    }
    /// Bytes.
    pub fn len(&self) -> u64 {
        unimplemented!()
    }
    /// Fills `buf` from `offset`; fewer bytes than asked only at the end of the file.
    pub fn read_at(&self, _offset: u64, _buf: &mut [u8]) -> Result<usize, ParquetError> {
        unimplemented!()
    }
}
