#![allow(clippy::unwrap_used)]

use super::*;
use crate::parquet::thrift::{StructWriter, write_struct};

#[test]
fn row_groups_in_order_are_clustered_and_those_that_all_span_the_same_are_not() {
    let rising: Vec<(i64, i64)> = (0..8).map(|i| (i * 10, i * 10 + 10)).collect();
    assert!(nearly_disjoint(&rising));
    assert!(!nearly_disjoint(&[(0, 100); 8]));
    assert!(!nearly_disjoint(&[(0, 10)]));
    assert!(!nearly_disjoint(&[(0, 10), (5, 15)]));
    let random: Vec<(i64, i64)> = (0..8).map(|i| (i, 100 - i)).collect();
    assert!(!nearly_disjoint(&random));
    // Values that a whole row group has in common.
    assert!(nearly_disjoint(&[(1, 1), (1, 1), (2, 2), (2, 2)]));
}

#[test]
fn a_row_group_that_spans_everything_spoils_no_clustering() {
    let mut bounds: Vec<(i64, i64)> = (0..8).map(|i| (i * 10, i * 10 + 9)).collect();
    bounds.push((3, 77));
    assert!(nearly_disjoint(&bounds));
}

/// A footer over decimals of both kinds could not be made.
#[test]
fn decimals_stored_as_bytes_and_unsigned_integers_have_no_bounds_proven() {
    assert!(is_proven(Physical::Int32, Conversion::Int32ToInt64));
    assert!(is_proven(Physical::Int64, Conversion::None));
    let from_bytes = Conversion::FixedToInt { from: 5, to: 8 };
    assert!(!is_proven(Physical::Fixed(5), from_bytes));
    let unsigned = Conversion::Unsigned32ToInt64;
    assert!(!is_proven(Physical::Int32, unsigned));
}

/// Pages of 10 rows at 100, of 50 bytes each, behind a dictionary of 20 bytes at 80.
fn index(offsets: &[(i64, i64)], bounds: &[(i32, i32)]) -> Option<Pages> {
    let mut offset_index = Vec::new();
    write_struct(&mut offset_index, |out| {
        let location = |out: &mut StructWriter<'_>, (offset, row): &(i64, i64)| {
            out.i64(1, *offset);
            out.i32(2, 50);
            out.i64(3, *row);
        };
        out.structures(1, offsets, location);
    });
    let mut column_index = vec![0x19, (bounds.len() as u8) << 4 | 1];
    column_index.extend(bounds.iter().map(|_| 2));
    for get in [|b: &(i32, i32)| b.0, |b: &(i32, i32)| b.1] {
        column_index.extend([0x19, (bounds.len() as u8) << 4 | 8]);
        for bound in bounds {
            column_index.push(4);
            column_index.extend(get(bound).to_le_bytes());
        }
    }
    column_index.push(0);
    places(&offset_index, &column_index, 80..200, 20)
}

#[test]
fn a_page_index_gives_the_pages_and_their_bounds() {
    let page = |start: u64, first_row, bounds| PagePlace {
        bytes: start..start + 50,
        first_row,
        rows: 10,
        bounds: Some(bounds),
    };
    let (dictionary, pages) = index(&[(100, 0), (150, 10)], &[(1, 5), (4, 9)]).unwrap();
    assert_eq!(dictionary, Some(0..20));
    assert_eq!(pages, [page(20, 0, (1, 5)), page(70, 10, (4, 9))]);
}

#[test]
fn a_page_index_that_has_other_pages_than_the_chunk_is_not_used() {
    let good: &[(i64, i64)] = &[(100, 0), (150, 10)];
    let bounds: &[(i32, i32)] = &[(1, 5), (4, 9)];
    // A page too few; pages outside the chunk, or in another order; rows that do not start at the first, descend, or are
    // more than there are.
    assert_eq!(index(good, &[(1, 9)]), None);
    for locations in [
        [(70, 0), (150, 10)],
        [(100, 0), (151, 10)],
        [(150, 0), (100, 10)],
        [(100, 1), (150, 10)],
        [(100, 0), (150, 21)],
        [(100, 0), (i64::MAX, 10)],
    ] {
        assert_eq!(index(&locations, bounds), None, "{locations:?}");
    }
}
