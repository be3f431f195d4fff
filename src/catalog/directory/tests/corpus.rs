//! Every table of the corpus, where it is at hand (`BERGFS_CORPUS`, or beside the repository): its metadata file is
//! found, and every file that its metadata records, down to data and delete files, is opened where it lies now, without
//! a single `--map-path`.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Catalog, DirectoryCatalog};
use crate::storage::{PathMapping, Storage, StorageOptions};

/// Its own tests open a file by name that no rule would choose: `vfinal`, beside `00001-<uuid>`.
const PINNED: &str = "duckdb-iceberg/equality_delete_extra_column";

fn corpus() -> Option<PathBuf> {
    let given = std::env::var_os("BERGFS_CORPUS").map(PathBuf::from);
    let beside = || {
        ["../shared/corpus", "../../shared/corpus"]
            .map(PathBuf::from)
            .into_iter()
            .find(|path| path.is_dir())
    };
    given.or_else(beside)
}

fn parsed(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    serde_json::from_str(&text).unwrap()
}

/// The manifest lists and inline manifests of a table's snapshots, as recorded.
fn recorded_paths(metadata: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    for snapshot in metadata["snapshots"].as_array().into_iter().flatten() {
        paths.extend(snapshot["manifest-list"].as_str().map(str::to_owned));
        let inline = snapshot["manifests"].as_array().into_iter().flatten();
        paths.extend(inline.filter_map(Value::as_str).map(str::to_owned));
    }
    paths
}

/// The paths that a manifest list or a manifest (of entries that are not deleted) records; none for other files.
fn paths_in_avro(bytes: &[u8]) -> Vec<String> {
    use apache_avro::types::Value;
    fn field<'r>(record: &'r Value, name: &str) -> Option<&'r Value> {
        let Value::Record(fields) = record else {
            return None;
        };
        fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value)
    }
    if !bytes.starts_with(b"Obj\x01") {
        return Vec::new();
    }
    let mut paths = Vec::new();
    for record in apache_avro::Reader::new(bytes).unwrap() {
        let record = record.unwrap();
        let deleted = matches!(field(&record, "status"), Some(Value::Int(2)));
        let file = field(&record, "data_file").and_then(|file| field(file, "file_path"));
        if let Some(Value::String(path)) = field(&record, "manifest_path")
            .or(file)
            .filter(|_| !deleted)
        {
            paths.push(path.clone());
        }
    }
    paths
}

#[test]
fn corpus_every_table_is_found_and_all_its_files_open_where_they_lie_now() {
    let Some(corpus) = corpus() else {
        eprintln!("no corpus here: skipped");
        return;
    };
    let maps = parsed(&corpus.join("MAPS.json"));
    let index = fs::read_to_string(corpus.join("INDEX.tsv")).unwrap();
    let (mut tables, mut opened, mut wrong) = (0, 0, Vec::new());
    for line in index.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (name, missing_refs) = (columns[0], columns[15].trim());
        let directory = fs::canonicalize(corpus.join(name)).unwrap();
        let expected = directory.join(maps[name]["metadata"].as_str().unwrap());
        let source = if name == PINNED {
            &expected
        } else {
            &directory
        };
        let catalog = DirectoryCatalog::open(source).unwrap();
        let pointer = catalog
            .table(&catalog.single_table().unwrap())
            .unwrap()
            .unwrap();
        if (pointer.metadata.local(), pointer.root.local()) != (Some(&expected), Some(&directory)) {
            wrong.push(format!("{name}: {pointer:?}"));
            continue;
        }
        tables += 1;

        let metadata = parsed(pointer.metadata.local().unwrap());
        let location = metadata["location"].as_str().unwrap();
        let storage = Storage::new(
            &StorageOptions::default(),
            &pointer.root,
            &Default::default(),
            location,
            &[],
        )
        .unwrap();
        let mut missing = Vec::new();
        let mut seen = HashSet::new();
        let mut paths = recorded_paths(&metadata);
        while let Some(recorded) = paths.pop() {
            if !seen.insert(recorded.clone()) {
                continue;
            }
            match storage.open(&recorded) {
                Ok(file) => {
                    opened += 1;
                    paths.extend(paths_in_avro(&file.read_range(0, file.len()).unwrap()));
                }
                Err(error) => missing.push(format!("{name}: {error}")),
            }
        }
        // Expired with their snapshots, or kept elsewhere, which takes a mapping.
        if missing.len().to_string() != missing_refs {
            wrong.extend(missing);
        }
    }
    eprintln!("{tables} tables, {opened} manifest lists, manifests, data and delete files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(tables, index.lines().count() - 1);
    assert!(opened > tables);
}

#[test]
fn corpus_data_kept_elsewhere_is_read_through_a_second_mapping() {
    let Some(corpus) = corpus() else { return };
    let directory = corpus.join("spark-local/custom_data_path_a");
    let old = "file:/tmp/wh_gen/a/elsewhere_0/";
    let new = directory.join("__siblings__/elsewhere_0");
    let file = walk(&new)
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "parquet"))
        .unwrap();
    let recorded = format!("{old}{}", file.strip_prefix(&new).unwrap().display());
    let location = "file:/tmp/wh_gen/a/custom_data_path";
    let mut options = StorageOptions::default();
    assert!(
        Storage::new(
            &options,
            &directory.clone().into(),
            &Default::default(),
            location,
            &[]
        )
        .unwrap()
        .open(&recorded)
        .is_err()
    );
    options.map_paths.push(PathMapping {
        old: old.to_owned(),
        new: new.into(),
    });
    assert!(
        Storage::new(
            &options,
            &directory.clone().into(),
            &Default::default(),
            location,
            &[]
        )
        .unwrap()
        .open(&recorded)
        .is_ok()
    );
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}
