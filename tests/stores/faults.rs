//! A store that fails: pauses or errors, never wrong bytes.

use std::fs;
use std::sync::Arc;

use bergfs::catalog::Catalog;
use bergfs::catalog::directory::StoreDirectoryCatalog;
use bergfs::storage::{Properties, StorageOptions};
use serde_json::json;
use url::Url;

use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::server::Fault;
use crate::shelf::{SHORT_TIMEOUT, Shelf, wide};

const WHOLE: &str = "current/t.parquet";
const EIO: i32 = 5;

fn small() -> TableBuilder {
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[1], [2], [3]]));
    table.commit(Commit::of([file]));
    table.save();
    table
}

#[test]
fn what_passes_by_itself_is_asked_for_again() {
    let faults = [
        Fault::Status(503),
        Fault::Status(429),
        Fault::Status(500),
        Fault::Reset,
        Fault::Truncated,
        Fault::Short,
    ];
    for fault in faults {
        let shelf = Shelf::new();
        let place = shelf.put(&wide(), "t");
        let expected = Opened::tree(&place).read(WHOLE).unwrap();
        let opened = shelf.open("s3://b/t");
        // Of the metadata, the manifests, the footer; then of the data.
        shelf.server.fail(&[fault, fault]);
        opened.size(WHOLE).unwrap();
        assert_eq!(shelf.server.faults_left(), 0, "{fault:?}");
        shelf.server.fail(&[fault, fault]);
        let read = opened.read(WHOLE);
        let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
        assert!(read.expect(&errors) == expected, "{fault:?}");
        assert_eq!(shelf.server.faults_left(), 0, "{fault:?}");
        assert_eq!(opened.stats()["store_retries"], 4, "{fault:?}");
    }
}

#[test]
fn a_store_that_is_down_is_an_error_after_its_time_and_none_once_it_is_back() {
    let mut shelf = Shelf::new();
    let place = shelf.put(&wide(), "t");
    shelf.timeout = SHORT_TIMEOUT;
    let opened = shelf.open("s3://b/t");
    let size = opened.size(WHOLE).unwrap();
    shelf.server.set_down(true);
    assert_eq!(opened.read_range(WHOLE, 4, 1000), Err(EIO));
    let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
    assert!(errors.contains("no answer after"), "{errors}");
    assert!(!errors.contains("secret"), "{errors}");
    shelf.server.set_down(false);
    let expected = Opened::tree(&place).read(WHOLE).unwrap();
    assert_eq!(size, expected.len() as u64);
    assert!(opened.read(WHOLE).unwrap() == expected);
}

#[test]
fn a_store_that_says_nothing_is_an_error_after_its_time() {
    let mut shelf = Shelf::new();
    shelf.put(&wide(), "t");
    shelf.timeout = SHORT_TIMEOUT;
    let opened = shelf.open("s3://b/t");
    opened.size(WHOLE).unwrap();
    shelf.server.fail(&[Fault::Silence]);
    assert_eq!(opened.read_range(WHOLE, 4, 1000), Err(EIO));
    shelf.server.fail(&[]);
    opened.read_range(WHOLE, 4, 1000).unwrap();
}

#[test]
fn a_store_that_is_to_be_asked_again_after_ages_is_an_error_at_once() {
    let shelf = Shelf::new();
    shelf.put(&wide(), "t");
    let ages = [Fault::Later(1), Fault::Later(u64::MAX)];
    for faults in [&[Fault::Later(3600)][..], &ages] {
        let opened = shelf.open("s3://b/t");
        opened.size(WHOLE).unwrap();
        shelf.server.fail(faults);
        assert_eq!(opened.read_range(WHOLE, 4, 1000), Err(EIO));
        let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
        assert!(errors.contains("503"), "{faults:?}: {errors}");
        opened.read_range(WHOLE, 4, 1000).unwrap();
    }
}

#[test]
fn a_mount_of_a_store_that_is_down_is_refused() {
    let mut shelf = Shelf::new();
    shelf.timeout = SHORT_TIMEOUT;
    shelf.server.set_down(true);
    let Opened::Refused { message } = &shelf.open("s3://b/t") else {
        panic!("opened");
    };
    assert!(
        message.contains("s3://b/t") && message.contains("no answer"),
        "{message}"
    );
}

#[test]
fn a_file_that_is_replaced_gives_an_error_and_no_mixture() {
    let shelf = Shelf::new();
    let place = shelf.put(&wide(), "t");
    let opened = shelf.open("s3://b/t");
    opened.read_range(WHOLE, 4, 1000).unwrap();
    let data = fs::read_dir(place.join("data"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&data).unwrap();
    for byte in &mut bytes[4..2_000_000] {
        *byte = !*byte;
    }
    fs::write(&data, bytes).unwrap();
    assert_eq!(opened.read_range(WHOLE, 1_500_000, 1000), Err(EIO));
    let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
    assert!(
        errors.contains("changed since it was first read"),
        "{errors}"
    );
}

#[test]
fn a_table_that_is_made_again_under_the_same_names_is_another_one() {
    let shelf = Shelf::new();
    let place = shelf.put(&small(), "t");
    let storage = StorageOptions::new(Arc::default());
    let url = Url::parse("s3://b/t").unwrap();
    let catalog = StoreDirectoryCatalog::open(&url, &storage, &shelf.properties()).unwrap();
    let table = catalog.single_table().unwrap();
    let look = || catalog.table(&table).unwrap().unwrap();
    let first = look();
    assert!(first.is_same(&look()));
    // The first metadata file of the new table has the name that the old one's had.
    let name = first.metadata.to_string();
    let file = place
        .join("metadata")
        .join(name.rsplit('/').next().unwrap());
    let mut json = fs::read(&file).unwrap();
    json.push(b'\n');
    fs::write(&file, json).unwrap();
    let second = look();
    assert_eq!(first.metadata, second.metadata);
    assert!(!first.is_same(&second));
}

#[test]
fn a_file_that_is_missing_spoils_what_depends_on_it_and_nothing_else() {
    let shelf = Shelf::new();
    let place = shelf.put(&small(), "t");
    fs::remove_dir_all(place.join("data")).unwrap();
    let opened = shelf.open("s3://b/t");
    assert_eq!(opened.read(WHOLE), Err(EIO));
    assert!(opened.list("snapshots").unwrap().len() == 1);
}

#[test]
fn properties_that_cannot_be_used_are_refused_by_name() {
    for (name, value) in [
        ("store.timeout-ms", "soon"),
        ("s3.path-style-access", "perhaps"),
        ("s3.endpoint", "http://"),
    ] {
        let shelf = Shelf::new();
        let opened = shelf.open_as("s3://b/t", |options, url, properties| {
            let Properties(mut all) = properties.clone();
            all.insert(name.to_owned(), value.to_owned());
            let catalog = bergfs::catalog::directory::StoreDirectoryCatalog::open(
                url,
                options,
                &Properties(all),
            );
            Err(catalog.err().unwrap().to_string())
        });
        let Opened::Refused { message } = &opened else {
            panic!("opened");
        };
        assert!(message.contains(name), "{message}");
        assert_eq!(shelf.server.asked(), []);
    }
}
