//! ORC data and delete files (spec, "ORC" in Appendix A; SPEC.md rule 50; ORC specification v1).
//!
//! | ORC, attribute | Parquet |
//! |---|---|
//! | `boolean`, `float`, `double` | the same |
//! | `tinyint`, `smallint`, `int` | INT32 |
//! | `bigint`; with `iceberg.long-type=TIME` | INT64; INT64 (TIME, microseconds) |
//! | `string`, `varchar`; `char` | BYTE_ARRAY (UTF8); the same, without the spaces at its end |
//! | `binary`; with `iceberg.binary-type` `UUID` or `FIXED` | BYTE_ARRAY, also for `GEOMETRY` and `GEOGRAPHY`; FIXED_LEN_BYTE_ARRAY |
//! | `decimal` | INT32, INT64 or FIXED_LEN_BYTE_ARRAY (DECIMAL), by its precision |
//! | `date` | INT32 (DATE) |
//! | `timestamp`, `timestamp with local time zone` | INT64 (TIMESTAMP), in microseconds or, by `iceberg.timestamp-unit`, nanoseconds |
//! | `struct`, `array`, `map` | group, LIST, MAP |
//!
//! Field ids are the attribute `iceberg.id`. A column is required where `iceberg.required` says so, and optional
//! without it. A `timestamp` shows the wall clock of its writer, whose time zone the file names ([`zone`]). Refused:
//! `uniontype`, encrypted columns, the codec LZO.
//!
//! A stripe's streams are read together, and its rows taken from them one after the other.

use std::io::BufWriter;
use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::schema::types::TypePtr;

use super::Failure;
use super::columns::{Columns, DecimalAs};
use super::schema::{self, Field, LeafColumn};
use crate::storage::{SourceFile, SpillWriter, Spilled};
use proto::{Footer, OrcType, PostScript, Stripe, StripeFooter};
use stream::{Compression, Stream};
use stripe::{Column, StripeStreams};

mod proto;
mod rle;
mod stream;
mod stripe;
mod zone;

/// Bytes of a footer once decompressed, at most.
const MAX_FOOTER: usize = 64 << 20;
/// Bytes of a stripe as stored, at most. Writers aim at 64 MiB.
const MAX_STRIPE: u64 = 1 << 30;
/// The newest version of the format. The first is 0.11.
const NEWEST: [u32; 2] = [0, 12];
/// How deep a schema may nest.
const MAX_DEPTH: u16 = 100;

/// Converts a file.
pub fn convert(file: &SourceFile, out: BufWriter<SpillWriter>) -> Result<Spilled, Failure> {
    let (footer, compression) = read_footer(file)?;
    let schema = Schema {
        types: &footer.types,
    };
    let root = schema.get(0)?;
    if root.kind != STRUCT {
        return Err(corrupt("its rows are not structs"));
    }
    let mut leaves = 0;
    let mut fields = Vec::new();
    let mut nodes = Vec::new();
    for (child, name) in root.fields()? {
        let (ty, node) = schema.node(0, child, name, false, 0, 0, &mut leaves)?;
        fields.push(ty);
        nodes.push(node);
    }
    let mut columns = Columns::new(schema::table(fields, leaves, "ORC")?, out)?;
    let mut rows = 0u64;
    for stripe in &footer.stripes {
        let mut streams = read_stripe(file, stripe, compression)?;
        let mut readers = nodes
            .iter()
            .map(|node| Column::open(node, &mut streams))
            .collect::<Result<Vec<_>, _>>()?;
        for _ in 0..stripe.rows {
            for column in &mut readers {
                column.read_row(&mut columns)?;
            }
            columns.end_row()?;
        }
        rows = rows.saturating_add(stripe.rows);
    }
    if rows != footer.rows {
        return Err(Failure::Corrupt(format!(
            "says {} rows, its stripes hold {rows}",
            footer.rows
        )));
    }
    columns.finish()
}

fn read_footer(file: &SourceFile) -> Result<(Footer, Compression), Failure> {
    let len = file.len();
    let tail = file.read_range(len - len.min(256), len.min(256))?;
    let (postscript_len, rest) = tail.split_last().ok_or_else(|| corrupt("is empty"))?;
    let start = rest.len().checked_sub(usize::from(*postscript_len));
    let postscript = start.and_then(|start| rest.get(start..));
    let postscript = postscript.ok_or_else(|| corrupt("is too short for an ORC file"))?;
    let behind = postscript.len() as u64 + 1;
    let postscript = PostScript::parse(postscript)?;
    // Decimals have another encoding in the drafts of what comes next.
    if postscript.version.as_slice() > NEWEST.as_slice() {
        let version: Vec<String> = postscript.version.iter().map(u32::to_string).collect();
        let feature = format!("the ORC version {}", version.join("."));
        return Err(Failure::Unsupported(feature));
    }
    let compression = Compression::of(postscript.compression, postscript.block_size)?;
    let stored = (len - behind)
        .checked_sub(postscript.footer_len)
        .filter(|_| postscript.footer_len <= MAX_FOOTER as u64)
        .ok_or_else(|| corrupt("a footer of an impossible size"))?;
    let footer = file.read_range(stored, postscript.footer_len)?;
    let footer = Footer::parse(&Stream::new(footer, compression).rest(MAX_FOOTER)?)?;
    if footer.encrypted {
        return Err(Failure::Unsupported("ORC encryption".to_owned()));
    }
    Ok((footer, compression))
}

fn read_stripe(
    file: &SourceFile,
    stripe: &Stripe,
    compression: Compression,
) -> Result<StripeStreams, Failure> {
    let impossible = || corrupt("a stripe of an impossible size");
    let body = stripe.index_len.checked_add(stripe.data_len);
    let len = body.and_then(|body| body.checked_add(stripe.footer_len));
    let len = len
        .filter(|len| *len <= MAX_STRIPE)
        .ok_or_else(impossible)?;
    let mut data: Bytes = file.read_range(stripe.offset, len)?;
    let body = usize::try_from(len - stripe.footer_len).map_err(|_| impossible())?;
    let footer = data.split_off(body);
    let footer = StripeFooter::parse(&Stream::new(footer, compression).rest(MAX_FOOTER)?)?;
    StripeStreams::new(footer, data, compression)
}

const STRUCT: u64 = 12;

/// A column of the file, and where it goes.
#[derive(Debug)]
pub struct Node {
    /// Its number, by which streams name it.
    column: u32,
    optional: bool,
    kind: Kind,
    /// Lists and maps around it.
    rep: i16,
    /// The columns that its values, and those below, go to.
    leaves: Range<usize>,
}

#[derive(Debug)]
enum Kind {
    Leaf(Stored),
    Struct(Vec<Node>),
    List(Box<Node>),
    Map(Box<Node>, Box<Node>),
}

/// What a leaf's streams hold, and what it becomes.
#[derive(Clone, Copy, Debug)]
enum Stored {
    Boolean,
    Byte,
    Int32,
    Int64,
    Float,
    Double,
    Bytes,
    /// It has to be UTF-8.
    Text,
    /// The same, filled up with spaces that do not belong to it.
    Char,
    Fixed(usize),
    /// Digits after the point.
    Decimal {
        scale: u8,
        to: DecimalAs,
    },
    Timestamp {
        /// `timestamp with local time zone`.
        instant: bool,
        nanos: bool,
    },
}

struct Schema<'a> {
    types: &'a [OrcType],
}

impl<'a> Schema<'a> {
    fn get(&self, column: u32) -> Result<&'a OrcType, Failure> {
        let ty = usize::try_from(column).ok().and_then(|i| self.types.get(i));
        ty.ok_or_else(|| corrupt("a column without a type"))
    }

    /// The Parquet column and the node of a type.
    #[allow(clippy::too_many_arguments)]
    fn node(
        &self,
        parent: u32,
        column: u32,
        name: &str,
        key: bool,
        rep: i16,
        depth: u16,
        leaves: &mut usize,
    ) -> Result<(TypePtr, Node), Failure> {
        // Children come after their parents, so that no type holds itself.
        if column <= parent || depth >= MAX_DEPTH {
            return Err(corrupt("types that are nested in no possible way"));
        }
        let ty = self.get(column)?;
        let id = ty
            .attribute("iceberg.id")
            .and_then(|id| id.parse::<i32>().ok());
        let optional = !key && ty.attribute("iceberg.required") != Some("true");
        let field = Field { name, id, optional };
        let first = *leaves;
        let mut below = |child: u32, name: &str, key, rep| {
            self.node(column, child, name, key, rep, depth + 1, leaves)
        };
        let (parquet, kind) = match (ty.kind, ty.children.as_slice()) {
            // Nothing would tell where a list of them ends.
            (STRUCT, []) => {
                let empty = format!("a struct without fields (field {name:?})");
                return Err(Failure::Unsupported(empty));
            }
            (STRUCT, _) => {
                let (mut fields, mut nodes) = (Vec::new(), Vec::new());
                for (child, name) in ty.fields()? {
                    let (ty, node) = below(child, name, false, rep)?;
                    fields.push(ty);
                    nodes.push(node);
                }
                (field.group(fields)?, Kind::Struct(nodes))
            }
            (10, [element]) => {
                let (element, node) = below(*element, "element", false, rep + 1)?;
                (field.list(element)?, Kind::List(Box::new(node)))
            }
            (11, [key, value]) => {
                let (key_field, key) = below(*key, "key", true, rep + 1)?;
                let (value_field, value) = below(*value, "value", false, rep + 1)?;
                let kind = Kind::Map(Box::new(key), Box::new(value));
                (field.map(vec![key_field, value_field])?, kind)
            }
            _ => {
                *leaves += 1;
                let (column, stored) = leaf(ty, name)?;
                (field.leaf(column)?, Kind::Leaf(stored))
            }
        };
        let node = Node {
            column,
            optional,
            kind,
            rep,
            leaves: first..*leaves,
        };
        Ok((parquet, node))
    }
}

/// The column of a primitive type, and what its streams hold.
fn leaf(ty: &OrcType, name: &str) -> Result<(LeafColumn, Stored), Failure> {
    let plain = LeafColumn::new;
    Ok(match ty.kind {
        0 => (plain(Physical::BOOLEAN, None), Stored::Boolean),
        1 => (plain(Physical::INT32, None), Stored::Byte),
        2 | 3 => (plain(Physical::INT32, None), Stored::Int32),
        4 if ty.attribute("iceberg.long-type") == Some("TIME") => {
            (LeafColumn::time(TimeUnit::MICROS), Stored::Int64)
        }
        4 => (plain(Physical::INT64, None), Stored::Int64),
        5 => (plain(Physical::FLOAT, None), Stored::Float),
        6 => (plain(Physical::DOUBLE, None), Stored::Double),
        7 | 16 => (LeafColumn::text(), Stored::Text),
        17 => (LeafColumn::text(), Stored::Char),
        8 => match ty.attribute("iceberg.binary-type") {
            Some("UUID") => (LeafColumn::uuid(), Stored::Fixed(16)),
            Some("FIXED") => {
                let len = ty.attribute("iceberg.length");
                let len = len.and_then(|len| len.parse().ok()).filter(|len| *len > 0);
                let len = len.ok_or_else(|| corrupt("a fixed without its length"))?;
                (LeafColumn::fixed(len)?, Stored::Fixed(len))
            }
            _ => (plain(Physical::BYTE_ARRAY, None), Stored::Bytes),
        },
        9 | 18 => {
            let (instant, nanos) = (
                ty.kind == 18,
                ty.attribute("iceberg.timestamp-unit") == Some("NANOS"),
            );
            let unit = if nanos {
                TimeUnit::NANOS
            } else {
                TimeUnit::MICROS
            };
            let column = LeafColumn::timestamp(instant, unit);
            (column, Stored::Timestamp { instant, nanos })
        }
        14 => {
            let digits = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
            let scale = digits(ty.scale);
            let (column, to) = LeafColumn::decimal(digits(ty.precision), scale, name)?;
            (column, Stored::Decimal { scale, to })
        }
        15 => (
            plain(Physical::INT32, Some(LogicalType::Date)),
            Stored::Int32,
        ),
        13 => {
            return Err(Failure::Unsupported(format!(
                "a uniontype (field {name:?})"
            )));
        }
        other => {
            return Err(Failure::Unsupported(format!(
                "the ORC type {other} (field {name:?})"
            )));
        }
    })
}

fn corrupt(reason: &str) -> Failure {
    Failure::Corrupt(reason.to_owned())
}
