//! Row groups: their column chunks, and the statistics of these.

use super::{LeafColumn, LeafColumns, missing};
use crate::parquet::DecodeError;
use crate::parquet::format::{
    Codec, ColumnChunk, Encoding, IndexRange, PageEncodingStats, RowGroup, Statistics,
};
use crate::parquet::thrift::{Field, Reader};

pub(super) fn row_group(
    reader: &mut Reader<'_>,
    element: Field,
    leaves: &LeafColumns<'_>,
) -> Result<RowGroup, DecodeError> {
    const WHAT: &str = "row group";
    let mut columns = None;
    let mut total_byte_size = None;
    let mut num_rows = None;
    let mut file_offset = None;
    let mut total_compressed_size = None;
    let mut ordinal = None;
    reader.structure(element, |reader, field| {
        match field.id {
            1 => {
                let mut next = 0;
                columns = Some(reader.list(field, |reader, element| {
                    let leaf = leaves.get(next).ok_or_else(|| {
                        DecodeError::corrupt(
                            WHAT,
                            "has more column chunks than the schema has leaves",
                        )
                    })?;
                    next += 1;
                    column_chunk(reader, element, &leaf)
                })?);
                if next < leaves.len() {
                    return Err(DecodeError::corrupt(
                        WHAT,
                        "has fewer column chunks than the schema has leaves",
                    ));
                }
            }
            2 => total_byte_size = Some(reader.i64(field)?),
            3 => num_rows = Some(reader.i64(field)?),
            5 => file_offset = Some(reader.i64(field)?),
            6 => total_compressed_size = Some(reader.i64(field)?),
            7 => ordinal = Some(reader.i16(field)?),
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(RowGroup {
        columns: columns.ok_or_else(|| missing(WHAT, "columns"))?,
        total_byte_size: total_byte_size.ok_or_else(|| missing(WHAT, "total_byte_size"))?,
        num_rows: num_rows.ok_or_else(|| missing(WHAT, "num_rows"))?,
        file_offset,
        total_compressed_size,
        ordinal,
    })
}

fn column_chunk(
    reader: &mut Reader<'_>,
    element: Field,
    leaf: &LeafColumn<'_>,
) -> Result<ColumnChunk, DecodeError> {
    let mut chunk = None;
    let mut file_path = None;
    let mut file_offset = 0;
    let mut encrypted = false;
    let (mut offset_index, mut column_index) = ((None, None), (None, None));
    reader.structure(element, |reader, field| {
        match field.id {
            1 => file_path = Some(reader.string(field)?.to_owned()),
            2 => file_offset = reader.i64(field)?,
            3 => chunk = Some(column_metadata(reader, field, leaf)?),
            4 => offset_index.0 = Some(reader.i64(field)?),
            5 => offset_index.1 = Some(reader.i32(field)?),
            6 => column_index.0 = Some(reader.i64(field)?),
            7 => column_index.1 = Some(reader.i32(field)?),
            8 | 9 => {
                encrypted = true;
                reader.skip(field)?;
            }
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    let chunk = match chunk {
        Some(chunk) => chunk,
        None if encrypted => return Err(DecodeError::unsupported("Parquet modular encryption")),
        None => return Err(missing("column chunk", "meta_data")),
    };
    let index = |(offset, length): (Option<i64>, Option<i32>)| {
        Some(IndexRange {
            offset: offset?,
            length: length?,
        })
    };
    Ok(ColumnChunk {
        file_path,
        file_offset,
        encrypted,
        offset_index: index(offset_index),
        column_index: index(column_index),
        ..chunk
    })
}

/// `ColumnMetaData`, as a chunk that lacks what the `ColumnChunk` around it says.
fn column_metadata(
    reader: &mut Reader<'_>,
    field: Field,
    leaf: &LeafColumn<'_>,
) -> Result<ColumnChunk, DecodeError> {
    const WHAT: &str = "column chunk";
    let mut type_number = None;
    let mut encodings = Vec::new();
    let mut codec = None;
    let mut num_values = None;
    let mut total_uncompressed_size = None;
    let mut total_compressed_size = None;
    let mut data_page_offset = None;
    let mut dictionary_page_offset = None;
    let mut statistics = None;
    let mut encoding_stats = Vec::new();
    let (mut bloom_filter_offset, mut bloom_filter_length) = (None, None);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => type_number = Some(reader.i32(field)?),
            2 => {
                encodings = reader.list(field, |reader, element| {
                    reader.i32(element).map(Encoding::from_number)
                })?
            }
            3 => check_path(reader, field, &leaf.path)?,
            4 => codec = Some(Codec::from_number(reader.i32(field)?)),
            5 => num_values = Some(reader.i64(field)?),
            6 => total_uncompressed_size = Some(reader.i64(field)?),
            7 => total_compressed_size = Some(reader.i64(field)?),
            9 => data_page_offset = Some(reader.i64(field)?),
            11 => dictionary_page_offset = Some(reader.i64(field)?),
            12 => statistics = Some(self::statistics(reader, field)?),
            13 => encoding_stats = reader.list(field, page_encoding_stats)?,
            14 => bloom_filter_offset = Some(reader.i64(field)?),
            15 => bloom_filter_length = Some(reader.i32(field)?),
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    let type_number = type_number.ok_or_else(|| missing(WHAT, "type"))?;
    if type_number != leaf.physical.number() {
        let reason = format!(
            "`{}` has physical type {type_number}, the schema says otherwise",
            leaf.path.join(".")
        );
        return Err(DecodeError::corrupt(WHAT, reason));
    }
    Ok(ColumnChunk {
        file_path: None,
        file_offset: 0,
        encrypted: false,
        physical: leaf.physical,
        encodings,
        codec: codec.ok_or_else(|| missing(WHAT, "codec"))?,
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        total_uncompressed_size: total_uncompressed_size
            .ok_or_else(|| missing(WHAT, "total_uncompressed_size"))?,
        total_compressed_size: total_compressed_size
            .ok_or_else(|| missing(WHAT, "total_compressed_size"))?,
        data_page_offset: data_page_offset.ok_or_else(|| missing(WHAT, "data_page_offset"))?,
        dictionary_page_offset,
        statistics,
        encoding_stats,
        bloom_filter_offset,
        bloom_filter_length,
        offset_index: None,
        column_index: None,
    })
}

/// Chunks are found by their place in the row group; a path that says otherwise would give one column's values to
/// another.
fn check_path(reader: &mut Reader<'_>, field: Field, path: &[&str]) -> Result<(), DecodeError> {
    let mut names = path.iter();
    let mut same = true;
    reader.list(field, |reader, element| {
        let name = reader.string(element)?;
        same &= names.next() == Some(&name);
        Ok(())
    })?;
    if same && names.next().is_none() {
        Ok(())
    } else {
        let reason = format!(
            "stands where the schema has the column `{}`, but names another",
            path.join(".")
        );
        Err(DecodeError::corrupt("column chunk", reason))
    }
}

pub(in crate::parquet::format) fn statistics(
    reader: &mut Reader<'_>,
    field: Field,
) -> Result<Statistics, DecodeError> {
    let mut statistics = Statistics::default();
    reader.structure(field, |reader, field| {
        match field.id {
            1 => statistics.max = Some(reader.binary(field)?.into()),
            2 => statistics.min = Some(reader.binary(field)?.into()),
            3 => statistics.null_count = Some(reader.i64(field)?),
            4 => statistics.distinct_count = Some(reader.i64(field)?),
            5 => statistics.max_value = Some(reader.binary(field)?.into()),
            6 => statistics.min_value = Some(reader.binary(field)?.into()),
            7 => statistics.is_max_value_exact = Some(reader.bool(field)?),
            8 => statistics.is_min_value_exact = Some(reader.bool(field)?),
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(statistics)
}

fn page_encoding_stats(
    reader: &mut Reader<'_>,
    element: Field,
) -> Result<PageEncodingStats, DecodeError> {
    let mut stats = PageEncodingStats {
        page_type: 0,
        encoding: Encoding::Plain,
        count: 0,
    };
    reader.structure(element, |reader, field| {
        match field.id {
            1 => stats.page_type = reader.i32(field)?,
            2 => stats.encoding = Encoding::from_number(reader.i32(field)?),
            3 => stats.count = reader.i32(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(stats)
}
