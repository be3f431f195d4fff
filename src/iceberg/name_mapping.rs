//! Name mappings: ids for the columns of files written without any (spec, "Name Mapping Serialization").

use super::types::FieldId;

/// A table's `schema.name-mapping.default`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameMapping {
    pub fields: Vec<MappedField>,
}

/// The id for a column of any of these names, and the mapping below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedField {
    /// `None`: columns of these names are ignored.
    pub field_id: Option<FieldId>,
    pub names: Vec<String>,
    /// Of a struct, its fields; of a list, `element`; of a map, `key` and `value`.
    pub fields: NameMapping,
}

impl NameMapping {
    /// The field that a column of this name is, if the mapping has one.
    pub fn find(&self, name: &str) -> Option<&MappedField> {
        self.fields.iter().find(|field| field.names.iter().any(|own| own == name))
    }
}
