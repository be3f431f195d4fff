//! A whole view as text: CSV and JSON lines, over the rows of the view's virtual Parquet file and in their order.
//!
//! Deletes, schema evolution and lineage are applied by [`crate::parquet`] below; this module reads what that serves,
//! with the `parquet` crate's Arrow reader, and writes it out.
//!
//! ```text
//! header │ strip 0: piece 0 │ piece 1 │ strip 1: piece 0 │ … │
//!          └ row group 0, rows 0 to 32767                └ rows 32768 …
//! ```
//!
//! - A **strip** ([`index`]) is a range of rows of one row group, known from the footer. It is the unit in which work
//!   is handed out: strips are rendered in any order, on all cores.
//! - A **piece** is the text of the next rows of a strip, cut where it passes [`PIECE_BYTES`], so that rows of any width
//!   are rendered in bounded memory. It is what is rendered at once, cached and read.
//! - How long a piece is, is known once it is rendered, and from then on for good: [`Text`] keeps it as long as the view
//!   is known. A reader that comes from the front ([`mod@file`]) needs no more; a size needs all of them ([`sizing`]).
//! - Rendered pieces lie in an unlinked file ([`spill`]), from which they are read again at the page cache's speed, or,
//!   where that is full, in the memory cache. Across mounts they are in the cache on disk, if there is one, with the
//!   lengths of all pieces of a text that has been sized ([`kept`]).
//!
//! Rendering itself: [`columns`] gives a batch's columns by type, [`csv`] and [`json`] write rows of them, [`values`]
//! single values, [`variant`] and [`wkt`] those that have an encoding of their own.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use crate::cache::Cache;
use crate::counters::Counters;
use crate::parquet::ParquetError;

mod columns;
mod csv;
mod digits;
mod file;
mod index;
mod json;
mod kept;
mod pool;
mod rows;
mod short;
mod sizing;
mod spill;
mod values;
mod variant;
mod wkt;

#[cfg(test)]
mod tests;

pub use file::{Cursor, Text, TextFile};
pub use sizing::{Outcome, Sizing};
pub use spill::SpilledText;

use pool::Pool;
use spill::Spill;

/// Bytes after which a piece ends: some milliseconds of work, and many requests of a reader.
const PIECE_BYTES: usize = 8 << 20;

/// Bytes of a buffer that is kept for the next piece: those of rows of usual width.
const BUFFER_BYTES: usize = 4 << 20;

/// Buffers that are kept: some for each thread that renders.
const MAX_BUFFERS: usize = 16;

/// Texts that are sized at the first look into their directory, before anybody asks, are no longer than this by
/// estimate: a fraction of a second's work. `ls` must not keep a machine busy.
pub const EAGER_BYTES: u64 = 64 << 20;

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// RFC 4180 with a header; lines end in `\n`.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

impl Format {
    /// Every kind.
    pub const ALL: [Format; 2] = [Format::Csv, Format::JsonLines];

    /// What a file of this kind is called after its table's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Format::Csv => ".csv",
            Format::JsonLines => ".jsonl",
        }
    }
}

/// What the user says about text.
#[derive(Clone, Debug)]
pub struct TextOptions {
    /// Whether views show text at all.
    pub shown: bool,
    /// What a null is in CSV.
    pub csv_null: CsvNull,
    /// Bytes: a text that is estimated longer is not listed before it has been sized.
    pub limit: u64,
    /// Bytes of rendered text kept in unlinked files.
    pub spill: u64,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            shown: true,
            csv_null: CsvNull::default(),
            limit: 1 << 30,
            spill: 2 << 30,
        }
    }
}

/// What a null is in CSV: by default nothing at all, where an empty string is `""`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvNull(Arc<str>);

impl std::str::FromStr for CsvNull {
    type Err = String;

    /// Text that needs no quotes in CSV: in quotes it would be a string.
    fn from_str(text: &str) -> Result<CsvNull, String> {
        if text.contains([',', '"', '\n', '\r']) {
            return Err("a comma, a quote or the end of a line would need quotes".to_owned());
        }
        Ok(CsvNull(Arc::from(text)))
    }
}

/// What all texts of a process are rendered with.
#[derive(Debug)]
pub struct Engine {
    options: TextOptions,
    cache: Arc<Cache>,
    counters: Arc<Counters>,
    spill: Spill,
    /// Of pieces that have been written: new memory costs as much time as writing it does.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Started when there is work: most mounts have no text read.
    pool: OnceLock<Pool>,
}

impl Engine {
    /// An engine that has nothing to do yet.
    pub fn new(options: TextOptions, cache: Arc<Cache>, counters: Arc<Counters>) -> Engine {
        Engine {
            spill: Spill::new(options.spill),
            buffers: Mutex::default(),
            options,
            cache,
            counters,
            pool: OnceLock::new(),
        }
    }

    /// What the user said.
    pub fn options(&self) -> &TextOptions {
        &self.options
    }

    /// Does some work that nobody waits for, on a thread of the engine, unless it has other work to do.
    pub fn when_idle(&self, work: impl FnOnce() + Send + 'static) {
        if self.pool().is_idle() {
            self.pool().run_ahead(Box::new(work));
        }
    }

    /// An empty buffer to render into.
    fn buffer(&self) -> Vec<u8> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_default()
    }

    /// Takes the buffer of a piece back, unless somebody else still reads it.
    fn take_back(&self, mut piece: Bytes) {
        if !piece.is_unique() {
            return;
        }
        piece.truncate(0);
        let mut buffer = Vec::from(piece);
        buffer.clear();
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() <= BUFFER_BYTES && buffers.len() < MAX_BUFFERS {
            buffers.push(buffer);
        }
    }

    fn pool(&self) -> &Pool {
        self.pool.get_or_init(Pool::new)
    }
}

/// Why text could not be rendered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TextError {
    /// Of the virtual file below.
    #[error(transparent)]
    Parquet(Arc<ParquetError>),
    /// A column of a type that has no text.
    #[error("column {column}: {ty} as text is not supported")]
    Unsupported { column: String, ty: String },
    /// More rows than a text may have.
    #[error("text of so many rows ({rows}) is not supported")]
    Long { rows: u64 },
    /// A row group that the decoder cannot read.
    #[error("row group {group}: {reason}")]
    RowGroup { group: usize, reason: String },
    /// The footer of the virtual file is not what was expected.
    #[error("{0}")]
    Footer(String),
    /// What was rendered again is not what it was.
    #[error("a data file or its deletes have changed since they were first read")]
    Changed,
    /// Whoever waited for the size has gone.
    #[error("the sizing was given up")]
    GivenUp,
}

impl TextError {
    /// Whether the text needs a feature that bergfs lacks (`ENOTSUP`), rather than being broken (`EIO`).
    pub fn is_unsupported(&self) -> bool {
        match self {
            TextError::Parquet(error) => error.is_unsupported(),
            TextError::Unsupported { .. } | TextError::Long { .. } => true,
            TextError::RowGroup { .. }
            | TextError::Footer(_)
            | TextError::Changed
            | TextError::GivenUp => false,
        }
    }
}

impl From<ParquetError> for TextError {
    fn from(error: ParquetError) -> TextError {
        TextError::Parquet(Arc::new(error))
    }
}
