//! Requests and bytes, exactly.

use std::ops::Range;
use std::sync::Arc;

use bergfs::cache::Cache;
use bergfs::catalog::directory::StoreDirectoryCatalog;
use bergfs::catalog::{Catalog, TableIdent};
use bergfs::counters::Counters;
use bergfs::storage::StorageOptions;
use bergfs::tree::Prepared;
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde_json::json;
use url::Url;

use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::server::Asked;
use crate::shelf::{COLUMNS, Shelf, wide, wide_of_optional_columns, wide_with_deletes};

pub const WHOLE: &str = "current/t.parquet";

/// Bytes of the blocks that a range touches.
pub const BLOCK: u64 = 16 << 10;

fn files(asked: &[Asked]) -> Vec<&str> {
    let files = asked.iter().filter(|asked| asked.query.is_empty());
    files
        .map(|asked| asked.path.rsplit('/').next().unwrap())
        .collect()
}

/// The levels that were listed.
fn listed(asked: &[Asked]) -> Vec<String> {
    let pairs = asked.iter().flat_map(|asked| asked.query.split('&'));
    let prefixes = pairs.filter_map(|pair| pair.strip_prefix("prefix="));
    prefixes.map(|prefix| prefix.replace("%2F", "/")).collect()
}

pub fn footer(opened: &Opened) -> ParquetMetaData {
    let size = opened.size(WHOLE).unwrap();
    let tail = opened.read_range(WHOLE, size - 8, 8).unwrap();
    let len = u64::from(u32::from_le_bytes(tail[..4].try_into().unwrap()));
    let footer = opened
        .read_range(WHOLE, size - 8 - len, len as usize)
        .unwrap();
    ParquetMetaDataReader::decode_metadata(&Bytes::from(footer)).unwrap()
}

fn chunk(footer: &ParquetMetaData, group: usize, column: usize) -> Range<u64> {
    let (start, len) = footer.row_group(group).column(column).byte_range();
    start..start + len
}

/// The first and the last byte of a file that were asked for.
fn bounds(asked: &[Asked]) -> (u64, u64) {
    let ranges = asked.iter().map(|asked| {
        let range = asked.range.as_deref().unwrap();
        let (first, last) = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap();
        (first.parse().unwrap(), last.parse().unwrap())
    });
    ranges.fold((u64::MAX, 0), |(low, high), (first, last): (u64, u64)| {
        (low.min(first), high.max(last))
    })
}

#[test]
fn nothing_of_a_table_in_a_store_is_made_ahead() {
    let shelf = Shelf::new();
    shelf.put(&wide_with_deletes(), "wh/t");
    let opened = shelf.open("s3://b/wh/t");
    opened.read("metadata/table.json").unwrap();
    shelf.server.asked();
    assert_eq!(opened.prepare(), Ok(Prepared::Nothing));
    assert_eq!(opened.stats()["footers_read"], 0);
    // Another look at the table, as each is with this refresh.
    let asked = shelf.server.asked();
    assert!(asked.len() <= 1, "{asked:#?}");
}

#[test]
fn a_look_at_a_table_that_was_just_opened_costs_its_hint_and_its_metadata() {
    let shelf = Shelf::new();
    shelf.put(&wide(), "wh/t");
    let opened = shelf.open("s3://b/wh/t");
    let asked = shelf.server.asked();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert!(
        asked[0].query.contains("prefix=wh%2Ft%2Fmetadata%2F"),
        "{asked:#?}"
    );
    opened.list("").unwrap();
    opened.list("snapshots").unwrap();
    let asked = shelf.server.asked();
    assert!(listed(&asked).is_empty(), "{asked:#?}");
    let files = files(&asked);
    assert!(
        files.last().unwrap().ends_with(".metadata.json"),
        "{files:?}"
    );
    assert!(files.len() <= 2, "{files:?}");
}

#[test]
fn a_table_of_a_warehouse_costs_a_listing_of_each_level_and_of_its_metadata() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[7]]));
    table.commit(Commit::of([file]));
    table.save();
    for place in ["wh/ns.db/a", "wh/ns.db/b", "wh/top"] {
        shelf.put(&table, place);
    }
    let options = StorageOptions::new(Arc::default());
    let url = Url::parse("s3://b/wh").unwrap();
    let catalog = StoreDirectoryCatalog::open(&url, &options, &shelf.properties()).unwrap();
    let namespace = vec!["ns".to_owned()];
    shelf.server.asked();

    let ident = TableIdent {
        namespace: namespace.clone(),
        name: "b".to_owned(),
    };
    assert!(catalog.table(&ident).unwrap().is_some());
    let asked = shelf.server.asked();
    let levels = ["wh/", "wh/ns.db/", "wh/ns.db/b/metadata/"];
    assert_eq!(listed(&asked), levels, "{asked:#?}");

    // No file of a table is read for a listing.
    assert_eq!(catalog.list(&namespace).unwrap().tables, ["a", "b"]);
    let asked = shelf.server.asked();
    let mut all = listed(&asked);
    all.sort_unstable();
    let (a, b) = ("wh/ns.db/a/metadata/", "wh/ns.db/b/metadata/");
    assert_eq!(all, ["wh/", "wh/ns.db/", a, b], "{asked:#?}");
    assert_eq!(files(&asked), [""; 0]);
}

#[test]
fn a_views_size_costs_one_request_for_each_manifest_and_each_footer() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    for id in 0..5 {
        let file = table.data(json!([[id]]));
        table.commit(Commit::of([file]));
    }
    table.save();
    shelf.put(&table, "t");
    let opened = shelf.open("s3://b/t");
    opened.list("snapshots").unwrap();
    shelf.server.asked();
    opened.size(WHOLE).unwrap();
    let asked = shelf.server.asked();
    let mut files = files(&asked);
    files.sort_unstable();
    let count = files.len();
    files.dedup();
    assert_eq!(files.len(), count, "a file was asked for twice: {asked:#?}");
    // A manifest list, five manifests, five footers.
    assert_eq!(count, 11, "{files:?}");
    assert!(
        asked.iter().all(|asked| asked.method == "GET"),
        "{asked:#?}"
    );
    opened.size(WHOLE).unwrap();
    footer(&opened);
    assert_eq!(shelf.server.asked(), []);
}

#[test]
fn a_footer_of_a_table_with_deletes_asks_for_the_beginnings_of_all_its_chunks_at_once() {
    let shelf = Shelf::new();
    shelf.put(&wide_with_deletes(), "t");
    let opened = shelf.open("s3://b/t");
    opened.size(WHOLE).unwrap();
    shelf.server.asked();
    let chunks = 2 * COLUMNS;
    shelf.server.gather(chunks);
    let before = opened.stats();
    footer(&opened);
    assert!(shelf.server.gathered(), "asked for one after the other");
    let asked = shelf.server.asked();
    assert_eq!(asked.len(), chunks, "{asked:#?}");
    let bytes = opened.stats()["store_bytes"] - before["store_bytes"];
    assert!(bytes <= chunks as u64 * 2 * BLOCK, "{bytes}");
}

#[test]
fn a_column_of_a_row_group_costs_its_chunk_and_nothing_the_second_time() {
    let shelf = Shelf::new();
    shelf.put(&wide(), "t");
    let opened = shelf.open("s3://b/t");
    let footer = footer(&opened);
    for (group, column) in [(0, 0), (1, 3), (0, COLUMNS - 1)] {
        let range = chunk(&footer, group, column);
        let len = range.end - range.start;
        assert!(len > 300_000, "{len}");
        shelf.server.asked();
        let before = opened.stats();
        // As the kernel asks: 128 KiB at a time.
        let mut at = range.start;
        while at < range.end {
            let piece = (128 << 10).min(range.end - at);
            opened.read_range(WHOLE, at, piece as usize).unwrap();
            at += piece;
        }
        let after = opened.stats();
        let bytes = after["store_bytes"] - before["store_bytes"];
        assert!(bytes <= len + 2 * BLOCK, "{bytes} for {len}");
        let asked = shelf.server.asked();
        assert!(asked.len() <= 3, "{asked:#?}");
        // Reading ahead stops where the chunk does.
        let (first, last) = bounds(&asked);
        assert!(last - first < len + 2 * BLOCK, "{asked:#?}");
        opened.read_range(WHOLE, range.start, len as usize).unwrap();
        assert_eq!(shelf.server.asked(), []);
    }
}

#[test]
fn a_large_range_is_asked_for_at_once() {
    let shelf = Shelf::new();
    shelf.put(&wide(), "t");
    let opened = shelf.open("s3://b/t");
    let range = chunk(&footer(&opened), 0, 2);
    shelf.server.asked();
    let len = (range.end - range.start) as usize;
    opened.read_range(WHOLE, range.start, len).unwrap();
    assert_eq!(shelf.server.asked().len(), 1);
}

#[test]
fn a_file_that_is_read_from_end_to_end_is_fetched_across_the_borders_of_chunks() {
    let shelf = Shelf::new();
    let place = shelf.put(&wide_of_optional_columns(), "t");
    let opened = shelf.open("s3://b/t");
    let first = chunk(&footer(&opened), 0, 0);
    let last = chunk(&footer(&opened), 1, COLUMNS - 1);
    shelf.server.asked();
    let before = opened.stats();
    let len = (last.end - first.start) as usize;
    let read = opened.read_in_pieces(WHOLE, first.start, len, 128 << 10);
    let local = Opened::tree(&place).read(WHOLE).unwrap();
    assert!(read.unwrap() == local[first.start as usize..last.end as usize]);
    let asked = shelf.server.asked();
    // After half of the first row group it is plain that this reader goes on: then as much as it has read is fetched, up
    // to 8 MiB, and not a chunk at a time.
    let second = chunk(&footer(&opened), 1, 0).start / BLOCK * BLOCK;
    let behind = asked
        .iter()
        .filter(|one| bounds(std::slice::from_ref(one)).0 >= second);
    let behind = behind.count();
    assert!(behind <= COLUMNS / 2, "{behind} for {COLUMNS} chunks");
    let bytes = opened.stats()["store_bytes"] - before["store_bytes"];
    assert!(bytes <= len as u64 + 2 * BLOCK, "{bytes} for {len}");
}

#[test]
fn readers_of_one_range_wait_for_one_request() {
    let shelf = Shelf::new();
    shelf.put(&wide(), "t");
    let opened = shelf.open("s3://b/t");
    let range = chunk(&footer(&opened), 1, 1);
    shelf.server.asked();
    let len = (range.end - range.start) as usize;
    std::thread::scope(|scope| {
        let read = || opened.read_range(WHOLE, range.start, len).unwrap();
        let readers: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
        for reader in readers {
            assert_eq!(reader.join().unwrap().len(), len);
        }
    });
    assert_eq!(shelf.server.asked().len(), 1);
}

#[test]
fn a_cache_too_small_for_a_block_serves_all_the_same() {
    let shelf = Shelf::new();
    let place = shelf.put(&wide(), "t");
    let counters = Arc::new(Counters::default());
    let cache = Arc::new(Cache::new(1000, Arc::clone(&counters)));
    let storage = StorageOptions::new(Arc::clone(&counters)).with_cache(&cache);
    let opened = shelf.open_with("s3://b/t", storage, cache, counters, |options, url, all| {
        let catalog = StoreDirectoryCatalog::open(url, options, all);
        Ok(Box::new(catalog.unwrap()))
    });
    let expected = Opened::tree(&place).read(WHOLE).unwrap();
    assert!(opened.read(WHOLE).unwrap() == expected);
}

#[test]
fn google_is_asked_with_a_token() {
    let shelf = Shelf::new();
    shelf.put(&wide(), "t");
    shelf.server.let_in("key");
    let opened = shelf.open("gs://b/t");
    let place = shelf.directory.path().join("b/t");
    let expected = Opened::tree(&place).read(WHOLE).unwrap();
    assert!(opened.read(WHOLE).unwrap() == expected);
}

#[test]
fn a_whole_file_is_fetched_once_and_is_what_a_local_table_gives() {
    let shelf = Shelf::new();
    let place = shelf.put(&wide(), "t");
    let local = Opened::tree(&place);
    let opened = shelf.open("s3://b/t");
    for file in [WHOLE, "current/t.csv", "current/t.jsonl"] {
        let whole = opened.read(file).unwrap();
        assert!(whole == local.read(file).unwrap(), "{file}");
    }
    let stored: u64 = std::fs::read_dir(place.join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    let stats = opened.stats();
    assert!(
        stats["store_bytes"] < stored + stored / 10,
        "{stats:?} {stored}"
    );
    assert_eq!(stats["store_retries"], 0);
}

#[test]
fn a_wrong_size_in_a_manifest_is_noticed() {
    for wrong in [1, 500, 1 << 30] {
        let shelf = Shelf::new();
        let mut table = TableBuilder::new(2, "1 id: long");
        let mut file = table.data(json!([[1], [2]]));
        file.file_size = wrong;
        table.commit(Commit::of([file]));
        table.save();
        shelf.put(&table, "t");
        let opened = shelf.open("s3://b/t");
        assert_eq!(opened.table(WHOLE).unwrap().rows.len(), 2, "{wrong}");
    }
}

#[test]
fn a_warehouse_is_listed_a_level_at_a_time_whatever_the_pages() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[7]]));
    table.commit(Commit::of([file]));
    table.save();
    let uuid = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    for place in [
        "wh/sales.db/a",
        "wh/sales.db/b",
        "wh/deep/er/t",
        &format!("wh/u-{uuid}"),
    ] {
        shelf.put(&table, place);
    }
    std::fs::create_dir_all(shelf.directory.path().join("b/wh/empty/x")).unwrap();
    shelf.server.page(1);
    let opened = shelf.open("s3a://b/wh/");
    assert_eq!(opened.list("").unwrap(), [".bergfs", "deep", "sales", "u"]);
    assert_eq!(opened.list("sales").unwrap(), ["a", "b"]);
    assert_eq!(opened.list("deep/er").unwrap(), ["t"]);
    let read = opened.table("deep/er/t/current/t.parquet").unwrap();
    assert_eq!(read.rows, [json!([7])]);
    assert_eq!(opened.table("u/current/u.parquet").unwrap().rows.len(), 1);
}

#[test]
fn a_web_server_gives_a_table_with_a_hint_or_a_metadata_file() {
    let shelf = Shelf::new();
    let mut table = TableBuilder::new(2, "1 id: long");
    let file = table.data(json!([[7]]));
    table.commit(Commit::of([file]));
    let metadata = table.save();
    let place = shelf.put(&table, "t");
    let name = metadata.file_name().unwrap().to_str().unwrap().to_owned();
    std::fs::write(place.join("metadata/version-hint.text"), &name).unwrap();
    let table = format!("{}/b/t", shelf.server.url());
    for source in [table.clone(), format!("{table}/metadata/{name}")] {
        let opened = shelf.open(&source);
        assert_eq!(opened.table(WHOLE).unwrap().rows, [json!([7])], "{source}");
    }
    let Opened::Refused { message } = &shelf.open(&format!("{}/b/", shelf.server.url())) else {
        panic!("opened");
    };
    assert!(message.contains("no Iceberg table"), "{message}");
}
