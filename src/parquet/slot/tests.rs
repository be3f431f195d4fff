//! Closing pages: they fill any remainder exactly, and begin as readers expect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

/// The pages that a remainder is filled with: the length of each body, and its first bytes.
fn pages(rest: usize, closing: Closing) -> Vec<(usize, Vec<u8>)> {
    let mut bytes = filler(rest, closing).unwrap();
    assert!(
        bytes.len() <= rest,
        "{} bytes of heads in {rest}",
        bytes.len()
    );
    bytes.resize(rest, 0);
    let (mut pages, mut left) = (Vec::new(), bytes.as_slice());
    while !left.is_empty() {
        let (header, len) = PageHeader::parse(left).unwrap();
        let body = header.compressed_size as usize;
        assert_eq!(header.compressed_size, header.uncompressed_size);
        assert!(matches!(header.page, Page::DataV1 { num_values: 0, .. }));
        pages.push((body, left[len..len + body.min(LEVELS_LEN)].to_vec()));
        left = &left[len + body..];
    }
    pages
}

#[test]
fn every_remainder_is_filled_exactly() {
    let sizes = (FILL as usize..2_000)
        .chain(8_100..8_300)
        .chain(1_048_500..1_048_700);
    for rest in sizes {
        for closing in [Closing::Required, Closing::Optional, Closing::OptionalFixed] {
            assert!((1..=2).contains(&pages(rest, closing).len()), "{rest}");
        }
    }
    assert_eq!(filler(0, Closing::Optional), Some(Vec::new()));
}

#[test]
fn a_page_of_a_column_with_levels_says_how_long_they_are() {
    for rest in FILL as usize..2_000 {
        for (body, head) in pages(rest, Closing::Optional) {
            assert_eq!((body >= LEVELS_LEN, head), (true, vec![0; LEVELS_LEN]));
        }
        for (body, head) in pages(rest, Closing::OptionalFixed) {
            assert_eq!(
                head,
                ((body - LEVELS_LEN) as u32).to_le_bytes(),
                "all of it is levels"
            );
        }
    }
}

#[test]
fn lists_and_required_fixed_length_columns_are_followed_by_a_gap() {
    let closing = Behind::ClosingPages;
    assert_eq!(Behind::of(Physical::Int64, 3, 1), Behind::Gap);
    assert_eq!(Behind::of(Physical::Fixed(16), 0, 0), Behind::Gap);
    assert_eq!(
        Behind::of(Physical::Fixed(16), 1, 0),
        closing(Closing::OptionalFixed)
    );
    assert_eq!(
        Behind::of(Physical::Int64, 0, 0),
        closing(Closing::Required)
    );
    assert_eq!(
        Behind::of(Physical::ByteArray, 2, 0),
        closing(Closing::Optional)
    );
}

#[test]
fn a_remainder_too_short_for_a_page_is_said_to_be() {
    assert_eq!(filler(3, Closing::Required), None);
    assert_eq!(filler(0, Closing::Required), Some(Vec::new()));
}

/// A column of required longs, of 1000 rows in 2 pages.
fn longs(encodings: &[Encoding], dictionary: Option<u64>) -> (StoredSize<'_>, SlotShape) {
    let stored = StoredSize {
        bytes: 8100,
        values: 1000,
        pages: 2,
        dictionary,
        encodings,
    };
    let shape = SlotShape {
        source: Physical::Int64,
        widths: None,
        nested: false,
        level_bits: 0,
        new_levels: false,
    };
    (stored, shape)
}

#[test]
fn a_slot_for_a_few_of_the_values_is_short() {
    let (stored, shape) = longs(&[Plain], Some(0));
    let spare = SLACK + FILL;
    assert_eq!(slot_len(stored, shape, 10), 10 * 8 + 2 * 128 + spare);
    let optional = SlotShape {
        level_bits: 1,
        ..shape
    };
    assert_eq!(slot_len(stored, optional, 10), 10 * 11 + 2 * 128 + spare);
    // The dictionary is there whatever is kept.
    let (stored, shape) = longs(&[Plain, Encoding::RleDictionary], Some(2000));
    assert_eq!(slot_len(stored, shape, 10), 2000 + 10 * 8 + 2 * 128 + spare);
    // Of all values the first bound is the less.
    assert!(slot_len(stored, shape, 1000) < 8100 + 100 + spare);
}

#[test]
fn a_slot_for_a_few_of_the_values_is_long_where_their_length_is_not_known() {
    let (stored, shape) = longs(&[Plain, Encoding::RleDictionary], None);
    let all = slot_len(stored, shape, 1000);
    assert_eq!(slot_len(stored, shape, 10), all);
    let (stored, shape) = longs(&[Plain], Some(0));
    for other in [
        SlotShape {
            source: Physical::ByteArray,
            ..shape
        },
        SlotShape {
            nested: true,
            ..shape
        },
        SlotShape {
            widths: Some((4, 8)),
            ..shape
        },
        SlotShape {
            level_bits: 9,
            ..shape
        },
    ] {
        assert_eq!(slot_len(stored, other, 10), slot_len(stored, other, 1000));
    }
}
