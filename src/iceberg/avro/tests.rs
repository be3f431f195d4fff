#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::Container;
use crate::iceberg::error::FormatError;

/// A file of one block, laid out by hand from the Avro spec; numbers under 64 are doubled bytes.
fn file(schema: &str, codec: &str, count: &[u8], block: &[u8]) -> Vec<u8> {
    let mut bytes = b"Obj\x01\x04".to_vec();
    for text in ["avro.schema", schema, "avro.codec", codec] {
        bytes.extend(long(text.len() as i64));
        bytes.extend(text.as_bytes());
    }
    bytes.push(0);
    bytes.extend([7; 16]);
    bytes.extend(count);
    bytes.extend(long(block.len() as i64));
    bytes.extend(block);
    bytes.extend([7; 16]);
    bytes
}

fn long(number: i64) -> Vec<u8> {
    let mut zigzag = (number << 1 ^ number >> 63) as u64;
    let mut bytes = Vec::new();
    while zigzag >= 0x80 {
        bytes.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    bytes.push(zigzag as u8);
    bytes
}

/// Skips every object; how many there were.
fn skip_all(bytes: &[u8]) -> Result<usize, FormatError> {
    let container = Container::open(bytes)?;
    let mut count = 0;
    container.for_each(|cursor| {
        count += 1;
        cursor.skip(&container.schema)
    })?;
    Ok(count)
}

fn error(bytes: &[u8]) -> String {
    skip_all(bytes).unwrap_err().to_string()
}

#[test]
fn objects_of_every_shape_are_skipped() {
    let schema = r#"{"type": "record", "name": "a.r", "fields": [
        {"name": "n", "type": "null"}, {"name": "b", "type": "boolean"}, {"name": "i", "type": "int"},
        {"name": "f", "type": "float"}, {"name": "d", "type": "double"}, {"name": "s", "type": ["null", "string"]},
        {"name": "x", "type": {"type": "fixed", "name": "x", "size": 3}}, {"name": "y", "type": "x"},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A"]}},
        {"name": "l", "type": {"type": "array", "items": "long"}},
        {"name": "m", "type": {"type": "map", "values": "int"}}
    ]}"#;
    let mut object = vec![1, 2];
    object.extend([0; 4]);
    object.extend([0; 8]);
    object.extend([2, 4, b'h', b'i']);
    object.extend(b"abcdef");
    object.push(0);
    object.extend([3, 4, 2, 2, 0]); // a block of -2 items with its length in bytes
    object.extend([2, 2, b'k', 8, 0]);
    assert_eq!(skip_all(&file(schema, "null", &[2], &object)), Ok(1));
}

#[test]
fn claims_of_endless_values_without_bytes_end_soon() {
    let endless = [long(i64::MAX), vec![0]].concat();
    assert!(
        error(&file(r#""null""#, "null", &long(i64::MAX), &[]))
            .contains("more values than its bytes can hold")
    );
    let nulls = r#"{"type": "array", "items": "null"}"#;
    assert!(
        error(&file(nulls, "null", &[2], &endless)).contains("more values than its bytes can hold")
    );
}

#[test]
fn lengths_beyond_the_file_are_errors() {
    assert!(
        error(&file(r#""bytes""#, "null", &[2], &long(i64::MAX))).contains("middle of a value")
    );
    assert!(error(&file(r#""bytes""#, "null", &[2], &long(-1))).contains("-1 is no length"));
    assert!(error(&file(r#""long""#, "null", &[2], &[0xFF; 11])).contains("longer than 64 bits"));
    assert!(
        error(&file(r#""long""#, "null", &[2], &[2, 2]))
            .contains("more bytes than its objects take")
    );
    let mut wrong_sync = file(r#""long""#, "null", &[2], &[2]);
    *wrong_sync.last_mut().unwrap() = 0;
    assert!(error(&wrong_sync).contains("sync marker"));
}

#[test]
fn numbers_at_the_ends_of_64_bits_are_read() {
    for number in [i64::MIN, i64::MAX, -1, 0, 63, 64] {
        assert_eq!(super::Cursor::new(&long(number)).long(), Ok(number));
    }
}

#[test]
fn schemas_that_hold_themselves_or_nest_too_deep_are_refused() {
    let itself =
        r#"{"type": "record", "name": "r", "fields": [{"name": "r", "type": ["null", "r"]}]}"#;
    let refused = skip_all(&file(itself, "null", &[], &[])).unwrap_err();
    assert!(refused.is_unsupported());
    assert!(refused.to_string().contains("record that holds itself"));
    let unknown = r#"{"type": "array", "items": "r"}"#;
    assert!(error(&file(unknown, "null", &[], &[])).contains("no type defined before"));
    let mut fields =
        vec![r#"{"name": "f0", "type": {"type": "fixed", "name": "t0", "size": 0}}"#.to_owned()];
    for level in 1..70 {
        fields.push(format!(
            r#"{{"name": "f{level}", "type": {{"type": "record", "name": "t{level}", "fields": [
                {{"name": "a", "type": "t{0}"}}, {{"name": "b", "type": "t{0}"}}]}}}}"#,
            level - 1
        ));
    }
    // Each level doubles the one before, and none takes a byte.
    let doubling = |levels: usize| {
        format!(
            r#"{{"type": "record", "name": "r", "fields": [{}]}}"#,
            fields[..levels].join(",")
        )
    };
    assert!(error(&file(&doubling(70), "null", &[], &[])).contains("deeper than 64"));
    assert!(
        error(&file(&doubling(60), "null", &[2], &[]))
            .contains("more values than its bytes can hold")
    );
}

#[test]
fn unknown_codecs_are_not_supported_and_broken_blocks_are_errors() {
    assert!(
        skip_all(&file(r#""long""#, "lzma", &[], &[]))
            .unwrap_err()
            .is_unsupported()
    );
    for codec in ["deflate", "snappy", "zstandard", "bzip2", "xz"] {
        assert!(
            skip_all(&file(r#""long""#, codec, &[2], &[9, 9, 9, 9, 9, 9])).is_err(),
            "{codec}"
        );
    }
}
