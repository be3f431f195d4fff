//! Table metadata: the JSON file that names schemas, specs, snapshots and refs (spec, "Table Metadata").

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::error::FormatError;
use super::manifest::SequenceNumber;
use super::name_mapping::NameMapping;
use super::partition::{PartitionField, PartitionSpec, SpecId, Transform};
use super::schema::{Schema, SchemaId};
use super::types::{FieldId, NestedField, PrimitiveType};

mod parse;

/// The branch that is the table's current state.
pub const MAIN_BRANCH: &str = "main";

/// Properties that say where a writer puts files, newest first.
const PATH_PROPERTIES: [&str; 4] = [
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
    "write.metadata.path",
];
/// The property that holds the name mapping as JSON (spec, "Name Mapping Serialization").
pub const NAME_MAPPING_PROPERTY: &str = "schema.name-mapping.default";

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
    /// Milliseconds since the epoch.
    pub last_updated_ms: i64,
    /// All schemas the table has or had.
    pub schemas: BTreeMap<SchemaId, Arc<Schema>>,
    /// Always one of `schemas`.
    pub current_schema_id: SchemaId,
    /// All partition specs the table has or had.
    pub partition_specs: BTreeMap<SpecId, Arc<PartitionSpec>>,
    /// The spec that writers use.
    pub default_spec_id: SpecId,
    /// The source columns of all its sort orders. They say how files may be ordered, and no reader may rely on it.
    pub sort_columns: BTreeSet<FieldId>,
    /// Table properties, for readers and writers.
    pub properties: BTreeMap<String, String>,
    /// The snapshot that `main` is at; `None` for a table without one.
    pub current_snapshot_id: Option<SnapshotId>,
    /// All snapshots that have not expired.
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
    /// Unique within the table.
    pub id: SnapshotId,
    /// `None` for the first, and where it is not recorded.
    pub parent_id: Option<SnapshotId>,
    /// 0 in v1.
    pub sequence_number: SequenceNumber,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Its files.
    pub manifests: SnapshotManifests,
    /// What the writer says of the commit: `operation`, counts.
    pub summary: BTreeMap<String, String>,
    /// The schema that was current when it was made.
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
    /// May have expired.
    pub snapshot_id: SnapshotId,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
}

/// A branch or a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRef {
    /// The snapshot it points to; may be missing from the table.
    pub snapshot_id: SnapshotId,
    /// Branch or tag.
    pub kind: RefKind,
}

/// What a ref is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefKind {
    /// Moves with commits; read with the table's current schema.
    Branch,
    /// Stays; read with its snapshot's schema.
    Tag,
}

impl TableMetadata {
    /// The schema that the table, `main` and branches are read with.
    ///
    /// # Errors
    ///
    /// When `current_schema_id` is not among the schemas, which [`TableMetadata::parse`] refuses already.
    pub fn current_schema(&self) -> Result<&Arc<Schema>, FormatError> {
        self.schema(self.current_schema_id)
    }

    /// The schema with this id.
    pub fn schema(&self, id: SchemaId) -> Result<&Arc<Schema>, FormatError> {
        self.schemas.get(&id).ok_or_else(|| {
            FormatError::invalid(
                "schemas",
                format!("the table has no schema with id {}", id.0),
            )
        })
    }

    /// The schema that a snapshot names, for views of snapshots, tags and times; the current one where it names none.
    ///
    /// # Errors
    ///
    /// When the snapshot names a schema that the table does not have.
    pub fn schema_for_snapshot(&self, snapshot: &Snapshot) -> Result<Arc<Schema>, FormatError> {
        self.schema(snapshot.schema_id.unwrap_or(self.current_schema_id))
            .cloned()
            .map_err(|e| e.within(format!("snapshot {}", snapshot.id.0)))
    }

    /// The snapshot with this id.
    pub fn snapshot(&self, id: SnapshotId) -> Result<&Arc<Snapshot>, FormatError> {
        self.snapshots.get(&id).ok_or_else(|| {
            FormatError::invalid(
                "snapshots",
                format!("the table has no snapshot with id {}", id.0),
            )
        })
    }

    /// The snapshot that `main` was at, at a time in milliseconds since the epoch, by the snapshot log.
    ///
    /// # Errors
    ///
    /// When the log is missing, or has nothing so early.
    pub fn snapshot_at(&self, timestamp_ms: i64) -> Result<SnapshotId, FormatError> {
        // The log's order is not that of time. Of two entries at one time the later one in the log is the state.
        let entry = self
            .snapshot_log
            .iter()
            .filter(|entry| entry.timestamp_ms <= timestamp_ms)
            .max_by_key(|entry| entry.timestamp_ms);
        entry.map(|entry| entry.snapshot_id).ok_or_else(|| {
            let earliest = self
                .snapshot_log
                .iter()
                .map(|entry| entry.timestamp_ms)
                .min();
            let reason = match earliest {
                Some(earliest) => format!(
                    "nothing at or before {timestamp_ms} ms; the earliest is at {earliest} ms"
                ),
                None => "the table has none, so no time can be looked up".to_owned(),
            };
            FormatError::invalid("snapshot-log", reason)
        })
    }

    /// The mapping from column names to field ids for data files without ids (`schema.name-mapping.default`).
    pub fn name_mapping(&self) -> Result<Option<NameMapping>, FormatError> {
        let Some(text) = self.properties.get(NAME_MAPPING_PROPERTY) else {
            return Ok(None);
        };
        NameMapping::parse(text)
            .map(Some)
            .map_err(|e| e.within(format!("property {NAME_MAPPING_PROPERTY}")))
    }

    /// The field with this id in the current schema, or else in the newest schema that has it: the definition of a
    /// column that was dropped.
    pub fn field_by_id_any_schema(&self, id: FieldId) -> Option<&Arc<NestedField>> {
        let current = self.schemas.get(&self.current_schema_id);
        current
            .into_iter()
            .chain(self.schemas.values().rev())
            .find_map(|schema| schema.field_by_id(id))
    }

    /// Where the table's properties say that its files are written, if they do.
    pub fn data_paths(&self) -> Vec<&str> {
        PATH_PROPERTIES
            .iter()
            .filter_map(|name| self.properties.get(*name))
            .map(String::as_str)
            .collect()
    }

    /// The partition spec with this id.
    pub fn partition_spec(&self, id: SpecId) -> Result<&Arc<PartitionSpec>, FormatError> {
        self.partition_specs.get(&id).ok_or_else(|| {
            FormatError::invalid(
                "partition-specs",
                format!("the table has no partition spec with id {}", id.0),
            )
        })
    }

    /// The type of each field of a spec, in its order: what the transform makes of its source column, as the newest
    /// schema that has the column types it. `None` where the transform is unknown, or where its result depends on a
    /// column that is in no schema.
    pub fn partition_type(&self, spec: &PartitionSpec) -> Vec<Option<PrimitiveType>> {
        spec.fields
            .iter()
            .map(|field| self.partition_field_type(field))
            .collect()
    }

    fn partition_field_type(&self, field: &PartitionField) -> Option<PrimitiveType> {
        let source = match field.source_ids.as_slice() {
            [source] => self
                .field_by_id_any_schema(*source)
                .and_then(|source| source.ty.as_primitive()),
            _ => None,
        };
        match (&field.transform, source) {
            (Transform::Identity | Transform::Truncate(_) | Transform::Void, None) => None,
            (transform, source) => transform.result_type(source.unwrap_or(&PrimitiveType::Unknown)),
        }
    }
}

#[cfg(test)]
mod tests;
