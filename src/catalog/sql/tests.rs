#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Mutex;

use tempfile::TempDir;

use super::sqlite::Sqlite;
use super::*;

/// The tables as PyIceberg 0.12 and Iceberg 1.5 and later make them.
const V1: &str = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, \
    table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, \
    metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), \
    PRIMARY KEY (catalog_name, table_namespace, table_name))";

/// As they were before there were views.
const V0: &str = "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, \
    table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, \
    metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), \
    PRIMARY KEY (catalog_name, table_namespace, table_name))";

const NAMESPACE_PROPERTIES: &str = "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, \
    namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000), \
    PRIMARY KEY (catalog_name, namespace, property_key))";

struct Setting {
    directory: TempDir,
}

impl Setting {
    fn new(iceberg_tables: &str) -> Self {
        let setting = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        setting.run(iceberg_tables);
        setting.run(NAMESPACE_PROPERTIES);
        setting
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("a catalog?.db")
    }

    fn run(&self, statement: &str) {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.execute_batch(statement).unwrap();
    }

    fn table(&self, catalog: &str, namespace: &str, name: &str) {
        self.run(&format!(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) \
             VALUES ('{catalog}', '{namespace}', '{name}', 'file:///w/{name}/metadata/1.metadata.json')"
        ));
    }

    fn namespace(&self, catalog: &str, namespace: &str) {
        self.run(&format!(
            "INSERT INTO iceberg_namespace_properties VALUES ('{catalog}', '{namespace}', 'exists', 'true')"
        ));
    }

    fn open(&self, properties: &[(&str, &str)]) -> Result<SqlCatalog, CatalogError> {
        let properties = properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        SqlCatalog::open(
            Box::new(Sqlite::new(self.path())),
            Properties(properties.collect()),
            &Arc::default(),
        )
    }
}

fn levels(levels: &[&str]) -> Vec<String> {
    levels.iter().map(|level| (*level).to_owned()).collect()
}

fn listing(catalog: &SqlCatalog, namespace: &[&str]) -> (Vec<String>, Vec<String>) {
    let listing = catalog.list(&levels(namespace)).unwrap();
    (listing.namespaces, listing.tables)
}

fn pointer(catalog: &SqlCatalog, namespace: &[&str], name: &str) -> Option<String> {
    let ident = TableIdent {
        namespace: levels(namespace),
        name: name.to_owned(),
    };
    let found = catalog.table(&ident).unwrap();
    found.map(|pointer| pointer.metadata.to_string())
}

#[test]
fn dots_separate_the_levels_of_a_namespace() {
    let setting = Setting::new(V1);
    setting.table("c", "a", "t");
    setting.table("c", "a.b.c", "deep");
    setting.table("c", "ab", "other");
    setting.namespace("c", "a.empty");
    setting.namespace("c", "A.case");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(
        listing(&catalog, &[]),
        (levels(&["A", "a", "ab"]), levels(&[]))
    );
    assert_eq!(
        listing(&catalog, &["a"]),
        (levels(&["b", "empty"]), levels(&["t"]))
    );
    assert_eq!(
        listing(&catalog, &["a", "b"]),
        (levels(&["c"]), levels(&[]))
    );
    assert_eq!(
        listing(&catalog, &["a", "b", "c"]),
        (levels(&[]), levels(&["deep"]))
    );
    assert_eq!(
        listing(&catalog, &["a", "empty"]),
        (levels(&[]), levels(&[]))
    );
    assert_eq!(
        pointer(&catalog, &["a", "b", "c"], "deep").as_deref(),
        Some("/w/deep/metadata/1.metadata.json")
    );
    assert_eq!(pointer(&catalog, &["a.b", "c"], "deep"), None);
    assert_eq!(pointer(&catalog, &["a"], "T"), None);
    assert!(catalog.list(&levels(&["gone"])).is_err());
}

#[test]
fn signs_that_mean_something_to_like_are_part_of_names() {
    let setting = Setting::new(V1);
    setting.table("c", "a_b.x", "t");
    setting.table("c", "aXb.y", "t");
    setting.table("c", "p%.z", "t");
    setting.table("c", "e!.z", "t");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["a_b"]).0, levels(&["x"]));
    assert_eq!(listing(&catalog, &["p%"]).0, levels(&["z"]));
    assert_eq!(listing(&catalog, &["e!"]).0, levels(&["z"]));
}

#[test]
fn a_table_without_a_namespace_is_at_the_top() {
    let setting = Setting::new(V1);
    setting.table("c", "", "bare");
    setting.table("c", "ns", "t");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &[]), (levels(&["ns"]), levels(&["bare"])));
    assert!(pointer(&catalog, &[], "bare").is_some());
    assert_eq!(pointer(&catalog, &[""], "bare"), None);
}

#[test]
fn views_are_left_out() {
    let setting = Setting::new(V1);
    setting.table("c", "ns", "untyped");
    setting.table("c", "ns", "typed");
    setting.table("c", "ns", "view");
    setting.run("UPDATE iceberg_tables SET iceberg_type = 'TABLE' WHERE table_name = 'typed'");
    setting.run("UPDATE iceberg_tables SET iceberg_type = 'VIEW' WHERE table_name = 'view'");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["typed", "untyped"]));
    assert_eq!(pointer(&catalog, &["ns"], "view"), None);
}

#[test]
fn a_database_from_before_views_is_read_also_while_it_is_migrated() {
    let setting = Setting::new(V0);
    setting.table("c", "ns", "t");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["t"]));
    assert!(pointer(&catalog, &["ns"], "t").is_some());
    setting.run("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)");
    setting.table("c", "ns", "view");
    setting.run("UPDATE iceberg_tables SET iceberg_type = 'VIEW' WHERE table_name = 'view'");
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["t"]));
}

#[test]
fn of_several_catalogs_in_a_database_one_must_be_chosen() {
    let setting = Setting::new(V1);
    setting.table("prod", "ns", "t");
    setting.namespace("dev", "ns2");
    let error = setting.open(&[]).unwrap_err().to_string();
    assert!(error.contains("catalog-name=NAME (dev, prod)"), "{error}");
    let dev = setting.open(&[("catalog-name", "dev")]).unwrap();
    assert_eq!(listing(&dev, &[]).0, levels(&["ns2"]));
    let prod = setting.open(&[("catalog-name", "prod")]).unwrap();
    assert_eq!(listing(&prod, &[]).0, levels(&["ns"]));
    assert_eq!(pointer(&dev, &["ns"], "t"), None);
    let error = setting.open(&[("catalog-name", "typo")]).unwrap_err();
    assert!(error.to_string().contains("no catalog \"typo\""), "{error}");
}

#[test]
fn a_catalog_that_holds_nothing_yet_is_empty_and_then_not() {
    let setting = Setting::new(V1);
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &[]), (levels(&[]), levels(&[])));
    setting.table("c", "ns", "t");
    assert_eq!(listing(&catalog, &[]).0, levels(&["ns"]));
}

#[test]
fn a_table_without_a_metadata_file_is_an_error_of_that_table() {
    let setting = Setting::new(V1);
    setting.table("c", "ns", "broken");
    setting.table("c", "ns", "t");
    setting.run("UPDATE iceberg_tables SET metadata_location = NULL WHERE table_name = 'broken'");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["broken", "t"]));
    let ident = TableIdent {
        namespace: levels(&["ns"]),
        name: "broken".to_owned(),
    };
    let error = catalog.table(&ident).unwrap_err().to_string();
    assert!(error.contains("ns.broken: the catalog names no metadata"));
    assert!(pointer(&catalog, &["ns"], "t").is_some());
}

#[test]
fn what_is_no_catalog_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        let database = Box::new(Sqlite::new(path.to_owned()));
        SqlCatalog::open(database, Properties::default(), &Arc::default())
            .unwrap_err()
            .to_string()
    };
    let missing = directory.path().join("missing.db");
    let error = open(&missing);
    assert!(
        error.contains("missing.db") && error.contains("four slashes"),
        "{error}"
    );
    assert!(!missing.exists());
    let text = directory.path().join("text.db");
    std::fs::write(&text, "no database".repeat(1000)).unwrap();
    assert!(open(&text).contains("not a database"));
    let empty = directory.path().join("empty.db");
    rusqlite::Connection::open(&empty)
        .unwrap()
        .execute_batch("CREATE TABLE other (a)")
        .unwrap();
    assert!(open(&empty).contains("holds no Iceberg catalog"));
    assert!(open(directory.path()).contains("not a regular file"));
}

#[test]
fn values_that_are_no_text_or_too_long_are_refused() {
    let setting = Setting::new(V1);
    setting.table("c", "ns", "t");
    let catalog = setting.open(&[]).unwrap();
    setting.run("UPDATE iceberg_tables SET metadata_location = x'00ff'");
    let ident = TableIdent {
        namespace: levels(&["ns"]),
        name: "t".to_owned(),
    };
    let error = catalog.table(&ident).unwrap_err().to_string();
    assert!(error.contains("no text"), "{error}");
    setting.run("UPDATE iceberg_tables SET metadata_location = printf('%.*c', 100000, 'x')");
    let error = catalog.table(&ident).unwrap_err().to_string();
    assert!(error.contains("more than 16384 bytes"), "{error}");
    setting.run("UPDATE iceberg_tables SET metadata_location = zeroblob(10000000)");
    let error = catalog.table(&ident).unwrap_err().to_string();
    assert!(error.contains("too big"), "{error}");
    setting.run("UPDATE iceberg_tables SET metadata_location = 'relative/1.metadata.json'");
    let error = catalog.table(&ident).unwrap_err().to_string();
    assert!(
        error.contains("neither a URL nor an absolute path"),
        "{error}"
    );
}

#[test]
fn changes_that_lie_in_the_log_beside_the_file_are_seen() {
    let setting = Setting::new(V1);
    let writer = rusqlite::Connection::open(setting.path()).unwrap();
    writer.pragma_update(None, "journal_mode", "WAL").unwrap();
    writer
        .execute_batch("INSERT INTO iceberg_tables VALUES ('c', 'ns', 't', '/w/1', NULL, 'TABLE')")
        .unwrap();
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["t"]));
    // A transaction that is open is not seen, and not waited for.
    writer
        .execute_batch("BEGIN IMMEDIATE; UPDATE iceberg_tables SET metadata_location = '/w/2'")
        .unwrap();
    assert_eq!(pointer(&catalog, &["ns"], "t").as_deref(), Some("/w/1"));
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(pointer(&catalog, &["ns"], "t").as_deref(), Some("/w/2"));
}

#[test]
fn a_file_that_is_replaced_is_noticed() {
    let setting = Setting::new(V1);
    setting.table("c", "ns", "old");
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["old"]));
    let other = Setting::new(V1);
    other.table("c", "ns", "new");
    std::fs::rename(other.path(), setting.path()).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["new"]));
}

#[test]
fn a_database_in_log_mode_is_read_where_nothing_can_be_written_beside_it() {
    let setting = Setting::new(V1);
    setting.run("PRAGMA journal_mode = WAL");
    setting.table("c", "ns", "t");
    // SQLite can neither make nor open this file, as in a directory that we may only read.
    let mut shared = setting.path().into_os_string();
    shared.push("-shm");
    std::os::unix::fs::symlink("/nowhere/shm", &shared).unwrap();
    let catalog = setting.open(&[]).unwrap();
    assert_eq!(listing(&catalog, &["ns"]).1, levels(&["t"]));
    // With changes in the log, the file alone would be an older state.
    let mut log = setting.path().into_os_string();
    log.push("-wal");
    std::fs::write(&log, "changes").unwrap();
    assert!(catalog.list(&levels(&["ns"])).is_err());
}

#[test]
fn paths_are_those_that_sqlalchemy_and_jdbc_mean() {
    let path = |text: &str| sqlite::path(text).to_str().unwrap().to_owned();
    assert_eq!(path("///rel/c.db"), "rel/c.db");
    assert_eq!(path("////abs/c.db"), "/abs/c.db");
    assert_eq!(path("/abs/c.db"), "/abs/c.db");
    assert_eq!(path("c.db"), "c.db");
    assert_eq!(path("////abs/c.db?timeout=5"), "/abs/c.db");
    assert_eq!(path("file:/abs/c.db?mode=ro"), "/abs/c.db");
    assert_eq!(path("////a b/%20.db"), "/a b/%20.db");
}

/// Counts the statements that reach a database.
#[derive(Debug)]
struct Counted {
    inner: Sqlite,
    statements: Arc<Mutex<Vec<String>>>,
}

impl Database for Counted {
    fn column(
        &self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError> {
        self.statements.lock().unwrap().push(statement.to_owned());
        self.inner.column(statement, parameters)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

#[test]
fn listing_ten_thousand_tables_asks_twice_and_for_no_metadata_file() {
    let setting = Setting::new(V1);
    setting.run(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) \
         INSERT INTO iceberg_tables SELECT 'c', 'ns', 't' || i, 'file:///w/' || i, NULL, NULL FROM n",
    );
    let statements = Arc::default();
    let database = Box::new(Counted {
        inner: Sqlite::new(setting.path()),
        statements: Arc::clone(&statements),
    });
    let catalog = SqlCatalog::open(database, Properties::default(), &Arc::default()).unwrap();
    statements.lock().unwrap().clear();
    assert_eq!(listing(&catalog, &["ns"]).1.len(), 10_000);
    let statements = statements.lock().unwrap();
    assert_eq!(statements.len(), 2);
    assert!(statements.iter().all(|s| !s.contains("metadata_location")));
}
