//! What the cache holds, under its lock: entries in memory, what lies in the spill file, and what is being made.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::{CacheKey, Tag};

pub(super) type Value = Arc<dyn Any + Send + Sync>;

/// Gives an entry in the form that it has once it is spilled, with its bytes in the spill file. `None`: it cannot be.
pub(super) type SpillValue = Arc<dyn Fn(&Value) -> Option<(Value, u64)> + Send + Sync>;

pub(super) struct State {
    pub(super) entries: LruCache<CacheKey, Entry>,
    /// The sum of the entries' weights.
    pub(super) bytes: usize,
    /// Of the budget, for what is held elsewhere ([`Cache::reserve`](super::Cache::reserve)).
    pub(super) reserved: usize,
    /// What lies in the spill file.
    pub(super) spilled: LruCache<CacheKey, Spilt>,
    /// The sum of their bytes there.
    pub(super) spilled_bytes: u64,
    /// Entries that are being made.
    pub(super) making: HashMap<CacheKey, Arc<Making>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (entries, bytes, making) = (self.entries.len(), self.bytes, self.making.len());
        f.debug_struct("State")
            .field("entries", &entries)
            .field("bytes", &bytes)
            .field("spilled", &self.spilled.len())
            .field("spilled_bytes", &self.spilled_bytes)
            .field("making", &making)
            .finish()
    }
}

pub(super) struct Entry {
    pub(super) value: Value,
    /// Bytes, the key's included.
    pub(super) weight: usize,
    pub(super) tag: Tag,
    pub(super) spill: Option<SpillValue>,
}

pub(super) struct Spilt {
    pub(super) value: Value,
    /// In the spill file.
    pub(super) bytes: u64,
    pub(super) tag: Tag,
}

/// An entry that is being made, for others to wait on.
#[derive(Default)]
pub(super) struct Making {
    pub(super) outcome: Mutex<Outcome>,
    pub(super) ended: Condvar,
}

#[derive(Clone, Default)]
pub(super) enum Outcome {
    #[default]
    Pending,
    /// Handed to those who waited even if it is too heavy to keep.
    Made(Value),
    /// By an error, which belongs to the caller that made it, or by a panic.
    Failed,
}

impl State {
    /// Keeps an entry, and gives back those that had to go for it. Those that can be spilled are to be: until then they
    /// stand among what is being made.
    pub(super) fn keep(
        &mut self,
        key: CacheKey,
        entry: Entry,
        budget: usize,
    ) -> Vec<(CacheKey, Entry)> {
        let mut dropped = Vec::new();
        let most = match entry.spill {
            Some(_) => budget / LARGE,
            None => budget,
        };
        if entry.weight > most {
            dropped.push((key, entry));
        } else {
            self.bytes += entry.weight;
            if let Some((key, mut replaced)) = self.entries.push(key, entry) {
                self.bytes -= replaced.weight;
                replaced.spill = None;
                dropped.push((key, replaced));
            }
        }
        self.note_spilling(&dropped);
        dropped.extend(self.shrink(budget));
        dropped
    }

    /// Takes out what the budget has no room for.
    pub(super) fn shrink(&mut self, budget: usize) -> Vec<(CacheKey, Entry)> {
        let mut dropped = Vec::new();
        while self.bytes.saturating_add(self.reserved) > budget
            && let Some((key, oldest)) = self.entries.pop_lru()
        {
            self.bytes -= oldest.weight;
            dropped.push((key, oldest));
        }
        self.note_spilling(&dropped);
        dropped
    }

    /// Entries that are going to be spilled stand among those that are being made.
    fn note_spilling(&mut self, dropped: &[(CacheKey, Entry)]) {
        for (key, entry) in dropped {
            if entry.spill.is_some() {
                let making = Making::made(Arc::clone(&entry.value));
                self.making.insert(key.clone(), Arc::new(making));
            }
        }
    }

    /// Keeps an entry that lies in the spill file, and gives back those that had to go for it.
    pub(super) fn keep_spilled(&mut self, key: CacheKey, mut entry: Spilt) -> Vec<Spilt> {
        let mut dropped = Vec::new();
        entry.bytes = entry.bytes.max(LEAST_SPILLED);
        if entry.bytes > SPILL_BUDGET {
            return dropped;
        }
        self.spilled_bytes += entry.bytes;
        if let Some((_, replaced)) = self.spilled.push(key, entry) {
            self.spilled_bytes -= replaced.bytes;
            dropped.push(replaced);
        }
        while self.spilled_bytes > SPILL_BUDGET
            && let Some((_, oldest)) = self.spilled.pop_lru()
        {
            self.spilled_bytes -= oldest.bytes;
            dropped.push(oldest);
        }
        dropped
    }
}

impl Making {
    /// One that has ended well.
    pub(super) fn made(value: Value) -> Making {
        Making {
            outcome: Mutex::new(Outcome::Made(value)),
            ended: Condvar::new(),
        }
    }

    /// Waits for the making to end. `None`: it failed.
    pub(super) fn wait(&self) -> Option<Value> {
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

    pub(super) fn lock(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes an entry takes beside its own weight and its key's text: the list node, the hash table's slot, the `Arc`.
pub(super) const ENTRY_OVERHEAD: usize = 160;

/// An entry that can be spilled is, at once, if it would take more than this share of the memory: a few such would drive
/// out everything else.
const LARGE: usize = 4;

/// Bytes of the spill file that entries may take: the converted files and transcoded chunks of a few queries. What the
/// file system lacks for it is not taken (`storage::Spill`).
const SPILL_BUDGET: u64 = 4 << 30;

/// Bytes that a spilled entry counts for at least, so that those that are kept take little memory.
const LEAST_SPILLED: u64 = 64 << 10;
