//! A schema of the `parquet` crate as a [`FileSchema`].

use parquet::basic::{
    ConvertedType, LogicalType, Repetition as ParquetRepetition, TimeUnit, Type as PhysicalType,
};
use parquet::schema::types::{BasicTypeInfo, SchemaDescriptor, Type};

use crate::rows::file_schema::{
    Annotation, FileLeaf, FileNode, FileSchema, NodeId, Physical, Repetition,
};

/// How deep a schema may nest. Iceberg's own types nest a few levels; recursion over a file's schema stops here.
const MAX_DEPTH: u16 = 100;

/// Converts a schema; the error says what in it cannot be.
pub fn file_schema(descriptor: &SchemaDescriptor) -> Result<FileSchema, String> {
    let mut schema = FileSchema::default();
    for field in descriptor.root_schema().get_fields() {
        let root = add(&mut schema, field, None, Position::default())?;
        schema.roots.push(root);
    }
    Ok(schema)
}

#[derive(Clone, Copy, Default)]
struct Position {
    depth: u16,
    max_def: u16,
    max_rep: u16,
}

fn add(
    schema: &mut FileSchema,
    ty: &Type,
    parent: Option<NodeId>,
    above: Position,
) -> Result<NodeId, String> {
    if above.depth >= MAX_DEPTH {
        return Err(format!("its schema nests more than {MAX_DEPTH} levels"));
    }
    let info = ty.get_basic_info();
    let repetition = match info.has_repetition().then(|| info.repetition()) {
        Some(ParquetRepetition::OPTIONAL) => Repetition::Optional,
        Some(ParquetRepetition::REPEATED) => Repetition::Repeated,
        Some(ParquetRepetition::REQUIRED) | None => Repetition::Required,
    };
    let at = Position {
        depth: above.depth + 1,
        max_def: above.max_def + u16::from(repetition != Repetition::Required),
        max_rep: above.max_rep + u16::from(repetition == Repetition::Repeated),
    };
    let node = schema.nodes.len();
    let leaf = match ty {
        Type::PrimitiveType {
            physical_type,
            type_length,
            ..
        } => {
            let column = schema.leaves.len();
            schema.leaves.push(node);
            Some(FileLeaf {
                column,
                physical: physical(*physical_type, *type_length)?,
            })
        }
        Type::GroupType { .. } => None,
    };
    schema.nodes.push(FileNode {
        name: info.name().to_owned(),
        field_id: info.has_id().then(|| info.id()),
        repetition,
        parent,
        children: Vec::new(),
        annotation: annotation(ty, info),
        leaf,
        max_def: at.max_def,
        max_rep: at.max_rep,
    });
    if let Type::GroupType { fields, .. } = ty {
        let children = fields
            .iter()
            .map(|field| add(schema, field, Some(node), at))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(node) = schema.nodes.get_mut(node) {
            node.children = children;
        }
    }
    Ok(node)
}

fn physical(ty: PhysicalType, length: i32) -> Result<Physical, String> {
    Ok(match ty {
        PhysicalType::BOOLEAN => Physical::Boolean,
        PhysicalType::INT32 => Physical::Int32,
        PhysicalType::INT64 => Physical::Int64,
        PhysicalType::INT96 => Physical::Int96,
        PhysicalType::FLOAT => Physical::Float,
        PhysicalType::DOUBLE => Physical::Double,
        PhysicalType::BYTE_ARRAY => Physical::ByteArray,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => Physical::Fixed(
            u32::try_from(length).map_err(|_| format!("a column has the fixed length {length}"))?,
        ),
    })
}

fn annotation(ty: &Type, info: &BasicTypeInfo) -> Annotation {
    match info.logical_type_ref() {
        Some(logical) => logical_annotation(logical),
        None => converted_annotation(ty, info.converted_type()),
    }
}

fn logical_annotation(logical: &LogicalType) -> Annotation {
    match logical {
        LogicalType::String => Annotation::String,
        LogicalType::Map => Annotation::Map,
        LogicalType::List => Annotation::List,
        LogicalType::Enum => Annotation::Enum,
        LogicalType::Decimal(decimal) => decimal_annotation(decimal.precision, decimal.scale),
        LogicalType::Date => Annotation::Date,
        LogicalType::Time(time) => match time.unit {
            TimeUnit::MILLIS => Annotation::TimeMillis,
            TimeUnit::MICROS => Annotation::TimeMicros,
            TimeUnit::NANOS => Annotation::TimeNanos,
        },
        LogicalType::Timestamp(timestamp) => {
            let utc = timestamp.is_adjusted_to_u_t_c;
            match timestamp.unit {
                TimeUnit::MILLIS => Annotation::TimestampMillis { utc },
                TimeUnit::MICROS => Annotation::TimestampMicros { utc },
                TimeUnit::NANOS => Annotation::TimestampNanos { utc },
            }
        }
        LogicalType::Integer(integer) => Annotation::Integer {
            bits: integer.bit_width.unsigned_abs(),
            signed: integer.is_signed,
        },
        LogicalType::Unknown => Annotation::Unknown,
        LogicalType::Json => Annotation::Json,
        LogicalType::Bson => Annotation::Bson,
        LogicalType::Uuid => Annotation::Uuid,
        LogicalType::Float16 => Annotation::Float16,
        LogicalType::Variant(_) => Annotation::Variant,
        LogicalType::Geometry(_) => Annotation::Geometry,
        LogicalType::Geography(_) => Annotation::Geography,
        LogicalType::File => Annotation::Other(19),
        LogicalType::_Unknown { field_id } => Annotation::Other((*field_id).into()),
    }
}

fn converted_annotation(ty: &Type, converted: ConvertedType) -> Annotation {
    let integer = |bits, signed| Annotation::Integer { bits, signed };
    match converted {
        ConvertedType::NONE => Annotation::None,
        ConvertedType::UTF8 => Annotation::String,
        ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE => Annotation::Map,
        ConvertedType::LIST => Annotation::List,
        ConvertedType::ENUM => Annotation::Enum,
        ConvertedType::DECIMAL => match ty {
            Type::PrimitiveType {
                precision, scale, ..
            } => decimal_annotation(*precision, *scale),
            Type::GroupType { .. } => Annotation::None,
        },
        ConvertedType::DATE => Annotation::Date,
        ConvertedType::TIME_MILLIS => Annotation::TimeMillis,
        ConvertedType::TIME_MICROS => Annotation::TimeMicros,
        ConvertedType::TIMESTAMP_MILLIS => Annotation::TimestampMillis { utc: true },
        ConvertedType::TIMESTAMP_MICROS => Annotation::TimestampMicros { utc: true },
        ConvertedType::UINT_8 => integer(8, false),
        ConvertedType::UINT_16 => integer(16, false),
        ConvertedType::UINT_32 => integer(32, false),
        ConvertedType::UINT_64 => integer(64, false),
        ConvertedType::INT_8 => integer(8, true),
        ConvertedType::INT_16 => integer(16, true),
        ConvertedType::INT_32 => integer(32, true),
        ConvertedType::INT_64 => integer(64, true),
        ConvertedType::JSON => Annotation::Json,
        ConvertedType::BSON => Annotation::Bson,
        ConvertedType::INTERVAL => Annotation::Interval,
    }
}

/// Nonsense precisions and scales become ones that no column of a table has.
fn decimal_annotation(precision: i32, scale: i32) -> Annotation {
    Annotation::Decimal {
        precision: u32::try_from(precision).unwrap_or(u32::MAX),
        scale: u32::try_from(scale).unwrap_or(u32::MAX),
    }
}
