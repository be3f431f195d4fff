//! Rules 48 and 49: variants, geometries and geographies.

use bytes::Bytes;
use libc::ENOTSUP;
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
