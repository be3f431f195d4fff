//! Which data files any snapshot of a table still leads to, so that what was made of others can go.

use std::collections::HashSet;

use super::ScanError;
use super::manifests::each_data_file;
use crate::cache::{Cache, Tag};
use crate::iceberg::metadata::TableMetadata;
use crate::storage::Storage;

/// Snapshots whose manifests are read for this at most: a table that has more is left to its entries' age.
const MAX_SNAPSHOTS: usize = 1000;

/// What the entries of a data file are tagged with.
pub fn file_tag(metadata: &TableMetadata, storage: &Storage, path: &str) -> Tag {
    let file = storage.canonical(path);
    match metadata.table_uuid {
        Some(uuid) => Tag::new(&uuid.to_string(), &file),
        None => Tag::new(&metadata.location, &file),
    }
}

/// The tags of all data files that are live in any snapshot. Reads manifests that are not in the cache. Nothing where
/// there is no such file, or there are too many snapshots to look at.
///
/// # Errors
/// A manifest list or manifest cannot be read: then it is not known what is live.
pub fn live_tags(
    metadata: &TableMetadata,
    storage: &Storage,
    cache: &Cache,
) -> Result<Option<HashSet<Tag>>, ScanError> {
    if metadata.snapshots.len() > MAX_SNAPSHOTS {
        return Ok(None);
    }
    let mut seen = HashSet::new();
    let mut live = HashSet::new();
    for snapshot in metadata.snapshots.values() {
        each_data_file(metadata, snapshot, storage, cache, &mut seen, |path| {
            live.insert(file_tag(metadata, storage, path));
        })?;
    }
    Ok(Some(live).filter(|live| !live.is_empty()))
}
