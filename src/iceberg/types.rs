//! Iceberg's types: primitives, structs, lists and maps, every field with its id (spec, "Schemas and Data Types").

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::error::FormatError;
use super::value::Value;

/// The coordinate reference system of a `geometry` or `geography` that names none.
/// The coordinate reference system of geometries and geographies that name none.
pub const DEFAULT_CRS: &str = "OGC:CRS84";
/// The edge interpolation algorithm of a `geography` that names none.
const DEFAULT_EDGE_ALGORITHM: &str = "spherical";

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

impl FromStr for PrimitiveType {
    type Err = FormatError;

    /// Reads a type string (spec, Appendix C), with optional blanks inside brackets, in any case of letters.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        let simple = match text.to_ascii_lowercase().as_str() {
            "unknown" => Self::Unknown,
            "boolean" => Self::Boolean,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "date" => Self::Date,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            "timestamptz" => Self::Timestamptz,
            "timestamp_ns" => Self::TimestampNs,
            "timestamptz_ns" => Self::TimestamptzNs,
            "string" => Self::String,
            "uuid" => Self::Uuid,
            "binary" => Self::Binary,
            "variant" => Self::Variant,
            "geometry" => Self::Geometry {
                crs: DEFAULT_CRS.to_owned(),
            },
            "geography" => Self::Geography {
                crs: DEFAULT_CRS.to_owned(),
                algorithm: DEFAULT_EDGE_ALGORITHM.to_owned(),
            },
            _ => return Self::with_arguments(text),
        };
        Ok(simple)
    }
}

impl PrimitiveType {
    fn with_arguments(text: &str) -> Result<Self, FormatError> {
        if let Some(arguments) = arguments(text, "decimal", '(', ')') {
            let (precision, scale) = arguments
                .split_once(',')
                .ok_or_else(|| not_a_type(text, "decimal(precision, scale)"))?;
            let precision = precision
                .trim()
                .parse::<u8>()
                .ok()
                .filter(|p| (1..=38).contains(p));
            let scale = scale.trim().parse::<u8>().ok();
            return match (precision, scale) {
                (Some(precision), Some(scale)) if scale <= precision => {
                    Ok(Self::Decimal { precision, scale })
                }
                _ => Err(not_a_type(
                    text,
                    "a precision from 1 to 38 and a scale from 0 to the precision",
                )),
            };
        }
        if let Some(length) = arguments(text, "fixed", '[', ']') {
            // No file format has wider ones.
            let length = length.trim().parse().ok();
            let length = length
                .filter(|length| i32::try_from(*length).is_ok())
                .ok_or_else(|| not_a_type(text, "fixed[length]"))?;
            return Ok(Self::Fixed(length));
        }
        if let Some(crs) = arguments(text, "geometry", '(', ')') {
            return Ok(Self::Geometry {
                crs: non_empty(crs, DEFAULT_CRS),
            });
        }
        if let Some(arguments) = arguments(text, "geography", '(', ')') {
            let (crs, algorithm) = arguments.rsplit_once(',').unwrap_or((arguments, ""));
            return Ok(Self::Geography {
                crs: non_empty(crs, DEFAULT_CRS),
                algorithm: non_empty(algorithm, DEFAULT_EDGE_ALGORITHM),
            });
        }
        Err(not_a_type(text, "a type of the table format"))
    }

    /// Whether a column of this type may have become one of type `to` (spec, "Schema Evolution", type promotion).
    ///
    /// A type promotes to itself.
    pub fn can_promote_to(&self, to: &PrimitiveType) -> bool {
        match (self, to) {
            (Self::Unknown, _) => true,
            (Self::Int, Self::Long) | (Self::Float, Self::Double) => true,
            (Self::Date, Self::Timestamp | Self::TimestampNs) => true,
            (
                Self::Decimal { precision, scale },
                Self::Decimal {
                    precision: wider,
                    scale: same,
                },
            ) => scale == same && precision <= wider,
            _ => self == to,
        }
    }

    /// Whether columns of this type can have no default but null (spec, "Default values").
    pub(super) fn defaults_to_null_only(&self) -> bool {
        matches!(
            self,
            Self::Unknown | Self::Variant | Self::Geometry { .. } | Self::Geography { .. }
        )
    }
}

/// What stands between the brackets of `name(…)`.
fn arguments<'a>(text: &'a str, name: &str, open: char, close: char) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(name.len())?;
    start
        .eq_ignore_ascii_case(name)
        .then_some(rest)?
        .trim()
        .strip_prefix(open)?
        .strip_suffix(close)
}

fn non_empty(text: &str, default: &str) -> String {
    match text.trim() {
        "" => default.to_owned(),
        text => text.to_owned(),
    }
}

fn not_a_type(text: &str, expected: &str) -> FormatError {
    let text: String = text.chars().take(100).collect();
    FormatError::invalid("type", format!("expected {expected}, found {text:?}"))
}

impl fmt::Display for PrimitiveType {
    /// The type string of the spec, which [`FromStr`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Unknown => "unknown",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamptz",
            Self::TimestampNs => "timestamp_ns",
            Self::TimestamptzNs => "timestamptz_ns",
            Self::String => "string",
            Self::Uuid => "uuid",
            Self::Binary => "binary",
            Self::Variant => "variant",
            Self::Decimal { precision, scale } => {
                return write!(f, "decimal({precision}, {scale})");
            }
            Self::Fixed(length) => return write!(f, "fixed[{length}]"),
            Self::Geometry { crs } if crs == DEFAULT_CRS => "geometry",
            Self::Geometry { crs } => return write!(f, "geometry({crs})"),
            Self::Geography { crs, algorithm } if algorithm == DEFAULT_EDGE_ALGORITHM => {
                return match crs.as_str() {
                    DEFAULT_CRS => f.write_str("geography"),
                    crs => write!(f, "geography({crs})"),
                };
            }
            Self::Geography { crs, algorithm } => {
                return write!(f, "geography({crs}, {algorithm})");
            }
        };
        f.write_str(name)
    }
}

impl fmt::Display for Type {
    /// `int`, `list<int>`, `map<string, int>`, `struct<1: a: required int, 2: b: optional string>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(primitive) => primitive.fmt(f),
            Self::List(list) => write!(f, "list<{}>", list.element.ty),
            Self::Map(map) => write!(f, "map<{}, {}>", map.key.ty, map.value.ty),
            Self::Struct(fields) => {
                f.write_str("struct<")?;
                for (i, field) in fields.fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    let presence = if field.required {
                        "required"
                    } else {
                        "optional"
                    };
                    write!(
                        f,
                        "{comma}{}: {}: {presence} {}",
                        field.id, field.name, field.ty
                    )?;
                }
                f.write_str(">")
            }
        }
    }
}

impl Type {
    /// The primitive type, unless this is a struct, list or map.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(primitive) => Some(primitive),
            _ => None,
        }
    }

    /// The fields directly under this type: a struct's fields, a list's element, a map's key and value.
    pub fn children(&self) -> Vec<&Arc<NestedField>> {
        match self {
            Self::Primitive(_) => Vec::new(),
            Self::Struct(fields) => fields.fields.iter().collect(),
            Self::List(list) => vec![&list.element],
            Self::Map(map) => vec![&map.key, &map.value],
        }
    }
}

#[cfg(test)]
mod tests;
