//! Rule 50: Avro and ORC data and delete files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libc::{EIO, ENOTSUP};
use serde_json::{Value, json};

use crate::builder::avro::{Avro, Codec, container};
use crate::builder::open::Opened;
use crate::builder::{Commit, Content, TableBuilder};
use crate::{refuses, shows};

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
fn rule_50_an_avro_enum_is_the_string_of_its_symbol() {
    let fields = json!([
        {"name": "e", "field-id": 1, "type": ["null", {"type": "enum", "name": "e", "symbols": ["A", "BE"]}]},
        {"name": "l", "field-id": 2, "type": {"type": "array", "items": "e", "element-id": 3}},
    ]);
    let rows = [
        Avro::Record(vec![
            some(Avro::Number(1)),
            Avro::Array(vec![Avro::Number(0), Avro::Number(1)]),
        ]),
        Avro::Record(vec![Avro::optional(None), Avro::Array(vec![])]),
    ];
    let mut t = TableBuilder::new(2, "1 e: string, 2 l: list<3 string>");
    let a = t.adopt("a.avro", &avro_file(fields.clone(), Codec::Null, &rows), 2);
    t.commit(Commit::of([a]));
    shows(&mut t, json!([["BE", ["A", "BE"]], [null, []]]));

    let none = Avro::Record(vec![some(Avro::Number(2)), Avro::Array(vec![])]);
    let mut t = TableBuilder::new(2, "1 e: string, 2 l: list<3 string>");
    let a = t.adopt("a.avro", &avro_file(fields, Codec::Null, &[none]), 1);
    t.commit(Commit::of([a]));
    refuses(&mut t, EIO, &["a.avro", "an enum has no symbol 2"]);
}

#[test]
fn rules_48_and_49_variants_and_geometries_in_avro_files() {
    let variant = |name: &str| {
        json!({"type": "record", "name": name, "logicalType": "variant", "fields": [
            {"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}]})
    };
    let fields = json!([
        {"name": "v", "field-id": 1, "type": ["null", variant("r1")]},
        {"name": "g", "field-id": 2, "type": ["null", "bytes"]},
        {"name": "vs", "field-id": 3, "type": {"type": "array", "items": variant("r4"), "element-id": 4}},
    ]);
    let value = |n: u8| Avro::Record(vec![Avro::Bytes(vec![1, 0, 0]), Avro::Bytes(vec![0x0c, n])]);
    let point = "0101000000000000000000f03f0000000000000040";
    let bytes = crate::builder::rows::unhex(point);
    let rows = [
        Avro::Record(vec![
            some(value(1)),
            some(Avro::Bytes(bytes)),
            Avro::Array(vec![value(2), value(3)]),
        ]),
        Avro::Record(vec![
            Avro::optional(None),
            Avro::optional(None),
            Avro::Array(vec![]),
        ]),
        Avro::Record(vec![
            some(value(4)),
            Avro::optional(None),
            Avro::Array(vec![value(5)]),
        ]),
    ];
    let file = avro_file(fields, Codec::Deflate, &rows);
    let mut t = TableBuilder::new(3, "1 v: variant, 2 g: geometry, 3 vs: list<4 variant>");
    let a = t.adopt("a.avro", &file, 3);
    t.commit(Commit::of([a.clone()]));
    let read = |n: u8| json!({"metadata": "010000", "value": format!("0c{n:02x}")});
    let expected = json!([
        [read(1), point, [read(2), read(3)], 0, 1],
        [null, null, [], 1, 1],
        [read(4), null, [read(5)], 2, 1]
    ]);
    shows(&mut t, expected.clone());
    for opened in Opened::every_way(&t.root()) {
        let text = opened.read("current/t.jsonl").unwrap();
        let first = String::from_utf8(text).unwrap();
        let first = first.lines().next().unwrap();
        assert!(
            first.starts_with(r#"{"v":1,"g":"POINT (1 2)","vs":[2,3],"#),
            "{first}"
        );
    }
    let gone = t.vector(&a, &[0]);
    t.commit(Commit::of([gone]));
    shows(&mut t, json!([expected[1], expected[2]]));
}

#[test]
fn rule_50_what_avro_has_and_iceberg_has_not_is_refused_by_name() {
    let one = || Avro::Number(1);
    let types = [
        (
            json!(["int", "string"]),
            Avro::Branch(0, Box::new(one())),
            "union",
        ),
        (
            json!(["null", "int", "long"]),
            Avro::Branch(1, Box::new(one())),
            "union",
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

#[test]
fn rule_50_an_avro_block_of_less_than_no_rows_is_an_error() {
    let (fields, rows) = nested_avro();
    let mut bytes = avro_file(fields, Codec::Null, &rows);
    let sync = bytes[bytes.len() - 16..].to_vec();
    // A block of -1 rows, in no bytes.
    bytes.extend([1, 0]);
    bytes.extend(sync);
    let mut t = TableBuilder::new(2, NESTED);
    let a = t.adopt("a.avro", &bytes, 3);
    t.commit(Commit::of([a]));
    refuses(&mut t, EIO, &["a.avro", "a block of less than no rows"]);
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

/// An uncompressed file with one piece of it, which it has once, changed.
fn changed_orc(from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = ORC_FILES[0].1.to_vec();
    let places: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    let [at] = places[..] else {
        panic!("{from:?} stands at {places:?}");
    };
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

#[test]
fn rule_50_what_orc_has_and_bergfs_or_iceberg_has_not_is_refused_by_name() {
    // The codec's number stands in the postscript, before the size of a block.
    let codec = |number| changed_orc(&[0x10, 0, 0x18, 0x80, 0x80], &[0x10, number, 0x18]);
    let cases = [
        (codec(3), "the codec LZO", 300),
        (codec(9), "the ORC codec 9", 300),
        (
            changed_orc(b"GMT", b"XET"),
            "a timestamp written in the unknown time zone \"XET\"",
            300,
        ),
        (
            include_bytes!("../fixtures/orc/union.orc").to_vec(),
            "a uniontype (field \"a\")",
            2,
        ),
    ];
    for (bytes, reason, rows) in cases {
        let mut t = TableBuilder::new(2, ORC);
        let a = t.adopt("a.orc", &bytes, rows);
        t.commit(Commit::of([a]));
        refuses(&mut t, ENOTSUP, &["a.orc", reason]);
    }
}

#[test]
fn rule_50_an_orc_struct_with_a_field_without_name_is_an_error() {
    // The name of the last field becomes one that the format does not know.
    let bytes = changed_orc(&[0x1A, 2, b's', b't'], &[0x42]);
    let mut t = TableBuilder::new(2, ORC);
    let a = t.adopt("a.orc", &bytes, 300);
    t.commit(Commit::of([a]));
    refuses(&mut t, EIO, &["a.orc", "more fields than names"]);
}

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

/// Files that the ORC project's Java writer made in other time zones (`Zones.java`), and what Iceberg Java reads in them:
/// the clock on the writer's wall, as far as it can be told.
#[test]
fn rule_50_orc_timestamps_show_the_wall_clock_of_their_writer() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/orc/zones");
    let expected = fs::read(directory.join("rows.json")).unwrap();
    let expected: BTreeMap<String, Vec<String>> = serde_json::from_slice(&expected).unwrap();
    assert_eq!(expected.len(), 11);
    for (name, times) in expected {
        let mut t = TableBuilder::new(2, "1 t: timestamp");
        let rows = i64::try_from(times.len()).unwrap();
        let a = t.adopt("a.orc", &fs::read(directory.join(&name)).unwrap(), rows);
        t.commit(Commit::of([a]));
        t.save();
        let times: Vec<_> = times.iter().map(|time| with_micros(time)).collect();
        for opened in Opened::every_way(&t.root()) {
            let text = opened.read("current/t.csv").unwrap();
            let text = std::str::from_utf8(&text).unwrap();
            let shown: Vec<_> = text.lines().skip(1).collect();
            assert_eq!(shown, times, "{name}");
        }
    }
}

/// A time as Java writes it, with the seconds and six digits behind the point that it leaves out where they are zero.
fn with_micros(time: &str) -> String {
    let (minutes, seconds) = time.split_at("0000-00-00T00:00".len());
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds = if seconds.is_empty() { ":00" } else { seconds };
    format!("{minutes}{seconds}.{fraction:0<6}")
}
