//! Points in time as names, for `at/`.
//!
//! Any RFC 3339 time names the state of `main` at that time. What is left out is filled in: no offset means UTC, and a
//! date alone means the END of that day in UTC, so `at/2024-05-01` is the table with all that happened on that day.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::iceberg::metadata::{SnapshotId, SnapshotLogEntry};

/// A time in milliseconds since 1970 as the name that `at/` lists, or nothing for a time outside years -9999 to 9999.
pub fn name(timestamp_ms: i64) -> Option<String> {
    Some(format!(
        "{:.3}",
        Timestamp::from_millisecond(timestamp_ms).ok()?
    ))
}

/// Nanoseconds since 1970 of the last moment that a name in `at/` covers; nothing where it is no time.
pub fn parse(name: &str) -> Option<i128> {
    // Longer than any time; and zone annotations, which `jiff` would take, are not RFC 3339.
    if name.len() > 64 || name.contains('[') || !name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if name.len() == "2024-05-01".len() {
        let date = name.parse::<Date>().ok()?;
        let next = date.checked_add(1.day()).ok();
        let midnight = next.and_then(|next| {
            let next = next.to_datetime(Time::midnight());
            TimeZone::UTC.to_timestamp(next).ok()
        });
        return Some(midnight.map_or(i128::MAX, |midnight| midnight.as_nanosecond() - 1));
    }
    if !name.contains([':', 'T', 't', ' ']) {
        return None;
    }
    if let Ok(time) = name.parse::<Timestamp>() {
        return Some(time.as_nanosecond());
    }
    // The last hours of the year 9999, which are beyond the range of timestamps.
    let civil = name.get(.."9999-12-31T00:00:00".len());
    if name.starts_with("9999-12-3") && civil.is_some_and(|c| c.parse::<DateTime>().is_ok()) {
        return Some(i128::MAX);
    }
    // A civil time would parse with its offset ignored: only one without any is taken here.
    let time_of_day = name.get("2024-05-01".len()..)?;
    if time_of_day.contains(['+', '-', 'Z', 'z']) {
        return None;
    }
    let time = TimeZone::UTC
        .to_timestamp(name.parse::<DateTime>().ok()?)
        .ok()?;
    Some(time.as_nanosecond())
}

/// The snapshot that was current at a time (nanoseconds since 1970): the latest entry of the log that is not after it,
/// whatever the log's order (rule 7).
pub fn snapshot_at(log: &[SnapshotLogEntry], nanoseconds: i128) -> Option<SnapshotId> {
    log.iter()
        .filter(|entry| i128::from(entry.timestamp_ms) * 1_000_000 <= nanoseconds)
        .max_by_key(|entry| entry.timestamp_ms)
        .map(|entry| entry.snapshot_id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// 2024-05-01T10:00:00Z, in nanoseconds.
    const TEN: i128 = 1_714_557_600_000_000_000;

    #[test]
    fn the_last_day_there_is_comes_after_every_snapshot() {
        for name in [
            "9999-12-31",
            "9999-12-31T00:00:00Z",
            "9999-12-31T23:59:59+00:00",
        ] {
            assert_eq!(parse(name), Some(i128::MAX), "{name}");
        }
        assert_eq!(parse("9999-12-32"), None);
    }

    #[test]
    fn times_are_rfc_3339_with_what_is_left_out_filled_in() {
        for name in [
            "2024-05-01T10:00:00Z",
            "2024-05-01 10:00:00Z",
            "2024-05-01T12:00:00+02:00",
            "2024-05-01T10:00:00.000000000Z",
            "2024-05-01T10:00:00",
            "2024-05-01 10:00",
        ] {
            assert_eq!(parse(name), Some(TEN), "{name}");
        }
        assert_eq!(parse("2024-05-01T10:00:00.5Z"), Some(TEN + 500_000_000));
        for name in [
            "",
            "main",
            "2024",
            "2024-13-01",
            "2024-05-01T25:00:00Z",
            "2024-05-01T10:00:00[UTC]",
            "20240501x",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_date_is_the_end_of_its_day_in_utc() {
        assert_eq!(parse("2024-05-01"), Some(TEN + 14 * 3_600_000_000_000 - 1));
    }

    #[test]
    fn listed_names_are_read_back() {
        assert_eq!(name(1_714_557_600_123).unwrap(), "2024-05-01T10:00:00.123Z");
        assert_eq!(
            parse(&name(1_714_557_600_123).unwrap()),
            Some(TEN + 123_000_000)
        );
    }

    #[test]
    fn rule_07_the_latest_entry_not_after_the_time_wins_whatever_the_order() {
        let entry = |id, timestamp_ms| SnapshotLogEntry {
            snapshot_id: SnapshotId(id),
            timestamp_ms,
        };
        let log = [entry(3, 300), entry(1, 100), entry(2, 200)];
        let at = |ms: i128| snapshot_at(&log, ms * 1_000_000).map(|id| id.0);
        assert_eq!(
            [at(99), at(100), at(299), at(1000)],
            [None, Some(1), Some(2), Some(3)]
        );
    }
}
