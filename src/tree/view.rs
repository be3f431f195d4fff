//! A view: one snapshot read with one schema. Its plan and its files' layouts are made when first asked for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde_json::json;

use crate::cache::CacheKey;
use crate::iceberg::metadata::{Snapshot, SnapshotManifests};
use crate::iceberg::types::Type;
use crate::parallel::Ahead;
use crate::parquet::{ParquetFile, View, ViewColumns};
use crate::scan::{Plan, ScanFile};

use super::ahead::Walk;
use super::faults::{ErrorKind, Faults, TreeError};
use super::load::{self, Lineage, Source};
use super::node::ViewId;
use super::parts::Parts;
use super::table::TableState;
use super::text::Texts;

/// Bytes a footer takes for one column chunk, about: its metadata with statistics, offsets and path.
const FOOTER_BYTES_PER_CHUNK: u64 = 100;

/// A file whose footer is estimated over this is not listed: readers need ten times as much memory to read it.
const MAX_LISTED_FOOTER: u64 = 64 << 20;

/// The names of the row lineage columns.
const LINEAGE_COLUMNS: [&str; 2] = ["_row_id", "_last_updated_sequence_number"];

/// The names of the metadata columns.
const METADATA_COLUMNS: [&str; 4] = ["_file", "_pos", "_spec_id", "_partition"];

/// Bytes of memory that a column chunk takes in a layout and its footer, about.
const LAYOUT_BYTES_PER_CHUNK: u64 = 256;

/// What the next view is known by in the cache.
static NEXT_VIEW: AtomicU64 = AtomicU64::new(0);

/// What a view's directory shows. Its plan and its files' layouts are kept in the process's cache, within its budget.
#[derive(Debug)]
pub(super) struct ViewDirectory {
    pub(super) view: Arc<View>,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    schema_json: Arc<str>,
    /// Tells this view's entries in the cache from those of every other.
    pub(super) number: u64,
    /// Of the whole view as one file, in bytes, once known.
    whole_len: OnceLock<u64>,
    pub(super) texts: Texts,
    /// Who goes through its parts.
    walk: Walk,
    /// Milliseconds since 1970.
    pub(super) modified_ms: i64,
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
                splitting: source.options.splitting,
            }),
            snapshot,
            number: NEXT_VIEW.fetch_add(1, Ordering::Relaxed),
            whole_len: OnceLock::new(),
            texts: Texts::new(Arc::clone(&source.text)),
            walk: Walk::default(),
        })
    }

    /// The live data files. Reads the manifests.
    pub(super) fn parts(&self) -> Result<Arc<Parts>, TreeError> {
        let key = CacheKey {
            kind: "view-parts",
            id: self.number.to_string(),
        };
        self.view.cache.get_or_make(key, || {
            let plan = match &self.snapshot {
                Some(snapshot) => load::plan(&self.view, snapshot)?,
                None => Plan::default(),
            };
            let parts = Parts::new(plan);
            // However large, one plan must stay, or every look-up in it would make it again.
            let weight = parts.weight().min(self.view.cache.budget() / 2);
            Ok((parts, weight))
        })
    }

    /// The virtual file of one data file. Reads its footer.
    pub(super) fn part(&self, name: &str) -> Result<Arc<ParquetFile>, TreeError> {
        let parts = self.parts()?;
        let index = parts.find(name).ok_or_else(TreeError::not_found)?;
        match (parts.plan.files.get(index), parts.lens.get(index)) {
            (Some(file), Some(len)) => {
                self.open(&index.to_string(), std::slice::from_ref(file), len)
            }
            _ => Err(TreeError::not_found()),
        }
    }

    /// The size of one data file's virtual file, in bytes. Where files are asked for in their order, the sizes of the
    /// next ones are found ahead.
    pub(super) fn part_len(
        view: &Arc<ViewDirectory>,
        name: &str,
        ahead: &Ahead,
    ) -> Result<u64, TreeError> {
        let parts = view.parts()?;
        let place = parts.find(name).ok_or_else(TreeError::not_found)?;
        for batch in view.walk.note(place, ahead) {
            let (view, parts) = (Arc::clone(view), Arc::clone(&parts));
            ahead.run(move || {
                for place in batch {
                    // Whoever asks for it meets the error again.
                    let name = parts.name(place);
                    let _ = name.map(|name| view.known_part_len(&parts, name));
                }
            });
        }
        view.known_part_len(&parts, name)
    }

    fn known_part_len(&self, parts: &Parts, name: &str) -> Result<u64, TreeError> {
        let place = parts.find(name);
        let len = place.and_then(|place| parts.lens.get(place)?.get());
        len.map_or_else(|| Ok(self.part(name)?.len()), |len| Ok(*len))
    }

    /// The virtual file of the whole view. Reads every footer.
    pub(super) fn whole(&self) -> Result<Arc<ParquetFile>, TreeError> {
        self.open("whole", &self.parts()?.plan.files, &self.whole_len)
    }

    /// The size of the whole view as one file, in bytes.
    pub(super) fn whole_len(&self) -> Result<u64, TreeError> {
        let len = self.whole_len.get();
        len.map_or_else(|| Ok(self.whole()?.len()), |len| Ok(*len))
    }

    /// Lays a file out, or finds it laid out. `len` is its size, which must be the same each time.
    fn open(
        &self,
        which: &str,
        files: &[Arc<ScanFile>],
        len: &OnceLock<u64>,
    ) -> Result<Arc<ParquetFile>, TreeError> {
        let key = CacheKey {
            kind: "layout",
            id: format!("{}/{which}", self.number),
        };
        let file = self.view.cache.get_or_make(key, || {
            let file = ParquetFile::open(&self.view, files).map_err(|e| load::parquet_error(&e))?;
            let chunks = row_groups(files).saturating_mul(self.leaves());
            let weight = chunks.saturating_mul(LAYOUT_BYTES_PER_CHUNK);
            let weight = usize::try_from(weight).unwrap_or(usize::MAX);
            // A file whose layout is not kept would be laid out again for every opening.
            Ok((file, weight.min(self.view.cache.budget() / 2)))
        })?;
        if *len.get_or_init(|| file.len()) != file.len() {
            let message = "a data file or its deletes have changed since they were first read";
            return Err(TreeError::new(ErrorKind::Io, message));
        }
        Ok(file)
    }

    /// Columns of the view, as Parquet counts them.
    pub(super) fn leaves(&self) -> u64 {
        let fields = &self.view.schema.fields.fields;
        fields
            .iter()
            .map(|field| leaf_count(&field.ty))
            .fold(0, u64::saturating_add)
    }

    /// Why the whole view is not listed as one file, where its footer would be too large.
    pub(super) fn whole_unlisted(&self) -> Result<Option<String>, TreeError> {
        let row_groups = row_groups(&self.parts()?.plan.files);
        let leaves = self.leaves();
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

/// Row groups of files, as far as their manifests tell.
pub(super) fn row_groups(files: &[Arc<ScanFile>]) -> u64 {
    let splits = |file: &Arc<ScanFile>| {
        u64::try_from(file.file.split_offsets_count.max(1)).unwrap_or(u64::MAX)
    };
    files.iter().map(splits).fold(0, u64::saturating_add)
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
