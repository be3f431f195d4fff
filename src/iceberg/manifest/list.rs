//! Manifest lists: one record for each manifest of a snapshot.

use super::{ManifestContent, ManifestFile, SequenceNumber};
use crate::iceberg::avro::{Container, Cursor, Schema};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::required;
use crate::iceberg::metadata::{Snapshot, SnapshotId};
use crate::iceberg::partition::SpecId;

/// The fields of `manifest_file` that are read, for writers that give no field ids.
const NAMES: [(&str, i32); 13] = [
    ("manifest_path", id::PATH),
    ("manifest_length", id::LENGTH),
    ("partition_spec_id", id::SPEC_ID),
    ("content", id::CONTENT),
    ("sequence_number", id::SEQUENCE_NUMBER),
    ("min_sequence_number", id::MIN_SEQUENCE_NUMBER),
    ("added_snapshot_id", id::ADDED_SNAPSHOT_ID),
    ("added_files_count", id::ADDED_FILES_COUNT),
    ("added_data_files_count", id::ADDED_FILES_COUNT),
    ("existing_files_count", id::EXISTING_FILES_COUNT),
    ("existing_data_files_count", id::EXISTING_FILES_COUNT),
    ("key_metadata", id::KEY_METADATA),
    ("first_row_id", id::FIRST_ROW_ID),
];

/// Field ids of `manifest_file` (spec, "Manifest Lists").
mod id {
    pub(super) const PATH: i32 = 500;
    pub(super) const LENGTH: i32 = 501;
    pub(super) const SPEC_ID: i32 = 502;
    pub(super) const ADDED_SNAPSHOT_ID: i32 = 503;
    pub(super) const ADDED_FILES_COUNT: i32 = 504;
    pub(super) const EXISTING_FILES_COUNT: i32 = 505;
    pub(super) const SEQUENCE_NUMBER: i32 = 515;
    pub(super) const MIN_SEQUENCE_NUMBER: i32 = 516;
    pub(super) const CONTENT: i32 = 517;
    pub(super) const KEY_METADATA: i32 = 519;
    pub(super) const FIRST_ROW_ID: i32 = 520;
}

/// Reads a manifest list, in its order.
///
/// What v1 does not have is 0 (sequence numbers) or data (content).
pub fn parse_manifest_list(bytes: &[u8]) -> Result<Vec<ManifestFile>, FormatError> {
    let container = Container::open(bytes).map_err(|e| e.within("manifest list"))?;
    let mut manifests = Vec::new();
    container
        .for_each(|cursor| {
            manifests.push(manifest_file(cursor, &container.schema)?);
            Ok(())
        })
        .map_err(|e| e.within(format!("manifest list[{}]", manifests.len())))?;
    Ok(manifests)
}

impl ManifestFile {
    /// A manifest that a v1 snapshot names itself, without a manifest list.
    ///
    /// The content and the spec id given here are placeholders: [`parse_manifest`](super::parse_manifest) takes the
    /// spec id of such a manifest from its own header.
    pub fn inline(path: &str, snapshot: &Snapshot) -> Self {
        Self {
            path: path.to_owned(),
            length: None,
            spec_id: SpecId(0),
            content: ManifestContent::Data,
            sequence_number: SequenceNumber(0),
            min_sequence_number: SequenceNumber(0),
            added_snapshot_id: snapshot.id,
            added_files_count: None,
            existing_files_count: None,
            first_row_id: None,
            key_metadata: false,
        }
    }
}

fn manifest_file(cursor: &mut Cursor<'_>, schema: &Schema) -> Result<ManifestFile, FormatError> {
    let record = cursor.record(schema)?;
    let record = record.ok_or_else(|| FormatError::invalid("manifest_file", "is null"))?;
    let (mut path, mut length, mut spec_id, mut added_snapshot_id) = (None, None, None, None);
    let (mut content, mut sequence_number, mut min_sequence_number) = (None, None, None);
    let (mut added_files_count, mut existing_files_count, mut first_row_id) = (None, None, None);
    let mut key_metadata = false;
    for field in &record.fields {
        let by_name = |name: &str| {
            NAMES
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, id)| *id)
        };
        let integer = match record.id_of(field, by_name) {
            Some(id::PATH) => {
                path = cursor
                    .text(&field.schema)
                    .map_err(|e| e.within(&field.name))?
                    .map(str::to_owned);
                continue;
            }
            Some(id::KEY_METADATA) => {
                key_metadata = cursor
                    .binary(&field.schema)
                    .map_err(|e| e.within(&field.name))?
                    .is_some();
                continue;
            }
            Some(id::LENGTH) => &mut length,
            Some(id::SPEC_ID) => &mut spec_id,
            Some(id::ADDED_SNAPSHOT_ID) => &mut added_snapshot_id,
            Some(id::CONTENT) => &mut content,
            Some(id::SEQUENCE_NUMBER) => &mut sequence_number,
            Some(id::MIN_SEQUENCE_NUMBER) => &mut min_sequence_number,
            Some(id::ADDED_FILES_COUNT) => &mut added_files_count,
            Some(id::EXISTING_FILES_COUNT) => &mut existing_files_count,
            Some(id::FIRST_ROW_ID) => &mut first_row_id,
            _ => {
                cursor
                    .skip(&field.schema)
                    .map_err(|e| e.within(&field.name))?;
                continue;
            }
        };
        *integer = cursor
            .integer(&field.schema)
            .map_err(|e| e.within(&field.name))?;
    }
    let spec_id = required("partition_spec_id", spec_id)?;
    let spec_id = i32::try_from(spec_id).map_err(|_| {
        FormatError::invalid("partition_spec_id", format!("{spec_id} is no spec id"))
    })?;
    let content = match content.unwrap_or(0) {
        0 => ManifestContent::Data,
        1 => ManifestContent::Deletes,
        other => {
            return Err(FormatError::invalid(
                "content",
                format!("{other} is neither 0 (data) nor 1 (deletes)"),
            ));
        }
    };
    if let Some(negative) = first_row_id.filter(|id| *id < 0) {
        return Err(FormatError::invalid(
            "first_row_id",
            format!("is {negative}"),
        ));
    }
    let length = required("manifest_length", length)?;
    Ok(ManifestFile {
        path: required("manifest_path", path)?,
        length: Some(
            u64::try_from(length)
                .map_err(|_| FormatError::invalid("manifest_length", format!("is {length}")))?,
        ),
        spec_id: SpecId(spec_id),
        content,
        sequence_number: SequenceNumber(sequence_number.unwrap_or(0)),
        min_sequence_number: SequenceNumber(min_sequence_number.unwrap_or(0)),
        added_snapshot_id: SnapshotId(required("added_snapshot_id", added_snapshot_id)?),
        // A negative count is no count: the manifest is then read.
        added_files_count: added_files_count.and_then(|count| u64::try_from(count).ok()),
        existing_files_count: existing_files_count.and_then(|count| u64::try_from(count).ok()),
        first_row_id: first_row_id.filter(|_| content == ManifestContent::Data),
        key_metadata,
    })
}
