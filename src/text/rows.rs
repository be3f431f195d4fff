//! Rows of a virtual Parquet file, as Arrow batches: any range of a row group, read once where ranges follow each other.

use std::io::{self, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError as DecoderError;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::Type;

use super::TextError;
use crate::parquet::{ParquetError, ParquetFile};

/// Rows decoded at once: enough to make the calls cheap, few enough to stay in a processor's cache.
const BATCH_ROWS: u64 = 8192;

/// Bytes that a batch's rows take in the file at most, about; wide rows are decoded a few at a time.
const BATCH_BYTES: u64 = 8 << 20;

/// Readers kept open where they stopped. Each holds the page that it stands in of every column.
const MAX_IDLE: usize = 3;

/// The rows of a virtual file.
pub(super) struct Rows {
    parquet: Arc<ParquetFile>,
    metadata: ArrowReaderMetadata,
    idle: Mutex<Vec<RowReader>>,
}

/// Reads the rows of a row group onward from a place.
pub(super) struct RowReader {
    group: usize,
    /// The row that comes next, in the row group.
    next: u64,
    batches: ParquetRecordBatchReader,
    /// Decoded and not taken.
    rest: Option<RecordBatch>,
    failure: Arc<Failure>,
}

/// Why a read for the decoder failed: it passes on no more than the message.
#[derive(Debug, Default)]
struct Failure(Mutex<Option<ParquetError>>);

impl Failure {
    fn note(&self, error: ParquetError) -> io::Error {
        let message = error.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        io::Error::other(message)
    }

    /// Runs the decoder. It may panic on bytes that it does not expect.
    fn guard<T>(
        &self,
        group: Option<usize>,
        decode: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, TextError> {
        let outcome = catch_unwind(AssertUnwindSafe(decode));
        let reason = match outcome {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(reason)) => reason,
            Err(_) => "not readable (the decoder gave up)".to_owned(),
        };
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(match (noted, group) {
            (Some(error), _) => error.into(),
            (None, Some(group)) => TextError::RowGroup { group, reason },
            (None, None) => TextError::Footer(reason),
        })
    }
}

impl Rows {
    /// Reads the footer.
    pub(super) fn open(parquet: Arc<ParquetFile>) -> Result<Rows, TextError> {
        let failure = Arc::new(Failure::default());
        let file = VirtualFile {
            file: Arc::clone(&parquet),
            failure: Arc::clone(&failure),
        };
        let text = |error: DecoderError| error.to_string();
        let metadata = failure.guard(None, || {
            let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
            let metadata = metadata.map_err(text)?;
            let root = metadata.metadata().file_metadata().schema_descr();
            let narrowed = Arc::new(narrowed(metadata.schema(), root.root_schema()));
            let narrowed = ArrowReaderOptions::new().with_schema(narrowed);
            ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), narrowed).map_err(text)
        })?;
        Ok(Rows {
            parquet,
            metadata,
            idle: Mutex::default(),
        })
    }

    pub(super) fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// A reader that stands before a row of a row group: one that has come there, or a new one.
    pub(super) fn reader(&self, group: usize, row: u64) -> Result<RowReader, TextError> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let there = idle
            .iter()
            .position(|reader| reader.group == group && reader.next == row);
        if let Some(index) = there {
            return Ok(idle.remove(index));
        }
        drop(idle);
        self.new_reader(group, row)
    }

    /// Keeps a reader for whoever goes on where it stopped.
    pub(super) fn put_back(&self, reader: RowReader) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (idle.len() >= MAX_IDLE).then(|| idle.remove(0));
        idle.push(reader);
        drop(idle);
        drop(oldest);
    }

    fn new_reader(&self, group: usize, row: u64) -> Result<RowReader, TextError> {
        let failure = Arc::new(Failure::default());
        let file = VirtualFile {
            file: Arc::clone(&self.parquet),
            failure: Arc::clone(&failure),
        };
        let size = |n: u64| usize::try_from(n).map_err(|_| format!("{n} rows"));
        let batches = failure.guard(Some(group), || {
            let footer = self.metadata.metadata().row_groups().get(group);
            let footer = footer.ok_or("it is missing")?;
            let rows = u64::try_from(footer.num_rows()).unwrap_or(0);
            let bytes = u64::try_from(footer.total_byte_size()).unwrap_or(0);
            let width = (bytes / rows.max(1)).max(1);
            let batch = (BATCH_BYTES / width).clamp(1, BATCH_ROWS);
            let selection = [
                RowSelector::skip(size(row)?),
                RowSelector::select(size(rows.saturating_sub(row))?),
            ];
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_row_selection(RowSelection::from(selection.to_vec()))
                .with_batch_size(size(batch)?)
                .build()
                .map_err(|error| error.to_string())
        })?;
        Ok(RowReader {
            group,
            next: row,
            batches,
            rest: None,
            failure,
        })
    }
}

impl RowReader {
    /// The row that comes next, in the row group.
    pub(super) fn next_row(&self) -> u64 {
        self.next
    }

    /// Hands the next rows, before row `end`, to `take`, which says how many of them it took.
    pub(super) fn read(
        &mut self,
        end: u64,
        take: impl FnOnce(&RecordBatch) -> Result<usize, String>,
    ) -> Result<(), TextError> {
        let RowReader { batches, rest, .. } = self;
        let left = usize::try_from(end.saturating_sub(self.next)).unwrap_or(usize::MAX);
        let (taken, rest) = self.failure.guard(Some(self.group), || {
            let batch = match rest.take() {
                Some(batch) => batch,
                None => match batches.next() {
                    Some(batch) => batch.map_err(|error| error.to_string())?,
                    None => return Err("it has fewer rows than the footer says".to_owned()),
                },
            };
            let len = batch.num_rows();
            let taken = take(&batch.slice(0, len.min(left)))?;
            let rest = (taken < len).then(|| batch.slice(taken, len - taken));
            Ok((taken, rest))
        })?;
        self.rest = rest;
        self.next += u64::try_from(taken).unwrap_or(0);
        Ok(())
    }
}

/// The schema with what the decoder need not copy or widen: views in place of strings and bytes, and decimals of 64
/// bits where they are stored as integers.
fn narrowed(schema: &Schema, root: &Type) -> Schema {
    let field = |(field, node): (&Arc<Field>, &Arc<Type>)| {
        let integer = node.is_primitive()
            && matches!(
                node.get_physical_type(),
                PhysicalType::INT32 | PhysicalType::INT64
            );
        let ty = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            DataType::Binary => DataType::BinaryView,
            DataType::Decimal128(precision, scale) if integer => {
                DataType::Decimal64(*precision, *scale)
            }
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(ty))
    };
    let fields = schema.fields().iter().zip(root.get_fields());
    let fields: Vec<Arc<Field>> = fields.map(field).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// A virtual file as the `parquet` crate reads one.
#[derive(Clone)]
struct VirtualFile {
    file: Arc<ParquetFile>,
    failure: Arc<Failure>,
}

impl Length for VirtualFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for VirtualFile {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> Result<Self::T, DecoderError> {
        let cursor = Cursor {
            file: self.clone(),
            position: start,
        };
        // Page headers are read this way, which are short.
        Ok(BufReader::with_capacity(512, cursor))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, DecoderError> {
        let end = u64::try_from(length)
            .ok()
            .and_then(|len| start.checked_add(len));
        if end.is_none_or(|end| end > self.len()) {
            let reason = format!("{length} bytes at {start} lie behind the end");
            return Err(DecoderError::EOF(reason));
        }
        let mut bytes = vec![0; length];
        self.read(start, &mut bytes)?;
        Ok(bytes.into())
    }
}

impl VirtualFile {
    fn read(&self, start: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(start, buffer);
        read.map_err(|error| self.failure.note(error))
    }
}

/// Reads a virtual file onward from a position, to its end.
struct Cursor {
    file: VirtualFile,
    position: u64,
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(self.position, buffer)?;
        self.position += u64::try_from(read).unwrap_or(0);
        Ok(read)
    }
}
