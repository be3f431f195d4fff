//! Reads flat columns of Parquet files as values, through the `parquet` crate: delete files, and the key columns that
//! equality deletes are matched on.
//!
//! This is the one place where that crate decodes bytes of a table. It may panic on hostile ones, so every call into it
//! is guarded: a panic becomes an error about the file. Memory is bounded by reading [`BATCH_ROWS`] rows at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use crate::storage::chunk_reader::SourceReader;
use crate::storage::{SourceFile, StorageError};

use super::RowsError;
use super::file_schema::{Annotation, FileNode, FileSchema, NodeId, Physical};

mod deltas;
mod levels;
mod schema;
mod words;

use deltas::DeltasAsPlain;
use levels::KnownLevels;

#[cfg(test)]
pub use schema::file_schema;

/// Rows decoded at once: enough to make the calls cheap, few enough to stay in a processor's cache.
pub const BATCH_ROWS: usize = 8192;

/// An open Parquet file.
#[derive(Debug)]
pub struct ParquetReader {
    path: String,
    source: Arc<SourceReader>,
    metadata: ParquetMetaData,
    schema: FileSchema,
}

impl ParquetReader {
    /// Reads the footer of an open file.
    ///
    /// # Errors
    /// The file cannot be read, or its footer breaks the format.
    pub fn new(file: Arc<SourceFile>) -> Result<ParquetReader, RowsError> {
        let path = file.path().to_owned();
        let source = Arc::new(SourceReader::new(file));
        let (metadata, schema) = guarded(&path, || {
            let metadata = ParquetMetaDataReader::new().parse_and_finish(source.as_ref())?;
            let schema = schema::file_schema(metadata.file_metadata().schema_descr())
                .map_err(ParquetError::General)?;
            Ok((metadata, schema))
        })?;
        Ok(ParquetReader {
            path,
            source,
            metadata,
            schema,
        })
    }

    /// The file's schema.
    pub fn schema(&self) -> &FileSchema {
        &self.schema
    }

    /// Rows of each row group.
    pub fn row_groups(&self) -> Result<Vec<u64>, RowsError> {
        let rows = |rows: i64| {
            u64::try_from(rows)
                .map_err(|_| RowsError::corrupt(&self.path, format!("a row group of {rows} rows")))
        };
        self.metadata
            .row_groups()
            .iter()
            .map(|group| rows(group.num_rows()))
            .collect()
    }

    /// The least and greatest value, or what is below and above them, of a leaf column of signed integers in one row group;
    /// `None` where the file does not say, or some row may be null.
    pub fn bounds(&self, row_group: usize, node: NodeId) -> Option<(i64, i64)> {
        let node = self.schema.get(node)?;
        if matches!(node.annotation, Annotation::Integer { signed: false, .. }) {
            return None;
        }
        let group = self.metadata.row_groups().get(row_group)?;
        let statistics = group.columns().get(node.leaf?.column)?.statistics()?;
        let no_nulls = node.max_def == 0 || statistics.null_count_opt() == Some(0);
        if !no_nulls || statistics.is_min_max_deprecated() {
            return None;
        }
        match statistics {
            Statistics::Int32(of) => Some(((*of.min_opt()?).into(), (*of.max_opt()?).into())),
            Statistics::Int64(of) => Some((*of.min_opt()?, *of.max_opt()?)),
            _ => None,
        }
    }

    /// A leaf of this struct, whose [`Batch::presence`] tells in which rows of one row group the struct is present.
    ///
    /// # Errors
    /// As [`ParquetReader::column`]; and where all leaves of the struct repeat.
    pub fn presence(&self, row_group: usize, group: NodeId) -> Result<LeafReader, RowsError> {
        let struct_and_leaf = self.schema.get(group).zip(self.schema.leaf_below(group));
        let (group, leaf) = struct_and_leaf.ok_or_else(|| {
            let feature =
                "equality deletes on a column that was added to a struct of lists and maps";
            RowsError::unsupported(&self.path, feature)
        })?;
        let reader = self.column(row_group, leaf)?;
        Ok(LeafReader {
            present_from: group.max_def,
            ..reader
        })
    }

    /// A leaf column of one row group.
    ///
    /// # Errors
    /// The column repeats, lies in another file, or cannot be read.
    pub fn column(&self, row_group: usize, node: NodeId) -> Result<LeafReader, RowsError> {
        let chunk = self.chunk(row_group, node)?;
        let reader = guarded(&self.path, || {
            Ok(get_column_reader(chunk.column, chunk.pages))
        })?;
        Ok(LeafReader {
            path: self.path.clone(),
            name: chunk.node.name.clone(),
            annotation: chunk.node.annotation,
            max_def: chunk.node.max_def,
            present_from: chunk.node.max_def,
            left: chunk.rows,
            levels: Vec::new(),
            reader,
        })
    }

    /// The pages of a leaf column of one row group.
    fn chunk(&self, row_group: usize, node: NodeId) -> Result<Chunk<'_>, RowsError> {
        let corrupt = |reason: &str| RowsError::corrupt(&self.path, reason);
        let leaf = self
            .schema
            .get(node)
            .and_then(|node| Some((node, node.leaf?)));
        let Some((node, leaf)) = leaf.filter(|(node, _)| node.max_rep == 0) else {
            return Err(corrupt(
                "a column that must hold one value a row is a group or repeats",
            ));
        };
        let group = self
            .metadata
            .row_groups()
            .get(row_group)
            .ok_or_else(|| corrupt("a row group is missing"))?;
        let chunk = group
            .columns()
            .get(leaf.column)
            .ok_or_else(|| corrupt("a row group lacks a column"))?;
        if chunk.file_path().is_some() {
            return Err(RowsError::unsupported(
                &self.path,
                "a column chunk in another file",
            ));
        }
        let rows = usize::try_from(group.num_rows())
            .map_err(|_| corrupt("a row group has an impossible size"))?;
        let pages = guarded(&self.path, || -> Result<Box<dyn PageReader>, _> {
            let (start, len) = chunk.byte_range();
            let source = Arc::new(self.source.within(start..start.saturating_add(len)));
            let pages = KnownLevels {
                pages: SerializedPageReader::new(source, chunk, rows, None)?,
                max_def: node.max_def,
            };
            Ok(match leaf.physical {
                Physical::Int32 => Box::new(DeltasAsPlain {
                    pages,
                    max_def: node.max_def,
                }),
                _ => Box::new(pages),
            })
        })?;
        Ok(Chunk {
            node,
            column: chunk.column_descr_ptr(),
            rows,
            pages,
        })
    }
}

/// A leaf column of one row group, nothing of it read.
struct Chunk<'a> {
    node: &'a FileNode,
    column: ColumnDescPtr,
    rows: usize,
    pages: Box<dyn PageReader>,
}

/// Reads one column of one row group, in order.
pub struct LeafReader {
    path: String,
    name: String,
    annotation: Annotation,
    max_def: u16,
    /// The definition level from which on a row counts as present.
    present_from: u16,
    /// Rows not yet read.
    left: usize,
    levels: Vec<i16>,
    reader: ColumnReader,
}

/// Some rows of a column.
pub struct Batch<'a> {
    /// Rows in the batch.
    pub rows: usize,
    /// What the column's values are said to be.
    pub annotation: Annotation,
    /// The definition level of each row; empty where the column is required.
    levels: &'a [i16],
    present_from: u16,
    /// The values of the rows that have one, in order.
    pub values: Values,
}

impl Batch<'_> {
    /// Whether every row has a value.
    pub fn is_dense(&self) -> bool {
        self.values.len() == self.rows
    }

    /// Whether each row has a value (or its struct has, see [`ParquetReader::presence`]), in order.
    pub fn presence(&self) -> impl Iterator<Item = bool> + '_ {
        let required = self.levels.is_empty();
        let present_from = self.present_from;
        let level = move |row: usize| {
            self.levels
                .get(row)
                .copied()
                .and_then(|level| u16::try_from(level).ok())
        };
        (0..self.rows).map(move |row| required || level(row) >= Some(present_from))
    }
}

/// Values of one physical type.
pub enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    ByteArray(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Boolean(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Int96(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::ByteArray(values) => values.len(),
            Values::Fixed(values) => values.len(),
        }
    }
}

impl LeafReader {
    /// The next [`BATCH_ROWS`] rows, or what is left of the row group; `None` at its end. All columns of a row group
    /// give their rows in the same batches.
    ///
    /// # Errors
    /// Bytes that break the format, and a column that ends before its row group does.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, RowsError> {
        let want = self.left.min(BATCH_ROWS);
        if want == 0 {
            return Ok(None);
        }
        self.levels.clear();
        let levels = &mut self.levels;
        let (rows, values) = guarded(&self.path, || {
            Ok(match &mut self.reader {
                ColumnReader::BoolColumnReader(reader) => {
                    read(reader, want, levels, Values::Boolean)?
                }
                ColumnReader::Int32ColumnReader(reader) => {
                    read(reader, want, levels, Values::Int32)?
                }
                ColumnReader::Int64ColumnReader(reader) => {
                    read(reader, want, levels, Values::Int64)?
                }
                ColumnReader::FloatColumnReader(reader) => {
                    read(reader, want, levels, Values::Float)?
                }
                ColumnReader::DoubleColumnReader(reader) => {
                    read(reader, want, levels, Values::Double)?
                }
                ColumnReader::ByteArrayColumnReader(reader) => {
                    read(reader, want, levels, Values::ByteArray)?
                }
                ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                    read(reader, want, levels, Values::Fixed)?
                }
                ColumnReader::Int96ColumnReader(reader) => {
                    read(reader, want, levels, Values::Int96)?
                }
            })
        })?;
        let complete = rows == want && (self.max_def == 0 || self.levels.len() == rows);
        if !complete || (self.max_def == 0 && values.len() != rows) {
            return Err(RowsError::corrupt(
                &self.path,
                format!("column {:?} ends before its row group", self.name),
            ));
        }
        self.left -= rows;
        let levels = if self.max_def == 0 {
            &[]
        } else {
            self.levels.as_slice()
        };
        Ok(Some(Batch {
            rows,
            annotation: self.annotation,
            levels,
            present_from: self.present_from,
            values,
        }))
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Vec<i16>,
    wrap: impl FnOnce(Vec<T::T>) -> Values,
) -> Result<(usize, Values), ParquetError> {
    let mut values = Vec::with_capacity(rows);
    let (read, _, _) = reader.read_records(rows, Some(levels), None, &mut values)?;
    Ok((read, wrap(values)))
}

/// Runs code of the `parquet` crate over bytes of a table.
fn guarded<T>(
    path: &str,
    decode: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, RowsError> {
    // What the closure was working on is not used again after a panic: the error ends the reading of the file.
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(rows_error(path, error)),
        Err(_) => Err(RowsError::corrupt(
            path,
            "not a readable Parquet file (the decoder gave up)",
        )),
    }
}

fn rows_error(path: &str, error: ParquetError) -> RowsError {
    match error {
        ParquetError::External(source) => match source.downcast::<StorageError>() {
            Ok(storage) => RowsError::Storage(*storage),
            Err(other) => RowsError::corrupt(path, other.to_string()),
        },
        ParquetError::NYI(feature) => RowsError::unsupported(path, feature),
        other => RowsError::corrupt(path, other.to_string()),
    }
}
