#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::file::reader::{ChunkReader, Length};
use tempfile::TempDir;

use super::chunk_reader::SourceReader;
use super::{PathMapping, Storage, StorageError, StorageOptions, location, roots};
use crate::counters::Counters;

/// A directory that stands for a machine: tables and other directories lie in it.
struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    /// Writes a file whose content is its own relative path, so that a test sees which file was opened.
    fn file(&self, relative: &str) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, relative).unwrap();
        self
    }

    fn storage(&self, location: &str) -> Storage {
        Storage::new(&options(&[], &[]), &self.path("table"), location, &[]).unwrap()
    }
}

fn options(maps: &[(&str, &Path)], allowed: &[&Path]) -> StorageOptions {
    let mapping = |(old, new): &(&str, &Path)| PathMapping {
        old: (*old).to_owned(),
        new: new.to_path_buf(),
    };
    StorageOptions {
        map_paths: maps.iter().map(mapping).collect(),
        allow_paths: allowed.iter().map(|path| path.to_path_buf()).collect(),
        ..StorageOptions::default()
    }
}

fn content(storage: &Storage, recorded: &str) -> String {
    let bytes = storage
        .read_file_limited(recorded, 1 << 20)
        .unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn is_not_found(result: &Result<Arc<super::SourceFile>, StorageError>) -> bool {
    matches!(result, Err(StorageError::Io { source, .. }) if source.kind() == ErrorKind::NotFound)
}

#[test]
fn rule_14_every_spelling_of_a_moved_location_is_read_where_the_table_lies_now() {
    let machine = Machine::new();
    machine.file("table/data/f");
    // Location, and a path that the same or another writer records for `data/f` under it.
    let spellings = [
        ("/tmp/t", "/tmp/t/data/f"),
        ("/tmp/t/", "/tmp/t/data/f"),
        ("/tmp/t/", "/tmp/t//data/f"),
        ("/tmp/t", "file:/tmp/t/data/f"),
        ("/tmp/t", "file:///tmp/t/data/f"),
        ("file:///tmp/t", "file:/tmp/t/data/f"),
        ("file:/tmp/t", "file:///tmp/t/data/f"),
        ("file:///tmp/t", "/tmp/t/data/f"),
        ("file:///tmp/t", "file://localhost/tmp/t/data/f"),
        ("FILE:///tmp/t", "/tmp/t/data/f"),
        ("data/persistent/t", "data/persistent/t/data/f"),
        ("./t", "t/data/f"),
        ("t", "./t/data/f"),
        (
            "file://data/persistent/t",
            "file://data/persistent/t/data/f",
        ),
        ("file://data/persistent/t", "data/persistent/t/data/f"),
        ("s3://bucket/a/t", "s3://bucket/a/t/data/f"),
        ("s3://bucket/a/t", "s3a://bucket/a/t/data/f"),
        ("s3a://bucket/a/t", "s3n://bucket/a/t/data/f"),
        ("s3://bucket", "s3://bucket/data/f"),
        ("gs://bucket/t", "gs://bucket/t/data/f"),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            "abfss://c@a.dfs.core.windows.net/t/data/f",
        ),
        ("hdfs://host:8020/w/t", "hdfs://host:8020/w/t/data/f"),
        ("hdfs://host:8020/w/t", "/w/t/data/f"),
        ("hdfs://host:8020/w/t", "hdfs:/w/t/data/f"),
        ("/w/t", "hdfs://host:8020/w/t/data/f"),
        ("hdfs:///w/t", "hdfs://host:8020/w/t/data/f"),
    ];
    for (location, recorded) in spellings {
        let storage = machine.storage(location);
        assert_eq!(
            content(&storage, recorded),
            "table/data/f",
            "{location} {recorded}"
        );
        let there = fs::canonicalize(machine.path("table/data/f")).unwrap();
        assert_eq!(
            storage.canonical(recorded),
            there.to_str().unwrap(),
            "{location} {recorded}"
        );
    }
}

#[test]
fn rule_14_a_location_is_a_prefix_of_whole_components_of_the_same_storage() {
    let machine = Machine::new();
    machine.file("table/data/f").file("table/2/data/f");
    let elsewhere = [
        ("/tmp/t", "/tmp/t2/f"),
        ("s3://bucket/t", "s3://other/t/f"),
        ("s3://bucket/t", "gs://bucket/t/f"),
        ("s3://bucket/t", "file:///t/f"),
        ("/tmp/t", "tmp/t/f"),
        ("/tmp/t", "/tmp/t"),
        // Neither names a place: every path would lie under it.
        ("/", "/x/f"),
        ("", "x/f"),
    ];
    for (location, recorded) in elsewhere {
        let opened = machine.storage(location).open(recorded);
        let refused = matches!(
            opened,
            Err(StorageError::NotAllowed { .. } | StorageError::Scheme { .. })
        );
        assert!(refused, "{location} {recorded}: {opened:?}");
    }
}

#[test]
fn rule_14_recorded_paths_are_literal_and_decoded_only_where_the_literal_is_missing() {
    let machine = Machine::new();
    machine
        .file("table/data/p=a%20b/f")
        .file("table/data/p=a b/f")
        .file("table/data/p=c d/f");
    let storage = machine.storage("file:///t");
    assert_eq!(
        content(&storage, "file:///t/data/p=a%20b/f"),
        "table/data/p=a%20b/f"
    );
    assert_eq!(
        content(&storage, "file:///t/data/p=a b/f"),
        "table/data/p=a b/f"
    );
    assert_eq!(
        content(&storage, "file:///t/data/p=c%20d/f"),
        "table/data/p=c d/f"
    );
    // Not a URI: a `%` is a `%`.
    assert!(is_not_found(&storage.open("/t/data/p=c%20d/f")));
    assert_eq!(location::percent_decoded("a%2"), None);
    assert_eq!(
        location::percent_decoded("a%zz%C3%A9"),
        Some("a%zzé".to_owned())
    );
    assert_eq!(location::percent_decoded("a%FF"), None, "not UTF-8");
    assert_eq!(location::percent_decoded("a%00"), None);
}

#[test]
fn rule_14_what_no_location_explains_is_matched_from_its_end() {
    let machine = Machine::new();
    machine
        .file("table/data/f")
        .file("table/data/p=1/f")
        .file("table/g");
    let storage = machine.storage("gs://bucket/t");
    assert_eq!(
        content(&storage, "data/persistent/t/data/f"),
        "table/data/f"
    );
    assert_eq!(
        content(&storage, "s3://elsewhere/t/data/p=1/f"),
        "table/data/p=1/f"
    );
    assert_eq!(content(&storage, "/old/data//p=1/f"), "table/data/p=1/f");
    // One component says too little.
    assert!(matches!(
        storage.open("/old/g"),
        Err(StorageError::NotAllowed { .. })
    ));
    assert!(matches!(
        storage.open("s3://elsewhere/data/absent"),
        Err(StorageError::Scheme { .. })
    ));
    // Under the location, what is missing is missing: no other file stands in for it.
    assert!(is_not_found(&storage.open("gs://bucket/t/x/data/f")));
}

#[test]
fn rule_14_map_path_beats_the_location_and_the_longest_prefix_wins() {
    let machine = Machine::new();
    machine
        .file("table/data/f")
        .file("a/data/f")
        .file("b/f")
        .file("c/f");
    let (a, b, c) = (machine.path("a"), machine.path("b"), machine.path("c"));
    let maps: [(&str, &Path); 3] = [
        ("s3://bucket/t/", &a),
        ("s3://bucket/t/data/deep", &b),
        ("/x", &c),
    ];
    let storage = Storage::new(
        &options(&maps, &[]),
        &machine.path("table"),
        "s3://bucket/t",
        &[],
    )
    .unwrap();
    assert_eq!(content(&storage, "s3://bucket/t/data/f"), "a/data/f");
    assert_eq!(content(&storage, "s3a://bucket/t/data/deep/f"), "b/f");
    assert_eq!(content(&storage, "/x/f"), "c/f");
    assert!(
        is_not_found(&storage.open("s3://bucket/t/absent")),
        "no second guess behind a mapping"
    );
}

#[test]
fn rule_14_of_two_mappings_of_one_path_the_one_of_the_same_storage_is_meant() {
    let machine = Machine::new();
    machine.file("table/f").file("a/f").file("b/f");
    let (a, b) = (machine.path("a"), machine.path("b"));
    for maps in [
        [("/x", &*a), ("hdfs://host/x", &*b)],
        [("hdfs://host/x", &*b), ("/x", &*a)],
    ] {
        let storage =
            Storage::new(&options(&maps, &[]), &machine.path("table"), "/t", &[]).unwrap();
        assert_eq!(content(&storage, "/x/f"), "a/f");
        assert_eq!(content(&storage, "hdfs://host/x/f"), "b/f");
    }
}

#[test]
fn rule_14_two_mappings_to_one_place_make_two_spellings_equal() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let table = machine.path("table");
    let maps: [(&str, &Path); 2] = [
        ("/test-warehouse/t", &table),
        ("hdfs://localhost:20500/test-warehouse/t", &table),
    ];
    let storage = Storage::new(&options(&maps, &[]), &table, "/other", &[]).unwrap();
    let data_file = storage.canonical("/test-warehouse/t/data/f");
    assert_eq!(
        storage.canonical("hdfs://localhost:20500/test-warehouse/t/data/f"),
        data_file
    );
    assert_ne!(storage.canonical("/test-warehouse/t/data/g"), data_file);
}

#[test]
fn rule_14_canonical_keys_differ_for_different_files_and_agree_for_spellings() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("s3://bucket/t");
    let key = |recorded| storage.canonical(recorded);
    assert_eq!(key("s3://bucket/t/data//f"), key("s3a://bucket/t/./data/f"));
    assert_ne!(key("s3://bucket/t/data/f"), key("s3://bucket/t/data/f2"));
    assert_ne!(key("s3://bucket/t/data/f"), key("s3://other/t/data/f"));
    assert_ne!(key("s3://bucket/t/data/%66"), key("s3://bucket/t/data/f"));
    // Under no location: equal all the same.
    assert_eq!(key("file:/z/f"), key("/z/f"));
    assert_eq!(key("file:///z//f"), key("/z/f"));
    assert_eq!(key("s3n://z/f"), key("s3://z/f"));
    assert_ne!(key("s3://z/f"), key("/z/f"));
}

#[test]
fn extra_locations_and_allowed_paths_are_read_as_they_stand() {
    let machine = Machine::new();
    machine
        .file("table/mine/f")
        .file("elsewhere/f")
        .file("allowed/f")
        .file("secret/f");
    let (elsewhere, allowed) = (machine.path("elsewhere"), machine.path("allowed"));
    let extra = [
        elsewhere.display().to_string(),
        "/t/mine".to_owned(),
        "s3://b/x".to_owned(),
        "/".to_owned(),
    ];
    let storage = Storage::new(
        &options(&[], &[&allowed]),
        &machine.path("table"),
        "/t",
        &extra,
    )
    .unwrap();
    assert_eq!(
        content(&storage, elsewhere.join("f").to_str().unwrap()),
        "elsewhere/f"
    );
    assert_eq!(
        content(&storage, &format!("file:{}/f", allowed.display())),
        "allowed/f"
    );
    assert_eq!(content(&storage, "/t/mine/f"), "table/mine/f");
    // The table's own directory by the path where it lies now.
    assert_eq!(
        content(&storage, machine.path("table/mine/f").to_str().unwrap()),
        "table/mine/f"
    );
    let secret = machine.path("secret/f").display().to_string();
    assert!(
        matches!(storage.open(&secret), Err(StorageError::NotAllowed { .. })),
        "`/` allows nothing"
    );
    assert!(matches!(
        storage.open("/etc/passwd"),
        Err(StorageError::NotAllowed { .. })
    ));
    // A path of remote storage never stands for a local directory.
    let remote = format!("hdfs://host{}/f", allowed.display());
    assert!(matches!(
        storage.open(&remote),
        Err(StorageError::Scheme { .. })
    ));
}

#[test]
fn paths_that_lead_out_of_the_table_are_refused() {
    let machine = Machine::new();
    machine
        .file("table/data/f")
        .file("secret/f")
        .file("allowed/f");
    symlink(machine.path("secret"), machine.path("table/data/absolute")).unwrap();
    symlink("../../secret", machine.path("table/data/relative")).unwrap();
    symlink("../../secret/f", machine.path("table/data/file")).unwrap();
    symlink("/proc/self/root/etc", machine.path("table/data/magic")).unwrap();
    symlink("loop", machine.path("table/data/loop")).unwrap();
    let storage = machine.storage("/t");
    for escape in [
        "../secret/f",
        "data/../../secret/f",
        "data/absolute/f",
        "data/relative/f",
        "data/file",
        "data/magic/passwd",
        "data/loop",
    ] {
        let opened = storage.open(&format!("/t/{escape}"));
        assert!(
            matches!(opened, Err(StorageError::NotAllowed { .. })),
            "{escape}: {opened:?}"
        );
    }
    // From the end of a path, too.
    assert!(storage.open("/old/data/../../secret/f").is_err());
    assert!(storage.open("/old/data/relative/f").is_err());
    // What stays inside is fine.
    assert_eq!(content(&storage, "/t/data/../data/f"), "table/data/f");
}

#[test]
fn symlinks_inside_the_table_or_into_an_allowed_directory_are_followed() {
    let machine = Machine::new();
    machine.file("table/data/f").file("disk2/data/g");
    symlink(machine.path("disk2/data"), machine.path("table/more")).unwrap();
    symlink("data", machine.path("table/relative")).unwrap();
    symlink(machine.path("table/data"), machine.path("table/absolute")).unwrap();
    let disk = machine.path("disk2");
    let storage = Storage::new(&options(&[], &[&disk]), &machine.path("table"), "/t", &[]).unwrap();
    assert_eq!(content(&storage, "/t/more/g"), "disk2/data/g");
    assert_eq!(content(&storage, "/t/relative/f"), "table/data/f");
    assert_eq!(content(&storage, "/t/absolute/f"), "table/data/f");
}

#[test]
fn a_table_directory_that_is_itself_a_symlink_is_fine() {
    let machine = Machine::new();
    machine.file("real/data/f");
    symlink("real", machine.path("table")).unwrap();
    assert_eq!(content(&machine.storage("/t"), "/t/data/f"), "real/data/f");
}

#[test]
fn only_regular_files_are_opened_and_none_makes_the_opening_wait() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let fifo = machine.path("table/data/fifo");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket =
        std::os::unix::net::UnixListener::bind(machine.path("table/data/socket")).unwrap();
    let dev = Path::new("/dev");
    let storage = Storage::new(&options(&[], &[dev]), &machine.path("table"), "/t", &[]).unwrap();
    for other in ["/t/data", "/t/data/fifo", "/t/data/socket", "/dev/zero"] {
        let opened = storage.open(other);
        assert!(
            matches!(opened, Err(StorageError::NotRegular { .. })),
            "{other}: {opened:?}"
        );
    }
    let counters = Counters::default();
    let named = super::read_named_file(&fifo, 100, &counters);
    assert!(matches!(named, Err(StorageError::NotRegular { .. })));
}

#[test]
fn texts_that_are_no_paths_are_refused() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("/t");
    let long = format!("/t/{}", "a/".repeat(3000));
    for text in [
        "",
        "/",
        "/t",
        "/t/",
        ".",
        "..",
        "file:",
        "s3://",
        "/t/data/f\0",
        &long,
        "/t/data/f/x",
    ] {
        assert!(storage.open(text).is_err(), "{text:?}");
        storage.canonical(text);
    }
}

#[test]
fn without_openat2_no_symlink_is_followed_and_no_way_up_is_taken() {
    let machine = Machine::new();
    machine.file("table/data/f").file("secret/f");
    symlink("data", machine.path("table/link")).unwrap();
    symlink("f", machine.path("table/data/g")).unwrap();
    let root = fs::File::open(machine.path("table")).unwrap().into();
    let open = |path: &str| roots::open_by_components(&root, Path::new(path));
    let mut text = String::new();
    fs::File::from(open("data/./f").unwrap())
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "table/data/f");
    for refused in [
        "link/f",
        "data/g",
        "../secret/f",
        "data/../../secret/f",
        "/etc/passwd",
        "",
        ".",
    ] {
        assert!(open(refused).is_err(), "{refused}");
    }
}

#[test]
fn reads_are_exact_checked_and_counted() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("/t");
    let file = storage.open("/t/data/f").unwrap();
    let before = storage.counters().snapshot();
    assert_eq!(file.len(), 12);
    assert_eq!(&file.read_range(6, 4).unwrap()[..], b"data");
    let mut buffer = [0; 5];
    file.read_exact_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"table");
    assert_eq!(
        storage.counters().since(&before),
        [("source_reads", 2), ("source_bytes", 9)]
    );
    for (offset, len) in [
        (0, 13),
        (12, 1),
        (13, 0),
        (u64::MAX, 1),
        (1, u64::MAX),
        (0, u64::MAX),
    ] {
        let read = file.read_range(offset, len);
        assert!(
            matches!(read, Err(StorageError::PastEnd { size: 12, .. })),
            "{offset} {len}: {read:?}"
        );
    }
    assert!(file.read_range(12, 0).unwrap().is_empty());
    assert!(file.read_exact_at(&mut buffer, 8).is_err());
    let whole = storage.read_file_limited("/t/data/f", 11);
    assert!(matches!(
        whole,
        Err(StorageError::TooLarge {
            size: 12,
            max: 11,
            ..
        })
    ));
}

#[test]
fn a_file_that_changed_or_went_is_noticed() {
    let machine = Machine::new();
    machine.file("table/data/f").file("table/data/g");
    let storage = machine.storage("/t");
    let identity = *storage.open("/t/data/f").unwrap().identity();
    assert!(storage.open_same("/t/data/f", &identity).is_ok());
    assert!(matches!(
        storage.open_same("/t/data/g", &identity),
        Err(StorageError::Changed { .. })
    ));

    let file = storage.open("/t/data/f").unwrap();
    fs::write(machine.path("table/data/f"), "short").unwrap();
    assert!(matches!(
        file.read_range(0, 12),
        Err(StorageError::Changed { .. })
    ));

    let file = storage.open("/t/data/g").unwrap();
    fs::remove_file(machine.path("table/data/g")).unwrap();
    assert!(file.read_range(0, 12).is_ok(), "an open file goes on");
    file.descriptors.remove(file.descriptor);
    assert!(
        file.read_range(0, 12).is_err(),
        "a file that must be opened again is gone"
    );
}

#[test]
fn open_descriptors_are_bounded_and_given_up_files_go_on_being_read() {
    let machine = Machine::new();
    for n in 0..300 {
        machine.file(&format!("table/data/{n}"));
    }
    let storage = machine.storage("/t");
    let files: Vec<_> = (0..300)
        .map(|n| storage.open(&format!("/t/data/{n}")).unwrap())
        .collect();
    assert_eq!(storage.descriptors.len(), 256);
    for (n, file) in files.iter().enumerate() {
        let text = file.read_range(0, file.len()).unwrap();
        assert_eq!(&text[..], format!("table/data/{n}").as_bytes());
    }
    assert_eq!(storage.descriptors.len(), 256);
    drop(files);
    assert_eq!(storage.descriptors.len(), 0);
}

#[test]
fn the_parquet_crate_reads_a_source_file() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("/t");
    let reader = SourceReader(storage.open("/t/data/f").unwrap());
    assert_eq!(Length::len(&reader), 12);
    assert_eq!(&reader.get_bytes(6, 4).unwrap()[..], b"data");
    assert!(reader.get_bytes(6, 7).is_err());
    let mut rest = String::new();
    reader
        .get_read(6)
        .unwrap()
        .read_to_string(&mut rest)
        .unwrap();
    assert_eq!(rest, "data/f");
    rest.clear();
    reader
        .get_read(99)
        .unwrap()
        .read_to_string(&mut rest)
        .unwrap();
    assert_eq!(rest, "");
}

#[test]
fn map_path_option_splits_where_the_new_directory_exists() {
    let machine = Machine::new();
    machine.file("x=1/f").file("y/f");
    let parse = |text: &str| text.parse::<PathMapping>();
    let (x, y) = (
        machine.path("x=1").display().to_string(),
        machine.path("y").display().to_string(),
    );
    let mapping = |old: &str, new: &str| PathMapping {
        old: old.to_owned(),
        new: PathBuf::from(new),
    };
    assert_eq!(
        parse(&format!("s3://b/p=1={y}")).unwrap(),
        mapping("s3://b/p=1", &y)
    );
    assert_eq!(
        parse(&format!("s3://b={x}")).unwrap(),
        mapping("s3://b", &x)
    );
    assert_eq!(
        parse("s3://b=/absent/p=1").unwrap(),
        mapping("s3://b", "/absent/p=1")
    );
    for bad in ["", "=", "a", "a=", "=b"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    let missing = options(&[("/x", Path::new("/absent"))], &[]);
    assert!(Storage::new(&missing, &machine.path("y"), "/t", &[]).is_err());
}
