//! Combinations drawn at random.

use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterVersion;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::case::{Case, Means, Pattern};
use crate::columns::{Column, Draw, FLAT, NESTED, PROMOTED};

/// Columns, and what has become of them since.
fn columns(all: &[&[Column]]) -> impl Strategy<Value = (Vec<Column>, Option<Vec<Column>>)> {
    let all = all.concat();
    prop_oneof![
        3 => subsequence(all, 1..6).prop_map(|columns| (columns, None)),
        1 => subsequence(PROMOTED.to_vec(), 1..6).prop_map(|columns| {
            let (old, new) = columns.into_iter().unzip();
            (old, Some(new))
        }),
    ]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::None),
        Just(Pattern::First),
        Just(Pattern::Last),
        Just(Pattern::EverySecond),
        (1..100u64).prop_map(Pattern::Random),
        (0..4usize).prop_map(Pattern::RowGroup),
        Just(Pattern::All),
    ]
}

fn cases(
    columns: impl Strategy<Value = (Vec<Column>, Option<Vec<Column>>)>,
    pieces: impl Strategy<Value = u64>,
) -> impl Strategy<Value = Case> {
    let means = select(vec![Means::Positions, Means::Vector, Means::Equality]);
    let compression = select(vec![
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ]);
    let version = select(vec![WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]);
    let sizes = (1..3usize, 1..300usize, 1..200usize, 1..100usize);
    let values = (
        1..2000u64,
        0..101u64,
        prop_oneof![Just(1usize << 20), 1..500usize],
        any::<bool>(),
        any::<bool>(),
    );
    (
        columns,
        sizes,
        values,
        pattern(),
        means,
        compression,
        version,
        (any::<u64>(), pieces),
    )
        .prop_map(
            |(
                (columns, promoted),
                (files, rows, row_group, page_rows),
                values,
                pattern,
                means,
                compression,
                version,
                (seed, piece),
            )| {
                let (distinct, nulls, dictionary_limit, page_index, bloom_filters) = values;
                let draw = Draw { distinct, nulls };
                Case {
                    columns,
                    promoted,
                    files,
                    rows,
                    row_group,
                    page_rows,
                    compression,
                    version,
                    dictionary_limit,
                    page_index,
                    bloom_filters,
                    draw,
                    pattern,
                    means,
                    piece,
                    seed,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_combination_reads_right(case in cases(columns(&[FLAT, NESTED]), Just(u64::MAX))) {
        case.check();
    }

    #[test]
    fn any_combination_in_pieces_reads_right(case in cases(columns(&[FLAT]), 1..80u64)) {
        case.check();
    }
}
