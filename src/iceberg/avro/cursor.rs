//! Walking over encoded Avro values, by the writer's schema.

use super::schema::{Logical, Record, Schema, Shape};
use crate::iceberg::error::FormatError;
use crate::iceberg::value::{Value, decimal_be};

/// Values that may be read for each byte of input: unions and strings take a byte each, only nulls and empty records
/// take none, so sound data stays under 3.
const STEPS_PER_BYTE: u64 = 16;
/// Values that may be read whatever the length.
const FREE_STEPS: u64 = 1024;

/// A place in a run of encoded values.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// Values that may still be read: what takes no bytes must not take for ever either.
    steps: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let steps = (bytes.len() as u64)
            .saturating_mul(STEPS_PER_BYTE)
            .saturating_add(FREE_STEPS);
        Self { rest: bytes, steps }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Counts one more value.
    pub(crate) fn step(&mut self) -> Result<(), FormatError> {
        self.steps = self
            .steps
            .checked_sub(1)
            .ok_or_else(|| invalid("claims more values than its bytes can hold"))?;
        Ok(())
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// A variable-length zig-zag number.
    pub(crate) fn long(&mut self) -> Result<i64, FormatError> {
        let mut zigzag = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            zigzag |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
            }
        }
        Err(invalid("a number is longer than 64 bits"))
    }

    pub(crate) fn length(&mut self) -> Result<usize, FormatError> {
        let length = self.long()?;
        usize::try_from(length).map_err(|_| invalid(format!("{length} is no length")))
    }

    /// Bytes with their length before them.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], FormatError> {
        let length = self.length()?;
        self.take(length)
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, FormatError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| invalid("a string is not UTF-8"))
    }

    /// The items of an array or map, which come in counted blocks up to an empty one.
    pub(crate) fn blocks(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        loop {
            let count = self.long()?;
            if count < 0 {
                // The block's length in bytes, for those who would skip it.
                self.long()?;
            }
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count.unsigned_abs() {
                self.step()?;
                read(self)?;
            }
        }
    }

    /// The schema of the value that follows: the branch that is there, for a union.
    fn resolve<'s>(&mut self, schema: &'s Schema) -> Result<&'s Schema, FormatError> {
        self.step()?;
        let Shape::Union(branches) = &schema.shape else {
            return Ok(schema);
        };
        let branch = self.length()?;
        branches
            .get(branch)
            .ok_or_else(|| invalid(format!("a union has no branch {branch}")))
    }

    /// Passes over a value.
    pub(crate) fn skip(&mut self, schema: &Schema) -> Result<(), FormatError> {
        self.step()?;
        match &schema.shape {
            Shape::Null => {}
            Shape::Boolean => {
                self.take(1)?;
            }
            Shape::Int | Shape::Long | Shape::Enum(_) => {
                self.long()?;
            }
            Shape::Float => {
                self.take(4)?;
            }
            Shape::Double => {
                self.take(8)?;
            }
            Shape::Bytes | Shape::String => {
                self.bytes()?;
            }
            Shape::Fixed(length) => {
                self.take(*length)?;
            }
            Shape::Array(items) => self.blocks(|cursor| cursor.skip(items))?,
            Shape::Map(values) => self.blocks(|cursor| {
                cursor.bytes()?;
                cursor.skip(values)
            })?,
            Shape::Union(_) => {
                let branch = self.resolve(schema)?;
                self.skip(branch)?;
            }
            Shape::Record(record) => {
                for field in &record.fields {
                    self.skip(&field.schema)?;
                }
            }
        }
        Ok(())
    }

    /// An `int` or a `long`, or null.
    pub(crate) fn integer(&mut self, schema: &Schema) -> Result<Option<i64>, FormatError> {
        match self.resolve(schema)?.shape {
            Shape::Null => Ok(None),
            Shape::Int | Shape::Long => self.long().map(Some),
            _ => Err(invalid("expected an int or a long")),
        }
    }

    /// A `string`, or null.
    pub(crate) fn text(&mut self, schema: &Schema) -> Result<Option<&'a str>, FormatError> {
        match self.resolve(schema)?.shape {
            Shape::Null => Ok(None),
            Shape::String => self.string().map(Some),
            _ => Err(invalid("expected a string")),
        }
    }

    /// A `bytes`, or null.
    pub(crate) fn binary(&mut self, schema: &Schema) -> Result<Option<&'a [u8]>, FormatError> {
        match self.resolve(schema)?.shape {
            Shape::Null => Ok(None),
            Shape::Bytes => self.bytes().map(Some),
            Shape::Fixed(length) => self.take(length).map(Some),
            _ => Err(invalid("expected bytes")),
        }
    }

    /// The schema of the record that follows, or `None` for null. The caller walks its fields.
    pub(crate) fn record<'s>(
        &mut self,
        schema: &'s Schema,
    ) -> Result<Option<&'s Record>, FormatError> {
        match &self.resolve(schema)?.shape {
            Shape::Null => Ok(None),
            Shape::Record(record) => Ok(Some(record)),
            _ => Err(invalid("expected a record")),
        }
    }

    /// Each item of an array; none for null.
    pub(crate) fn items(
        &mut self,
        schema: &Schema,
        mut read: impl FnMut(&mut Self, &Schema) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        match &self.resolve(schema)?.shape {
            Shape::Null => Ok(()),
            Shape::Array(items) => self.blocks(|cursor| read(cursor, items)),
            _ => Err(invalid("expected an array")),
        }
    }

    /// A value of a primitive type as its schema describes it, or null.
    pub(crate) fn value(&mut self, schema: &Schema) -> Result<Option<Value>, FormatError> {
        let schema = self.resolve(schema)?;
        let value = match (&schema.shape, schema.logical) {
            (Shape::Null, _) => return Ok(None),
            (Shape::Boolean, _) => Value::Boolean(self.array::<1>()? != [0]),
            (Shape::Int, logical) => int_value(self.long()?, logical)?,
            (Shape::Long, logical) => long_value(self.long()?, logical)?,
            (Shape::Float, _) => Value::float(f32::from_le_bytes(self.array()?)),
            (Shape::Double, _) => Value::double(f64::from_le_bytes(self.array()?)),
            (Shape::String, Some(Logical::Uuid)) => {
                let text = self.string()?;
                let uuid = uuid::Uuid::try_parse(text)
                    .map_err(|_| invalid(format!("{text:?} is no UUID")))?;
                Value::Uuid(uuid.into_bytes())
            }
            (Shape::String, _) => Value::String(self.string()?.to_owned()),
            (Shape::Bytes, logical) => bytes_value(self.bytes()?, logical)?,
            (Shape::Fixed(length), logical) => bytes_value(self.take(*length)?, logical)?,
            (
                Shape::Enum(_)
                | Shape::Array(_)
                | Shape::Map(_)
                | Shape::Union(_)
                | Shape::Record(_),
                _,
            ) => {
                return Err(invalid("expected a value of a primitive type"));
            }
        };
        Ok(Some(value))
    }
}

fn int_value(number: i64, logical: Option<Logical>) -> Result<Value, FormatError> {
    let int = i32::try_from(number).map_err(|_| invalid(format!("{number} is no int")))?;
    Ok(match logical {
        Some(Logical::Date) => Value::Date(int),
        Some(Logical::TimeMillis) => Value::Time(i64::from(int) * 1000),
        _ => Value::Int(int),
    })
}

fn long_value(number: i64, logical: Option<Logical>) -> Result<Value, FormatError> {
    Ok(match logical {
        Some(Logical::TimeMicros) => Value::Time(number),
        Some(Logical::TimestampMicros) => Value::Timestamp(number),
        Some(Logical::TimestampNanos) => Value::TimestampNs(number),
        Some(Logical::TimestampMillis) => {
            let micros = number.checked_mul(1000);
            Value::Timestamp(micros.ok_or_else(|| invalid(format!("{number} ms is out of range")))?)
        }
        _ => Value::Long(number),
    })
}

fn bytes_value(bytes: &[u8], logical: Option<Logical>) -> Result<Value, FormatError> {
    match logical {
        Some(Logical::Decimal { .. }) => {
            let decimal = decimal_be(bytes);
            decimal
                .map(Value::Decimal)
                .ok_or_else(|| invalid(format!("a decimal of {} bytes", bytes.len())))
        }
        Some(Logical::Uuid) => {
            let uuid = bytes
                .try_into()
                .map_err(|_| invalid(format!("a UUID of {} bytes", bytes.len())))?;
            Ok(Value::Uuid(uuid))
        }
        _ => Ok(Value::Binary(bytes.to_vec())),
    }
}

fn truncated() -> FormatError {
    invalid("ends in the middle of a value")
}

fn invalid(reason: impl Into<String>) -> FormatError {
    FormatError::invalid("Avro data", reason)
}
