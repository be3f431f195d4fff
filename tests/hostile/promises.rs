//! Files that contradict themselves: lengths, counts and nestings that nothing backs.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use libc::ENOTSUP;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use serde_json::{Value, json};

use crate::builder::avro::{Avro, Codec, container};
use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::{ROWS, Shown, Victim, WHOLE, guarded, name, noise, refused, show, victim};

/// A view of a table whose newest manifest list or manifest is this.
#[track_caller]
fn with_bytes(file: impl Fn(&Victim) -> PathBuf, bytes: &[u8], case: &str) {
    let v = victim(Codec::Null);
    let file = file(&v);
    refused(&v.with(&file, bytes, WHOLE, case), name(&file), case);
}

#[test]
fn avro_that_promises_more_than_it_holds() {
    let long = |value: i64| {
        let mut out = vec![];
        let mut rest = ((value << 1) ^ (value >> 63)) as u64;
        while rest >= 0x80 {
            out.push((rest as u8) | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
        out
    };
    let schema = json!({"type": "record", "name": "manifest_file", "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "added_snapshot_id", "type": "long", "field-id": 503}]});
    let header = container(&schema, &[], Codec::Null, &[]);
    let sync = &header[header.len() - 16..].to_vec();
    let list = |v: &Victim| v.list.clone();
    for huge in [i64::MAX, 1 << 40, 1 << 31, -1, i64::MIN + 1] {
        for (count, size, body) in [
            (huge, 4, vec![0; 4]),
            (1, huge, vec![0; 4]),
            (1, 12, long(huge)),
        ] {
            let block = [&header[..], &long(count), &long(size), &body, sync].concat();
            with_bytes(
                list,
                &block,
                &format!("a block of {count} records in {size} bytes, {body:?}"),
            );
        }
        let metadata = [&b"Obj\x01"[..], &long(huge), &long(4), b"avro"].concat();
        with_bytes(list, &metadata, &format!("{huge} metadata pairs"));
    }
    // Records of no bytes at all: any number of them fits.
    let empty = json!({"type": "record", "name": "manifest_file", "fields": []});
    let header = container(&empty, &[], Codec::Null, &[]);
    let block = [
        &header[..],
        &long(1 << 40),
        &long(0),
        &header[header.len() - 16..],
    ]
    .concat();
    with_bytes(list, &block, "a million million empty records");
}

#[test]
fn avro_schemas_that_nest_without_end() {
    let open = |depth| {
        format!(r#"{{"type": "record", "name": "r{depth}", "fields": [{{"name": "f", "type": "#)
    };
    let records = format!(
        "{}\"long\"{}",
        (0..2_000).map(open).collect::<String>(),
        "}]}".repeat(2_000)
    );
    let itself =
        r#"{"type": "record", "name": "r", "fields": [{"name": "f", "type": "r"}]}"#.to_owned();
    let arrays = format!(
        "{}\"long\"{}",
        r#"{"type": "array", "items": "#.repeat(5_000),
        "}".repeat(5_000)
    );
    for (case, schema) in [
        ("records", records),
        ("itself", itself),
        ("arrays", arrays),
        ("null", "null".to_owned()),
    ] {
        let pairs = [("avro.schema", schema.as_str()), ("avro.codec", "null")];
        let mut bytes = b"Obj\x01\x04".to_vec();
        for part in pairs.into_iter().flat_map(|(k, v)| [k, v]) {
            let mut len = (part.len() as u64) << 1;
            while len >= 0x80 {
                bytes.push((len as u8) | 0x80);
                len >>= 7;
            }
            bytes.push(len as u8);
            bytes.extend(part.as_bytes());
        }
        bytes.push(0);
        bytes.extend([7; 16]);
        bytes.extend([2, 2, 0]);
        bytes.extend([7; 16]);
        with_bytes(|v| v.list.clone(), &bytes, case);
    }
    // The hand-written encoder agrees with what is written here.
    assert!(container(&json!("null"), &[], Codec::Null, &[Avro::Null]).starts_with(b"Obj\x01\x04"));
}

#[test]
fn metadata_that_is_json_and_no_table() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let v = victim(Codec::Null);
    for text in [
        "",
        "null",
        "[]",
        "{}",
        "{\"format-version\": 2}",
        "\u{feff}{}",
        deep.as_str(),
    ] {
        let case = format!("metadata {:.40}", text);
        refused(
            &v.with(&v.metadata, text.as_bytes(), WHOLE, &case),
            "v1.metadata.json",
            &case,
        );
    }
}

/// A saved victim whose metadata is changed.
#[track_caller]
fn with_metadata(case: &str, change: impl FnOnce(&mut Value)) -> Shown {
    let mut v = victim(Codec::Null);
    v.t.save_with(change);
    let root = v.t.root();
    guarded(case, move || show(&root, WHOLE))
}

#[test]
fn schemas_that_are_huge_or_contradict_themselves() {
    let nested = |depth: usize, list: bool| {
        let mut ty = json!("long");
        for id in 0..depth {
            ty = if list {
                json!({"type": "list", "element-id": id + 100, "element": ty, "element-required": false})
            } else {
                json!({"type": "struct", "fields": [{"id": id + 100, "name": "f", "required": false, "type": ty}]})
            };
        }
        ty
    };
    for list in [false, true] {
        let shown = with_metadata("a deep schema", |m| {
            m["schemas"][0]["fields"][0]["type"] = nested(60, list)
        });
        refused(&shown, "", "a deep schema");
    }
    let shown = with_metadata("one id twice", |m| {
        m["schemas"][0]["fields"][1]["id"] = json!(1)
    });
    refused(&shown, "v2.metadata.json", "one id twice");
    let shown = with_metadata("no current schema", |m| m["current-schema-id"] = json!(77));
    refused(&shown, "v2.metadata.json", "no current schema");
    with_metadata("one name twice", |m| {
        m["schemas"][0]["fields"][1]["name"] = json!("id")
    });
    with_metadata("many columns", |m| {
        let fields = m["schemas"][0]["fields"].as_array_mut().unwrap();
        fields.extend((0..5_000).map(
            |i| json!({"id": 1000 + i, "name": format!("c{i}"), "required": false, "type": "long"}),
        ));
    });
    for ty in [
        "decimal(39,2)",
        "decimal(5,9)",
        "fixed[99999999999]",
        "fixed[4294967295]",
        "fixed[0]",
        "nonsense",
        "decimal(",
        "fixed[-1]",
    ] {
        let shown = with_metadata(ty, |m| {
            let fields = m["schemas"][0]["fields"].as_array_mut().unwrap();
            fields.push(json!({"id": 1000, "name": "odd", "required": false, "type": ty}));
        });
        assert!(!matches!(shown, Shown::Unreadable), "{ty}: {shown:?}");
    }
}

#[test]
fn a_branch_of_a_snapshot_that_is_not_there() {
    let mut v = victim(Codec::Null);
    v.t.refs.insert(
        "lost".to_owned(),
        json!({"snapshot-id": 4711, "type": "branch"}),
    );
    v.t.save();
    let opened = Opened::tree(&v.t.root());
    assert!(opened.read("branches/lost/t.parquet").is_err());
    assert_eq!(
        opened.table(WHOLE).map(|t| t.rows.len()),
        Ok(ROWS),
        "{}",
        opened.errors()
    );
}

#[test]
fn parquet_footers_that_promise_more_than_there_is() {
    let v = victim(Codec::Null);
    for entry in [&v.first, &v.positions, &v.equality] {
        let file = v.t.local(&entry.path);
        let bytes = fs::read(&file).unwrap();
        for len in [
            0u32,
            1,
            u32::MAX,
            i32::MAX as u32,
            bytes.len() as u32,
            bytes.len() as u32 - 8,
        ] {
            let mut broken = bytes.clone();
            let at = bytes.len() - 8;
            broken[at..at + 4].copy_from_slice(&len.to_le_bytes());
            let case = format!("{}: a footer of {len} bytes", name(&file));
            refused(&v.with(&file, &broken, WHOLE, &case), name(&file), &case);
        }
        // Thrift lists of two thousand million entries, wherever the footer's bytes read so.
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap())
            as usize;
        let start = bytes.len() - 8 - footer;
        for seed in 0..80 {
            let mut broken = bytes.clone();
            let at = start + noise(seed) % (footer - 6);
            broken[at..at + 6].copy_from_slice(&[0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]);
            let case = format!("{}: a huge list at {at}", name(&file));
            v.with(&file, &broken, WHOLE, &case);
        }
    }
}

#[test]
fn a_record_count_that_is_not_the_files_is_an_error() {
    for count in [0, 29, 31, -1, i64::MAX] {
        let mut t = TableBuilder::new(2, "1 id: long");
        let a = t
            .data((0..30).map(|i| json!([i])).collect())
            .with(|e| e.record_count = count);
        t.commit(Commit::of([a.clone()]).change_manifests(|ms| ms[0].counts = None));
        t.save();
        let root = t.root();
        let case = format!("{count} records");
        let shown = guarded(&case, move || show(&root, WHOLE));
        refused(&shown, "", &case);
    }
}

/// The bytes of a Parquet file whose footer says that each row group, and each of its columns, has so many rows.
fn with_row_groups_of(rows: i64, bytes: &[u8]) -> Vec<u8> {
    let mut reader = ParquetMetaDataReader::new();
    reader.try_parse(&Bytes::from(bytes.to_vec())).unwrap();
    let metadata = reader.finish().unwrap();
    let groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(|column| {
            let column = column.clone().into_builder().set_num_values(rows);
            column.build().unwrap()
        });
        let group = group.clone().into_builder().set_num_rows(rows);
        let group = group.set_column_metadata(columns.collect());
        group.build().unwrap()
    });
    let file = metadata.file_metadata();
    let file = FileMetaData::new(
        file.version(),
        rows,
        None,
        None,
        file.schema_descr_ptr(),
        None,
    );
    let lies = ParquetMetaData::new(file, groups.collect());
    let mut out = bytes.to_vec();
    ParquetMetaDataWriter::new(&mut out, &lies)
        .finish()
        .unwrap();
    out
}

#[test]
fn a_row_group_that_claims_very_many_rows_takes_no_time_or_memory_for_them() {
    for (version, deleted) in [(2, false), (2, true), (3, false), (3, true)] {
        for rows in [1 << 31, 1 << 40, 1 << 62] {
            let mut t = TableBuilder::new(version, "1 id: long, 2 s: string");
            let sound = t.data((0..30).map(|i| json!([i, "a"])).collect());
            let sound = fs::read(t.local(&sound.path)).unwrap();
            let lies = with_row_groups_of(rows, &sound);
            let a = t.adopt("a.parquet", &lies, rows);
            t.commit(Commit::of([a.clone()]));
            if deleted {
                let d = t.position_deletes(&[(&a.path, 1), (&a.path, 20)]);
                t.commit(Commit::of([d]));
            }
            t.save();
            let root = t.root();
            let case = format!("version {version}, {rows} rows, deletes: {deleted}");
            guarded(&case, move || {
                let opened = Opened::tree(&root);
                for name in [WHOLE, "current/t.csv", "current/t.jsonl"] {
                    assert_eq!(opened.read(name), Err(ENOTSUP), "{}", opened.errors());
                }
                assert!(opened.errors().contains("a.parquet: a row group of"));
            });
        }
    }
}

#[test]
fn a_position_past_the_end_of_its_file_is_no_row_lost() {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    let d = t.position_deletes(&[(&a.path, 0), (&a.path, 2), (&a.path, i64::MAX)]);
    t.commit(Commit::of([a, d]));
    t.save();
    let root = t.root();
    match guarded("positions past the end", move || show(&root, WHOLE)) {
        Shown::Rows(rows) => assert_eq!(rows, 1),
        other => refused(&other, "", "positions past the end"),
    }
}
