//! Integers in few bytes: varints, values of a few bits, runs of them (see [`runs`]), and Parquet's
//! DELTA_BINARY_PACKED (parquet-format, `Encodings.md`), for all who read pages.
//!
//! ```text
//! DELTA_BINARY_PACKED = block size | miniblocks a block | count | first value | block*
//!               block = least delta | a bit width for each miniblock | miniblock*
//!           miniblock = deltas less the least one, bit-packed; the last one filled with zeros
//! ```
//!
//! Differences wrap around, as the format has it. Integers of 32 bits are computed in 64: cutting off the upper half
//! commutes with wrapping addition, so the lower half is right. DuckDB packs them in up to 64 bits.

pub mod runs;

/// Why bytes are no packed integers, with the name of what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackedError {
    #[error("{0}: end too early")]
    Truncated(&'static str),
    /// What is there.
    #[error("{0}: {1}")]
    Corrupt(&'static str, String),
}

const DELTAS: &str = "delta-encoded integers";

/// How many bits hold every number from 0 to `max`: 0 to 32.
pub fn bit_width(max: u32) -> u8 {
    // At most 32.
    (u32::BITS - max.leading_zeros()) as u8
}

/// How many bytes `count` values of `width` bits take; `None` where that is beyond counting.
pub fn packed_len(count: usize, width: u8) -> Option<usize> {
    Some(count.checked_mul(width.into())?.div_ceil(8))
}

/// The first `count` values of `width` bits (0 to 32), packed from the least significant bit on. Bits past the end of
/// `bytes` are zero: callers check the length.
pub fn unpacked(bytes: &[u8], width: u8, count: usize) -> impl Iterator<Item = u32> {
    let mask = (1u64 << width.min(32)) - 1;
    let width = usize::from(width.min(32));
    // A value lies within the eight bytes from its first one on: 7 + 32 bits at most.
    (0..count).map(move |at| (word(bytes, at * width / 8) >> (at * width % 8) & mask) as u32)
}

/// An unsigned LEB128 number at the front of `bytes`, and how many bytes it takes; `None` where the bytes end within
/// it or it does not fit 64 bits.
pub fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        let low = u64::from(byte & 0x7f);
        // The tenth byte holds bit 63 alone.
        if at == 9 && low > 1 {
            return None;
        }
        value |= low << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Eight bytes from byte `at` on as a little-endian number, those past the end being zero.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// Value number `at` of values of `width` bits (0 to 64), packed from the least significant bit on.
pub fn wide_value(bytes: &[u8], width: u8, at: usize) -> u64 {
    let width = usize::from(width.min(64));
    if width == 0 {
        return 0;
    }
    let (byte, shift) = (at * width / 8, at * width % 8);
    let mut value = word(bytes, byte) >> shift;
    if shift + width > 64 {
        value |= u64::from(bytes.get(byte + 8).copied().unwrap_or(0)) << (64 - shift);
    }
    value & (u64::MAX >> (64 - width))
}

/// Decodes the integers at the front of `bytes`; gives them with the number of bytes they take. `max` bounds their
/// number, and so the memory taken. For a column of 32-bit integers, the lower half of each is its value.
///
/// # Errors
/// The bytes end too early, break the format, or hold more integers.
pub fn decode_delta(bytes: &[u8], max: usize) -> Result<(Vec<i64>, usize), PackedError> {
    // Pages of nothing but nulls may have no value bytes at all.
    if max == 0 && bytes.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let mut rest = bytes;
    let block = number(&mut rest)?;
    let miniblocks = number(&mut rest)?;
    let total = number(&mut rest)?;
    let mut value = signed(&mut rest)?;
    if total > max {
        return Err(PackedError::Corrupt(
            DELTAS,
            format!("{total} where there should be {max} at most"),
        ));
    }
    let miniblock = block.checked_div(miniblocks).unwrap_or(0);
    if miniblock == 0 || miniblock % 8 != 0 || block % miniblocks != 0 {
        return Err(PackedError::Corrupt(
            DELTAS,
            format!("in blocks of {block} values in {miniblocks} miniblocks"),
        ));
    }
    let mut values = Vec::with_capacity(total);
    if total > 0 {
        values.push(value);
    }
    while values.len() < total {
        let least = signed(&mut rest)?;
        let (widths, after) = rest
            .split_at_checked(miniblocks)
            .ok_or(PackedError::Truncated(DELTAS))?;
        rest = after;
        for width in widths {
            if values.len() == total {
                // Miniblocks past the last value have a width, and no bytes.
                break;
            }
            if *width > 64 {
                return Err(PackedError::Corrupt(
                    DELTAS,
                    format!("a delta of {width} bits"),
                ));
            }
            let here = miniblock.min(total - values.len());
            let packed = take_packed(&mut rest, *width, here, miniblock)?;
            for at in 0..here {
                value = value
                    .wrapping_add(least)
                    .wrapping_add(wide_value(packed, *width, at).cast_signed());
                values.push(value);
            }
        }
    }
    Ok((values, bytes.len() - rest.len()))
}

/// A miniblock's bytes. Some writers leave out the zeros that fill the very last one.
fn take_packed<'a>(
    rest: &mut &'a [u8],
    width: u8,
    here: usize,
    miniblock: usize,
) -> Result<&'a [u8], PackedError> {
    let width = usize::from(width);
    // A multiple of eight values: whole bytes.
    let whole = (miniblock / 8).checked_mul(width);
    if let Some((packed, after)) = whole.and_then(|whole| rest.split_at_checked(whole)) {
        *rest = after;
        return Ok(packed);
    }
    if here < miniblock
        && here
            .checked_mul(width)
            .is_some_and(|bits| bits.div_ceil(8) <= rest.len())
    {
        return Ok(std::mem::take(rest));
    }
    Err(PackedError::Truncated(DELTAS))
}

fn number(rest: &mut &[u8]) -> Result<usize, PackedError> {
    let (value, len) = varint(rest).ok_or(PackedError::Truncated(DELTAS))?;
    *rest = rest.get(len..).unwrap_or_default();
    usize::try_from(value)
        .map_err(|_| PackedError::Corrupt(DELTAS, format!("{value} is too large")))
}

fn signed(rest: &mut &[u8]) -> Result<i64, PackedError> {
    let (value, len) = varint(rest).ok_or(PackedError::Truncated(DELTAS))?;
    *rest = rest.get(len..).unwrap_or_default();
    Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
}
