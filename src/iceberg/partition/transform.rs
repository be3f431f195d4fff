//! Partition transforms: their names, their result types, and what they make of a value.

use std::fmt;

use super::Transform;
use crate::iceberg::error::FormatError;
use crate::iceberg::murmur3;
use crate::iceberg::types::PrimitiveType;
use crate::iceberg::value::{Value, calendar};

const MICROS_PER_HOUR: i64 = 3_600_000_000;

impl Transform {
    /// Reads a transform's name, as `identity` or `bucket[16]`. A name that is not known is [`Transform::Unknown`]; a
    /// known one with a bad parameter is an error.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        // The reference implementation takes any case of letters.
        let lower = text.to_ascii_lowercase();
        let parameter = |name: &str| {
            lower
                .strip_prefix(name)?
                .strip_prefix('[')?
                .strip_suffix(']')
        };
        let positive = |digits: &str| {
            let bad = || {
                FormatError::invalid(
                    "",
                    format!("{text:?} needs a parameter from 1 to 2147483647"),
                )
            };
            digits
                .trim()
                .parse::<i32>()
                .ok()
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| *n > 0)
                .ok_or_else(bad)
        };
        let transform = match lower.as_str() {
            "identity" => Self::Identity,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "void" => Self::Void,
            _ => match (parameter("bucket"), parameter("truncate")) {
                (Some(count), _) => Self::Bucket(positive(count)?),
                (None, Some(width)) => Self::Truncate(positive(width)?),
                (None, None) => Self::Unknown(text.to_owned()),
            },
        };
        Ok(transform)
    }

    /// The type of what this transform makes of values of type `source`; `None` where it is not known.
    pub fn result_type(&self, source: &PrimitiveType) -> Option<PrimitiveType> {
        match self {
            Self::Identity | Self::Truncate(_) | Self::Void => Some(source.clone()),
            Self::Bucket(_) | Self::Year | Self::Month | Self::Hour => Some(PrimitiveType::Int),
            // Readers must take `date` here, though the values are days (spec, "Partition Transforms").
            Self::Day => Some(PrimitiveType::Date),
            Self::Unknown(_) => None,
        }
    }

    /// What this transform makes of a value; null for null and for [`Transform::Void`].
    ///
    /// # Errors
    ///
    /// For a transform that is not known, and for a value that the transform is not defined for.
    pub fn apply(&self, value: Option<&Value>) -> Result<Option<Value>, FormatError> {
        let Some(value) = value else { return Ok(None) };
        let result = match self {
            Self::Identity => Some(value.clone()),
            Self::Void => return Ok(None),
            Self::Bucket(count) => bucket_hash(value).and_then(|hash| {
                let bucket = (hash & 0x7FFF_FFFF).checked_rem(*count)?;
                i32::try_from(bucket).ok().map(Value::Int)
            }),
            Self::Truncate(width) => truncate(value, *width),
            Self::Year => {
                days(value).map(|days| Value::Int(calendar::civil_from_days(days).0 - 1970))
            }
            Self::Month => days(value).map(|days| {
                let (year, month, _) = calendar::civil_from_days(days);
                Value::Int((year - 1970) * 12 + i32::from(month) - 1)
            }),
            Self::Day => days(value).map(Value::Date),
            Self::Hour => micros(value).and_then(|us| {
                i32::try_from(us.div_euclid(MICROS_PER_HOUR))
                    .ok()
                    .map(Value::Int)
            }),
            Self::Unknown(name) => {
                return Err(FormatError::unsupported(format!(
                    "partition transform {name:?}"
                )));
            }
        };
        result.map(Some).ok_or_else(|| {
            FormatError::invalid(self.to_string(), format!("is not defined for {value:?}"))
        })
    }
}

impl fmt::Display for Transform {
    /// The transform's name in the spec's JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Bucket(count) => write!(f, "bucket[{count}]"),
            Self::Truncate(width) => write!(f, "truncate[{width}]"),
            Self::Year => f.write_str("year"),
            Self::Month => f.write_str("month"),
            Self::Day => f.write_str("day"),
            Self::Hour => f.write_str("hour"),
            Self::Void => f.write_str("void"),
            Self::Unknown(name) => f.write_str(name),
        }
    }
}

/// The hash of a value (spec, Appendix B): equal for an `int` and the `long` it promotes to, and for the same time in
/// microseconds and nanoseconds.
pub(super) fn bucket_hash(value: &Value) -> Option<u32> {
    let of_long = |v: i64| murmur3::hash(&v.to_le_bytes());
    match value {
        Value::Int(v) | Value::Date(v) => Some(of_long(i64::from(*v))),
        Value::Long(v) | Value::Time(v) | Value::Timestamp(v) => Some(of_long(*v)),
        Value::TimestampNs(nanos) => Some(of_long(nanos.div_euclid(1000))),
        Value::Decimal(unscaled) => Some(murmur3::hash(shortest_be(&unscaled.to_be_bytes()))),
        Value::String(text) => Some(murmur3::hash(text.as_bytes())),
        Value::Uuid(bytes) => Some(murmur3::hash(bytes)),
        Value::Binary(bytes) => Some(murmur3::hash(bytes)),
        _ => None,
    }
}

/// The shortest two's-complement form of the same number.
fn shortest_be(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes {
        let redundant = matches!((first, second & 0x80), (0, 0) | (0xFF, 0x80));
        match bytes.get(1..) {
            Some(rest) if redundant => bytes = rest,
            _ => break,
        }
    }
    bytes
}

fn truncate(value: &Value, width: u32) -> Option<Value> {
    let length = usize::try_from(width).ok()?;
    match value {
        // The lowest values wrap around, as they do in the reference implementation.
        Value::Int(v) => {
            let width = i32::try_from(width).ok().filter(|w| *w > 0)?;
            Some(Value::Int(v.wrapping_sub(v.rem_euclid(width))))
        }
        Value::Long(v) => {
            (width > 0).then(|| Value::Long(v.wrapping_sub(v.rem_euclid(i64::from(width)))))
        }
        Value::Decimal(v) => {
            (width > 0).then(|| Value::Decimal(v.wrapping_sub(v.rem_euclid(i128::from(width)))))
        }
        Value::String(text) => Some(Value::String(text.chars().take(length).collect())),
        Value::Binary(bytes) => Some(Value::Binary(bytes.iter().take(length).copied().collect())),
        _ => None,
    }
}

/// Days since the epoch, downwards.
fn days(value: &Value) -> Option<i32> {
    match value {
        Value::Date(days) => Some(*days),
        _ => i32::try_from(micros(value)?.div_euclid(24 * MICROS_PER_HOUR)).ok(),
    }
}

/// Microseconds since the epoch, downwards.
fn micros(value: &Value) -> Option<i64> {
    match value {
        Value::Timestamp(micros) => Some(*micros),
        Value::TimestampNs(nanos) => Some(nanos.div_euclid(1000)),
        _ => None,
    }
}
