//! Pairs of well-known binary and text, the binary put together by the layout of ISO 13249-3.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs
        .map(|pair| u8::from_str_radix(&pair, 16).unwrap())
        .collect()
}

fn wkt(wkb: &[u8]) -> Result<String, WkbError> {
    let mut out = Vec::new();
    push_wkt(&mut out, wkb)?;
    Ok(String::from_utf8(out).unwrap())
}

/// A geometry's head, little endian.
fn head(code: u32) -> Vec<u8> {
    [&[1][..], &code.to_le_bytes()].concat()
}

fn numbers(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn count(count: u32) -> Vec<u8> {
    count.to_le_bytes().to_vec()
}

fn point(values: &[f64]) -> Vec<u8> {
    [head(1), numbers(values)].concat()
}

#[test]
fn a_point_in_both_byte_orders() {
    let big = bytes("00 00000001 4000000000000000 4010000000000000");
    let little = bytes("01 01000000 0000000000000040 0000000000001040");
    assert_eq!(wkt(&big).unwrap(), "POINT (2 4)");
    assert_eq!(wkt(&little).unwrap(), "POINT (2 4)");
}

#[test]
fn coordinates_are_the_shortest_that_read_back() {
    assert_eq!(wkt(&point(&[-73.9, 0.1])).unwrap(), "POINT (-73.9 0.1)");
    assert_eq!(wkt(&point(&[1e300, -0.0])).unwrap(), "POINT (1e300 -0)");
    assert_eq!(wkt(&point(&[f64::NAN, 1.0])).unwrap(), "POINT (NaN 1)");
    assert_eq!(
        wkt(&point(&[f64::INFINITY, 1.0])).unwrap(),
        "POINT (Infinity 1)"
    );
}

#[test]
fn every_dimension_has_its_code() {
    let of = |code, values: &[f64]| wkt(&[head(code), numbers(values)].concat()).unwrap();
    assert_eq!(of(1001, &[1.0, 2.0, 3.0]), "POINT Z (1 2 3)");
    assert_eq!(of(2001, &[1.0, 2.0, 3.5]), "POINT M (1 2 3.5)");
    assert_eq!(of(3001, &[1.0, 2.0, 3.0, 4.0]), "POINT ZM (1 2 3 4)");
    let line = [
        head(1002),
        count(2),
        numbers(&[0.0, 0.0, 1.0, 1.0, 1.0, 2.0]),
    ]
    .concat();
    assert_eq!(wkt(&line).unwrap(), "LINESTRING Z (0 0 1, 1 1 2)");
}

#[test]
fn lines_and_polygons() {
    let ring = [count(4), numbers(&[0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0])].concat();
    let polygon = [head(3), count(2), ring.clone(), ring.clone()].concat();
    let text = "((0 0, 1 0, 1 1, 0 0), (0 0, 1 0, 1 1, 0 0))";
    assert_eq!(wkt(&polygon).unwrap(), format!("POLYGON {text}"));
    let many = [head(6), count(2), polygon.clone(), polygon].concat();
    assert_eq!(
        wkt(&many).unwrap(),
        format!("MULTIPOLYGON ({text}, {text})")
    );
    let line = [head(2), ring].concat();
    let lines = [head(5), count(1), line].concat();
    assert_eq!(
        wkt(&lines).unwrap(),
        "MULTILINESTRING ((0 0, 1 0, 1 1, 0 0))"
    );
}

#[test]
fn a_part_has_a_byte_order_of_its_own() {
    let big = bytes("00 00000001 4000000000000000 4010000000000000");
    let points = [head(4), count(2), big, point(&[f64::NAN, f64::NAN])].concat();
    assert_eq!(wkt(&points).unwrap(), "MULTIPOINT ((2 4), EMPTY)");
}

#[test]
fn what_has_nothing_in_it_is_empty() {
    assert_eq!(wkt(&point(&[f64::NAN, f64::NAN])).unwrap(), "POINT EMPTY");
    let names = [
        (2, "LINESTRING EMPTY"),
        (1003, "POLYGON Z EMPTY"),
        (2004, "MULTIPOINT M EMPTY"),
        (5, "MULTILINESTRING EMPTY"),
        (6, "MULTIPOLYGON EMPTY"),
        (3007, "GEOMETRYCOLLECTION ZM EMPTY"),
    ];
    for (code, text) in names {
        assert_eq!(wkt(&[head(code), count(0)].concat()).unwrap(), text);
    }
}

#[test]
fn collections_hold_any_geometry_and_each_other() {
    let inner = [head(7), count(1), head(2), count(0)].concat();
    let outer = [head(7), count(2), point(&[1.0, 2.0]), inner].concat();
    let text = "GEOMETRYCOLLECTION (POINT (1 2), GEOMETRYCOLLECTION (LINESTRING EMPTY))";
    assert_eq!(wkt(&outer).unwrap(), text);
}

#[test]
fn broken_bytes_are_refused() {
    assert_eq!(wkt(&[]), Err(WkbError::Short));
    let whole = point(&[1.0, 2.0]);
    for len in 0..whole.len() {
        assert_eq!(wkt(&whole[..len]), Err(WkbError::Short), "{len} bytes");
    }
    assert_eq!(wkt(&[whole, vec![0]].concat()), Err(WkbError::Long(1)));
    assert_eq!(wkt(&bytes("02 01000000")), Err(WkbError::ByteOrder(2)));
    for code in [0, 8, 15, 17, 1000, 4001, 0x2000_0001, u32::MAX] {
        assert_eq!(wkt(&head(code)), Err(WkbError::Type(code)));
    }
    assert_eq!(
        wkt(&[head(2), count(u32::MAX)].concat()),
        Err(WkbError::Short)
    );
}

#[test]
fn a_part_of_another_kind_or_dimension_is_refused() {
    let nested = |outer, inner| {
        let wkb = [head(outer), count(1), head(inner), numbers(&[0.0; 4])].concat();
        assert_eq!(wkt(&wkb), Err(WkbError::Nested { outer, inner }));
    };
    nested(4, 2);
    nested(5, 1);
    nested(4, 1001);
    nested(1007, 1);
}

#[test]
fn collections_nest_no_deeper_than_the_stack_bears() {
    let level = [head(7), count(1)].concat();
    let last = [head(7), count(0)].concat();
    let deep = |levels| [level.repeat(levels), last.clone()].concat();
    assert!(wkt(&deep(MAX_DEPTH)).is_ok());
    assert_eq!(wkt(&deep(MAX_DEPTH + 1)), Err(WkbError::Deep));
    assert_eq!(wkt(&deep(100_000)), Err(WkbError::Deep));
}

proptest! {
    #[test]
    fn any_bytes_are_text_or_an_error(code in 0u32..8, dimensions in 0u32..4, tail: Vec<u8>) {
        let _ = wkt(&tail);
        let _ = wkt(&[head(1000 * dimensions + code), count(1), tail].concat());
    }
}
