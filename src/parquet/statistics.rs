//! Which statistics of a column chunk still hold in a virtual file.
//!
//! Readers answer queries from them, some even from bounds that are flagged inexact, so a wrong one is a wrong answer.
//! Of a chunk that lost rows only this is kept: bounds of byte arrays, flagged inexact (they still bound, and no
//! reader takes them for values), and a null count that follows without looking (none stays none, all stays all). When
//! the null count does not follow, nothing is kept: a missing count in a present structure is read as zero.

use super::convert::Conversion;
use super::format::Statistics;
use crate::rows::file_schema::Physical;

/// What happened to a chunk's values.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub source: Physical,
    pub conversion: Conversion,
    /// Entries before rows were dropped.
    pub source_values: u64,
    /// Entries now; fewer when rows were dropped.
    pub values: u64,
    /// Whether rows were dropped.
    pub dropped_rows: bool,
    /// Whether the file says how its bounds are ordered; without that, `min_value` and `max_value` mean nothing.
    pub ordered: bool,
    /// Whether the values are geometries or geographies, which have no order at all.
    pub shapes: bool,
}

/// The statistics of a chunk after a change, from those before.
pub fn after(statistics: Option<&Statistics>, change: Change) -> Option<Statistics> {
    let mut kept = statistics?.clone();
    if change.shapes {
        kept = Statistics {
            null_count: kept.null_count,
            ..Statistics::default()
        };
    }
    if !change.ordered {
        kept.min_value = None;
        kept.max_value = None;
        kept.is_min_value_exact = None;
        kept.is_max_value_exact = None;
    }
    if matches!(change.source, Physical::ByteArray | Physical::Fixed(_)) {
        // Old writers compared bytes as signed, which readers know by the writer's name; ours would hide it.
        kept.min = None;
        kept.max = None;
    }
    if change.conversion != Conversion::None {
        let bound = |bound: Option<&[u8]>| change.conversion.bound(bound?);
        kept = Statistics {
            null_count: kept.null_count,
            min_value: bound(kept.min_value.as_deref()),
            max_value: bound(kept.max_value.as_deref()),
            ..Statistics::default()
        };
    }
    if matches!(change.source, Physical::Float | Physical::Double)
        && kept.min_value == kept.max_value
    {
        // NaN is in no bounds, and DataFusion takes a column whose bounds are equal for a constant.
        kept.min_value = None;
        kept.max_value = None;
    }
    if !change.dropped_rows {
        return Some(kept);
    }
    let null_count = match u64::try_from(kept.null_count?).ok()? {
        0 => 0,
        nulls if nulls == change.source_values => i64::try_from(change.values).ok()?,
        _ => return None,
    };
    let bounds = change.source == Physical::ByteArray
        && kept.min_value.is_some()
        && kept.max_value.is_some();
    let bound = |value: Option<Box<[u8]>>| value.filter(|_| bounds);
    Some(Statistics {
        null_count: Some(null_count),
        min_value: bound(kept.min_value),
        max_value: bound(kept.max_value),
        is_min_value_exact: bounds.then_some(false),
        is_max_value_exact: bounds.then_some(false),
        ..Statistics::default()
    })
}

#[cfg(test)]
mod tests;
