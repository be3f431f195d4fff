//! Geometries: well-known binary, as tables store it, to well-known text.
//!
//! ```text
//! geometry = order: u8 (0 big, 1 little endian), type: u32, body      type = kind + 1000 (Z), 2000 (M) or 3000 (ZM)
//! ```
//!
//! These are the codes of ISO 13249-3, which are those that Iceberg and Parquet name, with the seven kinds from point to
//! geometry collection. PostGIS's own flags (EWKB) are refused. Each geometry inside another says its byte order and its
//! type again; its dimensions must be those of the one around it.
//!
//! `POINT Z (30 10 0.5)`, `POLYGON ((0 0, 1 0, 1 1, 0 0))`, `MULTIPOINT ((1 2), EMPTY)`: coordinates are the shortest
//! numbers that read back the same, without `.0`. A point has no way to say that it is empty but that all its
//! coordinates are NaN; any other NaN is written as one.

use super::values::{push_float, special};

#[cfg(test)]
mod tests;

/// Collections in collections, at most.
const MAX_DEPTH: usize = 64;

/// Why bytes are no geometry.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum WkbError {
    #[error("well-known binary that ends too early")]
    Short,
    #[error("well-known binary with {0} bytes behind its end")]
    Long(usize),
    #[error("well-known binary of byte order {0}, expected 0 or 1")]
    ByteOrder(u8),
    #[error(
        "well-known binary of geometry type {0}, expected an ISO code of a point up to a geometry collection"
    )]
    Type(u32),
    #[error("well-known binary with a geometry of type {inner} in one of type {outer}")]
    Nested { outer: u32, inner: u32 },
    #[error("well-known binary with collections nested deeper than {MAX_DEPTH}")]
    Deep,
}

/// Writes the text of a geometry.
pub(super) fn push_wkt(out: &mut Vec<u8>, wkb: &[u8]) -> Result<(), WkbError> {
    let mut input = Input(wkb);
    let head = Head::read(&mut input)?;
    push_tagged(out, &mut input, head, 0)?;
    match input.0.len() {
        0 => Ok(()),
        left => Err(WkbError::Long(left)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    Collection,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Point => "POINT",
            Kind::LineString => "LINESTRING",
            Kind::Polygon => "POLYGON",
            Kind::MultiPoint => "MULTIPOINT",
            Kind::MultiLineString => "MULTILINESTRING",
            Kind::MultiPolygon => "MULTIPOLYGON",
            Kind::Collection => "GEOMETRYCOLLECTION",
        }
    }

    /// What a geometry of many parts has for parts; nothing for those that have none, or of any kind.
    fn part(self) -> Option<Kind> {
        match self {
            Kind::MultiPoint => Some(Kind::Point),
            Kind::MultiLineString => Some(Kind::LineString),
            Kind::MultiPolygon => Some(Kind::Polygon),
            Kind::Point | Kind::LineString | Kind::Polygon | Kind::Collection => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimensions {
    Xy,
    Xyz,
    Xym,
    Xyzm,
}

impl Dimensions {
    fn count(self) -> usize {
        match self {
            Dimensions::Xy => 2,
            Dimensions::Xyz | Dimensions::Xym => 3,
            Dimensions::Xyzm => 4,
        }
    }

    fn tag(self) -> &'static str {
        match self {
            Dimensions::Xy => "",
            Dimensions::Xyz => " Z",
            Dimensions::Xym => " M",
            Dimensions::Xyzm => " ZM",
        }
    }
}

/// What a geometry says before its body.
#[derive(Clone, Copy)]
struct Head {
    little: bool,
    code: u32,
    kind: Kind,
    dimensions: Dimensions,
}

impl Head {
    fn read(input: &mut Input<'_>) -> Result<Head, WkbError> {
        let [order] = input.take()?;
        let little = match order {
            0 => false,
            1 => true,
            _ => return Err(WkbError::ByteOrder(order)),
        };
        let code = input.u32(little)?;
        let kind = match code % 1000 {
            1 => Kind::Point,
            2 => Kind::LineString,
            3 => Kind::Polygon,
            4 => Kind::MultiPoint,
            5 => Kind::MultiLineString,
            6 => Kind::MultiPolygon,
            7 => Kind::Collection,
            _ => return Err(WkbError::Type(code)),
        };
        let dimensions = match code / 1000 {
            0 => Dimensions::Xy,
            1 => Dimensions::Xyz,
            2 => Dimensions::Xym,
            3 => Dimensions::Xyzm,
            _ => return Err(WkbError::Type(code)),
        };
        Ok(Head {
            little,
            code,
            kind,
            dimensions,
        })
    }

    /// Reads the head of a part of this geometry.
    fn read_part(self, input: &mut Input<'_>) -> Result<Head, WkbError> {
        let part = Head::read(input)?;
        let fits = self.kind.part().is_none_or(|kind| kind == part.kind);
        if fits && part.dimensions == self.dimensions {
            Ok(part)
        } else {
            Err(WkbError::Nested {
                outer: self.code,
                inner: part.code,
            })
        }
    }
}

/// `POINT Z ` and the body.
fn push_tagged(
    out: &mut Vec<u8>,
    input: &mut Input<'_>,
    head: Head,
    depth: usize,
) -> Result<(), WkbError> {
    if depth > MAX_DEPTH {
        return Err(WkbError::Deep);
    }
    out.extend_from_slice(head.kind.name().as_bytes());
    out.extend_from_slice(head.dimensions.tag().as_bytes());
    out.push(b' ');
    match head.kind {
        Kind::Point | Kind::LineString | Kind::Polygon => push_simple(out, input, head),
        Kind::MultiPoint | Kind::MultiLineString | Kind::MultiPolygon => {
            push_many(out, input, head.little, |out, input| {
                let part = head.read_part(input)?;
                push_simple(out, input, part)
            })
        }
        Kind::Collection => push_many(out, input, head.little, |out, input| {
            let part = head.read_part(input)?;
            push_tagged(out, input, part, depth + 1)
        }),
    }
}

/// The body of a geometry that has no parts: `(1 2)`, or `EMPTY`.
fn push_simple(out: &mut Vec<u8>, input: &mut Input<'_>, head: Head) -> Result<(), WkbError> {
    match head.kind {
        Kind::Point => push_point(out, input, head),
        Kind::LineString => push_line(out, input, head),
        _ => push_many(out, input, head.little, |out, input| {
            push_line(out, input, head)
        }),
    }
}

fn push_point(out: &mut Vec<u8>, input: &mut Input<'_>, head: Head) -> Result<(), WkbError> {
    let start = out.len();
    out.push(b'(');
    if push_position(out, input, head)? {
        out.push(b')');
    } else {
        out.truncate(start);
        out.extend_from_slice(b"EMPTY");
    }
    Ok(())
}

fn push_line(out: &mut Vec<u8>, input: &mut Input<'_>, head: Head) -> Result<(), WkbError> {
    push_many(out, input, head.little, |out, input| {
        push_position(out, input, head).map(drop)
    })
}

/// As many items as are said first, in brackets; `EMPTY` for none.
fn push_many(
    out: &mut Vec<u8>,
    input: &mut Input<'_>,
    little: bool,
    mut push: impl FnMut(&mut Vec<u8>, &mut Input<'_>) -> Result<(), WkbError>,
) -> Result<(), WkbError> {
    let count = input.u32(little)?;
    if count == 0 {
        out.extend_from_slice(b"EMPTY");
        return Ok(());
    }
    out.push(b'(');
    // Every item takes bytes of the input: a count that is too high ends there.
    for index in 0..count {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        push(out, input)?;
    }
    out.push(b')');
    Ok(())
}

/// `30 10`, and whether any of it is a number.
fn push_position(out: &mut Vec<u8>, input: &mut Input<'_>, head: Head) -> Result<bool, WkbError> {
    let mut any = false;
    for index in 0..head.dimensions.count() {
        if index > 0 {
            out.push(b' ');
        }
        let coordinate = input.f64(head.little)?;
        any |= !coordinate.is_nan();
        match special(coordinate) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => {
                push_float(out, coordinate);
                if out.ends_with(b".0") {
                    out.truncate(out.len() - 2);
                }
            }
        }
    }
    Ok(any)
}

/// The bytes that are left.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WkbError> {
        let (taken, left) = self.0.split_first_chunk().ok_or(WkbError::Short)?;
        self.0 = left;
        Ok(*taken)
    }

    fn u32(&mut self, little: bool) -> Result<u32, WkbError> {
        let bytes = self.take()?;
        Ok(if little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    }

    fn f64(&mut self, little: bool) -> Result<f64, WkbError> {
        let bytes = self.take()?;
        Ok(if little {
            f64::from_le_bytes(bytes)
        } else {
            f64::from_be_bytes(bytes)
        })
    }
}
