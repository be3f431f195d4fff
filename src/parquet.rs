//! Virtual Parquet files: a view's data files as Parquet, without copying them.
//!
//! A virtual file is never made as a whole. When it is opened ([`ParquetFile::open`]) it is *laid out*: source footers,
//! position deletes and vectors are read, and every column chunk gets its place and its length. Bytes come about when
//! somebody reads them ([`ParquetFile::read_at`]).
//!
//! ```text
//! data file ─ source ──► part ─────► split ─────► layout ───────► file ──► bytes
//!  footer     checked    each leaf's  the row      a segment for   reads
//!                        plan         groups       each chunk
//!                         │                         │
//!             target ─────┘                         ├ Source: the data file's own bytes
//!             the file's schema                     └ Slot: a chunk made when it is read (chunk)
//!                                                        transcode: stored pages, filtered and converted
//!                                                        synth: constants, row ids, positions
//! ```
//!
//! - `target` is the schema all row groups of the file share; `levels` says how each leaf of it is got from a data file.
//! - `split` shows large row groups that are made anew in pieces; `places` says where in a chunk pages lie.
//! - `slot` bounds what the transcoder can emit, and fills the rest; `transcode` works page by page on the encoded form,
//!   with `values`, `convert` and `page`, `rle`, `delta`, `plain`, `bits`, `keep`, `codec` below it.
//! - `unshred` puts shredded variants together, where a file's data files shred them differently.
//! - `footer` and `entry` make the footer when it is first read; `statistics` and `clustered` decide which bounds it can
//!   state, since readers answer queries from them; `integers` finds the least and greatest value that is left.
//! - `extra` holds the columns that are not the table's own: row lineage and metadata columns.
//! - `format` and `thrift` read and write the structures of the file format.
//!
//! Nothing here knows names or the kernel. Errors name the data file.

use std::sync::Arc;

use crate::cache::Cache;
use crate::iceberg::FormatError;
use crate::iceberg::metadata::{SnapshotId, TableMetadata};
use crate::iceberg::schema::Schema;
use crate::rows::RowsError;
use crate::storage::{Storage, StorageError};

mod bits;
mod chunk;
mod clustered;
mod codec;
mod contents;
mod convert;
mod delta;
mod entry;
mod error;
mod extra;
mod file;
mod footer;
pub mod format;
mod growing;
mod held;
mod integers;
mod keep;
mod kept;
mod layout;
mod levels;
mod made;
mod page;
mod part;
mod places;
mod plain;
mod rle;
mod slot;
pub mod source;
mod split;
mod statistics;
mod synth;
mod target;
pub mod thrift;
mod transcode;
mod unshred;
mod values;

pub use contents::GroupContent;
pub use error::DecodeError;
pub use file::ParquetFile;
pub use held::HeldChunks;
pub use split::Splitting;

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
    pub splitting: Splitting,
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
    Storage(#[from] StorageError),
    #[error(transparent)]
    Rows(#[from] RowsError),
    #[error("table metadata: {0}")]
    Format(#[from] FormatError),
}

impl ParquetError {
    /// Whether the file needs a feature that bergfs lacks (`ENOTSUP`), rather than being broken (`EIO`).
    pub fn is_unsupported(&self) -> bool {
        match self {
            ParquetError::Unsupported { .. } => true,
            ParquetError::Corrupt { .. } => false,
            ParquetError::Storage(error) => error.is_unsupported(),
            ParquetError::Rows(error) => error.is_unsupported(),
            ParquetError::Format(error) => error.is_unsupported(),
        }
    }
}
