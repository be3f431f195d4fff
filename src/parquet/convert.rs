//! Values from one physical type to another: what a promoted type, or a decimal stored otherwise elsewhere, takes.

use crate::iceberg::types::PrimitiveType;
use crate::rows::file_schema::{Annotation, Physical};

use super::synth::fixed_decimal;
use super::target::TargetLeaf;

const MICROS_PER_DAY: i64 = 86_400_000_000;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// How values of a stored leaf become those of a virtual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The same bytes.
    None,
    /// `int` to `long`, or a decimal's unscaled value.
    Int32ToInt64,
    /// `float` to `double`.
    FloatToDouble,
    /// Days to so many units a day.
    DateTo {
        /// Units (microseconds or nanoseconds) in a day.
        per_day: i64,
    },
    /// A decimal's unscaled value from an integer of `from` bytes to big-endian two's complement.
    IntToFixed { from: u32, to: u32 },
    /// A decimal's unscaled value to an integer of `to` bytes.
    FixedToInt { from: u32, to: u32 },
    /// A decimal's unscaled value to another width.
    FixedToFixed { from: u32, to: u32 },
    /// `fixed` to `binary`.
    FixedToByteArray { from: u32 },
}

impl Conversion {
    /// The conversion from a stored leaf; `Err` names the pair that has none.
    pub fn between(
        source: Physical,
        annotation: Annotation,
        leaf: &TargetLeaf,
    ) -> Result<Conversion, String> {
        use Physical::{ByteArray, Double, Fixed, Float, Int32, Int64};
        let per_day = match leaf.ty {
            PrimitiveType::Timestamp | PrimitiveType::Timestamptz => Some(MICROS_PER_DAY),
            PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => Some(NANOS_PER_DAY),
            _ => None,
        };
        let decimal = matches!(leaf.ty, PrimitiveType::Decimal { .. });
        Ok(match (source, leaf.physical) {
            (Int32, Int64) => match per_day {
                Some(per_day) if annotation == Annotation::Date => Conversion::DateTo { per_day },
                Some(_) => return Err(misfit(source, leaf)),
                None => Conversion::Int32ToInt64,
            },
            (from, to) if from == to => Conversion::None,
            (Float, Double) => Conversion::FloatToDouble,
            (Int32, Fixed(to)) if decimal => Conversion::IntToFixed { from: 4, to },
            (Int64, Fixed(to)) if decimal => Conversion::IntToFixed { from: 8, to },
            (Fixed(from), Int32) if decimal => Conversion::FixedToInt { from, to: 4 },
            (Fixed(from), Int64) if decimal => Conversion::FixedToInt { from, to: 8 },
            (Int64, Int32) if decimal => return Err(misfit(source, leaf)),
            (Fixed(from), Fixed(to)) if decimal => Conversion::FixedToFixed { from, to },
            (Fixed(from), ByteArray) => Conversion::FixedToByteArray { from },
            _ => return Err(misfit(source, leaf)),
        })
    }

    /// Converts PLAIN values of fixed width. `Err` where one does not fit (a date beyond the range of timestamps).
    pub fn apply(self, values: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        match self {
            Conversion::None => out.extend_from_slice(values),
            Conversion::Int32ToInt64 => each(values, |v: [u8; 4]| {
                out.extend(i64::from(i32::from_le_bytes(v)).to_le_bytes());
                Ok(())
            })?,
            Conversion::FloatToDouble => each(values, |v: [u8; 4]| {
                out.extend(f64::from(f32::from_le_bytes(v)).to_le_bytes());
                Ok(())
            })?,
            Conversion::DateTo { per_day } => each(values, |v: [u8; 4]| {
                let days = i64::from(i32::from_le_bytes(v));
                let units = days
                    .checked_mul(per_day)
                    .ok_or("a date beyond the range of timestamps")?;
                out.extend(units.to_le_bytes());
                Ok(())
            })?,
            Conversion::IntToFixed { from: 4, to } => each(values, |v: [u8; 4]| {
                push_fixed(i128::from(i32::from_le_bytes(v)), to, &mut out)
            })?,
            Conversion::IntToFixed { to, .. } => each(values, |v: [u8; 8]| {
                push_fixed(i128::from(i64::from_le_bytes(v)), to, &mut out)
            })?,
            Conversion::FixedToInt { from, to } => {
                for value in fixed(values, from)? {
                    let value = unscaled(value)?;
                    match to {
                        4 => out.extend(i32::try_from(value).map_err(too_wide)?.to_le_bytes()),
                        _ => out.extend(i64::try_from(value).map_err(too_wide)?.to_le_bytes()),
                    }
                }
            }
            Conversion::FixedToFixed { from, to } => {
                for value in fixed(values, from)? {
                    push_fixed(unscaled(value)?, to, &mut out)?;
                }
            }
            Conversion::FixedToByteArray { from } => {
                for value in fixed(values, from)? {
                    out.extend(from.to_le_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        Ok(out)
    }

    /// The converted length of a fixed-width value, for each byte-length of the source; `None` when values keep theirs.
    pub fn widths(self) -> Option<(u32, u32)> {
        Some(match self {
            Conversion::None => return None,
            Conversion::Int32ToInt64 | Conversion::FloatToDouble | Conversion::DateTo { .. } => {
                (4, 8)
            }
            Conversion::IntToFixed { from, to }
            | Conversion::FixedToInt { from, to }
            | Conversion::FixedToFixed { from, to } => (from, to),
            Conversion::FixedToByteArray { from } => (from, from.saturating_add(4)),
        })
    }
}

fn misfit(source: Physical, leaf: &TargetLeaf) -> String {
    format!(
        "column {}: stored as {source:?}, which cannot be read as {:?}",
        leaf.path.join("."),
        leaf.physical
    )
}

fn too_wide(_: std::num::TryFromIntError) -> String {
    "a decimal with more digits than its type".to_owned()
}

fn each<const N: usize>(
    values: &[u8],
    mut f: impl FnMut([u8; N]) -> Result<(), String>,
) -> Result<(), String> {
    let (chunks, rest) = values.as_chunks::<N>();
    if !rest.is_empty() {
        return Err("values that end in the middle of one".to_owned());
    }
    chunks.iter().try_for_each(|chunk| f(*chunk))
}

fn fixed(values: &[u8], width: u32) -> Result<std::slice::ChunksExact<'_, u8>, String> {
    let width = usize::try_from(width).unwrap_or(0);
    if width == 0 || !values.len().is_multiple_of(width) {
        return Err("values that end in the middle of one".to_owned());
    }
    Ok(values.chunks_exact(width))
}

/// A big-endian two's complement number of up to 16 bytes.
fn unscaled(bytes: &[u8]) -> Result<i128, String> {
    if bytes.len() > 16 {
        return Err("a decimal wider than 16 bytes".to_owned());
    }
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    Ok(bytes
        .iter()
        .fold(if negative { -1 } else { 0 }, |value, byte| {
            (value << 8) | i128::from(*byte)
        }))
}

fn push_fixed(value: i128, width: u32, out: &mut Vec<u8>) -> Result<(), String> {
    out.extend(fixed_decimal(value, width).ok_or("a decimal with more digits than its type")?);
    Ok(())
}

#[cfg(test)]
mod tests;
