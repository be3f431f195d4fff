//! Iceberg's types: primitives, structs, lists and maps, every field with its id (spec, "Schemas and Data Types").

use std::fmt;
use std::sync::Arc;

use super::value::Value;

/// The id of a field, unique within a table for ever (spec, "Schema Evolution").
///
/// Ids above 2147483447 are reserved for metadata columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub i32);

impl fmt::Display for FieldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A primitive type (spec, "Primitive Types"), or one of the v3 semi-structured types that are stored in one column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    /// v3: a column whose type is not known yet; always null.
    Unknown,
    Boolean,
    /// 32 bits, signed.
    Int,
    /// 64 bits, signed.
    Long,
    Float,
    Double,
    /// `precision` is 1 to 38 digits, `scale` 0 to `precision`.
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since 1970-01-01T00:00:00, without a zone.
    Timestamp,
    /// Microseconds since 1970-01-01T00:00:00Z.
    Timestamptz,
    /// v3: nanoseconds since 1970-01-01T00:00:00, without a zone.
    TimestampNs,
    /// v3: nanoseconds since 1970-01-01T00:00:00Z.
    TimestamptzNs,
    String,
    Uuid,
    /// So many bytes, always.
    Fixed(u32),
    Binary,
    /// v3.
    Variant,
    /// v3: WKB in a coordinate reference system.
    Geometry {
        crs: String,
    },
    /// v3: WKB in a coordinate reference system, with an edge interpolation algorithm.
    Geography {
        crs: String,
        algorithm: String,
    },
}

/// Any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Primitive(PrimitiveType),
    Struct(StructType),
    List(Box<ListType>),
    Map(Box<MapType>),
}

/// The fields of a struct, in the order the schema gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructType {
    pub fields: Vec<Arc<NestedField>>,
}

/// A list's only child.
#[derive(Clone, Debug, PartialEq)]
pub struct ListType {
    /// Its name is always `element`.
    pub element: Arc<NestedField>,
}

/// A map's two children. The key is always required.
#[derive(Clone, Debug, PartialEq)]
pub struct MapType {
    /// Its name is always `key`.
    pub key: Arc<NestedField>,
    /// Its name is always `value`.
    pub value: Arc<NestedField>,
}

/// A named field of a struct, or the element, key or value of a list or map.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedField {
    pub id: FieldId,
    pub name: String,
    pub required: bool,
    pub ty: Type,
    pub doc: Option<String>,
    /// v3: what rows written before the field was added hold (spec, "Default values"). `None` stands for null.
    pub initial_default: Option<Value>,
}
