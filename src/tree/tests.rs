//! The tree without a kernel, over metadata files written here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::catalog::directory::DirectoryCatalog;
use crate::catalog::{CatalogError, Listing, TablePointer};
use crate::counters::Counters;
use crate::storage::StorageOptions;
use crate::text::TextOptions;

const UUID: &str = "9c12d441-03fe-4693-9a96-a0705ddf69c1";
const OTHER_UUID: &str = "11111111-03fe-4693-9a96-a0705ddf69c1";

fn schema(id: i32, columns: &[&str]) -> Value {
    let fields: Vec<Value> = columns
        .iter()
        .zip(1..)
        .map(|(name, id)| json!({"id": id, "name": name, "required": false, "type": "long"}))
        .collect();
    json!({"type": "struct", "schema-id": id, "fields": fields})
}

fn snapshot(id: i64, sequence_number: i64, timestamp_ms: i64, schema_id: i32) -> Value {
    json!({
        "snapshot-id": id, "sequence-number": sequence_number, "timestamp-ms": timestamp_ms,
        "summary": {"operation": "append"}, "manifest-list": format!("s3://b/t/metadata/snap-{id}.avro"),
        "schema-id": schema_id,
    })
}

/// 2024-05-01T10:00:00Z, in milliseconds.
const TEN: i64 = 1_714_557_600_000;

/// A table with snapshots 1 and 2 of schema 0, current schema 1, a tag and a branch with strange names.
fn table() -> Value {
    json!({
        "format-version": 2, "table-uuid": UUID, "location": "s3://b/t", "last-sequence-number": 2,
        "last-updated-ms": TEN + 1000, "last-column-id": 2, "current-schema-id": 1,
        "schemas": [schema(0, &["a"]), schema(1, &["a", "b"])],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
        "current-snapshot-id": 2,
        "snapshots": [snapshot(1, 1, TEN, 0), snapshot(2, 2, TEN + 1000, 0)],
        "snapshot-log": [{"snapshot-id": 2, "timestamp-ms": TEN + 1000}, {"snapshot-id": 1, "timestamp-ms": TEN}],
        "refs": {
            "main": {"snapshot-id": 2, "type": "branch"},
            "../../etc": {"snapshot-id": 1, "type": "branch"},
            "v=1": {"snapshot-id": 1, "type": "tag"},
        },
    })
}

fn empty_table() -> Value {
    let mut table = table();
    for (key, value) in [
        ("current-snapshot-id", json!(-1)),
        ("snapshots", json!([])),
        ("snapshot-log", json!([])),
    ] {
        table[key] = value;
    }
    table.as_object_mut().unwrap().remove("refs");
    table
}

fn commit(table: &Path, version: u32, metadata: &Value) {
    let directory = table.join("metadata");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join(format!("v{version}.metadata.json")),
        metadata.to_string(),
    )
    .unwrap();
    std::fs::write(directory.join("version-hint.text"), version.to_string()).unwrap();
}

fn tree(source: &Path, refresh: Duration) -> Tree {
    tree_of(Box::new(DirectoryCatalog::open(source).unwrap()), refresh)
}

fn tree_of(catalog: Box<dyn Catalog>, refresh: Duration) -> Tree {
    let counters = Arc::new(Counters::default());
    let cache = Arc::new(Cache::new(1 << 20, Arc::clone(&counters)));
    let options = TreeOptions {
        refresh,
        lineage: Lineage::Auto,
        metadata_columns: false,
        storage: StorageOptions::new(counters),
        text: TextOptions::default(),
        splitting: crate::parquet::Splitting::default(),
    };
    Tree::new(catalog, cache, options)
}

/// A mount of one table that looks at it at every touch.
fn mounted(metadata: &Value) -> (TempDir, Tree) {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("orders");
    commit(&table, 1, metadata);
    let tree = tree(&table, Duration::ZERO);
    (directory, tree)
}

impl Tree {
    fn walk(&self, path: &str) -> Result<Node> {
        path.split('/')
            .filter(|name| !name.is_empty())
            .try_fold(self.root(), |node, name| self.lookup(&node, name))
    }

    fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .list(&self.walk(path).unwrap())
            .unwrap()
            .iter()
            .map(|(name, _)| name.to_owned())
            .collect();
        names.sort();
        names
    }

    fn leads(&self, path: &str) -> String {
        self.read_link(&self.walk(path).unwrap()).unwrap()
    }

    fn text(&self, path: &str) -> String {
        let node = self.walk(path).unwrap();
        let file = self.open(&node).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let len = self.read(&file, 0, &mut buffer).unwrap();
        if file.caching() != Caching::None {
            assert_eq!(self.attributes(&node).unwrap().size, length(len), "{path}");
        }
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    }

    fn fails(&self, path: &str) -> ErrorKind {
        let node = self.walk(path);
        node.and_then(|node| self.attributes(&node))
            .expect_err(path)
            .kind
    }
}

#[test]
fn the_root_of_one_table_is_its_tree() {
    let (_directory, tree) = mounted(&table());
    assert_eq!(
        tree.names("/"),
        [
            ".bergfs",
            "at",
            "branches",
            "current",
            "metadata",
            "snapshots",
            "tags"
        ]
    );
    assert_eq!(tree.names(".bergfs"), ["errors", "stats", "version"]);
    assert_eq!(tree.text("metadata/table.json"), table().to_string());
    assert_eq!(tree.fails("nothing"), ErrorKind::NotFound);
    assert_eq!(tree.fails("current/parts"), ErrorKind::NotDirectory);
}

#[test]
fn rule_05_refs_are_links_with_names_that_stay_in_their_directory() {
    let (_directory, tree) = mounted(&table());
    assert_eq!(tree.names("branches"), ["%2E.%2F..%2Fetc", "main"]);
    assert_eq!(tree.names("tags"), ["v%3D1"]);
    assert_eq!(tree.leads("current"), "branches/main");
    assert_eq!(tree.fails("tags/v=1"), ErrorKind::NotFound);
}

#[test]
fn rule_08_a_branch_is_read_with_the_current_schema_and_a_tag_with_its_snapshots() {
    let (_directory, tree) = mounted(&table());
    assert_eq!(tree.leads("branches/main"), "../snapshots/2@schema-1");
    assert_eq!(tree.leads("tags/v%3D1"), "../snapshots/1");
    assert_eq!(
        tree.names("snapshots"),
        ["1", "1@schema-1", "2", "2@schema-1"]
    );
    let names = |path: &str| {
        let schema: Value = serde_json::from_str(&tree.text(path)).unwrap();
        schema["fields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("snapshots/1/schema.json"), ["a"]);
    assert_eq!(names("snapshots/1@schema-1/schema.json"), ["a", "b"]);
    for absent in [
        "snapshots/3",
        "snapshots/1@schema-7",
        "snapshots/01",
        "snapshots/none",
    ] {
        assert_eq!(tree.fails(absent), ErrorKind::NotFound);
    }
}

#[test]
fn rule_08_a_snapshot_of_a_schema_that_is_not_there_fails_and_the_rest_goes_on() {
    let mut metadata = table();
    metadata["snapshots"][0]["schema-id"] = json!(9);
    let (_directory, tree) = mounted(&metadata);
    assert_eq!(tree.fails("snapshots/1"), ErrorKind::Io);
    assert!(tree.text(".bergfs/errors").contains("/snapshots/1: "));
    tree.walk("snapshots/2").unwrap();
}

#[test]
fn rule_07_any_time_resolves_by_the_snapshot_log() {
    let (_directory, tree) = mounted(&table());
    assert_eq!(
        tree.names("at"),
        ["2024-05-01T10:00:00.000Z", "2024-05-01T10:00:01.000Z"]
    );
    assert_eq!(tree.leads("at/2024-05-01T10:00:00.000Z"), "../snapshots/1");
    assert_eq!(
        tree.leads("at/2024-05-01 12:00:00.9+02:00"),
        "../snapshots/1"
    );
    assert_eq!(tree.leads("at/2024-05-01"), "../snapshots/2");
    assert_eq!(tree.fails("at/2024-04-30"), ErrorKind::Absent);
    assert_eq!(tree.fails("at/yesterday"), ErrorKind::NotFound);
    assert!(
        tree.text(".bergfs/errors")
            .contains("begins at 2024-05-01T10:00:00.000Z")
    );
}

#[test]
fn rule_04_a_table_without_a_snapshot_has_an_empty_view_of_the_current_schema() {
    let (_directory, tree) = mounted(&empty_table());
    assert_eq!(tree.leads("branches/main"), "../snapshots/none");
    assert_eq!(tree.names("snapshots"), ["none"]);
    assert_eq!(
        tree.names("snapshots/none"),
        [
            "orders.csv",
            "orders.jsonl",
            "orders.parquet",
            "parts",
            "schema.json",
            "snapshot.json"
        ]
    );
    assert_eq!(tree.names("snapshots/none/parts"), [""; 0]);
}

#[test]
fn a_view_directory_has_its_snapshots_time() {
    let (_directory, tree) = mounted(&table());
    let modified = tree
        .attributes(&tree.walk("snapshots/1").unwrap())
        .unwrap()
        .modified;
    assert_eq!(
        modified.duration_since(UNIX_EPOCH).unwrap().as_millis(),
        1_714_557_600_000
    );
    let json: Value = serde_json::from_str(&tree.text("snapshots/1/snapshot.json")).unwrap();
    assert_eq!(json["timestamp"], "2024-05-01T10:00:00.000Z");
    assert_eq!(json["operation"], "append");
}

#[test]
fn a_commit_shows_at_the_next_look_and_old_snapshots_stay() {
    let (directory, tree) = mounted(&table());
    let old = tree.walk("snapshots/2/snapshot.json").unwrap();
    let mut metadata = table();
    metadata["last-sequence-number"] = json!(3);
    metadata["snapshots"]
        .as_array_mut()
        .unwrap()
        .push(snapshot(3, 3, TEN + 2000, 1));
    metadata["current-snapshot-id"] = json!(3);
    metadata["refs"]["main"]["snapshot-id"] = json!(3);
    commit(&directory.path().join("orders"), 2, &metadata);
    assert_eq!(tree.leads("branches/main"), "../snapshots/3");
    tree.attributes(&old).unwrap();
}

#[test]
fn an_unchanged_pointer_is_not_parsed_again_and_is_looked_at_only_when_due() {
    let (directory, tree) = mounted(&table());
    (0..3).for_each(|_| drop(tree.leads("branches/main")));
    assert_eq!(tree.source.counters.metadata_read.get(), 1);

    let patient = super::tests::tree(&directory.path().join("orders"), Duration::from_secs(3600));
    patient.leads("branches/main");
    commit(&directory.path().join("orders"), 2, &empty_table());
    assert_eq!(patient.leads("branches/main"), "../snapshots/2@schema-1");
}

#[test]
fn a_commit_that_cannot_be_read_is_an_error_and_not_the_old_state() {
    let (directory, tree) = mounted(&table());
    let kept = tree.walk("snapshots/2/schema.json").unwrap();
    let metadata = directory.path().join("orders/metadata");
    std::fs::write(metadata.join("v2.metadata.json"), "{").unwrap();
    std::fs::write(metadata.join("version-hint.text"), "2").unwrap();
    let written = std::fs::File::open(metadata.join("v2.metadata.json")).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    written.set_modified(long_ago).unwrap();
    assert_eq!(tree.fails("current"), ErrorKind::Io);
    assert_eq!(tree.fails("branches/main"), ErrorKind::Io);
    assert!(tree.text(".bergfs/errors").contains("v2.metadata.json"));
    tree.attributes(&kept).unwrap();
    tree.walk("snapshots/1/schema.json").unwrap();
}

/// A catalog that a commit comes to an end in, after so many questions.
struct Committing {
    directory: DirectoryCatalog,
    file: PathBuf,
    whole: String,
    left: AtomicU32,
}

impl Catalog for Committing {
    fn single_table(&self) -> Option<TableIdent> {
        self.directory.single_table()
    }

    fn list(&self, namespace: &[String]) -> std::result::Result<Listing, CatalogError> {
        self.directory.list(namespace)
    }

    fn table(&self, ident: &TableIdent) -> std::result::Result<Option<TablePointer>, CatalogError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            std::fs::write(&self.file, &self.whole).unwrap();
        }
        self.directory.table(ident)
    }
}

#[test]
fn a_metadata_file_that_is_being_written_is_waited_for() {
    let (directory, _) = mounted(&table());
    let root = directory.path().join("orders");
    let whole = empty_table().to_string();
    for written in ["", "{", &whole[..whole.len() - 1]] {
        let file = root.join("metadata/v2.metadata.json");
        std::fs::write(&file, written).unwrap();
        let catalog = Committing {
            directory: DirectoryCatalog::open(&root).unwrap(),
            file,
            whole: whole.clone(),
            left: AtomicU32::new(2),
        };
        let tree = tree_of(Box::new(catalog), Duration::from_secs(3600));
        assert_eq!(tree.leads("current"), "branches/main");
        assert_eq!(tree.leads("branches/main"), "../snapshots/none");
    }
}

#[test]
fn rule_06_another_uuid_at_the_same_place_is_another_table() {
    let (directory, tree) = mounted(&table());
    let old = tree.walk("snapshots/1/schema.json").unwrap();
    let mut metadata = table();
    metadata["table-uuid"] = json!(OTHER_UUID);
    commit(&directory.path().join("orders"), 2, &metadata);
    assert_eq!(tree.attributes(&old).unwrap_err().kind, ErrorKind::Stale);
    let new = tree.walk("snapshots/1/schema.json").unwrap();
    assert_ne!(old, new);
}

/// Name mapping: what files without ids show. Format version 3: row lineage. Specs and sort orders: which bounds are exact,
/// so how long a footer is.
#[test]
fn a_commit_that_changes_how_snapshots_are_shown_makes_new_views() {
    let key = json!([{"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}]);
    let changes = [
        ("/properties/schema.name-mapping.default", json!("[]")),
        ("/format-version", json!(3)),
        (
            "/partition-specs",
            json!([{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": key}]),
        ),
        (
            "/sort-orders",
            json!([{"order-id": 1, "fields": [{"source-id": 1, "transform": "identity",
                "direction": "asc", "null-order": "nulls-first"}]}]),
        ),
    ];
    for (what, value) in changes {
        let (directory, tree) = mounted(&table());
        let old = tree.walk("snapshots/1").unwrap();
        let mut metadata = table();
        metadata["next-row-id"] = json!(0);
        commit(&directory.path().join("orders"), 2, &metadata);
        assert_eq!(tree.walk("snapshots/1").unwrap(), old);
        let (parent, name) = what.rsplit_once('/').unwrap();
        metadata.pointer_mut(parent).unwrap()[name] = value;
        commit(&directory.path().join("orders"), 3, &metadata);
        assert_ne!(tree.walk("snapshots/1").unwrap(), old, "{what}");
    }
}

#[test]
fn tables_of_a_warehouse_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let warehouse = directory.path();
    commit(&warehouse.join("sales/orders"), 1, &table());
    let tree = tree(warehouse, Duration::ZERO);
    assert_eq!(tree.names("/"), [".bergfs", "sales"]);
    assert_eq!(tree.leads("sales/orders/current"), "branches/main");
    let orders = tree.walk("sales/orders/snapshots/1").unwrap();
    commit(&warehouse.join("sales/items"), 1, &table());
    assert_eq!(tree.names("sales"), ["items", "orders"]);
    std::fs::remove_dir_all(warehouse.join("sales/orders")).unwrap();
    assert_eq!(tree.names("sales"), ["items"]);
    assert_eq!(tree.fails("sales/orders"), ErrorKind::NotFound);
    assert_eq!(tree.attributes(&orders).unwrap_err().kind, ErrorKind::Stale);
}

#[test]
fn rule_02_gzip_is_told_by_its_first_bytes() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let metadata = directory.path().join("orders/metadata");
    std::fs::create_dir_all(&metadata).unwrap();
    let file = std::fs::File::create(metadata.join("v1.gz.metadata.json")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    gzip.write_all(table().to_string().as_bytes()).unwrap();
    gzip.finish().unwrap();
    let tree = tree(&directory.path().join("orders"), Duration::ZERO);
    assert_eq!(tree.text("metadata/table.json"), table().to_string());
}

#[test]
fn lineage_columns_give_way_to_a_column_of_that_name() {
    let mut metadata = table();
    metadata["format-version"] = json!(3);
    metadata["next-row-id"] = json!(0);
    metadata["schemas"] = json!([schema(0, &["a"]), schema(1, &["a", "_row_id"])]);
    let (_directory, tree) = mounted(&metadata);
    tree.text("snapshots/2@schema-1/schema.json");
    assert!(
        tree.text(".bergfs/errors")
            .contains("column _row_id of its own")
    );
}

#[test]
fn stats_name_every_counter() {
    let (_directory, tree) = mounted(&table());
    tree.leads("current");
    let stats = tree.text(".bergfs/stats");
    assert!(stats.contains("metadata_read 1\n") && stats.contains("manifests_read 0\n"));
    assert!(stats.contains("memory_bytes "));
}
