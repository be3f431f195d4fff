#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn fixed_width_values_are_copied_by_runs() {
    let mut out = Vec::new();
    filter_fixed(b"aabbccdd", 2, &KeepRuns::without(4, [1]), &mut out).unwrap();
    assert_eq!(out, b"aaccdd");
    assert!(filter_fixed(b"aabbccd", 2, &KeepRuns::without(4, []), &mut out).is_err());
    assert!(filter_fixed(b"", usize::MAX, &KeepRuns::without(4, []), &mut out).is_err());
}

#[test]
fn booleans_are_packed_anew() {
    let mut out = Vec::new();
    // 1 0 1 1 0 0 1 0, 1 1; without the second, third and last one.
    filter_bool(
        &[0b0100_1101, 0b11],
        &KeepRuns::without(10, [1, 2, 9]),
        &mut out,
    )
    .unwrap();
    assert_eq!(out, [0b0101_0011]);
    assert!(filter_bool(&[0], &KeepRuns::without(9, []), &mut out).is_err());
}

#[test]
fn byte_arrays_keep_their_lengths() {
    let values = b"\x01\0\0\0a\0\0\0\0\x02\0\0\0bc";
    let mut out = Vec::new();
    filter_byte_array(values, &KeepRuns::without(3, [0]), &mut out).unwrap();
    assert_eq!(out, b"\0\0\0\0\x02\0\0\0bc");
    out.clear();
    filter_byte_array(values, &KeepRuns::without(3, [1, 2]), &mut out).unwrap();
    assert_eq!(out, b"\x01\0\0\0a");
    assert!(filter_byte_array(values, &KeepRuns::without(4, [3]), &mut out).is_err());
    assert!(filter_byte_array(b"\xff\xff\xff\xffa", &KeepRuns::without(1, []), &mut out).is_err());
}

#[test]
fn byte_streams_are_joined() {
    let mut out = Vec::new();
    join_byte_streams(b"abcdABCD", 2, &KeepRuns::without(4, [1]), &mut out).unwrap();
    assert_eq!(out, b"aAcCdD");
    assert!(join_byte_streams(b"abcdABC", 2, &KeepRuns::without(4, []), &mut out).is_err());
}
