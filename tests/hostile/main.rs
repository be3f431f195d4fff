//! Broken and malicious tables: never a panic, a hang or memory without bound, and an error that names the file.
//!
//! What has no checksum may be altered without anyone noticing (a flipped bit in a page, a sequence number in a
//! manifest): there the property is that a view is an error or a whole view. What is cut short, missing, or guarded by
//! a checksum has to be an error, and everything that does not depend on it goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../builder/mod.rs"]
mod builder;

mod damaged;
mod paths;
mod promises;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use libc::{EIO, ENOTSUP};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use builder::avro::Codec;
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
