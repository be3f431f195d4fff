//! Numbers, decimals and dates as digits, without a loop over the digits.
//!
//! They are worked out eight at a time, in one register, and moved to where they belong by shifts.

use super::short::Short;
use crate::iceberg::value::calendar::civil_from_days;

/// Numbers of this size and more have more than eight digits.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Numbers of this size and more have more than sixteen digits.
const SIXTEEN_DIGITS: u64 = EIGHT_DIGITS * EIGHT_DIGITS;

/// `0` in each byte.
const ZEROS: u128 = 0x3030_3030_3030_3030_3030_3030_3030_3030;

/// The eight digits of a number below 100,000,000, a byte each, the first in the lowest byte.
#[inline]
fn eight(value: u32) -> u64 {
    // Each step splits every lane in two, and multiplies by an inverse in place of the division.
    let fours = u64::from(value / 10_000) | (u64::from(value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

/// The digits of a number below 10^16, at least `least` of them (1 to 16).
#[inline]
fn digits(value: u64, least: usize) -> Short {
    let low = |value: u64| u32::try_from(value % EIGHT_DIGITS).unwrap_or(0);
    let (digits, width) = if value < EIGHT_DIGITS && least <= 8 {
        (u128::from(eight(low(value))), 8)
    } else {
        let high = u128::from(eight(low(value / EIGHT_DIGITS)));
        (high | (u128::from(eight(low(value))) << 64), 16)
    };
    // Counts the zero bytes before the first digit that is none; of 0 it would count them all.
    let leading = usize::try_from(digits.trailing_zeros() / 8).unwrap_or(0);
    let leading = leading.min(width - least);
    Short::new((digits | ZEROS) >> (8 * leading), width - leading)
}

/// An integer.
#[inline]
pub(super) fn push_integer(out: &mut Vec<u8>, value: impl Into<i64>) {
    let value = value.into();
    if value < 0 {
        out.push(b'-');
    }
    let magnitude = value.unsigned_abs();
    if magnitude < SIXTEEN_DIGITS {
        digits(magnitude, 1).push(out);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(magnitude).as_bytes());
    }
}

/// A number with zeros before it, so that it has at least so many digits.
#[inline]
pub(super) fn push_padded(out: &mut Vec<u8>, value: u64, least: usize) {
    if value < SIXTEEN_DIGITS && (1..=16).contains(&least) {
        return digits(value, least).push(out);
    }
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value).as_bytes();
    out.resize(out.len() + least.saturating_sub(text.len()), b'0');
    out.extend_from_slice(text);
}

/// A decimal of this unscaled value, with all digits of its scale.
#[inline]
pub(super) fn push_decimal(out: &mut Vec<u8>, unscaled: i128, scale: usize) {
    if unscaled < 0 {
        out.push(b'-');
    }
    match u64::try_from(unscaled.unsigned_abs()) {
        // At most 15 digits, so that there is room for the point.
        Ok(small) if small < SIXTEEN_DIGITS / 10 && (1..15).contains(&scale) => {
            let digits = digits(small, scale + 1);
            digits.with(digits.len() - scale, b'.').push(out);
        }
        _ => push_long_decimal(out, unscaled.unsigned_abs(), scale),
    }
}

#[cold]
fn push_long_decimal(out: &mut Vec<u8>, unscaled: u128, scale: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(unscaled).as_bytes();
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + (scale - fraction.len()), b'0');
        out.extend_from_slice(fraction);
    }
}

/// `2017-11-16`; years before 0 and of more than four digits carry a sign.
#[inline]
pub(super) fn push_date(out: &mut Vec<u8>, days: i32) {
    if let Some(date) = usual_date(days) {
        let text = Short::new(u128::from(eight(date)) | ZEROS, 8);
        return text.with(4, b'-').with(7, b'-').push(out);
    }
    let (year, month, day) = civil_from_days(days);
    match year {
        ..0 => out.push(b'-'),
        0..=9999 => {}
        _ => out.push(b'+'),
    }
    push_padded(out, u64::from(year.unsigned_abs()), 4);
    let text = digits(u64::from(month) * 100 + u64::from(day), 4);
    text.with(0, b'-').with(3, b'-').push(out);
}

/// Days from the first of March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i32 = 719_468;

/// Days from the first of March of the year 0 to the end of the year 9999.
const DAYS_OF_10000_YEARS: u32 = 3_652_365;

/// A date of the years 0 (from March on) to 9999, as `20171116`. The same as [`civil_from_days`] in half the time, with
/// the multiplications of Neri and Schneider ("Euclidean affine functions and their application to calendar
/// algorithms", 2022) in place of divisions; years begin in March, so that leap days come last.
#[inline]
fn usual_date(days: i32) -> Option<u32> {
    let days = u32::try_from(days.checked_add(DAYS_TO_1970)?).ok()?;
    if days >= DAYS_OF_10000_YEARS {
        return None;
    }
    let quarters = 4 * days + 3;
    let century = quarters / 146_097;
    let quarters = (quarters % 146_097) | 3;
    // The year of the century above the point, the part of the year that has passed below it.
    let year = u64::from(quarters) * 2_939_745;
    let day_of_year = (year as u32) / 2_939_745 / 4;
    let year = 100 * century + u32::try_from(year >> 32).unwrap_or(0);
    let month = 2_141 * day_of_year + 197_913;
    let day = (month & 0xffff) / 2_141 + 1;
    let month = month >> 16;
    let (year, month) = if day_of_year >= 306 {
        (year + 1, month - 12)
    } else {
        (year, month)
    };
    Some(year * 10_000 + month * 100 + day)
}

/// `22:31:08` of so many seconds since midnight.
#[inline]
pub(super) fn push_clock(out: &mut Vec<u8>, seconds: i64) {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    // Of a day these have two digits; a time beyond it is shown as the hours it has.
    if !(0..=99).contains(&hours) {
        push_integer(out, hours);
    } else {
        push_padded(out, hours.unsigned_abs(), 2);
    }
    let text = digits((minutes * 100 + seconds).unsigned_abs(), 4);
    text.with(0, b':').with(3, b':').push(out);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn text(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"before ".to_vec();
        push(&mut out);
        String::from_utf8(out).unwrap().split_off(7)
    }

    #[test]
    fn numbers_at_every_count_of_digits_are_what_the_standard_library_writes() {
        let powers = (0..19).map(|power| 10i64.pow(power));
        let around = powers.flat_map(|power| [power - 1, power, power + 1, 5 * (power / 2)]);
        for value in around.chain([i64::MAX, i64::MIN, i64::MIN + 1]) {
            for value in [value, value.wrapping_neg()] {
                assert_eq!(text(|out| push_integer(out, value)), value.to_string());
            }
        }
    }

    #[test]
    fn usual_dates_are_those_of_the_calendar() {
        for days in -800_000..3_000_000 {
            let (year, month, day) = civil_from_days(days);
            let number = i64::from(year) * 10_000 + i64::from(month) * 100 + i64::from(day);
            if let Some(date) = usual_date(days) {
                assert_eq!(i64::from(date), number);
            } else {
                assert!(!(301..=99_991_231).contains(&number), "{number}");
            }
        }
    }

    #[test]
    fn padding_is_zeros_to_any_width() {
        for width in 1..20 {
            for value in [0, 7, 99_999_999, 100_000_000, u64::MAX] {
                let expected = format!("{value:0width$}");
                assert_eq!(text(|out| push_padded(out, value, width)), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn integers_are_what_the_standard_library_writes(value: i64, shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(text(|out| push_integer(out, value)), value.to_string());
        }

        #[test]
        fn decimals_are_digits_with_a_point(unscaled: i128, shift in 1u32..127, scale in 0usize..38) {
            let unscaled = unscaled >> shift;
            let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
            let (whole, fraction) = digits.split_at(digits.len() - scale);
            let sign = if unscaled < 0 { "-" } else { "" };
            let point = if scale > 0 { "." } else { "" };
            let expected = format!("{sign}{whole}{point}{fraction}");
            prop_assert_eq!(text(|out| push_decimal(out, unscaled, scale)), expected);
        }

        #[test]
        fn all_dates_are_those_of_the_calendar(days: i32) {
            let (year, month, day) = civil_from_days(days);
            let sign = if year < 0 { "-" } else if year > 9999 { "+" } else { "" };
            let expected = format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs());
            prop_assert_eq!(text(|out| push_date(out, days)), expected);
        }

        #[test]
        fn dates_are_what_jiff_makes_of_them(days in -719_528i32..2_932_896) {
            let epoch = jiff::civil::date(1970, 1, 1);
            let expected = epoch.checked_add(jiff::Span::new().days(days)).unwrap();
            prop_assert_eq!(text(|out| push_date(out, days)), expected.to_string());
        }
    }
}
