//! Shredded variants to plain ones, in Arrow's arrays (parquet-format, `VariantShredding.md`, "Reconstructing a Shredded
//! Variant").
//!
//! | `value` | `typed_value` | |
//! |---|---|---|
//! | null | null | missing: of an object, it has no such field; elsewhere the variant null |
//! | there | null | the value, of any type |
//! | null | there | the value, of the column's type |
//! | there | there | an object: `value` has the fields that no column is for |

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, LargeBinaryBuilder, ListArray, MapArray, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, FieldRef, Fields, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampNanosecondType,
};

use super::WHAT;
use crate::iceberg::variant::build::{self, Dictionary, Primitive};
use crate::iceberg::variant::{Object, VariantError, value_len};
use crate::parquet::DecodeError;
use crate::rows::file_schema::{Annotation, FileSchema, NodeId, Physical};

/// A column with the variants in it put together. Recursion goes down the file's schema, whose depth parsing has
/// bounded.
pub fn assemble(
    schema: &FileSchema,
    node: NodeId,
    array: &ArrayRef,
    variants: &BTreeSet<NodeId>,
) -> Result<ArrayRef, DecodeError> {
    assemble_in(schema, node, array, variants, None)
}

/// As [`assemble`], within a struct that is there in these rows alone: a required field of it has no nulls of its own.
fn assemble_in(
    schema: &FileSchema,
    node: NodeId,
    array: &ArrayRef,
    variants: &BTreeSet<NodeId>,
    there: Option<&NullBuffer>,
) -> Result<ArrayRef, DecodeError> {
    if variants.contains(&node) {
        return variant(schema, node, array, there);
    }
    match array.data_type() {
        DataType::Struct(fields) => {
            let array = array.as_struct();
            let there = NullBuffer::union(there, array.nulls());
            let mut columns = Vec::new();
            for (field, column) in fields.iter().zip(array.columns()) {
                let child = schema.child(node, field.name()).ok_or_else(odd)?;
                columns.push(assemble_in(
                    schema,
                    child,
                    column,
                    variants,
                    there.as_ref(),
                )?);
            }
            let fields: Fields = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| retyped(field, column))
                .collect();
            let made = StructArray::try_new(fields, columns, array.nulls().cloned());
            Ok(Arc::new(made.map_err(|_| odd())?))
        }
        DataType::List(field) => {
            let array = array.as_list::<i32>();
            let element = schema.list_shape(node).ok_or_else(odd)?.element;
            // Where a repeated node is its own element, we are in it already.
            let values = if element == node {
                below(schema, node, array.values(), variants)?
            } else {
                assemble(schema, element, array.values(), variants)?
            };
            let made = ListArray::try_new(
                retyped(field, &values),
                array.offsets().clone(),
                values,
                array.nulls().cloned(),
            );
            Ok(Arc::new(made.map_err(|_| odd())?))
        }
        DataType::Map(field, sorted) => {
            let array = array.as_map();
            let shape = schema.map_shape(node).ok_or_else(odd)?;
            let entries = array.entries();
            let (DataType::Struct(fields), [keys, values]) =
                (entries.data_type(), entries.columns())
            else {
                return Err(odd());
            };
            let values = assemble(schema, shape.value, values, variants)?;
            let columns = vec![Arc::clone(keys), values];
            let fields: Fields = fields
                .iter()
                .zip(&columns)
                .map(|(field, column)| retyped(field, column))
                .collect();
            let entries = StructArray::try_new(fields, columns, entries.nulls().cloned());
            let entries = entries.map_err(|_| odd())?;
            let field = (**field).clone();
            let field = field.with_data_type(entries.data_type().clone());
            let made = MapArray::try_new(
                Arc::new(field),
                array.offsets().clone(),
                entries,
                array.nulls().cloned(),
                *sorted,
            );
            Ok(Arc::new(made.map_err(|_| odd())?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// The values of a repeated node.
fn below(
    schema: &FileSchema,
    node: NodeId,
    array: &ArrayRef,
    variants: &BTreeSet<NodeId>,
) -> Result<ArrayRef, DecodeError> {
    match array.data_type() {
        DataType::List(_) | DataType::Map(..) => Err(odd()),
        _ => assemble(schema, node, array, variants),
    }
}

fn retyped(field: &FieldRef, column: &ArrayRef) -> FieldRef {
    let field = (**field).clone();
    Arc::new(field.with_data_type(column.data_type().clone()))
}

fn odd() -> DecodeError {
    DecodeError::unsupported("a shredded variant of an unknown form")
}

fn bad(error: &VariantError) -> DecodeError {
    DecodeError::corrupt(WHAT, error.to_string())
}

fn variant(
    schema: &FileSchema,
    node: NodeId,
    array: &ArrayRef,
    there: Option<&NullBuffer>,
) -> Result<ArrayRef, DecodeError> {
    let group = array.as_struct_opt().ok_or_else(odd)?;
    let wrapper = Wrapper::of(schema, node, array)?;
    let metadata = group.column_by_name("metadata").ok_or_else(odd)?;
    let metadata = metadata.as_binary_opt::<i32>().ok_or_else(odd)?;
    let (mut all_metadata, mut values) = (LargeBinaryBuilder::new(), LargeBinaryBuilder::new());
    for row in 0..group.len() {
        if group.is_null(row) || there.is_some_and(|there| there.is_null(row)) {
            all_metadata.append_value([]);
            values.append_value([]);
            continue;
        }
        if metadata.is_null(row) {
            return Err(DecodeError::corrupt(WHAT, "a variant without metadata"));
        }
        let made = Dictionary::parse(metadata.value(row)).and_then(|mut names| {
            let value = wrapper.value(&mut names, row)?;
            Ok((names.metadata()?, value))
        });
        let (names, value) = made.map_err(|error| bad(&error))?;
        all_metadata.append_value(names);
        values.append_value(value.unwrap_or_else(null));
    }
    let field = |name| Field::new(name, DataType::LargeBinary, false);
    let made = StructArray::try_new(
        Fields::from(vec![field("metadata"), field("value")]),
        vec![Arc::new(all_metadata.finish()), Arc::new(values.finish())],
        group.nulls().cloned(),
    );
    Ok(Arc::new(made.map_err(|_| odd())?))
}

/// The variant null.
fn null() -> Vec<u8> {
    build::primitive(Primitive::Null, &[])
}

/// `value` and `typed_value` of a variant, a field or an element.
struct Wrapper<'a> {
    group: &'a StructArray,
    value: Option<&'a arrow::array::BinaryArray>,
    typed: Option<(&'a ArrayRef, Typed<'a>)>,
}

/// What a `typed_value` is.
enum Typed<'a> {
    /// A primitive type; of a decimal, which of the three.
    Leaf(&'a ArrayRef, Primitive),
    /// In the order of the names.
    Object(Vec<(&'a str, Wrapper<'a>)>),
    List(&'a ListArray, Box<Wrapper<'a>>),
}

impl<'a> Wrapper<'a> {
    fn of(
        schema: &'a FileSchema,
        node: NodeId,
        array: &'a ArrayRef,
    ) -> Result<Wrapper<'a>, DecodeError> {
        let group = array.as_struct_opt().ok_or_else(odd)?;
        let value = match group.column_by_name("value") {
            Some(value) => Some(value.as_binary_opt().ok_or_else(odd)?),
            None => None,
        };
        let typed = match group.column_by_name("typed_value") {
            Some(typed) => {
                let node = schema.child(node, "typed_value").ok_or_else(odd)?;
                Some((typed, Typed::of(schema, node, typed)?))
            }
            None => None,
        };
        Ok(Wrapper {
            group,
            value,
            typed,
        })
    }

    /// The value in a row; `None` where it is missing. Nests no deeper than the columns.
    fn value(
        &self,
        names: &mut Dictionary<'a>,
        row: usize,
    ) -> Result<Option<Vec<u8>>, VariantError> {
        if self.group.is_null(row) {
            return Ok(None);
        }
        let value = self.value.filter(|value| value.is_valid(row));
        let typed = self.typed.as_ref().filter(|(array, _)| array.is_valid(row));
        match (value.map(|value| value.value(row)), typed) {
            (None, None) => Ok(None),
            (Some(value), None) => {
                // What follows it would be no part of it.
                let value = value.get(..value_len(value)?).ok_or(VariantError::Short)?;
                Ok(Some(value.to_vec()))
            }
            (None, Some((_, typed))) => typed.value(names, row).map(Some),
            (Some(value), Some((_, Typed::Object(fields)))) if Object::is(value) => {
                let rest = Object::parse(names.names(), value)?;
                object(names, fields, Some(rest), row).map(Some)
            }
            (Some(_), Some(_)) => Err(VariantError::Conflict),
        }
    }
}

impl<'a> Typed<'a> {
    fn of(
        schema: &'a FileSchema,
        node: NodeId,
        array: &'a ArrayRef,
    ) -> Result<Typed<'a>, DecodeError> {
        Ok(match array.data_type() {
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let fields = columns.map(|(field, column)| {
                    let name = field.name().as_str();
                    let child = schema.child(node, name).ok_or_else(odd)?;
                    Ok((name, Wrapper::of(schema, child, column)?))
                });
                let mut fields = fields.collect::<Result<Vec<_>, DecodeError>>()?;
                fields.sort_by_key(|(name, _)| *name);
                Typed::Object(fields)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let element = schema.list_shape(node).ok_or_else(odd)?.element;
                let wrapper = Wrapper::of(schema, element, list.values())?;
                Typed::List(list, Box::new(wrapper))
            }
            ty => {
                let leaf = schema.get(node).ok_or_else(odd)?;
                let physical = leaf.leaf.map(|leaf| leaf.physical);
                let primitive = primitive_of(ty, physical, leaf.annotation).ok_or_else(|| {
                    DecodeError::unsupported(format!("a variant shredded as {ty}"))
                })?;
                Typed::Leaf(array, primitive)
            }
        })
    }

    fn value(&self, names: &mut Dictionary<'a>, row: usize) -> Result<Vec<u8>, VariantError> {
        match self {
            Typed::Leaf(array, ty) => leaf(array, *ty, row),
            Typed::Object(fields) => object(names, fields, None, row),
            Typed::List(list, element) => {
                let offsets = list.value_offsets();
                let at = |index: usize| offsets.get(index).copied().unwrap_or(0);
                let range = at(row)..at(row + 1);
                let values = range.map(|at| {
                    let at = usize::try_from(at).map_err(|_| VariantError::Offset)?;
                    Ok(element.value(names, at)?.unwrap_or_else(null))
                });
                build::array(&values.collect::<Result<Vec<_>, VariantError>>()?)
            }
        }
    }
}

/// An object of its shredded fields, and of those that are not.
fn object<'a>(
    names: &mut Dictionary<'a>,
    shredded: &[(&'a str, Wrapper<'a>)],
    rest: Option<Object<'a>>,
    row: usize,
) -> Result<Vec<u8>, VariantError> {
    let mut fields: Vec<(&'a str, Vec<u8>)> = Vec::new();
    if let Some(mut rest) = rest {
        for (name, value) in std::mem::take(&mut rest.fields) {
            // A reader may look for a shredded field in its columns alone: it cannot be here, missing there or not.
            if shredded
                .binary_search_by_key(&name, |(name, _)| name)
                .is_ok()
            {
                return Err(VariantError::Twice(name.to_owned()));
            }
            let len = value_len(value)?;
            rest.take(len)?;
            let value = value.get(..len).ok_or(VariantError::Short)?;
            fields.push((name, value.to_vec()));
        }
    }
    for (name, wrapper) in shredded {
        if let Some(value) = wrapper.value(names, row)? {
            fields.push((name, value));
        }
    }
    fields.sort_by_key(|(name, _)| *name);
    let numbered = fields.into_iter().map(|(name, value)| {
        let number = names.number(name)?;
        Ok((number, value))
    });
    build::object(&numbered.collect::<Result<Vec<_>, VariantError>>()?)
}

/// The variant type of a column ("Shredded Value Types").
fn primitive_of(
    ty: &DataType,
    physical: Option<Physical>,
    annotation: Annotation,
) -> Option<Primitive> {
    if matches!(annotation, Annotation::Other(_)) {
        return None;
    }
    Some(match ty {
        DataType::Boolean => Primitive::True,
        DataType::Int8 => Primitive::Int8,
        DataType::Int16 => Primitive::Int16,
        DataType::Int32 => Primitive::Int32,
        DataType::Int64 => Primitive::Int64,
        DataType::Float32 => Primitive::Float,
        DataType::Float64 => Primitive::Double,
        DataType::Decimal128(_, 0..=38) => match physical? {
            Physical::Int32 => Primitive::Decimal4,
            Physical::Int64 => Primitive::Decimal8,
            _ => Primitive::Decimal16,
        },
        DataType::Date32 => Primitive::Date,
        DataType::Time64(TimeUnit::Microsecond) => Primitive::Time,
        // Arrow makes timestamps of INT96 too, which is no type of a variant.
        DataType::Timestamp(unit, zone) if physical == Some(Physical::Int64) => {
            match (unit, zone.is_some()) {
                (TimeUnit::Microsecond, true) => Primitive::Timestamptz,
                (TimeUnit::Microsecond, false) => Primitive::Timestamp,
                (TimeUnit::Nanosecond, true) => Primitive::TimestamptzNanos,
                (TimeUnit::Nanosecond, false) => Primitive::TimestampNanos,
                _ => return None,
            }
        }
        DataType::Binary => Primitive::Binary,
        DataType::Utf8 => Primitive::String,
        DataType::FixedSizeBinary(16) if annotation == Annotation::Uuid => Primitive::Uuid,
        _ => return None,
    })
}

fn leaf(array: &ArrayRef, ty: Primitive, row: usize) -> Result<Vec<u8>, VariantError> {
    macro_rules! number {
        ($of:ty) => {
            build::primitive(ty, &array.as_primitive::<$of>().value(row).to_le_bytes())
        };
    }
    Ok(match ty {
        Primitive::Null => null(),
        Primitive::True | Primitive::False => {
            let ty = match array.as_boolean().value(row) {
                true => Primitive::True,
                false => Primitive::False,
            };
            build::primitive(ty, &[])
        }
        Primitive::Int8 => number!(Int8Type),
        Primitive::Int16 => number!(Int16Type),
        Primitive::Int32 => number!(Int32Type),
        Primitive::Int64 => number!(Int64Type),
        Primitive::Float => number!(Float32Type),
        Primitive::Double => number!(Float64Type),
        Primitive::Date => number!(Date32Type),
        Primitive::Time => number!(Time64MicrosecondType),
        Primitive::Timestamp | Primitive::Timestamptz => number!(TimestampMicrosecondType),
        Primitive::TimestampNanos | Primitive::TimestamptzNanos => {
            number!(TimestampNanosecondType)
        }
        Primitive::Decimal4 | Primitive::Decimal8 | Primitive::Decimal16 => {
            let array = array.as_primitive::<Decimal128Type>();
            let scale = u8::try_from(array.scale()).map_err(|_| VariantError::Large)?;
            let unscaled = array.value(row).to_le_bytes();
            // A column of 4 or 8 bytes has no wider values.
            let width = match ty {
                Primitive::Decimal4 => 4,
                Primitive::Decimal8 => 8,
                _ => 16,
            };
            build::decimal(ty, scale, unscaled.get(..width).unwrap_or(&unscaled))
        }
        Primitive::Binary => build::binary(array.as_binary::<i32>().value(row))?,
        Primitive::String => build::string(array.as_string::<i32>().value(row))?,
        Primitive::Uuid => build::primitive(ty, array.as_fixed_size_binary().value(row)),
    })
}
