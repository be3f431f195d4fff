//! Views as text: CSV and JSON lines of built tables, through the tree and through a real mount. The command-line tools
//! that read them are in `tests/bats/text.bats`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "builder/mod.rs"]
mod builder;
#[path = "text/v3.rs"]
mod v3;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use builder::open::Opened;
use builder::{Commit, Data, TableBuilder};
use parquet::basic::Compression;
use serde_json::{Value, json};

/// Of the crate: rows of a strip.
const STRIP_ROWS: usize = 8 * 1024;

fn text(opened: &Opened, path: &str) -> String {
    let bytes = opened
        .read(path)
        .unwrap_or_else(|errno| panic!("{path}: errno {errno}\n{}", opened.errors()));
    String::from_utf8(bytes).unwrap()
}

/// A table of one commit of these rows.
fn table(version: i64, schema: &str, rows: Value) -> TableBuilder {
    let mut table = TableBuilder::new(version.try_into().unwrap(), schema);
    let data = table.data(rows);
    table.commit(Commit::of([data]));
    table.save();
    table
}

/// A table of `rows` numbered rows, as two files of several row groups; and its CSV.
fn numbered(rows: usize) -> (TableBuilder, String) {
    let mut table = TableBuilder::new(2, "1 id: long, 2 name: string, 3 half: double");
    let row = |i: usize| {
        json!([
            i,
            if i.is_multiple_of(3) {
                Value::Null
            } else {
                json!(format!("n{i}"))
            },
            i as f64 / 2.0
        ])
    };
    let half = rows / 2;
    let files = [0..half, half..rows].map(|range| {
        let rows = Value::Array(range.map(row).collect());
        table.data(rows)
    });
    table.commit(Commit::of(files));
    table.save();
    let mut csv = "id,name,half\n".to_owned();
    for i in 0..rows {
        let name = if i.is_multiple_of(3) {
            String::new()
        } else {
            format!("n{i}")
        };
        csv.push_str(&format!("{i},{name},{:?}\n", i as f64 / 2.0));
    }
    (table, csv)
}

fn mounted(table: &TableBuilder, options: &[&str]) -> Option<Opened> {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("SKIPPED: no /dev/fuse on this machine, nothing was tested");
        return None;
    }
    let opened = Opened::mount(&table.root(), options);
    assert!(opened.mountpoint().is_some(), "{}", opened.errors());
    Some(opened)
}

#[test]
fn every_primitive_type_has_its_text() {
    let schema = "1 b: boolean, 2 i: int, 3 l: long, 4 f: float, 5 d: double, 6 dec: decimal(9,2), \
        7 big: decimal(38,10), 8 day: date, 9 t: time, 10 ts: timestamp, 11 tz: timestamptz, 12 ns: timestamp_ns, \
        13 nz: timestamptz_ns, 14 s: string, 15 u: uuid, 16 fx: fixed[3], 17 bin: binary";
    let rows = json!([
        [
            true,
            -1,
            i64::MIN,
            0.1,
            1e300,
            "-12.34",
            "1234567890123456789012345678.0123456789",
            17486,
            81068123456i64,
            1510871468123456i64,
            1510871468123456i64,
            1510871468123456001i64,
            1510871468123456001i64,
            "a,\"b\"",
            "00112233445566778899aabbccddeeff",
            "00abff",
            "ff"
        ],
        [
            false,
            0,
            0,
            "NaN",
            "-inf",
            "0.00",
            "0.0000000000",
            0,
            0,
            0,
            0,
            0,
            0,
            "",
            "00000000000000000000000000000000",
            "000000",
            ""
        ],
        [
            null, null, null, null, null, null, null, null, null, null, null, null, null, null,
            null, null, null
        ],
    ]);
    let table = table(3, schema, rows);
    let csv = "b,i,l,f,d,dec,big,day,t,ts,tz,ns,nz,s,u,fx,bin,_row_id,_last_updated_sequence_number\n\
        true,-1,-9223372036854775808,0.1,1e300,-12.34,1234567890123456789012345678.0123456789,2017-11-16,\
        22:31:08.123456,2017-11-16T22:31:08.123456,2017-11-16T22:31:08.123456+00:00,2017-11-16T22:31:08.123456001,\
        2017-11-16T22:31:08.123456001+00:00,\"a,\"\"b\"\"\",00112233-4455-6677-8899-aabbccddeeff,00abff,ff,0,1\n\
        false,0,0,NaN,-Infinity,0.00,0.0000000000,1970-01-01,00:00:00.000000,1970-01-01T00:00:00.000000,\
        1970-01-01T00:00:00.000000+00:00,1970-01-01T00:00:00.000000000,1970-01-01T00:00:00.000000000+00:00,\"\",\
        00000000-0000-0000-0000-000000000000,000000,\"\",1,1\n\
        ,,,,,,,,,,,,,,,,,2,1\n";
    for opened in Opened::every_way(&table.root()) {
        assert_eq!(text(&opened, "current/t.csv"), csv, "{opened}");
        let lines = text(&opened, "current/t.jsonl");
        let lines: Vec<Value> = lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(
            lines[0],
            json!({"b": true, "i": -1, "l": i64::MIN, "f": 0.1, "d": 1e300, "dec": "-12.34",
                "big": "1234567890123456789012345678.0123456789", "day": "2017-11-16", "t": "22:31:08.123456",
                "ts": "2017-11-16T22:31:08.123456", "tz": "2017-11-16T22:31:08.123456+00:00",
                "ns": "2017-11-16T22:31:08.123456001", "nz": "2017-11-16T22:31:08.123456001+00:00",
                "s": "a,\"b\"", "u": "00112233-4455-6677-8899-aabbccddeeff", "fx": "00abff", "bin": "ff",
                "_row_id": 0, "_last_updated_sequence_number": 1})
        );
        assert_eq!(
            (&lines[1]["f"], &lines[1]["d"]),
            (&json!("NaN"), &json!("-Infinity"))
        );
        let nulls = lines[2].as_object().unwrap();
        assert_eq!(
            (nulls.len(), nulls.values().filter(|v| v.is_null()).count()),
            (19, 17)
        );
    }
}

#[test]
fn nested_values_are_json() {
    let schema = "1 tags: list<2 string>, 3 at: struct<4 x: double, 5 d: decimal(4,1)>, 6 props: map<7 string, 8 int>, \
        9 odd: map<10 int, 11 list<12 date>>";
    let rows = json!([
        [["a", null, "\""], {"x": 1.5, "d": "2.0"}, [["k", 1], ["", null]], [[7, [0, null]]]],
        [[], {"x": null, "d": null}, [], []],
        [null, null, null, null],
    ]);
    let table = table(2, schema, rows);
    let opened = Opened::tree(&table.root());
    assert_eq!(
        text(&opened, "current/t.jsonl"),
        "{\"tags\":[\"a\",null,\"\\\"\"],\"at\":{\"x\":1.5,\"d\":\"2.0\"},\"props\":{\"k\":1,\"\":null},\
         \"odd\":[[7,[\"1970-01-01\",null]]]}\n\
         {\"tags\":[],\"at\":{\"x\":null,\"d\":null},\"props\":{},\"odd\":[]}\n\
         {\"tags\":null,\"at\":null,\"props\":null,\"odd\":null}\n"
    );
    assert_eq!(
        text(&opened, "current/t.csv"),
        "tags,at,props,odd\n\
         \"[\"\"a\"\",null,\"\"\\\"\"\"\"]\",\"{\"\"x\"\":1.5,\"\"d\"\":\"\"2.0\"\"}\",\"{\"\"k\"\":1,\"\"\"\":null}\",\
         \"[[7,[\"\"1970-01-01\"\",null]]]\"\n\
         [],\"{\"\"x\"\":null,\"\"d\"\":null}\",{},[]\n\
         ,,,\n"
    );
}

#[test]
fn very_many_columns_are_read_in_shares_and_stand_in_order() {
    let columns = 0..1100;
    let schema: Vec<_> = columns
        .clone()
        .map(|c| format!("{} c{c}: int", c + 1))
        .collect();
    let row = |row: i32| json!(columns.clone().map(|c| c * 10 + row).collect::<Vec<_>>());
    let table = table(2, &schema.join(", "), json!([row(0), row(1)]));
    let line = |cell: &dyn Fn(i32) -> String| {
        let cells: Vec<_> = columns.clone().map(cell).collect();
        cells.join(",") + "\n"
    };
    let expected = [
        line(&|c| format!("c{c}")),
        line(&|c| (c * 10).to_string()),
        line(&|c| (c * 10 + 1).to_string()),
    ];
    let opened = Opened::tree(&table.root());
    assert_eq!(text(&opened, "current/t.csv"), expected.concat());
}

#[test]
fn text_in_shares_has_each_chunk_made_once() {
    const COLUMNS: i32 = 600;
    let schema: Vec<_> = (1..=COLUMNS).map(|c| format!("{c} c{c}: int")).collect();
    let row = |row: i32| (0..COLUMNS).map(|c| c * 1009 + row).collect::<Vec<_>>();
    let rows: Vec<_> = (0..200).map(row).collect();
    let mut table = TableBuilder::new(2, &schema.join(", "));
    // Chunks that are longer than what is read of one for a page's header.
    let data = Data::rows(json!(rows)).writer(|writer| {
        writer
            .set_dictionary_enabled(false)
            .set_compression(Compression::UNCOMPRESSED)
    });
    let data = table.write(data);
    let deletes = table.position_deletes(&[(&data.path, 1)]);
    table.commit(Commit::of([data, deletes]));
    table.save();
    let opened = Opened::tree(&table.root());
    let csv = text(&opened, "current/t.csv");
    assert_eq!(csv.lines().count(), 200);
    let stats = opened.stats();
    assert_eq!(
        (stats["chunks_transcoded"], stats["footers_made"]),
        (600, 1)
    );
}

#[test]
fn deletes_are_applied_and_an_empty_view_is_a_header() {
    let mut table = TableBuilder::new(2, "1 id: long, 2 name: string");
    let data = table.data(json!([[1, "a"], [2, "b"], [3, "c"]]));
    let deletes = table.position_deletes(&[(&data.path, 1)]);
    table.commit(Commit::of([data.clone(), deletes]));
    table.save();
    let opened = Opened::tree(&table.root());
    assert_eq!(text(&opened, "current/t.csv"), "id,name\n1,a\n3,c\n");
    let rest = table.position_deletes(&[(&data.path, 0), (&data.path, 2)]);
    table.commit(Commit::of([rest]));
    table.save();
    let opened = Opened::tree(&table.root());
    assert_eq!(text(&opened, "current/t.csv"), "id,name\n");
    assert_eq!(text(&opened, "current/t.jsonl"), "");
}

#[test]
fn rows_of_many_strips_and_row_groups_are_all_there_in_order() {
    let (table, csv) = numbered(2 * STRIP_ROWS + 5000);
    for opened in Opened::every_way(&table.root()) {
        assert!(text(&opened, "current/t.csv") == csv, "{opened}");
        assert_eq!(opened.size("current/t.csv"), Ok(csv.len() as u64));
        // Anywhere, in any order, the end included.
        for offset in [
            csv.len() - 10,
            0,
            csv.len() / 2,
            5,
            csv.len() + 7,
            csv.len() / 3,
        ] {
            let read = opened
                .read_range("current/t.csv", offset as u64, 5000)
                .unwrap();
            let end = (offset + 5000).min(csv.len());
            assert!(
                read == csv.as_bytes()[offset.min(end)..end],
                "{opened} at {offset}"
            );
        }
    }
}

#[test]
fn rows_of_any_width_are_cut_into_pieces() {
    let wide = "x".repeat(3 << 20);
    let rows: Vec<Value> = (0..12).map(|i| json!([i, wide])).collect();
    let table = table(2, "1 id: long, 2 name: string", Value::Array(rows));
    let opened = Opened::tree(&table.root());
    let csv = text(&opened, "current/t.csv");
    assert_eq!(csv.len(), 8 + 12 * (wide.len() + 2) + 12 + 2);
    assert!(
        csv.lines()
            .skip(1)
            .enumerate()
            .all(|(i, line)| line == format!("{i},{wide}"))
    );
    // Rows of 8 MiB in the file are rendered at once: two.
    assert_eq!(opened.stats()["text_pieces_rendered"], 6);
}

#[test]
fn rows_that_are_longer_as_text_than_in_the_file_are_cut_into_pieces() {
    // One entry of a dictionary.
    let wide = "x".repeat(500_000);
    let rows: Vec<Value> = (0..40).map(|i| json!([i, wide])).collect();
    let table = table(2, "1 id: long, 2 name: string", Value::Array(rows));
    let opened = Opened::tree(&table.root());
    let csv = text(&opened, "current/t.csv");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("id,name"));
    assert!((0..40).all(|i| lines.next() == Some(&format!("{i},{wide}"))));
    assert_eq!(lines.next(), None);
    // A piece ends behind 8 MiB, with the 17th row.
    assert_eq!(opened.stats()["text_pieces_rendered"], 3);
}

#[test]
fn the_first_lines_render_one_piece_and_ask_for_no_size() {
    let (table, csv) = numbered(3 * STRIP_ROWS);
    let Some(opened) = mounted(&table, &[]) else {
        return;
    };
    let path = opened.mountpoint().unwrap().join("current/t.csv");
    for _ in 0..2 {
        let output = Command::new("head").arg("-5").arg(&path).output().unwrap();
        let expected: Vec<&str> = csv.lines().take(5).collect();
        assert_eq!(
            String::from_utf8(output.stdout)
                .unwrap()
                .lines()
                .collect::<Vec<_>>(),
            expected
        );
    }
    let stats = opened.stats();
    assert_eq!(
        (stats["text_pieces_rendered"], stats["texts_sized"]),
        (1, 0)
    );
}

#[test]
fn a_size_that_is_told_is_exact_and_found_out_once() {
    let (table, csv) = numbered(STRIP_ROWS + 10);
    let Some(opened) = mounted(&table, &[]) else {
        return;
    };
    let path = opened.mountpoint().unwrap().join("current/t.csv");
    let mut file = fs::File::open(&path).unwrap();
    let mut first = [0; 5];
    file.read_exact(&mut first).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || fs::metadata(path).unwrap().size())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), csv.len() as u64);
    }
    assert_eq!(file.metadata().unwrap().size(), csv.len() as u64);
    assert_eq!(opened.stats()["texts_sized"], 1);
    let pieces = opened.stats()["text_pieces_rendered"];
    assert!(fs::read(&path).unwrap() == csv.as_bytes());
    assert_eq!(opened.stats()["text_pieces_rendered"], pieces);
}

#[test]
fn a_text_that_has_been_sized_is_read_by_the_kernel_itself() {
    let (table, csv) = numbered(3 * STRIP_ROWS);
    let Some(opened) = mounted(&table, &[]) else {
        return;
    };
    let path = opened.mountpoint().unwrap().join("current/t.csv");
    assert_eq!(fs::metadata(&path).unwrap().size(), csv.len() as u64);
    assert!(fs::read(&path).unwrap() == csv.as_bytes());
    // As far as its beginning is read in pieces of no round length.
    let mut file = fs::File::open(&path).unwrap();
    let mut bytes = vec![0; 12_345];
    file.read_exact(&mut bytes).unwrap();
    assert!(bytes == csv.as_bytes()[..bytes.len()]);
    if opened.stats()["files_passed_through"] == 0 {
        eprintln!("SKIPPED: this kernel or user hands no files over, the text was read without");
        return;
    }
    assert_eq!(opened.stats()["files_passed_through"], 2);
}

#[test]
fn a_text_is_read_right_by_those_who_opened_it_before_and_after_it_was_sized() {
    let (table, csv) = numbered(3 * STRIP_ROWS);
    let Some(opened) = mounted(&table, &[]) else {
        return;
    };
    let path = opened.mountpoint().unwrap().join("current/t.csv");
    let before = fs::File::open(&path).unwrap();
    let len = csv.len();
    assert_eq!(before.metadata().unwrap().size(), len as u64);
    // Python maps the file that was opened before, which ties the inode to the page cache.
    let program = "import mmap, sys\n\
        data = mmap.mmap(0, 0, prot=mmap.PROT_READ)\n\
        first = data[:100]\n\
        other = open(sys.argv[1], 'rb').read()\n\
        assert other == data[:] and len(other) == int(sys.argv[2]), len(other)";
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(&path).arg(len.to_string());
    let status = python.stdin(before.try_clone().unwrap()).status().unwrap();
    assert!(status.success(), "{}", opened.errors());
    let after = fs::File::open(&path).unwrap();
    drop(before);
    let again = fs::File::open(&path).unwrap();
    for file in [after, again] {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes == csv.as_bytes());
    }
    drop(fs::read(&path).unwrap());
    assert!(fs::read(&path).unwrap() == csv.as_bytes());
}

#[test]
fn a_read_far_behind_what_is_known_is_right() {
    let rows = 48 * STRIP_ROWS;
    let (table, csv) = numbered(rows);
    let Some(opened) = mounted(&table, &[]) else {
        return;
    };
    let file = fs::File::open(opened.mountpoint().unwrap().join("current/t.csv")).unwrap();
    let mut bytes = [0; 4000];
    let offset = csv.len() - 4000;
    file.read_exact_at(&mut bytes, offset as u64).unwrap();
    assert!(bytes == csv.as_bytes()[offset..]);
}

#[test]
fn text_that_may_be_huge_is_listed_once_it_has_been_sized() {
    let (table, csv) = numbered(1000);
    for way in ["tree", "mount"] {
        let opened = match way {
            "tree" => {
                let mut options = builder::open::Options::default();
                options.text.limit = 100;
                Opened::tree_with(&table.root(), &options)
            }
            _ => match mounted(&table, &["--text-limit", "100"]) {
                Some(opened) => opened,
                None => return,
            },
        };
        let names = ["parts", "schema.json", "snapshot.json", "t.parquet"];
        assert_eq!(opened.list("current/").unwrap(), names);
        assert_eq!(text(&opened, "current/t.csv"), csv);
        let names = [
            "parts",
            "schema.json",
            "snapshot.json",
            "t.csv",
            "t.parquet",
        ];
        assert_eq!(opened.list("current/").unwrap(), names);
    }
}

#[test]
fn nulls_are_what_the_user_says() {
    let table = table(2, "1 name: string", json!([[null], [""], ["\\N"]]));
    let Some(opened) = mounted(&table, &["--csv-null", "\\N"]) else {
        return;
    };
    assert_eq!(text(&opened, "current/t.csv"), "name\n\\N\n\"\"\n\"\\N\"\n");
}

#[test]
fn no_text_means_none() {
    let (table, _) = numbered(10);
    let Some(opened) = mounted(&table, &["--no-text"]) else {
        return;
    };
    let names = ["parts", "schema.json", "snapshot.json", "t.parquet"];
    assert_eq!(opened.list("current/").unwrap(), names);
    assert_eq!(opened.read("current/t.csv"), Err(libc::ENOENT));
}

#[test]
fn text_of_a_view_that_cannot_be_read_is_an_error_with_its_reason() {
    let mut table = TableBuilder::new(2, "1 id: long");
    let lost = table.write(Data::rows(json!([[2]])).named("data/lost.parquet"));
    fs::remove_file(table.local(&lost.path)).unwrap();
    table.commit(Commit::of([lost]));
    table.save();
    for opened in Opened::every_way(&table.root()) {
        assert_eq!(opened.read("current/t.csv"), Err(libc::EIO), "{opened}");
        assert!(
            opened.errors().contains("lost.parquet"),
            "{}",
            opened.errors()
        );
    }
}

#[test]
fn who_waits_for_a_size_can_be_interrupted() {
    let (table, _) = numbered(160 * STRIP_ROWS);
    let Some(opened) = mounted(&table, &[]) else {
        return;
    };
    let path = opened.mountpoint().unwrap().join("current/t.jsonl");
    let mut stat = Command::new("stat")
        .arg(&path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    if stat.try_wait().unwrap().is_some() {
        eprintln!("SKIPPED: this machine has sized the text before it could be interrupted");
        return;
    }
    let begun = Instant::now();
    stat.kill().unwrap();
    stat.wait().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    // The sizing was for that program alone.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(opened.stats()["texts_sized"], 0);
}
