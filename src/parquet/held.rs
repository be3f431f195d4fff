//! Chunks that one reader holds while it reads a row group from end to end, as the rendering of text does.
//!
//! It asks for each of them page by page, and then never again. So they are made once for it, and are gone when it is
//! through; in the cache they would drive out what others ask for again, and where the cache is smaller than the row
//! group they would drive out each other. They take room from the cache's budget; what there is no room for is read from
//! the cache like any other chunk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::ParquetError;
use super::kept::KeptChunk;
use crate::cache::{Cache, Reservation};

/// The chunks that a reader of one row group holds.
#[derive(Debug, Default)]
pub struct HeldChunks(Mutex<HashMap<usize, (Arc<KeptChunk>, Reservation)>>);

impl HeldChunks {
    /// The chunk in a segment, made by `make` if it is not held: at most so many bytes. `None`: there is no room.
    pub(super) fn get_or_make(
        &self,
        segment: usize,
        bound: u64,
        cache: &Arc<Cache>,
        make: impl FnOnce() -> Result<KeptChunk, ParquetError>,
    ) -> Result<Option<Arc<KeptChunk>>, ParquetError> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((chunk, _)) = held.get(&segment) {
            return Ok(Some(Arc::clone(chunk)));
        }
        drop(held);
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        let Some(mut room) = cache.reserve(bound) else {
            return Ok(None);
        };
        let chunk = Arc::new(make()?);
        room.shrink(chunk.weight());
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(segment, (Arc::clone(&chunk), room));
        Ok(Some(chunk))
    }
}
