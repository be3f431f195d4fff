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
//! read ahead of: first as much as it asked for, then twice that each time, up to [`MAX_AHEAD`] and the bounds.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use lru::LruCache;
use object_store::path::Path;

use super::store::{Fetched, LARGEST_REQUEST, Part, Refusal, Store};
use super::{StorageError, io_error, web};
use crate::cache::{Cache, CacheKey};

mod windows;

/// Bytes of a block: a range is fetched with at most one of them too many at each end.
const BLOCK: u64 = 16 << 10;

/// Bytes from the end of a file that are fetched when it is opened. Most footers are smaller.
const TAIL: u64 = 64 << 10;

/// Bytes that are read ahead of one reader at most, unless the cache is small.
const MAX_AHEAD: u64 = 16 << 20;

/// Bytes of one request of a large range: several run at once.
const PIECE: u64 = 4 << 20;

/// Files whose state is remembered, at some 300 bytes each.
const MAX_KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(65_535);

/// Readers of one file that are told apart, for reading ahead of each.
const MAX_READERS: usize = 16;

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

/// A request under way, for the blocks that begin in `range`.
#[derive(Debug)]
struct Flight {
    /// Bytes of the file.
    range: Range<u64>,
    outcome: Mutex<Option<Result<Bytes, Refusal>>>,
    ended: Condvar,
}

/// What the first request about a file fetches.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Bytes of the file, as a manifest has it. May be wrong.
    pub size: Option<u64>,
    /// What is read first; the file's end where it is not said.
    pub first: Option<Range<u64>>,
}

/// A file of a store, in one state.
#[derive(Debug)]
pub(super) struct RemoteFile {
    remotes: Arc<Remotes>,
    store: Arc<Store>,
    key: Path,
    state: Arc<State>,
    readers: Mutex<Vec<Reader>>,
}

/// Where a reader has come to.
#[derive(Debug)]
struct Reader {
    /// What it asks for next, if it goes on.
    next: u64,
    /// Up to where it was read ahead of.
    ahead: u64,
    /// Bytes to be read ahead.
    window: u64,
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

impl Flight {
    fn new(range: Range<u64>) -> Self {
        Self {
            range,
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    fn end(&self, outcome: Result<Bytes, Refusal>) {
        let mut slot = lock(&self.outcome);
        slot.get_or_insert(outcome);
        drop(slot);
        self.ended.notify_all();
    }

    fn wait(&self) -> Result<Bytes, Refusal> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = self
                .ended
                .wait(outcome)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Starts what ends `flight`, however it ends.
fn start(flight: &Arc<Flight>, work: impl Future<Output = ()> + Send + 'static) {
    /// Wakes those who wait even if the work panics.
    struct Ending(Arc<Flight>);
    impl Drop for Ending {
        fn drop(&mut self) {
            self.0
                .end(Err(Refusal::Failed("the request was given up".to_owned())));
        }
    }
    let ending = Ending(Arc::clone(flight));
    let started = web::spawn(async move {
        work.await;
        drop(ending);
    });
    if let Err(error) = started {
        flight.end(Err(Refusal::Failed(error.to_string())));
    }
}

fn wait<T>(future: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    web::block_on(future).unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
}

/// A range in pieces of [`PIECE`] bytes at most; their borders are those of blocks.
fn pieces(range: Range<u64>) -> Vec<Range<u64>> {
    let mut pieces = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = ((start / PIECE + 1) * PIECE).min(range.end);
        pieces.push(start..end);
        start = end;
    }
    pieces
}

impl RemoteFile {
    pub(super) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Fills `buffer` from `offset`; the range lies in the file. `bounds` are those of what the reader reads in order,
    /// where it does: it is then read ahead of, up to their end.
    pub(super) fn read(
        self: &Arc<Self>,
        buffer: &mut [u8],
        offset: u64,
        bounds: Option<&Range<u64>>,
        path: &str,
    ) -> Result<(), StorageError> {
        let range = offset..offset + u64::try_from(buffer.len()).unwrap_or(0);
        if range.is_empty() {
            return Ok(());
        }
        let found = self.claim(&range);
        if let Some(ahead) = bounds.and_then(|bounds| self.ahead(&range, bounds)) {
            // After what is wanted now, so that its requests go first.
            self.claim(&ahead);
        }
        for (block, found) in (range.start / BLOCK..).zip(found) {
            let block_start = block * BLOCK;
            let (bytes, start) = match found {
                Found::Kept(bytes) => ((*bytes).clone(), block_start),
                Found::Fetched(flight) => {
                    let bytes = flight.wait().map_err(|refusal| {
                        if matches!(refusal, Refusal::Changed) {
                            self.remotes.forget(&self.state);
                        }
                        refusal.about(path)
                    })?;
                    (bytes, flight.range.start)
                }
            };
            let from = range.start.max(block_start);
            let to = range.end.min(block_start + BLOCK);
            let slice = |start: u64, end: u64| {
                Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            };
            let source = from
                .checked_sub(start)
                .zip(to.checked_sub(start))
                .and_then(|(from, to)| bytes.get(slice(from, to)?));
            let target = slice(from - offset, to - offset).and_then(|at| buffer.get_mut(at));
            match (source, target) {
                (Some(source), Some(target)) => target.copy_from_slice(source),
                _ => {
                    let reason = "a block that is shorter than it should be";
                    return Err(io_error(path, std::io::Error::other(reason)));
                }
            }
        }
        Ok(())
    }

    /// Starts fetching what is not kept of these ranges, for a reader that will soon ask for them. Ranges that lie less
    /// than `gap` bytes apart are fetched as one.
    pub(super) fn prefetch(self: &Arc<Self>, ranges: &[Range<u64>], gap: u64) {
        let mut ranges: Vec<_> = ranges.to_vec();
        ranges.retain(|range| !range.is_empty() && range.end <= self.state.size);
        ranges.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match merged.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(gap) => {
                    last.end = last.end.max(range.end);
                }
                _ => merged.push(range),
            }
        }
        // What would push out what is wanted is not fetched ahead.
        let mut left = self.remotes.max_ahead();
        for range in merged {
            let Some(rest) = left.checked_sub(range.end - range.start) else {
                return;
            };
            left = rest;
            self.claim(&range);
        }
    }

    /// Where each block of a range comes from; requests are started for those that are nowhere.
    fn claim(self: &Arc<Self>, range: &Range<u64>) -> Vec<Found> {
        let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        let serial = self.state.serial;
        let mut found = Vec::new();
        let mut starting = Vec::new();
        let mut in_flight = lock(&self.remotes.in_flight);
        let mut missing: Option<Range<u64>> = None;
        let mut runs = Vec::new();
        for block in blocks.clone() {
            let here = match in_flight.get(&(serial, block)) {
                Some(flight) => Some(Found::Fetched(Arc::clone(flight))),
                None => self.remotes.kept((serial, block)).map(Found::Kept),
            };
            match (&here, &mut missing) {
                (None, Some(run)) => run.end = block + 1,
                (None, None) => missing = Some(block..block + 1),
                (Some(_), _) => runs.extend(missing.take()),
            }
            found.push(here);
        }
        runs.extend(missing);
        for run in runs {
            let bytes = run.start * BLOCK..(run.end * BLOCK).min(self.state.size);
            for piece in pieces(bytes) {
                let flight = Arc::new(Flight::new(piece.clone()));
                for block in piece.start / BLOCK..piece.end.div_ceil(BLOCK) {
                    in_flight.insert((serial, block), Arc::clone(&flight));
                    let slot = usize::try_from(block - blocks.start).ok();
                    if let Some(slot) = slot.and_then(|slot| found.get_mut(slot)) {
                        *slot = Some(Found::Fetched(Arc::clone(&flight)));
                    }
                }
                starting.push(flight);
            }
        }
        drop(in_flight);
        for flight in starting {
            self.fetch(&flight);
        }
        found.into_iter().flatten().collect()
    }

    fn fetch(self: &Arc<Self>, flight: &Arc<Flight>) {
        let landing = Landing {
            file: Arc::clone(self),
            flight: Arc::clone(flight),
            outcome: Err(Refusal::Failed("the request was given up".to_owned())),
        };
        let started = web::spawn(async move {
            let mut landing = landing;
            let (file, range) = (&landing.file, landing.flight.range.clone());
            landing.outcome = match file.disk_or_store(range).await {
                Ok(fetched) if fetched.size != file.state.size => Err(Refusal::Changed),
                Ok(fetched) => {
                    file.remotes.keep(&file.state, &fetched);
                    Ok(fetched.bytes)
                }
                Err(refusal) => Err(refusal),
            };
        });
        if let Err(error) = started {
            tracing::error!(%error, "the runtime cannot be started");
        }
    }

    /// A range whose borders are those of blocks: from the cache on disk what it has, from the store, in one request,
    /// what lies between the first block that is missing there and the last.
    async fn disk_or_store(&self, range: Range<u64>) -> Result<Fetched, Refusal> {
        let (cache, state) = (self.remotes.cache.clone(), Arc::clone(&self.state));
        let version = Some(self.state.version.as_str());
        let Some(cache) = cache.filter(|cache| cache.disk().is_some() && state.is_lasting()) else {
            return self.store.get(&self.key, Part::Range(range), version).await;
        };
        let read = {
            let (cache, range) = (Arc::clone(&cache), range.clone());
            move || windows::read(cache.disk(), &state, range)
        };
        let (before, after) = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        let missing = range.start + len(&before)..range.end - len(&after);
        let mut whole = BytesMut::from(before);
        if !missing.is_empty() {
            let part = Part::Range(missing.clone());
            let fetched = self.store.get(&self.key, part, version).await?;
            if fetched.size != self.state.size || fetched.start != missing.start {
                return Err(Refusal::Changed);
            }
            windows::keep(cache.disk(), &self.state, missing.start, &fetched.bytes);
            if whole.is_empty() && after.is_empty() {
                return Ok(fetched);
            }
            whole.extend_from_slice(&fetched.bytes);
        }
        whole.extend_from_slice(&after);
        Ok(Fetched {
            start: range.start,
            bytes: whole.freeze(),
            size: self.state.size,
            version: self.state.version.clone(),
        })
    }

    /// What is to be read ahead of a reader that asks for `range` within `bounds`.
    fn ahead(&self, range: &Range<u64>, bounds: &Range<u64>) -> Option<Range<u64>> {
        let most = self.remotes.max_ahead();
        let asked = range.end - range.start;
        let mut readers = lock(&self.readers);
        // Formats have small things between what they are read for.
        let goes_on = |reader: &Reader| reader.next.abs_diff(range.start) <= BLOCK;
        let known = readers.iter().position(goes_on);
        let mut reader = match known {
            Some(at) => readers.remove(at),
            None => Reader {
                next: range.start,
                ahead: range.end,
                // One that begins at the beginning will go on.
                window: if range.start == bounds.start {
                    asked
                } else {
                    0
                },
            },
        };
        if readers.len() >= MAX_READERS {
            readers.remove(0);
        }
        reader.next = range.end;
        let end = bounds.end.min(self.state.size);
        let from = reader.ahead.max(range.end);
        // Asked for again when half of it is used up: fewer, larger requests.
        let due = from - range.end <= reader.window / 2;
        let until = range.end.saturating_add(reader.window).min(end);
        let ahead = (due && from < until).then_some(from..until);
        if ahead.is_some() {
            reader.ahead = until;
        }
        if known.is_some() || ahead.is_some() {
            reader.window = reader.window.max(asked).saturating_mul(2).min(most);
        } else {
            reader.window = reader.window.max(asked).min(most);
        }
        if range.end < end {
            readers.push(reader);
        }
        ahead
    }
}

impl Remotes {
    /// Little enough for the cache to keep beside what is wanted.
    fn max_ahead(&self) -> u64 {
        let budget = self.cache.as_ref().map_or(0, |cache| cache.budget());
        MAX_AHEAD.min(u64::try_from(budget / 8).unwrap_or(MAX_AHEAD))
    }
}

/// Ends a flight however it ends. What was kept was so before, so that nobody fetches it again.
struct Landing {
    file: Arc<RemoteFile>,
    flight: Arc<Flight>,
    outcome: Result<Bytes, Refusal>,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let range = &self.flight.range;
        let mut in_flight = lock(&self.file.remotes.in_flight);
        for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            in_flight.remove(&(self.file.state.serial, block));
        }
        drop(in_flight);
        self.flight.end(self.outcome.clone());
    }
}

/// Where a block comes from.
enum Found {
    Kept(Arc<Bytes>),
    Fetched(Arc<Flight>),
}

fn len(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
