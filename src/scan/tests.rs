#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::iceberg::manifest::{FileFormat, PartitionTuple};

use super::*;

fn data_file() -> DataFile {
    DataFile {
        content: FileContent::Data,
        path: "/t/a".into(),
        format: FileFormat::Parquet,
        spec_id: SpecId(0),
        partition: Arc::new(PartitionTuple::default()),
        record_count: 1,
        file_size: 1,
        split_offsets_count: 0,
        first_row_id: None,
        column_statistics: None,
        delete_details: None,
        key_metadata: false,
    }
}

#[test]
fn rule_13_an_encrypted_file_is_refused_by_name() {
    let error = check_entry(&DataFile {
        key_metadata: true,
        ..data_file()
    })
    .unwrap_err();
    assert!(error.is_unsupported());
    assert_eq!(
        error.to_string(),
        "/t/a: an encrypted file is not supported"
    );
}

#[test]
fn rule_35_row_ids_that_overflow_are_refused() {
    let with = |record_count, first_row_id| {
        check_entry(&DataFile {
            record_count,
            first_row_id,
            ..data_file()
        })
    };
    assert!(with(10, Some(i64::MAX - 10)).is_ok());
    assert!(with(11, Some(i64::MAX - 10)).is_err());
    assert!(with(u64::MAX, None).is_err());
    assert!(with(1, Some(-1)).is_err());
}
