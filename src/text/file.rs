//! A text that is open: its bytes are rendered when they are read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use super::columns::{Column, Shape, shapes};
use super::csv::{self, CsvWriter};
use super::index::{
    Found, GroupRows, Index, Kept, Location, Piece, PieceId, Strip, Unwritten, check_rows,
};
use super::json::JsonWriter;
use super::kept::Contents;
use super::rows::{Decoded, Rows};
use super::sizing::{Sizing, SizingTask};
use super::spill::{Home, SpilledText};
use super::values::BadCell;
use super::{Engine, Format, PIECE_BYTES, TextError};
use crate::cache::CacheKey;
use crate::parquet::ParquetFile;

/// Strips that are rendered ahead of a reader in a row, for each thread.
const AHEAD_STRIPS: usize = 8;

/// Bytes behind the last known piece that a reader renders itself; farther away it waits for the sizing.
const NEAR: u64 = 2 * PIECE_BYTES as u64;

/// What is known of a text for good: where its pieces begin, and so its size. Small; kept as long as its view.
#[derive(Debug)]
pub struct Text {
    format: Format,
    /// Tells the text's pieces in the cache from those of every other.
    number: u64,
    index: OnceLock<Arc<Index>>,
    sizing: Mutex<Option<Arc<Sizing>>>,
    home: Home,
}

impl Text {
    /// A text of which nothing is known.
    pub fn new(format: Format) -> Text {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Text {
            format,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            index: OnceLock::new(),
            sizing: Mutex::default(),
            home: Home::default(),
        }
    }

    /// Bytes, once the text has been sized.
    pub fn len(&self) -> Option<u64> {
        self.index.get()?.total()
    }

    /// Whether the text is known to have no byte: JSON lines of no row.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// A view's text, over its virtual Parquet file.
pub struct TextFile {
    text: Arc<Text>,
    engine: Arc<Engine>,
    index: Arc<Index>,
    rows: Rows,
    columns: Vec<(String, Shape)>,
    header: Vec<u8>,
    json: JsonWriter,
    /// What is kept on disk.
    contents: Option<Contents>,
    /// Whether the index is, or somebody is at it.
    saved: AtomicBool,
}

impl std::fmt::Debug for TextFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextFile")
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// Where a reader is, to see whether it reads on and on.
#[derive(Debug, Default)]
pub struct Cursor(Mutex<Progress>);

#[derive(Debug, Default)]
struct Progress {
    /// The strip that was read last.
    strip: usize,
    /// The strips before this one are rendered, or will be.
    ahead: usize,
}

/// What is handed to those who asked for a piece.
enum Rendered {
    Bytes(Bytes),
    /// It lies in a file, by the index.
    Kept,
}

/// The weight of what the cache should not keep.
const NOT_KEPT: usize = usize::MAX;

impl TextFile {
    /// Opens a text over the view's virtual file, whose footer is read.
    pub fn open(
        text: &Arc<Text>,
        parquet: Arc<ParquetFile>,
        engine: &Arc<Engine>,
    ) -> Result<TextFile, TextError> {
        let rows = Rows::open(Arc::clone(&parquet), engine.pool().threads())?;
        let metadata = rows.metadata();
        let root = metadata.metadata().file_metadata().schema_descr();
        let columns = shapes(root.root_schema(), metadata.schema())?;
        let names = || columns.iter().map(|(name, _)| name.as_str());
        let header = match text.format {
            Format::Csv => csv::header(names()),
            Format::JsonLines => Vec::new(),
        };
        let json = JsonWriter::new(names());
        let groups: Vec<GroupRows> = rows.groups().collect();
        check_rows(&groups)?;
        let contents = Contents::of(engine, text.format, &parquet, groups.len())?;
        let new = || {
            let header = u64::try_from(header.len()).unwrap_or(0);
            Arc::new(Index::new(header, groups.iter().copied()))
        };
        let fresh = new();
        let index = text.index.get_or_init(|| {
            let known = new();
            let restored = contents.as_ref().is_some_and(|c| c.restore(engine, &known));
            if restored { known } else { Arc::clone(&fresh) }
        });
        if index.strips() != fresh.strips() {
            return Err(TextError::Changed);
        }
        Ok(TextFile {
            text: Arc::clone(text),
            engine: Arc::clone(engine),
            index: Arc::clone(index),
            rows,
            columns,
            header,
            json,
            saved: AtomicBool::new(contents.is_none() || index.total().is_some()),
            contents,
        })
    }

    /// Bytes of memory, about, without the index and the virtual file.
    pub fn weight(&self) -> usize {
        self.rows.metadata().metadata().memory_size() + self.header.len()
    }

    /// Bytes, once the text has been sized.
    pub fn len(&self) -> Option<u64> {
        self.index.total()
    }

    /// Whether the text is known to have no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn count_sized(&self) {
        self.engine.counters.texts_sized.add(1);
    }

    /// The sizing of this text, begun by the first who asks. The caller is one of those who wait for it.
    pub fn size(self: &Arc<Self>) -> Arc<Sizing> {
        let slot = &self.text.sizing;
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sizing) = slot.as_ref().filter(|sizing| sizing.join()) {
            return Arc::clone(sizing);
        }
        let sizing = Arc::new(Sizing::default());
        sizing.join();
        *slot = Some(Arc::clone(&sizing));
        drop(slot);
        match self.index.total() {
            Some(total) => sizing.end(Ok(total)),
            None => {
                let task = SizingTask::new(Arc::clone(self), Arc::clone(&sizing));
                self.engine.pool().run(Arc::new(task));
            }
        }
        sizing
    }

    /// Whether what lies at an offset is known or comes soon, so that a read there need not wait for the sizing.
    pub fn is_near(&self, offset: u64) -> bool {
        self.len().is_some() || offset <= self.index.known().saturating_add(NEAR)
    }

    /// Fills `buffer` from `offset`; fewer bytes than asked only at the end of the text.
    pub fn read_at(
        self: &Arc<Self>,
        offset: u64,
        buffer: &mut [u8],
        cursor: &Cursor,
    ) -> Result<usize, TextError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(u64::try_from(filled).unwrap_or(0));
            match self.index.locate(at) {
                Location::End => break,
                Location::Header => filled += copy(&self.header, at, rest),
                Location::Piece { id, inside } => {
                    self.look_ahead(id.strip, cursor);
                    filled += self.read_piece(id, inside, rest)?;
                }
                Location::Unknown { id } => {
                    self.look_ahead(id.strip, cursor);
                    self.piece(id, true)?;
                }
            }
        }
        Ok(filled)
    }

    fn read_piece(&self, id: PieceId, inside: u64, out: &mut [u8]) -> Result<usize, TextError> {
        let Found::Known(piece) = self.index.find(id) else {
            return Err(TextError::Changed);
        };
        match &piece.kept {
            Kept::No => {}
            Kept::Unwritten(text) => return Ok(copy(text, inside, out)),
            Kept::InFile(place) => {
                let left = usize::try_from(piece.len.saturating_sub(inside)).unwrap_or(usize::MAX);
                let len = left.min(out.len());
                if place.read(inside, out.get_mut(..len).unwrap_or_default()) {
                    return Ok(len);
                }
                // It is rendered again, also where the file is there and does not give its bytes.
                self.index.lost(id, place);
            }
        }
        match &*self.piece(id, true)? {
            Rendered::Bytes(bytes) => Ok(copy(bytes, inside, out)),
            // Rendered again meanwhile: it is found at the next look.
            Rendered::Kept => Ok(0),
        }
    }

    /// Has the strips behind one rendered, for a reader that goes from strip to strip.
    fn look_ahead(self: &Arc<Self>, strip: usize, cursor: &Cursor) {
        let pool = self.engine.pool();
        let mut progress = cursor.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut progress.strip, strip);
        if strip == before {
            return;
        }
        if strip != before + 1 {
            progress.ahead = strip + 1;
            return;
        }
        let wanted = (strip + 1 + pool.threads() * AHEAD_STRIPS).min(self.index.strips().len());
        progress.ahead = progress.ahead.max(strip + 1);
        while progress.ahead < wanted {
            let strip = progress.ahead;
            progress.ahead += 1;
            if !self.index.is_at_hand(strip) {
                let file = Arc::clone(self);
                pool.run_ahead(Box::new(move || file.render_ahead(strip)));
            }
        }
    }

    fn render_ahead(&self, strip: usize) {
        let mut id = PieceId { strip, number: 0 };
        while !self.index.is_at_hand(strip) && !matches!(self.index.find(id), Found::None) {
            if self.piece(id, true).is_err() {
                // Whoever reads it learns why.
                return;
            }
            id.number += 1;
        }
    }

    /// Renders the pieces of a strip that are not known yet.
    pub(super) fn render_strip(&self, strip: usize) -> Result<(), TextError> {
        let mut id = PieceId { strip, number: 0 };
        loop {
            match self.index.find(id) {
                Found::None => return Ok(()),
                Found::Known(_) => {}
                Found::Next(_) => drop(self.piece(id, false)?),
            }
            id.number += 1;
        }
    }

    fn piece_key(&self, id: PieceId) -> CacheKey {
        CacheKey {
            kind: "text",
            id: format!("{} {} {}", self.text.number, id.strip, id.number),
        }
    }

    /// A piece, rendered or found. `read`: somebody reads it now or soon, so it is kept in memory where it cannot be
    /// kept in a file.
    fn piece(&self, id: PieceId, read: bool) -> Result<Arc<Rendered>, TextError> {
        self.engine.cache.get_or_make(self.piece_key(id), || {
            let first = match self.index.find(id) {
                Found::Known(piece) if piece.kept.is_at_hand() => {
                    return Ok((Rendered::Kept, NOT_KEPT));
                }
                Found::Known(piece) => piece.rows.start,
                Found::Next(row) => row,
                Found::None => return Err(TextError::Changed),
            };
            let strip = self
                .index
                .strips()
                .get(id.strip)
                .ok_or(TextError::Changed)?;
            let (bytes, end) = self.kept_or_rendered(strip, first)?;
            let mut piece = Piece {
                rows: first..end,
                len: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                kept: Kept::No,
            };
            // A text of one piece lies in memory.
            if self.index.strips().len() == 1 && piece.rows == strip.rows {
                self.index.record(id, piece)?;
                self.save_index();
                let weight = bytes.len();
                return Ok((Rendered::Bytes(bytes), weight));
            }
            piece.kept = Kept::Unwritten(bytes.clone());
            let unwritten = self.index.record(id, piece)?;
            self.save_index();
            self.write(unwritten);
            match self.index.find(id) {
                Found::Known(piece) if piece.kept.is_at_hand() => {
                    self.engine.take_back(bytes);
                    Ok((Rendered::Kept, NOT_KEPT))
                }
                _ => {
                    let weight = if read { bytes.len() } else { NOT_KEPT };
                    Ok((Rendered::Bytes(bytes), weight))
                }
            }
        })
    }

    /// Writes pieces to the text's file, where there is room.
    fn write(&self, unwritten: Vec<Unwritten>) {
        for Unwritten { id, offset, text } in unwritten {
            let (spill, home) = (&self.engine.spill, &self.text.home);
            let place = spill.put(home, &self.header, &text, offset);
            self.index.written(id, place);
            self.engine.take_back(text);
        }
    }

    /// The whole text as a file of the system, where it lies in one.
    pub fn backing(&self) -> Option<Arc<SpilledText>> {
        self.text.home.whole(self.len()?)
    }

    /// The text of the rows of a strip from `first` on, up to the piece's end, and the row after its last: from the disk
    /// or rendered.
    fn kept_or_rendered(&self, strip: &Strip, first: u64) -> Result<(Bytes, u64), TextError> {
        let end = strip.rows.end;
        let kept = self.contents.as_ref();
        if let Some(kept) = kept.and_then(|c| c.piece(&self.engine, strip.group, first, end)) {
            return Ok(kept);
        }
        let (bytes, end) = self.render(strip, first)?;
        self.engine.counters.text_pieces_rendered.add(1);
        let bytes = Bytes::from(bytes);
        if let Some(contents) = &self.contents {
            contents.keep_piece(&self.engine, strip.group, first, &bytes, end);
        }
        Ok((bytes, end))
    }

    /// Keeps the lengths of all pieces on disk, once they are known.
    fn save_index(&self) {
        if let Some(contents) = &self.contents
            && self.index.total().is_some()
            && !self.saved.swap(true, Ordering::Relaxed)
        {
            contents.keep(&self.engine, &self.index);
        }
    }

    /// The text of the rows of a strip from `first` on, up to the piece's end, and the row after its last.
    fn render(&self, strip: &Strip, first: u64) -> Result<(Vec<u8>, u64), TextError> {
        let mut out = self.engine.buffer();
        let end = self
            .rows
            .read(strip, first, |rows| self.push_rows(&mut out, rows))?;
        Ok((out, end))
    }

    /// Writes rows until the piece is full, and gives how many.
    fn push_rows(&self, out: &mut Vec<u8>, decoded: &Decoded) -> Result<usize, String> {
        let columns = self.columns.iter().zip(&decoded.columns);
        let columns = columns.map(|((name, shape), array)| {
            let column = Column::of(shape, array);
            column.ok_or_else(|| format!("column {name}: unexpectedly {}", array.data_type()))
        });
        let columns: Vec<Column<'_>> = columns.collect::<Result<_, _>>()?;
        let pushed = match self.text.format {
            Format::Csv => {
                let mut csv = CsvWriter::new(&self.engine.options.csv_null.0);
                push_until_full(out, decoded.rows, |out, row| {
                    csv.push_row(out, &columns, row)
                })
            }
            Format::JsonLines => push_until_full(out, decoded.rows, |out, row| {
                self.json.push_row(out, &columns, row)
            }),
        };
        pushed.map_err(|BadCell { column, cause }| match self.columns.get(column) {
            Some((name, _)) => format!("column {name}: {cause}"),
            None => cause.to_string(),
        })
    }
}

fn push_until_full(
    out: &mut Vec<u8>,
    rows: usize,
    mut push_row: impl FnMut(&mut Vec<u8>, usize) -> Result<(), BadCell>,
) -> Result<usize, BadCell> {
    for row in 0..rows {
        push_row(out, row)?;
        if out.len() >= PIECE_BYTES {
            return Ok(row + 1);
        }
    }
    Ok(rows)
}

/// Copies what there is of `bytes` from `at` on, and gives how much that was.
fn copy(bytes: &[u8], at: u64, out: &mut [u8]) -> usize {
    let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let there = bytes.get(from..).unwrap_or_default();
    let len = there.len().min(out.len());
    if let (Some(to), Some(from)) = (out.get_mut(..len), there.get(..len)) {
        to.copy_from_slice(from);
    }
    len
}

#[cfg(test)]
mod tests;
