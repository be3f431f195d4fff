//! Single values and lines as text. Right values are worked out by hand, or those of the table spec's own JSON forms.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray, StringViewArray};
use proptest::prelude::*;

use super::columns::{Column, Shape};
use super::csv::{self, CsvWriter};
use super::json::JsonWriter;
use super::values::*;
use super::{CsvNull, TextError};

fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    push(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn decimals_keep_their_scale() {
    let decimal = |unscaled, scale| text(|out| push_decimal(out, unscaled, scale));
    assert_eq!(decimal(1234, 2), "12.34");
    assert_eq!(decimal(0, 2), "0.00");
    assert_eq!(decimal(-5, 3), "-0.005");
    assert_eq!(decimal(-1234, 0), "-1234");
    assert_eq!(
        decimal(-99_999_999_999_999_999_999_999_999_999_999_999_999, 38),
        "-0.99999999999999999999999999999999999999"
    );
    assert_eq!(
        decimal(99_999_999_999_999_999_999_999_999_999_999_999_999, 10),
        "9999999999999999999999999999.9999999999"
    );
}

#[test]
fn floats_are_the_shortest_text_that_reads_back() {
    let float = |value: f64| text(|out| push_float(out, value));
    assert_eq!(float(0.1), "0.1");
    assert_eq!(float(1.0), "1.0");
    assert_eq!(float(-0.0), "-0.0");
    assert_eq!(float(1e300), "1e300");
    assert_eq!(float(5e-324), "5e-324");
    // As a double the float's nearest decimal would be 0.10000000149011612.
    assert_eq!(text(|out| push_float(out, 0.1f32)), "0.1");
    assert_eq!(special(f64::NAN), Some("NaN"));
    assert_eq!(special(f64::INFINITY), Some("Infinity"));
    assert_eq!(special(f64::NEG_INFINITY), Some("-Infinity"));
}

#[test]
fn dates_and_times_are_iso_8601() {
    let date = |days| text(|out| push_date(out, days));
    assert_eq!(date(17_486), "2017-11-16");
    assert_eq!(date(-1), "1969-12-31");
    assert_eq!(date(-719_529), "-0001-12-31");
    assert_eq!(date(2_932_897), "+10000-01-01");
    assert_eq!(
        text(|out| push_time(out, 81_068_123_456, Fraction::Micros)),
        "22:31:08.123456"
    );
    let timestamp = |units, fraction, utc| text(|out| push_timestamp(out, units, fraction, utc));
    assert_eq!(
        timestamp(1_510_871_468_123_456, Fraction::Micros, false),
        "2017-11-16T22:31:08.123456"
    );
    assert_eq!(
        timestamp(1_510_871_468_123_456_001, Fraction::Nanos, true),
        "2017-11-16T22:31:08.123456001+00:00"
    );
    assert_eq!(
        timestamp(-1, Fraction::Micros, false),
        "1969-12-31T23:59:59.999999"
    );
    assert_eq!(
        timestamp(i64::MIN, Fraction::Nanos, false),
        "1677-09-21T00:12:43.145224192"
    );
    assert_eq!(
        timestamp(i64::MIN, Fraction::Micros, true),
        "-290308-12-21T19:59:05.224192+00:00"
    );
}

#[test]
fn bytes_are_lower_case_hexadecimal() {
    assert_eq!(text(|out| push_hex(out, &[0, 0xab, 0xff])), "00abff");
    let uuid: Vec<u8> = (0..16).map(|i| i * 0x11).collect();
    assert_eq!(
        text(|out| push_uuid(out, &uuid)),
        "00112233-4455-6677-8899-aabbccddeeff"
    );
}

fn csv_of(shape: &Shape, array: ArrayRef, null: &str) -> String {
    let column = [Column::of(shape, &array).unwrap()];
    let mut writer = CsvWriter::new(null);
    text(|out| (0..array.len()).for_each(|row| writer.push_row(out, &column, row).unwrap()))
}

fn json_of(shape: &Shape, array: ArrayRef) -> String {
    let column = [Column::of(shape, &array).unwrap()];
    let writer = JsonWriter::new(["a\"b"].into_iter());
    text(|out| (0..array.len()).for_each(|row| writer.push_row(out, &column, row).unwrap()))
}

#[test]
fn a_csv_field_is_quoted_where_it_must_be_and_nowhere_else() {
    let values = [
        "plain",
        "",
        "a,b",
        "say \"hi\"",
        "two\nlines",
        "\r",
        " blank ",
        "'",
    ];
    let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
    assert_eq!(
        csv_of(&Shape::String, array, ""),
        "plain\n\"\"\n\"a,b\"\n\"say \"\"hi\"\"\"\n\"two\nlines\"\n\"\r\"\n blank \n'\n"
    );
}

#[test]
fn null_and_the_empty_string_are_told_apart() {
    let array: ArrayRef = Arc::new(StringArray::from(vec![None, Some(""), Some("NULL")]));
    assert_eq!(
        csv_of(&Shape::String, Arc::clone(&array), ""),
        "\n\"\"\nNULL\n"
    );
    assert_eq!(
        csv_of(&Shape::String, array, "NULL"),
        "NULL\n\"\"\n\"NULL\"\n"
    );
    let array: ArrayRef = Arc::new(BinaryArray::from(vec![None, Some(&[][..])]));
    assert_eq!(csv_of(&Shape::Bytes, array, ""), "\n\"\"\n");
}

#[test]
fn any_value_that_looks_like_the_null_is_quoted() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(0), Some(10)]));
    assert_eq!(csv_of(&Shape::Long, array, "0"), "0\n\"0\"\n10\n");
    let array: ArrayRef = Arc::new(Float64Array::from(vec![None, Some(f64::NAN)]));
    assert_eq!(csv_of(&Shape::Double, array, "NaN"), "NaN\n\"NaN\"\n");
}

#[test]
fn the_text_of_a_null_cannot_need_quotes() {
    assert!("\\N".parse::<CsvNull>().is_ok());
    for text in ["a,b", "\"", "\n"] {
        assert!(text.parse::<CsvNull>().is_err());
    }
}

#[test]
fn a_header_names_the_columns() {
    assert_eq!(
        csv::header(["a", "b c", "d,e"].into_iter()),
        b"a,b c,\"d,e\"\n"
    );
}

#[test]
fn json_strings_are_escaped() {
    let array: ArrayRef = Arc::new(StringArray::from(vec![
        Some("\"\\/\n\t\r\u{1}\u{7f}é"),
        Some(""),
        None,
    ]));
    assert_eq!(
        json_of(&Shape::String, array),
        "{\"a\\\"b\":\"\\\"\\\\/\\n\\t\\r\\u0001\u{7f}é\"}\n{\"a\\\"b\":\"\"}\n{\"a\\\"b\":null}\n"
    );
}

#[test]
fn json_has_no_number_for_nan() {
    let array: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, 1.5]));
    assert_eq!(
        json_of(&Shape::Double, array),
        "{\"a\\\"b\":\"NaN\"}\n{\"a\\\"b\":\"-Infinity\"}\n{\"a\\\"b\":1.5}\n"
    );
}

#[test]
fn an_array_of_another_shape_is_refused() {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    assert!(Column::of(&Shape::String, &array).is_none());
    let error = TextError::Unsupported {
        column: "a".to_owned(),
        ty: "Duration".to_owned(),
    };
    assert!(error.is_unsupported());
}

proptest! {
    #[test]
    fn every_finite_double_reads_back_bit_for_bit(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = text(|out| push_float(out, value));
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
        prop_assert!(text.contains(['.', 'e']));
    }

    #[test]
    fn every_string_comes_back_from_json(value: String) {
        let array: ArrayRef = Arc::new(StringArray::from(vec![value.as_str()]));
        let line = json_of(&Shape::String, array);
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(read.get("a\"b").unwrap(), &serde_json::Value::String(value));
    }

    #[test]
    fn every_timestamp_is_what_jiff_makes_of_it(micros in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
        let text = text(|out| push_timestamp(out, micros, Fraction::Micros, false));
        let expected = jiff::Timestamp::from_microsecond(micros).unwrap();
        prop_assert_eq!(text + "Z", format!("{expected:.6}"));
    }
}
