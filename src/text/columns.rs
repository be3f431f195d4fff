//! How each column is written, and the columns of a batch by their types.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    ListArray, MapArray, StringArray, StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int32Type,
    Int64Type, Schema, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType,
};
use parquet::basic::LogicalType;
use parquet::schema::types::Type;

use super::TextError;
use super::values::Fraction;
use super::variant::{Bytes, VariantColumn, VariantShape};

/// How the values of a column, field or element are written.
#[derive(Debug)]
pub(super) enum Shape {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    /// With so many digits behind the point.
    Decimal(usize),
    Date,
    Time,
    Timestamp {
        fraction: Fraction,
        utc: bool,
    },
    String,
    Uuid,
    Bytes,
    /// Well-known binary.
    Geometry,
    Variant(Box<VariantShape>),
    /// Names and shapes of the fields.
    Struct(Vec<(String, Shape)>),
    List(Box<Shape>),
    Map(Box<(Shape, Shape)>),
}

/// The columns of a virtual file, by name, from its Parquet schema and what that is in Arrow.
pub(super) fn shapes(root: &Type, schema: &Schema) -> Result<Vec<(String, Shape)>, TextError> {
    let nodes = root.get_fields();
    if nodes.len() != schema.fields().len() {
        let reason = "the footer's columns are not those that were read";
        return Err(TextError::Footer(reason.to_owned()));
    }
    let columns = nodes.iter().zip(schema.fields());
    columns
        .map(|(node, field)| {
            let name = field.name();
            let shape = shape(node, field.data_type()).ok_or_else(|| TextError::Unsupported {
                column: name.clone(),
                ty: field.data_type().to_string(),
            })?;
            Ok((name.clone(), shape))
        })
        .collect()
}

/// Nothing where there is no text for the type. Types nest no deeper than the table's metadata may.
fn shape(node: &Type, ty: &DataType) -> Option<Shape> {
    Some(match ty {
        DataType::Null => Shape::Null,
        DataType::Struct(fields) if VariantShape::is(node) => {
            Shape::Variant(Box::new(VariantShape::of(node, fields)?))
        }
        DataType::Struct(fields) => {
            let children = children(node)?.iter().zip(fields);
            let fields = children
                .map(|(node, field)| Some((field.name().clone(), shape(node, field.data_type())?)));
            Shape::Struct(fields.collect::<Option<_>>()?)
        }
        DataType::List(element) => {
            Shape::List(Box::new(shape(element_node(node)?, element.data_type())?))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return None;
            };
            let ([key, value], [key_field, value_field]) =
                (children(children(node)?.first()?)?, &**fields)
            else {
                return None;
            };
            Shape::Map(Box::new((
                shape(key, key_field.data_type())?,
                shape(value, value_field.data_type())?,
            )))
        }
        _ => leaf(node, ty)?,
    })
}

/// Of a type that has no children.
pub(super) fn leaf(node: &Type, ty: &DataType) -> Option<Shape> {
    let logical = node.get_basic_info().logical_type_ref();
    Some(match ty {
        DataType::Boolean => Shape::Boolean,
        DataType::Int32 => Shape::Int,
        DataType::Int64 => Shape::Long,
        DataType::Float32 => Shape::Float,
        DataType::Float64 => Shape::Double,
        DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            Shape::Decimal(usize::try_from(*scale).ok()?)
        }
        DataType::Date32 => Shape::Date,
        DataType::Time64(TimeUnit::Microsecond) => Shape::Time,
        DataType::Timestamp(unit, zone) => Shape::Timestamp {
            fraction: match unit {
                TimeUnit::Microsecond => Fraction::Micros,
                TimeUnit::Nanosecond => Fraction::Nanos,
                TimeUnit::Second | TimeUnit::Millisecond => return None,
            },
            utc: zone.is_some(),
        },
        DataType::Utf8 | DataType::Utf8View => Shape::String,
        DataType::FixedSizeBinary(16) if logical == Some(&LogicalType::Uuid) => Shape::Uuid,
        DataType::Binary | DataType::BinaryView
            if matches!(
                logical,
                Some(LogicalType::Geometry(_) | LogicalType::Geography(_))
            ) =>
        {
            Shape::Geometry
        }
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Shape::Bytes,
        _ => return None,
    })
}

/// The element of a list in three levels.
pub(super) fn element_node(list: &Type) -> Option<&Type> {
    children(children(list)?.first()?)?
        .first()
        .map(|node| &**node)
}

fn children(node: &Type) -> Option<&[std::sync::Arc<Type>]> {
    node.is_group().then(|| node.get_fields())
}

/// A column of a batch, or what lies below one.
pub(super) struct Column<'a> {
    nulls: Option<&'a NullBuffer>,
    pub(super) values: Values<'a>,
}

/// A column's values. Those under a null mean nothing.
pub(super) enum Values<'a> {
    Null,
    Boolean(&'a BooleanArray),
    Int(&'a [i32]),
    Long(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Decimal(&'a [i128], usize),
    SmallDecimal(&'a [i64], usize),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Timestamp {
        units: &'a [i64],
        fraction: Fraction,
        utc: bool,
    },
    String(&'a StringArray),
    StringView(&'a StringViewArray),
    Uuid(&'a FixedSizeBinaryArray),
    Fixed(&'a FixedSizeBinaryArray),
    Binary(&'a BinaryArray),
    BinaryView(&'a BinaryViewArray),
    Geometry(Bytes<'a>),
    Variant(Box<VariantColumn<'a>>),
    Struct(Vec<(&'a str, Column<'a>)>),
    List(&'a ListArray, Box<Column<'a>>),
    Map(&'a MapArray, Box<(Column<'a>, Column<'a>)>),
}

impl<'a> Column<'a> {
    /// The column that an array of this shape is; nothing where it is of another.
    pub(super) fn of(shape: &'a Shape, array: &'a ArrayRef) -> Option<Column<'a>> {
        let values = match shape {
            Shape::Null => Values::Null,
            Shape::Boolean => Values::Boolean(array.as_boolean_opt()?),
            Shape::Int => Values::Int(array.as_primitive_opt::<Int32Type>()?.values()),
            Shape::Long => Values::Long(array.as_primitive_opt::<Int64Type>()?.values()),
            Shape::Float => Values::Float(array.as_primitive_opt::<Float32Type>()?.values()),
            Shape::Double => Values::Double(array.as_primitive_opt::<Float64Type>()?.values()),
            Shape::Decimal(scale) => match array.as_primitive_opt::<Decimal64Type>() {
                Some(small) => Values::SmallDecimal(small.values(), *scale),
                None => {
                    Values::Decimal(array.as_primitive_opt::<Decimal128Type>()?.values(), *scale)
                }
            },
            Shape::Date => Values::Date(array.as_primitive_opt::<Date32Type>()?.values()),
            Shape::Time => {
                Values::Time(array.as_primitive_opt::<Time64MicrosecondType>()?.values())
            }
            Shape::Timestamp { fraction, utc } => Values::Timestamp {
                units: match fraction {
                    Fraction::Micros => array
                        .as_primitive_opt::<TimestampMicrosecondType>()?
                        .values(),
                    Fraction::Nanos => array
                        .as_primitive_opt::<TimestampNanosecondType>()?
                        .values(),
                },
                fraction: *fraction,
                utc: *utc,
            },
            Shape::String => match array.as_string_view_opt() {
                Some(views) => Values::StringView(views),
                None => Values::String(array.as_string_opt()?),
            },
            Shape::Uuid => Values::Uuid(array.as_fixed_size_binary_opt()?),
            Shape::Bytes => match array.data_type() {
                DataType::Binary => Values::Binary(array.as_binary_opt()?),
                DataType::BinaryView => Values::BinaryView(array.as_binary_view_opt()?),
                _ => Values::Fixed(array.as_fixed_size_binary_opt()?),
            },
            Shape::Geometry => Values::Geometry(Bytes::of(array)?),
            Shape::Variant(shape) => Values::Variant(Box::new(VariantColumn::of(shape, array)?)),
            Shape::Struct(fields) => {
                let arrays = array.as_struct_opt()?.columns().iter();
                let fields = fields.iter().zip(arrays);
                let fields =
                    fields.map(|((name, shape), array)| Some((&**name, Column::of(shape, array)?)));
                Values::Struct(fields.collect::<Option<_>>()?)
            }
            Shape::List(element) => {
                let list = array.as_list_opt::<i32>()?;
                Values::List(list, Box::new(Column::of(element, list.values())?))
            }
            Shape::Map(shapes) => {
                let map = array.as_map_opt()?;
                let keys = Column::of(&shapes.0, map.keys())?;
                let values = Column::of(&shapes.1, map.values())?;
                Values::Map(map, Box::new((keys, values)))
            }
        };
        Some(Column {
            nulls: array.nulls().filter(|nulls| nulls.null_count() > 0),
            values,
        })
    }

    /// Whether a row is null here.
    pub(super) fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Null) || self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }
}
