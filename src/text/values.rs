//! Single values as text. What is the same in CSV and in JSON but for the quotes stands here.

use super::digits::{push_clock, push_padded};
pub(super) use super::digits::{push_date, push_decimal, push_integer};
use super::wkt::WkbError;
use crate::iceberg::variant::VariantError;

/// Why bytes are not the value that their column's type says.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadValue {
    #[error(transparent)]
    Geometry(#[from] WkbError),
    #[error(transparent)]
    Variant(#[from] VariantError),
}

/// A value of a row that has no text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadCell {
    /// Which of the columns.
    pub(super) column: usize,
    pub(super) cause: BadValue,
}

impl BadCell {
    pub(super) fn in_column(column: usize) -> impl FnOnce(BadValue) -> BadCell {
        move |cause| BadCell { column, cause }
    }
}

/// Digits of a second's fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fraction {
    Micros,
    Nanos,
}

impl Fraction {
    fn per_second(self) -> i64 {
        match self {
            Fraction::Micros => 1_000_000,
            Fraction::Nanos => 1_000_000_000,
        }
    }

    fn digits(self) -> usize {
        match self {
            Fraction::Micros => 6,
            Fraction::Nanos => 9,
        }
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

/// The name of a number that has no digits.
pub(super) fn special(value: f64) -> Option<&'static str> {
    if value.is_finite() {
        None
    } else if value.is_nan() {
        Some("NaN")
    } else if value > 0.0 {
        Some("Infinity")
    } else {
        Some("-Infinity")
    }
}

/// The shortest text that reads back as this value (which is finite), always with a point or an exponent.
pub(super) fn push_float(out: &mut Vec<u8>, value: impl ryu::Float) {
    out.extend_from_slice(ryu::Buffer::new().format(value).as_bytes());
}

/// `22:31:08.123456` of so many units since midnight.
pub(super) fn push_time(out: &mut Vec<u8>, units: i64, fraction: Fraction) {
    let seconds = units.div_euclid(fraction.per_second());
    let rest = units.rem_euclid(fraction.per_second());
    push_clock(out, seconds);
    out.push(b'.');
    push_padded(out, rest.unsigned_abs(), fraction.digits());
}

/// `2017-11-16T22:31:08.123456` of so many units since 1970, with `+00:00` where it is a time of the world.
pub(super) fn push_timestamp(out: &mut Vec<u8>, units: i64, fraction: Fraction, utc: bool) {
    let per_day = fraction.per_second() * SECONDS_PER_DAY;
    // An i64 of microseconds is at most 106,751,991 days from 1970.
    let days = i32::try_from(units.div_euclid(per_day)).unwrap_or(i32::MAX);
    push_date(out, days);
    out.push(b'T');
    push_time(out, units.rem_euclid(per_day), fraction);
    if utc {
        out.extend_from_slice(b"+00:00");
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.extend([digit(byte >> 4), digit(byte & 15)]);
    }
}

/// `f79c3e09-677c-4bbd-a479-3f349cb785e7`.
pub(super) fn push_uuid(out: &mut Vec<u8>, bytes: &[u8]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([digit(byte >> 4), digit(byte & 15)]);
    }
}

fn digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + (nibble - 10),
    }
}
