//! What looking at a mount asks of a catalog.

use std::time::Duration;

use super::*;
use crate::cache::Cache;
use crate::storage::StorageOptions;
use crate::text::TextOptions;
use crate::tree::{Lineage, Tree, TreeOptions};

/// A tree that takes nothing for current that it has seen before.
fn tree(server: &Server) -> Tree {
    let counters = Arc::<Counters>::default();
    let cache = Arc::new(Cache::new(1 << 20, Arc::clone(&counters)));
    let options = TreeOptions {
        refresh: Duration::ZERO,
        lineage: Lineage::Auto,
        metadata_columns: false,
        storage: StorageOptions::new(counters),
        text: TextOptions::default(),
        splitting: crate::parquet::Splitting::default(),
    };
    Tree::new(Box::new(open(server, &[]).unwrap()), cache, options)
}

#[test]
fn a_namespace_is_not_listed_again_for_each_look_at_a_table_that_is_still_there() {
    let directory = tempfile::tempdir().unwrap();
    let location = directory.path().to_str().unwrap().to_owned();
    std::fs::create_dir(directory.path().join("metadata")).unwrap();
    std::fs::write(directory.path().join("metadata/00000-a.metadata.json"), "").unwrap();
    let dropped = Arc::new(AtomicU32::new(0));
    let is_dropped = Arc::clone(&dropped);
    let server = Server::start(move |asked| {
        let gone = is_dropped.load(Ordering::Relaxed) != 0;
        match asked.line.split('?').next().unwrap() {
            "GET /v1/config" => config(),
            "GET /v1/namespaces" if asked.line.contains("parent=") => ok(r#"{"namespaces":[]}"#),
            "GET /v1/namespaces" => ok(r#"{"namespaces":[["n"]]}"#),
            "GET /v1/namespaces/n/tables" if gone => ok(r#"{"identifiers":[]}"#),
            "GET /v1/namespaces/n/tables" => {
                ok(r#"{"identifiers":[{"namespace":["n"],"name":"t"}]}"#)
            }
            "GET /v1/namespaces/n/tables/t" if gone => refused(404, "NoSuchTableException", "gone"),
            "GET /v1/namespaces/n/tables/t" => ok(table(&location).to_string()),
            line => panic!("{line}"),
        }
    });
    let tree = tree(&server);
    let namespace = tree.lookup(&tree.root(), "n").unwrap();
    let found = tree.lookup(&namespace, "t").unwrap();
    tree.attributes(&found).unwrap();
    server.take();
    assert_eq!(tree.lookup(&namespace, "t").unwrap(), found);
    assert_eq!(
        server.lines(),
        ["GET /v1/namespaces/n/tables/t?snapshots=all"]
    );
    // What no listing has named is looked for in a new one.
    assert!(tree.lookup(&namespace, "u").is_err());
    assert_eq!(server.lines().len(), 2);
    dropped.store(1, Ordering::Relaxed);
    let error = tree.lookup(&namespace, "t").unwrap_err();
    assert_eq!(error.kind, crate::tree::ErrorKind::NotFound);
}
