//! Rows of a row group as bits and as numbers, and their positions in the file: many at a time, since one by one they take
//! several times as long.

use std::ops::Range;

use roaring::{RoaringBitmap, RoaringTreemap};

/// Positions that share their upper half.
const PARTITION: u64 = 1 << 32;

/// Which rows from some position on are meant, in order.
#[derive(Debug, Default)]
pub struct RowBits {
    /// Position of the first bit of `words`, a multiple of 64.
    base: u64,
    words: Vec<u64>,
    /// Bits that do not fill a word yet, and how many: fewer than 64.
    open: u64,
    open_len: u64,
}

impl RowBits {
    /// No rows yet; the first one will be at this position.
    pub fn new(first: u64) -> RowBits {
        RowBits {
            base: first - first % 64,
            words: Vec::new(),
            open: 0,
            open_len: first % 64,
        }
    }

    /// Position of the row that comes next.
    pub fn next(&self) -> u64 {
        (self.base + self.open_len).saturating_add(self.words.len() as u64 * 64)
    }

    /// Adds rows.
    pub fn extend(&mut self, rows: impl Iterator<Item = bool>) {
        let (mut open, mut len) = (self.open, self.open_len);
        for row in rows {
            open |= u64::from(row) << len;
            len += 1;
            if len == 64 {
                self.words.push(open);
                (open, len) = (0, 0);
            }
        }
        (self.open, self.open_len) = (open, len);
    }

    /// The bits of a `RowBits` that begins at position 0.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        let words = self.words.iter().map(|word| (*word, 64));
        words
            .chain([(self.open, self.open_len)])
            .flat_map(|(word, len)| (0..len).map(move |at| word >> at & 1 == 1))
    }

    /// The positions of the rows that are meant.
    pub fn positions(self) -> RoaringTreemap {
        let mut words = self.words;
        if self.open != 0 {
            words.push(self.open);
        }
        let mut bitmaps = Vec::new();
        let (mut at, mut rest) = (self.base, words.as_slice());
        while !rest.is_empty() {
            let room = usize::try_from((PARTITION - at % PARTITION) / 64).unwrap_or(usize::MAX);
            let (here, after) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            let bytes: Vec<u8> = here.iter().flat_map(|word| word.to_le_bytes()).collect();
            // Both halves fit.
            let (high, low) = ((at / PARTITION) as u32, (at % PARTITION) as u32);
            let bitmap = RoaringBitmap::from_lsb0_bytes(low, &bytes);
            if !bitmap.is_empty() {
                bitmaps.push((high, bitmap));
            }
            at += here.len() as u64 * 64;
            rest = after;
        }
        RoaringTreemap::from_bitmaps(bitmaps)
    }
}

/// The positions within `rows`, ascending, from its start on. `None` where one of them is more than 32 bits away from it.
pub fn rows_within(positions: &RoaringTreemap, rows: Range<u64>) -> Option<Vec<u32>> {
    let count = positions.range_cardinality(rows.clone());
    let mut within = Vec::with_capacity(usize::try_from(count).ok()?);
    let mut some = [0; 1024];
    for (high, bitmap) in positions.bitmaps() {
        let base = u64::from(high) * PARTITION;
        let end = rows.end.saturating_sub(base);
        let Ok(first) = u32::try_from(rows.start.saturating_sub(base)) else {
            continue;
        };
        let mut lows = bitmap.iter();
        lows.advance_to(first);
        // `next_many` of `roaring` 0.12 passes over a run that fills a container: 65,536 rows would go missing.
        let has_runs = bitmap.statistics().n_run_containers > 0;
        while has_runs && let Some(run) = lows.next_range() {
            let (first, last) = (u64::from(*run.start()), u64::from(*run.end()));
            let Some(last) = end.checked_sub(1).map(|end| end.min(last)) else {
                break;
            };
            if first > last {
                break;
            }
            let row = |low: u64| u32::try_from(base + low - rows.start).ok();
            within.extend(row(first)?..=row(last)?);
        }
        loop {
            let found = lows.next_many(&mut some);
            let inside = found.partition_point(|low| u64::from(*low) < end);
            let found = found.get(..inside).unwrap_or_default();
            let last = found.last().map(|low| base + u64::from(*low) - rows.start);
            if last.is_some_and(|last| u32::try_from(last).is_err()) {
                return None;
            }
            // None is further away than the last one.
            let row = |low: &u32| (base + u64::from(*low) - rows.start) as u32;
            within.extend(found.iter().map(row));
            if found.len() < some.len() {
                break;
            }
        }
    }
    Some(within)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_within_are_the_positions_less_the_first(
            base in prop_oneof![Just(0), PARTITION - 3000..PARTITION + 3000, Just(3 * PARTITION)],
            runs in vec((0..3000u64, 1..3000u64), 0..4),
            start in 0..6000u64, len in 0..9000u64, in_runs: bool,
        ) {
            let mut positions = RoaringTreemap::new();
            for (from, len) in runs {
                positions.insert_range(base + from..base + from + len);
            }
            if in_runs {
                positions = optimized(positions);
            }
            let rows = base + start..base + start + len;
            let inside = positions.iter().filter(|position| rows.contains(position));
            let expected: Vec<u32> = inside.map(|position| (position - rows.start) as u32).collect();
            prop_assert_eq!(rows_within(&positions, rows), Some(expected));
        }

        #[test]
        fn positions_are_those_of_the_bits(
            first in prop_oneof![0..200u64, PARTITION - 200..PARTITION + 200, 5 * PARTITION - 70..5 * PARTITION],
            runs in vec((any::<bool>(), 0..150usize), 0..8),
        ) {
            let rows: Vec<bool> = runs.iter().flat_map(|(row, len)| std::iter::repeat_n(*row, *len)).collect();
            let mut bits = RowBits::new(first);
            for (row, len) in &runs {
                bits.extend(std::iter::repeat_n(*row, *len));
            }
            prop_assert_eq!(bits.next(), first + rows.len() as u64);
            let expected: RoaringTreemap =
                rows.iter().enumerate().filter(|(_, row)| **row).map(|(at, _)| first + at as u64).collect();
            prop_assert_eq!(bits.positions(), expected);
            let mut bits = RowBits::new(0);
            bits.extend(rows.iter().copied());
            prop_assert_eq!(bits.iter().collect::<Vec<_>>(), rows);
        }
    }

    /// The same, in runs wherever these are shorter, as vectors mostly are.
    fn optimized(positions: RoaringTreemap) -> RoaringTreemap {
        let bitmaps = positions.bitmaps().map(|(high, bitmap)| {
            let mut bitmap = bitmap.clone();
            bitmap.optimize();
            (high, bitmap)
        });
        RoaringTreemap::from_bitmaps(bitmaps.collect::<Vec<_>>())
    }

    #[test]
    fn rows_of_a_run_that_fills_a_container_are_not_passed_over() {
        let mut positions: RoaringTreemap = (3..300_000).collect();
        positions.remove(200_000);
        let positions = optimized(positions);
        for rows in [
            0..400_000,
            65_536..131_072,
            70_000..150_000,
            190_000..250_000,
        ] {
            let inside = positions.iter().filter(|position| rows.contains(position));
            let expected: Vec<u32> = inside
                .map(|position| (position - rows.start) as u32)
                .collect();
            assert_eq!(rows_within(&positions, rows), Some(expected));
        }
    }

    #[test]
    fn a_row_that_takes_more_than_32_bits_has_no_number() {
        let positions = RoaringTreemap::from([7, 7 + PARTITION]);
        assert_eq!(rows_within(&positions, 7..PARTITION), Some(vec![0]));
        assert_eq!(rows_within(&positions, 8..u64::MAX), Some(vec![u32::MAX]));
        assert_eq!(rows_within(&positions, 7..u64::MAX), None);
    }
}
