//! A snapshot's plan: its live data files, each with its sequence number, first row id and the deletes that apply.

use std::sync::Arc;

use crate::iceberg::manifest::{DataFile, SequenceNumber};

/// A live delete file (or one deletion vector of a Puffin file).
#[derive(Clone, Debug)]
pub struct DeleteFile {
    pub file: DataFile,
    pub sequence_number: SequenceNumber,
}

/// The deletes that apply to one data file (spec, "Scan Planning"). Where there is a vector, `position` is empty.
#[derive(Clone, Debug, Default)]
pub struct FileDeletes {
    pub position: Vec<Arc<DeleteFile>>,
    pub vector: Option<Arc<DeleteFile>>,
    pub equality: Vec<Arc<DeleteFile>>,
}

impl FileDeletes {
    pub fn is_empty(&self) -> bool {
        self.position.is_empty() && self.vector.is_none() && self.equality.is_empty()
    }
}

/// A live data file with what applies to it.
#[derive(Clone, Debug)]
pub struct ScanFile {
    pub file: DataFile,
    /// The DATA sequence number.
    pub sequence_number: SequenceNumber,
    pub deletes: FileDeletes,
}

/// A snapshot's live data files, in the order their rows stand in a view: data sequence number, then path.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub files: Vec<Arc<ScanFile>>,
}
