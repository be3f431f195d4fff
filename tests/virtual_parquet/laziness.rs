//! What a read costs, in exact counts, and that it gives the same from everywhere.

use std::fs;
use std::path::Path;

use bergfs::tree::Caching;
use bytes::Bytes;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::EnabledStatistics;
use parquet::file::statistics::Statistics;
use serde_json::json;

use crate::builder::open::Opened;
use crate::builder::{Commit, Data, TableBuilder};
use crate::case::{Case, Means, Pattern};
use crate::columns::{Dice, FLAT, NESTED};

const WHOLE: &str = "current/t.parquet";

/// What a file says of its row groups.
fn footer(opened: &Opened) -> ParquetMetaData {
    let bytes = opened.read(WHOLE).unwrap();
    let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes));
    footer.unwrap()
}

/// Flat columns, save those whose chunks are made with the footer: required ones of fixed-length byte arrays.
fn lazy() -> Case {
    Case {
        rows: 60,
        row_group: 20,
        pattern: Pattern::EverySecond,
        ..Case::of(FLAT)
    }
}

#[test]
fn reading_one_column_transcodes_its_chunks_and_no_other() {
    for means in [Means::Positions, Means::Vector] {
        let (t, _) = Case { means, ..lazy() }.build();
        let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
        let footer = ParquetMetaDataReader::new()
            .parse_and_finish(&Bytes::from(bytes.clone()))
            .unwrap();
        for column in [1, 7, 30, 44] {
            let opened = Opened::tree(&t.root());
            let tail = bytes.len() - 8;
            let len = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap()) as usize;
            opened
                .read_range(WHOLE, (tail - len) as u64, len + 8)
                .unwrap();
            assert_eq!(opened.stats()["chunks_transcoded"], 0, "by the footer");
            for group in footer.row_groups() {
                let (start, len) = group.column(column).byte_range();
                opened.read_range(WHOLE, start, len as usize).unwrap();
            }
            let path = footer.row_group(0).column(column).column_path();
            assert_eq!(
                opened.stats()["chunks_transcoded"],
                3,
                "three row groups of {path}"
            );
        }
    }
}

#[test]
fn a_file_that_is_read_from_end_to_end_has_each_chunk_made_once() {
    let (t, _) = lazy().build();
    let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
    let at_once = Opened::tree(&t.root());
    at_once.read(WHOLE).unwrap();
    for piece in [100, 4096] {
        let opened = Opened::tree(&t.root());
        let read = opened.read_in_pieces(WHOLE, 0, bytes.len(), piece);
        assert!(read.unwrap() == bytes);
        let made = |opened: &Opened| opened.stats()["chunks_transcoded"];
        assert_eq!(made(&opened), made(&at_once));
    }
}

/// Pages of 9 rows, the first batches of 3 that come to 7 or more, and so 23 of them.
#[test]
fn the_first_page_of_a_chunk_is_made_without_the_others_and_each_is_made_once() {
    let (t, _) = Case {
        rows: 200,
        row_group: 200,
        ..lazy()
    }
    .build();
    let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&Bytes::from(bytes.clone()))
        .unwrap();
    for column in [1, 7, 30] {
        let opened = Opened::tree(&t.root());
        let (start, len) = footer.row_group(0).column(column).byte_range();
        let column = footer.row_group(0).column(column);
        let (pages, made) = ("pages_decoded", "chunks_transcoded");
        opened.read_in_pieces(WHOLE, start, 1, 1).unwrap();
        let first = u64::from(column.dictionary_page_offset().is_none());
        assert_eq!(opened.stats()[pages], first, "{}", column.column_path());
        let (start, len) = (start as usize, len as usize);
        let data = (column.data_page_offset() as usize).max(start);
        opened
            .read_range(WHOLE, start as u64, data + 1 - start)
            .unwrap();
        assert_eq!(opened.stats()[pages], 1, "{}", column.column_path());
        let read = opened.read_in_pieces(WHOLE, start as u64, len, 64).unwrap();
        assert!(read == bytes[start..start + len]);
        assert_eq!((opened.stats()[pages], opened.stats()[made]), (23, 1));
    }
}

#[test]
fn readers_of_one_file_at_once_read_the_same_and_each_chunk_is_made_once() {
    let (t, _) = Case {
        rows: 200,
        row_group: 100,
        ..lazy()
    }
    .build();
    let at_once = Opened::tree(&t.root());
    let bytes = at_once.read(WHOLE).unwrap();
    let opened = Opened::tree(&t.root());
    std::thread::scope(|scope| {
        for piece in [17, 64, 100, 333, 1000, 1500, 4096, 1 << 20] {
            let (opened, bytes) = (&opened, &bytes);
            scope.spawn(move || {
                let read = opened.read_in_pieces(WHOLE, 0, bytes.len(), piece);
                assert!(read.unwrap() == *bytes, "in pieces of {piece}");
            });
        }
    });
    for counter in ["chunks_transcoded", "pages_decoded"] {
        assert_eq!(
            opened.stats()[counter],
            at_once.stats()[counter],
            "{counter}"
        );
    }
}

/// Readahead costs next to nothing where the bytes are those of local files, and makes chunks that nobody reads elsewhere,
/// however long they are. Pages that the kernel had before the first opening may be of another state of the data files.
#[test]
fn a_file_goes_through_the_page_cache_where_next_to_nothing_of_it_is_made() {
    // Of a version 3 table too, where columns of row lineage are made among those that are stored.
    for (version, with_deletes, cached) in [(2, 0, true), (3, 0, true), (2, 1, true), (2, 3, false)]
    {
        let mut t = TableBuilder::new(version, "1 s: string");
        let text = "x".repeat(64 << 10);
        let files: Vec<_> = (0..16).map(|_| t.data(json!([[&text], ["y"]]))).collect();
        let deletes: Vec<_> = files[..with_deletes]
            .iter()
            .map(|file| (file.path.as_str(), 1))
            .collect();
        let deletes = (with_deletes > 0).then(|| t.position_deletes(&deletes));
        t.commit(Commit::of(files.iter().cloned().chain(deletes)));
        t.save();
        let opened = Opened::tree(&t.root());
        let expected = if cached {
            [Caching::Fresh, Caching::Immutable]
        } else {
            [Caching::Exact; 2]
        };
        for caching in expected {
            assert_eq!(
                opened.caching(WHOLE),
                Ok(caching),
                "version {version}, deletes in {with_deletes} of 16 files"
            );
        }
    }
    let mut t = TableBuilder::new(2, "1 s: string");
    let file = t.data(json!([["x".repeat(2 << 20)], ["y"]]));
    let deletes = t.position_deletes(&[(&file.path, 1)]);
    t.commit(Commit::of([file, deletes]));
    t.save();
    assert_eq!(Opened::tree(&t.root()).caching(WHOLE), Ok(Caching::Exact));
}

#[test]
fn nothing_is_made_ahead_of_a_reader_of_two_columns() {
    let (t, _) = lazy().build();
    let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&Bytes::from(bytes.clone()))
        .unwrap();
    let opened = Opened::tree(&t.root());
    for group in footer.row_groups() {
        let (start, _) = group.column(6).byte_range();
        let (second, len) = group.column(7).byte_range();
        let len = (second + len - start) as usize;
        opened.read_in_pieces(WHOLE, start, len, 50).unwrap();
    }
    assert_eq!(opened.stats()["chunks_transcoded"], 6);
}

#[test]
fn bytes_that_are_shared_and_bytes_that_are_copied_are_counted_once() {
    let (t, _) = lazy().build();
    let opened = Opened::tree(&t.root());
    let len = opened.size(WHOLE).unwrap() as usize;
    for piece in [64, 1 << 20] {
        let before = opened.stats();
        opened.read_in_pieces(WHOLE, 0, len, piece).unwrap();
        let after = opened.stats();
        let served = after["slot_bytes_served"] - before["slot_bytes_served"];
        let padding = after["padding_bytes_served"] - before["padding_bytes_served"];
        assert!(
            padding < served && served < len as u64,
            "{padding} of {served}"
        );
    }
}

/// A table of 8 row groups of 100 rows, in pages of 10, that lost a row in each: ids that rise, and numbers in no order.
fn rising(page_index: bool) -> TableBuilder {
    let rows: Vec<_> = (0..800).map(|id| json!([id, id * 7919 % 1009])).collect();
    let mut t = TableBuilder::new(2, "1 id: long, 2 any: long");
    let data = Data::rows(json!(rows))
        .row_groups_of(100)
        .writer(move |writer| {
            let statistics = match page_index {
                true => EnabledStatistics::Page,
                false => EnabledStatistics::Chunk,
            };
            writer
                .set_statistics_enabled(statistics)
                .set_dictionary_enabled(false)
                .set_data_page_row_count_limit(10)
                .set_write_batch_size(10)
        });
    let data = t.write(data);
    let gone: Vec<_> = (0..8)
        .map(|group| (data.path.as_str(), group * 100))
        .collect();
    let deletes = t.position_deletes(&gone);
    t.commit(Commit::of([data, deletes]));
    t.save();
    t
}

#[test]
fn bounds_of_a_column_in_order_are_proven_by_two_pages_of_each_row_group() {
    let t = rising(true);
    let opened = Opened::tree(&t.root());
    let len = opened.size(WHOLE).unwrap();
    assert_eq!(opened.stats()["pages_decoded"], 0);
    opened.read_range(WHOLE, len - 8, 8).unwrap();
    // The first page of each, whose least value is gone, and the last.
    assert_eq!(opened.stats()["pages_decoded"], 2 * 8);
    assert_eq!(opened.stats()["chunks_transcoded"], 0);
}

#[test]
fn a_chunk_that_is_read_in_pieces_has_each_of_its_pages_decoded_once() {
    let t = rising(true);
    let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&Bytes::from(bytes))
        .unwrap();
    let opened = Opened::tree(&t.root());
    for (group, made) in footer.row_groups().iter().zip(1..) {
        let (start, len) = group.column(1).byte_range();
        opened
            .read_in_pieces(WHOLE, start, len as usize, 50)
            .unwrap();
        let stats = opened.stats();
        assert_eq!(
            (stats["chunks_transcoded"], stats["pages_decoded"]),
            (made, 10 * made)
        );
    }
}

#[test]
fn one_footer_is_made_of_a_view_however_many_read_it_and_in_whatever_form() {
    let t = rising(false);
    let opened = Opened::tree(&t.root());
    assert_eq!(opened.table(WHOLE).unwrap().rows.len(), 792);
    for name in ["current/t.csv", "current/t.jsonl", WHOLE] {
        opened.read(name).unwrap();
    }
    assert_eq!(opened.stats()["footers_made"], 1);
}

/// Columns of `FLAT` that are transcoded in any case: fixed-length bytes in BYTE_STREAM_SPLIT or DELTA_BYTE_ARRAY, which
/// some readers lack.
const RARELY_READ: u64 = 4;

#[test]
fn a_file_without_deletes_is_served_without_transcoding_what_all_readers_read() {
    for (columns, transcoded) in [(FLAT, 3 * RARELY_READ), (NESTED, 0)] {
        let (t, expected) = Case {
            pattern: Pattern::None,
            ..Case::of(columns)
        }
        .build();
        let opened = Opened::tree(&t.root());
        assert_eq!(opened.table(WHOLE).unwrap().rows.len(), expected.len());
        let stats = opened.stats();
        assert_eq!(stats["chunks_transcoded"], transcoded, "{stats:?}");
        assert_eq!(stats["pages_decoded"] == 0, transcoded == 0, "{stats:?}");
    }
}

/// Readers look for a footer in the last 64 KiB of a file, or less.
#[test]
fn reading_the_last_64_kib_of_a_small_file_transcodes_nothing() {
    let (t, _) = Case::of(FLAT).build();
    let opened = Opened::tree(&t.root());
    let len = opened.size(WHOLE).unwrap();
    // The kernel begins with the page of memory that such a read begins in.
    let start = len.saturating_sub(64 << 10) / 4096 * 4096;
    opened
        .read_range(WHOLE, start, (len - start) as usize)
        .unwrap();
    assert_eq!(opened.stats()["chunks_transcoded"], 0);
}

#[test]
fn bloom_filters_of_untouched_chunks_are_served() {
    let (t, _) = Case {
        bloom_filters: true,
        pattern: Pattern::None,
        ..Case::of(FLAT)
    }
    .build();
    let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
    let footer = ParquetMetaDataReader::new()
        .parse_and_finish(&Bytes::from(bytes))
        .unwrap();
    let chunks = footer.row_groups().iter().flat_map(|group| group.columns());
    assert!(
        chunks
            .filter(|chunk| chunk.column_path().string() == "c6")
            .all(|c| c.bloom_filter_offset().is_some())
    );
}

#[test]
fn row_groups_without_deletes_are_served_without_transcoding_what_all_readers_read() {
    // One of three row groups is hit.
    let case = Case {
        rows: 60,
        row_group: 20,
        pattern: Pattern::First,
        ..Case::of(FLAT)
    };
    let (t, _) = case.build();
    let opened = Opened::tree(&t.root());
    opened.read(WHOLE).unwrap();
    let transcoded = FLAT.len() as u64 + 1 + 2 * RARELY_READ;
    assert_eq!(opened.stats()["chunks_transcoded"], transcoded);
}

#[test]
fn a_table_that_was_copied_elsewhere_is_the_same_file() {
    let (t, _) = Case {
        files: 2,
        means: Means::Vector,
        ..Case::of(NESTED)
    }
    .build();
    let elsewhere = tempfile::tempdir().unwrap();
    let copied = elsewhere.path().join("t");
    copy(&t.root(), &copied);
    let (here, there) = (
        Opened::tree(&t.root()).read(WHOLE),
        Opened::tree(&copied).read(WHOLE),
    );
    assert!(here.unwrap() == there.unwrap());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn many_readers_at_once_read_the_same() {
    let (t, _) = Case {
        files: 2,
        means: Means::Equality,
        ..Case::of(NESTED)
    }
    .build();
    let bytes = Opened::tree(&t.root()).read(WHOLE).unwrap();
    let opened = Opened::tree(&t.root());
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (opened, bytes) = (&opened, &bytes);
            scope.spawn(move || {
                let mut dice = Dice::new(seed);
                for _ in 0..30 {
                    let start = dice.below(bytes.len() as u64) as usize;
                    let len = (1 + dice.below(20_000) as usize).min(bytes.len() - start);
                    let read = opened.read_range(WHOLE, start as u64, len).unwrap();
                    assert!(read == bytes[start..start + len], "{len} bytes at {start}");
                }
            });
        }
    });
}

/// Row groups and pages of a real size, where headers and lengths take more bytes than in a small file.
#[test]
fn large_pages_and_many_rows() {
    let columns = [FLAT[2], FLAT[8], FLAT[31], FLAT[32], FLAT[34], FLAT[36]];
    for (page_rows, pattern) in [(20_000, Pattern::Random(1)), (700, Pattern::Random(50))] {
        let draw = crate::columns::Draw {
            distinct: 30_000,
            nulls: 10,
        };
        let case = Case {
            rows: 20_000,
            row_group: 15_000,
            page_rows,
            pattern,
            draw,
            ..Case::of(&columns)
        };
        case.check();
    }
}

/// Pages of about 20 rows, and pieces of about a quarter of the row group. The row number is in order.
fn pieces() -> Case {
    Case {
        rows: 400,
        row_group: 400,
        page_rows: 20,
        dictionary_limit: 100,
        pattern: Pattern::EverySecond,
        means: Means::Vector,
        piece: 100,
        ..Case::of(FLAT)
    }
}

#[test]
fn a_large_row_group_that_lost_rows_is_shown_in_pieces_with_bounds_of_their_own() {
    let case = pieces();
    case.check();
    let (t, _) = case.build();
    let opened = Opened::tree_with(&t.root(), &case.options());
    let footer = footer(&opened);
    let bounds = |column: usize| {
        let groups = footer.row_groups().iter();
        let bounds = groups.map(|group| match group.column(column).statistics() {
            Some(Statistics::Int64(bounds)) => {
                (*bounds.min_opt().unwrap(), *bounds.max_opt().unwrap())
            }
            other => panic!("{other:?}"),
        });
        bounds.collect::<Vec<_>>()
    };
    // Of every two rows the second is deleted.
    let firsts = bounds(0);
    assert_eq!(firsts.len(), 4, "{firsts:?}");
    let mut next = 0;
    for (least, greatest) in &firsts {
        assert_eq!(*least, next);
        next = greatest + 2;
    }
    assert_eq!(next, 400);
    let lineage = footer.row_group(0).num_columns() - 2;
    assert_eq!(
        bounds(lineage),
        firsts,
        "row ids are the rows' positions here"
    );
}

#[test]
fn reading_a_piece_decodes_its_pages_and_no_others() {
    let case = pieces();
    let (t, _) = case.build();
    let opened = Opened::tree_with(&t.root(), &case.options());
    assert_eq!(footer(&opened).num_row_groups(), 4);
    let whole = Case {
        piece: u64::MAX,
        ..case.clone()
    };
    let decoded = |case: &Case, group: usize, column: usize| {
        let opened = Opened::tree_with(&t.root(), &case.options());
        let footer = footer(&opened);
        let opened = Opened::tree_with(&t.root(), &case.options());
        let len = opened.size(WHOLE).unwrap();
        opened.read_range(WHOLE, len - 8, 8).unwrap();
        let before = opened.stats()["pages_decoded"];
        let (start, len) = footer.row_group(group).column(column).byte_range();
        opened.read_range(WHOLE, start, len as usize).unwrap();
        opened.stats()["pages_decoded"] - before
    };
    for column in [0, 1, 7, 30] {
        let all = decoded(&whole, 0, column);
        let pieces: Vec<u64> = (0..4).map(|group| decoded(&case, group, column)).collect();
        // A page that two pieces share is decoded for both.
        let sum = pieces.iter().sum::<u64>();
        assert!(
            (all..=all + 3).contains(&sum),
            "column {column}: {pieces:?} {all}"
        );
        assert!(
            pieces.iter().all(|pages| *pages < all / 2),
            "column {column}: {pieces:?} {all}"
        );
    }
}

/// How long a slot must be is decided before equality deletes are read; how much of it a reader reads is not.
#[test]
fn readers_do_not_read_the_part_of_a_slot_that_equality_deletes_leave_empty() {
    let case = Case {
        rows: 20_000,
        row_group: 20_000,
        page_rows: 2000,
        dictionary_limit: 1000,
        means: Means::Equality,
        piece: 10_000,
        ..Case::of(&[])
    };
    case.check();
    let (t, _) = case.build();
    let opened = Opened::tree_with(&t.root(), &case.options());
    let footer = footer(&opened);
    for group in footer.row_groups() {
        // 8 bytes for each row that is left, and a little for each page and the dictionary, which is short.
        let least = group.num_rows() * 8;
        let stated = group.column(0).compressed_size();
        assert!((least..least + 4000).contains(&stated), "{least} {stated}");
    }
    assert_eq!(footer.num_row_groups(), 2);
}
