//! A table's schemas, and the reserved ids of metadata columns.

use super::types::{FieldId, StructType};

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
