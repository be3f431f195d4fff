//! One file of a store: its blocks are looked for in the cache and in flight, and fetched where they are nowhere.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use object_store::path::Path;

use super::flight::{Flight, pieces};
use super::{BLOCK, Remotes, State, len, lock, windows};
use crate::storage::store::{Fetched, Part, Refusal, Store};
use crate::storage::{StorageError, io_error, web};

/// Bytes that are read ahead of one reader at most, unless the cache is small.
const MAX_AHEAD: u64 = 16 << 20;

/// Readers of one file that are told apart, for reading ahead of each.
const MAX_READERS: usize = 16;

/// A file of a store, in one state.
#[derive(Debug)]
pub(in crate::storage) struct RemoteFile {
    pub(super) remotes: Arc<Remotes>,
    pub(super) store: Arc<Store>,
    pub(super) key: Path,
    pub(super) state: Arc<State>,
    pub(super) readers: Mutex<Vec<Reader>>,
}

/// Where a reader has come to.
#[derive(Debug)]
pub(super) struct Reader {
    /// What it asks for next, if it goes on.
    next: u64,
    /// Up to where it was read ahead of.
    ahead: u64,
    /// Bytes to be read ahead.
    window: u64,
}

impl RemoteFile {
    pub(in crate::storage) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Fills `buffer` from `offset`; the range lies in the file. `bounds` are those of what the reader reads in order,
    /// where it does: it is then read ahead of, up to their end.
    pub(in crate::storage) fn read(
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
    pub(in crate::storage) fn prefetch(self: &Arc<Self>, ranges: &[Range<u64>], gap: u64) {
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
