#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::parquet::format::{Codec, RowGroup};
use crate::rows::file_schema::{Annotation, Physical};

fn group(name: &str, children: i32) -> SchemaElement {
    SchemaElement {
        physical: None,
        repetition: Some(Repetition::Optional),
        name: name.into(),
        num_children: Some(children),
        annotation: Annotation::None,
        field_id: None,
        geo: None,
    }
}

fn leaf(name: &str, repetition: Repetition) -> SchemaElement {
    let node = group(name, 0);
    SchemaElement {
        physical: Some(Physical::Int32),
        repetition: Some(repetition),
        num_children: None,
        ..node
    }
}

fn chunk() -> ColumnChunk {
    ColumnChunk {
        file_path: None,
        file_offset: 0,
        encrypted: false,
        physical: Physical::Int32,
        encodings: vec![],
        codec: Codec::Uncompressed,
        num_values: 10,
        total_uncompressed_size: 50,
        total_compressed_size: 50,
        data_page_offset: 20,
        dictionary_page_offset: Some(4),
        statistics: None,
        encoding_stats: vec![],
        bloom_filter_offset: None,
        bloom_filter_length: None,
        offset_index: None,
        column_index: None,
    }
}

fn metadata(chunk: ColumnChunk) -> FileMetaData {
    FileMetaData {
        version: 1,
        schema: vec![group("root", 1), leaf("x", Repetition::Required)],
        num_rows: 10,
        row_groups: vec![RowGroup {
            columns: vec![chunk],
            total_byte_size: 50,
            num_rows: 10,
            file_offset: None,
            total_compressed_size: None,
            ordinal: None,
        }],
        key_value_metadata: vec![],
        created_by: None,
        column_orders: false,
        encrypted: false,
    }
}

/// As a file whose footer starts at byte 100.
fn parse(metadata: &FileMetaData) -> Result<SourceFooter, DecodeError> {
    let mut footer = Vec::new();
    metadata.write(&mut footer);
    SourceFooter::parse(&footer, 100 + footer.len() as u64 + TRAILER)
}

#[test]
fn a_chunk_starts_at_its_dictionary_page_where_there_is_one() {
    let range = |chunk| parse(&metadata(chunk)).unwrap().chunk_range(0, 0).unwrap();
    assert_eq!(range(chunk()), 4..54);
    assert_eq!(
        range(ColumnChunk {
            dictionary_page_offset: None,
            ..chunk()
        }),
        20..70
    );
    assert_eq!(
        range(ColumnChunk {
            dictionary_page_offset: Some(0),
            ..chunk()
        }),
        20..70
    );
    assert_eq!(
        range(ColumnChunk {
            dictionary_page_offset: Some(20),
            ..chunk()
        }),
        20..70
    );
}

#[test]
fn sizes_of_parquet_mr_before_1_2_9_leave_out_the_dictionary_header() {
    let supported = |created_by: &str, chunk| {
        let metadata = FileMetaData {
            created_by: Some(created_by.into()),
            ..metadata(chunk)
        };
        !parse(&metadata).is_err_and(|error| error.is_unsupported())
    };
    assert!(!supported("parquet-mr version 1.2.8 (build abc)", chunk()));
    assert!(!supported("parquet-mr", chunk()));
    let plain = ColumnChunk {
        dictionary_page_offset: Some(0),
        ..chunk()
    };
    assert!(supported("parquet-mr version 1.2.8 (build abc)", plain));
    assert!(supported("parquet-mr version 1.2.9 (build abc)", chunk()));
    assert!(supported("parquet-mr version 1.13.1 (build abc)", chunk()));
    assert!(supported("parquet-cpp version 1.0.0", chunk()));
}

#[test]
fn a_chunk_outside_the_data_is_refused() {
    for wrong in [
        ColumnChunk {
            total_compressed_size: 97,
            ..chunk()
        },
        ColumnChunk {
            total_compressed_size: -1,
            ..chunk()
        },
        ColumnChunk {
            total_compressed_size: i64::MAX,
            ..chunk()
        },
        ColumnChunk {
            data_page_offset: -1,
            ..chunk()
        },
        ColumnChunk {
            data_page_offset: 2,
            ..chunk()
        },
        ColumnChunk {
            num_values: 9,
            ..chunk()
        },
        ColumnChunk {
            num_values: 11,
            ..chunk()
        },
    ] {
        assert!(!parse(&metadata(wrong)).unwrap_err().is_unsupported());
    }
}

#[test]
fn row_counts_that_do_not_add_up_are_refused() {
    assert!(
        parse(&FileMetaData {
            num_rows: 11,
            ..metadata(chunk())
        })
        .is_err()
    );
}

#[test]
fn a_chunk_in_another_file_is_unsupported() {
    let chunk = ColumnChunk {
        file_path: Some("other.parquet".into()),
        ..chunk()
    };
    assert!(parse(&metadata(chunk)).unwrap_err().is_unsupported());
}

#[test]
fn an_encrypted_footer_is_unsupported_and_another_magic_is_no_parquet() {
    assert!(
        footer_len(b"\x01\0\0\0PARE", 100)
            .unwrap_err()
            .is_unsupported()
    );
    assert!(
        !footer_len(b"\x01\0\0\0ORC1", 100)
            .unwrap_err()
            .is_unsupported()
    );
    assert_eq!(footer_len(b"\x58\0\0\0PAR1", 100), Ok(88));
    assert!(footer_len(b"\x59\0\0\0PAR1", 100).is_err());
    assert!(footer_len(b"PAR1", 4).is_err());
    assert!(footer_len(b"", 0).is_err());
}

#[test]
fn levels_count_the_optional_and_repeated_nodes_on_the_path() {
    let schema = file_schema(&[
        group("root", 2),
        group("names", 1),
        SchemaElement {
            repetition: Some(Repetition::Repeated),
            ..group("list", 1)
        },
        leaf("element", Repetition::Optional),
        leaf("id", Repetition::Required),
    ])
    .unwrap();
    assert_eq!(schema.roots, [0, 3]);
    assert_eq!(schema.leaves, [2, 3]);
    let levels: Vec<_> = schema
        .nodes
        .iter()
        .map(|node| (node.max_def, node.max_rep))
        .collect();
    assert_eq!(levels, [(1, 0), (2, 1), (3, 1), (0, 0)]);
    assert_eq!(schema.nodes[2].parent, Some(1));
    assert_eq!(schema.nodes[0].children, [1]);
    assert_eq!(
        schema.nodes[3].leaf,
        Some(FileLeaf {
            column: 1,
            physical: Physical::Int32
        })
    );
}

#[test]
fn a_schema_whose_child_counts_are_wrong_is_refused() {
    assert!(file_schema(&[]).is_err());
    assert!(file_schema(&[group("root", 2), leaf("x", Repetition::Required)]).is_err());
    assert!(file_schema(&[group("root", i32::MAX), leaf("x", Repetition::Required)]).is_err());
    assert!(file_schema(&[group("root", 0), leaf("x", Repetition::Required)]).is_err());
    assert!(file_schema(&[leaf("root", Repetition::Required)]).is_err());
}

#[test]
fn a_schema_of_a_thousand_levels_is_refused() {
    let mut schema = vec![group("g", 1); 1000];
    schema.push(leaf("x", Repetition::Required));
    assert!(file_schema(&schema).is_err());
    schema.drain(..1000 - MAX_SCHEMA_DEPTH);
    assert!(file_schema(&schema).is_ok());
}

/// All Parquet files below a directory.
fn parquet_files(directory: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            parquet_files(&path, out);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "parquet")
        {
            out.push(path);
        }
    }
}

/// Reads the tables that `BERGFS_CORPUS` names, or that lie beside the repository: files by a dozen writers.
#[test]
fn footers_and_pages_of_real_files_agree_with_the_parquet_crate() {
    use crate::parquet::page::PageReader;
    use parquet::file::metadata::ParquetMetaDataReader;

    let beside = || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let corpus = std::env::var_os("BERGFS_CORPUS").map_or_else(beside, Into::into);
    if !corpus.is_dir() {
        eprintln!(
            "SKIPPED: no corpus of tables at {} (set BERGFS_CORPUS)",
            corpus.display()
        );
        return;
    }
    let mut paths = Vec::new();
    parquet_files(&corpus, &mut paths);
    for path in paths {
        let file = std::fs::read(&path).unwrap();
        let footer = footer_len(&file, file.len() as u64).map(|len| end_of(&file, len).unwrap());
        let theirs = footer
            .clone()
            .ok()
            .and_then(|footer| ParquetMetaDataReader::decode_metadata(footer).ok());
        let Some(theirs) = theirs else {
            assert!(
                footer
                    .and_then(|footer| SourceFooter::parse(footer, file.len() as u64))
                    .is_err(),
                "{path:?}"
            );
            continue;
        };
        let ours = SourceFooter::parse(footer.unwrap(), file.len() as u64)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(ours.metadata.num_rows, theirs.file_metadata().num_rows());
        for (group_at, (group, their_group)) in ours
            .metadata
            .row_groups
            .iter()
            .zip(theirs.row_groups())
            .enumerate()
        {
            for (column, (chunk, their_chunk)) in
                group.columns.iter().zip(their_group.columns()).enumerate()
            {
                let descriptor = their_chunk.column_descr();
                let node = &ours.schema.nodes[ours.schema.leaves[column]];
                assert_eq!(
                    i16::try_from(node.max_def),
                    Ok(descriptor.max_def_level()),
                    "{path:?}"
                );
                assert_eq!(
                    i16::try_from(node.max_rep),
                    Ok(descriptor.max_rep_level()),
                    "{path:?}"
                );
                let range = ours.chunk_range(group_at, column).unwrap();
                let bytes = &file[range.start as usize..range.end as usize];
                let mut pages = PageReader::new(bytes, chunk.codec, chunk.num_values as u64);
                let (mut rows, mut levels) = (0, Vec::new());
                let mut values = 0;
                while let Some(page) = pages
                    .next_page()
                    .unwrap_or_else(|error| panic!("{path:?} {column}: {error}"))
                {
                    let body = page
                        .decompress()
                        .unwrap_or_else(|error| panic!("{path:?} {column}: {error}"));
                    if page.is_dictionary() {
                        continue;
                    }
                    let parts = page.split(&body, node.max_rep, node.max_def).unwrap();
                    levels.clear();
                    parts.repetition.decode(&mut levels).unwrap();
                    rows += levels.iter().filter(|level| **level == 0).count();
                    values += levels.len();
                    levels.clear();
                    parts.definition.decode(&mut levels).unwrap();
                    assert_eq!(levels.len(), parts.definition.count);
                }
                assert_eq!(rows as i64, group.num_rows, "{path:?}");
                assert_eq!(values as i64, chunk.num_values, "{path:?}");
            }
        }
    }
}

#[test]
fn a_footer_takes_one_read_or_two_where_it_is_longer_than_64_kib() {
    use crate::storage::{Storage, StorageOptions};

    for (padding, reads) in [(0, 1), (100_000, 2)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.parquet");
        let mut file = [b"PAR1", &[0; 96][..]].concat();
        let start = file.len();
        let key_value_metadata = vec![("k".to_owned(), Some("v".repeat(padding)))];
        let written = FileMetaData {
            key_value_metadata,
            ..metadata(chunk())
        };
        written.write(&mut file);
        let len = u32::try_from(file.len() - start).unwrap();
        file.extend(len.to_le_bytes());
        file.extend(b"PAR1");
        std::fs::write(&path, &file).unwrap();
        let location = directory.path().to_str().unwrap();
        let options = StorageOptions::default();
        let storage = Storage::new(
            &options,
            &directory.path().into(),
            &Default::default(),
            location,
            &[],
        )
        .unwrap();
        let source = storage.open(path.to_str().unwrap()).unwrap();
        let counters = storage.counters();
        let footer = SourceFooter::read(&source, counters).unwrap();
        assert_eq!(footer.metadata, written);
        assert_eq!((footer.len, footer.footer_start), (file.len() as u64, 100));
        assert!(footer.weight() > padding);
        assert_eq!(
            (counters.source_reads.get(), counters.footers_read.get()),
            (reads, 1)
        );
    }
}
