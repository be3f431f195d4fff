//! Column chunks made from nothing but row counts and constants: columns a data file lacks, and row lineage.
//!
//! A constant is one dictionary entry and one run; a null column is one run of levels; row ids are delta-encoded, a few
//! bytes for each run of rows without a gap.

use super::delta;
use super::format::Encoding;
use super::levels::Entry;
use super::made::{MadeChunk, level_width, rle_run};
use super::rle;
use super::target::TargetLeaf;
use crate::iceberg::value::Value;
use crate::packed::bit_width;
use crate::rows::file_schema::Physical;

/// The most entries that a default is written out for in one row group; at 2 levels and an index each, 1.5 GiB.
const MAX_ENTRIES: usize = 1 << 28;

/// The parents of a missing leaf in one row group, in order.
pub enum Parents {
    /// The leaf belongs to the row itself: so many rows.
    Rows(u64),
    /// Repetition and definition level of each parent, and whether it is present.
    Nested(Vec<Parent>),
}

/// A place where a missing leaf's parent stands, or would stand.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    pub rep: u16,
    /// The level to write where the parent is absent.
    pub def: u16,
    pub present: bool,
}

/// A null at the top level.
pub fn null_entry(def: u16) -> Entry {
    Entry {
        rep: 0,
        def,
        value: None,
    }
}

/// A 64-bit integer in an optional top-level column.
pub fn long_entry(value: i64) -> Entry {
    Entry {
        rep: 0,
        def: 1,
        value: Some(Value::Long(value)),
    }
}

/// The chunk of a leaf that holds `entries` in every present parent. `Err` says why a value does not fit the leaf.
pub fn constant(
    leaf: &TargetLeaf,
    entries: &[Entry],
    parents: &Parents,
) -> Result<MadeChunk, String> {
    match (parents, entries) {
        (Parents::Rows(rows), [entry]) => constant_rows(leaf, entry, *rows),
        (Parents::Rows(rows), _) => {
            let row = Parent {
                rep: 0,
                def: 0,
                present: true,
            };
            let count = usize::try_from(*rows).map_err(|_| "too many rows")?;
            if count > MAX_ENTRIES {
                return Err("too many rows in a row group".to_owned());
            }
            constant_parents(leaf, entries, &vec![row; count])
        }
        (Parents::Nested(parents), _) => constant_parents(leaf, entries, parents),
    }
}

/// The same value, or null, in every row.
fn constant_rows(leaf: &TargetLeaf, entry: &Entry, rows: u64) -> Result<MadeChunk, String> {
    let mut chunk = MadeChunk::default();
    if rows == 0 {
        return Ok(chunk);
    }
    let count = u32::try_from(rows).map_err(|_| "too many rows in a row group")?;
    let level =
        |max: u16, level: u16| (max > 0).then(|| rle_run(u32::from(level), rows, level_width(max)));
    let (rep, def) = (level(leaf.max_rep, 0), level(leaf.max_def, entry.def));
    let (rep, def) = (rep.as_deref(), def.as_deref());
    match &entry.value {
        None => chunk.push_data(count, Encoding::Plain, rep, def, &[]),
        Some(Value::Boolean(value)) => {
            let bits =
                vec![if *value { 0xff } else { 0 }; usize::try_from(rows.div_ceil(8)).unwrap_or(0)];
            chunk.push_data(count, Encoding::Plain, rep, def, &[&bits]);
        }
        Some(value) => {
            chunk.push_dictionary(1, &plain_value(value, leaf)?);
            chunk.push_data(
                count,
                Encoding::RleDictionary,
                rep,
                def,
                &[&[1], &rle_run(0, rows, 1)],
            );
        }
    }
    Ok(chunk)
}

fn constant_parents(
    leaf: &TargetLeaf,
    entries: &[Entry],
    parents: &[Parent],
) -> Result<MadeChunk, String> {
    let mut chunk = MadeChunk::default();
    let mut dictionary: Vec<Vec<u8>> = Vec::new();
    if parents.len().saturating_mul(entries.len()) > MAX_ENTRIES {
        return Err("too large a default".to_owned());
    }
    let mut template = Vec::with_capacity(entries.len());
    for entry in entries {
        let index = match &entry.value {
            None => None,
            Some(value) => {
                let bytes = plain_value(value, leaf)?;
                let known = dictionary.iter().position(|known| *known == bytes);
                let index = known.unwrap_or_else(|| {
                    dictionary.push(bytes);
                    dictionary.len() - 1
                });
                Some(u16::try_from(index).map_err(|_| "too large a default")?)
            }
        };
        template.push((entry.rep, entry.def, index));
    }
    let (mut reps, mut defs, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for parent in parents {
        if !parent.present {
            reps.push(parent.rep);
            defs.push(parent.def);
            continue;
        }
        for (i, (rep, def, index)) in template.iter().enumerate() {
            reps.push(if i == 0 { parent.rep } else { *rep });
            defs.push(*def);
            indexes.extend(index);
        }
    }
    if reps.is_empty() {
        return Ok(chunk);
    }
    let count = u32::try_from(reps.len()).map_err(|_| "too many entries in a row group")?;
    let level = |max: u16, levels: &[u16]| {
        (max > 0).then(|| rle::encode_levels(levels, level_width(max) as u8))
    };
    let (rep, def) = (level(leaf.max_rep, &reps), level(leaf.max_def, &defs));
    let (rep, def) = (rep.as_deref(), def.as_deref());
    if leaf.physical == Physical::Boolean {
        let bits = pack_booleans(
            indexes
                .iter()
                .map(|i| dictionary.get(usize::from(*i)).is_some_and(|v| v == &[1])),
        );
        chunk.push_data(count, Encoding::Plain, rep, def, &[&bits]);
    } else if dictionary.is_empty() {
        chunk.push_data(count, Encoding::Plain, rep, def, &[]);
    } else {
        let size = u32::try_from(dictionary.len()).map_err(|_| "too large a default")?;
        chunk.push_dictionary(size, &dictionary.concat());
        let width = bit_width(size - 1).max(1);
        let indexes = rle::encode_levels(&indexes, width);
        chunk.push_data(
            count,
            Encoding::RleDictionary,
            rep,
            def,
            &[&[width], &indexes],
        );
    }
    Ok(chunk)
}

/// An upper bound of the length of a missing leaf's chunk over `entries_count` entries.
pub fn constant_len_bound(leaf: &TargetLeaf, entries: &[Entry], entries_count: u64) -> u64 {
    let values: u64 = entries
        .iter()
        .map(|e| e.value.as_ref().map_or(0, |v| value_len_bound(v, leaf)))
        .sum();
    let distinct = entries.iter().filter(|e| e.value.is_some()).count() as u64;
    let index_width = u64::from((u64::BITS - distinct.leading_zeros()).max(1));
    let bits =
        u64::from(level_width(leaf.max_rep)) + u64::from(level_width(leaf.max_def)) + index_width;
    128 + values + bits * (entries_count.div_ceil(8) + 2)
}

fn value_len_bound(value: &Value, leaf: &TargetLeaf) -> u64 {
    plain_value(value, leaf).map_or(0, |bytes| bytes.len() as u64)
}

/// Optional 64-bit integers, one a row, delta-encoded.
pub fn longs(leaf: &TargetLeaf, values: &[Option<i64>]) -> Result<MadeChunk, String> {
    let mut chunk = MadeChunk::default();
    if values.is_empty() {
        return Ok(chunk);
    }
    let count = u32::try_from(values.len()).map_err(|_| "too many rows in a row group")?;
    let present: Vec<i64> = values.iter().flatten().copied().collect();
    let width = level_width(leaf.max_def);
    let def = if present.len() == values.len() {
        rle_run(1, u64::from(count), width)
    } else {
        let levels: Vec<u16> = values.iter().map(|v| u16::from(v.is_some())).collect();
        rle::encode_levels(&levels, width as u8)
    };
    let mut encoded = Vec::new();
    delta::encode_i64(&present, &mut encoded);
    chunk.push_data(
        count,
        Encoding::DeltaBinaryPacked,
        None,
        Some(&def),
        &[&encoded],
    );
    Ok(chunk)
}

/// Ascending 64-bit integers, none of them null, delta-encoded as they come: `rows` of them.
pub fn positions(
    leaf: &TargetLeaf,
    rows: u64,
    values: impl Iterator<Item = i64>,
) -> Result<MadeChunk, String> {
    let mut chunk = MadeChunk::default();
    let count = u32::try_from(rows).map_err(|_| "too many rows in a row group")?;
    if count == 0 {
        return Ok(chunk);
    }
    let def = rle_run(1, rows, level_width(leaf.max_def));
    let mut encoded = Vec::new();
    delta::encode_i64_iter(count as usize, values, &mut encoded);
    chunk.push_data(
        count,
        Encoding::DeltaBinaryPacked,
        None,
        Some(&def),
        &[&encoded],
    );
    Ok(chunk)
}

/// An upper bound of the length of [`longs`] over `rows` arbitrary values.
pub fn longs_len_bound(rows: u64) -> u64 {
    let count = usize::try_from(rows).unwrap_or(usize::MAX / 32);
    80 + delta::encoded_len_bound(count) as u64 + rows.div_ceil(8)
}

/// An upper bound of the length of [`positions`] below `rows`, of which `deleted` are left out
/// (`None`: any number of them).
///
/// A block of 128 deltas costs at most 14 bytes beside its 4 miniblocks, each 32 deltas of as many bits as the largest
/// excess `g` over the block's least delta takes: none where `g = 0`, else `4·bits(g) ≤ 4·(1 + log2(g))` bytes. All
/// excesses together are at most the number `d` of positions left out, so at most `d` miniblocks have one; the
/// logarithm is concave, so the sum over `c` miniblocks is at most `f(c) = 4c·(1 + log2(d/c))`, which grows up to
/// `c = 0.7358·d`. With `k = rows - d` positions there are `k/32` miniblocks. For any `d`, `f(k/32) ≤ 0.42·rows`.
pub fn positions_len_bound(rows: u64, deleted: Option<u64>) -> u64 {
    let blocks = rows / 128 + 1;
    let excess = match deleted {
        None => rows / 2,
        Some(0) => 0,
        Some(deleted) => {
            let deleted = deleted.min(rows);
            let miniblocks = (rows - deleted).div_ceil(32) as f64 + 1.0;
            let d = deleted as f64;
            let c = miniblocks.min(0.7358 * d);
            (4.0 * c * (1.0 + (d / c).log2())).ceil() as u64 + 8
        }
    };
    256 + excess + blocks * if deleted == Some(0) { 5 } else { 14 }
}

/// A value in PLAIN encoding, as the leaf's physical type.
pub fn plain_value(value: &Value, leaf: &TargetLeaf) -> Result<Vec<u8>, String> {
    let misfit = || {
        format!(
            "column {}: a value that does not fit {:?}",
            leaf.path.join("."),
            leaf.physical
        )
    };
    let long = |v: i64| match leaf.physical {
        Physical::Int32 => i32::try_from(v)
            .map(|v| v.to_le_bytes().to_vec())
            .map_err(|_| misfit()),
        Physical::Int64 => Ok(v.to_le_bytes().to_vec()),
        _ => Err(misfit()),
    };
    match value {
        Value::Boolean(v) if leaf.physical == Physical::Boolean => Ok(vec![u8::from(*v)]),
        Value::Int(v) | Value::Date(v) => long(i64::from(*v)),
        Value::Long(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampNs(v) => long(*v),
        Value::Float(bits) if leaf.physical == Physical::Float => Ok(bits.to_le_bytes().to_vec()),
        Value::Double(bits) if leaf.physical == Physical::Double => Ok(bits.to_le_bytes().to_vec()),
        Value::Decimal(unscaled) => match leaf.physical {
            Physical::Fixed(width) => fixed_decimal(*unscaled, width).ok_or_else(misfit),
            _ => long(i64::try_from(*unscaled).map_err(|_| misfit())?),
        },
        Value::String(v) if leaf.physical == Physical::ByteArray => byte_array(v.as_bytes()),
        Value::Binary(v) if leaf.physical == Physical::ByteArray => byte_array(v),
        Value::Uuid(v) if leaf.physical == Physical::Fixed(16) => Ok(v.to_vec()),
        Value::Binary(v)
            if u32::try_from(v.len()).is_ok_and(|len| leaf.physical == Physical::Fixed(len)) =>
        {
            Ok(v.clone())
        }
        _ => Err(misfit()),
    }
}

fn byte_array(value: &[u8]) -> Result<Vec<u8>, String> {
    let len = u32::try_from(value.len()).map_err(|_| "too long a value")?;
    Ok([&len.to_le_bytes(), value].concat())
}

/// Two's complement, big endian, in `width` bytes.
pub fn fixed_decimal(unscaled: i128, width: u32) -> Option<Vec<u8>> {
    let bytes = unscaled.to_be_bytes();
    let width = usize::try_from(width).ok()?;
    let cut = bytes.len().checked_sub(width)?;
    let (dropped, kept) = bytes.split_at_checked(cut)?;
    let sign = if unscaled < 0 { 0xff } else { 0 };
    let fits = dropped.iter().all(|b| *b == sign)
        && kept
            .first()
            .is_some_and(|b| (b & 0x80 != 0) == (unscaled < 0));
    fits.then(|| kept.to_vec())
}

/// Booleans as bits, least significant first.
pub fn pack_booleans(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, value) in values.enumerate() {
        if i % 8 == 0 {
            out.push(0);
        }
        if let Some(last) = out.last_mut() {
            *last |= u8::from(value) << (i % 8);
        }
    }
    out
}

#[cfg(test)]
mod tests;
