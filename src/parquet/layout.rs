//! A virtual file's layout: where every column chunk stands and how its bytes come about, known from metadata alone.
//!
//! ```text
//! PAR1 │ row group 0: leaf 0 │ leaf 1 │ … │ row group 1: … │ Bloom filters │ zeros │ footer │ length │ PAR1
//! ```
//!
//! Chunks stand in schema order with ascending offsets, since readers depend on that. A row group that surely lost all
//! of its rows is not laid out; one that loses them to equality deletes keeps its segments, which no footer names.

use super::ParquetError;
use super::extra::lineage_is_complete;
use super::levels::{LeafPlan, MissingLeaf};
use super::part::Part;
use super::slot::FILL;
use super::split::Group;
use super::synth::{self, Parents};
use super::target::{TargetLeaf, TargetSchema};

/// The magic that a Parquet file starts and ends with.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// Bytes of a chunk, on average, in a file of short ones at most.
const SHORT_CHUNK: u64 = 16 << 10;

/// The share of a file's bytes that is made, at most, where nearly all of it is source bytes: one in so many. Reading
/// ahead then makes less than repeated reads save.
const MADE_SHARE: u64 = 8;

/// Row groups of a file of short chunks at least: with fewer of them, requests are few whatever the kernel does.
const MANY_GROUPS: usize = 64;

/// Bytes of a slot that ends where a page of memory ends, at least: the kernel reads whole pages, and whoever reads the
/// first bytes of a chunk must not have the last ones of the chunk before it made.
const LARGE_SLOT: u64 = 128 << 10;

/// Bytes of a page of memory.
pub const PAGE: u64 = 4096;

/// The segments of a virtual file, from the magic to the footer.
#[derive(Debug)]
pub struct Layout {
    /// Row groups, in order.
    pub groups: Vec<Group>,
    /// One segment for each leaf of each row group, in order, without gaps.
    pub segments: Vec<Segment>,
    /// Bloom filters of the source files, in order, without gaps.
    pub blooms: Vec<Bloom>,
    /// Leaves per row group.
    leaves: usize,
    /// Where the last of these ends.
    pub end: u64,
}

/// A Bloom filter's place. It holds for a chunk that lost rows too: it may say "maybe" of a value that is gone.
#[derive(Clone, Copy, Debug)]
pub struct Bloom {
    /// In the virtual file, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Index of the data file in the virtual file.
    pub part: usize,
    /// In the data file, in bytes.
    pub source: u64,
    /// The segment whose values it covers.
    segment: usize,
}

/// One column chunk's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// In the virtual file, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    pub bytes: SegmentBytes,
}

/// Where a segment's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentBytes {
    /// The source file, unchanged, from this offset.
    Source { offset: u64 },
    /// A slot: a chunk made when it is read, or (where equality deletes turn out to hit none of its rows) the source's
    /// bytes, and filler.
    Slot,
}

impl Layout {
    /// Lays out row groups of `parts`.
    pub fn new(
        parts: &[Part],
        groups: Vec<Group>,
        target: &TargetSchema,
    ) -> Result<Layout, ParquetError> {
        let mut layout = Layout {
            groups,
            segments: Vec::new(),
            blooms: Vec::new(),
            leaves: target.leaves.len(),
            end: MAGIC.len() as u64,
        };
        for place in &layout.groups {
            let Some(part) = parts.get(place.part) else {
                continue;
            };
            let deleted = &part.opened.position_deleted;
            let state = GroupState {
                part,
                place,
                rows: place.rows.end - place.rows.start,
                deleted: deleted.range_cardinality(place.rows.clone()),
            };
            for (leaf, target_leaf) in target.leaves.iter().enumerate() {
                let (mut len, bytes) = state.span(leaf, target_leaf)?;
                if bytes == SegmentBytes::Slot && len >= LARGE_SLOT {
                    len = up_to_a_page(layout.end, len);
                }
                layout.segments.push(Segment {
                    offset: layout.end,
                    len,
                    bytes,
                });
                layout.end = layout
                    .end
                    .checked_add(len)
                    .ok_or_else(|| part.corrupt("a file of more than 2^64 bytes".to_owned()))?;
            }
        }
        layout.place_blooms(parts, target);
        Ok(layout)
    }

    fn place_blooms(&mut self, parts: &[Part], target: &TargetSchema) {
        for (index, place) in self.groups.iter().enumerate() {
            if self.first_of(place) != index {
                continue;
            }
            for leaf in 0..target.leaves.len() {
                let range = parts
                    .get(place.part)
                    .and_then(|part| part.bloom_filter(place.group, leaf));
                let Some((source, len)) = range else { continue };
                let Some(end) = self.end.checked_add(len) else {
                    return;
                };
                self.blooms.push(Bloom {
                    offset: self.end,
                    len,
                    part: place.part,
                    source,
                    segment: index * self.leaves + leaf,
                });
                self.end = end;
            }
        }
    }

    /// The Bloom filter of a leaf in a row group.
    pub fn bloom(&self, group: usize, leaf: usize) -> Option<&Bloom> {
        let segment = self.first_of(self.groups.get(group)?) * self.leaves + leaf;
        let index = self
            .blooms
            .binary_search_by_key(&segment, |bloom| bloom.segment);
        self.blooms.get(index.ok()?)
    }

    /// The first row group over the same one of the data file: its pieces have one Bloom filter.
    fn first_of(&self, place: &Group) -> usize {
        let key = |place: &Group| (place.part, place.group);
        self.groups.partition_point(|other| key(other) < key(place))
    }

    /// The Bloom filter that holds a byte of the file.
    pub fn bloom_at(&self, offset: u64) -> Option<&Bloom> {
        let index = self
            .blooms
            .partition_point(|bloom| bloom.offset + bloom.len <= offset);
        self.blooms
            .get(index)
            .filter(|bloom| bloom.offset <= offset)
    }

    /// Whether the file is of many row groups with short chunks, as that of a table of many small files.
    pub fn has_short_chunks(&self) -> bool {
        self.groups.len() >= MANY_GROUPS
            && self.end / self.segments.len().max(1) as u64 <= SHORT_CHUNK
    }

    /// Whether nearly all bytes are those of data files, unchanged, so that reading ahead makes next to nothing.
    pub fn is_nearly_all_source(&self) -> bool {
        let slots = self.segments.iter();
        let slots = slots.filter(|segment| segment.bytes == SegmentBytes::Slot);
        slots.map(|segment| segment.len).sum::<u64>() <= self.end / MADE_SHARE
    }

    /// Whether a slot reaches into the last `len` bytes before the end.
    pub fn ends_in_slot(&self, len: u64) -> bool {
        let start = self.end.saturating_sub(len);
        let behind = self.segments.iter().rev();
        behind
            .take_while(|segment| segment.offset + segment.len > start)
            .any(|segment| segment.bytes == SegmentBytes::Slot)
    }

    /// The segment of a leaf in a row group.
    pub fn segment(&self, group: usize, leaf: usize) -> Option<&Segment> {
        self.segments.get(group * self.leaves + leaf)
    }

    /// The index of the segment that holds a byte of the file, or of the first one behind it.
    pub fn segment_at(&self, offset: u64) -> usize {
        self.segments
            .partition_point(|s| s.offset + s.len <= offset)
    }

    /// The row group (by its index in the layout) and leaf of a segment.
    pub fn place(&self, segment: usize) -> (usize, usize) {
        let leaves = self.leaves.max(1);
        (segment / leaves, segment % leaves)
    }
}

/// The length of a slot from `start` that is to be `len` at least and to end with a page, with room for filler.
fn up_to_a_page(start: u64, len: u64) -> u64 {
    let end = start.saturating_add(len).saturating_add(FILL);
    let end = end.checked_next_multiple_of(PAGE).unwrap_or(end);
    end - start
}

/// What is known of a row group when it is laid out.
struct GroupState<'a> {
    part: &'a Part,
    place: &'a Group,
    rows: u64,
    /// By position deletes or a vector.
    deleted: u64,
}

impl GroupState<'_> {
    fn untouched(&self) -> bool {
        self.deleted == 0 && self.is_whole() && !self.part.has_equality_deletes()
    }

    fn is_whole(&self) -> bool {
        self.place.spans.is_none()
    }

    fn span(&self, leaf: usize, target: &TargetLeaf) -> Result<(u64, SegmentBytes), ParquetError> {
        let Some(part_leaf) = self.part.leaves.get(leaf) else {
            return Err(self.part.corrupt("a leaf without a plan".to_owned()));
        };
        match &part_leaf.plan {
            LeafPlan::Stored { column, .. } => {
                let chunk = self.part.chunk(self.place.group, *column)?;
                let Some(stored) = part_leaf.stored else {
                    return Err(self.part.corrupt("a leaf without a plan".to_owned()));
                };
                let as_it_is = self
                    .part
                    .is_served_as_it_is(self.place.group, stored, *column);
                let spans = self.place.spans.as_deref().unwrap_or_default();
                let span = spans.get(*column).and_then(Option::as_ref);
                let slot = stored.slot_len(chunk, span, target, self.rows - self.deleted);
                self.source_or_slot(*column, as_it_is, slot)
            }
            LeafPlan::Missing(missing) => self.missing(missing, target),
            LeafPlan::RowId { first: None, .. }
            | LeafPlan::LastUpdated {
                inherited: None, ..
            } => {
                let missing = MissingLeaf {
                    guide: None,
                    entries: vec![synth::null_entry(0)],
                };
                self.missing(&missing, target)
            }
            LeafPlan::RowId {
                stored: Some(column),
                ..
            }
            | LeafPlan::LastUpdated {
                stored: Some(column),
                ..
            } => {
                let complete = lineage_is_complete(&self.part.opened, self.place.group, *column);
                self.source_or_slot(*column, complete, synth::longs_len_bound(self.rows) + FILL)
            }
            LeafPlan::RowId { .. } | LeafPlan::Position => {
                let deleted = (!self.part.has_equality_deletes()).then_some(self.deleted);
                let len = synth::positions_len_bound(self.rows, deleted) + FILL;
                Ok((len, SegmentBytes::Slot))
            }
            LeafPlan::LastUpdated {
                inherited: Some(value),
                ..
            } => {
                let missing = MissingLeaf {
                    guide: None,
                    entries: vec![synth::long_entry(*value)],
                };
                self.missing(&missing, target)
            }
        }
    }

    fn source_or_slot(
        &self,
        column: usize,
        identical: bool,
        slot: u64,
    ) -> Result<(u64, SegmentBytes), ParquetError> {
        let range = self.part.chunk_range(self.place.group, column)?;
        let source = range.end - range.start;
        Ok(if identical && self.untouched() {
            (
                source,
                SegmentBytes::Source {
                    offset: range.start,
                },
            )
        } else if identical && self.deleted == 0 && self.is_whole() {
            (slot.max(source), SegmentBytes::Slot)
        } else {
            (slot, SegmentBytes::Slot)
        })
    }

    fn missing(
        &self,
        missing: &MissingLeaf,
        target: &TargetLeaf,
    ) -> Result<(u64, SegmentBytes), ParquetError> {
        let bound = |parents: u64| {
            let entries = parents.saturating_mul(missing.entries.len() as u64);
            synth::constant_len_bound(target, &missing.entries, entries) + FILL
        };
        let len = match (&missing.guide, missing.entries.len()) {
            // One run, or one bit a row: fewer rows take no more bytes.
            (None, 1) => {
                let rows = Parents::Rows(self.rows - self.deleted);
                let chunk = synth::constant(target, &missing.entries, &rows)
                    .map_err(|reason| self.part.corrupt(reason))?;
                let spare = if self.part.has_equality_deletes() {
                    FILL
                } else {
                    0
                };
                chunk.bytes.len() as u64 + spare
            }
            (None, _) => bound(self.rows),
            (Some(guide), _) => {
                let chunk = self.part.chunk(self.place.group, guide.column)?;
                bound(u64::try_from(chunk.num_values).unwrap_or(0))
            }
        };
        Ok((len, SegmentBytes::Slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_slot_ends_with_a_page_and_has_room_for_filler() {
        for start in [4, 4095, 4096, 1 << 40] {
            for len in [LARGE_SLOT, LARGE_SLOT + 4000, LARGE_SLOT + 4096, 1 << 33] {
                let longer = up_to_a_page(start, len);
                assert_eq!((start + longer) % PAGE, 0);
                assert!(longer >= len + FILL && longer < len + FILL + PAGE);
            }
        }
        assert_eq!(up_to_a_page(u64::MAX - 10, 5), 10);
    }
}
