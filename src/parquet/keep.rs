//! Which values of a page stay.

use std::ops::Range;

/// Which of `total` values stay: sorted ranges of their indexes, disjoint, not empty, with a gap between any two.
///
/// Deletes are sparse and kept runs long, so filters copy run by run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepRuns {
    runs: Vec<Range<usize>>,
    kept: usize,
    total: usize,
}

impl KeepRuns {
    /// Of no values yet; add some with [`KeepRuns::push`].
    pub fn new() -> KeepRuns {
        KeepRuns::default()
    }

    /// All of `total` values but those at the `deleted` indexes, which ascend. Indexes from `total` on are ignored.
    pub fn without(total: usize, deleted: impl IntoIterator<Item = usize>) -> KeepRuns {
        KeepRuns::within(total, 0..total, deleted)
    }

    /// Of `total` values those at the `wanted` indexes, but not those at the `deleted` ones, which ascend.
    pub fn within(
        total: usize,
        wanted: Range<usize>,
        deleted: impl IntoIterator<Item = usize>,
    ) -> KeepRuns {
        let deleted = deleted.into_iter();
        let mut runs = Vec::with_capacity(deleted.size_hint().0.saturating_add(1).min(total));
        let (mut at, mut kept, mut count) = (wanted.start, 0, 0);
        // Whether there is a value between two deleted ones cannot be foretold: a run is written in any case, and the next
        // one over it where it is empty.
        deleted.chain([wanted.end]).for_each(|index| {
            let end = index.min(wanted.end).max(at);
            match runs.get_mut(count) {
                Some(run) => *run = at..end,
                None => runs.push(at..end),
            }
            count += usize::from(end > at);
            kept += end - at;
            // An index that stands twice has been passed already.
            at = at.max(index.saturating_add(1));
        });
        runs.truncate(count);
        KeepRuns { runs, kept, total }
    }

    /// Adds `count` values that all stay, or all go.
    pub fn push(&mut self, kept: bool, count: usize) {
        let start = self.total;
        self.total += count;
        if !kept || count == 0 {
            return;
        }
        self.kept += count;
        match self.runs.last_mut() {
            Some(last) if last.end == start => last.end = self.total,
            _ => self.runs.push(start..self.total),
        }
    }

    /// The ranges of indexes that stay.
    pub fn runs(&self) -> &[Range<usize>] {
        &self.runs
    }

    /// How many values stay.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// How many values there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether every value stays.
    pub fn is_all(&self) -> bool {
        self.kept == self.total
    }

    /// Whether each value stays, in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        let mut runs = self.runs.iter().peekable();
        (0..self.total).map(move |at| {
            while runs.next_if(|run| run.end <= at).is_some() {}
            runs.peek().is_some_and(|run| run.start <= at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_takes_out_the_deleted_indexes_once_each() {
        let keep = KeepRuns::without(10, [0, 3, 3, 4, 9, 12]);
        assert_eq!(keep.runs(), [1..3, 5..9]);
        assert_eq!((keep.kept(), keep.total(), keep.is_all()), (6, 10, false));
        let keep = KeepRuns::within(10, 2..9, [3, 4]);
        assert_eq!(keep.runs(), [2..3, 5..9]);
        assert_eq!((keep.kept(), keep.total()), (5, 10));
        let kept: Vec<usize> = keep
            .iter()
            .enumerate()
            .filter(|(_, kept)| *kept)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(kept, [2, 5, 6, 7, 8]);
    }

    #[test]
    fn runs_that_touch_are_one_run() {
        let mut keep = KeepRuns::without(3, []);
        keep.push(true, 2);
        keep.push(false, 0);
        keep.push(true, 1);
        assert_eq!(keep, KeepRuns::without(6, []));
        assert!(KeepRuns::without(0, []).runs().is_empty());
    }
}
