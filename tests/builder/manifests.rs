//! Manifest entries, manifests and manifest lists: every field in the test's hands.
//!
//! The `Option` fields of [`Entry`] and [`Manifest`] are written as they stand: `None` is an Avro null, which a reader
//! is to inherit or to live with. [`Avro`](super::avro) does the bytes.

use serde_json::{Value, json};

use super::avro::{Avro, Codec, Column, container, record, record_type};
use super::rows::{unhex, unscaled};
use super::schema::{Field, Ty, fields_json, find};

/// A partition spec: `1000 day = day(2), 1001 b = bucket[16](1)`.
#[derive(Clone, Debug)]
pub struct Spec {
    pub id: i32,
    pub fields: Vec<SpecField>,
}

#[derive(Clone, Debug)]
pub struct SpecField {
    pub id: i32,
    pub name: String,
    pub transform: String,
    pub source: i32,
    /// What the transform gives: the type's name.
    pub result: String,
}

impl Spec {
    pub fn parse(id: i32, text: &str, schema: &[Field]) -> Spec {
        let field = |part: &str| {
            let (head, transform) = part
                .split_once('=')
                .expect("spec notation: id name = transform(source)");
            let (id, name) = head.trim().split_once(' ').unwrap();
            let (transform, source) = transform
                .trim()
                .strip_suffix(')')
                .unwrap()
                .split_once('(')
                .unwrap();
            let source = source.parse().unwrap();
            let source_type = match find(schema, source).map(|f| &f.ty) {
                Some(Ty::Primitive(name)) => name.clone(),
                _ => "int".to_owned(),
            };
            let result = match transform.split('[').next().unwrap() {
                "identity" | "truncate" | "void" => source_type,
                "day" => "date".to_owned(),
                _ => "int".to_owned(),
            };
            let (name, transform) = (name.trim().to_owned(), transform.to_owned());
            SpecField {
                id: id.parse().unwrap(),
                name,
                transform,
                source,
                result,
            }
        };
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        Spec {
            id,
            fields: parts.map(field).collect(),
        }
    }

    pub fn fields_json(&self) -> Value {
        let field = |f: &SpecField| json!({"source-id": f.source, "field-id": f.id, "name": f.name, "transform": f.transform});
        Value::Array(self.fields.iter().map(field).collect())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    Existing = 0,
    #[default]
    Added = 1,
    Deleted = 2,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    #[default]
    Data = 0,
    PositionDeletes = 1,
    EqualityDeletes = 2,
}

/// One entry of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    pub status: Status,
    pub snapshot_id: Option<i64>,
    pub sequence_number: Option<i64>,
    pub file_sequence_number: Option<i64>,
    pub content: Content,
    pub path: String,
    /// `PARQUET`, `PUFFIN`, …
    pub format: String,
    pub spec_id: i32,
    /// Values by the spec's fields, as JSON (see [`super::rows`]); too short means null.
    pub partition: Vec<Value>,
    pub record_count: i64,
    pub file_size: i64,
    pub column_sizes: Vec<(i32, i64)>,
    pub value_counts: Vec<(i32, i64)>,
    pub null_counts: Vec<(i32, i64)>,
    pub nan_counts: Vec<(i32, i64)>,
    pub lower_bounds: Vec<(i32, Vec<u8>)>,
    pub upper_bounds: Vec<(i32, Vec<u8>)>,
    pub key_metadata: Option<Vec<u8>>,
    pub split_offsets: Vec<i64>,
    pub equality_ids: Vec<i32>,
    pub sort_order_id: Option<i64>,
    pub first_row_id: Option<i64>,
    pub referenced_data_file: Option<String>,
    pub content_offset: Option<i64>,
    pub content_size: Option<i64>,
}

impl Entry {
    /// The same, changed by hand: `entry.with(|e| e.record_count = 7)`.
    pub fn with(&self, change: impl FnOnce(&mut Entry)) -> Entry {
        let mut entry = self.clone();
        change(&mut entry);
        entry
    }

    /// The same as an EXISTING entry, with the data sequence number it had.
    pub fn existing(&self, sequence_number: i64, snapshot_id: i64) -> Entry {
        self.with(|e| {
            e.status = Status::Existing;
            e.sequence_number = Some(sequence_number);
            e.file_sequence_number = Some(sequence_number);
            e.snapshot_id = Some(snapshot_id);
        })
    }

    /// The same as a DELETED entry.
    pub fn deleted(&self, sequence_number: i64, snapshot_id: i64) -> Entry {
        self.existing(sequence_number, snapshot_id)
            .with(|e| e.status = Status::Deleted)
    }

    fn columns(&self, spec: &Spec, version: u8) -> Vec<Column> {
        let number = |n: Option<i64>| n.map(Avro::Number);
        let mut columns = vec![
            Column::required(0, "status", json!("int"), Avro::Number(self.status as i64)),
            Column::optional(1, "snapshot_id", json!("long"), number(self.snapshot_id)),
        ];
        if version >= 2 {
            columns.push(Column::optional(
                3,
                "sequence_number",
                json!("long"),
                number(self.sequence_number),
            ));
            columns.push(Column::optional(
                4,
                "file_sequence_number",
                json!("long"),
                number(self.file_sequence_number),
            ));
        }
        let file = self.file_columns(spec, version);
        columns.push(Column::required(
            2,
            "data_file",
            record_type("r2", &file),
            record(file),
        ));
        columns
    }

    fn file_columns(&self, spec: &Spec, version: u8) -> Vec<Column> {
        let number = |n: Option<i64>| n.map(Avro::Number);
        let mut columns = vec![];
        if version >= 2 {
            columns.push(Column::required(
                134,
                "content",
                json!("int"),
                Avro::Number(self.content as i64),
            ));
        }
        let partition: Vec<Column> = spec
            .fields
            .iter()
            .enumerate()
            .map(|(i, f)| {
                let value = self
                    .partition
                    .get(i)
                    .filter(|v| !v.is_null())
                    .map(|v| partition_value(&f.result, v));
                Column::optional(f.id, &f.name, partition_type(&f.result, f.id), value)
            })
            .collect();
        columns.extend([
            Column::required(100, "file_path", json!("string"), Avro::text(&self.path)),
            Column::required(
                101,
                "file_format",
                json!("string"),
                Avro::text(&self.format),
            ),
            Column::required(
                102,
                "partition",
                record_type("r102", &partition),
                record(partition),
            ),
            Column::required(
                103,
                "record_count",
                json!("long"),
                Avro::Number(self.record_count),
            ),
            Column::required(
                104,
                "file_size_in_bytes",
                json!("long"),
                Avro::Number(self.file_size),
            ),
        ]);
        if version == 1 {
            columns.push(Column::required(
                105,
                "block_size_in_bytes",
                json!("long"),
                Avro::Number(67_108_864),
            ));
        }
        columns.extend([
            counts(108, "column_sizes", 117, &self.column_sizes),
            counts(109, "value_counts", 119, &self.value_counts),
            counts(110, "null_value_counts", 121, &self.null_counts),
            counts(137, "nan_value_counts", 138, &self.nan_counts),
            bounds(125, "lower_bounds", 126, &self.lower_bounds),
            bounds(128, "upper_bounds", 129, &self.upper_bounds),
            Column::optional(
                131,
                "key_metadata",
                json!("bytes"),
                self.key_metadata.clone().map(Avro::Bytes),
            ),
            numbers(
                132,
                "split_offsets",
                133,
                "long",
                self.split_offsets.iter().copied(),
            ),
            numbers(
                135,
                "equality_ids",
                136,
                "int",
                self.equality_ids.iter().map(|id| i64::from(*id)),
            ),
            Column::optional(
                140,
                "sort_order_id",
                json!("int"),
                number(self.sort_order_id),
            ),
        ]);
        if version >= 3 {
            columns.push(Column::optional(
                142,
                "first_row_id",
                json!("long"),
                number(self.first_row_id),
            ));
        }
        if version >= 2 {
            let referenced = self.referenced_data_file.as_deref().map(Avro::text);
            columns.push(Column::optional(
                143,
                "referenced_data_file",
                json!("string"),
                referenced,
            ));
        }
        if version >= 3 {
            columns.push(Column::optional(
                144,
                "content_offset",
                json!("long"),
                number(self.content_offset),
            ));
            columns.push(Column::optional(
                145,
                "content_size_in_bytes",
                json!("long"),
                number(self.content_size),
            ));
        }
        columns
    }
}

/// A map with `int` keys: an array of pairs under the logical type `map`.
fn map(id: i32, name: &str, key: i32, value_type: &str, pairs: Vec<(i32, Avro)>) -> Column {
    let record = record_type(
        &format!("k{key}_v{}", key + 1),
        &[
            Column::required(key, "key", json!("int"), Avro::Null),
            Column::required(key + 1, "value", json!(value_type), Avro::Null),
        ],
    );
    let ty = json!({"type": "array", "logicalType": "map", "items": record});
    let items: Vec<Avro> = pairs
        .into_iter()
        .map(|(k, v)| Avro::Record(vec![Avro::Number(k.into()), v]))
        .collect();
    Column::optional(
        id,
        name,
        ty,
        (!items.is_empty()).then_some(Avro::Array(items)),
    )
}

fn counts(id: i32, name: &str, key: i32, counts: &[(i32, i64)]) -> Column {
    map(
        id,
        name,
        key,
        "long",
        counts.iter().map(|(k, v)| (*k, Avro::Number(*v))).collect(),
    )
}

fn bounds(id: i32, name: &str, key: i32, bounds: &[(i32, Vec<u8>)]) -> Column {
    map(
        id,
        name,
        key,
        "bytes",
        bounds
            .iter()
            .map(|(k, v)| (*k, Avro::Bytes(v.clone())))
            .collect(),
    )
}

fn numbers(
    id: i32,
    name: &str,
    element: i32,
    ty: &str,
    values: impl Iterator<Item = i64>,
) -> Column {
    let values: Vec<Avro> = values.map(Avro::Number).collect();
    let ty = json!({"type": "array", "items": ty, "element-id": element});
    Column::optional(
        id,
        name,
        ty,
        (!values.is_empty()).then_some(Avro::Array(values)),
    )
}

/// The Avro type of a partition value (spec, Appendix A).
fn partition_type(name: &str, id: i32) -> Value {
    let numbers = Ty::numbers(name);
    match name.split(['(', '[']).next().unwrap() {
        "date" => json!({"type": "int", "logicalType": "date"}),
        "time" => json!({"type": "long", "logicalType": "time-micros"}),
        "timestamp" => {
            json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": false})
        }
        "timestamptz" => {
            json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": true})
        }
        "binary" => json!("bytes"),
        "fixed" => json!({"type": "fixed", "name": format!("fixed_{id}"), "size": numbers[0]}),
        "uuid" => {
            json!({"type": "fixed", "name": format!("uuid_{id}"), "size": 16, "logicalType": "uuid"})
        }
        "decimal" => json!({
            "type": "fixed", "name": format!("decimal_{id}"), "size": 16, "logicalType": "decimal",
            "precision": numbers[0], "scale": numbers[1]}),
        plain => json!(plain),
    }
}

fn partition_value(name: &str, value: &Value) -> Avro {
    let float = || {
        value
            .as_f64()
            .unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
    };
    match name.split(['(', '[']).next().unwrap() {
        "boolean" => Avro::Boolean(value.as_bool().unwrap()),
        "float" => Avro::Float(float() as f32),
        "double" => Avro::Double(float()),
        "string" => Avro::text(value.as_str().unwrap()),
        "binary" => Avro::Bytes(unhex(value.as_str().unwrap())),
        "fixed" | "uuid" => Avro::Fixed(unhex(value.as_str().unwrap())),
        "decimal" => {
            let scale = Ty::numbers(name)[1] as i8;
            Avro::Fixed(
                unscaled(value.as_str().unwrap(), scale)
                    .to_be_bytes()
                    .to_vec(),
            )
        }
        _ => Avro::Number(value.as_i64().unwrap()),
    }
}

/// How a manifest or manifest list is written where it is not written as the current spec has it.
#[derive(Clone, Debug, Default)]
pub struct Style {
    pub codec: Codec,
    /// Ids of fields that are left out of the file's schema (in the record, and in `data_file`).
    pub omit: Vec<i32>,
    /// Fields stand in reverse order under made-up names, and one more stands between them.
    pub renamed: bool,
    /// Keys of the file's metadata that are left out.
    pub omit_keys: Vec<&'static str>,
    /// Of the entries' layout, where it differs from the table's (a v1 manifest in a table that is v2 by now).
    pub version: Option<u8>,
}

impl Style {
    fn apply(&self, columns: Vec<Column>) -> Vec<Column> {
        let mut columns: Vec<Column> = columns
            .into_iter()
            .filter(|c| !self.omit.contains(&c.id))
            .collect();
        if self.renamed {
            columns.reverse();
            columns
                .iter_mut()
                .for_each(|c| c.name = format!("f{}", c.id));
            columns.insert(
                1,
                Column::required(
                    9999,
                    "extra",
                    json!("string"),
                    Avro::text("of another writer"),
                ),
            );
        }
        columns
    }

    fn entry(&self, entry: &Entry, spec: &Spec, version: u8) -> Vec<Column> {
        let mut columns = entry.columns(spec, version);
        let file = self.apply(entry.file_columns(spec, version));
        columns
            .iter_mut()
            .filter(|c| c.id == 2)
            .for_each(|c| c.ty = record_type("r2", &file));
        columns
            .iter_mut()
            .filter(|c| c.id == 2)
            .for_each(|c| c.value = record(file.clone()));
        self.apply(columns)
    }
}

/// The bytes of a manifest.
pub fn manifest_bytes(
    entries: &[Entry],
    deletes: bool,
    spec: &Spec,
    schema: &[Field],
    version: u8,
    style: &Style,
) -> Vec<u8> {
    let version = style.version.unwrap_or(version);
    let of_type = style.entry(&Entry::default(), spec, version);
    let schema_json = json!({"type": "struct", "schema-id": 0, "fields": fields_json(schema)});
    let keys = [
        ("schema", schema_json.to_string()),
        ("schema-id", "0".to_owned()),
        ("partition-spec", spec.fields_json().to_string()),
        ("partition-spec-id", spec.id.to_string()),
        ("format-version", version.to_string()),
        (
            "content",
            if deletes { "deletes" } else { "data" }.to_owned(),
        ),
    ];
    let keys: Vec<(String, String)> = keys
        .into_iter()
        .filter(|(k, _)| !style.omit_keys.contains(k))
        .map(|(k, v)| (k.to_owned(), v))
        .collect();
    let records: Vec<Avro> = entries
        .iter()
        .map(|e| record(style.entry(e, spec, version)))
        .collect();
    container(
        &record_type("manifest_entry", &of_type),
        &keys,
        style.codec,
        &records,
    )
}

/// One entry of a manifest list.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    pub path: String,
    pub length: i64,
    pub spec_id: i32,
    pub deletes: bool,
    pub sequence_number: i64,
    pub min_sequence_number: i64,
    pub added_snapshot_id: i64,
    /// Files added, existing, deleted; then rows of each. `None`: unknown.
    pub counts: Option<[i64; 6]>,
    /// By field of the spec.
    pub partitions: Vec<Summary>,
    pub key_metadata: Option<Vec<u8>>,
    pub first_row_id: Option<i64>,
}

impl Manifest {
    /// The same, changed by hand.
    pub fn with(&self, change: impl FnOnce(&mut Manifest)) -> Manifest {
        let mut manifest = self.clone();
        change(&mut manifest);
        manifest
    }

    fn columns(&self, version: u8) -> Vec<Column> {
        let number =
            |id, name, value| Column::required(id, name, json!("long"), Avro::Number(value));
        let count = |id, name, ty, at: usize| {
            Column::optional(
                id,
                name,
                json!(ty),
                self.counts.map(|c| Avro::Number(c[at])),
            )
        };
        let mut columns = vec![
            Column::required(
                500,
                "manifest_path",
                json!("string"),
                Avro::text(&self.path),
            ),
            number(501, "manifest_length", self.length),
            Column::required(
                502,
                "partition_spec_id",
                json!("int"),
                Avro::Number(self.spec_id.into()),
            ),
        ];
        if version >= 2 {
            let content = Avro::Number(i64::from(self.deletes));
            columns.push(Column::required(517, "content", json!("int"), content));
            columns.push(number(515, "sequence_number", self.sequence_number));
            columns.push(number(516, "min_sequence_number", self.min_sequence_number));
        }
        columns.push(number(503, "added_snapshot_id", self.added_snapshot_id));
        columns.extend([
            count(504, "added_files_count", "int", 0),
            count(505, "existing_files_count", "int", 1),
            count(506, "deleted_files_count", "int", 2),
            count(512, "added_rows_count", "long", 3),
            count(513, "existing_rows_count", "long", 4),
            count(514, "deleted_rows_count", "long", 5),
            self.summaries(),
            Column::optional(
                519,
                "key_metadata",
                json!("bytes"),
                self.key_metadata.clone().map(Avro::Bytes),
            ),
        ]);
        if version >= 3 {
            columns.push(Column::optional(
                520,
                "first_row_id",
                json!("long"),
                self.first_row_id.map(Avro::Number),
            ));
        }
        columns
    }

    fn summaries(&self) -> Column {
        let items = record_type("r508", &Summary::default().columns());
        let ty = json!({"type": "array", "items": items, "element-id": 508});
        let values: Vec<Avro> = self
            .partitions
            .iter()
            .map(|s| record(s.columns()))
            .collect();
        Column::optional(
            507,
            "partitions",
            ty,
            (!values.is_empty()).then_some(Avro::Array(values)),
        )
    }
}

/// What a manifest list says of one partition field of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub contains_null: bool,
    pub contains_nan: Option<bool>,
    pub lower_bound: Option<Vec<u8>>,
    pub upper_bound: Option<Vec<u8>>,
}

impl Summary {
    fn columns(&self) -> Vec<Column> {
        let bytes = |bound: &Option<Vec<u8>>| bound.clone().map(Avro::Bytes);
        vec![
            Column::required(
                509,
                "contains_null",
                json!("boolean"),
                Avro::Boolean(self.contains_null),
            ),
            Column::optional(
                518,
                "contains_nan",
                json!("boolean"),
                self.contains_nan.map(Avro::Boolean),
            ),
            Column::optional(510, "lower_bound", json!("bytes"), bytes(&self.lower_bound)),
            Column::optional(511, "upper_bound", json!("bytes"), bytes(&self.upper_bound)),
        ]
    }
}

/// The bytes of a manifest list.
pub fn list_bytes(manifests: &[Manifest], version: u8, style: &Style) -> Vec<u8> {
    let version = style.version.unwrap_or(version);
    let columns = |m: &Manifest| style.apply(m.columns(version));
    let schema = record_type("manifest_file", &columns(&Manifest::default()));
    let keys = [("format-version".to_owned(), version.to_string())];
    let records: Vec<Avro> = manifests.iter().map(|m| record(columns(m))).collect();
    container(&schema, &keys, style.codec, &records)
}
