//! What cannot be read is refused by its name, by the tree and by a mount; never shown as other rows.

use libc::{EIO, ENOTSUP};
use parquet::file::properties::WriterPropertiesBuilder;
use serde_json::json;

use crate::builder::imported::{Chunk, Values, parquet_file};
use crate::builder::open::Opened;
use crate::builder::{Commit, TableBuilder};
use crate::{refuses, shows, view_refuses};

/// A file with its bytes `from`, which stand once in its footer, replaced.
fn with_footer(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let footer = &file[end - len..end];
    let mut found = (0..footer.len()).filter(|at| footer[*at..].starts_with(from));
    let at = end - len + found.next().expect("the bytes to replace");
    assert_eq!(found.next(), None, "the bytes stand there more than once");
    file.splice(at..at + from.len(), to.iter().copied());
    let len = (len + to.len() - from.len()) as u32;
    let end = file.len() - 8;
    file[end..end + 4].copy_from_slice(&len.to_le_bytes());
    file
}

fn plain(writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    writer.set_dictionary_enabled(false)
}

/// Longs 7 and 8 in the column `v`.
fn longs() -> Vec<u8> {
    let group = vec![Chunk::dense(Values::Int64s(vec![7, 8]))];
    parquet_file("optional int64 v = 1;", &[group], plain)
}

/// The path of the column `v` in Thrift: field 3, a list of one string.
const PATH: [u8; 4] = [0x19, 0x18, 1, b'v'];

/// A table of this one file, whose column `v` is refused with these words, whether rows are deleted or not.
#[track_caller]
fn refused(ty: &str, file: &[u8], rows: i64, errno: i32, words: &[&str]) {
    let mut t = TableBuilder::new(3, &format!("1 v: {ty}"));
    let a = t.adopt("a.parquet", file, rows);
    t.commit(Commit::of([a.clone()]));
    let words = [&["a.parquet"], words].concat();
    refuses(&mut t, errno, &words);
    let gone = t.vector(&a, &[0]);
    t.commit(Commit::of([gone]));
    refuses(&mut t, errno, &words);
    view_refuses(&t, "snapshots/1001", errno, &words);
}

#[test]
fn rule_46_a_codec_that_is_not_read_is_refused_by_name() {
    for (number, name) in [(3, "LZO"), (20, "number 20")] {
        // The codec is field 4, zigzag.
        let file = with_footer(
            longs(),
            &[&PATH[..], &[0x15, 0]].concat(),
            &[&PATH[..], &[0x15, 2 * number]].concat(),
        );
        refused(
            "long",
            &file,
            2,
            ENOTSUP,
            &["column v", "compression codec", name],
        );
    }
}

#[test]
fn rule_46_other_columns_of_a_file_with_an_unknown_codec_are_read() {
    let group = vec![
        Chunk::dense(Values::Int64s(vec![1, 2])),
        Chunk::dense(Values::Int64s(vec![7, 8])),
    ];
    let file = parquet_file(
        "optional int64 a = 1; optional int64 v = 2;",
        &[group],
        plain,
    );
    let file = with_footer(
        file,
        &[&PATH[..], &[0x15, 0]].concat(),
        &[&PATH[..], &[0x15, 6]].concat(),
    );
    let mut t = TableBuilder::new(2, "1 a: long");
    let a = t.adopt("a.parquet", &file, 2);
    t.commit(Commit::of([a.clone()]));
    shows(&mut t, json!([[1], [2]]));
    let gone = t.position_deletes(&[(&a.path, 0)]);
    t.commit(Commit::of([gone]));
    shows(&mut t, json!([[2]]));
}

#[test]
fn rule_46_an_encoding_that_is_not_read_is_refused_by_name() {
    // The column's encodings are field 2 (PLAIN, RLE); a page's is field 2 of its header, behind its two values.
    let file = with_footer(longs(), &[0x19, 0x25, 0, 6], &[0x19, 0x25, 40, 6]);
    let page = [0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6];
    let at = (0..file.len())
        .find(|at| file[*at..].starts_with(&page))
        .unwrap();
    let mut file = file;
    file[at + 3] = 40;
    refused(
        "long",
        &file,
        2,
        ENOTSUP,
        &["column v", "the encoding Other(20)"],
    );
}

#[test]
fn rule_46_a_physical_type_that_is_not_there_is_refused_by_name() {
    // A schema element's type is field 1, its repetition field 3, its name field 4: INT64, OPTIONAL, `v`.
    let file = with_footer(
        longs(),
        &[0x15, 4, 0x25, 2, 0x18, 1, b'v'],
        &[0x15, 18, 0x25, 2, 0x18, 1, b'v'],
    );
    refused("long", &file, 2, ENOTSUP, &["the physical type 9"]);
}

#[test]
fn rule_46_a_logical_type_that_came_later_is_refused_by_name() {
    let uuids = || {
        let group = vec![Chunk::dense(Values::Fixed(vec![vec![7; 16], vec![8; 16]]))];
        parquet_file(
            "optional fixed_len_byte_array(16) v (UUID) = 1;",
            &[group],
            plain,
        )
    };
    // The field id is field 9, the logical type field 10: a union of which UUID is field 14. Field 40, in the long form.
    let file = with_footer(uuids(), &[2, 0x1c, 0xec, 0, 0], &[2, 0x1c, 0x0c, 80, 0, 0]);
    for ty in ["uuid", "fixed[16]"] {
        refused(ty, &file, 2, ENOTSUP, &["the logical type 40", "\"v\""]);
    }
    // A timestamp (field 8) of a unit that is none of the three: NANOS is field 3.
    let group = vec![Chunk::dense(Values::Int64s(vec![7, 8]))];
    let nanos = parquet_file(
        "optional int64 v (TIMESTAMP(NANOS,false)) = 1;",
        &[group],
        plain,
    );
    let file = with_footer(nanos, &[0x8c, 0x12, 0x1c, 0x3c], &[0x8c, 0x12, 0x1c, 0x4c]);
    for ty in ["timestamp", "timestamp_ns", "long"] {
        refused(ty, &file, 2, ENOTSUP, &["the logical type 8", "\"v\""]);
    }
}

#[test]
fn rule_46_a_converted_type_beside_a_later_logical_type_is_heeded() {
    let group = vec![Chunk::dense(Values::Bytes(vec![b"x".to_vec()]))];
    let file = parquet_file("optional binary v (STRING) = 1;", &[group], plain);
    let file = with_footer(file, &[2, 0x1c, 0x1c, 0, 0], &[2, 0x1c, 0x0c, 80, 0, 0]);
    let mut t = TableBuilder::new(2, "1 v: string");
    let a = t.adopt("a.parquet", &file, 1);
    t.commit(Commit::of([a]));
    shows(&mut t, json!([["x"]]));
}

#[test]
fn rule_13_encrypted_parquet_files_are_refused_by_name() {
    for (name, file) in [
        (
            "footer",
            &include_bytes!("../fixtures/pyarrow/footer.parquet")[..],
        ),
        (
            "plain_footer",
            include_bytes!("../fixtures/pyarrow/plain_footer.parquet"),
        ),
        (
            "column",
            include_bytes!("../fixtures/pyarrow/column.parquet"),
        ),
    ] {
        let mut t = TableBuilder::new(2, "1 a: long, 2 b: long");
        let a = t.adopt(&format!("{name}.parquet"), file, 2);
        t.commit(Commit::of([a]));
        refuses(&mut t, ENOTSUP, &[name, "Parquet modular encryption"]);
    }
}

#[test]
fn rule_46_a_page_that_does_not_match_its_checksum_is_an_error_wherever_it_is_decoded() {
    for file in [
        &include_bytes!("../fixtures/pyarrow/checksums_v1.parquet")[..],
        include_bytes!("../fixtures/pyarrow/checksums_v2.parquet"),
    ] {
        let mut t = TableBuilder::new(2, "1 a: long, 2 b: long");
        let whole = t.adopt("whole.parquet", file, 2);
        t.commit(Commit::of([whole]));
        shows(&mut t, json!([[1, 2], [3, 4]]));
        // The last value of `b` becomes another.
        let values = [2i64.to_le_bytes(), 4i64.to_le_bytes()].concat();
        let mut file = file.to_vec();
        let at = (0..file.len()).find(|at| file[*at..].starts_with(&values));
        file[at.unwrap() + 8] = 5;
        let mut t = TableBuilder::new(2, "1 a: long, 2 b: long");
        let a = t.adopt("a.parquet", &file, 2);
        t.commit(Commit::of([a.clone()]));
        let gone = t.position_deletes(&[(&a.path, 0)]);
        t.commit(Commit::of([gone]));
        t.save();
        view_refuses(&t, "current", EIO, &["a.parquet", "checksum"]);
        // Text is decoded from bytes that are served as they are.
        for opened in Opened::every_way(&t.root()) {
            for text in ["snapshots/1001/t.csv", "snapshots/1001/t.jsonl"] {
                assert_eq!(opened.read(text), Err(EIO), "{opened}");
                let said = opened.errors().to_lowercase();
                assert!(said.contains("crc") || said.contains("checksum"), "{said}");
            }
        }
    }
}

#[test]
fn rule_46_a_two_level_list_of_two_level_lists_is_an_error_and_not_other_rows() {
    let columns = "optional group v (LIST) = 1 { repeated group array (LIST) = 2 { repeated int32 array = 3; } }";
    // [[7, 8], [9]] and null.
    let chunk = Chunk::nested(Values::Int32s(vec![7, 8, 9]), &[3, 3, 3, 0], &[0, 2, 1, 0]);
    let file = parquet_file(columns, &[vec![chunk]], plain);
    refused("list<2 list<3 int>>", &file, 2, EIO, &["array"]);
}

#[test]
fn rule_46_a_page_of_version_2_may_be_left_uncompressed_whatever_the_codec() {
    let group = vec![Chunk::dense(Values::Int64s(vec![7, 8, 9]))];
    let file = parquet_file("optional int64 v = 1;", &[group], |w| {
        plain(w).set_writer_version(parquet::file::properties::WriterVersion::PARQUET_2_0)
    });
    // Its pages say that they are not compressed; now its footer says SNAPPY.
    let file = with_footer(
        file,
        &[&PATH[..], &[0x15, 0]].concat(),
        &[&PATH[..], &[0x15, 2]].concat(),
    );
    let mut t = TableBuilder::new(2, "1 v: long");
    let a = t.adopt("a.parquet", &file, 3);
    t.commit(Commit::of([a.clone()]));
    shows(&mut t, json!([[7], [8], [9]]));
    let gone = t.position_deletes(&[(&a.path, 1)]);
    t.commit(Commit::of([gone]));
    shows(&mut t, json!([[7], [9]]));
}
