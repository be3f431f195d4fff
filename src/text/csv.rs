//! Rows as CSV (RFC 4180): fields in quotes where they need them, quotes doubled, `\n` at the end of a line.

use super::columns::{Column, Values};
use super::json;
use super::short::{Short, any_word, has};
use super::values::{
    BadCell, BadValue, push_date, push_decimal, push_float, push_hex, push_integer, push_time,
    push_timestamp, push_uuid, special,
};
use super::wkt::push_wkt;

/// The first line: the columns' names.
pub(super) fn header<'a>(names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_text(&mut out, name.as_bytes());
    }
    out.push(b'\n');
    out
}

/// Writes rows of CSV.
pub(super) struct CsvWriter<'a> {
    /// What a null is; empty: nothing.
    null: &'a [u8],
    /// A nested value, a variant or a geometry, before it is put in quotes.
    nested: Vec<u8>,
}

impl<'a> CsvWriter<'a> {
    pub(super) fn new(null: &'a str) -> CsvWriter<'a> {
        CsvWriter {
            null: null.as_bytes(),
            nested: Vec::new(),
        }
    }

    pub(super) fn push_row(
        &mut self,
        out: &mut Vec<u8>,
        columns: &[Column<'_>],
        row: usize,
    ) -> Result<(), BadCell> {
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            if column.is_null(row) {
                out.extend_from_slice(self.null);
                continue;
            }
            let start = out.len();
            let pushed = self.push_value(out, &column.values, row);
            pushed.map_err(BadCell::in_column(index))?;
            // What is no null but looks like one.
            if !self.null.is_empty() && out.get(start..) == Some(self.null) {
                out.insert(start, b'"');
                out.push(b'"');
            }
        }
        out.push(b'\n');
        Ok(())
    }

    fn push_value(
        &mut self,
        out: &mut Vec<u8>,
        values: &Values<'_>,
        row: usize,
    ) -> Result<(), BadValue> {
        match values {
            Values::Null => {}
            Values::Boolean(values) => {
                let text: &[u8] = if values.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(text);
            }
            Values::Int(values) => push_integer(out, values[row]),
            Values::Long(values) => push_integer(out, values[row]),
            Values::Float(values) => match special(f64::from(values[row])) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => push_float(out, values[row]),
            },
            Values::Double(values) => match special(values[row]) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => push_float(out, values[row]),
            },
            Values::Decimal(values, scale) => push_decimal(out, values[row], *scale),
            Values::SmallDecimal(values, scale) => push_decimal(out, values[row].into(), *scale),
            Values::Date(values) => push_date(out, values[row]),
            Values::Time(values) => push_time(out, values[row], super::values::Fraction::Micros),
            Values::Timestamp {
                units,
                fraction,
                utc,
            } => push_timestamp(out, units[row], *fraction, *utc),
            Values::String(values) => push_text(out, values.value(row).as_bytes()),
            Values::StringView(values) => push_text(out, values.value(row).as_bytes()),
            Values::Uuid(values) => push_uuid(out, values.value(row)),
            Values::Fixed(values) => push_bytes(out, values.value(row)),
            Values::Binary(values) => push_bytes(out, values.value(row)),
            Values::BinaryView(values) => push_bytes(out, values.value(row)),
            Values::Geometry(geometries) => {
                self.nested.clear();
                push_wkt(&mut self.nested, geometries.value(row))?;
                push_text(out, &self.nested);
            }
            Values::Variant(_) | Values::Struct(_) | Values::List(..) | Values::Map(..) => {
                self.nested.clear();
                json::push_value(&mut self.nested, values, row)?;
                push_text(out, &self.nested);
            }
        }
        Ok(())
    }
}

/// Text, in quotes where it is empty (to tell it from a null) or holds what would end the field.
#[inline]
fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let special = |word| has(word, b',') | has(word, b'"') | has(word, b'\n') | has(word, b'\r');
    if let Some(short) = Short::of(text) {
        if !text.is_empty() && !short.words().into_iter().any(special) {
            return short.push(out);
        }
    } else if !any_word(text, 0, special) {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for (index, run) in text.split(|byte| *byte == b'"').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(run);
    }
    out.push(b'"');
}

/// Bytes as hexadecimal digits; none at all in quotes, like an empty string.
fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        out.extend_from_slice(b"\"\"");
    } else {
        push_hex(out, bytes);
    }
}
