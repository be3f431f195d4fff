//! What a served footer says, against what the row groups hold: readers answer queries from it.

use std::cmp::Ordering;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::bloom_filter::Sbbf;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescriptor;

use crate::case::Case;

/// Checks every chunk of every row group.
pub fn check(bytes: &[u8], case: &Case) {
    let properties = ReaderProperties::builder()
        .set_read_bloom_filter(true)
        .build();
    let options = ReadOptionsBuilder::new()
        .with_reader_properties(properties)
        .build();
    let reader =
        SerializedFileReader::new_with_options(Bytes::copy_from_slice(bytes), options).unwrap();
    let mut above = 4;
    for (at, group) in reader.metadata().row_groups().iter().enumerate() {
        assert!(group.num_rows() > 0, "an empty row group\n{case:?}");
        assert_eq!(
            group.file_offset(),
            Some(group.column(0).byte_range().0 as i64),
            "file_offset\n{case:?}"
        );
        let pages = reader.get_row_group(at).unwrap();
        for (column, chunk) in group.columns().iter().enumerate() {
            let (start, len) = chunk.byte_range();
            assert!(start >= above, "chunks overlap or descend\n{case:?}");
            above = start + len;
            assert!(
                above <= bytes.len() as u64,
                "a chunk passes the end\n{case:?}"
            );
            let stored = Stored::read(
                pages.get_column_reader(column).unwrap(),
                chunk.column_descr(),
                pages.get_column_bloom_filter(column),
            );
            let place = format!(
                "row group {at}, {}: {:?}\n{case:?}",
                chunk.column_path(),
                chunk.statistics()
            );
            assert_eq!(
                chunk.num_values(),
                stored.levels as i64,
                "num_values of {place}"
            );
            if let Some(statistics) = chunk.statistics() {
                stored.check(statistics, &place);
            }
        }
    }
}

/// What a chunk holds.
struct Stored {
    levels: usize,
    nulls: u64,
    judge: Box<dyn Fn(&Statistics) -> Verdict>,
}

/// What the bounds are, against the values.
#[derive(Debug, Default)]
struct Verdict {
    /// There are bounds, and they are the extremes.
    exact: bool,
    /// There are bounds, and no value is outside.
    bounds: bool,
    present: bool,
    flagged_exact: bool,
    byte_array: bool,
    extremes: String,
}

impl Stored {
    fn read(reader: ColumnReader, column: &ColumnDescriptor, filter: Option<&Sbbf>) -> Stored {
        let signed = is_signed_bytes(column);
        match reader {
            ColumnReader::BoolColumnReader(r) => {
                stored(r, column, filter, bool::cmp, |_| false, true)
            }
            ColumnReader::Int32ColumnReader(r) => {
                stored(r, column, filter, i32::cmp, |_| false, true)
            }
            ColumnReader::Int64ColumnReader(r) => {
                stored(r, column, filter, i64::cmp, |_| false, true)
            }
            ColumnReader::FloatColumnReader(r) => stored(
                r,
                column,
                filter,
                |a: &f32, b: &f32| a.partial_cmp(b).unwrap(),
                |v| v.is_nan(),
                true,
            ),
            ColumnReader::DoubleColumnReader(r) => stored(
                r,
                column,
                filter,
                |a: &f64, b: &f64| a.partial_cmp(b).unwrap(),
                |v| v.is_nan(),
                true,
            ),
            ColumnReader::ByteArrayColumnReader(r) => stored(
                r,
                column,
                filter,
                |a: &ByteArray, b: &ByteArray| a.data().cmp(b.data()),
                |_| false,
                false,
            ),
            ColumnReader::FixedLenByteArrayColumnReader(r) => {
                let order = move |a: &FixedLenByteArray, b: &FixedLenByteArray| {
                    let key = |v: &FixedLenByteArray| {
                        let mut key = v.data().to_vec();
                        if signed {
                            key[0] ^= 0x80;
                        }
                        key
                    };
                    key(a).cmp(&key(b))
                };
                stored(r, column, filter, order, |_| false, false)
            }
            ColumnReader::Int96ColumnReader(_) => panic!("a served file holds no INT96"),
        }
    }

    fn check(&self, statistics: &Statistics, place: &str) {
        if let Some(nulls) = statistics.null_count_opt() {
            assert_eq!(nulls, self.nulls, "null_count of {place}");
        }
        let verdict = (self.judge)(statistics);
        if verdict.present {
            assert!(
                verdict.bounds,
                "values from {}, outside the bounds of {place}",
                verdict.extremes
            );
            let has_to_be_exact = !verdict.byte_array || verdict.flagged_exact;
            assert!(
                verdict.exact || !has_to_be_exact,
                "values from {}, not the bounds of {place}",
                verdict.extremes
            );
        }
    }
}

fn is_signed_bytes(column: &ColumnDescriptor) -> bool {
    column.physical_type() == Type::FIXED_LEN_BYTE_ARRAY
        && (matches!(column.logical_type_ref(), Some(LogicalType::Decimal { .. }))
            || column.converted_type() == ConvertedType::DECIMAL)
}

/// Reads all levels and values of a chunk.
fn stored<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescriptor,
    filter: Option<&Sbbf>,
    order: impl Fn(&T::T, &T::T) -> Ordering + 'static,
    left_out: impl Fn(&T::T) -> bool,
    fixed: bool,
) -> Stored
where
    T::T: std::fmt::Debug,
    Statistics: AsValues<T::T>,
{
    let (mut values, mut defs, mut reps): (Vec<T::T>, Vec<i16>, Vec<i16>) =
        (vec![], vec![], vec![]);
    loop {
        let (records, read, levels) = reader
            .read_records(1 << 20, Some(&mut defs), Some(&mut reps), &mut values)
            .expect("a served chunk");
        if records == 0 && read == 0 && levels == 0 {
            break;
        }
    }
    let levels = if column.max_def_level() > 0 {
        defs.len()
    } else {
        values.len()
    };
    if let Some(filter) = filter {
        let denied: Vec<_> = values
            .iter()
            .filter(|value| !filter.check(*value))
            .collect();
        assert!(
            denied.is_empty(),
            "{denied:?} are not in the bloom filter of {}",
            column.path()
        );
    }
    let nulls = (levels - values.len()) as u64;
    values.retain(|v| !left_out(v));
    let byte_array = !fixed && column.physical_type() == Type::BYTE_ARRAY;
    let judge = move |statistics: &Statistics| {
        let Some(found) = statistics.as_values() else {
            return Verdict::default();
        };
        let (Some(min), Some(max)) = (found.min_opt(), found.max_opt()) else {
            return Verdict::default();
        };
        let (least, most) = (
            values.iter().min_by(|a, b| order(a, b)),
            values.iter().max_by(|a, b| order(a, b)),
        );
        let (Some(least), Some(most)) = (least, most) else {
            return Verdict {
                present: true,
                extremes: "of no value".to_owned(),
                ..Verdict::default()
            };
        };
        Verdict {
            present: true,
            exact: order(min, least).is_eq() && order(max, most).is_eq(),
            bounds: order(min, least).is_le() && order(max, most).is_ge(),
            flagged_exact: found.min_is_exact() && found.max_is_exact(),
            byte_array,
            extremes: format!("{least:?} to {most:?}"),
        }
    };
    Stored {
        levels,
        nulls,
        judge: Box::new(judge),
    }
}

/// The statistics of one physical type.
trait AsValues<V> {
    fn as_values(&self) -> Option<&ValueStatistics<V>>;
}

macro_rules! as_values {
    ($($ty:ty => $variant:ident),*) => {
        $(impl AsValues<$ty> for Statistics {
            fn as_values(&self) -> Option<&ValueStatistics<$ty>> {
                match self {
                    Statistics::$variant(values) => Some(values),
                    _ => None,
                }
            }
        })*
    };
}

as_values!(bool => Boolean, i32 => Int32, i64 => Int64, f32 => Float, f64 => Double, ByteArray => ByteArray,
    FixedLenByteArray => FixedLenByteArray);
