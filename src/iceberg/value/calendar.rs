//! Dates and times of day in the proleptic Gregorian calendar, as counts from the epoch and as ISO 8601 text.

/// Nanoseconds in a day.
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Days since 1970-01-01 of a date. Any year that an `i32` count of days can reach.
pub(crate) fn days_from_civil(year: i64, month: u8, day: u8) -> Option<i32> {
    if !(1..=12).contains(&month)
        || day < 1
        || day > days_in_month(year, month)
        || year.abs() > 6_000_000
    {
        return None;
    }
    // Years start in March, so that the leap day is the last of its year.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}

/// Year, month and day of a count of days since 1970-01-01.
pub(crate) fn civil_from_days(days: i32) -> (i32, u8, u8) {
    let shifted = i64::from(days) + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    // All three fit: the ranges follow from the remainders above.
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = (if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    }) as u8;
    let year = (year_of_era + era * 400 + i64::from(month <= 2)) as i32;
    (year, month, day)
}

fn days_in_month(year: i64, month: u8) -> u8 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads `2017-11-16`, with an optional sign and more digits for years beyond four.
pub(super) fn parse_date(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, rest) = digits.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let year_digits = (4..=9).contains(&year.len());
    if !year_digits || month.len() != 2 || day.len() != 2 {
        return None;
    }
    days_from_civil(
        sign * number(year)?,
        u8::try_from(number(month)?).ok()?,
        u8::try_from(number(day)?).ok()?,
    )
}

/// Reads `22:31:08.123456789` as nanoseconds since midnight; seconds and fraction may be left out.
pub(super) fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock
        .split(':')
        .map(|part| (part.len() == 2).then(|| number(part)).flatten());
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanos = if fraction.is_empty() {
        0
    } else {
        number(&format!("{fraction:0<9}"))?
    };
    Some((hour * 3600 + minute * 60 + second) * 1_000_000_000 + nanos)
}

/// Reads `2017-11-16T22:31:08.123456789` as nanoseconds since the epoch.
pub(super) fn parse_timestamp(text: &str) -> Option<i128> {
    let (date, time) = text.split_once('T')?;
    Some(i128::from(parse_date(date)?) * i128::from(NANOS_PER_DAY) + i128::from(parse_time(time)?))
}

fn number(text: &str) -> Option<i64> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// `2017-11-16`; years beyond four digits carry a sign.
pub(super) fn format_date(days: i32) -> String {
    let (year, month, day) = civil_from_days(days);
    match year {
        0..=9999 => format!("{year:04}-{month:02}-{day:02}"),
        ..0 => format!("-{:04}-{month:02}-{day:02}", year.unsigned_abs()),
        _ => format!("+{year}-{month:02}-{day:02}"),
    }
}

/// `22:31:08.123456` of so many units since midnight, with `digits` digits of fraction (6: microseconds).
pub(super) fn format_time(units: i64, digits: usize) -> String {
    let per_second = if digits == 6 {
        1_000_000
    } else {
        1_000_000_000
    };
    let (seconds, fraction) = (units.div_euclid(per_second), units.rem_euclid(per_second));
    format!(
        "{:02}:{:02}:{:02}.{fraction:0digits$}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// `2017-11-16T22:31:08.123456` of so many units since the epoch, with `digits` digits of fraction.
pub(super) fn format_timestamp(units: i64, digits: usize) -> String {
    let per_day = if digits == 6 {
        NANOS_PER_DAY / 1000
    } else {
        NANOS_PER_DAY
    };
    // An i64 of microseconds is at most 106,751,991 days from the epoch.
    let days = units.div_euclid(per_day) as i32;
    format!(
        "{}T{}",
        format_date(days),
        format_time(units.rem_euclid(per_day), digits)
    )
}
