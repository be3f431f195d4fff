//! The writer's schema of an Avro file (Avro spec, "Schema Declaration"), with the ids that Iceberg adds to fields.
//!
//! Names are taken as they are: many writers put names there that Avro does not allow, and nothing is resolved by them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::iceberg::error::FormatError;
use crate::iceberg::json::{Object, mismatch, required};

/// Levels of schemas in one another, also by way of named types. Manifests have about 6.
const MAX_DEPTH: usize = 64;

/// A schema. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub(crate) shape: Shape,
    pub(crate) logical: Option<Logical>,
    /// Of an array or a map.
    pub(crate) ids: ItemIds,
    /// Levels under and including this one.
    depth: usize,
}

/// The Iceberg field ids of what an array or a map holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ItemIds {
    pub(crate) element: Option<i32>,
    pub(crate) key: Option<i32>,
    pub(crate) value: Option<i32>,
}

/// How a value is encoded.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    /// Its symbols; a value is the number of one.
    Enum(Arc<[String]>),
    /// Its length in bytes.
    Fixed(usize),
    Array(Arc<Schema>),
    /// Keys are strings.
    Map(Arc<Schema>),
    Union(Arc<[Schema]>),
    Record(Arc<Record>),
}

/// What an encoded value means. Types that are not known are left out, as Avro asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logical {
    Date,
    TimeMillis,
    TimeMicros,
    TimestampMillis,
    TimestampMicros,
    TimestampNanos,
    /// Zero where the schema says nothing sensible.
    Decimal {
        precision: u8,
        scale: u8,
    },
    Uuid,
    /// An array of records of a key and a value.
    Map,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug)]
pub(crate) struct Field {
    /// The Iceberg field id.
    pub(crate) id: Option<i32>,
    pub(crate) name: String,
    pub(crate) schema: Schema,
}

impl Record {
    /// The id to read `field` by: its own, or, where no field of this record has an id at all, what `by_name` knows.
    pub(crate) fn id_of(
        &self,
        field: &Field,
        by_name: impl Fn(&str) -> Option<i32>,
    ) -> Option<i32> {
        match self.fields.iter().any(|field| field.id.is_some()) {
            true => field.id,
            false => by_name(&field.name),
        }
    }
}

impl Schema {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let json: Json =
            serde_json::from_slice(text).map_err(|e| FormatError::invalid("", e.to_string()))?;
        Parser {
            names: HashMap::new(),
            around: Vec::new(),
        }
        .schema(&json, "")
    }

    fn new(shape: Shape) -> Result<Self, FormatError> {
        let below = match &shape {
            Shape::Array(inner) | Shape::Map(inner) => inner.depth,
            Shape::Union(branches) => branches
                .iter()
                .map(|branch| branch.depth)
                .max()
                .unwrap_or(0),
            Shape::Record(record) => record
                .fields
                .iter()
                .map(|field| field.schema.depth)
                .max()
                .unwrap_or(0),
            _ => 0,
        };
        if below >= MAX_DEPTH {
            return Err(FormatError::invalid(
                "",
                format!("is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        Ok(Self {
            shape,
            logical: None,
            ids: ItemIds::default(),
            depth: below + 1,
        })
    }
}

struct Parser {
    /// Named types by full name. A type enters when it is complete, so none can hold itself.
    names: HashMap<String, Schema>,
    /// Full names of the records around this place.
    around: Vec<String>,
}

impl Parser {
    fn schema(&mut self, json: &Json, namespace: &str) -> Result<Schema, FormatError> {
        match json {
            Json::String(name) => self.named(name, namespace),
            Json::Array(branches) => {
                let branches = branches.iter().map(|branch| self.schema(branch, namespace));
                Schema::new(Shape::Union(branches.collect::<Result<_, _>>()?))
            }
            Json::Object(_) => self.object(Object::of(json)?, namespace),
            _ => Err(mismatch("", "a schema", json)),
        }
    }

    fn named(&self, name: &str, namespace: &str) -> Result<Schema, FormatError> {
        let shape = match name {
            "null" => Shape::Null,
            "boolean" => Shape::Boolean,
            "int" => Shape::Int,
            "long" => Shape::Long,
            "float" => Shape::Float,
            "double" => Shape::Double,
            "bytes" => Shape::Bytes,
            "string" => Shape::String,
            _ => {
                let full = full_name(name, namespace);
                if self.around.contains(&full) {
                    return Err(FormatError::unsupported(format!(
                        "an Avro record that holds itself ({name:?})"
                    )));
                }
                let known = self.names.get(&full).or_else(|| self.names.get(name));
                return known.cloned().ok_or_else(|| {
                    FormatError::invalid(
                        "",
                        format!("{name:?} is no type defined before this place"),
                    )
                });
            }
        };
        Schema::new(shape)
    }

    fn object(&mut self, object: Object<'_>, namespace: &str) -> Result<Schema, FormatError> {
        let ty = required("type", object.get("type"))?;
        let Some(ty) = ty.as_str() else {
            return self.schema(ty, namespace);
        };
        let mut schema = match ty {
            "array" => Schema::new(Shape::Array(Arc::new(
                self.child(object, "items", namespace)?,
            )))?,
            "map" => Schema::new(Shape::Map(Arc::new(
                self.child(object, "values", namespace)?,
            )))?,
            "record" | "error" | "enum" | "fixed" => self.definition(ty, object, namespace)?,
            _ => self.named(ty, namespace)?,
        };
        schema.logical = logical(object)?.or(schema.logical);
        schema.ids = ItemIds {
            element: object.i32("element-id")?,
            key: object.i32("key-id")?,
            value: object.i32("value-id")?,
        };
        Ok(schema)
    }

    fn child(
        &mut self,
        object: Object<'_>,
        key: &str,
        namespace: &str,
    ) -> Result<Schema, FormatError> {
        self.schema(required(key, object.get(key))?, namespace)
            .map_err(|e| e.within(key))
    }

    fn definition(
        &mut self,
        ty: &str,
        object: Object<'_>,
        namespace: &str,
    ) -> Result<Schema, FormatError> {
        let name = required("name", object.str("name")?)?;
        let namespace = match (name.rsplit_once('.'), object.str("namespace")?) {
            (Some((namespace, _)), _) => namespace,
            (None, Some(namespace)) => namespace,
            (None, None) => namespace,
        };
        let schema = match ty {
            "enum" => {
                let symbols = object.each("symbols", |json| match json.as_str() {
                    Some(symbol) => Ok(symbol.to_owned()),
                    None => Err(FormatError::invalid("symbols", "has one that is no string")),
                })?;
                Schema::new(Shape::Enum(symbols.into()))?
            }
            "fixed" => {
                let size = required("size", object.i32("size")?)?;
                let size = usize::try_from(size)
                    .map_err(|_| FormatError::invalid("size", "is negative"))?;
                let mut schema = Schema::new(Shape::Fixed(size))?;
                schema.logical = logical(object)?;
                schema
            }
            _ => {
                required("fields", object.array("fields")?)?;
                self.around.push(full_name(name, namespace));
                let fields = object.each("fields", |json| self.field(json, namespace))?;
                self.around.pop();
                Schema::new(Shape::Record(Arc::new(Record { fields })))?
            }
        };
        self.names
            .insert(full_name(name, namespace), schema.clone());
        Ok(schema)
    }

    fn field(&mut self, json: &Json, namespace: &str) -> Result<Field, FormatError> {
        let object = Object::of(json)?;
        let name = required("name", object.str("name")?)?.to_owned();
        let schema = self.child(object, "type", namespace)?;
        Ok(Field {
            id: object.i32("field-id")?,
            name,
            schema,
        })
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

fn logical(object: Object<'_>) -> Result<Option<Logical>, FormatError> {
    Ok(match object.str("logicalType")? {
        Some("date") => Some(Logical::Date),
        Some("time-millis") => Some(Logical::TimeMillis),
        Some("time-micros") => Some(Logical::TimeMicros),
        Some("timestamp-millis" | "local-timestamp-millis") => Some(Logical::TimestampMillis),
        Some("timestamp-micros" | "local-timestamp-micros") => Some(Logical::TimestampMicros),
        Some("timestamp-nanos" | "local-timestamp-nanos") => Some(Logical::TimestampNanos),
        Some("decimal") => {
            let digits = |key| {
                let digits = object.i32(key)?.unwrap_or(0);
                Ok::<_, FormatError>(u8::try_from(digits).unwrap_or(0))
            };
            Some(Logical::Decimal {
                precision: digits("precision")?,
                scale: digits("scale")?,
            })
        }
        Some("map") => Some(Logical::Map),
        Some("uuid") => Some(Logical::Uuid),
        _ => None,
    })
}
