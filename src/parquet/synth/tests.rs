#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;
use crate::iceberg::types::PrimitiveType;
use crate::parquet::format::Codec;
use crate::parquet::page::PageReader;

fn leaf(physical: Physical, max_def: u16, max_rep: u16) -> TargetLeaf {
    let ty = PrimitiveType::Long;
    TargetLeaf {
        path: vec!["c".to_owned()],
        ty,
        physical,
        max_def,
        max_rep,
    }
}

#[test]
fn a_constant_takes_no_more_bytes_for_a_million_rows_than_for_ten() {
    let leaf = leaf(Physical::Int64, 1, 0);
    let bytes = |rows| {
        let entries = [long_entry(7)];
        constant(&leaf, &entries, &Parents::Rows(rows))
            .unwrap()
            .bytes
            .len()
    };
    assert!(bytes(1_000_000) < bytes(10) + 12);
}

#[test]
fn row_ids_without_a_gap_take_five_bytes_for_128_rows() {
    let ids = (0..30_000).map(|i| 1_000_000 + i);
    let chunk = positions(&leaf(Physical::Int64, 1, 0), 30_000, ids).unwrap();
    assert!(
        chunk.bytes.len() < 30_000 / 128 * 5 + 64,
        "{}",
        chunk.bytes.len()
    );
    assert_eq!(chunk.num_values, 30_000);
}

#[test]
fn a_list_default_stands_in_every_present_parent_and_nothing_in_an_absent_one() {
    // A list of longs, optional in an optional struct: list null at 1, empty at 2, element null at 3, present at 4.
    let leaf = leaf(Physical::Int64, 4, 1);
    let item = |rep, value| Entry {
        rep,
        def: 4,
        value: Some(Value::Long(value)),
    };
    let entries = [item(0, 5), item(1, 6), item(1, 5)];
    let parent = |present| Parent {
        rep: 0,
        def: 0,
        present,
    };
    let parents = Parents::Nested(vec![parent(true), parent(false), parent(true)]);
    let chunk = constant(&leaf, &entries, &parents).unwrap();
    assert_eq!(chunk.num_values, 7);

    let mut pages = PageReader::new(&chunk.bytes, Codec::Uncompressed, chunk.num_values);
    let dictionary = pages.next_page().unwrap().unwrap();
    assert!(dictionary.is_dictionary());
    assert_eq!(dictionary.num_values(), 2, "5 and 6");
    let page = pages.next_page().unwrap().unwrap();
    let body = page.decompress().unwrap();
    let parts = page.split(&body, 1, 4).unwrap();
    let decode = |levels: &crate::parquet::page::Levels<'_>| {
        let mut out = Vec::new();
        levels.decode(&mut out).unwrap();
        out
    };
    assert_eq!(decode(&parts.repetition), [0, 1, 1, 0, 0, 1, 1]);
    assert_eq!(decode(&parts.definition), [4, 4, 4, 0, 4, 4, 4]);
}

#[test]
fn decimals_are_written_in_the_width_they_are_given_or_not_at_all() {
    assert_eq!(fixed_decimal(-1, 3), Some(vec![0xff, 0xff, 0xff]));
    assert_eq!(fixed_decimal(127, 1), Some(vec![127]));
    assert_eq!(fixed_decimal(128, 1), None, "its sign does not fit");
    assert_eq!(fixed_decimal(-128, 1), Some(vec![0x80]));
    assert_eq!(fixed_decimal(-129, 1), None);
    assert_eq!(fixed_decimal(0, 17), None, "wider than any decimal");
}

#[test]
fn a_value_of_another_type_is_refused() {
    let leaf = leaf(Physical::Int32, 1, 0);
    assert!(plain_value(&Value::String("x".to_owned()), &leaf).is_err());
    assert!(plain_value(&Value::Long(1 << 40), &leaf).is_err());
}

proptest! {
    #[test]
    fn the_positions_that_are_left_fit_their_bound(
        rows in 1u64..6_000,
        seed in any::<u64>(),
        one_in in 1u64..400,
        known in any::<bool>(),
    ) {
        // A cheap hash decides who goes, so that gaps of all sizes come up.
        let goes = |row: u64| (row ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let kept: Vec<i64> = (0..rows)
            .filter(|row| !goes(*row).is_multiple_of(one_in))
            .map(|row| row.cast_signed())
            .collect();
        let deleted = rows - kept.len() as u64;
        let count = kept.len() as u64;
        let chunk = positions(&leaf(Physical::Int64, 1, 0), count, kept.iter().copied()).unwrap();
        let bound = positions_len_bound(rows, known.then_some(deleted));
        prop_assert!(chunk.bytes.len() as u64 <= bound, "{} > {bound}", chunk.bytes.len());
    }

    #[test]
    fn the_positions_that_are_left_between_long_gaps_fit_their_bound(
        runs in prop::collection::vec((1u64..200, 0u64..20_000), 1..60),
        known in any::<bool>(),
    ) {
        let mut kept = Vec::new();
        let mut row = 0;
        for (keep, gap) in runs {
            kept.extend((row..row + keep).map(|row| row.cast_signed()));
            row += keep + gap;
        }
        let count = kept.len() as u64;
        let chunk = positions(&leaf(Physical::Int64, 1, 0), count, kept.iter().copied()).unwrap();
        let bound = positions_len_bound(row, known.then_some(row - kept.len() as u64));
        prop_assert!(chunk.bytes.len() as u64 <= bound, "{} > {bound}", chunk.bytes.len());
    }

    #[test]
    fn arbitrary_longs_fit_their_bound(values in prop::collection::vec(any::<Option<i64>>(), 0..700)) {
        let chunk = longs(&leaf(Physical::Int64, 1, 0), &values).unwrap();
        prop_assert!(chunk.bytes.len() as u64 <= longs_len_bound(values.len() as u64));
    }

    #[test]
    fn a_shredded_default_fits_its_bound(
        present in prop::collection::vec(any::<bool>(), 0..300),
        items in 1usize..6,
    ) {
        let leaf = leaf(Physical::Int64, 4, 1);
        let entries: Vec<Entry> = (0..items)
            .map(|i| Entry { rep: u16::from(i > 0), def: 4, value: Some(Value::Long(i as i64)) })
            .collect();
        let parents: Vec<Parent> =
            present.iter().map(|present| Parent { rep: 0, def: 1, present: *present }).collect();
        let bound = constant_len_bound(&leaf, &entries, (present.len() * items) as u64);
        let chunk = constant(&leaf, &entries, &Parents::Nested(parents)).unwrap();
        prop_assert!(chunk.bytes.len() as u64 <= bound, "{} > {bound}", chunk.bytes.len());
    }
}
