//! Every table of the corpus through every parser, against what the reference implementation reads from it.
//!
//! The corpus is many real tables by many writers. It is not part of the repository: `BERGFS_CORPUS` says where it lies
//! (otherwise `../shared/corpus` beside the repository); without it, these tests say so and pass.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::deletion_vector;
use super::manifest::{
    DataFile, ManifestContent, ManifestFile, Statistics, parse_manifest, parse_manifest_list,
};
use super::metadata::{RefKind, Snapshot, SnapshotManifests, TableMetadata};
use super::schema::Schema;
use super::value::Value;

fn corpus() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let path = std::env::var_os("BERGFS_CORPUS").map_or_else(beside, PathBuf::from);
    let there = path.join("MAPS.json").is_file();
    if !there {
        eprintln!(
            "SKIPPED: no corpus of tables at {} (set BERGFS_CORPUS)",
            path.display()
        );
    }
    there.then_some(path)
}

/// All files under a directory by file name.
fn files_by_name(dir: &Path, found: &mut HashMap<String, PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_by_name(&path, found);
        } else {
            found.insert(
                path.file_name().unwrap().to_string_lossy().into_owned(),
                path,
            );
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

struct Table {
    name: String,
    files: HashMap<String, PathBuf>,
    metadata: TableMetadata,
    expected: Option<Json>,
}

fn tables(corpus: &Path) -> Vec<Table> {
    let maps: Json =
        serde_json::from_slice(&std::fs::read(corpus.join("MAPS.json")).unwrap()).unwrap();
    let mut tables = Vec::new();
    for (name, map) in maps.as_object().unwrap() {
        let dir = corpus.join(name);
        let path = dir.join(map["metadata"].as_str().unwrap());
        let expected = std::fs::read(dir.join("EXPECTED.java.json")).ok();
        let expected: Option<Json> = expected.map(|bytes| serde_json::from_slice(&bytes).unwrap());
        let metadata = match TableMetadata::parse(&std::fs::read(&path).unwrap()) {
            Ok(metadata) => metadata,
            Err(error) => {
                eprintln!("TABLE {name}: {error}");
                continue;
            }
        };
        let mut files = HashMap::new();
        files_by_name(&dir, &mut files);
        tables.push(Table {
            name: name.clone(),
            files,
            metadata,
            expected,
        });
    }
    tables
}

impl Table {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.files.get(base_name(path))?).ok()
    }

    /// A snapshot's manifests; `None` when its manifest list is not in the corpus.
    fn manifests(&self, snapshot: &Snapshot) -> Option<Vec<ManifestFile>> {
        match &snapshot.manifests {
            SnapshotManifests::List(path) => Some(
                parse_manifest_list(&self.read(path)?)
                    .unwrap_or_else(|e| panic!("{} {path}: {e}", self.name)),
            ),
            SnapshotManifests::Inline(paths) => Some(
                paths
                    .iter()
                    .map(|path| ManifestFile::inline(path, snapshot))
                    .collect(),
            ),
        }
    }

    /// Rows of a snapshot's live data files, and whether it has delete files.
    fn rows(&self, snapshot: &Snapshot) -> Option<(u64, bool)> {
        let (mut rows, mut deletes) = (0, false);
        for manifest in self.manifests(snapshot)? {
            let bytes = self.read(&manifest.path)?;
            let entries = parse_manifest(&bytes, &manifest, &self.metadata, &Statistics::All)
                .unwrap_or_else(|e| panic!("{} {}: {e}", self.name, manifest.path));
            let live = manifest
                .added_files_count
                .zip(manifest.existing_files_count)
                .map(|(a, e)| a + e);
            // Some Impala tables were edited by hand, counts of the manifest list left as they were.
            if let Some(live) = live.filter(|_| {
                !self
                    .name
                    .starts_with("impala/iceberg_v2_null_delete_record")
            }) {
                assert_eq!(
                    entries.len() as u64,
                    live,
                    "{} {}: live entries",
                    self.name,
                    manifest.path
                );
            }
            match manifest.content {
                ManifestContent::Data => {
                    rows += entries
                        .iter()
                        .map(|entry| entry.file.record_count)
                        .sum::<u64>()
                }
                ManifestContent::Deletes => deletes |= !entries.is_empty(),
            }
        }
        Some((rows, deletes))
    }
}

#[test]
fn corpus_every_snapshot_has_the_rows_that_the_reference_counts() {
    let Some(corpus) = corpus() else { return };
    let (mut compared, mut with_deletes, mut absent) = (0, 0, 0);
    for table in tables(&corpus) {
        let expected: HashMap<String, u64> = table
            .expected
            .iter()
            .flat_map(|json| json["snapshots"].as_array().into_iter().flatten())
            .filter_map(|s| Some((s["id"].as_str()?.to_owned(), s["count"].as_u64()?)))
            .collect();
        for snapshot in table.metadata.snapshots.values() {
            let Some((rows, deletes)) = table.rows(snapshot) else {
                absent += 1;
                continue;
            };
            let Some(count) = expected.get(&snapshot.id.0.to_string()) else {
                continue;
            };
            if deletes {
                with_deletes += 1;
                assert!(
                    rows >= *count,
                    "{} {:?}: {rows} rows, reference {count}",
                    table.name,
                    snapshot.id
                );
            } else {
                compared += 1;
                assert_eq!(rows, *count, "{} {:?}", table.name, snapshot.id);
            }
        }
    }
    eprintln!("{compared} snapshots equal, {with_deletes} have deletes, {absent} lack manifests");
}

#[test]
fn corpus_current_snapshot_refs_and_schema_are_those_the_reference_reads() {
    let Some(corpus) = corpus() else { return };
    for table in tables(&corpus) {
        let Some(expected) = table
            .expected
            .as_ref()
            .filter(|json| json.get("schema").is_some())
        else {
            continue;
        };
        let metadata = &table.metadata;
        let current = metadata.current_snapshot_id.map(|id| id.0.to_string());
        assert_eq!(
            expected["currentSnapshot"].as_str(),
            current.as_deref(),
            "{}",
            table.name
        );
        assert_eq!(
            expected["formatVersion"], metadata.format_version,
            "{}",
            table.name
        );
        let refs: HashMap<String, String> = metadata
            .refs
            .iter()
            .map(|(name, target)| {
                let kind = if target.kind == RefKind::Branch {
                    "BRANCH"
                } else {
                    "TAG"
                };
                (name.clone(), format!("{}/{kind}", target.snapshot_id.0))
            })
            .collect();
        let expected_refs: HashMap<String, String> =
            serde_json::from_value(expected["refs"].clone()).unwrap();
        assert_eq!(refs, expected_refs, "{}", table.name);
        let schema = Schema::from_json(&expected["schema"])
            .unwrap_or_else(|e| panic!("{}: {e}", table.name));
        assert_eq!(
            **metadata.current_schema().unwrap(),
            schema,
            "{}",
            table.name
        );
        assert_eq!(
            Schema::from_json(&schema.to_json()).unwrap(),
            schema,
            "{}: JSON round trip",
            table.name
        );
    }
}

#[test]
fn corpus_every_deletion_vector_is_read_and_every_bound_decodes() {
    let Some(corpus) = corpus() else { return };
    let (mut vectors, mut bounds) = (0, 0);
    for table in tables(&corpus) {
        for snapshot in table.metadata.snapshots.values() {
            for manifest in table.manifests(snapshot).unwrap_or_default() {
                let Some(bytes) = table.read(&manifest.path) else {
                    continue;
                };
                for entry in
                    parse_manifest(&bytes, &manifest, &table.metadata, &Statistics::All).unwrap()
                {
                    vectors += usize::from(table.check_vector(&entry.file));
                    bounds += table.check_bounds(&entry.file);
                }
            }
        }
    }
    eprintln!("{vectors} deletion vectors, {bounds} bounds");
    assert!(
        vectors > 0 && bounds > 1000,
        "{vectors} deletion vectors, {bounds} bounds"
    );
}

impl Table {
    /// Reads the deletion vector that `file` is, if it is one and is in the corpus.
    fn check_vector(&self, file: &DataFile) -> bool {
        let Some((offset, size)) = file
            .deletes()
            .content_offset
            .zip(file.deletes().content_size)
        else {
            return false;
        };
        let Some(bytes) = self.read(&file.path) else {
            return false;
        };
        let blob = &bytes[offset as usize..(offset + size) as usize];
        deletion_vector::parse(blob, file.record_count)
            .unwrap_or_else(|e| panic!("{} {}: {e}", self.name, file.path));
        true
    }

    /// Decodes all bounds of columns that the table has; how many.
    fn check_bounds(&self, file: &DataFile) -> usize {
        let mut decoded = 0;
        for (id, bytes) in file
            .statistics()
            .lower_bounds
            .iter()
            .chain(&file.statistics().upper_bounds)
        {
            let field = self.metadata.field_by_id_any_schema(*id);
            let Some(ty) = field.and_then(|field| field.ty.as_primitive()) else {
                continue;
            };
            Value::from_bytes(ty, bytes)
                .unwrap_or_else(|e| panic!("{} {} {id}: {e}", self.name, file.path));
            decoded += 1;
        }
        decoded
    }
}

/// Metadata files of the corpus that are no table metadata.
const BROKEN_METADATA: [&str; 5] = [
    "empty.metadata.json",
    "broken1.metadata.json",
    "broken2.metadata.json",
    // Its current snapshot id is beyond 64 bits.
    "equality_delete_extra_column/metadata/vfinal.metadata.json",
    // A placeholder that BigQuery leaves, without so much as a version.
    "big_query_error/metadata/v0.metadata.json",
];

#[test]
fn corpus_every_metadata_file_is_read() {
    let Some(corpus) = corpus() else { return };
    let mut pending = vec![corpus];
    let mut read = 0;
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                pending.push(path);
            } else if base_name(&name).contains(".metadata.json") && !name.ends_with(".crc") {
                let result = TableMetadata::parse(&std::fs::read(&path).unwrap());
                let broken = BROKEN_METADATA.iter().any(|suffix| name.ends_with(suffix));
                assert_eq!(result.is_err(), broken, "{name}: {:?}", result.err());
                if let Ok(table) = result {
                    table
                        .name_mapping()
                        .unwrap_or_else(|e| panic!("{name}: {e}"));
                    read += 1;
                }
            }
        }
    }
    assert!(read > 500, "{read} metadata files");
}

/// Deletion vectors that the reference implementation wrote as test resources, with the positions its tests name.
#[test]
fn corpus_deletion_vectors_hold_the_positions_that_the_reference_wrote() {
    let Some(corpus) = corpus() else { return };
    let dir = corpus.join("_artifacts/apache-iceberg/deletes");
    let read = |name: &str, cardinality: u64| {
        let blob = std::fs::read(dir.join(format!("{name}-position-index.bin"))).unwrap();
        deletion_vector::parse(&blob, cardinality).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    assert!(read("empty", 0).is_empty());
    let small: Vec<u64> = read("small-alternating-values", 5).iter().collect();
    assert_eq!(small, [1, 3, 5, 7, 9]);
    let large: Vec<u64> = read("small-and-large-values", 4).iter().collect();
    assert_eq!(large, [100, 101, (1 << 31) + 99, (1 << 31) + 100]);
    // Two bitmaps, each with an array, a short run and a run that fills its container but for the ends.
    let position =
        |bitmap: u64, container: u64, value: u64| (bitmap << 32) + (container << 16) + value;
    let mut expected: Vec<u64> = vec![position(0, 0, 5), position(0, 0, 7)];
    expected.extend((1..1000).map(|v| position(0, 1, v)));
    expected.extend((1..65_535).map(|v| position(0, 2, v)));
    expected.extend([position(1, 0, 10), position(1, 0, 20)]);
    expected.extend((10..500).map(|v| position(1, 1, v)));
    expected.extend((1..65_535).map(|v| position(1, 2, v)));
    let all: Vec<u64> = read("all-container-types", expected.len() as u64)
        .iter()
        .collect();
    assert_eq!(all, expected);
}
