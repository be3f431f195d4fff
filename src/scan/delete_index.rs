//! Which deletes apply to which data file (spec, "Scan Planning"; rules 26 to 31).
//!
//! The index is built once over all live delete files of a snapshot, and asked for each data file; what it costs is
//! about linear in the number of files and of matches.
//!
//! | a delete                                        | is found by                     | applies where the data file's sequence number is |
//! |--------------------------------------------------|---------------------------------|---------------|
//! | deletion vector                                  | the path it refers to           | not higher    |
//! | position deletes that refer to one path          | that path                       | not higher    |
//! | other position deletes                           | spec and partition              | not higher    |
//! | equality deletes of an unpartitioned spec        | nothing: all data files         | lower         |
//! | other equality deletes                           | spec and partition              | lower         |
//!
//! A vector replaces all position deletes of its file. What is matched by path must agree in partition too: where it
//! does not, one of the two is wrong, and reading is refused.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::iceberg::manifest::{DataFile, FileContent, FileFormat, PartitionTuple, SequenceNumber};
use crate::iceberg::partition::SpecId;
use crate::iceberg::schema::reserved;
use crate::iceberg::types::FieldId;
use crate::iceberg::value::Value;

use super::{DeleteFile, FileDeletes, ScanError};

/// A path as [`Storage::canonical`](crate::storage::Storage::canonical) gives it: equal for all spellings of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CanonicalPath(pub String);

/// Deletes in the order of their sequence numbers.
#[derive(Debug, Default)]
struct Sequenced(Vec<Arc<DeleteFile>>);

impl Sequenced {
    fn sort(&mut self) {
        self.0.sort_by(|a, b| {
            (a.sequence_number, &a.file.path).cmp(&(b.sequence_number, &b.file.path))
        });
    }

    /// Those whose sequence number is at least this.
    fn from(&self, sequence_number: SequenceNumber) -> &[Arc<DeleteFile>] {
        let start = self
            .0
            .partition_point(|delete| delete.sequence_number < sequence_number);
        self.0.get(start..).unwrap_or_default()
    }

    /// Those whose sequence number is higher than this.
    fn after(&self, sequence_number: SequenceNumber) -> &[Arc<DeleteFile>] {
        let start = self
            .0
            .partition_point(|delete| delete.sequence_number <= sequence_number);
        self.0.get(start..).unwrap_or_default()
    }
}

/// A partition of one spec, comparable between manifests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Partition {
    spec: SpecId,
    values: Vec<(FieldId, Option<Value>)>,
}

impl Partition {
    fn of(file: &DataFile) -> Partition {
        let PartitionTuple { fields } = file.partition.as_ref();
        let values = fields
            .iter()
            .map(|(id, value)| (*id, value.as_ref().map(widened)))
            .collect();
        Partition {
            spec: file.spec_id,
            values,
        }
    }
}

/// A partition value as the widest type it can have been promoted to: manifests of one spec, written before and after
/// a promotion, hold one value in two types. A `day` is an `int` to some writers and a `date` to others.
fn widened(value: &Value) -> Value {
    match value {
        Value::Int(v) | Value::Date(v) => Value::Long(i64::from(*v)),
        Value::Float(bits) => Value::double(f64::from(f32::from_bits(*bits))),
        other => other.clone(),
    }
}

/// The live deletes of a snapshot, by what they can apply to.
#[derive(Debug, Default)]
pub struct DeleteIndex {
    vectors: HashMap<CanonicalPath, Vec<Arc<DeleteFile>>>,
    position_by_path: HashMap<CanonicalPath, Sequenced>,
    position_by_partition: HashMap<Partition, Sequenced>,
    equality_by_partition: HashMap<Partition, Sequenced>,
    equality_everywhere: Sequenced,
}

impl DeleteIndex {
    /// Indexes a snapshot's live deletes. `live` are those of the paths [`named_by_bounds`] that are live data files';
    /// `is_unpartitioned` says of a spec whether no field of it partitions anything.
    ///
    /// # Errors
    /// A vector that does not say where it lies or which file it is for; equality deletes without columns.
    pub fn build(
        deletes: Vec<Arc<DeleteFile>>,
        live: &HashSet<CanonicalPath>,
        canonical: impl Fn(&str) -> CanonicalPath,
        is_unpartitioned: impl Fn(SpecId) -> bool,
    ) -> Result<DeleteIndex, ScanError> {
        let mut index = DeleteIndex::default();
        for delete in deletes {
            let file = &delete.file;
            match file.content {
                FileContent::Data => {
                    return Err(ScanError::corrupt(
                        &file.path,
                        "a data file in a manifest of deletes",
                    ));
                }
                FileContent::EqualityDeletes => {
                    if file.deletes().equality_ids.is_empty() {
                        return Err(ScanError::corrupt(
                            &file.path,
                            "equality deletes that name no column",
                        ));
                    }
                    if is_unpartitioned(file.spec_id) {
                        index.equality_everywhere.0.push(delete);
                    } else {
                        index
                            .equality_by_partition
                            .entry(Partition::of(file))
                            .or_default()
                            .0
                            .push(delete);
                    }
                }
                FileContent::PositionDeletes if file.format == FileFormat::Puffin => {
                    let Some(path) = &file.deletes().referenced_data_file else {
                        return Err(ScanError::corrupt(
                            &file.path,
                            "a deletion vector that refers to no data file",
                        ));
                    };
                    if file.deletes().content_offset.is_none()
                        || file.deletes().content_size.is_none()
                    {
                        return Err(ScanError::corrupt(
                            &file.path,
                            format!(
                                "the deletion vector of {path} has no content_offset or content_size_in_bytes"
                            ),
                        ));
                    }
                    index
                        .vectors
                        .entry(canonical(path))
                        .or_default()
                        .push(delete);
                }
                FileContent::PositionDeletes => {
                    let path = match &file.deletes().referenced_data_file {
                        Some(path) => Some(canonical(path)),
                        // Equal bounds name one path. One that is no live file's may have been cut short by its writer.
                        None => only_path(file)
                            .map(&canonical)
                            .filter(|path| live.contains(path)),
                    };
                    match path {
                        Some(path) => index
                            .position_by_path
                            .entry(path)
                            .or_default()
                            .0
                            .push(delete),
                        None => index
                            .position_by_partition
                            .entry(Partition::of(file))
                            .or_default()
                            .0
                            .push(delete),
                    }
                }
            }
        }
        index.equality_everywhere.sort();
        index
            .position_by_path
            .values_mut()
            .for_each(Sequenced::sort);
        index
            .position_by_partition
            .values_mut()
            .for_each(Sequenced::sort);
        index
            .equality_by_partition
            .values_mut()
            .for_each(Sequenced::sort);
        Ok(index)
    }

    /// The deletes that apply to a data file, each kind in the order of sequence numbers. `path` is asked for where deletes
    /// are known by path.
    ///
    /// # Errors
    /// Two vectors for the file, a vector older than the file, or deletes that name the file but lie in another
    /// partition.
    pub fn for_file(
        &self,
        file: &DataFile,
        path: impl FnOnce() -> CanonicalPath,
        sequence_number: SequenceNumber,
    ) -> Result<FileDeletes, ScanError> {
        if self.is_empty() {
            return Ok(FileDeletes::default());
        }
        let partition = Partition::of(file);
        let by_path = !self.vectors.is_empty() || !self.position_by_path.is_empty();
        let path = by_path.then(path);
        let path = path.as_ref();
        let vector = path.map(|path| self.vector(file, path, &partition, sequence_number));
        let mut deletes = FileDeletes {
            vector: vector.transpose()?.flatten(),
            ..Default::default()
        };
        if deletes.vector.is_none() {
            if let Some(by_path) = path.and_then(|path| self.position_by_path.get(path)) {
                for delete in by_path.from(sequence_number) {
                    check_partition(delete, &partition, file)?;
                    deletes.position.push(delete.clone());
                }
            }
            if let Some(by_partition) = self.position_by_partition.get(&partition) {
                deletes
                    .position
                    .extend_from_slice(by_partition.from(sequence_number));
            }
        }
        deletes
            .equality
            .extend_from_slice(self.equality_everywhere.after(sequence_number));
        if let Some(by_partition) = self.equality_by_partition.get(&partition) {
            deletes
                .equality
                .extend_from_slice(by_partition.after(sequence_number));
        }
        Ok(deletes)
    }

    fn is_empty(&self) -> bool {
        self.vectors.is_empty()
            && self.position_by_path.is_empty()
            && self.position_by_partition.is_empty()
            && self.equality_by_partition.is_empty()
            && self.equality_everywhere.0.is_empty()
    }

    fn vector(
        &self,
        file: &DataFile,
        path: &CanonicalPath,
        partition: &Partition,
        sequence_number: SequenceNumber,
    ) -> Result<Option<Arc<DeleteFile>>, ScanError> {
        let vector = match self.vectors.get(path).map(Vec::as_slice) {
            None | Some([]) => return Ok(None),
            Some([vector]) => vector,
            Some([first, second, ..]) => {
                return Err(ScanError::corrupt(
                    &file.path,
                    format!(
                        "two deletion vectors apply to it, in {} and {}",
                        first.file.path, second.file.path
                    ),
                ));
            }
        };
        check_partition(vector, partition, file)?;
        if vector.sequence_number < sequence_number {
            return Err(ScanError::corrupt(
                &file.path,
                format!(
                    "its deletion vector in {} has sequence number {}, which is lower than the file's own, {}",
                    vector.file.path, vector.sequence_number.0, sequence_number.0
                ),
            ));
        }
        Ok(Some(vector.clone()))
    }
}

fn check_partition(
    delete: &DeleteFile,
    partition: &Partition,
    file: &DataFile,
) -> Result<(), ScanError> {
    if Partition::of(&delete.file) == *partition {
        return Ok(());
    }
    Err(ScanError::corrupt(
        &file.path,
        format!(
            "the deletes in {} refer to it, but lie in another partition",
            delete.file.path
        ),
    ))
}

/// The data files that position deletes name by their bounds alone.
pub fn named_by_bounds(
    deletes: &[Arc<DeleteFile>],
    canonical: impl Fn(&str) -> CanonicalPath,
) -> HashSet<CanonicalPath> {
    let of_positions = deletes.iter().filter(|delete| {
        delete.file.content == FileContent::PositionDeletes
            && delete.file.deletes().referenced_data_file.is_none()
    });
    of_positions
        .filter_map(|delete| only_path(&delete.file).map(&canonical))
        .collect()
}

/// The one data file that a vector or position deletes name.
pub fn named(file: &DataFile) -> Option<&str> {
    let referenced = file.deletes().referenced_data_file.as_deref();
    referenced.or_else(|| only_path(file))
}

/// The one data file that position deletes name, where their bounds say so.
fn only_path(file: &DataFile) -> Option<&str> {
    fn path_bound(bounds: &[(FieldId, Box<[u8]>)]) -> Option<&[u8]> {
        bounds
            .iter()
            .find(|(id, _)| *id == reserved::DELETE_FILE_PATH)
            .map(|(_, bytes)| bytes.as_ref())
    }
    let lower = path_bound(&file.statistics().lower_bounds)?;
    let upper = path_bound(&file.statistics().upper_bounds)?;
    if lower == upper {
        std::str::from_utf8(lower).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
