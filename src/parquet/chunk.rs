//! The bytes of one column chunk of a virtual file, once somebody asks for them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use roaring::RoaringTreemap;

use super::convert::Conversion;
use super::extra::lineage_is_complete;
use super::integers::IntegerChunk;
use super::levels::{Guide, LeafPlan, MissingLeaf};
use super::made::MadeChunk;
use super::part::{Part, PartLeaf, leaf_node};
use super::places::{PageError, ReadRange, find_pages};
use super::split::{Group, PageSpan};
use super::synth::{self, Parents};
use super::target::TargetLeaf;
use super::transcode::{self, StoredChunk, Transcoding, Wanted};
use super::{ParquetError, View};
use crate::cache::CacheKey;
use crate::cache::identity::Identity;
use crate::rows::row_bits::rows_within;

mod reading;

/// The most deleted rows of one row group that are listed, at 4 bytes each.
const MAX_DELETED: u64 = 1 << 28;

/// What stands in a segment that is a slot.
#[derive(Clone, Debug)]
pub enum SlotContent {
    /// The row group lost all its rows: zeros, which no footer names.
    Nothing,
    /// The source's bytes, from an offset, so many.
    Source { offset: u64, len: u64 },
    /// A chunk that is made ([`GroupRows::read_made`]), to be followed by what its leaf's slots end with.
    Made,
}

/// A row group of a virtual file and the rows it lost, whatever deleted them.
#[derive(Clone, Copy, Debug)]
pub struct GroupRows<'a> {
    pub part: &'a Part,
    place: &'a Group,
    /// Positions in the data file.
    deleted: &'a RoaringTreemap,
    /// How many of them are in the row group.
    lost: u64,
    /// Where [`GroupRows::identity`] is noted.
    known: Option<&'a OnceLock<String>>,
}

impl<'a> GroupRows<'a> {
    /// A row group over a data file that lost the rows at the positions `deleted`.
    pub fn new(part: &'a Part, place: &'a Group, deleted: &'a RoaringTreemap) -> GroupRows<'a> {
        GroupRows {
            part,
            place,
            deleted,
            lost: deleted.range_cardinality(place.rows.clone()),
            known: None,
        }
    }

    /// With a place where the identity of these rows is noted, which takes time to find where many are deleted.
    pub fn noting(self, known: &'a OnceLock<String>) -> GroupRows<'a> {
        GroupRows {
            known: Some(known),
            ..self
        }
    }

    /// Index of the row group in the data file.
    pub fn group(&self) -> usize {
        self.place.group
    }

    /// Rows of the whole row group of the data file.
    pub fn source_rows(&self) -> u64 {
        let rows = self.part.rows(self.group());
        rows.end - rows.start
    }

    /// Rows that are left.
    pub fn rows(&self) -> u64 {
        let rows = &self.place.rows;
        (rows.end - rows.start).saturating_sub(self.lost)
    }

    /// Whether these are not all rows of the data file's row group.
    pub fn lost_rows(&self) -> bool {
        self.rows() < self.source_rows()
    }

    /// Where the rows stand in a column chunk, unless they are the whole row group.
    pub fn span(&self, column: usize) -> Result<Option<&'a PageSpan>, ParquetError> {
        let Some(spans) = &self.place.spans else {
            return Ok(None);
        };
        match spans.get(column) {
            Some(Some(span)) => Ok(Some(span)),
            _ => Err(self.part.corrupt("a column without places".to_owned())),
        }
    }

    /// Position in the data file of the first row that is left.
    pub fn first_position(&self) -> Option<u64> {
        self.place
            .rows
            .clone()
            .find(|position| !self.deleted.contains(*position))
    }

    /// Position in the data file of the last row that is left.
    pub fn last_position(&self) -> Option<u64> {
        self.place
            .rows
            .clone()
            .rev()
            .find(|position| !self.deleted.contains(*position))
    }

    /// Positions in the data file of the rows that are left.
    fn positions(&self) -> impl Iterator<Item = u64> {
        let rows = self.place.rows.clone();
        let mut deleted = self.deleted.iter();
        deleted.advance_to(rows.start);
        let mut deleted = deleted.peekable();
        rows.filter(move |row| deleted.next_if_eq(row).is_none())
    }

    /// Rows that deletes took, ascending, counted from the first.
    pub fn deleted_rows(&self) -> Result<Vec<u32>, ParquetError> {
        if self.lost > MAX_DELETED {
            return Err(ParquetError::Unsupported {
                path: self.part.path().to_owned(),
                feature: format!("{} deleted rows in one row group", self.lost),
            });
        }
        rows_within(self.deleted, self.place.rows.clone()).ok_or_else(|| {
            let reason = "a row group of more than 2^32 rows".to_owned();
            self.part.corrupt(reason)
        })
    }

    /// [`GroupRows::deleted_rows`], listed once for all columns.
    fn listed(&self, view: &View) -> Result<Arc<Vec<u32>>, ParquetError> {
        if self.lost == 0 {
            return Ok(Arc::default());
        }
        let key = CacheKey {
            kind: "deleted rows",
            id: self.identity()?.into_owned(),
        };
        view.cache.get_or_make(key, || {
            let rows = self.deleted_rows()?;
            let weight = rows.len() * size_of::<u32>();
            Ok((rows, weight))
        })
    }

    /// The source column that can be served as it is for a leaf, if there is one.
    pub fn source_column(&self, leaf: usize) -> Option<usize> {
        if self.lost_rows() {
            return None;
        }
        let leaf = self.part.leaves.get(leaf)?;
        match &leaf.plan {
            LeafPlan::Stored { column, .. } => self
                .part
                .is_served_as_it_is(self.group(), leaf.stored?, *column)
                .then_some(*column),
            LeafPlan::RowId {
                first: Some(_),
                stored: Some(column),
            }
            | LeafPlan::LastUpdated {
                inherited: Some(_),
                stored: Some(column),
            } => lineage_is_complete(&self.part.opened, self.group(), *column).then_some(*column),
            _ => None,
        }
    }

    /// How many bytes of its slot, which has `slot`, the footer gives to the chunk of a leaf. When the slot was laid out
    /// it was not known how many rows equality deletes take.
    pub fn stated_len(
        &self,
        leaf: usize,
        target: &TargetLeaf,
        slot: u64,
    ) -> Result<u64, ParquetError> {
        let leaf = self.part.leaves.get(leaf);
        let stored = leaf.and_then(|leaf| Some((&leaf.plan, leaf.stored?)));
        let Some((LeafPlan::Stored { column, .. }, stored)) = stored else {
            return Ok(slot);
        };
        if !self.part.has_equality_deletes() || stored.max_rep > 0 {
            return Ok(slot);
        }
        let chunk = self.part.chunk(self.group(), *column)?;
        let span = self.span(*column)?;
        Ok(stored.slot_len(chunk, span, target, self.rows()).min(slot))
    }

    /// What stands in the slot of a leaf.
    pub fn content(&self, leaf: usize) -> Result<SlotContent, ParquetError> {
        if self.rows() == 0 {
            return Ok(SlotContent::Nothing);
        }
        if let Some(column) = self.source_column(leaf) {
            let range = self.part.chunk_range(self.group(), column)?;
            return Ok(SlotContent::Source {
                offset: range.start,
                len: range.end - range.start,
            });
        }
        Ok(SlotContent::Made)
    }

    /// What a made chunk is known by, in this mount and in others: all that [`GroupRows::make`] makes it from.
    fn cache_key(&self, leaf: &PartLeaf, target: &TargetLeaf) -> Result<CacheKey, ParquetError> {
        Ok(CacheKey {
            kind: "chunk",
            id: format!("{} {}", self.identity()?, leaf.identity(target)),
        })
    }

    /// Which rows these are: of which state of which file, with which columns, and which of them are left. The deleted
    /// rows stand for whatever deleted them.
    pub fn identity(&self) -> Result<Cow<'a, str>, ParquetError> {
        let Some(known) = self.known else {
            return Ok(Cow::Owned(self.identify()?));
        };
        let identity = match known.get() {
            Some(identity) => identity,
            None => {
                let identity = self.identify()?;
                known.get_or_init(|| identity)
            }
        };
        Ok(Cow::Borrowed(identity))
    }

    fn identify(&self) -> Result<String, ParquetError> {
        let mut identity = Identity::default();
        let (file, unshredded) = (&self.part.opened.file, &self.part.opened.unshredded);
        identity.push(format!("{:?} {unshredded:?}", file.identity()).as_bytes());
        identity.push(format!("{} {:?} {}", self.group(), self.place.rows, self.lost).as_bytes());
        for rows in self.deleted_rows()?.chunks(4096) {
            let rows: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
            identity.push(&rows);
        }
        Ok(identity.finish())
    }

    /// Lets the transcoding of a stored leaf go on until there are so many bytes, or to its end.
    fn go_on(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
        chunk: &mut Transcoding,
        until: usize,
    ) -> Result<(), ParquetError> {
        let part_leaf = self.part.leaves.get(leaf);
        let Some((part_leaf, LeafPlan::Stored { column, def_map })) =
            part_leaf.map(|leaf| (leaf, &leaf.plan))
        else {
            return Err(self.part.corrupt("a leaf that is not stored".to_owned()));
        };
        let wanted = Wanted {
            max_def: target.max_def,
            def_map,
            conversion: part_leaf.stored.map_or(Conversion::None, |s| s.conversion),
        };
        // A store is asked once for all of it.
        let window = if self.part.opened.file.is_remote() {
            u64::MAX
        } else {
            transcode::WINDOW
        };
        let counters = view.storage.counters();
        let deleted = self.listed(view)?;
        self.with_ranges(*column, &deleted, |stored, read| {
            chunk.go_on((stored, wanted), (read, window), counters, until)
        })
    }

    /// A made chunk cannot be read where it is kept.
    pub fn lost(&self, source: std::io::Error) -> ParquetError {
        let path = self.part.path().to_owned();
        ParquetError::Storage(crate::storage::StorageError::Io { path, source })
    }

    fn make(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
        begun: Transcoding,
    ) -> Result<MadeChunk, ParquetError> {
        let Some(part_leaf) = self.part.leaves.get(leaf) else {
            return Err(self.part.corrupt("a leaf without a plan".to_owned()));
        };
        let misfit = |reason: String| self.part.corrupt(reason);
        match &part_leaf.plan {
            LeafPlan::Stored { .. } => {
                let mut chunk = begun;
                self.go_on(view, leaf, target, &mut chunk, usize::MAX)?;
                Ok(chunk.into_made())
            }
            LeafPlan::Missing(missing) => {
                let parents = match &missing.guide {
                    None => Parents::Rows(self.rows()),
                    Some(guide) => Parents::Nested(self.parents(view, guide)?),
                };
                synth::constant(target, &missing.entries, &parents).map_err(misfit)
            }
            LeafPlan::RowId { first: None, .. }
            | LeafPlan::LastUpdated {
                inherited: None, ..
            } => {
                let entries = [synth::null_entry(0)];
                synth::constant(target, &entries, &Parents::Rows(self.rows())).map_err(misfit)
            }
            LeafPlan::RowId {
                first: Some(first),
                stored: Some(column),
            } => {
                let ids = self.positions().map(|p| first.saturating_add_unsigned(p));
                let values = self.coalesce(view, *column, ids)?;
                synth::longs(target, &values).map_err(misfit)
            }
            LeafPlan::RowId {
                first: Some(first),
                stored: None,
            } => {
                let ids = self.positions().map(|p| first.saturating_add_unsigned(p));
                synth::positions(target, self.rows(), ids).map_err(misfit)
            }
            LeafPlan::LastUpdated {
                inherited: Some(inherited),
                stored: Some(column),
            } => {
                let values = self.coalesce(view, *column, std::iter::repeat(*inherited))?;
                synth::longs(target, &values).map_err(misfit)
            }
            LeafPlan::LastUpdated {
                inherited: Some(inherited),
                stored: None,
            } => {
                let missing = MissingLeaf {
                    guide: None,
                    entries: vec![synth::long_entry(*inherited)],
                };
                synth::constant(target, &missing.entries, &Parents::Rows(self.rows()))
                    .map_err(misfit)
            }
            LeafPlan::Position => {
                let positions = self.positions().map(|p| 0i64.saturating_add_unsigned(p));
                synth::positions(target, self.rows(), positions).map_err(misfit)
            }
        }
    }

    /// Stored values where there are any, else those inherited (spec, "Row Lineage").
    fn coalesce(
        &self,
        view: &View,
        column: usize,
        inherited: impl Iterator<Item = i64>,
    ) -> Result<Vec<Option<i64>>, ParquetError> {
        let counters = view.storage.counters();
        counters.chunks_transcoded.add(1);
        let deleted = self.listed(view)?;
        let stored = self.with_pages(column, &deleted, |chunk, read| {
            let (dictionary, pages) = find_pages(chunk, read)?.places();
            IntegerChunk::new(chunk, dictionary, pages, read, counters).all()
        })?;
        Ok(stored
            .into_iter()
            .zip(inherited)
            .map(|(s, i)| s.or(Some(i)))
            .collect())
    }

    fn parents(&self, view: &View, guide: &Guide) -> Result<Vec<synth::Parent>, ParquetError> {
        let counters = view.storage.counters();
        counters.chunks_transcoded.add(1);
        let deleted = self.listed(view)?;
        self.with_stored(guide.column, &deleted, |chunk| {
            transcode::parents(chunk, guide, counters)
        })
    }

    /// Gives `f` a stored column chunk of this row group, read whole, without the `deleted` rows. Errors name the file and the column.
    fn with_stored<R, E: Into<PageError>>(
        &self,
        column: usize,
        deleted: &[u32],
        f: impl FnOnce(StoredChunk<'_>) -> Result<R, E>,
    ) -> Result<R, ParquetError> {
        let range = self.part.chunk_range(self.group(), column)?;
        let file = &self.part.opened.file;
        let bytes = file.read_range(range.start, range.end - range.start)?;
        self.with_bytes(column, deleted, (&bytes, range.end - range.start), f)
    }

    /// As [`GroupRows::with_ranges`], for who looks for pages in the chunk: of a store it is asked for at once.
    pub fn with_pages<R>(
        &self,
        column: usize,
        deleted: &[u32],
        f: impl for<'c> FnOnce(StoredChunk<'c>, ReadRange<'c>) -> Result<R, PageError>,
    ) -> Result<R, ParquetError> {
        if !self.part.opened.file.is_remote() {
            return self.with_ranges(column, deleted, f);
        }
        self.with_stored(column, deleted, |chunk| {
            f(chunk, &|range| chunk.range(range).map(Cow::Borrowed))
        })
    }

    /// As [`GroupRows::with_stored`]; the chunk has no bytes, and `f` asks for those it needs, by their place in it.
    pub fn with_ranges<R>(
        &self,
        column: usize,
        deleted: &[u32],
        f: impl for<'c> FnOnce(StoredChunk<'c>, ReadRange<'c>) -> Result<R, PageError>,
    ) -> Result<R, ParquetError> {
        let range = self.part.chunk_range(self.group(), column)?;
        let file = &self.part.opened.file;
        let read = |wanted: Range<u64>| {
            let offset = range.start.saturating_add(wanted.start);
            let bytes = file.read_range(offset, wanted.end.saturating_sub(wanted.start));
            let bytes = bytes.map_err(|error| PageError::Read(error.into()))?;
            Ok(Vec::from(bytes))
        };
        self.with_bytes(column, deleted, (&[], range.end - range.start), |chunk| {
            f(chunk, &|wanted| read(wanted).map(Cow::Owned))
        })
    }

    fn with_bytes<R, E: Into<PageError>>(
        &self,
        column: usize,
        deleted: &[u32],
        (bytes, len): (&[u8], u64),
        f: impl FnOnce(StoredChunk<'_>) -> Result<R, E>,
    ) -> Result<R, ParquetError> {
        let footer = &self.part.opened.footer;
        let node = leaf_node(footer, column).and_then(|node| Some((node, node.leaf?)));
        let (node, leaf) = node.ok_or_else(|| self.part.corrupt("no such column".to_owned()))?;
        let stored = self.part.chunk(self.group(), column)?;
        let chunk = StoredChunk {
            bytes,
            len,
            codec: stored.codec,
            physical: leaf.physical,
            max_def: node.max_def,
            max_rep: node.max_rep,
            uncompressed: u64::try_from(stored.total_uncompressed_size).unwrap_or(0),
            values: u64::try_from(stored.num_values).unwrap_or(0),
            rows: self.source_rows(),
            span: self.span(column)?,
            deleted,
        };
        f(chunk).map_err(|error| match error.into() {
            PageError::Decode(error) => error.in_column(&node.name).in_file(self.part.path()),
            PageError::Read(error) => error,
        })
    }
}
