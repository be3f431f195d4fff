//! Deletion vectors: the deleted positions of one data file, a `deletion-vector-v1` blob (Puffin spec).
//!
//! ```text
//! length  u32 BE   of magic and vector
//! magic   D1 D3 39 64
//! vector  u64 LE   number of bitmaps, then for each, by ascending key:
//!           key    u32 LE   the high half of its positions
//!           bitmap portable 32-bit Roaring: the low halves
//! crc     u32 BE   CRC-32 of magic and vector
//! ```
//!
//! Blobs are found by offset and length, as the manifest gives them: the file around them need not be sound.

use std::io::Read;

use roaring::{RoaringBitmap, RoaringTreemap};

use super::error::FormatError;

const MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];
const WHAT: &str = "deletion vector";
/// Keys from here on would make positions of 2^63 and more, which no file has.
const KEY_LIMIT: u32 = 1 << 31;

/// Reads a blob: the bytes that a manifest entry's `content_offset` and `content_size_in_bytes` name.
///
/// `expected_cardinality` is the entry's `record_count`.
///
/// # Errors
///
/// For any blob whose length, magic, checksum, bitmaps or cardinality are not exactly right.
pub fn parse(blob: &[u8], expected_cardinality: u64) -> Result<RoaringTreemap, FormatError> {
    let (body, crc) = frame(blob)?;
    let vector = body
        .strip_prefix(&MAGIC)
        .ok_or_else(|| invalid("does not start with its magic bytes"))?;
    let actual = crc32fast::hash(body);
    if actual != crc {
        return Err(invalid(format!(
            "checksum is {actual:08x}, recorded is {crc:08x}"
        )));
    }
    let bitmaps = bitmaps(vector)?;
    let cardinality: u64 = bitmaps.iter().map(|(_, bitmap)| bitmap.len()).sum();
    if cardinality != expected_cardinality {
        let reason = format!(
            "holds {cardinality} positions, its manifest entry says {expected_cardinality}"
        );
        return Err(invalid(reason));
    }
    Ok(RoaringTreemap::from_bitmaps(bitmaps))
}

/// Takes a blob apart: magic and vector together, and the checksum recorded for them.
fn frame(blob: &[u8]) -> Result<(&[u8], u32), FormatError> {
    let too_short = || invalid(format!("{} bytes are too few", blob.len()));
    let (length, rest) = blob.split_first_chunk::<4>().ok_or_else(too_short)?;
    let (body, crc) = rest.split_last_chunk::<4>().ok_or_else(too_short)?;
    let length = u32::from_be_bytes(*length);
    if u32::try_from(body.len()) != Ok(length) {
        return Err(invalid(format!(
            "length field is {length}, but {} bytes are there",
            body.len()
        )));
    }
    Ok((body, u32::from_be_bytes(*crc)))
}

fn bitmaps(vector: &[u8]) -> Result<Vec<(u32, RoaringBitmap)>, FormatError> {
    let mut rest = vector;
    let mut count = [0; 8];
    rest.read_exact(&mut count)
        .map_err(|_| invalid("ends within the number of bitmaps"))?;
    let count = u64::from_le_bytes(count);
    // Nothing is reserved by the count, which is only claimed: each bitmap must be there to be counted.
    let mut bitmaps: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let mut key = [0; 4];
        rest.read_exact(&mut key)
            .map_err(|_| invalid(format!("ends before {count} bitmaps")))?;
        let key = u32::from_le_bytes(key);
        if key >= KEY_LIMIT {
            return Err(invalid(format!("key {key} makes positions beyond 2^63")));
        }
        if bitmaps.last().is_some_and(|(last, _)| *last >= key) {
            return Err(invalid(format!("key {key} is not in ascending order")));
        }
        let bitmap = RoaringBitmap::deserialize_from(&mut rest)
            .map_err(|e| invalid(format!("bitmap with key {key}: {e}")))?;
        bitmaps.push((key, bitmap));
    }
    match rest.len() {
        0 => Ok(bitmaps),
        trailing => Err(invalid(format!("{trailing} bytes follow the last bitmap"))),
    }
}

fn invalid(reason: impl Into<String>) -> FormatError {
    FormatError::invalid(WHAT, reason)
}

#[cfg(test)]
mod tests;
