//! Rules 34 to 39: row ids and last updated sequence numbers.

use bergfs::tree::Lineage;
use serde_json::json;

use crate::builder::open::{Opened, Options};
use crate::builder::schema::{Field, Ty, fields};
use crate::builder::{Commit, Data, TableBuilder};
use crate::{shows, view_columns, view_shows};

const LINEAGE: &str = "2147483540 _row_id: long, 2147483539 _last_updated_sequence_number: long";

fn one_column() -> TableBuilder {
    TableBuilder::new(3, "1 id: long")
}

#[test]
fn rule_34_a_v3_view_has_two_more_long_columns() {
    let mut t = one_column();
    let a = t.data(json!([[1]]));
    t.commit(Commit::of([a]));
    t.save();
    view_columns(
        &t,
        "current",
        &[
            ("id", "long"),
            ("_row_id", "long"),
            ("_last_updated_sequence_number", "long"),
        ],
    );
    let lineage: Vec<Field> = fields(LINEAGE);
    assert!(
        lineage
            .iter()
            .all(|f| matches!(&f.ty, Ty::Primitive(name) if name == "long"))
    );
}

#[test]
fn rule_35_a_file_starts_where_the_files_before_it_in_the_manifest_end() {
    let mut t = one_column();
    let a = t.data(json!([[1], [2]]));
    let b = t.data(json!([[3], [4], [5]]));
    let c = t.data(json!([[6]]));
    t.commit(Commit::of([a, b, c]));
    let d = t.data(json!([[7]]));
    t.commit(Commit::of([d]));
    shows(
        &mut t,
        json!([
            [1, 0, 1],
            [2, 1, 1],
            [3, 2, 1],
            [4, 3, 1],
            [5, 4, 1],
            [6, 5, 1],
            [7, 6, 2]
        ]),
    );
}

#[test]
fn rule_35_only_files_that_inherit_count_and_deleted_ones_do_not() {
    let mut t = one_column();
    let gone = t.data(json!([[0], [0], [0]]));
    t.commit(Commit::of([gone.clone()]));
    let explicit = t
        .data(json!([[1], [2]]))
        .with(|e| e.first_row_id = Some(500));
    let inherits = t.data(json!([[3]]));
    let kept = t.data(json!([[4]])).existing(1, 1001);
    let last = t.data(json!([[5]]));
    let gone = gone.deleted(1, 1001);
    let change = |ms: &mut Vec<crate::builder::Manifest>| ms[0].first_row_id = Some(1000);
    t.commit(
        Commit::of([gone, explicit, inherits, kept, last])
            .replacing()
            .change_manifests(change),
    );
    shows(
        &mut t,
        json!([
            [4, 1001, 1],
            [1, 500, 2],
            [2, 501, 2],
            [3, 1000, 2],
            [5, 1002, 2]
        ]),
    );
}

#[test]
fn rule_36_without_a_first_row_id_both_columns_are_null() {
    let mut t = one_column();
    let a = t.data(json!([[1], [2]]));
    t.commit(Commit::of([a]).change_manifests(|ms| ms[0].first_row_id = None));
    shows(&mut t, json!([[1, null, null], [2, null, null]]));
}

#[test]
fn rule_36_without_a_first_row_id_stored_values_are_null_too() {
    let mut t = one_column();
    let schema = format!("1 id: long, {LINEAGE}");
    let a = t.write(Data::rows(json!([[1, 70, 7], [2, null, null]])).schema(&schema));
    t.commit(Commit::of([a]).change_manifests(|ms| ms[0].first_row_id = None));
    shows(&mut t, json!([[1, null, null], [2, null, null]]));
}

#[test]
fn rule_37_stored_values_win_and_nulls_inherit() {
    let mut t = one_column();
    let first = t.data(json!([[0]]));
    t.commit(Commit::of([first]));
    let schema = format!("1 id: long, {LINEAGE}");
    let a = t.write(
        Data::rows(json!([
            [1, 70, null],
            [2, null, 1],
            [3, null, null],
            [4, 71, 1]
        ]))
        .schema(&schema),
    );
    t.commit(Commit::of([a]));
    shows(
        &mut t,
        json!([[0, 0, 1], [1, 70, 2], [2, 2, 1], [3, 3, 2], [4, 71, 1]]),
    );
}

#[test]
fn rule_37_stored_values_are_known_by_id() {
    let mut t = one_column();
    let schema = "2147483539 seq: long, 1 id: long, 2147483540 rid: long";
    let a = t.write(Data::rows(json!([[1, 5, 70], [null, 6, null]])).schema(schema));
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[5, 70, 1], [6, 1, 1]]));
}

#[test]
fn rule_37_the_data_sequence_number_is_inherited_not_the_files() {
    let mut t = one_column();
    let first = t.data(json!([[0]]));
    t.commit(Commit::of([first]));
    let second = t.data(json!([[1]]));
    t.commit(Commit::of([second]));
    let compacted = t.data(json!([[2]])).with(|e| {
        e.sequence_number = Some(1);
        e.file_sequence_number = Some(3);
    });
    t.commit(Commit::of([compacted]).replacing());
    shows(&mut t, json!([[2, 2, 1]]));
}

#[test]
fn rule_38_deletes_do_not_shift_row_ids() {
    let mut t = one_column();
    let rows = (0..30).map(|i| json!([i])).collect();
    let a = t.write(Data::rows(rows).row_groups_of(10));
    t.commit(Commit::of([a.clone()]));
    let d = t.vector(&a, &[0, 3, 11, 12, 13, 14, 15, 16, 17, 18, 19, 10]);
    let e = t.equality_deletes(&[1], "1 id: long", json!([[29], [5]]));
    t.commit(Commit::of([d, e]));
    let kept = (1..30).filter(|i| ![3, 5, 29].contains(i) && !(10..20).contains(i));
    shows(&mut t, kept.map(|i| json!([i, i, 1])).collect());
}

#[test]
fn rule_38_stored_row_ids_stay_with_their_rows_under_deletes() {
    let mut t = one_column();
    let schema = format!("1 id: long, {LINEAGE}");
    let rows = json!([[1, 70, 1], [2, null, 1], [3, 72, null], [4, null, null]]);
    let a = t.write(Data::rows(rows).schema(&schema));
    t.commit(Commit::of([a.clone()]));
    let d = t.vector(&a, &[0, 1]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[3, 72, 1], [4, 3, 1]]));
}

#[test]
fn rule_38_tables_of_v1_and_v2_have_no_lineage_columns() {
    for version in [1, 2] {
        let mut t = TableBuilder::new(version, "1 id: long");
        let a = t.data(json!([[1]]));
        t.commit(Commit::of([a]));
        t.save();
        view_columns(&t, "current", &[("id", "long")]);
    }
}

#[test]
fn rule_38_a_user_column_called_row_id_keeps_its_name_and_lineage_is_left_out() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 _row_id: string");
    let a = t.data(json!([[1, "mine"]]));
    t.commit(Commit::of([a]));
    t.save();
    view_columns(&t, "current", &[("id", "long"), ("_row_id", "string")]);
    view_shows(&t, "current", json!([[1, "mine"]]));
}

#[test]
fn rule_39_one_file_has_other_row_ids_in_another_branch() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    t.commit(Commit::of([a]));
    t.version = 3;
    let b = t.data(json!([[3]]));
    t.commit(Commit::of([b]));
    let c = t.data(json!([[4]]));
    t.commit(Commit::of([c]).branch("side").parent(1001));
    t.save();
    // Each branch's first commit after the upgrade gives the old file ids of its own.
    view_shows(&t, "current", json!([[1, 0, 1], [2, 1, 1], [3, 2, 2]]));
    view_shows(
        &t,
        "branches/side",
        json!([[1, 3, 1], [2, 4, 1], [4, 5, 3]]),
    );
    view_shows(
        &t,
        "snapshots/1001",
        json!([[1, null, null], [2, null, null]]),
    );
}

#[test]
fn rule_34_lineage_columns_are_where_they_are_asked_for() {
    for (version, lineage, columns) in [
        (2, Lineage::Always, 3),
        (3, Lineage::Never, 1),
        (3, Lineage::Always, 3),
    ] {
        let mut t = TableBuilder::new(version, "1 id: long");
        let a = t.data(json!([[1]]));
        t.commit(Commit::of([a]));
        t.save();
        let opened = Opened::tree_with(
            &t.root(),
            &Options {
                lineage,
                ..Options::default()
            },
        );
        let served = opened.table("current/t.parquet").unwrap();
        assert_eq!(
            served.columns.len(),
            columns,
            "{lineage:?} of a v{version} table"
        );
        // A v2 table has no row ids: the columns are null.
        assert!(version == 3 || served.rows == [json!([1, null, null])]);
    }
}
