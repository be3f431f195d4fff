//! Rule 46: Parquet files as engines wrote them before they knew Iceberg.

use libc::EIO;
use parquet::basic::Encoding;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;
use serde_json::{Value, json};

use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
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
        |w| w.set_statistics_enabled(EnabledStatistics::None),
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

/// Thousands of values in pages of a few rows, in every encoding, of which some go: what a slot is measured for.
#[test]
fn rule_46_converted_chunks_fit_their_slots() {
    const ROWS: usize = 3000;
    /// The table's type, the stored column, its values, and what a number of them shows as.
    type Case = (
        &'static str,
        &'static str,
        fn(usize) -> Values,
        fn(i64) -> Value,
    );
    let cases: [Case; 5] = [
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

/// The older forms of lists and maps that no reference reads, found by ids and by names, with rows deleted.
#[test]
fn rule_46_older_lists_and_maps_by_id_and_by_name() {
    let columns = "
        optional group two (LIST) = 1 { repeated int32 element = 11; }
        optional group structs (LIST) = 2 { repeated group array = 12 { optional int32 x = 13; } }
        optional group tuple (LIST) = 3 { repeated group tuple_tuple = 14 { optional int32 x = 15; } }
        optional group bag (LIST) = 4 { repeated group bag { optional int32 array_element = 16; } }
        repeated int32 bare = 5;
        optional group kv (MAP_KEY_VALUE) = 6 {
            repeated group map { required int32 key = 17; optional int32 value = 18; }
        }
        optional group pairs (MAP) = 7 {
            repeated group key_value (MAP_KEY_VALUE) {
                required int32 key = 19;
                optional group value (LIST) = 20 { repeated int32 array = 21; }
            }
        }";
    let ints = |values: &[i32]| Values::Int32s(values.to_vec());
    // Each of four rows: two entries, none, null (no entries where it cannot be null), one.
    let rep = [0, 1, 0, 0, 0];
    let group = vec![
        Chunk::nested(ints(&[1, 2, 3]), &[2, 2, 1, 0, 2], &rep),
        Chunk::nested(ints(&[1, 3]), &[3, 2, 1, 0, 3], &rep),
        Chunk::nested(ints(&[1, 3]), &[3, 2, 1, 0, 3], &rep),
        Chunk::nested(ints(&[1, 3]), &[3, 2, 1, 0, 3], &rep),
        Chunk::nested(ints(&[1, 2, 3]), &[1, 1, 0, 0, 1], &rep),
        Chunk::nested(ints(&[1, 2, 3]), &[2, 2, 1, 0, 2], &rep),
        Chunk::nested(ints(&[7, 9]), &[3, 2, 1, 0, 3], &rep),
        Chunk::nested(ints(&[1, 2, 3]), &[2, 2, 1, 0, 2], &rep),
        Chunk::nested(ints(&[5, 6]), &[4, 4, 2, 1, 0, 3], &[0, 2, 1, 0, 0, 0]),
    ];
    let entries = json!([
        [1, 2],
        [{"x": 1}, {"x": null}],
        [{"x": 1}, {"x": null}],
        [1, null],
        [1, 2],
        [[1, 7], [2, null]],
        [[1, [5, 6]], [2, null]]
    ]);
    let none = json!([[], [], [], [], [], [], []]);
    let nulls = json!([null, null, null, null, [], null, null]);
    let one = json!([[3], [{"x": 3}], [{"x": 3}], [3], [3], [[3, 9]], [[3, []]]]);
    let schema = "1 two: list<11 required int>, 2 structs: list<12 required struct<13 x: int>>, \
        3 tuple: list<14 required struct<15 x: int>>, 4 bag: list<16 int>, 5 bare: list<22 required int>, \
        6 kv: map<17 int, 18 int>, 7 pairs: map<19 int, 20 list<21 required int>>";
    let element =
        |id: i32, more: Value| json!({"field-id": id, "names": ["element"], "fields": more});
    let x = |id: i32| json!([{"field-id": id, "names": ["x"]}]);
    let mapping = json!([
        {"field-id": 1, "names": ["two"], "fields": [element(11, json!([]))]},
        {"field-id": 2, "names": ["structs"], "fields": [element(12, x(13))]},
        {"field-id": 3, "names": ["tuple"], "fields": [element(14, x(15))]},
        {"field-id": 4, "names": ["bag"], "fields": [element(16, json!([]))]},
        {"field-id": 5, "names": ["bare"], "fields": [element(22, json!([]))]},
        {"field-id": 6, "names": ["kv"], "fields": [
            {"field-id": 17, "names": ["key"]}, {"field-id": 18, "names": ["value"]}]},
        {"field-id": 7, "names": ["pairs"], "fields": [
            {"field-id": 19, "names": ["key"]},
            {"field-id": 20, "names": ["value"], "fields": [element(21, json!([]))]}]}
    ]);
    let anonymous: String =
        columns
            .split(" = ")
            .enumerate()
            .fold(String::new(), |text, (i, piece)| {
                let piece = if i == 0 {
                    piece
                } else {
                    piece.trim_start_matches(|c: char| c.is_ascii_digit())
                };
                text + piece
            });
    for (by_name, columns) in [(false, columns), (true, anonymous.as_str())] {
        for writer in [plain, v2] {
            let mut t = TableBuilder::new(2, schema);
            if by_name {
                let property = "schema.name-mapping.default".to_owned();
                t.properties.insert(property, mapping.to_string());
            }
            let a = t.adopt(
                "a.parquet",
                &parquet_file(columns, std::slice::from_ref(&group), writer),
                4,
            );
            t.commit(Commit::of([a.clone()]));
            shows(&mut t, json!([entries, none, nulls, one]));
            let d = t.position_deletes(&[(&a.path, 0), (&a.path, 2)]);
            t.commit(Commit::of([d]));
            shows(&mut t, json!([none, one]));
        }
    }
}

#[test]
fn rule_46_an_unsigned_64_bit_integer_beyond_the_range_of_long_is_an_error() {
    let group = vec![Chunk::dense(Values::Int64s(vec![5, -1]))];
    let bytes = parquet_file("optional int64 a (UINT_64) = 1;", &[group], plain);
    let mut t = TableBuilder::new(2, "1 a: long");
    let a = t.adopt("a.parquet", &bytes, 2);
    t.commit(Commit::of([a.clone()]));
    refuses(&mut t, EIO, &["column a", "beyond the range of its type"]);
    // Without the row there is nothing wrong.
    let d = t.position_deletes(&[(&a.path, 1)]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[5]]));
}

#[test]
fn rule_45_lists_and_maps_of_unknown_keep_their_lengths() {
    let columns = "
        optional group l (LIST) = 1 { repeated group list { optional int32 element (UNKNOWN) = 2; } }
        optional group m (MAP) = 3 { repeated group key_value {
            required binary key (STRING) = 4; optional int32 value (UNKNOWN) = 5; } }";
    // l: [null, null], [], null; m: {k: null}, null, {}.
    let group = vec![
        Chunk::nested(Values::Int32s(vec![]), &[2, 2, 1, 0], &[0, 1, 0, 0]),
        Chunk::nested(Values::Bytes(vec![b"k".to_vec()]), &[2, 0, 1], &[0, 0, 0]),
        Chunk::nested(Values::Int32s(vec![]), &[2, 0, 1], &[0, 0, 0]),
    ];
    let mut t = TableBuilder::new(3, "1 l: list<2 unknown>, 3 m: map<4 string, 5 unknown>");
    let a = t.adopt("a.parquet", &parquet_file(columns, &[group], plain), 3);
    t.commit(Commit::of([a.clone()]));
    let rows = [
        json!([[null, null], [["k", null]], 0, 1]),
        json!([[], null, 1, 1]),
        json!([null, [], 2, 1]),
    ];
    shows(&mut t, json!(rows));
    let d = t.vector(&a, &[1]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([rows[0], rows[2]]));
}
