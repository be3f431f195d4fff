//! Bytes that the encoding's description gives, put together by hand.

#![allow(clippy::unwrap_used)]

use super::super::value_len;
use super::*;

#[test]
fn values_are_the_bytes_that_the_description_of_the_encoding_gives() {
    assert_eq!(primitive(Primitive::Int8, &[34]), [0b0000_1100, 34]);
    assert_eq!(
        decimal(Primitive::Decimal4, 2, &5i32.to_le_bytes()),
        [0x20, 2, 5, 0, 0, 0]
    );
    assert_eq!(string("hi").unwrap(), [0b0000_1001, b'h', b'i']);
    // Strings of up to 63 bytes are short.
    assert_eq!(string(&"x".repeat(63)).unwrap()[0], 63 << 2 | 1);
    let long = string(&"x".repeat(64)).unwrap();
    assert_eq!(long[..6], [16 << 2, 64, 0, 0, 0, b'x']);
    assert_eq!(binary(&[7, 8]).unwrap(), [15 << 2, 2, 0, 0, 0, 7, 8]);
    // [null, true]: a count and offsets of one byte.
    assert_eq!(array(&[vec![0], vec![4]]).unwrap(), [3, 2, 0, 1, 2, 0, 4]);
    assert_eq!(array(&[]).unwrap(), [3, 0, 0]);
    // Of 256 elements: a count of 4 bytes, offsets of 2.
    let large = array(&vec![vec![0]; 256]).unwrap();
    assert_eq!(large[..9], [0b0001_0111, 0, 1, 0, 0, 0, 0, 1, 0]);
    // {3: null, 1: true}, with numbers of one byte.
    let object_of = |ids: [usize; 2]| object(&[(ids[0], vec![0]), (ids[1], vec![4])]).unwrap();
    assert_eq!(object_of([3, 1]), [2, 2, 3, 1, 0, 1, 2, 0, 4]);
    assert_eq!(
        object_of([3, 256]),
        [0b0001_0010, 2, 3, 0, 0, 1, 0, 1, 2, 0, 4]
    );
}

#[test]
fn a_values_length_is_told_by_its_header() {
    let values = [
        vec![0],
        primitive(Primitive::Int64, &[1; 8]),
        decimal(Primitive::Decimal16, 3, &[0; 16]),
        primitive(Primitive::Uuid, &[1; 16]),
        string("short").unwrap(),
        string(&"long".repeat(40)).unwrap(),
        binary(&[1, 2, 3]).unwrap(),
        array(&vec![vec![0]; 300]).unwrap(),
        object(&[(70_000, string("x").unwrap())]).unwrap(),
    ];
    for value in values {
        let followed = [&value[..], &[9; 3]].concat();
        assert_eq!(value_len(&followed), Ok(value.len()));
        assert_eq!(
            value_len(&value[..value.len() - 1]),
            Err(VariantError::Short)
        );
    }
    assert_eq!(value_len(&[21 << 2]), Err(VariantError::Type(21)));
}

#[test]
fn added_names_keep_the_numbers_of_the_others() {
    // Sorted, offsets of one byte: "b".
    let metadata = [0b0001_0001, 1, 0, 1, b'b'];
    let mut names = Dictionary::parse(&metadata).unwrap();
    assert_eq!(names.number("b"), Ok(0));
    assert_eq!(names.metadata().unwrap(), metadata);
    assert_eq!(names.number("a"), Ok(1));
    assert_eq!(names.number("cc"), Ok(2));
    assert_eq!(names.number("a"), Ok(1));
    // No longer said to be sorted.
    assert_eq!(
        names.metadata().unwrap(),
        [1, 3, 0, 1, 2, 4, b'b', b'a', b'c', b'c']
    );
}
