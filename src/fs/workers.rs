//! The threads that answer the requests which have waited, so that whatever ends their wait does not wait for a disk or a
//! decoder.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Requests answered at once. Few are slow: what they waited for is known by then.
const WORKERS: usize = 4;

/// Requests that wait for a worker; beyond it whatever ends their wait is held up.
const WAITING: usize = 256;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads over one queue. They end when this is dropped.
pub(super) struct Workers {
    queue: SyncSender<Job>,
}

impl Workers {
    pub(super) fn new() -> Workers {
        let (queue, jobs) = sync_channel::<Job>(WAITING);
        let jobs = Arc::new(Mutex::new(jobs));
        for number in 0..WORKERS {
            let jobs = Arc::clone(&jobs);
            let work = move || {
                while let Some(job) = next(&jobs) {
                    job()
                }
            };
            let started = thread::Builder::new()
                .name(format!("bergfs-{number}"))
                .spawn(work);
            if let Err(error) = started {
                tracing::warn!(%error, number, "a worker could not be started");
            }
        }
        Workers { queue }
    }

    /// Has the next free worker do the job. The job must not panic.
    pub(super) fn run(&self, job: Job) {
        // No worker could be started: better slow than not at all.
        if let Err(refused) = self.queue.send(job) {
            (refused.0)();
        }
    }
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}
