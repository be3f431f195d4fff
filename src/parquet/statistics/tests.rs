#![allow(clippy::unwrap_used)]

use super::*;

fn change(source: Physical, dropped_rows: bool) -> Change {
    Change {
        source,
        conversion: Conversion::None,
        source_values: 100,
        values: if dropped_rows { 90 } else { 100 },
        dropped_rows,
        ordered: true,
        shapes: false,
    }
}

fn statistics(null_count: Option<i64>, bounds: &[u8]) -> Statistics {
    Statistics {
        null_count,
        min_value: Some(bounds.into()),
        max_value: Some(bounds.into()),
        min: Some(bounds.into()),
        max: Some(bounds.into()),
        distinct_count: Some(3),
        ..Statistics::default()
    }
}

#[test]
fn nothing_changes_where_no_row_was_dropped() {
    let before = statistics(Some(5), &[1, 0, 0, 0]);
    assert_eq!(
        after(Some(&before), change(Physical::Int32, false)),
        Some(before)
    );
}

#[test]
fn legacy_bounds_of_byte_arrays_are_left_out() {
    let kept = after(
        Some(&statistics(Some(0), b"abc")),
        change(Physical::ByteArray, false),
    );
    let kept = kept.unwrap();
    assert_eq!((kept.min, kept.max), (None, None));
    assert_eq!(kept.max_value.as_deref(), Some(&b"abc"[..]));
}

#[test]
fn bounds_of_numbers_go_with_dropped_rows() {
    let before = statistics(Some(0), &[1, 0, 0, 0]);
    let kept = after(Some(&before), change(Physical::Int32, true)).unwrap();
    assert_eq!(kept.null_count, Some(0));
    assert_eq!(
        (kept.min_value, kept.max_value, kept.min, kept.max),
        (None, None, None, None)
    );
    assert_eq!(kept.distinct_count, None);
}

#[test]
fn bounds_of_byte_arrays_stay_as_bounds_and_say_so() {
    let before = statistics(Some(0), b"abc");
    let kept = after(Some(&before), change(Physical::ByteArray, true)).unwrap();
    assert_eq!(kept.min_value.as_deref(), Some(&b"abc"[..]));
    assert_eq!(
        (kept.is_min_value_exact, kept.is_max_value_exact),
        (Some(false), Some(false))
    );
    assert_eq!((kept.min, kept.max), (None, None));
}

#[test]
fn a_null_count_that_does_not_follow_takes_all_statistics_with_it() {
    let some = statistics(Some(5), b"abc");
    assert_eq!(after(Some(&some), change(Physical::ByteArray, true)), None);
    let unknown = statistics(None, b"abc");
    assert_eq!(
        after(Some(&unknown), change(Physical::ByteArray, true)),
        None
    );
}

#[test]
fn a_column_of_nulls_stays_one() {
    let before = Statistics {
        null_count: Some(100),
        ..Statistics::default()
    };
    let kept = after(Some(&before), change(Physical::Int64, true)).unwrap();
    assert_eq!(
        kept,
        Statistics {
            null_count: Some(90),
            ..Statistics::default()
        }
    );
}

#[test]
fn bounds_follow_the_type_and_legacy_ones_do_not() {
    let mut widened = change(Physical::Int32, false);
    widened.conversion = Conversion::Int32ToInt64;
    let kept = after(Some(&statistics(Some(1), &[254, 255, 255, 255])), widened).unwrap();
    assert_eq!(kept.min_value.as_deref(), Some(&(-2i64).to_le_bytes()[..]));
    assert_eq!((kept.min, kept.max), (None, None));
}

#[test]
fn bounds_of_undefined_order_go() {
    let mut unordered = change(Physical::Int32, false);
    unordered.ordered = false;
    let kept = after(Some(&statistics(Some(1), &[1, 0, 0, 0])), unordered).unwrap();
    assert_eq!((kept.min_value, kept.max_value), (None, None));
    assert_eq!(kept.null_count, Some(1));
}

#[test]
fn equal_bounds_of_floats_go_since_a_nan_may_stand_beside_the_value() {
    let before = statistics(Some(0), &f64::INFINITY.to_le_bytes());
    let kept = after(Some(&before), change(Physical::Double, false)).unwrap();
    assert_eq!((kept.min_value, kept.max_value), (None, None));
}
