//! Rows on their way to column chunks: for each leaf column its levels and values, until there are enough for a row
//! group.
//!
//! Whoever reads rows walks them along the schema and pushes, for each leaf, a value or its absence with the definition
//! and repetition level where it stands ("Nested Encoding" in the Parquet format).

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::Failure;
use crate::storage::{SpillWriter, Spilled};

/// Bytes of values and levels in a row group, at least, unless it is the last.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// Of a row, at most: a few bytes of a file can claim that it is a list of very many nulls.
const MAX_ROW: usize = 512 << 20;

/// Where a value stands.
#[derive(Clone, Copy, Debug)]
pub struct At {
    pub def: i16,
    pub rep: i16,
}

/// The leaf columns of a file, and the file.
pub struct Columns {
    file: SerializedFileWriter<BufWriter<SpillWriter>>,
    leaves: Vec<Leaf>,
    /// Bytes that the leaves hold, about.
    bytes: usize,
    /// And may hold.
    max_bytes: usize,
}

#[derive(Debug)]
struct Leaf {
    def: Vec<i16>,
    rep: Vec<i16>,
    nested: bool,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Booleans(Vec<bool>),
    Int32s(Vec<i32>),
    Int64s(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    /// The values one after the other, and where each ends.
    Bytes(Vec<u8>, Vec<usize>),
    Fixed(Vec<u8>, Vec<usize>),
}

impl Values {
    fn of(physical: Physical) -> Values {
        match physical {
            Physical::BOOLEAN => Values::Booleans(Vec::new()),
            Physical::INT32 => Values::Int32s(Vec::new()),
            Physical::FLOAT => Values::Floats(Vec::new()),
            Physical::DOUBLE => Values::Doubles(Vec::new()),
            Physical::BYTE_ARRAY => Values::Bytes(Vec::new(), Vec::new()),
            Physical::FIXED_LEN_BYTE_ARRAY => Values::Fixed(Vec::new(), Vec::new()),
            Physical::INT64 | Physical::INT96 => Values::Int64s(Vec::new()),
        }
    }
}

/// A value of a leaf column.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

impl Columns {
    /// A file of this schema, which is written to `out`.
    pub fn new(schema: Type, out: BufWriter<SpillWriter>) -> Result<Columns, Failure> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("bergfs version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        let schema = Arc::new(schema);
        let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
        let leaves = descriptor.columns().iter().map(|column| Leaf {
            def: Vec::new(),
            rep: Vec::new(),
            nested: column.max_rep_level() > 0,
            values: Values::of(column.physical_type()),
        });
        Ok(Columns {
            leaves: leaves.collect(),
            file: SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failed)?,
            bytes: 0,
            max_bytes: ROW_GROUP_BYTES + MAX_ROW,
        })
    }

    /// A value of the leaf with this index.
    pub fn push(&mut self, leaf: usize, at: At, cell: Cell<'_>) -> Result<(), Failure> {
        let leaf = self.entry(leaf, at)?;
        let added = match (&mut leaf.values, cell) {
            (Values::Booleans(values), Cell::Boolean(v)) => {
                values.push(v);
                1
            }
            (Values::Int32s(values), Cell::Int32(v)) => {
                values.push(v);
                4
            }
            (Values::Int64s(values), Cell::Int64(v)) => {
                values.push(v);
                8
            }
            (Values::Floats(values), Cell::Float(v)) => {
                values.push(v);
                4
            }
            (Values::Doubles(values), Cell::Double(v)) => {
                values.push(v);
                8
            }
            (Values::Bytes(values, ends) | Values::Fixed(values, ends), Cell::Bytes(v)) => {
                values.extend_from_slice(v);
                ends.push(values.len());
                v.len() + size_of::<usize>()
            }
            (_, other) => {
                return Err(Failure::Corrupt(format!(
                    "{other:?} in a column of another type"
                )));
            }
        };
        self.bytes += added;
        Ok(())
    }

    /// No value in any of these leaves: those below a column that is null, or that holds no items.
    pub fn absent(&mut self, leaves: Range<usize>, at: At) -> Result<(), Failure> {
        leaves
            .into_iter()
            .try_for_each(|leaf| self.entry(leaf, at).map(drop))
    }

    fn entry(&mut self, leaf: usize, at: At) -> Result<&mut Leaf, Failure> {
        let leaf = self
            .leaves
            .get_mut(leaf)
            .ok_or_else(|| Failure::Corrupt("a value of no column".to_owned()))?;
        leaf.def.push(at.def);
        if leaf.nested {
            leaf.rep.push(at.rep);
        }
        self.bytes += 4;
        if self.bytes > self.max_bytes {
            let mib = MAX_ROW >> 20;
            return Err(Failure::Unsupported(format!(
                "a row of more than {mib} MiB"
            )));
        }
        Ok(leaf)
    }

    /// Ends a row.
    pub fn end_row(&mut self) -> Result<(), Failure> {
        if self.bytes >= ROW_GROUP_BYTES {
            self.write_row_group()?;
        }
        Ok(())
    }

    /// The whole file.
    pub fn finish(mut self) -> Result<Spilled, Failure> {
        if self.bytes > 0 {
            self.write_row_group()?;
        }
        let out = self.file.into_inner().map_err(failed)?;
        let spill = out
            .into_inner()
            .map_err(|e| Failure::Write(e.into_error()))?;
        Ok(spill.finish())
    }

    fn write_row_group(&mut self) -> Result<(), Failure> {
        let mut group = self.file.next_row_group().map_err(failed)?;
        for leaf in &mut self.leaves {
            leaf.write(&mut group).map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.bytes = 0;
        Ok(())
    }
}

impl Leaf {
    /// Writes the column chunk, and begins anew.
    fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let mut column = group
            .next_column()?
            .ok_or_else(|| ParquetError::General("fewer columns than the schema".to_owned()))?;
        let (def, rep) = (
            Some(self.def.as_slice()),
            self.nested.then_some(self.rep.as_slice()),
        );
        match (column.untyped(), &mut self.values) {
            (ColumnWriter::BoolColumnWriter(writer), Values::Booleans(values)) => {
                writer.write_batch(values, def, rep)?;
                values.clear();
            }
            (ColumnWriter::Int32ColumnWriter(writer), Values::Int32s(values)) => {
                writer.write_batch(values, def, rep)?;
                values.clear();
            }
            (ColumnWriter::Int64ColumnWriter(writer), Values::Int64s(values)) => {
                writer.write_batch(values, def, rep)?;
                values.clear();
            }
            (ColumnWriter::FloatColumnWriter(writer), Values::Floats(values)) => {
                writer.write_batch(values, def, rep)?;
                values.clear();
            }
            (ColumnWriter::DoubleColumnWriter(writer), Values::Doubles(values)) => {
                writer.write_batch(values, def, rep)?;
                values.clear();
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Bytes(values, ends)) => {
                let values: Vec<ByteArray> = split(std::mem::take(values), std::mem::take(ends));
                writer.write_batch(&values, def, rep)?;
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(writer), Values::Fixed(values, ends)) => {
                let values: Vec<FixedLenByteArray> =
                    split(std::mem::take(values), std::mem::take(ends));
                writer.write_batch(&values, def, rep)?;
            }
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        self.def.clear();
        self.rep.clear();
        column.close()
    }
}

fn split<T: From<ByteArray>>(values: Vec<u8>, ends: Vec<usize>) -> Vec<T> {
    let values = Bytes::from(values);
    let mut start = 0;
    ends.into_iter()
        .map(|end| {
            let value = values.slice(start..end);
            start = end;
            T::from(ByteArray::from(value))
        })
        .collect()
}

/// What decimals of a type are stored as.
#[derive(Clone, Copy, Debug)]
pub enum DecimalAs {
    Int32,
    Int64,
    /// Of 16 bytes.
    Fixed,
}

impl DecimalAs {
    /// The column of a decimal type: its physical type, and the length of it. `None` for a type that does not exist.
    pub fn of(precision: u8, scale: u8) -> Option<(Physical, DecimalAs, i32)> {
        match precision {
            _ if scale > precision => None,
            1..=9 => Some((Physical::INT32, DecimalAs::Int32, -1)),
            10..=18 => Some((Physical::INT64, DecimalAs::Int64, -1)),
            19..=38 => Some((Physical::FIXED_LEN_BYTE_ARRAY, DecimalAs::Fixed, 16)),
            _ => None,
        }
    }

    /// Pushes an unscaled value.
    pub fn push(
        self,
        unscaled: i128,
        leaf: usize,
        at: At,
        out: &mut Columns,
    ) -> Result<(), Failure> {
        match self {
            DecimalAs::Int32 => {
                let value = i32::try_from(unscaled).map_err(|_| too_wide())?;
                out.push(leaf, at, Cell::Int32(value))
            }
            DecimalAs::Int64 => {
                let value = i64::try_from(unscaled).map_err(|_| too_wide())?;
                out.push(leaf, at, Cell::Int64(value))
            }
            DecimalAs::Fixed => out.push(leaf, at, Cell::Bytes(&unscaled.to_be_bytes())),
        }
    }
}

/// A decimal that its type cannot hold.
pub fn too_wide() -> Failure {
    Failure::Corrupt("a decimal with more digits than its type".to_owned())
}

fn failed(error: ParquetError) -> Failure {
    Failure::Write(std::io::Error::other(error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::as_parquet::schema::{Field, LeafColumn, table};
    use crate::storage::Spill;

    #[test]
    fn a_row_of_very_many_nulls_is_refused_and_many_rows_are_not() {
        let field = Field {
            name: "a",
            id: None,
            optional: true,
        };
        let leaf = field.leaf(LeafColumn::text()).unwrap();
        let out = BufWriter::new(Arc::new(Spill::default()).writer().unwrap());
        let mut columns = Columns::new(table(vec![leaf], 1, "text").unwrap(), out).unwrap();
        // Room for ten nulls.
        columns.max_bytes = 40;
        let at = At { def: 0, rep: 0 };
        for _ in 0..2 {
            for _ in 0..10 {
                columns.absent(0..1, at).unwrap();
            }
            columns.write_row_group().unwrap();
        }
        for _ in 0..10 {
            columns.absent(0..1, at).unwrap();
        }
        let refused = columns.absent(0..1, at).unwrap_err();
        assert!(matches!(refused, Failure::Unsupported(_)), "{refused:?}");
    }
}
