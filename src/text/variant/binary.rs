//! The binary encoding of a variant, to JSON. A value is written as it is read.

use crate::iceberg::variant::{Input, MAX_DEPTH, MAX_TEXT, Names, Object, VariantError, entry};
use crate::text::json::{in_quotes, push_number_or_name, push_string, separate};
use crate::text::values::{
    Fraction, push_date, push_decimal, push_hex, push_integer, push_time, push_timestamp, push_uuid,
};

/// Writes a value, and gives its bytes. What follows them is not looked at.
pub(super) fn push_value(
    out: &mut Vec<u8>,
    names: &Names<'_>,
    bytes: &[u8],
    depth: usize,
) -> Result<usize, VariantError> {
    let mut input = Input(bytes);
    let [header] = input.take()?;
    match header & 3 {
        0 => push_primitive(out, header >> 2, &mut input)?,
        1 => push_text(out, input.slice(usize::from(header >> 2))?)?,
        2 => {
            let mut object = Object::parse(names, bytes)?;
            out.push(b'{');
            for (index, (name, value)) in std::mem::take(&mut object.fields).iter().enumerate() {
                separate(out, index);
                push_string(out, name);
                out.push(b':');
                push_field(out, names, &mut object, value, depth)?;
            }
            out.push(b'}');
            return Ok(object.size());
        }
        _ => {
            push_array(out, names, header >> 2, &mut input, depth)?;
        }
    }
    Ok(bytes.len() - input.0.len())
}

fn push_primitive(out: &mut Vec<u8>, ty: u8, input: &mut Input<'_>) -> Result<(), VariantError> {
    match ty {
        0 => out.extend_from_slice(b"null"),
        1 => out.extend_from_slice(b"true"),
        2 => out.extend_from_slice(b"false"),
        3 => push_integer(out, i8::from_le_bytes(input.take()?)),
        4 => push_integer(out, i16::from_le_bytes(input.take()?)),
        5 => push_integer(out, i32::from_le_bytes(input.take()?)),
        6 => push_integer(out, i64::from_le_bytes(input.take()?)),
        7 => push_number_or_name(out, f64::from_le_bytes(input.take()?)),
        8 => {
            let scale = input.scale()?;
            let unscaled = i32::from_le_bytes(input.take()?);
            in_quotes(out, |out| push_decimal(out, unscaled.into(), scale));
        }
        9 => {
            let scale = input.scale()?;
            let unscaled = i64::from_le_bytes(input.take()?);
            in_quotes(out, |out| push_decimal(out, unscaled.into(), scale));
        }
        10 => {
            let scale = input.scale()?;
            let unscaled = i128::from_le_bytes(input.take()?);
            in_quotes(out, |out| push_decimal(out, unscaled, scale));
        }
        11 => {
            let days = i32::from_le_bytes(input.take()?);
            in_quotes(out, |out| push_date(out, days));
        }
        12 | 13 => {
            let units = i64::from_le_bytes(input.take()?);
            in_quotes(out, |out| {
                push_timestamp(out, units, Fraction::Micros, ty == 12)
            });
        }
        14 => push_number_or_name(out, f32::from_le_bytes(input.take()?)),
        15 => {
            let bytes = input.sized()?;
            in_quotes(out, |out| push_hex(out, bytes));
        }
        16 => push_text(out, input.sized()?)?,
        17 => {
            let micros = i64::from_le_bytes(input.take()?);
            in_quotes(out, |out| push_time(out, micros, Fraction::Micros));
        }
        18 | 19 => {
            let units = i64::from_le_bytes(input.take()?);
            in_quotes(out, |out| {
                push_timestamp(out, units, Fraction::Nanos, ty == 18)
            });
        }
        20 => {
            let bytes: [u8; 16] = input.take()?;
            in_quotes(out, |out| push_uuid(out, &bytes));
        }
        _ => return Err(VariantError::Type(ty)),
    }
    Ok(())
}

fn push_text(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), VariantError> {
    push_string(
        out,
        std::str::from_utf8(bytes).map_err(|_| VariantError::Utf8)?,
    );
    Ok(())
}

fn push_array(
    out: &mut Vec<u8>,
    names: &Names<'_>,
    header: u8,
    input: &mut Input<'_>,
    depth: usize,
) -> Result<(), VariantError> {
    if depth >= MAX_DEPTH {
        return Err(VariantError::Deep);
    }
    let offset_size = usize::from(header & 3) + 1;
    let count = input.number(if header & 4 == 0 { 1 } else { 4 })?;
    let offsets = input.table(count.checked_add(1), offset_size)?;
    let values = input.slice(entry(offsets, count, offset_size)?)?;
    out.push(b'[');
    let mut start = entry(offsets, 0, offset_size)?;
    for index in 0..count {
        separate(out, index);
        let end = entry(offsets, index + 1, offset_size)?;
        let value = values.get(start..end).ok_or(VariantError::Offset)?;
        check_text(out)?;
        push_value(out, names, value, depth + 1)?;
        start = end;
    }
    out.push(b']');
    Ok(())
}

fn check_text(out: &[u8]) -> Result<(), VariantError> {
    if out.len() > MAX_TEXT {
        return Err(VariantError::Long);
    }
    Ok(())
}

/// Writes the value of one of an object's fields. Each may be written once.
pub(super) fn push_field(
    out: &mut Vec<u8>,
    names: &Names<'_>,
    object: &mut Object<'_>,
    value: &[u8],
    depth: usize,
) -> Result<(), VariantError> {
    if depth >= MAX_DEPTH {
        return Err(VariantError::Deep);
    }
    check_text(out)?;
    let len = push_value(out, names, value, depth + 1)?;
    object.take(len)
}
