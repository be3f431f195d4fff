#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::packed::{unpacked, wide_value};

/// Bit number `at`, the least significant of each byte first.
fn bit(bytes: &[u8], at: usize) -> u64 {
    u64::from(bytes[at / 8] >> (at % 8) & 1)
}

proptest! {
    #[test]
    fn values_unpack_bit_by_bit(bytes in vec(any::<u8>(), 80..120), width in 0..=64u8) {
        let count = bytes.len() * 8 / usize::from(width.max(8));
        let expected = |at: usize| {
            (0..usize::from(width)).fold(0, |value, bit_at| value | bit(&bytes, at * usize::from(width) + bit_at) << bit_at)
        };
        for at in 0..count {
            prop_assert_eq!(wide_value(&bytes, width, at), expected(at));
        }
        if width <= 32 {
            let out: Vec<u32> = unpacked(&bytes, width, count).collect();
            prop_assert_eq!(out, (0..count).map(|at| expected(at) as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn copied_bits_are_the_source_bits(
        bytes in vec(any::<u8>(), 40..60), pieces in vec((0..160usize, 0..160usize), 0..6),
    ) {
        let mut writer = BitWriter::new();
        let mut expected = Vec::new();
        for (start, count) in pieces {
            writer.copy(&bytes, start, count);
            expected.extend((start..start + count).map(|at| bit(&bytes, at)));
        }
        let out = writer.take();
        prop_assert_eq!(out.len(), expected.len().div_ceil(8));
        expected.resize(out.len() * 8, 0);
        prop_assert_eq!((0..out.len() * 8).map(|at| bit(&out, at)).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_bit_packed_example_of_the_format_description_decodes() {
    // parquet-format, Encodings.md: 0 to 7 in three bits, most significant first.
    let mut out = Vec::new();
    unpack_msb_first(&[0b0000_0101, 0b0011_1001, 0b0111_0111], 3, 8, &mut out).unwrap();
    assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(unpack_msb_first(&[0, 0], 3, 8, &mut out).is_err());
}
