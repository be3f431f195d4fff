//! Where a table's files lie: recorded paths to files beneath allowed roots, and reads of their ranges.

use std::sync::Arc;

use bytes::Bytes;

use crate::counters::Counters;

/// Why a file could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("{path}: {source}")]
    Io {
        path: String,
        source: std::io::Error,
    },
    #[error("{path}: outside the table's own storage (allow it with --allow-path or --map-path)")]
    NotAllowed { path: String },
    #[error("{path}: not a regular file")]
    NotRegular { path: String },
    #[error("{path}: {scheme}: is not local storage")]
    Scheme { path: String, scheme: String },
    #[error("{path}: read of {len} bytes at {offset} passes the end of the file ({size} bytes)")]
    PastEnd {
        path: String,
        offset: u64,
        len: u64,
        size: u64,
    },
    #[error("{path}: changed since it was first read (files of a table never change)")]
    Changed { path: String },
}

/// The files of one table.
#[derive(Debug)]
pub struct Storage {}

impl Storage {
    /// Opens a file by the path the table's metadata records for it. Regular files beneath allowed roots only.
    pub fn open(&self, _recorded: &str) -> Result<Arc<SourceFile>, StorageError> {
        unimplemented!()
    }
    /// One key for all spellings of a recorded path (schemes and moved locations resolved): two recorded paths name the
    /// same file exactly when their keys are equal. Touches no file.
    pub fn canonical(&self, _recorded: &str) -> String {
        unimplemented!()
    }
    /// The process's counters.
    pub fn counters(&self) -> &Arc<Counters> {
        unimplemented!()
    }
}

/// An open file of a table. Cheap to keep; the descriptor behind it may be closed and opened again.
#[derive(Debug)]
pub struct SourceFile {}

impl SourceFile {
    /// The recorded path, for messages.
    pub fn path(&self) -> &str {
        unimplemented!()
    }
    /// Bytes.
    pub fn len(&self) -> u64 {
        unimplemented!()
    }
    /// Fills `buf` from `offset`, or fails: never a short read.
    pub fn read_exact_at(&self, _buf: &mut [u8], _offset: u64) -> Result<(), StorageError> {
        unimplemented!()
    }
    /// `len` bytes from `offset`; checked against the file's size before any memory is taken.
    pub fn read_range(&self, _offset: u64, _len: u64) -> Result<Bytes, StorageError> {
        unimplemented!()
    }
}
