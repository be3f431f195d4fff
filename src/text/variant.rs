//! Variants as JSON: plain ones by [`binary`], shredded ones put together again (parquet-format,
//! `VariantShredding.md`).
//!
//! A shredded variant lies in a `value`, which is binary, and a `typed_value`, which is a column of the type that most
//! values are of:
//!
//! | `value` | `typed_value` | |
//! |---|---|---|
//! | null | null | missing: of an object, it has no such field; elsewhere the variant null |
//! | there | null | the value, of any type |
//! | null | there | the value, of the column's type |
//! | there | there | an object: `value` has the fields that no column is for |
//!
//! The JSON is that of the other columns: decimals, dates, times, UUIDs, bytes, NaN and the infinities are strings. The
//! fields of an object stand in the order of their names, so that shredding changes nothing in the text.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, ListArray, PrimitiveArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Fields, Int8Type, Int16Type};
use parquet::basic::LogicalType;
use parquet::schema::types::Type;

use super::columns::{Column, Shape, element_node, leaf};
use super::json::{self, entries, push_string, separate};
use super::values::{BadValue, push_integer};
use crate::iceberg::variant::{Names, Object, VariantError};

mod binary;

#[cfg(test)]
mod tests;

/// What a variant's columns are.
#[derive(Debug)]
pub(super) struct VariantShape {
    /// Which child is the metadata.
    metadata: usize,
    wrapper: WrapperShape,
}

/// `value` and `typed_value`.
#[derive(Debug)]
struct WrapperShape {
    value: Option<usize>,
    typed: Option<(usize, TypedShape)>,
}

#[derive(Debug)]
enum TypedShape {
    Byte,
    Short,
    Leaf(Shape),
    /// Name, place and columns of each field, in the order of the names.
    Object(Vec<(String, usize, WrapperShape)>),
    List(Box<WrapperShape>),
}

impl VariantShape {
    /// Whether a group is a variant.
    pub(super) fn is(node: &Type) -> bool {
        let logical = node.get_basic_info().logical_type_ref();
        matches!(logical, Some(LogicalType::Variant(_)))
    }

    /// Nothing where the children are not those of a variant.
    pub(super) fn of(node: &Type, fields: &Fields) -> Option<VariantShape> {
        let (metadata, field) = fields.find("metadata")?;
        is_binary(field.data_type()).then_some(())?;
        Some(VariantShape {
            metadata,
            wrapper: WrapperShape::of(node, fields)?,
        })
    }
}

impl WrapperShape {
    fn of(node: &Type, fields: &Fields) -> Option<WrapperShape> {
        let value = match fields.find("value") {
            Some((index, field)) => Some(is_binary(field.data_type()).then_some(index)?),
            None => None,
        };
        let typed = match fields.find("typed_value") {
            Some((index, field)) => {
                let node = node.get_fields().get(index)?;
                Some((index, TypedShape::of(node, field.data_type())?))
            }
            None => None,
        };
        (value.is_some() || typed.is_some()).then_some(WrapperShape { value, typed })
    }

    /// Of a group that is an object's field or a list's element.
    fn of_group(node: &Type, ty: &DataType) -> Option<WrapperShape> {
        match ty {
            DataType::Struct(fields) if node.is_group() => WrapperShape::of(node, fields),
            _ => None,
        }
    }
}

impl TypedShape {
    fn of(node: &Type, ty: &DataType) -> Option<TypedShape> {
        Some(match ty {
            DataType::Int8 => TypedShape::Byte,
            DataType::Int16 => TypedShape::Short,
            DataType::Struct(fields) if node.is_group() => {
                let nodes = node.get_fields().iter();
                let fields = fields.iter().zip(nodes).enumerate();
                let fields = fields.map(|(index, (field, node))| {
                    let wrapper = WrapperShape::of_group(node, field.data_type())?;
                    Some((field.name().clone(), index, wrapper))
                });
                let mut fields = fields.collect::<Option<Vec<_>>>()?;
                fields.sort_by(|one, other| one.0.cmp(&other.0));
                TypedShape::Object(fields)
            }
            DataType::List(element) => {
                let node = element_node(node)?;
                TypedShape::List(Box::new(WrapperShape::of_group(node, element.data_type())?))
            }
            _ => TypedShape::Leaf(leaf(node, ty)?),
        })
    }
}

fn is_binary(ty: &DataType) -> bool {
    matches!(ty, DataType::Binary | DataType::BinaryView)
}

/// A column of bytes.
pub(super) enum Bytes<'a> {
    Array(&'a BinaryArray),
    View(&'a BinaryViewArray),
}

impl<'a> Bytes<'a> {
    pub(super) fn of(array: &'a ArrayRef) -> Option<Bytes<'a>> {
        match array.as_binary_view_opt() {
            Some(views) => Some(Bytes::View(views)),
            None => array.as_binary_opt().map(Bytes::Array),
        }
    }

    pub(super) fn value(&self, row: usize) -> &'a [u8] {
        match self {
            Bytes::Array(array) => array.value(row),
            Bytes::View(array) => array.value(row),
        }
    }
}

/// A batch's variants.
pub(super) struct VariantColumn<'a> {
    metadata: Bytes<'a>,
    wrapper: Wrapper<'a>,
}

struct Wrapper<'a> {
    nulls: Option<&'a NullBuffer>,
    value: Option<(Option<&'a NullBuffer>, Bytes<'a>)>,
    typed: Option<(Option<&'a NullBuffer>, Typed<'a>)>,
}

enum Typed<'a> {
    Byte(&'a PrimitiveArray<Int8Type>),
    Short(&'a PrimitiveArray<Int16Type>),
    Leaf(Column<'a>),
    Object(Vec<(&'a str, Wrapper<'a>)>),
    List(&'a ListArray, Box<Wrapper<'a>>),
}

impl<'a> VariantColumn<'a> {
    /// The variants that an array of this shape holds; nothing where it is of another.
    pub(super) fn of(shape: &'a VariantShape, array: &'a ArrayRef) -> Option<VariantColumn<'a>> {
        let children = array.as_struct_opt()?.columns();
        Some(VariantColumn {
            metadata: Bytes::of(children.get(shape.metadata)?)?,
            wrapper: Wrapper::of(&shape.wrapper, array)?,
        })
    }

    /// Writes a row that is not null.
    pub(super) fn push(&self, out: &mut Vec<u8>, row: usize) -> Result<(), BadValue> {
        let names = Names::parse(self.metadata.value(row))?;
        self.wrapper.push(out, &names, row)
    }
}

impl<'a> Wrapper<'a> {
    fn of(shape: &'a WrapperShape, array: &'a ArrayRef) -> Option<Wrapper<'a>> {
        let children = array.as_struct_opt()?.columns();
        let value = match shape.value {
            Some(index) => {
                let child = children.get(index)?;
                Some((child.nulls(), Bytes::of(child)?))
            }
            None => None,
        };
        let typed = match &shape.typed {
            Some((index, shape)) => {
                let child = children.get(*index)?;
                Some((child.nulls(), Typed::of(shape, child)?))
            }
            None => None,
        };
        Some(Wrapper {
            nulls: array.nulls(),
            value,
            typed,
        })
    }

    /// What lies in `value` and in `typed_value`.
    fn at(&self, row: usize) -> (Option<&'a [u8]>, Option<&Typed<'a>>) {
        let there = |nulls: &Option<&NullBuffer>| nulls.is_none_or(|nulls| nulls.is_valid(row));
        if !there(&self.nulls) {
            return (None, None);
        }
        let value = self.value.as_ref().filter(|(nulls, _)| there(nulls));
        let typed = self.typed.as_ref().filter(|(nulls, _)| there(nulls));
        (
            value.map(|(_, bytes)| bytes.value(row)),
            typed.map(|(_, typed)| typed),
        )
    }

    /// Nests no deeper than the columns, and below them than [`binary`] lets it.
    fn push(&self, out: &mut Vec<u8>, names: &Names<'a>, row: usize) -> Result<(), BadValue> {
        match self.at(row) {
            (None, None) => out.extend_from_slice(b"null"),
            (Some(value), None) => {
                binary::push_value(out, names, value, 0)?;
            }
            (None, Some(typed)) => typed.push(out, names, row)?,
            (Some(value), Some(Typed::Object(fields))) if Object::is(value) => {
                push_object(out, names, fields, Some(Object::parse(names, value)?), row)?;
            }
            (Some(_), Some(_)) => return Err(VariantError::Conflict.into()),
        }
        Ok(())
    }
}

impl<'a> Typed<'a> {
    fn of(shape: &'a TypedShape, array: &'a ArrayRef) -> Option<Typed<'a>> {
        Some(match shape {
            TypedShape::Byte => Typed::Byte(array.as_primitive_opt()?),
            TypedShape::Short => Typed::Short(array.as_primitive_opt()?),
            TypedShape::Leaf(shape) => Typed::Leaf(Column::of(shape, array)?),
            TypedShape::Object(fields) => {
                let children = array.as_struct_opt()?.columns();
                let fields = fields.iter().map(|(name, index, shape)| {
                    let wrapper = Wrapper::of(shape, children.get(*index)?)?;
                    Some((name.as_str(), wrapper))
                });
                Typed::Object(fields.collect::<Option<_>>()?)
            }
            TypedShape::List(element) => {
                let list = array.as_list_opt::<i32>()?;
                Typed::List(list, Box::new(Wrapper::of(element, list.values())?))
            }
        })
    }

    fn push(&self, out: &mut Vec<u8>, names: &Names<'a>, row: usize) -> Result<(), BadValue> {
        match self {
            Typed::Byte(array) => push_integer(out, array.value(row)),
            Typed::Short(array) => push_integer(out, array.value(row)),
            Typed::Leaf(column) => json::push_value(out, &column.values, row)?,
            Typed::Object(fields) => push_object(out, names, fields, None, row)?,
            Typed::List(list, element) => {
                out.push(b'[');
                for (index, at) in entries(list.value_offsets(), row).enumerate() {
                    separate(out, index);
                    element.push(out, names, at)?;
                }
                out.push(b']');
            }
        }
        Ok(())
    }
}

/// An object of its shredded fields, and of those that are not.
fn push_object<'a>(
    out: &mut Vec<u8>,
    names: &Names<'a>,
    shredded: &[(&'a str, Wrapper<'a>)],
    mut rest: Option<Object<'a>>,
    row: usize,
) -> Result<(), BadValue> {
    let others = rest.as_mut().map(|rest| std::mem::take(&mut rest.fields));
    let mut others = others.unwrap_or_default().into_iter().peekable();
    let mut shredded = shredded.iter().peekable();
    let mut count = 0;
    let lead = |out: &mut Vec<u8>, name, count: &mut usize| {
        separate(out, *count);
        push_string(out, name);
        out.push(b':');
        *count += 1;
    };
    out.push(b'{');
    loop {
        let next = shredded.peek().map(|(name, _)| *name);
        if let Some((name, _)) = others.peek() {
            // A reader may look for a shredded field in its columns alone: it cannot be here, missing there or not.
            if next == Some(name) {
                return Err(VariantError::Twice((*name).to_owned()).into());
            }
        }
        let other = others.next_if(|(name, _)| next.is_none_or(|next| *name < next));
        if let (Some((name, value)), Some(rest)) = (other, &mut rest) {
            lead(out, name, &mut count);
            binary::push_field(out, names, rest, value, 0)?;
        } else if let Some((name, wrapper)) = shredded.next() {
            if !matches!(wrapper.at(row), (None, None)) {
                lead(out, name, &mut count);
                wrapper.push(out, names, row)?;
            }
        } else {
            break;
        }
    }
    out.push(b'}');
    Ok(())
}
