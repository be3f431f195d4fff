//! A view: one snapshot read with one schema. Its plan and its files' layouts are made when first asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::json;

use crate::iceberg::metadata::{Snapshot, SnapshotManifests};
use crate::iceberg::types::Type;
use crate::parquet::{ParquetFile, View, ViewColumns};
use crate::scan::{Plan, ScanFile};

use super::faults::{ErrorKind, Faults, TreeError};
use super::load::{self, Lineage, Source};
use super::names;
use super::node::ViewId;
use super::table::TableState;

/// Bytes a footer takes for one column chunk, about: its metadata with statistics, offsets and path.
const FOOTER_BYTES_PER_CHUNK: u64 = 100;

/// A file whose footer is estimated over this is not listed: readers need ten times as much memory to read it.
const MAX_LISTED_FOOTER: u64 = 64 << 20;

/// The names of the row lineage columns.
const LINEAGE_COLUMNS: [&str; 2] = ["_row_id", "_last_updated_sequence_number"];

/// The names of the metadata columns.
const METADATA_COLUMNS: [&str; 4] = ["_file", "_pos", "_spec_id", "_partition"];

/// A value that is made when first asked for, by one caller while the others wait. A failure is not kept.
#[derive(Debug)]
struct Made<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for Made<T> {
    fn default() -> Self {
        Made(Mutex::new(None))
    }
}

impl<T> Made<T> {
    fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*slot {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(make()?);
        *slot = Some(Arc::clone(&value));
        Ok(value)
    }
}

impl Parts {
    /// Whether a data file goes by this name.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// The base name of the data file that goes by this name, where it had to be cut.
    pub(super) fn cut_name(&self, name: &str) -> Option<String> {
        let path = &self.plan.files.get(*self.index.get(name)?)?.file.path;
        let base = path
            .rsplit('/')
            .next()
            .filter(|base| names::is_cut(base, ""))?;
        Some(base.to_owned())
    }
}

/// What a view's directory shows.
#[derive(Debug)]
pub(super) struct ViewDirectory {
    view: Arc<View>,
    snapshot: Option<Arc<Snapshot>>,
    schema_json: Arc<str>,
    parts: Made<Parts>,
    whole: Made<ParquetFile>,
    /// Milliseconds since 1970.
    pub(super) modified_ms: i64,
}

/// A view's live data files.
#[derive(Debug)]
pub(super) struct Parts {
    plan: Plan,
    /// Parallel to the plan's files.
    pub(super) names: Vec<String>,
    index: HashMap<String, usize>,
    opened: Vec<Made<ParquetFile>>,
}

impl ViewDirectory {
    /// The view that `id` names, of a table in this state. Reads nothing.
    pub(super) fn new(
        source: &Source,
        state: &TableState,
        id: ViewId,
        path: &str,
        faults: &Faults,
    ) -> Result<ViewDirectory, TreeError> {
        let metadata = &state.metadata;
        let snapshot = id
            .snapshot
            .and_then(|id| metadata.snapshots.get(&id))
            .cloned();
        if snapshot.is_none() && (id.snapshot.is_some() || metadata.current_snapshot_id.is_some()) {
            return Err(TreeError::new(
                ErrorKind::Stale,
                "the snapshot has been expired from the table",
            ));
        }
        let schema = state.schema(id.schema)?;
        let clash = |columns: &[&str]| {
            schema
                .fields
                .fields
                .iter()
                .map(|field| field.name.clone())
                .find(|name| columns.contains(&name.as_str()))
        };
        let mut columns = ViewColumns {
            lineage: match source.options.lineage {
                Lineage::Auto => metadata.format_version >= 3,
                Lineage::Always => true,
                Lineage::Never => false,
            },
            metadata: source.options.metadata_columns,
        };
        if let Some(name) = clash(&LINEAGE_COLUMNS).filter(|_| columns.lineage) {
            faults.record(
                path,
                &format!(
                    "the table has a column {name} of its own: row lineage columns are left out"
                ),
            );
            columns.lineage = false;
        }
        if let Some(name) = clash(&METADATA_COLUMNS).filter(|_| columns.metadata) {
            faults.record(
                path,
                &format!("the table has a column {name} of its own: metadata columns are left out"),
            );
            columns.metadata = false;
        }
        let schema_json = state.schemas_json.get(&id.schema).cloned();
        Ok(ViewDirectory {
            modified_ms: snapshot
                .as_ref()
                .map_or(metadata.last_updated_ms, |s| s.timestamp_ms),
            schema_json: schema_json
                .ok_or_else(|| state.broken(&format!("no schema {}", id.schema.0)))?,
            view: Arc::new(View {
                storage: Arc::clone(&state.storage),
                cache: Arc::clone(&source.cache),
                metadata: Arc::clone(metadata),
                schema,
                snapshot: id.snapshot,
                columns,
            }),
            snapshot,
            parts: Made::default(),
            whole: Made::default(),
        })
    }

    /// The live data files. Reads the manifests.
    pub(super) fn parts(&self) -> Result<Arc<Parts>, TreeError> {
        self.parts.get_or_make(|| {
            let plan = match &self.snapshot {
                Some(snapshot) => load::plan(&self.view, snapshot)?,
                None => Plan::default(),
            };
            let names = names::parts(plan.files.iter().map(|file| file.file.path.as_str()));
            Ok(Parts {
                index: names
                    .iter()
                    .enumerate()
                    .map(|(i, name)| (name.clone(), i))
                    .collect(),
                opened: plan.files.iter().map(|_| Made::default()).collect(),
                names,
                plan,
            })
        })
    }

    /// The virtual file of one data file. Reads its footer.
    pub(super) fn part(&self, name: &str) -> Result<Arc<ParquetFile>, TreeError> {
        let parts = self.parts()?;
        let file = parts
            .index
            .get(name)
            .and_then(|i| Some((parts.plan.files.get(*i)?, parts.opened.get(*i)?)));
        let (file, opened) = file.ok_or_else(TreeError::not_found)?;
        opened.get_or_make(|| self.open(std::slice::from_ref(file)))
    }

    /// The virtual file of the whole view. Reads every footer.
    pub(super) fn whole(&self) -> Result<Arc<ParquetFile>, TreeError> {
        let parts = self.parts()?;
        self.whole.get_or_make(|| self.open(&parts.plan.files))
    }

    fn open(&self, files: &[Arc<ScanFile>]) -> Result<ParquetFile, TreeError> {
        ParquetFile::open(&self.view, files).map_err(|e| load::parquet_error(&e))
    }

    /// Why the whole view is not listed as one file, where its footer would be too large.
    pub(super) fn whole_unlisted(&self) -> Result<Option<String>, TreeError> {
        let splits = |file: &Arc<ScanFile>| {
            u64::try_from(file.file.split_offsets_count.max(1)).unwrap_or(u64::MAX)
        };
        let row_groups = self
            .parts()?
            .plan
            .files
            .iter()
            .map(splits)
            .fold(0, u64::saturating_add);
        let fields = &self.view.schema.fields.fields;
        let leaves = fields
            .iter()
            .map(|field| leaf_count(&field.ty))
            .fold(0, u64::saturating_add);
        let footer = row_groups
            .saturating_mul(leaves)
            .saturating_mul(FOOTER_BYTES_PER_CHUNK);
        Ok((footer > MAX_LISTED_FOOTER).then(|| {
            format!(
                "not listed: {row_groups} row groups of {leaves} columns would give a footer of about {} MiB; \
                 read parts/ instead",
                footer >> 20
            )
        }))
    }

    /// `schema.json`.
    pub(super) fn schema_json(&self) -> &str {
        &self.schema_json
    }

    /// `snapshot.json`.
    pub(super) fn snapshot_json(&self) -> String {
        let text = match &self.snapshot {
            Some(snapshot) => {
                let (list, inline) = match &snapshot.manifests {
                    SnapshotManifests::List(path) => (Some(path), None),
                    SnapshotManifests::Inline(paths) => (None, Some(paths)),
                };
                let time = Timestamp::from_millisecond(snapshot.timestamp_ms)
                    .ok()
                    .map(|t| format!("{t:.3}"));
                let mut object = json!({
                    "snapshot-id": snapshot.id.0,
                    "parent-snapshot-id": snapshot.parent_id.map(|id| id.0),
                    "sequence-number": snapshot.sequence_number.0,
                    "timestamp": time,
                    "timestamp-ms": snapshot.timestamp_ms,
                    "operation": snapshot.summary.get("operation"),
                    "summary": snapshot.summary,
                    "schema-id": snapshot.schema_id.map(|id| id.0),
                    "manifest-list": list,
                });
                if let (Some(paths), Some(object)) = (inline, object.as_object_mut()) {
                    object.insert("manifests".to_owned(), json!(paths));
                }
                object
            }
            None => json!({ "snapshot-id": null }),
        };
        format!("{text:#}\n")
    }
}

/// Parquet columns that a type takes. The metadata's parser has bounded how deep types nest.
fn leaf_count(ty: &Type) -> u64 {
    match ty {
        Type::Primitive(_) => 1,
        Type::Struct(fields) => fields
            .fields
            .iter()
            .map(|field| leaf_count(&field.ty))
            .fold(0, u64::saturating_add),
        Type::List(list) => leaf_count(&list.element.ty),
        Type::Map(map) => leaf_count(&map.key.ty).saturating_add(leaf_count(&map.value.ty)),
    }
}
