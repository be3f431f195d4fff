//! Avro data and delete files (spec, "Avro" in Appendix A; SPEC.md rule 50).
//!
//! | Avro | Parquet |
//! |---|---|
//! | `null` | INT32 (UNKNOWN), all null |
//! | `boolean`, `int`, `long`, `float`, `double` | the same |
//! | `int` `date`, `time-millis`; `long` `time-micros`, `timestamp-millis`, `-micros`, `-nanos` | the same |
//! | `bytes`, `fixed` | BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY |
//! | `bytes` or `fixed` `decimal` | INT32, INT64 or FIXED_LEN_BYTE_ARRAY (DECIMAL), by its precision |
//! | `fixed` or `string` `uuid` | FIXED_LEN_BYTE_ARRAY(16) (UUID) |
//! | `string`; `enum` | BYTE_ARRAY (UTF8); the same, the symbol's name |
//! | `record` | group |
//! | `array`; `array` `map` of records of key and value; `map` | LIST; MAP; MAP |
//! | a union of `null` and another | optional |
//!
//! Other unions have no Iceberg type, and are refused; so are records that hold themselves. A variant is a record of
//! `metadata` and `value`, a geometry or geography is `bytes`, as in Parquet.

use std::io::BufWriter;
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{LogicalType, TimeUnit, Type as Physical};
use parquet::schema::types::TypePtr;

use super::Failure;
use super::columns::{At, Cell, Columns, DecimalAs, too_wide};
use super::schema::{self, Field, LeafColumn};
use crate::iceberg::avro::{Container, Cursor, Logical, MAX_BLOCK, SYNC_LENGTH, Schema, Shape};
use crate::iceberg::value::decimal_be;
use crate::storage::{SourceFile, SpillWriter, Spilled};

/// Bytes read for a file's header at first. Spark writes the table's schema there too.
pub(super) const HEADER: u64 = 64 << 10;
/// The largest header that is read, in bytes.
const MAX_HEADER: u64 = 64 << 20;
/// Bytes of a block's two numbers, at most.
const BLOCK_HEADER: u64 = 20;

/// Converts a file.
pub fn convert(file: &SourceFile, out: BufWriter<SpillWriter>) -> Result<Spilled, Failure> {
    let mut wanted = HEADER;
    let header = loop {
        let header = file.read_range(0, wanted.min(file.len()))?;
        match Container::open(&header) {
            // It may merely go on.
            Err(_) if wanted < file.len() && wanted < MAX_HEADER => wanted *= 8,
            Err(error) => return Err(error.into()),
            Ok(_) => break header,
        }
    };
    let container = Container::open(&header)?;
    let Shape::Record(record) = &container.schema.shape else {
        return Err(Failure::Corrupt("its objects are not records".to_owned()));
    };
    let mut leaves = 0;
    let mut fields = Vec::new();
    let mut nodes = Vec::new();
    for field in &record.fields {
        let (ty, node) = node(&field.schema, &field.name, field.id, 0, &mut leaves)?;
        fields.push(ty);
        nodes.push(node);
    }
    let mut columns = Columns::new(schema::table(fields, leaves, "Avro")?, out)?;

    let mut offset = container.header_len(&header) as u64;
    let whole = offset..file.len();
    while offset < file.len() {
        let numbers = BLOCK_HEADER.min(file.len() - offset);
        let numbers = file.read_range_within(offset, numbers, &whole)?;
        let mut cursor = Cursor::new(&numbers);
        let (count, size) = (cursor.long()?, cursor.long()?);
        offset += (numbers.len() - cursor.rest().len()) as u64;
        let count = u64::try_from(count).map_err(|_| corrupt("a block of less than no rows"))?;
        let size = u64::try_from(size).ok().filter(|size| *size <= MAX_BLOCK);
        let size = size.ok_or_else(|| corrupt("a block of an impossible size"))?;
        let stored = file.read_range_within(offset, size + SYNC_LENGTH as u64, &whole)?;
        offset += stored.len() as u64;
        let (block, sync) = stored
            .split_last_chunk::<{ SYNC_LENGTH }>()
            .ok_or_else(|| corrupt("a block without its end"))?;
        if sync.as_slice() != container.sync() {
            return Err(corrupt("a block does not end in the file's sync marker"));
        }
        let block = container.decompress(block)?;
        let mut cursor = Cursor::new(&block);
        for _ in 0..count {
            for node in &nodes {
                node.read(&mut cursor, At { def: 0, rep: 0 }, &mut columns)?;
            }
            columns.end_row()?;
        }
        if !cursor.is_empty() {
            return Err(corrupt("a block holds more bytes than its objects take"));
        }
    }
    columns.finish()
}

fn corrupt(reason: &str) -> Failure {
    Failure::Corrupt(reason.to_owned())
}

/// A value of the writer's schema, and where it goes.
#[derive(Debug)]
struct Node {
    /// The branch of a union that is null, and how many branches there are.
    nullable: Option<Branches>,
    kind: Kind,
    /// Lists and maps around it.
    rep: i16,
    /// The columns that its values, and those below, go to.
    leaves: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Branches {
    /// `None`: a union of one type.
    null: Option<usize>,
    count: usize,
}

#[derive(Debug)]
enum Kind {
    Leaf(Encoded),
    Record(Vec<Node>),
    Array(Box<Node>),
    /// The value; the key is the first leaf.
    Map(Box<Node>),
}

/// How a leaf is encoded, and what it is stored as.
#[derive(Clone, Debug)]
enum Encoded {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    /// The number of one of these.
    Enum(Arc<[String]>),
    UuidText,
    Fixed(usize),
    /// `None`: with their length before them.
    Decimal(Option<usize>, DecimalAs),
}

/// The column and the node of a schema. Recursion goes down the schema, whose depth parsing has bounded.
fn node(
    schema: &Schema,
    name: &str,
    id: Option<i32>,
    rep: i16,
    leaves: &mut usize,
) -> Result<(TypePtr, Node), Failure> {
    let mut nullable = None;
    let mut schema = schema;
    if let Shape::Union(branches) = &schema.shape {
        let is_null = |branch: &Schema| matches!(branch.shape, Shape::Null);
        let (null, value) = match &branches[..] {
            [only] => (None, only),
            [null, value] if is_null(null) => (Some(0), value),
            [value, null] if is_null(null) => (Some(1), value),
            _ => {
                return Err(Failure::Unsupported(format!(
                    "a union of types (field {name:?})"
                )));
            }
        };
        nullable = Some(Branches {
            null,
            count: branches.len(),
        });
        schema = value;
    }
    let optional =
        matches!(schema.shape, Shape::Null) || nullable.is_some_and(|b| b.null.is_some());
    let field = Field { name, id, optional };
    let first = *leaves;
    let (ty, kind) = match &schema.shape {
        Shape::Record(record) => {
            let (mut fields, mut nodes) = (Vec::new(), Vec::new());
            for field in &record.fields {
                let (ty, child) = node(&field.schema, &field.name, field.id, rep, leaves)?;
                fields.push(ty);
                nodes.push(child);
            }
            (field.group(fields)?, Kind::Record(nodes))
        }
        Shape::Array(items) if schema.logical == Some(Logical::Map) => {
            let (entry, item) = node(items, "key_value", None, rep + 1, leaves)?;
            if !matches!(&item.kind, Kind::Record(pair) if pair.len() == 2)
                || item.nullable.is_some()
            {
                return Err(corrupt("a map whose entries are not pairs"));
            }
            let map = field.map(entry.get_fields().to_vec())?;
            (map, Kind::Array(Box::new(item)))
        }
        Shape::Array(items) => {
            let (element, item) = node(items, "element", schema.ids.element, rep + 1, leaves)?;
            (field.list(element)?, Kind::Array(Box::new(item)))
        }
        Shape::Map(values) => {
            *leaves += 1;
            let key = Field {
                name: "key",
                id: schema.ids.key,
                optional: false,
            };
            let key = key.leaf(LeafColumn::text())?;
            let (value, item) = node(values, "value", schema.ids.value, rep + 1, leaves)?;
            (field.map(vec![key, value])?, Kind::Map(Box::new(item)))
        }
        _ => {
            *leaves += 1;
            let (column, encoded) = leaf(schema, name)?;
            (field.leaf(column)?, Kind::Leaf(encoded))
        }
    };
    let node = Node {
        nullable,
        kind,
        rep,
        leaves: first..*leaves,
    };
    Ok((ty, node))
}

/// The column of a primitive type, and how its values are encoded.
fn leaf(schema: &Schema, name: &str) -> Result<(LeafColumn, Encoded), Failure> {
    use Logical as L;
    let plain = LeafColumn::new;
    // Whether a timestamp is one of UTC is for the table to say.
    let timestamp = |unit| LeafColumn::timestamp(false, unit);
    let decimal = |len, precision, scale| {
        let (column, to) = LeafColumn::decimal(precision, scale, name)?;
        Ok::<_, Failure>((column, Encoded::Decimal(len, to)))
    };
    Ok(match (&schema.shape, schema.logical) {
        (Shape::Null, _) => (
            plain(Physical::INT32, Some(LogicalType::Unknown)),
            Encoded::Null,
        ),
        (Shape::Boolean, _) => (plain(Physical::BOOLEAN, None), Encoded::Boolean),
        (Shape::Int, logical) => {
            let column = match logical {
                Some(L::Date) => plain(Physical::INT32, Some(LogicalType::Date)),
                Some(L::TimeMillis) => LeafColumn::time(TimeUnit::MILLIS),
                _ => plain(Physical::INT32, None),
            };
            (column, Encoded::Int)
        }
        (Shape::Long, logical) => {
            let column = match logical {
                Some(L::TimeMicros) => LeafColumn::time(TimeUnit::MICROS),
                Some(L::TimestampMillis) => timestamp(TimeUnit::MILLIS),
                Some(L::TimestampMicros) => timestamp(TimeUnit::MICROS),
                Some(L::TimestampNanos) => timestamp(TimeUnit::NANOS),
                _ => plain(Physical::INT64, None),
            };
            (column, Encoded::Long)
        }
        (Shape::Float, _) => (plain(Physical::FLOAT, None), Encoded::Float),
        (Shape::Double, _) => (plain(Physical::DOUBLE, None), Encoded::Double),
        (Shape::String, Some(L::Uuid)) => (LeafColumn::uuid(), Encoded::UuidText),
        (Shape::String, _) => (LeafColumn::text(), Encoded::String),
        (Shape::Bytes, Some(L::Decimal { precision, scale })) => decimal(None, precision, scale)?,
        (Shape::Fixed(len), Some(L::Decimal { precision, scale })) => {
            decimal(Some(*len), precision, scale)?
        }
        (Shape::Bytes, _) => (plain(Physical::BYTE_ARRAY, None), Encoded::Bytes),
        (Shape::Fixed(16), Some(L::Uuid)) => (LeafColumn::uuid(), Encoded::Fixed(16)),
        (Shape::Fixed(len), _) => (LeafColumn::fixed(*len)?, Encoded::Fixed(*len)),
        (Shape::Enum(symbols), _) => (LeafColumn::text(), Encoded::Enum(Arc::clone(symbols))),
        _ => {
            let feature = format!("a union in a union (field {name:?})");
            return Err(Failure::Unsupported(feature));
        }
    })
}

/// Recursion goes down the schema.
impl Node {
    /// Reads the value that follows.
    fn read(&self, cursor: &mut Cursor<'_>, mut at: At, out: &mut Columns) -> Result<(), Failure> {
        cursor.step()?;
        if let Some(branches) = self.nullable {
            let branch = cursor.length()?;
            if branch >= branches.count {
                return Err(Failure::Corrupt(format!("a union has no branch {branch}")));
            }
            if Some(branch) == branches.null {
                return out.absent(self.leaves.clone(), at);
            }
            at.def += i16::from(branches.null.is_some());
        }
        match &self.kind {
            Kind::Leaf(Encoded::Null) => out.absent(self.leaves.clone(), at),
            Kind::Leaf(encoded) => encoded.read(cursor, self.leaves.start, at, out),
            Kind::Record(fields) => fields
                .iter()
                .try_for_each(|field| field.read(cursor, at, out)),
            Kind::Array(item) => self.items(cursor, at, out, |cursor, at, out| {
                item.read(cursor, at, out)
            }),
            Kind::Map(value) => self.items(cursor, at, out, |cursor, at, out| {
                let key = self.leaves.start;
                out.push(key, at, Cell::Bytes(cursor.string()?.as_bytes()))?;
                value.read(cursor, at, out)
            }),
        }
    }

    /// The items of an array or a map.
    fn items(
        &self,
        cursor: &mut Cursor<'_>,
        at: At,
        out: &mut Columns,
        read: impl Fn(&mut Cursor<'_>, At, &mut Columns) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut item = At {
            def: at.def + 1,
            rep: at.rep,
        };
        let mut any = false;
        loop {
            let count = cursor.long()?;
            if count < 0 {
                // The block's length in bytes, for those who would skip it.
                cursor.long()?;
            }
            if count == 0 {
                break;
            }
            for _ in 0..count.unsigned_abs() {
                cursor.step()?;
                read(cursor, item, out)?;
                item.rep = self.rep + 1;
                any = true;
            }
        }
        if any {
            Ok(())
        } else {
            out.absent(self.leaves.clone(), at)
        }
    }
}

impl Encoded {
    fn read(
        &self,
        cursor: &mut Cursor<'_>,
        leaf: usize,
        at: At,
        out: &mut Columns,
    ) -> Result<(), Failure> {
        let uuid;
        let cell = match self {
            Encoded::Null => return out.absent(leaf..leaf + 1, at),
            Encoded::Boolean => Cell::Boolean(cursor.array::<1>()? != [0]),
            Encoded::Int => {
                let number = cursor.long()?;
                let int = i32::try_from(number);
                Cell::Int32(int.map_err(|_| Failure::Corrupt(format!("{number} is no int")))?)
            }
            Encoded::Long => Cell::Int64(cursor.long()?),
            Encoded::Float => Cell::Float(f32::from_le_bytes(cursor.array()?)),
            Encoded::Double => Cell::Double(f64::from_le_bytes(cursor.array()?)),
            Encoded::Bytes => Cell::Bytes(cursor.bytes()?),
            Encoded::String => Cell::Bytes(cursor.string()?.as_bytes()),
            Encoded::Enum(symbols) => {
                let symbol = cursor.length()?;
                let name = symbols.get(symbol);
                let name = name
                    .ok_or_else(|| Failure::Corrupt(format!("an enum has no symbol {symbol}")))?;
                Cell::Bytes(name.as_bytes())
            }
            Encoded::UuidText => {
                let text = cursor.string()?;
                let parsed = uuid::Uuid::try_parse(text);
                uuid = parsed
                    .map_err(|_| Failure::Corrupt(format!("{text:?} is no UUID")))?
                    .into_bytes();
                Cell::Bytes(&uuid)
            }
            Encoded::Fixed(len) => Cell::Bytes(cursor.take(*len)?),
            Encoded::Decimal(len, to) => {
                let bytes = match len {
                    Some(len) => cursor.take(*len)?,
                    None => cursor.bytes()?,
                };
                let unscaled = decimal_be(bytes).ok_or_else(too_wide)?;
                return to.push(unscaled, leaf, at, out);
            }
        };
        out.push(leaf, at, cell)
    }
}
