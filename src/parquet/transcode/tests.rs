#![allow(clippy::unwrap_used)]

use super::*;
use crate::parquet::format::{Encoding, Page, PageHeader};

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
            codec: Codec::Uncompressed,
            physical: Physical::Int32,
            max_def: 1,
            max_rep: 0,
            uncompressed: 0,
            values: 5,
            rows: 5,
            deleted,
        };
        let wanted = Wanted {
            max_def: 1,
            def_map: &[0, 1],
            conversion: Conversion::None,
        };
        let made = transcode(chunk, wanted, &Counters::default()).unwrap();
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
