//! Values of Iceberg types, as they stand in partition tuples, column bounds and default values.

use std::cmp::Ordering;

use super::error::FormatError;
use super::types::PrimitiveType;

pub(crate) mod calendar;
mod json;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A value of any type; null is the absence of one (`Option<Value>`).
///
/// Two values compare equal only when they are the same bits: floats are held as bits with NaN made canonical, so
/// `-0.0` and `+0.0` differ, as partition equality asks (spec, "Scan Planning").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Boolean(bool),
    Int(i32),
    Long(i64),
    /// IEEE 754 bits, NaN canonical.
    Float(u32),
    /// IEEE 754 bits, NaN canonical.
    Double(u64),
    /// The unscaled value; the scale is the type's.
    Decimal(i128),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since the epoch, with or without zone.
    Timestamp(i64),
    /// Nanoseconds since the epoch, with or without zone.
    TimestampNs(i64),
    String(String),
    /// 16 bytes, big endian.
    Uuid([u8; 16]),
    /// `fixed`, `binary`, and the WKB of geometries.
    Binary(Vec<u8>),
    /// A struct's values by field order; used by default values only.
    Struct(Vec<Option<Value>>),
    /// Used by default values only.
    List(Vec<Option<Value>>),
    /// Keys and values, in order; used by default values only.
    Map(Vec<(Value, Option<Value>)>),
}

impl Value {
    /// A float, its NaN made canonical.
    pub fn float(v: f32) -> Self {
        Self::Float(if v.is_nan() {
            f32::NAN.to_bits()
        } else {
            v.to_bits()
        })
    }

    /// A double, its NaN made canonical.
    pub fn double(v: f64) -> Self {
        Self::Double(if v.is_nan() {
            f64::NAN.to_bits()
        } else {
            v.to_bits()
        })
    }

    /// Reads the binary single-value form (spec, Appendix D), as column bounds have it.
    ///
    /// A value written before its column was promoted is shorter than its type asks, and is promoted here.
    pub fn from_bytes(ty: &PrimitiveType, bytes: &[u8]) -> Result<Self, FormatError> {
        let wrong_length = || {
            FormatError::invalid(
                ty.to_string(),
                format!("cannot be {} bytes long", bytes.len()),
            )
        };
        let value = match ty {
            // Any byte but zero is true.
            PrimitiveType::Boolean => match bytes {
                [byte] => Self::Boolean(*byte != 0),
                _ => return Err(wrong_length()),
            },
            PrimitiveType::Int => Self::Int(i32_le(bytes).ok_or_else(wrong_length)?),
            PrimitiveType::Date => Self::Date(i32_le(bytes).ok_or_else(wrong_length)?),
            PrimitiveType::Long => {
                let shorter = || i32_le(bytes).map(i64::from);
                Self::Long(i64_le(bytes).or_else(shorter).ok_or_else(wrong_length)?)
            }
            PrimitiveType::Float => Self::float(f32::from_le_bytes(
                bytes.try_into().map_err(|_| wrong_length())?,
            )),
            PrimitiveType::Double => match bytes.try_into().map(f32::from_le_bytes) {
                Ok(float) => Self::double(f64::from(float)),
                Err(_) => Self::double(f64::from_le_bytes(
                    bytes.try_into().map_err(|_| wrong_length())?,
                )),
            },
            PrimitiveType::Time => Self::Time(i64_le(bytes).ok_or_else(wrong_length)?),
            PrimitiveType::Timestamptz => Self::Timestamp(i64_le(bytes).ok_or_else(wrong_length)?),
            PrimitiveType::TimestamptzNs => {
                Self::TimestampNs(i64_le(bytes).ok_or_else(wrong_length)?)
            }
            PrimitiveType::Timestamp | PrimitiveType::TimestampNs => {
                match (i64_le(bytes), i32_le(bytes)) {
                    (Some(micros), _) if *ty == PrimitiveType::Timestamp => Self::Timestamp(micros),
                    (Some(nanos), _) => Self::TimestampNs(nanos),
                    (None, Some(days)) => Self::Date(days).promote(ty).ok_or_else(|| {
                        FormatError::invalid(
                            ty.to_string(),
                            format!("date {days} is out of the type's range"),
                        )
                    })?,
                    (None, None) => return Err(wrong_length()),
                }
            }
            PrimitiveType::Decimal { .. } => {
                Self::Decimal(decimal_be(bytes).ok_or_else(wrong_length)?)
            }
            PrimitiveType::String => Self::String(
                std::str::from_utf8(bytes)
                    .map_err(|_| FormatError::invalid("string", "is not UTF-8"))?
                    .to_owned(),
            ),
            PrimitiveType::Uuid => Self::Uuid(bytes.try_into().map_err(|_| wrong_length())?),
            PrimitiveType::Fixed(_)
            | PrimitiveType::Binary
            | PrimitiveType::Geometry { .. }
            | PrimitiveType::Geography { .. } => Self::Binary(bytes.to_vec()),
            PrimitiveType::Unknown | PrimitiveType::Variant => {
                return Err(FormatError::invalid(
                    ty.to_string(),
                    "has no binary single-value form",
                ));
            }
        };
        Ok(value)
    }

    /// The same value after its column became one of type `to` (spec, "Schema Evolution"). `None` where the type
    /// cannot be promoted so, or the value is out of the wider type's range (a date in nanoseconds).
    pub fn promote(&self, to: &PrimitiveType) -> Option<Value> {
        match (self, to) {
            (Self::Int(v), PrimitiveType::Long) => Some(Self::Long(i64::from(*v))),
            (Self::Float(bits), PrimitiveType::Double) => {
                Some(Self::double(f64::from(f32::from_bits(*bits))))
            }
            (Self::Date(days), PrimitiveType::Timestamp) => i64::from(*days)
                .checked_mul(MICROS_PER_DAY)
                .map(Self::Timestamp),
            (Self::Date(days), PrimitiveType::TimestampNs) => i64::from(*days)
                .checked_mul(MICROS_PER_DAY * 1000)
                .map(Self::TimestampNs),
            (Self::Boolean(_), PrimitiveType::Boolean)
            | (Self::Int(_), PrimitiveType::Int)
            | (Self::Long(_), PrimitiveType::Long)
            | (Self::Float(_), PrimitiveType::Float)
            | (Self::Double(_), PrimitiveType::Double)
            | (Self::Decimal(_), PrimitiveType::Decimal { .. })
            | (Self::Date(_), PrimitiveType::Date)
            | (Self::Time(_), PrimitiveType::Time)
            | (Self::Timestamp(_), PrimitiveType::Timestamp | PrimitiveType::Timestamptz)
            | (Self::TimestampNs(_), PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs)
            | (Self::String(_), PrimitiveType::String)
            | (Self::Uuid(_), PrimitiveType::Uuid)
            | (
                Self::Binary(_),
                PrimitiveType::Fixed(_)
                | PrimitiveType::Binary
                | PrimitiveType::Geometry { .. }
                | PrimitiveType::Geography { .. },
            ) => Some(self.clone()),
            _ => None,
        }
    }

    /// The value in a type that its column had before it was promoted: the other way round of [`Value::promote`]. `None`
    /// where no value of that type is promoted to this one.
    pub fn before_promotion(&self, from: &PrimitiveType) -> Option<Value> {
        let date = |units: i64, per_day: i64| {
            (units % per_day == 0).then(|| i32::try_from(units / per_day).ok().map(Self::Date))?
        };
        match (self, from) {
            (Self::Long(v), PrimitiveType::Int) => i32::try_from(*v).ok().map(Self::Int),
            (Self::Double(bits), PrimitiveType::Float) => {
                let narrow = f64::from_bits(*bits) as f32;
                (Self::double(f64::from(narrow)) == *self).then(|| Self::float(narrow))
            }
            (Self::Timestamp(v), PrimitiveType::Date) => date(*v, MICROS_PER_DAY),
            (Self::TimestampNs(v), PrimitiveType::Date) => date(*v, MICROS_PER_DAY * 1000),
            _ => None,
        }
    }

    /// The order of two values of one primitive type: `-0.0` before `+0.0`, NaN last, strings and bytes unsigned.
    /// `None` for values of different types, and for structs, lists and maps.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) | (Self::Date(a), Self::Date(b)) => Some(a.cmp(b)),
            (Self::Long(a), Self::Long(b))
            | (Self::Time(a), Self::Time(b))
            | (Self::Timestamp(a), Self::Timestamp(b))
            | (Self::TimestampNs(a), Self::TimestampNs(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => {
                Some(f32::from_bits(*a).total_cmp(&f32::from_bits(*b)))
            }
            (Self::Double(a), Self::Double(b)) => {
                Some(f64::from_bits(*a).total_cmp(&f64::from_bits(*b)))
            }
            (Self::Decimal(a), Self::Decimal(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Uuid(a), Self::Uuid(b)) => Some(a.cmp(b)),
            (Self::Binary(a), Self::Binary(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

fn i32_le(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_le_bytes)
}

fn i64_le(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_le_bytes)
}

/// A two's-complement big-endian number of at least one byte and at most 128 significant bits.
pub(crate) fn decimal_be(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xFF };
    let (extension, low) = bytes.split_at_checked(bytes.len().saturating_sub(16))?;
    let mut wide = [sign; 16];
    wide.get_mut(16 - low.len()..)?.copy_from_slice(low);
    let number = i128::from_be_bytes(wide);
    let same_sign = (number < 0) == (sign != 0);
    (same_sign && extension.iter().all(|byte| *byte == sign)).then_some(number)
}

#[cfg(test)]
mod tests;
