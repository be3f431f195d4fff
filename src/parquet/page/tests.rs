//! Pages written by the `parquet` crate, and pages made wrong by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::*;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::packed::unpacked;
use crate::parquet::delta;
use crate::parquet::format::FileMetaData;
use crate::parquet::keep::KeepRuns;
use crate::parquet::plain::{self, ByteArrays};

/// How a column is written.
#[derive(Clone, Debug)]
struct Setting {
    version: WriterVersion,
    compression: Compression,
    /// `None`: with a dictionary.
    encoding: Option<parquet::basic::Encoding>,
    page_rows: usize,
}

fn settings(encodings: &'static [parquet::basic::Encoding]) -> impl Strategy<Value = Setting> {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ];
    (
        prop::sample::select(vec![WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]),
        prop::sample::select(compressions.to_vec()),
        prop::option::of(prop::sample::select(encodings)),
        1..60usize,
    )
        .prop_map(|(version, compression, encoding, page_rows)| Setting {
            version,
            compression,
            encoding,
            page_rows,
        })
}

/// A file of one row group with one column.
fn write<T: DataType>(
    schema: &str,
    setting: &Setting,
    values: &[T::T],
    def_levels: Option<&[i16]>,
    rep_levels: Option<&[i16]>,
) -> Vec<u8> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(setting.version)
        .set_compression(setting.compression)
        .set_data_page_row_count_limit(setting.page_rows)
        .set_write_batch_size(setting.page_rows)
        .set_dictionary_enabled(setting.encoding.is_none());
    if let Some(encoding) = setting.encoding {
        properties = properties.set_encoding(encoding);
    }
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<T>()
        .write_batch(values, def_levels, rep_levels)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// A column's levels, and its values in PLAIN encoding.
#[derive(Debug, Default, PartialEq)]
struct Decoded {
    rep: Vec<u32>,
    def: Vec<u32>,
    plain: Vec<u8>,
}

/// Values of `width` bytes (`None`: byte arrays) in PLAIN encoding.
fn plain_values(
    encoding: Encoding,
    bytes: &[u8],
    width: Option<usize>,
    keep: &KeepRuns,
    dictionary: &[Vec<u8>],
) -> Vec<u8> {
    let mut out = Vec::new();
    match (encoding, width) {
        (Encoding::Plain, Some(width)) => {
            plain::filter_fixed(bytes, width, keep, &mut out).unwrap()
        }
        (Encoding::Plain, None) => plain::filter_byte_array(bytes, keep, &mut out).unwrap(),
        (Encoding::ByteStreamSplit, Some(width)) => {
            plain::join_byte_streams(bytes, width, keep, &mut out).unwrap()
        }
        (Encoding::DeltaBinaryPacked, Some(width)) => {
            delta::integers_to_plain(bytes, width == 8, keep, &mut out).unwrap();
        }
        (Encoding::DeltaLengthByteArray, None) => {
            delta::lengths_to_plain(bytes, keep, &mut out).unwrap()
        }
        (Encoding::DeltaByteArray, width) => {
            let mut filtered = Vec::new();
            delta::filter_byte_array(bytes, keep, &mut filtered).unwrap();
            let parts = delta::byte_array::decode_prefix_suffix(&filtered, keep.kept()).unwrap();
            let (mut value, mut rest) = (Vec::new(), parts.suffixes);
            for (prefix, suffix) in parts.prefix_lens.iter().zip(&parts.suffix_lens) {
                value.truncate(*prefix);
                value.extend_from_slice(&rest[..*suffix]);
                rest = &rest[*suffix..];
                if width.is_none() {
                    out.extend((value.len() as u32).to_le_bytes());
                }
                out.extend_from_slice(&value);
            }
        }
        (encoding, _) if encoding.is_dictionary() => {
            let (width, indices) = rle::split_index_width(bytes).unwrap();
            let mut filtered = Vec::new();
            rle::filter(indices, width, keep, &mut filtered).unwrap();
            assert!(filtered.len() <= indices.len());
            let mut decoded = Vec::new();
            rle::decode(&filtered, width, keep.kept(), &mut decoded).unwrap();
            decoded
                .iter()
                .for_each(|index| out.extend_from_slice(&dictionary[*index as usize]));
        }
        other => panic!("{other:?}"),
    }
    out
}

/// Decodes the only column of a file, without every third value if `filtered`.
fn read(file: &[u8], width: Option<usize>, max_rep: u16, max_def: u16, filtered: bool) -> Decoded {
    let footer_len =
        u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
    let footer = FileMetaData::parse(&file[file.len() - 8 - footer_len..]).unwrap();
    let chunk = &footer.row_groups[0].columns[0];
    let start = chunk
        .dictionary_page_offset
        .unwrap_or(chunk.data_page_offset) as usize;
    let bytes = &file[start..start + chunk.total_compressed_size as usize];
    let mut pages = PageReader::new(bytes, chunk.codec, chunk.num_values as u64);
    let mut dictionary = Vec::new();
    let mut decoded = Decoded::default();
    while let Some(page) = pages.next_page().unwrap() {
        let body = page.decompress().unwrap();
        if page.is_dictionary() {
            let mut arrays = ByteArrays::new(&body);
            dictionary = (0..page.num_values() as usize)
                .map(|at| match width {
                    Some(width) => body[at * width..(at + 1) * width].to_vec(),
                    None => {
                        let value = arrays.next_value().unwrap();
                        [&(value.len() as u32).to_le_bytes(), value].concat()
                    }
                })
                .collect();
            continue;
        }
        let parts = page.split(&body, max_rep, max_def).unwrap();
        let first = decoded.def.len();
        parts.repetition.decode(&mut decoded.rep).unwrap();
        parts.definition.decode(&mut decoded.def).unwrap();
        let count = decoded.def[first..]
            .iter()
            .filter(|level| **level == u32::from(max_def))
            .count();
        let keep = KeepRuns::without(count, (0..count).filter(|at| filtered && at % 3 == 0));
        decoded.plain.extend(plain_values(
            page.encoding(),
            parts.values,
            width,
            &keep,
            &dictionary,
        ));
    }
    decoded
}

use parquet::basic::Encoding as E;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn int64_columns_of_the_parquet_crate_decode(
        setting in settings(&[E::PLAIN, E::DELTA_BINARY_PACKED, E::BYTE_STREAM_SPLIT]),
        values in vec(prop::option::of(prop_oneof![any::<i64>(), 0..5i64]), 1..300),
    ) {
        let def: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let present: Vec<i64> = values.iter().flatten().copied().collect();
        let file = write::<Int64Type>("message m { optional int64 x; }", &setting, &present, Some(&def), None);
        let decoded = read(&file, Some(8), 0, 1, false);
        prop_assert_eq!(decoded.def, def.into_iter().map(|level| level as u32).collect::<Vec<_>>());
        prop_assert_eq!(decoded.plain, present.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn int32_columns_of_the_parquet_crate_decode(
        setting in settings(&[E::PLAIN, E::DELTA_BINARY_PACKED, E::BYTE_STREAM_SPLIT]),
        values in vec(prop_oneof![any::<i32>(), 0..5i32], 1..300),
    ) {
        let file = write::<Int32Type>("message m { required int32 x; }", &setting, &values, None, None);
        let decoded = read(&file, Some(4), 0, 0, false);
        prop_assert_eq!(decoded.plain, values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn byte_array_lists_of_the_parquet_crate_decode(
        setting in settings(&[E::PLAIN, E::DELTA_LENGTH_BYTE_ARRAY, E::DELTA_BYTE_ARRAY]),
        rows in vec(prop::option::of(vec(prop::option::of("[ab]{0,6}"), 0..5)), 1..100),
    ) {
        let (mut rep, mut def, mut values) = (Vec::new(), Vec::new(), Vec::<ByteArray>::new());
        for row in &rows {
            let elements = row.as_deref().unwrap_or_default();
            if elements.is_empty() {
                rep.push(0);
                def.push(i16::from(row.is_some()));
            }
            for (at, element) in elements.iter().enumerate() {
                rep.push(i16::from(at > 0));
                def.push(if element.is_some() { 3 } else { 2 });
                values.extend(element.as_deref().map(ByteArray::from));
            }
        }
        let schema = "message m { optional group x (LIST) { repeated group list { optional binary element; } } }";
        let file = write::<ByteArrayType>(schema, &setting, &values, Some(&def), Some(&rep));
        let decoded = read(&file, None, 1, 3, false);
        prop_assert_eq!(decoded.rep, rep.into_iter().map(|level| level as u32).collect::<Vec<_>>());
        prop_assert_eq!(decoded.def, def.into_iter().map(|level| level as u32).collect::<Vec<_>>());
        let plain = values.iter().flat_map(|value| [&(value.len() as u32).to_le_bytes(), value.data()].concat());
        prop_assert_eq!(decoded.plain, plain.collect::<Vec<_>>());
    }

    #[test]
    fn filtered_pages_hold_the_kept_values(
        mut setting in settings(&[E::PLAIN, E::DELTA_LENGTH_BYTE_ARRAY, E::DELTA_BYTE_ARRAY]),
        values in vec("[ab]{0,6}", 1..100),
    ) {
        setting.page_rows = 1000;
        let arrays: Vec<ByteArray> = values.iter().map(|value| value.as_str().into()).collect();
        let file = write::<ByteArrayType>("message m { required binary x; }", &setting, &arrays, None, None);
        let decoded = read(&file, None, 0, 0, true);
        let kept = values.iter().enumerate().filter(|(at, _)| at % 3 != 0);
        let plain = kept.flat_map(|(_, value)| [&(value.len() as u32).to_le_bytes(), value.as_bytes()].concat());
        prop_assert_eq!(decoded.plain, plain.collect::<Vec<_>>());
    }

    #[test]
    fn fixed_length_columns_of_the_parquet_crate_decode(
        setting in settings(&[E::PLAIN, E::DELTA_BYTE_ARRAY, E::BYTE_STREAM_SPLIT]),
        values in vec(prop::array::uniform5(0..3u8), 1..200),
    ) {
        let arrays: Vec<FixedLenByteArray> =
            values.iter().map(|value| ByteArray::from(value.to_vec()).into()).collect();
        let schema = "message m { required fixed_len_byte_array(5) x; }";
        let file = write::<FixedLenByteArrayType>(schema, &setting, &arrays, None, None);
        prop_assert_eq!(read(&file, Some(5), 0, 0, false).plain, values.concat());
    }

    #[test]
    fn boolean_columns_of_the_parquet_crate_decode(
        setting in settings(&[E::PLAIN, E::RLE]), values in vec(any::<bool>(), 1..300),
    ) {
        let file = write::<BoolType>("message m { required boolean x; }", &setting, &values, None, None);
        let footer_len = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
        let footer = FileMetaData::parse(&file[file.len() - 8 - footer_len..]).unwrap();
        let chunk = &footer.row_groups[0].columns[0];
        let mut pages = PageReader::new(&file[chunk.data_page_offset as usize..], chunk.codec, chunk.num_values as u64);
        let mut decoded = Vec::new();
        while let Some(page) = pages.next_page().unwrap() {
            let body = page.decompress().unwrap();
            let bytes = page.split(&body, 0, 0).unwrap().values;
            match page.encoding() {
                Encoding::Plain => decoded.extend(unpacked(bytes, 1, page.num_values() as usize)),
                Encoding::Rle => {
                    let (bytes, _) = rle::split_length_prefixed(bytes, "booleans").unwrap();
                    rle::decode(bytes, 1, page.num_values() as usize, &mut decoded).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!(decoded, values.into_iter().map(u32::from).collect::<Vec<_>>());
    }

    #[test]
    fn damaged_chunks_give_an_answer(
        setting in settings(&[E::PLAIN, E::DELTA_BINARY_PACKED]),
        values in vec(0..9i64, 1..60),
        flips in vec((any::<prop::sample::Index>(), 0..8u8), 1..4),
    ) {
        let mut file = write::<Int64Type>("message m { required int64 x; }", &setting, &values, None, None);
        for (at, bit) in flips {
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
        }
        for codec in (0..8).map(Codec::from_number) {
            let mut pages = PageReader::new(&file[4..], codec, values.len() as u64);
            while let Ok(Some(page)) = pages.next_page() {
                let Ok(body) = page.decompress() else { break };
                let _ = page.split(&body, 2, 3).map(|parts| parts.definition.decode(&mut Vec::new()));
            }
        }
    }
}

fn page(num_values: u32, crc: Option<u32>, body: &[u8]) -> Vec<u8> {
    let header = PageHeader {
        uncompressed_size: body.len() as u32,
        compressed_size: body.len() as u32,
        crc: crc.map(u32::cast_signed),
        page: Page::DataV1 {
            num_values,
            encoding: Encoding::Plain,
            def_encoding: Encoding::BitPacked,
            rep_encoding: Encoding::Rle,
        },
    };
    let mut out = Vec::new();
    header.write(&mut out);
    out.extend_from_slice(body);
    out
}

fn first_error(chunk: &[u8], num_values: u64) -> Option<DecodeError> {
    let mut pages = PageReader::new(chunk, Codec::Uncompressed, num_values);
    loop {
        match pages.next_page() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

#[test]
fn a_checksum_that_does_not_match_is_an_error() {
    assert_eq!(
        first_error(&page(2, Some(crc32fast::hash(b"abcd")), b"abcd"), 2),
        None
    );
    assert!(first_error(&page(2, Some(crc32fast::hash(b"abcd") ^ 1), b"abcd"), 2).is_some());
}

#[test]
fn pages_must_hold_as_many_values_as_the_chunk() {
    let two = page(2, None, b"abcd");
    assert!(first_error(&two, 3).is_some());
    assert!(first_error(&two, 1).is_some());
    // What follows the last value is not looked at.
    assert_eq!(first_error(&[&two, &b"\xff\xff"[..]].concat(), 2), None);
    assert!(
        first_error(&page(MAX_PAGE_VALUES + 1, None, b""), u64::MAX)
            .unwrap()
            .is_unsupported()
    );
}

#[test]
fn pages_of_other_types_are_passed_over() {
    let header = PageHeader {
        uncompressed_size: 3,
        compressed_size: 3,
        crc: Some(1),
        page: Page::Other(1),
    };
    let mut chunk = Vec::new();
    header.write(&mut chunk);
    chunk.extend_from_slice(b"xyz");
    chunk.extend(page(2, None, b"abcd"));
    assert_eq!(first_error(&chunk, 2), None);
}

#[test]
fn a_dictionary_page_comes_first_and_once() {
    let header = PageHeader {
        uncompressed_size: 0,
        compressed_size: 0,
        crc: None,
        page: Page::Dictionary {
            num_values: 0,
            encoding: Encoding::Plain,
        },
    };
    let mut dictionary = Vec::new();
    header.write(&mut dictionary);
    let data = page(2, None, b"abcd");
    assert_eq!(first_error(&[&dictionary[..], &data].concat(), 2), None);
    assert!(first_error(&[&dictionary[..], &dictionary, &data].concat(), 2).is_some());
    assert!(first_error(&[&data[..], &dictionary, &data].concat(), 4).is_some());
}

#[test]
fn bit_packed_levels_have_no_length_before_them() {
    // Repetition levels in runs (length 2: eight times 0), then definition levels 1 0 1 1 0 0 0 1 from the top bit.
    let bytes = page(8, None, &[2, 0, 0, 0, 16, 0, 0b1011_0001, b'v']);
    let raw = PageReader::new(&bytes, Codec::Uncompressed, 8)
        .next_page()
        .unwrap()
        .unwrap();
    let body = raw.decompress().unwrap();
    let parts = raw.split(&body, 1, 1).unwrap();
    let mut levels = Vec::new();
    parts.repetition.decode(&mut levels).unwrap();
    parts.definition.decode(&mut levels).unwrap();
    assert_eq!(levels, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1]);
    assert_eq!(parts.values, b"v");
}

#[test]
fn a_level_above_the_highest_is_refused() {
    let levels = Levels {
        bytes: &[2, 3],
        count: 1,
        max: 2,
        bit_packed: false,
    };
    assert!(levels.decode(&mut Vec::new()).is_err());
    let levels = Levels {
        bytes: &[2, 2],
        count: 1,
        max: 2,
        bit_packed: false,
    };
    assert!(levels.decode(&mut Vec::new()).is_ok());
}
