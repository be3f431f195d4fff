#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// A file of two row groups, with every kind of statistics, by the `parquet` crate.
fn file() -> Vec<u8> {
    let schema = "message m {
        required int64 id = 1;
        optional group names (LIST) = 2 { repeated group list { optional binary element (STRING) = 3; } }
        optional fixed_len_byte_array(7) price (DECIMAL(16, 3)) = 4;
    }";
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_bloom_filter_enabled(true)
        .set_key_value_metadata(Some(vec![parquet::file::metadata::KeyValue::new(
            "k".into(),
            "v".to_owned(),
        )]))
        .build();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for group in 0..2 {
        let mut rows = writer.next_row_group().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        column
            .typed::<Int64Type>()
            .write_batch(&[group, -4, 9], None, None)
            .unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let values: Vec<ByteArray> = vec!["amount".into(), "zebra".into()];
        let column_writer = column.typed::<ByteArrayType>();
        column_writer
            .write_batch(&values, Some(&[3, 3, 0, 2]), Some(&[0, 1, 0, 0]))
            .unwrap();
        column.close().unwrap();
        let mut column = rows.next_column().unwrap().unwrap();
        let value = ByteArray::from(vec![0, 0, 0, 0, 0, 1, 2]);
        let column_writer = column.typed::<parquet::data_type::FixedLenByteArrayType>();
        column_writer
            .write_batch(&[value.into()], Some(&[1, 0, 0]), None)
            .unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn footer_of(file: &[u8]) -> &[u8] {
    let length =
        u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
    &file[file.len() - 8 - length..file.len() - 8]
}

fn written(metadata: &FileMetaData) -> Vec<u8> {
    let mut out = Vec::new();
    metadata.write(&mut out);
    out
}

fn read_by_crate(footer: &[u8]) -> ParquetMetaData {
    ParquetMetaDataReader::decode_metadata(footer).unwrap()
}

#[test]
fn a_footer_written_again_is_read_the_same_by_the_parquet_crate() {
    let file = file();
    let theirs = read_by_crate(footer_of(&file));
    let ours = FileMetaData::parse(footer_of(&file)).unwrap();
    let again = read_by_crate(&written(&ours));
    assert_eq!(
        again.file_metadata().schema(),
        theirs.file_metadata().schema()
    );
    assert_eq!(again.file_metadata().num_rows(), 6);
    assert_eq!(
        again.file_metadata().created_by(),
        theirs.file_metadata().created_by()
    );
    assert_eq!(
        again.file_metadata().key_value_metadata(),
        theirs.file_metadata().key_value_metadata()
    );
    assert_eq!(
        again.file_metadata().column_orders(),
        theirs.file_metadata().column_orders()
    );
    assert_eq!(again.num_row_groups(), 2);
    for (again, theirs) in again.row_groups().iter().zip(theirs.row_groups()) {
        assert_eq!(again.num_rows(), 3);
        assert_eq!(again.total_byte_size(), theirs.total_byte_size());
        assert_eq!(again.file_offset(), theirs.file_offset());
        assert_eq!(again.ordinal(), theirs.ordinal());
        for (again, theirs) in again.columns().iter().zip(theirs.columns()) {
            assert_eq!(again.column_path(), theirs.column_path());
            assert_eq!(again.statistics(), theirs.statistics());
            assert!(again.statistics().is_some());
            assert_eq!(again.byte_range(), theirs.byte_range());
            assert_eq!(again.num_values(), theirs.num_values());
            assert_eq!(again.compression_codec(), theirs.compression_codec());
            assert_eq!(
                again.encodings().collect::<Vec<_>>(),
                theirs.encodings().collect::<Vec<_>>()
            );
            assert_eq!(
                again.page_encoding_stats_mask(),
                theirs.page_encoding_stats_mask()
            );
            assert_eq!(again.bloom_filter_offset(), theirs.bloom_filter_offset());
            assert_eq!(again.bloom_filter_length(), theirs.bloom_filter_length());
            assert_eq!(again.column_index_range(), theirs.column_index_range());
            assert_eq!(again.offset_index_range(), theirs.offset_index_range());
        }
    }
}

#[test]
fn parsing_what_was_written_gives_the_same_struct_and_the_same_bytes() {
    let ours = FileMetaData::parse(footer_of(&file())).unwrap();
    let again = FileMetaData::parse(&written(&ours)).unwrap();
    assert_eq!(again, ours);
    assert_eq!(written(&again), written(&ours));
}

fn leaf(physical: Physical, annotation: Annotation) -> FileMetaData {
    let element = |name: &str| SchemaElement {
        physical: None,
        repetition: None,
        name: name.into(),
        num_children: None,
        annotation: Annotation::None,
        field_id: None,
        geo: None,
    };
    FileMetaData {
        version: 2,
        schema: vec![
            SchemaElement {
                num_children: Some(1),
                ..element("root")
            },
            SchemaElement {
                physical: Some(physical),
                repetition: Some(Repetition::Optional),
                annotation,
                field_id: Some(7),
                ..element("x")
            },
        ],
        num_rows: 0,
        row_groups: vec![],
        key_value_metadata: vec![],
        created_by: None,
        column_orders: true,
        encrypted: false,
    }
}

#[test]
fn every_annotation_is_written_as_logical_and_as_converted_type() {
    use parquet::basic::{IntType, TimeUnit};
    let time = |is_adjusted_to_u_t_c, unit| LogicalType::timestamp(is_adjusted_to_u_t_c, unit);
    let _: Option<IntType> = None;
    let cases = [
        (
            Physical::ByteArray,
            Annotation::String,
            Some(LogicalType::String),
            ConvertedType::UTF8,
        ),
        (
            Physical::ByteArray,
            Annotation::Enum,
            Some(LogicalType::Enum),
            ConvertedType::ENUM,
        ),
        (
            Physical::ByteArray,
            Annotation::Json,
            Some(LogicalType::Json),
            ConvertedType::JSON,
        ),
        (
            Physical::ByteArray,
            Annotation::Bson,
            Some(LogicalType::Bson),
            ConvertedType::BSON,
        ),
        (
            Physical::Int64,
            Annotation::Decimal {
                precision: 18,
                scale: 4,
            },
            Some(LogicalType::decimal(4, 18)),
            ConvertedType::DECIMAL,
        ),
        (
            Physical::Int32,
            Annotation::Date,
            Some(LogicalType::Date),
            ConvertedType::DATE,
        ),
        (
            Physical::Int64,
            Annotation::TimeMicros,
            Some(LogicalType::time(false, TimeUnit::MICROS)),
            ConvertedType::TIME_MICROS,
        ),
        (
            Physical::Int64,
            Annotation::TimeNanos,
            Some(LogicalType::time(false, TimeUnit::NANOS)),
            ConvertedType::NONE,
        ),
        (
            Physical::Int64,
            Annotation::TimestampMillis { utc: false },
            Some(time(false, TimeUnit::MILLIS)),
            ConvertedType::TIMESTAMP_MILLIS,
        ),
        (
            Physical::Int64,
            Annotation::TimestampMicros { utc: true },
            Some(time(true, TimeUnit::MICROS)),
            ConvertedType::TIMESTAMP_MICROS,
        ),
        (
            Physical::Int64,
            Annotation::TimestampNanos { utc: true },
            Some(time(true, TimeUnit::NANOS)),
            ConvertedType::NONE,
        ),
        (
            Physical::Int32,
            Annotation::Integer {
                bits: 16,
                signed: false,
            },
            Some(LogicalType::integer(16, false)),
            ConvertedType::UINT_16,
        ),
        (
            Physical::Int64,
            Annotation::Integer {
                bits: 64,
                signed: true,
            },
            Some(LogicalType::integer(64, true)),
            ConvertedType::INT_64,
        ),
        (
            Physical::Fixed(16),
            Annotation::Uuid,
            Some(LogicalType::Uuid),
            ConvertedType::NONE,
        ),
        (
            Physical::Fixed(12),
            Annotation::Interval,
            None,
            ConvertedType::INTERVAL,
        ),
        (
            Physical::Fixed(2),
            Annotation::Float16,
            Some(LogicalType::Float16),
            ConvertedType::NONE,
        ),
        (
            Physical::Int32,
            Annotation::Unknown,
            Some(LogicalType::Unknown),
            ConvertedType::NONE,
        ),
        (
            Physical::Double,
            Annotation::None,
            None,
            ConvertedType::NONE,
        ),
    ];
    for (physical, annotation, logical, converted) in cases {
        let metadata = leaf(physical, annotation);
        let bytes = written(&metadata);
        assert_eq!(
            FileMetaData::parse(&bytes).unwrap(),
            metadata,
            "{annotation:?}"
        );
        let theirs = read_by_crate(&bytes);
        let column = theirs.file_metadata().schema_descr().column(0);
        assert_eq!(
            column.logical_type_ref(),
            logical.as_ref(),
            "{annotation:?}"
        );
        assert_eq!(column.converted_type(), converted, "{annotation:?}");
        assert_eq!(column.self_type().get_basic_info().id(), 7);
        if let Physical::Fixed(length) = physical {
            assert_eq!(column.physical_type(), Type::FIXED_LEN_BYTE_ARRAY);
            assert_eq!(column.type_length(), length.cast_signed());
        }
    }
}

#[test]
fn every_truncation_and_every_flipped_bit_gives_an_answer() {
    let file = file();
    let footer = footer_of(&file);
    for len in 0..footer.len() {
        assert!(FileMetaData::parse(&footer[..len]).is_err());
    }
    let mut bytes = footer.to_vec();
    for at in 0..bytes.len() * 8 {
        bytes[at / 8] ^= 1 << (at % 8);
        let _ = FileMetaData::parse(&bytes);
        bytes[at / 8] ^= 1 << (at % 8);
    }
}

#[test]
fn a_v1_page_header_has_the_length_that_was_said() {
    for size in [
        0,
        1,
        63,
        64,
        8191,
        8192,
        1 << 20,
        (1 << 27) - 1,
        1 << 27,
        i32::MAX.unsigned_abs(),
    ] {
        for num_values in [0, 63, 64, 100_000, i32::MAX.unsigned_abs()] {
            let header = PageHeader {
                uncompressed_size: size,
                compressed_size: size,
                crc: None,
                page: Page::DataV1 {
                    num_values,
                    encoding: Encoding::ByteStreamSplit,
                    def_encoding: Encoding::Rle,
                    rep_encoding: Encoding::BitPacked,
                },
            };
            let mut bytes = Vec::new();
            header.write(&mut bytes);
            assert_eq!(bytes.len(), page_header_v1_len(size, size, num_values));
            assert!(bytes.len() <= PAGE_HEADER_V1_MAX);
            assert_eq!(PageHeader::parse(&bytes).unwrap(), (header, bytes.len()));
        }
    }
}

#[test]
fn page_headers_of_every_kind_survive_a_round_trip() {
    let pages = [
        Page::Dictionary {
            num_values: 5,
            encoding: Encoding::PlainDictionary,
        },
        Page::DataV2 {
            num_values: 9,
            num_nulls: 2,
            num_rows: 7,
            encoding: Encoding::RleDictionary,
            def_len: 3,
            rep_len: 4,
            is_compressed: false,
        },
        Page::Other(1),
    ];
    for page in pages {
        let header = PageHeader {
            uncompressed_size: 10,
            compressed_size: 8,
            crc: Some(-5),
            page,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let len = bytes.len();
        bytes.extend_from_slice(b"the page");
        assert_eq!(PageHeader::parse(&bytes).unwrap(), (header, len));
    }
}

#[test]
fn a_negative_page_size_is_refused() {
    let header = PageHeader {
        uncompressed_size: 1 << 31,
        compressed_size: 0,
        crc: None,
        page: Page::Other(9),
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    assert!(PageHeader::parse(&bytes).is_err());
}
