//! Lets the `parquet` crate read a [`SourceFile`], for files that are read whole: delete files.

use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use super::{SourceFile, StorageError};

/// Bytes that a cursor over a file of a store takes at a time, of those that are kept in blocks.
const STORE_BUFFER: usize = 64 << 10;

/// A source file as the `parquet` crate wants one. A [`StorageError`] stands as the source of the error it gives.
#[derive(Clone, Debug)]
pub struct SourceReader {
    file: Arc<SourceFile>,
    /// What of it is read in order: a column chunk.
    bounds: Option<Range<u64>>,
}

impl SourceReader {
    /// Reads anywhere in a file.
    pub fn new(file: Arc<SourceFile>) -> Self {
        Self { file, bounds: None }
    }

    /// The same for one who reads `bounds` in order.
    pub fn within(&self, bounds: Range<u64>) -> Self {
        Self {
            file: Arc::clone(&self.file),
            bounds: Some(bounds),
        }
    }
}

impl Length for SourceReader {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for SourceReader {
    type T = BufReader<SourceCursor>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let cursor = SourceCursor {
            file: Arc::clone(&self.file),
            position: start,
        };
        Ok(match self.file.is_remote() {
            true => BufReader::with_capacity(STORE_BUFFER, cursor),
            false => BufReader::new(cursor),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A `usize` is no wider than 64 bits on any machine there is.
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let read = match &self.bounds {
            Some(bounds) => self.file.read_range_within(start, length, bounds),
            None => self.file.read_range(start, length),
        };
        read.map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// Reads a source file onward from a position, to its end.
#[derive(Debug)]
pub struct SourceCursor {
    file: Arc<SourceFile>,
    position: u64,
}

impl Read for SourceCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len().saturating_sub(self.position);
        let take = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let wanted = buffer.get_mut(..take).unwrap_or_default();
        if wanted.is_empty() {
            return Ok(0);
        }
        self.file
            .read_exact_at(wanted, self.position)
            .map_err(to_io)?;
        self.position = self
            .position
            .saturating_add(u64::try_from(take).unwrap_or(u64::MAX));
        Ok(take)
    }
}

fn to_io(error: StorageError) -> io::Error {
    io::Error::other(error)
}
