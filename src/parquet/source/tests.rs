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
