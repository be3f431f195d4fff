//! Footers and page headers to bytes.
//!
//! A column's annotation is written twice, as `logicalType` and, where one exists, as the older `converted_type`, which
//! is all that some readers know (parquet-format, `LogicalTypes.md`; timestamps and times without a zone get the old
//! annotation too, as the document demands).

use super::read::LeafColumns;
use super::{
    ColumnChunk, Encoding, FileMetaData, GeoParameters, Page, PageHeader, RowGroup, SchemaElement,
    Statistics,
};
use crate::parquet::thrift::{StructWriter, varint_len, write_struct, zigzag};
use crate::rows::file_schema::{Annotation, Physical, Repetition};

impl Physical {
    /// Its number in `parquet.thrift`.
    pub(super) fn number(self) -> i32 {
        match self {
            Physical::Boolean => 0,
            Physical::Int32 => 1,
            Physical::Int64 => 2,
            Physical::Int96 => 3,
            Physical::Float => 4,
            Physical::Double => 5,
            Physical::ByteArray => 6,
            Physical::Fixed(_) => 7,
        }
    }
}

impl FileMetaData {
    /// Appends the Thrift struct (a footer without its length and magic). The chunks' paths are the leaves' of
    /// `schema`; every row group must have one chunk a leaf.
    pub fn write(&self, out: &mut Vec<u8>) {
        let leaves = LeafColumns::of(&self.schema);
        write_struct(out, |footer| {
            footer.i32(1, self.version);
            footer.structures(2, &self.schema, schema_element);
            footer.i64(3, self.num_rows);
            footer.structures(4, &self.row_groups, |writer, group| {
                row_group(writer, group, &leaves)
            });
            if !self.key_value_metadata.is_empty() {
                footer.structures(5, &self.key_value_metadata, |pair, (key, value)| {
                    pair.binary(1, key.as_bytes());
                    if let Some(value) = value {
                        pair.binary(2, value.as_bytes());
                    }
                });
            }
            if let Some(created_by) = &self.created_by {
                footer.binary(6, created_by.as_bytes());
            }
            if self.column_orders {
                footer.structures(7, &vec![(); leaves.len()], |order, ()| {
                    order.structure(1, |_| {})
                });
            }
        });
    }
}

fn schema_element(writer: &mut StructWriter<'_>, element: &SchemaElement) {
    if let Some(physical) = element.physical {
        writer.i32(1, physical.number());
        if let Physical::Fixed(length) = physical {
            writer.i32(2, length.cast_signed());
        }
    }
    if let Some(repetition) = element.repetition {
        let number = match repetition {
            Repetition::Required => 0,
            Repetition::Optional => 1,
            Repetition::Repeated => 2,
        };
        writer.i32(3, number);
    }
    writer.binary(4, element.name.as_bytes());
    if let Some(count) = element.num_children {
        writer.i32(5, count);
    }
    if let Some(converted) = converted_type(element.annotation) {
        writer.i32(6, converted);
    }
    if let Annotation::Decimal { precision, scale } = element.annotation {
        writer.i32(7, scale.cast_signed());
        writer.i32(8, precision.cast_signed());
    }
    if let Some(id) = element.field_id {
        writer.i32(9, id);
    }
    if !matches!(
        element.annotation,
        Annotation::None | Annotation::Interval | Annotation::Other(_)
    ) {
        writer.structure(10, |union| match &element.geo {
            Some(geo) => geo_type(union, element.annotation, geo),
            None => logical_type(union, element.annotation),
        });
    }
}

/// `ConvertedType`; `None` for an annotation that is younger than it.
fn converted_type(annotation: Annotation) -> Option<i32> {
    Some(match annotation {
        Annotation::String => 0,
        Annotation::Map => 1,
        Annotation::List => 3,
        Annotation::Enum => 4,
        Annotation::Decimal { .. } => 5,
        Annotation::Date => 6,
        Annotation::TimeMillis => 7,
        Annotation::TimeMicros => 8,
        Annotation::TimestampMillis { .. } => 9,
        Annotation::TimestampMicros { .. } => 10,
        Annotation::Integer { bits, signed } => {
            let first = if signed { 15 } else { 11 };
            match bits {
                8 => first,
                16 => first + 1,
                32 => first + 2,
                _ => first + 3,
            }
        }
        Annotation::Json => 19,
        Annotation::Bson => 20,
        Annotation::Interval => 21,
        Annotation::None
        | Annotation::Variant
        | Annotation::TimeNanos
        | Annotation::TimestampNanos { .. }
        | Annotation::Uuid
        | Annotation::Float16
        | Annotation::Unknown
        | Annotation::Geometry
        | Annotation::Geography
        | Annotation::Other(_) => return None,
    })
}

/// The one field of a `LogicalType` union, for a geometry or geography.
fn geo_type(union: &mut StructWriter<'_>, annotation: Annotation, geo: &GeoParameters) {
    let id = if annotation == Annotation::Geography {
        18
    } else {
        17
    };
    union.structure(id, |parameters| {
        if let Some(crs) = &geo.crs {
            parameters.binary(1, crs.as_bytes());
        }
        if let Some(algorithm) = geo.algorithm {
            parameters.i32(2, algorithm);
        }
    });
}

/// The one field of a `LogicalType` union.
fn logical_type(union: &mut StructWriter<'_>, annotation: Annotation) {
    let time = |union: &mut StructWriter<'_>, id, utc, unit| {
        union.structure(id, |time| {
            time.bool(1, utc);
            time.structure(2, |units| units.structure(unit, |_| {}));
        });
    };
    let id = match annotation {
        Annotation::Decimal { precision, scale } => {
            return union.structure(5, |decimal| {
                decimal.i32(1, scale.cast_signed());
                decimal.i32(2, precision.cast_signed());
            });
        }
        Annotation::TimeMillis => return time(union, 7, false, 1),
        Annotation::TimeMicros => return time(union, 7, false, 2),
        Annotation::TimeNanos => return time(union, 7, false, 3),
        Annotation::TimestampMillis { utc } => return time(union, 8, utc, 1),
        Annotation::TimestampMicros { utc } => return time(union, 8, utc, 2),
        Annotation::TimestampNanos { utc } => return time(union, 8, utc, 3),
        Annotation::Integer { bits, signed } => {
            return union.structure(10, |integer| {
                integer.i8(1, bits.cast_signed());
                integer.bool(2, signed);
            });
        }
        // The version of the variant encoding, which is the only one there is.
        Annotation::Variant => return union.structure(16, |variant| variant.i8(1, 1)),
        // They have no logical type.
        Annotation::None | Annotation::Interval | Annotation::Other(_) => return,
        Annotation::String => 1,
        Annotation::Map => 2,
        Annotation::List => 3,
        Annotation::Enum => 4,
        Annotation::Date => 6,
        Annotation::Unknown => 11,
        Annotation::Json => 12,
        Annotation::Bson => 13,
        Annotation::Uuid => 14,
        Annotation::Float16 => 15,
        Annotation::Geometry => 17,
        Annotation::Geography => 18,
    };
    union.structure(id, |_| {});
}

fn row_group(writer: &mut StructWriter<'_>, group: &RowGroup, leaves: &LeafColumns<'_>) {
    let mut next = 0;
    writer.structures(1, &group.columns, |writer, chunk| {
        let path = leaves.get(next).map_or(Vec::new(), |leaf| leaf.path);
        next += 1;
        column_chunk(writer, chunk, &path);
    });
    writer.i64(2, group.total_byte_size);
    writer.i64(3, group.num_rows);
    if let Some(offset) = group.file_offset {
        writer.i64(5, offset);
    }
    if let Some(size) = group.total_compressed_size {
        writer.i64(6, size);
    }
    if let Some(ordinal) = group.ordinal {
        writer.i16(7, ordinal);
    }
}

fn column_chunk(writer: &mut StructWriter<'_>, chunk: &ColumnChunk, path: &[&str]) {
    if let Some(file) = &chunk.file_path {
        writer.binary(1, file.as_bytes());
    }
    writer.i64(2, chunk.file_offset);
    writer.structure(3, |writer| column_metadata(writer, chunk, path));
    if let Some(index) = chunk.offset_index {
        writer.i64(4, index.offset);
        writer.i32(5, index.length);
    }
    if let Some(index) = chunk.column_index {
        writer.i64(6, index.offset);
        writer.i32(7, index.length);
    }
}

fn column_metadata(writer: &mut StructWriter<'_>, chunk: &ColumnChunk, path: &[&str]) {
    writer.i32(1, chunk.physical.number());
    writer.integers(2, chunk.encodings.iter().map(|encoding| encoding.number()));
    writer.strings(3, path);
    writer.i32(4, chunk.codec.number());
    writer.i64(5, chunk.num_values);
    writer.i64(6, chunk.total_uncompressed_size);
    writer.i64(7, chunk.total_compressed_size);
    writer.i64(9, chunk.data_page_offset);
    if let Some(offset) = chunk.dictionary_page_offset {
        writer.i64(11, offset);
    }
    if let Some(statistics) = &chunk.statistics {
        writer.structure(12, |writer| chunk_statistics(writer, statistics));
    }
    if !chunk.encoding_stats.is_empty() {
        writer.structures(13, &chunk.encoding_stats, |writer, stats| {
            writer.i32(1, stats.page_type);
            writer.i32(2, stats.encoding.number());
            writer.i32(3, stats.count);
        });
    }
    if let Some(offset) = chunk.bloom_filter_offset {
        writer.i64(14, offset);
    }
    if let Some(length) = chunk.bloom_filter_length {
        writer.i32(15, length);
    }
}

fn chunk_statistics(writer: &mut StructWriter<'_>, statistics: &Statistics) {
    let binary = |writer: &mut StructWriter<'_>, id, value: &Option<Box<[u8]>>| {
        if let Some(value) = value {
            writer.binary(id, value);
        }
    };
    binary(writer, 1, &statistics.max);
    binary(writer, 2, &statistics.min);
    if let Some(count) = statistics.null_count {
        writer.i64(3, count);
    }
    if let Some(count) = statistics.distinct_count {
        writer.i64(4, count);
    }
    binary(writer, 5, &statistics.max_value);
    binary(writer, 6, &statistics.min_value);
    if let Some(exact) = statistics.is_max_value_exact {
        writer.bool(7, exact);
    }
    if let Some(exact) = statistics.is_min_value_exact {
        writer.bool(8, exact);
    }
}

/// The most bytes the header of a v1 data page takes, without a checksum, in any encoding `parquet.thrift` names.
pub const PAGE_HEADER_V1_MAX: usize = 29;

/// The exact length of the header that [`PageHeader::write`] gives a v1 data page of these sizes, without a checksum,
/// in any encoding `parquet.thrift` names. Grows with each of its arguments; at most [`PAGE_HEADER_V1_MAX`].
pub fn page_header_v1_len(uncompressed_size: u32, compressed_size: u32, num_values: u32) -> usize {
    let number = |value: u32| varint_len(zigzag(value.into()));
    // The page's type, three encodings: 2 bytes each. The struct, its end and the header's: 1 each. A field header
    // before each number.
    2 + 3 * 2 + 3 + 3 + number(uncompressed_size) + number(compressed_size) + number(num_values)
}

impl PageHeader {
    /// Appends the header. Sizes and counts are below 2³¹, as the format has them signed.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_struct(out, |header| {
            let page_type = match self.page {
                Page::DataV1 { .. } => 0,
                Page::Dictionary { .. } => 2,
                Page::DataV2 { .. } => 3,
                Page::Other(number) => number,
            };
            header.i32(1, page_type);
            header.i32(2, self.uncompressed_size.cast_signed());
            header.i32(3, self.compressed_size.cast_signed());
            if let Some(crc) = self.crc {
                header.i32(4, crc);
            }
            page(header, &self.page);
        });
    }
}

fn page(header: &mut StructWriter<'_>, page: &Page) {
    let number =
        |writer: &mut StructWriter<'_>, id, encoding: Encoding| writer.i32(id, encoding.number());
    match *page {
        Page::DataV1 {
            num_values,
            encoding,
            def_encoding,
            rep_encoding,
        } => header.structure(5, |writer| {
            writer.i32(1, num_values.cast_signed());
            number(writer, 2, encoding);
            number(writer, 3, def_encoding);
            number(writer, 4, rep_encoding);
        }),
        Page::Dictionary {
            num_values,
            encoding,
        } => header.structure(7, |writer| {
            writer.i32(1, num_values.cast_signed());
            number(writer, 2, encoding);
        }),
        Page::DataV2 {
            num_values,
            num_nulls,
            num_rows,
            encoding,
            def_len,
            rep_len,
            is_compressed,
        } => {
            header.structure(8, |writer| {
                writer.i32(1, num_values.cast_signed());
                writer.i32(2, num_nulls.cast_signed());
                writer.i32(3, num_rows.cast_signed());
                number(writer, 4, encoding);
                writer.i32(5, def_len.cast_signed());
                writer.i32(6, rep_len.cast_signed());
                writer.bool(7, is_compressed);
            });
        }
        Page::Other(_) => {}
    }
}
