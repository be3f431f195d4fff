//! The schema's nodes, and what they are annotated with.

use super::{FOOTER, missing};
use crate::parquet::DecodeError;
use crate::parquet::format::SchemaElement;
use crate::parquet::thrift::{Field, Reader};
use crate::rows::file_schema::{Annotation, Physical, Repetition};

pub(super) fn schema_element(
    reader: &mut Reader<'_>,
    element: Field,
) -> Result<SchemaElement, DecodeError> {
    let mut type_number = None;
    let mut type_length = None;
    let mut repetition = None;
    let mut name = None;
    let mut num_children = None;
    let mut converted = None;
    let mut scale = 0;
    let mut precision = 0;
    let mut field_id = None;
    let mut logical = None;
    reader.structure(element, |reader, field| {
        match field.id {
            1 => type_number = Some(reader.i32(field)?),
            2 => type_length = Some(reader.i32(field)?),
            3 => repetition = Some(repetition_of(reader.i32(field)?)?),
            4 => name = Some(reader.string(field)?.to_owned()),
            5 => num_children = Some(reader.i32(field)?),
            6 => converted = Some(reader.i32(field)?),
            7 => scale = reader.i32(field)?,
            8 => precision = reader.i32(field)?,
            9 => field_id = Some(reader.i32(field)?),
            10 => logical = logical_type(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    let physical = type_number
        .map(|number| physical_type(number, type_length))
        .transpose()?;
    let annotation = match (logical, converted) {
        // A writer of a newer type may say with the older one how else it can be read.
        (Some(annotation), None) => annotation,
        (Some(annotation), _) if !matches!(annotation, Annotation::Other(_)) => annotation,
        (_, Some(converted)) => converted_type(converted, scale, precision, repetition)?,
        (None, None) => Annotation::None,
    };
    if num_children.is_some_and(|count| count < 0) {
        return Err(DecodeError::corrupt(
            FOOTER,
            "a schema node has a negative number of children",
        ));
    }
    Ok(SchemaElement {
        physical,
        repetition,
        name: name.ok_or_else(|| missing("schema node", "name"))?,
        num_children,
        annotation,
        field_id,
        geo: None,
    })
}

fn physical_type(number: i32, length: Option<i32>) -> Result<Physical, DecodeError> {
    Ok(match number {
        0 => Physical::Boolean,
        1 => Physical::Int32,
        2 => Physical::Int64,
        3 => Physical::Int96,
        4 => Physical::Float,
        5 => Physical::Double,
        6 => Physical::ByteArray,
        7 => match length.and_then(|length| u32::try_from(length).ok()) {
            Some(length @ 1..) => Physical::Fixed(length),
            _ => {
                let reason = format!("a FIXED_LEN_BYTE_ARRAY has length {length:?}");
                return Err(DecodeError::corrupt(FOOTER, reason));
            }
        },
        other => {
            return Err(DecodeError::unsupported(format!(
                "the physical type {other}"
            )));
        }
    })
}

fn repetition_of(number: i32) -> Result<Repetition, DecodeError> {
    match number {
        0 => Ok(Repetition::Required),
        1 => Ok(Repetition::Optional),
        2 => Ok(Repetition::Repeated),
        other => Err(DecodeError::corrupt(
            FOOTER,
            format!("repetition type {other} does not exist"),
        )),
    }
}

fn decimal(scale: i32, precision: i32) -> Result<Annotation, DecodeError> {
    match (u32::try_from(precision), u32::try_from(scale)) {
        (Ok(precision @ 1..), Ok(scale)) if scale <= precision => {
            Ok(Annotation::Decimal { precision, scale })
        }
        _ => Err(DecodeError::corrupt(
            FOOTER,
            format!("decimal({precision}, {scale}) does not exist"),
        )),
    }
}

/// `LogicalType`: a union, so a struct with one field.
fn logical_type(reader: &mut Reader<'_>, field: Field) -> Result<Option<Annotation>, DecodeError> {
    let mut annotation = None;
    reader.structure(field, |reader, field| {
        let plain = match field.id {
            1 => Annotation::String,
            2 => Annotation::Map,
            3 => Annotation::List,
            4 => Annotation::Enum,
            6 => Annotation::Date,
            11 => Annotation::Unknown,
            12 => Annotation::Json,
            13 => Annotation::Bson,
            14 => Annotation::Uuid,
            15 => Annotation::Float16,
            16 => Annotation::Variant,
            17 => Annotation::Geometry,
            18 => Annotation::Geography,
            5 => {
                annotation = Some(logical_decimal(reader, field)?);
                return Ok(());
            }
            7 | 8 => {
                annotation = Some(logical_time(reader, field)?);
                return Ok(());
            }
            10 => {
                annotation = Some(logical_integer(reader, field)?);
                return Ok(());
            }
            other => Annotation::Other(other.into()),
        };
        annotation = Some(plain);
        reader.skip(field)
    })?;
    Ok(annotation)
}

fn logical_decimal(reader: &mut Reader<'_>, field: Field) -> Result<Annotation, DecodeError> {
    let (mut scale, mut precision) = (0, 0);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => scale = reader.i32(field)?,
            2 => precision = reader.i32(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    decimal(scale, precision)
}

/// `TimeType` (field 7) or `TimestampType` (field 8), whose unit may be one that this reader does not know.
fn logical_time(reader: &mut Reader<'_>, outer: Field) -> Result<Annotation, DecodeError> {
    let mut utc = false;
    let mut unit = 0;
    reader.structure(outer, |reader, field| {
        match field.id {
            1 => utc = reader.bool(field)?,
            2 => reader.structure(field, |reader, field| {
                unit = field.id;
                reader.skip(field)
            })?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(match (outer.id, unit) {
        (7, 1) => Annotation::TimeMillis,
        (7, 2) => Annotation::TimeMicros,
        (7, 3) => Annotation::TimeNanos,
        (8, 1) => Annotation::TimestampMillis { utc },
        (8, 2) => Annotation::TimestampMicros { utc },
        (8, 3) => Annotation::TimestampNanos { utc },
        _ => Annotation::Other(outer.id.into()),
    })
}

fn logical_integer(reader: &mut Reader<'_>, field: Field) -> Result<Annotation, DecodeError> {
    let (mut bits, mut signed) = (0, false);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => bits = reader.i8(field)?,
            2 => signed = reader.bool(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    match bits {
        8 | 16 | 32 | 64 => Ok(Annotation::Integer {
            bits: bits.unsigned_abs(),
            signed,
        }),
        other => Err(DecodeError::corrupt(
            FOOTER,
            format!("an integer type of {other} bits does not exist"),
        )),
    }
}

/// `ConvertedType`, the older way to say what a column holds.
fn converted_type(
    number: i32,
    scale: i32,
    precision: i32,
    repetition: Option<Repetition>,
) -> Result<Annotation, DecodeError> {
    Ok(match number {
        0 => Annotation::String,
        1 => Annotation::Map,
        // On a map's repeated group it says nothing; old writers put it on the map itself instead of MAP.
        2 if repetition == Some(Repetition::Repeated) => Annotation::None,
        2 => Annotation::Map,
        3 => Annotation::List,
        4 => Annotation::Enum,
        5 => return decimal(scale, precision),
        6 => Annotation::Date,
        7 => Annotation::TimeMillis,
        8 => Annotation::TimeMicros,
        9 => Annotation::TimestampMillis { utc: true },
        10 => Annotation::TimestampMicros { utc: true },
        11 => Annotation::Integer {
            bits: 8,
            signed: false,
        },
        12 => Annotation::Integer {
            bits: 16,
            signed: false,
        },
        13 => Annotation::Integer {
            bits: 32,
            signed: false,
        },
        14 => Annotation::Integer {
            bits: 64,
            signed: false,
        },
        15 => Annotation::Integer {
            bits: 8,
            signed: true,
        },
        16 => Annotation::Integer {
            bits: 16,
            signed: true,
        },
        17 => Annotation::Integer {
            bits: 32,
            signed: true,
        },
        18 => Annotation::Integer {
            bits: 64,
            signed: true,
        },
        19 => Annotation::Json,
        20 => Annotation::Bson,
        21 => Annotation::Interval,
        other => Annotation::Other(other),
    })
}
