//! Partition specs and transforms (spec, "Partitioning").

use serde_json::Value as Json;

use super::error::FormatError;
use super::json::{Object, as_i32, required};
use super::types::FieldId;

mod transform;

/// The id of a partition spec, unique within a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpecId(pub i32);

/// How partition values are made from source columns (spec, "Partition Transforms").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transform {
    Identity,
    /// murmur3_x86_32, masked, modulo this many buckets (1 or more).
    Bucket(u32),
    /// Width, 1 or more.
    Truncate(u32),
    Year,
    Month,
    Day,
    Hour,
    /// Always null.
    Void,
    /// A transform this reader does not know: ignored for pruning, its values still count for partition equality.
    Unknown(String),
}

/// One field of a partition spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionField {
    /// One id, or several for a multi-argument transform.
    pub source_ids: Vec<FieldId>,
    /// 1000 and up.
    pub field_id: FieldId,
    pub name: String,
    pub transform: Transform,
}

/// A partition spec. One whose fields are all [`Transform::Void`] counts as unpartitioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSpec {
    pub id: SpecId,
    pub fields: Vec<PartitionField>,
}

impl PartitionSpec {
    /// Whether no field of the spec partitions anything.
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(|f| f.transform == Transform::Void)
    }

    /// Reads a spec of the `partition-specs` list.
    pub(super) fn from_json(json: &Json) -> Result<Self, FormatError> {
        let object = Object::of(json)?;
        let id = SpecId(required("spec-id", object.i32("spec-id")?)?);
        let fields = required("fields", object.get("fields"))?;
        Self::from_fields_json(id, fields).map_err(|e| e.within("fields"))
    }

    /// Reads a bare list of partition fields: v1's `partition-spec`, and the one in a manifest's header.
    ///
    /// v1 fields may lack their ids: they are 1000, 1001, … by position then (spec, "Partition Evolution").
    pub(super) fn from_fields_json(id: SpecId, json: &Json) -> Result<Self, FormatError> {
        let elements = json
            .as_array()
            .ok_or_else(|| super::json::mismatch("", "an array", json))?;
        let mut fields = Vec::with_capacity(elements.len());
        for (position, element) in (FIRST_PARTITION_FIELD_ID..).zip(elements) {
            let field = field_from_json(element, FieldId(position))
                .map_err(|e| e.within(format!("[{}]", position - FIRST_PARTITION_FIELD_ID)))?;
            if fields
                .iter()
                .any(|other: &PartitionField| other.field_id == field.field_id)
            {
                let reason = format!("field id {} is used twice in one spec", field.field_id);
                return Err(FormatError::invalid("field-id", reason));
            }
            fields.push(field);
        }
        Ok(Self { id, fields })
    }
}

/// The id of the first partition field where a v1 writer gave none.
const FIRST_PARTITION_FIELD_ID: i32 = 1000;

fn field_from_json(json: &Json, id_by_position: FieldId) -> Result<PartitionField, FormatError> {
    let object = Object::of(json)?;
    let source_ids = match (object.i32("source-id")?, object.get("source-ids")) {
        (Some(id), _) => vec![FieldId(id)],
        (None, Some(_)) => object.each("source-ids", |id| as_i32(id).map(FieldId))?,
        (None, None) => return Err(FormatError::invalid("source-id", "is required but missing")),
    };
    Ok(PartitionField {
        source_ids,
        field_id: object.i32("field-id")?.map_or(id_by_position, FieldId),
        name: required("name", object.str("name")?)?.to_owned(),
        transform: Transform::parse(required("transform", object.str("transform")?)?)
            .map_err(|e| e.within("transform"))?,
    })
}

#[cfg(test)]
mod tests;
