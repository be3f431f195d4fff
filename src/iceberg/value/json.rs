//! Values in the JSON single-value form (spec, Appendix D).

use serde_json::{Value as Json, json};

use super::{Value, calendar};
use crate::iceberg::error::FormatError;
use crate::iceberg::json::{Object, mismatch};
use crate::iceberg::types::{ListType, MapType, PrimitiveType, StructType, Type};

impl Value {
    /// Reads a value of type `ty`. `json` is not null; nulls inside it become `None`.
    ///
    /// A struct's fields are keyed by field id; those that are left out take their own `initial-default`.
    pub fn from_json(ty: &Type, json: &Json) -> Result<Self, FormatError> {
        match ty {
            Type::Primitive(primitive) => primitive_from_json(primitive, json)
                .ok_or_else(|| mismatch("", &format!("a value of {primitive}"), json)),
            Type::Struct(fields) => struct_from_json(fields, json),
            Type::List(list) => list_from_json(list, json).map(Value::List),
            Type::Map(map) => map_from_json(map, json),
        }
    }

    /// The JSON form of this value, which is one of type `ty`.
    pub fn to_json(&self, ty: &Type) -> Json {
        let or_null =
            |value: &Option<Value>, ty: &Type| value.as_ref().map_or(Json::Null, |v| v.to_json(ty));
        match (self, ty) {
            (Value::Struct(values), Type::Struct(fields)) => {
                let entries = fields.fields.iter().zip(values);
                Json::Object(
                    entries
                        .map(|(field, v)| (field.id.to_string(), or_null(v, &field.ty)))
                        .collect(),
                )
            }
            (Value::List(values), Type::List(list)) => values
                .iter()
                .map(|value| or_null(value, &list.element.ty))
                .collect(),
            (Value::Map(entries), Type::Map(map)) => json!({
                "keys": entries.iter().map(|(key, _)| key.to_json(&map.key.ty)).collect::<Vec<_>>(),
                "values": entries.iter().map(|(_, value)| or_null(value, &map.value.ty)).collect::<Vec<_>>(),
            }),
            _ => self.primitive_to_json(ty),
        }
    }

    fn primitive_to_json(&self, ty: &Type) -> Json {
        let ty = ty.as_primitive();
        let zone = match ty {
            Some(PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs) => "+00:00",
            _ => "",
        };
        match self {
            Value::Boolean(v) => json!(v),
            Value::Int(v) => json!(v),
            Value::Long(v) => json!(v),
            // Widening a float exactly would give it digits it does not have: its own shortest text is kept.
            Value::Float(bits) => f32::from_bits(*bits)
                .to_string()
                .parse::<f64>()
                .map_or(Json::Null, |v| json!(v)),
            Value::Double(bits) => json!(f64::from_bits(*bits)),
            Value::Decimal(unscaled) => {
                let scale = if let Some(PrimitiveType::Decimal { scale, .. }) = ty {
                    *scale
                } else {
                    0
                };
                json!(format_decimal(*unscaled, scale))
            }
            Value::Date(days) => json!(calendar::format_date(*days)),
            Value::Time(micros) => json!(calendar::format_time(*micros, 6)),
            Value::Timestamp(micros) => json!(calendar::format_timestamp(*micros, 6) + zone),
            Value::TimestampNs(nanos) => json!(calendar::format_timestamp(*nanos, 9) + zone),
            Value::String(text) => json!(text),
            Value::Uuid(bytes) => json!(uuid::Uuid::from_bytes(*bytes).to_string()),
            Value::Binary(bytes) => json!(to_hex(bytes)),
            Value::Struct(_) | Value::List(_) | Value::Map(_) => Json::Null,
        }
    }
}

fn primitive_from_json(ty: &PrimitiveType, json: &Json) -> Option<Value> {
    let value = match ty {
        PrimitiveType::Boolean => Value::Boolean(json.as_bool()?),
        PrimitiveType::Int => Value::Int(i32::try_from(json.as_i64()?).ok()?),
        PrimitiveType::Long => Value::Long(json.as_i64()?),
        // A float's text is shorter than the double it parses to, so the nearest float is the one meant.
        PrimitiveType::Float => Value::float(json.as_f64()? as f32),
        PrimitiveType::Double => Value::double(json.as_f64()?),
        PrimitiveType::Decimal { precision, scale } => {
            Value::Decimal(parse_decimal(json.as_str()?, *precision, *scale)?)
        }
        PrimitiveType::Date => Value::Date(calendar::parse_date(json.as_str()?)?),
        PrimitiveType::Time => Value::Time(micros(calendar::parse_time(json.as_str()?)?.into())?),
        PrimitiveType::Timestamp => {
            Value::Timestamp(micros(calendar::parse_timestamp(json.as_str()?)?)?)
        }
        PrimitiveType::Timestamptz => {
            Value::Timestamp(micros(calendar::parse_timestamp(utc(json.as_str()?)?)?)?)
        }
        PrimitiveType::TimestampNs => {
            Value::TimestampNs(i64::try_from(calendar::parse_timestamp(json.as_str()?)?).ok()?)
        }
        PrimitiveType::TimestamptzNs => Value::TimestampNs(
            i64::try_from(calendar::parse_timestamp(utc(json.as_str()?)?)?).ok()?,
        ),
        PrimitiveType::String => Value::String(json.as_str()?.to_owned()),
        PrimitiveType::Uuid => {
            Value::Uuid(uuid::Uuid::try_parse(json.as_str()?).ok()?.into_bytes())
        }
        PrimitiveType::Binary => Value::Binary(from_hex(json.as_str()?)?),
        PrimitiveType::Fixed(length) => Value::Binary(
            from_hex(json.as_str()?).filter(|bytes| u32::try_from(bytes.len()) == Ok(*length))?,
        ),
        PrimitiveType::Unknown
        | PrimitiveType::Variant
        | PrimitiveType::Geometry { .. }
        | PrimitiveType::Geography { .. } => return None,
    };
    Some(value)
}

fn optional(ty: &Type, json: &Json) -> Result<Option<Value>, FormatError> {
    if json.is_null() {
        Ok(None)
    } else {
        Value::from_json(ty, json).map(Some)
    }
}

fn struct_from_json(fields: &StructType, json: &Json) -> Result<Value, FormatError> {
    let object = json
        .as_object()
        .ok_or_else(|| mismatch("", "an object keyed by field id", json))?;
    let values = fields
        .fields
        .iter()
        .map(|field| match object.get(&field.id.to_string()) {
            Some(value) => {
                optional(&field.ty, value).map_err(|e| e.within(format!("[{}]", field.id)))
            }
            None => Ok(field.initial_default.clone()),
        });
    values.collect::<Result<_, _>>().map(Value::Struct)
}

fn list_from_json(list: &ListType, json: &Json) -> Result<Vec<Option<Value>>, FormatError> {
    let elements = json
        .as_array()
        .ok_or_else(|| mismatch("", "an array", json))?;
    elements
        .iter()
        .map(|element| optional(&list.element.ty, element))
        .collect()
}

fn map_from_json(map: &MapType, json: &Json) -> Result<Value, FormatError> {
    let object = Object::of(json)?;
    let keys = object.each("keys", |key| Value::from_json(&map.key.ty, key))?;
    let values = object.each("values", |value| optional(&map.value.ty, value))?;
    if keys.len() != values.len() {
        return Err(FormatError::invalid(
            "",
            format!("a map has {} keys and {} values", keys.len(), values.len()),
        ));
    }
    Ok(Value::Map(keys.into_iter().zip(values).collect()))
}

/// The text of a time in UTC without its zone; `None` for any other zone, or none.
fn utc(text: &str) -> Option<&str> {
    ["+00:00", "Z", "-00:00"]
        .iter()
        .find_map(|zone| text.strip_suffix(zone))
}

/// Whole microseconds of so many nanoseconds; `None` if it has finer parts.
fn micros(nanos: i128) -> Option<i64> {
    (nanos % 1000 == 0)
        .then(|| i64::try_from(nanos / 1000).ok())
        .flatten()
}

/// Reads `14.20` or `1E-10` as an unscaled value; its scale must be the type's.
fn parse_decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['E', 'e']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction_digits = i64::try_from(fraction.len()).ok()?;
    let digits = format!("{whole}{fraction}");
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !all_digits || fraction_digits.checked_sub(exponent)? != i64::from(scale) {
        return None;
    }
    let magnitude = digits.parse::<i128>().ok()?;
    let limit = 10_i128.checked_pow(u32::from(precision))?;
    (magnitude < limit).then_some(if negative { -magnitude } else { magnitude })
}

fn format_decimal(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |c: u8| {
        char::from(c)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
