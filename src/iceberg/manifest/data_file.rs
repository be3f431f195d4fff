//! The `data_file` record of a manifest entry, and the field ids of manifests.

use std::sync::Arc;

use super::{
    ColumnBounds, ColumnStatistics, DataFile, DeleteDetails, FileContent, FileFormat,
    ManifestContent, PartitionTuple, Statistics,
};
use crate::iceberg::avro::{Cursor, Record, Schema};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::required;
use crate::iceberg::partition::SpecId;
use crate::iceberg::types::FieldId;

/// Field ids of `manifest_entry` and `data_file` (spec, "Manifests").
pub(super) mod id {
    pub(in crate::iceberg::manifest) const STATUS: i32 = 0;
    pub(in crate::iceberg::manifest) const SNAPSHOT_ID: i32 = 1;
    pub(in crate::iceberg::manifest) const DATA_FILE: i32 = 2;
    pub(in crate::iceberg::manifest) const SEQUENCE_NUMBER: i32 = 3;

    pub(in crate::iceberg::manifest) const PATH: i32 = 100;
    pub(in crate::iceberg::manifest) const FORMAT: i32 = 101;
    pub(in crate::iceberg::manifest) const PARTITION: i32 = 102;
    pub(in crate::iceberg::manifest) const RECORD_COUNT: i32 = 103;
    pub(in crate::iceberg::manifest) const FILE_SIZE: i32 = 104;
    pub(in crate::iceberg::manifest) const NULL_VALUE_COUNTS: i32 = 110;
    pub(in crate::iceberg::manifest) const LOWER_BOUNDS: i32 = 125;
    pub(in crate::iceberg::manifest) const UPPER_BOUNDS: i32 = 128;
    pub(in crate::iceberg::manifest) const KEY_METADATA: i32 = 131;
    pub(in crate::iceberg::manifest) const SPLIT_OFFSETS: i32 = 132;
    pub(in crate::iceberg::manifest) const CONTENT: i32 = 134;
    pub(in crate::iceberg::manifest) const EQUALITY_IDS: i32 = 135;
    pub(in crate::iceberg::manifest) const FIRST_ROW_ID: i32 = 142;
    pub(in crate::iceberg::manifest) const REFERENCED_DATA_FILE: i32 = 143;
    pub(in crate::iceberg::manifest) const CONTENT_OFFSET: i32 = 144;
    pub(in crate::iceberg::manifest) const CONTENT_SIZE: i32 = 145;

    /// Keys and values of the maps above that are read.
    pub(in crate::iceberg::manifest) const MAP_KEYS: [i32; 3] = [121, 126, 129];
    pub(in crate::iceberg::manifest) const MAP_VALUES: [i32; 3] = [122, 127, 130];
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

/// The id of a field that has none, by its name.
pub(super) fn id_by_name(name: &str) -> Option<i32> {
    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, id)| *id)
}

/// The fields of a `data_file` as they are read, checked when all are there.
#[derive(Default)]
pub(super) struct RawFile {
    content: Option<i64>,
    path: Option<String>,
    format: Option<String>,
    record_count: Option<i64>,
    file_size: Option<i64>,
    statistics: ColumnStatistics,
    deletes: DeleteDetails,
    split_offsets_count: usize,
    first_row_id: Option<i64>,
    key_metadata: bool,
}

impl RawFile {
    /// Reads the field with this id; of statistics those that are asked for.
    pub(super) fn field(
        &mut self,
        id: i32,
        cursor: &mut Cursor<'_>,
        schema: &Schema,
        statistics: &Statistics,
    ) -> Result<(), FormatError> {
        match id {
            id::LOWER_BOUNDS | id::UPPER_BOUNDS | id::NULL_VALUE_COUNTS
                if statistics.is_nothing() =>
            {
                cursor.skip(schema)?;
            }
            id::CONTENT => self.content = cursor.integer(schema)?,
            id::PATH => self.path = cursor.text(schema)?.map(str::to_owned),
            id::FORMAT => self.format = cursor.text(schema)?.map(str::to_owned),
            id::RECORD_COUNT => self.record_count = cursor.integer(schema)?,
            id::FILE_SIZE => self.file_size = cursor.integer(schema)?,
            id::LOWER_BOUNDS => self.statistics.lower_bounds = bounds(cursor, schema, statistics)?,
            id::UPPER_BOUNDS => self.statistics.upper_bounds = bounds(cursor, schema, statistics)?,
            id::NULL_VALUE_COUNTS => {
                let counts = &mut self.statistics.null_value_counts;
                by_field(cursor, schema, |cursor, field, schema| {
                    let count = cursor
                        .integer(schema)?
                        .and_then(|count| u64::try_from(count).ok())
                        .filter(|_| statistics.keeps(field));
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
                let ids = &mut self.deletes.equality_ids;
                cursor.items(schema, |cursor, item| {
                    ids.push(field_id(cursor.integer(item)?)?);
                    Ok(())
                })?;
            }
            id::FIRST_ROW_ID => self.first_row_id = cursor.integer(schema)?,
            id::REFERENCED_DATA_FILE => {
                self.deletes.referenced_data_file = cursor.text(schema)?.map(str::to_owned)
            }
            id::CONTENT_OFFSET => {
                self.deletes.content_offset = offset("content_offset", cursor.integer(schema)?)?
            }
            id::CONTENT_SIZE => {
                self.deletes.content_size =
                    offset("content_size_in_bytes", cursor.integer(schema)?)?
            }
            id::KEY_METADATA => self.key_metadata = cursor.binary(schema)?.is_some(),
            _ => cursor.skip(schema)?,
        }
        Ok(())
    }

    /// Whether a delete file has what says which rows it deletes: an equality delete without columns would delete
    /// them all.
    fn check_deletes(&self, content: FileContent) -> Result<(), FormatError> {
        let deletes = &self.deletes;
        let is_vector = self
            .format
            .as_deref()
            .is_some_and(|name| name.eq_ignore_ascii_case("puffin"));
        let missing = match content {
            FileContent::EqualityDeletes if deletes.equality_ids.is_empty() => Some("equality_ids"),
            FileContent::PositionDeletes if is_vector && deletes.referenced_data_file.is_none() => {
                Some("referenced_data_file")
            }
            FileContent::PositionDeletes if is_vector && deletes.content_offset.is_none() => {
                Some("content_offset")
            }
            FileContent::PositionDeletes if is_vector && deletes.content_size.is_none() => {
                Some("content_size_in_bytes")
            }
            _ => None,
        };
        match missing {
            Some(what) => Err(FormatError::invalid(
                what,
                format!("is required for {content:?} but missing"),
            )),
            None => Ok(()),
        }
    }

    /// The data file, in a manifest of this content and spec.
    pub(super) fn finish(
        mut self,
        manifest: ManifestContent,
        spec_id: SpecId,
        partition: Arc<PartitionTuple>,
    ) -> Result<DataFile, FormatError> {
        // A manifest may hold 100,000 of these: what the vectors grew too far is given back.
        self.statistics.lower_bounds.shrink_to_fit();
        self.statistics.upper_bounds.shrink_to_fit();
        self.statistics.null_value_counts.shrink_to_fit();
        let content = match (self.content.unwrap_or(0), manifest) {
            (0, ManifestContent::Data) => FileContent::Data,
            (1, ManifestContent::Deletes) => FileContent::PositionDeletes,
            (2, ManifestContent::Deletes) => FileContent::EqualityDeletes,
            (other, manifest) => {
                let reason =
                    format!("a file of content {other} cannot stand in a manifest of {manifest:?}");
                return Err(FormatError::invalid("content", reason));
            }
        };
        self.check_deletes(content)?;
        Ok(DataFile {
            content,
            path: required("file_path", self.path)?,
            format: file_format(&required("file_format", self.format)?),
            spec_id,
            partition,
            record_count: not_negative(
                "record_count",
                required("record_count", self.record_count)?,
            )?,
            file_size: not_negative(
                "file_size_in_bytes",
                required("file_size_in_bytes", self.file_size)?,
            )?,
            split_offsets_count: self.split_offsets_count,
            first_row_id: self
                .first_row_id
                .map(|id| not_negative("first_row_id", id).map(|_| id))
                .transpose()?,
            key_metadata: self.key_metadata,
            column_statistics: unless_default(self.statistics),
            delete_details: unless_default(self.deletes),
        })
    }
}

fn bounds(
    cursor: &mut Cursor<'_>,
    schema: &Schema,
    statistics: &Statistics,
) -> Result<ColumnBounds, FormatError> {
    let mut bounds = Vec::new();
    by_field(cursor, schema, |cursor, field, schema| {
        let bound = cursor
            .binary(schema)?
            .filter(|_| statistics.keeps(field))
            .map(|bytes| (field, bytes.into()));
        bounds.extend(bound);
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

fn offset(what: &str, number: Option<i64>) -> Result<Option<u64>, FormatError> {
    number.map(|number| not_negative(what, number)).transpose()
}

/// `None` for a value that says nothing.
fn unless_default<T: Default + PartialEq>(value: T) -> Option<Box<T>> {
    (value != T::default()).then(|| Box::new(value))
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
