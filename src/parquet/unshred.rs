//! A data file whose shredded variants are put together again, for a virtual file over files that shred them
//! differently (parquet-format, `VariantShredding.md`; SPEC.md rule 48).
//!
//! How long a variant gets follows from no metadata, so these columns are decoded and written anew when the virtual
//! file is laid out. They stand behind the data file's last byte, as if it went on; all other columns are left alone:
//!
//! ```text
//! data file ───────────────────────────┐ made ──────────────────────┐
//! PAR1 │ id │ v.metadata │ v.value │ v.typed_value │ footer │ v.metadata │ v.value │ …
//!        ▲                                                    ▲            ▲
//!        └──────────────── id ────────────────────────────────┴── v ───────┘     what the new footer names
//! ```
//!
//! Rows keep their places, so deletes stay right. `assemble` puts the values together; memory is bounded by the variants
//! of a row group.

use std::collections::BTreeSet;
use std::io::BufWriter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::arrow::{ArrowWriter, ProjectionMask};
use ::parquet::basic::Compression;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};

use super::format::{ColumnChunk, FileMetaData, SchemaElement};
use super::part::OpenedFile;
use super::source::SourceFooter;
use super::{DecodeError, ParquetError, View};
use crate::cache::CacheKey;
use crate::iceberg::types::FieldId;
use crate::rows::RowsError;
use crate::rows::file_schema::{Annotation, FileSchema, NodeId, Physical, Repetition};
use crate::rows::projection::{FieldSource, ProjectedField};
use crate::storage::chunk_reader::SourceReader;
use crate::storage::{SourceFile, SpillWriter, Spilled, StorageError};

mod assemble;

/// Rows that are put together at once.
const BATCH_ROWS: usize = 1024;

/// Bytes collected before they are written to the spill file.
const WRITE_BUFFER: usize = 1 << 20;

const WHAT: &str = "shredded variant";

/// What was made for a file.
#[derive(Debug)]
struct Made {
    more: Arc<Spilled>,
    footer: Arc<SourceFooter>,
}

/// A file with variants that were put together.
#[derive(Debug)]
pub struct Unshredded {
    pub file: Arc<SourceFile>,
    pub footer: Arc<SourceFooter>,
    /// The groups in the data file that were. The footer's columns follow from the data file and these.
    pub variants: BTreeSet<NodeId>,
}

/// The file with these of its variants put together, and the footer of that; `None` where none of them is shredded.
pub fn unshred(
    view: &View,
    opened: &OpenedFile,
    wanted: &BTreeSet<FieldId>,
) -> Result<Option<Unshredded>, ParquetError> {
    let variants = shredded(opened, wanted);
    if variants.is_empty() {
        return Ok(None);
    }
    let (path, file) = (&opened.scan.file.path, &opened.file);
    let key = CacheKey {
        kind: "unshredded",
        id: format!(
            "{} {:?} {variants:?}",
            view.storage.canonical(path),
            file.identity()
        ),
    };
    let made = view.cache.get_or_make(key, || {
        let made = make(view, opened, &variants)?;
        let weight = made.footer.weight() + usize::try_from(made.more.len()).unwrap_or(usize::MAX);
        view.storage.counters().files_converted.add(1);
        Ok::<_, ParquetError>((made, weight))
    })?;
    let file = Arc::new(file.followed_by(Arc::clone(&made.more)));
    let footer = Arc::clone(&made.footer);
    Ok(Some(Unshredded {
        file,
        footer,
        variants,
    }))
}

/// The groups that the view reads as one of these variants, and that are shredded.
fn shredded(opened: &OpenedFile, wanted: &BTreeSet<FieldId>) -> BTreeSet<NodeId> {
    let schema = &opened.footer.schema;
    let mut pending: Vec<&ProjectedField> = opened.projection.fields.iter().collect();
    let mut found = BTreeSet::new();
    while let Some(ProjectedField { field, source }) = pending.pop() {
        match source {
            FieldSource::Variant { node } => {
                if wanted.contains(&field.id) && schema.child(*node, "typed_value").is_some() {
                    found.insert(*node);
                }
            }
            FieldSource::Struct { fields, .. } => pending.extend(fields),
            FieldSource::List { element, .. } => pending.push(element),
            FieldSource::Map { key, value, .. } => pending.extend([&**key, &**value]),
            FieldSource::Leaf { .. } | FieldSource::Constant(_) => {}
        }
    }
    found
}

fn make(
    view: &View,
    opened: &OpenedFile,
    variants: &BTreeSet<NodeId>,
) -> Result<Made, ParquetError> {
    let path = &opened.scan.file.path;
    let spill = view.storage.spill().writer();
    let spill = spill.map_err(|error| Failure::Write(error).in_file(path))?;
    // The arrow crates may panic on hostile bytes.
    let written = catch_unwind(AssertUnwindSafe(|| write(opened, variants, spill)));
    let written = written.unwrap_or_else(|_| {
        let reason = "not readable (the decoder gave up)";
        Err(Failure::Decode(DecodeError::corrupt(WHAT, reason)))
    });
    let more = Arc::new(written.map_err(|failure| failure.in_file(path))?);
    let made = opened.file.made_into(Arc::clone(&more));
    let made = SourceFooter::read(&made, view.storage.counters())?;
    let footer = joined(opened, variants, &made, more.len()).map_err(|e| e.in_file(path))?;
    Ok(Made {
        more,
        footer: Arc::new(footer),
    })
}

/// Writes a Parquet file of the columns that have variants in them, these put together, with the data file's row groups.
fn write(
    opened: &OpenedFile,
    variants: &BTreeSet<NodeId>,
    spill: SpillWriter,
) -> Result<Spilled, Failure> {
    let schema = &opened.footer.schema;
    let roots = roots(schema, variants);
    let reader = |groups: Vec<usize>| {
        let source = SourceReader::new(Arc::clone(&opened.file));
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(source, options)?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().map(|(i, _)| *i));
        builder
            .with_projection(mask)
            .with_row_groups(groups)
            .with_batch_size(BATCH_ROWS)
            .build()
    };
    let assembled = |batch: &RecordBatch| {
        let columns = roots.iter().zip(batch.columns());
        let columns =
            columns.map(|((_, node), column)| assemble::assemble(schema, *node, column, variants));
        columns.collect::<Result<Vec<ArrayRef>, DecodeError>>()
    };
    let stored = reader(Vec::new())?;
    let empty = RecordBatch::new_empty(::arrow::array::RecordBatchReader::schema(&stored));
    let wanted = retyped(&empty.schema(), &assembled(&empty)?);

    let properties = WriterProperties::builder()
        .set_created_by(concat!("bergfs version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(None)
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let out = BufWriter::with_capacity(WRITE_BUFFER, spill);
    let mut writer = ArrowWriter::try_new_with_options(out, Arc::clone(&wanted), options)?;
    let leaves = schema.leaves.iter().enumerate();
    let wanted_leaf = |leaf: NodeId| roots.iter().any(|(_, node)| *node == root(schema, leaf));
    let leaves: Vec<usize> = leaves
        .filter(|(_, leaf)| wanted_leaf(**leaf))
        .map(|(column, _)| column)
        .collect();
    for group in 0..opened.footer.metadata.row_groups.len() {
        // Else a store is asked for a little at a time.
        let chunks = leaves
            .iter()
            .map(|leaf| opened.footer.chunk_range(group, *leaf));
        opened.file.prefetch(&chunks.flatten().collect::<Vec<_>>());
        for batch in reader(vec![group])? {
            let columns = assembled(&batch.map_err(::parquet::errors::ParquetError::from)?)?;
            let batch = RecordBatch::try_new(Arc::clone(&wanted), columns)
                .map_err(::parquet::errors::ParquetError::from)?;
            writer.write(&batch)?;
        }
        writer.flush()?;
    }
    let spill = writer.into_inner()?.into_inner();
    let spill = spill.map_err(|error| Failure::Write(error.into_error()))?;
    Ok(spill.finish())
}

/// The top-level columns that have one of these variants in them, by index and node.
fn roots(schema: &FileSchema, variants: &BTreeSet<NodeId>) -> Vec<(usize, NodeId)> {
    let wanted: BTreeSet<NodeId> = variants.iter().map(|node| root(schema, *node)).collect();
    let roots = schema.roots.iter().copied().enumerate();
    roots.filter(|(_, node)| wanted.contains(node)).collect()
}

/// The top-level column that a node is in.
fn root(schema: &FileSchema, mut node: NodeId) -> NodeId {
    while let Some(parent) = schema.get(node).and_then(|node| node.parent) {
        node = parent;
    }
    node
}

fn retyped(schema: &Schema, columns: &[ArrayRef]) -> SchemaRef {
    let fields = schema.fields().iter().zip(columns);
    let fields = fields.map(|(field, column)| {
        let field = (**field).clone();
        field.with_data_type(column.data_type().clone())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The footer of the data file followed by what was made, whose footer is `made`.
fn joined(
    opened: &OpenedFile,
    variants: &BTreeSet<NodeId>,
    made: &SourceFooter,
    made_len: u64,
) -> Result<SourceFooter, DecodeError> {
    let corrupt = |reason: &str| DecodeError::corrupt(WHAT, reason);
    let (old, schema) = (&opened.footer.metadata, &opened.footer.schema);
    let (table, elements) = old
        .schema
        .split_first()
        .ok_or_else(|| corrupt("in a file without a schema"))?;
    let mut metadata = FileMetaData {
        schema: vec![table.clone()],
        row_groups: old.row_groups.clone(),
        ..old.clone()
    };
    // Nodes are in the order of the schema's elements, behind the root.
    let mut columns = Vec::new();
    let mut skipped = BTreeSet::new();
    // What was made has all leaves of the columns that have variants in them, in the same order.
    let rewritten: BTreeSet<NodeId> = variants.iter().map(|node| root(schema, *node)).collect();
    let mut next_made = 0;
    for (node, element) in elements.iter().enumerate() {
        let stored = schema.get(node);
        let stored = stored.ok_or_else(|| corrupt("a schema that is not the file's"))?;
        if stored
            .parent
            .is_some_and(|parent| skipped.contains(&parent))
        {
            skipped.insert(node);
        } else if variants.contains(&node) {
            skipped.insert(node);
            metadata.schema.push(SchemaElement {
                num_children: Some(2),
                annotation: Annotation::Variant,
                ..element.clone()
            });
            for name in ["metadata", "value"] {
                metadata.schema.push(binary(name));
                let leaf = made.schema.leaves.get(next_made);
                let leaf = leaf.and_then(|leaf| made.schema.get(*leaf));
                let fits = leaf.is_some_and(|leaf| {
                    leaf.name == name
                        && (leaf.max_def, leaf.max_rep) == (stored.max_def, stored.max_rep)
                });
                if !fits {
                    return Err(corrupt("in lists or maps of an unknown form"));
                }
                columns.push(Column::Made(next_made));
                next_made += 1;
            }
        } else {
            metadata.schema.push(element.clone());
            if let Some(leaf) = stored.leaf {
                columns.push(Column::Stored(leaf.column));
                next_made += usize::from(rewritten.contains(&root(schema, node)));
            }
        }
    }
    let mut made_groups = made.metadata.row_groups.iter();
    for group in &mut metadata.row_groups {
        let made = match group.num_rows {
            0 => None,
            _ => made_groups.next(),
        };
        if made.map_or(0, |made| made.num_rows) != group.num_rows {
            return Err(corrupt("a row group with another number of rows"));
        }
        let chunk = |column: &Column| match column {
            Column::Stored(column) => group.columns.get(*column).cloned(),
            Column::Made(column) => match made {
                Some(made) => Some(moved(made.columns.get(*column)?, opened.file.len())),
                None => group.columns.first().map(empty),
            },
        };
        let chunks = columns.iter().map(chunk).collect::<Option<Vec<_>>>();
        group.columns = chunks.ok_or_else(|| corrupt("a row group lacks a column"))?;
    }
    let len = opened.file.len().saturating_add(made_len);
    SourceFooter::checked(metadata, len, len)
}

/// Where a leaf's chunks come from.
enum Column {
    /// The data file's leaf column.
    Stored(usize),
    /// The made file's.
    Made(usize),
}

fn moved(chunk: &ColumnChunk, by: u64) -> ColumnChunk {
    let by = i64::try_from(by).unwrap_or(i64::MAX);
    ColumnChunk {
        data_page_offset: chunk.data_page_offset.saturating_add(by),
        dictionary_page_offset: chunk.dictionary_page_offset.map(|at| at.saturating_add(by)),
        offset_index: None,
        column_index: None,
        ..chunk.clone()
    }
}

/// A chunk without values, which lies nowhere.
fn empty(like: &ColumnChunk) -> ColumnChunk {
    ColumnChunk {
        physical: Physical::ByteArray,
        num_values: 0,
        total_compressed_size: 0,
        total_uncompressed_size: 0,
        statistics: None,
        bloom_filter_offset: None,
        offset_index: None,
        column_index: None,
        ..like.clone()
    }
}

fn binary(name: &str) -> SchemaElement {
    SchemaElement {
        physical: Some(Physical::ByteArray),
        repetition: Some(Repetition::Required),
        name: name.to_owned(),
        num_children: None,
        annotation: Annotation::None,
        field_id: None,
        geo: None,
    }
}

/// Why nothing was made.
enum Failure {
    Decode(DecodeError),
    Parquet(::parquet::errors::ParquetError),
    Write(std::io::Error),
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Failure::Decode(error)
    }
}

impl From<::parquet::errors::ParquetError> for Failure {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        Failure::Parquet(error)
    }
}

impl Failure {
    fn in_file(self, path: &str) -> ParquetError {
        use ::parquet::errors::ParquetError as Theirs;
        match self {
            Failure::Decode(error) => error.in_file(path),
            Failure::Parquet(Theirs::External(source)) => match source.downcast::<StorageError>() {
                Ok(storage) => ParquetError::Storage(*storage),
                Err(other) => DecodeError::corrupt(WHAT, other.to_string()).in_file(path),
            },
            Failure::Parquet(Theirs::NYI(feature)) => {
                DecodeError::unsupported(feature).in_file(path)
            }
            Failure::Parquet(other) => DecodeError::corrupt(WHAT, other.to_string()).in_file(path),
            Failure::Write(source) => RowsError::Spill {
                path: path.to_owned(),
                source,
            }
            .into(),
        }
    }
}
