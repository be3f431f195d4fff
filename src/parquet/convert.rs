//! Values from one physical type to another: what a promoted type, a timestamp in other units, or a decimal stored
//! otherwise elsewhere takes. Every conversion keeps the order of values.

use crate::iceberg::types::PrimitiveType;
use crate::iceberg::value::decimal_be;
use crate::rows::file_schema::{Annotation, Physical};
use crate::rows::stored_values::{Rescale, int96, rescale, units_per_day};

use super::synth::fixed_decimal;
use super::target::TargetLeaf;

/// How values of a stored leaf become those of a virtual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// The same bytes.
    None,
    /// `int` to `long`, or a decimal's unscaled value.
    Int32ToInt64,
    /// A decimal's unscaled value.
    Int64ToInt32,
    /// An unsigned integer of 32 bits to `long`.
    Unsigned32ToInt64,
    /// An unsigned integer as a signed one of as many bytes, which must hold it.
    SameSign { width: u32 },
    /// `float` to `double`.
    FloatToDouble,
    /// Days, or a 32-bit count of a time unit, to 64 bits of another.
    Rescale32(Rescale),
    /// A 64-bit count of a time unit to one of another.
    Rescale64(Rescale),
    /// A Julian day and nanoseconds of it to a count of so many units a day.
    Int96 { per_day: i64 },
    /// A decimal's unscaled value from an integer of `from` bytes to big-endian two's complement.
    IntToFixed { from: u32, to: u32 },
    /// A decimal's unscaled value to an integer of `to` bytes.
    FixedToInt { from: u32, to: u32 },
    /// A decimal's unscaled value to another width.
    FixedToFixed { from: u32, to: u32 },
    /// A decimal's unscaled value, of as many bytes as it takes, to an integer of `to` bytes.
    BytesToInt { to: u32 },
    /// A decimal's unscaled value, of as many bytes as it takes, to so many.
    BytesToFixed { to: u32 },
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
        use Physical::{ByteArray, Double, Fixed, Float, Int32, Int64, Int96};
        if leaf.ty == PrimitiveType::Variant && source == leaf.physical {
            return Ok(Conversion::None);
        }
        let decimal = matches!(leaf.ty, PrimitiveType::Decimal { .. });
        let unsigned = matches!(
            annotation,
            Annotation::Integer {
                bits: 32..,
                signed: false
            }
        );
        if let Some(per_day) = units_per_day(&leaf.ty) {
            let rescale = || rescale(annotation, per_day).ok_or_else(|| misfit(source, leaf));
            return Ok(match (source, leaf.physical) {
                (Int96, Int64) => Conversion::Int96 { per_day },
                (Int32, Int64) => Conversion::Rescale32(rescale()?),
                (Int64, Int64) => match rescale()? {
                    Rescale::Same => Conversion::None,
                    other => Conversion::Rescale64(other),
                },
                _ => return Err(misfit(source, leaf)),
            });
        }
        Ok(match (source, leaf.physical) {
            (Int32, Int64) if unsigned => Conversion::Unsigned32ToInt64,
            (Int32, Int32) if unsigned => Conversion::SameSign { width: 4 },
            (Int64, Int64) if unsigned => Conversion::SameSign { width: 8 },
            (from, to) if from == to => Conversion::None,
            (Int32, Int64) => Conversion::Int32ToInt64,
            (Float, Double) => Conversion::FloatToDouble,
            (Int64, Int32) if decimal => Conversion::Int64ToInt32,
            (Int32, Fixed(to)) if decimal => Conversion::IntToFixed { from: 4, to },
            (Int64, Fixed(to)) if decimal => Conversion::IntToFixed { from: 8, to },
            (Fixed(from), Int32) if decimal => Conversion::FixedToInt { from, to: 4 },
            (Fixed(from), Int64) if decimal => Conversion::FixedToInt { from, to: 8 },
            (Fixed(from), Fixed(to)) if decimal => Conversion::FixedToFixed { from, to },
            (ByteArray, Int32) if decimal => Conversion::BytesToInt { to: 4 },
            (ByteArray, Int64) if decimal => Conversion::BytesToInt { to: 8 },
            (ByteArray, Fixed(to)) if decimal => Conversion::BytesToFixed { to },
            (Fixed(from), ByteArray) => Conversion::FixedToByteArray { from },
            _ => return Err(misfit(source, leaf)),
        })
    }

    /// Converts PLAIN values. `Err` where one does not fit (a date beyond the range of timestamps).
    pub fn apply(self, values: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        match self {
            Conversion::None => out.extend_from_slice(values),
            Conversion::Int32ToInt64 => each(values, |v: [u8; 4]| {
                out.extend(i64::from(i32::from_le_bytes(v)).to_le_bytes());
                Ok(())
            })?,
            Conversion::Int64ToInt32 => each(values, |v: [u8; 8]| {
                push_int(i128::from(i64::from_le_bytes(v)), 4, &mut out)
            })?,
            Conversion::Unsigned32ToInt64 => each(values, |v: [u8; 4]| {
                out.extend(i64::from(u32::from_le_bytes(v)).to_le_bytes());
                Ok(())
            })?,
            Conversion::SameSign { width } => {
                for value in fixed(values, width)? {
                    // Little endian: the last byte has the highest bit.
                    if value.last().is_some_and(|byte| byte & 0x80 != 0) {
                        return Err("an unsigned integer beyond the range of its type".to_owned());
                    }
                    out.extend_from_slice(value);
                }
            }
            Conversion::FloatToDouble => each(values, |v: [u8; 4]| {
                out.extend(f64::from(f32::from_le_bytes(v)).to_le_bytes());
                Ok(())
            })?,
            Conversion::Rescale32(rescale) => each(values, |v: [u8; 4]| {
                push_units(rescale.apply(i32::from_le_bytes(v).into()), &mut out)
            })?,
            Conversion::Rescale64(rescale) => each(values, |v: [u8; 8]| {
                push_units(rescale.apply(i64::from_le_bytes(v)), &mut out)
            })?,
            Conversion::Int96 { per_day } => each(values, |v: [u8; 12]| {
                push_units(int96(v, per_day), &mut out)
            })?,
            Conversion::IntToFixed { from: 4, to } => each(values, |v: [u8; 4]| {
                push_fixed(i128::from(i32::from_le_bytes(v)), to, &mut out)
            })?,
            Conversion::IntToFixed { to, .. } => each(values, |v: [u8; 8]| {
                push_fixed(i128::from(i64::from_le_bytes(v)), to, &mut out)
            })?,
            Conversion::FixedToInt { from, to } => {
                for value in fixed(values, from)? {
                    push_int(unscaled(value)?, to, &mut out)?;
                }
            }
            Conversion::FixedToFixed { from, to } => {
                for value in fixed(values, from)? {
                    push_fixed(unscaled(value)?, to, &mut out)?;
                }
            }
            Conversion::BytesToInt { to } => {
                each_byte_array(values, |value| push_int(unscaled(value)?, to, &mut out))?;
            }
            Conversion::BytesToFixed { to } => {
                each_byte_array(values, |value| push_fixed(unscaled(value)?, to, &mut out))?;
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

    /// A bound of a column chunk as one of its converted values. `None` where there is none: the order of INT96 and of
    /// variable-length decimals is not defined.
    pub fn bound(self, bound: &[u8]) -> Option<Box<[u8]>> {
        match self {
            Conversion::FixedToByteArray { .. } => Some(bound.into()),
            Conversion::Int96 { .. }
            | Conversion::BytesToInt { .. }
            | Conversion::BytesToFixed { .. } => None,
            _ => self.apply(bound).ok().map(Vec::into_boxed_slice),
        }
    }

    /// The converted length of a value, for each so many bytes of the source at least; `None` when values keep theirs.
    pub fn widths(self) -> Option<(u32, u32)> {
        Some(match self {
            Conversion::None | Conversion::SameSign { .. } | Conversion::Rescale64(_) => {
                return None;
            }
            Conversion::Int32ToInt64
            | Conversion::Unsigned32ToInt64
            | Conversion::FloatToDouble
            | Conversion::Rescale32(_) => (4, 8),
            Conversion::Int64ToInt32 => (8, 4),
            Conversion::Int96 { .. } => (12, 8),
            Conversion::IntToFixed { from, to }
            | Conversion::FixedToInt { from, to }
            | Conversion::FixedToFixed { from, to } => (from, to),
            // In PLAIN encoding the length alone takes 4.
            Conversion::BytesToInt { to } | Conversion::BytesToFixed { to } => (4, to),
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

fn push_units(units: Option<i64>, out: &mut Vec<u8>) -> Result<(), String> {
    out.extend(
        units
            .ok_or("a time beyond the range of its type")?
            .to_le_bytes(),
    );
    Ok(())
}

fn push_int(value: i128, width: u32, out: &mut Vec<u8>) -> Result<(), String> {
    let too_wide = |_| "a decimal with more digits than its type".to_owned();
    match width {
        4 => out.extend(i32::try_from(value).map_err(too_wide)?.to_le_bytes()),
        _ => out.extend(i64::try_from(value).map_err(too_wide)?.to_le_bytes()),
    }
    Ok(())
}

/// Byte arrays in PLAIN encoding.
fn each_byte_array(
    mut values: &[u8],
    mut f: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    while !values.is_empty() {
        let value = values.split_first_chunk::<4>().and_then(|(len, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len)).ok()?)
        });
        let (value, rest) = value.ok_or("values that end in the middle of one")?;
        values = rest;
        f(value)?;
    }
    Ok(())
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

fn unscaled(bytes: &[u8]) -> Result<i128, String> {
    decimal_be(bytes).ok_or_else(|| "a decimal of no bytes, or of more than 16".to_owned())
}

fn push_fixed(value: i128, width: u32, out: &mut Vec<u8>) -> Result<(), String> {
    out.extend(fixed_decimal(value, width).ok_or("a decimal with more digits than its type")?);
    Ok(())
}

#[cfg(test)]
mod tests;
