#![allow(clippy::expect_used)]

use super::*;
use crate::parquet::format::Encoding;
use crate::parquet::places::PagePlace;

/// Pages of so many rows each, of 100 bytes that are 300 when they are not compressed. Those before `plain` use the
/// dictionary before them, of 50 bytes.
fn pages(rows: &[u64], plain: usize) -> FoundPages {
    let mut found = FoundPages {
        dictionary: (plain > 0).then_some((0..50, 80)),
        pages: Vec::new(),
    };
    let (mut row, mut at) = (0, if plain > 0 { 50 } else { 0 });
    for (index, &rows) in rows.iter().enumerate() {
        let bounds = i64::try_from(row).ok().map(|low| (low, low + 5));
        found.pages.push(FoundPage {
            place: PagePlace {
                bytes: at..at + 100,
                first_row: row,
                rows,
                bounds,
            },
            size: 300,
            encoding: if index < plain {
                Encoding::RleDictionary
            } else {
                Encoding::Plain
            },
        });
        row += rows;
        at += 100;
    }
    found
}

fn cuts_of(rows: u64, piece: u64, columns: &[FoundPages]) -> Vec<Range<u64>> {
    cuts(rows, piece, columns.iter().flat_map(|found| &found.pages))
}

#[test]
fn pieces_begin_where_pages_of_most_columns_do() {
    let columns = [
        pages(&[20; 20], 0),
        pages(&[20; 20], 0),
        pages(&[70, 70, 70, 70, 70, 50], 0),
    ];
    // At 100 and at 200 two pages begin, at 280 three.
    assert_eq!(
        cuts_of(400, 100, &columns),
        [0..100, 100..200, 200..280, 280..400]
    );
    assert_eq!(
        cuts_of(400, 90, &columns[2..]),
        [0..70, 70..140, 140..210, 210..280, 280..400]
    );
}

#[test]
fn no_short_piece_is_left_over_and_one_page_is_cut_where_it_must() {
    let one = [pages(&[1000], 0)];
    assert_eq!(cuts_of(1000, 400, &one), [0..400, 400..1000]);
    assert_eq!(cuts_of(600, 400, &one).len(), 1);
    assert_eq!(cuts_of(601, 400, &one), [0..400, 400..601]);
    assert_eq!(cuts_of(3, 1, &one), [0..1, 1..2, 2..3]);
}

#[test]
fn a_span_has_the_pages_that_hold_its_rows_and_the_dictionary_they_need() {
    let found = pages(&[10, 10, 10, 10], 2);
    let middle = span(&found, 5..20).expect("it has pages");
    assert_eq!(middle.bytes, 50..250);
    assert_eq!(middle.dictionary, Some(0..50));
    assert_eq!((middle.first_row, middle.values), (0, 20));
    assert_eq!((middle.size, middle.pages), (680, 3));
    assert_eq!(middle.bounds_inside, Some((10, 15)));
    let end = span(&found, 25..40).expect("it has pages");
    assert_eq!(end.bytes, 250..450);
    assert_eq!(end.dictionary, None);
    assert_eq!((end.first_row, end.values), (20, 20));
    assert_eq!((end.size, end.pages), (600, 2));
    assert_eq!(end.bounds_inside, Some((30, 35)));
    assert_eq!(span(&found, 40..50), None);
}

#[test]
fn a_row_group_that_claims_any_number_of_rows_has_no_more_than_some_pieces() {
    let splitting = Splitting::default();
    let piece = |rows| least_piece(rows, splitting);
    assert_eq!(piece(1_000_000), 1 << 17);
    let most = u64::MAX >> 1;
    assert!(cuts(most, piece(most), [].iter()).len() <= 130);
}
