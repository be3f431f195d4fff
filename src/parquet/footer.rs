//! The footer of a virtual file.
//!
//! It is made when it is first read: row counts under equality deletes, the number of entries of repeated columns that
//! lost rows, and the length of dictionary pages are not known before. Until then the file reserves a tail for the
//! longest footer there can be, which is the one with every count and offset at its largest, since Thrift's variable
//! lengths never shrink with growing numbers; zeros before the footer make up the difference.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringTreemap;

use super::chunk::GroupRows;
use super::clustered;
use super::entry::signed;
use super::format::{ColumnChunk, FileMetaData, RowGroup, SchemaElement, Statistics};
use super::layout::{Layout, Segment};
use super::levels::LeafPlan;
use super::part::{Part, PartLeaf};
use super::split::Group;
use super::target::{TargetLeaf, TargetSchema};
use super::{ParquetError, View};

/// The footer's length and the magic behind it.
pub const TRAILER: u64 = 8;

/// What a footer is made from.
pub struct FooterInput<'a> {
    pub view: &'a View,
    pub target: &'a TargetSchema,
    pub parts: &'a [Part],
    pub layout: &'a Layout,
    /// Leaves whose bounds are to be exact.
    pub clustered: &'a [bool],
}

impl FooterInput<'_> {
    /// The longest this file's footer can get, in bytes, its length and magic included.
    pub fn len_bound(&self) -> Result<u64, ParquetError> {
        let mut groups = Vec::with_capacity(self.layout.groups.len());
        for (index, place) in self.layout.groups.iter().enumerate() {
            let Some(part) = self.parts.get(place.part) else {
                continue;
            };
            let rows = place.rows.end - place.rows.start;
            let columns = self.columns(index, part, |leaf, part_leaf, target, segment| {
                self.largest_chunk((part, place), leaf, part_leaf, target, segment)
            })?;
            groups.push(self.row_group(index, rows, columns));
        }
        let footer = self.file(groups);
        let mut bytes = Vec::new();
        footer.write(&mut bytes);
        Ok(bytes.len() as u64 + TRAILER)
    }

    /// The footer, without its length and magic. `deleted` gives the positions that a data file
    /// lost.
    pub fn make(
        &self,
        deleted: impl Fn(&Part) -> Result<Arc<RoaringTreemap>, ParquetError> + Sync,
    ) -> Result<Vec<u8>, ParquetError> {
        let places: Vec<(usize, &Group)> = self.layout.groups.iter().enumerate().collect();
        let is_same = |a: &(usize, &Group), b: &(usize, &Group)| {
            (a.1.part, a.1.group) == (b.1.part, b.1.group)
        };
        let sources: Vec<&[(usize, &Group)]> = places.chunk_by(is_same).collect();
        // Row groups that lost rows may have clustered columns decoded, and chunks of lists made.
        let groups = self.view.storage.in_parallel(&sources, |pieces| {
            let part = pieces
                .first()
                .and_then(|(_, place)| self.parts.get(place.part));
            part.map_or(Ok(Vec::new()), |part| {
                self.row_groups(part, pieces, &*deleted(part)?)
            })
        });
        let groups = groups.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut groups: Vec<RowGroup> = groups.into_iter().flatten().collect();
        for leaf in 0..self.target.leaves.len() {
            all_or_no_bounds(&mut groups, leaf);
        }
        let mut bytes = Vec::new();
        self.file(groups).write(&mut bytes);
        Ok(bytes)
    }

    /// The entries of the row groups over one of a data file, with their indexes in the layout, where rows are left.
    fn row_groups(
        &self,
        part: &Part,
        pieces: &[(usize, &Group)],
        deleted: &RoaringTreemap,
    ) -> Result<Vec<RowGroup>, ParquetError> {
        let rows = |place| GroupRows::new(part, place, deleted);
        let pieces = pieces.iter().map(|(index, place)| (*index, rows(place)));
        let pieces: Vec<(usize, GroupRows<'_>)> =
            pieces.filter(|(_, rows)| rows.rows() > 0).collect();
        let bounds = self.exact_bounds(&pieces)?;
        let entry = |(at, (index, rows)): (usize, &(usize, GroupRows<'_>))| {
            self.prefetch_dictionaries(rows)?;
            let columns = self.columns(*index, part, |leaf, part_leaf, target, segment| {
                let exact = bounds.get(&leaf).and_then(|pieces| pieces.get(at));
                self.chunk(rows, leaf, part_leaf, target, segment, exact)
            })?;
            Ok(self.row_group(*index, rows.rows(), columns))
        };
        pieces.iter().enumerate().map(entry).collect()
    }

    /// The statistics of clustered columns, by leaf and row group, where these lost rows of the data file's.
    fn exact_bounds(
        &self,
        pieces: &[(usize, GroupRows<'_>)],
    ) -> Result<BTreeMap<usize, Vec<Statistics>>, ParquetError> {
        let pieces: Vec<GroupRows<'_>> = pieces.iter().map(|(_, rows)| *rows).collect();
        let mut bounds = BTreeMap::new();
        let lost = pieces.iter().find(|rows| rows.lost_rows());
        let leaves = lost.map_or(&[][..], |rows| &rows.part.leaves);
        for (leaf, part_leaf) in leaves.iter().enumerate() {
            if self.clustered.get(leaf) == Some(&true)
                && let (LeafPlan::Stored { column, .. }, Some(stored)) =
                    (&part_leaf.plan, part_leaf.stored)
            {
                let counters = self.view.storage.counters();
                let exact = clustered::exact(&pieces, *column, stored.conversion, counters)?;
                bounds.insert(leaf, exact);
            }
        }
        Ok(bounds)
    }

    fn columns(
        &self,
        group: usize,
        part: &Part,
        chunk: impl Fn(usize, &PartLeaf, &TargetLeaf, &Segment) -> Result<ColumnChunk, ParquetError>,
    ) -> Result<Vec<ColumnChunk>, ParquetError> {
        let leaves = self.target.leaves.iter().zip(&part.leaves).enumerate();
        leaves
            .map(|(leaf, (target, part_leaf))| {
                let segment = self.layout.segment(group, leaf);
                let segment = segment.ok_or_else(|| part.corrupt("no such column".to_owned()))?;
                let mut entry = chunk(leaf, part_leaf, target, segment)?;
                if let Some(bloom) = self.layout.bloom(group, leaf) {
                    entry.bloom_filter_offset = Some(signed(bloom.offset));
                    entry.bloom_filter_length = i32::try_from(bloom.len).ok();
                }
                Ok(entry)
            })
            .collect()
    }

    fn row_group(&self, index: usize, rows: u64, columns: Vec<ColumnChunk>) -> RowGroup {
        let sum =
            |size: fn(&ColumnChunk) -> i64| columns.iter().map(size).fold(0, i64::saturating_add);
        RowGroup {
            total_byte_size: sum(|c| c.total_uncompressed_size),
            num_rows: signed(rows),
            file_offset: self.layout.segment(index, 0).map(|s| signed(s.offset)),
            total_compressed_size: Some(sum(|c| c.total_compressed_size)),
            ordinal: None,
            columns,
        }
    }

    fn file(&self, row_groups: Vec<RowGroup>) -> FileMetaData {
        let mut key_value_metadata = vec![(
            "iceberg.schema".to_owned(),
            Some(self.view.schema.to_json().to_string()),
        )];
        if let Some(snapshot) = self.view.snapshot {
            key_value_metadata.push((
                "iceberg.snapshot-id".to_owned(),
                Some(snapshot.0.to_string()),
            ));
        }
        let schema: Vec<SchemaElement> = self.target.elements();
        FileMetaData {
            version: 2,
            schema,
            num_rows: row_groups
                .iter()
                .map(|g| g.num_rows)
                .fold(0, i64::saturating_add),
            row_groups,
            key_value_metadata,
            created_by: Some(concat!("bergfs version ", env!("CARGO_PKG_VERSION")).to_owned()),
            column_orders: true,
            encrypted: false,
        }
    }
}

/// Takes a column's bounds away where some row group has none: DataFusion answers `min()` from the row groups that have
/// bounds, as if the others were empty. A row group of nulls needs none. Bounds flagged inexact answer nothing, and stay.
fn all_or_no_bounds(groups: &mut [RowGroup], leaf: usize) {
    let is_unbounded = |chunk: &ColumnChunk| {
        chunk.statistics.as_ref().is_none_or(|statistics| {
            statistics.min_value.is_none() && statistics.null_count != Some(chunk.num_values)
        })
    };
    let mut chunks = groups.iter().filter_map(|group| group.columns.get(leaf));
    if !chunks.any(is_unbounded) {
        return;
    }
    let chunks = groups
        .iter_mut()
        .filter_map(|group| group.columns.get_mut(leaf));
    for statistics in chunks.filter_map(|chunk| chunk.statistics.as_mut()) {
        if statistics.is_min_value_exact != Some(false) {
            statistics.min_value = None;
            statistics.max_value = None;
            statistics.is_min_value_exact = None;
            statistics.is_max_value_exact = None;
        }
        statistics.min = None;
        statistics.max = None;
    }
}
