//! The kept values of one data page, in an encoding whose length is bounded (see `slot`).

use std::borrow::Cow;

use super::bits::BitWriter;
use super::convert::Conversion;
use super::delta;
use super::format::Encoding;
use super::keep::KeepRuns;
use super::{DecodeError, plain, rle};
use crate::rows::file_schema::Physical;

const WHAT: &str = "page values";

/// Bytes of a variable-length decimal, which is the one thing that variable-length values are converted from. 16 hold
/// any; a few more may say its sign again.
const MAX_DECIMAL: u32 = 64;

/// Filters and converts a page's stored values (those that are not null); gives them with their encoding.
///
/// | source | becomes |
/// |---|---|
/// | PLAIN, BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE booleans | PLAIN |
/// | dictionary indices | dictionary indices |
/// | DELTA_BYTE_ARRAY | itself; PLAIN where values have, or get, a fixed width |
pub fn filter_values<'a>(
    encoding: Encoding,
    physical: Physical,
    values: &'a [u8],
    keep: &KeepRuns,
    conversion: Conversion,
) -> Result<(Encoding, Cow<'a, [u8]>), DecodeError> {
    if keep.is_all() && stays(encoding, physical, conversion) {
        let encoding = if encoding.is_dictionary() {
            Encoding::RleDictionary
        } else {
            encoding
        };
        return Ok((encoding, Cow::Borrowed(values)));
    }
    let mut out = Vec::new();
    match (encoding, physical) {
        (Encoding::PlainDictionary | Encoding::RleDictionary, _) => {
            // A page of nothing but nulls may lack even the width.
            if keep.total() > 0 || !values.is_empty() {
                let (width, indexes) = rle::split_index_width(values)?;
                out.push(width);
                rle::filter(indexes, width, keep, &mut out)?;
            }
            return Ok((Encoding::RleDictionary, Cow::Owned(out)));
        }
        (Encoding::DeltaByteArray, Physical::ByteArray) if conversion != Conversion::None => {
            delta::byte_arrays_to_plain(values, MAX_DECIMAL, keep, &mut out)?;
        }
        (Encoding::DeltaByteArray, Physical::ByteArray) => {
            delta::filter_byte_array(values, keep, &mut out)?;
            return Ok((Encoding::DeltaByteArray, Cow::Owned(out)));
        }
        (Encoding::DeltaByteArray, Physical::Fixed(_)) => {
            let width = fixed_width(physical).ok_or_else(|| unsupported(encoding, physical))?;
            delta::byte_arrays_to_fixed(values, width, keep, &mut out)?;
        }
        (Encoding::DeltaLengthByteArray, Physical::ByteArray) => {
            delta::lengths_to_plain(values, keep, &mut out)?;
        }
        (Encoding::Plain, Physical::ByteArray) => plain::filter_byte_array(values, keep, &mut out)?,
        (Encoding::Plain, Physical::Boolean) => plain::filter_bool(values, keep, &mut out)?,
        (Encoding::Rle, Physical::Boolean) => booleans(values, keep, &mut out)?,
        (Encoding::DeltaBinaryPacked, Physical::Int32 | Physical::Int64) => {
            delta::integers_to_plain(values, physical == Physical::Int64, keep, &mut out)?;
        }
        (Encoding::Plain | Encoding::ByteStreamSplit, _) => {
            let width = fixed_width(physical).ok_or_else(|| unsupported(encoding, physical))?;
            if encoding == Encoding::Plain {
                plain::filter_fixed(values, width, keep, &mut out)?;
            } else {
                plain::join_byte_streams(values, width, keep, &mut out)?;
            }
        }
        _ => return Err(unsupported(encoding, physical)),
    }
    if conversion != Conversion::None {
        out = conversion
            .apply(&out)
            .map_err(|reason| DecodeError::corrupt(WHAT, reason))?;
    }
    Ok((Encoding::Plain, Cow::Owned(out)))
}

/// Whether values that are all kept can be served as they are stored.
fn stays(encoding: Encoding, physical: Physical, conversion: Conversion) -> bool {
    match encoding {
        // Conversions change the dictionary, not the indices.
        Encoding::PlainDictionary | Encoding::RleDictionary => true,
        Encoding::Plain => conversion == Conversion::None,
        Encoding::DeltaByteArray => {
            physical == Physical::ByteArray && conversion == Conversion::None
        }
        _ => false,
    }
}

fn unsupported(encoding: Encoding, physical: Physical) -> DecodeError {
    DecodeError::unsupported(format!("the encoding {encoding:?} of {physical:?} values"))
}

/// Bytes of a value; `None` for booleans and byte arrays.
fn fixed_width(physical: Physical) -> Option<usize> {
    match physical {
        Physical::Int32 | Physical::Float => Some(4),
        Physical::Int64 | Physical::Double => Some(8),
        Physical::Int96 => Some(12),
        Physical::Fixed(width) => usize::try_from(width).ok(),
        Physical::Boolean | Physical::ByteArray => None,
    }
}

/// RLE booleans, after their length, as bits.
fn booleans(values: &[u8], keep: &KeepRuns, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    if keep.total() == 0 && values.is_empty() {
        return Ok(());
    }
    let (runs, _) = rle::split_length_prefixed(values, WHAT)?;
    let mut decoded = Vec::new();
    rle::decode(runs, 1, keep.total(), &mut decoded)?;
    let mut bits = BitWriter::new();
    for run in keep.runs() {
        for value in decoded.get(run.clone()).unwrap_or_default() {
            bits.push(u64::from(*value), 1);
        }
    }
    out.append(&mut bits.take());
    Ok(())
}

/// The `count` dictionary indices of a page.
pub fn indexes(values: &[u8], count: usize) -> Result<Vec<u32>, DecodeError> {
    let mut decoded = Vec::new();
    if count > 0 {
        let (width, indexes) = rle::split_index_width(values)?;
        rle::decode(indexes, width, count, &mut decoded)?;
    }
    Ok(decoded)
}

/// All `count` integers of a page that holds no dictionary indices.
pub fn integers(
    physical: Physical,
    encoding: Encoding,
    values: &[u8],
    count: usize,
) -> Result<Vec<i64>, DecodeError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let width = fixed_width(physical).filter(|_| is_integer(physical));
    let width = width.ok_or_else(|| unsupported(encoding, physical))?;
    let mut out = match encoding {
        Encoding::Plain => plain_integers(
            physical,
            values.get(..count.saturating_mul(width)).unwrap_or(values),
        ),
        Encoding::DeltaBinaryPacked => {
            let (mut values, _) = delta::decode(values, count)?;
            if physical == Physical::Int32 {
                // The lower half is the value.
                values.iter_mut().for_each(|v| *v = i64::from(*v as i32));
            }
            values
        }
        Encoding::ByteStreamSplit => {
            let mut joined = Vec::new();
            let all = KeepRuns::without(count, []);
            plain::join_byte_streams(values, width, &all, &mut joined)?;
            plain_integers(physical, &joined)
        }
        _ => return Err(unsupported(encoding, physical)),
    };
    if out.len() < count {
        return Err(DecodeError::corrupt(WHAT, "fewer than its page says"));
    }
    out.truncate(count);
    Ok(out)
}

fn is_integer(physical: Physical) -> bool {
    matches!(physical, Physical::Int32 | Physical::Int64)
}

/// Integers in PLAIN encoding.
pub fn plain_integers(physical: Physical, values: &[u8]) -> Vec<i64> {
    if physical == Physical::Int64 {
        let (values, _) = values.as_chunks::<8>();
        values.iter().map(|v| i64::from_le_bytes(*v)).collect()
    } else {
        let (values, _) = values.as_chunks::<4>();
        let value = |v: &[u8; 4]| i64::from(i32::from_le_bytes(*v));
        values.iter().map(value).collect()
    }
}
