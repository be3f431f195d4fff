//! The metadata of an ORC file: postscript, footer, stripe footers (ORC specification v1, "File Tail"; `orc_proto.proto`).
//!
//! They are Protocol Buffers messages. What is read of them is taken field by field; unknown fields are passed over, as
//! the format asks.

use crate::as_parquet::Failure;

/// Stripes, types, streams and encodings, at most. Iceberg's schemas end far below.
const MAX_ITEMS: usize = 1 << 20;

/// A value on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a fixed width, which no field that is read has.
    Fixed,
}

impl<'a> Wire<'a> {
    fn number(self) -> Result<u64, Failure> {
        match self {
            Wire::Number(number) => Ok(number),
            Wire::Bytes(_) | Wire::Fixed => Err(malformed()),
        }
    }

    fn small(self) -> Result<u32, Failure> {
        u32::try_from(self.number()?).map_err(|_| malformed())
    }

    fn bytes(self) -> Result<&'a [u8], Failure> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            Wire::Number(_) | Wire::Fixed => Err(malformed()),
        }
    }

    fn text(self) -> Result<String, Failure> {
        let text = std::str::from_utf8(self.bytes()?);
        Ok(text.map_err(|_| malformed())?.to_owned())
    }

    /// One number of a repeated field, or several packed.
    fn push_numbers(self, out: &mut Vec<u32>) -> Result<(), Failure> {
        let Wire::Bytes(mut packed) = self else {
            out.push(self.small()?);
            return Ok(());
        };
        while !packed.is_empty() {
            out.push(u32::try_from(varint(&mut packed)?).map_err(|_| malformed())?);
        }
        Ok(())
    }
}

fn malformed() -> Failure {
    Failure::Corrupt("its metadata is malformed".to_owned())
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Failure> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or_else(malformed)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(malformed())
}

fn split<'a>(bytes: &mut &'a [u8], len: u64) -> Result<&'a [u8], Failure> {
    let len = usize::try_from(len).map_err(|_| malformed())?;
    let (taken, rest) = bytes.split_at_checked(len).ok_or_else(malformed)?;
    *bytes = rest;
    Ok(taken)
}

/// Gives each field of a message with its number.
fn fields<'a>(
    mut message: &'a [u8],
    mut each: impl FnMut(u64, Wire<'a>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let value = match key & 7 {
            0 => Wire::Number(varint(&mut message)?),
            1 => {
                split(&mut message, 8)?;
                Wire::Fixed
            }
            2 => {
                let len = varint(&mut message)?;
                Wire::Bytes(split(&mut message, len)?)
            }
            5 => {
                split(&mut message, 4)?;
                Wire::Fixed
            }
            _ => return Err(malformed()),
        };
        each(key >> 3, value)?;
    }
    Ok(())
}

/// Adds to what is much larger in memory than on the wire.
fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), Failure> {
    if list.len() >= MAX_ITEMS {
        let reason = format!("its metadata lists more than {MAX_ITEMS} things of a kind");
        return Err(Failure::Corrupt(reason));
    }
    list.push(item);
    Ok(())
}

/// `PostScript`.
#[derive(Debug, Default)]
pub struct PostScript {
    pub footer_len: u64,
    pub compression: u64,
    /// Of the format, such as 0 and 12. Empty in the oldest files.
    pub version: Vec<u32>,
    /// Bytes of a decompressed chunk, at most.
    pub block_size: u64,
}

impl PostScript {
    pub fn parse(message: &[u8]) -> Result<PostScript, Failure> {
        let mut postscript = PostScript {
            block_size: 256 << 10,
            ..PostScript::default()
        };
        let mut magic = false;
        fields(message, |field, value| {
            match field {
                1 => postscript.footer_len = value.number()?,
                2 => postscript.compression = value.number()?,
                3 => postscript.block_size = value.number()?,
                4 => value.push_numbers(&mut postscript.version)?,
                8000 => magic = value.bytes()? == b"ORC",
                _ => {}
            }
            Ok(())
        })?;
        if magic {
            Ok(postscript)
        } else {
            Err(Failure::Corrupt("is no ORC file".to_owned()))
        }
    }
}

/// `Footer`.
#[derive(Debug, Default)]
pub struct Footer {
    pub stripes: Vec<Stripe>,
    pub types: Vec<OrcType>,
    pub rows: u64,
    pub encrypted: bool,
}

impl Footer {
    pub fn parse(message: &[u8]) -> Result<Footer, Failure> {
        let mut footer = Footer::default();
        fields(message, |field, value| {
            match field {
                3 => push(&mut footer.stripes, Stripe::parse(value.bytes()?)?)?,
                4 => push(&mut footer.types, OrcType::parse(value.bytes()?)?)?,
                6 => footer.rows = value.number()?,
                10 => footer.encrypted = true,
                _ => {}
            }
            Ok(())
        })?;
        Ok(footer)
    }
}

/// `StripeInformation`. All but the rows in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stripe {
    pub offset: u64,
    pub index_len: u64,
    pub data_len: u64,
    pub footer_len: u64,
    pub rows: u64,
}

impl Stripe {
    fn parse(message: &[u8]) -> Result<Stripe, Failure> {
        let mut stripe = Stripe::default();
        fields(message, |field, value| {
            match field {
                1 => stripe.offset = value.number()?,
                2 => stripe.index_len = value.number()?,
                3 => stripe.data_len = value.number()?,
                4 => stripe.footer_len = value.number()?,
                5 => stripe.rows = value.number()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(stripe)
    }
}

/// `Type`.
#[derive(Clone, Debug, Default)]
pub struct OrcType {
    pub kind: u64,
    pub children: Vec<u32>,
    pub names: Vec<String>,
    pub precision: u32,
    pub scale: u32,
    attributes: Vec<(String, String)>,
}

impl OrcType {
    fn parse(message: &[u8]) -> Result<OrcType, Failure> {
        let mut ty = OrcType::default();
        fields(message, |field, value| {
            match field {
                1 => ty.kind = value.number()?,
                2 => value.push_numbers(&mut ty.children)?,
                3 => ty.names.push(value.text()?),
                5 => ty.precision = value.small()?,
                6 => ty.scale = value.small()?,
                7 => {
                    let mut pair = (String::new(), String::new());
                    fields(value.bytes()?, |field, value| {
                        match field {
                            1 => pair.0 = value.text()?,
                            2 => pair.1 = value.text()?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    ty.attributes.push(pair);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(ty)
    }

    /// The columns and names of a struct's fields.
    pub fn fields(&self) -> Result<impl Iterator<Item = (u32, &str)>, Failure> {
        if self.children.len() != self.names.len() {
            let reason = "a struct with more fields than names, or less";
            return Err(Failure::Corrupt(reason.to_owned()));
        }
        let names = self.names.iter().map(String::as_str);
        Ok(self.children.iter().copied().zip(names))
    }

    /// An attribute, of those that Iceberg writes.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let pair = self.attributes.iter().find(|(k, _)| k == key);
        pair.map(|(_, value)| value.as_str())
    }
}

/// `StripeFooter`.
#[derive(Debug, Default)]
pub struct StripeFooter {
    pub streams: Vec<StreamInfo>,
    pub encodings: Vec<Encoding>,
    pub timezone: String,
}

/// `Stream`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamInfo {
    pub kind: u64,
    pub column: u32,
    /// Bytes.
    pub len: u64,
}

/// `ColumnEncoding`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoding {
    pub kind: u64,
    pub dictionary_size: u32,
}

impl StripeFooter {
    pub fn parse(message: &[u8]) -> Result<StripeFooter, Failure> {
        let mut footer = StripeFooter::default();
        fields(message, |field, value| {
            match field {
                1 => {
                    let mut stream = StreamInfo::default();
                    fields(value.bytes()?, |field, value| {
                        match field {
                            1 => stream.kind = value.number()?,
                            2 => stream.column = value.small()?,
                            3 => stream.len = value.number()?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    push(&mut footer.streams, stream)?;
                }
                2 => {
                    let mut encoding = Encoding::default();
                    fields(value.bytes()?, |field, value| {
                        match field {
                            1 => encoding.kind = value.number()?,
                            2 => encoding.dictionary_size = value.small()?,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    push(&mut footer.encodings, encoding)?;
                }
                3 => footer.timezone = value.text()?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(footer)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn metadata_of_very_many_empty_things_is_refused() {
        // Stripes of no bytes.
        let stripes = |count| Footer::parse(&[0x1A, 0].repeat(count));
        assert_eq!(stripes(MAX_ITEMS).unwrap().stripes.len(), MAX_ITEMS);
        let failure = stripes(MAX_ITEMS + 1).unwrap_err();
        assert!(matches!(failure, Failure::Corrupt(_)), "{failure:?}");
    }
}
