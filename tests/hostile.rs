//! Broken and malicious tables: never a panic, a hang or memory without bound, and an error that names the file.
//!
//! What has no checksum may be altered without anyone noticing (a flipped bit in a page, a sequence number in a
//! manifest): there the property is that a view is an error or a whole view. What is cut short, missing, or guarded by
//! a checksum has to be an error, and everything that does not depend on it goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod builder;

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use libc::{EIO, ENOTSUP};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use builder::avro::{Avro, Codec, container};
use builder::open::Opened;
use builder::{Commit, Data, Entry, Style, TableBuilder};

/// Far above what small tables need, far below what a length from a broken file asks for.
const MEMORY: u64 = 6 << 30;

/// Peak memory in use that no case may reach, with all tests at once.
const MEMORY_IN_USE_KB: u64 = 700 << 10;

/// No view of these tables takes a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a case under a memory limit and a watchdog; a panic in it is a failure that says which case it was.
fn guarded<T: Send + 'static>(case: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let limit = getrlimit(Resource::As);
    setrlimit(
        Resource::As,
        Rlimit {
            current: Some(MEMORY),
            ..limit
        },
    )
    .unwrap();
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(catch_unwind(AssertUnwindSafe(run))));
    let result = result
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| panic!("{case}: no end in {PATIENCE:?}"));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix(" kB")?
            .parse()
            .ok()
    });
    assert!(
        peak.unwrap_or(0u64) < MEMORY_IN_USE_KB,
        "{case}: {peak:?} kB in use"
    );
    result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied());
        panic!("{case}: panicked: {}", text.unwrap_or("?"))
    })
}

/// What a view shows.
#[derive(Debug)]
enum Shown {
    Rows(usize),
    /// Served, but no good Parquet file: what was damaged is served as it lies.
    Unreadable,
    Refused {
        errno: i32,
        errors: String,
    },
}

fn show(root: &Path, path: &str) -> Shown {
    let opened = Opened::tree(root);
    match opened.read(path) {
        Err(errno) => Shown::Refused {
            errno,
            errors: opened.errors(),
        },
        // The `parquet` crate may panic at a damaged page that is served as it lies.
        Ok(bytes) => catch_unwind(|| count_rows(bytes))
            .ok()
            .flatten()
            .map_or(Shown::Unreadable, Shown::Rows),
    }
}

fn count_rows(bytes: Vec<u8>) -> Option<usize> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))
        .ok()?
        .build()
        .ok()?;
    reader
        .map(|batch| batch.ok().map(|batch| batch.num_rows()))
        .sum()
}

/// A table with one of everything. Its view has 30 + 30 - 4 rows, that of its first snapshot 30.
struct Victim {
    t: TableBuilder,
    metadata: PathBuf,
    list: PathBuf,
    manifest: PathBuf,
    delete_manifest: PathBuf,
    first: Entry,
    second: Entry,
    positions: Entry,
    vector: Entry,
    equality: Entry,
}

const WHOLE: &str = "current/t.parquet";
const FIRST: &str = "snapshots/1001/t.parquet";
const ROWS: usize = 56;

fn victim(codec: Codec) -> Victim {
    let mut t = TableBuilder::new(
        3,
        "1 id: long, 2 name: string, 3 at: struct<4 xs: list<5 double>>",
    );
    let rows = |from: i64| -> Value {
        (from..from + 30)
            .map(|id| json!([id, format!("name {id}"), {"xs": [0.5, null, id as f64]}]))
            .collect()
    };
    let first = t.write(Data::rows(rows(0)).row_groups_of(10));
    let second = t.write(Data::rows(rows(30)).row_groups_of(10));
    let style = Style {
        codec,
        ..Style::default()
    };
    t.commit(Commit::of([first.clone()]).style(style.clone()));
    let positions = t.position_deletes(&[(&first.path, 3), (&first.path, 25)]);
    let vector = t.vector(&second, &[0]);
    t.commit(Commit::of([second.clone(), positions.clone(), vector.clone()]).style(style.clone()));
    let equality = t.equality_deletes(&[1], "1 id: long", json!([[7], [1000]]));
    t.commit(Commit::of([equality.clone()]).style(style));
    let metadata = t.save();
    let last = &t.snapshots[2];
    let list = t.local(last.json["manifest-list"].as_str().unwrap());
    let manifest = t.local(&last.manifests[1].path);
    let delete_manifest = t.local(&last.manifests.iter().find(|m| m.deletes).unwrap().path);
    Victim {
        metadata,
        list,
        manifest,
        delete_manifest,
        first,
        second,
        positions,
        vector,
        equality,
        t,
    }
}

impl Victim {
    /// Every file that the current view depends on.
    fn files(&self) -> Vec<PathBuf> {
        let entries = [
            &self.first,
            &self.second,
            &self.positions,
            &self.vector,
            &self.equality,
        ];
        let data = entries.into_iter().map(|e| self.t.local(&e.path));
        [
            &self.metadata,
            &self.list,
            &self.manifest,
            &self.delete_manifest,
        ]
        .into_iter()
        .cloned()
        .chain(data)
        .collect()
    }

    /// Shows a view with other bytes in one file, which are put back then.
    fn with(&self, file: &Path, bytes: &[u8], path: &'static str, case: &str) -> Shown {
        let right = fs::read(file).unwrap();
        fs::write(file, bytes).unwrap();
        let root = self.t.root();
        let shown = guarded(case, move || show(&root, path));
        fs::write(file, right).unwrap();
        shown
    }
}

fn name(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

/// It is refused, and the reason names the file.
#[track_caller]
fn refused(shown: &Shown, file: &str, case: &str) {
    match shown {
        Shown::Refused { errno, errors } => {
            assert!([EIO, ENOTSUP].contains(errno), "{case}: errno {errno}");
            assert!(
                errors.contains(file),
                "{case}: {file} is not named in {errors}"
            );
        }
        other => panic!("{case}: {other:?}"),
    }
}

/// The same numbers at each run.
fn noise(seed: usize) -> usize {
    let mut x = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 29;
    (x.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 17) as usize
}

#[test]
fn the_victim_is_whole_before_anything_is_done_to_it() {
    let v = victim(Codec::Deflate);
    assert!(
        matches!(show(&v.t.root(), WHOLE), Shown::Rows(ROWS)),
        "{:?}",
        show(&v.t.root(), WHOLE)
    );
    assert!(matches!(show(&v.t.root(), FIRST), Shown::Rows(30)));
}

#[test]
fn a_file_cut_short_is_an_error_that_names_it() {
    for codec in [Codec::Null, Codec::Deflate] {
        let v = victim(codec);
        for file in v.files() {
            let bytes = fs::read(&file).unwrap();
            let header = bytes
                .windows(16)
                .position(|w| w == b"synchronisation.")
                .map(|at| at + 16);
            for step in 0..12 {
                let len = [
                    0,
                    1,
                    3,
                    4,
                    8,
                    bytes.len() - 1,
                    bytes.len() - 4,
                    bytes.len() - 9,
                ][..]
                    .get(step)
                    .copied()
                    .unwrap_or_else(|| noise(step) % bytes.len());
                // A vector is read by its offset alone.
                let blob = v.vector.content_offset.unwrap() + v.vector.content_size.unwrap();
                if file == v.t.local(&v.vector.path) && len as i64 >= blob {
                    continue;
                }
                // A list that ends behind its header is a list of nothing.
                if header == Some(len) && file == v.list {
                    continue;
                }
                let case = format!("{} cut to {len} of {} bytes", name(&file), bytes.len());
                refused(
                    &v.with(&file, &bytes[..len], WHOLE, &case),
                    name(&file),
                    &case,
                );
            }
        }
    }
}

#[test]
fn flipped_bits_never_make_more_or_fewer_rows_of_a_data_file() {
    let v = victim(Codec::Null);
    for file in [&v.first, &v.second] {
        let file = v.t.local(&file.path);
        let bytes = fs::read(&file).unwrap();
        for seed in 0..150 {
            let mut broken = bytes.clone();
            let at = noise(seed) % bytes.len();
            broken[at] ^= 1 << (noise(seed + 1000) % 8);
            let case = format!("{}: bit of byte {at} of {}", name(&file), bytes.len());
            match v.with(&file, &broken, WHOLE, &case) {
                Shown::Rows(ROWS) | Shown::Unreadable => {}
                // An altered key may be hit by the equality delete, or missed by it.
                Shown::Rows(rows) => assert!(rows.abs_diff(ROWS) == 1, "{case}: {rows} rows"),
                other => refused(&other, name(&file), &case),
            }
        }
    }
}

#[test]
fn flipped_bits_of_metadata_and_manifests_are_an_error_or_a_view() {
    for codec in [Codec::Null, Codec::Snappy] {
        let v = victim(codec);
        for file in [&v.metadata, &v.list, &v.manifest, &v.delete_manifest] {
            let bytes = fs::read(file).unwrap();
            for seed in 0..100 {
                let mut broken = bytes.clone();
                let at = noise(seed) % bytes.len();
                broken[at] ^= 1 << (noise(seed + 1000) % 8);
                let case = format!("{}: bit of byte {at} of {}", name(file), bytes.len());
                v.with(file, &broken, WHOLE, &case);
            }
        }
    }
}

#[test]
fn flipped_bits_of_a_manifest_with_checksums_are_errors() {
    // Snappy blocks carry a checksum of what they hold; behind the header there is nothing else.
    let v = victim(Codec::Snappy);
    let bytes = fs::read(&v.manifest).unwrap();
    let header = bytes
        .windows(16)
        .position(|w| w == b"synchronisation.")
        .unwrap()
        + 16;
    for seed in 0..60 {
        let mut broken = bytes.clone();
        let at = header + noise(seed) % (bytes.len() - header);
        broken[at] ^= 1 << (noise(seed + 1000) % 8);
        let case = format!("{}: bit of byte {at} of {}", name(&v.manifest), bytes.len());
        refused(
            &v.with(&v.manifest, &broken, WHOLE, &case),
            name(&v.manifest),
            &case,
        );
    }
}

#[test]
fn a_flipped_bit_of_a_vector_is_an_error_and_one_beside_it_is_none() {
    let v = victim(Codec::Null);
    let file = v.t.local(&v.vector.path);
    let bytes = fs::read(&file).unwrap();
    let blob = v.vector.content_offset.unwrap() as usize
        ..(v.vector.content_offset.unwrap() + v.vector.content_size.unwrap()) as usize;
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 1 << (at % 8);
        let case = format!("{}: bit of byte {at}", name(&file));
        let shown = v.with(&file, &broken, WHOLE, &case);
        if blob.contains(&at) {
            refused(&shown, name(&file), &case);
        } else {
            assert!(matches!(shown, Shown::Rows(ROWS)), "{case}: {shown:?}");
        }
    }
}

#[test]
fn flipped_bits_of_delete_files_are_an_error_or_a_view() {
    let v = victim(Codec::Null);
    for file in [&v.positions, &v.equality] {
        let file = v.t.local(&file.path);
        let bytes = fs::read(&file).unwrap();
        for seed in 0..150 {
            let mut broken = bytes.clone();
            let at = noise(seed) % bytes.len();
            broken[at] ^= 1 << (noise(seed + 1000) % 8);
            let case = format!("{}: bit of byte {at} of {}", name(&file), bytes.len());
            match v.with(&file, &broken, WHOLE, &case) {
                Shown::Rows(rows) => {
                    assert!((ROWS..=ROWS + 3).contains(&rows), "{case}: {rows} rows")
                }
                other => refused(&other, name(&file), &case),
            }
        }
    }
}

#[test]
fn noise_in_place_of_a_file_is_an_error_that_names_it() {
    let v = victim(Codec::Null);
    for file in v.files() {
        let len = fs::metadata(&file).unwrap().len() as usize;
        for seed in 0..3 {
            let bytes: Vec<u8> = (0..len).map(|i| noise(i * 7 + seed) as u8).collect();
            let case = format!("{}: noise {seed}", name(&file));
            refused(&v.with(&file, &bytes, WHOLE, &case), name(&file), &case);
        }
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it_and_the_rest_goes_on() {
    let v = victim(Codec::Null);
    for file in v.files().into_iter().skip(1) {
        let right = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let root = v.t.root();
        let case = format!("{} is missing", name(&file));
        refused(
            &guarded(&case, {
                let root = root.clone();
                move || show(&root, WHOLE)
            }),
            name(&file),
            &case,
        );
        if file != v.t.local(&v.first.path) {
            let shown = guarded(&case, move || show(&root, FIRST));
            assert!(
                matches!(shown, Shown::Rows(30)),
                "{case}: the first snapshot: {shown:?}"
            );
        }
        fs::write(&file, right).unwrap();
    }
}

#[test]
fn a_broken_data_file_leaves_the_other_parts_readable() {
    let v = victim(Codec::Null);
    let file = v.t.local(&v.second.path);
    fs::write(&file, b"PAR1 nothing at all \x05\0\0\0PAR1").unwrap();
    let opened = Opened::tree(&v.t.root());
    let parts = opened.list("current/parts").unwrap();
    assert_eq!(parts.len(), 2, "{parts:?}");
    let read: Vec<Result<usize, i32>> = parts
        .iter()
        .map(|part| {
            opened
                .table(&format!("current/parts/{part}"))
                .map(|t| t.rows.len())
        })
        .collect();
    assert_eq!(read, [Ok(27), Err(EIO)], "{}", opened.errors());
    assert_eq!(opened.read(WHOLE), Err(EIO));
    assert!(opened.errors().contains(name(&file)));
}

/// A table whose only data file has this path.
fn pointing_to(path: impl FnOnce(&TableBuilder) -> String) -> TableBuilder {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1]]));
    let path = path(&t);
    t.commit(Commit::of([a.with(|e| e.path = path)]));
    t.save();
    t
}

#[track_caller]
fn never_opens(t: &TableBuilder, case: &str) {
    let root = t.root();
    match guarded(case, move || show(&root, WHOLE)) {
        Shown::Refused { errno, errors } => {
            assert!([EIO, ENOTSUP].contains(&errno), "{case}: errno {errno}");
            assert!(!errors.contains("root:x:"), "{case}: {errors}");
        }
        other => panic!("{case}: {other:?}"),
    }
}

#[test]
fn no_path_leads_out_of_the_table() {
    let outside = tempfile::tempdir().unwrap();
    let mut other = TableBuilder::new(2, "1 id: long");
    let secret = other.data(json!([[42]]));
    let stolen = outside.path().join("secret.parquet");
    fs::copy(other.local(&secret.path), &stolen).unwrap();
    let stolen = stolen.to_str().unwrap().to_owned();

    for path in [
        "/etc/passwd",
        "file:///etc/passwd",
        "../../../../../../etc/passwd",
        "/dev/zero",
        "/proc/self/mem",
        "",
        "/",
        ".",
    ] {
        never_opens(&pointing_to(|_| path.to_owned()), path);
    }
    never_opens(&pointing_to(|_| stolen.clone()), "a file elsewhere");
    never_opens(
        &pointing_to(|t| t.recorded("data/../../../../../../../../etc/passwd")),
        "dots",
    );
    never_opens(
        &pointing_to(|t| t.recorded(&format!("data/../../..{stolen}"))),
        "dots to a good file",
    );
    never_opens(&pointing_to(|t| t.recorded("data")), "a directory");
    never_opens(&pointing_to(|t| t.recorded("data/\0.parquet")), "NUL");
    never_opens(
        &pointing_to(|t| t.recorded(&"x".repeat(5000))),
        "a long name",
    );
    for scheme in ["s3", "http", "hdfs"] {
        never_opens(
            &pointing_to(|_| format!("{scheme}://host/bucket/file.parquet")),
            scheme,
        );
    }
    let linked = pointing_to(|t| t.recorded("data/link.parquet"));
    symlink(&stolen, linked.root().join("data/link.parquet")).unwrap();
    never_opens(&linked, "a link to a file elsewhere");
    let linked = pointing_to(|t| t.recorded("data/there/secret.parquet"));
    symlink(outside.path(), linked.root().join("data/there")).unwrap();
    never_opens(&linked, "a link to a directory elsewhere");
    let linked = pointing_to(|t| t.recorded("data/loop"));
    symlink(
        linked.root().join("data/loop"),
        linked.root().join("data/loop"),
    )
    .unwrap();
    never_opens(&linked, "a link to itself");
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
}

#[test]
fn a_fifo_in_place_of_a_file_does_not_hang() {
    let v = victim(Codec::Null);
    for file in v.files().into_iter().skip(1) {
        let right = fs::read(&file).unwrap();
        fifo(&file);
        let root = v.t.root();
        let case = format!("{} is a FIFO", name(&file));
        refused(
            &guarded(&case, move || show(&root, WHOLE)),
            name(&file),
            &case,
        );
        fs::remove_file(&file).unwrap();
        fs::write(&file, right).unwrap();
    }
    for file in [
        v.metadata.clone(),
        v.metadata.with_file_name("version-hint.text"),
    ] {
        let v = victim(Codec::Null);
        let file = v.t.root().join("metadata").join(name(&file));
        fifo(&file);
        let root = v.t.root();
        guarded("a FIFO among the metadata", move || show(&root, WHOLE));
    }
}

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
