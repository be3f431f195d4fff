//! Manifest lists and manifests (spec, "Manifest Lists", "Manifests"): Avro bytes in, entries out, inheritance applied.

use std::sync::Arc;

use super::metadata::SnapshotId;
use super::partition::SpecId;
use super::types::FieldId;
use super::value::Value;

mod data_file;
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
    /// Data files.
    Data,
    /// Delete files of any kind, deletion vectors too.
    Deletes,
}

/// One entry of a manifest list.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestFile {
    /// As recorded.
    pub path: String,
    /// Bytes; `None` for v1 inline manifests.
    pub length: Option<u64>,
    /// The spec that its files are partitioned by.
    pub spec_id: SpecId,
    /// What its files are.
    pub content: ManifestContent,
    /// Of the commit that added the manifest: added entries inherit it. 0 in v1.
    pub sequence_number: SequenceNumber,
    /// The lowest data sequence number of its live files. 0 in v1.
    pub min_sequence_number: SequenceNumber,
    /// The snapshot that added the manifest: entries without a snapshot id inherit it.
    pub added_snapshot_id: SnapshotId,
    /// Files it adds; `None` where unknown. `Some(0)` for this and the next means that it holds no live file.
    pub added_files_count: Option<u64>,
    /// Files it keeps from earlier manifests.
    pub existing_files_count: Option<u64>,
    /// v3; data manifests only.
    pub first_row_id: Option<i64>,
    /// Set on an encrypted manifest (which this reader refuses).
    pub key_metadata: bool,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Rows of the table.
    Data,
    /// Paths and positions of deleted rows, or a deletion vector.
    PositionDeletes,
    /// Column values whose rows are deleted.
    EqualityDeletes,
}

/// A file's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Apache Avro object container file.
    Avro,
    /// Apache ORC.
    Orc,
    /// Puffin: deletion vectors.
    Puffin,
    /// By the name the manifest gives.
    Other(String),
}

/// A live (added or existing) entry of a manifest, with sequence numbers, snapshot id and first row id inherited.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestEntry {
    /// The snapshot that added the file.
    pub snapshot_id: SnapshotId,
    /// The DATA sequence number.
    pub sequence_number: SequenceNumber,
    /// The file; a plan that is made of the entry shares it.
    pub file: Arc<DataFile>,
}

/// The columns whose bounds and null counts are kept of a manifest's files. They are most of what a manifest says, and a
/// plan asks for few of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statistics {
    /// All that are recorded.
    All,
    /// Those of these columns.
    Of(Vec<FieldId>),
}

impl Statistics {
    fn keeps(&self, id: FieldId) -> bool {
        match self {
            Statistics::All => true,
            Statistics::Of(ids) => ids.contains(&id),
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Statistics::Of(ids) if ids.is_empty())
    }
}

/// A partition tuple: values by partition field id, in the order of the manifest's own spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PartitionTuple {
    /// Partition field ids with their values; `None` is null.
    pub fields: Vec<(FieldId, Option<Value>)>,
}

/// Bounds of columns by field id, each in single-value binary form (spec, Appendix D).
pub type ColumnBounds = Vec<(FieldId, Box<[u8]>)>;

/// A data or delete file as a manifest describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFile {
    /// Data, or deletes of a kind.
    pub content: FileContent,
    /// As recorded.
    pub path: String,
    /// The format its bytes are in.
    pub format: FileFormat,
    /// The manifest's spec.
    pub spec_id: SpecId,
    /// Shared by the files of one manifest that are in the same partition.
    pub partition: Arc<PartitionTuple>,
    /// Rows (for a deletion vector, its cardinality).
    pub record_count: u64,
    /// Bytes.
    pub file_size: u64,
    /// How many places the writer says the file may be split at: about its row groups.
    pub split_offsets_count: usize,
    /// Inherited where null; `None` in v1 and v2 tables, and in snapshots from before an upgrade.
    pub first_row_id: Option<i64>,
    /// Set on an encrypted file (which this reader refuses).
    pub key_metadata: bool,
    /// What is kept of its columns' statistics; see [`DataFile::statistics`]. A table may have a million data files, and of
    /// most of them nothing is kept.
    pub column_statistics: Option<Box<ColumnStatistics>>,
    /// What delete files alone have; see [`DataFile::deletes`].
    pub delete_details: Option<Box<DeleteDetails>>,
}

/// What a manifest says of a file's columns; garbage is possible, decode with care.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Bounds by field id, in single-value binary form (spec, Appendix D).
    pub lower_bounds: ColumnBounds,
    /// As `lower_bounds`.
    pub upper_bounds: ColumnBounds,
    /// Null counts by field id; negative ones (garbage) are left out.
    pub null_value_counts: Vec<(FieldId, u64)>,
}

/// What a manifest says of a delete file, beside what it says of every file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeleteDetails {
    /// Equality deletes: the columns they compare.
    pub equality_ids: Vec<FieldId>,
    /// The only data file that a position delete file, or a deletion vector, is about.
    pub referenced_data_file: Option<String>,
    /// Deletion vectors: where the blob lies.
    pub content_offset: Option<u64>,
    /// Deletion vectors: the blob's length in bytes.
    pub content_size: Option<u64>,
}

impl DataFile {
    /// Its columns' bounds and null counts, as far as they were [asked for](Statistics).
    pub fn statistics(&self) -> &ColumnStatistics {
        static NONE: ColumnStatistics = ColumnStatistics {
            lower_bounds: Vec::new(),
            upper_bounds: Vec::new(),
            null_value_counts: Vec::new(),
        };
        self.column_statistics.as_deref().unwrap_or(&NONE)
    }

    /// What it says as a delete file; of a data file, nothing.
    pub fn deletes(&self) -> &DeleteDetails {
        static NONE: DeleteDetails = DeleteDetails {
            equality_ids: Vec::new(),
            referenced_data_file: None,
            content_offset: None,
            content_size: None,
        };
        self.delete_details.as_deref().unwrap_or(&NONE)
    }
}

#[cfg(test)]
mod tests;
