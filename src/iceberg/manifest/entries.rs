//! Manifests: one record for each file that the manifest adds, keeps or removes.

use std::collections::HashMap;
use std::sync::Arc;

use super::data_file::{RawFile, id, id_by_name};
use super::{
    DataFile, ManifestContent, ManifestEntry, ManifestFile, PartitionTuple, SequenceNumber,
    Statistics,
};
use crate::iceberg::avro::{Container, Cursor, Schema};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::required;
use crate::iceberg::metadata::{SnapshotId, TableMetadata};
use crate::iceberg::partition::{PartitionSpec, SpecId, Transform};
use crate::iceberg::types::PrimitiveType;
use crate::iceberg::value::Value;

/// `status` of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Existing,
    Added,
    Deleted,
}

/// Reads a manifest's live entries (added or existing), in its order, with what they inherit filled in: snapshot id,
/// sequence number and first row id (spec, "Inheritance", "First Row ID Inheritance").
///
/// `manifest` is what the manifest list says of it; `table` gives the partition spec and its types; `statistics` says
/// which bounds and counts are wanted.
pub fn parse_manifest(
    bytes: &[u8],
    manifest: &ManifestFile,
    table: &TableMetadata,
    statistics: &Statistics,
) -> Result<Vec<ManifestEntry>, FormatError> {
    let container = Container::open(bytes).map_err(|e| e.within("manifest"))?;
    let mut reader = EntryReader::new(&container, manifest, table, statistics)
        .map_err(|e| e.within("manifest"))?;
    let mut entries = Vec::new();
    let mut position = 0_u64;
    container
        .for_each(|cursor| {
            entries.extend(reader.entry(cursor, &container.schema)?);
            position += 1;
            Ok(())
        })
        .map_err(|e| e.within(format!("manifest[{position}]")))?;
    entries.shrink_to_fit();
    Ok(entries)
}

/// What stays the same over the entries of one manifest.
struct EntryReader<'a> {
    manifest: &'a ManifestFile,
    statistics: &'a Statistics,
    spec_id: SpecId,
    content: ManifestContent,
    spec: Arc<PartitionSpec>,
    /// By field of the spec.
    partition_types: Vec<Option<PrimitiveType>>,
    /// Tuples seen, so that files of one partition share theirs.
    tuples: HashMap<PartitionTuple, Arc<PartitionTuple>>,
    /// What the next data file without a first row id of its own gets; `None` if none does.
    next_row_id: Option<i64>,
}

impl<'a> EntryReader<'a> {
    fn new(
        container: &Container<'_>,
        manifest: &'a ManifestFile,
        table: &'a TableMetadata,
        statistics: &'a Statistics,
    ) -> Result<Self, FormatError> {
        // A manifest that its snapshot names itself has nothing but its own header to go by.
        let inline = manifest.length.is_none();
        let header_spec_id = container
            .metadata("partition-spec-id")?
            .map(str::parse::<i32>)
            .transpose();
        let header_spec_id = header_spec_id
            .map_err(|e| FormatError::invalid("partition-spec-id", e.to_string()))?
            .map(SpecId);
        let spec_id = if inline {
            header_spec_id.unwrap_or(manifest.spec_id)
        } else {
            manifest.spec_id
        };
        let content = match container.metadata("content")? {
            Some("deletes") if inline => ManifestContent::Deletes,
            _ => manifest.content,
        };
        let spec = match (
            table.partition_specs.get(&spec_id),
            container.metadata("partition-spec")?,
        ) {
            (Some(spec), _) => Arc::clone(spec),
            (None, Some(text)) => {
                let json = serde_json::from_str(text)
                    .map_err(|e| FormatError::invalid("partition-spec", e.to_string()))?;
                let spec = PartitionSpec::from_fields_json(spec_id, &json)
                    .map_err(|e| e.within("partition-spec"))?;
                Arc::new(spec)
            }
            (None, None) => {
                let reason = format!(
                    "spec {} is neither in the table's metadata nor in the manifest",
                    spec_id.0
                );
                return Err(FormatError::invalid("partition-spec", reason));
            }
        };
        let partition_types = table.partition_type(&spec);
        let next_row_id = manifest
            .first_row_id
            .filter(|_| content == ManifestContent::Data);
        Ok(Self {
            manifest,
            statistics,
            spec_id,
            content,
            spec,
            partition_types,
            tuples: HashMap::new(),
            next_row_id,
        })
    }

    /// Reads one entry; `None` for a deleted one.
    fn entry(
        &mut self,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
    ) -> Result<Option<ManifestEntry>, FormatError> {
        let record = required("manifest_entry", cursor.record(schema)?)?;
        let (mut status, mut snapshot_id, mut sequence_number, mut file) = (None, None, None, None);
        for field in &record.fields {
            match record.id_of(field, id_by_name) {
                Some(id::STATUS) => status = cursor.integer(&field.schema)?,
                Some(id::SNAPSHOT_ID) => snapshot_id = cursor.integer(&field.schema)?,
                Some(id::SEQUENCE_NUMBER) => sequence_number = cursor.integer(&field.schema)?,
                Some(id::DATA_FILE) => {
                    file = Some(
                        self.data_file(cursor, &field.schema)
                            .map_err(|e| e.within("data_file"))?,
                    );
                }
                _ => cursor
                    .skip(&field.schema)
                    .map_err(|e| e.within(&field.name))?,
            }
        }
        let status = match required("status", status)? {
            0 => Status::Existing,
            1 => Status::Added,
            2 => Status::Deleted,
            other => {
                return Err(FormatError::invalid(
                    "status",
                    format!("expected 0, 1 or 2, found {other}"),
                ));
            }
        };
        if status == Status::Deleted {
            return Ok(None);
        }
        let (raw, partition) = required("data_file", file)?;
        let mut file = raw
            .finish(self.content, self.spec_id, partition)
            .map_err(|e| e.within("data_file"))?;
        let sequence_number = self.sequence_number(status, sequence_number)?;
        file.first_row_id = self.first_row_id(&file)?;
        let snapshot_id = snapshot_id.map_or(self.manifest.added_snapshot_id, SnapshotId);
        Ok(Some(ManifestEntry {
            snapshot_id,
            sequence_number,
            file: Arc::new(file),
        }))
    }

    /// Only an added file inherits its manifest's sequence number; for others it would be too high. v1 has none: all 0.
    fn sequence_number(
        &self,
        status: Status,
        own: Option<i64>,
    ) -> Result<SequenceNumber, FormatError> {
        let inherited = self.manifest.sequence_number;
        match own {
            Some(own) => Ok(SequenceNumber(own)),
            None if status == Status::Added || inherited == SequenceNumber(0) => Ok(inherited),
            None => Err(FormatError::invalid(
                "sequence_number",
                "is null in an entry that was not added",
            )),
        }
    }

    fn first_row_id(&mut self, file: &DataFile) -> Result<Option<i64>, FormatError> {
        // Without a first row id of the manifest, the snapshot is from before the table had row ids.
        let Some(next) = self.next_row_id else {
            return Ok(None);
        };
        if file.first_row_id.is_some() {
            return Ok(file.first_row_id);
        }
        let rows = i64::try_from(file.record_count).ok();
        let after = rows.and_then(|rows| next.checked_add(rows));
        self.next_row_id =
            Some(after.ok_or_else(|| FormatError::invalid("first_row_id", "runs over 2^63"))?);
        Ok(Some(next))
    }

    /// The file of an entry, not yet checked: only live ones need to be sound.
    fn data_file(
        &mut self,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
    ) -> Result<(RawFile, Arc<PartitionTuple>), FormatError> {
        let record = required("data_file", cursor.record(schema)?)?;
        let mut raw = RawFile::default();
        let mut partition = None;
        for field in &record.fields {
            match record.id_of(field, id_by_name) {
                Some(id::PARTITION) => {
                    partition = Some(
                        self.partition(cursor, &field.schema)
                            .map_err(|e| e.within("partition"))?,
                    );
                }
                Some(id) => raw
                    .field(id, cursor, &field.schema, self.statistics)
                    .map_err(|e| e.within(&field.name))?,
                None => cursor
                    .skip(&field.schema)
                    .map_err(|e| e.within(&field.name))?,
            }
        }
        let partition = match partition {
            Some(partition) => partition,
            None if self.spec.is_unpartitioned() => self.intern(self.nulls()),
            None => return Err(FormatError::invalid("partition", "is required but missing")),
        };
        Ok((raw, partition))
    }

    /// A partition tuple in the order of the manifest's own spec, matched by partition field id.
    fn partition(
        &mut self,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
    ) -> Result<Arc<PartitionTuple>, FormatError> {
        let Some(record) = cursor.record(schema)? else {
            return Ok(self.intern(self.nulls()));
        };
        let mut tuple = self.nulls();
        let spec = Arc::clone(&self.spec);
        let by_name = |name: &str| {
            spec.fields
                .iter()
                .find(|field| field.name == name)
                .map(|field| field.field_id.0)
        };
        for field in &record.fields {
            let id = record.id_of(field, by_name);
            let known = spec
                .fields
                .iter()
                .position(|own| Some(own.field_id.0) == id);
            let known =
                known.and_then(|i| Some((spec.fields.get(i)?, tuple.fields.get_mut(i)?, i)));
            let Some((own, slot, i)) = known.filter(|(own, ..)| own.transform != Transform::Void)
            else {
                cursor
                    .skip(&field.schema)
                    .map_err(|e| e.within(&field.name))?;
                continue;
            };
            let value = cursor
                .value(&field.schema)
                .map_err(|e| e.within(&own.name))?;
            slot.1 = match (value, self.partition_types.get(i)) {
                (Some(value), Some(Some(ty))) => {
                    Some(as_partition_value(value, ty).map_err(|e| e.within(&own.name))?)
                }
                (value, _) => value,
            };
        }
        Ok(self.intern(tuple))
    }

    fn nulls(&self) -> PartitionTuple {
        PartitionTuple {
            fields: self
                .spec
                .fields
                .iter()
                .map(|field| (field.field_id, None))
                .collect(),
        }
    }

    fn intern(&mut self, tuple: PartitionTuple) -> Arc<PartitionTuple> {
        if let Some(shared) = self.tuples.get(&tuple) {
            return Arc::clone(shared);
        }
        let shared = Arc::new(tuple.clone());
        self.tuples.insert(tuple, Arc::clone(&shared));
        shared
    }
}

/// A value as the partition type `ty` has it, whatever Avro type the writer chose, so that equal partitions are equal
/// whoever wrote them: days as `int` or `date`, times without their logical type, UUIDs as bytes, types from before a
/// promotion.
fn as_partition_value(value: Value, ty: &PrimitiveType) -> Result<Value, FormatError> {
    use PrimitiveType as P;
    if let Some(value) = value.promote(ty) {
        return Ok(value);
    }
    let converted = match (&value, ty) {
        (Value::Int(days), P::Date) => Some(Value::Date(*days)),
        (Value::Long(v), P::Time) => Some(Value::Time(*v)),
        (Value::Long(v), P::Timestamp | P::Timestamptz) => Some(Value::Timestamp(*v)),
        (Value::Long(v), P::TimestampNs | P::TimestamptzNs) => Some(Value::TimestampNs(*v)),
        (Value::Long(v), P::Int) => i32::try_from(*v).ok().map(Value::Int),
        (Value::Binary(bytes), P::Uuid | P::Decimal { .. }) => Value::from_bytes(ty, bytes).ok(),
        (Value::String(text), P::Uuid) => uuid::Uuid::try_parse(text)
            .ok()
            .map(|id| Value::Uuid(id.into_bytes())),
        _ => None,
    };
    converted.ok_or_else(|| FormatError::invalid("", format!("{value:?} is no value of type {ty}")))
}
