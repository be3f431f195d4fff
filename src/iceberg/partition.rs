//! Partition specs and transforms (spec, "Partitioning").

use super::types::FieldId;

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
}
