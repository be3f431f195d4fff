//! Chunks that one reader holds while it reads a row group from end to end, as the rendering of text does.
//!
//! It asks for each of them page by page, and then never again. So they are made once for it, as far as it reads, and are
//! gone when it is through; in the cache they would drive out what others ask for again, and where the cache is smaller
//! than the row group they would drive out each other. They take room from the cache's budget; what there is no room for
//! is read from the cache like any other chunk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ParquetError;
use super::growing::GrowingChunk;
use super::kept::KeptChunk;
use crate::cache::{Cache, Reservation};

/// The chunks that a reader of one row group holds.
#[derive(Debug, Default)]
pub struct HeldChunks(Mutex<HashMap<usize, (Held, Reservation)>>);

/// A chunk that is held.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Growing(Arc<GrowingChunk>),
    Whole(Arc<KeptChunk>),
}

impl HeldChunks {
    /// The chunk in a segment, made by `make` if it is not held: at most so many bytes. `None`: there is no room.
    pub(super) fn get_or_make(
        &self,
        segment: usize,
        bound: u64,
        cache: &Arc<Cache>,
        make: impl FnOnce() -> Result<Held, ParquetError>,
    ) -> Result<Option<Held>, ParquetError> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((chunk, _)) = held.get(&segment) {
            return Ok(Some(chunk.clone()));
        }
        drop(held);
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        let Some(mut room) = cache.reserve(bound) else {
            return Ok(None);
        };
        let chunk = make()?;
        if let Held::Whole(chunk) = &chunk {
            room.shrink(chunk.weight());
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (chunk, _) = held.entry(segment).or_insert((chunk, room));
        Ok(Some(chunk.clone()))
    }
}
