//! Rules 40 to 44: column projection, name mapping, promotions, defaults.

use libc::EIO;
use serde_json::{Value, json};

use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::{refuses, shows, view_columns, view_shows};

#[test]
fn rule_40_columns_are_found_by_id_whatever_their_name_and_place() {
    let mut t = TableBuilder::new(
        2,
        "1 id: long, 2 name: string, 3 at: struct<4 x: long, 5 y: long>",
    );
    let a = t.data(json!([[1, "a", {"x": 1, "y": 2}]]));
    t.commit(Commit::of([a]));
    t.evolve("3 place: struct<5 lat: long, 4 lon: long>, 2 id: string, 1 name: long");
    shows(&mut t, json!([[{"lat": 2, "lon": 1}, "a", 1]]));
    view_columns(
        &t,
        "current",
        &[
            ("place", "struct<lat: long, lon: long>"),
            ("id", "string"),
            ("name", "long"),
        ],
    );
    view_shows(&t, "snapshots/1001", json!([[1, "a", {"x": 1, "y": 2}]]));
}

#[test]
fn rule_40_a_dropped_column_is_gone_and_a_new_one_of_its_name_is_empty() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
    let a = t.data(json!([[1, "old"]]));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 3 name: string");
    let b = t.data(json!([[2, "new"]]));
    t.commit(Commit::of([b]));
    shows(&mut t, json!([[1, null], [2, "new"]]));
}

#[test]
fn rule_40_a_partition_value_fills_an_absent_column_only() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int, 3 q: string");
    t.partition_by(0, "1000 p = identity(2), 1001 q = identity(3)");
    let absent = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!([7, "x"])),
    );
    let present = t.write(Data::rows(json!([[2, 8, "y"]])).partition(0, json!([7, "x"])));
    t.commit(Commit::of([absent, present]));
    shows(&mut t, json!([[1, 7, "x"], [2, 8, "y"]]));
}

#[test]
fn rule_40_every_type_of_partition_value_fills_a_column() {
    let cases = [
        ("boolean", json!(true)),
        ("int", json!(-7)),
        ("long", json!(i64::MIN)),
        ("float", json!(1.5)),
        ("double", json!(-0.0)),
        ("decimal(9,2)", json!("-12345.67")),
        ("decimal(18,0)", json!("123456789012345678")),
        (
            "decimal(38,3)",
            json!("-12345678901234567890123456789012345.678"),
        ),
        ("date", json!(-1)),
        ("time", json!(86_399_999_999i64)),
        ("timestamp", json!(-1)),
        ("timestamptz", json!(1_700_000_000_000_000i64)),
        ("string", json!("é")),
        ("uuid", json!("000102030405060708090a0b0c0d0e0f")),
        ("fixed[3]", json!("0a0b0c")),
        ("binary", json!("00ff")),
        ("string", Value::Null),
        ("double", json!("NaN")),
    ];
    for (ty, value) in cases {
        let mut t = TableBuilder::new(2, &format!("1 id: long, 2 p: {ty}"));
        t.partition_by(0, "1000 p = identity(2)");
        let a = t.write(
            Data::rows(json!([[1], [2], [3]]))
                .schema("1 id: long")
                .partition(0, json!([value])),
        );
        let d = t
            .position_deletes(&[(&a.path, 1)])
            .with(|e| e.partition = vec![value.clone()]);
        t.commit(Commit::of([a, d]));
        shows(&mut t, json!([[1, value], [3, value]]));
    }
}

#[test]
fn rule_40_other_transforms_fill_nothing() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(0, "1000 b = bucket[4](2), 1001 w = truncate[10](2)");
    let a = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!([3, 10])),
    );
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1, null]]));
}

#[test]
fn rule_40_a_partition_value_comes_before_the_initial_default() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 p: int = 99");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!([7])),
    );
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1, 7, 0, 1]]));
}

#[test]
fn rule_40_a_required_column_with_nothing_to_fill_it_is_refused() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 must: required long");
    let a = t.write(Data::rows(json!([[1]])).schema("1 id: long"));
    t.commit(Commit::of([a.clone()]));
    refuses(&mut t, EIO, &[&a.path, "must"]);
}

/// A file without field ids.
fn bare() -> Data {
    Data::rows(json!([[1, "a", {"x": 1, "y": [5, 6]}], [2, null, null]]))
        .schema("- id: long, - name: string, - at: struct<- x: long, - y: list<- int>>")
}

const NESTED: &str = "1 id: long, 2 name: string, 3 at: struct<4 x: long, 5 y: list<6 int>>";

#[test]
fn rule_41_a_name_mapping_gives_ids_by_name_at_every_level() {
    let mut t = TableBuilder::new(
        2,
        "5 label: string, 8 number: long, 9 place: struct<10 ys: list<11 int>, 12 x: long>",
    );
    t.properties.insert(
        "schema.name-mapping.default".to_owned(),
        json!([
        {"field-id": 5, "names": ["label", "name"]},
        {"field-id": 8, "names": ["id"]},
        {"field-id": 9, "names": ["at"], "fields": [
            {"field-id": 12, "names": ["x"]},
            {"field-id": 10, "names": ["y"], "fields": [{"field-id": 11, "names": ["element"]}]}]}])
        .to_string(),
    );
    let a = t.write(bare());
    t.commit(Commit::of([a]));
    shows(
        &mut t,
        json!([["a", 1, {"ys": [5, 6], "x": 1}], [null, 2, null]]),
    );
}

#[test]
fn rule_41_a_mapping_may_leave_a_column_without_id_and_names_with_points_are_plain_names() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
    t.properties.insert(
        "schema.name-mapping.default".to_owned(),
        json!([
        {"names": ["id"]}, {"field-id": 1, "names": ["at.x"]}, {"field-id": 2, "names": ["name"]}])
        .to_string(),
    );
    let data =
        Data::rows(json!([[7, "a", 1]])).schema("- id: long, - name: string, - \"at.x\": long");
    let a = t.write(data);
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1, "a"]]));
}

#[test]
fn rule_41_a_file_with_ids_does_not_ask_the_mapping() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
    t.properties.insert(
        "schema.name-mapping.default".to_owned(),
        json!([
        {"field-id": 1, "names": ["name"]}, {"field-id": 2, "names": ["id"]}])
        .to_string(),
    );
    let a = t.data(json!([[1, "a"]]));
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1, "a"]]));
}

#[test]
fn rule_41_maps_are_mapped_by_key_and_value() {
    let mut t = TableBuilder::new(2, "1 m: map<2 string, 3 struct<4 v: long>>");
    t.properties.insert(
        "schema.name-mapping.default".to_owned(),
        json!([
        {"field-id": 1, "names": ["props"], "fields": [
            {"field-id": 2, "names": ["key"]},
            {"field-id": 3, "names": ["value"], "fields": [{"field-id": 4, "names": ["w"]}]}]}])
        .to_string(),
    );
    let a = t.write(
        Data::rows(json!([[[["k", {"w": 1}]]], [null]]))
            .schema("- props: map<- string, - struct<- w: long>>"),
    );
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[[["k", {"v": 1}]]], [null]]));
}

#[test]
fn rule_41_without_ids_and_mapping_columns_are_counted_top_level_first() {
    // Java's fallback ids count the top level alone: 1, 2, 3; what is below has ids behind them.
    let mut t = TableBuilder::new(2, NESTED);
    let a =
        t.write(Data::rows(json!([[1, "a"], [2, null]])).schema("- number: long, - label: string"));
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1, "a", null], [2, null, null]]));
}

#[test]
fn rule_42_promotions_at_the_top_in_lists_in_maps_and_in_structs() {
    let old = "1 i: int, 2 f: float, 3 d: decimal(4,2), 4 l: list<5 int>, 6 m: map<7 string, 8 float>, \
               9 s: struct<10 d: decimal(9,1)>";
    let new = "1 i: long, 2 f: double, 3 d: decimal(20,2), 4 l: list<5 long>, 6 m: map<7 string, 8 double>, \
               9 s: struct<10 d: decimal(30,1)>";
    let rows = json!([
        [1, 0.5, "12.34", [1, null], [["a", 0.25]], {"d": "1.5"}],
        [null, null, null, null, null, null],
        [-2147483648, "NaN", "-99.99", [], [], {"d": null}]]);
    let mut t = TableBuilder::new(2, old);
    let a = t.data(rows.clone());
    t.commit(Commit::of([a.clone()]));
    t.evolve(new);
    shows(&mut t, rows.clone());
    let d = t.position_deletes(&[(&a.path, 1)]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([rows[0], rows[2]]));
}

#[test]
fn rule_42_files_of_both_types_stand_in_one_view() {
    let mut t = TableBuilder::new(2, "1 i: int, 2 d: decimal(4,2)");
    let a = t.data(json!([[1, "1.00"]]));
    t.commit(Commit::of([a]));
    t.evolve("1 i: long, 2 d: decimal(38,2)");
    let b = t.data(json!([[1i64 << 40, "99999999999999999999.00"]]));
    t.commit(Commit::of([b]));
    shows(
        &mut t,
        json!([[1, "1.00"], [1i64 << 40, "99999999999999999999.00"]]),
    );
}

#[test]
fn rule_42_a_date_becomes_a_timestamp() {
    for (ty, factor) in [
        ("timestamp", 86_400_000_000i64),
        ("timestamp_ns", 86_400_000_000_000),
    ] {
        let mut t = TableBuilder::new(3, "1 d: date");
        let a = t.data(json!([[-1], [19000], [null]]));
        t.commit(Commit::of([a]));
        t.evolve(&format!("1 d: {ty}"));
        shows(
            &mut t,
            json!([[-factor, 0, 1], [19000 * factor, 1, 1], [null, 2, 1]]),
        );
    }
}

#[test]
fn rule_42_a_date_that_no_timestamp_ns_can_hold_is_an_error() {
    let mut t = TableBuilder::new(3, "1 d: date");
    let a = t.data(json!([[-719_162]]));
    t.commit(Commit::of([a]));
    t.evolve("1 d: timestamp_ns");
    t.save();
    for opened in Opened::every_way(&t.root()) {
        assert!(opened.table("current/t.parquet").is_err());
    }
}

#[test]
fn rule_42_a_change_that_is_no_promotion_is_refused() {
    for (old, new, value) in [
        ("long", "int", json!(1)),
        ("string", "long", json!("1")),
        ("double", "float", json!(1.0)),
        ("decimal(9,2)", "decimal(9,3)", json!("1.00")),
        ("long", "string", json!(1)),
    ] {
        let mut t = TableBuilder::new(3, &format!("1 v: {new}"));
        let a = t.write(Data::rows(json!([[value]])).schema(&format!("1 v: {old}")));
        t.commit(Commit::of([a.clone()]));
        refuses(&mut t, EIO, &[&a.path]);
    }
}

#[test]
fn rule_42_a_partition_value_is_promoted_too() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(0, "1000 p = identity(2)");
    let a = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!([7])),
    );
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 p: long");
    shows(&mut t, json!([[1, 7]]));
}

#[test]
fn rule_42_a_partition_value_fills_the_column_of_a_snapshot_from_before_the_promotion() {
    let cases = [
        ("int", "long", json!(-7)),
        ("float", "double", json!(1.5)),
        ("decimal(9,2)", "decimal(18,2)", json!("1.25")),
    ];
    for (old, new, value) in cases {
        let mut t = TableBuilder::new(2, &format!("1 id: long, 2 p: {old}"));
        t.partition_by(0, "1000 p = identity(2)");
        let a = t.write(
            Data::rows(json!([[1]]))
                .schema("1 id: long")
                .partition(0, json!([value])),
        );
        t.commit(Commit::of([a]));
        t.evolve(&format!("1 id: long, 2 p: {new}"));
        shows(&mut t, json!([[1, value]]));
        view_shows(&t, "snapshots/1001", json!([[1, value]]));
    }
}

#[test]
fn rule_43_bounds_of_the_type_before_promotion_lose_no_delete() {
    let mut t = TableBuilder::new(2, "1 id: int");
    let int = |v: i32| v.to_le_bytes().to_vec();
    let a = t.data(json!([[1], [-5]])).with(|e| {
        e.lower_bounds = vec![(1, int(-5))];
        e.upper_bounds = vec![(1, int(1))];
    });
    t.commit(Commit::of([a]));
    t.evolve("1 id: long");
    let d = t
        .equality_deletes(&[1], "1 id: long", json!([[-5]]))
        .with(|e| {
            e.lower_bounds = vec![(1, (-5i64).to_le_bytes().to_vec())];
            e.upper_bounds = vec![(1, (-5i64).to_le_bytes().to_vec())];
        });
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[1]]));
}

#[test]
fn rule_44_an_added_column_has_its_initial_default_in_old_rows() {
    let cases = [
        ("boolean", json!(true), json!(true)),
        ("int", json!(-7), json!(-7)),
        ("long", json!(1i64 << 40), json!(1i64 << 40)),
        ("float", json!(1.5), json!(1.5)),
        ("double", json!(2.5), json!(2.5)),
        ("decimal(9,2)", json!("14.20"), json!("14.20")),
        ("decimal(38,3)", json!("-1.500"), json!("-1.500")),
        ("date", json!("2017-11-16"), json!(17_486)),
        ("time", json!("22:31:08.123456"), json!(81_068_123_456i64)),
        (
            "timestamp",
            json!("2017-11-16T22:31:08.123456"),
            json!(1_510_871_468_123_456i64),
        ),
        (
            "timestamptz",
            json!("2017-11-16T22:31:08.123456+00:00"),
            json!(1_510_871_468_123_456i64),
        ),
        (
            "timestamp_ns",
            json!("2017-11-16T22:31:08.123456789"),
            json!(1_510_871_468_123_456_789i64),
        ),
        (
            "timestamptz_ns",
            json!("2017-11-16T22:31:08.123456789+00:00"),
            json!(1_510_871_468_123_456_789i64),
        ),
        ("string", json!("iceberg"), json!("iceberg")),
        (
            "uuid",
            json!("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
            json!("f79c3e09677c4bbda4793f349cb785e7"),
        ),
        ("fixed[4]", json!("00010203"), json!("00010203")),
        ("binary", json!("00ff"), json!("00ff")),
    ];
    for (ty, default, shown) in cases {
        for required in ["", "required "] {
            let mut t = TableBuilder::new(3, "1 id: long");
            let a = t.data(json!([[1], [2], [3]]));
            t.commit(Commit::of([a.clone()]));
            t.evolve(&format!("1 id: long, 2 added: {required}{ty} = {default}"));
            shows(
                &mut t,
                json!([[1, shown, 0, 1], [2, shown, 1, 1], [3, shown, 2, 1]]),
            );
            let d = t.vector(&a, &[1]);
            t.commit(Commit::of([d]));
            shows(&mut t, json!([[1, shown, 0, 1], [3, shown, 2, 1]]));
        }
    }
}

#[test]
fn rule_44_new_rows_with_null_keep_it() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[1]]));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 added: string = \"d\"");
    let b = t.data(json!([[2, null], [3, "x"]]));
    t.commit(Commit::of([b]));
    shows(
        &mut t,
        json!([[1, "d", 0, 1], [2, null, 1, 2], [3, "x", 2, 2]]),
    );
}

#[test]
fn rule_44_a_leaf_added_to_a_struct_is_its_default_where_the_struct_is_present() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 s: struct<3 a: long>");
    let a = t.data(json!([[1, {"a": 1}], [2, null], [3, {"a": null}]]));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 s: struct<3 a: long, 4 b: string = \"d\", 5 c: long>");
    shows(
        &mut t,
        json!([
        [1, {"a": 1, "b": "d", "c": null}, 0, 1], [2, null, 1, 1], [3, {"a": null, "b": "d", "c": null}, 2, 1]]),
    );
}

#[test]
fn rule_44_a_leaf_added_inside_a_list_and_a_map() {
    let mut t = TableBuilder::new(
        3,
        "1 l: list<2 struct<3 a: long>>, 4 m: map<5 string, 6 struct<7 a: long>>",
    );
    let a = t.data(json!([[[{"a": 1}, null, {"a": null}], [["k", {"a": 1}], ["n", null]]], [[], []], [null, null]]));
    t.commit(Commit::of([a]));
    t.evolve("1 l: list<2 struct<3 a: long, 8 b: int = 9>>, 4 m: map<5 string, 6 struct<7 a: long, 9 b: int = 8>>");
    shows(
        &mut t,
        json!([
        [[{"a": 1, "b": 9}, null, {"a": null, "b": 9}], [["k", {"a": 1, "b": 8}], ["n", null]], 0, 1],
        [[], [], 1, 1], [null, null, 2, 1]]),
    );
}

#[test]
fn rule_44_an_added_struct_is_null_or_its_leaves_defaults() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[1]]));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 n: struct<3 x: long, 4 y: string>, 5 d: struct<6 x: long = 7, 8 y: string> = {}");
    shows(&mut t, json!([[1, null, {"x": 7, "y": null}, 0, 1]]));
}

#[test]
fn rule_44_added_lists_and_maps_are_null() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 l: list<3 long>, 4 m: map<5 string, 6 long>");
    shows(
        &mut t,
        json!([[1, null, null, 0, 1], [2, null, null, 1, 1]]),
    );
}
