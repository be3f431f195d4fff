//! Rules 1 to 15: table metadata, and finding it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use libc::{EIO, ENOTSUP};
use serde_json::{Value, json};

use crate::builder::open::Opened;
use crate::builder::schema::fields_json;
use crate::builder::table::{FIRST_COMMIT_MS, gzip};
use crate::builder::{Commit, Data, TableBuilder};
use crate::{refuses, shows, view_columns, view_refuses, view_shows};

/// A table of one file with the rows 1 and 2.
fn two_rows(version: u8) -> TableBuilder {
    let mut t = TableBuilder::new(version, "1 id: long");
    let a = t.data(json!([[1], [2]]));
    t.commit(Commit::of([a]));
    t
}

/// What [`two_rows`] shows.
fn ones_and_twos() -> Value {
    json!([[1], [2]])
}

#[test]
fn rule_01_versions_1_2_and_3_are_read() {
    shows(&mut two_rows(1), ones_and_twos());
    shows(&mut two_rows(2), ones_and_twos());
    shows(&mut two_rows(3), json!([[1, 0, 1], [2, 1, 1]]));
}

#[test]
fn rule_01_version_4_and_above_are_refused() {
    for version in [4, 5, 100] {
        let mut t = two_rows(3);
        t.save_with(|m| m["format-version"] = json!(version));
        view_refuses(
            &t,
            "current",
            ENOTSUP,
            &[&version.to_string(), "v1.metadata.json"],
        );
    }
}

#[test]
fn rule_01_a_version_that_never_was_is_corrupt() {
    for version in [json!(0), json!(-1), json!("two"), Value::Null] {
        let mut t = two_rows(2);
        t.save_with(|m| m["format-version"] = version);
        view_refuses(&t, "current", EIO, &["v1.metadata.json"]);
    }
}

#[test]
fn rule_02_gzip_metadata_is_known_by_its_bytes_not_by_its_name() {
    for name in [
        "v1.gz.metadata.json",
        "v1.metadata.json.gz",
        "v1.gzip.metadata.json",
        "v1.metadata.json",
    ] {
        let mut t = two_rows(2);
        let plain = t.save();
        let bytes = fs::read(&plain).unwrap();
        fs::remove_file(plain).unwrap();
        t.write_bytes(&format!("metadata/{name}"), &gzip(&bytes));
        view_shows(&t, "current", ones_and_twos());
    }
}

/// The spec names gzip alone; iceberg-go writes Zstandard too.
#[test]
fn rule_02_zstandard_metadata_is_read() {
    let mut t = two_rows(2);
    let file = t.save();
    let packed = zstd::encode_all(&*fs::read(&file).unwrap(), 3).unwrap();
    fs::write(&file, packed).unwrap();
    view_shows(&t, "current", ones_and_twos());
}

#[test]
fn rule_02_plain_metadata_under_a_gzip_name() {
    let mut t = two_rows(2);
    let plain = t.save();
    fs::rename(&plain, plain.with_file_name("v1.gz.metadata.json")).unwrap();
    view_shows(&t, "current", ones_and_twos());
}

#[test]
fn rule_03_v1_metadata_with_nothing_but_what_v1_asks() {
    let mut t = TableBuilder::new(1, "1 id: long, 2 day: date");
    t.partition_by(0, "1000 day = identity(2)");
    let a = t.write(
        Data::rows(json!([[1], [2]]))
            .schema("1 id: long")
            .partition(0, json!([19000])),
    );
    let id = t.commit(Commit::of([a]));
    t.snapshot(id).as_object_mut().unwrap().remove("schema-id");
    t.save_with(|m| {
        let m = m.as_object_mut().unwrap();
        let newer = [
            "schemas",
            "current-schema-id",
            "partition-specs",
            "default-spec-id",
            "last-partition-id",
        ];
        let optional = [
            "sort-orders",
            "default-sort-order-id",
            "table-uuid",
            "refs",
            "snapshot-log",
            "metadata-log",
        ];
        newer
            .iter()
            .chain(&optional)
            .for_each(|key| drop(m.remove(*key)));
    });
    view_shows(&t, "current", json!([[1, 19000], [2, 19000]]));
}

#[test]
fn rule_03_a_v2_snapshot_from_before_the_upgrade_has_no_sequence_number() {
    let mut t = two_rows(1);
    t.version = 2;
    let b = t.data(json!([[3]]));
    let d = t.equality_deletes(&[1], "1 id: long", json!([[1]]));
    t.commit(Commit::of([b, d]));
    shows(&mut t, json!([[2], [3]]));
    view_shows(&t, "snapshots/1001", json!([[1], [2]]));
}

#[test]
fn rule_03_a_v3_snapshot_from_before_the_upgrade_has_no_row_ids() {
    let mut t = two_rows(2);
    t.version = 3;
    t.save();
    view_shows(
        &t,
        "snapshots/1001",
        json!([[1, null, null], [2, null, null]]),
    );
}

#[test]
fn rule_04_current_snapshot_null_absent_and_minus_one_mean_no_snapshot() {
    for id in [Some(Value::Null), None, Some(json!(-1))] {
        for refs in [Some(json!({})), Some(Value::Null), None] {
            let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
            t.save_with(|m| {
                let m = m.as_object_mut().unwrap();
                m.remove("current-snapshot-id");
                m.remove("refs");
                id.iter()
                    .for_each(|id| drop(m.insert("current-snapshot-id".to_owned(), id.clone())));
                refs.iter()
                    .for_each(|refs| drop(m.insert("refs".to_owned(), refs.clone())));
            });
            view_shows(&t, "current", json!([]));
            view_columns(&t, "current", &[("id", "long"), ("name", "string")]);
        }
    }
}

#[test]
fn rule_05_without_refs_main_is_the_current_snapshot() {
    for refs in [Value::Null, json!({})] {
        let mut t = two_rows(2);
        t.save_with(|m| m["refs"] = refs);
        view_shows(&t, "branches/main", ones_and_twos());
    }
    let mut t = two_rows(2);
    t.save_with(|m| drop(m.as_object_mut().unwrap().remove("refs")));
    view_shows(&t, "branches/main", ones_and_twos());
}

#[test]
fn rule_05_any_name_of_a_branch_or_tag_is_one_reversible_file_name() {
    let mut t = two_rows(2);
    let names = [
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("k=v", "k%3Dv"),
        (".hidden", "%2Ehidden"),
        ("grüße", "grüße"),
    ];
    names.iter().for_each(|(name, _)| t.tag(name, 1001));
    let b = t.data(json!([[3]]));
    t.commit(Commit::of([b]).branch("x/../../y"));
    t.save();
    for opened in Opened::every_way(&t.root()) {
        let tags = opened.list("tags").unwrap();
        names.iter().for_each(|(_, encoded)| {
            assert!(
                tags.contains(&(*encoded).to_owned()),
                "{encoded} in {tags:?}"
            )
        });
        assert_eq!(tags.len(), names.len(), "{tags:?}");
        assert_eq!(
            opened.list("branches").unwrap(),
            ["main", "x%2F..%2F..%2Fy"]
        );
    }
    view_shows(&t, "tags/a%2Fb", ones_and_twos());
    view_shows(&t, "branches/x%2F..%2F..%2Fy", json!([[1], [2], [3]]));
}

#[test]
fn rule_06_main_that_is_not_the_current_snapshot_is_refused() {
    let mut t = two_rows(2);
    let b = t.data(json!([[3]]));
    t.commit(Commit::of([b]));
    t.save_with(|m| m["current-snapshot-id"] = json!(1001));
    view_refuses(&t, "current", EIO, &["v1.metadata.json", "1001", "1002"]);
}

#[test]
fn rule_06_a_changed_uuid_is_another_table() {
    let mut t = two_rows(2);
    t.save();
    let opened = Opened::every_way(&t.root());
    let files: Vec<Option<(File, Vec<u8>)>> = opened
        .iter()
        .map(|opened| {
            assert_eq!(
                opened.rows("current/t.parquet").unwrap(),
                ones_and_twos(),
                "{opened}"
            );
            let bytes = opened.read("current/t.parquet").unwrap();
            opened
                .mountpoint()
                .map(|at| (File::open(at.join("current/t.parquet")).unwrap(), bytes))
        })
        .collect();
    t.uuid = "00000000-0000-4000-8000-000000000001".to_owned();
    (t.snapshots, t.log) = (vec![], vec![]);
    t.refs.clear();
    let b = t.data(json!([[7]]));
    t.commit(Commit::of([b]));
    t.save();
    for (opened, file) in opened.iter().zip(files) {
        assert_eq!(
            opened.rows("current/t.parquet").unwrap(),
            json!([[7]]),
            "{opened}"
        );
        // What was open belongs to the table that is gone: what the kernel has of it, and nothing else.
        if let Some((file, old)) = file {
            let mut bytes = vec![0; old.len()];
            let read = file.read_exact_at(&mut bytes, 0);
            assert!(read.is_err() || bytes == old);
            assert!(
                fs::read(opened.mountpoint().unwrap().join("current/t.parquet")).unwrap() != old
            );
        }
    }
}

/// Three commits a minute apart from 2023-11-14T22:13:20Z on, of the rows 1, 2 and 3; a fourth on a branch, between.
fn history() -> TableBuilder {
    let mut t = TableBuilder::new(2, "1 id: long");
    for id in 1..=3 {
        let file = t.data(json!([[id]]));
        t.commit(Commit::of([file]));
    }
    let file = t.data(json!([[100]]));
    t.commit(
        Commit::of([file])
            .branch("side")
            .parent(1001)
            .timestamp(FIRST_COMMIT_MS + 30_000),
    );
    t
}

#[test]
fn rule_07_a_time_shows_what_main_pointed_at_then() {
    let mut t = history();
    t.log.reverse();
    t.save();
    view_shows(&t, "at/2023-11-14T22:13:20Z", json!([[1]]));
    view_shows(&t, "at/2023-11-14T22:14:19.999Z", json!([[1]]));
    view_shows(&t, "at/2023-11-14T22:14:20Z", json!([[1], [2]]));
    view_shows(&t, "at/2023-11-14T23:14:20+01:00", json!([[1], [2]]));
    view_shows(&t, "at/2030-01-01", json!([[1], [2], [3]]));
}

#[test]
fn rule_07_a_time_before_the_log_and_a_missing_log_have_no_snapshot() {
    let mut t = history();
    t.save();
    for opened in Opened::every_way(&t.root()) {
        assert!(opened.rows("at/2023-11-14T22:13:19Z/t.parquet").is_err());
    }
    t.save_with(|m| m["snapshot-log"] = json!([]));
    for opened in Opened::every_way(&t.root()) {
        assert!(opened.rows("at/2030-01-01/t.parquet").is_err());
    }
}

#[test]
fn rule_07_a_rolled_back_main_is_what_the_log_says() {
    let mut t = history();
    t.refs.insert(
        "main".to_owned(),
        json!({"snapshot-id": 1001, "type": "branch"}),
    );
    t.log.push((FIRST_COMMIT_MS + 600_000, 1001));
    t.save();
    view_shows(&t, "at/2023-11-14T22:20:00Z", json!([[1], [2], [3]]));
    view_shows(&t, "at/2023-11-14T22:23:20Z", json!([[1]]));
    view_shows(&t, "current", json!([[1]]));
}

#[test]
fn rule_08_snapshots_tags_and_times_have_their_snapshots_schema_and_branches_the_current_one() {
    let mut t = two_rows(2);
    t.tag("first", 1001);
    t.evolve("1 id: long, 2 name: string");
    t.save();
    for view in ["snapshots/1001", "tags/first", "at/2024-01-01"] {
        view_columns(&t, view, &[("id", "long")]);
    }
    for view in ["current", "branches/main", "snapshots/1001@schema-1"] {
        view_columns(&t, view, &[("id", "long"), ("name", "string")]);
        view_shows(&t, view, json!([[1, null], [2, null]]));
    }
}

#[test]
fn rule_08_a_snapshot_without_schema_id_has_the_current_schema() {
    let mut t = two_rows(2);
    t.snapshot(1001)
        .as_object_mut()
        .unwrap()
        .remove("schema-id");
    t.evolve("1 number: long");
    t.save();
    view_columns(&t, "snapshots/1001", &[("number", "long")]);
}

#[test]
fn rule_08_a_snapshot_with_an_unknown_schema_id_is_refused() {
    let mut t = two_rows(2);
    t.snapshot(1001)["schema-id"] = json!(42);
    t.save();
    view_refuses(&t, "snapshots/1001", EIO, &["42"]);
}

#[test]
fn rule_09_blanks_inside_type_strings() {
    let mut t = TableBuilder::new(2, "1 amount: decimal( 9 , 2 ), 2 hash: fixed[ 4 ]");
    let rows = json!([["1234567.89", "00ff00ff"]]);
    let a = t.write(Data::rows(rows.clone()).schema("1 amount: decimal(9,2), 2 hash: fixed[4]"));
    t.commit(Commit::of([a]));
    shows(&mut t, rows);
}

#[test]
fn rule_10_an_unknown_transform_is_no_obstacle_and_its_values_still_part_deletes() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 part: int");
    t.partition_by(0, "1000 p = zorder[4](2)");
    let one = t.write(Data::rows(json!([[1, 1], [2, 1]])).partition(0, json!([10])));
    let two = t.write(Data::rows(json!([[1, 2], [2, 2]])).partition(0, json!([20])));
    t.commit(Commit::of([one, two]));
    let d = t
        .equality_deletes(&[1], "1 id: long", json!([[1]]))
        .with(|e| e.partition = vec![json!(20)]);
    t.commit(Commit::of([d]));
    shows(&mut t, json!([[1, 1, 0, 1], [2, 1, 1, 1], [2, 2, 3, 1]]));
}

#[test]
fn rule_10_a_field_of_several_sources() {
    let mut t = TableBuilder::new(3, "1 id: long, 2 part: int");
    t.partition_by(0, "1000 p = bucketv2[4](2)");
    let a = t.write(Data::rows(json!([[1, 1]])).partition(0, json!([3])));
    t.commit(Commit::of([a]));
    t.save_with(|m| {
        let field = m["partition-specs"][0]["fields"][0]
            .as_object_mut()
            .unwrap();
        field.remove("source-id");
        field.insert("source-ids".to_owned(), json!([1, 2]));
    });
    view_shows(&t, "current", json!([[1, 1, 0, 1]]));
}

#[test]
fn rule_11_partition_fields_of_v1_without_ids_count_from_1000() {
    let mut t = TableBuilder::new(1, "1 id: long, 2 a: int, 3 b: string");
    t.partition_by(0, "1000 a = identity(2), 1001 b = identity(3)");
    let file = t.write(
        Data::rows(json!([[1]]))
            .schema("1 id: long")
            .partition(0, json!([5, "x"])),
    );
    t.commit(Commit::of([file]));
    t.save_with(|m| {
        for fields in ["/partition-spec", "/partition-specs/0/fields"] {
            let fields = m.pointer_mut(fields).unwrap().as_array_mut().unwrap();
            fields
                .iter_mut()
                .for_each(|f| drop(f.as_object_mut().unwrap().remove("field-id")));
        }
    });
    view_shows(&t, "current", json!([[1, 5, "x"]]));
}

#[test]
fn rule_12_statistics_and_sort_orders_change_nothing() {
    let mut t = two_rows(2);
    let path = t.snapshots[0].manifests[0].path.clone();
    let file = t
        .data(json!([[3], [1]]))
        .with(|e| e.sort_order_id = Some(77));
    let d = t
        .position_deletes(&[(&file.path, 0)])
        .with(|e| e.sort_order_id = Some(1));
    t.commit(Commit::of([file, d]));
    t.save_with(|m| {
        m["sort-orders"] = json!([{"order-id": 1, "fields": [
            {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}]);
        m["default-sort-order-id"] = json!(1);
        m["statistics"] = json!([{"snapshot-id": 1001, "statistics-path": path, "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1, "blob-metadata": []}]);
        m["partition-statistics"] = json!([{"snapshot-id": 7, "statistics-path": "/nowhere", "file-size-in-bytes": 1}]);
    });
    view_shows(&t, "current", json!([[1], [2], [1]]));
}

#[test]
fn rule_13_an_encrypted_table_is_refused() {
    let mut t = two_rows(3);
    t.snapshot(1001)["key-id"] = json!("k1");
    t.save_with(|m| {
        m["encryption-keys"] =
            json!([{"key-id": "k1", "encrypted-key-metadata": "AAAA", "encrypted-by-id": "kms"}]);
    });
    view_refuses(&t, "current", ENOTSUP, &["encrypt"]);
}

#[test]
fn rule_13_an_encrypted_manifest_and_an_encrypted_file_are_refused() {
    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t.data(json!([[1]]));
    t.commit(Commit::of([a]).change_manifests(|ms| ms[0].key_metadata = Some(vec![1, 2, 3])));
    let path = t.snapshots[0].manifests[0].path.clone();
    refuses(&mut t, ENOTSUP, &["encrypt", &path]);

    let mut t = TableBuilder::new(3, "1 id: long");
    let a = t
        .data(json!([[1]]))
        .with(|e| e.key_metadata = Some(vec![1, 2, 3]));
    t.commit(Commit::of([a.clone()]));
    refuses(&mut t, ENOTSUP, &["encrypt", &a.path]);
}

#[test]
fn rule_14_one_file_under_any_spelling_of_its_path() {
    let plain = two_rows(2).location;
    assert!(plain.starts_with('/'));
    for scheme in ["file:", "file://"] {
        let mut t = TableBuilder::new(2, "1 id: long");
        t.location = format!("{scheme}{}", t.location);
        let a = t.data(json!([[1], [2]]));
        let bare = a.path.strip_prefix(scheme).unwrap().to_owned();
        let d = t.position_deletes(&[(&bare, 0)]);
        t.commit(Commit::of([a, d]));
        shows(&mut t, json!([[2]]));
    }
}

#[test]
fn rule_14_a_table_that_moved_is_read_where_it_lies() {
    let mut t = TableBuilder::new(2, "1 id: long");
    t.location = "s3://bucket/warehouse/db/t".to_owned();
    let a = t.data(json!([[1], [2], [3]]));
    let d = t.position_deletes(&[(&a.path, 1)]);
    t.commit(Commit::of([a, d]));
    shows(&mut t, json!([[1], [3]]));
}

#[test]
fn rule_15_newer_versions_than_the_hint_names_are_found() {
    let mut t = two_rows(2);
    t.save();
    for id in 3..=4 {
        let file = t.data(json!([[id]]));
        t.commit(Commit::of([file]));
        t.save();
    }
    t.write_bytes("metadata/version-hint.text", b"1\n");
    view_shows(&t, "current", json!([[1], [2], [3], [4]]));
}

#[test]
fn rule_15_without_a_good_hint_the_highest_number_wins_not_the_last_name() {
    for hint in [None, Some("garbage"), Some(""), Some("99")] {
        let mut t = two_rows(2);
        for _ in 0..9 {
            t.save();
        }
        let file = t.data(json!([[3]]));
        t.commit(Commit::of([file]));
        assert!(t.save().ends_with("v10.metadata.json"));
        fs::remove_file(t.root().join("metadata/version-hint.text")).unwrap();
        hint.iter()
            .for_each(|hint| drop(t.write_bytes("metadata/version-hint.text", hint.as_bytes())));
        view_shows(&t, "current", json!([[1], [2], [3]]));
    }
}

#[test]
fn rule_15_metastore_names() {
    let mut t = two_rows(2);
    let rename =
        |from: std::path::PathBuf, to: &str| fs::rename(&from, from.with_file_name(to)).unwrap();
    rename(
        t.save(),
        "00009-11111111-2222-3333-4444-555555555555.metadata.json",
    );
    let file = t.data(json!([[3]]));
    t.commit(Commit::of([file]));
    rename(
        t.save(),
        "00010-00000000-2222-3333-4444-555555555555.metadata.json",
    );
    fs::remove_file(t.root().join("metadata/version-hint.text")).unwrap();
    view_shows(&t, "current", json!([[1], [2], [3]]));
    t.write_bytes(
        "metadata/version-hint.text",
        b"00009-11111111-2222-3333-4444-555555555555.metadata.json",
    );
    view_shows(&t, "current", ones_and_twos());
}

#[test]
fn rule_15_two_files_of_the_highest_version_are_refused_by_name() {
    let mut t = two_rows(2);
    let first = t.save();
    let bytes = fs::read(&first).unwrap();
    fs::remove_file(first).unwrap();
    fs::remove_file(t.root().join("metadata/version-hint.text")).unwrap();
    let names = [
        "00001-aaaaaaaa-2222-3333-4444-555555555555.metadata.json",
        "00001-bbbbbbbb-2222-3333-4444-555555555555.metadata.json",
    ];
    names
        .iter()
        .for_each(|name| drop(t.write_bytes(&format!("metadata/{name}"), &bytes)));
    view_refuses(&t, "current", EIO, &names);
}

#[test]
fn rule_03_a_schema_that_is_in_schemas_alone() {
    let mut t = two_rows(2);
    let schema = fields_json(&t.schemas[0]);
    t.save_with(|m| {
        assert!(m.get("schema").is_none());
        m["schemas"][0]["fields"] = schema;
    });
    view_shows(&t, "current", ones_and_twos());
}
