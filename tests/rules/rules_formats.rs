//! Rules 46 and 48 to 50: what other engines store, and how.

use bytes::Bytes;
use libc::{EIO, ENOTSUP};
use parquet::basic::Encoding;
use parquet::file::properties::{WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::printer::print_schema;
use serde_json::{Value, json};

use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::{refuses, shows, view_columns};

/// The Julian day of 1970-01-01.
const EPOCH: i32 = 2_440_588;

fn plain(writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    writer.set_dictionary_enabled(false)
}

fn delta(writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    plain(writer)
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_encoding(Encoding::DELTA_BYTE_ARRAY)
}

fn v2(writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    writer.set_writer_version(WriterVersion::PARQUET_2_0)
}

/// One optional column, stored as `stored`, shown as `rows` whatever the file's encodings; and without its rows 0 and 2.
#[track_caller]
fn column_shows(ty: &str, stored: &str, values: Values, rows: Value) {
    let rows: Vec<Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|v| json!([v]))
        .collect();
    let present = match &values {
        Values::Booleans(v) => v.len(),
        Values::Int32s(v) => v.len(),
        Values::Int64s(v) => v.len(),
        Values::Int96s(v) => v.len(),
        Values::Bytes(v) | Values::Fixed(v) => v.len(),
    };
    // The last row is null.
    assert_eq!(present + 1, rows.len());
    let levels: Vec<i16> = (0..rows.len())
        .map(|row| i16::from(row < present))
        .collect();
    let mut writers: Vec<fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder> =
        vec![plain, |w| w, v2];
    if matches!(values, Values::Bytes(_)) {
        writers.push(delta);
    }
    for writer in writers {
        let group = vec![Chunk::flat(values.clone(), &levels)];
        let bytes = parquet_file(&format!("optional {stored} = 1;"), &[group], writer);
        let mut t = TableBuilder::new(3, &format!("1 a: {ty}"));
        let a = t.adopt("a.parquet", &bytes, rows.len() as i64);
        t.commit(Commit::of([a.clone()]));
        let with_lineage = |positions: &[usize]| {
            let row = |i: &usize| json!([rows[*i][0], i, 1]);
            Value::Array(positions.iter().map(row).collect())
        };
        let all: Vec<usize> = (0..rows.len()).collect();
        shows(&mut t, with_lineage(&all));
        let d = t.vector(&a, &[0, 2]);
        t.commit(Commit::of([d]));
        let left: Vec<usize> = all.into_iter().filter(|i| ![0, 2].contains(i)).collect();
        shows(&mut t, with_lineage(&left));
    }
}

#[test]
fn rule_46_int96_timestamps_of_years_1_to_9999() {
    // As microseconds, by Python's datetime: 0001-01-01, 1969-12-31T23:59:59.999999, 2024-02-29T12:34:56.789012,
    // 9999-12-31T23:59:59.999999.
    let stored = Values::Int96s(vec![
        (1_721_426, 0),
        (EPOCH - 1, 86_399_999_999_999),
        (EPOCH + 19_782, 45_296_789_012_345),
        (5_373_484, 86_399_999_999_000),
    ]);
    let micros = json!([
        -62_135_596_800_000_000i64,
        -1,
        1_709_210_096_789_012i64,
        253_402_300_799_999_999i64,
        null
    ]);
    column_shows("timestamp", "int96 a", stored.clone(), micros.clone());
    column_shows("timestamptz", "int96 a", stored, micros);
    let nanos = Values::Int96s(vec![
        (EPOCH, 1),
        (EPOCH - 1, 86_399_999_999_999),
        (EPOCH + 19_782, 45_296_789_012_345),
    ]);
    column_shows(
        "timestamp_ns",
        "int96 a",
        nanos,
        json!([1, -1, 1_709_210_096_789_012_345i64, null]),
    );
}

#[test]
fn rule_46_an_int96_beyond_the_range_of_nanoseconds_is_an_error() {
    let group = vec![Chunk::dense(Values::Int96s(vec![(1_721_426, 0)]))];
    let bytes = parquet_file("optional int96 a = 1;", &[group], plain);
    let mut t = TableBuilder::new(3, "1 a: timestamp_ns");
    let a = t.adopt("a.parquet", &bytes, 1);
    t.commit(Commit::of([a]));
    refuses(&mut t, EIO, &["a.parquet", "beyond the range"]);
}

#[test]
fn rule_46_times_in_other_units() {
    let day = 86_400_000;
    column_shows(
        "timestamp",
        "int64 a (TIMESTAMP_MILLIS)",
        Values::Int64s(vec![-1, 0, 1_709_210_096_789]),
        json!([-1000, 0, 1_709_210_096_789_000i64, null]),
    );
    column_shows(
        "timestamptz",
        "int64 a (TIMESTAMP(NANOS, true))",
        Values::Int64s(vec![-1, 999, 1_709_210_096_789_012_345]),
        json!([-1, 0, 1_709_210_096_789_012i64, null]),
    );
    column_shows(
        "timestamp_ns",
        "int64 a (TIMESTAMP(MICROS, false))",
        Values::Int64s(vec![-1, 0, 5]),
        json!([-1000, 0, 5000, null]),
    );
    column_shows(
        "time",
        "int32 a (TIME_MILLIS)",
        Values::Int32s(vec![0, 1, day - 1]),
        json!([0, 1000, 86_399_999_000i64, null]),
    );
    column_shows(
        "time",
        "int64 a (TIME(NANOS, true))",
        Values::Int64s(vec![0, 1999, 86_399_999_999_999]),
        json!([0, 1, 86_399_999_999i64, null]),
    );
}

#[test]
fn rule_46_small_and_unsigned_integers() {
    column_shows(
        "int",
        "int32 a (INT_8)",
        Values::Int32s(vec![-128, 0, 127]),
        json!([-128, 0, 127, null]),
    );
    column_shows(
        "int",
        "int32 a (UINT_16)",
        Values::Int32s(vec![0, 1, 65_535]),
        json!([0, 1, 65_535, null]),
    );
    column_shows(
        "long",
        "int32 a (INT_16)",
        Values::Int32s(vec![-32_768, 0, 32_767]),
        json!([-32_768, 0, 32_767, null]),
    );
    column_shows(
        "long",
        "int32 a (UINT_32)",
        Values::Int32s(vec![-1, 0, i32::MIN]),
        json!([4_294_967_295i64, 0, 2_147_483_648i64, null]),
    );
    column_shows(
        "long",
        "int64 a (UINT_64)",
        Values::Int64s(vec![i64::MAX, 0, 1]),
        json!([i64::MAX, 0, 1, null]),
    );
    let group = vec![Chunk::dense(Values::Int64s(vec![-1]))];
    let bytes = parquet_file("optional int64 a (UINT_64) = 1;", &[group], plain);
    let mut t = TableBuilder::new(2, "1 a: long");
    let a = t.adopt("a.parquet", &bytes, 1);
    t.commit(Commit::of([a]));
    refuses(&mut t, EIO, &["a.parquet", "unsigned integer"]);
}

#[test]
fn rule_46_decimals_in_every_physical_type() {
    let shown = json!(["-1.23", "0.00", "99999.99", null]);
    let ints = [-123, 0, 9_999_999];
    let bytes = |width: usize| -> Vec<Vec<u8>> {
        let each = ints.iter().map(|v: &i32| i128::from(*v).to_be_bytes());
        each.map(|v| v[16 - width..].to_vec()).collect()
    };
    let ty = "decimal(7,2)";
    let decimal = |physical: &str| format!("{physical} a (DECIMAL(7, 2))");
    column_shows(
        ty,
        &decimal("int32"),
        Values::Int32s(ints.to_vec()),
        shown.clone(),
    );
    let longs = ints.iter().map(|v| i64::from(*v)).collect();
    column_shows(ty, &decimal("int64"), Values::Int64s(longs), shown.clone());
    for width in [4, 9, 16] {
        column_shows(
            ty,
            &decimal(&format!("fixed_len_byte_array({width})")),
            Values::Fixed(bytes(width)),
            shown.clone(),
        );
    }
    // The fewest bytes each.
    let shortest = vec![vec![0x85], vec![0], vec![0x00, 0x98, 0x96, 0x7f]];
    column_shows(
        ty,
        &decimal("binary"),
        Values::Bytes(shortest.clone()),
        shown.clone(),
    );
    column_shows(
        "decimal(30,2)",
        &decimal("binary"),
        Values::Bytes(shortest),
        shown,
    );
}

#[test]
fn rule_46_a_merged_file_takes_decimals_of_all_physical_types() {
    let mut t = TableBuilder::new(2, "1 a: decimal(7,2)");
    let ten = Values::Bytes(vec![vec![0x03, 0xe8]]);
    let columns = [
        ("int32", Values::Int32s(vec![1000])),
        ("int64", Values::Int64s(vec![1000])),
        (
            "fixed_len_byte_array(5)",
            Values::Fixed(vec![vec![0, 0, 0, 0x03, 0xe8]]),
        ),
        ("binary", ten),
    ];
    let entries: Vec<_> = columns
        .into_iter()
        .enumerate()
        .map(|(i, (physical, values))| {
            let column = format!("optional {physical} a (DECIMAL(7, 2)) = 1;");
            let bytes = parquet_file(&column, &[vec![Chunk::dense(values)]], |w| w);
            t.adopt(&format!("{i}.parquet"), &bytes, 1)
        })
        .collect();
    t.commit(Commit::of(entries));
    shows(&mut t, json!([["10.00"], ["10.00"], ["10.00"], ["10.00"]]));
    view_columns(&t, "current", &[("a", "decimal(7,2)")]);
}

#[test]
fn rule_46_annotated_strings() {
    let values = || Values::Bytes(vec![b"a".to_vec(), b"{}".to_vec(), vec![]]);
    for annotation in ["UTF8", "ENUM", "JSON"] {
        column_shows(
            "string",
            &format!("binary a ({annotation})"),
            values(),
            json!(["a", "{}", "", null]),
        );
    }
    column_shows(
        "binary",
        "binary a (BSON)",
        values(),
        json!(["61", "7b7d", "", null]),
    );
}

#[test]
fn rule_46_equality_deletes_compare_what_is_shown() {
    let stored = Values::Int96s(vec![(EPOCH, 1999), (EPOCH, 2000), (EPOCH + 1, 0)]);
    let bytes = parquet_file(
        "optional int96 a = 1;",
        &[vec![Chunk::dense(stored)]],
        |w| w,
    );
    let mut t = TableBuilder::new(2, "1 a: timestamp");
    let a = t.adopt("a.parquet", &bytes, 3);
    t.commit(Commit::of([a]));
    let d = t.equality_deletes(&[1], "1 a: timestamp", json!([[1], [86_400_000_000i64]]));
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[2]]));
}

#[test]
fn rule_46_files_without_rows_row_groups_or_statistics() {
    let none = parquet_file("optional int64 a = 1;", &[], plain);
    let empty = parquet_file(
        "optional int64 a = 1;",
        &[
            vec![Chunk::flat(Values::Int64s(vec![]), &[])],
            vec![Chunk::dense(Values::Int64s(vec![1]))],
        ],
        |w| w.set_statistics_enabled(parquet::file::properties::EnabledStatistics::None),
    );
    let mut t = TableBuilder::new(2, "1 a: long");
    let a = t.adopt("none.parquet", &none, 0);
    let b = t.adopt("some.parquet", &empty, 1);
    t.commit(Commit::of([a, b]));
    shows(&mut t, json!([[1]]));
}

#[test]
fn rule_46_two_level_lists_and_old_maps() {
    let columns = "
        optional group a (LIST) = 1 { repeated int32 array = 2; }
        optional group m (MAP_KEY_VALUE) = 3 {
            repeated group map (MAP_KEY_VALUE) { required int32 key = 4; optional int32 value = 5; }
        }";
    // a: [1, 2], [], null; m: {1: null, 2: 3}, null, {}.
    let group = vec![
        Chunk::nested(Values::Int32s(vec![1, 2]), &[2, 2, 1, 0], &[0, 1, 0, 0]),
        Chunk::nested(Values::Int32s(vec![1, 2]), &[2, 2, 0, 1], &[0, 1, 0, 0]),
        Chunk::nested(Values::Int32s(vec![3]), &[2, 3, 0, 1], &[0, 1, 0, 0]),
    ];
    let bytes = parquet_file(columns, &[group], |w| w);
    let mut t = TableBuilder::new(2, "1 a: list<2 int>, 3 m: map<4 int, 5 int>");
    let a = t.adopt("a.parquet", &bytes, 3);
    t.commit(Commit::of([a.clone()]));
    shows(
        &mut t,
        json!([[[1, 2], [[1, null], [2, 3]]], [[], null], [null, []]]),
    );
    let d = t.position_deletes(&[(&a.path, 1)]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[[1, 2], [[1, null], [2, 3]]], [null, []]]));
}

#[test]
fn rule_49_geometries_keep_their_bytes_and_lose_their_bounds() {
    let point = "0101000000000000000000f03f0000000000000040";
    let types = [
        ("geometry", "GEOMETRY"),
        ("geometry(srid:3857)", "GEOMETRY(srid:3857)"),
        ("geography(OGC:CRS84, karney)", "GEOGRAPHY(KARNEY)"),
    ];
    for (ty, shown) in types {
        let mut t = TableBuilder::new(3, &format!("1 v: {ty}"));
        let a = t.write(Data::rows(json!([[point], [null], [point]])).schema("1 v: binary"));
        t.commit(Commit::of([a.clone()]));
        shows(&mut t, json!([[point, 0, 1], [null, 1, 1], [point, 2, 1]]));
        let d = t.vector(&a, &[0]);
        t.commit(Commit::of([d]));
        shows(&mut t, json!([[null, 1, 1], [point, 2, 1]]));
        for view in ["snapshots/1001", "current"] {
            let bytes = Opened::tree(&t.root())
                .read(&format!("{view}/t.parquet"))
                .unwrap();
            let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
            let column = file.metadata().row_group(0).column(0);
            let statistics = column.statistics();
            assert!(
                statistics.is_none_or(|s| s.min_bytes_opt().is_none()),
                "{ty}"
            );
            let mut schema = vec![];
            print_schema(&mut schema, file.metadata().file_metadata().schema());
            let schema = String::from_utf8(schema).unwrap();
            assert!(schema.contains(shown), "{ty}: {schema}");
        }
    }
}

/// Plain variants, int8 values 1 and 2: `metadata` is version 1 with no names, an int8 is its type's header and a byte.
fn plain_variants() -> Vec<u8> {
    let columns = "optional group v = 1 { required binary value; required binary metadata; }";
    let group = vec![
        Chunk::flat(
            Values::Bytes(vec![vec![0x0c, 1], vec![0x0c, 2]]),
            &[1, 0, 1],
        ),
        Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]; 2]), &[1, 0, 1]),
    ];
    parquet_file(columns, &[group], |w| w)
}

/// Variants shredded as objects with a field `a` of int32: {a: 5}, {a: "x"} and 7.
fn shredded_variants(field: &str) -> Vec<u8> {
    let columns = format!(
        "optional group v = 1 {{
            required binary metadata;
            optional binary value;
            optional group typed_value {{
                required group {field} {{ optional binary value; optional int32 typed_value; }}
            }}
        }}"
    );
    let group = vec![
        Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]; 3]), &[1, 1, 1]),
        Chunk::flat(Values::Bytes(vec![vec![0x0c, 7]]), &[1, 1, 2]),
        Chunk::flat(Values::Bytes(vec![b"\x05x".to_vec()]), &[2, 3, 1]),
        Chunk::flat(Values::Int32s(vec![5]), &[3, 2, 1]),
    ];
    parquet_file(&columns, &[group], |w| w)
}

#[test]
fn rule_48_a_plain_variant_is_two_binaries() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &plain_variants(), 3);
    t.commit(Commit::of([a.clone()]));
    let one = json!({"metadata": "010000", "value": "0c01"});
    let two = json!({"metadata": "010000", "value": "0c02"});
    shows(&mut t, json!([[one, 0, 1], [null, 1, 1], [two, 2, 1]]));
    t.evolve("1 v: variant, 2 w: variant");
    shows(
        &mut t,
        json!([[one, null, 0, 1], [null, null, 1, 1], [two, null, 2, 1]]),
    );
    let d = t.vector(&a, &[0]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[null, null, 1, 1], [two, null, 2, 1]]));
}

#[test]
fn rule_48_a_shredded_variant_is_kept_and_merges_with_a_plain_one() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &shredded_variants("a"), 3);
    t.commit(Commit::of([a.clone()]));
    let shredded = [
        json!({"metadata": "010000", "value": null, "typed_value": {"a": {"value": null, "typed_value": 5}}}),
        json!({"metadata": "010000", "value": null, "typed_value": {"a": {"value": "0578", "typed_value": null}}}),
        json!({"metadata": "010000", "value": "0c07", "typed_value": null}),
    ];
    shows(
        &mut t,
        json!([
            [shredded[0], 0, 1],
            [shredded[1], 1, 1],
            [shredded[2], 2, 1]
        ]),
    );
    let d = t.vector(&a, &[0]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[shredded[1], 1, 1], [shredded[2], 2, 1]]));
    let b = t.adopt("b.parquet", &plain_variants(), 3);
    t.commit(Commit::of([b]));
    t.save();
    let one = json!({"metadata": "010000", "value": "0c01", "typed_value": null});
    let two = json!({"metadata": "010000", "value": "0c02", "typed_value": null});
    let merged = Opened::tree(&t.root()).rows("current/t.parquet").unwrap();
    assert_eq!(
        merged,
        json!([
            [shredded[1], 1, 1],
            [shredded[2], 2, 1],
            [one, 3, 3],
            [null, 4, 3],
            [two, 5, 3]
        ])
    );
}

#[test]
fn rule_48_variants_of_different_fields_cannot_be_one_column() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &shredded_variants("a"), 3);
    let b = t.adopt("b.parquet", &shredded_variants("b"), 3);
    t.commit(Commit::of([a, b]));
    refuses(
        &mut t,
        ENOTSUP,
        &["merging variants with different fields", "v.typed_value"],
    );
    for part in ["a.parquet", "b.parquet"] {
        let rows = Opened::tree(&t.root())
            .rows(&format!("current/parts/{part}"))
            .unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 3);
    }
}
