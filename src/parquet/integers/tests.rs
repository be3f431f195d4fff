#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::parquet::format::Codec;
use crate::parquet::made::MadeChunk;
use crate::parquet::places::{HEADER_READ, find_pages};
use crate::parquet::rle::encode_levels;
use crate::rows::file_schema::Physical;

/// A chunk of optional integers, in PLAIN pages.
fn stored(pages: &[Vec<Option<i32>>]) -> Vec<u8> {
    let mut chunk = MadeChunk::default();
    for page in pages {
        let levels: Vec<u16> = page.iter().map(|v| u16::from(v.is_some())).collect();
        let values: Vec<u8> = page
            .iter()
            .flatten()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let plain = crate::parquet::format::Encoding::Plain;
        let levels = encode_levels(&levels, 1);
        chunk.push_data(page.len() as u32, plain, None, Some(&levels), &[&values]);
    }
    chunk.bytes
}

struct Outcome {
    extremes: Extremes,
    values: Vec<Option<i64>>,
    pages_decoded: u64,
}

fn find(pages: &[Vec<Option<i32>>], deleted: &[u32], with_bounds: bool) -> Outcome {
    let bytes = stored(pages);
    let all: Vec<Option<i32>> = pages.iter().flatten().copied().collect();
    let chunk = StoredChunk {
        bytes: &bytes,
        len: bytes.len() as u64,
        codec: Codec::Uncompressed,
        physical: Physical::Int32,
        max_def: 1,
        max_rep: 0,
        uncompressed: 0,
        values: all.len() as u64,
        rows: all.len() as u64,
        span: None,
        deleted,
    };
    let extremes = |values: &[Option<i32>]| {
        let values = || values.iter().flatten().map(|v| i64::from(*v));
        Some((values().min()?, values().max()?))
    };
    let known = Known {
        bounds: extremes(&all),
        nulls: Some(all.iter().filter(|v| v.is_none()).count() as u64),
    };
    let read = |range| chunk.range(range).map(Cow::Borrowed);
    let (dictionary, mut places) = find_pages(chunk, &read).unwrap().places();
    if with_bounds {
        for (place, page) in places.iter_mut().zip(pages) {
            place.bounds = extremes(page).or(Some((i64::MAX, i64::MIN)));
        }
    }
    let counters = Counters::default();
    let new =
        |counters| IntegerChunk::new(chunk, dictionary.clone(), places.clone(), &read, counters);
    Outcome {
        extremes: new(&counters).extremes(known).unwrap(),
        pages_decoded: counters.pages_decoded.get(),
        values: new(&counters).all().unwrap(),
    }
}

/// 100 pages of 10 rows, rising.
fn rising() -> Vec<Vec<Option<i32>>> {
    let page = |page| (0..10).map(|row| Some(page * 10 + row)).collect();
    (0..100).map(page).collect()
}

#[test]
fn a_chunk_in_order_takes_two_pages() {
    for with_bounds in [false, true] {
        let outcome = find(&rising(), &[5, 17, 500], with_bounds);
        assert_eq!(outcome.extremes.bounds, Some((0, 999)));
        assert_eq!(outcome.pages_decoded, 2);
        let mut falling = rising();
        falling.reverse();
        assert_eq!(find(&falling, &[5], with_bounds).pages_decoded, 2);
    }
}

#[test]
fn with_page_bounds_deleted_extremes_take_the_pages_behind_them() {
    // The whole first page, and the last row.
    let deleted: Vec<u32> = (0..10).chain([999]).collect();
    let outcome = find(&rising(), &deleted, true);
    assert_eq!(outcome.extremes.bounds, Some((10, 998)));
    assert_eq!(outcome.pages_decoded, 2);
    // Without, any page might hold a zero.
    let outcome = find(&rising(), &deleted, false);
    assert_eq!(outcome.extremes.bounds, Some((10, 998)));
    assert_eq!(outcome.pages_decoded, 99);
}

#[test]
fn page_bounds_that_contradict_the_chunk_are_not_used() {
    let bytes = stored(&[vec![Some(1), Some(5)], vec![Some(2), Some(9)]]);
    let chunk = StoredChunk {
        bytes: &bytes,
        len: bytes.len() as u64,
        codec: Codec::Uncompressed,
        physical: Physical::Int32,
        max_def: 1,
        max_rep: 0,
        uncompressed: 0,
        values: 4,
        rows: 4,
        span: None,
        deleted: &[0],
    };
    let known = Known {
        bounds: Some((1, 9)),
        nulls: Some(0),
    };
    let read = |range| chunk.range(range).map(Cow::Borrowed);
    let (_, mut places) = find_pages(chunk, &read).unwrap().places();
    // They would hide that the second page holds the least.
    places[0].bounds = Some((1, 5));
    places[1].bounds = Some((6, 7));
    let counters = Counters::default();
    let found = IntegerChunk::new(chunk, None, places, &read, &counters).extremes(known);
    assert_eq!(found.unwrap().bounds, Some((2, 9)));
}

#[test]
fn pages_are_found_by_their_headers_alone() {
    let bytes = stored(&vec![vec![Some(7); 5000]; 10]);
    let chunk = StoredChunk {
        bytes: &bytes,
        len: bytes.len() as u64,
        codec: Codec::Uncompressed,
        physical: Physical::Int32,
        max_def: 1,
        max_rep: 0,
        uncompressed: 0,
        values: 50_000,
        rows: 50_000,
        span: None,
        deleted: &[],
    };
    let asked = std::cell::Cell::new(0);
    let read = |range: Range<u64>| {
        asked.set(asked.get() + range.end - range.start);
        chunk.range(range).map(Cow::Borrowed)
    };
    let (_, places) = find_pages(chunk, &read).unwrap().places();
    let rows: Vec<u64> = places.iter().map(|place| place.rows).collect();
    assert_eq!(rows, [5000; 10]);
    assert_eq!(asked.get(), 10 * HEADER_READ);
    let short = StoredChunk {
        len: chunk.len - 1,
        ..chunk
    };
    assert!(find_pages(short, &read).is_err());
}

fn column() -> impl Strategy<Value = Vec<Vec<Option<i32>>>> {
    let value = prop_oneof![1 => Just(None), 6 => (-20..20).prop_map(Some)];
    prop::collection::vec(prop::collection::vec(value, 1..6), 1..8)
}

proptest! {
    #[test]
    fn extremes_are_those_of_the_rows_that_are_left(
        pages in column(),
        deleted in prop::collection::vec(any::<bool>(), 40),
        with_bounds: bool,
    ) {
        let all: Vec<Option<i64>> = pages.iter().flatten().map(|v| v.map(i64::from)).collect();
        let gone = |row: &usize| deleted[*row % 40];
        let left: Vec<Option<i64>> = (0..all.len()).filter(|row| !gone(row)).map(|row| all[row]).collect();
        let deleted: Vec<u32> = (0..all.len()).filter(gone).map(|row| row as u32).collect();
        let outcome = find(&pages, &deleted, with_bounds);
        let (least, greatest) = (left.iter().flatten().min(), left.iter().flatten().max());
        prop_assert_eq!(outcome.extremes.bounds, least.zip(greatest).map(|(a, b)| (*a, *b)));
        prop_assert_eq!(outcome.extremes.nulls, left.iter().filter(|v| v.is_none()).count() as u64);
        prop_assert_eq!(outcome.values, left);
    }
}
