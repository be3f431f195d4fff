//! Text of the types that format version 3 brought: of built tables, and of tables of other writers, whose right values
//! are what Iceberg's Java library reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::{table, text};

/// The lines of a text of JSON lines.
fn lines(text: &str) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

#[test]
fn geometries_are_well_known_text() {
    let schema = "1 g: geometry, 2 h: geography, 3 n: list<4 geometry>";
    let point = "0101000000000000000000f03f0000000000000440";
    let line = "000000000200000002000000000000000000000000000000003ff00000000000004000000000000000";
    let stored = "1 g: binary, 2 h: binary, 3 n: list<4 binary>";
    let mut t = TableBuilder::new(3, schema);
    let rows = json!([[point, line, [point, null]], [null, null, null]]);
    let data = t.write(Data::rows(rows).schema(stored));
    t.commit(Commit::of([data]));
    t.save();
    for opened in Opened::every_way(&t.root()) {
        assert_eq!(
            text(&opened, "current/t.csv"),
            "g,h,n,_row_id,_last_updated_sequence_number\n\
             POINT (1 2.5),\"LINESTRING (0 0, 1 2)\",\"[\"\"POINT (1 2.5)\"\",null]\",0,1\n\
             ,,,1,1\n"
        );
        let rows = lines(&text(&opened, "current/t.jsonl"));
        assert_eq!(rows[0]["g"], json!("POINT (1 2.5)"));
        assert_eq!(rows[0]["n"], json!(["POINT (1 2.5)", null]));
        assert_eq!(rows[1]["g"], Value::Null);
    }
}

#[test]
fn a_broken_geometry_is_an_error_that_names_the_column() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 place: geometry");
    let rows = json!([[1, "0101000000000000000000f03f"]]);
    let data = t.write(Data::rows(rows).schema("1 id: long, 2 place: binary"));
    t.commit(Commit::of([data]));
    t.save();
    for opened in Opened::every_way(&t.root()) {
        assert_eq!(opened.read("current/t.csv"), Err(libc::EIO), "{opened}");
        let errors = opened.errors();
        let reason = "column place: well-known binary that ends too early";
        assert!(errors.contains(reason), "{errors}");
    }
}

#[test]
fn an_unknown_is_null() {
    let mut t = table(3, "1 id: long", json!([[1]]));
    t.evolve("1 id: long, 2 u: unknown");
    t.save();
    let opened = Opened::tree(&t.root());
    assert_eq!(
        text(&opened, "current/t.csv"),
        "id,u,_row_id,_last_updated_sequence_number\n1,,0,1\n"
    );
    assert_eq!(
        lines(&text(&opened, "current/t.jsonl"))[0]["u"],
        Value::Null
    );
}

/// Of one name, `a`, and of two, `a` and `b`.
const NAMES: [&[u8]; 2] = [b"\x01\x01\x00\x01a", b"\x01\x02\x00\x01\x02ab"];

/// Variants shredded as objects with a field `a` of int32: {a: 5}, {a: "x", b: true}, 7, and none.
fn shredded() -> Vec<u8> {
    let columns = "optional group v = 1 {
        required binary metadata;
        optional binary value;
        optional group typed_value {
            required group a { optional binary value; optional int32 typed_value; }
        }
    }";
    // {b: true}: an object of one field of number 1, whose value ends after a byte.
    let rest = vec![2, 1, 1, 0, 1, 4];
    let group = vec![
        Chunk::flat(
            Values::Bytes([NAMES[0], NAMES[1], NAMES[0]].map(<[u8]>::to_vec).to_vec()),
            &[1, 1, 1, 0],
        ),
        Chunk::flat(Values::Bytes(vec![rest, vec![0x0c, 7]]), &[1, 2, 2, 0]),
        Chunk::flat(Values::Bytes(vec![b"\x05x".to_vec()]), &[2, 3, 1, 0]),
        Chunk::flat(Values::Int32s(vec![5]), &[3, 2, 1, 0]),
    ];
    parquet_file(columns, &[group], |w| w)
}

#[test]
fn a_variant_is_the_json_of_its_value_shredded_or_not() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let a = t.adopt("a.parquet", &shredded(), 4);
    let plain = vec![
        Chunk::flat(Values::Bytes(vec![NAMES[0].to_vec(); 2]), &[1, 1]),
        // {a: "x"} and the variant null.
        Chunk::flat(
            Values::Bytes(vec![vec![2, 1, 0, 0, 2, 5, b'x'], vec![0]]),
            &[1, 1],
        ),
    ];
    let columns = "optional group v = 1 { required binary metadata; required binary value; }";
    let b = t.adopt("b.parquet", &parquet_file(columns, &[plain], |w| w), 2);
    t.commit(Commit::of([a, b]));
    t.save();
    for opened in Opened::every_way(&t.root()) {
        let rows = lines(&text(&opened, "current/t.jsonl"));
        let values: Vec<&Value> = rows.iter().map(|row| &row["v"]).collect();
        assert_eq!(
            json!(values),
            json!([{"a": 5}, {"a": "x", "b": true}, 7, null, {"a": "x"}, null])
        );
        let csv = text(&opened, "current/t.csv");
        let cells: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(
            cells,
            [
                "\"{\"\"a\"\":5}\",0,1",
                "\"{\"\"a\"\":\"\"x\"\",\"\"b\"\":true}\",1,1",
                "7,2,1",
                ",3,1",
                "\"{\"\"a\"\":\"\"x\"\"}\",4,1",
                "null,5,1",
            ]
        );
    }
}

#[test]
fn a_broken_variant_is_an_error_that_names_the_column() {
    let mut t = TableBuilder::new(3, "1 v: variant");
    let columns = "optional group v = 1 { required binary metadata; required binary value; }";
    let broken = vec![
        Chunk::flat(Values::Bytes(vec![NAMES[0].to_vec()]), &[1]),
        Chunk::flat(Values::Bytes(vec![vec![2, 1, 9, 0, 1, 0]]), &[1]),
    ];
    let a = t.adopt("a.parquet", &parquet_file(columns, &[broken], |w| w), 1);
    t.commit(Commit::of([a]));
    t.save();
    let opened = Opened::tree(&t.root());
    assert_eq!(opened.read("current/t.jsonl"), Err(libc::EIO));
    let errors = opened.errors();
    assert!(
        errors.contains("column v: a variant with a field"),
        "{errors}"
    );
}

/// A table of the corpus, where that is at hand: `BERGFS_CORPUS`, or beside the repository.
fn corpus(table: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let corpus = std::env::var_os("BERGFS_CORPUS").map_or_else(beside, PathBuf::from);
    let path = corpus.join(table);
    if !path.is_dir() {
        eprintln!(
            "SKIPPED: no table at {} (set BERGFS_CORPUS)",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// What Java reads of the current snapshot, and what bergfs writes, both by `id`.
fn both(table: &Path) -> BTreeMap<i64, (Value, Value)> {
    let java = std::fs::read(table.join("EXPECTED.java.json")).unwrap();
    let java: Value = serde_json::from_slice(&java).unwrap();
    let mut snapshots = java["snapshots"].as_array().unwrap().iter();
    let current = snapshots.find(|snapshot| snapshot["id"] == java["currentSnapshot"]);
    let expected = current.unwrap()["rows"].as_array().unwrap();
    let opened = Opened::tree(table);
    let listed = opened.list("current").unwrap();
    let name = listed
        .iter()
        .find(|name| name.ends_with(".parquet"))
        .unwrap();
    let name = name.trim_end_matches(".parquet");
    let ours = lines(&text(&opened, &format!("current/{name}.jsonl")));
    assert_eq!(ours.len(), expected.len());
    let find = |row: &Value| {
        let ours = ours.iter().find(|our| our["id"] == row["id"]).unwrap();
        (row["id"].as_i64().unwrap(), (row.clone(), ours.clone()))
    };
    expected.iter().map(find).collect()
}

/// Reads the text that Java's variants have: `Variant(type=INT32, value=34)`, `VariantArray([…])` and so on.
struct Java<'a>(&'a str);

impl<'a> Java<'a> {
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn until(&mut self, end: &str) -> &'a str {
        let (before, after) = self.0.split_once(end).unwrap();
        self.0 = after;
        before
    }

    fn value(&mut self) -> Value {
        if self.skip("Variant(metadata=") {
            self.until("}), value=");
            return self.value();
        }
        if self.skip("VariantArray([") {
            let mut elements = vec![];
            while !self.skip("])") {
                self.skip(", ");
                elements.push(self.value());
            }
            return Value::Array(elements);
        }
        if self.skip("VariantObject(fields={") {
            let mut fields = Map::new();
            while !self.skip("})") {
                self.skip(", ");
                let name = self.until(": ");
                fields.insert(name.to_owned(), self.value());
            }
            return Value::Object(fields);
        }
        assert!(self.skip("Variant(type="), "{}", self.0);
        let ty = self.until(", value=");
        let text = self.until(")");
        match ty {
            "NULL" | "BOOLEAN_TRUE" | "BOOLEAN_FALSE" | "INT8" | "INT16" | "INT32" | "INT64"
            | "FLOAT" | "DOUBLE" => serde_json::from_str(text).unwrap(),
            "BINARY" => json!(text.to_lowercase()),
            _ => json!(text),
        }
    }
}

#[test]
fn variants_of_other_writers_are_what_java_reads() {
    for table in ["iceberg-java-local/variant_type_a", "impala/trino_variant"] {
        let Some(path) = corpus(table) else { continue };
        for (id, (java, ours)) in both(&path) {
            let expected = match java["v"].as_str() {
                Some(text) => Java(text).value(),
                None => Value::Null,
            };
            assert_eq!(ours["v"], expected, "{table}, row {id}");
        }
    }
}

#[test]
fn geometries_and_unknowns_of_other_writers_are_what_java_reads() {
    if let Some(path) = corpus("iceberg-java-local/geometry_type_a") {
        let text = |ours: &Value| json!([ours["g"], ours["gg"]]);
        let rows: Vec<Value> = both(&path).values().map(|(_, ours)| text(ours)).collect();
        // The well-known binary that Java reads, written out by hand.
        let expected = json!([
            ["POINT (30 10)", "POINT (-73.9 40.7)"],
            [null, "POINT (0 0)"],
            ["POLYGON ((0 0, 1 0, 1 1, 0 0))", null]
        ]);
        assert_eq!(json!(rows), expected);
    }
    if let Some(path) = corpus("iceberg-java-local/unknown_type_a") {
        for (java, ours) in both(&path).values() {
            assert_eq!(ours, java);
        }
    }
}
