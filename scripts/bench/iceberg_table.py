"""Writes Iceberg tables around Parquet files that are there: metadata, manifest lists and manifests, nothing more.

Field ids are the columns' places, from 1 on. Only what the bench needs: primitive columns, one `day` partition at most.
"""

import decimal
import json
import pathlib
import struct
import uuid

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

FIRST_COMMIT_MS = 1_767_225_600_000
FIELD_ID = b"PARQUET:field_id"
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2


def with_field_ids(schema):
    return pa.schema([field.with_metadata({FIELD_ID: str(i).encode()}) for i, field in enumerate(schema, 1)])


def iceberg_type(ty):
    if pa.types.is_decimal(ty):
        return f"decimal({ty.precision}, {ty.scale})"
    names = {"int64": "long", "int32": "int", "double": "double", "string": "string", "date32[day]": "date",
             "timestamp[us]": "timestamp"}
    return names[str(ty)]


def bound(statistics, which):
    """The `min` or `max` of a column's chunks in single-value binary form."""
    pick = {"min": min, "max": max}[which]
    value = pick(getattr(s, which) for s in statistics)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, decimal.Decimal):
        unscaled = int(value.scaleb(-value.as_tuple().exponent))
        return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    # Numbers, dates and timestamps: as the file has them.
    raw = pick(getattr(s, f"{which}_raw") for s in statistics)
    return struct.pack("<i" if statistics[0].physical_type == "INT32" else "<q", raw)


def optional(name, field_id, ty):
    return {"name": name, "type": ["null", ty], "default": None, "field-id": field_id}


def required(name, field_id, ty):
    return {"name": name, "type": ty, "field-id": field_id}


def by_field(name, field_id, key, value, ty):
    pair = {"type": "record", "name": f"k{key}_v{value}", "fields": [required("key", key, "int"), required("value", value, ty)]}
    return optional(name, field_id, {"type": "array", "logicalType": "map", "items": pair})


def numbers(name, field_id, element, ty):
    return optional(name, field_id, {"type": "array", "items": ty, "element-id": element})


def entry_schema(version, partition):
    """The Avro schema of manifest entries; `partition` is the Avro fields of the partition tuple."""
    file = [
        required("content", 134, "int"), required("file_path", 100, "string"), required("file_format", 101, "string"),
        required("partition", 102, {"type": "record", "name": "r102", "fields": partition}),
        required("record_count", 103, "long"), required("file_size_in_bytes", 104, "long"),
        by_field("value_counts", 109, 119, 120, "long"), by_field("null_value_counts", 110, 121, 122, "long"),
        by_field("lower_bounds", 125, 126, 127, "bytes"), by_field("upper_bounds", 128, 129, 130, "bytes"),
        numbers("split_offsets", 132, 133, "long"), numbers("equality_ids", 135, 136, "int"),
        optional("sort_order_id", 140, "int"),
    ]
    if version >= 3:
        file.append(optional("first_row_id", 142, "long"))
    file.append(optional("referenced_data_file", 143, "string"))
    if version >= 3:
        file += [optional("content_offset", 144, "long"), optional("content_size_in_bytes", 145, "long")]
    fields = [
        required("status", 0, "int"), optional("snapshot_id", 1, "long"), optional("sequence_number", 3, "long"),
        optional("file_sequence_number", 4, "long"), required("data_file", 2, {"type": "record", "name": "r2", "fields": file}),
    ]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def list_schema(version):
    fields = [
        required("manifest_path", 500, "string"), required("manifest_length", 501, "long"),
        required("partition_spec_id", 502, "int"), required("content", 517, "int"), required("sequence_number", 515, "long"),
        required("min_sequence_number", 516, "long"), required("added_snapshot_id", 503, "long"),
        required("added_files_count", 504, "int"), required("existing_files_count", 505, "int"),
        required("deleted_files_count", 506, "int"), required("added_rows_count", 512, "long"),
        required("existing_rows_count", 513, "long"), required("deleted_rows_count", 514, "long"),
    ]
    if version >= 3:
        fields.append(optional("first_row_id", 520, "long"))
    return {"type": "record", "name": "manifest_file", "fields": fields}


class Table:
    """A table at `root`, whose schema is an Arrow schema. `day`: the column whose days partition it."""

    def __init__(self, root, schema, version=2, day=None):
        self.root = pathlib.Path(root)
        (self.root / "data").mkdir(parents=True)
        (self.root / "metadata").mkdir()
        self.schema, self.version, self.day = schema, version, day
        self.manifests, self.snapshots, self.next_row_id = [], [], 0
        self.uuid = str(uuid.uuid4())
        self.partition = [optional(f"{day}_day", 1000, {"type": "int", "logicalType": "date"})] if day else []
        self.entry_schema = fastavro.parse_schema(entry_schema(version, self.partition))
        self.list_schema = fastavro.parse_schema(list_schema(version))

    def file(self, path, day=None, **fields):
        """The `data_file` record of a file; a Parquet one's counts and bounds are those of its footer."""
        record = {"content": DATA, "file_path": str(path), "file_format": "PARQUET", "partition": {}, "sort_order_id": None}
        if self.day:
            record["partition"] = {f"{self.day}_day": day}
        if "record_count" not in fields:
            record |= footer_fields(path)
        return record | fields

    def commit(self, files, deletes=False):
        """One snapshot that adds these files in one manifest."""
        number = len(self.snapshots) + 1
        snapshot = 1000 + number
        path = self.root / "metadata" / f"{uuid.uuid4()}-m0.avro"
        keys = {
            "schema": json.dumps(self.schema_json()), "partition-spec": json.dumps(self.spec_json()), "partition-spec-id": "0",
            "format-version": str(self.version), "content": "deletes" if deletes else "data",
        }
        entries = ({"status": 1, "snapshot_id": snapshot, "sequence_number": None, "file_sequence_number": None, "data_file": file}
                   for file in files)
        with open(path, "wb") as out:
            fastavro.writer(out, self.entry_schema, entries, codec="deflate", metadata=keys)
        rows = sum(file["record_count"] for file in files)
        self.manifests.append({
            "manifest_path": str(path), "manifest_length": path.stat().st_size, "partition_spec_id": 0, "content": int(deletes),
            "sequence_number": number, "min_sequence_number": number, "added_snapshot_id": snapshot,
            "added_files_count": len(files), "existing_files_count": 0, "deleted_files_count": 0, "added_rows_count": rows,
            "existing_rows_count": 0, "deleted_rows_count": 0, "first_row_id": None if deletes else self.next_row_id,
        })
        manifest_list = self.root / "metadata" / f"snap-{snapshot}-{uuid.uuid4()}.avro"
        with open(manifest_list, "wb") as out:
            fastavro.writer(out, self.list_schema, self.manifests, codec="deflate", metadata={"format-version": str(self.version)})
        entry = {
            "snapshot-id": snapshot, "sequence-number": number, "timestamp-ms": FIRST_COMMIT_MS + 60_000 * number,
            "manifest-list": str(manifest_list), "schema-id": 0, "summary": {"operation": "delete" if deletes else "append"},
        }
        if self.snapshots:
            entry["parent-snapshot-id"] = snapshot - 1
        if self.version >= 3:
            entry |= {"first-row-id": self.next_row_id, "added-rows": 0 if deletes else rows}
        self.next_row_id += 0 if deletes else rows
        self.snapshots.append(entry)

    def save(self):
        """Writes the metadata; gives its path."""
        last = self.snapshots[-1]
        metadata = {
            "format-version": self.version, "table-uuid": self.uuid, "location": str(self.root),
            "last-sequence-number": len(self.snapshots), "last-updated-ms": last["timestamp-ms"],
            "last-column-id": len(self.schema), "current-schema-id": 0, "schemas": [self.schema_json()],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": self.spec_json()}],
            "last-partition-id": 1000 if self.day else 999, "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}], "properties": {}, "current-snapshot-id": last["snapshot-id"],
            "refs": {"main": {"snapshot-id": last["snapshot-id"], "type": "branch"}}, "snapshots": self.snapshots,
            "snapshot-log": [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in self.snapshots],
            "metadata-log": [], "statistics": [], "partition-statistics": [],
        }
        if self.version >= 3:
            metadata["next-row-id"] = self.next_row_id
        path = self.root / "metadata" / "v1.metadata.json"
        path.write_text(json.dumps(metadata))
        (self.root / "metadata" / "version-hint.text").write_text("1")
        return path

    def schema_json(self):
        fields = [{"id": i, "name": field.name, "required": False, "type": iceberg_type(field.type)}
                  for i, field in enumerate(self.schema, 1)]
        return {"type": "struct", "schema-id": 0, "fields": fields}

    def spec_json(self):
        if not self.day:
            return []
        source = self.schema.get_field_index(self.day) + 1
        return [{"source-id": source, "field-id": 1000, "name": f"{self.day}_day", "transform": "day"}]


def footer_fields(path):
    """What a Parquet footer says for the manifest."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    ids = [int(field.metadata[FIELD_ID]) for field in pq.read_schema(path)]
    values, nulls, lower, upper = [], [], [], []
    for i, field_id in enumerate(ids):
        chunks = [group.column(i) for group in groups]
        values.append({"key": field_id, "value": sum(chunk.num_values for chunk in chunks)})
        statistics = [chunk.statistics for chunk in chunks]
        if any(s is None or not s.has_null_count for s in statistics):
            continue
        nulls.append({"key": field_id, "value": sum(s.null_count for s in statistics)})
        if not all(s.has_min_max for s in statistics):
            continue
        lower.append({"key": field_id, "value": bound(statistics, "min")})
        upper.append({"key": field_id, "value": bound(statistics, "max")})
    return {
        "record_count": metadata.num_rows, "file_size_in_bytes": pathlib.Path(path).stat().st_size, "value_counts": values,
        "null_value_counts": nulls, "lower_bounds": lower, "upper_bounds": upper,
        "split_offsets": [group.column(0).dictionary_page_offset or group.column(0).data_page_offset for group in groups],
    }
