#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::DirectoryCatalog;
use crate::catalog::{Catalog, CatalogError, Listing, TableIdent};

mod corpus;

const UUID_A: &str = "3f1801a5-7dfb-4072-b14a-39cd12f9279b";
const UUID_B: &str = "eb45c383-9e13-43bd-882f-1ccad26fb644";

/// Directories and files below a temporary directory.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    fn write(&self, relative: &str, text: &str) -> &Self {
        fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        fs::write(self.path(relative), text).unwrap();
        self
    }

    /// A table with one metadata file; nothing here reads what is in it.
    fn table(&self, relative: &str) -> &Self {
        self.write(&format!("{relative}/metadata/v1.metadata.json"), "{}")
    }

    fn catalog(&self, relative: &str) -> DirectoryCatalog {
        DirectoryCatalog::open(&self.path(relative)).unwrap()
    }
}

/// The metadata file that is found in a table whose metadata directory holds `files`, and the hint `hint`.
fn current(files: &[&str], hint: Option<&str>) -> Result<String, CatalogError> {
    let place = Place::new();
    for file in files {
        place.write(&format!("t/metadata/{file}"), "{}");
    }
    if let Some(hint) = hint {
        place.write("t/metadata/version-hint.text", hint);
    }
    let catalog = DirectoryCatalog::open(&place.path("t"))?;
    let pointer = catalog.table(&catalog.single_table().unwrap())?.unwrap();
    assert_eq!(pointer.root, place.path("t").into());
    assert_eq!(
        pointer.metadata.local().unwrap().parent().unwrap(),
        place.path("t/metadata")
    );
    Ok(pointer
        .metadata
        .local()
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned())
}

fn ident(namespace: &[&str], name: &str) -> TableIdent {
    TableIdent {
        namespace: namespace.iter().map(|part| (*part).to_owned()).collect(),
        name: name.to_owned(),
    }
}

fn listing(namespaces: &[&str], tables: &[&str]) -> Listing {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Listing {
        namespaces: owned(namespaces),
        tables: owned(tables),
    }
}

fn list(catalog: &DirectoryCatalog, namespace: &[&str]) -> Listing {
    let namespace: Vec<String> = namespace.iter().map(|part| (*part).to_owned()).collect();
    catalog.list(&namespace).unwrap()
}

#[test]
fn rule_15_the_hint_leads_to_the_newest_version_that_follows_it_without_a_gap() {
    let versions = [
        "v1.metadata.json",
        "v2.metadata.json",
        "v3.metadata.json",
        "v5.metadata.json",
    ];
    assert_eq!(current(&versions, Some("1")).unwrap(), "v3.metadata.json");
    assert_eq!(current(&versions, Some("2\n")).unwrap(), "v3.metadata.json");
    assert_eq!(
        current(&versions, Some(" 3 \nmore\n")).unwrap(),
        "v3.metadata.json"
    );
    assert_eq!(current(&versions, Some("5")).unwrap(), "v5.metadata.json");
    assert_eq!(
        current(&["v9.metadata.json", "v10.metadata.json"], Some("9")).unwrap(),
        "v10.metadata.json"
    );
}

#[test]
fn rule_15_a_hint_may_be_a_version_string_or_a_file_name() {
    let a = format!("00001-{UUID_A}");
    let (file, newer) = (
        format!("{a}.metadata.json"),
        format!("00002-{UUID_B}.metadata.json"),
    );
    let path = format!("s3://bucket/t/metadata/{file}");
    let numbered = [file.as_str(), newer.as_str()];
    assert_eq!(current(&numbered, Some(&a)).unwrap(), file);
    assert_eq!(current(&numbered, Some(&file)).unwrap(), file);
    assert_eq!(current(&numbered, Some(&path)).unwrap(), file);
    let versions = ["v2.metadata.json", "v3.gz.metadata.json"];
    assert_eq!(
        current(&versions, Some("v2")).unwrap(),
        "v3.gz.metadata.json"
    );
    assert_eq!(
        current(&versions, Some("v2.metadata.json")).unwrap(),
        "v3.gz.metadata.json"
    );
    assert_eq!(
        current(
            &["vfinal.metadata.json", "vtest.metadata.json"],
            Some("vtest")
        )
        .unwrap(),
        "vtest.metadata.json"
    );
}

#[test]
fn rule_15_a_bad_or_missing_hint_leads_to_the_numeric_maximum() {
    let versions = ["v9.metadata.json", "v10.metadata.json", "v1.metadata.json"];
    let bad = [
        "",
        "\n3",
        "-1",
        "7",
        "1.5",
        "nonsense",
        "../../v8",
        "99999999999999999999999",
        "..",
        "\u{0}",
    ];
    for hint in bad.into_iter().map(Some).chain([None]) {
        assert_eq!(
            current(&versions, hint).unwrap(),
            "v10.metadata.json",
            "{hint:?}"
        );
    }
    let (nine, ten) = (
        format!("9-{UUID_A}.metadata.json"),
        format!("10-{UUID_B}.metadata.json"),
    );
    assert_eq!(current(&[&nine, &ten], None).unwrap(), ten);
    let (nine, ten) = (
        format!("00009-{UUID_A}.metadata.json"),
        format!("00010-{UUID_B}.gz.metadata.json"),
    );
    assert_eq!(
        current(&[&nine, &ten, "v3.metadata.json"], None).unwrap(),
        ten
    );
    // BigQuery numbers versions by the time.
    assert_eq!(
        current(
            &["v1749025517.metadata.json", "v1749025518.metadata.json"],
            None
        )
        .unwrap(),
        "v1749025518.metadata.json"
    );
}

#[test]
fn rule_15_a_hint_that_is_no_text_or_no_file_is_passed_over() {
    let place = Place::new();
    place.table("t").write("t/metadata/version-hint.text/x", "");
    place.table("u");
    fs::write(
        place.path("u/metadata/version-hint.text"),
        [0xff, 0xfe, b'1'],
    )
    .unwrap();
    place.table("f");
    let fifo = place.path("f/metadata/version-hint.text");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, rustix::fs::Mode::RWXU, 0).unwrap();
    let catalog = place.catalog("");
    for name in ["t", "u", "f"] {
        assert!(
            catalog.table(&ident(&[], name)).unwrap().is_some(),
            "{name}"
        );
    }
}

#[test]
fn rule_02_and_15_compressed_names_of_every_writer() {
    for name in [
        "v3.gz.metadata.json",
        "v3.metadata.json.gz",
        "v3.gzip.metadata.json",
    ] {
        assert_eq!(current(&["v2.metadata.json", name], None).unwrap(), name);
        assert_eq!(
            current(&["v2.metadata.json", name], Some("3")).unwrap(),
            name
        );
        assert_eq!(
            current(&["v2.metadata.json", name], Some("2")).unwrap(),
            name
        );
    }
    let name = format!("00003-{UUID_A}.gz.metadata.json");
    assert_eq!(current(&[&name, "v2.metadata.json"], None).unwrap(), name);
    assert_eq!(
        current(
            &[&name, "v2.metadata.json"],
            Some(&format!("00003-{UUID_A}"))
        )
        .unwrap(),
        name
    );
}

#[test]
fn rule_15_two_files_of_the_highest_version_are_refused_naming_both() {
    let (a, b) = (
        format!("00003-{UUID_A}.metadata.json"),
        format!("00003-{UUID_B}.metadata.json"),
    );
    let cases: [(&[&str], Option<&str>); 5] = [
        (&[&a, &b], None),
        (&["v3.metadata.json", "v3.gz.metadata.json"], None),
        (&["v3.metadata.json", "v3.gz.metadata.json"], Some("3")),
        (
            &[
                "v2.metadata.json",
                "v3.metadata.json",
                "v3.metadata.json.gz",
            ],
            Some("2"),
        ),
        (&["v3.metadata.json", &a], None),
    ];
    for (files, hint) in cases {
        let Err(CatalogError::Pointer { path, reason }) = current(files, hint) else {
            panic!("{files:?} {hint:?}")
        };
        assert!(path.ends_with("t/metadata"), "{path}");
        let last_two = files.iter().rev().take(2);
        last_two.for_each(|file| assert!(reason.contains(file), "{reason}"));
    }
    // Two of a lower version do not matter, and a hint that names one of the files decides.
    assert_eq!(
        current(&[&a, &b, "v4.metadata.json"], None).unwrap(),
        "v4.metadata.json"
    );
    assert_eq!(current(&[&a, &b], Some(&b)).unwrap(), b);
    let same = ["v3.metadata.json", "v3.gz.metadata.json"];
    assert_eq!(
        current(&same, Some("v3.gz.metadata.json")).unwrap(),
        "v3.gz.metadata.json"
    );
}

#[test]
fn rule_15_other_names_count_only_alone_and_unfinished_commits_never() {
    let unfinished = format!("{UUID_A}.metadata.json");
    assert_eq!(
        current(&["vfinal.metadata.json"], None).unwrap(),
        "vfinal.metadata.json"
    );
    assert_eq!(
        current(&["vfinal.metadata.json", "v1.metadata.json"], None).unwrap(),
        "v1.metadata.json"
    );
    assert_eq!(
        current(&["v1.metadata.json", "v2.old.metadata.json"], None).unwrap(),
        "v1.metadata.json"
    );
    assert_eq!(
        current(
            &["v1.metadata.json", &unfinished, ".v2.metadata.json"],
            None
        )
        .unwrap(),
        "v1.metadata.json"
    );
    assert!(matches!(
        current(&["a.metadata.json", "b.metadata.json"], None),
        Err(CatalogError::Pointer { .. })
    ));
    assert!(matches!(
        current(&[&unfinished], None),
        Err(CatalogError::NoTable { .. })
    ));
    assert!(matches!(
        current(&[".v1.metadata.json.crc", "snap-1.avro"], None),
        Err(CatalogError::NoTable { .. })
    ));
    assert!(matches!(
        current(&[], Some("4")),
        Err(CatalogError::Pointer { .. })
    ));
}

#[test]
fn a_directory_named_like_a_metadata_file_is_none() {
    let place = Place::new();
    place.table("t").write("t/metadata/v7.metadata.json/x", "");
    let found = place.catalog("t").table(&ident(&[], "t")).unwrap().unwrap();
    assert_eq!(
        found.metadata,
        place.path("t/metadata/v1.metadata.json").into()
    );
}

#[test]
fn rule_15_each_look_finds_the_pointer_anew() {
    let place = Place::new();
    place.table("t");
    let catalog = place.catalog("t");
    let found = || catalog.table(&ident(&[], "t")).unwrap().unwrap().metadata;
    assert_eq!(found(), place.path("t/metadata/v1.metadata.json").into());
    place.write("t/metadata/v2.metadata.json", "{}");
    assert_eq!(found(), place.path("t/metadata/v2.metadata.json").into());
    fs::remove_dir_all(place.path("t")).unwrap();
    assert!(catalog.table(&ident(&[], "t")).unwrap().is_none());
}

#[test]
fn a_metadata_file_is_that_state_for_ever() {
    let place = Place::new();
    place.write(&format!("t-{UUID_A}/metadata/v1.metadata.json"), "{}");
    place.write(&format!("t-{UUID_A}/metadata/v2.metadata.json"), "{}");
    place.write("flat/v1.metadata.json", "{}");
    let pinned = format!("t-{UUID_A}/metadata/v1.metadata.json");
    let catalog = place.catalog(&pinned);
    assert_eq!(catalog.single_table(), Some(ident(&[], "t")));
    assert_eq!(list(&catalog, &[]), listing(&[], &["t"]));
    let pointer = catalog.table(&ident(&[], "t")).unwrap().unwrap();
    assert_eq!(pointer.metadata, place.path(&pinned).into());
    assert_eq!(pointer.root, place.path(&format!("t-{UUID_A}")).into());
    assert!(catalog.table(&ident(&[], "other")).unwrap().is_none());
    let flat = place
        .catalog("flat/v1.metadata.json")
        .table(&ident(&[], "flat"))
        .unwrap()
        .unwrap();
    assert_eq!(flat.root, place.path("flat").into());
}

#[test]
fn a_table_directory_may_hold_its_metadata_directly_or_be_given_by_its_metadata_directory() {
    let place = Place::new();
    place
        .write("flat/v1.metadata.json", "{}")
        .table("t")
        .table("metadata");
    let found = |source: &str, name| {
        place
            .catalog(source)
            .table(&ident(&[], name))
            .unwrap()
            .unwrap()
    };
    assert_eq!(found("flat", "flat").root, place.path("flat").into());
    assert_eq!(found("t/metadata", "t").root, place.path("t").into());
    assert_eq!(
        found("metadata", "metadata").root,
        place.path("metadata").into()
    );
}

#[test]
fn a_warehouse_lists_namespaces_and_tables_at_any_depth() {
    let place = Place::new();
    place
        .table("w/top")
        .table("w/a/t1")
        .table("w/a/b/c/t2")
        .table("w/sales.db/orders");
    place
        .table(&format!("w/a/t3-{UUID_A}"))
        .table(&format!("w/a/t4-{}", UUID_B.replace('-', "")));
    // No namespaces: empty, hidden, what a dropped table left behind, and what lies in a table.
    fs::create_dir_all(place.path("w/empty/deep")).unwrap();
    place
        .table("w/.hidden/t")
        .write("w/dropped/data/f.parquet", "")
        .write("w/dropped/metadata/snap.avro", "");
    place
        .write("w/top/data/p=1/f.parquet", "")
        .table("w/top/inner")
        .write("w/file", "");
    let catalog = place.catalog("w");
    assert_eq!(catalog.single_table(), None);
    assert_eq!(list(&catalog, &[]), listing(&["a", "sales"], &["top"]));
    assert_eq!(list(&catalog, &["a"]), listing(&["b"], &["t1", "t3", "t4"]));
    assert_eq!(list(&catalog, &["a", "b"]), listing(&["c"], &[]));
    assert_eq!(list(&catalog, &["a", "b", "c"]), listing(&[], &["t2"]));
    assert_eq!(list(&catalog, &["sales"]), listing(&[], &["orders"]));
    let root = |namespace: &[&str], name| {
        catalog
            .table(&ident(namespace, name))
            .unwrap()
            .map(|table| table.root)
    };
    assert_eq!(
        root(&["a", "b", "c"], "t2"),
        Some(place.path("w/a/b/c/t2").into())
    );
    assert_eq!(
        root(&["sales"], "orders"),
        Some(place.path("w/sales.db/orders").into())
    );
    assert_eq!(
        root(&["a"], "t3"),
        Some(place.path(&format!("w/a/t3-{UUID_A}")).into())
    );
    for (namespace, name) in [
        (&["a"][..], "t2"),
        (&["x"], "t"),
        (&[], "a"),
        (&["a", ".."], "top"),
        (&[".hidden"], "t"),
    ] {
        assert_eq!(root(namespace, name), None, "{namespace:?} {name}");
    }
    assert!(matches!(
        catalog.list(&["x".to_owned()]),
        Err(CatalogError::NoTable { .. })
    ));
}

#[test]
fn a_namespace_may_be_called_data() {
    let place = Place::new();
    place.table("w/data/t");
    assert_eq!(list(&place.catalog("w"), &[]), listing(&["data"], &[]));
}

#[test]
fn names_are_shortened_only_where_the_shorter_name_is_free() {
    let place = Place::new();
    let (a, b) = (format!("t-{UUID_A}"), format!("t-{UUID_B}"));
    place
        .table(&format!("w/two/{a}"))
        .table(&format!("w/two/{b}"));
    place.table("w/one/t").table(&format!("w/one/{a}"));
    place
        .table("w/ns/t")
        .table("w/ns.db/t")
        .table(&format!("w/ns.db-{UUID_A}"));
    let catalog = place.catalog("w");
    assert_eq!(list(&catalog, &["two"]), listing(&[], &[&a, &b]));
    assert_eq!(list(&catalog, &["one"]), listing(&[], &["t", &a]));
    assert_eq!(
        list(&catalog, &[]),
        listing(
            &["ns", "ns.db", "one", "two"],
            &[&format!("ns.db-{UUID_A}")]
        )
    );
    // What is listed is found, and nothing else.
    let root = |namespace: &[&str], name: &str| {
        let found = catalog.table(&ident(namespace, name)).unwrap();
        found.map(|table| table.root)
    };
    for (namespace, name, directory) in [
        (&["one"][..], "t", "w/one/t".to_owned()),
        (&["one"], &a, format!("w/one/{a}")),
        (&["two"], &a, format!("w/two/{a}")),
        (&["ns"], "t", "w/ns/t".to_owned()),
        (&["ns.db"], "t", "w/ns.db/t".to_owned()),
        (&[], &format!("ns.db-{UUID_A}"), format!("w/ns.db-{UUID_A}")),
    ] {
        assert_eq!(
            root(namespace, name),
            Some(place.path(&directory).into()),
            "{namespace:?} {name}"
        );
    }
    assert_eq!(root(&["two"], "t"), None);
    assert_eq!(root(&[], "ns.db"), None);
}

#[test]
fn tables_added_to_a_warehouse_appear_and_removed_ones_go() {
    let place = Place::new();
    place.table("w/a/t");
    let catalog = place.catalog("w");
    place.table("w/a/u").table("w/b/t");
    assert_eq!(list(&catalog, &[]), listing(&["a", "b"], &[]));
    assert_eq!(list(&catalog, &["a"]), listing(&[], &["t", "u"]));
    fs::remove_dir_all(place.path("w/a")).unwrap();
    assert_eq!(list(&catalog, &[]), listing(&["b"], &[]));
    assert!(catalog.table(&ident(&["a"], "t")).unwrap().is_none());
}

#[test]
fn symlink_loops_end_and_symlinked_tables_are_listed() {
    let place = Place::new();
    place.table("elsewhere/t").table("w/a/u");
    symlink(place.path("elsewhere/t"), place.path("w/link")).unwrap();
    symlink("..", place.path("w/a/up")).unwrap();
    symlink(".", place.path("w/self")).unwrap();
    symlink("/", place.path("w/root")).unwrap();
    symlink("nowhere", place.path("w/dangling")).unwrap();
    // Two that lead into each other.
    fs::create_dir_all(place.path("w/b")).unwrap();
    symlink("../a", place.path("w/b/to_a")).unwrap();
    symlink("../b", place.path("w/a/to_b")).unwrap();
    let catalog = place.catalog("w");
    assert_eq!(list(&catalog, &[]), listing(&["a", "b"], &["link"]));
    assert_eq!(list(&catalog, &["a"]).tables, ["u"]);
    assert_eq!(list(&catalog, &["b"]), listing(&["to_a"], &[]));
    assert_eq!(list(&catalog, &["b", "to_a"]), listing(&[], &["u"]));
}

#[test]
fn namespaces_end_at_a_depth() {
    let place = Place::new();
    place
        .table(&format!("w/{}t", "n/".repeat(16)))
        .table(&format!("w/{}t", "m/".repeat(17)));
    let catalog = place.catalog("w");
    let tables = |name: &str, depth| {
        catalog
            .list(&vec![name.to_owned(); depth])
            .map(|found| found.tables)
    };
    assert_eq!(tables("n", 16).unwrap(), ["t"]);
    assert!(tables("m", 17).is_err());
}

#[test]
fn what_is_no_table_is_refused_naming_the_path() {
    let place = Place::new();
    fs::create_dir_all(place.path("empty/metadata")).unwrap();
    let open = |source: &Path| DirectoryCatalog::open(source).unwrap_err();
    assert!(matches!(
        open(&place.path("empty")),
        CatalogError::NoTable { .. }
    ));
    assert!(matches!(
        open(Path::new("/dev/null")),
        CatalogError::NoTable { .. }
    ));
    let absent = open(&place.path("absent"));
    assert!(
        matches!(&absent, CatalogError::Io { path, .. } if path.ends_with("absent")),
        "{absent}"
    );
}

#[test]
fn a_mountpoint_in_the_warehouse_is_never_looked_into() {
    let place = Place::new();
    place.table("w/a/t").table("w/mnt/t").table("w/a/mnt/t");
    let catalog = place.catalog("w").excluding(&place.path("w/mnt")).unwrap();
    assert_eq!(list(&catalog, &[]), listing(&["a"], &[]));
    assert_eq!(list(&catalog, &["a"]), listing(&["mnt"], &["t"]));
    assert!(catalog.table(&ident(&["mnt"], "t")).unwrap().is_none());
    assert!(catalog.list(&["mnt".to_owned()]).is_err());
}
