//! Rules 45 to 51: types and formats that need care, and metadata columns.

use libc::{EIO, ENOTSUP};
use parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    Int96, Int96Type,
};
use serde_json::{Value, json};

use crate::builder::open::{Opened, Options};
use crate::builder::raw::{RawFile, raw_file};
use crate::builder::{Commit, Data, TableBuilder};
use crate::{refuses, shows, view_refuses, view_shows};

#[test]
fn rule_45_an_unknown_column_is_null_whatever_the_file_holds() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.write(Data::rows(json!([[1, 5]])).schema("1 id: long, 2 later: int"));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 later: unknown");
    t.save();
    for opened in Opened::every_way(&t.root()) {
        let served = opened.table("current/t.parquet").unwrap();
        let later = served.columns.iter().position(|(name, _)| name == "later");
        served
            .rows
            .iter()
            .for_each(|row| assert!(later.is_none_or(|at| row[at].is_null()), "{row}"));
    }
}

#[test]
fn rule_45_unknown_is_promoted_to_any_type() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 later: unknown");
    let a = t.write(Data::rows(json!([[1]])).schema("1 id: long"));
    t.commit(Commit::of([a]));
    t.evolve("1 id: long, 2 later: string");
    let b = t.data(json!([[2, "x"]]));
    t.commit(Commit::of([b]));
    shows(&mut t, json!([[1, null, 0, 1], [2, "x", 1, 2]]));
}

#[test]
fn rule_45_timestamps_of_nanoseconds() {
    let mut t = TableBuilder::new(3, "1 a: timestamp_ns, 2 b: timestamptz_ns");
    let a = t.data(json!([[-1, 1], [i64::MAX, i64::MIN]]));
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[-1, 1, 0, 1], [i64::MAX, i64::MIN, 1, 1]]));
}

#[test]
fn rule_46_milliseconds_are_times_too() {
    for (ty, stored) in [("timestamp", "timestamp_ms"), ("time", "time_ms")] {
        let mut t = TableBuilder::new(2, &format!("1 v: {ty}"));
        let a = t.write(Data::rows(json!([[1_000]])).schema(&format!("1 v: {stored}")));
        t.commit(Commit::of([a]));
        shows(&mut t, json!([[1_000_000]]));
    }
}

#[test]
fn rule_46_smaller_integers_are_ints() {
    let mut t = TableBuilder::new(2, "1 a: int, 2 b: int");
    let a = t.write(Data::rows(json!([[-7, 300], [null, null]])).schema("1 a: int8, 2 b: int16"));
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[-7, 300], [null, null]]));
}

/// One column of a file that Arrow could not write: its rows right, or a refusal that names the file.
#[track_caller]
fn raw_shows(ty: &str, rows: Value, message: &str, write: impl Fn(&mut RawFile<'_>)) {
    let count = rows.as_array().unwrap().len() as i64;
    let mut t = TableBuilder::new(2, &format!("1 v: {ty}"));
    let a = t.data_of_bytes(&raw_file(message, write), count);
    t.commit(Commit::of([a]));
    shows(&mut t, rows);
}

#[test]
fn rule_46_int96_timestamps() {
    // 2000-01-01T00:00:00.000001 is Julian day 2451545 and 1,000 nanoseconds.
    let mut value = Int96::new();
    value.set_data(1_000, 0, 2_451_545);
    raw_shows(
        "timestamp",
        json!([[946_684_800_000_001i64], [null]]),
        "message m { optional int96 v = 1; }",
        |f| {
            f.column::<Int96Type>(&[value], &[1, 0], &[]);
        },
    );
}

#[test]
fn rule_46_lists_of_two_levels() {
    let rows = json!([[[1, 2]], [[]], [null], [[3]]]);
    for inner in ["repeated int32 element = 2;", "repeated int32 array = 2;"] {
        let message = format!("message m {{ optional group v (LIST) = 1 {{ {inner} }} }}");
        raw_shows("list<2 int>", rows.clone(), &message, |f| {
            f.column::<Int32Type>(&[1, 2, 3], &[2, 2, 1, 0, 2], &[0, 1, 0, 0, 0]);
        });
    }
    let message = "message m { optional group v (LIST) = 1 { repeated group v_tuple = 2 { optional int32 x = 3; } } }";
    let rows = json!([[[{"x": 1}, {"x": null}]], [[]], [null]]);
    raw_shows("list<2 struct<3 x: int>>", rows, message, |f| {
        f.column::<Int32Type>(&[1], &[3, 2, 1, 0], &[0, 1, 0, 0]);
    });
}

#[test]
fn rule_46_decimals_of_every_physical_type() {
    let rows = json!([["1.23"], [null], ["-0.01"]]);
    raw_shows(
        "decimal(9,2)",
        rows.clone(),
        "message m { optional int32 v (DECIMAL(9,2)) = 1; }",
        |f| {
            f.column::<Int32Type>(&[123, -1], &[1, 0, 1], &[]);
        },
    );
    raw_shows(
        "decimal(9,2)",
        rows.clone(),
        "message m { optional int64 v (DECIMAL(9,2)) = 1; }",
        |f| {
            f.column::<Int64Type>(&[123, -1], &[1, 0, 1], &[]);
        },
    );
    let bytes = |unscaled: i128, width: usize| unscaled.to_be_bytes()[16 - width..].to_vec();
    let message = "message m { optional fixed_len_byte_array(5) v (DECIMAL(9,2)) = 1; }";
    raw_shows("decimal(9,2)", rows.clone(), message, |f| {
        let values = [123, -1].map(|v| FixedLenByteArray::from(bytes(v, 5)));
        f.column::<FixedLenByteArrayType>(&values, &[1, 0, 1], &[]);
    });
    raw_shows(
        "decimal(9,2)",
        rows,
        "message m { optional binary v (DECIMAL(9,2)) = 1; }",
        |f| {
            let values = [
                ByteArray::from(bytes(123, 1)),
                ByteArray::from(bytes(-1, 3)),
            ];
            f.column::<ByteArrayType>(&values, &[1, 0, 1], &[]);
        },
    );
}

#[test]
fn rule_46_annotations_of_other_writers() {
    let text = [ByteArray::from("é")];
    for annotation in ["(ENUM)", "(JSON)", "(UTF8)", "(STRING)", ""] {
        let message = format!("message m {{ optional binary v {annotation} = 1; }}");
        raw_shows("string", json!([["é"]]), &message, |f| {
            f.column::<ByteArrayType>(&text, &[1], &[])
        });
        raw_shows("binary", json!([["c3a9"]]), &message, |f| {
            f.column::<ByteArrayType>(&text, &[1], &[])
        });
    }
    raw_shows(
        "long",
        json!([[4_294_967_295i64]]),
        "message m { required int32 v (UINT_32) = 1; }",
        |f| {
            f.column::<Int32Type>(&[-1], &[], &[]);
        },
    );
    raw_shows(
        "timestamp",
        json!([[5_000]]),
        "message m { required int64 v (TIMESTAMP_MILLIS) = 1; }",
        |f| {
            f.column::<Int64Type>(&[5], &[], &[]);
        },
    );
    raw_shows(
        "time",
        json!([[5_000]]),
        "message m { required int32 v (TIME_MILLIS) = 1; }",
        |f| {
            f.column::<Int32Type>(&[5], &[], &[]);
        },
    );
    let micros = "message m { required int64 v (TIMESTAMP(MICROS,true)) = 1; }";
    raw_shows("timestamptz", json!([[5]]), micros, |f| {
        f.column::<Int64Type>(&[5], &[], &[])
    });
    raw_shows("timestamp", json!([[5]]), micros, |f| {
        f.column::<Int64Type>(&[5], &[], &[])
    });
}

#[test]
fn rule_50_an_unknown_format_is_refused_by_name_never_empty() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1]])).with(|e| e.format = "LANCE".to_owned());
    t.commit(Commit::of([a.clone()]));
    refuses(&mut t, ENOTSUP, &[&a.path]);

    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let d = t
        .position_deletes(&[(&a.path, 0)])
        .with(|e| e.format = "LANCE".to_owned());
    t.commit(Commit::of([a, d.clone()]));
    refuses(&mut t, ENOTSUP, &[&d.path]);
}

#[test]
fn rule_50_a_file_of_another_format_than_its_manifest_says_is_an_error() {
    for format in ["AVRO", "ORC"] {
        let mut t = TableBuilder::new(2, "1 id: long");
        let a = t.data(json!([[1]])).with(|e| e.format = format.to_owned());
        t.commit(Commit::of([a.clone()]));
        refuses(&mut t, EIO, &[&a.path]);
    }
}

#[test]
fn rule_50_a_format_in_lower_case_is_the_same_format() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t
        .data(json!([[1]]))
        .with(|e| e.format = "parquet".to_owned());
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1]]));
}

#[test]
fn rule_51_user_columns_may_have_the_names_of_metadata_columns() {
    let mut t = TableBuilder::new(
        2,
        "1 pos: long, 2 file_path: string, 3 _file: string, 4 _pos: long",
    );
    let a = t.data(json!([[7, "p", "f", 8], [9, "q", "g", 10]]));
    let d = t.position_deletes(&[(&a.path, 0)]);
    t.commit(Commit::of([a, d]));
    shows(&mut t, json!([[9, "q", "g", 10]]));
}

#[test]
fn rule_51_metadata_columns_say_where_a_row_lies() {
    let mut t = TableBuilder::new(2, "1 id: long, 2 p: int");
    t.partition_by(3, "1000 p = identity(2)");
    let a = t.write(Data::rows(json!([[1, 7], [2, 7], [3, 7]])).partition(3, json!([7])));
    let d = t
        .position_deletes(&[(&a.path, 1)])
        .with(|e| e.partition = vec![json!(7)]);
    t.commit(Commit::of([a.clone(), d]));
    t.save();
    let opened = Opened::tree_with(
        &t.root(),
        &Options {
            metadata_columns: true,
            ..Options::default()
        },
    );
    let served = opened
        .table("current/t.parquet")
        .unwrap_or_else(|_| panic!("{}", opened.errors()));
    let at = |name: &str| {
        served
            .columns
            .iter()
            .position(|(n, _)| n == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    let (file, pos, spec, partition) = (at("_file"), at("_pos"), at("_spec_id"), at("_partition"));
    for (row, position) in served.rows.iter().zip([0, 2]) {
        assert_eq!(
            [&row[file], &row[pos], &row[spec]],
            [&json!(a.path), &json!(position), &json!(3)]
        );
        assert_eq!(row[partition], json!({"p": 7}));
    }
}

#[test]
fn rule_50_an_unreadable_file_spoils_only_what_depends_on_it() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1]]));
    t.commit(Commit::of([a]));
    let b = t.data(json!([[2]])).with(|e| e.format = "LANCE".to_owned());
    t.commit(Commit::of([b]));
    t.save();
    view_refuses(&t, "current", ENOTSUP, &[]);
    view_shows(&t, "snapshots/1001", json!([[1]]));
}

#[test]
fn a_struct_without_fields_is_refused_by_name() {
    // Parquet has no group without children, so no file can have such a column.
    let mut t = TableBuilder::new(2, "1 a: long, 2 s: struct<3 b: long>");
    let a = t.write(Data::rows(json!([[1]])).schema("1 a: long"));
    t.commit(Commit::of([a]));
    t.save_with(|metadata| {
        for schema in metadata["schemas"].as_array_mut().unwrap() {
            schema["fields"][1]["type"]["fields"] = json!([]);
        }
    });
    view_refuses(
        &t,
        "current",
        libc::ENOTSUP,
        &["column s: a struct without fields"],
    );
}
