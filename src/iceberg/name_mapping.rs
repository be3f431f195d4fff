//! Name mappings: which names stand for which field ids in data files that carry no ids (spec, "Column Projection",
//! "Name Mapping Serialization").

use std::sync::Arc;

use serde_json::Value as Json;

use super::error::FormatError;
use super::json::{Object, mismatch, required};
use super::types::{FieldId, NestedField, Type};

/// Levels of nesting, as for schemas.
const MAX_DEPTH: usize = 100;

/// The fields of a table or a struct, or the `element`, `key` and `value` of a list or map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMapping {
    /// In the order of the JSON.
    pub fields: Vec<MappedField>,
}

/// The names of one field, and what lies under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedField {
    /// `None`: a column of such a name is no column of the table.
    pub field_id: Option<FieldId>,
    /// Whole names: a `.` in one has no meaning.
    pub names: Vec<String>,
    pub fields: NameMapping,
}

impl NameMapping {
    /// Reads the JSON of a `schema.name-mapping.default` property.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let json: Json =
            serde_json::from_str(text).map_err(|e| FormatError::invalid("", e.to_string()))?;
        Self::from_json(&json, 0)
    }

    fn from_json(json: &Json, depth: usize) -> Result<Self, FormatError> {
        if depth > MAX_DEPTH {
            return Err(FormatError::invalid(
                "",
                format!("is nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let elements = json
            .as_array()
            .ok_or_else(|| mismatch("", "an array of fields", json))?;
        let mut fields: Vec<MappedField> = Vec::with_capacity(elements.len());
        let mut seen = std::collections::HashSet::new();
        for (i, element) in elements.iter().enumerate() {
            let field =
                MappedField::from_json(element, depth).map_err(|e| e.within(format!("[{i}]")))?;
            if let Some(name) = field
                .names
                .iter()
                .find(|name| !seen.insert((*name).clone()))
            {
                return Err(FormatError::invalid(
                    format!("[{i}].names"),
                    format!("{name:?} stands for two fields"),
                ));
            }
            fields.push(field);
        }
        Ok(Self { fields })
    }

    /// The mapping by which each field has the name that it has in a schema.
    pub fn of(fields: &[Arc<NestedField>]) -> Self {
        Self {
            fields: fields
                .iter()
                .map(|field| MappedField {
                    field_id: Some(field.id),
                    names: vec![field.name.clone()],
                    fields: Self::below(&field.ty),
                })
                .collect(),
        }
    }

    fn below(ty: &Type) -> Self {
        match ty {
            Type::Primitive(_) => Self::default(),
            Type::Struct(ty) => Self::of(&ty.fields),
            Type::List(ty) => Self::of(std::slice::from_ref(&ty.element)),
            Type::Map(ty) => Self::of(&[Arc::clone(&ty.key), Arc::clone(&ty.value)]),
        }
    }

    /// The field that a column of this name is, if the mapping has one.
    pub fn find(&self, name: &str) -> Option<&MappedField> {
        self.fields
            .iter()
            .find(|field| field.names.iter().any(|own| own == name))
    }
}

impl MappedField {
    fn from_json(json: &Json, depth: usize) -> Result<Self, FormatError> {
        let object = Object::of(json)?;
        required("names", object.array("names")?)?;
        let name = |json: &Json| {
            json.as_str()
                .map(str::to_owned)
                .ok_or_else(|| mismatch("", "a name", json))
        };
        Ok(Self {
            field_id: object.i32("field-id")?.map(FieldId),
            names: object.each("names", name)?,
            fields: match object.get("fields") {
                Some(fields) => {
                    NameMapping::from_json(fields, depth + 1).map_err(|e| e.within("fields"))?
                }
                None => NameMapping::default(),
            },
        })
    }
}

#[cfg(test)]
mod tests;
