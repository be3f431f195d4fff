//! The Parquet schema that a converted file gets.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use super::Failure;
use super::columns::DecimalAs;

/// What every column has.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    pub name: &'a str,
    pub id: Option<i32>,
    pub optional: bool,
}

impl Field<'_> {
    pub fn leaf(self, column: LeafColumn) -> Result<TypePtr, Failure> {
        let (precision, scale) = column
            .digits
            .map_or((-1, -1), |(p, s)| (p.into(), s.into()));
        let leaf = Type::primitive_type_builder(self.name, column.physical)
            .with_repetition(self.repetition())
            .with_id(self.id)
            .with_logical_type(column.logical)
            .with_length(column.length)
            .with_precision(precision)
            .with_scale(scale);
        leaf.build().map(Arc::new).map_err(unwritable)
    }

    pub fn group(self, fields: Vec<TypePtr>) -> Result<TypePtr, Failure> {
        group(self.name, self.id, self.repetition(), None, fields)
    }

    pub fn list(self, element: TypePtr) -> Result<TypePtr, Failure> {
        self.repeated(LogicalType::List, "list", vec![element])
    }

    /// `entry`: the key and the value.
    pub fn map(self, entry: Vec<TypePtr>) -> Result<TypePtr, Failure> {
        self.repeated(LogicalType::Map, "key_value", entry)
    }

    fn repeated(
        self,
        logical: LogicalType,
        name: &str,
        fields: Vec<TypePtr>,
    ) -> Result<TypePtr, Failure> {
        let items = group(name, None, Repetition::REPEATED, None, fields)?;
        let repetition = self.repetition();
        group(self.name, self.id, repetition, Some(logical), vec![items])
    }

    fn repetition(self) -> Repetition {
        if self.optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        }
    }
}

fn group(
    name: &str,
    id: Option<i32>,
    repetition: Repetition,
    logical: Option<LogicalType>,
    fields: Vec<TypePtr>,
) -> Result<TypePtr, Failure> {
    let group = Type::group_type_builder(name)
        .with_repetition(repetition)
        .with_id(id)
        .with_logical_type(logical)
        .with_fields(fields);
    group.build().map(Arc::new).map_err(unwritable)
}

/// The whole schema. `format` is for the message.
pub fn table(fields: Vec<TypePtr>, leaves: usize, format: &str) -> Result<Type, Failure> {
    if leaves == 0 {
        let feature = format!("an {format} file without columns");
        return Err(Failure::Unsupported(feature));
    }
    let table = Type::group_type_builder("table").with_fields(fields);
    table.build().map_err(unwritable)
}

fn unwritable(error: ParquetError) -> Failure {
    Failure::Unsupported(format!("a column that Parquet cannot hold ({error})"))
}

/// How the values of a leaf column are stored.
#[derive(Clone, Debug)]
pub struct LeafColumn {
    physical: Physical,
    logical: Option<LogicalType>,
    length: i32,
    /// Precision and scale of a decimal.
    digits: Option<(u8, u8)>,
}

impl LeafColumn {
    pub fn new(physical: Physical, logical: Option<LogicalType>) -> LeafColumn {
        LeafColumn {
            physical,
            logical,
            length: -1,
            digits: None,
        }
    }

    pub fn text() -> LeafColumn {
        LeafColumn::new(Physical::BYTE_ARRAY, Some(LogicalType::String))
    }

    pub fn uuid() -> LeafColumn {
        LeafColumn {
            length: 16,
            ..LeafColumn::new(Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid))
        }
    }

    pub fn fixed(len: usize) -> Result<LeafColumn, Failure> {
        let length = i32::try_from(len).ok();
        let length =
            length.ok_or_else(|| Failure::Corrupt("a fixed of an impossible size".to_owned()))?;
        Ok(LeafColumn {
            length,
            ..LeafColumn::new(Physical::FIXED_LEN_BYTE_ARRAY, None)
        })
    }

    /// Of times of day that are as long as the unit says: milliseconds are of 32 bits.
    pub fn time(unit: TimeUnit) -> LeafColumn {
        let physical = match unit {
            TimeUnit::MILLIS => Physical::INT32,
            TimeUnit::MICROS | TimeUnit::NANOS => Physical::INT64,
        };
        LeafColumn::new(physical, Some(LogicalType::time(false, unit)))
    }

    pub fn timestamp(instant: bool, unit: TimeUnit) -> LeafColumn {
        LeafColumn::new(Physical::INT64, Some(LogicalType::timestamp(instant, unit)))
    }

    /// And what its values become. `name` is for the message.
    pub fn decimal(
        precision: u8,
        scale: u8,
        name: &str,
    ) -> Result<(LeafColumn, DecimalAs), Failure> {
        let (physical, to, length) = DecimalAs::of(precision, scale).ok_or_else(|| {
            Failure::Unsupported(format!("decimal({precision}, {scale}) (field {name:?})"))
        })?;
        let logical = LogicalType::decimal(scale.into(), precision.into());
        let column = LeafColumn {
            length,
            digits: Some((precision, scale)),
            ..LeafColumn::new(physical, Some(logical))
        };
        Ok((column, to))
    }
}
