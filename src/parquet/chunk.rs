//! The bytes of one column chunk of a virtual file, once somebody asks for them.

use std::sync::Arc;

use bytes::Bytes;

use super::extra::lineage_is_complete;
use super::format::Codec;
use super::levels::{Guide, LeafPlan, MissingLeaf};
use super::made::MadeChunk;
use super::part::{Part, leaf_node};
use super::synth::{self, Parents};
use super::target::TargetLeaf;
use super::transcode::{self, StoredChunk, Wanted};
use super::{ParquetError, View};
use crate::cache::CacheKey;

/// What stands in a segment that is a slot.
#[derive(Clone, Debug)]
pub enum SlotContent {
    /// The row group lost all its rows: zeros, which no footer names.
    Nothing,
    /// The source's bytes, from an offset, so many.
    Source { offset: u64, len: u64 },
    /// A chunk, to be followed by what its leaf's slots end with.
    Made(Arc<MadeChunk>),
}

/// A row group of a part and the rows it lost, whatever deleted them.
#[derive(Clone, Copy, Debug)]
pub struct GroupRows<'a> {
    pub part: &'a Part,
    /// Index in the data file.
    pub group: usize,
    /// Ascending, relative to the row group.
    pub deleted: &'a [u32],
}

impl GroupRows<'_> {
    /// Rows in the data file.
    pub fn source_rows(&self) -> u64 {
        let rows = self.part.rows(self.group);
        rows.end - rows.start
    }

    /// Rows that are left.
    pub fn rows(&self) -> u64 {
        self.source_rows().saturating_sub(self.deleted.len() as u64)
    }

    /// The first row that is left, relative to the row group.
    pub fn first_row(&self) -> Option<u64> {
        self.positions().next()
    }

    /// The last row that is left, relative to the row group.
    pub fn last_row(&self) -> Option<u64> {
        let mut deleted = self
            .deleted
            .iter()
            .rev()
            .map(|row| u64::from(*row))
            .peekable();
        (0..self.source_rows())
            .rev()
            .find(|row| deleted.next_if_eq(row).is_none())
    }

    /// The source column that can be served as it is for a leaf, if there is one.
    pub fn source_column(&self, leaf: usize) -> Option<usize> {
        if !self.deleted.is_empty() {
            return None;
        }
        let leaf = self.part.leaves.get(leaf)?;
        match &leaf.plan {
            LeafPlan::Stored { column, .. } => leaf.stored?.identical.then_some(*column),
            LeafPlan::RowId {
                first: Some(_),
                stored: Some(column),
            }
            | LeafPlan::LastUpdated {
                inherited: Some(_),
                stored: Some(column),
            } => lineage_is_complete(&self.part.opened, self.group, *column).then_some(*column),
            _ => None,
        }
    }

    /// What stands in the slot of a leaf.
    pub fn content(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
    ) -> Result<SlotContent, ParquetError> {
        if self.rows() == 0 {
            return Ok(SlotContent::Nothing);
        }
        if let Some(column) = self.source_column(leaf) {
            let range = self.part.chunk_range(self.group, column)?;
            return Ok(SlotContent::Source {
                offset: range.start,
                len: range.end - range.start,
            });
        }
        self.made(view, leaf, target).map(SlotContent::Made)
    }

    /// The chunk of a leaf, made or from the cache.
    pub fn made(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
    ) -> Result<Arc<MadeChunk>, ParquetError> {
        let Some(part_leaf) = self.part.leaves.get(leaf) else {
            return Err(self.part.corrupt("a leaf without a plan".to_owned()));
        };
        let key = CacheKey {
            kind: "chunk",
            id: format!(
                "{} {} {leaf} {:x}",
                self.part.cache_id, self.group, part_leaf.cache_id
            ),
        };
        view.cache.get_or_make(key, || {
            let chunk = self.make(view, leaf, target)?;
            let weight = chunk.bytes.len() + 64;
            Ok((chunk, weight))
        })
    }

    fn make(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
    ) -> Result<MadeChunk, ParquetError> {
        let Some(part_leaf) = self.part.leaves.get(leaf) else {
            return Err(self.part.corrupt("a leaf without a plan".to_owned()));
        };
        let counters = view.storage.counters();
        let in_column = |error: super::DecodeError| {
            let column = target.path.join(".");
            error.in_column(&column).in_file(self.part.path())
        };
        let misfit = |reason: String| self.part.corrupt(reason);
        let first_row = self.part.rows(self.group).start;
        match &part_leaf.plan {
            LeafPlan::Stored { column, def_map } => {
                let Some(stored) = part_leaf.stored else {
                    return Err(self.part.corrupt("a leaf without a plan".to_owned()));
                };
                counters.chunks_transcoded.add(1);
                let (bytes, codec) = self.read(*column)?;
                let wanted = Wanted {
                    max_def: target.max_def,
                    def_map,
                    conversion: stored.conversion,
                };
                let chunk = self.stored(&bytes, codec, *column)?;
                transcode::transcode(chunk, wanted, counters).map_err(in_column)
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
                counters.chunks_transcoded.add(1);
                let first = first.saturating_add_unsigned(first_row);
                let ids = self.positions().map(|p| first.saturating_add_unsigned(p));
                let values = self.coalesce(view, *column, ids, target)?;
                synth::longs(target, &values).map_err(misfit)
            }
            LeafPlan::RowId {
                first: Some(first),
                stored: None,
            } => {
                let first = first.saturating_add_unsigned(first_row);
                let ids: Vec<Option<i64>> = self
                    .positions()
                    .map(|p| Some(first.saturating_add_unsigned(p)))
                    .collect();
                synth::longs(target, &ids).map_err(misfit)
            }
            LeafPlan::LastUpdated {
                inherited: Some(inherited),
                stored: Some(column),
            } => {
                counters.chunks_transcoded.add(1);
                let values = self.coalesce(view, *column, std::iter::repeat(*inherited), target)?;
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
                let positions: Vec<Option<i64>> = self
                    .positions()
                    .map(|p| i64::try_from(first_row + p).ok())
                    .collect();
                synth::longs(target, &positions).map_err(misfit)
            }
        }
    }

    /// Positions in the row group of the rows that are left.
    fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        let mut deleted = self.deleted.iter().map(|row| u64::from(*row)).peekable();
        (0..self.source_rows()).filter(move |row| deleted.next_if_eq(row).is_none())
    }

    /// Stored values where there are any, else those inherited (SPEC.md rule 37).
    fn coalesce(
        &self,
        view: &View,
        column: usize,
        inherited: impl Iterator<Item = i64>,
        target: &TargetLeaf,
    ) -> Result<Vec<Option<i64>>, ParquetError> {
        let (bytes, codec) = self.read(column)?;
        let chunk = self.stored(&bytes, codec, column)?;
        let stored = transcode::integers(chunk, view.storage.counters()).map_err(|error| {
            error
                .in_column(&target.path.join("."))
                .in_file(self.part.path())
        })?;
        Ok(stored
            .into_iter()
            .zip(inherited)
            .map(|(s, i)| s.or(Some(i)))
            .collect())
    }

    fn parents(&self, view: &View, guide: &Guide) -> Result<Vec<synth::Parent>, ParquetError> {
        let (bytes, codec) = self.read(guide.column)?;
        let chunk = self.stored(&bytes, codec, guide.column)?;
        view.storage.counters().chunks_transcoded.add(1);
        transcode::parents(chunk, guide, view.storage.counters())
            .map_err(|error| error.in_file(self.part.path()))
    }

    /// Gives `f` a stored column chunk of this row group, read whole.
    pub fn with_stored<R>(
        &self,
        column: usize,
        f: impl FnOnce(StoredChunk<'_>) -> Result<R, super::DecodeError>,
    ) -> Result<R, ParquetError> {
        let (bytes, codec) = self.read(column)?;
        f(self.stored(&bytes, codec, column)?).map_err(|error| error.in_file(self.part.path()))
    }

    fn read(&self, column: usize) -> Result<(Bytes, Codec), ParquetError> {
        let range = self.part.chunk_range(self.group, column)?;
        let bytes = self
            .part
            .opened
            .file
            .read_range(range.start, range.end - range.start)?;
        Ok((bytes, self.part.chunk(self.group, column)?.codec))
    }

    fn stored<'b>(
        &'b self,
        bytes: &'b Bytes,
        codec: Codec,
        column: usize,
    ) -> Result<StoredChunk<'b>, ParquetError> {
        let node = leaf_node(&self.part.opened.footer, column);
        let leaf = node.and_then(|node| node.leaf.zip(Some(node)));
        let Some((leaf, node)) = leaf else {
            return Err(self.part.corrupt("no such column".to_owned()));
        };
        Ok(StoredChunk {
            bytes,
            codec,
            physical: leaf.physical,
            max_def: node.max_def,
            max_rep: node.max_rep,
            values: u64::try_from(self.part.chunk(self.group, column)?.num_values).unwrap_or(0),
            rows: self.source_rows(),
            deleted: self.deleted,
        })
    }
}
