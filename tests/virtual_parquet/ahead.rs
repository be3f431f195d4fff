//! How far the current view is made before anybody asks, and that this is not done twice.

use std::collections::BTreeMap;

use bergfs::tree::Prepared;
use serde_json::{Value, json};

use crate::builder::open::Opened;
use crate::builder::{Commit, Entry, TableBuilder};

/// A row by its id.
type Row = fn(i64) -> Value;

const WHOLE: &str = "current/t.parquet";

/// Prepares a table and reads it. Gives how far it was prepared, and the counters before and after the reading.
fn prepared(table: &mut TableBuilder) -> (Prepared, [BTreeMap<String, u64>; 2]) {
    table.save();
    let opened = Opened::tree(&table.root());
    let prepared = opened.prepare().unwrap();
    let before = opened.stats();
    let rows = opened.rows(WHOLE).unwrap();
    assert_eq!(rows, Opened::tree(&table.root()).rows(WHOLE).unwrap());
    (prepared, [before, opened.stats()])
}

/// Two files of three rows; of the first, one row is deleted by position and one by its key.
fn deleted(schema: &str, columns: Row) -> (TableBuilder, [Entry; 3]) {
    let mut t = TableBuilder::new(2, schema);
    let [first, second] = [0, 10].map(|from| t.data((from..from + 3).map(columns).collect()));
    let by_position = t.position_deletes(&[(&first.path, 1)]);
    let by_key = t.equality_deletes(&[1], "1 id: long", json!([[2]]));
    t.commit(Commit::of([first.clone(), second]));
    (t, [first, by_position, by_key])
}

#[test]
fn nothing_that_was_made_ahead_is_made_again() {
    let (mut t, [_, by_position, by_key]) =
        deleted("1 id: long, 2 name: string", |id| json!([id, "a"]));
    t.commit(Commit::of([by_position, by_key]));
    let (how_far, [before, after]) = prepared(&mut t);
    assert_eq!(how_far, Prepared::Footer);
    let made = [
        ("manifests_read", 2),
        ("footers_read", 2),
        ("position_deletes_read", 1),
        ("equality_deletes_read", 1),
        ("footers_made", 1),
    ];
    for (name, count) in made {
        assert_eq!((before[name], after[name]), (count, count), "{name}");
    }
    assert_eq!(before["equality_keys_asked"], after["equality_keys_asked"]);
    assert_eq!(before["chunks_transcoded"], 0);
}

#[test]
fn a_footer_that_chunks_are_made_for_is_not_made_ahead() {
    let schemas: [(&str, Row); 3] = [
        ("1 id: long, 2 list: list<3 int>", |id| json!([id, [1, 2]])),
        (
            "1 id: long, 2 s: struct<3 list: list<4 int>>",
            |id| json!([id, {"list": [1]}]),
        ),
        ("1 id: long, 2 fixed: required fixed[2]", |id| {
            json!([id, "0102"])
        }),
    ];
    for (schema, columns) in schemas {
        let (mut t, [_, by_position, _]) = deleted(schema, columns);
        let (how_far, _) = prepared(&mut t);
        assert_eq!(how_far, Prepared::Footer, "{schema} without deletes");
        t.commit(Commit::of([by_position]));
        let (how_far, [before, _]) = prepared(&mut t);
        assert_eq!(how_far, Prepared::Layout, "{schema}");
        assert_eq!(
            (before["footers_read"], before["chunks_transcoded"]),
            (2, 0)
        );
    }
}

#[test]
fn what_may_take_long_is_left_to_who_asks() {
    let columns: Row = |id| json!([id]);
    let many = 5 << 20;
    // Keys of that many rows to be looked for, or that many keys.
    let (mut t, [_, _, by_key]) = deleted("1 id: long", columns);
    t.commit(Commit::of([by_key.with(|e| e.record_count = many)]));
    let (how_far, [before, _]) = prepared(&mut t);
    assert_eq!(how_far, Prepared::Layout);
    assert_eq!(before["equality_deletes_read"], 0);
    // Positions.
    let (mut t, [_, by_position, _]) = deleted("1 id: long", columns);
    t.commit(Commit::of([by_position.with(|e| e.record_count = many)]));
    let (how_far, [before, _]) = prepared(&mut t);
    assert_eq!(how_far, Prepared::Plan);
    assert_eq!(
        (before["position_deletes_read"], before["footers_read"]),
        (0, 0)
    );
    // Row groups.
    let mut t = TableBuilder::new(2, "1 id: long");
    let data = t
        .data(json!([[1]]))
        .with(|e| e.split_offsets = (0..70_000).map(|i| 4 + i).collect());
    t.commit(Commit::of([data]));
    assert_eq!(prepared(&mut t).0, Prepared::Plan);
    // Files, or nobody knows how many.
    for counts in [Some([5000, 0, 0, 5000, 0, 0]), None] {
        let (mut t, [data, ..]) = deleted("1 id: long", columns);
        let commit = Commit::of([data]).replacing();
        t.commit(commit.change_manifests(move |all| all[0].counts = counts));
        let (how_far, [before, _]) = prepared(&mut t);
        assert_eq!(how_far, Prepared::Nothing);
        assert_eq!(before["manifests_read"], 0);
    }
}

#[test]
fn a_table_without_a_snapshot_has_nothing_to_prepare() {
    let mut t = TableBuilder::new(2, "1 id: long");
    assert_eq!(prepared(&mut t).0, Prepared::Nothing);
}

#[test]
fn of_many_tables_none_is_prepared() {
    let mut t = TableBuilder::new(2, "1 id: long");
    t.save();
    let above = Opened::tree(t.root().parent().unwrap());
    assert_eq!(above.rows("t/current/t.parquet").unwrap(), json!([]));
    assert_eq!(above.prepare().unwrap(), Prepared::Nothing);
}
