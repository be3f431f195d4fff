//! One byte budget for all that the process keeps in memory: parsed manifests, footers, delete sets, chunks.

use std::any::Any;
use std::sync::Arc;

/// What an entry is, and which one: made from content identities, so that snapshots share what they have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// A word for the kind of entry (`"manifest"`, `"footer"`, `"chunk"` …); entries of one kind have one Rust type.
    pub kind: &'static str,
    /// Distinguishes entries of the kind.
    pub id: String,
}

/// An LRU cache weighed in bytes.
#[derive(Debug)]
pub struct Cache {}

impl Cache {
    /// The entry under `key`, made by `make` (which gives it with its weight in bytes) where it is not kept.
    /// Callers that ask for one key at once wait for one `make`; an error is given to that caller alone and not kept.
    pub fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        _key: CacheKey,
        _make: impl FnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        unimplemented!()
    }
    /// Bytes kept now.
    pub fn bytes(&self) -> usize {
        unimplemented!()
    }
}
