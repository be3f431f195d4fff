//! As much of Thrift's binary protocol as questions to a Hive metastore need.
//!
//! A message is a name, a number and a struct; a struct is fields with a type and an id, until a stop. What is written here is
//! built in memory. What is read comes from another machine: each message has a budget of bytes, lengths are checked
//! against it before anything is taken, and values may be nested only so deep.

use std::io::{self, Read};

/// Types of values, as the protocol numbers them.
const STOP: u8 = 0;
const BOOL: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 4;
const I16: u8 = 6;
const I32: u8 = 8;
const I64: u8 = 10;
pub(super) const STRING: u8 = 11;
pub(super) const STRUCT: u8 = 12;
pub(super) const MAP: u8 = 13;
const SET: u8 = 14;
pub(super) const LIST: u8 = 15;

/// The version, in the upper half of a message's first number.
const VERSION: u32 = 0x8001_0000;

/// Kinds of messages.
const CALL: u32 = 1;
const REPLY: u32 = 2;
const EXCEPTION: u32 = 3;

/// Structs in structs: a table has five.
const MAX_DEPTH: u32 = 32;

/// A question being written.
#[derive(Debug)]
pub(super) struct Request(Vec<u8>);

impl Request {
    /// A call of a method; its arguments follow.
    pub(super) fn call(method: &str, sequence: i32) -> Self {
        let mut request = Self(Vec::with_capacity(256));
        request.0.extend((VERSION | CALL).to_be_bytes());
        request.text(method);
        request.0.extend(sequence.to_be_bytes());
        request
    }

    /// A field that holds a text.
    pub(super) fn string(mut self, id: i16, text: &str) -> Self {
        self.field(STRING, id);
        self.text(text);
        self
    }

    /// A field that holds a list of texts.
    pub(super) fn strings(mut self, id: i16, texts: &[&str]) -> Self {
        self.field(LIST, id);
        self.0.push(STRING);
        self.len(texts.len());
        for text in texts {
            self.text(text);
        }
        self
    }

    /// A field that holds a small number.
    pub(super) fn small(mut self, id: i16, number: i16) -> Self {
        self.field(I16, id);
        self.0.extend(number.to_be_bytes());
        self
    }

    /// A field that holds a struct of texts.
    pub(super) fn texts(mut self, id: i16, fields: &[(i16, &str)]) -> Self {
        self.field(STRUCT, id);
        for (id, text) in fields {
            self = self.string(*id, text);
        }
        self.0.push(STOP);
        self
    }

    /// The whole message, with the length before it where the transport is framed.
    pub(super) fn bytes(mut self, framed: bool) -> Vec<u8> {
        self.0.push(STOP);
        if !framed {
            return self.0;
        }
        let mut framed = Self(Vec::with_capacity(self.0.len() + 4));
        framed.len(self.0.len());
        framed.0.extend(self.0);
        framed.0
    }

    fn field(&mut self, kind: u8, id: i16) {
        self.0.push(kind);
        self.0.extend(id.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.len(text.len());
        self.0.extend(text.as_bytes());
    }

    fn len(&mut self, len: usize) {
        // What we write is names of databases and tables.
        self.0
            .extend(i32::try_from(len).unwrap_or(i32::MAX).to_be_bytes());
    }
}

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ThriftError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not Thrift's binary protocol, or not what was asked for.
    #[error("an answer that makes no sense: {0}")]
    Broken(&'static str),
    /// The answer of a server that wants to negotiate a login.
    #[error("the server asks for SASL (Kerberos or LDAP)")]
    Sasl,
    /// The server's word that it does not do what was asked.
    #[error("{0}")]
    Exception(String),
}

/// A message being read.
#[derive(Debug)]
pub(super) struct Reply<R> {
    input: R,
    /// Bytes that may still be read.
    budget: usize,
    /// Bytes left in the frame; `None` where the transport has no frames.
    frame: Option<usize>,
}

impl<R: Read> Reply<R> {
    /// Reads the head of a reply to a call of `method`. What follows is the struct of the result.
    pub(super) fn begin(
        input: R,
        framed: bool,
        budget: usize,
        method: &str,
        sequence: i32,
    ) -> Result<Self, ThriftError> {
        let mut reply = Self {
            input,
            budget,
            frame: framed.then_some(0),
        };
        let head = reply.unsigned()?;
        if head & 0xffff_0000 != VERSION {
            // The first byte of a negotiation is its status, 1 to 5.
            return Err(match head >> 24 {
                1..=5 => ThriftError::Sasl,
                _ => ThriftError::Broken("no message of the binary protocol"),
            });
        }
        let name = reply.string()?;
        let number = reply.number()?;
        match head & 0xff {
            REPLY if name == method && number == sequence => Ok(reply),
            REPLY => Err(ThriftError::Broken("an answer to another question")),
            EXCEPTION => {
                let mut message = None;
                while let Some((kind, id)) = reply.next_field()? {
                    if (kind, id) == (STRING, 1) {
                        message = Some(reply.string()?);
                    } else {
                        reply.skip(kind, MAX_DEPTH)?;
                    }
                }
                let message = message.unwrap_or_else(|| "an exception without a word".to_owned());
                Err(ThriftError::Exception(message))
            }
            _ => Err(ThriftError::Broken("neither reply nor exception")),
        }
    }

    /// The type and id of the next field of a struct; `None` at its end.
    pub(super) fn next_field(&mut self) -> Result<Option<(u8, i16)>, ThriftError> {
        let kind = self.byte()?;
        if kind == STOP {
            return Ok(None);
        }
        let id = i16::from_be_bytes(self.array()?);
        Ok(Some((kind, id)))
    }

    /// A text.
    pub(super) fn string(&mut self) -> Result<String, ThriftError> {
        let len = self.length()?;
        let mut bytes = vec![0; len];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| ThriftError::Broken("a text that is no UTF-8"))
    }

    /// A list of texts.
    pub(super) fn strings(&mut self) -> Result<Vec<String>, ThriftError> {
        let count = self.list(STRING)?;
        let mut texts = Vec::new();
        for _ in 0..count {
            texts.push(self.string()?);
        }
        Ok(texts)
    }

    /// The head of a list of values of one type: how many follow.
    pub(super) fn list(&mut self, wanted: u8) -> Result<usize, ThriftError> {
        let kind = self.byte()?;
        let count = self.length()?;
        if kind != wanted && count > 0 {
            return Err(ThriftError::Broken("a list of another type"));
        }
        Ok(count)
    }

    /// The head of a map from texts to texts: how many pairs follow.
    pub(super) fn text_map(&mut self) -> Result<usize, ThriftError> {
        let kinds = [self.byte()?, self.byte()?];
        let count = self.length()?;
        if kinds != [STRING, STRING] && count > 0 {
            return Err(ThriftError::Broken("a map of another type"));
        }
        Ok(count)
    }

    /// Passes over a value.
    pub(super) fn pass_over(&mut self, kind: u8) -> Result<(), ThriftError> {
        self.skip(kind, MAX_DEPTH)
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), ThriftError> {
        let deeper = depth
            .checked_sub(1)
            .ok_or(ThriftError::Broken("values nested too deep"))?;
        match kind {
            BOOL | BYTE => self.drop(1),
            I16 => self.drop(2),
            I32 => self.drop(4),
            I64 | DOUBLE => self.drop(8),
            STRING => {
                let len = self.length()?;
                self.drop(len)
            }
            STRUCT => {
                while let Some((kind, _)) = self.next_field()? {
                    self.skip(kind, deeper)?;
                }
                Ok(())
            }
            MAP => {
                let (key, value) = (self.byte()?, self.byte()?);
                for _ in 0..self.length()? {
                    self.skip(key, deeper)?;
                    self.skip(value, deeper)?;
                }
                Ok(())
            }
            LIST | SET => {
                let kind = self.byte()?;
                for _ in 0..self.length()? {
                    self.skip(kind, deeper)?;
                }
                Ok(())
            }
            _ => Err(ThriftError::Broken("a value of no known type")),
        }
    }

    /// A length, or a number of values: each of them takes a byte at least.
    fn length(&mut self) -> Result<usize, ThriftError> {
        usize::try_from(self.number()?)
            .ok()
            .filter(|len| *len <= self.budget)
            .ok_or(ThriftError::Broken("a length that is too large"))
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn number(&mut self) -> Result<i32, ThriftError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn unsigned(&mut self) -> Result<u32, ThriftError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ThriftError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn drop(&mut self, mut len: usize) -> Result<(), ThriftError> {
        let mut scratch = [0; 4096];
        while len > 0 {
            let piece = len.min(scratch.len());
            self.fill(scratch.get_mut(..piece).unwrap_or_default())?;
            len -= piece;
        }
        Ok(())
    }

    fn fill(&mut self, mut into: &mut [u8]) -> Result<(), ThriftError> {
        self.budget = self
            .budget
            .checked_sub(into.len())
            .ok_or(ThriftError::Broken("an answer that does not end"))?;
        while !into.is_empty() {
            let piece = match self.frame {
                None => into.len(),
                Some(0) => {
                    let mut head = [0; 4];
                    self.input.read_exact(&mut head)?;
                    let len = usize::try_from(i32::from_be_bytes(head)).unwrap_or(0);
                    // What is left to read is in it, and no more than the budget allows.
                    if len == 0 || len > self.budget + into.len() {
                        return Err(ThriftError::Broken("a frame of an impossible length"));
                    }
                    self.frame = Some(len);
                    continue;
                }
                Some(left) => left.min(into.len()),
            };
            let (now, later) = into.split_at_mut(piece);
            self.input.read_exact(now)?;
            self.frame = self.frame.map(|left| left - piece);
            into = later;
        }
        Ok(())
    }
}
