//! The positions of a data file that equality deletes remove (spec, "Equality Delete Files"; rules 29 to 31).
//!
//! A row goes when any row of an applicable delete file equals it in all of that file's equality columns. Columns are
//! found by id; the other columns of a delete file mean nothing. Values are compared in the type a column has now. A
//! column that the data file lacks has the value that projection gives it: the partition's, its default, or null.
//!
//! ```text
//! delete files ──► a set of keys for each (kept, shared by all data files)
//!                    └─► one set for all files that apply and have the same columns (kept)
//! data file ──► its key columns, one row group at a time ──► deleted positions (kept by row group)
//! ```
//!
//! Nothing is read when a [`KeyMatch`] is made; a row group's key columns are read when its rows are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use roaring::RoaringTreemap;

use crate::as_parquet;
use crate::cache::{Cache, CacheKey};
use crate::iceberg::metadata::{NAME_MAPPING_PROPERTY, TableMetadata};
use crate::iceberg::types::{FieldId, NestedField, PrimitiveType, StructType, Type};
use crate::iceberg::value::Value;
use crate::parallel::in_parallel;
use crate::scan::{DeleteFile, ScanFile};
use crate::storage::{SourceFile, Storage};

use super::RowsError;
use super::file_schema::NodeId;
use super::parquet_reader::ParquetReader;
use super::position_deletes::{content_key, open_delete};
use super::projection::{FieldSource, ProjectedField, ProjectionContext, project};
use super::row_bits::RowBits;

use keys::{Cell, KeyCollector, KeyColumn, KeySet};

mod keys;

/// The positions in `file` that its equality deletes remove, in all row groups or in those of `row_groups`; each kept
/// by row group, so that asking again costs nothing.
///
/// # Errors
/// As [`KeyMatch::row_group`].
pub fn equality_deleted(
    file: &ScanFile,
    row_groups: Option<&[usize]>,
    metadata: &TableMetadata,
    storage: &Storage,
    cache: &Cache,
) -> Result<RoaringTreemap, RowsError> {
    let mut deleted = RoaringTreemap::new();
    if file.deletes.equality.is_empty() {
        return Ok(deleted);
    }
    let matching = KeyMatch::new(file, metadata, storage, cache)?;
    let all: Vec<usize>;
    let row_groups = match row_groups {
        Some(row_groups) => row_groups,
        None => {
            all = (0..matching.row_groups()?).collect();
            &all
        }
    };
    for row_group in row_groups {
        deleted |= matching.row_group(*row_group)?.as_ref();
    }
    Ok(deleted)
}

/// One data file matched against the equality deletes that apply to it.
pub struct KeyMatch<'a> {
    file: &'a ScanFile,
    metadata: &'a TableMetadata,
    storage: &'a Storage,
    cache: &'a Cache,
    source: Arc<SourceFile>,
    /// Tells this data file under these deletes from every other.
    identity: String,
    opened: OnceLock<Opened>,
}

/// What is read once the first row group is asked for.
struct Opened {
    reader: ParquetReader,
    /// Position of each row group's first row, and its number of rows.
    groups: Vec<(u64, u64)>,
    matches: Vec<SetMatch>,
}

/// The keys on one set of columns, and where the data file has those columns.
struct SetMatch {
    keys: Arc<KeySet>,
    columns: Vec<(KeySource, PrimitiveType)>,
}

/// Where a key column's values come from.
#[derive(Clone)]
enum KeySource {
    Leaf(NodeId),
    Constant(Cell),
    /// Where this struct of the file is present; else null.
    Within(NodeId, Cell),
}

impl<'a> KeyMatch<'a> {
    /// Opens the data file; reads nothing of it yet.
    pub fn new(
        file: &'a ScanFile,
        metadata: &'a TableMetadata,
        storage: &'a Storage,
        cache: &'a Cache,
    ) -> Result<KeyMatch<'a>, RowsError> {
        let source = as_parquet::open(storage, cache, &file.file)?;
        let mapping = metadata.properties.get(NAME_MAPPING_PROPERTY);
        let identity = format!(
            "{:?} {:?} {} {mapping:?}",
            source.identity(),
            file.file.partition,
            fingerprint(&file.deletes.equality, storage)
        );
        Ok(KeyMatch {
            file,
            metadata,
            storage,
            cache,
            source,
            identity,
            opened: OnceLock::new(),
        })
    }

    /// How many row groups the file has.
    pub fn row_groups(&self) -> Result<usize, RowsError> {
        Ok(self.opened()?.groups.len())
    }

    /// The deleted positions among one row group's rows, counted from the start of the file.
    ///
    /// # Errors
    /// The data file or a delete file cannot be read, is in no known format ([`RowsError::Unsupported`]), or lacks a column
    /// it must have. The error names the file.
    pub fn row_group(&self, row_group: usize) -> Result<Arc<RoaringTreemap>, RowsError> {
        let key = CacheKey {
            kind: "equality-deleted",
            id: format!("{} {row_group}", self.identity),
        };
        self.cache.get_or_make(key, || {
            let deleted = self.match_row_group(row_group)?;
            let weight = deleted.serialized_size();
            Ok((deleted, weight))
        })
    }

    fn opened(&self) -> Result<&Opened, RowsError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = self.open()?;
        Ok(self.opened.get_or_init(|| opened))
    }

    fn open(&self) -> Result<Opened, RowsError> {
        let path = &self.file.file.path;
        let reader = ParquetReader::new(self.source.clone())?;
        let mut groups = Vec::new();
        let mut first = 0u64;
        for rows in reader.row_groups()? {
            groups.push((first, rows));
            first = first.saturating_add(rows);
        }
        let mapping = self
            .metadata
            .name_mapping()
            .map_err(|error| RowsError::corrupt(path, error.to_string()))?;
        let spec = self.metadata.partition_specs.get(&self.file.file.spec_id);
        let context =
            ProjectionContext::new(&self.file.file, spec.map(Arc::as_ref), mapping.as_ref());

        let mut by_columns: BTreeMap<BTreeSet<FieldId>, Vec<&Arc<DeleteFile>>> = BTreeMap::new();
        for delete in &self.file.deletes.equality {
            by_columns
                .entry(delete.file.deletes().equality_ids.iter().copied().collect())
                .or_default()
                .push(delete);
        }
        let mut matches = Vec::new();
        for (ids, deletes) in by_columns {
            let Some(first) = deletes.first() else {
                continue;
            };
            let fields = ids
                .iter()
                .map(|id| KeyField::find(*id, self.metadata, &first.file.path))
                .collect::<Result<Vec<_>, _>>()?;
            let columns = fields
                .iter()
                .map(|field| {
                    Ok((
                        field.source(&field.path, reader.schema(), &context)?,
                        field.ty.clone(),
                    ))
                })
                .collect::<Result<Vec<_>, RowsError>>()?;
            matches.push(SetMatch {
                keys: self.keys(&fields, &deletes)?,
                columns,
            });
        }
        Ok(Opened {
            reader,
            groups,
            matches,
        })
    }

    /// The keys of all these delete files, which have the same columns.
    fn keys(
        &self,
        fields: &[KeyField],
        deletes: &[&Arc<DeleteFile>],
    ) -> Result<Arc<KeySet>, RowsError> {
        let Some(first) = deletes.first() else {
            return Ok(Arc::new(KeySet::union(&[])));
        };
        if deletes.len() == 1 {
            return self.keys_of(fields, first);
        }
        let source = open_delete(self.storage, first)?;
        let part = format!(
            "{} {}",
            types_text(fields),
            fingerprint(deletes.iter().copied(), self.storage)
        );
        self.cache
            .get_or_make(content_key("equality-keys-merged", &source, &part), || {
                let sets = in_parallel(deletes, |delete| self.keys_of(fields, delete));
                let merged = KeySet::union(&sets.into_iter().collect::<Result<Vec<_>, _>>()?);
                let weight = merged.weight();
                Ok((merged, weight))
            })
    }

    /// The keys of one delete file.
    fn keys_of(&self, fields: &[KeyField], delete: &DeleteFile) -> Result<Arc<KeySet>, RowsError> {
        let path = &delete.file.path;
        let source = open_delete(self.storage, delete)?;
        self.cache.get_or_make(
            content_key("equality-keys", &source, &types_text(fields)),
            || {
                let source = as_parquet::open(self.storage, self.cache, &delete.file)?;
                let keys = read_keys(&ParquetReader::new(source)?, fields, path)?;
                self.storage.counters().equality_deletes_read.add(1);
                let weight = keys.weight();
                Ok((keys, weight))
            },
        )
    }

    fn match_row_group(&self, row_group: usize) -> Result<RoaringTreemap, RowsError> {
        let Opened {
            reader,
            groups,
            matches,
        } = self.opened()?;
        let path = &self.file.file.path;
        let Some(&(first, rows)) = groups.get(row_group) else {
            return Err(RowsError::corrupt(
                path,
                format!("row group {row_group} of {}", groups.len()),
            ));
        };
        let mut deleted = RoaringTreemap::new();
        for SetMatch { keys, columns } in matches {
            let word = word_column(columns);
            let bounds = word.and_then(|node| reader.bounds(row_group, node));
            if bounds.is_some_and(|bounds| !keys.may_hold(bounds)) {
                continue;
            }
            let counters = self.storage.counters();
            if let (Some(node), KeySet::Words { words, null }) = (word, &**keys) {
                let mut found = RowBits::new(first);
                let ask = |word| words.contains(word);
                if let Some(asked) = reader.ask_words(row_group, node, ask, *null, &mut found) {
                    counters.equality_keys_asked.add(asked);
                    deleted |= found.positions();
                    continue;
                }
            }
            counters.equality_keys_asked.add(rows);
            let mut positions = Vec::new();
            for_each_batch(
                reader,
                row_group,
                rows,
                columns,
                path,
                |start, batch, rows| {
                    keys.find(batch, rows, |row| {
                        positions.push(first + start + row as u64)
                    });
                },
            )?;
            // Positions come in order, which is what makes the set cheap to build.
            deleted |= RoaringTreemap::from_sorted_iter(positions)
                .map_err(|_| RowsError::corrupt(path, "a row group has an impossible size"))?;
        }
        Ok(deleted)
    }
}

/// The one key column, where its words are the integers that a file stores: unless they are unsigned, which the readers
/// of a column see.
fn word_column(columns: &[(KeySource, PrimitiveType)]) -> Option<NodeId> {
    use PrimitiveType as T;
    match columns {
        [(KeySource::Leaf(node), T::Int | T::Long | T::Date)] => Some(*node),
        _ => None,
    }
}

/// A text that differs between lists of delete files of one table: their paths, which never change their content.
fn fingerprint<'d>(
    deletes: impl IntoIterator<Item = &'d Arc<DeleteFile>>,
    storage: &Storage,
) -> String {
    let mut hashers = [0u8, 1].map(|seed| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        hasher
    });
    for delete in deletes {
        let path = storage.canonical(&delete.file.path);
        for hasher in &mut hashers {
            path.hash(hasher);
            delete.file.deletes().equality_ids.hash(hasher);
        }
    }
    hashers
        .iter()
        .map(|hasher| format!("{:016x}", hasher.finish()))
        .collect()
}

fn types_text(fields: &[KeyField]) -> String {
    fields
        .iter()
        .map(|field| format!("{} {:?},", field.id, field.ty))
        .collect()
}

/// A column that equality deletes are matched on.
struct KeyField {
    id: FieldId,
    /// The top-level column, holding nothing but the way down to the key, through structs alone.
    path: Arc<NestedField>,
    ty: PrimitiveType,
}

impl KeyField {
    /// Finds a column in the current schema, or in the newest one that has it. `delete` is for messages.
    fn find(id: FieldId, metadata: &TableMetadata, delete: &str) -> Result<KeyField, RowsError> {
        let current = metadata.schemas.get(&metadata.current_schema_id);
        let way = current
            .into_iter()
            .chain(metadata.schemas.values().rev())
            .find_map(|schema| schema.path_to(id))
            .ok_or_else(|| {
                RowsError::corrupt(
                    delete,
                    format!("equality column {id} is in no schema of the table"),
                )
            })?;
        let mut way = way.into_iter().rev();
        let leaf = way.next();
        let Some((leaf, Type::Primitive(ty))) = leaf.map(|leaf| (leaf, &leaf.ty)) else {
            return Err(RowsError::corrupt(
                delete,
                format!("equality column {id} is not of a primitive type"),
            ));
        };
        if matches!(
            ty,
            PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }
        ) {
            return Err(RowsError::unsupported(
                delete,
                format!("an equality delete by a geometry or geography (column {id})"),
            ));
        }
        let mut path = leaf.clone();
        for ancestor in way {
            if !matches!(ancestor.ty, Type::Struct(_)) {
                return Err(RowsError::corrupt(
                    delete,
                    format!("equality column {id} lies in a list or map"),
                ));
            }
            let only = StructType { fields: vec![path] };
            path = Arc::new(NestedField {
                ty: Type::Struct(only),
                ..ancestor.as_ref().clone()
            });
        }
        Ok(KeyField {
            id,
            path,
            ty: ty.clone(),
        })
    }

    /// The column as a delete file must have it: present, with no default to stand in.
    fn in_delete_file(&self) -> Arc<NestedField> {
        fn strict(field: &NestedField) -> NestedField {
            let ty = match &field.ty {
                Type::Struct(ty) => Type::Struct(StructType {
                    fields: ty
                        .fields
                        .iter()
                        .map(|field| Arc::new(strict(field)))
                        .collect(),
                }),
                other => other.clone(),
            };
            NestedField {
                required: true,
                initial_default: None,
                ty,
                ..field.clone()
            }
        }
        Arc::new(strict(&self.path))
    }

    /// Where a file with this schema has the key; `path` is the top-level column as that file must have it.
    fn source(
        &self,
        path: &Arc<NestedField>,
        schema: &super::file_schema::FileSchema,
        context: &ProjectionContext<'_>,
    ) -> Result<KeySource, RowsError> {
        let projection = project(std::slice::from_ref(path), schema, context)?;
        let field = projection.fields.first();
        let source = field.and_then(|field| descend(field, None));
        source.ok_or_else(|| {
            RowsError::corrupt(
                context.path,
                format!("equality column {} cannot be compared", self.id),
            )
        })
    }
}

/// Down the way to the key: its leaf, or the constant that stands for it or for a struct above it. `parent` is the struct
/// of the file that it lies in.
fn descend(field: &ProjectedField, parent: Option<NodeId>) -> Option<KeySource> {
    match &field.source {
        FieldSource::Leaf { node } => Some(KeySource::Leaf(*node)),
        FieldSource::Struct { node, fields } => descend(fields.first()?, Some(*node)),
        FieldSource::Constant(value) => {
            let mut value = value.as_ref();
            while let Some(Value::Struct(values)) = value {
                value = values.first()?.as_ref();
            }
            let cell = Cell::of(value)?;
            Some(match parent {
                Some(parent) if cell != Cell::Null => KeySource::Within(parent, cell),
                _ => KeySource::Constant(cell),
            })
        }
        FieldSource::Variant { .. } | FieldSource::List { .. } | FieldSource::Map { .. } => None,
    }
}

fn read_keys(reader: &ParquetReader, fields: &[KeyField], path: &str) -> Result<KeySet, RowsError> {
    let has_ids = reader
        .schema()
        .nodes
        .iter()
        .any(|node| node.field_id.is_some());
    if !has_ids {
        return Err(RowsError::unsupported(
            path,
            "an equality delete file without field ids",
        ));
    }
    let context = ProjectionContext {
        path,
        name_mapping: None,
        names_are_mapping: false,
        tells_zones: false,
        partition: Default::default(),
    };
    let columns = fields
        .iter()
        .map(|field| {
            Ok((
                field.source(&field.in_delete_file(), reader.schema(), &context)?,
                field.ty.clone(),
            ))
        })
        .collect::<Result<Vec<_>, RowsError>>()?;
    let types: Vec<&PrimitiveType> = fields.iter().map(|field| &field.ty).collect();
    let mut keys = KeyCollector::new(&types);
    for (row_group, rows) in reader.row_groups()?.into_iter().enumerate() {
        for_each_batch(reader, row_group, rows, &columns, path, |_, batch, rows| {
            keys.insert(batch, rows)
        })?;
    }
    Ok(keys.finish())
}

/// Reads the key columns of one row group, batch by batch: gives the first row's index in the row group, the columns,
/// and the number of rows.
fn for_each_batch(
    reader: &ParquetReader,
    row_group: usize,
    rows: u64,
    columns: &[(KeySource, PrimitiveType)],
    path: &str,
    mut each: impl FnMut(u64, &[KeyColumn], usize),
) -> Result<(), RowsError> {
    if rows == 0 {
        return Ok(());
    }
    let mut readers = columns
        .iter()
        .map(|(source, _)| match source {
            KeySource::Leaf(node) => reader.column(row_group, *node).map(Some),
            KeySource::Within(parent, _) => reader.presence(row_group, *parent).map(Some),
            KeySource::Constant(_) => Ok(None),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut start = 0;
    while start < rows {
        let want = (rows - start).min(super::parquet_reader::BATCH_ROWS as u64);
        let mut batch = Vec::with_capacity(columns.len());
        let mut batch_rows = usize::try_from(want).unwrap_or(usize::MAX);
        for ((source, ty), reader) in columns.iter().zip(&mut readers) {
            batch.push(match (source, reader) {
                (KeySource::Constant(cell), _) => KeyColumn::Constant(cell.clone()),
                (source, reader) => {
                    let read = match reader {
                        Some(reader) => reader.next_batch()?,
                        None => None,
                    };
                    let read = read.ok_or_else(|| {
                        RowsError::corrupt(path, "a key column ends before its row group")
                    })?;
                    batch_rows = read.rows;
                    match source {
                        KeySource::Within(_, cell) => {
                            KeyColumn::constant_where(read.presence().collect(), cell)
                        }
                        _ => KeyColumn::decode(read, ty)
                            .map_err(|reason| RowsError::corrupt(path, reason))?,
                    }
                }
            });
        }
        each(start, &batch, batch_rows);
        start += want;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
