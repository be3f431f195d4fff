//! Variants that a view's files shred differently: putting them together costs these columns, once.

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::cost::{BLOCK, WHOLE, footer};
use crate::server::Asked;
use crate::shelf::Shelf;

/// Bytes that a reader of pages takes at once, past the last page too; and of a file's end, for its footer.
const AHEAD: u64 = 64 << 10;

const ROWS: usize = 50_000;

/// Numbers that nothing makes smaller, on both sides of a variant that is shredded as numbers.
fn file(ty: &str, shredded: Values) -> Vec<u8> {
    let mut state = 1i64;
    let random = (0..ROWS).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state
    });
    let random: Vec<i64> = random.collect();
    let columns = format!(
        "required int64 before = 1;
        required group v = 2 {{
            required binary metadata; optional binary value; optional {ty} typed_value; }}
        required int64 behind = 3;"
    );
    let group = vec![
        Chunk::flat(Values::Int64s(random.clone()), &[]),
        Chunk::flat(Values::Bytes(vec![vec![1, 0, 0]; ROWS]), &[]),
        Chunk::flat(Values::Bytes(vec![]), &vec![0; ROWS]),
        Chunk::flat(shredded, &vec![1; ROWS]),
        Chunk::flat(Values::Int64s(random), &[]),
    ];
    parquet_file(&columns, &[group], |w| w.set_dictionary_enabled(false))
}

#[test]
fn putting_variants_together_costs_their_own_columns_once() {
    let shelf = Shelf::new();
    let schema = "1 before: required long, 2 v: required variant, 3 behind: required long";
    let mut table = TableBuilder::new(3, schema);
    let rows = ROWS as i64;
    let ints = Values::Int32s((0..ROWS as i32).collect());
    let a = table.adopt("a.parquet", &file("int32", ints), rows);
    let b = table.adopt(
        "b.parquet",
        &file("int64", Values::Int64s((0..rows).collect())),
        rows,
    );
    table.commit(Commit::of([a, b]));
    table.save();
    let place = shelf.put(&table, "t");
    let opened = shelf.open("s3://b/t");
    opened.list("snapshots").unwrap();
    shelf.server.asked();
    opened.size(WHOLE).unwrap();
    let asked = shelf.server.asked();
    let of = |name: &str| asked.iter().filter(|one| one.path.ends_with(name)).count();
    // A manifest list and a manifest. Of each file its footer and the variant's chunks at once, and perhaps the block
    // behind these.
    assert_eq!(of(".avro"), 2, "{asked:#?}");
    for name in ["a.parquet", "b.parquet"] {
        assert!((2..=3).contains(&of(name)), "{asked:#?}");
        let stored = std::fs::read(place.join("data").join(name)).unwrap();
        let tail = stored.len() as u64 - AHEAD;
        let stored = SerializedFileReader::new(Bytes::from(stored)).unwrap();
        let chunk = |column| stored.metadata().row_group(0).column(column).byte_range();
        let (first, last) = (chunk(1).0, chunk(3).0 + chunk(3).1);
        for (start, end) in asked
            .iter()
            .filter(|one| one.path.ends_with(name))
            .map(range)
        {
            let around = start + BLOCK > first && end < last + AHEAD;
            assert!(around || start + BLOCK > tail, "{name}: {start} to {end}");
        }
    }
    let local = Opened::tree(&place);
    let footer = footer(&opened);
    assert_eq!(shelf.server.asked(), []);
    let read = |column: usize| {
        for group in footer.row_groups() {
            let (start, len) = group.column(column).byte_range();
            let bytes = opened.read_range(WHOLE, start, len as usize).unwrap();
            assert!(bytes == local.read_range(WHOLE, start, len as usize).unwrap());
        }
        shelf.server.asked().len()
    };
    // The variant's `metadata` and `value` lie here now; the column before it has a chunk in each file.
    assert_eq!([read(1), read(2), read(0), read(0)], [0, 0, 2, 0]);
    assert!(opened.read(WHOLE).unwrap() == local.read(WHOLE).unwrap());
    let stats = opened.stats();
    assert_eq!(stats["files_converted"], 2);
}

/// The first and the last byte that were asked for.
fn range(asked: &Asked) -> (u64, u64) {
    let range = asked.range.as_deref().unwrap();
    let (first, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    (first.parse().unwrap(), last.parse().unwrap())
}
