//! Where the tree meets the modules below it: the source's options, and a table's metadata and plan read through them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cache::Cache;
use crate::catalog::{Catalog, TablePointer};
use crate::counters::Counters;
use crate::iceberg::FormatError;
use crate::iceberg::metadata::{Snapshot, TableMetadata};
use crate::iceberg::schema::SchemaId;
use crate::parallel::Ahead;
use crate::parquet::{ParquetError, Splitting, View};
use crate::scan::{self, Plan};
use crate::storage::{self, Address, Storage, StorageOptions};
use crate::text::{Engine, TextError, TextOptions};

use super::faults::{ErrorKind, TreeError};

/// Bytes of a metadata file: the largest seen in the wild are tens of megabytes.
const MAX_METADATA: u64 = 512 << 20;

/// Table properties that name places where files of the table may lie.
const LOCATION_PROPERTIES: [&str; 5] = [
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
    "object-store.path",
];

/// When views show the row lineage columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Lineage {
    /// In every view of a format version 3 table.
    #[default]
    Auto,
    /// In every view.
    Always,
    /// In none.
    Never,
}

/// What the user says about the tree.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// How long a table's pointer is taken as it was found.
    pub refresh: Duration,
    pub lineage: Lineage,
    /// Whether views show `_file`, `_pos`, `_spec_id` and `_partition`.
    pub metadata_columns: bool,
    pub storage: StorageOptions,
    pub text: TextOptions,
    pub splitting: Splitting,
}

/// What all tables are read through.
pub(super) struct Source {
    pub(super) catalog: Box<dyn Catalog>,
    pub(super) cache: Arc<Cache>,
    pub(super) counters: Arc<Counters>,
    pub(super) options: TreeOptions,
    pub(super) text: Arc<Engine>,
    pub(super) ahead: Arc<Ahead>,
}

/// A metadata file's JSON, decompressed where it is compressed, whatever its name says.
pub(super) fn metadata_text(source: &Source, pointer: &TablePointer) -> Result<Bytes, TreeError> {
    let path = &pointer.metadata;
    let bytes = match &pointer.content {
        Some(content) => content.clone(),
        None => {
            let options = &source.options.storage;
            storage::read_named_file(options, path, &pointer.access, MAX_METADATA)
                .map_err(|e| TreeError::from_source(&e, e.is_unsupported()))?
        }
    };
    let text = TableMetadata::inflate(&bytes).map_err(|e| format_error(path, &e))?;
    match text {
        Cow::Borrowed(_) => Ok(bytes),
        Cow::Owned(text) => Ok(text.into()),
    }
}

fn format_error(path: &Address, error: &FormatError) -> TreeError {
    let error = TreeError::from_source(error, error.is_unsupported());
    TreeError::new(error.kind, format!("{path}: {}", error.message))
}

/// Table metadata from its JSON.
pub(super) fn parse(path: &Address, text: &[u8]) -> Result<TableMetadata, TreeError> {
    TableMetadata::parse(text).map_err(|e| format_error(path, &e))
}

/// Whether JSON ends before it is whole, as that of a file does which is being written.
pub(super) fn is_cut_short(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// Each schema of a metadata file as the file has it, indented.
pub(super) fn schemas_json(
    path: &Address,
    text: &[u8],
) -> Result<BTreeMap<SchemaId, Arc<str>>, TreeError> {
    #[derive(Deserialize)]
    struct Schemas {
        #[serde(default)]
        schemas: Option<Vec<serde_json::Value>>,
        /// v1 only, and then it may have no id.
        schema: Option<serde_json::Value>,
    }
    let found: Schemas = serde_json::from_slice(text)
        .map_err(|e| TreeError::new(ErrorKind::Io, format!("{path}: {e}")))?;
    let schemas = found
        .schemas
        .filter(|schemas| !schemas.is_empty())
        .unwrap_or_else(|| found.schema.into_iter().collect());
    Ok(schemas
        .into_iter()
        .filter_map(|schema| {
            let id = schema
                .get("schema-id")
                .and_then(|id| id.as_i64())
                .unwrap_or(0);
            let id = SchemaId(i32::try_from(id).ok()?);
            Some((id, Arc::from(format!("{schema:#}\n"))))
        })
        .collect())
}

/// The storage of a table in the state that `metadata` says.
pub(super) fn storage(
    source: &Source,
    pointer: &TablePointer,
    metadata: &TableMetadata,
) -> Result<Arc<Storage>, TreeError> {
    let extra: Vec<String> = LOCATION_PROPERTIES
        .iter()
        .filter_map(|name| metadata.properties.get(*name).cloned())
        .collect();
    let recorded;
    let root = if source.catalog.tables_lie_where_recorded() {
        recorded = Address::recorded(&metadata.location)
            .map(|recorded| source.options.storage.mapped(&recorded))
            .map_err(|e| TreeError::from_source(&e, e.is_unsupported()))?;
        &recorded
    } else {
        &pointer.root
    };
    Storage::new(
        &source.options.storage,
        root,
        &pointer.access,
        &metadata.location,
        &extra,
    )
    .map(Arc::new)
    .map_err(|e| TreeError::from_source(&e, e.is_unsupported()))
}

/// The live data files of a snapshot, with their deletes.
pub(super) fn plan(view: &View, snapshot: &Snapshot) -> Result<Plan, TreeError> {
    scan::plan(&view.metadata, snapshot, &view.storage, &view.cache)
        .map_err(|e| TreeError::from_source(&e, e.is_unsupported()))
}

/// A failure of a virtual Parquet file.
pub(super) fn parquet_error(error: &ParquetError) -> TreeError {
    TreeError::from_source(error, error.is_unsupported())
}

/// A failure of a text.
pub(super) fn text_error(error: &TextError) -> TreeError {
    TreeError::from_source(error, error.is_unsupported())
}
