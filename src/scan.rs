//! A snapshot's plan: its live data files, each with its sequence number, first row id and the deletes that apply.
//!
//! ```text
//! snapshot ──► manifest list ──► manifests ──► live data files   ─┐
//!                                (parallel)    live delete files ─┴─► delete index ──► plan
//! ```
//!
//! Only metadata is read here: no data file, no delete file. Equality deletes that surely hit no row of a data file are put
//! aside (`pruning`). Files of a format that cannot be read (Avro, ORC) are in
//! the plan like all others; whoever reads them refuses, file by file. What a plan cannot be right about (a path that
//! is live twice, a delete that contradicts its file, encryption) fails the whole of it.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::cache::Cache;
use crate::iceberg::FormatError;
use crate::iceberg::manifest::{DataFile, FileContent, ManifestContent, SequenceNumber};
use crate::iceberg::metadata::{Snapshot, TableMetadata};
use crate::iceberg::partition::SpecId;
use crate::storage::{Storage, StorageError};

use delete_index::{CanonicalPath, DeleteIndex};

pub use live::{file_tag, live_tags};
pub use manifests::listed_files;

mod delete_index;
mod live;
mod manifests;
mod pruning;

/// A live delete file (or one deletion vector of a Puffin file).
#[derive(Clone, Debug)]
pub struct DeleteFile {
    /// What the manifest says of it.
    pub file: Arc<DataFile>,
    /// The DATA sequence number.
    pub sequence_number: SequenceNumber,
}

/// The deletes that apply to one data file (spec, "Scan Planning"). Where there is a vector, `position` is empty.
#[derive(Clone, Debug, Default)]
pub struct FileDeletes {
    /// Position delete files that may name the data file, by sequence number.
    pub position: Vec<Arc<DeleteFile>>,
    /// The data file's deletion vector.
    pub vector: Option<Arc<DeleteFile>>,
    /// Equality delete files, by sequence number.
    pub equality: Vec<Arc<DeleteFile>>,
}

impl FileDeletes {
    /// Whether no row of the data file can be deleted.
    pub fn is_empty(&self) -> bool {
        self.position.is_empty() && self.vector.is_none() && self.equality.is_empty()
    }
}

/// A live data file with what applies to it.
#[derive(Clone, Debug)]
pub struct ScanFile {
    /// What the manifest says of it, shared with the manifest. Of bounds and null counts, those of the columns that
    /// equality deletes of the snapshot compare.
    pub file: Arc<DataFile>,
    /// The DATA sequence number.
    pub sequence_number: SequenceNumber,
    /// What may delete rows of it.
    pub deletes: FileDeletes,
}

/// A snapshot's live data files, in the order their rows stand in a view: data sequence number, then path.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In that order.
    pub files: Vec<Arc<ScanFile>>,
}

/// Why a snapshot cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The snapshot needs something this version does not do.
    #[error("{path}: {feature} is not supported")]
    Unsupported {
        /// The manifest list, manifest or file, as recorded.
        path: String,
        /// What is missing, as the subject of a sentence.
        feature: String,
    },
    /// Files contradict each other.
    #[error("{path}: {reason}")]
    Corrupt {
        /// The manifest, data file or delete file, as recorded.
        path: String,
        /// What was found, and what was expected.
        reason: String,
    },
    /// A manifest list or manifest breaks the format.
    #[error("{path}: {source}")]
    Format {
        /// The file, as recorded.
        path: String,
        /// What is wrong in it.
        source: FormatError,
    },
    /// A manifest list or manifest cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ScanError {
    /// Whether the reason is a feature that is not supported (`ENOTSUP`), rather than a fault (`EIO`).
    pub fn is_unsupported(&self) -> bool {
        match self {
            ScanError::Unsupported { .. } => true,
            ScanError::Corrupt { .. } => false,
            ScanError::Format { source, .. } => source.is_unsupported(),
            ScanError::Storage(source) => source.is_unsupported(),
        }
    }

    fn unsupported(path: &str, feature: &str) -> ScanError {
        ScanError::Unsupported {
            path: path.to_owned(),
            feature: feature.to_owned(),
        }
    }

    fn corrupt(path: &str, reason: impl Into<String>) -> ScanError {
        ScanError::Corrupt {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Plans a snapshot.
///
/// # Errors
/// Manifests that cannot be read, encryption, a data file path that is live twice, and deletes that contradict the file
/// they name (see `delete_index`).
pub fn plan(
    metadata: &TableMetadata,
    snapshot: &Snapshot,
    storage: &Storage,
    cache: &Cache,
) -> Result<Plan, ScanError> {
    let mut data = Vec::new();
    let mut deletes = Vec::new();
    let manifests = manifests::read_all(metadata, snapshot, storage, cache)?;
    let files = |content| {
        let manifests = manifests.iter().filter(move |m| m.content == content);
        manifests.map(|m| m.entries.len()).sum()
    };
    data.reserve_exact(files(ManifestContent::Data));
    deletes.reserve_exact(files(ManifestContent::Deletes));
    for manifest in manifests {
        for entry in manifest.entries.iter() {
            check_entry(&entry.file)?;
            let is_data = entry.file.content == FileContent::Data;
            if is_data != (manifest.content == ManifestContent::Data) {
                let kind = if is_data {
                    "a data file in a manifest of deletes"
                } else {
                    "deletes in a manifest of data"
                };
                return Err(ScanError::corrupt(&entry.file.path, kind));
            }
            let (file, sequence_number) = (Arc::clone(&entry.file), entry.sequence_number);
            if is_data {
                data.push(ScanFile {
                    file,
                    sequence_number,
                    deletes: FileDeletes::default(),
                });
            } else {
                deletes.push(Arc::new(DeleteFile {
                    file,
                    sequence_number,
                }));
            }
        }
    }
    data.sort_by(|a, b| (a.sequence_number, &a.file.path).cmp(&(b.sequence_number, &b.file.path)));
    storage.locate(data.iter().map(|file| file.file.path.as_str()))?;
    let named = deletes
        .iter()
        .filter_map(|delete| delete_index::named(&delete.file));
    storage.locate(named)?;
    let canonical = |path: &str| CanonicalPath(storage.canonical(path));
    let is_unpartitioned = |id| {
        metadata
            .partition_specs
            .get(&id)
            .is_some_and(|spec| spec.is_unpartitioned())
    };
    let mut files = match_deletes(data, deletes, canonical, is_unpartitioned)?;
    for file in &mut files {
        let ScanFile { file, deletes, .. } = file;
        deletes
            .equality
            .retain(|delete| pruning::may_hit(&delete.file, file, metadata));
    }
    Ok(Plan {
        files: files.into_iter().map(Arc::new).collect(),
    })
}

/// Gives each data file its deletes.
fn match_deletes(
    data: Vec<ScanFile>,
    deletes: Vec<Arc<DeleteFile>>,
    canonical: impl Fn(&str) -> CanonicalPath,
    is_unpartitioned: impl Fn(SpecId) -> bool,
) -> Result<Vec<ScanFile>, ScanError> {
    let named = delete_index::named_by_bounds(&deletes, &canonical);
    let live = live_among(&data, &named, &canonical)?;
    let index = DeleteIndex::build(deletes, &live, &canonical, is_unpartitioned)?;
    data.into_iter()
        .map(|mut file| {
            let path = || canonical(&file.file.path);
            file.deletes = index.for_file(&file.file, path, file.sequence_number)?;
            Ok(file)
        })
        .collect()
}

/// Those of the paths `asked` that are live data files' paths.
///
/// # Errors
/// A path that is live twice. A snapshot may have a million files, whose paths are longer than all else that a plan keeps
/// of them: they are compared by their hashes, and made again where two agree.
fn live_among(
    data: &[ScanFile],
    asked: &HashSet<CanonicalPath>,
    canonical: impl Fn(&str) -> CanonicalPath,
) -> Result<HashSet<CanonicalPath>, ScanError> {
    let hasher = RandomState::new();
    let mut live = HashSet::new();
    let mut hashes = Vec::with_capacity(data.len());
    for file in data {
        let path = canonical(&file.file.path);
        hashes.push((hasher.hash_one(&path), file));
        if asked.contains(&path) {
            live.insert(path);
        }
    }
    hashes.sort_unstable_by_key(|(hash, _)| *hash);
    let alike = hashes.chunk_by(|(a, _), (b, _)| a == b);
    for equal in alike.filter(|equal| equal.len() > 1) {
        let mut seen = HashSet::new();
        if let Some((_, twice)) = equal
            .iter()
            .find(|(_, file)| !seen.insert(canonical(&file.file.path)))
        {
            return Err(ScanError::corrupt(
                &twice.file.path,
                "this data file is in the snapshot twice",
            ));
        }
    }
    Ok(live)
}

/// What holds of every live file.
fn check_entry(file: &DataFile) -> Result<(), ScanError> {
    if file.key_metadata {
        return Err(ScanError::unsupported(&file.path, "an encrypted file"));
    }
    let end = i64::try_from(file.record_count)
        .ok()
        .and_then(|rows| file.first_row_id.unwrap_or(0).checked_add(rows));
    if end.is_none() {
        return Err(ScanError::corrupt(
            &file.path,
            format!("an impossible record_count, {}", file.record_count),
        ));
    }
    if file.first_row_id.is_some_and(|id| id < 0) {
        return Err(ScanError::corrupt(&file.path, "a negative first_row_id"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
