//! Paths that say where a file lies in another way than its directory does: a table was moved, and some program has
//! recorded its files by where they lay before; or a `file:` URL is percent-encoded.
//!
//! Such a file is the one at the longest end of its path that exists in the table's directory. To say of two such
//! paths whether they are one file, the directory has to be asked; what it answers for one file is taken to hold for all
//! that are recorded in the same directory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use super::directory::Directory;
use super::location::Location;
use super::remote::Expected;
use super::{Found, Storage, StorageError, check_text, is_missing, percent_decoded, storage_error};

/// Recorded directories, and where beneath the table's own they lie; and recorded paths that are percent-encoded.
#[derive(Debug, Default)]
pub(super) struct MovedDirectories {
    ends: RwLock<HashMap<String, String>>,
    encoded: RwLock<HashSet<String>>,
}

impl MovedDirectories {
    /// Where the file lies beneath the table's directory, if that of its directory has been found.
    pub(super) fn end(&self, recorded: &str) -> Option<String> {
        let (directory, name) = recorded.rsplit_once('/')?;
        let known = self.ends.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(directory)?;
        Some(format!("{found}/{name}"))
    }

    fn insert(&self, directory: &str, found: &str) {
        let mut known = self.ends.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(directory.to_owned(), found.to_owned());
    }
}

impl MovedDirectories {
    /// Whether the file has the path that this one encodes.
    pub(super) fn is_encoded(&self, recorded: &str) -> bool {
        let encoded = self.encoded.read();
        encoded
            .unwrap_or_else(PoisonError::into_inner)
            .contains(recorded)
    }
}

impl Storage {
    /// What a `file:` URL encodes, where only that is there: paths are taken as they are first.
    pub(super) fn decoded(&self, recorded: &str) -> Option<Found> {
        let path = Location::parse(recorded);
        let (Directory::Local(root), relative) = self.resolve(&path)? else {
            return None;
        };
        let decoded = percent_decoded(relative).filter(|_| recorded.starts_with("file:"))?;
        if !is_missing(&self.open_place(root, relative)) {
            return None;
        }
        let (place, file) = self.open_place(root, &decoded).ok()?;
        Some(Found::Local(place, file))
    }

    /// Looks where files lie whose paths no rule explains, so that [`Storage::canonical`] knows them. Needed before paths
    /// of different sources are compared.
    ///
    /// # Errors
    /// A store does not answer.
    pub fn locate<'p>(
        &self,
        recorded: impl IntoIterator<Item = &'p str>,
    ) -> Result<(), StorageError> {
        let mut unknown: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut explained = None;
        for path in recorded {
            let Some((directory, _)) = path.rsplit_once('/') else {
                continue;
            };
            if path.contains('%') && self.decoded(path).is_some() {
                let mut encoded = self.moved.encoded.write();
                encoded
                    .as_mut()
                    .unwrap_or_else(|poisoned| poisoned.get_mut())
                    .insert(path.to_owned());
            }
            // Files come in runs of one directory.
            if explained == Some(directory) {
                continue;
            }
            if self.resolve(&Location::parse(path)).is_some() || self.moved.end(path).is_some() {
                explained = Some(directory);
            } else {
                unknown.entry(directory).or_default().push(path);
            }
        }
        let unknown: Vec<(&str, Vec<&str>)> = unknown.into_iter().collect();
        let found = self.in_parallel(&unknown, |(_, files)| {
            for recorded in files {
                if let Some((end, _)) = self.by_end(recorded, &Expected::default())? {
                    return Ok(end.rsplit_once('/').map(|(place, _)| place.to_owned()));
                }
            }
            Ok(None)
        });
        for ((directory, _), found) in unknown.iter().zip(found) {
            if let Some(found) = found? {
                self.moved.insert(directory, &found);
            }
        }
        Ok(())
    }

    /// Opens the longest end of a path that exists in the table's directory, and says which it is. Ends of a single
    /// component are not tried: a bare file name says too little.
    pub(super) fn by_end(
        &self,
        recorded: &str,
        expected: &Expected,
    ) -> Result<Option<(String, Found)>, StorageError> {
        check_text(recorded)?;
        let path = Location::parse(recorded);
        let mut end = path.path().trim_start_matches('/');
        let reaches_up = end.split('/').any(|part| part == "..");
        while !reaches_up && let Some((_, shorter)) = end.split_once('/') {
            match &self.table_root {
                Directory::Local(root) => {
                    let found = self.open_place(root, end);
                    if !is_missing(&found) {
                        let (place, file) =
                            found.map_err(|error| storage_error(recorded, error))?;
                        return Ok(Some((end.to_owned(), Found::Local(place, file))));
                    }
                }
                Directory::Store(directory) => {
                    if let Some(file) = directory.open_if_there(end, expected, recorded)? {
                        return Ok(Some((end.to_owned(), Found::Remote(file))));
                    }
                }
            }
            end = shorter.trim_start_matches('/');
        }
        Ok(None)
    }
}
