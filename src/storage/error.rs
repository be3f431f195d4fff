//! Why a file could not be opened or read.

use std::io;

use super::roots::OpenError;

/// Why a file could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system's answer.
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    /// No allowed root holds it, or the way to it leads out of one.
    #[error("{path}: outside the table's own storage (allow it with --allow-path or --map-path)")]
    NotAllowed { path: String },
    /// In a store, a path with empty parts or `.`: a client that tidies it up would ask for another key.
    #[error("{path}: a key with empty parts, or with `.` for one, is not read")]
    NoKey { path: String },
    /// A directory, FIFO, socket or device.
    #[error("{path}: not a regular file")]
    NotRegular { path: String },
    /// A path on remote storage that no mapping brings here.
    #[error("{path}: {scheme}: is not local storage (say where the files lie now with --map-path)")]
    Scheme { path: String, scheme: String },
    /// A range that metadata or a footer names is not in the file. All in bytes.
    #[error("{path}: read of {len} bytes at {offset} passes the end of the file ({size} bytes)")]
    PastEnd {
        path: String,
        offset: u64,
        len: u64,
        size: u64,
    },
    /// Replaced, truncated or written to under us.
    #[error("{path}: changed since it was first read (files of a table never change)")]
    Changed { path: String },
    /// A file to be read whole is larger than any honest one. All in bytes.
    #[error("{path}: {size} bytes, where at most {max} are expected")]
    TooLarge { path: String, size: u64, max: u64 },
    /// A property of a store, or what stands for one, that cannot be used. The value may be secret and is not shown.
    #[error("{name}: {reason}")]
    Property { name: String, reason: String },
    /// A location names no place: a source's, or one that is recorded for a table or its metadata file.
    #[error("{text}: {reason}")]
    BadLocation { text: String, reason: String },
    /// `--map-path` without its `=`, or with nothing to map.
    #[error("--map-path {text}: expected OLD=NEW")]
    BadMapping { text: String },
}

impl StorageError {
    /// Whether the file may be sound but lies on storage that is not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Scheme { .. })
    }
}

pub(super) fn io_error(path: &str, source: io::Error) -> StorageError {
    StorageError::Io {
        path: path.to_owned(),
        source,
    }
}

pub(super) fn storage_error(path: &str, error: OpenError) -> StorageError {
    let path = path.to_owned();
    match error {
        OpenError::Escapes => StorageError::NotAllowed { path },
        OpenError::NotRegular => StorageError::NotRegular { path },
        OpenError::Io(source) => StorageError::Io { path, source },
    }
}
