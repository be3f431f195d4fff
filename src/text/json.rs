//! Rows as JSON objects, one a line, and nested values of CSV.
//!
//! Every field is there, null included. Numbers are JSON numbers, but for decimals, which are strings with all digits
//! of their scale, and for NaN and the infinities, which JSON has no numbers for. Dates, times and UUIDs are strings,
//! bytes strings of hexadecimal digits, geometries strings of well-known text. A variant is the value that it holds. A
//! map is an object where its keys are strings, else a list of pairs.

use super::columns::{Column, Values};
use super::short::{any_word, has, has_below};
use super::values::{
    BadCell, BadValue, Fraction, push_date, push_decimal, push_float, push_hex, push_integer,
    push_time, push_timestamp, push_uuid, special,
};
use super::wkt::push_wkt;

/// Writes rows of JSON lines. Holds the names as they stand in each line.
pub(super) struct JsonWriter {
    /// `{"a":`, `,"b":` and so on.
    leads: Vec<Vec<u8>>,
}

impl JsonWriter {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> JsonWriter {
        let lead = |(index, name)| {
            let mut lead = vec![if index == 0 { b'{' } else { b',' }];
            push_string(&mut lead, name);
            lead.push(b':');
            lead
        };
        JsonWriter {
            leads: names.enumerate().map(lead).collect(),
        }
    }

    pub(super) fn push_row(
        &self,
        out: &mut Vec<u8>,
        columns: &[Column<'_>],
        row: usize,
    ) -> Result<(), BadCell> {
        if self.leads.is_empty() {
            out.push(b'{');
        }
        for (index, (lead, column)) in self.leads.iter().zip(columns).enumerate() {
            out.extend_from_slice(lead);
            push_nullable(out, column, row).map_err(BadCell::in_column(index))?;
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

fn push_nullable(out: &mut Vec<u8>, column: &Column<'_>, row: usize) -> Result<(), BadValue> {
    if column.is_null(row) {
        out.extend_from_slice(b"null");
        Ok(())
    } else {
        push_value(out, &column.values, row)
    }
}

/// A value that is not null. Nests no deeper than the table's types.
pub(super) fn push_value(
    out: &mut Vec<u8>,
    values: &Values<'_>,
    row: usize,
) -> Result<(), BadValue> {
    match values {
        Values::Null => out.extend_from_slice(b"null"),
        Values::Boolean(values) => {
            let text: &[u8] = if values.value(row) { b"true" } else { b"false" };
            out.extend_from_slice(text);
        }
        Values::Int(values) => push_integer(out, values[row]),
        Values::Long(values) => push_integer(out, values[row]),
        Values::Float(values) => push_number_or_name(out, values[row]),
        Values::Double(values) => push_number_or_name(out, values[row]),
        Values::Decimal(values, scale) => {
            in_quotes(out, |out| push_decimal(out, values[row], *scale))
        }
        Values::SmallDecimal(values, scale) => {
            in_quotes(out, |out| push_decimal(out, values[row].into(), *scale))
        }
        Values::Date(values) => in_quotes(out, |out| push_date(out, values[row])),
        Values::Time(values) => {
            in_quotes(out, |out| push_time(out, values[row], Fraction::Micros));
        }
        Values::Timestamp {
            units,
            fraction,
            utc,
        } => in_quotes(out, |out| push_timestamp(out, units[row], *fraction, *utc)),
        Values::String(values) => push_string(out, values.value(row)),
        Values::StringView(values) => push_string(out, values.value(row)),
        Values::Uuid(values) => in_quotes(out, |out| push_uuid(out, values.value(row))),
        Values::Fixed(values) => in_quotes(out, |out| push_hex(out, values.value(row))),
        Values::Binary(values) => in_quotes(out, |out| push_hex(out, values.value(row))),
        Values::BinaryView(values) => in_quotes(out, |out| push_hex(out, values.value(row))),
        Values::Variant(variants) => variants.push(out, row)?,
        Values::Geometry(geometries) => {
            out.push(b'"');
            push_wkt(out, geometries.value(row))?;
            out.push(b'"');
        }
        Values::Struct(fields) => {
            out.push(b'{');
            for (index, (name, column)) in fields.iter().enumerate() {
                separate(out, index);
                push_string(out, name);
                out.push(b':');
                push_nullable(out, column, row)?;
            }
            out.push(b'}');
        }
        Values::List(list, element) => {
            out.push(b'[');
            for (index, at) in entries(list.value_offsets(), row).enumerate() {
                separate(out, index);
                push_nullable(out, element, at)?;
            }
            out.push(b']');
        }
        Values::Map(map, columns) => {
            let (keys, values) = &**columns;
            let by_name = matches!(keys.values, Values::String(_) | Values::StringView(_));
            out.push(if by_name { b'{' } else { b'[' });
            for (index, at) in entries(map.value_offsets(), row).enumerate() {
                separate(out, index);
                if by_name {
                    push_nullable(out, keys, at)?;
                    out.push(b':');
                    push_nullable(out, values, at)?;
                } else {
                    out.push(b'[');
                    push_nullable(out, keys, at)?;
                    out.push(b',');
                    push_nullable(out, values, at)?;
                    out.push(b']');
                }
            }
            out.push(if by_name { b'}' } else { b']' });
        }
    }
    Ok(())
}
/// A number, or the name of one that has no digits, as a string.
pub(super) fn push_number_or_name<F: Copy + Into<f64> + ryu::Float>(out: &mut Vec<u8>, value: F) {
    match special(value.into()) {
        Some(name) => in_quotes(out, |out| out.extend_from_slice(name.as_bytes())),
        None => push_float(out, value),
    }
}

pub(super) fn separate(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// Where the entries of a row's list lie.
pub(super) fn entries(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    // Arrow's offsets ascend from 0.
    let at = |index: usize| {
        offsets
            .get(index)
            .map_or(0, |offset| usize::try_from(*offset).unwrap_or(0))
    };
    at(row)..at(row + 1)
}

pub(super) fn in_quotes(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    push(out);
    out.push(b'"');
}

/// A JSON string: quotes, backslashes and control characters escaped, all else as it is.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let special = |word| has_below(word, 0x20) | has(word, b'"') | has(word, b'\\');
    let plain = !any_word(text.as_bytes(), b' ', special);
    if plain {
        out.extend_from_slice(text.as_bytes());
    } else {
        text.bytes().for_each(|byte| push_escaped(out, byte));
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..0x20 => {
            out.extend_from_slice(b"\\u00");
            push_hex(out, &[byte]);
        }
        byte => out.push(byte),
    }
}
