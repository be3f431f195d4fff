//! Requests under way, which those wait for who need what they bring.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;

use super::lock;
use crate::storage::store::Refusal;
use crate::storage::web;

/// Bytes of one request of a large range: several run at once.
const PIECE: u64 = 4 << 20;
/// A request under way, for the blocks that begin in `range`.
#[derive(Debug)]
pub(super) struct Flight {
    /// Bytes of the file.
    pub(super) range: Range<u64>,
    outcome: Mutex<Option<Result<Bytes, Refusal>>>,
    ended: Condvar,
}

impl Flight {
    pub(super) fn new(range: Range<u64>) -> Self {
        Self {
            range,
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    pub(super) fn end(&self, outcome: Result<Bytes, Refusal>) {
        let mut slot = lock(&self.outcome);
        slot.get_or_insert(outcome);
        drop(slot);
        self.ended.notify_all();
    }

    pub(super) fn wait(&self) -> Result<Bytes, Refusal> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = self
                .ended
                .wait(outcome)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Starts what ends `flight`, however it ends.
pub(super) fn start(flight: &Arc<Flight>, work: impl Future<Output = ()> + Send + 'static) {
    /// Wakes those who wait even if the work panics.
    struct Ending(Arc<Flight>);
    impl Drop for Ending {
        fn drop(&mut self) {
            self.0
                .end(Err(Refusal::Failed("the request was given up".to_owned())));
        }
    }
    let ending = Ending(Arc::clone(flight));
    let started = web::spawn(async move {
        work.await;
        drop(ending);
    });
    if let Err(error) = started {
        flight.end(Err(Refusal::Failed(error.to_string())));
    }
}

pub(super) fn wait<T>(future: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    web::block_on(future).unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
}

/// A range in pieces of [`PIECE`] bytes at most; their borders are those of blocks.
pub(super) fn pieces(range: Range<u64>) -> Vec<Range<u64>> {
    let mut pieces = Vec::new();
    let mut start = range.start;
    while start < range.end {
        let end = ((start / PIECE + 1) * PIECE).min(range.end);
        pieces.push(start..end);
        start = end;
    }
    pieces
}
