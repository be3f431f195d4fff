//! Data through a mount: open files and commits, replaced tables, missing files, and what looking around costs. Needs
//! `/dev/fuse`; without it each test says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "builder/mod.rs"]
mod builder;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use builder::deletes::vector_blob;
use builder::open::{Opened, Served};
use builder::{Commit, Data, TableBuilder};
use bytes::Bytes;
use parquet::file::properties::WriterVersion;
use parquet::file::reader::{FileReader, SerializedFileReader};
use roaring::RoaringBitmap;
use serde_json::json;

const EIO: i32 = 5;
const ESTALE: i32 = 116;

/// The mount of a table's directory; `None`, with a word on stderr, where this machine has no FUSE.
fn mount(table: &TableBuilder) -> Option<(Opened, PathBuf)> {
    mount_with(table, &["--no-ahead"])
}

fn mount_with(table: &TableBuilder, options: &[&str]) -> Option<(Opened, PathBuf)> {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("SKIPPED: no /dev/fuse on this machine, nothing was tested");
        return None;
    }
    let opened = Opened::mount(&table.root(), options);
    let mountpoint = opened
        .mountpoint()
        .unwrap_or_else(|| panic!("{}", opened.errors()));
    Some((opened, mountpoint))
}

/// A table with rows 1 to 3 in one file, the second deleted.
fn table() -> TableBuilder {
    let mut table = TableBuilder::new(2, "1 id: long, 2 name: string");
    let data = table.data(json!([[1, "a"], [2, "b"], [3, "c"]]));
    let deletes = table.position_deletes(&[(&data.path, 1)]);
    table.commit(Commit::of([data, deletes]));
    table.save();
    table
}

fn walk(directory: &Path, visit: &mut impl FnMut(&Path, &fs::Metadata)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        visit(&path, &metadata);
        if metadata.is_dir() {
            walk(&path, visit);
        }
    }
}

#[test]
fn an_open_file_goes_on_unchanged_through_a_commit() {
    let mut table = table();
    let Some((opened, mountpoint)) = mount(&table) else {
        return;
    };
    let before = opened.read("current/t.parquet").unwrap();
    let open = fs::File::open(mountpoint.join("current/t.parquet")).unwrap();
    let more = table.data(json!([[4, "d"]]));
    table.commit(Commit::of([more]));
    table.save();
    assert_eq!(
        opened
            .rows("current/t.parquet")
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let mut after = vec![0; before.len()];
    open.read_exact_at(&mut after, 0).unwrap();
    assert!(before == after);
    drop(open);
}

#[test]
fn rule_06_files_of_a_table_that_was_replaced_answer_an_error() {
    let mut table = table();
    let Some((_opened, mountpoint)) = mount(&table) else {
        return;
    };
    let open = fs::File::open(mountpoint.join("current/t.parquet")).unwrap();
    table.save_with(|metadata| {
        metadata["table-uuid"] = json!("00000000-0000-4000-8000-000000000001")
    });
    fs::read_link(mountpoint.join("current")).unwrap();
    let error = open.read_at(&mut [0; 16], 0).unwrap_err().raw_os_error();
    assert!(matches!(error, Some(EIO | ESTALE)), "{error:?}");
}

#[test]
fn a_missing_data_file_spoils_what_depends_on_it_and_no_more() {
    let mut table = TableBuilder::new(2, "1 id: long");
    let kept = table.write(Data::rows(json!([[1]])).named("data/kept.parquet"));
    let lost = table.write(Data::rows(json!([[2]])).named("data/lost.parquet"));
    fs::remove_file(table.local(&lost.path)).unwrap();
    table.commit(Commit::of([kept, lost]));
    table.save();
    let Some((opened, _)) = mount(&table) else {
        return;
    };
    assert_eq!(
        opened.list("current/parts").unwrap(),
        ["kept.parquet", "lost.parquet"]
    );
    assert_eq!(
        opened.rows("current/parts/kept.parquet").unwrap(),
        json!([[1]])
    );
    assert_eq!(opened.read("current/parts/lost.parquet"), Err(EIO));
    assert_eq!(opened.read("current/t.parquet"), Err(EIO));
    assert!(
        opened.errors().contains("parts/lost.parquet: "),
        "{}",
        opened.errors()
    );
}

#[test]
fn parts_of_one_base_name_are_told_apart() {
    let mut table = TableBuilder::new(2, "1 id: long");
    let first = table.write(Data::rows(json!([[1]])).named("data/a/x.parquet"));
    let second = table.write(Data::rows(json!([[2]])).named("data/b/x.parquet"));
    table.commit(Commit::of([first, second]));
    table.save();
    let Some((opened, _)) = mount(&table) else {
        return;
    };
    assert_eq!(
        opened.rows("current/parts/x.parquet").unwrap(),
        json!([[1]])
    );
    assert_eq!(
        opened.rows("current/parts/x-2.parquet").unwrap(),
        json!([[2]])
    );
}

#[test]
fn looking_around_reads_no_data_page_and_the_first_listing_no_manifest() {
    let table = table();
    let Some((opened, mountpoint)) = mount_with(&table, &["--no-text", "--no-ahead"]) else {
        return;
    };
    opened.list("").unwrap();
    assert_eq!(opened.stats()["manifest_lists_read"], 0);
    opened.list("current/parts").unwrap();
    assert_eq!(
        (
            opened.stats()["manifests_read"],
            opened.stats()["footers_read"]
        ),
        (2, 0)
    );
    let mut files = 0;
    walk(&mountpoint.join("snapshots"), &mut |_, metadata| {
        files += u64::from(metadata.is_file())
    });
    assert_eq!(files, 4);
    let stats = opened.stats();
    assert_eq!((stats["pages_decoded"], stats["chunks_transcoded"]), (0, 0));
}

#[test]
fn a_mount_makes_ahead_what_the_first_reader_waits_for() {
    let table = table();
    let Some((opened, _)) = mount_with(&table, &["--no-text"]) else {
        return;
    };
    while opened.stats()["footers_made"] == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    let rows = opened.rows("current/t.parquet").unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    let stats = opened.stats();
    assert_eq!((stats["manifests_read"], stats["footers_read"]), (2, 1));
    assert_eq!(stats["footers_made"], 1);
}

#[test]
fn many_short_chunks_are_read_in_few_requests_and_once() {
    let mut table = TableBuilder::new(2, "1 id: long, 2 name: string");
    let files = (0..70).map(|id| table.data(json!([[id, "a"], [id + 70, "b"]])));
    let files: Vec<_> = files.collect();
    table.commit(Commit::of(files));
    table.save();
    let Some((opened, mountpoint)) = mount(&table) else {
        return;
    };
    let file = fs::File::open(mountpoint.join("current/t.parquet")).unwrap();
    let whole = opened.read("current/t.parquet").unwrap();
    let read = opened.stats()["source_reads"];
    // As a reader of one column does: a few bytes here, a few there.
    let mut piece = [0; 50];
    for offset in (0..whole.len() - piece.len()).step_by(100) {
        file.read_exact_at(&mut piece, offset as u64).unwrap();
        assert_eq!(piece, whole[offset..offset + piece.len()]);
    }
    assert_eq!(opened.stats()["source_reads"], read);
    assert_eq!(
        opened
            .rows("current/t.parquet")
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        140
    );
}

#[test]
fn rule_06_pages_of_a_table_that_was_replaced_are_not_those_of_the_next() {
    let mut table = TableBuilder::new(2, "1 id: long");
    let files: Vec<_> = (0..70).map(|id| table.data(json!([[id]]))).collect();
    table.commit(Commit::of(files));
    table.save();
    let Some((opened, mountpoint)) = mount(&table) else {
        return;
    };
    let open = fs::File::open(mountpoint.join("current/t.parquet")).unwrap();
    let before = opened.read("current/t.parquet").unwrap();
    let read = opened.stats()["source_reads"];
    table.save_with(|metadata| {
        metadata["table-uuid"] = json!("00000000-0000-4000-8000-000000000001")
    });
    fs::read_link(mountpoint.join("current")).unwrap();
    // The old file is still open, with its pages in the page cache.
    assert_eq!(opened.read("current/t.parquet").unwrap(), before);
    assert!(opened.stats()["source_reads"] > read, "asked for anew");
    drop(open);
}

#[test]
fn a_view_whose_footer_would_be_huge_is_not_listed_as_one_file() {
    let mut table = TableBuilder::new(2, "1 id: long");
    // 700,000 row groups, as the manifest says, of one column: about 67 MiB of footer.
    let data = table
        .data(json!([[1]]))
        .with(|entry| entry.split_offsets = vec![4; 700_000]);
    table.commit(Commit::of([data]));
    table.save();
    let Some((opened, mountpoint)) = mount(&table) else {
        return;
    };
    assert_eq!(
        opened.list("current/").unwrap(),
        ["parts", "schema.json", "snapshot.json"]
    );
    assert!(
        opened.errors().contains("/t.parquet: not listed"),
        "{}",
        opened.errors()
    );
    assert!(
        fs::metadata(mountpoint.join("current/t.parquet"))
            .unwrap()
            .size()
            > 0
    );
}

#[test]
fn a_data_file_rewritten_in_place_is_an_error_and_never_old_rows_beside_new_ones() {
    let mut table = TableBuilder::new(2, "1 id: long, 2 name: string");
    let write = |table: &mut TableBuilder, first: i64| {
        let rows: Vec<_> = (first..first + 50_000)
            .map(|i| json!([i, format!("{i:06}")]))
            .collect();
        table.write(
            Data::rows(json!(rows))
                .named("data/a.parquet")
                .row_groups_of(10_000),
        )
    };
    let data = write(&mut table, 1000);
    let deletes = table.position_deletes(&[(&data.path, 1), (&data.path, 45_000)]);
    table.commit(Commit::of([data.clone(), deletes]));
    table.save();
    let Some((_opened, mountpoint)) = mount(&table) else {
        return;
    };
    let names = ["current/t.parquet", "current/parts/a.parquet"];
    let files = names.map(|name| fs::File::open(mountpoint.join(name)).unwrap());
    let lens = files.each_ref().map(|file| file.metadata().unwrap().len());
    // The footer and the first row group's first chunk are in memory now, the rest is not.
    for (file, len) in files.iter().zip(lens) {
        file.read_exact_at(&mut [0; 8], len - 8).unwrap();
        file.read_exact_at(&mut [0; 64], 0).unwrap();
    }
    // As many bytes, and other rows.
    let old = fs::read(table.local(&data.path)).unwrap();
    write(&mut table, 2000);
    assert_eq!(
        fs::metadata(table.local(&data.path)).unwrap().len(),
        old.len() as u64
    );
    for (file, len) in files.iter().zip(lens) {
        let mut bytes = vec![0; usize::try_from(len).unwrap()];
        let read = file.read_exact_at(&mut bytes, 0);
        assert_eq!(read.unwrap_err().raw_os_error(), Some(EIO));
        // Row group 2 lost no row: its bytes are the data file's own.
        let middle = file.read_exact_at(&mut bytes[..256], old.len() as u64 / 2);
        assert_eq!(middle.unwrap_err().raw_os_error(), Some(EIO));
    }
    // Whoever opens it anew gets an error too, or rows of one state alone.
    for name in names {
        match fs::read(mountpoint.join(name)) {
            Err(error) => assert_eq!(error.raw_os_error(), Some(EIO), "{name}"),
            Ok(bytes) => {
                let rows = Served::of(bytes).rows;
                let first = rows.iter().map(|row| row[0].as_i64().unwrap());
                assert!(first.clone().all(|id| id >= 2000), "{name}");
                assert_eq!(first.count(), 49_998, "{name}");
            }
        }
    }
}

/// The times that the threads of the daemon behind a mount went to sleep.
fn times_asleep(mountpoint: &Path) -> u64 {
    let daemon = fs::read_dir("/proc").unwrap().find_map(|process| {
        let process = process.unwrap().path();
        let arguments = fs::read(process.join("cmdline")).ok()?;
        let mut arguments = arguments.split(|byte| *byte == 0);
        let is_bergfs = arguments.next()?.ends_with(b"bergfs");
        let mountpoint = mountpoint.as_os_str().as_bytes();
        (is_bergfs && arguments.any(|argument| argument == mountpoint)).then_some(process)
    });
    let threads = fs::read_dir(daemon.unwrap().join("task")).unwrap();
    threads
        .map(|thread| {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let switches = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            switches.unwrap().trim().parse::<u64>().unwrap()
        })
        .sum()
}

#[test]
fn a_read_of_what_is_in_memory_wakes_one_thread() {
    const READS: u64 = 1000;
    let table = table();
    let Some((opened, mountpoint)) = mount_with(&table, &["--no-text"]) else {
        return;
    };
    opened.read("current/t.parquet").unwrap();
    let file = fs::File::open(mountpoint.join("current/t.parquet")).unwrap();
    let before = times_asleep(&mountpoint);
    for _ in 0..READS {
        file.read_exact_at(&mut [0; 8], 4).unwrap();
    }
    let asleep = times_asleep(&mountpoint) - before;
    assert!(asleep < READS + READS / 2, "{asleep} for {READS} reads");
}

/// As large as row groups are that are shown in pieces, with deletes that fill whole containers of the vector's bitmap.
#[test]
fn a_large_row_group_with_ranges_of_deleted_rows_shows_the_others_in_pieces() {
    let rows = 400_000;
    let mut table = TableBuilder::new(3, "1 id: long, 2 name: string");
    let data: Vec<_> = (0..rows)
        .map(|id| json!([id, format!("name {}", id % 1000)]))
        .collect();
    let data = Data::rows(json!(data)).row_groups_of(rows);
    let data = table.write(data);
    let deleted = |row: usize| (1000..200_001).contains(&row) || row % 100 == 7;
    let positions = (0..rows).filter(|row| deleted(*row));
    let mut positions: RoaringBitmap = positions.map(|row| row as u32).collect();
    // As runs, which is how ranges are mostly written.
    positions.optimize();
    let count = positions.len() as i64;
    let vector = table.vector_of(&data, vector_blob(&[(0, positions)]), count);
    table.commit(Commit::of([data, vector]));
    table.save();
    let Some((opened, mountpoint)) = mount(&table) else {
        return;
    };
    let bytes = opened.read("current/t.parquet").unwrap();
    let groups = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
    let groups = groups.metadata().num_row_groups();
    assert!(groups > 1, "{groups} row groups");
    let left = (0..rows).filter(|row| !deleted(*row));
    let expected: Vec<_> = left
        .clone()
        .map(|row| json!([row, format!("name {}", row % 1000), row, 1]))
        .collect();
    let served = Served::of(bytes).rows;
    assert_eq!(served.len(), expected.len());
    assert!(served == expected);
    let text = fs::read_to_string(mountpoint.join("current/t.csv")).unwrap();
    let ids: Vec<usize> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert!(ids == left.collect::<Vec<_>>());
}

/// Levels in the encoding BIT_PACKED, that the decoder of keys would misread.
#[test]
fn equality_deletes_by_a_column_with_bit_packed_levels_are_refused() {
    let mut table = TableBuilder::new(2, "1 id: long");
    let plain = Data::rows(json!([[1], [null], [3]])).writer(|writer| {
        writer
            .set_dictionary_enabled(false)
            .set_writer_version(WriterVersion::PARQUET_1_0)
    });
    let data = table.write(plain);
    // Of the page's header: its encoding, PLAIN, and those of its levels, RLE. The first of these becomes BIT_PACKED.
    let mut bytes = fs::read(&data.path).unwrap();
    let header = [0x15, 0x00, 0x15, 0x06, 0x15, 0x06];
    let places = bytes.windows(header.len()).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, b)| *b == header)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(places.len(), 1);
    bytes[places[0] + 3] = 0x08;
    fs::write(&data.path, bytes).unwrap();
    let deletes = table.equality_deletes(&[1], "1 id: long", json!([[3]]));
    table.commit(Commit::of([data]));
    table.commit(Commit::of([deletes]));
    table.save();
    let Some((opened, _)) = mount(&table) else {
        return;
    };
    assert_eq!(opened.read("current/t.parquet"), Err(libc::EOPNOTSUPP));
    let errors = opened.errors();
    assert!(errors.contains("BIT_PACKED"), "{errors}");
}
