//! Byte arrays in DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY encoding.

use super::{decode, encode_i32, encoded_len_bound_i32};
use crate::parquet::DecodeError;
use crate::parquet::keep::KeepRuns;

const WHAT: &str = "delta-encoded byte arrays";

/// Values in DELTA_BYTE_ARRAY encoding: each is the first bytes of the one before it, and a suffix.
#[derive(Clone, Debug)]
pub struct PrefixSuffix<'a> {
    /// How many bytes each value shares with the one before it; the first one shares none.
    pub prefix_lens: Vec<usize>,
    /// The bytes of each value's suffix.
    pub suffix_lens: Vec<usize>,
    /// The suffixes, one after the other: all of these bytes.
    pub suffixes: &'a [u8],
}

/// Decodes `count` lengths at the front of `bytes`; gives them with the bytes after them.
fn lengths(bytes: &[u8], count: usize) -> Result<(Vec<usize>, &[u8]), DecodeError> {
    let (lengths, len) = decode(bytes, count)?;
    let lengths: Result<Vec<usize>, DecodeError> = lengths
        .into_iter()
        // Lengths are 32-bit integers: the lower half counts.
        .map(|length| {
            usize::try_from(length as i32)
                .map_err(|_| DecodeError::corrupt(WHAT, format!("a length of {}", length as i32)))
        })
        .collect();
    Ok((lengths?, bytes.get(len..).unwrap_or_default()))
}

/// Decodes `count` byte arrays in DELTA_LENGTH_BYTE_ARRAY encoding: their lengths, and their bytes one after the other,
/// exactly as many as the lengths add up to.
pub fn decode_lengths(bytes: &[u8], count: usize) -> Result<(Vec<usize>, &[u8]), DecodeError> {
    let (lengths, rest) = lengths(bytes, count)?;
    let total = lengths
        .iter()
        .try_fold(0usize, |total, length| total.checked_add(*length));
    let data = total
        .and_then(|total| rest.get(..total))
        .ok_or_else(|| DecodeError::truncated(WHAT))?;
    Ok((lengths, data))
}

/// Appends the kept ones of `keep.total()` byte arrays in DELTA_LENGTH_BYTE_ARRAY encoding, in PLAIN encoding: four
/// bytes and its own for each value.
pub fn lengths_to_plain(
    bytes: &[u8],
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let (lengths, mut rest) = decode_lengths(bytes, keep.total())?;
    for (length, kept) in lengths.into_iter().zip(keep.iter()) {
        let (value, after) = rest
            .split_at_checked(length)
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        rest = after;
        if kept {
            // It was an `i32` that is not negative.
            out.extend_from_slice(&(length as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
    }
    Ok(())
}

/// Decodes `count` values in DELTA_BYTE_ARRAY encoding, as far as it goes without putting them together.
///
/// # Errors
/// Bytes that break the format; among them prefixes longer than the value they are taken from (some parquet-mr before
/// 1.8.2 took them from the page before, PARQUET-246).
pub fn decode_prefix_suffix(bytes: &[u8], count: usize) -> Result<PrefixSuffix<'_>, DecodeError> {
    let (prefix_lens, rest) = lengths(bytes, count)?;
    let (suffix_lens, suffixes) = decode_lengths(rest, count)?;
    let mut last = 0usize;
    for (prefix, suffix) in prefix_lens.iter().zip(&suffix_lens) {
        if *prefix > last {
            let reason = format!("a value takes {prefix} bytes from one of {last}");
            return Err(DecodeError::corrupt(WHAT, reason));
        }
        last = prefix + suffix;
    }
    Ok(PrefixSuffix {
        prefix_lens,
        suffix_lens,
        suffixes,
    })
}

/// Appends values in DELTA_BYTE_ARRAY encoding; `prefix_lens` and `suffix_lens` have one entry each for a value.
pub fn encode_prefix_suffix(
    prefix_lens: &[i32],
    suffix_lens: &[i32],
    suffixes: &[u8],
    out: &mut Vec<u8>,
) {
    encode_i32(prefix_lens, out);
    encode_i32(suffix_lens, out);
    out.extend_from_slice(suffixes);
}

/// Appends the kept ones of `keep.total()` values in DELTA_BYTE_ARRAY encoding, in that encoding: at most
/// [`byte_array_bound`] bytes.
///
/// A kept value shares with the kept one before it at least what it shares with each value in between: the least of
/// their prefixes. Where that is less than its own prefix, its suffix grows, by bytes that a value in between had in
/// its suffix and that is now gone: each byte of the source's suffixes is written once at most, so they do not grow.
pub fn filter_byte_array(
    bytes: &[u8],
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let source = decode_prefix_suffix(bytes, keep.total())?;
    let mut value: Vec<u8> = Vec::new();
    let mut rest = source.suffixes;
    // What the value shares with the last kept one.
    let mut shared = 0;
    let (mut prefix_lens, mut suffix_lens, mut suffixes) = (Vec::new(), Vec::new(), Vec::new());
    for ((prefix, suffix), kept) in source
        .prefix_lens
        .iter()
        .zip(&source.suffix_lens)
        .zip(keep.iter())
    {
        let (suffix, after) = rest
            .split_at_checked(*suffix)
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        rest = after;
        value.truncate(*prefix);
        value.extend_from_slice(suffix);
        shared = shared.min(*prefix);
        if kept {
            let own = value.get(shared..).unwrap_or_default();
            let length = |len: usize| {
                i32::try_from(len)
                    .map_err(|_| DecodeError::corrupt(WHAT, format!("a value of {len} bytes")))
            };
            prefix_lens.push(length(shared)?);
            suffix_lens.push(length(own.len())?);
            suffixes.extend_from_slice(own);
            shared = value.len();
        }
    }
    let start = out.len();
    encode_prefix_suffix(&prefix_lens, &suffix_lens, &suffixes, out);
    debug_assert!(out.len() - start <= byte_array_bound(keep.kept(), source.suffixes.len()));
    Ok(())
}

/// Appends the kept ones of `keep.total()` values of `width` bytes each in DELTA_BYTE_ARRAY encoding, in PLAIN encoding.
///
/// # Errors
/// Bytes that break the format; a value of another width.
pub fn byte_arrays_to_fixed(
    bytes: &[u8],
    width: usize,
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    put_together(bytes, keep, |value, kept| {
        if value.len() != width {
            let reason = format!("a value of {} bytes, not {width}", value.len());
            return Err(DecodeError::corrupt(WHAT, reason));
        }
        if kept {
            out.extend_from_slice(value);
        }
        Ok(())
    })
}

/// Appends the kept ones of `keep.total()` values of at most `max` bytes each in DELTA_BYTE_ARRAY encoding, in PLAIN
/// encoding.
///
/// # Errors
/// Bytes that break the format; a longer value.
pub fn byte_arrays_to_plain(
    bytes: &[u8],
    max: u32,
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    put_together(bytes, keep, |value, kept| {
        let len = u32::try_from(value.len()).ok().filter(|len| *len <= max);
        let Some(len) = len else {
            let reason = format!("a value of {} bytes, over {max}", value.len());
            return Err(DecodeError::corrupt(WHAT, reason));
        };
        if kept {
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(value);
        }
        Ok(())
    })
}

/// Gives each value in DELTA_BYTE_ARRAY encoding, and whether it is kept.
fn put_together(
    bytes: &[u8],
    keep: &KeepRuns,
    mut each: impl FnMut(&[u8], bool) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let source = decode_prefix_suffix(bytes, keep.total())?;
    let mut value: Vec<u8> = Vec::new();
    let mut rest = source.suffixes;
    let lens = source.prefix_lens.iter().zip(&source.suffix_lens);
    for ((prefix, suffix), kept) in lens.zip(keep.iter()) {
        let (new, after) = rest
            .split_at_checked(*suffix)
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        rest = after;
        value.truncate(*prefix);
        value.extend_from_slice(new);
        each(&value, kept)?;
    }
    Ok(())
}

/// The most bytes [`filter_byte_array`] gives for `kept` values whose page had `suffix_bytes` bytes of suffixes.
/// The page's whole length serves for the latter.
pub fn byte_array_bound(kept: usize, suffix_bytes: usize) -> usize {
    2 * encoded_len_bound_i32(kept) + suffix_bytes
}
