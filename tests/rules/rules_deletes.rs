//! Rules 26 to 33: position deletes, equality deletes, deletion vectors.

use libc::{EIO, ENOTSUP};
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use crate::builder::deletes::{Blob, bitmaps, blob_of, puffin, vector_blob};
use crate::builder::open::Opened;
use crate::builder::table::damage;
use crate::builder::{Commit, Content, Data, Entry, TableBuilder};
use crate::{refuses, shows, view_shows};

const POSITION_SCHEMA: &str = "2147483546 file_path: string, 2147483545 pos: long";

/// A table of one column with one file of the rows 0 to `rows - 1`, in row groups of 10, committed.
fn numbers(version: u8, rows: i64) -> (TableBuilder, Entry) {
    let mut t = TableBuilder::new(version, "1 id: long");
    let data = (0..rows).map(|id| json!([id])).collect();
    let a = t.write(Data::rows(data).row_groups_of(10));
    t.commit(Commit::of([a.clone()]));
    (t, a)
}

/// The rows of [`numbers`] that are left: in v3 with row ids from 0 on and sequence number 1.
fn left(version: u8, ids: impl IntoIterator<Item = i64>) -> Value {
    ids.into_iter()
        .map(|id| {
            if version >= 3 {
                json!([id, id, 1])
            } else {
                json!([id])
            }
        })
        .collect()
}

#[test]
fn rule_26_positions_count_over_all_row_groups() {
    let (mut t, a) = numbers(2, 30);
    let d = t.position_deletes(&[(&a.path, 0), (&a.path, 9), (&a.path, 10), (&a.path, 29)]);
    t.commit(Commit::of([d]));
    shows(&mut t, left(2, (1..9).chain(11..29)));
    view_shows(&t, "snapshots/1001", left(2, 0..30));
}

#[test]
fn rule_26_a_file_may_lose_every_row_and_a_view_too() {
    let (mut t, a) = numbers(2, 25);
    let rows: Vec<(&str, i64)> = (0..25).map(|pos| (a.path.as_str(), pos)).collect();
    let d = t.position_deletes(&rows);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([]));
}

#[test]
fn rule_26_deletes_of_several_files_and_of_the_same_position_twice() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let b = t.data(json!([[3], [4]]));
    t.commit(Commit::of([a.clone(), b.clone()]));
    let d = t.position_deletes(&[(&a.path, 1), (&b.path, 0), (&b.path, 0)]);
    let e = t.position_deletes(&[(&a.path, 1)]);
    t.commit(Commit::of([d, e]));
    shows(&mut t, json!([[1], [4]]));
}

#[test]
fn rule_26_a_delete_older_than_the_file_does_not_apply() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let d = t.position_deletes(&[(&a.path, 0)]);
    t.commit(Commit::of([d]));
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1], [2]]));
}

#[test]
fn rule_26_a_delete_file_about_one_data_file_says_nothing_of_another() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let b = t.data(json!([[3], [4]]));
    let d = t.position_deletes(&[(&a.path, 0), (&b.path, 0)]);
    let d = d.with(|e| e.referenced_data_file = Some(a.path.clone()));
    t.commit(Commit::of([a, b, d]));
    shows(&mut t, json!([[2], [3], [4]]));
}

#[test]
fn rule_26_a_delete_file_applies_within_its_partition() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(Data::rows(json!([[1, 1], [2, 1]])).partition(0, json!([1])));
    let b = t.write(Data::rows(json!([[3, 2], [4, 2]])).partition(0, json!([2])));
    let d = t
        .position_deletes(&[(&a.path, 0)])
        .with(|e| e.partition = vec![json!(1)]);
    t.commit(Commit::of([a, b, d]));
    shows(&mut t, json!([[2, 1], [3, 2], [4, 2]]));
}

#[test]
fn rule_26_columns_of_a_delete_file_are_known_by_id_and_its_row_column_is_not_read() {
    let (mut t, a) = numbers(2, 3);
    let schema =
        "2147483544 row: struct<1 id: long>, 2147483545 file_path: long, 2147483546 pos: string";
    let d = t.write(Data::rows(json!([[{"id": 0}, 1, a.path]])).schema(schema));
    t.commit(Commit::of([
        d.with(|e| e.content = Content::PositionDeletes)
    ]));
    shows(&mut t, left(2, [0, 2]));
}

/// A table that was moved twice, by programs that changed some of the paths it records and not others.
#[test]
fn rule_26_deletes_find_their_file_by_paths_of_before_the_table_was_moved() {
    let old = |entry: &Entry, place: &str| {
        let (_, name) = entry.path.rsplit_once('/').unwrap();
        format!("{place}/data/{name}")
    };
    let places = [None, Some("s3://bucket/older/t"), Some("/no/such/place/t")];
    let pairs = places
        .iter()
        .flat_map(|a| places.iter().map(move |b| (*a, *b)));
    for (of_data, of_delete) in pairs {
        for kind in ["positions", "referenced", "vector"] {
            let version = if kind == "vector" { 3 } else { 2 };
            let mut t = TableBuilder::new(version, "1 id: long");
            let a = t.data(json!([[0], [1], [2]]));
            let spelled = |place: Option<&str>| match place {
                Some(place) => old(&a, place),
                None => a.path.clone(),
            };
            let named = spelled(of_delete);
            let d = second_row_deleted(&mut t, kind, &a, &named);
            let data = a.with(|e| e.path = spelled(of_data));
            t.commit(Commit::of([data, d]));
            shows(&mut t, left(version, [0, 2]));
        }
    }
}

/// A delete of the second row of a file, that calls the file `named`.
fn second_row_deleted(t: &mut TableBuilder, kind: &str, of: &Entry, named: &str) -> Entry {
    let referenced = |entry: Entry| entry.with(|e| e.referenced_data_file = Some(named.to_owned()));
    match kind {
        "positions" => t.position_deletes(&[(named, 1)]),
        "referenced" => referenced(t.position_deletes(&[(named, 1)])),
        _ => referenced(t.vector(of, &[1])),
    }
}

/// Programs take a `file:` URL as it is written, or decode it.
#[test]
fn rule_26_deletes_find_their_file_by_encoded_and_plain_urls() {
    let spellings = |path: &str| {
        [
            path.to_owned(),
            format!("file://{path}"),
            format!("file://{}", path.replace(' ', "%20")),
        ]
    };
    for (of_data, of_delete) in (0..9).map(|i| (i / 3, i % 3)) {
        for kind in ["positions", "referenced", "vector"] {
            let version = if kind == "vector" { 3 } else { 2 };
            let mut t = TableBuilder::new(version, "1 id: long");
            let rows = Data::rows(json!([[0], [1], [2]]));
            let a = t.write(rows.named("data/p=a b/x y.parquet"));
            let spelled = spellings(&a.path);
            let named = spelled[of_delete].clone();
            let d = second_row_deleted(&mut t, kind, &a, &named);
            let data = a.with(|e| e.path = spelled[of_data].clone());
            t.commit(Commit::of([data, d]));
            shows(&mut t, left(version, [0, 2]));
        }
    }
}

#[test]
fn rule_26_a_null_or_negative_position_and_a_null_path_are_refused() {
    for row in [json!([null, 0]), json!(["PATH", null]), json!(["PATH", -1])] {
        let (mut t, a) = numbers(2, 3);
        let row: Value = row
            .as_array()
            .unwrap()
            .iter()
            .map(|v| {
                if v == "PATH" {
                    json!(a.path)
                } else {
                    v.clone()
                }
            })
            .collect();
        let d = t.write(Data::rows(json!([row])).schema(POSITION_SCHEMA));
        let d = d.with(|e| e.content = Content::PositionDeletes);
        t.commit(Commit::of([d.clone()]));
        refuses(&mut t, EIO, &[&d.path]);
    }
}

#[test]
fn rule_26_bounds_of_the_path_column_choose_delete_files_and_truncated_ones_lose_none() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let b = t.data(json!([[3], [4]]));
    let cut = a.path.as_bytes()[..16].to_vec();
    let mut above = cut.clone();
    *above.last_mut().unwrap() += 1;
    let d = t.position_deletes(&[(&a.path, 0), (&b.path, 1)]).with(|e| {
        e.lower_bounds = vec![(2147483546, cut)];
        e.upper_bounds = vec![(2147483546, above)];
    });
    t.commit(Commit::of([a, b, d]));
    shows(&mut t, json!([[2], [3]]));
}

#[test]
fn rule_27_a_vector_deletes_its_files_positions() {
    let (mut t, a) = numbers(3, 30);
    let d = t.vector(&a, &[0, 9, 10, 29]);
    t.commit(Commit::of([d]));
    shows(&mut t, left(3, (1..9).chain(11..29)));
}

#[test]
fn rule_27_a_vector_stands_in_place_of_all_position_deletes_of_its_file() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[1], [2], [3]]));
    let b = t.data(json!([[4], [5]]));
    let old = t.position_deletes(&[(&a.path, 0), (&b.path, 0)]);
    t.commit(Commit::of([a.clone(), b, old]));
    let d = t.vector(&a, &[2]);
    t.commit(Commit::of([d]));
    // Row 1 is back: the spec has the vector hold what the older deletes held, and this one does not.
    shows(&mut t, json!([[1, 0, 1], [2, 1, 1], [5, 4, 1]]));
}

#[test]
fn rule_27_equality_deletes_apply_beside_a_vector() {
    let (mut t, a) = numbers(3, 5);
    let d = t.vector(&a, &[0]);
    let e = t.equality_deletes(&[1], "1 id: long", json!([[3], [0]]));
    t.commit(Commit::of([d, e]));
    shows(&mut t, left(3, [1, 2, 4]));
}

#[test]
fn rule_27_two_vectors_of_one_file_are_refused() {
    let (mut t, a) = numbers(3, 5);
    let (one, two) = (t.vector(&a, &[0]), t.vector(&a, &[1]));
    t.commit(Commit::of([one, two]));
    refuses(&mut t, EIO, &[&a.path]);
}

#[test]
fn rule_27_a_vector_of_a_file_that_is_not_live_changes_nothing() {
    let (mut t, a) = numbers(3, 5);
    let gone = a.with(|e| e.path += ".gone");
    let d = t.vector(&gone, &[0]);
    t.commit(Commit::of([d]));
    shows(&mut t, left(3, 0..5));
}

#[test]
fn rule_28_a_vector_older_than_its_file_is_refused() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let d = t.vector(&a, &[0]);
    t.commit(Commit::of([d]));
    t.commit(Commit::of([a.clone()]));
    refuses(&mut t, EIO, &[&a.path]);
}

#[test]
fn rule_28_a_delete_that_names_a_file_of_another_partition_is_refused() {
    for vector in [false, true] {
        let mut t = TableBuilder::new(3, "1 id: long, 2 p: int");
        t.partition_by(0, "1000 p = identity(2)");
        let a = t.write(Data::rows(json!([[1, 1], [2, 1]])).partition(0, json!([1])));
        let d = if vector {
            t.vector(&a, &[0])
        } else {
            t.position_deletes(&[(&a.path, 0)])
                .with(|e| e.referenced_data_file = Some(a.path.clone()))
        };
        let d = d.with(|e| e.partition = vec![json!(2)]);
        t.commit(Commit::of([a.clone(), d]));
        refuses(&mut t, EIO, &[&a.path, "partition"]);
    }
}

#[test]
fn rule_29_an_equality_delete_hits_older_files_only() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
    let a = t.data(json!([[1, "old"], [2, "old"]]));
    t.commit(Commit::of([a]));
    let d = t.equality_deletes(&[1], "1 id: long", json!([[1]]));
    let b = t.data(json!([[1, "new"]]));
    t.commit(Commit::of([d, b]));
    shows(&mut t, json!([[2, "old"], [1, "new"]]));
}

#[test]
fn rule_29_all_ids_must_match_and_other_columns_are_not_compared() {
    let mut t = TableBuilder::new(2, "1 a: long, 2 b: string, 3 c: string");
    let rows = json!([[1, "x", "p"], [1, "y", "q"], [2, "x", "r"]]);
    let a = t.data(rows);
    t.commit(Commit::of([a]));
    let d = t.equality_deletes(
        &[1, 2],
        "3 c: string, 2 b: string, 1 a: long",
        json!([["other", "x", 1]]),
    );
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[1, "y", "q"], [2, "x", "r"]]));
}

#[test]
fn rule_29_null_equals_null() {
    let mut t = TableBuilder::new(2, "1 a: long, 2 b: string");
    let a = t.data(json!([[1, null], [null, "x"], [null, null], [2, "x"]]));
    t.commit(Commit::of([a]));
    let d = t.equality_deletes(
        &[1, 2],
        "1 a: long, 2 b: string",
        json!([[null, null], [1, "x"]]),
    );
    let d = d.with(|e| {
        e.lower_bounds = vec![(1, 1i64.to_le_bytes().to_vec())];
        e.upper_bounds = vec![(1, 1i64.to_le_bytes().to_vec())];
        e.null_counts = vec![(1, 1), (2, 1)];
        e.value_counts = vec![(1, 2), (2, 2)];
    });
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[1, null], [null, "x"], [2, "x"]]));
}

#[test]
fn rule_29_sets_of_ids_work_side_by_side() {
    let mut t = TableBuilder::new(2, "1 a: long, 2 b: string");
    let a = t.data(json!([[1, "x"], [2, "y"], [3, "z"], [4, "w"]]));
    t.commit(Commit::of([a]));
    let by_a = t.equality_deletes(&[1], "1 a: long", json!([[1]]));
    let by_b = t.equality_deletes(&[2], "2 b: string", json!([["y"]]));
    let by_both = t.equality_deletes(
        &[2, 1],
        "2 b: string, 1 a: long",
        json!([["z", 3], ["w", 3]]),
    );
    t.commit(Commit::of([by_a, by_b, by_both]));
    shows(&mut t, json!([[4, "w"]]));
}

#[test]
fn rule_29_a_partitioned_delete_stays_in_its_partition_and_an_unpartitioned_one_is_global() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(Data::rows(json!([[1, 1], [2, 1]])).partition(0, json!([1])));
    let b = t.write(Data::rows(json!([[1, 2], [2, 2]])).partition(0, json!([2])));
    t.commit(Commit::of([a, b]));
    let local = t
        .equality_deletes(&[1], "1 id: long", json!([[1]]))
        .with(|e| e.partition = vec![json!(1)]);
    t.commit(Commit::of([local]));
    shows(&mut t, json!([[2, 1], [1, 2], [2, 2]]));
    t.partition_by(1, "");
    let global = t.equality_deletes(&[1], "1 id: long", json!([[2]]));
    t.commit(Commit::of([global]));
    shows(&mut t, json!([[1, 2]]));
}

#[test]
fn rule_29_a_spec_of_void_fields_alone_is_unpartitioned() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(Data::rows(json!([[1, 1], [2, 1]])).partition(0, json!([1])));
    t.commit(Commit::of([a]));
    t.partition_by(1, "1000 p = void(2)");
    let global = t.equality_deletes(&[1], "1 id: long", json!([[2]]));
    t.commit(Commit::of([global]));
    shows(&mut t, json!([[1, 1]]));
}

#[test]
fn rule_29_leaves_of_structs_are_keys_and_a_null_struct_has_null_leaves() {
    let mut t = TableBuilder::new(
        2,
        "1 id: long, 2 at: struct<3 x: long, 4 in: struct<5 y: long>>",
    );
    let rows = json!([
        [1, {"x": 7, "in": {"y": 1}}], [2, {"x": 7, "in": null}], [3, null], [4, {"x": 8, "in": {"y": null}}],
        [5, {"x": 7, "in": {"y": 2}}]]);
    let a = t.data(rows);
    t.commit(Commit::of([a]));
    let schema = "2 at: struct<4 in: struct<5 y: long>>";
    let d = t.equality_deletes(
        &[5],
        schema,
        json!([[{"in": {"y": null}}], [{"in": {"y": 2}}]]),
    );
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[1, {"x": 7, "in": {"y": 1}}]]));
}

#[test]
fn rule_29_keys_are_compared_in_the_promoted_type() {
    let mut t = TableBuilder::new(2, "1 id: int, 2 x: float, 3 d: decimal(4,2)");
    let old = t.data(json!([
        [1, 0.5, "1.00"],
        [2, 0.25, "2.00"],
        [3, 0.5, "3.00"]
    ]));
    let old_delete = t.equality_deletes(&[1], "1 id: int", json!([[3]]));
    t.commit(Commit::of([old]));
    t.commit(Commit::of([old_delete]));
    t.evolve("1 id: long, 2 x: double, 3 d: decimal(12,2)");
    let new = t.data(json!([[3, 0.125, "9999999.00"]]));
    let d = t.equality_deletes(
        &[1, 2, 3],
        "1 id: long, 2 x: double, 3 d: decimal(12,2)",
        json!([[1, 0.5, "1.00"]]),
    );
    t.commit(Commit::of([new, d]));
    shows(&mut t, json!([[2, 0.25, "2.00"], [3, 0.125, "9999999.00"]]));
    let d = t.equality_deletes(&[1], "1 id: int", json!([[3]]));
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[2, 0.25, "2.00"]]));
}

#[test]
fn rule_29_a_key_column_that_old_files_lack_is_projected_first() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let old = t.data(json!([[1], [2]]));
    t.commit(Commit::of([old]));
    t.evolve("1 id: long, 2 kind: string = \"plain\", 3 note: string");
    let new = t.data(json!([[3, "plain", "x"], [4, "odd", null]]));
    t.commit(Commit::of([new]));
    let by_default = t.equality_deletes(
        &[2, 1],
        "2 kind: string, 1 id: long",
        json!([["plain", 1], ["plain", 3]]),
    );
    t.commit(Commit::of([by_default]));
    shows(
        &mut t,
        json!([[2, "plain", null, 1, 1], [4, "odd", null, 3, 2]]),
    );
    let by_null = t.equality_deletes(&[3], "3 note: string", json!([[null]]));
    t.commit(Commit::of([by_null]));
    shows(&mut t, json!([]));
}

#[test]
fn rule_29_a_key_column_may_have_been_dropped_or_renamed_since() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
    let a = t.data(json!([[1, "a"], [2, "b"], [3, "c"]]));
    t.commit(Commit::of([a]));
    let by_name = t.equality_deletes(&[2], "2 name: string", json!([["a"]]));
    let by_id = t.equality_deletes(&[1], "1 id: long", json!([[2]]));
    t.commit(Commit::of([by_name, by_id]));
    t.evolve("1 number: long");
    shows(&mut t, json!([[3]]));
}

#[test]
fn rule_29_every_type_is_a_key() {
    let cases = [
        ("boolean", json!(true), json!(false)),
        ("int", json!(-7), json!(7)),
        ("long", json!(i64::MIN), json!(i64::MAX)),
        ("float", json!("NaN"), json!(1.5)),
        ("double", json!(-2.5), json!("NaN")),
        (
            "decimal(38,3)",
            json!("-99999999999999999999999999999999999.999"),
            json!("0.001"),
        ),
        ("date", json!(-1), json!(0)),
        ("time", json!(0), json!(86_399_999_999i64)),
        ("timestamp", json!(-1), json!(1_700_000_000_000_000i64)),
        ("timestamptz", json!(5), json!(-5)),
        ("timestamp_ns", json!(-1), json!(1)),
        ("timestamptz_ns", json!(77), json!(78)),
        ("string", json!(""), json!("\u{1f600} é")),
        (
            "uuid",
            json!("000102030405060708090a0b0c0d0e0f"),
            json!("ff0102030405060708090a0b0c0d0e0f"),
        ),
        ("fixed[3]", json!("0a0b0c"), json!("000000")),
        ("binary", json!(""), json!("00ff")),
    ];
    for (ty, gone, kept) in cases {
        let mut t = TableBuilder::new(3, &format!("1 id: long, 2 key: {ty}"));
        let a = t.data(json!([[1, gone], [2, kept], [3, null]]));
        t.commit(Commit::of([a]));
        let d = t.equality_deletes(&[2], &format!("2 key: {ty}"), json!([[gone]]));
        t.commit(Commit::of([d]));
        shows(&mut t, json!([[2, kept, 1, 1], [3, null, 2, 1]]));
    }
}

/// Equal geometries may be written in different bytes, so bytes tell nothing.
#[test]
fn rule_29_a_geometry_as_a_key_is_refused() {
    for ty in ["geometry", "geography"] {
        let mut t = TableBuilder::new(3, &format!("1 id: long, 2 key: {ty}"));
        let point = "0101000000000000000000f03f0000000000000040";
        let rows = Data::rows(json!([[1, point], [2, null]]));
        let a = t.write(rows.schema("1 id: long, 2 key: binary"));
        t.commit(Commit::of([a]));
        let d = t.equality_deletes(&[2], "2 key: binary", json!([[point]]));
        t.commit(Commit::of([d.clone()]));
        refuses(&mut t, ENOTSUP, &[&d.path, "equality delete", ty]);
    }
}

#[test]
fn rule_30_bounds_of_a_column_that_is_no_key_do_not_hide_a_delete() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 x: long");
    let long = |v: i64| v.to_le_bytes().to_vec();
    let a = t.data(json!([[1, 10], [2, 20]])).with(|e| {
        e.lower_bounds = vec![(1, long(1)), (2, long(10))];
        e.upper_bounds = vec![(1, long(2)), (2, long(20))];
    });
    t.commit(Commit::of([a]));
    let d = t
        .equality_deletes(&[1], "1 id: long, 2 x: long", json!([[1, 500]]))
        .with(|e| {
            e.lower_bounds = vec![(1, long(1)), (2, long(500))];
            e.upper_bounds = vec![(1, long(1)), (2, long(500))];
        });
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[2, 20]]));
}

#[test]
fn rule_31_deletes_of_the_same_commit_hit_by_position_and_not_by_value() {
    for vector in [false, true] {
        let version = if vector { 3 } else { 2 };
        let mut t = TableBuilder::new(version, "1 id: long");
        let a = t.data(json!([[0], [1], [2]]));
        let by_position = if vector {
            t.vector(&a, &[1])
        } else {
            t.position_deletes(&[(&a.path, 1)])
        };
        let by_value = t.equality_deletes(&[1], "1 id: long", json!([[0]]));
        t.commit(Commit::of([a, by_position, by_value]));
        shows(&mut t, left(version, [0, 2]));
    }
}

#[test]
fn rule_32_vectors_of_arrays_bitmaps_runs_and_several_keys() {
    let (mut t, a) = numbers(3, 40);
    // An array container, as a run container, and beside a bitmap of positions above 2^32 that is empty.
    let mut runs: RoaringBitmap = (5..35).collect();
    assert!(runs.optimize());
    let d = t.vector_of(&a, vector_blob(&[(0, runs), (1, RoaringBitmap::new())]), 30);
    t.commit(Commit::of([d]));
    shows(&mut t, left(3, (0..5).chain(35..40)));

    let (mut t, a) = numbers(3, 10_000);
    let positions: Vec<u64> = (0..10_000).filter(|p| p % 2 == 0).collect();
    let d = t.vector(&a, &positions);
    t.commit(Commit::of([d]));
    shows(&mut t, left(3, (0..10_000).filter(|p| p % 2 == 1)));
}

/// A blob that is right, and one change to it.
#[track_caller]
fn refuses_blob(cardinality: i64, change: impl Fn(&mut Vec<u8>)) {
    let (mut t, a) = numbers(3, 10);
    let mut blob = vector_blob(&bitmaps([1, 2]));
    change(&mut blob);
    let d = t.vector_of(&a, blob, cardinality);
    t.commit(Commit::of([d.clone()]));
    refuses(&mut t, EIO, &[&d.path]);
}

#[test]
fn rule_32_length_magic_checksum_and_trailing_bytes_are_checked() {
    refuses_blob(2, |b| b[3] ^= 1);
    refuses_blob(2, |b| b[4] ^= 1);
    refuses_blob(2, |b| *b.last_mut().unwrap() ^= 1);
    refuses_blob(2, |b| b.push(0));
    refuses_blob(2, |b| b.truncate(b.len() - 1));
    refuses_blob(2, |b| b.truncate(3));
    refuses_blob(2, Vec::clear);
    // The checksum is right, and bytes stand behind the last bitmap.
    refuses_blob(2, |b| {
        let mut body = b[4..b.len() - 4].to_vec();
        body.push(0);
        *b = blob_of(&body);
    });
    // One bitmap more is promised than there is; and as many as fit in 64 bits.
    for count in [2u64, u64::MAX] {
        refuses_blob(2, |b| {
            let mut body = b[4..b.len() - 4].to_vec();
            body[4..12].copy_from_slice(&count.to_le_bytes());
            *b = blob_of(&body);
        });
    }
}

#[test]
fn rule_32_a_cardinality_that_is_not_the_record_count_is_refused() {
    refuses_blob(1, |_| {});
    refuses_blob(3, |_| {});
}

#[test]
fn rule_32_keys_that_do_not_ascend_are_refused() {
    refuses_blob(2, |b| {
        let one: RoaringBitmap = [1].into_iter().collect();
        *b = vector_blob(&[(1, one.clone()), (0, one)]);
    });
}

#[test]
fn rule_32_a_vector_past_the_end_of_its_file_is_refused() {
    for position in [10, 1 << 31, 1 << 32, (1 << 62) + 7] {
        let (mut t, a) = numbers(3, 10);
        let d = t.vector(&a, &[1, position]);
        t.commit(Commit::of([d.clone()]));
        refuses(&mut t, EIO, &[&d.path]);
    }
}

#[test]
fn rule_32_a_bare_blob_at_offset_0_is_read() {
    let (mut t, a) = numbers(3, 10);
    let blob = vector_blob(&bitmaps([0, 9]));
    let path = t.write_bytes("data/bare.puffin", &blob);
    let d = t.vector(&a, &[0, 9]).with(|e| {
        e.path = path;
        e.content_offset = Some(0);
        e.file_size = blob.len() as i64;
    });
    t.commit(Commit::of([d]));
    shows(&mut t, left(3, 1..9));
}

#[test]
fn rule_32_an_offset_outside_the_file_is_refused() {
    for (offset, size) in [
        (1 << 40, 50),
        (4, 1 << 40),
        (-4, 50),
        (4, -1),
        (i64::MAX, i64::MAX),
    ] {
        let (mut t, a) = numbers(3, 10);
        let d = t.vector(&a, &[1]).with(|e| {
            e.content_offset = Some(offset);
            e.content_size = Some(size);
        });
        t.commit(Commit::of([d]));
        refuses(&mut t, EIO, &[]);
    }
}

#[test]
fn rule_33_many_vectors_lie_in_one_puffin_file() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let files: Vec<Entry> = (0..5)
        .map(|f| t.data((0..5).map(|r| json!([f * 10 + r])).collect()))
        .collect();
    let blobs: Vec<Blob> = files
        .iter()
        .zip(0..)
        .map(|(file, position)| Blob {
            bytes: vector_blob(&bitmaps([position])),
            referenced_data_file: file.path.clone(),
            cardinality: 1,
        })
        .collect();
    let (bytes, offsets) = puffin(&blobs);
    let path = t.write_bytes("data/many.puffin", &bytes);
    let vectors: Vec<Entry> = (0..5)
        .map(|i| {
            t.vector(&files[i], &[i as u64]).with(|e| {
                e.path = path.clone();
                e.content_offset = Some(offsets[i] as i64);
                e.content_size = Some(blobs[i].bytes.len() as i64);
                e.file_size = bytes.len() as i64;
            })
        })
        .collect();
    t.commit(Commit::of(files).and(vectors));
    let expected = (0..5).flat_map(|f| {
        (0..5)
            .filter(move |r| *r != f)
            .map(move |r| json!([f * 10 + r, f * 5 + r, 1]))
    });
    shows(&mut t, expected.collect());
}

#[test]
fn rule_33_a_broken_puffin_footer_does_not_matter_to_a_blob_that_is_whole() {
    let (mut t, a) = numbers(3, 10);
    let d = t.vector(&a, &[3]);
    let file = t.local(&d.path);
    damage(&file, |bytes| {
        let end = bytes.len();
        bytes[end - 20..].fill(0);
    });
    t.commit(Commit::of([d]));
    shows(&mut t, left(3, (0..3).chain(4..10)));
}

#[test]
fn chunks_made_under_other_deletes_are_not_served_again() {
    // The same data file and row groups, by the same process, under one set of deletes after the other.
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[0], [1], [2], [3]]));
    t.commit(Commit::of([a.clone()]));
    let first = t.vector(&a, &[0]);
    t.commit(Commit::of([first]));
    let second = t.vector(&a, &[0, 2]);
    t.commit(Commit::of([a.existing(1, 1001), second]).replacing());
    let key = t.equality_deletes(&[1], "1 id: long", json!([[3]]));
    t.commit(Commit::of([key]));
    t.save();
    let expected = [
        ("snapshots/1001", json!([0, 1, 2, 3])),
        ("snapshots/1002", json!([1, 2, 3])),
        ("snapshots/1003", json!([1, 3])),
        ("snapshots/1004", json!([1])),
    ];
    for opened in Opened::every_way(&t.root()) {
        for _ in 0..2 {
            for (view, ids) in &expected {
                let rows = opened.rows(&format!("{view}/t.parquet")).unwrap();
                let read: Vec<_> = rows
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|row| row[0].clone())
                    .collect();
                assert_eq!(json!(read), *ids, "{view} by {opened}");
            }
        }
    }
}

#[test]
fn deletes_matched_under_another_name_mapping_are_not_used_again() {
    // No field ids in the data file: the mapping says which of its columns the deleted key is.
    let mapping = |first: &str, second: &str| {
        json!([{"field-id": 1, "names": [first]}, {"field-id": 2, "names": [second]}]).to_string()
    };
    let mut t = TableBuilder::new(2, "1 a: long, 2 b: long");
    let data = t.write(Data::rows(json!([[1, 2], [2, 1], [3, 3]])).schema("- x: long, - y: long"));
    t.commit(Commit::of([data]));
    let key = t.equality_deletes(&[1], "1 a: long", json!([[1]]));
    t.commit(Commit::of([key]));
    let property = "schema.name-mapping.default";
    t.save_with(|metadata| metadata["properties"][property] = json!(mapping("x", "y")));
    for opened in Opened::every_way(&t.root()) {
        for _ in 0..2 {
            t.save_with(|metadata| metadata["properties"][property] = json!(mapping("x", "y")));
            let rows = opened.rows("current/t.parquet").unwrap();
            assert_eq!(rows, json!([[2, 1], [3, 3]]), "{opened}");
            t.save_with(|metadata| metadata["properties"][property] = json!(mapping("y", "x")));
            let rows = opened.rows("current/t.parquet").unwrap();
            assert_eq!(rows, json!([[2, 1], [3, 3]]), "{opened}");
        }
    }
}

#[test]
fn rule_29_keys_that_duckdb_packs_in_more_than_32_bits_are_matched() {
    // tests/fixtures/duckdb/make.py says what the rows are.
    let row = |i: i64| {
        if i % 2 == 0 {
            -2_147_483_648 + i
        } else {
            2_147_483_647 - i
        }
    };
    let bytes = include_bytes!("../fixtures/duckdb/wide_delta.parquet");
    let mut t = TableBuilder::new(2, "1 a: int");
    let data = t.adopt("a.parquet", bytes, 300);
    t.commit(Commit::of([data]));
    let key = t.equality_deletes(
        &[1],
        "1 a: int",
        json!([[row(0)], [row(151)], [row(299)], [7]]),
    );
    t.commit(Commit::of([key]));
    let left = (0..300).filter(|i| ![0, 151, 299].contains(i));
    shows(&mut t, left.map(|i| json!([row(i)])).collect());
}
