#![allow(clippy::unwrap_used)]

use super::*;
use crate::parquet::format::{Encoding, Page, PageHeader};

/// A chunk that is in memory, transcoded at one go.
fn whole(chunk: StoredChunk<'_>, wanted: Wanted<'_>) -> MadeChunk {
    let mut transcoding = Transcoding::default();
    let read = |range| chunk.range(range).map(Cow::Borrowed);
    transcoding
        .go_on(
            (chunk, wanted),
            (&read, u64::MAX),
            &Counters::default(),
            usize::MAX,
        )
        .unwrap();
    assert!(transcoding.has_ended());
    transcoding.into_made()
}

/// The levels of the oldest files stand without a length, the first in the highest bits.
#[test]
fn rule_46_bit_packed_levels_become_runs() {
    // Present, absent, present, present, absent.
    let mut page = vec![0b1011_0000];
    [10i32, 30, 40]
        .iter()
        .for_each(|v| page.extend(v.to_le_bytes()));
    let header = PageHeader {
        uncompressed_size: 13,
        compressed_size: 13,
        crc: None,
        page: Page::DataV1 {
            num_values: 5,
            encoding: Encoding::Plain,
            def_encoding: Encoding::BitPacked,
            rep_encoding: Encoding::BitPacked,
        },
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.extend(page);
    let shown = |deleted: &[u32]| {
        let chunk = StoredChunk {
            bytes: &bytes,
            len: bytes.len() as u64,
            codec: Codec::Uncompressed,
            physical: Physical::Int32,
            max_def: 1,
            max_rep: 0,
            uncompressed: 0,
            values: 5,
            rows: 5,
            span: None,
            deleted,
        };
        let wanted = Wanted {
            max_def: 1,
            def_map: &[0, 1],
            conversion: Conversion::None,
        };
        let made = whole(chunk, wanted);
        let mut pages = PageReader::new(&made.bytes, Codec::Uncompressed, made.num_values);
        let page = pages.next_page().unwrap().unwrap();
        let body = page.decompress().unwrap();
        let parts = page.split(&body, 0, 1).unwrap();
        assert!(!parts.definition.bit_packed);
        let mut levels = Vec::new();
        parts.definition.decode(&mut levels).unwrap();
        (levels, parts.values.to_vec())
    };
    let plain = |values: &[i32]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    assert_eq!(shown(&[]), (vec![1, 0, 1, 1, 0], plain(&[10, 30, 40])));
    assert_eq!(shown(&[0, 3]), (vec![0, 1, 0], plain(&[30])));
}

/// A list column of rows of one to four values that cross the borders of pages, with a page between them that is none of
/// ours.
fn lists() -> Vec<u8> {
    let mut chunk = MadeChunk::default();
    chunk.push_dictionary(3, &[10i32, 20, 30].map(i32::to_le_bytes).concat());
    let mut page = |rep: &[u16], first: i32| {
        let (rep, def) = (
            rle::encode_levels(rep, 1),
            rle::encode_levels(&vec![1; rep.len()], 1),
        );
        let values: Vec<u8> = (first..first + 3).flat_map(i32::to_le_bytes).collect();
        chunk.push_data(3, Encoding::Plain, Some(&rep), Some(&def), &[&values]);
        if first == 100 {
            let header = PageHeader {
                uncompressed_size: 5,
                compressed_size: 5,
                crc: None,
                page: Page::Other(1),
            };
            header.write(&mut chunk.bytes);
            chunk.bytes.extend([0xff; 5]);
        }
    };
    page(&[0, 0, 1], 100);
    page(&[1, 1, 0], 200);
    page(&[0, 1, 1], 300);
    page(&[1, 0, 0], 400);
    chunk.bytes
}

#[test]
fn a_chunk_that_is_made_in_steps_from_pieces_is_the_one_that_is_made_at_one_go() {
    let bytes = lists();
    for deleted in [&[][..], &[1], &[0, 3], &[2, 4], &[0, 1, 2, 3, 4, 5]] {
        let chunk = StoredChunk {
            bytes: &bytes,
            len: bytes.len() as u64,
            codec: Codec::Uncompressed,
            physical: Physical::Int32,
            max_def: 1,
            max_rep: 1,
            uncompressed: bytes.len() as u64,
            values: 12,
            rows: 6,
            span: None,
            deleted,
        };
        let wanted = Wanted {
            max_def: 1,
            def_map: &[0, 1],
            conversion: Conversion::None,
        };
        let right = whole(chunk, wanted);
        // Rows of 1, 4, 1, 4, 1 and 1 values.
        let lost = |row: &u32| [1, 4, 1, 4, 1, 1][*row as usize];
        assert_eq!(right.num_values, 12 - deleted.iter().map(lost).sum::<u64>());
        for (window, step) in [(1, 1), (7, 30), (40, 1), (60, 60), (1000, 1)] {
            let read = |range| chunk.range(range).map(Cow::Borrowed);
            let counters = Counters::default();
            let mut made = Transcoding::default();
            while !made.has_ended() {
                let until = made.bytes().len() + step;
                let before = made.bytes().len();
                made.go_on((chunk, wanted), (&read, window), &counters, until)
                    .unwrap();
                assert!(made.has_ended() || made.bytes().len() > before);
            }
            assert_eq!(made.into_made(), right, "{window} {step} {deleted:?}");
            assert_eq!(counters.pages_decoded.get(), 4);
            assert_eq!(counters.chunks_transcoded.get(), 1);
        }
    }
}

#[test]
fn a_chunk_that_ends_early_is_refused_however_it_is_read() {
    let bytes = lists();
    let short = &bytes[..bytes.len() - 1];
    for window in [1, 40, 1000] {
        let chunk = StoredChunk {
            bytes: short,
            len: short.len() as u64,
            codec: Codec::Uncompressed,
            physical: Physical::Int32,
            max_def: 1,
            max_rep: 1,
            uncompressed: bytes.len() as u64,
            values: 12,
            rows: 6,
            span: None,
            deleted: &[],
        };
        let wanted = Wanted {
            max_def: 1,
            def_map: &[0, 1],
            conversion: Conversion::None,
        };
        let read = |range| chunk.range(range).map(Cow::Borrowed);
        let mut made = Transcoding::default();
        for _ in 0..2 {
            let end = made.go_on(
                (chunk, wanted),
                (&read, window),
                &Counters::default(),
                usize::MAX,
            );
            assert!(matches!(end, Err(PageError::Decode(_))));
            assert!(!made.has_ended());
        }
    }
}
