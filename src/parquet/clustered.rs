//! Exact bounds of the columns that readers skip row groups by.
//!
//! A row group that lost rows keeps no bounds of fixed-width values, since its least or greatest value may be among
//! those that went (see `statistics`). For most columns that costs nothing: every row group spans about the same values,
//! and nobody can skip any. It costs a lot for a *clustered* column, one whose values rise or fall from row group to row
//! group, or that the table is sorted or partitioned by. The bounds of such a column are proven when the footer is made,
//! from a few of its pages (see `integers`), and written.

use std::collections::BTreeSet;
use std::ops::Range;

use roaring::RoaringTreemap;

use super::ParquetError;
use super::chunk::GroupRows;
use super::convert::Conversion;
use super::format::{IndexRange, Statistics, column_index, offset_index};
use super::integers::{Extremes, IntegerChunk, Known, integer};
use super::layout::Layout;
use super::levels::LeafPlan;
use super::part::{Part, StoredLeaf};
use super::places::{PageError, PagePlace, find_pages};
use super::split::{Group, PageSpan};
use super::target::{TargetKind, TargetSchema};
use crate::counters::Counters;
use crate::iceberg::metadata::TableMetadata;
use crate::iceberg::types::FieldId;
use crate::rows::file_schema::Physical;

/// In a clustered column most row groups overlap at most one in so many others.
const OVERLAP: usize = 4;

/// The largest page index that is read, in bytes: some hundred thousand pages.
const MAX_INDEX: u64 = 16 << 20;

/// Which leaves of a virtual file are clustered over its row groups: flat, stored in every file as integers of the same
/// kind, with bounds that are nearly disjoint, or what the table is sorted or partitioned by. Looks at source statistics
/// only.
pub fn clustered(
    parts: &[Part],
    layout: &Layout,
    target: &TargetSchema,
    metadata: &TableMetadata,
) -> Vec<bool> {
    let keys = key_leaves(target, metadata);
    let leaves = target.leaves.iter().enumerate();
    leaves
        .map(|(index, leaf)| {
            let integers = matches!(leaf.physical, Physical::Int32 | Physical::Int64);
            let flat = leaf.max_rep == 0;
            let bounds = (integers && flat).then(|| bounds(parts, layout, index));
            let is_clustered = |bounds: &[_]| keys.contains(&index) || nearly_disjoint(bounds);
            bounds.flatten().is_some_and(|b| is_clustered(&b))
        })
        .collect()
}

/// The top-level leaves that the table is sorted or partitioned by.
fn key_leaves(target: &TargetSchema, metadata: &TableMetadata) -> BTreeSet<usize> {
    let specs = metadata.partition_specs.values();
    let partitioned = specs.flat_map(|spec| spec.fields.iter().flat_map(|f| &f.source_ids));
    let columns: BTreeSet<FieldId> = partitioned.chain(&metadata.sort_columns).copied().collect();
    let roots = target.roots.iter();
    roots
        .filter(|root| root.field_id.is_some_and(|id| columns.contains(&id)))
        .filter_map(|root| match root.kind {
            TargetKind::Leaf(leaf) => Some(leaf),
            _ => None,
        })
        .collect()
}

/// The bounds of a leaf in every row group, where all have them.
fn bounds(parts: &[Part], layout: &Layout, leaf: usize) -> Option<Vec<(i64, i64)>> {
    let bound = |place: &Group| {
        let part = parts.get(place.part)?;
        let LeafPlan::Stored { column, .. } = part.leaves.get(leaf)?.plan else {
            return None;
        };
        let StoredLeaf {
            physical,
            conversion,
            ..
        } = part.leaves.get(leaf)?.stored?;
        if !is_proven(physical, conversion) {
            return None;
        }
        if let Some(spans) = &place.spans {
            let (least, greatest) = spans.get(column)?.as_ref()?.bounds_inside?;
            let value = |bound| integer(&plain(bound, physical, conversion)?);
            return Some((value(least)?, value(greatest)?));
        }
        let (least, greatest) = stored_bounds(part, place.group, column)?;
        let value = |bytes: &[u8]| integer(&conversion.bound(bytes)?);
        Some((value(least)?, value(greatest)?))
    };
    layout.groups.iter().map(bound).collect()
}

/// Whether the extremes of a stored leaf are found by its values as signed integers. A decimal that is an integer in the
/// virtual file may be stored as bytes, and unsigned integers are in another order.
fn is_proven(stored: Physical, conversion: Conversion) -> bool {
    matches!(stored, Physical::Int32 | Physical::Int64)
        && conversion != Conversion::Unsigned32ToInt64
}

/// The bounds that a data file states of a column chunk.
fn stored_bounds(part: &Part, group: usize, column: usize) -> Option<(&[u8], &[u8])> {
    if !part.opened.footer.metadata.column_orders {
        return None;
    }
    let statistics = part.chunk(group, column).ok()?.statistics.as_ref()?;
    let (least, greatest) = (&statistics.min_value, &statistics.max_value);
    Some((least.as_deref()?, greatest.as_deref()?))
}

/// Whether at least half of the row groups overlap few others: a few that span everything, of rows that were written
/// again, spoil nothing for the rest.
fn nearly_disjoint(bounds: &[(i64, i64)]) -> bool {
    let mut lows: Vec<i64> = bounds.iter().map(|b| b.0).collect();
    let mut highs: Vec<i64> = bounds.iter().map(|b| b.1).collect();
    lows.sort_unstable();
    highs.sort_unstable();
    if lows.first() == lows.last() {
        return false;
    }
    let others = bounds.len().saturating_sub(1);
    let overlaps = |(low, high): &(i64, i64)| {
        let below = highs.partition_point(|other| other <= low);
        let above = lows.len() - lows.partition_point(|other| other < high);
        others.saturating_sub(below + above)
    };
    let apart = bounds.iter().filter(|b| overlaps(b) * OVERLAP <= others);
    2 * apart.count() >= bounds.len()
}

/// The statistics of what is left of a flat chunk of integers, for each of some row groups over it: all exact.
pub fn exact(
    pieces: &[GroupRows<'_>],
    column: usize,
    conversion: Conversion,
    counters: &Counters,
) -> Result<Vec<Statistics>, ParquetError> {
    let Some((part, group)) = pieces.first().map(|rows| (rows.part, rows.group())) else {
        return Ok(Vec::new());
    };
    let stated = stored_bounds(part, group, column);
    let chunk = part.chunk(group, column)?;
    let statistics = chunk.statistics.as_ref();
    let known = Known {
        bounds: stated.and_then(|(least, greatest)| Some((integer(least)?, integer(greatest)?))),
        nulls: statistics.and_then(|s| u64::try_from(s.null_count?).ok()),
    };
    let mut wanted = Vec::with_capacity(pieces.len());
    for rows in pieces {
        wanted.push((rows.span(column)?, rows.deleted_rows()?));
    }
    let nothing = RoaringTreemap::new();
    let whole = Group {
        part: 0,
        group,
        rows: part.rows(group),
        spans: None,
    };
    let whole = GroupRows::new(part, &whole, &nothing);
    let by_index = match indexed(&whole, column)? {
        Some((dictionary, pages)) => {
            let found = whole.with_ranges(column, &[], |chunk, read| {
                let chunk = IntegerChunk::new(chunk, dictionary, pages, read, counters);
                extremes(chunk, &wanted, known)
            });
            // Where the index leads nowhere, the chunk itself may be whole.
            match found {
                Err(ParquetError::Corrupt { .. }) => None,
                found => Some(found?),
            }
        }
        None => None,
    };
    let found = match by_index {
        Some(found) => found,
        None => whole.with_pages(column, &[], |chunk, read| {
            let (dictionary, pages) = find_pages(chunk, read)?.places();
            let chunk = IntegerChunk::new(chunk, dictionary, pages, read, counters);
            extremes(chunk, &wanted, known)
        })?,
    };
    let statistics = found.into_iter();
    Ok(statistics
        .map(|found| statistics_of(found, chunk.physical, conversion))
        .collect())
}

/// The extremes of each of these rows of a chunk.
fn extremes<'a>(
    mut chunk: IntegerChunk<'a, '_>,
    wanted: &'a [(Option<&'a PageSpan>, Vec<u32>)],
    known: Known,
) -> Result<Vec<Extremes>, PageError> {
    // From the end: the later the rows, the more of the dictionary they mostly need, which is decoded from its front.
    let rows = wanted.iter().rev();
    let found = rows.map(|(span, deleted)| {
        chunk.set_rows(*span, deleted);
        chunk.extremes(known)
    });
    let mut found = found.collect::<Result<Vec<Extremes>, PageError>>()?;
    found.reverse();
    Ok(found)
}

fn statistics_of(found: Extremes, physical: Physical, conversion: Conversion) -> Statistics {
    let plain = |value| plain(value, physical, conversion);
    let bounds = found
        .bounds
        .and_then(|(least, greatest)| Some((plain(least)?, plain(greatest)?)));
    let exact = bounds.as_ref().map(|_| true);
    let (min_value, max_value) = bounds.unzip();
    Statistics {
        null_count: i64::try_from(found.nulls).ok(),
        is_min_value_exact: exact,
        is_max_value_exact: exact,
        min_value,
        max_value,
        ..Statistics::default()
    }
}

/// A value of a stored column, as it stands in the virtual file.
fn plain(value: i64, stored: Physical, conversion: Conversion) -> Option<Box<[u8]>> {
    let bytes = match stored {
        Physical::Int64 => value.to_le_bytes().to_vec(),
        _ => i32::try_from(value).ok()?.to_le_bytes().to_vec(),
    };
    Some(conversion.apply(&bytes).ok()?.into_boxed_slice())
}

type Pages = (Option<Range<u64>>, Vec<PagePlace>);

/// The pages of a chunk by the file's page index, where it has one; else they have to be looked for in the chunk itself.
pub fn indexed(rows: &GroupRows<'_>, column: usize) -> Result<Option<Pages>, ParquetError> {
    let part = rows.part;
    let chunk = part.chunk(rows.group(), column)?;
    let range = part.chunk_range(rows.group(), column)?;
    let (Some(offsets), Some(bounds)) = (chunk.offset_index, chunk.column_index) else {
        return Ok(None);
    };
    let read = |index: IndexRange| {
        let offset = u64::try_from(index.offset).ok()?;
        let len = u64::try_from(index.length).ok()?;
        let inside = offset.checked_add(len)? <= part.opened.footer.footer_start;
        (inside && len <= MAX_INDEX).then(|| part.opened.file.read_range(offset, len))
    };
    let (Some(offsets), Some(bounds)) = (read(offsets), read(bounds)) else {
        return Ok(None);
    };
    Ok(places(&offsets?, &bounds?, range, rows.source_rows()))
}

/// `None`: the index is broken, or its pages are not those of the chunk.
fn places(offsets: &[u8], bounds: &[u8], chunk: Range<u64>, rows: u64) -> Option<Pages> {
    let locations = offset_index(offsets).ok()?;
    let bounds = column_index(bounds).ok()?;
    if locations.len() != bounds.len() {
        return None;
    }
    let row = |at: usize| match locations.get(at) {
        Some(location) => u64::try_from(location.first_row).ok(),
        None => Some(rows),
    };
    let mut pages = Vec::with_capacity(locations.len());
    let mut end = None;
    for (at, (location, bounds)) in locations.iter().zip(bounds).enumerate() {
        let first_row = row(at)?;
        let start = u64::try_from(location.offset).ok()?;
        let start = start.checked_sub(chunk.start)?;
        let until = start.checked_add(u64::try_from(location.size).ok()?)?;
        let is_behind = end.is_none_or(|end| start >= end) && until <= chunk.end - chunk.start;
        let is_next = at > 0 || first_row == 0;
        let bounds = match bounds {
            Some((least, greatest)) => (integer(least)?, integer(greatest)?),
            // Nulls only: nothing to find.
            None => (i64::MAX, i64::MIN),
        };
        pages.push(PagePlace {
            bytes: start..until,
            first_row,
            rows: row(at + 1)?.checked_sub(first_row)?,
            bounds: Some(bounds),
        });
        if !is_behind || !is_next {
            return None;
        }
        end = Some(until);
    }
    let before = pages.first()?.bytes.start;
    Some(((before > 0).then_some(0..before), pages))
}

#[cfg(test)]
mod tests;
