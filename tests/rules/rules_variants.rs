//! Rules 48 and 49: variants, geometries and geographies.

use bytes::Bytes;
use libc::{EIO, ENOTSUP};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::printer::print_schema;
use serde_json::json;

use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::{refuses, shows};

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

/// Variants shredded as objects with one field of int32, `a` say: {a: 5}, {a: "x"} and 7, behind a row group of none.
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
    let none = |values| Chunk::flat(values, &[]);
    let empty = vec![
        none(Values::Bytes(vec![])),
        none(Values::Bytes(vec![])),
        none(Values::Bytes(vec![])),
        none(Values::Int32s(vec![])),
    ];
    parquet_file(&columns, &[empty, group], |w| w)
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

/// Variants shredded as int32: 5, null and "x".
fn shredded_numbers() -> Vec<u8> {
    let columns = "optional group v = 1 {
        required binary metadata; optional binary value; optional int32 typed_value; }";
    let group = vec![
        Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]; 2]), &[1, 0, 1]),
        Chunk::flat(Values::Bytes(vec![b"\x05x".to_vec()]), &[1, 0, 2]),
        Chunk::flat(Values::Int32s(vec![5]), &[2, 0, 1]),
    ];
    parquet_file(columns, &[group], |w| w)
}

#[test]
fn rule_48_a_shredded_variant_is_kept() {
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
}

#[test]
fn rule_48_a_variant_shredded_as_numbers_is_kept_beside_a_plain_one() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &shredded_numbers(), 3);
    let b = t.adopt("b.parquet", &plain_variants(), 3);
    t.commit(Commit::of([a.clone(), b]));
    let d = t.vector(&a, &[0]);
    t.commit(Commit::of([d]));
    t.save();
    let value = |value: &str| json!({"metadata": "010000", "value": value, "typed_value": null});
    let merged = Opened::tree(&t.root()).rows("current/t.parquet").unwrap();
    assert_eq!(
        merged,
        json!([
            [null, 1, 1],
            [value("0578"), 2, 1],
            [value("0c01"), 3, 1],
            [null, 4, 1],
            [value("0c02"), 5, 1]
        ])
    );
}

/// Readers may take what has no `typed_value` for no object where others have one (`VariantShredding.md`, "Objects").
#[test]
fn rule_48_a_variant_shredded_as_objects_is_put_together_beside_a_plain_one() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &shredded_variants("a"), 3);
    let b = t.adopt("b.parquet", &plain_variants(), 3);
    t.commit(Commit::of([a.clone(), b]));
    let d = t.vector(&a, &[0]);
    t.commit(Commit::of([d]));
    t.save();
    let merged = Opened::tree(&t.root()).rows("current/t.parquet").unwrap();
    assert_eq!(
        merged,
        json!([
            [plain("0101000161", "02010000020578"), 1, 1],
            [plain("0101000161", "0c07"), 2, 1],
            [plain("010000", "0c01"), 3, 1],
            [null, 4, 1],
            [plain("010000", "0c02"), 5, 1]
        ])
    );
}

/// A row's variant as a merged file has it: plain.
fn plain(metadata: &str, value: &str) -> serde_json::Value {
    json!({"metadata": metadata, "value": value})
}

#[test]
fn rule_48_variants_shredded_in_different_ways_are_one_plain_column() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &shredded_variants("a"), 3);
    let b = t.adopt("b.parquet", &shredded_variants("b"), 3);
    let c = t.adopt("c.parquet", &plain_variants(), 3);
    t.commit(Commit::of([a.clone(), b.clone(), c]));
    let [gone, late] = [t.vector(&a, &[0]), t.vector(&b, &[1])];
    t.commit(Commit::of([gone, late]));
    t.save();
    // {a: "x"}: an object of one field, of the name 0, whose value takes bytes 0 to 2. {b: 5}: an int32 of 5 bytes.
    let before = json!([
        [plain("0101000161", "02010000051405000000"), 0, 1],
        [plain("0101000161", "02010000020578"), 1, 1],
        [plain("0101000161", "0c07"), 2, 1],
        [plain("0101000162", "02010000051405000000"), 3, 1],
        [plain("0101000162", "02010000020578"), 4, 1],
        [plain("0101000162", "0c07"), 5, 1],
        [plain("010000", "0c01"), 6, 1],
        [null, 7, 1],
        [plain("010000", "0c02"), 8, 1]
    ]);
    for opened in Opened::every_way(&t.root()) {
        let rows = |view: &str| opened.rows(&format!("{view}/t.parquet")).unwrap();
        assert_eq!(rows("snapshots/1001"), before, "{opened}");
        let mut left = before.as_array().unwrap().clone();
        left.remove(4);
        left.remove(0);
        assert_eq!(rows("current"), json!(left), "{opened}");
    }
    // Whichever is made first: the part as it is stored, or the whole with what was put together.
    let opened = Opened::tree(&t.root());
    let part = opened.rows("current/parts/a.parquet").unwrap();
    let shredded = json!({"metadata": "0101000161", "value": "0c07", "typed_value": null});
    assert_eq!(part[1][0], shredded);
    let whole = opened.rows("current/t.parquet").unwrap();
    assert_eq!(whole[0], before[1]);
    assert_eq!(whole[1], before[2]);
    assert_eq!(opened.rows("current/parts/a.parquet").unwrap(), part);
    // A part of its own stays shredded.
    let part = Opened::tree(&t.root()).rows("snapshots/1001/parts/a.parquet");
    let first = &part.unwrap()[0][0];
    assert_eq!(first["typed_value"]["a"]["typed_value"], json!(5));
}

/// Strings in a struct in a list and in a map, shredded as the variant's type `ty`; the other columns are plain.
///
/// Rows: li = [{v: 1}, null, {v: null}], mp = {k: 2}; both empty; both null.
fn nested_variants(ty: &str, values: Values, metadata: &str) -> Vec<u8> {
    let variant = format!(
        "{{ required binary metadata; optional binary value; optional {ty} typed_value; }}"
    );
    let columns = format!(
        "optional group li (LIST) = 1 {{ repeated group list {{
            optional group element = 2 {{ optional int32 n = 3; optional group v = 4 {variant} }}
        }} }}
        optional group mp (MAP) = 5 {{ repeated group key_value {{
            required binary key = 6; optional group value = 7 {variant}
        }} }}
        optional int32 other = 8;"
    );
    let names = || Values::Bytes(vec![metadata.as_bytes().to_vec()]);
    let none = || Values::Bytes(vec![]);
    let (def, rep) = ([4i16, 2, 3, 1, 0], [0i16, 1, 1, 0, 0]);
    let typed = [5i16, 2, 3, 1, 0];
    let group = vec![
        Chunk::nested(Values::Int32s(vec![1, 3]), &[4, 2, 4, 1, 0], &rep),
        Chunk::nested(names(), &def, &rep),
        Chunk::nested(none(), &def, &rep),
        Chunk::nested(values.clone(), &typed, &rep),
        Chunk::nested(Values::Bytes(vec![b"k".to_vec()]), &[2, 1, 0], &[0, 0, 0]),
        Chunk::nested(names(), &[3, 1, 0], &[0, 0, 0]),
        Chunk::nested(none(), &[3, 1, 0], &[0, 0, 0]),
        Chunk::nested(values, &[4, 1, 0], &[0, 0, 0]),
        Chunk::flat(Values::Int32s(vec![10, 12]), &[1, 0, 1]),
    ];
    parquet_file(&columns, &[group.clone(), group], |w| w)
}

#[test]
fn rule_48_shredded_variants_in_lists_and_maps_become_plain_beside_columns_left_alone() {
    let schema = "1 li: list<2 struct<3 n: int, 4 v: variant>>, 5 mp: map<6 string, 7 variant>, 8 other: int";
    let mut t = TableBuilder::new(3, schema);
    let longs = nested_variants("int64", Values::Int64s(vec![-1]), "\u{1}\0\0");
    let ints = nested_variants("int32", Values::Int32s(vec![3]), "\u{1}\0\0");
    let a = t.adopt("a.parquet", &longs, 6);
    let b = t.adopt("b.parquet", &ints, 6);
    t.commit(Commit::of([a.clone(), b]));
    let gone = t.vector(&a, &[1, 3, 5]);
    t.commit(Commit::of([gone]));
    t.save();
    let full = |value: &str| {
        let variant = plain("010000", value);
        let list = json!([{"n": 1, "v": variant}, null, {"n": 3, "v": null}]);
        json!([list, [["k", variant]], 10])
    };
    let (empty, null) = (json!([[], [], null]), json!([null, null, 12]));
    let (long, int) = (full("18ffffffffffffffff"), full("1403000000"));
    let rows = [
        (&long, 0),
        (&null, 2),
        (&empty, 4),
        (&int, 6),
        (&empty, 7),
        (&null, 8),
        (&int, 9),
        (&empty, 10),
        (&null, 11),
    ];
    let rows = rows.map(|(row, id)| {
        let mut row = row.as_array().unwrap().clone();
        row.extend([json!(id), json!(1)]);
        json!(row)
    });
    for opened in Opened::every_way(&t.root()) {
        let read = opened.rows("current/t.parquet").unwrap();
        assert_eq!(read, json!(rows), "{opened}");
    }
}

#[test]
fn rule_48_a_value_that_contradicts_its_shredding_is_an_error() {
    // `a` is shredded and among the others too.
    let columns = "optional group v = 1 { required binary metadata; optional binary value;
        optional group typed_value { required group a { optional binary value; optional int32 typed_value; } } }";
    let group = vec![
        Chunk::flat(Values::Bytes(vec![b"\x01\x01\x00\x01a".to_vec()]), &[1]),
        Chunk::flat(Values::Bytes(vec![vec![2, 1, 0, 0, 1, 0]]), &[2]),
        Chunk::flat(Values::Bytes(vec![]), &[2]),
        Chunk::flat(Values::Int32s(vec![5]), &[3]),
    ];
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &parquet_file(columns, &[group], |w| w), 1);
    let b = t.adopt("b.parquet", &shredded_variants("b"), 3);
    t.commit(Commit::of([a, b]));
    refuses(
        &mut t,
        EIO,
        &["a.parquet", "two fields \"a\" in one object"],
    );
}

#[test]
fn rule_48_a_variant_shredded_as_a_type_that_variants_lack_is_refused_by_name() {
    let columns = "optional group v = 1 { required binary metadata; optional binary value;
        optional int32 typed_value (INTEGER(16, false)); }";
    let group = vec![
        Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]]), &[1]),
        Chunk::flat(Values::Bytes(vec![]), &[1]),
        Chunk::flat(Values::Int32s(vec![5]), &[2]),
    ];
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &parquet_file(columns, &[group], |w| w), 1);
    let b = t.adopt("b.parquet", &shredded_variants("b"), 3);
    t.commit(Commit::of([a, b]));
    refuses(
        &mut t,
        ENOTSUP,
        &["a.parquet", "a variant shredded as UInt16"],
    );
}

#[test]
fn rule_48_a_required_variant_is_absent_with_its_struct() {
    let shredded = |ty: &str| {
        format!(
            "optional group s = 1 {{ required group v = 2 {{
                required binary metadata; optional binary value; optional {ty} typed_value; }} }}"
        )
    };
    // {v: 5}, null, {v: 6}.
    let file = |ty: &str, values: Values| {
        let group = vec![
            Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]; 2]), &[1, 0, 1]),
            Chunk::flat(Values::Bytes(vec![]), &[1, 0, 1]),
            Chunk::flat(values, &[2, 0, 2]),
        ];
        parquet_file(&shredded(ty), &[group], |w| w)
    };
    let mut t = TableBuilder::new(3, "1 s: struct<2 v: required variant>");
    let a = t.adopt("a.parquet", &file("int32", Values::Int32s(vec![5, 6])), 3);
    let b = t.adopt("b.parquet", &file("int64", Values::Int64s(vec![5, 6])), 3);
    t.commit(Commit::of([a.clone(), b]));
    let gone = t.vector(&a, &[0]);
    t.commit(Commit::of([gone]));
    t.save();
    let row = |value: &str| json!({"v": plain("010000", value)});
    for opened in Opened::every_way(&t.root()) {
        let rows = opened.rows("current/t.parquet");
        let rows = rows.unwrap_or_else(|_| panic!("{opened}: {}", opened.errors()));
        let expected = json!([
            [null, 1, 1],
            [row("1406000000"), 2, 1],
            [row("180500000000000000"), 3, 1],
            [null, 4, 1],
            [row("180600000000000000"), 5, 1]
        ]);
        assert_eq!(rows, expected, "{opened}");
    }
}

#[test]
fn rule_48_only_variants_that_are_shredded_differently_are_put_together() {
    let shredded = |name: &str, id: i32, ty: &str| {
        format!(
            "optional group {name} = {id} {{
                required binary metadata; optional binary value; optional {ty} typed_value; }}"
        )
    };
    // v = 5, null, 6; w = "k", null, "l"; s = {v: 5, w: "k"}, null, {v: 6, w: "l"}.
    let file = |ty: &str, values: Values| {
        let columns = format!(
            "{} {} optional group s = 3 {{ {} {} }}",
            shredded("v", 1, ty),
            shredded("w", 2, "binary"),
            shredded("v", 4, ty),
            shredded("w", 5, "binary")
        );
        let variant = |values: Values, def: i16| {
            [
                Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]; 2]), &[def, 0, def]),
                Chunk::flat(Values::Bytes(vec![]), &[def, 0, def]),
                Chunk::flat(values, &[def + 1, 0, def + 1]),
            ]
        };
        let texts = || Values::Bytes(vec![b"k".to_vec(), b"l".to_vec()]);
        let group = [
            variant(values.clone(), 1),
            variant(texts(), 1),
            variant(values, 2),
            variant(texts(), 2),
        ];
        parquet_file(&columns, &[group.concat()], |w| w)
    };
    let schema = "1 v: variant, 2 w: variant, 3 s: struct<4 v: variant, 5 w: variant>";
    let mut t = TableBuilder::new(3, schema);
    let a = t.adopt("a.parquet", &file("int32", Values::Int32s(vec![5, 6])), 3);
    let b = t.adopt("b.parquet", &file("int64", Values::Int64s(vec![5, 6])), 3);
    t.commit(Commit::of([a.clone(), b]));
    let gone = t.vector(&a, &[0]);
    t.commit(Commit::of([gone]));
    t.save();
    let row = |number: &str, text: &str, id: i64| {
        let v = plain("010000", number);
        let w = json!({"metadata": "010000", "value": null, "typed_value": text});
        json!([v, w, {"v": v, "w": w}, id, 1])
    };
    for opened in Opened::every_way(&t.root()) {
        let rows = opened.rows("current/t.parquet").unwrap();
        let expected = json!([
            [null, null, null, 1, 1],
            row("1406000000", "6c", 2),
            row("180500000000000000", "6b", 3),
            [null, null, null, 4, 1],
            row("180600000000000000", "6c", 5)
        ]);
        assert_eq!(rows, expected, "{opened}");
    }
}
