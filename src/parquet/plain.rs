//! Values in PLAIN encoding: one after the other.
//!
//! | type | a value |
//! |---|---|
//! | BOOLEAN | one bit, from the least significant one of each byte on |
//! | INT32, FLOAT; INT64, DOUBLE; INT96 | 4; 8; 12 bytes, little endian |
//! | FIXED_LEN_BYTE_ARRAY | its length in bytes |
//! | BYTE_ARRAY | its length in four bytes, little endian, then its bytes |
//!
//! The filters append the values that stay, in the same encoding: as many bytes as those values take in the source.

use super::DecodeError;
use super::bits::BitWriter;
use super::keep::KeepRuns;
use crate::packed::packed_len;

const WHAT: &str = "plain values";

/// Bytes before a byte array's own.
const LENGTH: usize = 4;

/// Appends the kept ones of `keep.total()` values of `width` bytes each.
pub fn filter_fixed(
    values: &[u8],
    width: usize,
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let needed = keep.total().checked_mul(width);
    if needed.is_none_or(|needed| needed > values.len()) {
        return Err(DecodeError::truncated(WHAT));
    }
    for run in keep.runs() {
        let kept = values
            .get(run.start * width..run.end * width)
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        out.extend_from_slice(kept);
    }
    Ok(())
}

/// Appends the kept ones of `keep.total()` bits, those that fill the last byte being zero.
pub fn filter_bool(values: &[u8], keep: &KeepRuns, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    if packed_len(keep.total(), 1).is_none_or(|needed| needed > values.len()) {
        return Err(DecodeError::truncated(WHAT));
    }
    let mut bits = BitWriter::new();
    for run in keep.runs() {
        bits.copy(values, run.start, run.len());
    }
    out.append(&mut bits.take());
    Ok(())
}

/// Appends the kept ones of `keep.total()` byte arrays, with their lengths.
pub fn filter_byte_array(
    values: &[u8],
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut arrays = ByteArrays::new(values);
    let mut next = 0;
    for run in keep.runs() {
        arrays.skip(run.start - next)?;
        let rest = arrays.rest;
        arrays.skip(run.len())?;
        let kept = rest.len() - arrays.rest.len();
        out.extend_from_slice(rest.get(..kept).unwrap_or_default());
        next = run.end;
    }
    // Values that go must be there all the same: else the count is wrong.
    arrays.skip(keep.total() - next)
}

/// Byte arrays, one after the other.
#[derive(Clone, Debug)]
pub struct ByteArrays<'a> {
    rest: &'a [u8],
}

impl<'a> ByteArrays<'a> {
    /// Those in `values`.
    pub fn new(values: &'a [u8]) -> ByteArrays<'a> {
        ByteArrays { rest: values }
    }

    /// The next one, without its length.
    pub fn next_value(&mut self) -> Result<&'a [u8], DecodeError> {
        let (length, rest) = self
            .rest
            .split_first_chunk::<LENGTH>()
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        let length = usize::try_from(u32::from_le_bytes(*length))
            .map_err(|_| DecodeError::truncated(WHAT))?;
        let (value, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        self.rest = rest;
        Ok(value)
    }

    fn skip(&mut self, count: usize) -> Result<(), DecodeError> {
        for _ in 0..count {
            self.next_value()?;
        }
        Ok(())
    }
}

/// Appends the kept ones of `keep.total()` values of `width` bytes each in BYTE_STREAM_SPLIT encoding (all first bytes,
/// then all second bytes, and so on), in PLAIN encoding.
pub fn join_byte_streams(
    values: &[u8],
    width: usize,
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    const WHAT: &str = "byte stream split values";
    let needed = keep
        .total()
        .checked_mul(width)
        .ok_or_else(|| DecodeError::truncated(WHAT))?;
    let streams = values
        .get(..needed)
        .ok_or_else(|| DecodeError::truncated(WHAT))?;
    if keep.total() == 0 || width == 0 {
        return Ok(());
    }
    let start = out.len();
    out.resize(start + keep.kept() * width, 0);
    let joined = out.get_mut(start..).unwrap_or_default();
    for (at, stream) in streams.chunks_exact(keep.total()).enumerate() {
        let kept = keep
            .runs()
            .iter()
            .flat_map(|run| stream.get(run.clone()).unwrap_or_default());
        for (to, from) in joined.iter_mut().skip(at).step_by(width).zip(kept) {
            *to = *from;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
