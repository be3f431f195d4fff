//! Rules 46 and 48 to 50: what other engines store, and how.

use bytes::Bytes;
use libc::{EIO, ENOTSUP};
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::printer::print_schema;
use parquet::schema::types::ColumnPath;
use serde_json::{Value, json};

use crate::builder::avro::{Avro, Codec, container};
use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, Content, Data, TableBuilder};
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

/// Variants shredded as objects with one field of int32, `a` say: {a: 5}, {a: "x"} and 7.
fn shredded_variants(field: &str) -> Vec<u8> {
    // Version 1, one name, which begins at 0 and ends at 1.
    let metadata = [&[1, 1, 0, 1], field.as_bytes()].concat();
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
        Chunk::flat(Values::Bytes(vec![metadata; 3]), &[1, 1, 1]),
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
        json!({"metadata": "0101000161", "value": null, "typed_value": {"a": {"value": null, "typed_value": 5}}}),
        json!({"metadata": "0101000161", "value": null, "typed_value": {"a": {"value": "0578", "typed_value": null}}}),
        json!({"metadata": "0101000161", "value": "0c07", "typed_value": null}),
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

/// An Avro file: the fields' types with their ids, and the rows.
fn avro_file(fields: Value, codec: Codec, rows: &[Avro]) -> Vec<u8> {
    let schema = json!({"type": "record", "name": "table", "fields": fields});
    container(&schema, &[], codec, rows)
}

fn some(value: Avro) -> Avro {
    Avro::optional(Some(value))
}

#[test]
fn rule_50_avro_types_are_read_by_their_ids() {
    let fixed = |name: &str, size: i32, logical: Value| {
        let mut ty = json!({"type": "fixed", "name": name, "size": size});
        for (key, value) in logical.as_object().unwrap() {
            ty[key] = value.clone();
        }
        ty
    };
    let logical = |ty: &str, logical: &str| json!({"type": ty, "logicalType": logical});
    let fields = json!([
        {"name": "b", "field-id": 1, "type": "boolean"},
        {"name": "i", "field-id": 2, "type": ["null", "int"]},
        {"name": "l", "field-id": 3, "type": ["long", "null"]},
        {"name": "f", "field-id": 4, "type": "float"},
        {"name": "d", "field-id": 5, "type": "double"},
        {"name": "dt", "field-id": 6, "type": logical("int", "date")},
        {"name": "tm", "field-id": 7, "type": logical("long", "time-micros")},
        {"name": "ts", "field-id": 8, "type": logical("long", "timestamp-micros")},
        {"name": "ms", "field-id": 9, "type": logical("long", "timestamp-millis")},
        {"name": "ns", "field-id": 10, "type": logical("long", "timestamp-nanos")},
        {"name": "s", "field-id": 11, "type": "string"},
        {"name": "uu", "field-id": 12, "type": fixed("uuid_fixed", 16, json!({"logicalType": "uuid"}))},
        {"name": "fx", "field-id": 13, "type": fixed("fixed_3", 3, json!({}))},
        {"name": "bin", "field-id": 14, "type": "bytes"},
        {"name": "d9", "field-id": 15,
         "type": fixed("decimal_9_2", 4, json!({"logicalType": "decimal", "precision": 9, "scale": 2}))},
        {"name": "d30", "field-id": 16,
         "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}},
    ]);
    let row = Avro::Record(vec![
        Avro::Boolean(true),
        some(Avro::Number(-7)),
        Avro::Branch(1, Box::new(Avro::Null)),
        Avro::Float(1.5),
        Avro::Double(-2.5),
        Avro::Number(-1),
        Avro::Number(86_399_999_999),
        Avro::Number(-1),
        Avro::Number(-1),
        Avro::Number(-1),
        Avro::text("é"),
        Avro::Fixed((0..16).collect()),
        Avro::Fixed(vec![1, 2, 3]),
        Avro::Bytes(vec![0, 255]),
        Avro::Fixed(vec![0xff, 0xff, 0xff, 0x85]),
        Avro::Bytes(vec![0x03, 0xe8]),
    ]);
    for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
        let mut t = TableBuilder::new(
            3,
            "1 b: boolean, 2 i: long, 3 l: long, 4 f: double, 5 d: double, 6 dt: date, 7 tm: time, 8 ts: timestamp, \
             9 ms: timestamptz, 10 ns: timestamp_ns, 11 s: string, 12 uu: uuid, 13 fx: fixed[3], 14 bin: binary, \
             15 d9: decimal(9,2), 16 d30: decimal(30,2)",
        );
        let a = t.adopt(
            "a.avro",
            &avro_file(fields.clone(), codec, std::slice::from_ref(&row)),
            1,
        );
        t.commit(Commit::of([a]));
        shows(
            &mut t,
            json!([[
                true,
                -7,
                null,
                1.5,
                -2.5,
                -1,
                86_399_999_999i64,
                -1,
                -1000,
                -1,
                "é",
                "000102030405060708090a0b0c0d0e0f",
                "010203",
                "00ff",
                "-1.23",
                "10.00",
                0,
                1
            ]]),
        );
    }
}

/// Lists in lists, both kinds of maps, structs.
fn nested_avro() -> (Value, Vec<Avro>) {
    let list = |ty: Value, id: i32| json!({"type": "array", "items": ty, "element-id": id});
    let pair = json!({"type": "record", "name": "k6_v7", "fields": [
        {"name": "key", "field-id": 6, "type": "int"},
        {"name": "value", "field-id": 7, "type": ["null", "string"]},
    ]});
    let inner = json!({"type": "record", "name": "r8", "fields": [
        {"name": "x", "field-id": 9, "type": ["null", "int"]},
        {"name": "y", "field-id": 10, "type": ["null", list(json!("string"), 11)]},
    ]});
    let fields = json!([
        {"name": "li", "field-id": 1, "type": ["null", list(json!(["null", list(json!("int"), 3)]), 2)]},
        {"name": "mi", "field-id": 5, "type": {"type": "array", "logicalType": "map", "items": pair}},
        {"name": "st", "field-id": 8, "type": ["null", inner]},
        {"name": "ms", "field-id": 12,
         "type": ["null", {"type": "map", "values": "long", "key-id": 13, "value-id": 14}]},
    ]);
    let numbers = |n: &[i64]| Avro::Array(n.iter().map(|n| Avro::Number(*n)).collect());
    let text = |t: Option<&str>| Avro::optional(t.map(Avro::text));
    // A map has the encoding of an array of its entries.
    let entry = |k: &str, v: i64| Avro::Record(vec![Avro::text(k), Avro::Number(v)]);
    let rows = vec![
        Avro::Record(vec![
            some(Avro::Array(vec![
                some(numbers(&[1, 2])),
                Avro::optional(None),
                some(numbers(&[])),
            ])),
            Avro::Array(vec![
                Avro::Record(vec![Avro::Number(1), text(Some("a"))]),
                Avro::Record(vec![Avro::Number(2), text(None)]),
            ]),
            some(Avro::Record(vec![
                some(Avro::Number(5)),
                some(Avro::Array(vec![Avro::text("p"), Avro::text("q")])),
            ])),
            some(Avro::Array(vec![entry("k", 1), entry("l", 2)])),
        ]),
        Avro::Record(vec![
            Avro::optional(None),
            Avro::Array(vec![]),
            Avro::optional(None),
            Avro::optional(None),
        ]),
        Avro::Record(vec![
            some(Avro::Array(vec![])),
            Avro::Array(vec![]),
            some(Avro::Record(vec![
                Avro::optional(None),
                Avro::optional(None),
            ])),
            some(Avro::Array(vec![])),
        ]),
    ];
    (fields, rows)
}

const NESTED: &str = "1 li: list<2 list<3 int>>, 5 mi: map<6 int, 7 string>, 8 st: struct<9 x: int, 10 y: list<11 string>>, \
                      12 ms: map<13 string, 14 long>";

#[test]
fn rule_50_nested_avro_with_deletes_lineage_and_evolution() {
    let (fields, rows) = nested_avro();
    let mut t = TableBuilder::new(3, NESTED);
    let a = t.adopt("a.avro", &avro_file(fields, Codec::Null, &rows), 3);
    t.commit(Commit::of([a.clone()]));
    let first = json!([
        [[1, 2], null, []],
        [[1, "a"], [2, null]],
        {"x": 5, "y": ["p", "q"]},
        [["k", 1], ["l", 2]],
        0,
        1
    ]);
    let last = json!([[], [], {"x": null, "y": null}, [], 2, 1]);
    shows(&mut t, json!([first, [null, [], null, null, 1, 1], last]));
    let d = t.vector(&a, &[1]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([first, last]));
    // Renamed, dropped, promoted, added.
    t.evolve("8 s: struct<15 z: string, 9 w: long>, 1 ll: list<2 list<3 long>>");
    shows(
        &mut t,
        json!([
            [{"z": null, "w": 5}, [[1, 2], null, []], 0, 1],
            [{"z": null, "w": null}, [], 2, 1]
        ]),
    );
}

#[test]
fn rule_50_avro_delete_files_delete() {
    let numbers = json!([{"name": "id", "field-id": 1, "type": "long"}]);
    let ids: Vec<Avro> = (0..5)
        .map(|i| Avro::Record(vec![Avro::Number(i)]))
        .collect();
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.adopt(
        "a.avro",
        &avro_file(numbers.clone(), Codec::Deflate, &ids),
        5,
    );
    let b = t.data(json!([[10], [11]]));
    t.commit(Commit::of([a.clone(), b.clone()]));
    let positions = json!([
        {"name": "file_path", "field-id": 2_147_483_546, "type": "string"},
        {"name": "pos", "field-id": 2_147_483_545, "type": "long"},
    ]);
    let deletes = [(&a.path, 1), (&b.path, 0)]
        .map(|(path, pos)| Avro::Record(vec![Avro::text(path), Avro::Number(pos)]));
    let by_position = t
        .adopt("p.avro", &avro_file(positions, Codec::Null, &deletes), 2)
        .with(|e| e.content = Content::PositionDeletes);
    let by_value = t
        .adopt("e.avro", &avro_file(numbers, Codec::Null, &ids[3..4]), 1)
        .with(|e| {
            e.content = Content::EqualityDeletes;
            e.equality_ids = vec![1];
        });
    t.commit(Commit::of([by_position, by_value]));
    shows(&mut t, json!([[0], [2], [4], [11]]));
}

#[test]
fn rule_50_avro_files_without_ids_are_read_by_name() {
    let fields = json!([
        {"name": "b", "type": "string"},
        {"name": "a", "type": "long"},
        {"name": "other", "type": "int"},
    ]);
    let row = Avro::Record(vec![Avro::text("x"), Avro::Number(1), Avro::Number(2)]);
    let mut t = TableBuilder::new(2, "1 a: long, 2 b: string, 3 c: int");
    let a = t.adopt("a.avro", &avro_file(fields, Codec::Null, &[row]), 1);
    t.commit(Commit::of([a]));
    shows(&mut t, json!([[1, "x", null]]));
}

#[test]
fn rule_50_what_avro_has_and_iceberg_has_not_is_refused_by_name() {
    let types = [
        (
            json!(["int", "string"]),
            Avro::Branch(0, Box::new(Avro::Number(1))),
            "union",
        ),
        (
            json!({"type": "enum", "name": "e", "symbols": ["A"]}),
            Avro::Number(0),
            "enum",
        ),
    ];
    for (ty, value, word) in types {
        let fields = json!([{"name": "a", "field-id": 1, "type": ty}]);
        let bytes = avro_file(fields, Codec::Null, &[Avro::Record(vec![value])]);
        let mut t = TableBuilder::new(2, "1 a: int");
        let a = t.adopt("a.avro", &bytes, 1);
        t.commit(Commit::of([a]));
        refuses(&mut t, ENOTSUP, &["a.avro", word]);
    }
}

/// The rows of `tests/fixtures/orc`, whose files `make.py` there writes with another writer.
fn orc_rows(count: usize) -> Vec<Value> {
    let rows = include_str!("../fixtures/orc/rows.jsonl")
        .lines()
        .take(count);
    rows.map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const ORC: &str = "1 b: boolean, 2 i8: int, 3 i16: int, 4 i32: int, 5 i64: long, 6 f: float, 7 d: double, 8 s: string, \
                   9 few: string, 10 bin: binary, 11 d9: decimal(9,2), 12 d38: decimal(38,10), 13 dt: date, \
                   14 ts: timestamp, 15 li: list<16 list<17 int>>, 18 mp: map<19 string, 20 long>, \
                   21 st: struct<22 x: int, 23 y: list<24 string>>";

const ORC_FILES: [(&str, &[u8], usize); 5] = [
    (
        "version-1.orc",
        include_bytes!("../fixtures/orc/version-1.orc"),
        300,
    ),
    ("zlib.orc", include_bytes!("../fixtures/orc/zlib.orc"), 450),
    (
        "snappy.orc",
        include_bytes!("../fixtures/orc/snappy.orc"),
        450,
    ),
    ("zstd.orc", include_bytes!("../fixtures/orc/zstd.orc"), 40),
    ("lz4.orc", include_bytes!("../fixtures/orc/lz4.orc"), 40),
];

#[test]
fn rule_50_orc_files_of_every_codec_and_version() {
    for (name, bytes, count) in ORC_FILES {
        let mut t = TableBuilder::new(2, ORC);
        let a = t.adopt(name, bytes, count as i64);
        t.commit(Commit::of([a.clone()]));
        let rows = orc_rows(count);
        shows(&mut t, Value::Array(rows.clone()));
        let positions: Vec<(&str, i64)> = (0..count)
            .step_by(3)
            .map(|i| (a.path.as_str(), i as i64))
            .collect();
        let d = t.position_deletes(&positions);
        t.commit(Commit::of([d]));
        let left = rows.into_iter().enumerate().filter(|(i, _)| i % 3 != 0);
        shows(&mut t, left.map(|(_, row)| row).collect());
    }
}

#[test]
fn rule_50_orc_columns_are_projected_and_keys_deleted() {
    let (name, bytes, count) = ORC_FILES[3];
    let mut t = TableBuilder::new(2, "9 few: string, 25 new: int, 4 i32: long");
    let a = t.adopt(name, bytes, count as i64);
    t.commit(Commit::of([a]));
    let column = |row: &Value, i: usize| row[i].clone();
    let row = |row: &Value| json!([column(row, 8), null, column(row, 3)]);
    let rows = orc_rows(count);
    shows(&mut t, rows.iter().map(row).collect());
    let d = t.equality_deletes(&[9], "9 few: string", json!([["red"], [null]]));
    t.commit(Commit::of([d]));
    let left = rows
        .iter()
        .filter(|row| ![json!("red"), Value::Null].contains(&row[8]));
    shows(&mut t, left.map(row).collect());
}

/// Whatever is changed in a file, the daemon answers: with an error, or with what the changed bytes say.
#[test]
fn rule_50_damaged_avro_and_orc_files_are_errors() {
    let (fields, rows) = nested_avro();
    let avro = avro_file(fields, Codec::Null, &rows);
    let files = [
        ("a.avro", avro, NESTED, 3),
        ("a.orc", ORC_FILES[3].1.to_vec(), ORC, 40),
        ("b.orc", ORC_FILES[0].1.to_vec(), ORC, 300),
    ];
    for (name, bytes, schema, count) in files {
        let mut t = TableBuilder::new(2, schema);
        let a = t.adopt(name, &bytes, count);
        t.commit(Commit::of([a.clone()]));
        t.save();
        let step = bytes.len() / 150 + 1;
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            std::fs::write(t.local(&a.path), &damaged).unwrap();
            let _ = Opened::tree(&t.root()).read("current/t.parquet");
        }
        for len in (0..bytes.len()).step_by(step) {
            std::fs::write(t.local(&a.path), &bytes[..len]).unwrap();
            let read = Opened::tree(&t.root()).read("current/t.parquet");
            assert_eq!(read.unwrap_err(), EIO, "{name} cut to {len} bytes");
        }
    }
}

/// Thousands of values in pages of a few rows, in every encoding, of which some go: what a slot is measured for.
#[test]
fn rule_46_converted_chunks_fit_their_slots() {
    const ROWS: usize = 3000;
    type Stored = fn(usize) -> Values;
    let cases: [(&str, &str, Stored, fn(i64) -> Value); 5] = [
        (
            "timestamp",
            "int96 a",
            |n| {
                Values::Int96s(
                    (0..n)
                        .map(|i| (EPOCH + (i % 9) as i32, i as i64 * 1000))
                        .collect(),
                )
            },
            |_| Value::Null,
        ),
        (
            "decimal(38,0)",
            "binary a (DECIMAL(38, 0))",
            |n| Values::Bytes((0..n).map(|i| shortest(spread(i))).collect()),
            |v| json!(v.to_string()),
        ),
        (
            "decimal(12,0)",
            "binary a (DECIMAL(12, 0))",
            |n| Values::Bytes((0..n).map(|i| shortest(spread(i))).collect()),
            |v| json!(v.to_string()),
        ),
        (
            "timestamp",
            "int64 a (TIMESTAMP_MILLIS)",
            |n| Values::Int64s((0..n).map(spread).collect()),
            |v| json!(v * 1000),
        ),
        (
            "time",
            "int32 a (TIME_MILLIS)",
            |n| Values::Int32s((0..n).map(|i| i as i32).collect()),
            |_| Value::Null,
        ),
    ];
    let writers: [fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder; 6] = [
        plain,
        |w| w,
        v2,
        |w| delta(w),
        |w| plain(w).set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        |w| plain(w).set_encoding(Encoding::DELTA_BINARY_PACKED),
    ];
    for (ty, stored, values, shown) in cases {
        for writer in writers {
            let values = values(ROWS);
            let fits = |encoding: Encoding| match &values {
                Values::Bytes(_) => encoding != Encoding::DELTA_BINARY_PACKED,
                Values::Int32s(_) | Values::Int64s(_) => encoding == Encoding::DELTA_BINARY_PACKED,
                _ => false,
            };
            let probe = writer(WriterProperties::builder()).build();
            if probe
                .encoding(&ColumnPath::from("a"))
                .is_some_and(|encoding| !fits(encoding))
            {
                continue;
            }
            let small = |w: WriterPropertiesBuilder| {
                writer(w)
                    .set_data_page_row_count_limit(5)
                    .set_write_batch_size(5)
            };
            let group = vec![Chunk::dense(values)];
            let bytes = parquet_file(&format!("optional {stored} = 1;"), &[group], small);
            let mut t = TableBuilder::new(2, &format!("1 a: {ty}"));
            let a = t.adopt("a.parquet", &bytes, ROWS as i64);
            let deleted: Vec<(&str, i64)> = (0..ROWS)
                .step_by(3)
                .map(|i| (a.path.as_str(), i as i64))
                .collect();
            let d = t.position_deletes(&deleted);
            t.commit(Commit::of([a.clone()]));
            t.commit(Commit::of([d]));
            t.save();
            let opened = Opened::tree(&t.root());
            for (view, kept) in [("snapshots/1001", 1), ("current", 3)] {
                let rows = opened.rows(&format!("{view}/t.parquet"));
                let rows = rows.unwrap_or_else(|_| panic!("{stored}: {}", opened.errors()));
                let rows = rows.as_array().unwrap().clone();
                let left: Vec<usize> = (0..ROWS).filter(|i| kept == 1 || i % 3 != 0).collect();
                assert_eq!(rows.len(), left.len(), "{stored}");
                for (row, i) in rows.iter().zip(left) {
                    let expected = match stored {
                        "int96 a" => json!((i as i64 % 9) * 86_400_000_000 + i as i64),
                        "int32 a (TIME_MILLIS)" => json!(i * 1000),
                        _ => shown(spread(i)),
                    };
                    assert_eq!(row[0], expected, "{stored}, row {i}");
                }
            }
        }
    }
}

/// Numbers of up to 30 bits and a sign, without order.
fn spread(i: usize) -> i64 {
    (i as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) >> 34
}

/// The fewest bytes that hold a number.
fn shortest(value: i64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let extra = |at: &usize| {
        let (here, next) = (bytes[*at], bytes[*at + 1]);
        (here == 0 && next < 0x80) || (here == 0xff && next >= 0x80)
    };
    let start = (0..7).take_while(extra).count();
    bytes[start..].to_vec()
}
