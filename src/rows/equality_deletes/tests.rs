#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Field, Fields};
use proptest::prelude::*;

use super::*;
use crate::iceberg::manifest::{DataFile, FileContent, FileFormat, PartitionTuple};
use crate::iceberg::partition::SpecId;
use crate::rows::test_table::{TestTable, column, equality_on, scan_file, with_id};
use crate::scan::FileDeletes;

mod words;

/// A v3 table whose schemas have these fields (JSON), the last one current; spec 1 partitions by field 1.
fn metadata(schemas: &[&str]) -> TableMetadata {
    let all: Vec<String> = schemas
        .iter()
        .enumerate()
        .map(|(id, fields)| {
            format!(r#"{{"type": "struct", "schema-id": {id}, "fields": [{fields}]}}"#)
        })
        .collect();
    let json = format!(
        r#"{{"format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://bucket/table",
        "last-sequence-number": 9, "last-updated-ms": 0, "last-column-id": 99, "next-row-id": 0,
        "schemas": [{}], "current-schema-id": {}, "partition-specs": [{{"spec-id": 0, "fields": []}},
        {{"spec-id": 1, "fields": [{{"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}}]}}],
        "default-spec-id": 0, "last-partition-id": 1000, "sort-orders": [{{"order-id": 0, "fields": []}}],
        "default-sort-order-id": 0}}"#,
        all.join(","),
        schemas.len() - 1
    );
    TableMetadata::parse(json.as_bytes()).unwrap()
}

fn field(id: i32, name: &str, ty: &str) -> String {
    format!(r#"{{"id": {id}, "name": "{name}", "required": false, "type": "{ty}"}}"#)
}

fn under(data: DataFile, equality: Vec<Arc<DeleteFile>>) -> ScanFile {
    scan_file(
        data,
        FileDeletes {
            equality,
            ..Default::default()
        },
    )
}

fn deleted_by(
    table: &TestTable,
    metadata: &TableMetadata,
    file: &ScanFile,
) -> Result<Vec<u64>, RowsError> {
    Ok(
        equality_deleted(file, None, metadata, &table.storage, &table.cache)?
            .iter()
            .collect(),
    )
}

/// Which of the data file's rows go, where both files have one column (id 1).
fn one_column(ty: &str, data: ArrayRef, deletes: ArrayRef) -> Vec<u64> {
    let table = TestTable::new();
    let data = table.parquet(
        FileContent::Data,
        "data",
        3,
        vec![column(Some(1), "a", true, data)],
    );
    let deletes = table.parquet(
        FileContent::EqualityDeletes,
        "eq",
        2,
        vec![column(Some(1), "a", true, deletes)],
    );
    let file = under(data, vec![equality_on(deletes, &[1])]);
    deleted_by(&table, &metadata(&[&field(1, "a", ty)]), &file).unwrap()
}

fn longs(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn rule_29_null_equals_null_and_nothing_else() {
    let data = longs(&[Some(1), None, Some(2), Some(0), None, Some(1), Some(3)]);
    assert_eq!(
        one_column("long", data.clone(), longs(&[Some(1), Some(3)])),
        [0, 5, 6]
    );
    assert_eq!(one_column("long", data.clone(), longs(&[None])), [1, 4]);
    assert_eq!(one_column("long", data, longs(&[])), [] as [u64; 0]);
}

#[test]
fn rule_29_every_type_compares() {
    assert_eq!(
        one_column(
            "boolean",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            Arc::new(BooleanArray::from(vec![false]))
        ),
        [1]
    );
    assert_eq!(
        one_column(
            "string",
            strings(&[Some("a"), None, Some(""), Some("ab")]),
            strings(&[Some(""), Some("ab")])
        ),
        [2, 3]
    );
    let binary = |values: Vec<&[u8]>| -> ArrayRef { Arc::new(BinaryArray::from_vec(values)) };
    assert_eq!(
        one_column("binary", binary(vec![b"a", b"\xff"]), binary(vec![b"\xff"])),
        [1]
    );
    let uuids = |values: &[u8]| -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::try_from_iter(values.iter().map(|v| vec![*v; 16])).unwrap())
    };
    assert_eq!(one_column("uuid", uuids(&[1, 2, 3]), uuids(&[3])), [2]);
    let dates = |values: Vec<i32>| -> ArrayRef { Arc::new(Date32Array::from(values)) };
    assert_eq!(one_column("date", dates(vec![0, -1]), dates(vec![-1])), [1]);
    let times =
        |values: Vec<i64>| -> ArrayRef { Arc::new(TimestampMicrosecondArray::from(values)) };
    assert_eq!(
        one_column("timestamp", times(vec![0, -1]), times(vec![-1])),
        [1]
    );
}

#[test]
fn rule_29_floats_compare_as_java_does() {
    let other_nan = f64::from_bits(0xFFF8_0000_0000_0001);
    let doubles = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
    let data = || doubles(vec![0.0, -0.0, f64::NAN, other_nan, 1.5]);
    assert_eq!(one_column("double", data(), doubles(vec![-0.0])), [1]);
    assert_eq!(
        one_column("double", data(), doubles(vec![f64::NAN])),
        [2, 3]
    );
}

#[test]
fn rule_42_keys_compare_in_the_type_the_column_has_now() {
    let ints = |values: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
    assert_eq!(
        one_column("long", ints(vec![5, -6]), longs(&[Some(-6)])),
        [1]
    );
    assert_eq!(
        one_column("long", longs(&[Some(5), Some(-6)]), ints(vec![-6])),
        [1]
    );
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 0.5]));
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.1, 0.5]));
    assert_eq!(
        one_column("double", floats, doubles),
        [1],
        "0.1f32 widened is not 0.1f64"
    );
    let decimals = |precision, values: Vec<i128>| -> ArrayRef {
        Arc::new(
            Decimal128Array::from(values)
                .with_precision_and_scale(precision, 2)
                .unwrap(),
        )
    };
    for (stored, deleted) in [(9, 18), (18, 38), (38, 9), (9, 38)] {
        let found = one_column(
            "decimal(38, 2)",
            decimals(stored, vec![100, -1, 7]),
            decimals(deleted, vec![-1, 7]),
        );
        assert_eq!(found, [1, 2]);
    }
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![0, 1]));
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![86_400_000_000]));
    assert_eq!(one_column("timestamp", dates, micros), [1]);
}

#[test]
fn rule_29_several_columns_must_all_be_equal_and_others_are_ignored() {
    let table = TestTable::new();
    let data = table.parquet(
        FileContent::Data,
        "data",
        2,
        vec![
            column(
                Some(2),
                "b",
                true,
                strings(&[Some("x"), Some("y"), None, Some("x"), None]),
            ),
            column(
                Some(1),
                "a",
                true,
                longs(&[Some(1), Some(1), Some(1), None, None]),
            ),
        ],
    );
    let deletes = table.parquet(
        FileContent::EqualityDeletes,
        "eq",
        2,
        vec![
            column(Some(1), "a", true, longs(&[Some(1), Some(1), None])),
            column(Some(3), "ignored", true, longs(&[Some(9), None, Some(9)])),
            column(Some(2), "b", true, strings(&[Some("y"), None, Some("x")])),
        ],
    );
    let metadata = metadata(&[&format!(
        "{},{}",
        field(1, "a", "long"),
        field(2, "b", "string")
    )]);
    let file = under(data, vec![equality_on(deletes, &[2, 1])]);
    assert_eq!(deleted_by(&table, &metadata, &file).unwrap(), [1, 2, 3]);
}

#[test]
fn rule_29_files_on_different_columns_and_several_on_the_same_are_united() {
    let table = TestTable::new();
    let data = || {
        table.parquet(
            FileContent::Data,
            "data",
            2,
            vec![
                column(
                    Some(1),
                    "a",
                    true,
                    longs(&[Some(1), Some(2), Some(3), Some(4), Some(5)]),
                ),
                column(
                    Some(2),
                    "b",
                    true,
                    strings(&[Some("x"), Some("y"), None, Some("z"), None]),
                ),
            ],
        )
    };
    let on_a = |name: &str, values: &[Option<i64>]| {
        let file = table.parquet(
            FileContent::EqualityDeletes,
            name,
            9,
            vec![column(Some(1), "a", true, longs(values))],
        );
        equality_on(file, &[1])
    };
    let on_b = table.parquet(
        FileContent::EqualityDeletes,
        "b",
        9,
        vec![column(Some(2), "b", true, strings(&[Some("x")]))],
    );
    let metadata = metadata(&[&format!(
        "{},{}",
        field(1, "a", "long"),
        field(2, "b", "string")
    )]);
    let file = under(
        data(),
        vec![
            on_a("a1", &[Some(2)]),
            equality_on(on_b, &[2]),
            on_a("a2", &[Some(5), Some(7)]),
        ],
    );
    assert_eq!(deleted_by(&table, &metadata, &file).unwrap(), [0, 1, 4]);

    let some =
        equality_deleted(&file, Some(&[2]), &metadata, &table.storage, &table.cache).unwrap();
    assert_eq!(some.iter().collect::<Vec<_>>(), [4]);
    assert_eq!(table.counters.equality_deletes_read.get(), 3, "each once");
}

#[test]
fn rule_29_dropped_columns_are_found_in_historical_schemas() {
    let table = TestTable::new();
    let data = table.parquet(
        FileContent::Data,
        "data",
        9,
        vec![column(Some(1), "a", true, longs(&[Some(1), Some(2)]))],
    );
    let deletes = table.parquet(
        FileContent::EqualityDeletes,
        "eq",
        9,
        vec![column(Some(1), "a", true, longs(&[Some(2)]))],
    );
    let dropped = metadata(&[&field(1, "a", "long"), &field(2, "b", "long")]);
    let file = under(data, vec![equality_on(deletes, &[1])]);
    assert_eq!(deleted_by(&table, &dropped, &file).unwrap(), [1]);
    let never = metadata(&[&field(2, "b", "long")]);
    let other = TestTable::new();
    fs::copy(
        table.directory.path().join("data"),
        other.directory.path().join("data"),
    )
    .unwrap();
    let error = deleted_by(&other, &never, &file).unwrap_err().to_string();
    assert_eq!(
        error,
        "s3://bucket/table/eq: equality column 1 is in no schema of the table"
    );
}

#[test]
fn rule_29_a_column_the_data_file_lacks_is_projected() {
    let table = TestTable::new();
    let data = || {
        table.parquet(
            FileContent::Data,
            "data",
            2,
            vec![column(Some(9), "z", true, longs(&[None; 3]))],
        )
    };
    let on = |name: &str, value: Option<i64>| {
        let deletes = column(Some(1), "a", true, longs(&[value]));
        vec![equality_on(
            table.parquet(FileContent::EqualityDeletes, name, 9, vec![deletes]),
            &[1],
        )]
    };
    let plain = metadata(&[&field(1, "a", "long")]);
    assert_eq!(
        deleted_by(&table, &plain, &under(data(), on("null", None))).unwrap(),
        [0, 1, 2]
    );
    assert_eq!(
        deleted_by(&table, &plain, &under(data(), on("one", Some(1)))).unwrap(),
        [] as [u64; 0]
    );

    let mut partitioned = data();
    partitioned.spec_id = SpecId(1);
    partitioned.partition = Arc::new(PartitionTuple {
        fields: vec![(FieldId(1000), Some(Value::Int(4)))],
    });
    assert_eq!(
        deleted_by(&table, &plain, &under(partitioned, on("four", Some(4)))).unwrap(),
        [0, 1, 2]
    );

    let defaulted =
        r#"{"id": 1, "name": "a", "required": true, "type": "long", "initial-default": 7}"#;
    let defaulted = metadata(&[defaulted]);
    assert_eq!(
        deleted_by(&table, &defaulted, &under(data(), on("seven", Some(7)))).unwrap(),
        [0, 1, 2]
    );
}

#[test]
fn rule_29_a_delete_file_without_its_column_is_an_error() {
    let table = TestTable::new();
    let data = table.parquet(
        FileContent::Data,
        "data",
        2,
        vec![column(Some(1), "a", true, longs(&[Some(1)]))],
    );
    let lacking = table.parquet(
        FileContent::EqualityDeletes,
        "eq",
        2,
        vec![column(Some(2), "b", true, longs(&[None]))],
    );
    let file = under(data, vec![equality_on(lacking, &[1])]);
    let error = deleted_by(&table, &metadata(&[&field(1, "a", "long")]), &file)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("s3://bucket/table/eq: the required column"),
        "{error}"
    );
}

#[test]
fn rule_29_nested_keys_and_null_parents() {
    let table = TestTable::new();
    let nested = |values: &[Option<i64>], parents: Vec<bool>| {
        let leaf = with_id(
            Field::new("x", arrow::datatypes::DataType::Int64, true),
            Some(2),
        );
        let parent = StructArray::new(
            Fields::from(vec![leaf]),
            vec![longs(values)],
            Some(NullBuffer::from(parents)),
        );
        vec![column(Some(1), "s", true, Arc::new(parent) as ArrayRef)]
    };
    let data = nested(
        &[Some(1), None, Some(9), Some(2)],
        vec![true, true, false, true],
    );
    let data = || table.parquet(FileContent::Data, "data", 2, data.clone());
    let schema = r#"{"id": 1, "name": "s", "required": false, "type": {"type": "struct", "fields":
        [{"id": 2, "name": "x", "required": false, "type": "long"},
         {"id": 3, "name": "y", "required": true, "type": "long"}]}},
        {"id": 4, "name": "l", "required": false,
         "type": {"type": "list", "element-id": 5, "element": "long", "element-required": false}}"#;
    let metadata = metadata(&[schema]);
    let on = |name: &str, values: &[Option<i64>]| {
        let columns = nested(values, vec![true; values.len()]);
        table.parquet(FileContent::EqualityDeletes, name, 9, columns)
    };
    let two = vec![equality_on(on("two", &[Some(2), Some(9)]), &[2])];
    assert_eq!(
        deleted_by(&table, &metadata, &under(data(), two)).unwrap(),
        [3]
    );
    let null = vec![equality_on(on("null", &[None]), &[2])];
    assert_eq!(
        deleted_by(&table, &metadata, &under(data(), null)).unwrap(),
        [1, 2]
    );

    let in_list = under(data(), vec![equality_on(on("list", &[None]), &[5])]);
    assert!(
        deleted_by(&table, &metadata, &in_list)
            .unwrap_err()
            .to_string()
            .contains("lies in a list or map")
    );
    let whole = under(data(), vec![equality_on(on("whole", &[None]), &[1])]);
    assert!(
        deleted_by(&table, &metadata, &whole)
            .unwrap_err()
            .to_string()
            .contains("not of a primitive type")
    );
}

#[test]
fn rule_29_a_leaf_added_with_a_default_is_null_where_its_struct_is() {
    let table = TestTable::new();
    let of = |id: i32, name: &str, values: &[Option<i64>], parents: Vec<bool>| {
        let leaf = Field::new(name, arrow::datatypes::DataType::Int64, true);
        let parent = StructArray::new(
            Fields::from(vec![with_id(leaf, Some(id))]),
            vec![longs(values)],
            Some(NullBuffer::from(parents)),
        );
        vec![column(Some(1), "s", true, Arc::new(parent) as ArrayRef)]
    };
    let data = of(2, "x", &[Some(1), None, None], vec![true, false, true]);
    let schema = r#"{"id": 1, "name": "s", "required": false, "type": {"type": "struct", "fields":
        [{"id": 2, "name": "x", "required": false, "type": "long"},
         {"id": 3, "name": "y", "required": false, "type": "long", "initial-default": 7}]}}"#;
    let metadata = metadata(&[schema]);
    for (name, value, deleted) in [("seven", Some(7), [0, 2].as_slice()), ("null", None, &[1])] {
        let keys = of(3, "y", &[value], vec![true]);
        let keys = table.parquet(FileContent::EqualityDeletes, name, 9, keys);
        let data = table.parquet(FileContent::Data, "data", 2, data.clone());
        let file = under(data, vec![equality_on(keys, &[3])]);
        assert_eq!(deleted_by(&table, &metadata, &file).unwrap(), deleted);
    }
}

#[test]
fn rule_50_equality_deletes_in_an_unknown_format_are_refused() {
    let table = TestTable::new();
    let data = table.parquet(
        FileContent::Data,
        "data",
        2,
        vec![column(Some(1), "a", true, longs(&[Some(1)]))],
    );
    fs::write(table.directory.path().join("eq.lance"), "").unwrap();
    let other = DataFile {
        format: FileFormat::Other("LANCE".to_owned()),
        ..table.entry(FileContent::EqualityDeletes, "eq.lance", 1)
    };
    let file = under(data, vec![equality_on(other, &[1])]);
    let error = deleted_by(&table, &metadata(&[&field(1, "a", "long")]), &file).unwrap_err();
    assert!(
        error.is_unsupported() && error.to_string().contains("eq.lance"),
        "{error}"
    );
}

type Row = (Option<i64>, Option<String>);

fn rows(max: usize) -> impl Strategy<Value = Vec<Row>> {
    let row = (
        prop::option::weighted(0.8, 0i64..5),
        prop::option::weighted(0.8, "[ab]{0,2}"),
    );
    prop::collection::vec(row, 1..max)
}

fn two_columns(rows: &[Row]) -> Vec<(Field, ArrayRef)> {
    let first: Int64Array = rows.iter().map(|(a, _)| *a).collect();
    let second: StringArray = rows.iter().map(|(_, b)| b.as_deref()).collect();
    vec![
        column(Some(1), "a", true, Arc::new(first)),
        column(Some(2), "b", true, Arc::new(second)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rule_29_deleted_rows_are_those_of_a_plain_reading(
        data in rows(40),
        deletes in prop::collection::vec((rows(6), 0usize..3), 1..4),
        group_rows in 1usize..20,
    ) {
        const COLUMNS: [&[i32]; 3] = [&[1], &[2], &[1, 2]];
        let table = TestTable::new();
        let data_file = table.parquet(FileContent::Data, "data", group_rows, two_columns(&data));
        let equality = deletes
            .iter()
            .enumerate()
            .map(|(n, (rows, columns))| {
                let file = table.parquet(FileContent::EqualityDeletes, &format!("eq{n}"), 3, two_columns(rows));
                equality_on(file, COLUMNS[*columns])
            })
            .collect();
        let metadata = metadata(&[&format!("{},{}", field(1, "a", "long"), field(2, "b", "string"))]);
        let is_deleted = |row: &Row| deletes.iter().any(|(keys, columns)| keys.iter().any(|key| match columns {
            0 => key.0 == row.0,
            1 => key.1 == row.1,
            _ => key == row,
        }));
        let expected: Vec<u64> = (0..).zip(&data).filter(|(_, row)| is_deleted(row)).map(|(n, _)| n).collect();
        prop_assert_eq!(deleted_by(&table, &metadata, &under(data_file, equality)).unwrap(), expected);
    }
}
