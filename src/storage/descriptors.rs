//! A bound on open descriptors. A view may span a hundred thousand files; a process may have 1,024 descriptors.

use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

/// A quarter of the usual limit of 1,024, which leaves room for clients' handles and the directories of many tables.
const MAX_OPEN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// Names one source file among the open descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DescriptorId(u64);

/// The descriptors kept open, the least recently used given up first. Reads under way keep theirs until they end.
#[derive(Debug)]
pub(super) struct Descriptors {
    open: Mutex<LruCache<DescriptorId, Arc<File>>>,
    next: AtomicU64,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self {
            open: Mutex::new(LruCache::new(MAX_OPEN)),
            next: AtomicU64::new(0),
        }
    }
}

impl Descriptors {
    /// Keeps a newly opened file and names it.
    pub(super) fn add(&self, file: File) -> DescriptorId {
        let id = DescriptorId(self.next.fetch_add(1, Ordering::Relaxed));
        self.put(id, Arc::new(file));
        id
    }

    /// The file, where it is still open.
    pub(super) fn get(&self, id: DescriptorId) -> Option<Arc<File>> {
        self.lock().get(&id).cloned()
    }

    /// Keeps a file that was opened again.
    pub(super) fn put(&self, id: DescriptorId, file: Arc<File>) {
        let given_up = self.lock().push(id, file);
        // Closed here, without the lock: closing may wait for a network file system.
        drop(given_up);
    }

    /// Closes the file unless a read is under way.
    pub(super) fn remove(&self, id: DescriptorId) {
        let given_up = self.lock().pop(&id);
        drop(given_up);
    }

    /// Descriptors kept open now.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<DescriptorId, Arc<File>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
