//! Table metadata from JSON, compressed or not, with the fallbacks of v1 resolved (spec, Appendix C and E).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use serde_json::Value as Json;

use super::{
    MAIN_BRANCH, RefKind, Snapshot, SnapshotId, SnapshotLogEntry, SnapshotManifests, SnapshotRef,
    TableMetadata,
};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::{Object, mismatch, required};
use crate::iceberg::manifest::SequenceNumber;
use crate::iceberg::partition::{PartitionSpec, SpecId};
use crate::iceberg::schema::{Schema, SchemaId};
use crate::iceberg::types::FieldId;

/// The newest version that is adopted; later ones may change what is read here.
const NEWEST_FORMAT_VERSION: i64 = 3;
/// The first bytes of a gzip member.
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
/// The first bytes of a Zstandard frame: the spec names gzip only, but iceberg-go writes these too.
const ZSTANDARD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Bytes of JSON that a file may inflate to: far beyond any real table, and short of what would exhaust memory.
const MAX_INFLATED: u64 = 512 << 20;
/// Values of the JSON, at most: each takes some 70 bytes of memory, and may take two bytes of the file. A snapshot has 30.
const MAX_VALUES: usize = 1 << 24;
/// `current-snapshot-id` of a table without a snapshot, beside null.
const NO_SNAPSHOT: i64 = -1;

impl TableMetadata {
    /// Reads a metadata file. Compression is recognised by the first bytes, whatever the file's name.
    ///
    /// # Errors
    ///
    /// For a `format-version` above 3, and for metadata that is broken or contradicts itself.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = Self::inflate(bytes)?;
        let begins_value = |byte: &&u8| matches!(byte, b',' | b'[' | b'{');
        if bytes.iter().filter(begins_value).count() > MAX_VALUES {
            let feature = format!("table metadata of more than {MAX_VALUES} values");
            return Err(FormatError::unsupported(feature));
        }
        let json: Json = serde_json::from_slice(&bytes)
            .map_err(|e| FormatError::invalid("table metadata", e.to_string()))?;
        Self::from_json(&json).map_err(|e| e.within("table metadata"))
    }

    /// A metadata file's JSON: decompressed, where it is compressed.
    ///
    /// # Errors
    ///
    /// For bytes that do not decompress, or to too much.
    pub fn inflate(bytes: &[u8]) -> Result<Cow<'_, [u8]>, FormatError> {
        let broken = |e: std::io::Error| {
            FormatError::invalid("table metadata", format!("does not decompress: {e}"))
        };
        let mut decoder: Box<dyn Read + '_> = if bytes.starts_with(&GZIP_MAGIC) {
            Box::new(MultiGzDecoder::new(bytes).take(MAX_INFLATED + 1))
        } else if bytes.starts_with(&ZSTANDARD_MAGIC) {
            Box::new(
                zstd::stream::read::Decoder::with_buffer(bytes)
                    .map_err(broken)?
                    .take(MAX_INFLATED + 1),
            )
        } else {
            return Ok(Cow::Borrowed(bytes));
        };
        let mut inflated = Vec::new();
        decoder.read_to_end(&mut inflated).map_err(broken)?;
        if inflated.len() as u64 > MAX_INFLATED {
            return Err(FormatError::invalid(
                "table metadata",
                format!("inflates to more than {MAX_INFLATED} bytes"),
            ));
        }
        Ok(Cow::Owned(inflated))
    }

    fn from_json(json: &Json) -> Result<Self, FormatError> {
        let object = Object::of(json)?;
        let format_version = match required("format-version", object.i64("format-version")?)? {
            version @ 1..=NEWEST_FORMAT_VERSION => version as u8,
            version if version > NEWEST_FORMAT_VERSION => {
                return Err(FormatError::unsupported(format!(
                    "table format version {version}"
                )));
            }
            version => {
                return Err(FormatError::invalid(
                    "format-version",
                    format!("{version} does not exist"),
                ));
            }
        };
        let (schemas, current_schema_id) = schemas(object, format_version)?;
        let (partition_specs, default_spec_id) = partition_specs(object, format_version)?;
        let current_snapshot_id = object
            .i64("current-snapshot-id")?
            .filter(|id| *id != NO_SNAPSHOT)
            .map(SnapshotId);
        Ok(Self {
            format_version,
            table_uuid: table_uuid(object, format_version)?,
            location: required("location", object.str("location")?)?.to_owned(),
            last_updated_ms: required("last-updated-ms", object.i64("last-updated-ms")?)?,
            schemas,
            current_schema_id,
            partition_specs,
            default_spec_id,
            sort_columns: sort_columns(json),
            properties: string_map(object, "properties")?,
            current_snapshot_id,
            snapshots: snapshots(object)?,
            snapshot_log: object.each("snapshot-log", snapshot_log_entry)?,
            refs: refs(object, current_snapshot_id)?,
            encrypted: object
                .array("encryption-keys")?
                .is_some_and(|keys| !keys.is_empty()),
        })
    }
}

/// Nothing depends on sort orders, so one that makes no sense names no columns.
fn sort_columns(metadata: &Json) -> BTreeSet<FieldId> {
    let list = |json: &Json, name: &str| json.get(name).and_then(Json::as_array).cloned();
    let orders = list(metadata, "sort-orders").unwrap_or_default();
    let fields = orders.iter().filter_map(|order| list(order, "fields"));
    fields
        .flatten()
        .filter_map(|field| field.get("source-id")?.as_i64())
        .filter_map(|id| i32::try_from(id).ok())
        .map(FieldId)
        .collect()
}

fn table_uuid(object: Object<'_>, format_version: u8) -> Result<Option<uuid::Uuid>, FormatError> {
    let text = object.str("table-uuid")?;
    if text.is_none() && format_version > 1 {
        return Err(FormatError::invalid(
            "table-uuid",
            "is required but missing",
        ));
    }
    text.map(|text| {
        uuid::Uuid::try_parse(text)
            .map_err(|_| FormatError::invalid("table-uuid", format!("{text:?} is no UUID")))
    })
    .transpose()
}

type Schemas = BTreeMap<SchemaId, Arc<Schema>>;

/// All schemas and the id of the current one. v1 may have only `schema`.
fn schemas(object: Object<'_>, format_version: u8) -> Result<(Schemas, SchemaId), FormatError> {
    let mut schemas = BTreeMap::new();
    if object.get("schemas").is_none() && format_version == 1 {
        let json = required("schema", object.get("schema"))?;
        let schema = Schema::from_json(json).map_err(|e| e.within("schema"))?;
        let id = schema.id;
        schemas.insert(id, Arc::new(schema));
        return Ok((schemas, id));
    }
    required("schemas", object.array("schemas")?)?;
    for schema in object.each("schemas", Schema::from_json)? {
        let id = schema.id;
        if schemas.insert(id, Arc::new(schema)).is_some() {
            return Err(FormatError::invalid(
                "schemas",
                format!("schema id {} is used twice", id.0),
            ));
        }
    }
    let current = SchemaId(required(
        "current-schema-id",
        object.i32("current-schema-id")?,
    )?);
    match schemas.contains_key(&current) {
        true => Ok((schemas, current)),
        false => Err(FormatError::invalid(
            "current-schema-id",
            format!("schema {} is not in schemas", current.0),
        )),
    }
}

type PartitionSpecs = BTreeMap<SpecId, Arc<PartitionSpec>>;

/// All partition specs and the id of the default one. v1 may have only `partition-spec`, a list of fields.
fn partition_specs(
    object: Object<'_>,
    format_version: u8,
) -> Result<(PartitionSpecs, SpecId), FormatError> {
    let mut specs = BTreeMap::new();
    if object.get("partition-specs").is_none() && format_version == 1 {
        let fields = required("partition-spec", object.get("partition-spec"))?;
        let spec = PartitionSpec::from_fields_json(SpecId(0), fields)
            .map_err(|e| e.within("partition-spec"))?;
        specs.insert(SpecId(0), Arc::new(spec));
        return Ok((specs, SpecId(0)));
    }
    required("partition-specs", object.array("partition-specs")?)?;
    for spec in object.each("partition-specs", PartitionSpec::from_json)? {
        let id = spec.id;
        if specs.insert(id, Arc::new(spec)).is_some() {
            return Err(FormatError::invalid(
                "partition-specs",
                format!("spec id {} is used twice", id.0),
            ));
        }
    }
    Ok((
        specs,
        SpecId(required("default-spec-id", object.i32("default-spec-id")?)?),
    ))
}

fn snapshots(object: Object<'_>) -> Result<BTreeMap<SnapshotId, Arc<Snapshot>>, FormatError> {
    let mut snapshots = BTreeMap::new();
    for snapshot in object.each("snapshots", snapshot)? {
        let id = snapshot.id;
        if snapshots.insert(id, Arc::new(snapshot)).is_some() {
            return Err(FormatError::invalid(
                "snapshots",
                format!("snapshot id {} is used twice", id.0),
            ));
        }
    }
    Ok(snapshots)
}

fn snapshot(json: &Json) -> Result<Snapshot, FormatError> {
    let object = Object::of(json)?;
    let manifests = match (object.str("manifest-list")?, object.get("manifests")) {
        (Some(path), _) => SnapshotManifests::List(path.to_owned()),
        (None, Some(_)) => {
            let path = |json: &Json| {
                json.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| mismatch("", "a path", json))
            };
            SnapshotManifests::Inline(object.each("manifests", path)?)
        }
        (None, None) => {
            return Err(FormatError::invalid(
                "manifest-list",
                "is required but missing",
            ));
        }
    };
    Ok(Snapshot {
        id: SnapshotId(required("snapshot-id", object.i64("snapshot-id")?)?),
        parent_id: object.i64("parent-snapshot-id")?.map(SnapshotId),
        sequence_number: SequenceNumber(object.i64("sequence-number")?.unwrap_or(0)),
        timestamp_ms: required("timestamp-ms", object.i64("timestamp-ms")?)?,
        manifests,
        summary: string_map(object, "summary")?,
        schema_id: object.i32("schema-id")?.map(SchemaId),
        first_row_id: object.i64("first-row-id")?,
        added_rows: object.i64("added-rows")?,
        key_id: object.str("key-id")?.map(str::to_owned),
    })
}

fn snapshot_log_entry(json: &Json) -> Result<SnapshotLogEntry, FormatError> {
    let object = Object::of(json)?;
    Ok(SnapshotLogEntry {
        snapshot_id: SnapshotId(required("snapshot-id", object.i64("snapshot-id")?)?),
        timestamp_ms: required("timestamp-ms", object.i64("timestamp-ms")?)?,
    })
}

/// All refs, `main` among them whenever the table has a current snapshot.
fn refs(
    object: Object<'_>,
    current: Option<SnapshotId>,
) -> Result<BTreeMap<String, SnapshotRef>, FormatError> {
    let mut refs = BTreeMap::new();
    if let Some(entries) = object.object("refs")? {
        for (name, json) in entries.entries() {
            let read = snapshot_ref(json).map_err(|e| e.within(format!("refs[{name:?}]")))?;
            refs.insert(name.clone(), read);
        }
    }
    match (current, refs.get(MAIN_BRANCH)) {
        (Some(current), None) => {
            refs.insert(
                MAIN_BRANCH.to_owned(),
                SnapshotRef {
                    snapshot_id: current,
                    kind: RefKind::Branch,
                },
            );
        }
        (current, Some(main)) if current != Some(main.snapshot_id) => {
            let current = current.map_or("none".to_owned(), |id| id.0.to_string());
            let reason = format!(
                "main is at {}, but current-snapshot-id is {current}",
                main.snapshot_id.0
            );
            return Err(FormatError::invalid("refs", reason));
        }
        _ => {}
    }
    Ok(refs)
}

fn snapshot_ref(json: &Json) -> Result<SnapshotRef, FormatError> {
    let object = Object::of(json)?;
    let kind = match required("type", object.str("type")?)? {
        kind if kind.eq_ignore_ascii_case("branch") => RefKind::Branch,
        kind if kind.eq_ignore_ascii_case("tag") => RefKind::Tag,
        kind => {
            return Err(FormatError::invalid(
                "type",
                format!("expected branch or tag, found {kind:?}"),
            ));
        }
    };
    Ok(SnapshotRef {
        snapshot_id: SnapshotId(required("snapshot-id", object.i64("snapshot-id")?)?),
        kind,
    })
}

/// A map from strings to strings. Some writers leave numbers and booleans bare: their JSON text is taken.
fn string_map(object: Object<'_>, key: &str) -> Result<BTreeMap<String, String>, FormatError> {
    let mut map = BTreeMap::new();
    let Some(entries) = object.object(key)? else {
        return Ok(map);
    };
    for (name, json) in entries.entries() {
        let value = match json {
            Json::Null => continue,
            Json::String(text) => text.clone(),
            Json::Bool(_) | Json::Number(_) => json.to_string(),
            Json::Array(_) | Json::Object(_) => {
                return Err(mismatch(&format!("{key}[{name:?}]"), "a string", json));
            }
        };
        map.insert(name.clone(), value);
    }
    Ok(map)
}
