#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn set(words: &[i64]) -> KeySet {
    KeySet::Words {
        words: Words::new(words.to_vec()),
        null: false,
    }
}

fn found(set: &KeySet, words: Vec<i64>) -> Vec<usize> {
    let rows = words.len();
    let column = KeyColumn::Rows {
        present: None,
        cells: Cells::Words(words),
    };
    let mut found = Vec::new();
    set.find(&[column], rows, |row| found.push(row));
    found
}

#[test]
fn dense_words_are_bits_and_sparse_ones_are_hashed() {
    let is_bits = |words: &[i64]| matches!(Words::new(words.to_vec()), Words::Bits { .. });
    assert!(is_bits(&[]));
    assert!(is_bits(&[5, 8_000_000]));
    assert!(!is_bits(&[i64::MIN, i64::MAX]));
    assert!(!is_bits(&[0, 1 << 30]));
    // A million words in a range of a hundred million take fewer bytes as bits than as words.
    let million: Vec<i64> = (0..1_000_000).map(|i| i * 100 - 7).collect();
    assert!(is_bits(&million));
    assert!(set(&million).weight() < 13 << 20);
}

#[test]
fn delete_files_without_rows_are_put_together_as_what_their_column_takes() {
    let empty = || Arc::new(KeyCollector::new(&[&PrimitiveType::String]).finish());
    let union = KeySet::union(&[empty(), empty()]);
    let text = KeyColumn::Constant(Cell::Bytes(ByteArray::from("a")));
    let mut found = Vec::new();
    union.find(&[text], 3, |row| found.push(row));
    assert_eq!(found, Vec::<usize>::new());
}

proptest! {
    #[test]
    fn a_set_of_words_holds_what_was_put_in(
        words in prop::collection::vec(prop_oneof![-100i64..100, Just(i64::MIN), Just(i64::MAX), any::<i64>()], 0..20),
        more in prop::collection::vec(-100i64..100, 0..20),
        low in -120i64..120,
        len in 0i64..50,
    ) {
        let expected: BTreeSet<i64> = words.iter().chain(&more).copied().collect();
        let union = KeySet::union(&[Arc::new(set(&words)), Arc::new(set(&more))]);
        let asked: Vec<i64> = (-110..110).chain(words).chain([i64::MIN, i64::MAX, 0]).collect();
        let rows: Vec<usize> = (0..asked.len()).filter(|row| expected.contains(&asked[*row])).collect();
        prop_assert_eq!(found(&union, asked), rows);
        let high = low + len;
        prop_assert_eq!(union.may_hold((low, high)), expected.range(low..=high).next().is_some());
    }

    #[test]
    fn bits_are_put_together_as_bits(
        base in prop_oneof![Just(i64::MIN), Just(i64::MAX - 2000), Just(-1000), Just(1 << 40)],
        files in prop::collection::vec(prop::collection::vec(0i64..2000, 1..30), 1..4),
    ) {
        let files: Vec<Vec<i64>> =
            files.iter().map(|words| words.iter().map(|word| base + word).collect()).collect();
        let sets: Vec<Words> = files.iter().map(|words| Words::new(words.clone())).collect();
        let union = Words::union(&sets.iter().collect::<Vec<_>>());
        let is_bits = matches!(union, Words::Bits { .. });
        prop_assert!(is_bits);
        let mut held = Vec::new();
        union.each(|word| held.push(word));
        let expected: BTreeSet<i64> = files.into_iter().flatten().collect();
        prop_assert_eq!(held, expected.into_iter().collect::<Vec<_>>());
    }
}
