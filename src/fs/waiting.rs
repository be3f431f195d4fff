//! Requests that wait for a text to be sized. They occupy no thread, and whoever waits can be interrupted.
//!
//! The kernel keeps a process that waits for an answer, even one that has been killed, until the answer comes; it says
//! that the process wants to leave in a request that `fuser` does not pass on. So the process is looked at: where a
//! signal that ends or interrupts it is pending, its request is answered with `EINTR`.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fuser::Errno;

use crate::tree::Sizing;

/// How often those who wait are looked at: soon enough for somebody at a keyboard.
const LOOK: Duration = Duration::from_millis(100);

/// SIGHUP, SIGINT, SIGQUIT, SIGKILL and SIGTERM, as bits of the masks in `/proc/<pid>/status`. To a process that does
/// not handle a deadly signal the kernel sends SIGKILL.
const ENDING_SIGNALS: u64 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8 | 1 << 14;

/// What goes on with a request once its wait has ended.
type Resume = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// The requests that wait.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Parked>);

#[derive(Default)]
struct Parked {
    requests: Vec<Request>,
    /// Whether a thread looks at them.
    watched: bool,
}

struct Request {
    /// The thread that asks, as this process's `/proc` knows it; 0 where it does not.
    thread: u32,
    sizing: Arc<Sizing>,
    /// Taken by whatever ends the wait.
    resume: Arc<Mutex<Option<Resume>>>,
}

impl Waiting {
    /// Lets a request wait for a sizing that it has joined. `resume` is called once: with an error if the thread that
    /// asks is interrupted.
    pub(super) fn park(
        self: &Arc<Self>,
        sizing: Arc<Sizing>,
        thread: u32,
        resume: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let resume: Arc<Mutex<Option<Resume>>> = Arc::new(Mutex::new(Some(Box::new(resume))));
        let request = Request {
            thread,
            sizing: Arc::clone(&sizing),
            resume: Arc::clone(&resume),
        };
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parked.requests.push(request);
        if !std::mem::replace(&mut parked.watched, true) {
            self.watch();
        }
        drop(parked);
        sizing.when_ended(move || {
            if let Some(resume) = take(&resume) {
                resume(Ok(()));
            }
        });
    }

    fn watch(self: &Arc<Self>) {
        let waiting = Arc::clone(self);
        let watch = move || {
            while waiting.look() {
                thread::sleep(LOOK);
            }
        };
        let started = thread::Builder::new()
            .name("bergfs-interrupts".to_owned())
            .spawn(watch);
        if let Err(error) = started {
            tracing::warn!(%error, "nobody who waits can be interrupted");
        }
    }

    /// Looks at those who wait; `false`: there is nobody any more.
    fn look(&self) -> bool {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut interrupted = Vec::new();
        parked.requests.retain(|request| {
            let mut resume = request
                .resume
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if resume.is_some() && wants_to_leave(request.thread) {
                interrupted.extend(resume.take().map(|r| (r, Arc::clone(&request.sizing))));
            }
            resume.is_some()
        });
        parked.watched = !parked.requests.is_empty();
        let watched = parked.watched;
        drop(parked);
        for (resume, sizing) in interrupted {
            sizing.give_up();
            resume(Err(Errno::EINTR));
        }
        watched
    }
}

fn take(resume: &Mutex<Option<Resume>>) -> Option<Resume> {
    resume.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn wants_to_leave(thread: u32) -> bool {
    thread != 0
        && std::fs::read_to_string(format!("/proc/{thread}/status"))
            .is_ok_and(|status| has_ending_signal(&status))
}

/// Whether a signal that ends or interrupts the thread is pending and neither blocked nor ignored.
fn has_ending_signal(status: &str) -> bool {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & ENDING_SIGNALS & !mask("SigBlk:") & !mask("SigIgn:") != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_signals_count_unless_they_are_blocked_or_ignored() {
        let status = |pending: u64, blocked: u64| {
            format!(
                "Name:\tcat\nSigPnd:\t{pending:016x}\nShdPnd:\t{:016x}\nSigBlk:\t{blocked:016x}\n",
                0
            )
        };
        let kill = 1 << 8;
        assert!(has_ending_signal(&status(kill, 0)));
        assert!(!has_ending_signal(&status(kill, kill)));
        // SIGCHLD
        assert!(!has_ending_signal(&status(1 << 16, 0)));
        assert!(!has_ending_signal(""));
    }
}
