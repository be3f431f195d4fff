//! One data file in a virtual file: its footer, where each leaf comes from in it, and which rows it lost.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use roaring::RoaringTreemap;

use super::convert::Conversion;
use super::extra::{ExtraColumn, ExtraSource};
use super::format::{Codec, ColumnChunk, Encoding, RowGroup};
use super::levels::{LeafPlan, plan_leaves};
use super::made::level_width;
use super::slot::{SlotShape, StoredSize, slot_len};
use super::source::SourceFooter;
use super::split::PageSpan;
use super::target::{TargetKind, TargetLeaf, TargetSchema};
use super::unshred::unshred;
use super::{ParquetError, View};
use crate::as_parquet;
use crate::cache::identity::Identity;
use crate::cache::{CacheKey, Tag};
use crate::iceberg::metadata::NAME_MAPPING_PROPERTY;
use crate::iceberg::name_mapping::NameMapping;
use crate::iceberg::types::FieldId;
use crate::rows::RowsError;
use crate::rows::file_schema::{FileNode, NodeId, Physical};
use crate::rows::position_deletes::deleted_positions;
use crate::rows::projection::{
    PhysicalLineage, ProjectedField, Projection, ProjectionContext, physical_lineage, project,
};
use crate::scan::{ScanFile, file_tag};
use crate::storage::SourceFile;

/// A data file opened for a view: everything but its plans, which depend on the files it is merged with.
#[derive(Debug)]
pub struct OpenedFile {
    pub scan: Arc<ScanFile>,
    pub file: Arc<SourceFile>,
    pub footer: Arc<SourceFooter>,
    pub projection: Projection,
    pub lineage: PhysicalLineage,
    /// Positions that position deletes or a vector delete.
    pub position_deleted: Arc<RoaringTreemap>,
    /// Its shredded variants that were put together. Where there are any its columns are not those of the data file.
    pub unshredded: BTreeSet<NodeId>,
}

impl OpenedFile {
    /// Opens a data file: its footer and position deletes are read, nothing else.
    pub fn open(
        view: &View,
        mapping: Option<&NameMapping>,
        scan: &Arc<ScanFile>,
    ) -> Result<OpenedFile, ParquetError> {
        let path = &scan.file.path;
        if scan.file.key_metadata {
            return Err(ParquetError::Unsupported {
                path: path.clone(),
                feature: "encryption".to_owned(),
            });
        }
        let file =
            as_parquet::open(&view.storage, &view.cache, &scan.file).map_err(RowsError::from)?;
        let key = CacheKey {
            kind: "footer",
            id: format!("{} {:?}", view.storage.canonical(path), file.identity()),
        };
        let footer = view.cache.get_or_make(key, || {
            let footer = SourceFooter::read(&file, view.storage.counters())?;
            let weight = footer.weight();
            Ok::<_, ParquetError>((footer, weight))
        })?;
        let rows = u64::try_from(footer.metadata.num_rows).unwrap_or(0);
        if rows != scan.file.record_count {
            return Err(ParquetError::Corrupt {
                path: path.clone(),
                reason: format!(
                    "the manifest gives {} rows, the file has {rows}",
                    scan.file.record_count
                ),
            });
        }
        let position_deleted = deleted_positions(scan, &view.storage, &view.cache)?;
        Ok(OpenedFile {
            projection: projection(view, mapping, scan, &footer)?,
            lineage: physical_lineage(&footer.schema, path)?,
            scan: Arc::clone(scan),
            file,
            footer,
            position_deleted,
            unshredded: BTreeSet::new(),
        })
    }

    /// The file with these of its variants put together, where they are shredded: a group of `metadata` and `value` each.
    pub fn unshredded(
        &self,
        view: &View,
        mapping: Option<&NameMapping>,
        variants: &BTreeSet<FieldId>,
    ) -> Result<OpenedFile, ParquetError> {
        let (file, footer, unshredded) = match unshred(view, self, variants)? {
            Some(made) => (made.file, made.footer, made.variants),
            None => {
                let (file, footer) = (Arc::clone(&self.file), Arc::clone(&self.footer));
                (file, footer, BTreeSet::new())
            }
        };
        Ok(OpenedFile {
            projection: projection(view, mapping, &self.scan, &footer)?,
            lineage: physical_lineage(&footer.schema, &self.scan.file.path)?,
            scan: Arc::clone(&self.scan),
            file,
            footer,
            position_deleted: Arc::clone(&self.position_deleted),
            unshredded,
        })
    }
}

/// Where the view's columns come from in a file with this footer.
fn projection(
    view: &View,
    mapping: Option<&NameMapping>,
    scan: &ScanFile,
    footer: &SourceFooter,
) -> Result<Projection, ParquetError> {
    let spec = view.metadata.partition_specs.get(&scan.file.spec_id);
    let context = ProjectionContext::new(&scan.file, spec.map(|spec| &**spec), mapping);
    let fields = &view.schema.fields.fields;
    Ok(project(fields, &footer.schema, &context)?)
}

/// How one leaf of the virtual file is got from this data file.
#[derive(Debug)]
pub struct PartLeaf {
    pub plan: LeafPlan,
    /// For a stored leaf.
    pub stored: Option<StoredLeaf>,
    /// See [`PartLeaf::identity`].
    identity: OnceLock<String>,
}

impl PartLeaf {
    /// Tells what the plan makes, for this leaf of the virtual file, from all else: column, levels, conversion,
    /// constants, first row id, sequence number; name, type, levels.
    pub fn identity(&self, leaf: &TargetLeaf) -> &str {
        let identify = || Identity::of(&format!("{:?} {leaf:?}", self.plan));
        self.identity.get_or_init(identify)
    }
}

/// What the transcoder must know of a stored leaf.
#[derive(Clone, Copy, Debug)]
pub struct StoredLeaf {
    pub physical: Physical,
    pub max_rep: u16,
    pub conversion: Conversion,
    /// Whether its definition levels are those of the virtual leaf.
    pub same_levels: bool,
    /// Whether its levels and values are those of the virtual leaf.
    pub identical: bool,
}

impl StoredLeaf {
    /// Bytes to reserve for a transcoded chunk of the leaf, of which so many entries are kept at most: of the pages of
    /// `span`, or the whole of it.
    pub fn slot_len(
        &self,
        chunk: &ColumnChunk,
        span: Option<&PageSpan>,
        target: &TargetLeaf,
        kept: u64,
    ) -> u64 {
        let shape = SlotShape {
            source: self.physical,
            widths: self.conversion.widths(),
            nested: self.max_rep > 0,
            level_bits: level_width(target.max_rep) + level_width(target.max_def),
            new_levels: !self.same_levels,
        };
        let stored = match span {
            Some(span) => StoredSize::of_span(chunk, span),
            None => StoredSize::of_chunk(chunk),
        };
        slot_len(stored, shape, kept)
    }
}

/// A data file in a virtual file.
#[derive(Debug)]
pub struct Part {
    pub opened: OpenedFile,
    /// By leaf of the virtual file.
    pub leaves: Vec<PartLeaf>,
    /// The position of each row group's first row, and at the end the number of rows.
    starts: Vec<u64>,
    /// Content identity: the file, and what deletes from it.
    pub cache_id: String,
    /// For what is made of it.
    pub tag: Tag,
}

impl Part {
    /// Plans the leaves of `target` for an opened file.
    pub fn new(
        view: &View,
        opened: OpenedFile,
        target: &TargetSchema,
        columns: &[ExtraColumn],
    ) -> Result<Part, ParquetError> {
        let path = opened.scan.file.path.clone();
        let corrupt = |reason: String| ParquetError::Corrupt {
            path: path.clone(),
            reason,
        };
        let mut plans = vec![None; target.leaves.len()];
        let schema_fields = opened.projection.fields.len();
        let (own, extra) = target
            .roots
            .split_at_checked(schema_fields)
            .unwrap_or((&[], &[]));
        plan_leaves(
            &opened.footer.schema,
            own,
            &opened.projection.fields,
            &mut plans,
        )
        .map_err(corrupt)?;
        for (node, column) in extra.iter().zip(columns) {
            match column.source(&opened) {
                ExtraSource::Constant(source) => {
                    let field = ProjectedField {
                        field: Arc::clone(&column.field),
                        source,
                    };
                    let (nodes, fields) =
                        (std::slice::from_ref(node), std::slice::from_ref(&field));
                    plan_leaves(&opened.footer.schema, nodes, fields, &mut plans)
                        .map_err(corrupt)?;
                }
                ExtraSource::Plan(plan) => {
                    if let TargetKind::Leaf(leaf) = node.kind
                        && let Some(slot) = plans.get_mut(leaf)
                    {
                        *slot = Some(plan);
                    }
                }
            }
        }
        let leaves = plans
            .into_iter()
            .zip(&target.leaves)
            .map(|(plan, leaf)| {
                let plan =
                    plan.ok_or_else(|| format!("column {}: no source", leaf.path.join(".")))?;
                part_leaf(&opened.footer, plan, leaf)
            })
            .collect::<Result<Vec<_>, String>>()
            .map_err(corrupt)?;
        let mut starts = vec![0];
        let mut row = 0u64;
        for group in &opened.footer.metadata.row_groups {
            row += u64::try_from(group.num_rows).unwrap_or(0);
            starts.push(row);
        }
        let mut cache_id = format!(
            "{} {:?}",
            view.storage.canonical(&path),
            opened.file.identity()
        );
        let deletes = &opened.scan.deletes;
        for delete in deletes
            .vector
            .iter()
            .chain(&deletes.position)
            .chain(&deletes.equality)
        {
            let (file, path) = (&delete.file, view.storage.canonical(&delete.file.path));
            cache_id.push_str(&format!(
                "\n{path} {:?} {} {} {}",
                file.deletes().content_offset,
                file.record_count,
                file.file_size,
                delete.sequence_number.0
            ));
        }
        cache_id.push_str(&format!("\n{:?}", opened.unshredded));
        // It says which columns the keys of equality deletes are.
        if let Some(mapping) = view.metadata.properties.get(NAME_MAPPING_PROPERTY) {
            cache_id.push_str(mapping);
        }
        Ok(Part {
            opened,
            leaves,
            starts,
            cache_id: Identity::of(&cache_id),
            tag: file_tag(&view.metadata, &view.storage, &path),
        })
    }

    /// The recorded path, for messages.
    pub fn path(&self) -> &str {
        &self.opened.scan.file.path
    }

    /// The positions of a row group's rows in the file.
    pub fn rows(&self, group: usize) -> Range<u64> {
        let at = |i: usize| self.starts.get(i).copied().unwrap_or(0);
        at(group)..at(group + 1)
    }

    /// A row group of the source.
    pub fn group(&self, group: usize) -> Option<&RowGroup> {
        self.opened.footer.metadata.row_groups.get(group)
    }

    /// A column chunk of the source.
    pub fn chunk(&self, group: usize, column: usize) -> Result<&ColumnChunk, ParquetError> {
        self.group(group)
            .and_then(|g| g.columns.get(column))
            .ok_or_else(|| self.corrupt("a row group that lacks a column".to_owned()))
    }

    /// Where a column chunk lies in the source file.
    pub fn chunk_range(&self, group: usize, column: usize) -> Result<Range<u64>, ParquetError> {
        self.opened
            .footer
            .chunk_range(group, column)
            .ok_or_else(|| self.corrupt("a row group that lacks a column".to_owned()))
    }

    /// Whether a stored leaf's chunk can be served as it is where it lost no row: nothing of it changes, and all readers
    /// know how it is written. DuckDB and Polars lack the encodings of fixed-length byte arrays named here, and under the
    /// codec's old name `LZ4` three framings are in use. What we cannot read ourselves we do not serve: reading it is an
    /// error that names it.
    pub fn is_served_as_it_is(&self, group: usize, stored: StoredLeaf, column: usize) -> bool {
        let fixed = matches!(stored.physical, Physical::Fixed(_));
        let unserved = |encoding: &Encoding| match encoding {
            Encoding::ByteStreamSplit | Encoding::DeltaByteArray => fixed,
            Encoding::Other(_) => true,
            _ => false,
        };
        stored.identical
            && self.chunk(group, column).is_ok_and(|chunk| {
                let codec = matches!(chunk.codec, Codec::Lz4 | Codec::Lzo | Codec::Other(_));
                !codec && !chunk.encodings.iter().any(unserved)
            })
    }

    /// Where the Bloom filter of a leaf lies in the source file, and its length, where it holds for the virtual leaf:
    /// its values must be stored as they are.
    pub fn bloom_filter(&self, group: usize, leaf: usize) -> Option<(u64, u64)> {
        let leaf = self.leaves.get(leaf)?;
        let LeafPlan::Stored { column, .. } = &leaf.plan else {
            return None;
        };
        let same_values = leaf.stored?.conversion == Conversion::None;
        let chunk = self.chunk(group, *column).ok().filter(|_| same_values)?;
        let offset = u64::try_from(chunk.bloom_filter_offset?).ok()?;
        let len = u64::try_from(chunk.bloom_filter_length?).ok()?;
        let inside = offset.checked_add(len)? <= self.opened.footer.footer_start;
        (inside && len > 0).then_some((offset, len))
    }

    /// Whether what is made of it may be kept beyond this process.
    pub fn is_lasting(&self) -> bool {
        self.opened.file.identity().is_lasting()
    }

    /// Whether equality deletes apply: then which rows survive is not known before their keys are read.
    pub fn has_equality_deletes(&self) -> bool {
        !self.opened.scan.deletes.equality.is_empty()
    }

    /// An error of this file.
    pub fn corrupt(&self, reason: String) -> ParquetError {
        ParquetError::Corrupt {
            path: self.path().to_owned(),
            reason,
        }
    }
}

fn part_leaf(footer: &SourceFooter, plan: LeafPlan, leaf: &TargetLeaf) -> Result<PartLeaf, String> {
    let stored = match &plan {
        LeafPlan::Stored { column, def_map } => {
            let node = leaf_node(footer, *column).ok_or("no such column")?;
            let physical = node.leaf.map(|l| l.physical).ok_or("not a column")?;
            let conversion = Conversion::between(physical, node.annotation, leaf)?;
            if node.max_rep != leaf.max_rep {
                return Err(format!(
                    "column {}: its lists do not fit",
                    leaf.path.join(".")
                ));
            }
            let same_levels =
                node.max_def == leaf.max_def && def_map.iter().zip(0u16..).all(|(a, b)| *a == b);
            Some(StoredLeaf {
                physical,
                max_rep: node.max_rep,
                conversion,
                same_levels,
                identical: same_levels && conversion == Conversion::None,
            })
        }
        _ => None,
    };
    Ok(PartLeaf {
        plan,
        stored,
        identity: OnceLock::new(),
    })
}

/// The schema node of a leaf column.
pub fn leaf_node(footer: &SourceFooter, column: usize) -> Option<&FileNode> {
    footer.schema.nodes.get(*footer.schema.leaves.get(column)?)
}
