//! The binary encoding of a variant (parquet-format, `VariantEncoding.md`): read as far as its structure goes, and
//! written.
//!
//! ```text
//! metadata = header, count, offset[count + 1], names     header = version (4 bits), sorted, unused, offset bytes - 1
//! value    = header, …                                   header = basic type (2 bits), and what that needs (6 bits)
//!   0 primitive: its type, then its bytes                2 object: count, id[count],     offset[count + 1], values
//!   1 short string: its length, then its bytes           3 array:  count,                offset[count + 1], values
//! ```
//!
//! The arrow project's own crate (`parquet-variant`) checks a value by recursion that has no bound, and an overflow of
//! the stack ends the process; so this is read here. The values of an object may lie in any order but must not overlap:
//! else a few bytes could say a text of any length.

pub mod build;

/// Why bytes are no variant.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariantError {
    #[error("a variant that ends too early")]
    Short,
    #[error("a variant of version {0}, expected 1")]
    Version(u8),
    #[error("a variant of the unknown primitive type {0}")]
    Type(u8),
    #[error("a variant with a decimal of scale {0}, expected at most 38")]
    Scale(u8),
    #[error("a variant with text that is not UTF-8")]
    Utf8,
    #[error("a variant with a field of the name {0}, which its metadata lacks")]
    Name(usize),
    #[error("a variant with an offset that points outside of it")]
    Offset,
    #[error("a variant with fields that lie over each other")]
    Overlap,
    #[error("a variant with two fields {0:?} in one object")]
    Twice(String),
    #[error("a variant with objects and arrays nested deeper than {max}", max = MAX_DEPTH)]
    Deep,
    #[error("a variant whose text is longer than {max} bytes", max = MAX_TEXT)]
    Long,
    #[error("a variant of more than 4 GiB")]
    Large,
    #[error("a shredded variant with two values in one place")]
    Conflict,
}

/// Objects and arrays in each other, at most.
pub const MAX_DEPTH: usize = 200;

/// Bytes of a row's text, at most, as far as variants make it: every object of one may repeat the longest of its names.
pub const MAX_TEXT: usize = 256 << 20;

/// Digits that a decimal has at most.
const MAX_SCALE: u8 = 38;

/// The names of a variant's fields.
pub struct Names<'a> {
    count: usize,
    offsets: &'a [u8],
    offset_size: usize,
    bytes: &'a [u8],
}

impl<'a> Names<'a> {
    /// The names in a variant's metadata.
    pub fn parse(metadata: &'a [u8]) -> Result<Names<'a>, VariantError> {
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

    /// How many there are; each takes at least one byte of the metadata.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The name with this number.
    pub fn get(&self, id: usize) -> Result<&'a str, VariantError> {
        if id >= self.count {
            return Err(VariantError::Name(id));
        }
        let start = entry(self.offsets, id, self.offset_size)?;
        let end = entry(self.offsets, id + 1, self.offset_size)?;
        let name = self.bytes.get(start..end).ok_or(VariantError::Offset)?;
        std::str::from_utf8(name).map_err(|_| VariantError::Utf8)
    }
}

/// An object's fields.
pub struct Object<'a> {
    /// In the order of their names; each value's bytes begin here, and end before those of all values do.
    pub fields: Vec<(&'a str, &'a [u8])>,
    len: usize,
    /// Bytes of the values that have not been taken yet.
    left: usize,
}

impl<'a> Object<'a> {
    /// Whether a value is an object.
    pub fn is(value: &[u8]) -> bool {
        value.first().is_some_and(|header| header & 3 == 2)
    }

    /// The fields of a value that is an object.
    pub fn parse(names: &Names<'a>, bytes: &'a [u8]) -> Result<Object<'a>, VariantError> {
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

    /// Bytes of the whole object.
    pub fn size(&self) -> usize {
        self.len
    }

    /// Counts the bytes of a field's value. No two values lie over each other, so all together are no more than there
    /// are.
    pub fn take(&mut self, len: usize) -> Result<(), VariantError> {
        self.left = self.left.checked_sub(len).ok_or(VariantError::Overlap)?;
        Ok(())
    }
}

/// Bytes of the value that begins here, from its own header; what it holds is not looked at.
pub fn value_len(bytes: &[u8]) -> Result<usize, VariantError> {
    let mut input = Input(bytes);
    let [header] = input.take()?;
    let rest = header >> 2;
    match header & 3 {
        0 => {
            let fixed = match rest {
                0..=2 => 0,
                3 => 1,
                4 => 2,
                5 | 11 | 14 => 4,
                6 | 7 | 12 | 13 | 17..=19 => 8,
                8 => 5,
                9 => 9,
                10 => 17,
                20 => 16,
                15 | 16 => input.number(4)?,
                _ => return Err(VariantError::Type(rest)),
            };
            input.slice(fixed)?;
        }
        1 => {
            input.slice(usize::from(rest))?;
        }
        kind => {
            let (large, id_size) = match kind {
                2 => (rest & 16 != 0, Some(usize::from(rest >> 2 & 3) + 1)),
                _ => (rest & 4 != 0, None),
            };
            let offset_size = usize::from(rest & 3) + 1;
            let count = input.number(if large { 4 } else { 1 })?;
            if let Some(id_size) = id_size {
                input.table(Some(count), id_size)?;
            }
            let offsets = input.table(count.checked_add(1), offset_size)?;
            input.slice(entry(offsets, count, offset_size)?)?;
        }
    }
    Ok(bytes.len() - input.0.len())
}

/// An entry of a table of little-endian numbers of `size` bytes, at most 4.
pub fn entry(table: &[u8], index: usize, size: usize) -> Result<usize, VariantError> {
    let start = index.checked_mul(size).ok_or(VariantError::Short)?;
    let mut bytes = Input(table.get(start..).ok_or(VariantError::Short)?);
    bytes.number(size)
}

/// The bytes that are left.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], VariantError> {
        let (taken, left) = self.0.split_first_chunk().ok_or(VariantError::Short)?;
        self.0 = left;
        Ok(*taken)
    }

    /// The next `len` bytes.
    pub fn slice(&mut self, len: usize) -> Result<&'a [u8], VariantError> {
        let (taken, left) = self.0.split_at_checked(len).ok_or(VariantError::Short)?;
        self.0 = left;
        Ok(taken)
    }

    /// A number of at most 4 bytes.
    pub fn number(&mut self, size: usize) -> Result<usize, VariantError> {
        let bytes = self.slice(size)?;
        let number = bytes
            .iter()
            .rev()
            .fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
        usize::try_from(number).map_err(|_| VariantError::Short)
    }

    /// So many numbers.
    pub fn table(&mut self, count: Option<usize>, size: usize) -> Result<&'a [u8], VariantError> {
        let len = count.and_then(|count| count.checked_mul(size));
        self.slice(len.ok_or(VariantError::Short)?)
    }

    /// Bytes that say their number first.
    pub fn sized(&mut self) -> Result<&'a [u8], VariantError> {
        let len = self.number(4)?;
        self.slice(len)
    }

    /// A decimal's scale.
    pub fn scale(&mut self) -> Result<usize, VariantError> {
        let [scale] = self.take()?;
        if scale > MAX_SCALE {
            return Err(VariantError::Scale(scale));
        }
        Ok(usize::from(scale))
    }
}
