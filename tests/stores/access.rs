//! Where a table's files may lie, and who asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bergfs::cache::Cache;
use bergfs::catalog::directory::StoreDirectoryCatalog;
use bergfs::catalog::{Catalog, CatalogError, Listing, TableIdent, TablePointer};
use bergfs::counters::Counters;
use bergfs::storage::{
    PrefixedProperties, Properties, Renewal, RequestSigner, SignedRequest, Signing, StorageError,
    StorageOptions, StoreAccess,
};
use serde_json::json;

use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::shelf::{Shelf, copy};

const WHOLE: &str = "current/t.parquet";
const EIO: i32 = 5;

/// A table whose data lies in `place`.
fn table_with_data_in(place: &str, properties: &[(&str, &str)]) -> TableBuilder {
    let mut table = TableBuilder::new(2, "1 id: long");
    let mut file = table.data(json!([[1], [2], [3]]));
    let name = file.path.rsplit('/').next().unwrap().to_owned();
    file.path = format!("{place}/{name}");
    table.commit(Commit::of([file]));
    table.save_with(|metadata| {
        for (name, value) in properties {
            metadata["properties"][*name] = json!(value);
        }
    });
    table
}

/// A bucket with a table whose data lies in another bucket `c`, or elsewhere in the same one.
fn shelf_with(place: &str, properties: &[(&str, &str)]) -> Shelf {
    let shelf = Shelf::new();
    let table = table_with_data_in(place, properties);
    let at = shelf.put(&table, "t");
    let to = place.strip_prefix("s3://").unwrap();
    copy(&at.join("data"), &shelf.directory.path().join(to));
    std::fs::remove_dir_all(at.join("data")).unwrap();
    shelf
}

fn open_allowing(shelf: &Shelf, change: impl FnOnce(&mut StorageOptions)) -> Opened {
    let counters = Arc::new(Counters::default());
    let cache = Arc::new(Cache::new(1 << 20, Arc::clone(&counters)));
    let mut storage = StorageOptions::new(Arc::clone(&counters)).with_cache(&cache);
    change(&mut storage);
    shelf.open_with(
        "s3://b/t",
        storage,
        cache,
        counters,
        |options, url, properties| {
            let catalog = StoreDirectoryCatalog::open(url, options, properties);
            Ok(Box::new(catalog.unwrap()))
        },
    )
}

fn rows(opened: &Opened) -> usize {
    let table = opened.table(WHOLE);
    let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
    table.expect(&errors).rows.len()
}

#[test]
fn a_table_reaches_no_other_bucket_unless_the_user_says_so() {
    let data_path = [("write.data.path", "s3://c/far")];
    let shelf = shelf_with("s3://c/far", &data_path);
    let opened = shelf.open("s3://b/t");
    assert_eq!(opened.read(WHOLE), Err(EIO));
    let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
    assert!(errors.contains("--allow-path"), "{errors}");
    let asked = shelf.server.asked();
    assert!(
        asked.iter().all(|asked| asked.path.starts_with('b')),
        "{asked:#?}"
    );

    let allowed = open_allowing(&shelf, |options| {
        options.allow_paths.push("s3a://c/far/".parse().unwrap());
    });
    assert_eq!(rows(&allowed), 3);
    let mapped = open_allowing(&shelf, |options| {
        options
            .map_paths
            .push("s3://c/far=s3://c/far".parse().unwrap());
    });
    assert_eq!(rows(&mapped), 3);
}

#[test]
fn a_table_reaches_the_data_path_it_names_in_its_own_bucket() {
    let named = [("write.data.path", "s3://b/elsewhere")];
    let shelf = shelf_with("s3://b/elsewhere", &named);
    assert_eq!(shelf.open("s3://b/t").table(WHOLE).unwrap().rows.len(), 3);
    let shelf = shelf_with("s3://b/elsewhere", &[]);
    assert_eq!(shelf.open("s3://b/t").read(WHOLE), Err(EIO));
}

#[test]
fn a_table_in_a_store_reaches_no_file_of_this_machine() {
    let secret = tempfile::tempdir().unwrap();
    let place = secret.path().to_str().unwrap();
    for place in [place.to_owned(), format!("file://{place}")] {
        let table = table_with_data_in(&place, &[("write.data.path", &place)]);
        let shelf = Shelf::new();
        let at = shelf.put(&table, "t");
        copy(&at.join("data"), secret.path());
        std::fs::remove_dir_all(at.join("data")).unwrap();
        let opened = shelf.open("s3://b/t");
        assert_eq!(opened.read(WHOLE), Err(EIO), "{place}");
    }
}

#[test]
fn a_path_that_leads_out_of_the_table_is_refused() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    let mut file = table.data(json!([[1]]));
    let name = file.path.rsplit('/').next().unwrap().to_owned();
    file.path = table.recorded(&format!("../u/{name}"));
    table.commit(Commit::of([file]));
    table.save();
    let at = shelf.put(&table, "t");
    copy(&at.join("data"), &shelf.directory.path().join("b/u"));
    let opened = shelf.open("s3://b/t");
    assert_eq!(opened.read(WHOLE), Err(EIO));
}

/// A catalog that hands out its own access.
struct Granting {
    tables: StoreDirectoryCatalog,
    access: Arc<StoreAccess>,
}

impl Catalog for Granting {
    fn single_table(&self) -> Option<TableIdent> {
        self.tables.single_table()
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        self.tables.list(namespace)
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        let pointer = self.tables.table(ident)?;
        Ok(pointer.map(|pointer| TablePointer {
            access: Arc::clone(&self.access),
            ..pointer
        }))
    }
}

#[derive(Debug)]
struct Keys {
    given: AtomicUsize,
    expires: String,
}

impl Keys {
    fn grant(&self) -> Vec<PrefixedProperties> {
        let number = self.given.fetch_add(1, Ordering::SeqCst);
        let pairs = [
            ("s3.access-key-id", format!("granted{number}")),
            ("s3.secret-access-key", "secret".to_owned()),
            ("s3.session-token", "token".to_owned()),
            ("s3.session-token-expires-at-ms", self.expires.clone()),
        ];
        vec![PrefixedProperties {
            prefix: "s3://b/t".to_owned(),
            properties: Properties(pairs.map(|(name, value)| (name.to_owned(), value)).into()),
        }]
    }
}

impl Renewal for Keys {
    fn renew(&self) -> Result<Vec<PrefixedProperties>, StorageError> {
        Ok(self.grant())
    }
}

fn granting(shelf: &Shelf, keys: &Arc<Keys>) -> Opened {
    let keys = Arc::clone(keys);
    shelf.open_as("s3://b/t", move |options, url, properties| {
        let tables = StoreDirectoryCatalog::open(url, options, properties).unwrap();
        let access = Arc::new(StoreAccess {
            properties: properties.clone(),
            credentials: keys.grant(),
            renewal: Some(keys),
            signer: None,
        });
        Ok(Box::new(Granting { tables, access }))
    })
}

fn plain() -> TableBuilder {
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[1], [2], [3]]));
    table.commit(Commit::of([file]));
    table.save();
    table
}

#[test]
fn keys_that_the_store_refuses_are_granted_anew_once() {
    let shelf = Shelf::new();
    shelf.put(&plain(), "t");
    let keys = Arc::new(Keys {
        given: AtomicUsize::new(0),
        expires: "32503680000000".to_owned(),
    });
    let opened = granting(&shelf, &keys);
    opened.list("snapshots").unwrap();
    assert_eq!(keys.given.load(Ordering::SeqCst), 1);
    // The catalog lists as the user, who is let in no more; the table's files are asked for with the second grant.
    shelf.server.let_in("granted1");
    assert_eq!(opened.table(WHOLE).unwrap().rows.len(), 3);
    assert_eq!(keys.given.load(Ordering::SeqCst), 2);
    assert_eq!(opened.stats()["store_retries"], 0);
}

#[test]
fn keys_that_are_about_to_run_out_are_granted_anew_before() {
    let shelf = Shelf::new();
    shelf.put(&plain(), "t");
    let keys = Arc::new(Keys {
        given: AtomicUsize::new(0),
        expires: "1000".to_owned(),
    });
    let opened = granting(&shelf, &keys);
    assert_eq!(opened.table(WHOLE).unwrap().rows.len(), 3);
    assert!(keys.given.load(Ordering::SeqCst) >= 2);
}

#[derive(Debug)]
struct Notary;

impl RequestSigner for Notary {
    fn sign<'s>(
        &'s self,
        method: &'s str,
        url: &'s str,
        region: &'s str,
        headers: &'s [(String, String)],
    ) -> Signing<'s> {
        Box::pin(async move {
            assert_eq!((method, region), ("GET", "us-east-1"));
            let mut headers = headers.to_vec();
            headers.push(("authorization".to_owned(), "Credential=notary/".to_owned()));
            Ok(SignedRequest {
                url: url.to_owned(),
                headers,
            })
        })
    }
}

#[test]
fn where_the_catalog_signs_every_request_bears_its_signature() {
    let shelf = Shelf::new();
    shelf.put(&plain(), "t");
    let opened = shelf.open_as("s3://b/t", |options, url, properties| {
        let tables = StoreDirectoryCatalog::open(url, options, properties).unwrap();
        let access = Arc::new(StoreAccess {
            properties: properties.clone(),
            signer: Some(Arc::new(Notary)),
            ..StoreAccess::default()
        });
        Ok(Box::new(Granting { tables, access }))
    });
    opened.list("snapshots").unwrap();
    shelf.server.let_in("notary");
    assert_eq!(opened.table(WHOLE).unwrap().rows.len(), 3);
}
