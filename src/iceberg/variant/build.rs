//! Writes variants: values in the shortest form that their type has, and metadata with names added to it.

use std::collections::HashMap;

use super::{Names, VariantError};

/// What numbers (of names, offsets, counts) can be, at most: they take 4 bytes.
const MAX_NUMBER: usize = u32::MAX as usize;

/// The longest string whose length stands in its header, in bytes.
const MAX_SHORT: usize = 63;

/// The primitive types that are written, by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    Null = 0,
    True = 1,
    False = 2,
    Int8 = 3,
    Int16 = 4,
    Int32 = 5,
    Int64 = 6,
    Double = 7,
    /// A byte for the scale, then 4 bytes.
    Decimal4 = 8,
    Decimal8 = 9,
    Decimal16 = 10,
    Date = 11,
    /// Of UTC.
    Timestamptz = 12,
    Timestamp = 13,
    Float = 14,
    /// 4 bytes for the length first; so are strings.
    Binary = 15,
    String = 16,
    Time = 17,
    TimestamptzNanos = 18,
    TimestampNanos = 19,
    Uuid = 20,
}

/// A primitive value of these bytes, little endian (a UUID's are not).
pub fn primitive(ty: Primitive, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + bytes.len());
    out.push((ty as u8) << 2);
    out.extend_from_slice(bytes);
    out
}

/// A decimal of one of the three types.
pub fn decimal(ty: Primitive, scale: u8, unscaled: &[u8]) -> Vec<u8> {
    let mut out = primitive(ty, &[scale]);
    out.extend_from_slice(unscaled);
    out
}

/// A string.
pub fn string(text: &str) -> Result<Vec<u8>, VariantError> {
    match u8::try_from(text.len()) {
        Ok(len) if text.len() <= MAX_SHORT => {
            let mut out = Vec::with_capacity(1 + text.len());
            out.push(len << 2 | 1);
            out.extend_from_slice(text.as_bytes());
            Ok(out)
        }
        _ => sized(Primitive::String, text.as_bytes()),
    }
}

/// Bytes.
pub fn binary(bytes: &[u8]) -> Result<Vec<u8>, VariantError> {
    sized(Primitive::Binary, bytes)
}

fn sized(ty: Primitive, bytes: &[u8]) -> Result<Vec<u8>, VariantError> {
    let len = u32::try_from(bytes.len()).map_err(|_| VariantError::Large)?;
    let mut out = primitive(ty, &len.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(out)
}

/// An array of these values.
pub fn array(values: &[Vec<u8>]) -> Result<Vec<u8>, VariantError> {
    let total = total(values.iter().map(Vec::len))?;
    let large = values.len() > 255;
    let offset_size = size_of_number(total);
    let mut out = vec![(u8::from(large) << 2 | (offset_size - 1)) << 2 | 3];
    push_number(&mut out, values.len(), if large { 4 } else { 1 });
    push_offsets(&mut out, values.iter().map(Vec::len), offset_size);
    values.iter().for_each(|value| out.extend_from_slice(value));
    Ok(out)
}

/// An object of fields with these names' numbers and these values, which stand in the order of their names.
pub fn object(fields: &[(usize, Vec<u8>)]) -> Result<Vec<u8>, VariantError> {
    let lengths = || fields.iter().map(|(_, value)| value.len());
    let total = total(lengths())?;
    let large = fields.len() > 255;
    let offset_size = size_of_number(total);
    let last = fields.iter().map(|(id, _)| *id).max().unwrap_or(0);
    if last > MAX_NUMBER {
        return Err(VariantError::Large);
    }
    let id_size = size_of_number(last);
    let header = u8::from(large) << 4 | (id_size - 1) << 2 | (offset_size - 1);
    let mut out = vec![header << 2 | 2];
    push_number(&mut out, fields.len(), if large { 4 } else { 1 });
    fields
        .iter()
        .for_each(|(id, _)| push_number(&mut out, *id, id_size));
    push_offsets(&mut out, lengths(), offset_size);
    fields
        .iter()
        .for_each(|(_, value)| out.extend_from_slice(value));
    Ok(out)
}

fn total(lengths: impl Iterator<Item = usize>) -> Result<usize, VariantError> {
    let total: usize = lengths.sum();
    (total <= MAX_NUMBER)
        .then_some(total)
        .ok_or(VariantError::Large)
}

/// The fewest bytes that hold a number; 1 to 4.
fn size_of_number(number: usize) -> u8 {
    match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

fn push_number(out: &mut Vec<u8>, number: usize, size: u8) {
    out.extend(number.to_le_bytes().iter().take(usize::from(size)));
}

/// Where each value starts, and where the last one ends.
fn push_offsets(out: &mut Vec<u8>, lengths: impl Iterator<Item = usize>, size: u8) {
    let mut end = 0;
    push_number(out, end, size);
    for len in lengths {
        end += len;
        push_number(out, end, size);
    }
}

/// A variant's names with their numbers, and those that were added. The numbers of the names that were there stay, so
/// values that use them stay right.
pub struct Dictionary<'a> {
    metadata: &'a [u8],
    names: Names<'a>,
    /// Made when a number is first asked for.
    numbers: Option<HashMap<&'a str, usize>>,
    added: Vec<&'a str>,
}

impl<'a> Dictionary<'a> {
    /// The names in a variant's metadata.
    pub fn parse(metadata: &'a [u8]) -> Result<Dictionary<'a>, VariantError> {
        Ok(Dictionary {
            metadata,
            names: Names::parse(metadata)?,
            numbers: None,
            added: Vec::new(),
        })
    }

    /// The names that the metadata has.
    pub fn names(&self) -> &Names<'a> {
        &self.names
    }

    /// The number of a name, which is added where the metadata lacks it.
    pub fn number(&mut self, name: &'a str) -> Result<usize, VariantError> {
        let numbers = match &mut self.numbers {
            Some(numbers) => numbers,
            None => {
                let mut numbers = HashMap::new();
                for id in 0..self.names.count() {
                    numbers.entry(self.names.get(id)?).or_insert(id);
                }
                self.numbers.insert(numbers)
            }
        };
        let next = self.names.count() + self.added.len();
        let number = *numbers.entry(name).or_insert(next);
        if number == next {
            self.added.push(name);
        }
        Ok(number)
    }

    /// The metadata, with the names that were added.
    pub fn metadata(&self) -> Result<Vec<u8>, VariantError> {
        if self.added.is_empty() {
            return Ok(self.metadata.to_vec());
        }
        let kept = (0..self.names.count()).map(|id| self.names.get(id));
        let names = kept
            .chain(self.added.iter().map(|name| Ok(*name)))
            .collect::<Result<Vec<_>, _>>()?;
        let lengths = || names.iter().map(|name| name.len());
        let total = total(lengths())?.max(names.len());
        if total > MAX_NUMBER {
            return Err(VariantError::Large);
        }
        let size = size_of_number(total);
        // Version 1; what was added makes no sorted dictionary.
        let mut out = vec![(size - 1) << 6 | 1];
        push_number(&mut out, names.len(), size);
        push_offsets(&mut out, lengths(), size);
        names
            .iter()
            .for_each(|name| out.extend_from_slice(name.as_bytes()));
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
