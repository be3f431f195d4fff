//! Exact bounds of the columns that readers skip row groups by.
//!
//! A row group that lost rows keeps no bounds of fixed-width values, since its least or greatest value may be among
//! those that went (see `statistics`). For most columns that costs nothing: every row group spans about the same values,
//! and nobody can skip any. It costs a lot for a *clustered* column, one whose values rise or fall from row group to row
//! group. Such a column's values are decoded when the footer is made, and the bounds of those that are left written.

use super::chunk::GroupRows;
use super::convert::Conversion;
use super::format::Statistics;
use super::layout::{Group, Layout};
use super::levels::LeafPlan;
use super::part::Part;
use super::target::TargetSchema;
use super::{ParquetError, transcode};
use crate::counters::Counters;
use crate::rows::file_schema::Physical;

/// At most one in so many neighbouring row groups may overlap in a clustered column.
const OVERLAP: usize = 8;

/// Which leaves of a virtual file are clustered over its row groups: flat, stored in every file as integers of the same
/// kind, with bounds that are nearly disjoint. Looks at source statistics only.
pub fn clustered(parts: &[Part], layout: &Layout, target: &TargetSchema) -> Vec<bool> {
    let leaves = target.leaves.iter().enumerate();
    leaves
        .map(|(index, leaf)| {
            let integers = matches!(leaf.physical, Physical::Int32 | Physical::Int64);
            let flat = leaf.max_rep == 0;
            integers && flat && bounds(parts, layout, index).is_some_and(nearly_disjoint)
        })
        .collect()
}

/// The bounds of a leaf in every row group, where all have them.
fn bounds(parts: &[Part], layout: &Layout, leaf: usize) -> Option<Vec<(i64, i64)>> {
    let bound = |place: &Group| {
        let part = parts.get(place.part)?;
        if !part.opened.footer.metadata.column_orders {
            return None;
        }
        let LeafPlan::Stored { column, .. } = part.leaves.get(leaf)?.plan else {
            return None;
        };
        let conversion = part.leaves.get(leaf)?.stored?.conversion;
        let statistics = part.chunk(place.group, column).ok()?.statistics.as_ref()?;
        let value = |bytes: &Option<Box<[u8]>>| integer(&conversion.bound(bytes.as_ref()?)?);
        Some((value(&statistics.min_value)?, value(&statistics.max_value)?))
    };
    layout.groups.iter().map(bound).collect()
}

fn integer(plain: &[u8]) -> Option<i64> {
    match plain.len() {
        4 => Some(i64::from(i32::from_le_bytes(plain.try_into().ok()?))),
        8 => Some(i64::from_le_bytes(plain.try_into().ok()?)),
        _ => None,
    }
}

fn nearly_disjoint(mut bounds: Vec<(i64, i64)>) -> bool {
    bounds.sort_unstable();
    let spread = bounds.first().map(|b| b.0) < bounds.last().map(|b| b.0);
    let mut reach = None;
    let mut overlaps = 0;
    for (min, max) in &bounds {
        overlaps += usize::from(reach.is_some_and(|reach| *min < reach));
        reach = reach.max(Some(*max));
    }
    spread && overlaps * OVERLAP <= bounds.len()
}

/// The statistics of what is left of a flat chunk of integers, decoded for them: all exact.
pub fn exact(
    rows: &GroupRows<'_>,
    column: usize,
    conversion: Conversion,
    counters: &Counters,
) -> Result<Statistics, ParquetError> {
    rows.with_stored(column, |chunk| {
        let values = transcode::integers(chunk, counters)?;
        let plain = |value: Option<&i64>| {
            let bytes = match chunk.physical {
                Physical::Int64 => value?.to_le_bytes().to_vec(),
                _ => i32::try_from(*value?).ok()?.to_le_bytes().to_vec(),
            };
            Some(conversion.apply(&bytes).ok()?.into_boxed_slice())
        };
        let min_value = plain(values.iter().flatten().min());
        let max_value = plain(values.iter().flatten().max());
        let nulls = values.iter().filter(|value| value.is_none()).count();
        Ok(Statistics {
            null_count: i64::try_from(nulls).ok(),
            is_min_value_exact: min_value.as_ref().map(|_| true),
            is_max_value_exact: max_value.as_ref().map(|_| true),
            min_value,
            max_value,
            ..Statistics::default()
        })
    })
}
