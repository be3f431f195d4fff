//! Lets the `parquet` crate read a [`SourceFile`], for files that are read whole: delete files.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use super::{SourceFile, StorageError};

/// A source file as the `parquet` crate wants one. A [`StorageError`] stands as the source of the error it gives.
#[derive(Clone, Debug)]
pub struct SourceReader(pub Arc<SourceFile>);

impl Length for SourceReader {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for SourceReader {
    type T = BufReader<SourceCursor>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(SourceCursor {
            file: Arc::clone(&self.0),
            position: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A `usize` is no wider than 64 bits on any machine there is.
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.0
            .read_range(start, length)
            .map_err(|error| ParquetError::External(Box::new(error)))
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
