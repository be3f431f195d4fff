//! A made chunk as it is kept: in memory, in the process's spill file once memory is short, and on disk across mounts.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;

use super::made::MadeChunk;
use crate::storage::{Spill, Spilled};

/// Bytes of memory beside a chunk's own.
const OVERHEAD: usize = 64;

/// A column chunk written by bergfs; see [`MadeChunk`].
#[derive(Debug)]
pub struct KeptChunk {
    /// Entries in the data pages, nulls and list placeholders counted.
    pub num_values: u64,
    len: u64,
    bytes: Kept,
}

#[derive(Debug)]
enum Kept {
    Memory(Bytes),
    Spilled(Spilled),
}

impl From<MadeChunk> for KeptChunk {
    fn from(made: MadeChunk) -> KeptChunk {
        // What is kept is weighed by what it holds.
        KeptChunk::new(made.num_values, made.bytes.into_boxed_slice().into())
    }
}

impl KeptChunk {
    fn new(num_values: u64, bytes: Bytes) -> KeptChunk {
        KeptChunk {
            num_values,
            len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            bytes: Kept::Memory(bytes),
        }
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory that it takes.
    pub fn weight(&self) -> usize {
        match &self.bytes {
            Kept::Memory(bytes) => bytes.len() + OVERHEAD,
            Kept::Spilled(_) => OVERHEAD,
        }
    }

    /// Copies what there is from `offset` on, and gives how much that was.
    ///
    /// # Errors
    /// The spill file cannot be read.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(offset);
        let len = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let out = out.get_mut(..len).unwrap_or_default();
        match &self.bytes {
            Kept::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                if let Some(from) = bytes.get(from..).and_then(|bytes| bytes.get(..len)) {
                    out.copy_from_slice(from);
                }
            }
            Kept::Spilled(spilled) => spilled.read_exact_at(out, offset)?,
        }
        Ok(len)
    }

    /// `len` bytes from `offset`, where the chunk is in memory and has so many.
    pub fn shared(&self, offset: u64, len: usize) -> Option<Bytes> {
        let Kept::Memory(bytes) = &self.bytes else {
            return None;
        };
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(len)?;
        (end <= bytes.len()).then(|| bytes.slice(start..end))
    }

    /// The same in the spill file, and its bytes there. `None`: it cannot be written there.
    pub fn spilled(&self, spill: &Arc<Spill>) -> Option<(KeptChunk, u64)> {
        let Kept::Memory(bytes) = &self.bytes else {
            return None;
        };
        if !spill.has_room(self.len) {
            return None;
        }
        let write = || {
            let mut writer = spill.writer()?;
            writer.write_all(bytes)?;
            io::Result::Ok(writer.finish())
        };
        let spilled = write()
            .inspect_err(|error| tracing::debug!(%error, "a chunk is not kept in the spill file"));
        let chunk = KeptChunk {
            num_values: self.num_values,
            len: self.len,
            bytes: Kept::Spilled(spilled.ok()?),
        };
        Some((chunk, self.len))
    }

    /// The chunk as an entry of the cache on disk: its number of values, then its bytes.
    pub fn stored(&self) -> Option<Vec<Bytes>> {
        let Kept::Memory(bytes) = &self.bytes else {
            return None;
        };
        let num_values = self.num_values.to_le_bytes();
        Some(vec![Bytes::copy_from_slice(&num_values), bytes.clone()])
    }

    /// The chunk of such an entry.
    pub fn from_stored(mut entry: Bytes) -> Option<KeptChunk> {
        let num_values = u64::from_le_bytes(*entry.first_chunk()?);
        Some(KeptChunk::new(num_values, entry.split_off(8)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_chunk_reads_the_same_from_memory_the_spill_file_and_an_entry() {
        let made = MadeChunk {
            bytes: (0..=255).collect(),
            num_values: 77,
        };
        let chunk = KeptChunk::from(made);
        let (spilled, bytes) = chunk.spilled(&Arc::default()).unwrap();
        assert_eq!(bytes, 256);
        let stored = chunk.stored().unwrap().concat();
        let stored = KeptChunk::from_stored(stored.into()).unwrap();
        for kept in [&chunk, &spilled, &stored] {
            let mut out = [0; 10];
            assert_eq!((kept.num_values, kept.len()), (77, 256));
            assert_eq!(kept.read_at(5, &mut out).unwrap(), 10);
            assert_eq!(out, [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
            assert_eq!(kept.read_at(250, &mut out).unwrap(), 6);
            assert_eq!(out[..6], [250, 251, 252, 253, 254, 255]);
            assert_eq!(kept.read_at(300, &mut out).unwrap(), 0);
        }
        assert!(spilled.stored().is_none());
    }
}
