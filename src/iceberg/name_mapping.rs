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
    pub fields: Vec<MappedField>,
}
