//! The binary encoding of a variant (parquet-format, `VariantEncoding.md`), to JSON.
//!
//! ```text
//! metadata = header, count, offset[count + 1], names     header = version (4 bits), sorted, unused, offset bytes - 1
//! value    = header, …                                   header = basic type (2 bits), and what that needs (6 bits)
//!   0 primitive: its type, then its bytes                2 object: count, id[count],     offset[count + 1], values
//!   1 short string: its length, then its bytes           3 array:  count,                offset[count + 1], values
//! ```
//!
//! The arrow project's own crate (`parquet-variant`) checks a value by recursion that has no bound, and an overflow of
//! the stack ends the process; so this is read here. A value is written as it is read. The values of an object may lie
//! in any order but must not overlap: else a few bytes could say a text of any length.

use super::VariantError;
use crate::text::json::{in_quotes, push_number_or_name, push_string, separate};
use crate::text::values::{
    Fraction, push_date, push_decimal, push_hex, push_integer, push_time, push_timestamp, push_uuid,
};

/// Objects and arrays in each other, at most.
pub(super) const MAX_DEPTH: usize = 200;

/// Bytes of a row's text, at most, as far as variants make it: every object of one may repeat the longest of its names.
pub(super) const MAX_TEXT: usize = 256 << 20;

/// Digits that a decimal has at most.
const MAX_SCALE: u8 = 38;

/// The names of a variant's fields.
pub(super) struct Names<'a> {
    count: usize,
    offsets: &'a [u8],
    offset_size: usize,
    bytes: &'a [u8],
}

impl<'a> Names<'a> {
    pub(super) fn parse(metadata: &'a [u8]) -> Result<Names<'a>, VariantError> {
        let mut input = Input(metadata);
        let [header] = input.take()?;
        if header & 15 != 1 {
            return Err(VariantError::Version(header & 15));
        }
        let offset_size = usize::from(header >> 6) + 1;
        let count = input.number(offset_size)?;
        let offsets = input.table(count.checked_add(1), offset_size)?;
        Ok(Names {
            count,
            offsets,
            offset_size,
            bytes: input.0,
        })
    }

    fn get(&self, id: usize) -> Result<&'a str, VariantError> {
        if id >= self.count {
            return Err(VariantError::Name(id));
        }
        let start = entry(self.offsets, id, self.offset_size)?;
        let end = entry(self.offsets, id + 1, self.offset_size)?;
        let name = self.bytes.get(start..end).ok_or(VariantError::Offset)?;
        std::str::from_utf8(name).map_err(|_| VariantError::Utf8)
    }
}

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
                object.push_field(out, names, value, depth)?;
            }
            out.push(b'}');
            return Ok(object.len);
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

/// An object's fields.
pub(super) struct Object<'a> {
    /// In the order of their names; each value's bytes begin here, and end before those of all values do.
    pub(super) fields: Vec<(&'a str, &'a [u8])>,
    /// Bytes of the whole object.
    len: usize,
    /// Bytes of the values that have not been written yet.
    left: usize,
}

impl<'a> Object<'a> {
    /// Whether a value is an object.
    pub(super) fn is(value: &[u8]) -> bool {
        value.first().is_some_and(|header| header & 3 == 2)
    }

    /// The fields of a value that is an object.
    pub(super) fn parse(names: &Names<'a>, bytes: &'a [u8]) -> Result<Object<'a>, VariantError> {
        let mut input = Input(bytes);
        let [header] = input.take()?;
        let header = header >> 2;
        let (offset_size, id_size) = (
            usize::from(header & 3) + 1,
            usize::from(header >> 2 & 3) + 1,
        );
        let count = input.number(if header & 16 == 0 { 1 } else { 4 })?;
        let ids = input.table(Some(count), id_size)?;
        let offsets = input.table(count.checked_add(1), offset_size)?;
        let values = input.slice(entry(offsets, count, offset_size)?)?;
        let field = |index| {
            let name = names.get(entry(ids, index, id_size)?)?;
            let start = entry(offsets, index, offset_size)?;
            Ok((name, values.get(start..).ok_or(VariantError::Offset)?))
        };
        let mut fields = (0..count)
            .map(field)
            .collect::<Result<Vec<_>, VariantError>>()?;
        // They should be in order; some writers' order is that of UTF-16.
        if !fields.is_sorted_by_key(|(name, _)| *name) {
            fields.sort_by_key(|(name, _)| *name);
        }
        let mut pairs = fields.iter().zip(fields.iter().skip(1));
        if let Some(((name, _), _)) = pairs.find(|(one, next)| one.0 == next.0) {
            return Err(VariantError::Twice((*name).to_owned()));
        }
        Ok(Object {
            fields,
            len: bytes.len() - input.0.len(),
            left: values.len(),
        })
    }

    /// Writes the value of one of the fields. Each may be written once.
    pub(super) fn push_field(
        &mut self,
        out: &mut Vec<u8>,
        names: &Names<'_>,
        value: &[u8],
        depth: usize,
    ) -> Result<(), VariantError> {
        if depth >= MAX_DEPTH {
            return Err(VariantError::Deep);
        }
        check_text(out)?;
        let len = push_value(out, names, value, depth + 1)?;
        self.left = self.left.checked_sub(len).ok_or(VariantError::Overlap)?;
        Ok(())
    }
}

/// An entry of a table of little-endian numbers of `size` bytes, at most 4.
fn entry(table: &[u8], index: usize, size: usize) -> Result<usize, VariantError> {
    let start = index.checked_mul(size).ok_or(VariantError::Short)?;
    let mut bytes = Input(table.get(start..).ok_or(VariantError::Short)?);
    bytes.number(size)
}

/// The bytes that are left.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], VariantError> {
        let (taken, left) = self.0.split_first_chunk().ok_or(VariantError::Short)?;
        self.0 = left;
        Ok(*taken)
    }

    fn slice(&mut self, len: usize) -> Result<&'a [u8], VariantError> {
        let (taken, left) = self.0.split_at_checked(len).ok_or(VariantError::Short)?;
        self.0 = left;
        Ok(taken)
    }

    /// A number of at most 4 bytes.
    fn number(&mut self, size: usize) -> Result<usize, VariantError> {
        let bytes = self.slice(size)?;
        let number = bytes
            .iter()
            .rev()
            .fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
        usize::try_from(number).map_err(|_| VariantError::Short)
    }

    /// So many numbers.
    fn table(&mut self, count: Option<usize>, size: usize) -> Result<&'a [u8], VariantError> {
        let len = count.and_then(|count| count.checked_mul(size));
        self.slice(len.ok_or(VariantError::Short)?)
    }

    /// Bytes that say their number first.
    fn sized(&mut self) -> Result<&'a [u8], VariantError> {
        let len = self.number(4)?;
        self.slice(len)
    }

    fn scale(&mut self) -> Result<usize, VariantError> {
        let [scale] = self.take()?;
        if scale > MAX_SCALE {
            return Err(VariantError::Scale(scale));
        }
        Ok(usize::from(scale))
    }
}
