//! Schemas as JSON (spec, Appendix C, "Schemas"), read and written.
//!
//! Nesting and the number of fields are bounded, so no metadata file can exhaust stack or memory.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Schema, SchemaId};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::{Object, as_i32, mismatch, required};
use crate::iceberg::types::{FieldId, ListType, MapType, NestedField, StructType, Type};
use crate::iceberg::value::Value;

/// Levels of structs, lists and maps in one another; real tables stay under 20.
const MAX_DEPTH: usize = 100;
/// Fields in one schema, nested ones too; the widest real tables have some 10,000.
const MAX_FIELDS: usize = 100_000;

impl Schema {
    /// Reads a schema; one without a `schema-id` (v1) has id 0.
    pub fn from_json(json: &Json) -> Result<Self, FormatError> {
        let object = Object::of(json)?;
        let mut reader = Reader {
            ids: HashSet::new(),
        };
        let fields = reader.fields(object, 0)?;
        let identifier_field_ids =
            object.each("identifier-field-ids", |id| as_i32(id).map(FieldId))?;
        Ok(Self {
            id: SchemaId(object.i32("schema-id")?.unwrap_or(0)),
            fields,
            identifier_field_ids,
        })
    }

    /// The schema in the spec's JSON form.
    pub fn to_json(&self) -> Json {
        let mut json = json!({ "type": "struct", "schema-id": self.id.0 });
        if !self.identifier_field_ids.is_empty() {
            let ids: Vec<i32> = self.identifier_field_ids.iter().map(|id| id.0).collect();
            json["identifier-field-ids"] = json!(ids);
        }
        json["fields"] = fields_to_json(&self.fields);
        json
    }
}

struct Reader {
    /// Ids seen so far: each field has its own.
    ids: HashSet<FieldId>,
}

impl Reader {
    fn ty(&mut self, json: &Json, depth: usize) -> Result<Type, FormatError> {
        if depth > MAX_DEPTH {
            return Err(FormatError::invalid(
                "",
                format!("types are nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        if let Some(text) = json.as_str() {
            return text.parse().map(Type::Primitive);
        }
        let object =
            Object::of(json).map_err(|_| mismatch("", "a type: a string or an object", json))?;
        match required("type", object.str("type")?)? {
            "struct" => self.fields(object, depth).map(Type::Struct),
            "list" => {
                let required = required("element-required", object.bool("element-required")?)?;
                let element = self.child(object, "element", required, depth)?;
                Ok(Type::List(Box::new(ListType { element })))
            }
            "map" => {
                let value_required = required("value-required", object.bool("value-required")?)?;
                let key = self.child(object, "key", true, depth)?;
                let value = self.child(object, "value", value_required, depth)?;
                Ok(Type::Map(Box::new(MapType { key, value })))
            }
            // A primitive type may stand in an object of its own.
            primitive => primitive.parse().map(Type::Primitive),
        }
    }

    fn fields(&mut self, object: Object<'_>, depth: usize) -> Result<StructType, FormatError> {
        required("fields", object.array("fields")?)?;
        let fields = object.each("fields", |json| self.field(json, depth))?;
        Ok(StructType { fields })
    }

    fn field(&mut self, json: &Json, depth: usize) -> Result<Arc<NestedField>, FormatError> {
        let object = Object::of(json)?;
        let id = self.new_id(required("id", object.i32("id")?)?)?;
        let name = required("name", object.str("name")?)?.to_owned();
        let is_required = required("required", object.bool("required")?)?;
        let ty = self
            .ty(required("type", object.get("type"))?, depth + 1)
            .map_err(|e| e.within("type"))?;
        let doc = object.str("doc")?.map(str::to_owned);
        let initial_default = object
            .get("initial-default")
            .map(|default| default_value(&ty, default).map_err(|e| e.within("initial-default")))
            .transpose()?;
        Ok(Arc::new(NestedField {
            id,
            name,
            required: is_required,
            ty,
            doc,
            initial_default,
        }))
    }

    /// The element of a list, or the key or value of a map.
    fn child(
        &mut self,
        object: Object<'_>,
        name: &str,
        is_required: bool,
        depth: usize,
    ) -> Result<Arc<NestedField>, FormatError> {
        let id_key = format!("{name}-id");
        let id = self.new_id(required(&id_key, object.i32(&id_key)?)?)?;
        let ty = self
            .ty(required(name, object.get(name))?, depth + 1)
            .map_err(|e| e.within(name))?;
        let field = NestedField {
            id,
            name: name.to_owned(),
            required: is_required,
            ty,
            doc: None,
            initial_default: None,
        };
        Ok(Arc::new(field))
    }

    fn new_id(&mut self, id: i32) -> Result<FieldId, FormatError> {
        if self.ids.len() >= MAX_FIELDS {
            return Err(FormatError::invalid(
                "",
                format!("the schema has more than {MAX_FIELDS} fields"),
            ));
        }
        let id = FieldId(id);
        match self.ids.insert(id) {
            true => Ok(id),
            false => Err(FormatError::invalid(
                "id",
                format!("field id {id} is used twice in one schema"),
            )),
        }
    }
}

/// A default (spec, "Default values"): null for types that allow nothing else.
fn default_value(ty: &Type, json: &Json) -> Result<Value, FormatError> {
    match ty.as_primitive() {
        Some(primitive) if primitive.defaults_to_null_only() => Err(mismatch(
            "",
            &format!("null, the only default of type {primitive}"),
            json,
        )),
        _ => Value::from_json(ty, json),
    }
}

fn fields_to_json(fields: &StructType) -> Json {
    fields
        .fields
        .iter()
        .map(|field| field_to_json(field))
        .collect()
}

fn field_to_json(field: &NestedField) -> Json {
    let mut json = json!({
        "id": field.id.0,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(&field.ty),
    });
    if let Some(doc) = &field.doc {
        json["doc"] = json!(doc);
    }
    if let Some(default) = &field.initial_default {
        json["initial-default"] = default.to_json(&field.ty);
    }
    json
}

fn type_to_json(ty: &Type) -> Json {
    match ty {
        Type::Primitive(primitive) => json!(primitive.to_string()),
        Type::Struct(fields) => json!({ "type": "struct", "fields": fields_to_json(fields) }),
        Type::List(list) => json!({
            "type": "list",
            "element-id": list.element.id.0,
            "element-required": list.element.required,
            "element": type_to_json(&list.element.ty),
        }),
        Type::Map(map) => json!({
            "type": "map",
            "key-id": map.key.id.0,
            "key": type_to_json(&map.key.ty),
            "value-id": map.value.id.0,
            "value-required": map.value.required,
            "value": type_to_json(&map.value.ty),
        }),
    }
}
