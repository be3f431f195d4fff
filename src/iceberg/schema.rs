//! A table's schemas, and the reserved ids of metadata columns.

use std::sync::Arc;

use super::types::{FieldId, NestedField, StructType};

mod json;

/// The id of a schema, unique within a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaId(pub i32);

/// One schema of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub id: SchemaId,
    pub fields: StructType,
    pub identifier_field_ids: Vec<FieldId>,
}

impl Schema {
    /// The field with this id, at any depth.
    pub fn field_by_id(&self, id: FieldId) -> Option<&Arc<NestedField>> {
        self.path_to(id)?.pop()
    }

    /// The fields from the top level down to the one with this id, which is the last.
    pub fn path_to(&self, id: FieldId) -> Option<Vec<&Arc<NestedField>>> {
        fn search<'a>(
            field: &'a Arc<NestedField>,
            id: FieldId,
            path: &mut Vec<&'a Arc<NestedField>>,
        ) -> bool {
            path.push(field);
            if field.id == id
                || field
                    .ty
                    .children()
                    .into_iter()
                    .any(|child| search(child, id, path))
            {
                return true;
            }
            path.pop();
            false
        }
        let mut path = Vec::new();
        self.fields
            .fields
            .iter()
            .any(|field| search(field, id, &mut path))
            .then_some(path)
    }

    /// The field that this chain of names leads to, from the top level down (`element`, `key` and `value` lead into
    /// lists and maps). Names are compared exactly.
    pub fn field_by_path(&self, path: &[&str]) -> Option<&Arc<NestedField>> {
        let (first, rest) = path.split_first()?;
        let top = self
            .fields
            .fields
            .iter()
            .find(|field| field.name == *first)?;
        rest.iter().try_fold(top, |field, name| {
            field
                .ty
                .children()
                .into_iter()
                .find(|child| child.name == *name)
        })
    }
}

/// Ids of metadata columns (spec, "Reserved Field IDs").
pub mod reserved {
    use super::FieldId;

    pub const FILE: FieldId = FieldId(2147483646);
    pub const POS: FieldId = FieldId(2147483645);
    pub const DELETED: FieldId = FieldId(2147483644);
    pub const SPEC_ID: FieldId = FieldId(2147483643);
    pub const PARTITION: FieldId = FieldId(2147483642);
    /// `file_path` in a position delete file.
    pub const DELETE_FILE_PATH: FieldId = FieldId(2147483546);
    /// `pos` in a position delete file.
    pub const DELETE_FILE_POS: FieldId = FieldId(2147483545);
    pub const DELETE_FILE_ROW: FieldId = FieldId(2147483544);
    /// v3 `_row_id`.
    pub const ROW_ID: FieldId = FieldId(2147483540);
    /// v3 `_last_updated_sequence_number`.
    pub const LAST_UPDATED_SEQUENCE_NUMBER: FieldId = FieldId(2147483539);
}

#[cfg(test)]
mod tests;
