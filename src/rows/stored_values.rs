//! What stored values mean: counts of time units, INT96 timestamps (spec, "Parquet" in Appendix A;
//! SPEC.md rule 46).
//!
//! Files written by Hive, Impala, Spark and others, and then taken into a table, store times in other units than the
//! spec asks for. A unit that is finer than the column's is cut down, toward minus infinity, as Spark does; what a
//! column cannot hold is an error, never another time.

use crate::iceberg::types::PrimitiveType;

use super::file_schema::Annotation;

const MILLIS_PER_DAY: i64 = 86_400_000;
const MICROS_PER_DAY: i64 = MILLIS_PER_DAY * 1000;
const NANOS_PER_DAY: i64 = MICROS_PER_DAY * 1000;

/// The Julian day number of 1970-01-01.
const EPOCH_JULIAN_DAY: i64 = 2_440_588;

/// How a count of one time unit becomes a count of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rescale {
    Same,
    Times(i64),
    /// Toward minus infinity.
    DividedBy(i64),
}

impl Rescale {
    /// The count; `None` beyond the range of 64 bits.
    pub fn apply(self, count: i64) -> Option<i64> {
        match self {
            Rescale::Same => Some(count),
            Rescale::Times(factor) => count.checked_mul(factor),
            Rescale::DividedBy(divisor) => count.checked_div_euclid(divisor),
        }
    }
}

/// The units of a time or timestamp type in a day; `None` for other types.
pub fn units_per_day(ty: &PrimitiveType) -> Option<i64> {
    match ty {
        PrimitiveType::Time | PrimitiveType::Timestamp | PrimitiveType::Timestamptz => {
            Some(MICROS_PER_DAY)
        }
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => Some(NANOS_PER_DAY),
        _ => None,
    }
}

/// How a stored count, of the unit its annotation says, becomes one of `per_day` units a day. `None` for an annotation
/// that names no unit.
pub fn rescale(annotation: Annotation, per_day: i64) -> Option<Rescale> {
    let stored_per_day = match annotation {
        Annotation::Date => 1,
        Annotation::TimeMillis | Annotation::TimestampMillis { .. } => MILLIS_PER_DAY,
        Annotation::TimeMicros | Annotation::TimestampMicros { .. } => MICROS_PER_DAY,
        Annotation::TimeNanos | Annotation::TimestampNanos { .. } => NANOS_PER_DAY,
        _ => return None,
    };
    Some(if stored_per_day == per_day {
        Rescale::Same
    } else if stored_per_day < per_day {
        Rescale::Times(per_day / stored_per_day)
    } else {
        Rescale::DividedBy(stored_per_day / per_day)
    })
}

/// An INT96 timestamp (nanoseconds of the day, then the Julian day, both little endian) as a count of `per_day` units a
/// day since 1970. `None` beyond the range of 64 bits.
pub fn int96(value: [u8; 12], per_day: i64) -> Option<i64> {
    let (nanos, day) = value.split_first_chunk::<8>()?;
    let day = i64::from(i32::from_le_bytes(*day.first_chunk()?)) - EPOCH_JULIAN_DAY;
    // Nanoseconds of a day, though nothing keeps a writer from giving more.
    let nanos = i64::from_le_bytes(*nanos);
    let units = i128::from(nanos).div_euclid(i128::from(NANOS_PER_DAY / per_day));
    i64::try_from(i128::from(day) * i128::from(per_day) + units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int96_of(day: i32, nanos: i64) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&nanos.to_le_bytes());
        bytes[8..].copy_from_slice(&day.to_le_bytes());
        bytes
    }

    /// Julian days by the calendar: 1970-01-01 is 2440588, 0001-01-01 (proleptic) is 1721426, 9999-12-31 is 5373484.
    #[test]
    fn rule_46_int96_reaches_from_year_1_to_9999_in_microseconds() {
        let micros = |day, nanos| int96(int96_of(day, nanos), MICROS_PER_DAY);
        assert_eq!(micros(2_440_588, 0), Some(0));
        assert_eq!(micros(2_440_587, 86_399_999_999_999), Some(-1));
        // datetime(1,1,1) and datetime(9999,12,31,23,59,59,999999) as microseconds, by Python.
        assert_eq!(micros(1_721_426, 0), Some(-62_135_596_800_000_000));
        assert_eq!(
            micros(5_373_484, 86_399_999_999_000),
            Some(253_402_300_799_999_999)
        );
        assert_eq!(micros(i32::MAX, 0), None);
    }

    #[test]
    fn rule_46_int96_in_nanoseconds_ends_in_2262() {
        let nanos = |day, nanos| int96(int96_of(day, nanos), NANOS_PER_DAY);
        assert_eq!(nanos(2_440_588, 1), Some(1));
        assert_eq!(nanos(2_440_588 + 106_751, 0), Some(106_751 * NANOS_PER_DAY));
        assert_eq!(nanos(2_440_588 + 106_752, 0), None);
        assert_eq!(nanos(1_721_426, 0), None);
    }

    #[test]
    fn finer_units_are_cut_toward_minus_infinity() {
        let nanos = rescale(Annotation::TimestampNanos { utc: false }, MICROS_PER_DAY);
        assert_eq!(nanos, Some(Rescale::DividedBy(1000)));
        let floor = |n| nanos.and_then(|rescale| rescale.apply(n));
        assert_eq!(
            [1999, 1000, -1, -1000, -1001].map(floor),
            [1, 1, -1, -1, -2].map(Some)
        );
        let millis = rescale(Annotation::TimeMillis, MICROS_PER_DAY);
        assert_eq!(millis.and_then(|rescale| rescale.apply(3)), Some(3000));
        assert_eq!(Rescale::Times(1000).apply(i64::MAX / 999), None);
        assert_eq!(rescale(Annotation::None, MICROS_PER_DAY), None);
    }
}
