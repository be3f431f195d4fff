//! A table under construction: files are written as they are named, the metadata when the table is saved.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::deletes::{Blob, bitmaps, puffin, vector_blob};
use super::manifests::{Content, Entry, Manifest, Spec, Status, Style, list_bytes, manifest_bytes};
use super::rows::batch;
use super::schema::{Field, fields, fields_json};

/// When the first snapshot was made; each further one is a minute later.
pub const FIRST_COMMIT_MS: i64 = 1_700_000_000_000;

/// The id of the first snapshot; each further one's is one more.
pub const FIRST_SNAPSHOT: i64 = 1001;

/// A table in a temporary directory of its own.
pub struct TableBuilder {
    temp: TempDir,
    /// What the metadata records as the table's location; [`TableBuilder::root`] unless a test changes it.
    pub location: String,
    pub version: u8,
    pub schemas: Vec<Vec<Field>>,
    /// An index into `schemas`, which is the schema's id.
    pub current_schema: usize,
    pub specs: Vec<Spec>,
    pub default_spec: i32,
    pub properties: BTreeMap<String, String>,
    pub refs: Map<String, Value>,
    pub snapshots: Vec<Snapshot>,
    /// Time and snapshot.
    pub log: Vec<(i64, i64)>,
    pub last_sequence_number: i64,
    pub next_row_id: i64,
    pub uuid: String,
    files: usize,
    saves: usize,
}

/// A snapshot, as the metadata will have it, and what its manifest list holds.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub id: i64,
    pub json: Value,
    pub manifests: Vec<Manifest>,
}

impl TableBuilder {
    /// An empty table of this format version, in a directory called `t`; the schema is in [`super::schema`]'s notation.
    ///
    /// With `BERGFS_KEEP_TABLES=DIR` in the environment, tables are made below that directory and stay: for a look with
    /// another engine.
    pub fn new(version: u8, schema: &str) -> TableBuilder {
        let temp = match std::env::var_os("BERGFS_KEEP_TABLES") {
            Some(keep) => tempfile::Builder::new()
                .disable_cleanup(true)
                .tempdir_in(keep)
                .unwrap(),
            None => tempfile::tempdir().unwrap(),
        };
        let root = temp.path().join("t");
        fs::create_dir_all(root.join("metadata")).unwrap();
        fs::create_dir_all(root.join("data")).unwrap();
        TableBuilder {
            location: root.to_str().unwrap().to_owned(),
            temp,
            version,
            schemas: vec![fields(schema)],
            current_schema: 0,
            specs: vec![Spec {
                id: 0,
                fields: vec![],
            }],
            default_spec: 0,
            properties: BTreeMap::new(),
            refs: Map::new(),
            snapshots: vec![],
            log: vec![],
            last_sequence_number: 0,
            next_row_id: 0,
            uuid: "9c12d441-03fe-4693-9a96-a0705ddf69c1".to_owned(),
            files: 0,
            saves: 0,
        }
    }

    /// Where the table lies.
    pub fn root(&self) -> PathBuf {
        self.temp.path().join("t")
    }

    /// Makes this the current schema (ids count up from 0).
    pub fn evolve(&mut self, schema: &str) {
        self.schemas.push(fields(schema));
        self.current_schema = self.schemas.len() - 1;
    }

    /// Adds a partition spec (`1000 day = day(2)`), or changes the one of that id, and makes it the default.
    pub fn partition_by(&mut self, id: i32, spec: &str) {
        let spec = Spec::parse(id, spec, &self.schemas[self.current_schema]);
        self.specs.retain(|s| s.id != id);
        self.specs.push(spec);
        self.default_spec = id;
    }

    fn spec(&self, id: i32) -> &Spec {
        self.specs.iter().find(|s| s.id == id).unwrap()
    }

    // ---- files ----

    /// The path that metadata records for a file of the table.
    pub fn recorded(&self, relative: &str) -> String {
        format!("{}/{relative}", self.location)
    }

    /// Where a file with this recorded path lies.
    pub fn local(&self, recorded: &str) -> PathBuf {
        match recorded.strip_prefix(&self.location) {
            Some(relative) => self.root().join(relative.trim_start_matches('/')),
            None => PathBuf::from(recorded),
        }
    }

    /// Writes a file of any content; gives its recorded path.
    pub fn write_bytes(&self, relative: &str, bytes: &[u8]) -> String {
        let path = self.root().join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self.recorded(relative)
    }

    fn file_name(&mut self, kind: &str) -> String {
        self.files += 1;
        format!("data/{kind}-{:05}.parquet", self.files)
    }

    /// Writes a data file of these rows, in the table's current schema.
    pub fn data(&mut self, rows: Value) -> Entry {
        self.write(Data::rows(rows))
    }

    /// Writes a data file.
    pub fn write(&mut self, data: Data) -> Entry {
        let schema = data
            .schema
            .clone()
            .unwrap_or_else(|| self.schemas[self.current_schema].clone());
        let batch = data
            .batch
            .clone()
            .unwrap_or_else(|| batch(&schema, &data.rows));
        let name = data
            .name
            .clone()
            .map_or_else(|| self.file_name("data"), |name| format!("data/{name}"));
        let bytes = data.bytes(&batch);
        let path = self.write_bytes(&name, &bytes);
        Entry {
            path,
            format: "PARQUET".to_owned(),
            spec_id: data.spec_id.unwrap_or(self.default_spec),
            partition: data.partition,
            record_count: batch.num_rows() as i64,
            file_size: bytes.len() as i64,
            ..Entry::default()
        }
    }

    /// Writes a data file of these bytes and so many rows.
    pub fn data_of_bytes(&mut self, bytes: &[u8], rows: i64) -> Entry {
        let name = self.file_name("raw");
        Entry {
            path: self.write_bytes(&name, bytes),
            format: "PARQUET".to_owned(),
            spec_id: self.default_spec,
            record_count: rows,
            file_size: bytes.len() as i64,
            ..Entry::default()
        }
    }

    /// Writes a position delete file of these rows (path and position), unpartitioned.
    pub fn position_deletes(&mut self, rows: &[(&str, i64)]) -> Entry {
        let schema = "2147483546 file_path: required string, 2147483545 pos: required long";
        let rows = rows.iter().map(|(path, pos)| json!([path, pos])).collect();
        let name = self.file_name("deletes").replace("data/", "");
        self.write(Data::rows(rows).schema(schema).named(&name))
            .with(|e| e.content = Content::PositionDeletes)
    }

    /// Writes an equality delete file with these columns and rows, on these field ids.
    pub fn equality_deletes(&mut self, ids: &[i32], schema: &str, rows: Value) -> Entry {
        let name = self.file_name("equality").replace("data/", "");
        self.write(Data::rows(rows).schema(schema).named(&name))
            .with(|e| {
                e.content = Content::EqualityDeletes;
                e.equality_ids = ids.to_vec();
            })
    }

    /// Writes a Puffin file with one deletion vector on a data file.
    pub fn vector(&mut self, of: &Entry, positions: &[u64]) -> Entry {
        let blob = vector_blob(&bitmaps(positions.iter().copied()));
        self.vector_of(of, blob, positions.len() as i64)
    }

    /// Writes a Puffin file with one blob, which may be anything.
    pub fn vector_of(&mut self, of: &Entry, blob: Vec<u8>, cardinality: i64) -> Entry {
        let size = blob.len() as i64;
        let blob = Blob {
            bytes: blob,
            referenced_data_file: of.path.clone(),
            cardinality: cardinality as u64,
        };
        let (bytes, offsets) = puffin(&[blob]);
        let name = self.file_name("vector").replace(".parquet", ".puffin");
        let path = self.write_bytes(&name, &bytes);
        Entry {
            content: Content::PositionDeletes,
            path,
            format: "PUFFIN".to_owned(),
            spec_id: of.spec_id,
            partition: of.partition.clone(),
            record_count: cardinality,
            file_size: bytes.len() as i64,
            referenced_data_file: Some(of.path.clone()),
            content_offset: Some(offsets[0] as i64),
            content_size: Some(size),
            ..Entry::default()
        }
    }

    // ---- commits ----

    /// Adds a snapshot: the manifests of its parent (unless it replaces them) and those of its own files. Gives its id.
    pub fn commit(&mut self, commit: Commit) -> i64 {
        let made = self.snapshots.len() as i64;
        let id = commit.id.unwrap_or(FIRST_SNAPSHOT + made);
        let timestamp = commit.timestamp.unwrap_or(FIRST_COMMIT_MS + 60_000 * made);
        if self.version >= 2 {
            self.last_sequence_number = commit
                .sequence_number
                .unwrap_or(self.last_sequence_number + 1);
        }
        let branch = commit.branch.clone().unwrap_or_else(|| "main".to_owned());
        let parent = commit
            .parent
            .or_else(|| self.head(&branch))
            .or_else(|| self.head("main"));
        let inherited = self
            .snapshots
            .iter()
            .find(|s| Some(s.id) == parent && !commit.replace);
        let mut manifests = inherited.map_or_else(Vec::new, |s| s.manifests.clone());
        for group in &commit.groups {
            manifests.extend(self.write_manifests(group, id, &commit.style));
        }
        manifests.extend(commit.manifests.iter().cloned());
        let first_row_id = self.next_row_id;
        if self.version >= 3 {
            for manifest in manifests
                .iter_mut()
                .filter(|m| !m.deletes && m.first_row_id.is_none())
            {
                let counts = manifest.counts.unwrap_or_default();
                manifest.first_row_id = Some(self.next_row_id);
                self.next_row_id += counts[3] + counts[4];
            }
        }
        if let Some(change) = commit.change_manifests {
            change(&mut manifests);
        }
        let mut json = json!({
            "snapshot-id": id, "timestamp-ms": timestamp, "summary": {"operation": "append"},
            "schema-id": self.current_schema});
        if let Some(parent) = parent {
            json["parent-snapshot-id"] = json!(parent);
        }
        if commit.inline {
            json["manifests"] = manifests.iter().map(|m| m.path.clone()).collect();
        } else {
            let list = list_bytes(&manifests, self.version, &commit.list_style);
            json["manifest-list"] =
                json!(self.write_bytes(&format!("metadata/snap-{id}.avro"), &list));
        }
        if self.version >= 2 {
            json["sequence-number"] = json!(self.last_sequence_number);
        }
        if self.version >= 3 {
            json["first-row-id"] = json!(first_row_id);
            json["added-rows"] = json!(self.next_row_id - first_row_id);
        }
        self.snapshots.push(Snapshot {
            id,
            json,
            manifests,
        });
        if branch == "main" {
            self.log.push((timestamp, id));
        }
        self.refs
            .insert(branch, json!({"snapshot-id": id, "type": "branch"}));
        id
    }

    fn head(&self, branch: &str) -> Option<i64> {
        self.refs
            .get(branch)
            .and_then(|r| r["snapshot-id"].as_i64())
    }

    /// Names a snapshot by a tag.
    pub fn tag(&mut self, name: &str, snapshot: i64) {
        self.refs.insert(
            name.to_owned(),
            json!({"snapshot-id": snapshot, "type": "tag"}),
        );
    }

    /// The snapshot's JSON, to be changed by hand.
    pub fn snapshot(&mut self, id: i64) -> &mut Value {
        &mut self.snapshots.iter_mut().find(|s| s.id == id).unwrap().json
    }

    /// One manifest for each content and spec among the entries, in order of first occurrence.
    fn write_manifests(
        &mut self,
        entries: &[Entry],
        snapshot: i64,
        style: &Style,
    ) -> Vec<Manifest> {
        let mut groups: Vec<Vec<Entry>> = vec![];
        for entry in entries {
            let kind = |e: &Entry| (e.content == Content::Data, e.spec_id);
            match groups.iter_mut().find(|g| kind(&g[0]) == kind(entry)) {
                Some(group) => group.push(entry.clone()),
                None => groups.push(vec![entry.clone()]),
            }
        }
        groups
            .iter()
            .map(|group| self.write_manifest(group, snapshot, style))
            .collect()
    }

    /// Writes a manifest of entries of one content and spec; gives what a manifest list says of it.
    pub fn write_manifest(&mut self, entries: &[Entry], snapshot: i64, style: &Style) -> Manifest {
        self.files += 1;
        let deletes = entries[0].content != Content::Data;
        let spec = self.spec(entries[0].spec_id).clone();
        let schema = &self.schemas[self.current_schema];
        let bytes = manifest_bytes(entries, deletes, &spec, schema, self.version, style);
        let path = self.write_bytes(&format!("metadata/manifest-{:05}.avro", self.files), &bytes);
        let mut counts = [0; 6];
        for entry in entries {
            let at = match entry.status {
                Status::Added => 0,
                Status::Existing => 1,
                Status::Deleted => 2,
            };
            counts[at] += 1;
            counts[at + 3] += entry.record_count;
        }
        let own = self.last_sequence_number;
        Manifest {
            path,
            length: bytes.len() as i64,
            spec_id: spec.id,
            deletes,
            sequence_number: own,
            min_sequence_number: entries
                .iter()
                .map(|e| e.sequence_number.unwrap_or(own))
                .min()
                .unwrap_or(own),
            added_snapshot_id: snapshot,
            counts: Some(counts),
            ..Manifest::default()
        }
    }

    // ---- metadata ----

    /// The table's metadata as it stands.
    pub fn metadata(&self) -> Value {
        let schema = |(id, fields): (usize, &Vec<Field>)| json!({"type": "struct", "schema-id": id, "fields": fields_json(fields)});
        let specs: Vec<Value> = self
            .specs
            .iter()
            .map(|s| json!({"spec-id": s.id, "fields": s.fields_json()}))
            .collect();
        let partition_ids = self
            .specs
            .iter()
            .flat_map(|s| &s.fields)
            .map(|f| f.id)
            .max();
        let mut metadata = json!({
            "format-version": self.version,
            "table-uuid": self.uuid,
            "location": self.location,
            "last-updated-ms": self.log.last().map_or(FIRST_COMMIT_MS, |(time, _)| *time),
            "last-column-id": 1000,
            "current-schema-id": self.current_schema,
            "schemas": self.schemas.iter().enumerate().map(schema).collect::<Vec<_>>(),
            "default-spec-id": self.default_spec,
            "partition-specs": specs,
            "last-partition-id": partition_ids.unwrap_or(999),
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": self.properties,
            "snapshots": self.snapshots.iter().map(|s| s.json.clone()).collect::<Vec<_>>(),
            "snapshot-log": self.log.iter()
                .map(|(time, id)| json!({"timestamp-ms": time, "snapshot-id": id})).collect::<Vec<_>>(),
            "metadata-log": [],
            "refs": self.refs,
        });
        if let Some(head) = self.head("main") {
            metadata["current-snapshot-id"] = json!(head);
        }
        if self.version == 1 {
            metadata["schema"] = schema((self.current_schema, &self.schemas[self.current_schema]));
            metadata["partition-spec"] = self.spec(self.default_spec).fields_json();
        }
        if self.version >= 2 {
            metadata["last-sequence-number"] = json!(self.last_sequence_number);
        }
        if self.version >= 3 {
            metadata["next-row-id"] = json!(self.next_row_id);
        }
        metadata
    }

    /// Writes the metadata as the next version, and points the version hint to it.
    pub fn save(&mut self) -> PathBuf {
        self.save_with(|_| {})
    }

    /// Writes the metadata, changed by hand, as the next version, and points the version hint to it.
    pub fn save_with(&mut self, change: impl FnOnce(&mut Value)) -> PathBuf {
        self.saves += 1;
        let mut metadata = self.metadata();
        change(&mut metadata);
        let name = format!("metadata/v{}.metadata.json", self.saves);
        self.write_bytes(
            &name,
            serde_json::to_string_pretty(&metadata).unwrap().as_bytes(),
        );
        self.write_bytes(
            "metadata/version-hint.text",
            self.saves.to_string().as_bytes(),
        );
        self.root().join(name)
    }
}

/// Gzip of these bytes.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Changes the bytes of a file.
pub fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

type WriterChange = Arc<dyn Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder>;

/// A data file to be written.
#[derive(Clone, Default)]
pub struct Data {
    rows: Value,
    batch: Option<RecordBatch>,
    schema: Option<Vec<Field>>,
    name: Option<String>,
    row_group_rows: Option<usize>,
    spec_id: Option<i32>,
    partition: Vec<Value>,
    writer: Option<WriterChange>,
}

impl Data {
    /// Rows in the notation of [`super::rows`].
    pub fn rows(rows: Value) -> Data {
        Data {
            rows,
            ..Data::default()
        }
    }

    /// Rows that are an Arrow batch already.
    pub fn batch(batch: RecordBatch) -> Data {
        Data {
            batch: Some(batch),
            ..Data::default()
        }
    }

    /// The file's own schema, where it is not the table's current one.
    pub fn schema(mut self, schema: &str) -> Data {
        self.schema = Some(fields(schema));
        self
    }

    /// The file's name below `data/`.
    pub fn named(mut self, name: &str) -> Data {
        self.name = Some(name.to_owned());
        self
    }

    pub fn row_groups_of(mut self, rows: usize) -> Data {
        self.row_group_rows = Some(rows);
        self
    }

    pub fn partition(mut self, spec_id: i32, values: Value) -> Data {
        self.spec_id = Some(spec_id);
        self.partition = values.as_array().unwrap().clone();
        self
    }

    /// Codec, encoding, page size, …
    pub fn writer(
        mut self,
        change: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder + 'static,
    ) -> Data {
        self.writer = Some(Arc::new(change));
        self
    }

    fn bytes(&self, batch: &RecordBatch) -> Vec<u8> {
        let mut builder =
            WriterProperties::builder().set_max_row_group_row_count(self.row_group_rows);
        if let Some(change) = &self.writer {
            builder = change(builder);
        }
        let options = ArrowWriterOptions::new()
            .with_properties(builder.build())
            .with_skip_arrow_metadata(true);
        let mut bytes = vec![];
        let mut writer =
            ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        bytes
    }
}

type ManifestsChange = Box<dyn FnOnce(&mut Vec<Manifest>)>;

/// A snapshot to be added.
#[derive(Default)]
pub struct Commit {
    groups: Vec<Vec<Entry>>,
    manifests: Vec<Manifest>,
    replace: bool,
    id: Option<i64>,
    timestamp: Option<i64>,
    sequence_number: Option<i64>,
    parent: Option<i64>,
    branch: Option<String>,
    inline: bool,
    style: Style,
    list_style: Style,
    change_manifests: Option<ManifestsChange>,
}

impl Commit {
    /// A commit of these files, data and deletes, in manifests of their own.
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Commit {
        Commit::default().and(entries)
    }

    /// More files, in further manifests.
    pub fn and(mut self, entries: impl IntoIterator<Item = Entry>) -> Commit {
        self.groups.push(entries.into_iter().collect());
        self
    }

    /// A manifest that is already written.
    pub fn manifest(mut self, manifest: Manifest) -> Commit {
        self.manifests.push(manifest);
        self
    }

    /// The parent's manifests do not belong to this snapshot.
    pub fn replacing(mut self) -> Commit {
        self.replace = true;
        self
    }

    pub fn id(mut self, id: i64) -> Commit {
        self.id = Some(id);
        self
    }

    pub fn timestamp(mut self, ms: i64) -> Commit {
        self.timestamp = Some(ms);
        self
    }

    pub fn sequence_number(mut self, number: i64) -> Commit {
        self.sequence_number = Some(number);
        self
    }

    pub fn parent(mut self, id: i64) -> Commit {
        self.parent = Some(id);
        self
    }

    /// On this branch, not on `main`.
    pub fn branch(mut self, name: &str) -> Commit {
        self.branch = Some(name.to_owned());
        self
    }

    /// v1: the snapshot names its manifests itself.
    pub fn inline(mut self) -> Commit {
        self.inline = true;
        self
    }

    /// How the manifests are written.
    pub fn style(mut self, style: Style) -> Commit {
        self.style = style;
        self
    }

    /// How the manifest list is written.
    pub fn list_style(mut self, style: Style) -> Commit {
        self.list_style = style;
        self
    }

    /// Changes what the manifest list says, after first row ids are assigned.
    pub fn change_manifests(mut self, change: impl FnOnce(&mut Vec<Manifest>) + 'static) -> Commit {
        self.change_manifests = Some(Box::new(change));
        self
    }
}
