//! From recorded paths to files: spellings, moved tables, mappings, and what must not be opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::super::{PathMapping, Storage, StorageError, location};
use super::{Machine, content, is_not_found, options};

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
        &machine.path("table").into(),
        &Default::default(),
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
        let storage = Storage::new(
            &options(&maps, &[]),
            &machine.path("table").into(),
            &Default::default(),
            "/t",
            &[],
        )
        .unwrap();
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
    let storage = Storage::new(
        &options(&maps, &[]),
        &table.clone().into(),
        &Default::default(),
        "/other",
        &[],
    )
    .unwrap();
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
        &machine.path("table").into(),
        &Default::default(),
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
    let storage = Storage::new(
        &options(&[], &[&disk]),
        &machine.path("table").into(),
        &Default::default(),
        "/t",
        &[],
    )
    .unwrap();
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
        new: PathBuf::from(new).into(),
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
    assert!(
        Storage::new(
            &missing,
            &machine.path("y").into(),
            &Default::default(),
            "/t",
            &[]
        )
        .is_err()
    );
}
