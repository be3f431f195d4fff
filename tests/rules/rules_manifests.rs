//! Rules 16 to 25: manifest lists and manifests.

use libc::EIO;
use serde_json::json;

use crate::builder::avro::Codec;
use crate::builder::{Commit, Data, Entry, Status, Style, TableBuilder};
use crate::{refuses, shows};

/// A table of one column, and a file of these rows.
fn one_file(version: u8) -> (TableBuilder, Entry) {
    let mut t = TableBuilder::new(version, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    (t, a)
}

#[test]
fn rule_16_manifests_named_in_the_snapshot_itself() {
    let (mut t, a) = one_file(1);
    let b = t.data(json!([[3]]));
    t.commit(Commit::of([a]).and([b]).inline());
    shows(&mut t, json!([[1], [2], [3]]));
}

#[test]
fn rule_17_unknown_file_counts_are_not_zero() {
    let (mut t, a) = one_file(2);
    t.commit(Commit::of([a]).change_manifests(|ms| ms[0].counts = None));
    shows(&mut t, json!([[1], [2]]));
}

#[test]
fn rule_18_fields_are_found_by_id_under_any_name_order_and_codec() {
    for version in 1..=2 {
        for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
            for renamed in [false, true] {
                let (mut t, a) = one_file(version);
                let style = Style {
                    codec,
                    renamed,
                    ..Style::default()
                };
                t.commit(Commit::of([a]).style(style.clone()).list_style(style));
                shows(&mut t, json!([[1], [2]]));
            }
        }
    }
}

#[test]
fn rule_18_optional_fields_may_be_missing() {
    let (mut t, a) = one_file(2);
    let omit = vec![108, 109, 110, 137, 125, 128, 131, 132, 135, 140, 143];
    let list_omit = vec![504, 505, 506, 512, 513, 514, 507, 519];
    let style = Style {
        omit,
        ..Style::default()
    };
    let list_style = Style {
        omit: list_omit,
        ..Style::default()
    };
    t.commit(Commit::of([a]).style(style).list_style(list_style));
    shows(&mut t, json!([[1], [2]]));
}

#[test]
fn rule_18_a_required_field_that_is_missing_is_refused() {
    for id in [0, 2, 100, 101, 103] {
        let (mut t, a) = one_file(2);
        t.commit(Commit::of([a]).style(Style {
            omit: vec![id],
            ..Style::default()
        }));
        let path = t.snapshots[0].manifests[0].path.clone();
        refuses(&mut t, EIO, &[&path]);
    }
}

#[test]
fn rule_19_a_v1_manifest_need_not_say_version_content_and_spec() {
    let mut t = TableBuilder::new(1, "1 id: long, 2 p: string");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!(["x"])),
    );
    let omit_keys = vec![
        "schema-id",
        "partition-spec-id",
        "format-version",
        "content",
    ];
    t.commit(Commit::of([a]).style(Style {
        omit_keys,
        ..Style::default()
    }));
    shows(&mut t, json!([[1, "x"]]));
}

#[test]
fn rule_20_deleted_entries_are_not_read() {
    let (mut t, a) = one_file(2);
    t.commit(Commit::of([a.clone()]));
    let gone = a.deleted(1, 1002).with(|e| e.path += ".gone");
    let b = t.data(json!([[3]]));
    t.commit(Commit::of([gone, a.existing(1, 1001), b]).replacing());
    shows(&mut t, json!([[1], [2], [3]]));
}

#[test]
fn rule_20_a_deleted_delete_file_deletes_nothing() {
    let (mut t, a) = one_file(2);
    let d = t.position_deletes(&[(&a.path, 0)]);
    t.commit(Commit::of([a.clone(), d.clone()]));
    t.commit(
        Commit::of([a.existing(1, 1001)])
            .and([d.deleted(1, 1002)])
            .replacing(),
    );
    shows(&mut t, json!([[1], [2]]));
}

#[test]
fn rule_21_an_added_entry_inherits_the_manifests_sequence_number() {
    // Added in the 2nd commit, the file is not older than the equality delete of the 2nd, but older than that of the 3rd.
    let (mut t, a) = one_file(3);
    t.commit(Commit::default());
    let same = t.equality_deletes(&[1], "1 id: long", json!([[1]]));
    t.commit(Commit::of([a]).and([same]));
    let later = t.equality_deletes(&[1], "1 id: long", json!([[2]]));
    t.commit(Commit::of([later]));
    shows(&mut t, json!([[1, 0, 2]]));
}

#[test]
fn rule_21_a_carried_manifest_keeps_the_sequence_number_it_was_added_with() {
    let (mut t, a) = one_file(3);
    t.commit(Commit::of([a]));
    let b = t.data(json!([[3]]));
    t.commit(Commit::of([b]));
    shows(&mut t, json!([[1, 0, 1], [2, 1, 1], [3, 2, 2]]));
}

#[test]
fn rule_21_an_explicit_sequence_number_is_kept() {
    // A rewritten file that is as old as the first commit: the equality delete of the 2nd commit still hits it.
    let (mut t, a) = one_file(3);
    t.commit(Commit::of([a]));
    let d = t.equality_deletes(&[1], "1 id: long", json!([[1]]));
    t.commit(Commit::of([d.clone()]));
    let compacted = t
        .data(json!([[1], [2]]))
        .with(|e| e.sequence_number = Some(1));
    let d = d.existing(2, 1002);
    t.commit(Commit::of([compacted]).and([d]).replacing());
    shows(&mut t, json!([[2, 3, 1]]));
}

#[test]
fn rule_21_an_existing_entry_without_a_sequence_number_is_refused() {
    let (mut t, a) = one_file(2);
    t.commit(Commit::of([a.with(|e| e.status = Status::Existing)]));
    let path = t.snapshots[0].manifests[0].path.clone();
    refuses(&mut t, EIO, &[&path, "sequence_number"]);
}

#[test]
fn rule_21_an_existing_entry_of_v1_has_sequence_number_0() {
    let (mut t, a) = one_file(1);
    t.commit(Commit::of([a
        .with(|e| e.status = Status::Existing)
        .with(|e| e.snapshot_id = Some(1001))]));
    t.version = 2;
    let d = t.equality_deletes(&[1], "1 id: long", json!([[1]]));
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[2]]));
}

#[test]
fn rule_21_absent_columns_are_null() {
    let (mut t, a) = one_file(2);
    t.commit(Commit::of([a]).style(Style {
        omit: vec![1, 3, 4],
        ..Style::default()
    }));
    let d = t.equality_deletes(&[1], "1 id: long", json!([[1]]));
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[2]]));
}

#[test]
fn rule_22_garbage_metrics_lose_no_row() {
    let (mut t, a) = one_file(2);
    let a = a.with(|e| {
        e.column_sizes = vec![(1, -1)];
        e.value_counts = vec![(1, -1)];
        e.null_counts = vec![(1, -1), (99, 5)];
        e.nan_counts = vec![(1, i64::MIN)];
        e.lower_bounds = vec![(1, vec![1, 2, 3]), (7, vec![])];
        e.upper_bounds = vec![(1, vec![0; 100])];
        e.split_offsets = vec![-4, 0];
    });
    let d = t
        .equality_deletes(&[1], "1 id: long", json!([[1]]))
        .with(|e| {
            e.lower_bounds = vec![(1, vec![9])];
            e.null_counts = vec![(1, -1)];
        });
    t.commit(Commit::of([a]));
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[2]]));
}

#[test]
fn rule_23_one_file_live_under_its_path_and_under_that_of_before_a_move_is_refused() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1]]));
    let (_, name) = a.path.rsplit_once('/').unwrap();
    let moved = a.with(|e| e.path = format!("s3://bucket/older/t/data/{name}"));
    t.commit(Commit::of([a.clone()]).and([moved]));
    refuses(&mut t, EIO, &["in the snapshot twice"]);
}

#[test]
fn rule_23_one_path_live_twice_is_refused() {
    let (mut t, a) = one_file(2);
    t.commit(Commit::of([a.clone()]));
    t.commit(Commit::of([a.clone()]));
    refuses(&mut t, EIO, &[&a.path]);
}

#[test]
fn rule_24_a_partition_is_typed_by_its_manifests_own_spec() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 day: date, 3 name: string");
    t.partition_by(0, "1000 day = identity(2)");
    let old = t.write(
        Data::rows(json!([[1, "a"]]))
            .schema("1 id: long, 3 name: string")
            .partition(0, json!([19000])),
    );
    t.commit(Commit::of([old]));
    t.partition_by(1, "1001 name = identity(3)");
    let new = t.write(
        Data::rows(json!([[2, 19001]]))
            .schema("1 id: long, 2 day: date")
            .partition(1, json!(["b"])),
    );
    t.commit(Commit::of([new]));
    shows(&mut t, json!([[1, 19000, "a"], [2, 19001, "b"]]));
}

#[test]
fn rule_24_partition_values_are_found_by_field_id() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 a: string, 3 b: string");
    t.partition_by(0, "1000 a = identity(2), 1001 b = identity(3)");
    let file = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!(["x", "y"])),
    );
    // The spec in the metadata has the fields the other way round than the manifest.
    t.commit(Commit::of([file]));
    t.partition_by(0, "1001 b = identity(3), 1000 a = identity(2)");
    shows(&mut t, json!([[1, "x", "y"]]));
}

#[test]
fn rule_24_a_spec_over_a_dropped_column_is_read_past() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 amount: decimal(9,2)");
    t.partition_by(0, "1000 amount = identity(2)");
    let schema = "1 id: long, 2 amount: decimal(9,2)";
    let a = t.write(
        Data::rows(json!([[1, "1.25"]]))
            .schema(schema)
            .partition(0, json!(["1.25"])),
    );
    t.commit(Commit::of([a]));
    t.evolve("1 id: long");
    t.specs.push(crate::builder::manifests::Spec {
        id: 1,
        fields: vec![],
    });
    t.default_spec = 1;
    t.schemas.remove(0);
    t.current_schema = 0;
    t.snapshot(1001)["schema-id"] = json!(0);
    shows(&mut t, json!([[1]]));
}

#[test]
fn rule_25_partitions_are_equal_by_bits_and_one_nan() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 x: double");
    t.partition_by(0, "1000 x = identity(2)");
    let parts = [
        json!(0.0),
        json!(-0.0),
        json!("NaN"),
        json!(null),
        json!(1.5),
    ];
    let files: Vec<Entry> = parts
        .iter()
        .map(|x| t.write(Data::rows(json!([[1, x], [2, x]])).partition(0, json!([x]))))
        .collect();
    t.commit(Commit::of(files));
    let deletes: Vec<Entry> = [json!(-0.0), json!("NaN"), json!(null)]
        .into_iter()
        .map(|x| {
            t.equality_deletes(&[1], "1 id: long", json!([[1]]))
                .with(|e| e.partition = vec![x])
        })
        .collect();
    t.commit(Commit::of(deletes));
    shows(
        &mut t,
        json!([
            [1, 0.0],
            [2, 0.0],
            [2, -0.0],
            [2, "NaN"],
            [2, null],
            [1, 1.5],
            [2, 1.5]
        ]),
    );
}

#[test]
fn rule_25_the_same_values_under_another_spec_are_another_partition() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(Data::rows(json!([[1, 5]])).partition(0, json!([5])));
    t.partition_by(1, "1000 p = identity(2)");
    let b = t.write(Data::rows(json!([[1, 5]])).partition(1, json!([5])));
    t.commit(Commit::of([a, b]));
    let d = t
        .equality_deletes(&[1], "1 id: long", json!([[1]]))
        .with(|e| e.partition = vec![json!(5)]);
    assert_eq!(d.spec_id, 1);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[1, 5]]));
}
