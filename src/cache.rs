//! One byte budget for all that the process keeps in memory: parsed manifests, footers, delete sets, chunks.
//!
//! An entry is made by whoever asks for it first; others who ask meanwhile wait for that one making. No lock is held
//! while an entry is made, so a making may ask the cache for other entries. Entries are weighed in bytes by their
//! makers, and the least recently used go when the sum passes the budget. Keys are content identities, so nothing ever
//! has to be invalidated: what is no longer asked for grows old and goes.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::counters::Counters;

mod budget;
#[cfg(test)]
mod tests;

pub use budget::default_budget;

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
    state: Mutex<State>,
}

type Value = Arc<dyn Any + Send + Sync>;

struct State {
    entries: LruCache<CacheKey, Entry>,
    /// The sum of the entries' weights.
    bytes: usize,
    /// Entries that are being made.
    making: HashMap<CacheKey, Arc<Making>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entries, bytes, making) = (self.entries.len(), self.bytes, self.making.len());
        f.debug_struct("State")
            .field("entries", &entries)
            .field("bytes", &bytes)
            .field("making", &making)
            .finish()
    }
}

struct Entry {
    value: Value,
    /// Bytes, the key's included.
    weight: usize,
}

/// An entry that is being made, for others to wait on.
#[derive(Default)]
struct Making {
    outcome: Mutex<Outcome>,
    ended: Condvar,
}

#[derive(Clone, Default)]
enum Outcome {
    #[default]
    Pending,
    /// Handed to those who waited even if it is too heavy to keep.
    Made(Value),
    /// By an error, which belongs to the caller that made it, or by a panic.
    Failed,
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
            making: HashMap::new(),
        };
        Self {
            budget,
            counters,
            state: Mutex::new(state),
        }
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
                    self.remove(&key);
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
                        outcome: Outcome::Failed,
                        weight: 0,
                    };
                    let (value, weight) = make()?;
                    let value = Arc::new(value);
                    ending.outcome = Outcome::Made(Arc::clone(&value) as Value);
                    ending.weight = weight;
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
        let value: Value = Arc::new(value);
        let dropped = self.lock().keep(key, Entry { value, weight }, self.budget);
        drop(dropped);
    }

    /// Bytes kept now.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Bytes that may be kept.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Drops every entry. Entries that are being made are kept once made.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.bytes = 0;
        let dropped = std::mem::replace(&mut state.entries, LruCache::unbounded());
        drop(state);
        drop(dropped);
    }

    fn turn(&self, key: &CacheKey) -> Turn {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get(key) {
            return Turn::Found(Arc::clone(&entry.value));
        }
        if let Some(making) = state.making.get(key) {
            return Turn::Wait(Arc::clone(making));
        }
        let making = Arc::new(Making::default());
        state.making.insert(key.clone(), Arc::clone(&making));
        Turn::Make(making)
    }

    fn remove(&self, key: &CacheKey) {
        let mut state = self.lock();
        let removed = state.entries.pop(key);
        state.bytes -= removed.as_ref().map_or(0, |entry| entry.weight);
        drop(state);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs while the lock is held, so the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps an entry, and gives back those that had to go for it.
    fn keep(&mut self, key: CacheKey, entry: Entry, budget: usize) -> Vec<Entry> {
        let mut dropped = Vec::new();
        if entry.weight > budget {
            return dropped;
        }
        self.bytes += entry.weight;
        if let Some((_, replaced)) = self.entries.push(key, entry) {
            self.bytes -= replaced.weight;
            dropped.push(replaced);
        }
        while self.bytes > budget
            && let Some((_, oldest)) = self.entries.pop_lru()
        {
            self.bytes -= oldest.weight;
            dropped.push(oldest);
        }
        dropped
    }
}

impl Making {
    /// Waits for the making to end. `None`: it failed.
    fn wait(&self) -> Option<Value> {
        let mut outcome = self.lock();
        loop {
            match &*outcome {
                Outcome::Pending => {
                    outcome = self
                        .ended
                        .wait(outcome)
                        .unwrap_or_else(PoisonError::into_inner)
                }
                Outcome::Made(value) => return Some(Arc::clone(value)),
                Outcome::Failed => return None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a making however it ends, a panic included: keeps what was made and wakes those who wait.
struct Ending<'c> {
    cache: &'c Cache,
    key: CacheKey,
    making: Arc<Making>,
    outcome: Outcome,
    weight: usize,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let weight = self
            .weight
            .saturating_add(ENTRY_OVERHEAD)
            .saturating_add(self.key.id.len());
        let mut state = self.cache.lock();
        state.making.remove(&self.key);
        let dropped = match &self.outcome {
            Outcome::Made(value) => {
                let entry = Entry {
                    value: Arc::clone(value),
                    weight,
                };
                state.keep(self.key.clone(), entry, self.cache.budget)
            }
            Outcome::Pending | Outcome::Failed => Vec::new(),
        };
        drop(state);
        *self.making.lock() = std::mem::take(&mut self.outcome);
        self.making.ended.notify_all();
        // Freed last and without a lock: an entry may be large.
        drop(dropped);
    }
}

/// Bytes an entry takes beside its own weight and its key's text: the list node, the hash table's slot, the `Arc`.
const ENTRY_OVERHEAD: usize = 160;
