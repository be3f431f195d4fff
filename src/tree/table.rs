//! One table of the source: its current metadata, looked at again when it is due.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::catalog::{TableIdent, TablePointer};
use crate::iceberg::metadata::{
    NAME_MAPPING_PROPERTY, RefKind, Snapshot, SnapshotId, TableMetadata,
};
use crate::iceberg::schema::{Schema, SchemaId};
use crate::scan;
use crate::storage::{Address, Storage};

use super::faults::{ErrorKind, TreeError};
use super::load::{self, Source};
use super::node::{Incarnation, Manner, view_name};

/// How long a commit may take to write a metadata file in its place, as PyIceberg does where others rename: one that
/// ends too early is looked at again for as long, after it was last touched.
const WRITING: Duration = Duration::from_secs(2);

/// Between two looks at a file that is being written.
const PAUSE: Duration = Duration::from_millis(10);

/// What a table is at one commit. Never changes.
#[derive(Debug)]
pub(super) struct TableState {
    pub(super) pointer: TablePointer,
    pub(super) metadata: Arc<TableMetadata>,
    pub(super) storage: Arc<Storage>,
    /// Each schema's JSON as the metadata file has it, indented.
    pub(super) schemas_json: BTreeMap<SchemaId, Arc<str>>,
    /// Bytes of the metadata file's JSON, decompressed.
    pub(super) json_len: u64,
    pub(super) incarnation: Incarnation,
    pub(super) manner: Manner,
    stamp: Stamp,
}

/// What tells that a file was written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
}

impl Stamp {
    /// Of a file of this machine; what a store says is in the pointer.
    fn of(address: &Address) -> std::io::Result<Stamp> {
        let metadata = address.local().map(std::fs::metadata).transpose()?;
        Ok(Stamp {
            modified: metadata.as_ref().and_then(|m| m.modified().ok()),
            len: metadata.map_or(0, |m| m.len()),
        })
    }

    /// Whether the file may still be written to.
    fn is_fresh(&self) -> bool {
        let age = self.modified.map(|modified| modified.elapsed());
        // A time to come is a clock that was set, or another machine's.
        age.is_some_and(|age| age.unwrap_or_default() < WRITING)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Files without field ids show what the name mapping says; format version 3 has row lineage; bounds are exact of the
/// columns that partition or sort the table, and `_partition` is typed by its specs.
fn manner(metadata: &TableMetadata) -> Manner {
    let specs = metadata.partition_specs.values();
    let specs = specs.map(|spec| (spec, metadata.partition_type(spec)));
    Manner(hash(&(
        metadata.properties.get(NAME_MAPPING_PROPERTY),
        metadata.format_version >= 3,
        &metadata.sort_columns,
        format!("{:?}", specs.collect::<Vec<_>>()),
    )))
}

impl TableState {
    fn load(source: &Source, pointer: TablePointer, stamp: Stamp) -> Result<TableState, TreeError> {
        let text = load::metadata_text(source, &pointer)?;
        let metadata = load::parse(&pointer.metadata, &text).map_err(|mut error| {
            if stamp.is_fresh() && load::is_cut_short(&text) {
                error.kind = ErrorKind::Unfinished;
            }
            error
        })?;
        let storage = load::storage(source, &pointer, &metadata)?;
        let incarnation = Incarnation(match metadata.table_uuid {
            Some(uuid) => hash(&uuid),
            None => hash(&metadata.location),
        });
        let manner = manner(&metadata);
        Ok(TableState {
            schemas_json: load::schemas_json(&pointer.metadata, &text)?,
            json_len: u64::try_from(text.len()).unwrap_or(u64::MAX),
            metadata: Arc::new(metadata),
            storage,
            incarnation,
            manner,
            pointer,
            stamp,
        })
    }

    /// The schema that a snapshot is read with where nothing else is said (rule 8).
    pub(super) fn schema_of(&self, snapshot: Option<&Snapshot>) -> SchemaId {
        snapshot
            .and_then(|s| s.schema_id)
            .unwrap_or(self.metadata.current_schema_id)
    }

    pub(super) fn schema(&self, id: SchemaId) -> Result<Arc<Schema>, TreeError> {
        let schema = self.metadata.schemas.get(&id).cloned();
        schema.ok_or_else(|| {
            self.broken(&format!(
                "a snapshot names schema {}, which is not there",
                id.0
            ))
        })
    }

    pub(super) fn broken(&self, reason: &str) -> TreeError {
        TreeError::new(
            ErrorKind::Io,
            format!("{}: {reason}", self.pointer.metadata),
        )
    }

    /// The refs of a kind, by name, with the snapshot each names. A table without a snapshot still has `main`.
    pub(super) fn refs(&self, kind: RefKind) -> BTreeMap<&str, Option<SnapshotId>> {
        let refs = self.metadata.refs.iter().filter(|(_, r)| r.kind == kind);
        let mut refs: BTreeMap<&str, Option<SnapshotId>> = refs
            .map(|(name, r)| (name.as_str(), Some(r.snapshot_id)))
            .collect();
        if kind == RefKind::Branch && self.metadata.current_snapshot_id.is_none() {
            refs.entry("main").or_insert(None);
        }
        refs
    }

    /// The name in `snapshots/` that a ref leads to: a branch is read with the current schema, a tag with its snapshot's.
    pub(super) fn ref_view(&self, kind: RefKind, snapshot: Option<SnapshotId>) -> String {
        let head = snapshot.and_then(|id| self.metadata.snapshots.get(&id));
        let current = self.metadata.current_schema_id;
        let evolved = kind == RefKind::Branch && self.schema_of(head.map(|s| &**s)) != current;
        view_name(snapshot, evolved.then_some(current))
    }
}

/// A table and the last look at it.
#[derive(Debug)]
pub(super) struct Table {
    ident: Arc<TableIdent>,
    slot: Mutex<Slot>,
    /// Of the last state that could be read; 0 before there was one and when the table is gone.
    incarnation: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    looked: Option<Instant>,
    /// The last state that could be read.
    state: Option<Arc<TableState>>,
    /// Why the last look gave no state.
    fault: Option<TreeError>,
}

impl Table {
    pub(super) fn new(ident: Arc<TableIdent>) -> Table {
        Table {
            ident,
            slot: Mutex::default(),
            incarnation: AtomicU64::new(0),
        }
    }

    /// The table as it is now, and how long that may be kept. An error where the newest metadata cannot be read: older
    /// metadata is not passed off as the current one.
    pub(super) fn current(
        &self,
        source: &Source,
    ) -> Result<(Arc<TableState>, Duration), TreeError> {
        let (slot, left) = self.look(source);
        match (&slot.fault, &slot.state) {
            (Some(fault), _) => Err(fault.clone()),
            (None, Some(state)) => Ok((Arc::clone(state), left)),
            (None, None) => Err(TreeError::not_found()),
        }
    }

    /// The last state that could be read, and how long until the next look, for what a broken commit must not take
    /// away: the table's directories and its snapshots.
    pub(super) fn kept(&self, source: &Source) -> Result<(Arc<TableState>, Duration), TreeError> {
        let (slot, left) = self.look(source);
        match (&slot.state, &slot.fault) {
            (Some(state), _) => Ok((Arc::clone(state), left)),
            (None, Some(fault)) => Err(fault.clone()),
            (None, None) => Err(TreeError::new(ErrorKind::Stale, "the table is gone")),
        }
    }

    /// The last state that could be read, without another look.
    pub(super) fn known(&self) -> Option<Arc<TableState>> {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.state.clone()
    }

    /// Whether the table is still the one that a view was made of, as far as the last look told.
    pub(super) fn is(&self, incarnation: Incarnation) -> bool {
        self.incarnation.load(Ordering::Relaxed) == incarnation.0
    }

    fn look(&self, source: &Source) -> (std::sync::MutexGuard<'_, Slot>, Duration) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let age = slot.looked.map(|looked| looked.elapsed());
        if let Some(left) = age
            .and_then(|age| source.options.refresh.checked_sub(age))
            .filter(|left| !left.is_zero())
        {
            return (slot, left);
        }
        // Taken before the look, so that no commit after it is taken for seen.
        let mut looked = Instant::now();
        let mut found = self.find(source, slot.state.as_ref());
        while found
            .as_ref()
            .is_err_and(|fault| fault.kind == ErrorKind::Unfinished)
            && looked.elapsed() < WRITING
        {
            std::thread::sleep(PAUSE);
            found = self.find(source, slot.state.as_ref());
        }
        match found {
            Ok(state) => {
                self.incarnation.store(
                    state.as_ref().map_or(0, |state| state.incarnation.0),
                    Ordering::Relaxed,
                );
                slot.state = state;
                slot.fault = None;
            }
            Err(fault) => {
                slot.fault = Some(fault);
                // Finding out may have taken long: who waited for this look gets its outcome, not another look.
                looked = Instant::now();
            }
        }
        slot.looked = Some(looked);
        let left = source.options.refresh.saturating_sub(looked.elapsed());
        (slot, left)
    }

    fn find(
        &self,
        source: &Source,
        known: Option<&Arc<TableState>>,
    ) -> Result<Option<Arc<TableState>>, TreeError> {
        let pointer = source
            .catalog
            .table(&self.ident)
            .map_err(|e| TreeError::from_source(&e, e.is_unsupported()))?;
        let Some(mut pointer) = pointer else {
            return Ok(None);
        };
        if source.catalog.tables_lie_where_recorded() && pointer.content.is_none() {
            pointer.metadata = source.options.storage.mapped(&pointer.metadata);
        }
        let stamp = Stamp::of(&pointer.metadata)
            .map_err(|e| TreeError::new(ErrorKind::Io, format!("{}: {e}", pointer.metadata)))?;
        if let Some(known) =
            known.filter(|known| known.pointer.is_same(&pointer) && known.stamp == stamp)
        {
            return Ok(Some(Arc::clone(known)));
        }
        let started = Instant::now();
        let state = TableState::load(source, pointer, stamp)?;
        source.counters.metadata_read.add(1);
        tracing::info!(
            table = self.ident.name,
            metadata = %state.pointer.metadata,
            took = ?started.elapsed(),
            "table metadata read"
        );
        let state = Arc::new(state);
        if known.is_some_and(|known| has_expired(known, &state)) {
            prune(source, Arc::clone(&state));
        }
        Ok(Some(state))
    }
}

/// Whether a snapshot has gone from a table.
fn has_expired(before: &TableState, now: &TableState) -> bool {
    let mut snapshots = before.metadata.snapshots.keys();
    before.incarnation == now.incarnation
        && snapshots.any(|id| !now.metadata.snapshots.contains_key(id))
}

/// Lets what no snapshot leads to any more go first from the caches. Reads manifests, so it happens aside.
fn prune(source: &Source, state: Arc<TableState>) {
    let cache = Arc::clone(&source.cache);
    let prune = move || {
        match scan::live_tags(&state.metadata, &state.storage, &cache) {
            Ok(Some(live)) => cache.prune(&Arc::new(live)),
            Ok(None) => {}
            // Nothing is known to be dead.
            Err(error) => tracing::debug!(%error, "the caches are not pruned"),
        }
    };
    let started = std::thread::Builder::new()
        .name("prune".to_owned())
        .spawn(prune);
    if let Err(error) = started {
        tracing::debug!(%error, "the caches are not pruned");
    }
}
