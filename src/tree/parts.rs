//! A view's live data files, and what each is called in `parts/`.
//!
//! A snapshot may have a million files, so what is kept of each is small: nearly every name is the end of the file's
//! recorded path, which the plan has already; kept are the names that are not, and a hash of each.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use crate::scan::{Plan, ScanFile};

use super::names;

/// Bytes of memory that a data file takes in a plan, beside its path and bounds: what a manifest says of it, the deletes
/// that apply, its name's hash, and its size.
const FILE_BYTES: usize = 400;

/// A view's live data files.
#[derive(Debug)]
pub struct Parts {
    pub(super) plan: Plan,
    /// Sizes of the virtual files, in bytes, once known; parallel to the plan's files.
    pub(super) lens: Vec<OnceLock<u64>>,
    /// Names that are no path's end, by place in the plan.
    made: HashMap<usize, Box<str>>,
    /// The names' hashes, in order, each with the file's place in the plan.
    hashes: Vec<(u64, usize)>,
    hasher: RandomState,
}

impl Parts {
    /// Names the files of a plan: each by its base name, ending in `.parquet`. Where several have one base name, all but
    /// the first get a number.
    pub(super) fn new(plan: Plan) -> Parts {
        let mut parts = Parts {
            lens: plan.files.iter().map(|_| OnceLock::new()).collect(),
            hashes: Vec::new(),
            hasher: RandomState::new(),
            made: HashMap::new(),
            plan,
        };
        for (place, file) in parts.plan.files.iter().enumerate() {
            let name = names::encode(stem(file), ".parquet");
            if name != base_name(file) {
                parts.made.insert(place, name.into());
            }
        }
        parts.hash();
        let numbered = parts.numbered();
        if !numbered.is_empty() {
            parts.made.extend(numbered);
            parts.hash();
        }
        parts
    }

    fn hash(&mut self) {
        let places = 0..self.plan.files.len();
        let mut hashes: Vec<_> = places
            .filter_map(|place| Some((self.hasher.hash_one(self.name(place)?), place)))
            .collect();
        hashes.sort_unstable();
        self.hashes = hashes;
    }

    /// Names for all but the first of those files that have one name.
    fn numbered(&self) -> Vec<(usize, Box<str>)> {
        let mut places = Vec::new();
        let alike = self.hashes.chunk_by(|(a, _), (b, _)| a == b);
        for alike in alike.filter(|alike| alike.len() > 1) {
            let mut seen = HashSet::new();
            let again = alike
                .iter()
                .filter(|(_, place)| !seen.insert(self.name(*place)));
            places.extend(again.map(|(_, place)| *place));
        }
        places.sort_unstable();
        let (mut numbers, mut given) = (HashMap::new(), HashSet::new());
        let number = |place: usize| {
            let stem = self.plan.files.get(place).map_or("", |file| stem(file));
            let number = numbers.entry(stem).or_insert(2u64);
            loop {
                let name = names::encode(stem, &format!("-{number}.parquet"));
                *number += 1;
                if self.find(&name).is_none() && given.insert(name.clone()) {
                    return (place, name.into());
                }
            }
        };
        places.into_iter().map(number).collect()
    }

    /// What the file at this place is called; nothing where there is none.
    pub fn name(&self, place: usize) -> Option<&str> {
        let file = self.plan.files.get(place)?;
        let made = self.made.get(&place).map(|name| &**name);
        Some(made.unwrap_or_else(|| base_name(file)))
    }

    /// The place of the file of this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(name);
        let first = self.hashes.partition_point(|(other, _)| *other < hash);
        let alike = self
            .hashes
            .iter()
            .skip(first)
            .take_while(|(other, _)| *other == hash);
        let mut places = alike.map(|(_, place)| *place);
        places.find(|place| self.name(*place) == Some(name))
    }

    /// Bytes of memory, about. What the plan shares with the manifests counts here too, for it is kept as long as this is.
    pub(super) fn weight(&self) -> usize {
        let files = self.plan.files.iter().map(|file| {
            let statistics = file.file.statistics();
            let bounds = statistics
                .lower_bounds
                .iter()
                .chain(&statistics.upper_bounds);
            FILE_BYTES + file.file.path.len() + bounds.map(|(_, b)| b.len() + 32).sum::<usize>()
        });
        let made = self.made.values().map(|name| name.len() + 64);
        files.chain(made).fold(0, usize::saturating_add)
    }

    /// The base name of the data file that goes by this name, where it had to be cut.
    pub(super) fn cut_name(&self, name: &str) -> Option<String> {
        let base = base_name(self.plan.files.get(self.find(name)?)?);
        names::is_cut(base, "").then(|| base.to_owned())
    }
}

fn base_name(file: &Arc<ScanFile>) -> &str {
    file.file.path.rsplit('/').next().unwrap_or_default()
}

fn stem(file: &Arc<ScanFile>) -> &str {
    let base = base_name(file);
    base.strip_suffix(".parquet").unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use crate::iceberg::manifest::{
        DataFile, FileContent, FileFormat, PartitionTuple, SequenceNumber,
    };
    use crate::iceberg::partition::SpecId;
    use crate::scan::FileDeletes;

    use super::*;

    fn file(path: &str) -> Arc<ScanFile> {
        Arc::new(ScanFile {
            file: Arc::new(DataFile {
                content: FileContent::Data,
                path: path.to_owned(),
                format: FileFormat::Parquet,
                spec_id: SpecId(0),
                partition: Arc::new(PartitionTuple::default()),
                record_count: 1,
                file_size: 1,
                split_offsets_count: 0,
                first_row_id: None,
                column_statistics: None,
                delete_details: None,
                key_metadata: false,
            }),
            sequence_number: SequenceNumber(1),
            deletes: FileDeletes::default(),
        })
    }

    fn parts(paths: &[&str]) -> Parts {
        Parts::new(Plan {
            files: paths.iter().map(|path| file(path)).collect(),
        })
    }

    fn names(parts: &Parts) -> Vec<&str> {
        (0..).map_while(|place| parts.name(place)).collect()
    }

    #[test]
    fn parts_with_one_base_name_are_numbered() {
        let parts = parts(&[
            "s3://b/p=1/x.parquet",
            "s3://b/p=2/x.parquet",
            "b/x-2.parquet",
            "b/x.parquet",
            "y.avro",
            "z",
        ]);
        let expected = [
            "x.parquet",
            "x-3.parquet",
            "x-2.parquet",
            "x-4.parquet",
            "y.avro.parquet",
            "z.parquet",
        ];
        assert_eq!(names(&parts), expected);
        for (place, name) in expected.iter().enumerate() {
            assert_eq!(parts.find(name), Some(place), "{name}");
        }
        assert_eq!(parts.find("y.avro"), None);
        assert_eq!(parts.name(6), None);
    }

    #[test]
    fn only_names_that_are_no_path_s_end_are_kept() {
        let parts = parts(&["a/1.parquet", "a/2.parquet", "a/k=v.parquet", "a/3.orc"]);
        assert_eq!(
            names(&parts),
            ["1.parquet", "2.parquet", "k%3Dv.parquet", "3.orc.parquet"]
        );
        assert_eq!(parts.made.len(), 2);
    }
}
