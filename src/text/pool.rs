//! The threads that render ahead of readers and size texts.

use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Each thread takes some megabytes of memory while it renders.
const MAX_THREADS: usize = 8;

/// Work that waits for a thread, rendered ahead of readers; beyond it readers render for themselves.
const MAX_AHEAD: usize = 256;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// A long work that is handed out in parts.
pub(super) trait Task: Send + Sync {
    /// The next part, if there is one.
    fn next(self: Arc<Self>) -> Next;
}

/// What a task has to do.
pub(super) enum Next {
    Part(Job),
    /// Nothing before one of the parts that have been handed out ends.
    Later,
    /// All has been handed out.
    Nothing,
}

/// As many threads as there are cores. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: usize,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Comes before the tasks: a reader waits for it.
    ahead: VecDeque<Job>,
    /// Take turns, so that a long one does not hold up a short one.
    tasks: VecDeque<Arc<dyn Task>>,
    /// Threads at work.
    busy: usize,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("ahead", &self.ahead.len())
            .field("tasks", &self.tasks.len())
            .field("busy", &self.busy)
            .finish()
    }
}

impl Pool {
    pub(super) fn new() -> Pool {
        let shared = Arc::new(Shared::default());
        let wanted = thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(MAX_THREADS);
        let start = |number: &usize| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("bergfs-text-{number}"));
            let started = thread.spawn(move || shared.work());
            started
                .inspect_err(|error| tracing::warn!(%error, "a thread could not be started"))
                .is_ok()
        };
        let threads = (0..wanted).filter(start).count();
        Pool { shared, threads }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether no thread has anything to do.
    pub(super) fn is_idle(&self) -> bool {
        let queue = self.shared.lock();
        queue.busy == 0 && queue.ahead.is_empty() && queue.tasks.is_empty()
    }

    /// Does a job soon, unless too many wait already; it is dropped then.
    pub(super) fn run_ahead(&self, job: Job) {
        let mut queue = self.shared.lock();
        if queue.ahead.len() < MAX_AHEAD && self.threads > 0 {
            queue.ahead.push_back(job);
            self.shared.wake.notify_one();
        }
    }

    /// Does a task, on all threads.
    pub(super) fn run(&self, task: Arc<dyn Task>) {
        if self.threads == 0 {
            // No thread could be started: better slow than not at all.
            while let Next::Part(part) = Arc::clone(&task).next() {
                part();
            }
            return;
        }
        self.shared.lock().tasks.push_back(task);
        self.shared.wake.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        let dropped = (
            std::mem::take(&mut queue.ahead),
            std::mem::take(&mut queue.tasks),
        );
        self.shared.wake.notify_all();
        drop(queue);
        drop(dropped);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            // Who waits for the job's outcome learns of the panic when the job is dropped.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("bug: rendering text panicked");
            }
            self.lock().busy -= 1;
            // A task may have waited for this.
            self.wake.notify_all();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            if let Some(job) = queue.ahead.pop_front() {
                queue.busy += 1;
                return Some(job);
            }
            let mut tasks = queue.tasks.len();
            while tasks > 0
                && let Some(task) = queue.tasks.pop_front()
            {
                tasks -= 1;
                // Handing out a part takes no time, but a task that ends may drop much.
                match Arc::clone(&task).next() {
                    Next::Part(part) => {
                        queue.tasks.push_back(task);
                        queue.busy += 1;
                        return Some(part);
                    }
                    Next::Later => queue.tasks.push_back(task),
                    Next::Nothing => {
                        drop(queue);
                        drop(task);
                        queue = self.lock();
                        // Much may have come meanwhile.
                        tasks = queue.tasks.len();
                    }
                }
            }
            if queue.closed || !queue.ahead.is_empty() {
                continue;
            }
            queue = self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_job_that_panics_takes_no_thread_with_it() {
        let pool = Pool::new();
        for _ in 0..2 * pool.threads() {
            pool.run_ahead(Box::new(|| std::panic::resume_unwind(Box::new(()))));
        }
        let (done, outcome) = channel();
        pool.run_ahead(Box::new(move || {
            let _ = done.send(7);
        }));
        assert_eq!(outcome.recv(), Ok(7));
    }
}
