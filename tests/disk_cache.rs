//! The caches, through the tree: what is made once is not made again, in this mount or a later one, and what a later
//! mount finds is never another thing than what it would have made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "builder/mod.rs"]
mod builder;
#[path = "disk_cache/web.rs"]
mod web;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bergfs::cache::Cache;
use bergfs::cache::disk::{DiskCache, usage};
use bergfs::catalog::Catalog;
use bergfs::catalog::directory::{DirectoryCatalog, StoreDirectoryCatalog};
use bergfs::counters::Counters;
use bergfs::parquet::Splitting;
use bergfs::storage::{Properties, StorageOptions};
use bergfs::text::TextOptions;
use bergfs::tree::{Lineage, Tree, TreeOptions};
use builder::avro::{Avro, Codec, container};
use builder::open::{Opened, Served};
use builder::{Commit, Data, TableBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;
use web::Web;

const LIMIT: Duration = Duration::from_secs(60);

/// How a session shows a table.
#[derive(Clone)]
struct Options {
    /// Bytes.
    memory: usize,
    lineage: Lineage,
    metadata_columns: bool,
    csv_null: &'static str,
    /// Whether there is text, which is rendered, from chunks of its own, when nobody asks for anything else.
    text: bool,
}

impl Options {
    fn without_text() -> Options {
        Options {
            text: false,
            ..Options::default()
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            memory: 64 << 20,
            lineage: Lineage::Auto,
            metadata_columns: false,
            csv_null: "",
            text: true,
        }
    }
}

/// A table in one process, as it were.
struct Session {
    opened: Opened,
    cache: Arc<Cache>,
}

impl Session {
    fn new(table: &TableBuilder, disk: Option<&Path>, options: &Options) -> Session {
        Session::of(disk, options, |_| {
            Box::new(DirectoryCatalog::open(&table.root()).unwrap())
        })
    }

    /// Of a metadata file on the web.
    fn on_the_web(url: &str, disk: &Path) -> Session {
        let url = Url::parse(url).unwrap();
        Session::of(Some(disk), &Options::default(), |storage| {
            let catalog = StoreDirectoryCatalog::open(&url, storage, &Properties::default());
            Box::new(catalog.unwrap())
        })
    }

    fn of(
        disk: Option<&Path>,
        options: &Options,
        catalog: impl FnOnce(&StorageOptions) -> Box<dyn Catalog>,
    ) -> Session {
        let counters = Arc::new(Counters::default());
        let mut cache = Cache::new(options.memory, Arc::clone(&counters));
        if let Some(disk) = disk {
            let disk = DiskCache::open(disk, 1 << 30, "this program", &counters);
            cache = cache.on_disk(disk.unwrap());
        }
        let cache = Arc::new(cache);
        let options = TreeOptions {
            refresh: Duration::ZERO,
            lineage: options.lineage,
            metadata_columns: options.metadata_columns,
            storage: StorageOptions::new(Arc::clone(&counters)).with_cache(&cache),
            text: TextOptions {
                shown: options.text,
                csv_null: options.csv_null.parse().unwrap(),
                ..TextOptions::default()
            },
            splitting: Splitting::default(),
        };
        let catalog = catalog(&options.storage);
        let tree = Tree::new(catalog, Arc::clone(&cache), options);
        let opened = Opened::Tree {
            tree: Box::new(tree),
            counters,
        };
        Session { opened, cache }
    }

    fn read(&self, path: &str) -> Vec<u8> {
        let errors = || self.opened.errors();
        self.opened
            .read(path)
            .unwrap_or_else(|errno| panic!("{path}: errno {errno}\n{}", errors()))
    }

    fn count(&self, name: &str) -> u64 {
        self.opened.stats()[name]
    }

    /// Waits until all is on disk that is to be.
    fn settle(&self) {
        self.cache.disk().unwrap().settle(LIMIT);
        assert_eq!(self.count("disk_cache_dropped"), 0, "the queue was full");
    }

    /// All files of all views, by path.
    fn everything(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for view in self.opened.list("snapshots").unwrap() {
            for name in self.opened.list(&format!("snapshots/{view}")).unwrap() {
                if name != "parts" {
                    let path = format!("snapshots/{view}/{name}");
                    files.insert(path.clone(), self.read(&path));
                }
            }
            for name in self
                .opened
                .list(&format!("snapshots/{view}/parts"))
                .unwrap()
            {
                let path = format!("snapshots/{view}/parts/{name}");
                files.insert(path.clone(), self.read(&path));
            }
        }
        files
    }
}

/// Files below `current`, which is called as the table is.
fn current(session: &Session, suffix: &str) -> String {
    let names = session.opened.list("current").unwrap();
    let name = names.iter().find(|name| name.ends_with(suffix)).unwrap();
    format!("current/{name}")
}

fn rows(range: std::ops::Range<i64>) -> Value {
    let row = |i: i64| json!([i, format!("name {}", i % 7), i as f64 / 4.0]);
    range.map(row).collect()
}

const SCHEMA: &str = "1 id: long, 2 name: string, 3 quarter: double";

/// Three snapshots: two files of two row groups each, one with a deleted row; a third file; a deleted row in the second.
fn three_snapshots() -> TableBuilder {
    let mut t = TableBuilder::new(2, SCHEMA);
    let a = t.write(Data::rows(rows(0..200)).row_groups_of(100));
    let b = t.write(Data::rows(rows(200..400)).row_groups_of(100));
    let deletes = t.position_deletes(&[(&a.path, 5), (&a.path, 150)]);
    t.commit(Commit::of([a, b.clone(), deletes]));
    let c = t.data(rows(400..450));
    t.commit(Commit::of([c]));
    let deletes = t.position_deletes(&[(&b.path, 7)]);
    t.commit(Commit::of([deletes]));
    t.save();
    t
}

fn snapshot(t: &TableBuilder, index: usize) -> String {
    let metadata = t.metadata();
    format!("snapshots/{}", metadata["snapshots"][index]["snapshot-id"])
}

#[test]
fn after_a_remount_nothing_is_made_or_rendered_again() {
    let t = three_snapshots();
    let disk = TempDir::new().unwrap();
    let first = Session::new(&t, Some(disk.path()), &Options::default());
    let made = first.everything();
    assert!(first.count("chunks_transcoded") > 0);
    assert!(first.count("text_pieces_rendered") > 0);
    assert!(first.count("texts_sized") > 0);
    first.settle();
    drop(first);

    let second = Session::new(&t, Some(disk.path()), &Options::default());
    // A size alone first.
    let csv = current(&second, ".csv");
    let size = second.opened.size(&csv).unwrap();
    for name in ["text_pieces_rendered", "texts_sized"] {
        assert_eq!(second.count(name), 0, "{name}");
    }
    assert_eq!(second.read(&csv).len() as u64, size);
    assert_eq!(second.everything(), made);
    for name in [
        "chunks_transcoded",
        "text_pieces_rendered",
        "texts_sized",
        "disk_cache_damaged",
    ] {
        assert_eq!(second.count(name), 0, "{name}");
    }
    assert!(second.count("disk_cache_hits") > 0);
}

#[test]
fn a_second_snapshot_that_shares_files_makes_no_new_chunk() {
    let t = three_snapshots();
    for disk in [None, Some(TempDir::new().unwrap())] {
        let path = disk.as_ref().map(TempDir::path);
        let session = Session::new(&t, path, &Options::without_text());
        let whole = |index: usize| {
            let view = snapshot(&t, index);
            let names = session.opened.list(&view).unwrap();
            let name = names.iter().find(|name| name.ends_with(".parquet"));
            Served::of(session.read(&format!("{view}/{}", name.unwrap()))).rows
        };
        let transcoded = || session.count("chunks_transcoded");
        assert_eq!(whole(0).len(), 398);
        // Two row groups of three columns lost a row.
        assert_eq!(transcoded(), 6);
        assert_eq!(whole(1).len(), 448);
        assert_eq!(transcoded(), 6, "the new file lost none");
        assert_eq!(whole(2).len(), 447);
        assert_eq!(transcoded(), 9, "one more row group lost one");
        if let Some(disk) = &disk {
            session.settle();
            // The other snapshots' chunks do for one that is read first in another mount, in whichever order.
            let later = Session::new(&t, Some(disk.path()), &Options::without_text());
            later.everything();
            assert_eq!(later.count("chunks_transcoded"), 0);
        }
    }
}

#[test]
fn text_of_row_groups_that_snapshots_share_is_rendered_once() {
    let t = three_snapshots();
    let disk = TempDir::new().unwrap();
    let session = Session::new(&t, Some(disk.path()), &Options::default());
    // Listing a directory renders its texts too, when there is nothing else to do: so both are counted together.
    let render = |index: usize| {
        let before = session.count("text_pieces_rendered");
        let view = snapshot(&t, index);
        let names = session.opened.list(&view).unwrap();
        for name in names
            .iter()
            .filter(|n| n.ends_with(".csv") || n.ends_with(".jsonl"))
        {
            session.read(&format!("{view}/{name}"));
        }
        session.settle();
        session.count("text_pieces_rendered") - before
    };
    assert_eq!(render(0), 2 * 4, "four row groups");
    assert_eq!(render(1), 2, "one more");
    assert_eq!(render(2), 2, "one that lost another row");
}

/// A table whose files are evolved, defaulted, promoted, deleted from in each way, and partly Avro.
fn varied(version: u8) -> TableBuilder {
    let mut t = TableBuilder::new(version, "1 id: int, 2 name: string, 5 in: struct<6 x: int>");
    let nested = |range: std::ops::Range<i64>| -> Value {
        let row = |i: i64| json!([i, format!("n{i}"), [i]]);
        range.map(row).collect()
    };
    let a = t.write(Data::rows(nested(0..50)).row_groups_of(20));
    let b = t.data(nested(50..80));
    t.commit(Commit::of([a.clone(), b.clone()]));
    let equality = t.equality_deletes(&[1], "1 id: int", json!([[3], [60]]));
    let mut commit = vec![equality];
    if version >= 3 {
        commit.push(t.vector(&a, &[0, 21]));
    } else {
        commit.push(t.position_deletes(&[(&a.path, 0), (&a.path, 21)]));
    }
    t.commit(Commit::of(commit));
    t.evolve("1 id: long, 2 title: string, 5 in: struct<6 x: long, 7 y: string>, 4 added: string");
    let fields = json!([
        {"name": "id", "field-id": 1, "type": "long"},
        {"name": "title", "field-id": 2, "type": ["null", "string"]},
    ]);
    let schema = json!({"type": "record", "name": "table", "fields": fields});
    let avro_row = |i: i64| {
        let title = Avro::optional(Some(Avro::text(&format!("avro {i}"))));
        Avro::Record(vec![Avro::Number(i), title])
    };
    let avro: Vec<Avro> = (100..110).map(avro_row).collect();
    let avro = container(&schema, &[], Codec::Deflate, &avro);
    let c = t.adopt("c.avro", &avro, 10);
    t.commit(Commit::of([c]));
    t.save();
    t
}

#[test]
fn sessions_of_any_options_share_a_cache_and_show_what_they_show_without_one() {
    let options = [
        Options::default(),
        Options {
            lineage: Lineage::Always,
            ..Options::default()
        },
        Options {
            metadata_columns: true,
            lineage: Lineage::Never,
            ..Options::default()
        },
        Options {
            csv_null: "NULL",
            ..Options::default()
        },
    ];
    let disk = TempDir::new().unwrap();
    let tables = [varied(2), varied(3), three_snapshots()];
    for round in 0..2 {
        for (t, options) in tables
            .iter()
            .flat_map(|t| options.iter().map(move |o| (t, o)))
        {
            let without = Session::new(t, None, options).everything();
            let with = Session::new(t, Some(disk.path()), options);
            assert!(with.everything() == without);
            with.settle();
            if round == 1 {
                for name in [
                    "chunks_transcoded",
                    "text_pieces_rendered",
                    "files_converted",
                ] {
                    assert_eq!(with.count(name), 0, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_file_that_is_written_anew_under_its_name_is_another_file() {
    let disk = TempDir::new().unwrap();
    let mut t = TableBuilder::new(2, SCHEMA);
    let a = t.write(Data::rows(rows(0..100)).named("a.parquet"));
    let deletes = t.position_deletes(&[(&a.path, 5)]);
    let keys = t.equality_deletes(&[1], "1 id: long", json!([[50]]));
    // Sequence numbers: equality deletes hit older files only.
    t.commit(Commit::of([a.clone()]));
    t.commit(Commit::of([deletes.clone(), keys.clone()]));
    t.save();
    let check = |t: &TableBuilder, gone: [i64; 2]| {
        let session = Session::new(t, Some(disk.path()), &Options::default());
        let csv = String::from_utf8(session.read(&current(&session, ".csv"))).unwrap();
        let ids: Vec<i64> = csv
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().parse().unwrap())
            .collect();
        let expected: Vec<i64> = (0..100).filter(|id| !gone.contains(id)).collect();
        assert_eq!(ids, expected);
        let rows = Served::of(session.read(&current(&session, ".parquet"))).rows;
        let ids: Vec<i64> = rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
        assert_eq!(ids, expected);
        session.settle();
    };
    check(&t, [5, 50]);
    // As a table that is dropped and made again: the same names, sizes, counts and sequence numbers; other rows.
    let rewrite = |t: &mut TableBuilder, entry: &builder::Entry, other: builder::Entry| {
        let (from, to) = (t.local(&other.path), t.local(&entry.path));
        assert_eq!(entry.file_size, other.file_size);
        fs::remove_file(&to).unwrap();
        fs::rename(from, to).unwrap();
    };
    let other = t.position_deletes(&[(&a.path, 6)]);
    rewrite(&mut t, &deletes, other);
    check(&t, [6, 50]);
    let other = t.equality_deletes(&[1], "1 id: long", json!([[51]]));
    rewrite(&mut t, &keys, other);
    check(&t, [6, 51]);
}

/// The files of the entries.
fn entries(disk: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for shard in fs::read_dir(disk.join("bergfs-cache-1")).unwrap() {
        let shard = shard.unwrap().path();
        if shard.is_dir() && !shard.ends_with("new") {
            files.extend(fs::read_dir(shard).unwrap().map(|e| e.unwrap().path()));
        }
    }
    files
}

#[test]
fn damaged_entries_cost_work_and_never_a_wrong_byte() {
    let t = varied(3);
    let disk = TempDir::new().unwrap();
    let without = Session::new(&t, None, &Options::default()).everything();
    let with = || Session::new(&t, Some(disk.path()), &Options::default());
    let session = with();
    assert!(session.everything() == without);
    session.settle();
    drop(session);
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.clear(),
        |bytes| bytes[30] ^= 0x80,
    ];
    for damage in damages {
        let files = entries(disk.path());
        assert!(files.len() > 5);
        for path in &files {
            builder::table::damage(path, damage);
        }
        let session = with();
        assert!(session.everything() == without);
        assert!(session.count("disk_cache_damaged") > 0);
        session.settle();
    }
    let session = with();
    assert!(session.everything() == without);
    assert_eq!(
        session.count("chunks_transcoded"),
        0,
        "they were made again"
    );
}

#[test]
fn chunks_that_memory_has_no_room_for_are_made_once() {
    let mut t = TableBuilder::new(2, SCHEMA);
    let row = |i: i64| json!([i * 7919 % 1_000_003, format!("{i:0>60}"), i as f64 / 3.0]);
    let a = t.write(Data::rows((0..4000).map(row).collect()).row_groups_of(1000));
    let deletes = t.position_deletes(&[
        (&a.path, 5),
        (&a.path, 1005),
        (&a.path, 2005),
        (&a.path, 3005),
    ]);
    t.commit(Commit::of([a, deletes]));
    t.save();
    let roomy = Session::new(&t, None, &Options::without_text());
    let path = current(&roomy, ".parquet");
    let expected = roomy.read(&path);
    let chunks = roomy.count("chunks_transcoded");
    assert_eq!(chunks, 12);
    assert_eq!(roomy.count("cache_spilled"), 0);

    // A string chunk takes some 60 KB, more than all the memory there is; together they take four times that.
    let options = Options {
        memory: 50_000,
        ..Options::without_text()
    };
    let tight = Session::new(&t, None, &options);
    let mut read = vec![0; expected.len()];
    // Small reads, twice, from the end to the front.
    for _ in 0..2 {
        for start in (0..expected.len()).step_by(4096).rev() {
            let len = 4096.min(expected.len() - start);
            let bytes = tight.opened.read_range(&path, start as u64, len).unwrap();
            read[start..start + len].copy_from_slice(&bytes);
        }
        assert!(read == expected);
    }
    assert_eq!(tight.count("chunks_transcoded"), chunks);
    assert!(tight.count("cache_spilled") > 0);
    assert!(tight.count("spilled_bytes") > 0);
    assert!(tight.count("memory_bytes") <= 50_000);
}

#[test]
fn a_converted_file_larger_than_the_memory_is_converted_once() {
    let t = varied(2);
    let options = Options {
        memory: 1000,
        ..Options::default()
    };
    let session = Session::new(&t, None, &options);
    session.everything();
    session.everything();
    assert_eq!(session.count("files_converted"), 1);
}

#[test]
fn what_an_expired_snapshot_alone_led_to_is_set_to_go_first() {
    let mut t = TableBuilder::new(2, SCHEMA);
    let old = t.data(rows(0..100));
    let deletes = t.position_deletes(&[(&old.path, 1)]);
    t.commit(Commit::of([old, deletes]));
    let new = t.data(rows(100..200));
    let deletes = t.position_deletes(&[(&new.path, 1)]);
    t.commit(Commit::of([new, deletes]).replacing());
    t.save();
    let disk = TempDir::new().unwrap();
    let session = Session::new(&t, Some(disk.path()), &Options::default());
    session.everything();
    session.settle();
    let last = t.metadata()["snapshots"][1].clone();
    t.save_with(|metadata| {
        metadata["snapshots"] = json!([last]);
        metadata["snapshot-log"] = json!([]);
    });
    let until = Instant::now() + LIMIT;
    while session.count("disk_cache_pruned") == 0 && Instant::now() < until {
        session.opened.link("current").unwrap();
        session.settle();
        std::thread::yield_now();
    }
    // Of the old file: three chunks, CSV, JSON lines.
    assert_eq!(session.count("disk_cache_pruned"), 5);
    let first: Vec<_> = entries(disk.path())
        .into_iter()
        .filter(|path| {
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            modified == std::time::UNIX_EPOCH
        })
        .collect();
    assert_eq!(first.len(), 5);
    session.everything();
    assert_eq!(session.opened.list("snapshots").unwrap().len(), 1);
}

/// A table of one file that no codec makes smaller than some hundred kilobytes, with a deleted row.
fn large() -> (TableBuilder, PathBuf) {
    let mut t = TableBuilder::new(2, SCHEMA);
    let row = |i: i64| {
        json!([
            i,
            format!("{:x}", i.wrapping_mul(0x5851_f42d_4c95_7f2d)),
            i as f64 / 3.0
        ])
    };
    let a = t.data((0..20_000).map(row).collect());
    let deletes = t.position_deletes(&[(&a.path, 5)]);
    t.commit(Commit::of([a.clone(), deletes]));
    let metadata = t.save();
    (t, metadata)
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().display().to_string()
}

#[test]
fn bytes_of_a_store_are_not_fetched_by_a_later_mount() {
    let (t, metadata) = large();
    let web = Web::start(&t.root(), |size, time| Some(format!("\"{size}-{time}\"")));
    let url = format!("{}/{}", web.url, below(&t.root(), &metadata));
    let local = Session::new(&t, None, &Options::default());
    let expected = local.read(&current(&local, ".parquet"));
    let data = "data-00001.parquet";
    let len = fs::metadata(t.root().join("data").join(data))
        .unwrap()
        .len();
    assert!(len > 300_000);

    let disk = TempDir::new().unwrap();
    let first = Session::on_the_web(&url, disk.path());
    assert!(first.read(&current(&first, ".parquet")) == expected);
    let sent = web.bytes_of(data);
    assert!(sent > len / 2, "{sent} of {len} bytes");
    first.settle();
    drop(first);
    // Chunks alone would do for the same file; here others are made of the same bytes.
    let blocks = |kind: &str| -> u64 {
        let kinds = usage(disk.path()).unwrap().kinds;
        let of = kinds.iter().filter(|of| of.kind == kind);
        of.map(|of| of.entries).sum()
    };
    assert!(blocks("block") > 0 && blocks("chunk") == 3);
    for entry in entries(disk.path()) {
        if entry
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("chunk")
        {
            fs::remove_file(entry).unwrap();
        }
    }
    let second = Session::on_the_web(&url, disk.path());
    assert!(second.read(&current(&second, ".parquet")) == expected);
    assert_eq!(second.count("chunks_transcoded"), 3);
    // The first look at the file brings its end.
    let sent = web.bytes_of(data);
    assert!(sent <= 80 << 10, "{sent} bytes");
    second.settle();
    drop(second);

    // Written anew under its name.
    let path = t.root().join("data").join(data);
    let file = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &file).unwrap();
    let third = Session::on_the_web(&url, disk.path());
    assert!(third.read(&current(&third, ".parquet")) == expected);
    let sent = web.bytes_of(data);
    assert!(sent > len / 2, "another ETag is another file: {sent} bytes");
}

#[test]
fn nothing_is_kept_of_a_store_without_strong_etags() {
    let etags: [fn(u64, i64) -> Option<String>; 2] =
        [|_, _| None, |size, _| Some(format!("W/\"{size}\""))];
    for etag in etags {
        let (t, metadata) = large();
        let web = Web::start(&t.root(), etag);
        let url = format!("{}/{}", web.url, below(&t.root(), &metadata));
        let disk = TempDir::new().unwrap();
        let session = Session::on_the_web(&url, disk.path());
        session.everything();
        session.settle();
        assert_eq!(usage(disk.path()).unwrap().kinds, []);
    }
}
