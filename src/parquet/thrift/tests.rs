#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

#[test]
fn numbers_survive_at_their_limits() {
    for value in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
        let mut out = Vec::new();
        write_struct(&mut out, |writer| writer.i64(300, value));
        let mut read = None;
        let mut reader = Reader::new(&out);
        reader
            .fields(|reader, field| {
                assert_eq!(field.id, 300);
                read = Some(reader.i64(field)?);
                Ok(())
            })
            .unwrap();
        assert_eq!(read, Some(value));
        assert_eq!(reader.position(), out.len());
        assert_eq!(varint_len(zigzag(value)), out.len() - 4);
    }
}

#[test]
fn a_varint_over_64_bits_is_refused() {
    assert_eq!(varint(&[0xff; 10]), None);
    assert_eq!(
        varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        Some((u64::MAX, 10))
    );
    assert_eq!(
        varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
        None
    );
    assert_eq!(varint(&[0x80]), None);
}

#[test]
fn a_number_too_large_for_its_type_is_refused() {
    let mut out = vec![0x15];
    write_varint(&mut out, zigzag(i64::from(i32::MAX) + 1));
    assert!(
        Reader::new(&out)
            .fields(|reader, field| reader.i32(field).map(drop))
            .is_err()
    );
}

#[test]
fn skipping_passes_over_every_kind_of_value() {
    let mut out = Vec::new();
    write_struct(&mut out, |writer| {
        writer.bool(1, true);
        writer.i8(2, -1);
        writer.i16(3, 500);
        writer.binary(4, b"text");
        writer.integers(5, [1, 2, 3].into_iter());
        writer.strings(6, &["a"; 20]);
        writer.structures(7, &[(), ()], |writer, ()| writer.bool(1, false));
    });
    // A double, a map of i32 to bool, an empty map and a list of booleans, which Parquet's structures hold none of.
    out.pop();
    out.extend([
        0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x1b, 1, 0x51, 4, 1, 0x1b, 0, 0x19, 0x21, 1, 2, 0,
    ]);
    let mut reader = Reader::new(&out);
    let mut ids = Vec::new();
    reader
        .fields(|reader, field| {
            ids.push(field.id);
            reader.skip(field)
        })
        .unwrap();
    assert_eq!(ids, (1..=11).collect::<Vec<_>>());
    assert_eq!(reader.position(), out.len());
}

#[test]
fn a_list_longer_than_the_bytes_left_is_refused() {
    // Field 1: a list of 2^31 - 1 integers.
    let bytes = [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
    assert!(
        Reader::new(&bytes)
            .fields(|reader, field| reader.skip(field))
            .is_err()
    );
    let list = |reader: &mut Reader<'_>, field| {
        reader
            .list(field, |reader, element| reader.i32(element))
            .map(drop)
    };
    assert!(Reader::new(&bytes).fields(list).is_err());
}

#[test]
fn deep_nesting_is_refused_without_deep_recursion() {
    let structs = vec![0x1c; 1_000_000];
    assert!(
        Reader::new(&structs)
            .fields(|reader, field| reader.skip(field))
            .is_err()
    );
    let lists = vec![0x19; 1_000_000];
    assert!(
        Reader::new(&lists)
            .fields(|reader, field| reader.skip(field))
            .is_err()
    );
}

#[test]
fn a_field_of_the_wrong_kind_is_refused() {
    let mut out = Vec::new();
    write_struct(&mut out, |writer| writer.i64(1, 5));
    assert!(
        Reader::new(&out)
            .fields(|reader, field| reader.i32(field).map(drop))
            .is_err()
    );
    assert!(
        Reader::new(&out)
            .fields(|reader, field| reader.binary(field).map(drop))
            .is_err()
    );
}
