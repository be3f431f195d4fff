//! Time zones of writers. A `timestamp` is the clock on the writer's wall, stored as the seconds from midnight of
//! 2015-01-01 in the writer's zone; Hive writes the zone of its machine (ORC specification v1, "Timestamp Columns").
//!
//! Offsets are those of the time zone database that is part of this program, so that a file reads the same on every
//! machine. As the Java library has them, so that what it wrote comes back: before 1900 a zone has its standard offset of
//! today, and not the local mean time of its city.

use jiff::Timestamp;
use jiff::civil::{DateTime, date};
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

/// 2015-01-01T00:00:00 UTC in seconds since 1970.
const BASE: i64 = 1_420_070_400;

/// 1900-01-01T00:00:00 UTC in seconds since 1970.
const YEAR_1900: i64 = -2_208_988_800;

/// 2100-01-01T00:00:00 UTC in seconds since 1970. By then each zone goes by the last rule that is known of it.
const YEAR_2100: i64 = 4_102_444_800;

/// Seconds of 400 years, after which days and weekdays come again.
const CALENDAR: i64 = 146_097 * 86_400;

/// The zone of a stripe's timestamps.
#[derive(Clone, Debug)]
pub struct Zone {
    /// What timestamps count from, in seconds since 1970.
    pub base: i64,
    /// `None` for UTC.
    offsets: Option<Offsets>,
}

#[derive(Clone, Debug)]
struct Offsets {
    zone: TimeZone,
    /// Seconds east of UTC before 1900.
    standard: i64,
}

impl Zone {
    /// UTC, which Iceberg's own writers use, and timestamps with local time zone.
    pub fn utc() -> Zone {
        Zone {
            base: BASE,
            offsets: None,
        }
    }

    /// The zone with this name: one of the time zone database, or `GMT+05:30` and the like. `None` where there is no such
    /// zone. Writers that name none had UTC.
    pub fn named(name: &str) -> Option<Zone> {
        if matches!(name, "" | "UTC" | "GMT" | "Etc/UTC" | "Etc/GMT" | "Z") {
            return Some(Zone::utc());
        }
        let zone = match fixed(name) {
            Some(offset) => TimeZone::fixed(offset),
            None => TimeZoneDatabase::bundled().get(name).ok()?,
        };
        let seconds = |of: DateTime| Some(zone.to_timestamp(of).ok()?.as_second());
        let offset = |second| seconds_east(&zone, second);
        // Daylight saving is ahead of standard time, and in summer, of which each half of the Earth has one.
        let year = [date(2024, 1, 15), date(2024, 7, 15)].map(|day| day.at(0, 0, 0, 0));
        let offsets = year.map(|day| seconds(day).and_then(offset));
        Some(Zone {
            base: seconds(date(2015, 1, 1).at(0, 0, 0, 0))?,
            offsets: Some(Offsets {
                standard: offsets[0]?.min(offsets[1]?),
                zone,
            }),
        })
    }

    /// What the clock on the wall shows at an instant, both in seconds since 1970. `None` beyond what a number can say.
    pub fn wall(&self, second: i64) -> Option<i64> {
        let Some(Offsets { zone, standard }) = &self.offsets else {
            return Some(second);
        };
        let offset = if second < YEAR_1900 {
            *standard
        } else {
            seconds_east(zone, second)?
        };
        second.checked_add(offset)
    }
}

/// Of an instant in 1900 or later.
fn seconds_east(zone: &TimeZone, second: i64) -> Option<i64> {
    let late = second.saturating_sub(YEAR_2100);
    let alike = if late > 0 {
        YEAR_2100 + late % CALENDAR
    } else {
        second
    };
    let instant = Timestamp::from_second(alike).ok()?;
    Some(zone.to_offset(instant).seconds().into())
}

/// The offset that a name such as `GMT+5`, `GMT-0330` or `UTC+05:30` stands for.
fn fixed(name: &str) -> Option<Offset> {
    let text = name.strip_prefix("GMT").or(name.strip_prefix("UTC"))?;
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match text.split_once(':') {
        Some(parts) => parts,
        None if text.len() > 2 => text.split_at_checked(text.len() - 2)?,
        None => (text, "0"),
    };
    let number = |digits: &str| {
        let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 60 + minutes) * 60).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn offsets_are_read_from_names() {
        let seconds = |name| fixed(name).map(|offset| offset.seconds());
        assert_eq!(seconds("GMT+05:30"), Some(19_800));
        assert_eq!(seconds("GMT-3"), Some(-10_800));
        assert_eq!(seconds("UTC-0330"), Some(-12_600));
        assert_eq!(seconds("GMT+24:00"), None);
        assert_eq!(seconds("GMT+5:x"), None);
        assert_eq!(seconds("GMT+"), None);
        assert_eq!(seconds("Europe/Oslo"), None);
    }

    #[test]
    fn a_zone_that_nobody_knows_is_none() {
        assert!(Zone::named("Mars/Olympus").is_none());
        assert!(Zone::named("GMT+99:00").is_none());
        assert!(Zone::named("").is_some());
    }

    #[test]
    fn the_clock_on_the_wall_is_ahead_in_the_east_and_in_summer() {
        // 2015-01-01 and 2015-07-01, midnight UTC.
        let [winter, summer] = [1_420_070_400, 1_435_708_800];
        let oslo = Zone::named("Europe/Oslo").unwrap();
        assert_eq!(oslo.base, winter - 3600);
        assert_eq!(oslo.wall(winter), Some(winter + 3600));
        assert_eq!(oslo.wall(summer), Some(summer + 7200));
        assert_eq!(Zone::utc().wall(summer), Some(summer));
        // The year 12015, whose summers are as those of 2415.
        let late = summer + 25 * CALENDAR;
        assert_eq!(oslo.wall(late), Some(late + 7200));
    }
}
