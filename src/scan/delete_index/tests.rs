#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::iceberg::manifest::{ColumnStatistics, DeleteDetails};
use crate::scan::{ScanFile, match_deletes};

/// Spec 0 is unpartitioned; all others partition by field 1000.
fn file(content: FileContent, path: &str, spec: i32, partition: Option<Value>) -> DataFile {
    let fields = if spec == 0 {
        vec![]
    } else {
        vec![(FieldId(1000), partition)]
    };
    DataFile {
        content,
        path: path.to_owned(),
        format: FileFormat::Parquet,
        spec_id: SpecId(spec),
        partition: Arc::new(PartitionTuple { fields }),
        record_count: 100,
        file_size: 1000,
        split_offsets_count: 0,
        first_row_id: None,
        key_metadata: false,
        column_statistics: None,
        delete_details: (content == FileContent::EqualityDeletes).then(|| {
            Box::new(DeleteDetails {
                equality_ids: vec![FieldId(1)],
                ..DeleteDetails::default()
            })
        }),
    }
}

fn details(file: &mut Arc<DataFile>) -> &mut DeleteDetails {
    Arc::make_mut(file).delete_details.get_or_insert_default()
}

fn statistics(file: &mut Arc<DataFile>) -> &mut ColumnStatistics {
    Arc::make_mut(file)
        .column_statistics
        .get_or_insert_default()
}

fn in_partition(value: i32) -> (i32, Option<Value>) {
    (1, Some(Value::Int(value)))
}

const UNPARTITIONED: (i32, Option<Value>) = (0, None);

fn data(path: &str, sequence_number: i64, (spec, value): (i32, Option<Value>)) -> ScanFile {
    ScanFile {
        file: Arc::new(file(FileContent::Data, path, spec, value)),
        sequence_number: SequenceNumber(sequence_number),
        deletes: FileDeletes::default(),
    }
}

fn delete(
    content: FileContent,
    path: &str,
    sequence_number: i64,
    (spec, value): (i32, Option<Value>),
) -> DeleteFile {
    DeleteFile {
        file: Arc::new(file(content, path, spec, value)),
        sequence_number: SequenceNumber(sequence_number),
    }
}

fn position(path: &str, sequence_number: i64, partition: (i32, Option<Value>)) -> DeleteFile {
    delete(
        FileContent::PositionDeletes,
        path,
        sequence_number,
        partition,
    )
}

fn equality(path: &str, sequence_number: i64, partition: (i32, Option<Value>)) -> DeleteFile {
    delete(
        FileContent::EqualityDeletes,
        path,
        sequence_number,
        partition,
    )
}

fn referring_to(data: &str, mut delete: DeleteFile) -> DeleteFile {
    details(&mut delete.file).referenced_data_file = Some(data.to_owned());
    delete
}

fn vector(
    path: &str,
    data: &str,
    sequence_number: i64,
    partition: (i32, Option<Value>),
) -> DeleteFile {
    let mut vector = referring_to(data, position(path, sequence_number, partition));
    Arc::make_mut(&mut vector.file).format = FileFormat::Puffin;
    details(&mut vector.file).content_offset = Some(4);
    details(&mut vector.file).content_size = Some(40);
    vector
}

/// As storage does, takes two spellings of one place for equal.
fn canonical(path: &str) -> CanonicalPath {
    CanonicalPath(path.strip_prefix("hdfs://host").unwrap_or(path).to_owned())
}

fn plan(data: Vec<ScanFile>, deletes: Vec<DeleteFile>) -> Result<Vec<ScanFile>, ScanError> {
    // Of the specs, 0 has no field and 9 only void ones.
    match_deletes(
        data,
        deletes.into_iter().map(Arc::new).collect(),
        canonical,
        |SpecId(spec)| spec == 0 || spec == 9,
    )
}

/// What applies to the only data file: `position | vector | equality`, by path.
fn applied(data: ScanFile, deletes: Vec<DeleteFile>) -> String {
    let plan = plan(vec![data], deletes).unwrap();
    let deletes = &plan[0].deletes;
    let names = |files: &[Arc<DeleteFile>]| {
        files
            .iter()
            .map(|delete| delete.file.path.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let vector: Vec<_> = deletes.vector.iter().cloned().collect();
    format!(
        "{} | {} | {}",
        names(&deletes.position),
        names(&vector),
        names(&deletes.equality)
    )
}

fn refused(data: ScanFile, deletes: Vec<DeleteFile>, reason: &str) {
    let error = plan(vec![data], deletes).unwrap_err();
    assert!(error.to_string().contains(reason), "{error}");
    assert!(!error.is_unsupported());
}

#[test]
fn rule_23_a_path_that_is_live_twice_is_an_error_in_any_spelling() {
    let twice = vec![
        data("/t/a", 1, UNPARTITIONED),
        data("hdfs://host/t/a", 2, UNPARTITIONED),
    ];
    let error = plan(twice, vec![]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hdfs://host/t/a: this data file is in the snapshot twice"
    );
}

#[test]
fn rule_26_position_deletes_match_spec_partition_and_sequence_number() {
    let deletes = vec![
        position("older", 4, in_partition(7)),
        position("same", 5, in_partition(7)),
        position("newer", 6, in_partition(7)),
        position("elsewhere", 6, in_partition(8)),
        position("other-spec", 6, (2, Some(Value::Int(7)))),
        position("unpartitioned", 6, UNPARTITIONED),
    ];
    assert_eq!(
        applied(data("/t/a", 5, in_partition(7)), deletes),
        "same newer |  | "
    );
}

#[test]
fn rule_26_position_deletes_that_refer_to_a_file_apply_to_it_alone() {
    let deletes = || {
        vec![
            referring_to("hdfs://host/t/a", position("for-a", 5, UNPARTITIONED)),
            referring_to("/t/b", position("for-b", 5, UNPARTITIONED)),
            referring_to("/t/a", position("too-old", 4, UNPARTITIONED)),
        ]
    };
    assert_eq!(
        applied(data("/t/a", 5, UNPARTITIONED), deletes()),
        "for-a |  | "
    );
    assert_eq!(
        applied(data("/t/b", 5, UNPARTITIONED), deletes()),
        "for-b |  | "
    );
}

#[test]
fn rule_26_equal_bounds_of_file_path_tell_which_file_is_meant() {
    let bounded = |name: &str, lower: &str, upper: &str| {
        let mut delete = position(name, 5, UNPARTITIONED);
        statistics(&mut delete.file).lower_bounds =
            vec![(reserved::DELETE_FILE_PATH, lower.as_bytes().into())];
        statistics(&mut delete.file).upper_bounds =
            vec![(reserved::DELETE_FILE_PATH, upper.as_bytes().into())];
        delete
    };
    let deletes = || {
        vec![
            bounded("for-b", "/t/b", "/t/b"),
            bounded("cut", "/t/", "/t/"),
            bounded("both", "/t/a", "/t/b"),
        ]
    };
    let files = vec![
        data("/t/a", 1, UNPARTITIONED),
        data("/t/b", 1, UNPARTITIONED),
    ];
    let plan = plan(files, deletes()).unwrap();
    let names = |file: usize| -> Vec<_> {
        plan[file]
            .deletes
            .position
            .iter()
            .map(|delete| delete.file.path.as_str())
            .collect()
    };
    assert_eq!(names(0), ["both", "cut"]);
    assert_eq!(names(1), ["for-b", "both", "cut"]);
}

#[test]
fn rule_27_a_vector_replaces_position_deletes_and_leaves_equality_deletes() {
    let deletes = vec![
        position("p", 6, UNPARTITIONED),
        referring_to("/t/a", position("r", 6, UNPARTITIONED)),
        vector("v", "/t/a", 5, UNPARTITIONED),
        vector("v", "/t/other", 5, UNPARTITIONED),
        equality("e", 6, UNPARTITIONED),
    ];
    assert_eq!(applied(data("/t/a", 5, UNPARTITIONED), deletes), " | v | e");
}

#[test]
fn rule_27_two_vectors_for_one_file_are_an_error() {
    let deletes = vec![
        vector("v", "/t/a", 5, UNPARTITIONED),
        vector("w", "hdfs://host/t/a", 6, UNPARTITIONED),
    ];
    refused(
        data("/t/a", 5, UNPARTITIONED),
        deletes,
        "two deletion vectors apply to it, in v and w",
    );
}

#[test]
fn rule_27_a_vector_must_say_what_it_is_for_and_where_it_lies() {
    let mut nameless = vector("v", "/t/a", 5, UNPARTITIONED);
    details(&mut nameless.file).referenced_data_file = None;
    refused(
        data("/t/a", 5, UNPARTITIONED),
        vec![nameless],
        "refers to no data file",
    );
    let mut placeless = vector("v", "/t/a", 5, UNPARTITIONED);
    details(&mut placeless.file).content_offset = None;
    refused(
        data("/t/a", 5, UNPARTITIONED),
        vec![placeless],
        "content_offset",
    );
}

#[test]
fn rule_28_deletes_matched_by_path_in_another_partition_are_refused() {
    let file = || data("/t/a", 5, in_partition(7));
    let reason = "lie in another partition";
    refused(
        file(),
        vec![vector("v", "/t/a", 5, in_partition(8))],
        reason,
    );
    refused(
        file(),
        vec![vector("v", "/t/a", 5, (2, Some(Value::Int(7))))],
        reason,
    );
    refused(
        file(),
        vec![referring_to("/t/a", position("p", 5, in_partition(8)))],
        reason,
    );
    refused(
        file(),
        vec![referring_to("/t/a", position("p", 5, UNPARTITIONED))],
        reason,
    );
}

#[test]
fn rule_28_a_vector_older_than_its_file_is_refused() {
    refused(
        data("/t/a", 5, UNPARTITIONED),
        vec![vector("v", "/t/a", 4, UNPARTITIONED)],
        "sequence number 4",
    );
}

#[test]
fn rule_29_equality_deletes_match_older_files_of_their_partition_or_everywhere() {
    let deletes = vec![
        equality("same", 5, in_partition(7)),
        equality("newer", 6, in_partition(7)),
        equality("elsewhere", 6, in_partition(8)),
        equality("other-spec", 6, (2, Some(Value::Int(7)))),
        equality("global-same", 5, UNPARTITIONED),
        equality("global-newer", 6, UNPARTITIONED),
        equality("all-void", 7, (9, None)),
    ];
    assert_eq!(
        applied(data("/t/a", 5, in_partition(7)), deletes),
        " |  | global-newer all-void newer"
    );
}

#[test]
fn rule_29_equality_deletes_without_columns_are_an_error() {
    let mut keyless = equality("e", 6, UNPARTITIONED);
    details(&mut keyless.file).equality_ids.clear();
    refused(
        data("/t/a", 5, UNPARTITIONED),
        vec![keyless],
        "name no column",
    );
}

#[test]
fn rule_30_bounds_of_other_columns_discard_no_delete() {
    let mut file = data("/t/a", 5, UNPARTITIONED);
    statistics(&mut file.file).lower_bounds = vec![(FieldId(2), [0].into())];
    statistics(&mut file.file).upper_bounds = vec![(FieldId(2), [1].into())];
    let mut delete = equality("e", 6, UNPARTITIONED);
    statistics(&mut delete.file).lower_bounds = vec![(FieldId(2), [5].into())];
    statistics(&mut delete.file).upper_bounds = vec![(FieldId(2), [6].into())];
    assert_eq!(applied(file, vec![delete]), " |  | e");
}

#[test]
fn rule_31_within_a_commit_positions_apply_and_equality_does_not() {
    let deletes = vec![
        position("p", 5, UNPARTITIONED),
        equality("e", 5, UNPARTITIONED),
    ];
    assert_eq!(applied(data("/t/a", 5, UNPARTITIONED), deletes), "p |  | ");
    assert_eq!(
        applied(
            data("/t/a", 5, UNPARTITIONED),
            vec![vector("v", "/t/a", 5, UNPARTITIONED)]
        ),
        " | v | "
    );
}

#[test]
fn rule_25_partitions_are_equal_by_bits_and_across_promotions() {
    let deletes = |value| vec![position("p", 5, (1, value))];
    let applies = |data_value, delete_value| {
        applied(data("/t/a", 5, (1, data_value)), deletes(delete_value)) == "p |  | "
    };
    assert!(applies(Some(Value::Int(7)), Some(Value::Long(7))));
    assert!(applies(Some(Value::Date(7)), Some(Value::Int(7))));
    assert!(applies(Some(Value::float(1.5)), Some(Value::double(1.5))));
    assert!(applies(
        Some(Value::float(f32::NAN)),
        Some(Value::double(f64::NAN))
    ));
    assert!(applies(None, None));
    assert!(!applies(None, Some(Value::Int(0))));
    assert!(!applies(
        Some(Value::double(0.0)),
        Some(Value::double(-0.0))
    ));
}
