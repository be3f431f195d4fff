#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::parse;

/// A blob of bitmaps by key, as the Puffin spec lays it out.
fn blob(bitmaps: &[(u32, RoaringBitmap)]) -> Vec<u8> {
    let mut vector = (bitmaps.len() as u64).to_le_bytes().to_vec();
    for (key, bitmap) in bitmaps {
        vector.extend(key.to_le_bytes());
        bitmap.serialize_into(&mut vector).unwrap();
    }
    framed(&vector)
}

fn framed(vector: &[u8]) -> Vec<u8> {
    let body = [&[0xD1, 0xD3, 0x39, 0x64], vector].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[..], &body, &crc32fast::hash(&body).to_be_bytes()].concat()
}

fn error(blob: &[u8], cardinality: u64) -> String {
    parse(blob, cardinality).unwrap_err().to_string()
}

fn bitmap(positions: impl IntoIterator<Item = u32>) -> RoaringBitmap {
    positions.into_iter().collect()
}

#[test]
fn rule_32_positions_are_key_and_bitmap_together() {
    let mut runs = bitmap(100..70_000);
    runs.optimize();
    let read = parse(&blob(&[(0, runs), (2, bitmap([5, 7]))]), 69_902).unwrap();
    assert_eq!(read.len(), 69_902);
    assert!(
        read.contains(100) && read.contains(69_999) && !read.contains(99) && !read.contains(70_000)
    );
    assert_eq!(
        read.iter().rev().take(2).collect::<Vec<_>>(),
        [(2 << 32) + 7, (2 << 32) + 5]
    );
}

#[test]
fn rule_32_an_empty_vector_is_read() {
    assert_eq!(parse(&blob(&[]), 0).unwrap().len(), 0);
}

/// The blob of `{1, 3, 5, 7, 9}` written out by hand from the Puffin and Roaring specs.
#[test]
fn rule_32_a_blob_made_by_hand_is_read() {
    let vector: [u8; 12 + 8 + 4 + 4 + 10] = [
        1, 0, 0, 0, 0, 0, 0, 0, // one bitmap
        0, 0, 0, 0, // key 0
        0x3A, 0x30, 0, 0, 1, 0, 0, 0, // cookie 12346, one container
        0, 0, 4, 0, // container 0 of 5 values
        16, 0, 0, 0, // which starts at byte 16 of the bitmap
        1, 0, 3, 0, 5, 0, 7, 0, 9, 0,
    ];
    let read = parse(&framed(&vector), 5).unwrap();
    assert_eq!(read.iter().collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
}

#[test]
fn rule_32_every_check_of_the_frame_is_made() {
    let good = blob(&[(0, bitmap([1, 2, 3]))]);
    assert!(error(&good, 4).contains("holds 3 positions, its manifest entry says 4"));
    assert!(error(&good[..7], 3).contains("too few"));
    assert!(error(&good[..good.len() - 1], 3).contains("length field"));
    let mut longer = good.clone();
    longer.push(0);
    assert!(error(&longer, 3).contains("length field"));
    let mut magic = good.clone();
    magic[4] = 0xD0;
    assert!(error(&magic, 3).contains("magic"));
    let mut crc = good;
    let last = crc.len() - 1;
    crc[last] ^= 1;
    assert!(error(&crc, 3).contains("checksum"));
}

#[test]
fn rule_32_keys_ascend_and_nothing_follows() {
    let one = || bitmap([1]);
    assert!(error(&blob(&[(1, one()), (0, one())]), 2).contains("ascending"));
    assert!(error(&blob(&[(1, one()), (1, one())]), 2).contains("ascending"));
    assert!(error(&blob(&[(1 << 31, one())]), 1).contains("beyond 2^63"));
    let mut vector = 1_u64.to_le_bytes().to_vec();
    vector.extend(0_u32.to_le_bytes());
    one().serialize_into(&mut vector).unwrap();
    vector.push(0);
    assert!(error(&framed(&vector), 1).contains("1 bytes follow"));
    let claims_many = u64::MAX.to_le_bytes();
    assert!(error(&framed(&claims_many), 0).contains("ends before"));
}

proptest! {
    #[test]
    fn rule_32_vectors_of_any_bytes_never_panic(vector in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&framed(&vector), 0);
        let mut with_cookie = vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3B, 0x30];
        with_cookie.extend(vector);
        let _ = parse(&framed(&with_cookie), 0);
    }

    #[test]
    fn rule_32_a_flipped_bit_is_noticed(at in 0_usize..40, bit in 0..8) {
        let mut bytes = blob(&[(0, bitmap([1, 2, 3])), (1, bitmap([70_000]))]);
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(parse(&bytes, 4).is_err());
    }
}
