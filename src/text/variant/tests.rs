//! Variants as JSON. The binary ones are put together by hand from the encoding's description, the shredded ones from
//! the examples of the shredding's description.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{Int8Array, Int64Array, ListArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::Field;
use parquet::basic::{Repetition, Type as Physical};
use proptest::prelude::*;

use super::*;
use crate::iceberg::variant::MAX_DEPTH;
use crate::text::csv::CsvWriter;

/// Metadata of these names.
fn names(names: &[&str]) -> Vec<u8> {
    let mut out = vec![1, u8::try_from(names.len()).unwrap(), 0];
    let mut end = 0;
    for name in names {
        end += name.len();
        out.push(u8::try_from(end).unwrap());
    }
    out.extend(names.iter().flat_map(|name| name.bytes()));
    out
}

fn array(values: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![3, u8::try_from(values.len()).unwrap(), 0];
    let mut end = 0;
    for value in values {
        end += value.len();
        out.push(u8::try_from(end).unwrap());
    }
    [out, values.concat()].concat()
}

fn object(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = vec![2, u8::try_from(fields.len()).unwrap()];
    out.extend(fields.iter().map(|(id, _)| id));
    let mut end = 0;
    out.push(0);
    for (_, value) in fields {
        end += value.len();
        out.push(u8::try_from(end).unwrap());
    }
    out.extend(fields.iter().flat_map(|(_, value)| value.iter()));
    out
}

fn short(text: &str) -> Vec<u8> {
    let header = u8::try_from(text.len() << 2 | 1).unwrap();
    [&[header], text.as_bytes()].concat()
}

fn primitive(ty: u8, bytes: &[u8]) -> Vec<u8> {
    [&[ty << 2], bytes].concat()
}

fn json(metadata: &[u8], value: &[u8]) -> Result<String, VariantError> {
    let mut out = Vec::new();
    binary::push_value(&mut out, &Names::parse(metadata)?, value, 0)?;
    Ok(String::from_utf8(out).unwrap())
}

fn of_primitive(ty: u8, bytes: &[u8]) -> String {
    json(&names(&[]), &primitive(ty, bytes)).unwrap()
}

#[test]
fn every_primitive_type_is_written_like_a_column_of_it() {
    assert_eq!(of_primitive(0, &[]), "null");
    assert_eq!(of_primitive(1, &[]), "true");
    assert_eq!(of_primitive(2, &[]), "false");
    assert_eq!(of_primitive(3, &(-34i8).to_le_bytes()), "-34");
    assert_eq!(of_primitive(4, &1000i16.to_le_bytes()), "1000");
    assert_eq!(of_primitive(5, &i32::MIN.to_le_bytes()), "-2147483648");
    assert_eq!(
        of_primitive(6, &i64::MAX.to_le_bytes()),
        "9223372036854775807"
    );
    assert_eq!(of_primitive(7, &1.5f64.to_le_bytes()), "1.5");
    assert_eq!(of_primitive(7, &f64::NAN.to_le_bytes()), "\"NaN\"");
    assert_eq!(
        of_primitive(7, &f64::NEG_INFINITY.to_le_bytes()),
        "\"-Infinity\""
    );
    assert_eq!(
        of_primitive(8, &[&[3][..], &12_345i32.to_le_bytes()].concat()),
        "\"12.345\""
    );
    assert_eq!(
        of_primitive(9, &[&[2][..], &(-5i64).to_le_bytes()].concat()),
        "\"-0.05\""
    );
    assert_eq!(
        of_primitive(
            10,
            &[&[0][..], &(10i128.pow(38) - 1).to_le_bytes()].concat()
        ),
        format!("\"{}\"", "9".repeat(38))
    );
    assert_eq!(of_primitive(11, &17_486i32.to_le_bytes()), "\"2017-11-16\"");
    let micros = 1_510_871_468_123_456i64.to_le_bytes();
    assert_eq!(
        of_primitive(12, &micros),
        "\"2017-11-16T22:31:08.123456+00:00\""
    );
    assert_eq!(of_primitive(13, &micros), "\"2017-11-16T22:31:08.123456\"");
    // As a double the float's nearest decimal would be 0.10000000149011612.
    assert_eq!(of_primitive(14, &0.1f32.to_le_bytes()), "0.1");
    assert_eq!(of_primitive(15, &[2, 0, 0, 0, 0xab, 0]), "\"ab00\"");
    assert_eq!(of_primitive(16, b"\x03\0\0\0a\"b"), "\"a\\\"b\"");
    assert_eq!(
        of_primitive(17, &81_068_123_456i64.to_le_bytes()),
        "\"22:31:08.123456\""
    );
    let nanos = 1_510_871_468_123_456_001i64.to_le_bytes();
    assert_eq!(
        of_primitive(18, &nanos),
        "\"2017-11-16T22:31:08.123456001+00:00\""
    );
    assert_eq!(
        of_primitive(19, &nanos),
        "\"2017-11-16T22:31:08.123456001\""
    );
    let uuid: Vec<u8> = (0..16).map(|i| i * 0x11).collect();
    assert_eq!(
        of_primitive(20, &uuid),
        "\"00112233-4455-6677-8899-aabbccddeeff\""
    );
    assert_eq!(json(&names(&[]), &short("é")).unwrap(), "\"é\"");
    assert_eq!(json(&names(&[]), &short("")).unwrap(), "\"\"");
}

#[test]
fn objects_and_arrays_of_any_size_of_numbers() {
    let one = primitive(3, &[1]);
    let names_ab = names(&["b", "a"]);
    // Fields stand in the order of the names, whatever their numbers and places are.
    let inner = object(&[(1, &short("x")), (0, &one)]);
    assert_eq!(json(&names_ab, &inner).unwrap(), r#"{"a":"x","b":1}"#);
    let outer = array(&[&inner, &[0], &array(&[]), &object(&[])]);
    assert_eq!(
        json(&names_ab, &outer).unwrap(),
        r#"[{"a":"x","b":1},null,[],{}]"#
    );
    // Four bytes for the count, three for each offset.
    let large = [&[0b0001_1011, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0][..], &one].concat();
    assert_eq!(json(&names_ab, &large).unwrap(), "[1]");
    // Four bytes for the count, two for each name's number, four for each offset; the metadata's numbers have two.
    let metadata = [&[0b0101_0001, 1, 0, 0, 0, 1, 0][..], b"k"].concat();
    let large = [
        &[0b0101_1110, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0][..],
        &one,
    ]
    .concat();
    assert_eq!(json(&metadata, &large).unwrap(), r#"{"k":1}"#);
}

#[test]
fn the_values_of_an_object_lie_in_any_order() {
    // a's value is the second, b's the first.
    let value = [
        &[2, 2, 0, 1, 2, 0, 4][..],
        &primitive(3, &[7]),
        &primitive(3, &[9]),
    ]
    .concat();
    assert_eq!(
        json(&names(&["a", "b"]), &value).unwrap(),
        r#"{"a":9,"b":7}"#
    );
}

#[test]
fn broken_variants_are_refused() {
    let none = names(&[]);
    let ab = names(&["a", "b"]);
    assert_eq!(json(&[2, 0, 0], &[0]), Err(VariantError::Version(2)));
    assert_eq!(json(&[], &[0]), Err(VariantError::Short));
    assert_eq!(
        json(&none, &primitive(21, &[])),
        Err(VariantError::Type(21))
    );
    assert_eq!(
        json(&none, &primitive(8, &[39, 0, 0, 0, 0])),
        Err(VariantError::Scale(39))
    );
    assert_eq!(json(&none, &[5, 0xff]), Err(VariantError::Utf8));
    assert_eq!(
        json(&none, &object(&[(0, &[0])])),
        Err(VariantError::Name(0))
    );
    assert_eq!(json(&ab, &[3, 1, 2, 1, 0]), Err(VariantError::Offset));
    let twice = object(&[(0, &[0]), (0, &[0])]);
    assert_eq!(json(&ab, &twice), Err(VariantError::Twice("a".to_owned())));
    let whole = array(&[
        &object(&[(0, &short("text")), (1, &primitive(6, &[0; 8]))]),
        &[0],
    ]);
    assert!(json(&ab, &whole).is_ok());
    for len in 0..whole.len() {
        assert!(json(&ab, &whole[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn values_that_lie_over_each_other_are_refused() {
    // Both fields are the one value there is: sixty of these in each other would say 2^60 values.
    let level = |value: &[u8]| {
        let len = u8::try_from(value.len()).unwrap();
        [&[2, 2, 0, 1, 0, 0, len], value].concat()
    };
    let bomb = (0..30).fold(vec![0], |value, _| level(&value));
    assert_eq!(json(&names(&["a", "b"]), &bomb), Err(VariantError::Overlap));
}

#[test]
fn objects_and_arrays_nest_no_deeper_than_the_stack_bears() {
    let nested = |levels: usize| {
        let wrap = |value: Vec<u8>, _| {
            let len = u32::try_from(value.len()).unwrap().to_le_bytes();
            [&[0b0000_1111, 1, 0, 0, 0, 0][..], &len, &value].concat()
        };
        (0..levels).fold(vec![0], wrap)
    };
    assert!(json(&names(&[]), &nested(MAX_DEPTH)).is_ok());
    assert_eq!(
        json(&names(&[]), &nested(MAX_DEPTH + 1)),
        Err(VariantError::Deep)
    );
    assert_eq!(json(&names(&[]), &nested(2_000)), Err(VariantError::Deep));
}

#[test]
fn a_variant_cannot_say_a_text_without_end() {
    // A name of 128 KiB, and 4096 objects that have it: half a GiB of text.
    let name = "x".repeat(128 << 10);
    let len = u32::try_from(name.len()).unwrap().to_le_bytes();
    let metadata = [
        &[0b1100_0001, 1, 0, 0, 0, 0, 0, 0, 0][..],
        &len,
        name.as_bytes(),
    ]
    .concat();
    let one = object(&[(0, &[0])]);
    let offsets = (0..=4096u32)
        .flat_map(|at| (at * 6).to_le_bytes())
        .collect();
    let value = [vec![0b0001_1111, 0, 16, 0, 0], offsets, one.repeat(4096)].concat();
    assert_eq!(one.len(), 6);
    assert_eq!(json(&metadata, &value), Err(VariantError::Long));
}

proptest! {
    #[test]
    fn any_bytes_are_json_or_an_error(mut value: Vec<u8>, metadata: [u8; 12], first in 0u8..4, at: prop::sample::Index) {
        // Mostly objects and arrays, whose parts the random bytes are.
        if let Some(byte) = value.first_mut() {
            *byte = first;
        }
        let _ = json(&metadata, &value);
        let (text, seven) = (short("text"), primitive(6, &[7; 8]));
        let mut whole = array(&[&object(&[(0, &text), (1, &seven)]), &[0], &array(&[&seven])]);
        let at = at.index(whole.len());
        whole[at] = whole[at].wrapping_add(first);
        if let Ok(text) = json(&names(&["a", "b"]), &whole) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
        }
    }
}

/// A column and its node in the schema.
#[derive(Clone)]
struct Given {
    node: Arc<Type>,
    array: ArrayRef,
}

fn given_leaf(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
    array: ArrayRef,
) -> Given {
    let node = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Given {
        node: Arc::new(node.build().unwrap()),
        array,
    }
}

fn bytes(name: &str, values: Vec<Option<&[u8]>>) -> Given {
    given_leaf(
        name,
        Physical::BYTE_ARRAY,
        None,
        Arc::new(BinaryArray::from(values)),
    )
}

fn group(
    name: &str,
    logical: Option<LogicalType>,
    children: Vec<Given>,
    nulls: Option<Vec<bool>>,
) -> Given {
    let nodes = children
        .iter()
        .map(|child| Arc::clone(&child.node))
        .collect();
    let node = Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .with_fields(nodes)
        .build();
    let field =
        |child: &Given| Field::new(child.node.name(), child.array.data_type().clone(), true);
    let fields: Fields = children.iter().map(field).collect();
    let arrays = children.into_iter().map(|child| child.array).collect();
    let array = StructArray::new(fields, arrays, nulls.map(NullBuffer::from));
    Given {
        node: Arc::new(node.unwrap()),
        array: Arc::new(array),
    }
}

fn variant(children: Vec<Given>, nulls: Option<Vec<bool>>) -> Given {
    group("v", Some(LogicalType::variant(None)), children, nulls)
}

/// The rows of a variant column in CSV, a line each.
fn csv(given: &Given) -> Result<Vec<String>, BadValue> {
    let root = Type::group_type_builder("root").with_fields(vec![Arc::clone(&given.node)]);
    let schema =
        arrow::datatypes::Schema::new(vec![Field::new("v", given.array.data_type().clone(), true)]);
    let shapes = crate::text::columns::shapes(&root.build().unwrap(), &schema).unwrap();
    let column = [Column::of(&shapes[0].1, &given.array).unwrap()];
    let row = |row| {
        let mut out = Vec::new();
        let pushed = CsvWriter::new("").push_row(&mut out, &column, row);
        pushed.map_err(|bad| bad.cause)?;
        Ok(String::from_utf8(out).unwrap().trim_end().to_owned())
    };
    (0..given.array.len()).map(row).collect()
}

fn metadata(rows: usize, fields: &[&str]) -> Given {
    bytes("metadata", vec![Some(&names(fields)); rows])
}

#[test]
fn a_variant_is_a_json_cell_of_csv_and_its_null_is_not_that_of_the_column() {
    let text = short("a,b");
    let values = vec![None, Some(&[0][..]), Some(&text), Some(&[0x0c, 5])];
    let column = variant(
        vec![metadata(4, &[]), bytes("value", values)],
        Some(vec![false, true, true, true]),
    );
    assert_eq!(csv(&column).unwrap(), ["", "null", r#""""a,b""""#, "5"]);
}

#[test]
fn a_shredded_value_is_that_of_its_column_or_the_other() {
    let typed = given_leaf(
        "typed_value",
        Physical::INT32,
        Some(LogicalType::integer(8, true)),
        Arc::new(Int8Array::from(vec![Some(34), None, None, None])),
    );
    let text = short("n/a");
    let value = bytes("value", vec![None, Some(&[0]), Some(&text), None]);
    // The children's order is not fixed.
    let column = variant(vec![typed, value, metadata(4, &[])], None);
    assert_eq!(
        csv(&column).unwrap(),
        ["34", "null", r#""""n/a""""#, "null"]
    );
}

#[test]
fn two_values_in_one_place_are_refused() {
    let typed = Arc::new(Int64Array::from(vec![1]));
    let typed = given_leaf("typed_value", Physical::INT64, None, typed);
    let column = variant(
        vec![metadata(1, &[]), bytes("value", vec![Some(&[0])]), typed],
        None,
    );
    assert_eq!(csv(&column), Err(VariantError::Conflict.into()));
}

/// The spec's example of events: `event_type` and `event_ts` are shredded.
fn events(values: Vec<Option<&[u8]>>) -> Given {
    let rows = values.len();
    let texts = |values: Vec<Option<&str>>| {
        let array = Arc::new(StringArray::from(values));
        given_leaf(
            "typed_value",
            Physical::BYTE_ARRAY,
            Some(LogicalType::String),
            array,
        )
    };
    let event_type = group(
        "event_type",
        None,
        vec![
            bytes("value", vec![None, Some(&[0x0c, 7]), None, None]).first(rows),
            texts(vec![Some("login"), None, None, None]).first(rows),
        ],
        None,
    );
    let event_ts = group(
        "event_ts",
        None,
        vec![
            bytes("value", vec![None, None, Some(&[0]), None]).first(rows),
            given_leaf(
                "typed_value",
                Physical::INT64,
                None,
                Arc::new(Int64Array::from(vec![Some(1), Some(2), None, None])),
            )
            .first(rows),
        ],
        None,
    );
    let there = [true, true, true, false];
    let typed = group(
        "typed_value",
        None,
        vec![event_type, event_ts],
        Some(there[..rows].to_vec()),
    );
    let names = ["email", "event_type", "zone"];
    variant(
        vec![metadata(rows, &names), bytes("value", values), typed],
        None,
    )
}

impl Given {
    fn first(self, rows: usize) -> Given {
        Given {
            array: self.array.slice(0, rows),
            ..self
        }
    }
}

#[test]
fn a_partially_shredded_object_is_put_together_again() {
    let text = short("x");
    let rest = object(&[(0, &text), (2, &[4])]);
    let column = events(vec![None, Some(&rest), None, Some(&text)]);
    let expected = [
        r#"{"event_ts":1,"event_type":"login"}"#,
        r#"{"email":"x","event_ts":2,"event_type":7,"zone":true}"#,
        // One field is the variant null, the other missing.
        r#"{"event_ts":null}"#,
        r#""x""#,
    ];
    let quoted = expected.map(|json| format!("\"{}\"", json.replace('"', "\"\"")));
    assert_eq!(csv(&column).unwrap(), quoted);
}

#[test]
fn a_shredded_field_may_not_be_among_the_others() {
    let rest = object(&[(1, &[0])]);
    let column = events(vec![Some(&rest)]);
    assert_eq!(
        csv(&column),
        Err(VariantError::Twice("event_type".to_owned()).into())
    );
}

#[test]
fn a_shredded_list_holds_any_values() {
    let text = short("x");
    let value = bytes("value", vec![None, Some(&text), None]);
    let typed = Arc::new(Int64Array::from(vec![Some(1), None, None]));
    let typed = given_leaf("typed_value", Physical::INT64, None, typed);
    let element = group("element", None, vec![value, typed], None);
    let field = Arc::new(Field::new(
        "element",
        element.array.data_type().clone(),
        true,
    ));
    let array = ListArray::new(
        field,
        OffsetBuffer::from_lengths([3, 0]),
        element.array,
        None,
    );
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![element.node])
        .build();
    let node = Type::group_type_builder("typed_value")
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated.unwrap())])
        .build();
    let typed = Given {
        node: Arc::new(node.unwrap()),
        array: Arc::new(array),
    };
    let column = variant(
        vec![metadata(2, &[]), bytes("value", vec![None, None]), typed],
        None,
    );
    assert_eq!(csv(&column).unwrap(), [r#""[1,""x"",null]""#, "[]"]);
}
