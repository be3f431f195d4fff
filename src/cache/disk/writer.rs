//! The thread that writes entries and keeps the budget, so that no reader waits for either.
//!
//! Jobs wait in a queue that is bounded by the memory they keep; what does not fit is dropped, and made again by whoever
//! wants it later. A disk that is full or broken is noticed here: room is made, then writing rests for a while. Nobody
//! else learns of it but by one line in the log.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::super::Tag;
use super::directory::{Directory, EntryName, Listed, Totals};
use super::entry::{self, Payload};
use crate::counters::Counters;

/// Bytes of memory that waiting entries may keep: some of the largest pieces, and little beside the memory cache.
const QUEUE_BYTES: u64 = 32 << 20;

/// Jobs that may wait. A job in the queue takes some hundred bytes beside its entry.
const QUEUE_JOBS: usize = 4096;

/// The share of the budget that is free after room was made: making room lists the directory, which must be rare.
const FREED: u64 = 10;

/// The share of the budget that is written before the directory is listed again: other processes write too.
const LISTED_AFTER: u64 = 8;

/// The directory is listed again after this time, if anything is written.
const LISTED_EVERY: Duration = Duration::from_secs(600);

/// How long writing rests after an error. A full disk does not get emptier by trying.
const REST: Duration = Duration::from_secs(30);

/// How often the totals are written, if they have changed.
const TOTALS_EVERY: Duration = Duration::from_secs(10);

/// Entries that are kept at most: listing more takes seconds, and tens of megabytes of memory.
const MAX_ENTRIES: usize = 1 << 18;

/// Kept free on the file system for others: a twentieth of it, or this where that is less.
const MAX_RESERVE: u64 = 5 << 30;

#[derive(Debug)]
pub(super) enum Job {
    Write {
        name: EntryName,
        /// The key.
        text: String,
        payload: Payload,
    },
    /// An entry in the place of the one there is.
    Update {
        name: EntryName,
        text: String,
        memory: u64,
        update: Update,
    },
    /// The live tags of one table.
    Prune(Arc<HashSet<Tag>>),
    /// What was counted is to be written now.
    Totals,
}

/// What makes an entry of another.
pub(super) struct Update(pub(super) Box<dyn FnOnce(Option<Bytes>) -> Bytes + Send>);

impl std::fmt::Debug for Update {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Update")
    }
}

impl Job {
    fn memory(&self) -> u64 {
        match self {
            Job::Write { payload, .. } => payload.memory(),
            Job::Update { memory, .. } => *memory,
            Job::Prune(_) | Job::Totals => 0,
        }
    }
}

/// The queue's end that jobs are put in.
#[derive(Debug)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    idle: Condvar,
    /// On disk, as far as this process knows.
    bytes: AtomicU64,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The sum of what the jobs keep in memory.
    memory: u64,
    busy: bool,
    closed: bool,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(
        directory: &Arc<Directory>,
        budget: u64,
        counters: &Arc<Counters>,
    ) -> Writer {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                // Until the directory has been listed.
                busy: true,
                ..Queue::default()
            }),
            wake: Condvar::new(),
            idle: Condvar::new(),
            bytes: AtomicU64::new(0),
            counters: Arc::clone(counters),
        });
        let keeper = Keeper {
            shared: Arc::clone(&shared),
            directory: Arc::clone(directory),
            budget,
            listed: None,
            written: 0,
            entries: 0,
            rests: None,
            told: Totals::default(),
            told_at: Instant::now(),
        };
        let started = std::thread::Builder::new()
            .name("disk cache".to_owned())
            .spawn(move || keeper.run());
        if let Err(error) = started {
            tracing::warn!(%error, "nothing is written to the disk cache");
            let mut queue = shared.lock();
            (queue.closed, queue.busy) = (true, false);
        }
        Writer(shared)
    }

    pub(super) fn push(&self, job: Job) {
        let memory = job.memory();
        let mut queue = self.0.lock();
        let full =
            queue.memory.saturating_add(memory) > QUEUE_BYTES || queue.jobs.len() >= QUEUE_JOBS;
        if full || queue.closed {
            drop(queue);
            self.0.counters.disk_cache_dropped.add(1);
            return;
        }
        queue.memory += memory;
        queue.jobs.push_back(job);
        drop(queue);
        self.0.wake.notify_one();
    }

    pub(super) fn settle(&self, limit: Duration) {
        self.push(Job::Totals);
        let until = Instant::now() + limit;
        let mut queue = self.0.lock();
        while queue.busy || !queue.jobs.is_empty() {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                return;
            };
            let waited = self.0.idle.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread ends behind its job. A file that the process's end leaves half written is swept away later.
        self.0.lock().closed = true;
        self.0.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job. `None`, where `tick` passes without one. `Err`: there will be none.
    fn next(&self, tick: Duration) -> Result<Option<Job>, ()> {
        let mut queue = self.lock();
        queue.busy = false;
        if queue.jobs.is_empty() {
            self.idle.notify_all();
        }
        if queue.jobs.is_empty() && !queue.closed {
            let waited = self.wake.wait_timeout(queue, tick);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if queue.closed {
            return Err(());
        }
        let job = queue.jobs.pop_front();
        queue.busy = job.is_some();
        queue.memory -= job.as_ref().map_or(0, Job::memory);
        Ok(job)
    }
}

/// What the thread knows.
struct Keeper {
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    /// Bytes on disk.
    budget: u64,
    /// When the directory was listed last.
    listed: Option<Instant>,
    /// Bytes that this process has written since.
    written: u64,
    /// How many entries there are.
    entries: usize,
    /// Writing failed: until when it rests.
    rests: Option<Instant>,
    /// What the totals hold of this process's counters.
    told: Totals,
    told_at: Instant,
}

impl Keeper {
    fn run(mut self) {
        self.guarded(|keeper| {
            keeper.directory.sweep();
            keeper.directory.remove_older();
            keeper.make_room(0);
        });
        while let Ok(job) = self.shared.next(TOTALS_EVERY) {
            if let Some(job) = job {
                self.guarded(|keeper| keeper.work(job));
            }
            if self.told_at.elapsed() >= TOTALS_EVERY {
                self.guarded(Keeper::tell_totals);
            }
        }
        self.guarded(Keeper::tell_totals);
    }

    fn guarded(&mut self, work: impl FnOnce(&mut Keeper)) {
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            tracing::error!("bug: writing to the disk cache panicked");
        }
    }

    fn work(&mut self, job: Job) {
        match job {
            Job::Write {
                name,
                text,
                payload,
            } => {
                if !self.directory.holds(&name) {
                    self.write(&name, &text, payload);
                }
            }
            Job::Update {
                name, text, update, ..
            } => {
                let known = self.directory.entry(&name).ok().flatten();
                let known = known
                    .and_then(|mut opened| entry::read(&mut opened.file, opened.size, &text).ok());
                let entry = update.0(known);
                self.write(&name, &text, Payload::Parts(vec![entry]));
            }
            Job::Prune(live) => self.prune(&live),
            Job::Totals => self.tell_totals(),
        }
    }

    fn write(&mut self, name: &EntryName, text: &str, payload: Payload) {
        if self.rests.is_some_and(|until| Instant::now() < until) {
            return self.shared.counters.disk_cache_dropped.add(1);
        }
        let len = entry::taken(text, &payload);
        if len > self.budget / 2 {
            // One that takes the place of most others.
            return self.shared.counters.disk_cache_dropped.add(1);
        }
        let due = self.listed.is_none_or(|at| at.elapsed() >= LISTED_EVERY)
            || self.written > self.budget / LISTED_AFTER
            || self.entries >= MAX_ENTRIES
            || self.bytes().saturating_add(len) > self.budget;
        if due || self.missing_room(len) > 0 {
            self.make_room(len);
        }
        if self.missing_room(len) > 0 {
            return self.rest(&io::ErrorKind::StorageFull.into());
        }
        match self.write_new(name, text, payload) {
            Ok(blocks) => {
                self.shared.counters.disk_cache_writes.add(1);
                self.shared.bytes.fetch_add(blocks, Ordering::Relaxed);
                self.written += blocks;
                self.entries += 1;
                self.rests = None;
            }
            // What was to be written could not be read.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.shared.counters.disk_cache_dropped.add(1);
            }
            Err(error) => {
                // Room is made for what comes after the rest.
                let least = self.budget / 8;
                self.evict(self.bytes().saturating_sub(least.max(len)));
                self.rest(&error);
            }
        }
    }

    fn write_new(&self, name: &EntryName, text: &str, payload: Payload) -> io::Result<u64> {
        let mut new = self.directory.new_file()?;
        let written = entry::write(&mut new.file, text, payload)
            .and_then(|()| self.directory.keep(&new, name));
        if written.is_err() {
            self.directory.discard(new);
        }
        written
    }

    /// Writing rests for a while.
    fn rest(&mut self, error: &io::Error) {
        self.shared.counters.disk_cache_dropped.add(1);
        if self.rests.is_none() {
            let directory = self.directory.path().display();
            tracing::warn!(%error, %directory, "the disk cache takes no more for now");
        }
        self.rests = Some(Instant::now() + REST);
    }

    fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Bytes that are missing for `len` more to leave the file system with what is kept free.
    fn missing_room(&self, len: u64) -> u64 {
        let Ok((size, free)) = self.directory.room() else {
            return 0;
        };
        let reserve = (size / 20).min(MAX_RESERVE);
        reserve.saturating_add(len).saturating_sub(free)
    }

    /// Lists the directory, and deletes the oldest entries where `len` more bytes would be too many.
    fn make_room(&mut self, len: u64) {
        let (room, budget) = (self.missing_room(len), self.budget);
        let spare = budget / FREED;
        self.evict_listed(|bytes| {
            let target = if bytes.saturating_add(len) > budget {
                (budget - spare).saturating_sub(len)
            } else {
                bytes
            };
            match room {
                0 => target,
                room => target.min(bytes.saturating_sub(room.saturating_add(spare))),
            }
        });
    }

    /// Deletes the oldest entries until so many bytes are left.
    fn evict(&mut self, target: u64) {
        self.evict_listed(|_| target);
    }

    /// `target` gives how many bytes may be left, of so many.
    fn evict_listed(&mut self, target: impl FnOnce(u64) -> u64) {
        let mut listed = match self.directory.list() {
            Ok(listed) => listed,
            Err(error) => {
                tracing::debug!(%error, "the disk cache cannot be listed");
                return;
            }
        };
        let mut bytes = listed
            .iter()
            .map(|entry| entry.blocks)
            .fold(0, u64::saturating_add);
        let mut entries = listed.len();
        let target = target(bytes);
        let most = match entries {
            MAX_ENTRIES.. => MAX_ENTRIES - MAX_ENTRIES / 10,
            _ => MAX_ENTRIES,
        };
        if bytes > target || entries > most {
            listed.sort_unstable_by_key(|entry| entry.used);
            for Listed { name, blocks, .. } in &listed {
                if bytes <= target && entries <= most {
                    break;
                }
                if self.directory.remove(name) {
                    self.shared.counters.disk_cache_evicted.add(1);
                }
                bytes -= blocks;
                entries -= 1;
            }
        }
        self.shared.bytes.store(bytes, Ordering::Relaxed);
        self.listed = Some(Instant::now());
        (self.written, self.entries) = (0, entries);
    }

    fn prune(&self, live: &HashSet<Tag>) {
        let Some(of) = live.iter().next() else {
            return;
        };
        for entry in self.directory.list().unwrap_or_default() {
            let tag = entry.name.tag();
            if tag.same_table(*of) && !live.contains(&tag) {
                self.directory.age(&entry.name);
                self.shared.counters.disk_cache_pruned.add(1);
            }
        }
    }

    fn tell_totals(&mut self) {
        self.told_at = Instant::now();
        let counters = &self.shared.counters;
        let now = Totals {
            hits: counters.disk_cache_hits.get(),
            misses: counters.disk_cache_misses.get(),
        };
        let more = Totals {
            hits: now.hits.saturating_sub(self.told.hits),
            misses: now.misses.saturating_sub(self.told.misses),
        };
        if more != Totals::default() && self.directory.add_totals(more).unwrap_or(true) {
            self.told = now;
        }
    }
}
