//! Keys of equality deletes, and sets of them.
//!
//! A key is one value for each equality column, in the type that column has now. Values are compared as Iceberg Java
//! does: null equals null, NaN equals NaN, and `-0.0` differs from `+0.0`. So a key can be compared as bytes once each
//! value has one form: integers, dates and times as 64 bits, floats as their bits with NaN made canonical, decimals as
//! 128 bits, all else as itself.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use parquet::data_type::ByteArray;

use crate::iceberg::types::PrimitiveType;
use crate::iceberg::value::{Value, decimal_be};
use crate::rows::file_schema::Annotation;
use crate::rows::parquet_reader::{Batch, Values};
use crate::rows::stored_values::{Rescale, int96, rescale, units_per_day};

/// One value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Word(i64),
    Wide(i128),
    Bytes(ByteArray),
}

impl Cell {
    /// A constant that stands in for a column, already in the column's type. `None` for what no key column can hold.
    pub fn of(value: Option<&Value>) -> Option<Cell> {
        Some(match value {
            None => Cell::Null,
            Some(Value::Boolean(v)) => Cell::Word(i64::from(*v)),
            Some(Value::Int(v) | Value::Date(v)) => Cell::Word(i64::from(*v)),
            Some(Value::Long(v) | Value::Time(v) | Value::Timestamp(v) | Value::TimestampNs(v)) => {
                Cell::Word(*v)
            }
            Some(Value::Float(bits)) => Cell::Word(float_word(f32::from_bits(*bits))),
            Some(Value::Double(bits)) => Cell::Word(double_word(f64::from_bits(*bits))),
            Some(Value::Decimal(v)) => Cell::Wide(*v),
            Some(Value::String(v)) => Cell::Bytes(ByteArray::from(v.as_bytes().to_vec())),
            Some(Value::Uuid(v)) => Cell::Bytes(ByteArray::from(v.to_vec())),
            Some(Value::Binary(v)) => Cell::Bytes(ByteArray::from(v.clone())),
            Some(Value::Struct(_) | Value::List(_) | Value::Map(_)) => return None,
        })
    }
}

fn float_word(value: f32) -> i64 {
    i64::from(if value.is_nan() { f32::NAN } else { value }.to_bits())
}

fn double_word(value: f64) -> i64 {
    (if value.is_nan() { f64::NAN } else { value })
        .to_bits()
        .cast_signed()
}

/// One column of the keys of some rows.
#[derive(Debug)]
pub enum KeyColumn {
    /// The same in each row.
    Constant(Cell),
    /// By row.
    Rows {
        /// `None`: no row is null.
        present: Option<Vec<bool>>,
        cells: Cells,
    },
}

/// Values by row; where a row is null, any value.
#[derive(Debug)]
pub enum Cells {
    Words(Vec<i64>),
    Wides(Vec<i128>),
    Bytes(Vec<ByteArray>),
}

impl KeyColumn {
    /// One value in the rows where `present` says so, null in the others.
    pub fn constant_where(present: Vec<bool>, cell: &Cell) -> KeyColumn {
        let cells = match cell {
            Cell::Null => return KeyColumn::Constant(Cell::Null),
            Cell::Word(v) => Cells::Words(vec![*v; present.len()]),
            Cell::Wide(v) => Cells::Wides(vec![*v; present.len()]),
            Cell::Bytes(v) => Cells::Bytes(vec![v.clone(); present.len()]),
        };
        KeyColumn::Rows {
            present: Some(present),
            cells,
        }
    }

    /// The rows of a batch, as values of `ty`, to which the stored type can be promoted. The error says what cannot be.
    pub fn decode(batch: Batch<'_>, ty: &PrimitiveType) -> Result<KeyColumn, String> {
        use PrimitiveType as T;
        let present = (!batch.is_dense()).then(|| batch.presence().collect::<Vec<bool>>());
        let present_ref = present.as_deref();
        let unreadable = || format!("its values cannot be read as {ty:?}");
        let annotation = batch.annotation;
        if let Some(per_day) = units_per_day(ty) {
            let cells = times(present_ref, batch.values, annotation, per_day);
            return Ok(KeyColumn::Rows {
                cells: cells.ok_or_else(unreadable)?,
                present,
            });
        }
        let unsigned = matches!(annotation, Annotation::Integer { signed: false, .. });
        let cells = match (ty, batch.values) {
            (_, Values::Int32(v)) if unsigned => {
                words(present_ref, v, |v| Some(i64::from(v.cast_unsigned())))
            }
            (_, Values::Int64(v)) if unsigned => words(present_ref, v, |v| (v >= 0).then_some(v)),
            (_, Values::Int96(_)) => None,
            (T::Decimal { .. }, Values::Int32(v)) => wides(present_ref, v, |v| Some(i128::from(v))),
            (T::Decimal { .. }, Values::Int64(v)) => wides(present_ref, v, |v| Some(i128::from(v))),
            (T::Decimal { .. }, Values::Fixed(v)) => {
                wides(present_ref, v, |v| decimal_be(v.data()))
            }
            (T::Decimal { .. }, Values::ByteArray(v)) => {
                wides(present_ref, v, |v| decimal_be(v.data()))
            }
            (T::Double, Values::Float(v)) => {
                words(present_ref, v, |v| Some(double_word(f64::from(v))))
            }
            (_, Values::Boolean(v)) => words(present_ref, v, |v| Some(i64::from(v))),
            (_, Values::Int32(v)) => words(present_ref, v, |v| Some(i64::from(v))),
            (_, Values::Int64(v)) => match present_ref {
                None => Some(Cells::Words(v)),
                Some(_) => words(present_ref, v, Some),
            },
            (_, Values::Float(v)) => words(present_ref, v, |v| Some(float_word(v))),
            (_, Values::Double(v)) => words(present_ref, v, |v| Some(double_word(v))),
            (_, Values::ByteArray(v)) => {
                expand(present_ref, v, ByteArray::default(), Some).map(Cells::Bytes)
            }
            (_, Values::Fixed(v)) => {
                expand(present_ref, v, ByteArray::default(), |v| Some(v.into())).map(Cells::Bytes)
            }
        };
        Ok(KeyColumn::Rows {
            present,
            cells: cells.ok_or_else(unreadable)?,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            KeyColumn::Constant(cell) => *cell == Cell::Null,
            KeyColumn::Rows {
                present: Some(present),
                ..
            } => present.get(row) != Some(&true),
            KeyColumn::Rows { present: None, .. } => false,
        }
    }

    /// Appends the row's value: a byte that tells null from present, then the value, of a width that its type fixes or
    /// its length says.
    fn pack(&self, row: usize, key: &mut Vec<u8>) {
        if self.is_null(row) {
            key.push(0);
            return;
        }
        key.push(1);
        match self {
            KeyColumn::Constant(Cell::Null) => {}
            KeyColumn::Constant(Cell::Word(v)) => key.extend(v.to_le_bytes()),
            KeyColumn::Constant(Cell::Wide(v)) => key.extend(v.to_le_bytes()),
            KeyColumn::Constant(Cell::Bytes(v)) => pack_bytes(v, key),
            KeyColumn::Rows {
                cells: Cells::Words(v),
                ..
            } => key.extend(v.get(row).copied().unwrap_or(0).to_le_bytes()),
            KeyColumn::Rows {
                cells: Cells::Wides(v),
                ..
            } => key.extend(v.get(row).copied().unwrap_or(0).to_le_bytes()),
            KeyColumn::Rows {
                cells: Cells::Bytes(v),
                ..
            } => {
                if let Some(v) = v.get(row) {
                    pack_bytes(v, key);
                }
            }
        }
    }
}

fn pack_bytes(value: &ByteArray, key: &mut Vec<u8>) {
    key.extend(value.len().to_le_bytes());
    key.extend(value.data());
}

/// Spreads values over the rows that have one. `None` where a value cannot be converted, or one is missing.
fn expand<T, U: Clone>(
    present: Option<&[bool]>,
    values: Vec<T>,
    placeholder: U,
    mut convert: impl FnMut(T) -> Option<U>,
) -> Option<Vec<U>> {
    let mut values = values.into_iter();
    match present {
        None => values.map(convert).collect(),
        Some(present) => present
            .iter()
            .map(|present| {
                if *present {
                    convert(values.next()?)
                } else {
                    Some(placeholder.clone())
                }
            })
            .collect(),
    }
}

fn words<T>(
    present: Option<&[bool]>,
    values: Vec<T>,
    convert: impl FnMut(T) -> Option<i64>,
) -> Option<Cells> {
    expand(present, values, 0, convert).map(Cells::Words)
}

fn wides<T>(
    present: Option<&[bool]>,
    values: Vec<T>,
    convert: impl FnMut(T) -> Option<i128>,
) -> Option<Cells> {
    expand(present, values, 0, convert).map(Cells::Wides)
}

/// Times and timestamps, whatever they are stored as.
fn times(
    present: Option<&[bool]>,
    values: Values,
    annotation: Annotation,
    per_day: i64,
) -> Option<Cells> {
    match (values, rescale(annotation, per_day)) {
        (Values::Int96(v), _) => words(present, v, |v| {
            let mut bytes = [0; 12];
            for (to, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(v.data()) {
                *to = word.to_le_bytes();
            }
            int96(bytes, per_day)
        }),
        (Values::Int64(v), Some(Rescale::Same)) if present.is_none() => Some(Cells::Words(v)),
        (Values::Int64(v), Some(rescale)) => words(present, v, |v| rescale.apply(v)),
        (Values::Int32(v), Some(rescale)) => words(present, v, |v| rescale.apply(v.into())),
        _ => None,
    }
}

/// A set of keys of one set of columns.
#[derive(Clone, Debug)]
pub enum KeySet {
    /// Keys of one column whose values are words, the common case.
    Words { words: Words, null: bool },
    /// All other keys, packed.
    Packed(HashSet<Box<[u8]>, FastHash>),
}

type FastHash = BuildHasherDefault<KeyHasher>;

/// Collects keys, in any order and number of times, for a [`KeySet`].
pub enum KeyCollector {
    Words { words: Vec<i64>, null: bool },
    Packed(HashSet<Box<[u8]>, FastHash>),
}

impl KeyCollector {
    /// No keys yet, of these columns.
    pub fn new(columns: &[&PrimitiveType]) -> KeyCollector {
        use PrimitiveType as T;
        let word = |ty: &PrimitiveType| {
            !matches!(
                ty,
                T::Decimal { .. } | T::String | T::Uuid | T::Fixed(_) | T::Binary
            )
        };
        match columns {
            [only] if word(only) => KeyCollector::Words {
                words: Vec::new(),
                null: false,
            },
            _ => KeyCollector::Packed(HashSet::default()),
        }
    }

    /// Adds the keys of `rows` rows.
    pub fn insert(&mut self, columns: &[KeyColumn], rows: usize) {
        match self {
            KeyCollector::Words { words, null } => {
                for_each_word(columns, rows, |_, word| match word {
                    Some(word) => words.push(word),
                    None => *null = true,
                });
            }
            KeyCollector::Packed(keys) => for_each_packed(columns, rows, |_, key| {
                if !keys.contains(key) {
                    keys.insert(key.into());
                }
            }),
        }
    }

    /// The set.
    pub fn finish(self) -> KeySet {
        match self {
            KeyCollector::Words { words, null } => KeySet::Words {
                words: Words::new(words),
                null,
            },
            KeyCollector::Packed(keys) => KeySet::Packed(keys),
        }
    }
}

impl KeySet {
    /// Calls `found` with each of `rows` rows whose key is in the set, in order.
    pub fn find(&self, columns: &[KeyColumn], rows: usize, mut found: impl FnMut(usize)) {
        match self {
            KeySet::Words { words, null } => for_each_word(columns, rows, |row, word| {
                if word.map_or(*null, |word| words.contains(word)) {
                    found(row);
                }
            }),
            KeySet::Packed(keys) => for_each_packed(columns, rows, |row, key| {
                if keys.contains(key) {
                    found(row);
                }
            }),
        }
    }

    /// Whether a key of the set may stand among rows whose one key column has no null and no word outside these bounds.
    pub fn may_hold(&self, bounds: (i64, i64)) -> bool {
        match self {
            KeySet::Words { words, .. } => words.meets(bounds),
            KeySet::Packed(_) => true,
        }
    }

    /// The keys of several sets of the same columns, which are of the same kind.
    pub fn union(sets: &[Arc<KeySet>]) -> KeySet {
        let mut all = Vec::new();
        let mut any_null = false;
        let mut packed: Option<HashSet<_, _>> = None;
        for set in sets {
            match &**set {
                KeySet::Words { words, null } => {
                    all.push(words);
                    any_null |= null;
                }
                KeySet::Packed(keys) => packed.get_or_insert_default().extend(keys.iter().cloned()),
            }
        }
        match packed {
            Some(keys) => KeySet::Packed(keys),
            None => KeySet::Words {
                words: Words::union(&all),
                null: any_null,
            },
        }
    }

    /// Bytes taken in memory, about.
    pub fn weight(&self) -> usize {
        match self {
            KeySet::Words { words, .. } => words.weight(),
            KeySet::Packed(keys) => {
                keys.capacity() * 17 + keys.iter().map(|key| key.len() + 16).sum::<usize>()
            }
        }
    }
}

/// A set of words: one bit for each word of their range where that takes no more memory than a hash table, or little.
#[derive(Clone, Debug)]
pub enum Words {
    Bits {
        /// The word of the first bit, a multiple of 64.
        least: i64,
        bits: Vec<u64>,
    },
    Hashed {
        words: HashSet<i64, FastHash>,
        least: i64,
        greatest: i64,
    },
}

/// Bytes that bits may take however few words there are: they stay in a processor's cache.
const FEW_BYTES: u64 = 1 << 20;

/// Words that can be gone through for each row group, in less time than any page of it takes.
const FEW_WORDS: usize = 1 << 16;

/// Bytes a word takes in a hash table, about.
const HASHED_BYTES: u64 = 16;

impl Words {
    fn new(words: Vec<i64>) -> Words {
        let least = words.iter().copied().min().unwrap_or(0);
        let greatest = words.iter().copied().max().unwrap_or(0);
        let Some((start, mut bits)) = no_bits(least, greatest, words.len() as u64) else {
            return Words::Hashed {
                words: words.into_iter().collect(),
                least,
                greatest,
            };
        };
        for word in words {
            let at = word.abs_diff(start);
            if let Some(block) = usize::try_from(at / 64).ok().and_then(|i| bits.get_mut(i)) {
                *block |= 1 << (at % 64);
            }
        }
        Words::Bits { least: start, bits }
    }

    fn union(sets: &[&Words]) -> Words {
        // Of bits only, which are put together block by block.
        let mut bounds: Option<(i64, i64)> = None;
        let mut count = 0;
        for set in sets {
            let Words::Bits { least, bits } = set else {
                bounds = None;
                break;
            };
            count += bits.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
            let greatest = least.saturating_add_unsigned(bits.len() as u64 * 64 - 1);
            let (low, high) = bounds.unwrap_or((*least, greatest));
            bounds = Some((low.min(*least), high.max(greatest)));
        }
        let room = bounds.and_then(|(least, greatest)| no_bits(least, greatest, count));
        let Some((start, mut all)) = room else {
            let mut words = Vec::new();
            for set in sets {
                set.each(|word| words.push(word));
            }
            return Words::new(words);
        };
        for set in sets {
            if let Words::Bits { least, bits } = set {
                let skipped = usize::try_from(least.abs_diff(start) / 64).unwrap_or(usize::MAX);
                for (to, from) in all.iter_mut().skip(skipped).zip(bits) {
                    *to |= from;
                }
            }
        }
        Words::Bits {
            least: start,
            bits: all,
        }
    }

    pub fn contains(&self, word: i64) -> bool {
        match self {
            // A word below the least wraps around to one far above the greatest.
            Words::Bits { least, bits } => {
                let at = word.wrapping_sub(*least).cast_unsigned();
                let block = usize::try_from(at / 64).ok().and_then(|i| bits.get(i));
                block.is_some_and(|block| block >> (at % 64) & 1 == 1)
            }
            Words::Hashed {
                words,
                least,
                greatest,
            } => (*least..=*greatest).contains(&word) && words.contains(&word),
        }
    }

    fn each(&self, mut each: impl FnMut(i64)) {
        match self {
            Words::Bits { least, bits } => {
                for (index, block) in bits.iter().enumerate() {
                    let mut left = *block;
                    while left != 0 {
                        let at = index as u64 * 64 + u64::from(left.trailing_zeros());
                        each(least.wrapping_add_unsigned(at));
                        left &= left - 1;
                    }
                }
            }
            Words::Hashed { words, .. } => words.iter().copied().for_each(each),
        }
    }

    /// Whether any word is within bounds; also where that would take long to say.
    fn meets(&self, (low, high): (i64, i64)) -> bool {
        match self {
            Words::Bits { least, bits } => {
                let past = bits.len() as u64 * 64 - 1;
                let below = high < *least;
                let from = low.max(*least).abs_diff(*least);
                let to = high.max(*least).abs_diff(*least).min(past);
                let of = |at: u64| usize::try_from(at / 64).unwrap_or(usize::MAX);
                let Some(blocks) = bits.get(of(from)..=of(to)).filter(|_| !below && from <= to)
                else {
                    return false;
                };
                let last = blocks.len() - 1;
                let inside = |(index, block): (usize, &u64)| {
                    let low = if index == 0 {
                        u64::MAX << (from % 64)
                    } else {
                        u64::MAX
                    };
                    let high = if index == last {
                        u64::MAX >> (63 - to % 64)
                    } else {
                        u64::MAX
                    };
                    block & low & high != 0
                };
                blocks.iter().enumerate().any(inside)
            }
            Words::Hashed {
                words,
                least,
                greatest,
            } => {
                let overlaps = low <= *greatest && *least <= high;
                let mut words_in = words.iter().filter(|word| (low..=high).contains(word));
                overlaps && (words.len() > FEW_WORDS || words_in.next().is_some())
            }
        }
    }

    fn weight(&self) -> usize {
        match self {
            Words::Bits { bits, .. } => bits.len() * 8,
            Words::Hashed { words, .. } => words.capacity() * 9,
        }
    }
}

/// Bits for all words between bounds, with the word of the first one; `None` where a table of `count` words is smaller.
fn no_bits(least: i64, greatest: i64, count: u64) -> Option<(i64, Vec<u64>)> {
    let start = least & !63;
    let blocks = greatest.abs_diff(start) / 64 + 1;
    let hashed = count.saturating_mul(HASHED_BYTES);
    if blocks.saturating_mul(8) > hashed.max(FEW_BYTES) {
        return None;
    }
    Some((start, vec![0; usize::try_from(blocks).ok()?]))
}

fn for_each_word(columns: &[KeyColumn], rows: usize, mut each: impl FnMut(usize, Option<i64>)) {
    match columns {
        [
            KeyColumn::Rows {
                present: None,
                cells: Cells::Words(words),
            },
        ] => {
            for (row, word) in words.iter().enumerate() {
                each(row, Some(*word));
            }
        }
        [
            KeyColumn::Rows {
                present: Some(present),
                cells: Cells::Words(words),
            },
        ] => {
            for (row, (present, word)) in present.iter().zip(words).enumerate() {
                each(row, present.then_some(*word));
            }
        }
        [KeyColumn::Constant(cell)] => {
            let word = if let Cell::Word(word) = cell {
                Some(*word)
            } else {
                None
            };
            (0..rows).for_each(|row| each(row, word));
        }
        _ => debug_assert!(false, "not a single column of words"),
    }
}

fn for_each_packed(columns: &[KeyColumn], rows: usize, mut each: impl FnMut(usize, &[u8])) {
    let mut key = Vec::new();
    for row in 0..rows {
        key.clear();
        for column in columns {
            column.pack(row, &mut key);
        }
        each(row, &key);
    }
}

/// Multiplies and folds eight bytes at a time: enough for keys that nobody chooses against it, and several times as
/// fast as the standard library's hash.
#[derive(Default)]
pub struct KeyHasher(u64);

impl KeyHasher {
    fn mix(&mut self, word: u64) {
        const MULTIPLIER: u128 = 0x9E37_79B9_7F4A_7C15;
        let product =
            u128::from(self.0.rotate_left(23) ^ word ^ 0x2545_F491_4F6C_DD1D) * MULTIPLIER;
        let [low, high] = [product, product >> 64].map(|half| half & u128::from(u64::MAX));
        self.0 = u64::try_from(low ^ high).unwrap_or(0);
    }
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.mix(u64::from_le_bytes(last));
    }

    fn write_i64(&mut self, word: i64) {
        self.mix(word.cast_unsigned());
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(u64::try_from(word).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests;
