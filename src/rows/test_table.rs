//! Files of a table in a temporary directory, for tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::WriterProperties;

use crate::cache::Cache;
use crate::counters::Counters;
use crate::iceberg::manifest::{
    DataFile, DeleteDetails, FileContent, FileFormat, PartitionTuple, SequenceNumber,
};
use crate::iceberg::partition::SpecId;
use crate::iceberg::types::FieldId;
use crate::scan::{DeleteFile, FileDeletes, ScanFile};
use crate::storage::{Storage, StorageOptions};

/// Where the tables of tests are recorded to lie.
pub const LOCATION: &str = "s3://bucket/table";

pub struct TestTable {
    pub directory: tempfile::TempDir,
    pub storage: Storage,
    pub cache: Cache,
    pub counters: Arc<Counters>,
}

/// A column with a field id (or none), whose values may be null where `nullable`.
pub fn column(id: Option<i32>, name: &str, nullable: bool, values: ArrayRef) -> (Field, ArrayRef) {
    (
        with_id(Field::new(name, values.data_type().clone(), nullable), id),
        values,
    )
}

pub fn with_id(field: Field, id: Option<i32>) -> Field {
    let ids = id.map(|id| ("PARQUET:field_id".to_owned(), id.to_string()));
    field.with_metadata(HashMap::from_iter(ids))
}

impl TestTable {
    pub fn new() -> TestTable {
        let directory = tempfile::tempdir().unwrap();
        let counters = Arc::new(Counters::default());
        let options = StorageOptions::new(counters.clone());
        let storage = Storage::new(
            &options,
            &directory.path().into(),
            &Default::default(),
            LOCATION,
            &[],
        )
        .unwrap();
        TestTable {
            directory,
            storage,
            cache: Cache::new(1 << 20, counters.clone()),
            counters,
        }
    }

    /// The recorded path of a file.
    pub fn path(&self, name: &str) -> String {
        format!("{LOCATION}/{name}")
    }

    /// Writes a Parquet file with row groups of `group_rows`, and says what a manifest would.
    pub fn parquet(
        &self,
        content: FileContent,
        name: &str,
        group_rows: usize,
        columns: Vec<(Field, ArrayRef)>,
    ) -> DataFile {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group_rows))
            .build();
        self.parquet_as(content, name, properties, columns)
    }

    /// The same of a file written in a way of its own.
    pub fn parquet_as(
        &self,
        content: FileContent,
        name: &str,
        properties: WriterProperties,
        columns: Vec<(Field, ArrayRef)>,
    ) -> DataFile {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let file = File::create(self.directory.path().join(name)).unwrap();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        self.entry(content, name, batch.num_rows() as u64)
    }

    /// What a manifest would say of a file.
    pub fn entry(&self, content: FileContent, name: &str, record_count: u64) -> DataFile {
        DataFile {
            content,
            path: self.path(name),
            format: FileFormat::Parquet,
            spec_id: SpecId(0),
            partition: Arc::new(PartitionTuple::default()),
            record_count,
            file_size: 0,
            split_offsets_count: 0,
            first_row_id: None,
            column_statistics: None,
            delete_details: None,
            key_metadata: false,
        }
    }
}

pub fn scan_file(file: DataFile, deletes: FileDeletes) -> ScanFile {
    ScanFile {
        file: Arc::new(file),
        sequence_number: SequenceNumber(1),
        deletes,
    }
}

pub fn deletes(file: DataFile) -> Arc<DeleteFile> {
    Arc::new(DeleteFile {
        file: Arc::new(file),
        sequence_number: SequenceNumber(2),
    })
}

pub fn equality_on(file: DataFile, ids: &[i32]) -> Arc<DeleteFile> {
    deletes(DataFile {
        delete_details: Some(Box::new(DeleteDetails {
            equality_ids: ids.iter().copied().map(FieldId).collect(),
            ..DeleteDetails::default()
        })),
        ..file
    })
}
