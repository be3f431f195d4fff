//! Rule 50: what ORC's own writer makes and Iceberg's does not (`OrcFiles.java`); the rows follow from their numbers.

use libc::ENOTSUP;
use serde_json::{Value, json};

use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::{refuses, shows};

const SIMPLE: &str = "1 id: int, 2 s: string, 3 x: double, 4 d: decimal(9,2)";

#[test]
fn rule_50_orc_files_compressed_with_brotli() {
    let bytes = include_bytes!("../fixtures/orc/brotli.orc");
    let rows = (0..5000).map(|i| {
        let cents = format!("{}.{:02}", i / 100, i % 100);
        json!([i, format!("the text of row {i}"), f64::from(i) / 4.0, cents])
    });
    let rows: Vec<Value> = rows.collect();
    let mut t = TableBuilder::new(2, SIMPLE);
    let a = t.adopt("a.orc", bytes, 5000);
    t.commit(Commit::of([a.clone()]));
    shows(&mut t, Value::Array(rows.clone()));
    let gone: Vec<(&str, i64)> = (0..4990).map(|i| (a.path.as_str(), i)).collect();
    let d = t.position_deletes(&gone);
    t.commit(Commit::of([d]));
    shows(&mut t, rows[4990..].iter().cloned().collect());
}

#[test]
fn rule_50_orc_files_that_are_encrypted_or_drafts_or_have_lzo_are_refused_by_name() {
    let files: [(&[u8], &str); 3] = [
        (
            include_bytes!("../fixtures/orc/encrypted.orc"),
            "ORC encryption",
        ),
        (
            include_bytes!("../fixtures/orc/version-2-draft.orc"),
            "the ORC version 1.9999",
        ),
        (include_bytes!("../fixtures/orc/lzo.orc"), "the codec LZO"),
    ];
    for (bytes, reason) in files {
        let mut t = TableBuilder::new(2, SIMPLE);
        let a = t.adopt("a.orc", bytes, 10);
        t.commit(Commit::of([a]));
        refuses(&mut t, ENOTSUP, &["a.orc", reason]);
    }
}

#[test]
fn rules_48_and_49_variants_and_geometries_in_orc_files() {
    let mut t = TableBuilder::new(
        3,
        "1 v: variant, 2 g: geometry, 3 h: geography, 4 later: int",
    );
    let bytes = include_bytes!("../fixtures/orc/v3-types.orc");
    let a = t.adopt("a.orc", bytes, 10);
    t.commit(Commit::of([a.clone()]));
    // A little-endian point of the row's number and the column's.
    let hex = |x: f64| -> String { x.to_le_bytes().iter().map(|b| format!("{b:02x}")).collect() };
    let point = |i: i32, c: i32| format!("0101000000{}{}", hex(i.into()), hex(c.into()));
    let unless = |null: bool, value: Value| if null { Value::Null } else { value };
    let row = |i: i32| {
        let variant = json!({"metadata": "010000", "value": format!("0c{i:02x}")});
        json!([
            unless(i % 4 == 0, variant),
            unless(i % 4 == 1, json!(point(i, 1))),
            unless(i % 4 == 2, json!(point(i, 2))),
            null,
            i,
            1
        ])
    };
    shows(&mut t, (0..10).map(row).collect());
    let gone = t.vector(&a, &[0, 3, 9]);
    t.commit(Commit::of([gone]));
    shows(&mut t, [1, 2, 4, 5, 6, 7, 8].map(row).into_iter().collect());
    for opened in Opened::every_way(&t.root()) {
        let text = String::from_utf8(opened.read("current/t.csv").unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().take(3).collect();
        assert_eq!(
            lines[1..],
            ["1,,POINT (1 2),,1,1", "2,POINT (2 1),,,2,1"],
            "{text}"
        );
    }
}

/// The clock on the wall of a writer is no instant; Iceberg Java refuses it too.
#[test]
fn rule_50_an_orc_timestamp_without_zone_is_refused_in_a_column_with_one() {
    let bytes = include_bytes!("../fixtures/orc/zstd.orc");
    for ty in ["timestamptz", "timestamptz_ns"] {
        let mut t = TableBuilder::new(3, &format!("14 ts: {ty}"));
        let a = t.adopt("a.orc", bytes, 40);
        t.commit(Commit::of([a]));
        let reason = format!("a timestamp without a time zone in a column of type {ty}");
        refuses(&mut t, ENOTSUP, &["a.orc", &reason]);
    }
}
