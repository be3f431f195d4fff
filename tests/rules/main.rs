//! One test per rule of what the Iceberg spec asks of a reader, through the crate's tree and through a real mount.
//!
//! Each test builds a table state by hand ([`builder`]), opens it, and compares what is served with rows worked out
//! from the spec. [`shows`] and [`refuses`] are the two ends a test can have.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../builder/mod.rs"]
mod builder;

mod builder_itself;
mod rules_avro;
mod rules_avro_orc;
mod rules_deletes;
mod rules_imported;
mod rules_lineage;
mod rules_manifests;
mod rules_metadata;
mod rules_orc;
mod rules_projection;
mod rules_refused;
mod rules_types;
mod rules_variants;

use builder::TableBuilder;
use builder::open::{NOT_MOUNTED, Opened, Served};
use serde_json::Value;

/// `current` shows these rows, in this order.
#[track_caller]
fn shows(t: &mut TableBuilder, rows: Value) {
    t.save();
    view_shows(t, "current", rows);
}

/// The view shows these rows, in this order, as one file; and the same rows in its parts.
#[track_caller]
fn view_shows(t: &TableBuilder, view: &str, rows: Value) {
    let expected: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    for opened in Opened::every_way(&t.root()) {
        let whole = opened.table(&format!("{view}/t.parquet"));
        let whole = whole.unwrap_or_else(|errno| {
            panic!("{view} by {opened}: errno {errno}\n{}", opened.errors())
        });
        assert_eq!(
            lines(&whole),
            expected,
            "{view}/t.parquet by {opened}, columns {:?}",
            whole.columns
        );
        let mut parts: Vec<String> = vec![];
        for part in opened.list(&format!("{view}/parts")).unwrap() {
            let part = opened.table(&format!("{view}/parts/{part}"));
            parts.extend(lines(&part.unwrap_or_else(|errno| {
                panic!("part: errno {errno}\n{}", opened.errors())
            })));
        }
        let mut sorted = expected.clone();
        sorted.sort();
        parts.sort();
        assert_eq!(parts, sorted, "{view}/parts by {opened}");
    }
}

/// The view's columns, by name and type.
#[track_caller]
fn view_columns(t: &TableBuilder, view: &str, columns: &[(&str, &str)]) {
    for opened in Opened::every_way(&t.root()) {
        let whole = opened.table(&format!("{view}/t.parquet")).unwrap();
        let shown: Vec<(&str, &str)> = whole
            .columns
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect();
        assert_eq!(shown, columns, "{view} by {opened}");
    }
}

/// Reading `current` fails with this errno, and the errors the mount lists say all of these words.
#[track_caller]
fn refuses(t: &mut TableBuilder, errno: i32, words: &[&str]) {
    t.save();
    view_refuses(t, "current", errno, words);
}

/// Reading the view fails with this errno, and the errors the mount lists say all of these words.
#[track_caller]
fn view_refuses(t: &TableBuilder, view: &str, errno: i32, words: &[&str]) {
    for opened in Opened::every_way(&t.root()) {
        match opened.table(&format!("{view}/t.parquet")) {
            Ok(whole) => panic!("{view} by {opened}: read as {:#?}", lines(&whole)),
            Err(NOT_MOUNTED) => {}
            Err(refused) => assert_eq!(refused, errno, "{view} by {opened}: {}", opened.errors()),
        }
        for word in words {
            assert!(
                opened.errors().contains(word),
                "{view} by {opened}: {word:?} in\n{}",
                opened.errors()
            );
        }
    }
}

fn lines(served: &Served) -> Vec<String> {
    served.rows.iter().map(Value::to_string).collect()
}
