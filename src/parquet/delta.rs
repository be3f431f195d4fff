//! The delta encodings: DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (parquet-format,
//! `Encodings.md`).
//!
//! ```text
//! DELTA_BINARY_PACKED      = block size | miniblocks a block | count | first value | block*
//!                    block = least delta | a bit width for each miniblock | miniblock*
//!                miniblock = deltas less the least one, bit-packed; the last one filled with zeros
//! DELTA_LENGTH_BYTE_ARRAY  = lengths (DELTA_BINARY_PACKED) | bytes
//! DELTA_BYTE_ARRAY         = lengths of what each value shares with the one before (DELTA_BINARY_PACKED)
//!                          | the rest of each value (DELTA_LENGTH_BYTE_ARRAY)
//! ```
//!
//! Integers are decoded by [`crate::packed`].

use super::DecodeError;
use super::bits::BitWriter;
use super::keep::KeepRuns;
use super::thrift::{varint_len, write_varint, zigzag};
use crate::packed;

pub mod byte_array;

pub use byte_array::{
    byte_arrays_to_fixed, byte_arrays_to_plain, filter_byte_array, lengths_to_plain,
};

const WHAT: &str = "delta-encoded integers";

/// Values of a block: the default of all writers, and the least the format allows.
const BLOCK: usize = 128;

/// Miniblocks of a block: the default of all writers.
const MINIBLOCKS: usize = 4;

/// Values of a miniblock.
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Bytes of a miniblock at its widest.
const MINIBLOCK_MAX: usize = MINIBLOCK * 8;

/// Decodes `count` integers at the front of `bytes`; gives them with the number of bytes they take. `count` bounds the
/// memory taken. For a column of 32-bit integers, the lower half of each is its value.
///
/// # Errors
/// The bytes end too early, break the format, or hold another number of integers.
pub fn decode(bytes: &[u8], count: usize) -> Result<(Vec<i64>, usize), DecodeError> {
    let (values, len) = packed::decode_delta(bytes, count)?;
    if values.len() != count {
        return Err(DecodeError::corrupt(
            WHAT,
            format!("{} where there should be {count}", values.len()),
        ));
    }
    Ok((values, len))
}

/// Appends `values` in blocks of 128 in 4 miniblocks: at most [`encoded_len_bound`] bytes, and 5 bytes a block where
/// the values are equally spaced, as consecutive row ids are.
pub fn encode_i64(values: &[i64], out: &mut Vec<u8>) {
    encode(values.len(), values.iter().copied(), 64, out);
}

/// As [`encode_i64`], for a column of 32-bit integers: at most [`encoded_len_bound_i32`] bytes.
pub fn encode_i32(values: &[i32], out: &mut Vec<u8>) {
    encode(
        values.len(),
        values.iter().map(|value| i64::from(*value)),
        32,
        out,
    );
}

/// As [`encode_i64`], of `count` values that need not stand in memory.
pub fn encode_i64_iter(count: usize, values: impl Iterator<Item = i64>, out: &mut Vec<u8>) {
    encode(count, values, 64, out);
}

/// `bits` is the size of the column's type: deltas wrap around in it, so none is wider.
fn encode(count: usize, mut values: impl Iterator<Item = i64>, bits: u32, out: &mut Vec<u8>) {
    write_varint(out, BLOCK as u64);
    write_varint(out, MINIBLOCKS as u64);
    write_varint(out, count as u64);
    let mut last = values.next().unwrap_or(0);
    write_varint(out, zigzag(last));
    let wrapped = |delta: i64| {
        if bits == 32 {
            i64::from(delta as i32)
        } else {
            delta
        }
    };
    let mut deltas = Vec::with_capacity(BLOCK);
    let mut packed = BitWriter::new();
    loop {
        deltas.clear();
        for value in values.by_ref().take(BLOCK) {
            deltas.push(wrapped(value.wrapping_sub(last)));
            last = value;
        }
        if deltas.is_empty() {
            break;
        }
        let least = deltas.iter().copied().min().unwrap_or(0);
        write_varint(out, zigzag(least));
        // Each is at least `least`, so the difference, as an unsigned number, does not wrap.
        let above = |delta: i64| delta.wrapping_sub(least).cast_unsigned();
        let mut widths = [0u8; MINIBLOCKS];
        for (width, miniblock) in widths.iter_mut().zip(deltas.chunks(MINIBLOCK)) {
            let widest = miniblock.iter().fold(0, |all, delta| all | above(*delta));
            *width = (u64::BITS - widest.leading_zeros()) as u8;
        }
        out.extend_from_slice(&widths);
        for (width, miniblock) in widths.iter().zip(deltas.chunks(MINIBLOCK)) {
            let width = usize::from(*width);
            if width == 0 {
                continue;
            }
            for delta in miniblock {
                let delta = above(*delta);
                packed.push(delta, width.min(32));
                packed.push(delta >> 32, width.saturating_sub(32));
            }
            let whole = out.len() + MINIBLOCK / 8 * width;
            out.append(&mut packed.take());
            out.resize(whole, 0);
        }
    }
}

/// Bytes of the header with a count of `count` and the widest first value of 64 bits.
fn header_bound(count: usize) -> usize {
    varint_len(BLOCK as u64)
        + varint_len(MINIBLOCKS as u64)
        + varint_len(count as u64)
        + varint_len(u64::MAX)
}

/// The most bytes [`encode_i64`] gives for `count` values: the header; for each block a least delta (10 bytes at most)
/// and its widths; for each miniblock that has a value, 64 bits a value.
pub fn encoded_len_bound(count: usize) -> usize {
    let deltas = count.saturating_sub(1);
    header_bound(count)
        + deltas.div_ceil(BLOCK) * (varint_len(u64::MAX) + MINIBLOCKS)
        + deltas.div_ceil(MINIBLOCK) * MINIBLOCK_MAX
}

/// The most bytes [`encode_i32`] gives for `count` values: as [`encoded_len_bound`], with 5 bytes for a least delta and
/// 32 bits a value.
pub fn encoded_len_bound_i32(count: usize) -> usize {
    let deltas = count.saturating_sub(1);
    header_bound(count)
        + deltas.div_ceil(BLOCK) * (varint_len(u32::MAX.into()) + MINIBLOCKS)
        + deltas.div_ceil(MINIBLOCK) * MINIBLOCK_MAX / 2
}

/// Appends the kept ones of `keep.total()` integers in PLAIN encoding, of 4 bytes each (`wide`: 8).
pub fn integers_to_plain(
    bytes: &[u8],
    wide: bool,
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let (values, _) = decode(bytes, keep.total())?;
    for value in keep
        .runs()
        .iter()
        .flat_map(|run| values.get(run.clone()).unwrap_or_default())
    {
        if wide {
            out.extend_from_slice(&value.to_le_bytes());
        } else {
            // The lower half is the value.
            out.extend_from_slice(&(*value as i32).to_le_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
