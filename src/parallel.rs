//! The same work on many items, on a few threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Enough to keep a local disk and the cores busy.
const MAX_THREADS: usize = 8;

/// Enough to have a store's answers come one after the other, though each takes its time.
const WAITING_THREADS: usize = 16;

/// Applies `read` to each item on a few threads; the results are in the order of the items.
pub fn in_parallel<I: Sync, R: Send>(items: &[I], read: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS);
    on_threads(threads, items, read)
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
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = read(item);
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
