//! The combinations, one dimension at a time against all columns at once.

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterVersion;

use crate::builder::open::Served;
use crate::case::{Case, Means, Pattern};
use crate::columns::{Column, Draw, FLAT, NESTED, PROMOTED};
use crate::statistics;

const VERSIONS: [WriterVersion; 2] = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];

const PATTERNS: [Pattern; 8] = [
    Pattern::None,
    Pattern::First,
    Pattern::Last,
    Pattern::EverySecond,
    Pattern::Random(5),
    Pattern::Random(60),
    Pattern::RowGroup(1),
    Pattern::All,
];

fn codecs() -> [Compression; 6] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4_RAW,
    ]
}

#[test]
fn flat_columns_under_every_delete_pattern_and_page_version() {
    for version in VERSIONS {
        for pattern in PATTERNS {
            Case {
                version,
                pattern,
                ..Case::of(FLAT)
            }
            .check();
        }
    }
}

#[test]
fn nested_columns_under_every_delete_pattern_and_page_version() {
    for version in VERSIONS {
        for pattern in PATTERNS {
            Case {
                version,
                pattern,
                ..Case::of(NESTED)
            }
            .check();
        }
    }
}

#[test]
fn every_codec_in_both_page_versions() {
    for compression in codecs() {
        for version in VERSIONS {
            Case {
                compression,
                version,
                ..Case::of(FLAT)
            }
            .check();
            Case {
                compression,
                version,
                ..Case::of(NESTED)
            }
            .check();
        }
    }
}

#[test]
fn deletes_by_vector_and_by_value() {
    for means in [Means::Vector, Means::Equality] {
        for pattern in PATTERNS {
            Case {
                means,
                pattern,
                ..Case::of(FLAT)
            }
            .check();
            Case {
                means,
                pattern,
                ..Case::of(NESTED)
            }
            .check();
        }
    }
}

#[test]
fn dictionaries_that_outgrow_their_limit_midway() {
    for version in VERSIONS {
        let draw = Draw {
            distinct: 1000,
            nulls: 10,
        };
        let case = Case {
            version,
            draw,
            dictionary_limit: 60,
            rows: 100,
            row_group: 60,
            ..Case::of(FLAT)
        };
        case.check();
        Case {
            columns: NESTED.to_vec(),
            ..case
        }
        .check();
    }
}

#[test]
fn columns_of_nulls_only_of_no_null_and_of_one_value() {
    for draw in [
        Draw {
            distinct: 5,
            nulls: 100,
        },
        Draw {
            distinct: 5,
            nulls: 0,
        },
        Draw {
            distinct: 1,
            nulls: 0,
        },
    ] {
        for columns in [FLAT, NESTED] {
            Case {
                draw,
                ..Case::of(columns)
            }
            .check();
            Case {
                draw,
                pattern: Pattern::Random(50),
                ..Case::of(columns)
            }
            .check();
        }
    }
}

#[test]
fn several_files_in_one_and_no_page_index() {
    for means in [Means::Positions, Means::Vector, Means::Equality] {
        let case = Case {
            files: 3,
            means,
            page_index: false,
            pattern: Pattern::Random(30),
            ..Case::of(FLAT)
        };
        case.check();
        Case {
            columns: NESTED.to_vec(),
            ..case
        }
        .check();
    }
}

#[test]
fn a_page_of_one_row_and_a_page_of_all() {
    for page_rows in [1, 1000] {
        for columns in [FLAT, NESTED] {
            Case {
                page_rows,
                ..Case::of(columns)
            }
            .check();
        }
    }
}

#[test]
fn promoted_columns_alone_and_beside_files_of_the_new_type() {
    let (old, new): (Vec<Column>, Vec<Column>) = PROMOTED.iter().copied().unzip();
    for version in VERSIONS {
        for pattern in PATTERNS {
            for (files, means) in [
                (1, Means::Positions),
                (2, Means::Vector),
                (3, Means::Equality),
            ] {
                let case = Case {
                    version,
                    pattern,
                    files,
                    means,
                    ..Case::of(&old)
                };
                Case {
                    promoted: Some(new.clone()),
                    ..case
                }
                .check();
            }
        }
    }
}

#[test]
fn promoted_columns_of_nulls_of_no_null_and_of_many_values() {
    let (old, new): (Vec<Column>, Vec<Column>) = PROMOTED.iter().copied().unzip();
    for (distinct, nulls) in [(5, 100), (5, 0), (1, 0), (1000, 30)] {
        for dictionary_limit in [60, 1 << 20] {
            let draw = Draw { distinct, nulls };
            let case = Case {
                draw,
                dictionary_limit,
                files: 2,
                pattern: Pattern::Random(40),
                ..Case::of(&old)
            };
            Case {
                promoted: Some(new.clone()),
                ..case
            }
            .check();
        }
    }
}

#[test]
fn bloom_filters_never_deny_a_value() {
    let (old, new): (Vec<Column>, Vec<Column>) = PROMOTED.iter().copied().unzip();
    for pattern in [Pattern::None, Pattern::First, Pattern::Random(50)] {
        for columns in [FLAT, NESTED] {
            Case {
                bloom_filters: true,
                pattern,
                ..Case::of(columns)
            }
            .check();
        }
        let case = Case {
            bloom_filters: true,
            pattern,
            files: 2,
            ..Case::of(&old)
        };
        Case {
            promoted: Some(new.clone()),
            ..case
        }
        .check();
    }
}

/// What the checks say of files that no one has touched: of the checks themselves.
#[test]
fn source_files_pass_the_same_checks() {
    for version in VERSIONS {
        for columns in [FLAT, NESTED] {
            let case = Case {
                version,
                pattern: Pattern::None,
                ..Case::of(columns)
            };
            let (t, expected) = case.build();
            let file = t.root().join("data/data-00001.parquet");
            let bytes = std::fs::read(file).unwrap();
            assert_eq!(Served::of(bytes.clone()).rows, expected);
            statistics::check(&bytes, &case);
        }
    }
}
