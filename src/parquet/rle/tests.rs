#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::packed::bit_width;

/// A source run: one value some times, or packed groups; either with an overlong header.
#[derive(Clone, Debug)]
enum Source {
    Rle {
        value: u32,
        len: usize,
        overlong: bool,
    },
    Packed {
        groups: Vec<[u32; 8]>,
        overlong: bool,
    },
}

fn write_header(out: &mut Vec<u8>, header: u64, overlong: bool) {
    write_varint(out, header);
    if overlong {
        *out.last_mut().unwrap() |= 0x80;
        out.push(0);
    }
}

/// The sequence's bytes, with the zeros of the last group left out if `cut`, and its values.
fn encode(runs: &[Source], width: u8, used: usize, cut: bool) -> (Vec<u8>, Vec<u32>) {
    let mask = ((1u64 << width) - 1) as u32;
    let (mut out, mut values) = (Vec::new(), Vec::new());
    for run in runs {
        match run {
            Source::Rle {
                value,
                len,
                overlong,
            } => {
                write_header(&mut out, (*len as u64) << 1, *overlong);
                out.extend(&(value & mask).to_le_bytes()[..usize::from(width).div_ceil(8)]);
                values.extend(std::iter::repeat_n(value & mask, *len));
            }
            Source::Packed { groups, overlong } => {
                write_header(&mut out, (groups.len() as u64) << 1 | 1, *overlong);
                let mut bits = BitWriter::new();
                for value in groups.iter().flatten() {
                    bits.push((value & mask).into(), width.into());
                    values.push(value & mask);
                }
                out.append(&mut bits.take());
            }
        }
    }
    // The last group may hold fewer values than it has room for.
    if let Some(Source::Packed { groups, .. }) = runs.last() {
        let unused = if groups.is_empty() { 0 } else { used % 8 };
        values.truncate(values.len() - unused);
        if cut {
            let lost = groups.len() * usize::from(width)
                - ((groups.len() * 8 - unused) * usize::from(width)).div_ceil(8);
            out.truncate(out.len() - lost);
        }
    }
    (out, values)
}

fn runs() -> impl Strategy<Value = Vec<Source>> {
    let group = prop::array::uniform8(any::<u32>());
    let packed = (vec(group, 0..5), any::<bool>())
        .prop_map(|(groups, overlong)| Source::Packed { groups, overlong });
    let long = (vec(Just([0, 1, 2, 3, 4, 5, 6, 7]), 60..70)).prop_map(|groups| Source::Packed {
        groups,
        overlong: false,
    });
    let rle =
        (any::<u32>(), 0..20usize, any::<bool>()).prop_map(|(value, len, overlong)| Source::Rle {
            value,
            len,
            overlong,
        });
    let long_rle = (any::<u32>(), 60..200usize).prop_map(|(value, len)| Source::Rle {
        value,
        len,
        overlong: false,
    });
    vec(
        prop_oneof![4 => packed, 1 => long, 4 => rle, 1 => long_rle],
        0..12,
    )
}

fn kept<T: Clone>(values: &[T], keep: &KeepRuns) -> Vec<T> {
    values
        .iter()
        .zip(keep.iter())
        .filter(|(_, kept)| *kept)
        .map(|(value, _)| value.clone())
        .collect()
}

/// Masks from "nearly all" to "nearly none".
fn keep(total: usize, seed: &[u8], density: u8) -> KeepRuns {
    let mut keep = KeepRuns::new();
    for at in 0..total {
        let random = seed
            .get(at % seed.len().max(1))
            .copied()
            .unwrap_or(0)
            .wrapping_mul((at / 7 + 1) as u8 | 1);
        keep.push(random <= density, 1);
    }
    keep
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn filtering_gives_the_kept_values_in_no_more_bytes(
        runs in runs(),
        width in 0..=32u8,
        used in 0..8usize,
        cut in any::<bool>(),
        seed in vec(any::<u8>(), 1..97),
        density in any::<u8>(),
    ) {
        let (bytes, values) = encode(&runs, width, used, cut);
        let keep = keep(values.len(), &seed, density);
        let mut out = Vec::new();
        filter(&bytes, width, &keep, &mut out).unwrap();
        prop_assert!(out.len() <= bytes.len(), "{} > {}", out.len(), bytes.len());
        let mut decoded = Vec::new();
        decode(&out, width, keep.kept(), &mut decoded).unwrap();
        prop_assert_eq!(decoded, kept(&values, &keep));
        // And again: what was filtered can be filtered.
        let again = KeepRuns::without(keep.kept(), (0..keep.kept()).step_by(3));
        let mut twice = Vec::new();
        filter(&out, width, &again, &mut twice).unwrap();
        prop_assert!(twice.len() <= out.len());
    }

    #[test]
    fn whole_groups_are_written_when_the_source_has_whole_groups(
        runs in runs(), width in 1..=32u8, seed in vec(any::<u8>(), 1..97), density in any::<u8>(),
    ) {
        let (bytes, values) = encode(&runs, width, 0, false);
        let keep = keep(values.len(), &seed, density);
        let mut out = Vec::new();
        filter(&bytes, width, &keep, &mut out).unwrap();
        let mut reader = RunReader::new(&out, width, keep.kept()).unwrap();
        while reader.next_run().unwrap().is_some() {}
        prop_assert!(!reader.is_cut());
        prop_assert!(reader.rest().is_empty());
    }

    #[test]
    fn levels_encode_within_the_bound_and_decode_to_themselves(
        runs in vec((any::<u16>(), prop_oneof![Just(1usize), 1..30usize, 60..600usize]), 0..40),
        width in 0..=16u8,
    ) {
        let mask = ((1u32 << width) - 1) as u16;
        let levels: Vec<u16> =
            runs.iter().flat_map(|(level, count)| std::iter::repeat_n(level & mask, *count)).collect();
        let bytes = encode_levels(&levels, width);
        prop_assert!(bytes.len() <= encoded_len_bound(levels.len(), width));
        let mut decoded = Vec::new();
        decode(&bytes, width, levels.len(), &mut decoded).unwrap();
        prop_assert_eq!(decoded, levels.into_iter().map(u32::from).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_bytes_give_an_answer_of_the_asked_length(
        bytes in vec(any::<u8>(), 0..60), width in 0..=40u8, count in 0..5000usize,
    ) {
        let mut out = Vec::new();
        if decode(&bytes, width, count, &mut out).is_ok() {
            prop_assert_eq!(out.len(), count);
        }
        let mut filtered = Vec::new();
        if filter(&bytes, width, &KeepRuns::without(count, (0..count).step_by(5)), &mut filtered).is_ok() {
            prop_assert!(filtered.len() <= bytes.len());
        }
    }
}

#[test]
fn the_example_of_the_format_description_decodes() {
    // parquet-format, Encodings.md: 0 to 7 in three bits, least significant first.
    let mut out = Vec::new();
    decode(
        &[0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010],
        3,
        8,
        &mut out,
    )
    .unwrap();
    assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_short_packed_group_takes_values_from_the_run_that_follows() {
    // Eight packed values of four bits, then ten times 9.
    let bytes = [0x03, 0x10, 0x32, 0x54, 0x76, 20, 9];
    let mut out = Vec::new();
    filter(&bytes, 4, &KeepRuns::without(18, [0, 1, 2]), &mut out).unwrap();
    assert_eq!(out, [0x03, 0x43, 0x65, 0x97, 0x99, 14, 9]);
}

#[test]
fn a_repeated_value_wider_than_the_width_is_refused() {
    assert!(decode(&[2, 4], 2, 1, &mut Vec::new()).is_err());
    assert!(decode(&[2, 3], 2, 1, &mut Vec::new()).is_ok());
}

#[test]
fn too_few_values_are_an_error() {
    assert!(decode(&[4, 1], 1, 3, &mut Vec::new()).is_err());
    assert!(decode(&[], 1, 1, &mut Vec::new()).is_err());
    assert!(decode(&[], 1, 0, &mut Vec::new()).is_ok());
}

#[test]
fn index_widths_over_32_bits_are_refused() {
    assert_eq!(split_index_width(&[32, 7]), Ok((32, &[7][..])));
    assert_eq!(split_index_width(&[]), Ok((0, &[][..])));
    assert!(split_index_width(&[33]).is_err());
    assert_eq!(
        (
            bit_width(0),
            bit_width(1),
            bit_width(4),
            bit_width(u32::MAX)
        ),
        (0, 1, 3, 32)
    );
}
