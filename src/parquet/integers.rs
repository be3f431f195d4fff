//! The values of a stored column of integers, once deleted rows are gone: all of them, or the least and the greatest.
//!
//! Extremes cost as few pages as prove them. Every page has bounds: its own where the file has a page index or the page's
//! header states them, else those of its chunk. A page is decoded only while its bounds leave room for a value beyond
//! those found so far. In a chunk that is in order, whose first and last rows are left, that takes two pages, whatever
//! their number; with a page index no other page is read.

use std::cmp::Reverse;
use std::ops::Range;

use super::DecodeError;
use super::codec::Scratch;
use super::page::PageReader;
use super::places::{PageError, PagePlace, ReadRange};
use super::split::PageSpan;
use super::transcode::{Levels, StoredChunk};
use super::values::{self, plain_integers};
use crate::counters::Counters;
use crate::rows::file_schema::Physical;

const WHAT: &str = "column chunk";

/// What is known of a chunk's values before any is decoded, deleted rows counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// No value is below the first or above the second.
    pub bounds: Option<(i64, i64)>,
    pub nulls: Option<u64>,
}

/// The extremes of what is left of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// `None`: no value is left.
    pub bounds: Option<(i64, i64)>,
    pub nulls: u64,
}

/// A flat column chunk of 32-bit or 64-bit integers, its pages found and not decoded.
pub struct IntegerChunk<'a, 'r> {
    /// Its bytes are got by `read`.
    chunk: StoredChunk<'a>,
    read: ReadRange<'r>,
    pages: Vec<PagePlace>,
    /// Where the dictionary page is.
    dictionary: Option<Range<u64>>,
    /// The dictionary's first values, as many as pages have needed.
    decoded: Vec<i64>,
    scratch: Scratch,
    counters: &'a Counters,
}

impl<'a, 'r> IntegerChunk<'a, 'r> {
    /// A chunk of these pages, whose rows follow each other.
    pub fn new(
        chunk: StoredChunk<'a>,
        dictionary: Option<Range<u64>>,
        pages: Vec<PagePlace>,
        read: ReadRange<'r>,
        counters: &'a Counters,
    ) -> IntegerChunk<'a, 'r> {
        IntegerChunk {
            chunk,
            read,
            pages,
            dictionary,
            decoded: Vec::new(),
            scratch: Scratch::default(),
            counters,
        }
    }

    /// The value of each row that is left.
    pub fn all(mut self) -> Result<Vec<Option<i64>>, PageError> {
        let mut out = Vec::new();
        for page in std::mem::take(&mut self.pages) {
            self.decode(&page, |value| out.push(value))?;
        }
        Ok(out)
    }

    /// As it is, for other rows of it: those of a span, or all, but for some that are left out (see [`StoredChunk`]).
    pub fn set_rows(&mut self, span: Option<&'a PageSpan>, deleted: &'a [u32]) {
        self.chunk = StoredChunk {
            span,
            deleted,
            ..self.chunk
        };
    }

    /// The extremes of the rows that are left, and how many of them are null.
    pub fn extremes(&mut self, known: Known) -> Result<Extremes, PageError> {
        let left = self.chunk.rows_left();
        if known.nulls == Some(self.chunk.values) {
            return Ok(Extremes {
                bounds: None,
                nulls: left,
            });
        }
        let has_no_nulls = self.chunk.max_def == 0 || known.nulls == Some(0);
        let everything = (i64::MIN, i64::MAX);
        let are_used = agree(&self.pages, known);
        let wanted = self.chunk.wanted();
        let mut pages = self.pages.clone();
        pages.retain(|page| {
            page.first_row < wanted.end && wanted.start < page.first_row + page.rows
        });
        for page in &mut pages {
            let own = page.bounds.filter(|_| are_used);
            page.bounds = own.or(known.bounds).or(Some(everything));
        }
        let mut search = Search {
            waiting: pages.iter().map(Some).collect(),
            found: Extremes::default(),
        };
        let bounds = |page: &PagePlace| page.bounds.unwrap_or(everything);
        // Where bounds tell nothing, an end of the chunk is the likeliest place.
        let from_ends = |index: usize| index.min(pages.len() - 1 - index);
        let mut order: Vec<usize> = (0..pages.len()).collect();
        order.sort_by_key(|&i| (Reverse(pages.get(i).map(|p| bounds(p).1)), from_ends(i)));
        for &index in &order {
            let greatest = search.found.bounds.map(|found| found.1);
            let page = search.waiting.get(index).copied().flatten();
            if let (Some(page), Some(greatest)) = (page, greatest)
                && bounds(page).1 <= greatest
            {
                break;
            }
            search.take(self, index)?;
        }
        order.sort_by_key(|&i| (pages.get(i).map(|p| bounds(p).0), from_ends(i)));
        for &index in &order {
            let least = search.found.bounds.map(|found| found.0);
            let page = search.waiting.get(index).copied().flatten();
            if let (Some(page), Some(least)) = (page, least)
                && bounds(page).0 >= least
            {
                break;
            }
            search.take(self, index)?;
        }
        if has_no_nulls {
            search.found.nulls = 0;
            return Ok(search.found);
        }
        for index in order {
            search.take(self, index)?;
        }
        Ok(search.found)
    }

    /// Gives the value of each row of a page that is left.
    fn decode(
        &mut self,
        page: &PagePlace,
        mut each: impl FnMut(Option<i64>),
    ) -> Result<(), PageError> {
        let chunk = self.chunk;
        let keep = chunk.keep(page.first_row, page.rows);
        if keep.kept() == 0 {
            return Ok(());
        }
        let bytes = (self.read)(page.bytes.clone())?;
        let mut reader = PageReader::new(&bytes, chunk.codec, page.rows);
        let stored = reader.next_page()?.filter(|found| !found.is_dictionary());
        let stored = stored.filter(|found| u64::from(found.num_values()) == page.rows);
        let stored =
            stored.ok_or_else(|| DecodeError::corrupt(WHAT, "a page index that is wrong"))?;
        self.counters.pages_decoded.add(1);
        // Looking values up needs the rest of `self`. After an error nobody goes on.
        let mut scratch = std::mem::take(&mut self.scratch);
        let body = stored.decompress_with(&mut scratch)?;
        let parts = stored.split(&body, 0, chunk.max_def)?;
        let levels = Levels::of(&parts)?;
        let encoding = stored.encoding();
        let count = levels.present(chunk, keep.total());
        let values = if encoding.is_dictionary() {
            self.look_up(&values::indexes(parts.values, count)?)?
        } else {
            values::integers(chunk.physical, encoding, parts.values, count)?
        };
        let value_keep = levels.value_keep(chunk, &keep);
        let runs = value_keep.runs().iter();
        let mut kept = runs.flat_map(|run| values.get(run.clone()).unwrap_or_default());
        match &levels.def {
            None => kept.for_each(|value| each(Some(*value))),
            Some(def) => {
                let levels = keep.runs().iter().filter_map(|run| def.get(run.clone()));
                for level in levels.flatten() {
                    each(if *level == chunk.max_def {
                        kept.next().copied()
                    } else {
                        None
                    });
                }
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    /// The values at these places of the dictionary. No more of it is decompressed than they reach into: in a chunk in
    /// order, the first page's values are the dictionary's first.
    fn look_up(&mut self, indexes: &[u32]) -> Result<Vec<i64>, PageError> {
        let at = |index: u32| usize::try_from(index).unwrap_or(usize::MAX);
        let needed = indexes.iter().max().map_or(0, |i| at(*i).saturating_add(1));
        if needed > self.decoded.len() {
            self.decode_dictionary(needed)?;
        }
        let value = |index: &u32| {
            let value = self.decoded.get(at(*index)).copied();
            value.ok_or_else(|| {
                DecodeError::corrupt(WHAT, "an index past the end of the dictionary").into()
            })
        };
        indexes.iter().map(value).collect()
    }

    fn decode_dictionary(&mut self, needed: usize) -> Result<(), PageError> {
        let Some(place) = self.dictionary.clone() else {
            return Ok(());
        };
        let bytes = (self.read)(place)?;
        let mut reader = PageReader::new(&bytes, self.chunk.codec, 1);
        if let Some(page) = reader.next_page()?.filter(|page| page.is_dictionary()) {
            let width = if self.chunk.physical == Physical::Int64 {
                8
            } else {
                4
            };
            let front = page.decompress_front(needed.saturating_mul(width))?;
            self.decoded = plain_integers(self.chunk.physical, &front);
        }
        Ok(())
    }
}

/// Whether the bounds of pages fit those of their chunk. Where they do not, who knows which is wrong; the chunk's are
/// those that readers of the data file go by.
fn agree(pages: &[PagePlace], known: Known) -> bool {
    let stated = || pages.iter().filter_map(|page| page.bounds);
    let bounds = stated().map(|b| b.0).min().zip(stated().map(|b| b.1).max());
    match (known.bounds, bounds) {
        (Some(known), Some(all)) if stated().count() == pages.len() => known == all,
        (Some(known), Some(all)) => known.0 <= all.0 && all.1 <= known.1,
        _ => true,
    }
}

/// An integer of 4 or 8 bytes in PLAIN encoding.
pub fn integer(plain: &[u8]) -> Option<i64> {
    match plain.len() {
        4 => Some(i64::from(i32::from_le_bytes(plain.try_into().ok()?))),
        8 => Some(i64::from_le_bytes(plain.try_into().ok()?)),
        _ => None,
    }
}

/// What has been found in the pages that were decoded.
struct Search<'p> {
    /// Pages that have not been.
    waiting: Vec<Option<&'p PagePlace>>,
    found: Extremes,
}

impl Search<'_> {
    /// Decodes a page, unless it has been.
    fn take(&mut self, chunk: &mut IntegerChunk<'_, '_>, index: usize) -> Result<(), PageError> {
        let Some(page) = self.waiting.get_mut(index).and_then(Option::take) else {
            return Ok(());
        };
        let found = &mut self.found;
        chunk.decode(page, |value| match (value, &mut found.bounds) {
            (None, _) => found.nulls += 1,
            (Some(value), None) => found.bounds = Some((value, value)),
            (Some(value), Some((least, greatest))) => {
                *least = value.min(*least);
                *greatest = value.max(*greatest);
            }
        })
    }
}

#[cfg(test)]
mod tests;
