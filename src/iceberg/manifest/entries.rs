//! Manifests: one record for each file that the manifest adds, keeps or removes.

use std::collections::HashMap;
use std::sync::Arc;

use super::{
    DataFile, FileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile,
    PartitionTuple, SequenceNumber,
};
use crate::iceberg::avro::{Container, Cursor, Record, Schema};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::required;
use crate::iceberg::metadata::{SnapshotId, TableMetadata};
use crate::iceberg::partition::{PartitionSpec, SpecId, Transform};
use crate::iceberg::types::{FieldId, PrimitiveType};
use crate::iceberg::value::Value;

/// Field ids of `manifest_entry` and `data_file` (spec, "Manifests").
mod id {
    pub(super) const STATUS: i32 = 0;
    pub(super) const SNAPSHOT_ID: i32 = 1;
    pub(super) const DATA_FILE: i32 = 2;
    pub(super) const SEQUENCE_NUMBER: i32 = 3;

    pub(super) const PATH: i32 = 100;
    pub(super) const FORMAT: i32 = 101;
    pub(super) const PARTITION: i32 = 102;
    pub(super) const RECORD_COUNT: i32 = 103;
    pub(super) const FILE_SIZE: i32 = 104;
    pub(super) const NULL_VALUE_COUNTS: i32 = 110;
    pub(super) const LOWER_BOUNDS: i32 = 125;
    pub(super) const UPPER_BOUNDS: i32 = 128;
    pub(super) const KEY_METADATA: i32 = 131;
    pub(super) const SPLIT_OFFSETS: i32 = 132;
    pub(super) const CONTENT: i32 = 134;
    pub(super) const EQUALITY_IDS: i32 = 135;
    pub(super) const FIRST_ROW_ID: i32 = 142;
    pub(super) const REFERENCED_DATA_FILE: i32 = 143;
    pub(super) const CONTENT_OFFSET: i32 = 144;
    pub(super) const CONTENT_SIZE: i32 = 145;

    /// Keys and values of the maps above that are read.
    pub(super) const MAP_KEYS: [i32; 3] = [121, 126, 129];
    pub(super) const MAP_VALUES: [i32; 3] = [122, 127, 130];
}

/// The same fields by name, for writers that give no field ids.
const NAMES: [(&str, i32); 20] = [
    ("status", id::STATUS),
    ("snapshot_id", id::SNAPSHOT_ID),
    ("data_file", id::DATA_FILE),
    ("sequence_number", id::SEQUENCE_NUMBER),
    ("file_path", id::PATH),
    ("file_format", id::FORMAT),
    ("partition", id::PARTITION),
    ("record_count", id::RECORD_COUNT),
    ("file_size_in_bytes", id::FILE_SIZE),
    ("null_value_counts", id::NULL_VALUE_COUNTS),
    ("lower_bounds", id::LOWER_BOUNDS),
    ("upper_bounds", id::UPPER_BOUNDS),
    ("key_metadata", id::KEY_METADATA),
    ("split_offsets", id::SPLIT_OFFSETS),
    ("content", id::CONTENT),
    ("equality_ids", id::EQUALITY_IDS),
    ("first_row_id", id::FIRST_ROW_ID),
    ("referenced_data_file", id::REFERENCED_DATA_FILE),
    ("content_offset", id::CONTENT_OFFSET),
    ("content_size_in_bytes", id::CONTENT_SIZE),
];

fn id_by_name(name: &str) -> Option<i32> {
    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, id)| *id)
}

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
/// `manifest` is what the manifest list says of it; `table` gives the partition spec and its types.
pub fn parse_manifest(
    bytes: &[u8],
    manifest: &ManifestFile,
    table: &TableMetadata,
) -> Result<Vec<ManifestEntry>, FormatError> {
    let container = Container::open(bytes).map_err(|e| e.within("manifest"))?;
    let mut reader =
        EntryReader::new(&container, manifest, table).map_err(|e| e.within("manifest"))?;
    let mut entries = Vec::new();
    let mut position = 0_u64;
    container
        .for_each(|cursor| {
            entries.extend(reader.entry(cursor, &container.schema)?);
            position += 1;
            Ok(())
        })
        .map_err(|e| e.within(format!("manifest[{position}]")))?;
    Ok(entries)
}

/// What stays the same over the entries of one manifest.
struct EntryReader<'a> {
    manifest: &'a ManifestFile,
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
        let mut file = required("data_file", file)?;
        let sequence_number = self.sequence_number(status, sequence_number)?;
        file.first_row_id = self.first_row_id(&file)?;
        let snapshot_id = snapshot_id.map_or(self.manifest.added_snapshot_id, SnapshotId);
        Ok(Some(ManifestEntry {
            snapshot_id,
            sequence_number,
            file,
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

    fn data_file(
        &mut self,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
    ) -> Result<DataFile, FormatError> {
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
                    .field(id, cursor, &field.schema)
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
        self.finish(raw, partition)
    }

    fn finish(
        &self,
        raw: RawFile,
        partition: Arc<PartitionTuple>,
    ) -> Result<DataFile, FormatError> {
        let content = match (raw.content.unwrap_or(0), self.content) {
            (0, ManifestContent::Data) => FileContent::Data,
            (1, ManifestContent::Deletes) => FileContent::PositionDeletes,
            (2, ManifestContent::Deletes) => FileContent::EqualityDeletes,
            (other, manifest) => {
                let reason =
                    format!("a file of content {other} cannot stand in a manifest of {manifest:?}");
                return Err(FormatError::invalid("content", reason));
            }
        };
        Ok(DataFile {
            content,
            path: required("file_path", raw.path)?,
            format: file_format(&required("file_format", raw.format)?),
            spec_id: self.spec_id,
            partition,
            record_count: not_negative(
                "record_count",
                required("record_count", raw.record_count)?,
            )?,
            file_size: not_negative(
                "file_size_in_bytes",
                required("file_size_in_bytes", raw.file_size)?,
            )?,
            lower_bounds: raw.lower_bounds,
            upper_bounds: raw.upper_bounds,
            null_value_counts: raw.null_value_counts,
            split_offsets_count: raw.split_offsets_count,
            equality_ids: raw.equality_ids,
            first_row_id: raw.first_row_id,
            referenced_data_file: raw.referenced_data_file,
            content_offset: raw
                .content_offset
                .map(|v| not_negative("content_offset", v))
                .transpose()?,
            content_size: raw
                .content_size
                .map(|v| not_negative("content_size_in_bytes", v))
                .transpose()?,
            key_metadata: raw.key_metadata,
        })
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

/// The fields of a `data_file` as they are read, checked when all are there.
#[derive(Default)]
struct RawFile {
    content: Option<i64>,
    path: Option<String>,
    format: Option<String>,
    record_count: Option<i64>,
    file_size: Option<i64>,
    lower_bounds: Vec<(FieldId, Box<[u8]>)>,
    upper_bounds: Vec<(FieldId, Box<[u8]>)>,
    null_value_counts: Vec<(FieldId, u64)>,
    split_offsets_count: usize,
    equality_ids: Vec<FieldId>,
    first_row_id: Option<i64>,
    referenced_data_file: Option<String>,
    content_offset: Option<i64>,
    content_size: Option<i64>,
    key_metadata: bool,
}

impl RawFile {
    fn field(
        &mut self,
        id: i32,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
    ) -> Result<(), FormatError> {
        match id {
            id::CONTENT => self.content = cursor.integer(schema)?,
            id::PATH => self.path = cursor.text(schema)?.map(str::to_owned),
            id::FORMAT => self.format = cursor.text(schema)?.map(str::to_owned),
            id::RECORD_COUNT => self.record_count = cursor.integer(schema)?,
            id::FILE_SIZE => self.file_size = cursor.integer(schema)?,
            id::LOWER_BOUNDS => self.lower_bounds = bounds(cursor, schema)?,
            id::UPPER_BOUNDS => self.upper_bounds = bounds(cursor, schema)?,
            id::NULL_VALUE_COUNTS => {
                let counts = &mut self.null_value_counts;
                by_field(cursor, schema, |cursor, field, schema| {
                    let count = cursor
                        .integer(schema)?
                        .and_then(|count| u64::try_from(count).ok());
                    counts.extend(count.map(|count| (field, count)));
                    Ok(())
                })?;
            }
            id::SPLIT_OFFSETS => {
                let count = &mut self.split_offsets_count;
                cursor.items(schema, |cursor, item| {
                    *count += 1;
                    cursor.skip(item)
                })?;
            }
            id::EQUALITY_IDS => {
                let ids = &mut self.equality_ids;
                cursor.items(schema, |cursor, item| {
                    ids.push(field_id(cursor.integer(item)?)?);
                    Ok(())
                })?;
            }
            id::FIRST_ROW_ID => self.first_row_id = cursor.integer(schema)?,
            id::REFERENCED_DATA_FILE => {
                self.referenced_data_file = cursor.text(schema)?.map(str::to_owned)
            }
            id::CONTENT_OFFSET => self.content_offset = cursor.integer(schema)?,
            id::CONTENT_SIZE => self.content_size = cursor.integer(schema)?,
            id::KEY_METADATA => self.key_metadata = cursor.binary(schema)?.is_some(),
            _ => cursor.skip(schema)?,
        }
        Ok(())
    }
}

fn bounds(
    cursor: &mut Cursor<'_>,
    schema: &Schema,
) -> Result<Vec<(FieldId, Box<[u8]>)>, FormatError> {
    let mut bounds = Vec::new();
    by_field(cursor, schema, |cursor, field, schema| {
        bounds.extend(cursor.binary(schema)?.map(|bytes| (field, bytes.into())));
        Ok(())
    })?;
    Ok(bounds)
}

/// Reads a map keyed by field id, which Avro can only hold as an array of key and value records.
fn by_field(
    cursor: &mut Cursor<'_>,
    schema: &Schema,
    mut value: impl FnMut(&mut Cursor<'_>, FieldId, &Schema) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    cursor.items(schema, |cursor, item| {
        let record = required("entry of a map", cursor.record(item)?)?;
        let (key, values) = key_and_value(record)?;
        let id = field_id(cursor.integer(key)?)?;
        value(cursor, id, values)
    })
}

/// The schemas of key and value, which stand in this order in all that writers make.
fn key_and_value(record: &Record) -> Result<(&Schema, &Schema), FormatError> {
    let by_name = |name: &str| match name {
        "key" => id::MAP_KEYS.first().copied(),
        "value" => id::MAP_VALUES.first().copied(),
        _ => None,
    };
    let unlike =
        || FormatError::invalid("entry of a map", "expected a record of a key and a value");
    let [key, value] = record.fields.as_slice() else {
        return Err(unlike());
    };
    let is_key = record
        .id_of(key, by_name)
        .is_some_and(|id| id::MAP_KEYS.contains(&id));
    let is_value = record
        .id_of(value, by_name)
        .is_some_and(|id| id::MAP_VALUES.contains(&id));
    if is_key && is_value {
        Ok((&key.schema, &value.schema))
    } else {
        Err(unlike())
    }
}

fn field_id(number: Option<i64>) -> Result<FieldId, FormatError> {
    let id = number.and_then(|number| i32::try_from(number).ok());
    id.map(FieldId)
        .ok_or_else(|| FormatError::invalid("field id", format!("{number:?} is no field id")))
}

fn not_negative(what: &str, number: i64) -> Result<u64, FormatError> {
    u64::try_from(number).map_err(|_| FormatError::invalid(what, format!("is {number}")))
}

fn file_format(name: &str) -> FileFormat {
    match name.to_ascii_lowercase().as_str() {
        "parquet" => FileFormat::Parquet,
        "avro" => FileFormat::Avro,
        "orc" => FileFormat::Orc,
        "puffin" => FileFormat::Puffin,
        _ => FileFormat::Other(name.to_owned()),
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
