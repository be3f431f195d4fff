//! Manifest lists and manifests (spec, "Manifest Lists", "Manifests"): Avro bytes in, entries out, inheritance applied.

use std::sync::Arc;

use super::metadata::SnapshotId;
use super::partition::SpecId;
use super::types::FieldId;
use super::value::Value;

mod entries;
mod list;

pub use entries::parse_manifest;
pub use list::parse_manifest_list;

/// A sequence number: the order of commits; 0 for all that v1 wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceNumber(pub i64);

/// What the files of a manifest are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestContent {
    Data,
    Deletes,
}

/// One entry of a manifest list.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestFile {
    pub path: String,
    /// Bytes; `None` for v1 inline manifests.
    pub length: Option<u64>,
    pub spec_id: SpecId,
    pub content: ManifestContent,
    pub sequence_number: SequenceNumber,
    pub min_sequence_number: SequenceNumber,
    pub added_snapshot_id: SnapshotId,
    /// Live files it may hold: `Some(0)` for both of these means it holds none; unknown counts are `None`.
    pub added_files_count: Option<u64>,
    pub existing_files_count: Option<u64>,
    /// v3; data manifests only.
    pub first_row_id: Option<i64>,
    /// Set on an encrypted manifest (which this reader refuses).
    pub key_metadata: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileContent {
    Data,
    PositionDeletes,
    EqualityDeletes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFormat {
    Parquet,
    Avro,
    Orc,
    Puffin,
    /// By the name the manifest gives.
    Other(String),
}

/// A live (added or existing) entry of a manifest, with sequence numbers, snapshot id and first row id inherited.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestEntry {
    pub snapshot_id: SnapshotId,
    /// The DATA sequence number.
    pub sequence_number: SequenceNumber,
    pub file: DataFile,
}

/// A partition tuple: values by partition field id, in the order of the manifest's own spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionTuple {
    pub fields: Vec<(FieldId, Option<Value>)>,
}

/// A data or delete file as a manifest describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFile {
    pub content: FileContent,
    /// As recorded.
    pub path: String,
    pub format: FileFormat,
    pub spec_id: SpecId,
    pub partition: Arc<PartitionTuple>,
    /// Rows (for a deletion vector, its cardinality).
    pub record_count: u64,
    /// Bytes.
    pub file_size: u64,
    /// Bounds by field id, in single-value binary form (spec, Appendix D); garbage is possible, decode with care.
    pub lower_bounds: Vec<(FieldId, Box<[u8]>)>,
    pub upper_bounds: Vec<(FieldId, Box<[u8]>)>,
    /// Null counts by field id; negative ones (garbage) are left out.
    pub null_value_counts: Vec<(FieldId, u64)>,
    pub split_offsets_count: usize,
    /// Equality deletes only.
    pub equality_ids: Vec<FieldId>,
    /// Inherited where null; `None` in v1 and v2 tables, and in snapshots from before an upgrade.
    pub first_row_id: Option<i64>,
    pub referenced_data_file: Option<String>,
    /// Deletion vectors: where the blob lies.
    pub content_offset: Option<u64>,
    /// Deletion vectors: the blob's length in bytes.
    pub content_size: Option<u64>,
    /// Set on an encrypted file (which this reader refuses).
    pub key_metadata: bool,
}

#[cfg(test)]
mod tests;
