//! The kept values of one data page, in an encoding whose length is bounded (see `slot`).

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
pub fn filter_values(
    encoding: Encoding,
    physical: Physical,
    values: &[u8],
    keep: &KeepRuns,
    conversion: Conversion,
) -> Result<(Encoding, Vec<u8>), DecodeError> {
    let mut out = Vec::new();
    match (encoding, physical) {
        (Encoding::PlainDictionary | Encoding::RleDictionary, _) => {
            // A page of nothing but nulls may lack even the width.
            if keep.total() > 0 || !values.is_empty() {
                let (width, indexes) = rle::split_index_width(values)?;
                out.push(width);
                rle::filter(indexes, width, keep, &mut out)?;
            }
            return Ok((Encoding::RleDictionary, out));
        }
        (Encoding::DeltaByteArray, Physical::ByteArray) if conversion != Conversion::None => {
            delta::byte_arrays_to_plain(values, MAX_DECIMAL, keep, &mut out)?;
        }
        (Encoding::DeltaByteArray, Physical::ByteArray) => {
            delta::filter_byte_array(values, keep, &mut out)?;
            return Ok((Encoding::DeltaByteArray, out));
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
    Ok((Encoding::Plain, out))
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

/// 64-bit integers that [`filter_values`] gave, `count` of them, through the dictionary where there is one.
pub fn longs(
    encoding: Encoding,
    values: &[u8],
    dictionary: &[u8],
    count: usize,
) -> Result<Vec<i64>, DecodeError> {
    let (dictionary, _) = dictionary.as_chunks::<8>();
    let (plain, _) = values.as_chunks::<8>();
    let out: Vec<i64> = match encoding {
        Encoding::RleDictionary if count > 0 => {
            let (width, indexes) = rle::split_index_width(values)?;
            let mut decoded = Vec::new();
            rle::decode(indexes, width, count, &mut decoded)?;
            let value = |index: &u32| {
                let bytes = dictionary.get(usize::try_from(*index).ok()?)?;
                Some(i64::from_le_bytes(*bytes))
            };
            decoded
                .iter()
                .map(|index| {
                    value(index).ok_or_else(|| {
                        DecodeError::corrupt(WHAT, "an index past the end of the dictionary")
                    })
                })
                .collect::<Result<_, _>>()?
        }
        _ => plain
            .iter()
            .map(|bytes| i64::from_le_bytes(*bytes))
            .collect(),
    };
    if out.len() == count {
        Ok(out)
    } else {
        Err(DecodeError::corrupt(WHAT, "fewer than its page says"))
    }
}
