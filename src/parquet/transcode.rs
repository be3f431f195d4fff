//! A stored column chunk without its deleted rows, with virtual levels and values, page by page on the encoded form.
//!
//! Levels and dictionary indices are filtered as runs, PLAIN values are copied, dictionaries are kept; a page that
//! loses nothing and changes nothing is only decompressed. What PLAIN or a dictionary cannot hold in a known length is
//! decoded to PLAIN, or re-encoded as itself (see `slot` for the bounds). Every source page gives at most one page;
//! emptied ones are dropped. Row positions carry across pages, since a row of version 1 pages may span them.

use std::borrow::Cow;
use std::ops::Range;

use super::DecodeError;
use super::codec::Scratch;
use super::convert::Conversion;
use super::format::Codec;
use super::keep::KeepRuns;
use super::levels::Guide;
use super::made::{MadeChunk, level_width};
use super::page::{self, PageParts, PagePosition, PageReader, RawPage};
use super::places::{PageError, ReadRange};
use super::rle;
use super::split::PageSpan;
use super::synth::Parent;
use super::values::filter_values;
use crate::counters::Counters;
use crate::rows::file_schema::Physical;

const WHAT: &str = "column chunk";

/// Memory taken for a chunk before any page has come, in bytes at most.
const MAX_RESERVED: u64 = 64 << 20;

/// Bytes of a stored chunk that are read at once: some pages, that are still near when they are decompressed.
pub const WINDOW: u64 = 256 << 10;

/// A column chunk as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct StoredChunk<'a> {
    /// None where they are asked for.
    pub bytes: &'a [u8],
    /// Bytes that it takes as it is stored.
    pub len: u64,
    pub codec: Codec,
    pub physical: Physical,
    pub max_def: u16,
    pub max_rep: u16,
    /// Bytes it takes uncompressed, as its footer says.
    pub uncompressed: u64,
    /// Entries, nulls and list placeholders counted.
    pub values: u64,
    /// Rows of the row group.
    pub rows: u64,
    /// Which rows of a flat chunk are wanted, and where they stand; all of them otherwise.
    pub span: Option<&'a PageSpan>,
    /// Rows to leave out: ascending, counted from the first that is wanted.
    pub deleted: &'a [u32],
}

impl<'a> StoredChunk<'a> {
    /// Some of its bytes.
    pub fn range(self, range: Range<u64>) -> Result<&'a [u8], PageError> {
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(at(range.start)..at(range.end));
        bytes.ok_or_else(|| DecodeError::truncated(WHAT).into())
    }

    /// The rows that are wanted, but for those to leave out.
    pub fn wanted(self) -> Range<u64> {
        self.span.map_or(0..self.rows, |span| span.rows.clone())
    }

    /// How many rows are wanted.
    pub fn rows_left(self) -> u64 {
        let wanted = self.wanted();
        (wanted.end - wanted.start).saturating_sub(self.deleted.len() as u64)
    }

    /// Which of `rows` rows from `first` on are kept.
    pub fn keep(self, first: u64, rows: u64) -> KeepRuns {
        let end = first.saturating_add(rows);
        let wanted = self.wanted();
        let from = wanted.start.clamp(first, end);
        let until = wanted.end.clamp(from, end);
        let row = |deleted: &u32| wanted.start + u64::from(*deleted);
        let passed = self.deleted.partition_point(|deleted| row(deleted) < from);
        let behind = self.deleted.get(passed..).unwrap_or_default();
        let here = behind.partition_point(|deleted| row(deleted) < until);
        // A page's rows fit in memory.
        let at = |row: u64| usize::try_from(row - first).unwrap_or(usize::MAX);
        let deleted = behind.get(..here).unwrap_or_default().iter();
        KeepRuns::within(at(end), at(from)..at(until), deleted.map(|d| at(row(d))))
    }
}

/// What a leaf is to become.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub max_def: u16,
    /// The virtual definition level of each stored one.
    pub def_map: &'a [u16],
    pub conversion: Conversion,
}

/// A chunk that is transcoded, as far as that has come: its pages come one after the other, and each is whole at once.
#[derive(Debug, Default)]
pub struct Transcoding {
    made: MadeChunk,
    /// Bytes of it that are the dictionary page.
    dictionary_len: usize,
    pages: PagePosition,
    rows: RowPosition,
    ended: bool,
}

impl Transcoding {
    /// The pages that are there.
    pub fn bytes(&self) -> &[u8] {
        &self.made.bytes
    }

    /// Whether all pages are there.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The chunk, once it has ended.
    pub fn into_made(self) -> MadeChunk {
        self.made
    }

    /// How far to go for a reader of the bytes up to `end`: as far again as it has come, since whoever goes on mostly
    /// reads the rest. So the first pages cost what they take, and all of them little more than at one go.
    pub fn worth(&self, end: usize) -> usize {
        let len = self.made.bytes.len();
        end.max(len + (len - self.dictionary_len))
    }

    /// Goes on until there are `until` bytes, or to the end. `read` gives bytes of the chunk, which are asked for in
    /// pieces of `window` bytes, or of a page where that is longer.
    pub fn go_on(
        &mut self,
        (chunk, wanted): (StoredChunk<'_>, Wanted<'_>),
        (read, window): (ReadRange<'_>, u64),
        counters: &Counters,
        until: usize,
    ) -> Result<(), PageError> {
        let mut scratch = Scratch::default();
        if self.pages.at == 0 {
            counters.chunks_transcoded.add(1);
            // About what it will take, so that it need not move as it grows. The footer may claim anything.
            let size = chunk.span.map_or(chunk.uncompressed, |span| span.size);
            let size = size.min(MAX_RESERVED);
            let size = usize::try_from(size + size / 64).unwrap_or(0);
            let _ = self.made.bytes.try_reserve(size);
            if let Some(span) = chunk.span {
                self.start_at(span, chunk, wanted, read, &mut scratch)?;
            }
        }
        let mut rows = RowCursor::resume(chunk, self.rows);
        while !self.ended && self.made.bytes.len() < until {
            let (bytes, is_last) = self.next_bytes(chunk, read, window)?;
            let mut pages = PageReader::resume(&bytes, chunk.codec, chunk.values, self.pages);
            while self.made.bytes.len() < until && (is_last || pages.has_whole_page()) {
                if chunk
                    .span
                    .is_some_and(|span| rows.position.begun >= span.rows.end)
                {
                    self.ended = true;
                    break;
                }
                let Some(page) = pages.next_page()? else {
                    rows.finish()?;
                    self.ended = true;
                    break;
                };
                let body = page.decompress_with(&mut scratch)?;
                if page.is_dictionary() {
                    self.push_dictionary(&page, wanted, &body)?;
                } else {
                    counters.pages_decoded.add(1);
                    let parts = page.split(&body, chunk.max_rep, chunk.max_def)?;
                    data_page(chunk, wanted, &page, &parts, &mut rows, &mut self.made)?;
                }
                self.pages = pages.place(chunk.values);
                self.rows = rows.position;
            }
        }
        Ok(())
    }

    /// Begins at the first page of a span, with the dictionary where that is needed.
    fn start_at(
        &mut self,
        span: &PageSpan,
        chunk: StoredChunk<'_>,
        wanted: Wanted<'_>,
        read: ReadRange<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), PageError> {
        if let Some(place) = &span.dictionary {
            let bytes = read(place.clone())?;
            let page = PageReader::new(&bytes, chunk.codec, chunk.values).next_page()?;
            let page = page.filter(RawPage::is_dictionary);
            let page = page.ok_or_else(|| DecodeError::corrupt(WHAT, "lost its dictionary"))?;
            let body = page.decompress_with(scratch)?;
            self.push_dictionary(&page, wanted, &body)?;
        }
        self.pages = PagePosition::behind(span.bytes.start, span.first_row);
        self.rows.begun = span.first_row;
        Ok(())
    }

    fn push_dictionary(
        &mut self,
        page: &RawPage<'_>,
        wanted: Wanted<'_>,
        body: &[u8],
    ) -> Result<(), DecodeError> {
        let values = convert(wanted.conversion, body)?;
        self.made.push_dictionary(page.num_values(), &values);
        self.dictionary_len = self.made.bytes.len();
        Ok(())
    }

    /// Bytes of the chunk from the next page on, and whether they are the last: at least a page.
    fn next_bytes<'r>(
        &self,
        chunk: StoredChunk<'_>,
        read: ReadRange<'r>,
        window: u64,
    ) -> Result<(Cow<'r, [u8]>, bool), PageError> {
        let start = self.pages.at;
        let end = chunk.span.map_or(chunk.len, |span| span.bytes.end);
        let left = end.saturating_sub(start);
        let mut len = window.min(left);
        loop {
            let bytes = read(start..start.saturating_add(len))?;
            if len == left {
                return Ok((bytes, true));
            }
            let pages = PageReader::resume(&bytes, chunk.codec, chunk.values, self.pages);
            if pages.has_whole_page() {
                return Ok((bytes, false));
            }
            // The page, and what was asked for at first behind it. What is no page is met when all is there.
            let page = pages.next_page_len().map_or(left, |len| len as u64);
            len = page.saturating_add(window).min(left);
        }
    }
}

fn data_page(
    chunk: StoredChunk<'_>,
    wanted: Wanted<'_>,
    page: &RawPage<'_>,
    parts: &PageParts<'_>,
    rows: &mut RowCursor<'_>,
    out: &mut MadeChunk,
) -> Result<(), DecodeError> {
    let levels = Levels::of(parts)?;
    let keep = rows.advance(parts.definition.count, levels.rep.as_deref())?;
    if keep.kept() == 0 {
        return Ok(());
    }
    let kept =
        u32::try_from(keep.kept()).map_err(|_| DecodeError::corrupt(WHAT, "too large a page"))?;

    let same_levels = chunk.max_def == wanted.max_def
        && wanted
            .def_map
            .iter()
            .zip(0u16..)
            .all(|(target, source)| *target == source);
    let rep = match &levels.rep {
        Some(_) => Some(filter_levels(&parts.repetition, &keep)?),
        None => None,
    };
    let def = if wanted.max_def == 0 {
        None
    } else if same_levels {
        Some(filter_levels(&parts.definition, &keep)?)
    } else {
        Some(Cow::Owned(map_levels(chunk, wanted, &levels, &keep)?))
    };
    let value_keep = levels.value_keep(chunk, &keep);
    let (encoding, values) = filter_values(
        page.encoding(),
        chunk.physical,
        parts.values,
        &value_keep,
        wanted.conversion,
    )?;
    out.push_data(kept, encoding, rep.as_deref(), def.as_deref(), &[&values]);
    Ok(())
}

fn convert<'a>(conversion: Conversion, values: &'a [u8]) -> Result<Cow<'a, [u8]>, DecodeError> {
    match conversion {
        Conversion::None => Ok(Cow::Borrowed(values)),
        _ => conversion
            .apply(values)
            .map(Cow::Owned)
            .map_err(|e| DecodeError::corrupt(WHAT, e)),
    }
}

fn filter_levels<'a>(
    levels: &page::Levels<'a>,
    keep: &KeepRuns,
) -> Result<Cow<'a, [u8]>, DecodeError> {
    if levels.bit_packed {
        let mut decoded = Vec::new();
        levels.decode(&mut decoded)?;
        let kept = keep
            .runs()
            .iter()
            .filter_map(|run| decoded.get(run.clone()))
            .flatten()
            // None is above the maximum, which has 16 bits.
            .map(|level| *level as u16);
        return Ok(Cow::Owned(rle::encode_levels(
            &kept.collect::<Vec<_>>(),
            levels.width(),
        )));
    }
    if keep.is_all() {
        return Ok(Cow::Borrowed(levels.bytes));
    }
    let mut out = Vec::with_capacity(levels.bytes.len());
    rle::filter(levels.bytes, levels.width(), keep, &mut out)?;
    Ok(Cow::Owned(out))
}

/// Kept definition levels, as the virtual file counts them.
fn map_levels(
    chunk: StoredChunk<'_>,
    wanted: Wanted<'_>,
    levels: &Levels,
    keep: &KeepRuns,
) -> Result<Vec<u8>, DecodeError> {
    let map = |level: u16| {
        wanted
            .def_map
            .get(usize::from(level))
            .copied()
            .ok_or_else(|| DecodeError::corrupt(WHAT, "a definition level above the maximum"))
    };
    let mapped = match &levels.def {
        Some(def) => keep
            .runs()
            .iter()
            .filter_map(|run| def.get(run.clone()))
            .flatten()
            .map(|level| map(*level))
            .collect::<Result<Vec<u16>, _>>()?,
        None => {
            let all = map(chunk.max_def)?;
            vec![all; keep.kept()]
        }
    };
    Ok(rle::encode_levels(
        &mapped,
        level_width(wanted.max_def) as u8,
    ))
}

/// A page's levels, decoded as far as anybody needs them.
pub struct Levels {
    /// `None` in a flat column.
    rep: Option<Vec<u16>>,
    /// `None` where every value is present.
    pub def: Option<Vec<u16>>,
}

impl Levels {
    /// Those of a page.
    pub fn of(parts: &PageParts<'_>) -> Result<Levels, DecodeError> {
        let decode = |levels: &page::Levels<'_>| {
            let mut out = Vec::new();
            levels.decode(&mut out)?;
            // None is above the maximum, which has 16 bits.
            Ok::<_, DecodeError>(
                out.into_iter()
                    .map(|level| level as u16)
                    .collect::<Vec<_>>(),
            )
        };
        let rep = (parts.repetition.max > 0)
            .then(|| decode(&parts.repetition))
            .transpose()?;
        let def = if all_present(&parts.definition)? {
            None
        } else {
            Some(decode(&parts.definition)?)
        };
        Ok(Levels { rep, def })
    }

    /// How many of the page's entries, of which there are `entries`, have a value.
    pub fn present(&self, chunk: StoredChunk<'_>, entries: usize) -> usize {
        let is_present = |level: &&u16| **level == chunk.max_def;
        self.def
            .as_ref()
            .map_or(entries, |def| def.iter().filter(is_present).count())
    }

    /// Which of the page's stored values (present entries only) are kept.
    pub fn value_keep(&self, chunk: StoredChunk<'_>, entries: &KeepRuns) -> KeepRuns {
        let Some(def) = &self.def else {
            return entries.clone();
        };
        let mut values = KeepRuns::new();
        for (kept, level) in entries.iter().zip(def) {
            if *level == chunk.max_def {
                values.push(kept, 1);
            }
        }
        values
    }
}

/// Whether a page's definition levels are one run that says "present".
fn all_present(levels: &page::Levels<'_>) -> Result<bool, DecodeError> {
    if levels.max == 0 {
        return Ok(true);
    }
    if levels.bit_packed {
        return Ok(false);
    }
    let mut runs = rle::RunReader::new(levels.bytes, levels.width(), levels.count)?;
    Ok(match runs.next_run()? {
        Some(rle::Run::Rle { value, len }) => value == u32::from(levels.max) && len >= levels.count,
        _ => false,
    })
}

/// Walks a chunk's rows across its pages.
struct RowCursor<'a> {
    chunk: StoredChunk<'a>,
    position: RowPosition,
    /// Of a chunk of lists, deleted rows behind the current one.
    deleted: &'a [u32],
}

/// Where in its rows a walk stands.
#[derive(Clone, Copy, Debug)]
struct RowPosition {
    /// Rows that have begun.
    begun: u64,
    /// Whether the current row, which may go on in the next page, is kept.
    keeping: bool,
}

impl Default for RowPosition {
    fn default() -> RowPosition {
        RowPosition {
            begun: 0,
            keeping: true,
        }
    }
}

impl<'a> RowCursor<'a> {
    fn new(chunk: StoredChunk<'a>) -> Self {
        RowCursor::resume(chunk, RowPosition::default())
    }

    fn resume(chunk: StoredChunk<'a>, position: RowPosition) -> Self {
        let deleted = chunk.deleted;
        let passed = deleted.partition_point(|row| u64::from(*row) < position.begun);
        RowCursor {
            chunk,
            position,
            deleted: deleted.get(passed..).unwrap_or_default(),
        }
    }

    /// Which entries of the next page belong to rows that are kept.
    fn advance(&mut self, entries: usize, rep: Option<&[u16]>) -> Result<KeepRuns, DecodeError> {
        let Some(rep) = rep else {
            return Ok(self.advance_flat(entries));
        };
        let mut keep = KeepRuns::new();
        for level in rep {
            if *level == 0 {
                let row = self.position.begun;
                self.position.begun += 1;
                self.position.keeping = match self.deleted.split_first() {
                    Some((first, rest)) if u64::from(*first) == row => {
                        self.deleted = rest;
                        false
                    }
                    _ => true,
                };
            } else if self.position.begun == 0 {
                return Err(DecodeError::corrupt(WHAT, "starts in the middle of a row"));
            }
            keep.push(self.position.keeping, 1);
        }
        Ok(keep)
    }

    fn advance_flat(&mut self, entries: usize) -> KeepRuns {
        let start = self.position.begun;
        self.position.begun += entries as u64;
        self.chunk.keep(start, entries as u64)
    }

    fn finish(&self) -> Result<(), DecodeError> {
        if self.position.begun == self.chunk.rows {
            return Ok(());
        }
        let reason = format!(
            "holds {} rows, its row group {}",
            self.position.begun, self.chunk.rows
        );
        Err(DecodeError::corrupt(WHAT, reason))
    }
}

/// Where a missing leaf's parents stand in a row group, by the levels of its guide's chunk.
pub fn parents(
    chunk: StoredChunk<'_>,
    guide: &Guide,
    counters: &Counters,
) -> Result<Vec<Parent>, DecodeError> {
    let mut out = Vec::new();
    let mut rows = RowCursor::new(chunk);
    each_data_page(chunk, counters, |parts| {
        let levels = Levels::of(parts)?;
        let keep = rows.advance(parts.definition.count, levels.rep.as_deref())?;
        for (index, kept) in keep.iter().enumerate() {
            let level = |levels: &Option<Vec<u16>>, all: u16| {
                levels
                    .as_ref()
                    .map_or(all, |l| l.get(index).copied().unwrap_or(0))
            };
            let (rep, def) = (level(&levels.rep, 0), level(&levels.def, chunk.max_def));
            if kept && rep <= guide.parent_rep {
                let present = def >= guide.parent_def;
                let absent = guide.def_map.get(usize::from(def)).copied().unwrap_or(0);
                out.push(Parent {
                    rep,
                    def: absent,
                    present,
                });
            }
        }
        Ok(())
    })?;
    rows.finish()?;
    Ok(out)
}

/// Gives each data page, split.
fn each_data_page(
    chunk: StoredChunk<'_>,
    counters: &Counters,
    mut each: impl FnMut(&PageParts<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut scratch = Scratch::default();
    let mut pages = PageReader::new(chunk.bytes, chunk.codec, chunk.values);
    while let Some(page) = pages.next_page()? {
        if !page.is_dictionary() {
            counters.pages_decoded.add(1);
            let body = page.decompress_with(&mut scratch)?;
            each(&page.split(&body, chunk.max_rep, chunk.max_def)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
