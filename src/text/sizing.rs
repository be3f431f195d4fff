//! The sizing of a text: one pass over all its pieces, on all cores, for as long as somebody waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::TextError;
use super::file::TextFile;
use super::pool::{Next, Task};

/// Strips that are handed out beyond the first that is not known: those that are rendered wait in memory for it, since
/// only then it is known where they stand.
const AHEAD_STRIPS: usize = 24;

/// The text's size in bytes, or why it has none.
pub type Outcome = Result<u64, TextError>;

type Callback = Box<dyn FnOnce() + Send>;

/// A sizing that goes on, or has ended.
#[derive(Debug, Default)]
pub struct Sizing {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<Outcome>,
    /// Those who wait; at none the sizing stops.
    waiting: usize,
    given_up: bool,
    callbacks: Vec<Callback>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("outcome", &self.outcome)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl Sizing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more waits. `false`: the last one has gone, and this sizing will not come to an end.
    pub(super) fn join(&self) -> bool {
        let mut state = self.lock();
        if state.given_up || matches!(state.outcome, Some(Err(_))) {
            return false;
        }
        state.waiting += 1;
        true
    }

    /// One who waited has gone.
    pub fn give_up(&self) {
        let mut state = self.lock();
        state.waiting = state.waiting.saturating_sub(1);
        state.given_up |= state.waiting == 0;
    }

    /// Waits for the end.
    pub fn wait(&self) -> Outcome {
        let mut state = self.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            state = self
                .ended
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Calls back at the end, from the thread that comes to it, or at once where it has been reached.
    pub fn when_ended(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.outcome.is_none() {
            return state.callbacks.push(Box::new(callback));
        }
        drop(state);
        callback();
    }

    fn stops(&self) -> bool {
        let state = self.lock();
        state.given_up || state.outcome.is_some()
    }

    pub(super) fn end(&self, outcome: Outcome) {
        let mut state = self.lock();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.ended.notify_all();
        callbacks.into_iter().for_each(|callback| callback());
    }
}

/// The work of a sizing: the strips, in order.
pub(super) struct SizingTask {
    file: Arc<TextFile>,
    sizing: Arc<Sizing>,
    next: AtomicUsize,
    /// Strips that have not been rendered.
    left: AtomicUsize,
}

impl SizingTask {
    pub(super) fn new(file: Arc<TextFile>, sizing: Arc<Sizing>) -> SizingTask {
        SizingTask {
            left: AtomicUsize::new(file.index().strips().len()),
            next: AtomicUsize::new(0),
            file,
            sizing,
        }
    }

    fn render(&self, strip: usize) {
        // The strips behind one that is never known would wait for it for ever.
        let unless_rendered = EndOnDrop(Some(&self.sizing));
        if self.sizing.stops() {
            return;
        }
        if let Err(error) = self.file.render_strip(strip) {
            return self.sizing.end(Err(error));
        }
        unless_rendered.defuse();
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.file.count_sized();
            let total = self.file.index().total();
            self.sizing.end(total.ok_or(TextError::GivenUp));
        }
    }
}

/// Ends a sizing when it is dropped, by a panic too, unless it has been told not to.
struct EndOnDrop<'a>(Option<&'a Sizing>);

impl EndOnDrop<'_> {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(sizing) = self.0 {
            sizing.end(Err(TextError::GivenUp));
        }
    }
}

impl Task for SizingTask {
    fn next(self: Arc<Self>) -> Next {
        let strip = self.next.load(Ordering::Relaxed);
        let index = self.file.index();
        if self.sizing.stops() || strip >= index.strips().len() {
            return Next::Nothing;
        }
        if strip >= index.known_strips() + AHEAD_STRIPS {
            return Next::Later;
        }
        // The pool asks for one part at a time.
        self.next.store(strip + 1, Ordering::Relaxed);
        Next::Part(Box::new(move || self.render(strip)))
    }
}

impl Drop for SizingTask {
    /// However the work ends, a panic or the end of the mount included, those who wait learn of it.
    fn drop(&mut self) {
        self.sizing.end(Err(TextError::GivenUp));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sizing_that_all_have_left_cannot_be_joined() {
        let sizing = Sizing::default();
        assert!(sizing.join() && sizing.join());
        sizing.give_up();
        assert!(sizing.join());
        sizing.give_up();
        sizing.give_up();
        assert!(!sizing.join() && sizing.stops());
    }

    #[test]
    fn a_sizing_ends_when_its_work_panics() {
        let sizing = Sizing::default();
        let work = std::panic::AssertUnwindSafe(|| {
            let _ending = EndOnDrop(Some(&sizing));
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(std::panic::catch_unwind(work).is_err());
        assert!(matches!(sizing.wait(), Err(TextError::GivenUp)));
        let other = Sizing::default();
        EndOnDrop(Some(&other)).defuse();
        assert!(!other.stops());
    }

    #[test]
    fn callbacks_come_at_the_end_or_at_once_after_it() {
        let sizing = Sizing::default();
        let (told, calls) = std::sync::mpsc::channel();
        let call = |number| {
            let told = told.clone();
            move || {
                let _ = told.send(number);
            }
        };
        sizing.when_ended(call(1));
        assert!(calls.try_recv().is_err());
        sizing.end(Ok(5));
        sizing.when_ended(call(2));
        assert_eq!((calls.recv(), calls.recv()), (Ok(1), Ok(2)));
        assert!(matches!(sizing.wait(), Ok(5)));
    }
}
