//! One byte budget for all that the process keeps in memory: parsed manifests, footers, delete sets, chunks; behind it
//! a budget for what has gone to the spill file, and, where the user wants one, a cache on [`disk`].
//!
//! An entry is made by whoever asks for it first; others who ask meanwhile wait for that one making. No lock is held
//! while an entry is made, so a making may ask the cache for other entries. Entries are weighed in bytes by their
//! makers, and the least recently used go when the sum passes the budget. Keys are content identities, so nothing ever
//! has to be invalidated: what is no longer asked for grows old and goes.
//!
//! What is dear to make does not go at once: its maker says how it is spilled, and it stays, by another weight, as long
//! as the spill's budget allows ([`Cache::get_or_spill`]). One that would take a large share of the memory goes there
//! directly. The making of an entry may look into the cache on disk first ([`Cache::disk`]).

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::counters::Counters;

mod budget;
pub mod disk;
pub mod identity;
mod state;
mod tag;
#[cfg(test)]
mod tests;

pub use budget::default_budget;
pub use tag::Tag;

use disk::DiskCache;
use state::{ENTRY_OVERHEAD, Entry, Making, Outcome, SpillValue, Spilt, State, Value};

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
pub struct Cache {
    /// Bytes.
    budget: usize,
    counters: Arc<Counters>,
    disk: Option<DiskCache>,
    state: Mutex<State>,
}

/// How an entry that is being made will be kept.
struct Keeping {
    /// Bytes of memory, or of the spill file.
    place: Place,
    tag: Tag,
    spill: Option<SpillValue>,
}

#[derive(Clone, Copy)]
enum Place {
    Memory(usize),
    Spill(u64),
}

/// What a look at the state tells a caller to do.
enum Turn {
    Found(Value),
    Wait(Arc<Making>),
    Make(Arc<Making>),
}

impl Cache {
    /// A cache of `budget` bytes; hits and misses are counted in `counters`.
    pub fn new(budget: usize, counters: Arc<Counters>) -> Self {
        let state = State {
            entries: LruCache::unbounded(),
            bytes: 0,
            reserved: 0,
            spilled: LruCache::unbounded(),
            spilled_bytes: 0,
            making: HashMap::new(),
        };
        Self {
            budget,
            counters,
            disk: None,
            state: Mutex::new(state),
        }
    }

    /// With a cache on disk for what those who make entries put there.
    pub fn on_disk(mut self, disk: DiskCache) -> Self {
        self.disk = Some(disk);
        self
    }

    /// The cache on disk, if the user wants one.
    pub fn disk(&self) -> Option<&DiskCache> {
        self.disk.as_ref()
    }

    /// The entry under `key`, made by `make` (which gives it with its weight in bytes) where it is not kept.
    /// Callers that ask for one key at once wait for one `make`; an error is given to that caller alone and not kept.
    ///
    /// An entry heavier than the whole budget is handed out and not kept. `make` must not ask for the key it makes.
    pub fn get_or_make<T: Any + Send + Sync, E>(
        &self,
        key: CacheKey,
        make: impl FnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        self.fetch(key, || {
            let (value, weight) = make()?;
            let keeping = Keeping {
                place: Place::Memory(weight),
                tag: Tag::NONE,
                spill: None,
            };
            Ok((value, keeping))
        })
    }

    /// As [`Cache::get_or_make`], for an entry that is dear to make: when memory is short, `spill` gives it in a form
    /// that lies in the spill file, with its bytes there, and it is kept so. `tag` says which data file it is of.
    pub fn get_or_spill<T: Any + Send + Sync, E>(
        &self,
        key: CacheKey,
        tag: Tag,
        make: impl FnOnce() -> Result<(T, usize), E>,
        spill: impl Fn(&T) -> Option<(T, u64)> + Send + Sync + 'static,
    ) -> Result<Arc<T>, E> {
        let spill: SpillValue = Arc::new(move |value: &Value| {
            let (value, bytes) = spill(value.downcast_ref()?)?;
            Some((Arc::new(value) as Value, bytes))
        });
        self.fetch(key, || {
            let (value, weight) = make()?;
            let keeping = Keeping {
                place: Place::Memory(weight),
                tag,
                spill: Some(spill),
            };
            Ok((value, keeping))
        })
    }

    /// As [`Cache::get_or_make`], for an entry that lies in the spill file from the start: `make` gives its bytes there.
    pub fn get_or_write<T: Any + Send + Sync, E>(
        &self,
        key: CacheKey,
        tag: Tag,
        make: impl FnOnce() -> Result<(T, u64), E>,
    ) -> Result<Arc<T>, E> {
        self.fetch(key, || {
            let (value, bytes) = make()?;
            let keeping = Keeping {
                place: Place::Spill(bytes),
                tag,
                spill: None,
            };
            Ok((value, keeping))
        })
    }

    fn fetch<T: Any + Send + Sync, E>(
        &self,
        key: CacheKey,
        make: impl FnOnce() -> Result<(T, Keeping), E>,
    ) -> Result<Arc<T>, E> {
        loop {
            match self.turn(&key) {
                Turn::Found(value) => {
                    if let Ok(value) = value.downcast() {
                        self.counters.cache_hits.add(1);
                        return Ok(value);
                    }
                    // Two types under one kind: a mistake of ours, which costs the entry and nothing else.
                    debug_assert!(
                        false,
                        "cache entries of kind {} have more than one type",
                        key.kind
                    );
                    self.forget(&key);
                }
                Turn::Wait(making) => {
                    if let Some(value) = making.wait().and_then(|value| value.downcast().ok()) {
                        self.counters.cache_hits.add(1);
                        return Ok(value);
                    }
                }
                Turn::Make(making) => {
                    self.counters.cache_misses.add(1);
                    let mut ending = Ending {
                        cache: self,
                        key,
                        making,
                        outcome: None,
                    };
                    let (value, keeping) = make()?;
                    let value = Arc::new(value);
                    ending.outcome = Some((Arc::clone(&value) as Value, keeping));
                    return Ok(value);
                }
            }
        }
    }

    /// The entry under `key`, where it is kept. Counts neither as a hit nor as a miss.
    pub fn get<T: Any + Send + Sync>(&self, key: &CacheKey) -> Option<Arc<T>> {
        let mut state = self.lock();
        let value = Arc::clone(&state.entries.get(key)?.value);
        drop(state);
        value.downcast().ok()
    }

    /// Keeps an entry that was made without being asked for, of `weight` bytes.
    pub fn put<T: Any + Send + Sync>(&self, key: CacheKey, value: T, weight: usize) {
        let weight = weight
            .saturating_add(ENTRY_OVERHEAD)
            .saturating_add(key.id.len());
        let entry = Entry {
            value: Arc::new(value),
            weight,
            tag: Tag::NONE,
            spill: None,
        };
        let dropped = self.lock().keep(key, entry, self.budget);
        self.spill(dropped);
    }

    /// Bytes kept now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Bytes that may be kept.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Whether an entry is kept, or being made.
    pub fn has(&self, key: &CacheKey) -> bool {
        let state = self.lock();
        state.entries.contains(key) || state.spilled.contains(key) || state.making.contains_key(key)
    }

    /// Gives bytes of the budget away to who holds something of that size outside of the cache, which keeps less for as
    /// long. `None`: half of the budget is given away.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let mut state = self.lock();
        let reserved = state.reserved.saturating_add(bytes);
        if reserved > self.budget / 2 {
            return None;
        }
        state.reserved = reserved;
        let dropped = state.shrink(self.budget);
        drop(state);
        self.spill(dropped);
        Some(Reservation {
            cache: Arc::clone(self),
            bytes,
        })
    }

    /// Bytes kept in the spill file now.
    pub fn spilled_bytes(&self) -> u64 {
        self.lock().spilled_bytes
    }

    /// Drops every entry. Entries that are being made are kept once made.
    pub fn clear(&self) {
        let mut state = self.lock();
        (state.bytes, state.spilled_bytes) = (0, 0);
        let entries = std::mem::replace(&mut state.entries, LruCache::unbounded());
        let spilled = std::mem::replace(&mut state.spilled, LruCache::unbounded());
        drop(state);
        drop((entries, spilled));
    }

    /// Drops an entry that turned out to be of no use.
    pub fn forget(&self, key: &CacheKey) {
        let mut state = self.lock();
        let removed = (state.entries.pop(key), state.spilled.pop(key));
        state.bytes -= removed.0.as_ref().map_or(0, |entry| entry.weight);
        state.spilled_bytes -= removed.1.as_ref().map_or(0, |entry| entry.bytes);
        drop(state);
        drop(removed);
    }

    /// Lets those entries go first, here and on disk, that are of the same table as the tags in `live` (of which there
    /// must be one) and none of those: no live snapshot's manifests lead to them.
    pub fn prune(&self, live: &Arc<HashSet<Tag>>) {
        let Some(of) = live.iter().next() else {
            return;
        };
        let is_dead = |tag: Tag| tag.same_table(*of) && !live.contains(&tag);
        let mut state = self.lock();
        let dead = |(key, tag): (&CacheKey, Tag)| is_dead(tag).then(|| key.clone());
        let entries = state.entries.iter().map(|(key, entry)| (key, entry.tag));
        let entries: Vec<CacheKey> = entries.filter_map(dead).collect();
        let spilled = state.spilled.iter().map(|(key, entry)| (key, entry.tag));
        let spilled: Vec<CacheKey> = spilled.filter_map(dead).collect();
        for key in &entries {
            state.entries.demote(key);
        }
        for key in &spilled {
            state.spilled.demote(key);
        }
        drop(state);
        if let Some(disk) = &self.disk {
            disk.prune(Arc::clone(live));
        }
    }

    fn turn(&self, key: &CacheKey) -> Turn {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get(key) {
            return Turn::Found(Arc::clone(&entry.value));
        }
        if let Some(entry) = state.spilled.get(key) {
            return Turn::Found(Arc::clone(&entry.value));
        }
        if let Some(making) = state.making.get(key) {
            return Turn::Wait(Arc::clone(making));
        }
        let making = Arc::new(Making::default());
        state.making.insert(key.clone(), Arc::clone(&making));
        Turn::Make(making)
    }

    /// Moves entries that memory has no room for to the spill file. Meanwhile they are found as entries that have just
    /// been made.
    fn spill(&self, dropped: Vec<(CacheKey, Entry)>) {
        for (key, entry) in dropped {
            let Some(spill) = &entry.spill else {
                continue;
            };
            // A spill that panics costs the entry.
            let spilled = catch_unwind(AssertUnwindSafe(|| spill(&entry.value)));
            let mut state = self.lock();
            state.making.remove(&key);
            let gone = match spilled {
                Ok(Some((value, bytes))) => {
                    self.counters.cache_spilled.add(1);
                    let tag = entry.tag;
                    state.keep_spilled(key, Spilt { value, bytes, tag })
                }
                _ => Vec::new(),
            };
            drop(state);
            drop(gone);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs while the lock is held, so the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a cache's budget that are given away, until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    cache: Arc<Cache>,
    bytes: usize,
}

impl Reservation {
    /// Gives back all but so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        self.bytes -= back;
        self.cache.lock().reserved -= back;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// Ends a making however it ends, a panic included: keeps what was made and wakes those who wait.
struct Ending<'c> {
    cache: &'c Cache,
    key: CacheKey,
    making: Arc<Making>,
    /// `None`: it failed.
    outcome: Option<(Value, Keeping)>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let own = ENTRY_OVERHEAD.saturating_add(self.key.id.len());
        let mut state = self.cache.lock();
        state.making.remove(&self.key);
        let (mut dropped, mut gone) = (Vec::new(), Vec::new());
        let outcome = match self.outcome.take() {
            Some((value, Keeping { place, tag, spill })) => {
                let key = self.key.clone();
                let outcome = Outcome::Made(Arc::clone(&value));
                match place {
                    Place::Memory(weight) => {
                        let entry = Entry {
                            value,
                            weight: weight.saturating_add(own),
                            tag,
                            spill,
                        };
                        dropped = state.keep(key, entry, self.cache.budget);
                    }
                    Place::Spill(bytes) => {
                        gone = state.keep_spilled(key, Spilt { value, bytes, tag });
                    }
                }
                outcome
            }
            None => Outcome::Failed,
        };
        drop(state);
        *self.making.lock() = outcome;
        self.making.ended.notify_all();
        // Freed last and without a lock: an entry may be large.
        drop(gone);
        self.cache.spill(dropped);
    }
}
