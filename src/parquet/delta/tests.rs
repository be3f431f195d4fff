#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::byte_array::*;
use super::*;

fn encoded_i64(values: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_i64(values, &mut out);
    out
}

fn encoded_i32(values: &[i32]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_i32(values, &mut out);
    out
}

fn prefix_suffix(values: &[Vec<u8>]) -> Vec<u8> {
    let (mut prefixes, mut lens, mut suffixes) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: &[u8] = &[];
    for value in values {
        let shared = value.iter().zip(last).take_while(|(a, b)| a == b).count();
        prefixes.push(shared as i32);
        lens.push((value.len() - shared) as i32);
        suffixes.extend_from_slice(&value[shared..]);
        last = value;
    }
    let mut out = Vec::new();
    encode_prefix_suffix(&prefixes, &lens, &suffixes, &mut out);
    out
}

fn values_of(bytes: &[u8], count: usize) -> Vec<Vec<u8>> {
    let parts = decode_prefix_suffix(bytes, count).unwrap();
    let mut rest = parts.suffixes;
    let mut value: Vec<u8> = Vec::new();
    let mut values = Vec::new();
    for (prefix, suffix) in parts.prefix_lens.iter().zip(&parts.suffix_lens) {
        value.truncate(*prefix);
        value.extend_from_slice(&rest[..*suffix]);
        rest = &rest[*suffix..];
        values.push(value.clone());
    }
    values
}

proptest! {
    #[test]
    fn integers_of_64_bits_decode_to_themselves_within_the_bound(
        values in prop_oneof![vec(any::<i64>(), 0..400), vec(-9..9i64, 0..400)], tail in vec(any::<u8>(), 0..9),
    ) {
        let mut bytes = encoded_i64(&values);
        let len = bytes.len();
        prop_assert!(len <= encoded_len_bound(values.len()));
        bytes.extend(tail);
        prop_assert_eq!(decode(&bytes, values.len()).unwrap(), (values, len));
    }

    #[test]
    fn integers_of_32_bits_decode_to_themselves_within_the_bound(values in vec(any::<i32>(), 0..400)) {
        let bytes = encoded_i32(&values);
        prop_assert!(bytes.len() <= encoded_len_bound_i32(values.len()));
        let (decoded, len) = decode(&bytes, values.len()).unwrap();
        prop_assert_eq!(decoded.into_iter().map(|value| value as i32).collect::<Vec<_>>(), values);
        prop_assert_eq!(len, bytes.len());
    }

    #[test]
    fn filtered_byte_arrays_are_the_kept_ones_within_the_bound(
        values in vec(vec(0..3u8, 0..20), 0..60), mask in vec(any::<bool>(), 60),
    ) {
        let bytes = prefix_suffix(&values);
        let mut keep = KeepRuns::new();
        values.iter().zip(&mask).for_each(|(_, kept)| keep.push(*kept, 1));
        let mut out = Vec::new();
        filter_byte_array(&bytes, &keep, &mut out).unwrap();
        let suffix_bytes = decode_prefix_suffix(&bytes, values.len()).unwrap().suffixes.len();
        prop_assert!(out.len() <= byte_array_bound(keep.kept(), suffix_bytes));
        prop_assert!(decode_prefix_suffix(&out, keep.kept()).unwrap().suffixes.len() <= suffix_bytes);
        let expected: Vec<_> =
            values.into_iter().zip(&mask).filter(|(_, kept)| **kept).map(|(value, _)| value).collect();
        prop_assert_eq!(values_of(&out, keep.kept()), expected);
    }

    #[test]
    fn arbitrary_bytes_give_an_answer(bytes in vec(any::<u8>(), 0..80), count in 0..300usize) {
        let _ = decode(&bytes, count);
        let _ = decode_lengths(&bytes, count);
        let keep = KeepRuns::without(count, [1, 5]);
        let _ = filter_byte_array(&bytes, &keep, &mut Vec::new());
        let _ = lengths_to_plain(&bytes, &keep, &mut Vec::new());
    }
}

#[test]
fn the_examples_of_the_format_description_decode() {
    // parquet-format, Encodings.md: 1 to 5, in blocks of 8 values in one miniblock.
    assert_eq!(decode(&[8, 1, 5, 2, 2, 0], 5), Ok((vec![1, 2, 3, 4, 5], 6)));
    // 7, 5, 3, 1, 2, 3, 4, 5: the least delta is -2; the deltas less it are 0, 0, 0, 3, 3, 3, 3 in two bits.
    assert_eq!(
        decode(&[8, 1, 8, 14, 3, 2, 0b1100_0000, 0b0011_1111], 8),
        Ok((vec![7, 5, 3, 1, 2, 3, 4, 5], 8))
    );
}

#[test]
fn consecutive_row_ids_take_five_bytes_for_128() {
    let ids: Vec<i64> = (1_000_000..1_030_000).collect();
    assert_eq!(
        encoded_i64(&ids).len(),
        2 + 1 + 3 + 3 + 5 * 29_999usize.div_ceil(128)
    );
}

#[test]
fn another_count_than_asked_is_refused() {
    let bytes = encoded_i64(&[1, 2, 3]);
    assert!(decode(&bytes, 2).is_err());
    assert!(decode(&bytes, 4).is_err());
}

#[test]
fn blocks_that_do_not_divide_are_refused() {
    for header in [
        [128, 1, 0],
        [128, 1, 3],
        [100, 0, 5],
        [4, 1, 5].map(|byte: u8| byte),
    ] {
        let mut bytes = vec![header[0]];
        bytes.extend([header[1], header[2], 5, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(decode(&bytes, 5).is_err(), "{header:?}");
    }
}

#[test]
fn a_prefix_longer_than_the_value_before_is_refused() {
    let mut bytes = Vec::new();
    encode_prefix_suffix(&[1, 0], &[2, 1], b"abc", &mut bytes);
    assert!(decode_prefix_suffix(&bytes, 2).is_err());
    bytes.clear();
    encode_prefix_suffix(&[0, 3], &[2, 1], b"abc", &mut bytes);
    assert!(decode_prefix_suffix(&bytes, 2).is_err());
}

#[test]
fn negative_lengths_and_missing_bytes_are_refused() {
    let mut bytes = encoded_i32(&[3, -1]);
    bytes.extend(b"abc");
    assert!(decode_lengths(&bytes, 2).is_err());
    let mut bytes = encoded_i32(&[3, 1]);
    bytes.extend(b"abc");
    assert!(decode_lengths(&bytes, 2).is_err());
    bytes.push(b'd');
    assert_eq!(
        decode_lengths(&bytes, 2).unwrap(),
        (vec![3, 1], &b"abcd"[..])
    );
}
