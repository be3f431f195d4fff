//! Rows of a virtual Parquet file, as Arrow batches: any range of a row group, read once where ranges follow each other.

use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError as DecoderError;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::Type;

use super::TextError;
use super::index::{GroupRows, Strip};
use crate::parquet::{HeldChunks, ParquetError, ParquetFile};

/// Rows decoded at once: enough to make the calls cheap, few enough to stay in a processor's cache.
const BATCH_ROWS: u64 = 8192;

/// Bytes that a batch's rows take in the file at most, about; wide rows are decoded a few at a time.
const BATCH_BYTES: u64 = 8 << 20;

/// Readers kept open where they stopped. Each holds the page that it stands in of every column of its share.
const MAX_IDLE: usize = 4;

/// Decoded rows that were not taken, kept for whoever goes on with them.
const MAX_RESTS: usize = 4;

/// Threads that one share of the columns can keep busy, about: decoding takes a third of the time of rendering.
const THREADS_A_SHARE: usize = 3;

/// Columns that a share has at most. The decoder of each takes about 100 KiB for its codec, whatever the rows.
const MAX_SHARE: usize = 512;

/// How many strips before another one a reader may stand, or a claim be made, so that it is likely to come there soon.
const SOON_STRIPS: u64 = 16;

/// How long a claim waits for a reader that is likely to come, before it opens one of its own. Only speed depends on it.
const SOON: Duration = Duration::from_millis(20);

/// The rows of a virtual file.
///
/// A row group is read from its beginning by one reader, whoever renders its strips: going to a place in it costs as
/// much as reading all that lies before. So the readers are passed from thread to thread. Each thread decodes the rows
/// of its strip, gives the reader on to who decodes those of the next one, and only then writes them out as text. Where
/// there are more threads than that can keep busy, or very many columns, they are read in several shares, each by a reader of
/// its own.
pub(super) struct Rows {
    parquet: Arc<ParquetFile>,
    metadata: ArrowReaderMetadata,
    /// The columns of each share, in order.
    shares: Vec<ProjectionMask>,
    readers: Mutex<Readers>,
    /// A claim has ended.
    passed: Condvar,
}

#[derive(Default)]
struct Readers {
    idle: Vec<RowReader>,
    claims: Vec<Claim>,
    /// Of a row group, from a row on.
    rests: Vec<(usize, u64, Decoded)>,
}

/// Rows that somebody decodes, or wants to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    group: usize,
    share: usize,
    /// In the row group.
    start: u64,
    end: u64,
}

/// Decoded rows.
#[derive(Clone, Debug)]
pub(super) struct Decoded {
    /// In the order of the schema, all of the same length.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
}

impl Decoded {
    /// Without the first rows; nothing where these are all.
    fn behind(&self, first: usize) -> Option<Decoded> {
        let rows = self.rows.checked_sub(first).filter(|rows| *rows > 0)?;
        let columns = self.columns.iter().map(|column| column.slice(first, rows));
        let columns = columns.collect();
        Some(Decoded { columns, rows })
    }
}

/// Reads the rows of a row group onward from a place.
struct RowReader {
    group: usize,
    share: usize,
    /// The row that comes next, in the row group.
    next: u64,
    batches: ParquetRecordBatchReader,
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
    /// Reads the footer. So many threads will render.
    pub(super) fn open(parquet: Arc<ParquetFile>, threads: usize) -> Result<Rows, TextError> {
        let failure = Arc::new(Failure::default());
        let file = VirtualFile {
            file: Arc::clone(&parquet),
            held: Arc::default(),
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
        let schema = metadata.metadata().file_metadata().schema_descr();
        let columns = schema.root_schema().get_fields().len();
        let in_share = columns.div_ceil(threads.div_ceil(THREADS_A_SHARE).clamp(1, columns.max(1)));
        let in_share = in_share.min(MAX_SHARE);
        let starts = (0..columns).step_by(in_share.max(1));
        let shares = starts.map(|start| {
            let end = (start + in_share).min(columns);
            ProjectionMask::roots(schema, start..end)
        });
        let shares = shares.collect();
        Ok(Rows {
            parquet,
            metadata,
            shares,
            readers: Mutex::default(),
            passed: Condvar::new(),
        })
    }

    pub(super) fn metadata(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }

    /// How each row group is cut into strips: what is decoded at once.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupRows> {
        self.metadata.metadata().row_groups().iter().map(|group| {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            let bytes = u64::try_from(group.total_byte_size()).unwrap_or(0);
            let width = (bytes / rows.max(1)).max(1);
            let strip = (BATCH_BYTES / width).clamp(1, BATCH_ROWS);
            GroupRows { rows, strip }
        })
    }

    /// Decodes the rows of a strip from `first` on and hands them to `take`, which says how many of them it took. Gives
    /// the row after those.
    pub(super) fn read(
        &self,
        strip: &Strip,
        first: u64,
        take: impl FnOnce(&Decoded) -> Result<usize, String>,
    ) -> Result<u64, TextError> {
        let group = strip.group;
        let decoded = match self.rest(group, first) {
            Some(rest) => rest,
            None => {
                // Readers stand at the beginnings of strips only.
                let decoded = self.decode_strip(strip)?;
                let before = first.saturating_sub(strip.rows.start);
                let before = usize::try_from(before).unwrap_or(usize::MAX);
                decoded.behind(before).ok_or(TextError::Changed)?
            }
        };
        let taken = Failure::default().guard(Some(group), || take(&decoded))?;
        let next = first + u64::try_from(taken).unwrap_or(0);
        if let Some(rest) = decoded.behind(taken) {
            self.keep_rest(group, next, rest);
        }
        Ok(next)
    }

    fn decode_strip(&self, strip: &Strip) -> Result<Decoded, TextError> {
        let Range { start, end } = strip.rows;
        let mut decoded = Decoded {
            columns: Vec::new(),
            rows: usize::try_from(end - start).unwrap_or(usize::MAX),
        };
        for share in 0..self.shares.len() {
            let group = strip.group;
            let claim = Claim {
                group,
                share,
                start,
                end,
            };
            decoded.columns.extend(self.decode(claim)?);
        }
        Ok(decoded)
    }

    fn lock(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rest(&self, group: usize, row: u64) -> Option<Decoded> {
        let mut readers = self.lock();
        let rests = &mut readers.rests;
        let there = rests
            .iter()
            .position(|(g, next, _)| (*g, *next) == (group, row));
        there.map(|index| rests.swap_remove(index).2)
    }

    fn keep_rest(&self, group: usize, next: u64, rest: Decoded) {
        let mut readers = self.lock();
        let rests = &mut readers.rests;
        let oldest = (rests.len() >= MAX_RESTS).then(|| rests.remove(0));
        rests.push((group, next, rest));
        drop(readers);
        drop(oldest);
    }

    /// Decodes a share of the columns.
    fn decode(&self, claim: Claim) -> Result<Vec<ArrayRef>, TextError> {
        let mut turn = self.claim(claim);
        let mut reader = match turn.reader.take() {
            Some(reader) => reader,
            None => self.new_reader(claim)?,
        };
        let columns = reader.read(claim.end)?;
        let rows = self.groups().nth(claim.group).map_or(0, |group| group.rows);
        turn.reader = (claim.end < rows).then_some(reader);
        Ok(columns)
    }

    /// Waits for the reader that comes to the rows, if one does.
    fn claim(&self, claim: Claim) -> Turn<'_> {
        let mut readers = self.lock();
        readers.claims.push(claim);
        let mut patience = true;
        loop {
            let is_there = |reader: &RowReader| {
                (reader.group, reader.share, reader.next) == (claim.group, claim.share, claim.start)
            };
            if let Some(index) = readers.idle.iter().position(is_there) {
                let reader = Some(readers.idle.remove(index));
                return Turn {
                    rows: self,
                    claim,
                    reader,
                };
            }
            let same = |group, share| (group, share) == (claim.group, claim.share);
            if readers
                .claims
                .iter()
                .any(|c| same(c.group, c.share) && c.end == claim.start)
            {
                readers = self
                    .passed
                    .wait(readers)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let soon = SOON_STRIPS * (claim.end - claim.start);
            let is_near = |at: u64| at < claim.start && claim.start - at <= soon;
            let mut claims = readers.claims.iter();
            let mut idle = readers.idle.iter();
            let comes = claims.any(|c| same(c.group, c.share) && is_near(c.end))
                || idle.any(|r| same(r.group, r.share) && is_near(r.next));
            if !(comes && patience) {
                let reader = None;
                return Turn {
                    rows: self,
                    claim,
                    reader,
                };
            }
            let (guard, waited) = self
                .passed
                .wait_timeout(readers, SOON)
                .unwrap_or_else(PoisonError::into_inner);
            readers = guard;
            patience = !waited.timed_out();
        }
    }

    fn new_reader(&self, claim: Claim) -> Result<RowReader, TextError> {
        let Claim {
            group,
            share,
            start: row,
            ..
        } = claim;
        let failure = Arc::new(Failure::default());
        let file = VirtualFile {
            file: Arc::clone(&self.parquet),
            held: Arc::default(),
            failure: Arc::clone(&failure),
        };
        let size = |n: u64| usize::try_from(n).map_err(|_| format!("{n} rows"));
        let batches = failure.guard(Some(group), || {
            let rows = self.groups().nth(group).ok_or("it is missing")?;
            let columns = self.shares.get(share).ok_or("a column is missing")?;
            if let Some(footer) = self.metadata.metadata().row_groups().get(group) {
                let chunks = footer.columns().iter().enumerate();
                let ranges = chunks.filter(|(leaf, _)| columns.leaf_included(*leaf));
                let ranges: Vec<_> = ranges
                    .map(|(_, chunk)| chunk.byte_range())
                    .map(|(start, len)| start..start.saturating_add(len))
                    .collect();
                self.parquet.prefetch(&ranges);
            }
            let selection = [
                RowSelector::skip(size(row)?),
                RowSelector::select(size(rows.rows.saturating_sub(row))?),
            ];
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(columns.clone())
                .with_row_selection(RowSelection::from(selection.to_vec()))
                .with_batch_size(size(rows.strip)?)
                .build()
                .map_err(|error| error.to_string())
        })?;
        Ok(RowReader {
            group,
            share,
            next: row,
            batches,
            failure,
        })
    }
}

/// A claim until it ends, and the reader that stands before its rows or behind them.
struct Turn<'a> {
    rows: &'a Rows,
    claim: Claim,
    reader: Option<RowReader>,
}

impl Drop for Turn<'_> {
    /// Passes the reader on, if there is one, and lets those go on who wait for it in any case.
    fn drop(&mut self) {
        let mut readers = self.rows.lock();
        let claims = &mut readers.claims;
        if let Some(index) = claims.iter().position(|claim| *claim == self.claim) {
            claims.swap_remove(index);
        }
        let mut dropped = None;
        if let Some(reader) = self.reader.take() {
            let idle = &mut readers.idle;
            dropped = (idle.len() >= MAX_IDLE * self.rows.shares.len()).then(|| idle.remove(0));
            idle.push(reader);
        }
        self.rows.passed.notify_all();
        drop(readers);
        drop(dropped);
    }
}

impl RowReader {
    /// The next rows, up to row `end`.
    fn read(&mut self, end: u64) -> Result<Vec<ArrayRef>, TextError> {
        let batches = &mut self.batches;
        let wanted = usize::try_from(end.saturating_sub(self.next)).unwrap_or(usize::MAX);
        let columns = self.failure.guard(Some(self.group), || {
            let mut read: Vec<RecordBatch> = Vec::new();
            let mut rows = 0;
            while rows < wanted {
                let batch = batches
                    .next()
                    .ok_or("it has fewer rows than the footer says")?;
                let batch = batch.map_err(|error| error.to_string())?;
                rows += batch.num_rows();
                read.push(batch);
            }
            if rows > wanted {
                return Err("the decoder gives other rows than it was asked for".to_owned());
            }
            match &*read {
                [batch] => Ok(batch.columns().to_vec()),
                _ => {
                    let batch = concat_batches(&batches.schema(), &read);
                    Ok(batch.map_err(|error| error.to_string())?.columns().to_vec())
                }
            }
        })?;
        self.next = end;
        Ok(columns)
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
    held: Arc<HeldChunks>,
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
        let read = self.file.read_holding(start, buffer, Some(&self.held));
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
