//! The same work on many items, on a few threads; and work done ahead of whoever will want it.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// Enough to keep a local disk and the cores busy.
const MAX_THREADS: usize = 8;

/// Enough to have a store's answers come one after the other, though each takes its time.
const WAITING_THREADS: usize = 16;

/// Applies `read` to each item on a few threads; the results are in the order of the items.
pub fn in_parallel<I: Sync, R: Send>(items: &[I], read: impl Fn(&I) -> R + Sync) -> Vec<R> {
    on_threads(cores(), items, read)
}

/// The same on more threads than there are cores, for work that waits for a store.
pub fn in_parallel_waiting<I: Sync, R: Send>(items: &[I], read: impl Fn(&I) -> R + Sync) -> Vec<R> {
    on_threads(WAITING_THREADS, items, read)
}

fn on_threads<I: Sync, R: Send>(
    threads: usize,
    items: &[I],
    read: impl Fn(&I) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter().map(read).collect();
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = read(item);
            results
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((index, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        // This thread is one of them: it begins at once, while the others are started.
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Threads that are worth having.
fn cores() -> usize {
    thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS)
}

/// Work that waits for a thread; what is beyond is not done ahead.
const MAX_WAITING: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// Does work ahead of readers, on as many threads as there are cores, which are started when they are first needed and
/// end when this is dropped. Whoever wants a thing that is not made yet makes it, or waits for its making: that is the
/// business of the [`Cache`](crate::cache::Cache) it is made into.
#[derive(Debug, Default)]
pub struct Ahead {
    queue: OnceLock<Queue>,
}

#[derive(Debug)]
struct Queue {
    jobs: SyncSender<Job>,
    threads: usize,
}

impl Ahead {
    /// How many jobs are done at once.
    pub fn threads(&self) -> usize {
        self.queue().threads
    }

    /// Does a job soon, unless too many wait already; `false`: it is dropped.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.queue().jobs.try_send(Box::new(job)).is_ok()
    }

    fn queue(&self) -> &Queue {
        self.queue.get_or_init(|| {
            let (jobs, waiting) = sync_channel(MAX_WAITING);
            let waiting = Arc::new(Mutex::new(waiting));
            let start = |number: &usize| {
                let waiting = Arc::clone(&waiting);
                let thread = thread::Builder::new().name(format!("bergfs-ahead-{number}"));
                let started = thread.spawn(move || work(&waiting));
                started
                    .inspect_err(|error| tracing::warn!(%error, "a thread could not be started"))
                    .is_ok()
            };
            let threads = (0..cores()).filter(start).count();
            Queue { jobs, threads }
        })
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    let next = || {
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.recv().ok()
    };
    while let Some(job) = next() {
        // Whoever wants what it was to make will make it, and meet the same panic.
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("bug: work done ahead of a reader panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::sync::mpsc::channel;

    #[test]
    fn whoever_asks_for_work_in_parallel_does_a_part_of_it() {
        let threads = 3;
        let all_at_once = Barrier::new(threads);
        let on = on_threads(threads, &[(); 3], |()| {
            all_at_once.wait();
            thread::current().id()
        });
        assert!(on.contains(&thread::current().id()));
        assert_eq!(on.iter().collect::<HashSet<_>>().len(), threads);
    }

    #[test]
    fn a_job_that_panics_takes_no_thread_with_it() {
        let ahead = Ahead::default();
        let (done, outcome) = channel();
        for _ in 0..2 * ahead.threads() {
            let done = done.clone();
            let job = move || {
                let _ = done.send(());
                std::panic::resume_unwind(Box::new(()))
            };
            assert!(ahead.run(job));
            outcome.recv().unwrap();
        }
        assert!(ahead.run(move || {
            let _ = done.send(());
        }));
        outcome.recv().unwrap();
    }
}
