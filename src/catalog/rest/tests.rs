//! Exact requests, to a server of this process that answers what the REST definition says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::catalog::{Catalog, CatalogError, TableIdent};
use crate::counters::Counters;
use crate::storage::{Address, Properties};

use super::{RestCatalog, with_blocking};
use server::{Asked, Said, Server, ok, refused, said};

mod access;
mod asking;
mod looking;
mod outage;
mod server;

fn properties(pairs: &[(&str, &str)]) -> Properties {
    let owned = pairs
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    Properties(owned.collect())
}

fn ident(namespace: &[&str], name: &str) -> TableIdent {
    TableIdent {
        namespace: namespace.iter().map(|level| (*level).to_owned()).collect(),
        name: name.to_owned(),
    }
}

fn levels(levels: &[&str]) -> Vec<String> {
    levels.iter().map(|level| (*level).to_owned()).collect()
}

fn open(server: &Server, given: &[(&str, &str)]) -> Result<RestCatalog, CatalogError> {
    RestCatalog::open(&server.base, None, &properties(given), &Arc::default())
}

/// An empty configuration.
fn config() -> Said {
    ok(r#"{"defaults":{},"overrides":{}}"#)
}

/// What a table without a snapshot is loaded as.
fn table(location: &str) -> serde_json::Value {
    json!({
        "metadata-location": format!("{location}/metadata/00000-a.metadata.json"),
        "metadata": metadata(location),
    })
}

fn metadata(location: &str) -> serde_json::Value {
    json!({
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1_700_000_000_000_i64,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0,
            "fields": [{"id": 1, "name": "x", "required": false, "type": "long"}]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "current-snapshot-id": -1,
        "snapshots": [],
    })
}

mod source {
    use super::*;
    use crate::catalog::rest::{parse, shown};

    #[test]
    fn a_source_is_a_catalog_or_one_table_of_it() {
        let (base, only) = parse("https://h:8181/base/").unwrap();
        assert_eq!((base.as_str(), only), ("https://h:8181/base/", None));
        let (base, only) = parse("http://h/#a.b%2Ec.t%20u").unwrap();
        assert_eq!(base.as_str(), "http://h/");
        assert_eq!(only, Some(ident(&["a", "b.c"], "t u")));
        assert_eq!(shown(&base, only.as_ref()), "rest+http://h#a.b%2Ec.t%20u");
    }

    #[test]
    fn what_would_show_a_secret_or_means_no_table_is_refused_without_repeating_it() {
        for text in [
            "https://user:secret@h/",
            "https://h/?token=secret",
            "https://h/#secret",
            "https://h/#.secret",
            "https://h/#secret.%zz",
            "ftp://secret/",
            "https://",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_table_that_is_the_whole_source_is_asked_for_and_nothing_is_listed() {
        let server = Server::start(|asked| match asked.line.as_str() {
            "GET /v1/config" => config(),
            _ => ok(table("/warehouse/t").to_string()),
        });
        let only = ident(&["a", "b"], "t");
        let catalog = RestCatalog::open(
            &server.base,
            Some(only.clone()),
            &Properties::default(),
            &Arc::default(),
        )
        .unwrap();
        assert_eq!(catalog.single_table(), Some(only.clone()));
        assert!(catalog.table(&only).unwrap().is_some());
        assert_eq!(
            server.lines(),
            [
                "GET /v1/config",
                "GET /v1/namespaces/a%1Fb/tables/t?snapshots=all"
            ]
        );
    }
}
