//! Keys with characters that URLs, or stores, treat in their own ways.

use serde_json::json;

use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::shelf::Shelf;

/// Names that a file may have, and a key therefore.
const ODD: [&str; 16] = [
    "a b",
    "a+b",
    "a%20b",
    "a%2Fb",
    "100%",
    "ü-ß-日本",
    "k=v",
    "a&b",
    "a#b",
    "a?b=c",
    "~!$'()*,;:@",
    "a\\b",
    "q\"q",
    "<x>",
    "{x}|^`",
    "..x",
];

/// A file of each name, each with a row of its own and one that is deleted.
fn odd_table() -> TableBuilder {
    let mut table = TableBuilder::new(2, "1 id: long, 2 s: string");
    for (id, name) in ODD.iter().enumerate() {
        let rows = json!([[id, name], [id + 1000, "deleted"]]);
        let file = table.write(Data::rows(rows).named(&format!("{name}.parquet")));
        let deletes = table.position_deletes(&[(&file.path, 1)]);
        table.commit(Commit::of([file, deletes]));
    }
    table.save();
    table
}

#[test]
fn keys_that_no_file_can_have_hide_no_table() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[7]]));
    table.commit(Commit::of([file]));
    table.save();
    shelf.put(&table, "wh/ns/t");
    for place in ["wh/", "wh/ns/", "wh/ns/t/", "wh/ns/t/metadata/"] {
        for stray in ["/x", "//", "./x", "../x", ".", "..", "a\nb", "a\nb/c"] {
            shelf.server.add_strays(&[&format!("{place}{stray}")]);
        }
    }
    for base in ["s3://b", "gs://b"] {
        let opened = shelf.open(&format!("{base}/wh"));
        assert_eq!(opened.list("").unwrap(), [".bergfs", "ns"]);
        assert_eq!(opened.list("ns").unwrap(), ["t"]);
        let read = opened.table("ns/t/current/t.parquet").unwrap();
        assert_eq!(read.rows, [json!([7])]);
        let opened = shelf.open(&format!("{base}/wh/ns/t"));
        assert_eq!(opened.table("current/t.parquet").unwrap().rows.len(), 1);
    }
}

#[test]
fn files_of_every_name_are_read_from_every_store() {
    let shelf = Shelf::new();
    let place = "o d+d%20%/ü#?=&/t";
    shelf.put(&odd_table(), place);
    let encoded = "o%20d+d%2520%25/%C3%BC%23%3F=&/t";
    let expected: Vec<_> = ODD
        .iter()
        .enumerate()
        .map(|(id, name)| json!([id, name]))
        .collect();
    for base in ["s3://b".to_owned(), "gs://b".to_owned()] {
        let opened = shelf.open(&format!("{base}/{encoded}"));
        if let Opened::Refused { message } = &opened {
            panic!("{base}: {message}");
        }
        let read = opened.table("current/t.parquet");
        let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
        let mut rows = read.expect(&errors).rows;
        rows.sort_by_key(|row| row[0].as_i64());
        assert_eq!(rows, expected, "{base}");
        let keys: Vec<_> = shelf
            .server
            .asked()
            .into_iter()
            .map(|asked| asked.path)
            .collect();
        assert!(
            keys.iter().any(|key| key.ends_with("/data/a%20b.parquet")),
            "{keys:?}"
        );
    }
}

#[test]
fn keys_that_stores_take_for_others_are_refused_by_name() {
    for name in ["data//f.parquet", "data/./f.parquet"] {
        let shelf = Shelf::new();
        let mut table = TableBuilder::new(2, "1 id: long");
        let mut file = table.data(json!([[1]]));
        file.path = file.path.replace("data/", &name.replace("f.parquet", ""));
        let file_path = file.path.clone();
        table.commit(Commit::of([file]));
        table.save();
        shelf.put(&table, "t");
        let opened = shelf.open("s3://b/t");
        opened.table("current/t.parquet").unwrap_err();
        let errors = String::from_utf8(opened.read(".bergfs/errors").unwrap()).unwrap();
        assert!(
            errors.contains(&file_path) && errors.contains("a key with empty parts"),
            "{errors}"
        );
    }
}

#[test]
fn a_listing_that_never_gives_a_name_and_never_ends_is_an_error() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[1]]));
    table.commit(Commit::of([file]));
    table.save();
    shelf.put(&table, "t");
    shelf.server.page(0);
    let opened = shelf.open("s3://b/t");
    let Opened::Refused { message } = &opened else {
        panic!("it is mounted");
    };
    assert!(message.contains("more than 1000 empty pages"), "{message}");
}
