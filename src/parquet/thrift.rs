//! Thrift's compact protocol, as far as Parquet uses it: structs read field by field, and written.
//!
//! The reader walks a byte slice and owns nothing. It trusts no length: a container's size is checked against the
//! bytes that are left (each element takes at least one), variable-length integers against their type, and skipping
//! an unknown field goes at most [`MAX_SKIP_DEPTH`] levels deep. Bytes after the outermost struct are left alone, since
//! a page header is followed by its page.
//!
//! ```text
//! struct  = field* 0x00
//! field   = id delta (4 bits) | kind (4 bits), or 0 | kind and the id as a zigzag varint;  then the value
//! list    = size (4 bits) | kind (4 bits), or 15 | kind and the size as a varint;          then the elements
//! binary  = length as a varint, then the bytes
//! integer = zigzag varint
//! bool    = in a struct it is the field's kind; in a list one byte
//! ```

use super::DecodeError;
use crate::packed::varint;

/// How many structs and containers may lie inside one another in a field that is skipped. Parquet's own structures
/// go about eight deep.
pub const MAX_SKIP_DEPTH: u32 = 64;

const WHAT: &str = "Thrift structure";

/// The wire type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A boolean that is true; as an element kind, any boolean.
    True,
    /// A boolean that is false; as an element kind, any boolean.
    False,
    /// One byte.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// 64 bits, IEEE 754.
    Double,
    /// Bytes or text.
    Binary,
    /// Elements of one kind.
    List,
    /// As a list.
    Set,
    /// Keys and values.
    Map,
    /// Fields.
    Struct,
    /// 16 bytes.
    Uuid,
}

impl Kind {
    const BY_NUMBER: [Kind; 13] = [
        Kind::True,
        Kind::False,
        Kind::I8,
        Kind::I16,
        Kind::I32,
        Kind::I64,
        Kind::Double,
        Kind::Binary,
        Kind::List,
        Kind::Set,
        Kind::Map,
        Kind::Struct,
        Kind::Uuid,
    ];

    fn of(number: u8) -> Result<Kind, DecodeError> {
        usize::from(number)
            .checked_sub(1)
            .and_then(|at| Kind::BY_NUMBER.get(at))
            .copied()
            .ok_or_else(|| DecodeError::corrupt(WHAT, format!("wire type {number} does not exist")))
    }

    fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// A value that comes next: a struct's field, or an element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's number; 0 for an element.
    pub id: i16,
    /// What is written there.
    pub kind: Kind,
    element: bool,
}

/// Reads compact-protocol values from the front of a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            bytes,
            len: bytes.len(),
        }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.len - self.bytes.len()
    }

    /// Reads a struct whose first field comes next: `each` takes every field's value (or skips it).
    pub fn fields(
        &mut self,
        mut each: impl FnMut(&mut Reader<'a>, Field) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut last_id = 0;
        while let Some(field) = self.field(last_id)? {
            last_id = field.id;
            each(self, field)?;
        }
        Ok(())
    }

    /// As [`Reader::fields`], for a value that must be a struct.
    pub fn structure(
        &mut self,
        field: Field,
        each: impl FnMut(&mut Reader<'a>, Field) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.check(field, Kind::Struct)?;
        self.fields(each)
    }

    /// A boolean.
    pub fn bool(&mut self, field: Field) -> Result<bool, DecodeError> {
        match field.kind {
            Kind::True | Kind::False if field.element => Ok(self.byte()? == 1),
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => Err(self.wrong_kind(field)),
        }
    }

    /// A one-byte integer.
    pub fn i8(&mut self, field: Field) -> Result<i8, DecodeError> {
        self.check(field, Kind::I8)?;
        Ok(i8::from_le_bytes([self.byte()?]))
    }

    /// A 16-bit integer.
    pub fn i16(&mut self, field: Field) -> Result<i16, DecodeError> {
        self.check(field, Kind::I16)?;
        self.narrow()
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, field: Field) -> Result<i32, DecodeError> {
        self.check(field, Kind::I32)?;
        self.narrow()
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, field: Field) -> Result<i64, DecodeError> {
        self.check(field, Kind::I64)?;
        self.zigzag()
    }

    /// Bytes, borrowed.
    pub fn binary(&mut self, field: Field) -> Result<&'a [u8], DecodeError> {
        self.check(field, Kind::Binary)?;
        let len = self.size()?;
        self.take(len)
    }

    /// Text.
    pub fn string(&mut self, field: Field) -> Result<&'a str, DecodeError> {
        let bytes = self.binary(field)?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::corrupt(WHAT, "text is not UTF-8"))
    }

    /// A list; `each` reads one element. Gives the number of elements first, which never exceeds the bytes left.
    pub fn list<T>(
        &mut self,
        field: Field,
        mut each: impl FnMut(&mut Reader<'a>, Field) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        self.check(field, Kind::List)?;
        let (count, element) = self.list_header()?;
        // The size is no more than a claim: an element in memory is far larger than the byte it is known to take.
        let mut items = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            items.push(each(self, element)?);
        }
        items.shrink_to_fit();
        Ok(items)
    }

    /// Passes over a value of any kind.
    pub fn skip(&mut self, field: Field) -> Result<(), DecodeError> {
        self.skip_nested(field, MAX_SKIP_DEPTH)
    }

    fn skip_nested(&mut self, field: Field, depth: u32) -> Result<(), DecodeError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(DecodeError::corrupt(
                WHAT,
                format!("nested more than {MAX_SKIP_DEPTH} deep"),
            ));
        };
        match field.kind {
            Kind::True | Kind::False if field.element => self.byte().map(drop),
            Kind::True | Kind::False => Ok(()),
            Kind::I8 => self.byte().map(drop),
            Kind::I16 | Kind::I32 | Kind::I64 => self.varint().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Uuid => self.take(16).map(drop),
            Kind::Binary => {
                let len = self.size()?;
                self.take(len).map(drop)
            }
            Kind::List | Kind::Set => {
                let (count, element) = self.list_header()?;
                for _ in 0..count {
                    self.skip_nested(element, depth)?;
                }
                Ok(())
            }
            Kind::Map => {
                let count = self.size()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let key = Field {
                    id: 0,
                    kind: Kind::of(kinds >> 4)?,
                    element: true,
                };
                let value = Field {
                    id: 0,
                    kind: Kind::of(kinds & 0x0f)?,
                    element: true,
                };
                for _ in 0..count {
                    self.skip_nested(key, depth)?;
                    self.skip_nested(value, depth)?;
                }
                Ok(())
            }
            Kind::Struct => self.fields(|reader, inner| reader.skip_nested(inner, depth)),
        }
    }

    /// The header of a struct's next field; `None` at the struct's end.
    fn field(&mut self, last_id: i16) -> Result<Option<Field>, DecodeError> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        let kind = Kind::of(header & 0x0f)?;
        let id = match header >> 4 {
            0 => self.narrow()?,
            delta => last_id
                .checked_add(i16::from(delta))
                .ok_or_else(|| DecodeError::corrupt(WHAT, "field number overflows"))?,
        };
        Ok(Some(Field {
            id,
            kind,
            element: false,
        }))
    }

    fn list_header(&mut self) -> Result<(usize, Field), DecodeError> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.size()?,
            short => usize::from(short),
        };
        if count > self.bytes.len() {
            return Err(DecodeError::corrupt(
                WHAT,
                format!(
                    "a list of {count} elements with {} bytes left",
                    self.bytes.len()
                ),
            ));
        }
        // Some writers give an empty list no element type.
        let kind = if count == 0 {
            Kind::I8
        } else {
            Kind::of(header & 0x0f)?
        };
        Ok((
            count,
            Field {
                id: 0,
                kind,
                element: true,
            },
        ))
    }

    /// A length or count, never more than the bytes left.
    fn size(&mut self) -> Result<usize, DecodeError> {
        let size = self.varint()?;
        match usize::try_from(size) {
            Ok(size) if size <= self.bytes.len() => Ok(size),
            _ => Err(DecodeError::corrupt(
                WHAT,
                format!("length {size} with {} bytes left", self.bytes.len()),
            )),
        }
    }

    fn check(&self, field: Field, kind: Kind) -> Result<(), DecodeError> {
        if field.kind == kind {
            Ok(())
        } else {
            Err(self.wrong_kind(field))
        }
    }

    fn wrong_kind(&self, field: Field) -> DecodeError {
        DecodeError::corrupt(
            WHAT,
            format!(
                "field {} has the wrong wire type ({:?}), at byte {}",
                field.id,
                field.kind,
                self.position()
            ),
        )
    }

    fn narrow<T: TryFrom<i64>>(&mut self) -> Result<T, DecodeError> {
        let value = self.zigzag()?;
        T::try_from(value).map_err(|_| {
            DecodeError::corrupt(WHAT, format!("integer {value} is too large for its type"))
        })
    }

    fn zigzag(&mut self) -> Result<i64, DecodeError> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let (value, len) =
            varint(self.bytes).ok_or_else(|| DecodeError::corrupt(WHAT, "bad varint"))?;
        self.take(len)?;
        Ok(value)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self
            .bytes
            .split_first()
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        self.bytes = rest;
        Ok(*first)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(len)
            .ok_or_else(|| DecodeError::truncated(WHAT))?;
        self.bytes = rest;
        Ok(taken)
    }
}

/// Appends an unsigned LEB128 number.
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`write_varint`] takes for `value`: 1 to 10.
pub fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// The zigzag form of `value`: small for values near zero.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Appends a struct, whose fields `fill` writes.
pub fn write_struct(out: &mut Vec<u8>, fill: impl FnOnce(&mut StructWriter<'_>)) {
    let mut writer = StructWriter { out, last_id: 0 };
    fill(&mut writer);
    writer.out.push(0);
}

/// Writes the fields of one struct, in ascending order of their ids.
#[derive(Debug)]
pub struct StructWriter<'a> {
    out: &'a mut Vec<u8>,
    last_id: i16,
}

impl StructWriter<'_> {
    /// A boolean field.
    pub fn bool(&mut self, id: i16, value: bool) {
        self.header(id, if value { Kind::True } else { Kind::False });
    }

    /// A one-byte integer field.
    pub fn i8(&mut self, id: i16, value: i8) {
        self.header(id, Kind::I8);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// A 16-bit integer field.
    pub fn i16(&mut self, id: i16, value: i16) {
        self.header(id, Kind::I16);
        write_varint(self.out, zigzag(value.into()));
    }

    /// A 32-bit integer field.
    pub fn i32(&mut self, id: i16, value: i32) {
        self.header(id, Kind::I32);
        write_varint(self.out, zigzag(value.into()));
    }

    /// A 64-bit integer field.
    pub fn i64(&mut self, id: i16, value: i64) {
        self.header(id, Kind::I64);
        write_varint(self.out, zigzag(value));
    }

    /// A bytes or text field.
    pub fn binary(&mut self, id: i16, value: &[u8]) {
        self.header(id, Kind::Binary);
        write_varint(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// A struct field.
    pub fn structure(&mut self, id: i16, fill: impl FnOnce(&mut StructWriter<'_>)) {
        self.header(id, Kind::Struct);
        write_struct(self.out, fill);
    }

    /// A field that is a list of structs.
    pub fn structures<T>(
        &mut self,
        id: i16,
        items: &[T],
        mut fill: impl FnMut(&mut StructWriter<'_>, &T),
    ) {
        self.list_header(id, Kind::Struct, items.len());
        for item in items {
            write_struct(self.out, |writer| fill(writer, item));
        }
    }

    /// A field that is a list of 32-bit integers.
    pub fn integers(&mut self, id: i16, items: impl ExactSizeIterator<Item = i32>) {
        self.list_header(id, Kind::I32, items.len());
        for item in items {
            write_varint(self.out, zigzag(item.into()));
        }
    }

    /// A field that is a list of texts.
    pub fn strings(&mut self, id: i16, items: &[&str]) {
        self.list_header(id, Kind::Binary, items.len());
        for item in items {
            write_varint(self.out, item.len() as u64);
            self.out.extend_from_slice(item.as_bytes());
        }
    }

    fn header(&mut self, id: i16, kind: Kind) {
        match u8::try_from(i32::from(id) - i32::from(self.last_id)) {
            Ok(delta @ 1..=15) => self.out.push(delta << 4 | kind.number()),
            _ => {
                self.out.push(kind.number());
                write_varint(self.out, zigzag(id.into()));
            }
        }
        self.last_id = id;
    }

    fn list_header(&mut self, id: i16, kind: Kind, len: usize) {
        self.header(id, Kind::List);
        match u8::try_from(len) {
            Ok(short @ 0..=14) => self.out.push(short << 4 | kind.number()),
            _ => {
                self.out.push(0xf0 | kind.number());
                write_varint(self.out, len as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests;
