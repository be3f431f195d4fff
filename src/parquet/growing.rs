//! Chunks that are made as far as somebody has read: who wants the first rows of a row group, or those of one page,
//! does not wait for the others.

use std::sync::{Mutex, PoisonError};

use super::ParquetError;
use super::transcode::Transcoding;

/// A chunk that is transcoded page by page, as it is read.
#[derive(Debug)]
pub struct GrowingChunk(Mutex<Option<Transcoding>>);

/// What came of reading a growing chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grown {
    /// So many bytes were read; the chunk's length, where that is known by now.
    Read(usize, Option<u64>),
    /// It would have to grow beyond the limit, or somebody has [taken](GrowingChunk::take) it.
    Not,
}

impl Default for GrowingChunk {
    fn default() -> GrowingChunk {
        GrowingChunk(Mutex::new(Some(Transcoding::default())))
    }
}

impl GrowingChunk {
    /// Copies what there is from `offset` on. The chunk grows so far, by `grow`, which lets a transcoding go on until it
    /// has so many bytes; but not where it would come to more than `limit` bytes.
    pub fn read_at(
        &self,
        offset: u64,
        out: &mut [u8],
        limit: usize,
        grow: impl FnOnce(&mut Transcoding, usize) -> Result<(), ParquetError>,
    ) -> Result<Grown, ParquetError> {
        let mut growth = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(chunk) = growth.as_mut() else {
            return Ok(Grown::Not);
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = offset.saturating_add(out.len());
        if !chunk.has_ended() && chunk.bytes().len() < end {
            let until = chunk.worth(end);
            if until > limit {
                return Ok(Grown::Not);
            }
            grow(chunk, until)?;
        }
        let bytes = chunk.bytes();
        let there = bytes.get(offset..).unwrap_or_default();
        let len = there.len().min(out.len());
        if let (Some(out), Some(there)) = (out.get_mut(..len), there.get(..len)) {
            out.copy_from_slice(there);
        }
        let chunk_len = chunk.has_ended().then_some(bytes.len() as u64);
        Ok(Grown::Read(len, chunk_len))
    }

    /// Whether there is something of it, or there was.
    pub fn has_begun(&self) -> bool {
        match self.0.try_lock() {
            Ok(growth) => growth
                .as_ref()
                .is_none_or(|chunk| !chunk.bytes().is_empty()),
            // It grows now.
            Err(_) => true,
        }
    }

    /// What there is of it, for who makes the rest of it in another place.
    pub fn take(&self) -> Option<Transcoding> {
        let mut growth = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        growth.take()
    }
}
