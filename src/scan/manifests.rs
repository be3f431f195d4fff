//! Reads a snapshot's manifest list and manifests.

use std::collections::HashSet;
use std::sync::Arc;

use crate::cache::{Cache, CacheKey};
use crate::iceberg::FormatError;
use crate::iceberg::manifest::{
    ColumnStatistics, DataFile, DeleteDetails, FileContent, ManifestContent, ManifestEntry,
    ManifestFile, Statistics, parse_manifest, parse_manifest_list,
};
use crate::iceberg::metadata::{Snapshot, SnapshotManifests, TableMetadata};
use crate::iceberg::types::FieldId;
use crate::storage::{Expected, Storage};

use super::ScanError;

/// Bytes of a manifest at most, where a table is written with the usual settings.
const USUAL_MANIFEST: u64 = 8 << 20;

/// Bytes. Manifests are 8 MiB by default and a list names some thousands of them; neither comes near this.
const MAX_FILE: u64 = 1 << 30;

/// Bytes that an `Arc` counts its owners with.
const SHARED: usize = 2 * size_of::<usize>();

/// A manifest's live entries.
#[derive(Debug)]
pub struct Manifest {
    pub content: ManifestContent,
    pub entries: Arc<Vec<ManifestEntry>>,
}

/// Reads all manifests of a snapshot that may hold live files: those of deletes, which say what of the others is worth
/// keeping, and then those of data.
pub fn read_all(
    metadata: &TableMetadata,
    snapshot: &Snapshot,
    storage: &Storage,
    cache: &Cache,
) -> Result<Vec<Manifest>, ScanError> {
    let manifests = list(snapshot, storage)?;
    let read = |manifests: &[ManifestFile], statistics: &Statistics| {
        let read = |manifest: &ManifestFile| {
            let entries = read_manifest(metadata, manifest, statistics, storage, cache)?;
            Ok(Manifest {
                content: manifest.content,
                entries,
            })
        };
        let read = storage.in_parallel(manifests, read).into_iter();
        read.collect::<Result<Vec<Manifest>, ScanError>>()
    };
    let (deletes, data): (Vec<_>, Vec<_>) = manifests
        .into_iter()
        .partition(|manifest| manifest.content == ManifestContent::Deletes);
    let mut all = read(&deletes, &Statistics::All)?;
    let compared = Statistics::Of(compared_columns(&all));
    all.extend(read(&data, &compared)?);
    Ok(all)
}

/// The columns that equality deletes compare, in order.
fn compared_columns(deletes: &[Manifest]) -> Vec<FieldId> {
    let entries = deletes.iter().flat_map(|manifest| manifest.entries.iter());
    let mut ids: Vec<FieldId> = entries
        .filter(|entry| entry.file.content == FileContent::EqualityDeletes)
        .flat_map(|entry| entry.file.deletes().equality_ids.iter().copied())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Calls `each` with the path of every live data file of those manifests of a snapshot that are not among `seen` yet.
pub fn each_data_file(
    metadata: &TableMetadata,
    snapshot: &Snapshot,
    storage: &Storage,
    cache: &Cache,
    seen: &mut HashSet<String>,
    mut each: impl FnMut(&str),
) -> Result<(), ScanError> {
    for manifest in list(snapshot, storage)? {
        if manifest.content == ManifestContent::Data && seen.insert(manifest.path.clone()) {
            let entries = read_manifest(
                metadata,
                &manifest,
                &Statistics::Of(Vec::new()),
                storage,
                cache,
            )?;
            entries.iter().for_each(|entry| each(&entry.file.path));
        }
    }
    Ok(())
}

/// How many files the manifests of a snapshot name, live or not, of data and of deletes; `None` where the manifest list
/// does not count them.
pub fn listed_files(snapshot: &Snapshot, storage: &Storage) -> Result<Option<u64>, ScanError> {
    let files = |manifest: &ManifestFile| {
        let added = manifest.added_files_count?;
        added.checked_add(manifest.existing_files_count?)
    };
    let listed = list(snapshot, storage)?;
    Ok(listed.iter().map(files).sum())
}

/// The manifests of a snapshot that may hold live files.
fn list(snapshot: &Snapshot, storage: &Storage) -> Result<Vec<ManifestFile>, ScanError> {
    let mut manifests = match &snapshot.manifests {
        SnapshotManifests::List(path) => {
            if snapshot.key_id.is_some() {
                return Err(ScanError::unsupported(path, "an encrypted manifest list"));
            }
            read_list(path, storage)?
        }
        SnapshotManifests::Inline(paths) => paths
            .iter()
            .map(|path| ManifestFile::inline(path, snapshot))
            .collect(),
    };
    manifests.retain(|manifest| !is_surely_empty(manifest));
    if let Some(encrypted) = manifests.iter().find(|manifest| manifest.key_metadata) {
        return Err(ScanError::unsupported(
            &encrypted.path,
            "an encrypted manifest",
        ));
    }
    Ok(manifests)
}

/// A count that is unknown says nothing.
fn is_surely_empty(manifest: &ManifestFile) -> bool {
    manifest.added_files_count == Some(0) && manifest.existing_files_count == Some(0)
}

fn read_list(path: &str, storage: &Storage) -> Result<Vec<ManifestFile>, ScanError> {
    let bytes = storage.read_file_limited(path, MAX_FILE)?;
    let list = parse_manifest_list(&bytes).map_err(|source| format_error(path, source))?;
    storage.counters().manifest_lists_read.add(1);
    Ok(list)
}

/// What a manifest's entries inherit is part of what is kept: snapshots may share a manifest and yet differ in the row
/// ids that their lists give it.
fn read_manifest(
    metadata: &TableMetadata,
    manifest: &ManifestFile,
    statistics: &Statistics,
    storage: &Storage,
    cache: &Cache,
) -> Result<Arc<Vec<ManifestEntry>>, ScanError> {
    let path = &manifest.path;
    let expected = Expected {
        size: manifest.length,
        first: Some(0..manifest.length.unwrap_or(USUAL_MANIFEST)),
    };
    let file = storage.open_expecting(path, &expected)?;
    let types = metadata
        .partition_specs
        .get(&manifest.spec_id)
        .map(|spec| metadata.partition_type(spec));
    let inherited = (
        manifest.spec_id,
        manifest.sequence_number,
        manifest.added_snapshot_id,
        manifest.first_row_id,
        metadata.format_version,
        types,
        statistics,
    );
    let key = CacheKey {
        kind: "manifest",
        id: format!("{:?} {inherited:?}", file.identity()),
    };
    cache.get_or_make(key, || {
        if file.len() > MAX_FILE {
            return Err(ScanError::corrupt(
                path,
                format!("a manifest of {} bytes", file.len()),
            ));
        }
        let bytes = file.read_range(0, file.len())?;
        let entries = parse_manifest(&bytes, manifest, metadata, statistics)
            .map_err(|source| format_error(path, source))?;
        storage.counters().manifests_read.add(1);
        let weight = entries.iter().map(weight).sum();
        Ok((entries, weight))
    })
}

fn format_error(path: &str, source: FormatError) -> ScanError {
    ScanError::Format {
        path: path.to_owned(),
        source,
    }
}

/// Bytes an entry takes in memory, about: the entry, its file, and what that has on the heap.
fn weight(entry: &ManifestEntry) -> usize {
    let DataFile {
        path,
        column_statistics,
        delete_details,
        ..
    } = &*entry.file;
    let statistics = column_statistics.as_deref().map_or(0, |statistics| {
        let bounds = statistics
            .lower_bounds
            .iter()
            .chain(&statistics.upper_bounds);
        size_of::<ColumnStatistics>()
            + bounds.map(|(_, bytes)| bytes.len() + 24).sum::<usize>()
            + statistics.null_value_counts.len() * 16
    });
    let details = delete_details.as_deref().map_or(0, |details| {
        size_of::<DeleteDetails>()
            + details.equality_ids.len() * 4
            + details.referenced_data_file.as_ref().map_or(0, String::len)
    });
    size_of::<ManifestEntry>() + SHARED + size_of::<DataFile>() + path.len() + statistics + details
}

#[cfg(test)]
mod tests;
