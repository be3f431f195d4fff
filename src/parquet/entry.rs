//! What the footer of a virtual file says of one column chunk.

use std::ops::Range;

use roaring::RoaringTreemap;

use super::ParquetError;
use super::chunk::GroupRows;
use super::footer::FooterInput;
use super::format::{Codec, ColumnChunk, Encoding, Page, PageHeader, Statistics};
use super::layout::{Segment, SegmentBytes};
use super::levels::LeafPlan;
use super::made::dictionary_page_len;
use super::part::{Part, PartLeaf};
use super::slot::{Behind, has_dictionary, transcoded_encodings};
use super::split::Group;
use super::statistics::{Change, after};
use super::synth;
use super::target::TargetLeaf;
use crate::iceberg::types::PrimitiveType;
use crate::rows::file_schema::Physical;

/// Bytes that hold a source dictionary page's header.
const HEADER_READ: u64 = 64;

impl FooterInput<'_> {
    /// A chunk's entry, now that its rows are known. `exact`: the statistics of what is left of it, where they were found.
    pub(super) fn chunk(
        &self,
        rows: &GroupRows<'_>,
        leaf: usize,
        part_leaf: &PartLeaf,
        target: &TargetLeaf,
        segment: &Segment,
        exact: Option<&Statistics>,
    ) -> Result<ColumnChunk, ParquetError> {
        if let Some(column) = rows.source_column(leaf) {
            return source_chunk(rows.part, rows.group(), column, part_leaf, target, segment);
        }
        let mut entry = slot_chunk(target, segment);
        entry.num_values = signed(rows.rows());
        entry.total_compressed_size = signed(rows.stated_len(leaf, target, segment.len)?);
        entry.total_uncompressed_size = entry.total_compressed_size;
        match (&part_leaf.plan, part_leaf.stored) {
            (LeafPlan::Stored { column, .. }, Some(stored)) => {
                let source = rows.part.chunk(rows.group(), *column)?;
                let span = rows.span(*column)?;
                let has_dictionary = has_dictionary(&source.encodings)
                    && span.is_none_or(|span| span.dictionary.is_some());
                entry.encodings = transcoded_encodings(&source.encodings, has_dictionary);
                if stored.max_rep > 0 {
                    entry.num_values = if !rows.lost_rows() {
                        source.num_values
                    } else {
                        signed(rows.made(self.view, leaf, target)?.num_values)
                    };
                }
                if has_dictionary {
                    let len = self.dictionary_len(rows, *column, stored.conversion.widths())?;
                    place_dictionary(&mut entry, segment, len);
                }
                let change = Change {
                    source: stored.physical,
                    conversion: stored.conversion,
                    source_values: u64::try_from(source.num_values).unwrap_or(0),
                    values: u64::try_from(entry.num_values).unwrap_or(0),
                    dropped_rows: rows.lost_rows(),
                    ordered: rows.part.opened.footer.metadata.column_orders,
                    shapes: has_shapes(target),
                };
                let source = source.statistics.as_ref();
                entry.statistics = exact.cloned().or_else(|| after(source, change));
            }
            (LeafPlan::Missing(missing), _)
                if missing.guide.is_none() && missing.entries.len() == 1 =>
            {
                if let [only] = missing.entries.as_slice() {
                    constant_entry(&mut entry, only.value.as_ref(), rows, target, segment)?;
                }
            }
            (LeafPlan::Missing(_), _) => {
                let made = rows.made(self.view, leaf, target)?;
                entry.num_values = signed(made.num_values);
                let mut head = [0; HEADER_READ as usize];
                let read = made.read_at(0, &mut head).map_err(|e| rows.lost(e))?;
                if let Some(len) = leading_dictionary(head.get(..read).unwrap_or_default()) {
                    entry.encodings = vec![Encoding::Plain, Encoding::Rle, Encoding::RleDictionary];
                    place_dictionary(&mut entry, segment, len);
                }
            }
            (
                LeafPlan::LastUpdated {
                    inherited: Some(value),
                    stored: None,
                },
                _,
            ) => {
                let value = synth::long_entry(*value).value;
                constant_entry(&mut entry, value.as_ref(), rows, target, segment)?;
            }
            (
                LeafPlan::RowId { first: None, .. }
                | LeafPlan::LastUpdated {
                    inherited: None, ..
                },
                _,
            ) => {
                constant_entry(&mut entry, None, rows, target, segment)?;
            }
            (
                LeafPlan::RowId {
                    first,
                    stored: None,
                },
                _,
            ) => {
                position_entry(&mut entry, first.unwrap_or(0), rows);
            }
            (LeafPlan::Position, _) => {
                position_entry(&mut entry, 0, rows);
            }
            (
                LeafPlan::RowId { .. } | LeafPlan::LastUpdated { .. } | LeafPlan::Stored { .. },
                _,
            ) => {
                entry.encodings = vec![Encoding::Rle, Encoding::DeltaBinaryPacked];
            }
        }
        if Behind::of(target.physical, target.max_def, target.max_rep) == Behind::Gap {
            let len = rows.made(self.view, leaf, target)?.len();
            let len = i64::try_from(len).unwrap_or(i64::MAX);
            entry.total_uncompressed_size = len;
            entry.total_compressed_size = len;
        }
        Ok(entry)
    }

    /// The entry with which a chunk takes most bytes in the footer, whatever its rows turn out to be.
    pub(super) fn largest_chunk(
        &self,
        (part, place): (&Part, &Group),
        leaf: usize,
        part_leaf: &PartLeaf,
        target: &TargetLeaf,
        segment: &Segment,
    ) -> Result<ColumnChunk, ParquetError> {
        let none = RoaringTreemap::new();
        let rows = GroupRows::new(part, place, &none);
        let group = place.group;
        let source = match rows.source_column(leaf) {
            Some(column) => Some(source_chunk(
                part, group, column, part_leaf, target, segment,
            )?),
            None => None,
        };
        if let (Some(source), SegmentBytes::Source { .. }) = (&source, segment.bytes) {
            return Ok(source.clone());
        }
        let mut entry = slot_chunk(target, segment);
        entry.num_values = signed(rows.rows());
        // Offsets in the segment are below its end.
        let end = signed(segment.offset + segment.len);
        entry.data_page_offset = end;
        entry.dictionary_page_offset = Some(end);
        entry.encodings = vec![Encoding::Plain; 4];
        let mut statistics = Statistics {
            null_count: Some(i64::MAX),
            is_max_value_exact: Some(false),
            is_min_value_exact: Some(false),
            ..Statistics::default()
        };
        let mut bound_len = |bytes: Option<usize>| {
            let longest = vec![0; bytes.unwrap_or(0) + 16].into_boxed_slice();
            statistics.min_value = Some(longest.clone());
            statistics.max_value = Some(longest);
        };
        match &part_leaf.plan {
            LeafPlan::Stored { column, .. } => {
                let chunk = part.chunk(group, *column)?;
                entry.num_values = chunk.num_values;
                let longest = chunk.statistics.as_ref().map(|s| {
                    let len = |b: &Option<Box<[u8]>>| b.as_ref().map_or(0, |b| b.len());
                    len(&s.min_value)
                        .max(len(&s.max_value))
                        .max(len(&s.min))
                        .max(len(&s.max))
                });
                bound_len(longest);
            }
            LeafPlan::Missing(missing) => {
                if let Some(guide) = &missing.guide {
                    let entries = missing.entries.len() as i64;
                    entry.num_values = part
                        .chunk(group, guide.column)?
                        .num_values
                        .saturating_mul(entries);
                } else {
                    let entries = missing.entries.len() as i64;
                    entry.num_values = entry.num_values.saturating_mul(entries);
                }
                let longest = missing.entries.iter().filter_map(|e| e.value.as_ref());
                let longest = longest
                    .filter_map(|v| synth::plain_value(v, target).ok())
                    .map(|v| v.len());
                bound_len(longest.max());
            }
            _ => bound_len(None),
        }
        entry.statistics = Some(statistics);
        if let Some(source) = source {
            entry.encodings.extend(source.encodings);
            entry.encoding_stats = source.encoding_stats;
            entry.total_uncompressed_size = entry
                .total_uncompressed_size
                .max(source.total_uncompressed_size);
            if let (Some(ours), Some(theirs)) = (&mut entry.statistics, source.statistics) {
                ours.min = theirs.min;
                ours.max = theirs.max;
                ours.distinct_count = theirs.distinct_count;
            }
        }
        Ok(entry)
    }

    /// Begins to fetch what [`FooterInput::dictionary_len`] reads of a row group, all at once.
    pub(super) fn prefetch_dictionaries(&self, rows: &GroupRows<'_>) -> Result<(), ParquetError> {
        let mut heads = Vec::new();
        for (leaf, part_leaf) in rows.part.leaves.iter().enumerate() {
            let LeafPlan::Stored { column, .. } = part_leaf.plan else {
                continue;
            };
            let made = rows.source_column(leaf).is_none();
            if made && has_dictionary(&rows.part.chunk(rows.group(), column)?.encodings) {
                heads.push(head(&rows.part.chunk_range(rows.group(), column)?));
            }
        }
        rows.part.opened.file.prefetch(&heads);
        Ok(())
    }

    /// The length of the dictionary page a transcoded chunk starts with, from the source page's header.
    fn dictionary_len(
        &self,
        rows: &GroupRows<'_>,
        column: usize,
        widths: Option<(u32, u32)>,
    ) -> Result<Option<u64>, ParquetError> {
        let part = rows.part;
        let head = head(&part.chunk_range(rows.group(), column)?);
        let bytes = part
            .opened
            .file
            .read_range(head.start, head.end - head.start)?;
        let (header, _) = PageHeader::parse(&bytes).map_err(|e| e.in_file(part.path()))?;
        let Page::Dictionary { num_values, .. } = header.page else {
            return Ok(None);
        };
        let size = match widths {
            None => u64::from(header.uncompressed_size),
            Some((_, to)) => u64::from(num_values) * u64::from(to),
        };
        let size = usize::try_from(size)
            .map_err(|_| part.corrupt("a dictionary page too large to convert".to_owned()))?;
        Ok(Some(dictionary_page_len(num_values, size) as u64))
    }
}

/// Where a chunk's first page header lies.
fn head(chunk: &Range<u64>) -> Range<u64> {
    chunk.start..chunk.end.min(chunk.start.saturating_add(HEADER_READ))
}

/// The entry of a chunk that is served as its source bytes.
fn source_chunk(
    part: &Part,
    group: usize,
    column: usize,
    part_leaf: &PartLeaf,
    target: &TargetLeaf,
    segment: &Segment,
) -> Result<ColumnChunk, ParquetError> {
    let source = part.chunk(group, column)?;
    let range = part.chunk_range(group, column)?;
    let moved = |offset: i64| {
        let from_start = u64::try_from(offset).ok()?.checked_sub(range.start)?;
        Some(signed(segment.offset + from_start))
    };
    let physical = part_leaf.stored.map_or(Physical::Int64, |s| s.physical);
    let values = u64::try_from(source.num_values).unwrap_or(0);
    let change = Change {
        source: physical,
        conversion: super::convert::Conversion::None,
        source_values: values,
        values,
        dropped_rows: false,
        ordered: part.opened.footer.metadata.column_orders,
        shapes: has_shapes(target),
    };
    Ok(ColumnChunk {
        file_path: None,
        file_offset: 0,
        encrypted: false,
        physical: target.physical,
        data_page_offset: moved(source.data_page_offset)
            .ok_or_else(|| part.corrupt("data pages before their chunk".to_owned()))?,
        dictionary_page_offset: source.dictionary_page_offset.and_then(moved),
        total_compressed_size: signed(range.end - range.start),
        statistics: after(source.statistics.as_ref(), change),
        bloom_filter_offset: None,
        bloom_filter_length: None,
        offset_index: None,
        column_index: None,
        ..source.clone()
    })
}

fn has_shapes(leaf: &TargetLeaf) -> bool {
    matches!(
        leaf.ty,
        PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }
    )
}

/// The entry of a chunk that bergfs makes; the slot is the chunk.
fn slot_chunk(target: &TargetLeaf, segment: &Segment) -> ColumnChunk {
    ColumnChunk {
        file_path: None,
        file_offset: 0,
        encrypted: false,
        physical: target.physical,
        encodings: vec![Encoding::Plain, Encoding::Rle],
        codec: Codec::Uncompressed,
        num_values: 0,
        total_uncompressed_size: signed(segment.len),
        total_compressed_size: signed(segment.len),
        data_page_offset: signed(segment.offset),
        dictionary_page_offset: None,
        statistics: None,
        encoding_stats: Vec::new(),
        bloom_filter_offset: None,
        bloom_filter_length: None,
        offset_index: None,
        column_index: None,
    }
}

fn place_dictionary(entry: &mut ColumnChunk, segment: &Segment, len: Option<u64>) {
    if let Some(len) = len {
        entry.dictionary_page_offset = Some(signed(segment.offset));
        entry.data_page_offset = signed(segment.offset + len);
    }
}

/// A column that holds one value, or null, in every row.
fn constant_entry(
    entry: &mut ColumnChunk,
    value: Option<&crate::iceberg::value::Value>,
    rows: &GroupRows<'_>,
    target: &TargetLeaf,
    segment: &Segment,
) -> Result<(), ParquetError> {
    let Some(value) = value else {
        let nulls = Statistics {
            null_count: Some(signed(rows.rows())),
            ..Statistics::default()
        };
        entry.statistics = Some(nulls);
        return Ok(());
    };
    let plain = synth::plain_value(value, target).map_err(|reason| rows.part.corrupt(reason))?;
    if target.physical != Physical::Boolean {
        entry.encodings = vec![Encoding::Plain, Encoding::Rle, Encoding::RleDictionary];
        place_dictionary(
            entry,
            segment,
            Some(dictionary_page_len(1, plain.len()) as u64),
        );
    }
    // Bounds of byte arrays stand without their length.
    let bound: Box<[u8]> = match target.physical {
        Physical::ByteArray => plain.get(4..).unwrap_or(&[]).into(),
        _ => plain.into_boxed_slice(),
    };
    let floating = matches!(target.physical, Physical::Float | Physical::Double);
    entry.statistics = Some(Statistics {
        null_count: Some(0),
        min_value: Some(bound.clone()).filter(|_| !floating),
        max_value: Some(bound).filter(|_| !floating),
        ..Statistics::default()
    });
    Ok(())
}

/// A column of positions, each more by `first`.
fn position_entry(entry: &mut ColumnChunk, first: i64, rows: &GroupRows<'_>) {
    entry.encodings = vec![Encoding::Rle, Encoding::DeltaBinaryPacked];
    let bound = |position: Option<u64>| {
        let value = first.saturating_add_unsigned(position?);
        Some(Box::from(value.to_le_bytes().as_slice()))
    };
    entry.statistics = Some(Statistics {
        null_count: Some(0),
        min_value: bound(rows.first_position()),
        max_value: bound(rows.last_position()),
        ..Statistics::default()
    });
}

/// The length of the dictionary page at a made chunk's start, header included.
fn leading_dictionary(bytes: &[u8]) -> Option<Option<u64>> {
    let (header, len) = PageHeader::parse(bytes).ok()?;
    matches!(header.page, Page::Dictionary { .. })
        .then(|| Some(len as u64 + u64::from(header.compressed_size)))
}

/// Offsets and counts are signed in Parquet.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
