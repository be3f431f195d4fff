//! The columns of one stripe, read row by row (ORC specification v1, "Column Encodings").

use std::collections::HashMap;

use bytes::Bytes;

use super::proto::{Encoding, StripeFooter};
use super::rle::{BooleansReader, BytesReader, IntegersReader, Version};
use super::stream::{Compression, Stream};
use super::zone::Zone;
use super::{Kind, Node, Stored, corrupt};
use crate::as_parquet::Failure;
use crate::as_parquet::columns::{At, Cell, Columns, too_wide};

/// Bytes in memory of a stripe's dictionaries, at most.
const MAX_DICTIONARIES: usize = 1 << 30;

const PRESENT: u64 = 0;
const DATA: u64 = 1;
const LENGTH: u64 = 2;
const DICTIONARY_DATA: u64 = 3;
const SECONDARY: u64 = 5;

/// A stripe's streams, each to be taken once.
pub struct StripeStreams {
    /// By column and kind.
    streams: HashMap<(u32, u64), Bytes>,
    encodings: Vec<Encoding>,
    timezone: String,
    compression: Compression,
    /// Bytes that dictionaries may still take.
    dictionaries: usize,
}

impl StripeStreams {
    /// Cuts a stripe's body into its streams.
    pub fn new(
        footer: StripeFooter,
        mut body: Bytes,
        compression: Compression,
    ) -> Result<StripeStreams, Failure> {
        let mut streams = HashMap::new();
        for stream in &footer.streams {
            let len = usize::try_from(stream.len)
                .ok()
                .filter(|len| *len <= body.len());
            let len = len.ok_or_else(|| corrupt("a stream that passes the end of its stripe"))?;
            streams.insert((stream.column, stream.kind), body.split_to(len));
        }
        Ok(StripeStreams {
            streams,
            encodings: footer.encodings,
            timezone: footer.timezone,
            compression,
            dictionaries: MAX_DICTIONARIES,
        })
    }

    /// The writer's time zone.
    fn zone(&self) -> Result<Zone, Failure> {
        let name = &self.timezone;
        Zone::named(name).ok_or_else(|| {
            let reason = format!("a timestamp written in the unknown time zone {name:?}");
            Failure::Unsupported(reason)
        })
    }

    fn find(&mut self, column: u32, kind: u64) -> Option<Stream> {
        let stored = self.streams.remove(&(column, kind))?;
        Some(Stream::new(stored, self.compression))
    }

    /// A stream that may be left out where it would be empty.
    fn take(&mut self, column: u32, kind: u64) -> Stream {
        self.find(column, kind)
            .unwrap_or_else(|| Stream::new(Bytes::new(), self.compression))
    }

    /// The values of a column's dictionary one after the other, and where each ends.
    fn dictionary(
        &mut self,
        column: u32,
        lengths: IntegersReader,
        count: u32,
    ) -> Result<(Vec<u8>, Vec<usize>), Failure> {
        let too_large = || corrupt("dictionaries of an impossible size");
        let values = self.take(column, DICTIONARY_DATA).rest(self.dictionaries)?;
        let count = usize::try_from(count).map_err(|_| too_large())?;
        let taken = count.checked_mul(size_of::<usize>());
        let taken = taken.and_then(|ends| ends.checked_add(values.len()));
        self.dictionaries = taken
            .and_then(|taken| self.dictionaries.checked_sub(taken))
            .ok_or_else(too_large)?;
        let ends = ends(lengths, count, values.len())?;
        Ok((values, ends))
    }

    fn encoding(&self, column: u32) -> Result<(Encoding, Version), Failure> {
        let encoding = usize::try_from(column)
            .ok()
            .and_then(|i| self.encodings.get(i));
        let encoding = *encoding.ok_or_else(|| corrupt("a column without an encoding"))?;
        let version = match encoding.kind {
            0 | 1 => Version::V1,
            2 | 3 => Version::V2,
            other => return Err(Failure::Unsupported(format!("the ORC encoding {other}"))),
        };
        Ok((encoding, version))
    }
}

/// A column of a stripe.
pub struct Column<'n> {
    node: &'n Node,
    /// `None`: no value is null.
    present: Option<BooleansReader>,
    reader: Reader<'n>,
}

enum Reader<'n> {
    Struct(Vec<Column<'n>>),
    List(IntegersReader, Box<Column<'n>>),
    Map(IntegersReader, Box<Column<'n>>, Box<Column<'n>>),
    Boolean(BooleansReader),
    Byte(BytesReader),
    Integers(IntegersReader),
    /// Floats and doubles.
    Plain(Stream),
    /// Data, the length of each, and room for one.
    Direct(Stream, IntegersReader, Vec<u8>),
    /// Indices, the values one after the other, and where each ends.
    Dictionary(IntegersReader, Vec<u8>, Vec<usize>),
    /// Numbers, and the scale of each.
    Decimal(Stream, IntegersReader),
    /// Seconds, and nanoseconds.
    Timestamp(IntegersReader, IntegersReader, Zone),
}

/// Recursion goes down the schema, whose depth is bounded.
impl<'n> Column<'n> {
    /// Takes the streams of a column and of those below it.
    pub fn open(node: &'n Node, streams: &mut StripeStreams) -> Result<Column<'n>, Failure> {
        let column = node.column;
        let (encoding, version) = streams.encoding(column)?;
        let present = streams.find(column, PRESENT).map(BooleansReader::new);
        let mut integers =
            |kind, signed| IntegersReader::new(streams.take(column, kind), version, signed);
        let reader = match &node.kind {
            Kind::Struct(fields) => {
                let fields = fields.iter().map(|field| Column::open(field, streams));
                Reader::Struct(fields.collect::<Result<_, _>>()?)
            }
            Kind::List(element) => {
                let lengths = integers(LENGTH, false);
                Reader::List(lengths, Box::new(Column::open(element, streams)?))
            }
            Kind::Map(key, value) => {
                let lengths = integers(LENGTH, false);
                let key = Box::new(Column::open(key, streams)?);
                Reader::Map(lengths, key, Box::new(Column::open(value, streams)?))
            }
            Kind::Leaf(stored) => match stored {
                Stored::Boolean => Reader::Boolean(BooleansReader::new(streams.take(column, DATA))),
                Stored::Byte => Reader::Byte(BytesReader::new(streams.take(column, DATA))),
                Stored::Int32 | Stored::Int64 => Reader::Integers(integers(DATA, true)),
                Stored::Float | Stored::Double => Reader::Plain(streams.take(column, DATA)),
                Stored::Bytes | Stored::Text | Stored::Char | Stored::Fixed(_)
                    if matches!(encoding.kind, 1 | 3) =>
                {
                    let (indices, lengths) = (integers(DATA, false), integers(LENGTH, false));
                    let (values, ends) =
                        streams.dictionary(column, lengths, encoding.dictionary_size)?;
                    Reader::Dictionary(indices, values, ends)
                }
                Stored::Bytes | Stored::Text | Stored::Char | Stored::Fixed(_) => {
                    let lengths = integers(LENGTH, false);
                    Reader::Direct(streams.take(column, DATA), lengths, Vec::new())
                }
                Stored::Decimal { .. } => {
                    let scales = integers(SECONDARY, true);
                    Reader::Decimal(streams.take(column, DATA), scales)
                }
                Stored::Timestamp { instant, .. } => {
                    let times = integers(DATA, true);
                    let nanos = integers(SECONDARY, false);
                    let zone = if *instant {
                        Zone::utc()
                    } else {
                        streams.zone()?
                    };
                    Reader::Timestamp(times, nanos, zone)
                }
            },
        };
        Ok(Column {
            node,
            present,
            reader,
        })
    }

    /// Reads the next row of a top-level column.
    pub fn read_row(&mut self, out: &mut Columns) -> Result<(), Failure> {
        self.read(At { def: 0, rep: 0 }, out)
    }

    fn read(&mut self, mut at: At, out: &mut Columns) -> Result<(), Failure> {
        let present = match &mut self.present {
            Some(present) => present.next()?,
            None => true,
        };
        if !present && !self.node.optional {
            return Err(corrupt("a null in a column that is required"));
        }
        if !present {
            return out.absent(self.node.leaves.clone(), at);
        }
        at.def += i16::from(self.node.optional);
        let mut item = At {
            def: at.def + 1,
            rep: at.rep,
        };
        match &mut self.reader {
            Reader::Struct(fields) => fields.iter_mut().try_for_each(|field| field.read(at, out)),
            Reader::List(lengths, element) => {
                let count = lengths.next()?;
                for _ in 0..count {
                    element.read(item, out)?;
                    item.rep = self.node.rep + 1;
                }
                if count < 1 {
                    out.absent(self.node.leaves.clone(), at)
                } else {
                    Ok(())
                }
            }
            Reader::Map(lengths, key, value) => {
                let count = lengths.next()?;
                for _ in 0..count {
                    key.read(item, out)?;
                    value.read(item, out)?;
                    item.rep = self.node.rep + 1;
                }
                if count < 1 {
                    out.absent(self.node.leaves.clone(), at)
                } else {
                    Ok(())
                }
            }
            leaf => {
                let Kind::Leaf(stored) = &self.node.kind else {
                    return Ok(());
                };
                leaf.push(*stored, self.node.leaves.start, at, out)
            }
        }
    }
}

impl Reader<'_> {
    /// Reads a leaf's next value.
    fn push(
        &mut self,
        stored: Stored,
        leaf: usize,
        at: At,
        out: &mut Columns,
    ) -> Result<(), Failure> {
        let cell = match (self, stored) {
            (Reader::Boolean(values), _) => Cell::Boolean(values.next()?),
            (Reader::Byte(values), _) => Cell::Int32(values.next()?.cast_signed().into()),
            (Reader::Integers(values), Stored::Int64) => Cell::Int64(values.next()?),
            (Reader::Integers(values), _) => {
                let value = values.next()?;
                let int = i32::try_from(value);
                Cell::Int32(int.map_err(|_| Failure::Corrupt(format!("{value} is no int")))?)
            }
            (Reader::Plain(values), Stored::Float) => {
                Cell::Float(f32::from_le_bytes(values.array()?))
            }
            (Reader::Plain(values), _) => Cell::Double(f64::from_le_bytes(values.array()?)),
            (Reader::Direct(values, lengths, bytes), stored) => {
                let len = lengths.next()?;
                let len =
                    usize::try_from(len).map_err(|_| corrupt("a value of an impossible length"))?;
                bytes.clear();
                values.read(len, bytes)?;
                checked(bytes, stored)?
            }
            (Reader::Dictionary(indices, values, ends), stored) => {
                let index = usize::try_from(indices.next()?).ok();
                let value = index.and_then(|index| {
                    let start = match index.checked_sub(1) {
                        Some(before) => *ends.get(before)?,
                        None => 0,
                    };
                    values.get(start..*ends.get(index)?)
                });
                let value =
                    value.ok_or_else(|| corrupt("an index past the end of a dictionary"))?;
                checked(value, stored)?
            }
            (Reader::Decimal(values, scales), Stored::Decimal { scale, to }) => {
                let (value, own) = (values.wide()?, scales.next()?);
                let unscaled = rescaled(value, own, scale).ok_or_else(too_wide)?;
                return to.push(unscaled, leaf, at, out);
            }
            (Reader::Timestamp(seconds, nanos, zone), stored) => {
                let nanoseconds = matches!(stored, Stored::Timestamp { nanos: true, .. });
                let time = timestamp(seconds.next()?, nanos.next()?, zone, nanoseconds);
                Cell::Int64(time.ok_or_else(|| corrupt("a time beyond the range of its type"))?)
            }
            (Reader::Decimal(..) | Reader::Struct(_) | Reader::List(..) | Reader::Map(..), _) => {
                return Err(corrupt("a column of another type"));
            }
        };
        out.push(leaf, at, cell)
    }
}

/// A value of the length and kind its type asks for.
fn checked(value: &[u8], stored: Stored) -> Result<Cell<'_>, Failure> {
    match stored {
        Stored::Fixed(len) if value.len() != len => Err(Failure::Corrupt(format!(
            "a value of {} bytes in a column of {len}",
            value.len()
        ))),
        Stored::Text | Stored::Char => {
            let text = std::str::from_utf8(value);
            let text = text.map_err(|_| corrupt("a string that is not UTF-8"))?;
            Ok(Cell::Bytes(match stored {
                Stored::Char => text.trim_end_matches(' ').as_bytes(),
                _ => value,
            }))
        }
        _ => Ok(Cell::Bytes(value)),
    }
}

/// Where each value of a dictionary ends.
fn ends(mut lengths: IntegersReader, count: usize, bytes: usize) -> Result<Vec<usize>, Failure> {
    let mut ends = Vec::new();
    let mut end = 0usize;
    for _ in 0..count {
        let len = usize::try_from(lengths.next()?).ok();
        end = len
            .and_then(|len| end.checked_add(len))
            .filter(|end| *end <= bytes)
            .ok_or_else(|| corrupt("a dictionary shorter than its values"))?;
        ends.push(end);
    }
    Ok(ends)
}

/// A number of one scale at another, if that loses no digit.
fn rescaled(value: i128, from: i64, to: u8) -> Option<i128> {
    let shift = i64::from(to).checked_sub(from)?;
    let factor = 10i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?);
    match factor {
        _ if value == 0 => Some(0),
        Some(factor) if shift >= 0 => value.checked_mul(factor),
        Some(factor) => (value % factor == 0).then_some(value / factor),
        None => None,
    }
}

/// A count of microseconds (cut toward minus infinity) or nanoseconds since 1970. The seconds of times before 1970 were
/// cut toward zero, except that those of a thousandth of a second and less were not (ORC-763); writers and readers have
/// agreed on that since. Arrow's writer gives such times negative nanoseconds.
fn timestamp(seconds: i64, nanos: i64, zone: &Zone, nanoseconds: bool) -> Option<i64> {
    let mut seconds = seconds.checked_add(zone.base)?;
    let zeros = u32::try_from(nanos & 7).ok()?;
    let mut nanos = nanos >> 3;
    if zeros > 0 {
        nanos = nanos.checked_mul(10i64.checked_pow(zeros + 1)?)?;
    }
    if nanos.abs() >= 1_000_000_000 {
        return None;
    }
    if seconds < 0 && nanos > 999_999 {
        seconds = seconds.checked_sub(1)?;
    }
    let seconds = zone.wall(seconds)?;
    if nanoseconds {
        let time = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        i64::try_from(time).ok()
    } else {
        seconds
            .checked_mul(1_000_000)?
            .checked_add(nanos.div_euclid(1000))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::as_parquet::orc::proto::StreamInfo;

    /// The dictionary of column 0 of a stripe that has room for as many bytes of dictionaries: "ab", and then nothing, over
    /// and over.
    fn dictionary(room: usize, count: u32) -> Result<(Vec<u8>, Vec<usize>), Failure> {
        // One literal, 2; then runs of 130 zeros.
        let lengths = [&[0xFF, 2][..], &[0x7F, 0, 0].repeat(10)].concat();
        let streams = [(DICTIONARY_DATA, 2), (LENGTH, lengths.len() as u64)];
        let streams = streams.map(|(kind, len)| StreamInfo {
            kind,
            column: 0,
            len,
        });
        let footer = StripeFooter {
            streams: streams.to_vec(),
            ..StripeFooter::default()
        };
        let body = Bytes::from([&b"ab"[..], &lengths].concat());
        let compression = Compression::of(0, 0)?;
        let mut streams = StripeStreams::new(footer, body, compression)?;
        streams.dictionaries = room;
        let lengths = IntegersReader::new(streams.take(0, LENGTH), Version::V1, false);
        streams.dictionary(0, lengths, count)
    }

    #[test]
    fn dictionaries_take_no_more_memory_than_they_may() {
        let (values, ends) = dictionary(2 + 4 * 8, 4).unwrap();
        assert_eq!((values.as_slice(), ends), (&b"ab"[..], vec![2; 4]));
        for (room, count) in [(1, 4), (2 + 4 * 8, 5), (MAX_DICTIONARIES, u32::MAX)] {
            let failure = dictionary(room, count).unwrap_err();
            let Failure::Corrupt(reason) = &failure else {
                panic!("{failure:?}");
            };
            assert!(reason.contains("dictionar"), "{count} of {room}: {reason}");
        }
    }
}
