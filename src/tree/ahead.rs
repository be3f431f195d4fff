//! What is made ahead of readers who go on as they have begun: chunks of a file that is read from end to end, bytes of
//! stores that it is made from, and sizes of files that are looked up one after the other.
//!
//! Nothing is made ahead of anybody else, but for what a mount begins with (see `prepare`). A reader of one column of each
//! row group goes from place to place, and one of two columns that stand side by side crosses one border at a time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::parallel::Ahead;
use crate::parquet::ParquetFile;

/// Readers of one open file that are told apart: a program may read on several threads.
const MAX_STREAMS: usize = 8;

/// Chunk borders that a reader crosses before it is taken for one who reads everything.
const CROSSED: usize = 2;

/// Bytes of chunks that are made ahead of one reader at most: as many row groups' columns as are large are few.
const MAX_BYTES: u64 = 48 << 20;

/// Bytes that are fetched from a store ahead of one reader at most: some requests at once.
const MAX_FETCHED: u64 = 8 << 20;

/// Files whose sizes are found in one job.
const BATCH: usize = 16;

/// Files looked up one after the other before somebody is taken to go through them all.
const IN_A_ROW: usize = 3;

/// The readers of an open file.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<VecDeque<Stream>>);

/// A reader who goes on from where it stopped.
#[derive(Clone, Copy, Debug)]
struct Stream {
    start: u64,
    next: u64,
    /// The first segment that has not been asked for.
    unasked: usize,
    /// Up to where bytes of stores have been asked for.
    fetched: u64,
}

impl Streams {
    /// Notes a read, and has what comes behind it made, or fetched, where the reader goes through the file.
    pub(super) fn note(&self, file: &Arc<ParquetFile>, offset: u64, len: u64, ahead: &Ahead) {
        let end = offset.saturating_add(len);
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = streams.iter().position(|stream| stream.next == offset);
        let mut stream = known.and_then(|at| streams.remove(at)).unwrap_or(Stream {
            start: offset,
            next: offset,
            unasked: 0,
            fetched: 0,
        });
        stream.next = end;
        let last = end.saturating_sub(1);
        let mut wanted = Vec::new();
        let crossed = file.segments_between(stream.start, last);
        // Fetching costs more than making: whoever reads some neighbouring columns is not taken for one who reads all.
        let goes_through = crossed >= CROSSED.max(file.leaves() / 2);
        let window = end.saturating_sub(stream.start).min(MAX_FETCHED);
        let from = stream.fetched.max(end);
        let mut fetched = None;
        if goes_through && from < end.saturating_add(window / 2) {
            stream.fetched = end.saturating_add(window);
            fetched = Some(from..stream.fetched);
        }
        if crossed >= CROSSED {
            wanted = file.slots_behind(last, ahead.threads(), MAX_BYTES);
            wanted.retain(|slot| *slot >= stream.unasked);
            stream.unasked = wanted.last().map_or(stream.unasked, |slot| slot + 1);
        }
        streams.push_front(stream);
        streams.truncate(MAX_STREAMS);
        drop(streams);
        if let Some(fetched) = fetched {
            file.prefetch(&[fetched]);
        }
        for slot in wanted {
            let file = Arc::clone(file);
            ahead.run(move || file.make_ahead(slot));
        }
    }
}

/// Who goes through a directory's files.
#[derive(Debug, Default)]
pub(super) struct Walk(Mutex<Steps>);

#[derive(Debug, Default)]
struct Steps {
    /// The file that would come next.
    next: usize,
    taken: usize,
    /// The first file that has not been asked for.
    unasked: usize,
}

impl Walk {
    /// Notes that file number `index` was looked up. Gives the batches of files whose sizes are to be found ahead.
    pub(super) fn note(&self, index: usize, ahead: &Ahead) -> Vec<std::ops::Range<usize>> {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if index != steps.next {
            *steps = Steps::default();
        }
        steps.next = index + 1;
        steps.taken += 1;
        let mut batches = Vec::new();
        if steps.taken >= IN_A_ROW {
            let until = index + 1 + (ahead.threads() + 1) * BATCH;
            steps.unasked = steps.unasked.max(index + 1);
            while steps.unasked + BATCH <= until {
                batches.push(steps.unasked..steps.unasked + BATCH);
                steps.unasked += BATCH;
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_looked_up_in_a_row_are_followed_by_batches_without_a_gap_or_a_repetition() {
        let (walk, ahead) = (Walk::default(), Ahead::default());
        let mut asked = Vec::new();
        for index in 0..100 {
            for batch in walk.note(index, &ahead) {
                assert!(batch.start > index, "behind the walker");
                asked.extend(batch);
            }
        }
        let first = IN_A_ROW;
        assert_eq!(asked, (first..first + asked.len()).collect::<Vec<_>>());
        assert!(asked.len() >= 100 - first);
        for index in [7, 3, 90, 91, 2] {
            assert!(walk.note(index, &ahead).is_empty(), "at random");
        }
    }
}
