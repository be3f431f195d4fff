//! Files of stores: which state of a file is read, and the blocks of it that are kept.
//!
//! ```text
//! read(range) ─► blocks kept? ─► copied
//!                being fetched? ─► waited for
//!                neither ─► runs of missing blocks ─► requests of at most 8 MiB, at once ─► kept
//! ```
//!
//! **State.** The first answer about a file tells its size and its version (the ETag); both are remembered for the
//! process, and every later answer must agree, or the file has [changed](StorageError::Changed): no byte of one state is
//! ever put beside a byte of another. So opening a file costs one request, which brings its end (a footer lies there)
//! or what else is wanted first, and opening it again costs none.
//!
//! **Blocks** of [`BLOCK`] bytes lie in the process's cache, under its budget. A range is fetched with the blocks that
//! it touches and nothing else, whoever asks; two who ask for one block wait for one request. What is read to be parsed
//! once (manifests) is not kept. What is fetched goes to the cache on disk too, if there is one and the store gave a
//! strong ETag, and is looked for there first.
//!
//! **Ahead.** A reader that goes on where it stopped, within bounds that it knows (a column chunk, a whole file), is
//! read ahead of: first as much as it asked for, then twice that each time, up to a limit and the bounds.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use lru::LruCache;
use object_store::path::Path;

use super::StorageError;
use super::store::{Fetched, LARGEST_REQUEST, Part, Refusal, Store};
use crate::cache::{Cache, CacheKey};

mod file;
mod flight;
mod windows;

pub(super) use file::RemoteFile;
use flight::{Flight, pieces, start, wait};

/// Bytes of a block: a range is fetched with at most one of them too many at each end.
const BLOCK: u64 = 16 << 10;

/// Bytes from the end of a file that are fetched when it is opened. Most footers are smaller.
const TAIL: u64 = 64 << 10;

/// Files whose state is remembered, at some 300 bytes each.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// What is known of the files of all stores, and what is being fetched of them.
#[derive(Debug)]
pub(super) struct Remotes {
    cache: Option<Arc<Cache>>,
    known: Mutex<LruCache<String, Arc<State>>>,
    in_flight: Mutex<HashMap<BlockId, Arc<Flight>>>,
    next_serial: AtomicU64,
}

/// One state of a file. Equal where the file's content is.
pub(super) struct State {
    /// The store's identity and the key.
    name: String,
    /// Bytes.
    pub(super) size: u64,
    version: String,
    /// Names the state in this process.
    serial: u64,
}

impl State {
    /// See [`super::FileIdentity::is_lasting`].
    pub(super) fn is_lasting(&self) -> bool {
        self.version.starts_with('"')
    }

    fn content(&self) -> (&str, u64, &str) {
        (&self.name, self.size, &self.version)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.content().hash(hasher);
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.size, self.version)
    }
}

/// A block of a state of a file.
type BlockId = (u64, u64);

/// What the first request about a file fetches.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Bytes of the file, as a manifest has it. May be wrong.
    pub size: Option<u64>,
    /// What is read first; the file's end where it is not said.
    pub first: Option<Range<u64>>,
}

impl Default for Remotes {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Remotes {
    /// Blocks are kept in `cache`, where there is one.
    pub(super) fn new(cache: Option<Arc<Cache>>) -> Self {
        Self {
            cache,
            known: Mutex::new(LruCache::new(MAX_KNOWN)),
            in_flight: Mutex::default(),
            next_serial: AtomicU64::new(0),
        }
    }

    /// Opens a file. One request, unless it is known; the blocks that it brings are kept.
    pub(super) fn open(
        self: &Arc<Self>,
        store: &Arc<Store>,
        key: &Path,
        expected: &Expected,
    ) -> Result<RemoteFile, Refusal> {
        let name = format!("{} {key}", store.identity());
        let known = lock(&self.known).get(&name).cloned();
        let state = match known {
            Some(state) => state,
            None => self.first_look(store, key, &name, expected)?,
        };
        Ok(RemoteFile {
            remotes: Arc::clone(self),
            store: Arc::clone(store),
            key: key.clone(),
            state,
            readers: Mutex::default(),
        })
    }

    /// A whole file of `max` bytes at most, with its size. Not kept.
    pub(super) fn read_whole(
        self: &Arc<Self>,
        store: &Arc<Store>,
        key: &Path,
        max: u64,
        path: &str,
    ) -> Result<Bytes, StorageError> {
        let about = |refusal: Refusal| refusal.about(path);
        let first = wait(store.get(key, Part::Range(0..LARGEST_REQUEST), None));
        let first = match first {
            // An empty file has no range.
            Err(Refusal::PastEnd) => return Ok(Bytes::new()),
            first => first.map_err(about)?,
        };
        if first.size > max {
            return Err(StorageError::TooLarge {
                path: path.to_owned(),
                size: first.size,
                max,
            });
        }
        let got = len(&first.bytes);
        if got == first.size {
            return Ok(first.bytes);
        }
        let pieces = pieces(got..first.size);
        let running: Vec<Arc<Flight>> = pieces
            .into_iter()
            .map(|range| {
                let flight = Arc::new(Flight::new(range.clone()));
                let (to, store, key) = (Arc::clone(&flight), Arc::clone(store), key.clone());
                let version = first.version.clone();
                start(&flight, async move {
                    let part = store.get(&key, Part::Range(range), Some(&version)).await;
                    to.end(part.map(|part| part.bytes));
                });
                flight
            })
            .collect();
        // Taken as the answers need it: a size alone is no reason for memory.
        let mut whole = BytesMut::from(first.bytes);
        for flight in running {
            whole.extend_from_slice(&flight.wait().map_err(about)?);
        }
        match len(&whole) == first.size {
            true => Ok(whole.freeze()),
            false => Err(about(Refusal::Changed)),
        }
    }

    fn first_look(
        &self,
        store: &Arc<Store>,
        key: &Path,
        name: &str,
        expected: &Expected,
    ) -> Result<Arc<State>, Refusal> {
        let aligned = |range: Range<u64>| range.start / BLOCK * BLOCK..range.end;
        let tail = |size: u64| Part::Range(aligned(size.saturating_sub(TAIL)..size.max(1)));
        let at_end = expected.first.is_none();
        let part = match (&expected.first, expected.size) {
            (Some(first), _) => {
                let blocks = aligned(first.start..first.end.max(first.start.saturating_add(1)));
                let end = blocks.end.div_ceil(BLOCK).saturating_mul(BLOCK);
                Part::Range(blocks.start..end.min(blocks.start.saturating_add(LARGEST_REQUEST)))
            }
            (None, Some(size)) => tail(size),
            (None, None) if store.has_tails() => Part::Tail(TAIL + BLOCK),
            (None, None) => tail(wait(store.size(key))?),
        };
        let mut fetched = wait(store.get(key, part, None));
        if let Err(Refusal::PastEnd) = fetched {
            // The manifest is wrong, or the file is empty.
            fetched = match wait(store.size(key))? {
                0 => return Ok(self.remember(name, 0, "")),
                size => wait(store.get(key, tail(size), None)),
            };
        }
        let mut fetched = fetched?;
        if at_end && fetched.start + len(&fetched.bytes) != fetched.size {
            tracing::debug!(file = %key, size = fetched.size, "a manifest gives another size");
            fetched = wait(store.get(key, tail(fetched.size), Some(&fetched.version)))?;
        }
        let state = self.remember(name, fetched.size, &fetched.version);
        self.keep(&state, &fetched);
        Ok(state)
    }

    fn remember(&self, name: &str, size: u64, version: &str) -> Arc<State> {
        let mut known = lock(&self.known);
        // Another may have looked at the same time; both must go on with one state.
        if let Some(state) = known.get(name)
            && state.size == size
            && state.version == version
        {
            return Arc::clone(state);
        }
        let state = Arc::new(State {
            name: name.to_owned(),
            size,
            version: version.to_owned(),
            serial: self.next_serial.fetch_add(1, Ordering::Relaxed),
        });
        known.put(name.to_owned(), Arc::clone(&state));
        state
    }

    /// A file that has changed is looked at anew when it is opened next.
    fn forget(&self, state: &State) {
        let mut known = lock(&self.known);
        if known.peek(&state.name).is_some_and(|kept| **kept == *state) {
            known.pop(&state.name);
        }
    }

    /// Keeps the whole blocks of what was fetched, the file's last one included.
    fn keep(&self, state: &State, fetched: &Fetched) {
        let Some(cache) = &self.cache else { return };
        let end = fetched.start + len(&fetched.bytes);
        let mut start = fetched.start.next_multiple_of(BLOCK);
        while start < end {
            let stop = (start + BLOCK).min(state.size);
            let from = usize::try_from(start - fetched.start).unwrap_or(usize::MAX);
            let to = usize::try_from(stop - fetched.start).unwrap_or(usize::MAX);
            if let Some(bytes) = fetched.bytes.get(from..to) {
                // Copied: a slice would keep the whole answer.
                let block = Bytes::copy_from_slice(bytes);
                let weight = block.len();
                cache.put(block_key((state.serial, start / BLOCK)), block, weight);
            }
            start += BLOCK;
        }
    }

    fn kept(&self, id: BlockId) -> Option<Arc<Bytes>> {
        self.cache.as_ref()?.get(&block_key(id))
    }
}

fn block_key((serial, index): BlockId) -> CacheKey {
    CacheKey {
        kind: "block",
        id: format!("{serial:x} {index:x}"),
    }
}

fn len(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
