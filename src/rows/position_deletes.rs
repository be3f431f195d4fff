//! The positions of a data file that position deletes remove: position delete files, or a deletion vector (spec,
//! "Position Delete Files" and "Deletion Vectors"; rules 26, 27, 31 and 32).
//!
//! A position counts rows from 0 over the whole data file, all row groups, before anything is filtered. A position
//! delete file may name many data files, so it is read once and kept split by the paths it names. Those are text that
//! some engine recorded, not always spelled as the manifest spells the same data file; they are compared by
//! [`Storage::canonical`].
//!
//! Positions past the end of the data file delete nothing when a position delete file names them (the spec says
//! nothing of them, and Iceberg Java ignores them). In a deletion vector, which is made for one file by whoever read
//! it, they are a fault.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use parquet::data_type::ByteArray;
use roaring::RoaringTreemap;

use crate::as_parquet;
use crate::cache::{Cache, CacheKey};
use crate::iceberg::deletion_vector;
use crate::iceberg::schema::reserved;
use crate::iceberg::types::FieldId;
use crate::scan::{DeleteFile, ScanFile};
use crate::storage::{Expected, SourceFile, Storage, percent_decoded};

use super::RowsError;
use super::file_schema::{FileSchema, NodeId};
use super::parquet_reader::{ParquetReader, Values};

/// Bytes that one 65,536-row container of a vector takes at most: run containers, at their most wasteful.
const MAX_CONTAINER: u64 = 4 * 32_768 + 16;

/// The positions that the position deletes or the vector of `file` remove, all of them below its record count.
///
/// # Errors
/// A delete file that cannot be read or breaks its format, is in none that is known ([`RowsError::Unsupported`]), or, for a
/// vector, does not fit the data file. The error names the delete file.
pub fn deleted_positions(
    file: &ScanFile,
    storage: &Storage,
    cache: &Cache,
) -> Result<Arc<RoaringTreemap>, RowsError> {
    if let Some(vector) = &file.deletes.vector {
        return vector_positions(file, vector, storage, cache);
    }
    let rows = file.file.record_count;
    let data_path = storage.canonical(&file.file.path);
    let mut found: Vec<Arc<RoaringTreemap>> = Vec::new();
    for delete in &file.deletes.position {
        let split = read_split(delete, storage, cache)?;
        let named = split.named(&file.file.path);
        storage.locate(named.iter().map(|(path, _)| path.as_ref()))?;
        found.extend(
            named
                .iter()
                .filter(|(path, _)| storage.canonical(path) == data_path)
                .map(|(_, p)| p.clone()),
        );
    }
    if let [only] = found.as_slice()
        && only.max().is_none_or(|last| last < rows)
    {
        return Ok(only.clone());
    }
    let mut union = RoaringTreemap::new();
    for positions in found {
        union |= positions.as_ref();
    }
    union.remove_range(rows..);
    Ok(Arc::new(union))
}

/// The rows of one position delete file: for each data file it names, the positions.
#[derive(Debug, Default)]
struct SplitPositions {
    /// By the last component of the data file's path, which all spellings of the path have in common.
    by_name: HashMap<Box<str>, Vec<NamedPositions>>,
}

/// A data file's path as the delete file spells it, and the positions.
type NamedPositions = (Box<str>, Arc<RoaringTreemap>);

impl SplitPositions {
    /// The paths, as the delete file spells them, that may name the file at `path`, each with its positions.
    fn named(&self, path: &str) -> &[NamedPositions] {
        self.by_name
            .get(last_component(path).as_ref())
            .map_or(&[], Vec::as_slice)
    }

    fn weight(&self) -> usize {
        let each =
            |(path, positions): &NamedPositions| 128 + path.len() + positions.serialized_size();
        self.by_name
            .iter()
            .map(|(name, paths)| name.len() + 64 + paths.iter().map(each).sum::<usize>())
            .sum()
    }
}

/// Decoded, since one path of a file may be percent-encoded and another not.
fn last_component(path: &str) -> Cow<'_, str> {
    let parts = path.rsplit('/').find(|part| !part.is_empty());
    let last = parts.unwrap_or(path);
    percent_decoded(last).map_or(Cow::Borrowed(last), Cow::Owned)
}

fn read_split(
    delete: &DeleteFile,
    storage: &Storage,
    cache: &Cache,
) -> Result<Arc<SplitPositions>, RowsError> {
    let path = &delete.file.path;
    let source = open_delete(storage, delete)?;
    cache.get_or_make(content_key("position-deletes", &source, ""), || {
        let source = as_parquet::open(storage, cache, &delete.file)?;
        let split = split_by_path(&ParquetReader::new(source)?, path)?;
        storage.counters().position_deletes_read.add(1);
        let weight = split.weight();
        Ok((split, weight))
    })
}

/// Opens a delete file as it lies.
pub(super) fn open_delete(
    storage: &Storage,
    delete: &DeleteFile,
) -> Result<Arc<SourceFile>, RowsError> {
    let expected = Expected {
        size: Some(delete.file.file_size),
        first: None,
    };
    Ok(storage.open_expecting(&delete.file.path, &expected)?)
}

/// A cache key for what was made from a file (and from the part of it that `part` names), whichever table it is of.
pub(super) fn content_key(kind: &'static str, source: &SourceFile, part: &str) -> CacheKey {
    CacheKey {
        kind,
        id: format!("{:?} {part}", source.identity()),
    }
}

fn split_by_path(reader: &ParquetReader, path: &str) -> Result<SplitPositions, RowsError> {
    let path_column = delete_column(
        reader.schema(),
        reserved::DELETE_FILE_PATH,
        "file_path",
        path,
    )?;
    let pos_column = delete_column(reader.schema(), reserved::DELETE_FILE_POS, "pos", path)?;
    let mut by_path: HashMap<Box<[u8]>, RoaringTreemap> = HashMap::new();
    for row_group in 0..reader.row_groups()?.len() {
        let mut paths = reader.column(row_group, path_column)?;
        let mut positions = reader.column(row_group, pos_column)?;
        while let (Some(paths), Some(positions)) = (paths.next_batch()?, positions.next_batch()?) {
            if !paths.is_dense() || !positions.is_dense() {
                return Err(RowsError::corrupt(
                    path,
                    "a position delete without a path or a position",
                ));
            }
            let (Values::ByteArray(paths), Values::Int64(positions)) =
                (paths.values, positions.values)
            else {
                return Err(RowsError::corrupt(
                    path,
                    "file_path and pos are not a string and a 64-bit integer",
                ));
            };
            add_batch(&mut by_path, &paths, &positions, path)?;
        }
    }
    let mut split = SplitPositions::default();
    for (named, positions) in by_path {
        let named = std::str::from_utf8(&named)
            .map_err(|_| RowsError::corrupt(path, "a position delete whose path is not UTF-8"))?;
        let same_name = split
            .by_name
            .entry(last_component(named).into())
            .or_default();
        same_name.push((named.into(), Arc::new(positions)));
    }
    Ok(split)
}

/// Rows stand in the order of path, then position, so each run of one path is looked up once.
fn add_batch(
    by_path: &mut HashMap<Box<[u8]>, RoaringTreemap>,
    paths: &[ByteArray],
    positions: &[i64],
    path: &str,
) -> Result<(), RowsError> {
    let mut positions = positions.iter();
    for run in paths.chunk_by(|a, b| a.data() == b.data()) {
        let Some(first) = run.first() else { continue };
        if !by_path.contains_key(first.data()) {
            by_path.insert(first.data().into(), RoaringTreemap::new());
        }
        let Some(deleted) = by_path.get_mut(first.data()) else {
            continue;
        };
        for position in positions.by_ref().take(run.len()) {
            let position = u64::try_from(*position).map_err(|_| {
                RowsError::corrupt(path, format!("a position delete of position {position}"))
            })?;
            deleted.insert(position);
        }
    }
    Ok(())
}

/// A column of a position delete file by its reserved id, or by name in a file without any ids.
fn delete_column(
    schema: &FileSchema,
    id: FieldId,
    name: &str,
    path: &str,
) -> Result<NodeId, RowsError> {
    let has_ids = schema.nodes.iter().any(|node| node.field_id.is_some());
    let is_it = |node: &NodeId| {
        schema.get(*node).is_some_and(|node| {
            if has_ids {
                node.field_id == Some(id.0)
            } else {
                node.name == name
            }
        })
    };
    schema.roots.iter().copied().find(is_it).ok_or_else(|| {
        RowsError::corrupt(
            path,
            format!("position deletes without the column {name} (field id {id})"),
        )
    })
}

fn vector_positions(
    file: &ScanFile,
    vector: &DeleteFile,
    storage: &Storage,
    cache: &Cache,
) -> Result<Arc<RoaringTreemap>, RowsError> {
    let path = &vector.file.path;
    let rows = file.file.record_count;
    let corrupt = |reason: String| {
        RowsError::corrupt(
            path,
            format!("the deletion vector of {}: {reason}", file.file.path),
        )
    };
    let details = vector.file.deletes();
    let (Some(offset), Some(size)) = (details.content_offset, details.content_size) else {
        return Err(corrupt(
            "has no content_offset or content_size_in_bytes".to_owned(),
        ));
    };
    let max_size = (rows / 65_536 + 2).saturating_mul(MAX_CONTAINER);
    if size > max_size {
        return Err(corrupt(format!(
            "{size} bytes, where {rows} rows need {max_size} at most"
        )));
    }
    let expected = Expected {
        size: Some(vector.file.file_size),
        first: Some(offset..offset.saturating_add(size)),
    };
    let source = storage.open_expecting(path, &expected)?;
    let part = format!("{offset} {size} {}", vector.file.record_count);
    let positions = cache.get_or_make(content_key("deletion-vector", &source, &part), || {
        let blob = source.read_range(offset, size)?;
        let positions = deletion_vector::parse(&blob, vector.file.record_count)
            .map_err(|error| corrupt(error.to_string()))?;
        storage.counters().position_deletes_read.add(1);
        let weight = positions.serialized_size();
        Ok::<_, RowsError>((positions, weight))
    })?;
    match positions.max() {
        Some(last) if last >= rows => Err(corrupt(format!(
            "deletes position {last}, past the end of the data file ({rows} rows)"
        ))),
        _ => Ok(positions),
    }
}

#[cfg(test)]
mod tests;
