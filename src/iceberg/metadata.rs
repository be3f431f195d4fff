//! Table metadata: the JSON file that names schemas, specs, snapshots and refs (spec, "Table Metadata").

use std::collections::BTreeMap;
use std::sync::Arc;

use super::manifest::SequenceNumber;
use super::partition::{PartitionSpec, SpecId};
use super::schema::{Schema, SchemaId};

/// The id of a snapshot. Any 64-bit value, negative ones too, save -1 as a table's current snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SnapshotId(pub i64);

/// One table's metadata, whatever version wrote it, with the fallbacks of older versions resolved.
#[derive(Clone, Debug)]
pub struct TableMetadata {
    /// 1, 2 or 3.
    pub format_version: u8,
    /// Absent only in v1.
    pub table_uuid: Option<uuid::Uuid>,
    /// As recorded; where the table lies now may be another place.
    pub location: String,
    pub last_updated_ms: i64,
    pub schemas: BTreeMap<SchemaId, Arc<Schema>>,
    pub current_schema_id: SchemaId,
    pub partition_specs: BTreeMap<SpecId, Arc<PartitionSpec>>,
    pub default_spec_id: SpecId,
    pub properties: BTreeMap<String, String>,
    pub current_snapshot_id: Option<SnapshotId>,
    pub snapshots: BTreeMap<SnapshotId, Arc<Snapshot>>,
    /// As recorded: not necessarily in order of time.
    pub snapshot_log: Vec<SnapshotLogEntry>,
    /// Branches and tags by name; `main` is made up where the file has none.
    pub refs: BTreeMap<String, SnapshotRef>,
    /// Whether the table holds encryption keys (which this reader refuses).
    pub encrypted: bool,
}

/// One snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub parent_id: Option<SnapshotId>,
    /// 0 in v1.
    pub sequence_number: SequenceNumber,
    pub timestamp_ms: i64,
    pub manifests: SnapshotManifests,
    pub summary: BTreeMap<String, String>,
    pub schema_id: Option<SchemaId>,
    /// v3; absent in snapshots from before an upgrade.
    pub first_row_id: Option<i64>,
    /// v3; absent in snapshots from before an upgrade.
    pub added_rows: Option<i64>,
    /// v3: the key that encrypts the manifest list.
    pub key_id: Option<String>,
}

/// Where a snapshot names its manifests.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotManifests {
    /// A manifest list's path.
    List(String),
    /// v1: manifest paths in the snapshot itself.
    Inline(Vec<String>),
}

/// An entry of the snapshot log: `main` pointed at this snapshot from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotLogEntry {
    pub snapshot_id: SnapshotId,
    pub timestamp_ms: i64,
}

/// A branch or a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRef {
    pub snapshot_id: SnapshotId,
    pub kind: RefKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    Branch,
    Tag,
}
