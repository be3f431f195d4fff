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

/// Filters and converts a page's stored values (those that are not null); gives them with their encoding.
///
/// | source | becomes |
/// |---|---|
/// | PLAIN, BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE booleans | PLAIN |
/// | dictionary indices | dictionary indices |
/// | DELTA_BYTE_ARRAY | itself; PLAIN where values have a fixed width |
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
        Encoding::DeltaByteArray => physical == Physical::ByteArray,
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

/// Integers that [`filter_values`] gave, `count` of them, of 8 bytes (`wide`) or 4, through the dictionary where there
/// is one.
pub fn integers(
    wide: bool,
    encoding: Encoding,
    values: &[u8],
    dictionary: &[u8],
    count: usize,
) -> Result<Vec<i64>, DecodeError> {
    let plain = |bytes: &[u8]| -> Vec<i64> {
        if wide {
            let (values, _) = bytes.as_chunks::<8>();
            values.iter().map(|v| i64::from_le_bytes(*v)).collect()
        } else {
            let (values, _) = bytes.as_chunks::<4>();
            let value = |v: &[u8; 4]| i64::from(i32::from_le_bytes(*v));
            values.iter().map(value).collect()
        }
    };
    let out = match encoding {
        Encoding::RleDictionary if count > 0 => {
            let dictionary = plain(dictionary);
            let (width, indexes) = rle::split_index_width(values)?;
            let mut decoded = Vec::new();
            rle::decode(indexes, width, count, &mut decoded)?;
            decoded
                .iter()
                .map(|index| {
                    let value = usize::try_from(*index).ok().and_then(|i| dictionary.get(i));
                    value.copied().ok_or_else(|| {
                        DecodeError::corrupt(WHAT, "an index past the end of the dictionary")
                    })
                })
                .collect::<Result<Vec<i64>, _>>()?
        }
        _ => plain(values),
    };
    if out.len() == count {
        Ok(out)
    } else {
        Err(DecodeError::corrupt(WHAT, "fewer than its page says"))
    }
}
