//! A virtual Parquet file: laid out when it is opened, its bytes made when they are read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use roaring::RoaringTreemap;

use super::chunk::{GroupRows, SlotContent};
use super::clustered::clustered;
use super::extra::ExtraColumn;
use super::footer::{FooterInput, TRAILER};
use super::held::HeldChunks;
use super::layout::{Bloom, Layout, MAGIC, PAGE, Segment, SegmentBytes};
use super::levels::LeafPlan;
use super::part::{OpenedFile, Part};
use super::slot::{Behind, filler};
use super::split::{Group, row_groups};
use super::target::{FieldSources, TargetLeaf, TargetSchema, Unmergeable};
use super::{ParquetError, View};
use crate::cache::CacheKey;
use crate::iceberg::types::NestedField;
use crate::parallel::in_parallel;
use crate::rows::equality_deletes::KeyMatch;
use crate::scan::ScanFile;

/// Readers look for the footer in a file's last bytes, at most so many (pyarrow, Polars): whoever opens a file must not
/// have its last chunks made by that. The kernel may begin such a read with the page of memory that it begins in.
const TAIL_READ: u64 = (64 << 10) + PAGE;

/// The same of DuckDB 2.0, which reads more of files that are large: a share of the file, and no more than this.
const LARGE_TAIL_READ: u64 = (256 << 10) + PAGE;

/// Bytes of a file that is large.
const LARGE: u64 = 64 << 20;

/// Segments behind a reader among which slots are looked for.
const FAR: usize = 64;

/// A virtual Parquet file over some data files of a view, in their order. Its size is known; its bytes are made as
/// read.
#[derive(Debug)]
pub struct ParquetFile {
    view: Arc<View>,
    target: TargetSchema,
    parts: Vec<Part>,
    layout: Layout,
    /// Of the layout's row groups, once known: see [`GroupRows::identity`].
    identities: Vec<OnceLock<String>>,
    /// Leaves whose bounds are to be exact.
    clustered: Vec<bool>,
    /// Where the reserved tail ends, and with it the file.
    len: u64,
    /// The end of the file from the footer's first byte on, once it has been made.
    footer: Mutex<Option<Arc<Vec<u8>>>>,
    /// Whether somebody has opened it by name.
    opened: AtomicBool,
}

impl ParquetFile {
    /// Lays the file out: reads the source footers, position deletes and vectors; no data page, no equality delete.
    pub fn open(view: &Arc<View>, files: &[Arc<ScanFile>]) -> Result<ParquetFile, ParquetError> {
        let mapping = view.metadata.name_mapping()?;
        let opened = view
            .storage
            .in_parallel(files, |file| OpenedFile::open(view, mapping.as_ref(), file));
        let opened = opened.into_iter().collect::<Result<Vec<_>, _>>()?;
        let columns = ExtraColumn::of(view);
        let (opened, target) = match target_schema(view, &opened, &columns) {
            Ok(target) => (opened, target),
            Err(differ) if !differ.variants.is_empty() => {
                let variants = &differ.variants;
                let plain = in_parallel(&opened, |file| {
                    file.unshredded(view, mapping.as_ref(), variants)
                });
                let plain = plain.into_iter().collect::<Result<Vec<_>, _>>()?;
                let target = target_schema(view, &plain, &columns);
                let target = target.map_err(|differ| unsupported(&plain, differ))?;
                (plain, target)
            }
            Err(differ) => return Err(unsupported(&opened, differ)),
        };
        let parts = opened
            .into_iter()
            .map(|opened| Part::new(view, opened, &target, &columns))
            .collect::<Result<Vec<_>, _>>()?;
        let groups = row_groups(view, &parts, &target);
        let layout = Layout::new(&parts, groups, &target)?;
        let clustered = clustered(&parts, &layout, &target, &view.metadata);
        let input = FooterInput {
            view,
            target: &target,
            parts: &parts,
            layout: &layout,
            clustered: &clustered,
        };
        let mut tail = input.len_bound()?;
        let tail_read = if layout.end < LARGE {
            TAIL_READ
        } else {
            LARGE_TAIL_READ
        };
        if layout.ends_in_slot(tail_read.saturating_sub(tail)) {
            tail = tail.max(tail_read);
        }
        let len = layout.end + tail;
        Ok(ParquetFile {
            view: Arc::clone(view),
            len,
            target,
            parts,
            identities: layout.groups.iter().map(|_| OnceLock::new()).collect(),
            layout,
            clustered,
            footer: Mutex::new(None),
            opened: AtomicBool::new(false),
        })
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nobody has asked this before: then whatever is known of its bytes elsewhere is of another making.
    pub fn is_first_opening(&self) -> bool {
        !self.opened.swap(true, Ordering::Relaxed)
    }

    /// Whether it is well read through the page cache, though the kernel reads ahead, beyond the end of the chunk that
    /// somebody reads. Where many chunks are short, what a reader pays is the requests and not the bytes; bytes of local
    /// files cost next to nothing. Chunks that would have to be made, or fetched from a store, for nobody are dear.
    pub fn suits_page_cache(&self) -> bool {
        self.layout.has_short_chunks()
            || self.layout.is_nearly_all_source() && !self.view.storage.is_remote()
    }

    /// What a reader should know of how its data files were read (rule 41).
    pub fn warnings(&self) -> Vec<String> {
        let by_position = self
            .parts
            .iter()
            .filter(|part| part.opened.projection.ids_by_position);
        by_position
            .map(|part| {
                let path = part.path();
                format!(
                    "{path}: has no field ids and the table has no name mapping: its columns were \
                     taken by position"
                )
            })
            .collect()
    }

    /// Never: a Parquet file has a footer.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `buf` from `offset`; fewer bytes than asked only at the end of the file.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, ParquetError> {
        self.read_holding(offset, buf, None)
    }

    /// As [`ParquetFile::read_at`], for who reads a row group from end to end and holds its chunks so long.
    pub fn read_holding(
        &self,
        offset: u64,
        buf: &mut [u8],
        held: Option<&HeldChunks>,
    ) -> Result<usize, ParquetError> {
        let wanted = self.len.saturating_sub(offset).min(buf.len() as u64);
        // At most the buffer's length.
        let wanted = wanted as usize;
        let (mut rest, _) = buf.split_at_mut(wanted);
        let mut at = offset;
        while !rest.is_empty() {
            let (piece_end, source) = self.piece(at);
            let len = (piece_end - at).min(rest.len() as u64) as usize;
            let (piece, after) = rest.split_at_mut(len);
            self.fill_piece(source, at, held, piece)?;
            at += len as u64;
            rest = after;
        }
        Ok(wanted)
    }

    /// `len` bytes from `offset`, where one chunk that is made whole has them all: nothing is copied then.
    pub fn read_shared(&self, offset: u64, len: usize) -> Result<Option<Bytes>, ParquetError> {
        let (_, Piece::Segment(index, segment)) = self.piece(offset) else {
            return Ok(None);
        };
        let inside = offset - segment.offset;
        // The end of a slot is filler, which is in no chunk; so its chunk need not be looked for here and then once more.
        if segment.bytes != SegmentBytes::Slot || inside + len as u64 >= segment.len {
            return Ok(None);
        }
        self.with_rows(index, |rows, leaf, target| {
            let is_made = matches!(rows.content(leaf)?, SlotContent::Made);
            if !is_made || rows.grows(&self.view, leaf, target)?.is_some() {
                return Ok(None);
            }
            let chunk = rows.made(&self.view, leaf, target)?;
            // One that is too long for its slot is an error, which reading it gives.
            let fits = chunk.len() <= rows.stated_len(leaf, target, segment.len)?;
            let shared = fits.then(|| chunk.shared(inside, len)).flatten();
            if shared.is_some() {
                let counters = self.view.storage.counters();
                counters.slot_bytes_served.add(len as u64);
            }
            Ok(shared)
        })
    }

    /// The next slots behind the segment that holds `offset`, for [`ParquetFile::make_ahead`]: at most `count` of them,
    /// and at most so many bytes together.
    pub fn slots_behind(&self, offset: u64, count: usize, bytes: u64) -> Vec<usize> {
        let first = self.layout.segment_at(offset) + 1;
        let behind = self.layout.segments.iter().enumerate().skip(first);
        // Slots behind many chunks that are none are far from being read.
        let slots = behind
            .take(FAR)
            .filter(|(_, segment)| segment.bytes == SegmentBytes::Slot);
        let mut left = bytes;
        slots
            .take(count)
            .take_while(|(_, segment)| {
                let fits = segment.len <= left;
                left = left.saturating_sub(segment.len);
                fits
            })
            .map(|(index, _)| index)
            .collect()
    }

    /// The leaf columns of the file.
    pub fn leaves(&self) -> usize {
        self.target.leaves.len()
    }

    /// How many segments apart two places of the file are.
    pub fn segments_between(&self, from: u64, to: u64) -> usize {
        let (from, to) = (self.layout.segment_at(from), self.layout.segment_at(to));
        to.saturating_sub(from)
    }

    /// Makes the chunk of a slot, for whoever will read it. An error is met again by them.
    pub fn make_ahead(&self, slot: usize) {
        let _ = self.with_rows(slot, |rows, leaf, target| {
            if matches!(rows.content(leaf)?, SlotContent::Made) {
                rows.made(&self.view, leaf, target)?;
            }
            Ok(())
        });
    }

    /// Begins to fetch what ranges of this file are made from, where that lies in a store. For one who reads them whole.
    pub fn prefetch(&self, ranges: &[Range<u64>]) {
        if !self.view.storage.is_remote() {
            return;
        }
        let mut wanted: BTreeMap<usize, Vec<Range<u64>>> = BTreeMap::new();
        for range in ranges {
            let first = self.layout.segment_at(range.start.max(MAGIC.len() as u64));
            let segments = self.layout.segments.iter().enumerate().skip(first);
            for (index, segment) in segments.take_while(|(_, s)| s.offset < range.end) {
                if let Some((part, source)) = self.source_of(index, segment) {
                    wanted.entry(part).or_default().push(source);
                }
            }
        }
        for (part, ranges) in wanted {
            if let Some(part) = self.parts.get(part) {
                part.opened.file.prefetch(&ranges);
            }
        }
    }

    /// The part, and the bytes of its data file, that a segment is made from.
    fn source_of(&self, index: usize, segment: &Segment) -> Option<(usize, Range<u64>)> {
        let (group, leaf) = self.layout.place(index);
        let place = self.layout.groups.get(group)?;
        let part = self.parts.get(place.part)?;
        let source = match segment.bytes {
            SegmentBytes::Source { offset } => offset..offset + segment.len,
            SegmentBytes::Slot => match part.leaves.get(leaf)?.plan {
                LeafPlan::Stored { column, .. } => part.chunk_range(place.group, column).ok()?,
                _ => return None,
            },
        };
        Some((place.part, source))
    }

    /// The part of the file that holds a byte, and where it ends.
    fn piece(&self, at: u64) -> (u64, Piece) {
        let magic = MAGIC.len() as u64;
        if at < magic {
            return (magic, Piece::Magic);
        }
        let index = self.layout.segment_at(at);
        match self.layout.segments.get(index) {
            Some(segment) => (
                segment.offset + segment.len,
                Piece::Segment(index, *segment),
            ),
            None => match self.layout.bloom_at(at) {
                Some(bloom) => (bloom.offset + bloom.len, Piece::Bloom(*bloom)),
                None => (self.len, Piece::Tail),
            },
        }
    }

    fn fill_piece(
        &self,
        piece: Piece,
        at: u64,
        held: Option<&HeldChunks>,
        out: &mut [u8],
    ) -> Result<(), ParquetError> {
        match piece {
            Piece::Magic => copy_from(MAGIC, at, out),
            Piece::Tail => {
                let tail = self.footer()?;
                let start = self.len - tail.len() as u64;
                let zeros = start.saturating_sub(at).min(out.len() as u64) as usize;
                let (gap, rest) = out.split_at_mut(zeros);
                gap.fill(0);
                copy_from(&tail, at.max(start) - start, rest);
            }
            Piece::Bloom(bloom) => {
                let part = self.parts.get(bloom.part);
                let part =
                    part.ok_or_else(|| self.inconsistent("a Bloom filter without a file"))?;
                let offset = bloom.source + (at - bloom.offset);
                part.opened.file.read_exact_at(out, offset)?;
            }
            Piece::Segment(index, segment) => {
                let inside = at - segment.offset;
                match segment.bytes {
                    SegmentBytes::Source { offset } => {
                        let (part, _) = self.group(self.layout.place(index).0)?;
                        let chunk = offset..offset + segment.len;
                        let file = &part.opened.file;
                        file.read_exact_within(out, offset + inside, &chunk)?;
                    }
                    SegmentBytes::Slot => self.fill_slot(index, segment, held, inside, out)?,
                }
            }
        }
        Ok(())
    }

    fn fill_slot(
        &self,
        index: usize,
        segment: Segment,
        held: Option<&HeldChunks>,
        inside: u64,
        out: &mut [u8],
    ) -> Result<(), ParquetError> {
        self.with_rows(index, |rows, leaf, target| {
            self.fill_slot_of(rows, (leaf, target), (index, segment), held, inside, out)
        })
    }

    /// Gives `f` the row group that the segment is of, as it is now, and the leaf.
    fn with_rows<R>(
        &self,
        index: usize,
        f: impl FnOnce(GroupRows<'_>, usize, &TargetLeaf) -> Result<R, ParquetError>,
    ) -> Result<R, ParquetError> {
        let (group, leaf) = self.layout.place(index);
        let known = self.identities.get(group);
        let (part, place) = self.group(group)?;
        let target = self.target.leaves.get(leaf);
        let target = target.ok_or_else(|| part.corrupt("no such column".to_owned()))?;
        let deleted = self.deleted(part)?;
        let mut rows = GroupRows::new(part, place, &deleted);
        if let Some(known) = known {
            rows = rows.noting(known);
        }
        f(rows, leaf, target)
    }

    fn fill_slot_of(
        &self,
        rows: GroupRows<'_>,
        (leaf, target): (usize, &TargetLeaf),
        (index, segment): (usize, Segment),
        held: Option<&HeldChunks>,
        inside: u64,
        out: &mut [u8],
    ) -> Result<(), ParquetError> {
        let part = rows.part;
        let counters = self.view.storage.counters();
        counters.slot_bytes_served.add(out.len() as u64);
        let mut padding = out.len();
        match rows.content(leaf)? {
            SlotContent::Nothing => out.fill(0),
            SlotContent::Source { offset, len } => {
                let stored = len.saturating_sub(inside).min(out.len() as u64) as usize;
                padding -= stored;
                let (bytes, zeros) = out.split_at_mut(stored);
                if !bytes.is_empty() {
                    let chunk = offset..offset + len;
                    let file = &part.opened.file;
                    file.read_exact_within(bytes, offset + inside, &chunk)?;
                }
                zeros.fill(0);
            }
            SlotContent::Made => {
                let (leaf, slot) = ((leaf, target), (index, segment.len));
                let (mut filled, chunk_len) =
                    rows.read_made(&self.view, leaf, slot, held, inside, out)?;
                padding -= filled;
                let Some(chunk_len) = chunk_len else {
                    counters.padding_bytes_served.add(padding as u64);
                    return Ok(());
                };
                let stated = rows.stated_len(leaf.0, target, segment.len)?;
                let rest = stated
                    .checked_sub(chunk_len)
                    .and_then(|r| usize::try_from(r).ok());
                let behind = Behind::of(target.physical, target.max_def, target.max_rep);
                let filler = rest.and_then(|rest| match behind {
                    Behind::ClosingPages(closing) => filler(rest, closing),
                    Behind::Gap => Some(Vec::new()),
                });
                let filler = filler.ok_or_else(|| {
                    let column = target.path.join(".");
                    part.corrupt(format!(
                        "column {column}: {chunk_len} bytes in a slot of {stated} (the footer \
                         gives a wrong size, or this is a bug)"
                    ))
                })?;
                let behind = (inside + filled as u64).saturating_sub(chunk_len);
                let rest = out.get_mut(filled..).unwrap_or_default();
                filled += copy_some(&filler, behind, rest);
                out.get_mut(filled..).unwrap_or_default().fill(0);
            }
        }
        counters.padding_bytes_served.add(padding as u64);
        Ok(())
    }

    /// The schema.
    pub(super) fn target(&self) -> &TargetSchema {
        &self.target
    }

    /// The row groups of the layout, those without rows too, and where the identity of each is noted.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&Group, &OnceLock<String>)> {
        self.layout.groups.iter().zip(&self.identities)
    }

    /// A data file.
    pub(super) fn part(&self, part: usize) -> Result<&Part, ParquetError> {
        let part = self.parts.get(part);
        part.ok_or_else(|| self.inconsistent("a row group without a file"))
    }

    fn group(&self, group: usize) -> Result<(&Part, &Group), ParquetError> {
        let place = self.layout.groups.get(group);
        let found = place.and_then(|place| Some((self.parts.get(place.part)?, place)));
        found.ok_or_else(|| self.inconsistent("a segment without a row group"))
    }

    /// An error that only a bug can bring about.
    fn inconsistent(&self, reason: &str) -> ParquetError {
        let path = self.parts.first().map_or("", |part| part.path()).to_owned();
        ParquetError::Corrupt {
            path,
            reason: reason.to_owned(),
        }
    }

    /// The file's end, from the footer's first byte on.
    fn footer(&self) -> Result<Arc<Vec<u8>>, ParquetError> {
        let mut made = self.footer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = &*made {
            return Ok(Arc::clone(tail));
        }
        let input = FooterInput {
            view: &self.view,
            target: &self.target,
            parts: &self.parts,
            layout: &self.layout,
            clustered: &self.clustered,
        };
        // Equality deletes are what takes time here: match them for all files at once.
        let parts = self.parts.iter();
        let matched: Vec<&Part> = parts.filter(|part| part.has_equality_deletes()).collect();
        let storage = &self.view.storage;
        storage
            .in_parallel(&matched, |part| self.deleted(part).map(|_| ()))
            .into_iter()
            .collect::<Result<(), _>>()?;
        let mut tail = input.make(|part| self.deleted(part))?;
        let len = u32::try_from(tail.len())
            .map_err(|_| self.inconsistent("a footer larger than its tail"))?;
        tail.extend_from_slice(&len.to_le_bytes());
        tail.extend_from_slice(MAGIC);
        if tail.len() as u64 > self.len - self.layout.end || tail.len() as u64 <= TRAILER {
            return Err(self.inconsistent("a footer larger than its tail"));
        }
        self.view.storage.counters().footers_made.add(1);
        let tail = Arc::new(tail);
        *made = Some(Arc::clone(&tail));
        Ok(tail)
    }

    /// Positions of a data file that any delete removes.
    pub(super) fn deleted(&self, part: &Part) -> Result<Arc<RoaringTreemap>, ParquetError> {
        if !part.has_equality_deletes() {
            return Ok(Arc::clone(&part.opened.position_deleted));
        }
        let key = CacheKey {
            kind: "deleted",
            id: part.cache_id.clone(),
        };
        self.view.cache.get_or_make(key, || {
            let scan = &part.opened.scan;
            let (view, metadata) = (&self.view, &self.view.metadata);
            let matching = KeyMatch::new(scan, metadata, &view.storage, &view.cache)?;
            let groups: Vec<usize> = (0..matching.row_groups()?).collect();
            let mut deleted = (*part.opened.position_deleted).clone();
            for found in in_parallel(&groups, |group| matching.row_group(*group)) {
                deleted |= found?.as_ref();
            }
            let weight = deleted.serialized_size();
            Ok((deleted, weight))
        })
    }
}

enum Piece {
    Magic,
    Segment(usize, Segment),
    Bloom(Bloom),
    Tail,
}

/// Fills `out` with `bytes` from `at` on; `bytes` has enough.
fn copy_from(bytes: &[u8], at: u64, out: &mut [u8]) {
    copy_some(bytes, at, out);
}

/// Copies what there is of `bytes` from `at` on, and gives how much that was.
fn copy_some(bytes: &[u8], at: u64, out: &mut [u8]) -> usize {
    let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let there = bytes.get(from..).unwrap_or_default();
    let len = there.len().min(out.len());
    if let (Some(to), Some(from)) = (out.get_mut(..len), there.get(..len)) {
        to.copy_from_slice(from);
    }
    len
}

/// The schema of a file over these data files.
fn target_schema(
    view: &View,
    opened: &[OpenedFile],
    columns: &[ExtraColumn],
) -> Result<TargetSchema, Unmergeable> {
    let sources = |index: usize| -> FieldSources<'_> {
        opened
            .iter()
            .filter_map(|o| Some((&o.footer.schema, &o.projection.fields.get(index)?.source)))
            .collect()
    };
    let own = view.schema.fields.fields.iter().enumerate();
    let own = own.map(|(index, field)| (&**field, sources(index)));
    let extra = columns.iter().map(|column| (&*column.field, Vec::new()));
    let fields: Vec<(&NestedField, FieldSources<'_>)> = own.chain(extra).collect();
    TargetSchema::build(&fields)
}

fn unsupported(opened: &[OpenedFile], differ: Unmergeable) -> ParquetError {
    ParquetError::Unsupported {
        path: opened.first().map_or("", |o| &o.scan.file.path).to_owned(),
        feature: differ.feature,
    }
}

#[cfg(test)]
mod tests;
