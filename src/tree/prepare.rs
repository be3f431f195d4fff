//! What is made before anybody asks: that which the first reader of a table's current state waits for.
//!
//! A query begins with the view's Parquet file: with its layout, made of manifests, position deletes and the data files'
//! footers, and with its own footer, for which the keys of equality deletes are matched. Begun right after the mount, while
//! the reader's program still starts, that takes nobody's time; whoever comes in the midst of it waits for what is left.
//!
//! It is a guess, so it must cost little where nobody comes. It is made of a mount of one table, of files of this machine,
//! and only as far as it takes a part of a second and a small part of the cache. All else is made when it is asked for.

use std::sync::Arc;
use std::time::Instant;

use crate::iceberg::manifest::{DataFile, FileFormat};
use crate::iceberg::metadata::RefKind;
use crate::iceberg::types::{NestedField, PrimitiveType, Type};
use crate::scan::{self, FileDeletes, Plan};

use super::faults::TreeError;
use super::node::Node;
use super::view::{ViewDirectory, row_groups};
use super::{Result, Tree, load, lookup};

/// Files of data and of deletes, at most: each is opened, which takes some tens of microseconds.
const MAX_FILES: u64 = 2048;

/// Column chunks, at most: each takes a microsecond and some hundred bytes.
const MAX_CHUNKS: u64 = 1 << 16;

/// Rows of delete files, at most: each takes some tens of nanoseconds.
const MAX_DELETES: u64 = 4 << 20;

/// Rows whose keys are looked for among those deleted, at most: a million takes about 20 milliseconds.
const MAX_MATCHED: u64 = 16 << 20;

/// How far the view of a table's current state was made ahead; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    Nothing,
    /// Manifests were read.
    Plan,
    /// Position deletes and the data files' footers were read.
    Layout,
    /// Keys were matched against equality deletes, and the virtual file's footer made.
    Footer,
}

impl Tree {
    /// Begins to make, in the background, what the first reader of the current state will want.
    pub fn prepare_in_background(self: &Arc<Tree>) {
        if !matches!(self.root, Node::Table(..)) {
            return;
        }
        let tree = Arc::clone(self);
        self.source.ahead.run(move || {
            let started = Instant::now();
            // Whoever asks meets an error again.
            let outcome = tree.prepare();
            tracing::info!(?outcome, took = ?started.elapsed(), "the current view was prepared");
        });
    }

    /// Makes what the first reader of the current state will want, where the source is one table and as far as it costs
    /// little. The table must have been looked at.
    ///
    /// # Errors
    /// Those that the reader would meet.
    pub fn prepare(&self) -> Result<Prepared> {
        let Node::Table(ident, _) = &self.root else {
            return Ok(Prepared::Nothing);
        };
        // A mount has just looked at its table; to look again may be a question to a store.
        let known = self.table(ident).known();
        let Some(state) = known.filter(|state| !state.storage.reaches_stores()) else {
            return Ok(Prepared::Nothing);
        };
        let head = state.refs(RefKind::Branch).get("main").copied().flatten();
        let name = state.ref_view(RefKind::Branch, head);
        match lookup::view_id(&state, &name)?.filter(|_| head.is_some()) {
            Some(id) => self.view(ident, id)?.prepare(),
            None => Ok(Prepared::Nothing),
        }
    }
}

impl ViewDirectory {
    fn prepare(&self) -> Result<Prepared> {
        let Some(snapshot) = &self.snapshot else {
            return Ok(Prepared::Nothing);
        };
        let listed = scan::listed_files(snapshot, &self.view.storage)
            .map_err(|e| TreeError::from_source(&e, e.is_unsupported()))?;
        if listed.is_none_or(|files| files > MAX_FILES) {
            return Ok(Prepared::Nothing);
        }
        let parts = self.parts()?;
        let chunks = row_groups(&parts.plan.files).saturating_mul(self.leaves());
        let fields = &self.view.schema.fields.fields;
        if chunks > MAX_CHUNKS || !opens_cheaply(&parts.plan) || holds_variants(fields) {
            return Ok(Prepared::Plan);
        }
        let whole = self.whole()?;
        if !ends_cheaply(&parts.plan, fields) {
            return Ok(Prepared::Layout);
        }
        // The footer is made by who reads of it.
        whole
            .read_at(whole.len().saturating_sub(1), &mut [0])
            .map_err(|e| load::parquet_error(&e))?;
        Ok(Prepared::Footer)
    }
}

/// Whether no file has to be converted, and position deletes are few.
fn opens_cheaply(plan: &Plan) -> bool {
    let is_stored = |file: &DataFile| {
        // Deletion vectors lie in Puffin files.
        matches!(file.format, FileFormat::Parquet | FileFormat::Puffin)
    };
    let mut deleted = 0u64;
    for file in &plan.files {
        let FileDeletes {
            position,
            vector,
            equality,
        } = &file.deletes;
        let mut deletes = position.iter().chain(vector).chain(equality);
        if !is_stored(&file.file) || !deletes.all(|delete| is_stored(&delete.file)) {
            return false;
        }
        // A file that is shared counts for each: it is read once, and then looked through for each.
        let counts = position.iter().chain(vector).map(|d| d.file.record_count);
        deleted = counts.fold(deleted, u64::saturating_add);
    }
    deleted <= MAX_DELETES
}

/// Whether the footer takes little: few keys to match, and no chunk that has to be made for it.
fn ends_cheaply(plan: &Plan, fields: &[Arc<NestedField>]) -> bool {
    let (mut matched, mut keys) = (0u64, 0u64);
    for file in &plan.files {
        let of_file = file.deletes.equality.iter().map(|d| d.file.record_count);
        let of_file = of_file.fold(0, u64::saturating_add);
        keys = keys.max(of_file);
        matched = matched.saturating_add(if of_file > 0 {
            file.file.record_count
        } else {
            0
        });
    }
    let loses_rows = plan.files.iter().any(|file| !file.deletes.is_empty());
    let makes_chunks = loses_rows && fields.iter().any(|field| is_made_for_footer(field));
    matched <= MAX_MATCHED && keys <= MAX_DELETES && !makes_chunks
}

/// Whether a column's chunks are made with the footer, where they lost rows: those of lists, and those of fixed-length
/// values without levels.
fn is_made_for_footer(field: &NestedField) -> bool {
    use PrimitiveType as T;
    match &field.ty {
        Type::Primitive(T::Uuid | T::Fixed(_) | T::Decimal { .. }) => field.required,
        Type::Primitive(_) => false,
        Type::Struct(of) => of.fields.iter().any(|field| is_made_for_footer(field)),
        Type::List(_) | Type::Map(_) => true,
    }
}

/// Whether there are variants, which are put together where files differ in how they are shredded.
fn holds_variants(fields: &[Arc<NestedField>]) -> bool {
    fields.iter().any(|field| match &field.ty {
        Type::Primitive(ty) => *ty == PrimitiveType::Variant,
        Type::Struct(of) => holds_variants(&of.fields),
        Type::List(list) => holds_variants(std::slice::from_ref(&list.element)),
        Type::Map(map) => holds_variants(std::slice::from_ref(&map.value)),
    })
}
