#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::PrimitiveType::{self, *};

fn parse(text: &str) -> PrimitiveType {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn rule_09_type_strings_take_blanks_and_defaults() {
    for text in ["decimal(9,2)", "decimal(9, 2)", "decimal( 9 , 2 )"] {
        assert_eq!(
            parse(text),
            Decimal {
                precision: 9,
                scale: 2
            },
            "{text}"
        );
    }
    assert_eq!(parse("fixed[16]"), Fixed(16));
    assert_eq!(parse("fixed[ 16 ]"), Fixed(16));
    assert_eq!(
        parse("geometry"),
        Geometry {
            crs: "OGC:CRS84".into()
        }
    );
    assert_eq!(
        parse("geometry(srid:3857)"),
        Geometry {
            crs: "srid:3857".into()
        }
    );
    let geography = |crs: &str, algorithm: &str| Geography {
        crs: crs.into(),
        algorithm: algorithm.into(),
    };
    assert_eq!(parse("geography"), geography("OGC:CRS84", "spherical"));
    assert_eq!(
        parse("geography(srid:4269)"),
        geography("srid:4269", "spherical")
    );
    assert_eq!(
        parse("geography(srid:4269, karney)"),
        geography("srid:4269", "karney")
    );
}

#[test]
fn rule_09_every_simple_type_string_reads_back() {
    let all = "unknown boolean int long float double date time timestamp timestamptz timestamp_ns timestamptz_ns \
               string uuid binary variant geometry geography";
    for text in all.split_whitespace() {
        assert_eq!(parse(text).to_string(), text);
    }
    for text in [
        "decimal(38, 10)",
        "fixed[3]",
        "geometry(srid:1)",
        "geography(srid:1)",
        "geography(srid:1, andoyer)",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn rule_09_what_is_no_type_is_an_error() {
    for text in [
        "",
        "integer",
        "decimal",
        "decimal()",
        "decimal(9)",
        "decimal(39,0)",
        "decimal(0,0)",
        "decimal(2,3)",
        "decimal(9,-1)",
        "decimal(9,2",
        "fixed",
        "fixed[]",
        "fixed[-1]",
        "fixed(3)",
        "fixed[99999999999]",
        "list<int>",
    ] {
        assert!(text.parse::<PrimitiveType>().is_err(), "{text:?}");
    }
}

#[test]
fn rule_09_the_case_of_letters_does_not_matter_as_in_the_reference() {
    assert_eq!(parse("INT"), Int);
    assert_eq!(
        parse("Decimal(9,2)"),
        Decimal {
            precision: 9,
            scale: 2
        }
    );
    assert_eq!(
        parse("GEOMETRY(Srid:X)"),
        Geometry {
            crs: "Srid:X".into()
        }
    );
}

#[test]
fn rule_42_promotions_are_those_of_the_spec_and_no_others() {
    let decimal = |precision, scale| Decimal { precision, scale };
    for (from, to) in [
        (Int, Long),
        (Float, Double),
        (decimal(9, 2), decimal(18, 2)),
        (Unknown, String),
        (Date, Timestamp),
        (Date, TimestampNs),
        (Long, Long),
    ] {
        assert!(from.can_promote_to(&to), "{from} to {to}");
    }
    for (from, to) in [
        (Long, Int),
        (Double, Float),
        (Int, Double),
        (decimal(9, 2), decimal(18, 3)),
        (decimal(18, 2), decimal(9, 2)),
        (Date, Timestamptz),
        (Date, TimestamptzNs),
        (Timestamp, TimestampNs),
        (String, Binary),
    ] {
        assert!(!from.can_promote_to(&to), "{from} to {to}");
    }
}
