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
        let mut keep = KeepRuns::new();
        for at in deleted {
            // An index that stands twice has been passed already.
            if at < total && at >= keep.total {
                keep.push(true, at - keep.total);
                keep.push(false, 1);
            }
        }
        keep.push(true, total - keep.total);
        keep
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
        let kept: Vec<usize> = keep
            .iter()
            .enumerate()
            .filter(|(_, kept)| *kept)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(kept, [1, 2, 5, 6, 7, 8]);
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
