//! Rule 50: Avro types as other writers than Iceberg's use them (Avro specification, "Logical Types").

use libc::{EIO, ENOTSUP};
use serde_json::{Value, json};

use crate::builder::avro::{Avro, Codec, container};
use crate::builder::{Commit, TableBuilder};
use crate::{refuses, shows};

fn file(fields: Value, codec: Codec, rows: &[Avro]) -> Vec<u8> {
    let schema = json!({"type": "record", "name": "table", "fields": fields});
    container(&schema, &[], codec, rows)
}

/// A table of one file.
fn table(schema: &str, bytes: &[u8], rows: i64) -> TableBuilder {
    let mut t = TableBuilder::new(3, schema);
    let a = t.adopt("a.avro", bytes, rows);
    t.commit(Commit::of([a]));
    t
}

#[test]
fn rule_50_avro_times_of_every_unit_and_with_and_without_zone() {
    let time = |id: i32, ty: &str, logical: &str| json!({"name": format!("c{id}"), "field-id": id, "type": {"type": ty, "logicalType": logical}});
    let mut fields = vec![
        time(1, "int", "time-millis"),
        time(2, "long", "local-timestamp-millis"),
        time(3, "long", "local-timestamp-micros"),
        time(4, "long", "local-timestamp-nanos"),
        time(5, "long", "timestamp-millis"),
        time(6, "long", "timestamp-micros"),
        time(7, "long", "timestamp-nanos"),
    ];
    for field in &mut fields[4..] {
        field["type"]["adjust-to-utc"] = json!(true);
    }
    let row = Avro::Record(
        [1, -1, -2, -3, 1_709_208_000_001, -5, -1_000_000_001]
            .map(Avro::Number)
            .to_vec(),
    );
    let bytes = file(Value::Array(fields), Codec::Bzip2, &[row]);
    let schema = "1 a: time, 2 b: timestamp, 3 c: timestamp, 4 d: timestamp_ns, 5 e: timestamptz, 6 f: timestamptz, \
                  7 g: timestamptz_ns";
    // In the unit of the column.
    let shown = json!([
        1000,
        -1000,
        -2,
        -3,
        1_709_208_000_001_000i64,
        -5,
        -1_000_000_001,
        0,
        1
    ]);
    shows(&mut table(schema, &bytes, 1), json!([shown]));
}

#[test]
fn rule_50_avro_decimals_and_uuids_of_every_encoding() {
    let wide = json!({"type": "fixed", "name": "wide", "size": 20, "logicalType": "decimal", "precision": 9, "scale": 2});
    let uuid_text = json!({"type": "string", "logicalType": "uuid"});
    let bare = json!({"type": "fixed", "name": "bare", "size": 16});
    let fields = json!([
        {"name": "a", "field-id": 1, "type": wide},
        {"name": "b", "field-id": 2, "type": {"type": "bytes", "logicalType": "decimal", "precision": 18}},
        {"name": "c", "field-id": 3, "type": ["null", uuid_text]},
        {"name": "d", "field-id": 4, "type": bare},
    ]);
    let row = |unscaled: Vec<u8>| {
        let uuid = "F79C3E09-677c-4bbd-a479-3f349cb785e7";
        let optional = Avro::optional(Some(Avro::text(uuid)));
        Avro::Record(vec![
            Avro::Fixed(unscaled),
            Avro::Bytes(vec![0xff, 0x00]),
            optional,
            Avro::Fixed((0..16).collect()),
        ])
    };
    let schema = "1 a: decimal(11,2), 2 b: decimal(18,0), 3 c: uuid, 4 d: uuid";
    let mut minus_one = vec![0xff; 20];
    let bytes = file(fields.clone(), Codec::Null, &[row(minus_one.clone())]);
    let rest = json!([
        "-256",
        "f79c3e09677c4bbda4793f349cb785e7",
        "000102030405060708090a0b0c0d0e0f",
        0,
        1
    ]);
    let mut shown = vec![json!("-0.01")];
    shown.extend(rest.as_array().unwrap().iter().cloned());
    shows(&mut table(schema, &bytes, 1), json!([shown]));

    // More digits than the type has.
    minus_one[0] = 0;
    let bytes = file(fields, Codec::Null, &[row(minus_one)]);
    refuses(
        &mut table(schema, &bytes, 1),
        EIO,
        &["a.avro", "a decimal with more digits than its type"],
    );
}

#[test]
fn rule_50_avro_arrays_as_maps_have_keys_of_any_type() {
    let key = json!({"type": "record", "name": "key", "fields": [
        {"name": "x", "field-id": 10, "type": "int"},
        {"name": "y", "field-id": 11, "type": ["null", "string"]},
    ]});
    let pair = |key: Value| {
        json!({"type": "record", "name": "k2_v3", "fields": [
            {"name": "key", "field-id": 2, "type": key},
            {"name": "value", "field-id": 3, "type": ["null", "long"]},
        ]})
    };
    let map = |items: Value| json!([{"name": "m", "field-id": 1, "type": {"type": "array", "logicalType": "map", "items": items}}]);
    let entry = |x: i64, y: Option<&str>, value: Option<i64>| {
        Avro::Record(vec![
            Avro::Record(vec![Avro::Number(x), Avro::optional(y.map(Avro::text))]),
            Avro::optional(value.map(Avro::Number)),
        ])
    };
    let rows = [
        Avro::Record(vec![Avro::Array(vec![
            entry(1, Some("a"), Some(5)),
            entry(2, None, None),
        ])]),
        Avro::Record(vec![Avro::Array(vec![])]),
    ];
    let bytes = file(map(pair(key)), Codec::Deflate, &rows);
    let schema = "1 m: map<2 struct<10 x: int, 11 y: string>, 3 long>";
    let shown = json!([[[{"x": 1, "y": "a"}, 5], [{"x": 2, "y": null}, null]], 0, 1]);
    shows(&mut table(schema, &bytes, 2), json!([shown, [[], 1, 1]]));

    let numbers = [Avro::Record(vec![Avro::Array(vec![Avro::Number(1)])])];
    let bytes = file(map(json!("int")), Codec::Null, &numbers);
    refuses(
        &mut table("1 m: map<2 int, 3 long>", &bytes, 1),
        EIO,
        &["a.avro", "a map whose entries are not pairs"],
    );
}

#[test]
fn rule_50_avro_unions_of_one_type_and_fields_of_null_are_read() {
    let fields = json!([
        {"name": "a", "field-id": 1, "type": ["int"]},
        {"name": "b", "field-id": 2, "type": "null"},
        {"name": "c", "field-id": 3, "type": [{"type": "array", "items": ["string", "null"], "element-id": 4}, "null"]},
    ]);
    let some = |value| Avro::Branch(0, Box::new(value));
    let none = || Avro::Branch(1, Box::new(Avro::Null));
    let rows = [
        Avro::Record(vec![
            some(Avro::Number(7)),
            Avro::Null,
            some(Avro::Array(vec![some(Avro::text("x")), none()])),
        ]),
        Avro::Record(vec![some(Avro::Number(8)), Avro::Null, none()]),
    ];
    let bytes = file(fields, Codec::Snappy, &rows);
    let schema = "1 a: int, 2 b: string, 3 c: list<4 string>";
    shows(
        &mut table(schema, &bytes, 2),
        json!([[7, null, ["x", null], 0, 1], [8, null, null, 1, 1]]),
    );
}

#[test]
fn rule_50_avro_records_that_hold_themselves_are_refused_by_name() {
    let list = json!({"type": "record", "name": "list", "namespace": "n", "fields": [
        {"name": "head", "type": "int"},
        {"name": "tail", "type": ["null", "list"]},
    ]});
    let fields = json!([{"name": "id", "field-id": 1, "type": "int"}, {"name": "l", "type": list}]);
    let inner = Avro::Record(vec![Avro::Number(1), Avro::optional(None)]);
    let bytes = file(
        fields,
        Codec::Null,
        &[Avro::Record(vec![Avro::Number(1), inner])],
    );
    refuses(
        &mut table("1 id: int", &bytes, 1),
        ENOTSUP,
        &["a.avro", "an Avro record that holds itself (\"list\")"],
    );
}

#[test]
fn rule_50_avro_codecs_that_nobody_knows_are_refused_by_name() {
    let fields = json!([{"name": "id", "field-id": 1, "type": "int"}]);
    let bytes = file(
        fields,
        Codec::Snappy,
        &[Avro::Record(vec![Avro::Number(1)])],
    );
    let at = bytes.windows(6).position(|w| w == b"snappy").unwrap();
    let mut other = bytes.clone();
    other[at..at + 6].copy_from_slice(b"brotli");
    refuses(
        &mut table("1 id: int", &other, 1),
        ENOTSUP,
        &["a.avro", "Avro codec \"brotli\""],
    );
}
