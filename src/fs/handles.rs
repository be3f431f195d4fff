//! What is open: files and directory listings, by the handles that the kernel was given.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::tree::{Entries, Kind};

use super::inodes;

/// Open things of one kind.
pub(super) struct Handles<T> {
    open: Mutex<HashMap<u64, Arc<T>>>,
    next: AtomicU64,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles {
            open: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }
}

impl<T> Handles<T> {
    pub(super) fn add(&self, value: T) -> u64 {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(handle, Arc::new(value));
        handle
    }

    pub(super) fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&handle)
            .cloned()
    }

    pub(super) fn remove(&self, handle: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = open.remove(&handle);
        drop(open);
        // Whatever it holds goes without the lock.
        drop(removed);
    }
}

/// A directory as it was when it was opened.
pub(super) struct Listing {
    ino: u64,
    parent: u64,
    entries: Entries,
}

impl Listing {
    pub(super) fn new(ino: u64, parent: u64, entries: Entries) -> Listing {
        Listing {
            ino,
            parent,
            entries,
        }
    }

    /// From an offset on: inode number, the offset of the next entry, kind and name.
    pub(super) fn from(&self, offset: u64) -> impl Iterator<Item = (u64, u64, Kind, &str)> {
        (offset..u64::MAX).map_while(|at| {
            let (ino, kind, name) = match at {
                0 => (self.ino, Kind::Directory, "."),
                1 => (self.parent, Kind::Directory, ".."),
                at => {
                    let (name, kind) = self.entries.get(usize::try_from(at - 2).ok()?)?;
                    (inodes::number(self.ino, name), kind, name)
                }
            };
            Some((ino, at + 1, kind, name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Entry;

    #[test]
    fn a_listing_goes_on_where_it_stopped() {
        let entry = |name: &str| Entry {
            name: name.to_owned(),
            kind: Kind::File,
        };
        let listing = Listing::new(5, 1, Entries::Few(vec![entry("a"), entry("b")]));
        let names = |offset| {
            listing
                .from(offset)
                .map(|(_, next, _, name)| (name.to_owned(), next))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(0)
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            [".", "..", "a", "b"]
        );
        assert_eq!(names(3), [("b".to_owned(), 4)]);
        assert_eq!(names(4), []);
        assert_eq!(names(u64::MAX), []);
    }
}
