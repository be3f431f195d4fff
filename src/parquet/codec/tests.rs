#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = b"one, two, two, two, two, two, two, two, two, two, three";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4_framed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn hadoop(blocks: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for block in blocks {
        let compressed = lz4_flex::block::compress(block);
        out.extend((block.len() as u32).to_be_bytes());
        out.extend((compressed.len() as u32).to_be_bytes());
        out.extend(compressed);
    }
    out
}

/// Each codec with `TEXT` compressed by it.
fn compressed() -> Vec<(Codec, Vec<u8>)> {
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    brotli.write_all(TEXT).unwrap();
    vec![
        (Codec::Uncompressed, TEXT.to_vec()),
        (
            Codec::Snappy,
            snap::raw::Encoder::new().compress_vec(TEXT).unwrap(),
        ),
        (Codec::Gzip, gzip(TEXT)),
        (Codec::Brotli, brotli.into_inner()),
        (Codec::Zstd, ::zstd::bulk::compress(TEXT, 3).unwrap()),
        (Codec::Lz4Raw, lz4_flex::block::compress(TEXT)),
        (Codec::Lz4, hadoop(&[TEXT])),
        (Codec::Lz4, hadoop(&[&TEXT[..20], &TEXT[20..]])),
        (Codec::Lz4, lz4_framed(TEXT)),
        (Codec::Lz4, lz4_flex::block::compress(TEXT)),
    ]
}

#[test]
fn every_codec_gives_exactly_the_stated_size_or_an_error() {
    for (codec, bytes) in compressed() {
        assert_eq!(
            decompress(codec, &bytes, TEXT.len()).unwrap(),
            TEXT,
            "{codec:?}"
        );
        assert!(
            decompress(codec, &bytes, TEXT.len() - 1).is_err(),
            "{codec:?}"
        );
        assert!(
            decompress(codec, &bytes, TEXT.len() + 1).is_err(),
            "{codec:?}"
        );
        assert!(decompress(codec, &bytes, 0).is_err(), "{codec:?}");
        assert!(
            decompress(codec, &bytes[..bytes.len() / 2], TEXT.len()).is_err(),
            "{codec:?}"
        );
    }
}

#[test]
fn gzip_of_several_members_is_their_concatenation() {
    let bytes = [gzip(&TEXT[..10]), gzip(&TEXT[10..])].concat();
    assert_eq!(decompress(Codec::Gzip, &bytes, TEXT.len()).unwrap(), TEXT);
}

#[test]
fn a_bomb_stops_at_the_stated_size() {
    let zeros = vec![0; 100 << 20];
    for (codec, bytes) in [
        (Codec::Gzip, gzip(&zeros)),
        (Codec::Zstd, ::zstd::bulk::compress(&zeros, 1).unwrap()),
    ] {
        assert!(decompress(codec, &bytes, 10).is_err());
    }
}

#[test]
fn a_size_that_so_few_bytes_cannot_give_is_refused_before_memory_is_taken() {
    // Snappy's length says 512 MiB.
    let mut snappy = Vec::new();
    crate::parquet::thrift::write_varint(&mut snappy, 512 << 20);
    snappy.push(0);
    assert!(decompress(Codec::Snappy, &snappy, 512 << 20).is_err());
    assert!(decompress(Codec::Lz4Raw, &[0; 100], 512 << 20).is_err());
    assert!(decompress(Codec::Lz4, &[0; 100], 512 << 20).is_err());
}

#[test]
fn codecs_that_are_not_there_are_unsupported_by_name() {
    let error = decompress(Codec::Lzo, b"x", 1).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("LZO"));
    assert!(
        decompress(Codec::Other(99), b"x", 1)
            .unwrap_err()
            .is_unsupported()
    );
    assert!(
        decompress(Codec::Zstd, b"x", MAX_PAGE + 1)
            .unwrap_err()
            .is_unsupported()
    );
}

proptest! {
    #[test]
    fn arbitrary_bytes_give_an_answer_no_longer_than_stated(bytes in vec(any::<u8>(), 0..200), size in 0..1000usize) {
        for number in 0..8 {
            if let Ok(page) = decompress(Codec::from_number(number), &bytes, size) {
                prop_assert_eq!(page.len(), size);
            }
        }
    }
}
