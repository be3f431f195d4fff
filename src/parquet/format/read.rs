//! Footers and page headers from their bytes.
//!
//! Fields and logical types this reader does not know are passed over, as the format asks. A field that must be there
//! and is not, or a number that cannot be right (a negative size, an unknown physical type), is an error.

use super::{
    Codec, ColumnChunk, Encoding, FileMetaData, IndexRange, Page, PageEncodingStats, PageHeader,
    RowGroup, SchemaElement, Statistics,
};
use crate::parquet::DecodeError;
use crate::parquet::thrift::{Field, Reader};
use crate::rows::file_schema::{Annotation, Physical, Repetition};

/// The most nodes a schema may have. Wide tables have some tens of thousands.
pub const MAX_SCHEMA_NODES: usize = 100_000;

/// The most levels a schema may have.
pub const MAX_SCHEMA_DEPTH: usize = 100;

const FOOTER: &str = "Parquet footer";
const PAGE_HEADER: &str = "page header";

fn missing(what: &'static str, field: &str) -> DecodeError {
    DecodeError::corrupt(what, format!("has no `{field}`"))
}

impl FileMetaData {
    /// Reads the Thrift struct at the front of `bytes` (a footer without its length and magic).
    ///
    /// # Errors
    /// Bytes that break the format; [`DecodeError::Unsupported`] where column metadata is encrypted.
    pub fn parse(bytes: &[u8]) -> Result<FileMetaData, DecodeError> {
        let mut version = None;
        let mut schema: Option<Vec<SchemaElement>> = None;
        let mut num_rows = None;
        let mut row_groups = None;
        let mut key_value_metadata = Vec::new();
        let mut created_by = None;
        let mut column_orders = false;
        let mut encrypted = false;
        Reader::new(bytes).fields(|reader, field| {
            match field.id {
                1 => version = Some(reader.i32(field)?),
                2 => {
                    let mut nodes = 0;
                    schema = Some(reader.list(field, |reader, element| {
                        nodes += 1;
                        if nodes > MAX_SCHEMA_NODES {
                            let reason =
                                format!("the schema has more than {MAX_SCHEMA_NODES} nodes");
                            return Err(DecodeError::corrupt(FOOTER, reason));
                        }
                        schema_element(reader, element)
                    })?);
                }
                3 => num_rows = Some(reader.i64(field)?),
                4 => {
                    let schema = schema.as_deref().ok_or_else(|| missing(FOOTER, "schema"))?;
                    let leaves = LeafColumns::of(schema);
                    row_groups = Some(
                        reader
                            .list(field, |reader, element| row_group(reader, element, &leaves))?,
                    );
                }
                5 => key_value_metadata = reader.list(field, key_value)?,
                6 => created_by = Some(reader.string(field)?.to_owned()),
                7 => {
                    column_orders = true;
                    reader.skip(field)?;
                }
                8 => {
                    encrypted = true;
                    reader.skip(field)?;
                }
                _ => reader.skip(field)?,
            }
            Ok(())
        })?;
        Ok(FileMetaData {
            version: version.ok_or_else(|| missing(FOOTER, "version"))?,
            schema: schema.ok_or_else(|| missing(FOOTER, "schema"))?,
            num_rows: num_rows.ok_or_else(|| missing(FOOTER, "num_rows"))?,
            row_groups: row_groups.ok_or_else(|| missing(FOOTER, "row_groups"))?,
            key_value_metadata,
            created_by,
            column_orders,
            encrypted,
        })
    }
}

/// What a schema says of one leaf column.
pub(super) struct LeafColumn<'a> {
    /// The names on the way to it, from below the root; at most [`MAX_SCHEMA_DEPTH`] of them.
    pub path: Vec<&'a str>,
    physical: Physical,
}

/// The leaf columns of a schema, in order.
pub(super) struct LeafColumns<'a> {
    schema: &'a [SchemaElement],
    /// The group around each node; the root and its children have none.
    parents: Vec<Option<usize>>,
    /// The nodes that are leaves.
    leaves: Vec<usize>,
}

impl<'a> LeafColumns<'a> {
    /// Where the child counts do not add up, paths may be wrong: whoever builds a tree from the schema refuses it.
    pub fn of(schema: &'a [SchemaElement]) -> LeafColumns<'a> {
        let mut columns = LeafColumns {
            schema,
            parents: Vec::new(),
            leaves: Vec::new(),
        };
        // The groups we are in, each with how many of its children are still to come.
        let mut open: Vec<(usize, i32)> = Vec::new();
        for (at, element) in schema.iter().enumerate() {
            while open.last().is_some_and(|(_, left)| *left <= 0) {
                open.pop();
            }
            columns.parents.push(open.last().map(|(group, _)| *group));
            if let Some((_, left)) = open.last_mut() {
                *left -= 1;
            }
            if at == 0 {
                continue;
            }
            if element.physical.is_some() {
                columns.leaves.push(at);
            } else {
                open.push((at, element.num_children.unwrap_or(0)));
            }
        }
        columns
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// A leaf by its index.
    pub fn get(&self, leaf: usize) -> Option<LeafColumn<'a>> {
        let physical = self.schema.get(*self.leaves.get(leaf)?)?.physical?;
        Some(LeafColumn {
            path: self.path(leaf),
            physical,
        })
    }

    fn path(&self, leaf: usize) -> Vec<&'a str> {
        let mut path = Vec::new();
        let mut next = self.leaves.get(leaf).copied();
        while let Some(at) = next.filter(|_| path.len() < MAX_SCHEMA_DEPTH) {
            path.extend(self.schema.get(at).map(|element| element.name.as_str()));
            next = self.parents.get(at).copied().flatten();
        }
        path.reverse();
        path
    }
}

fn key_value(
    reader: &mut Reader<'_>,
    element: Field,
) -> Result<(String, Option<String>), DecodeError> {
    let mut key = String::new();
    let mut value = None;
    reader.structure(element, |reader, field| {
        match field.id {
            1 => key = String::from_utf8_lossy(reader.binary(field)?).into_owned(),
            // Some writers put bytes here. No value decides how the data is read.
            2 => value = Some(String::from_utf8_lossy(reader.binary(field)?).into_owned()),
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok((key, value))
}

fn schema_element(reader: &mut Reader<'_>, element: Field) -> Result<SchemaElement, DecodeError> {
    let mut type_number = None;
    let mut type_length = None;
    let mut repetition = None;
    let mut name = None;
    let mut num_children = None;
    let mut converted = None;
    let mut scale = 0;
    let mut precision = 0;
    let mut field_id = None;
    let mut logical = None;
    reader.structure(element, |reader, field| {
        match field.id {
            1 => type_number = Some(reader.i32(field)?),
            2 => type_length = Some(reader.i32(field)?),
            3 => repetition = Some(repetition_of(reader.i32(field)?)?),
            4 => name = Some(reader.string(field)?.to_owned()),
            5 => num_children = Some(reader.i32(field)?),
            6 => converted = Some(reader.i32(field)?),
            7 => scale = reader.i32(field)?,
            8 => precision = reader.i32(field)?,
            9 => field_id = Some(reader.i32(field)?),
            10 => logical = logical_type(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    let physical = type_number
        .map(|number| physical_type(number, type_length))
        .transpose()?;
    let annotation = match (logical, converted) {
        (Some(annotation), _) => annotation,
        (None, Some(converted)) => converted_type(converted, scale, precision, repetition)?,
        (None, None) => Annotation::None,
    };
    if num_children.is_some_and(|count| count < 0) {
        return Err(DecodeError::corrupt(
            FOOTER,
            "a schema node has a negative number of children",
        ));
    }
    Ok(SchemaElement {
        physical,
        repetition,
        name: name.ok_or_else(|| missing("schema node", "name"))?,
        num_children,
        annotation,
        field_id,
        geo: None,
    })
}

fn physical_type(number: i32, length: Option<i32>) -> Result<Physical, DecodeError> {
    Ok(match number {
        0 => Physical::Boolean,
        1 => Physical::Int32,
        2 => Physical::Int64,
        3 => Physical::Int96,
        4 => Physical::Float,
        5 => Physical::Double,
        6 => Physical::ByteArray,
        7 => match length.and_then(|length| u32::try_from(length).ok()) {
            Some(length @ 1..) => Physical::Fixed(length),
            _ => {
                let reason = format!("a FIXED_LEN_BYTE_ARRAY has length {length:?}");
                return Err(DecodeError::corrupt(FOOTER, reason));
            }
        },
        other => {
            return Err(DecodeError::corrupt(
                FOOTER,
                format!("physical type {other} does not exist"),
            ));
        }
    })
}

fn repetition_of(number: i32) -> Result<Repetition, DecodeError> {
    match number {
        0 => Ok(Repetition::Required),
        1 => Ok(Repetition::Optional),
        2 => Ok(Repetition::Repeated),
        other => Err(DecodeError::corrupt(
            FOOTER,
            format!("repetition type {other} does not exist"),
        )),
    }
}

fn decimal(scale: i32, precision: i32) -> Result<Annotation, DecodeError> {
    match (u32::try_from(precision), u32::try_from(scale)) {
        (Ok(precision @ 1..), Ok(scale)) if scale <= precision => {
            Ok(Annotation::Decimal { precision, scale })
        }
        _ => Err(DecodeError::corrupt(
            FOOTER,
            format!("decimal({precision}, {scale}) does not exist"),
        )),
    }
}

/// `LogicalType`: a union, so a struct with one field. `None` for a type this reader does not know.
fn logical_type(reader: &mut Reader<'_>, field: Field) -> Result<Option<Annotation>, DecodeError> {
    let mut annotation = None;
    reader.structure(field, |reader, field| {
        let plain = match field.id {
            1 => Annotation::String,
            2 => Annotation::Map,
            3 => Annotation::List,
            4 => Annotation::Enum,
            6 => Annotation::Date,
            11 => Annotation::Unknown,
            12 => Annotation::Json,
            13 => Annotation::Bson,
            14 => Annotation::Uuid,
            15 => Annotation::Float16,
            16 => Annotation::Variant,
            17 => Annotation::Geometry,
            18 => Annotation::Geography,
            5 => {
                annotation = Some(logical_decimal(reader, field)?);
                return Ok(());
            }
            7 | 8 => {
                annotation = logical_time(reader, field)?;
                return Ok(());
            }
            10 => {
                annotation = Some(logical_integer(reader, field)?);
                return Ok(());
            }
            _ => return reader.skip(field),
        };
        annotation = Some(plain);
        reader.skip(field)
    })?;
    Ok(annotation)
}

fn logical_decimal(reader: &mut Reader<'_>, field: Field) -> Result<Annotation, DecodeError> {
    let (mut scale, mut precision) = (0, 0);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => scale = reader.i32(field)?,
            2 => precision = reader.i32(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    decimal(scale, precision)
}

/// `TimeType` (field 7) or `TimestampType` (field 8). `None` for a unit this reader does not know.
fn logical_time(reader: &mut Reader<'_>, outer: Field) -> Result<Option<Annotation>, DecodeError> {
    let mut utc = false;
    let mut unit = 0;
    reader.structure(outer, |reader, field| {
        match field.id {
            1 => utc = reader.bool(field)?,
            2 => reader.structure(field, |reader, field| {
                unit = field.id;
                reader.skip(field)
            })?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(match (outer.id, unit) {
        (7, 1) => Some(Annotation::TimeMillis),
        (7, 2) => Some(Annotation::TimeMicros),
        (7, 3) => Some(Annotation::TimeNanos),
        (8, 1) => Some(Annotation::TimestampMillis { utc }),
        (8, 2) => Some(Annotation::TimestampMicros { utc }),
        (8, 3) => Some(Annotation::TimestampNanos { utc }),
        _ => None,
    })
}

fn logical_integer(reader: &mut Reader<'_>, field: Field) -> Result<Annotation, DecodeError> {
    let (mut bits, mut signed) = (0, false);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => bits = reader.i8(field)?,
            2 => signed = reader.bool(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    match bits {
        8 | 16 | 32 | 64 => Ok(Annotation::Integer {
            bits: bits.unsigned_abs(),
            signed,
        }),
        other => Err(DecodeError::corrupt(
            FOOTER,
            format!("an integer type of {other} bits does not exist"),
        )),
    }
}

/// `ConvertedType`, the older way to say what a column holds.
fn converted_type(
    number: i32,
    scale: i32,
    precision: i32,
    repetition: Option<Repetition>,
) -> Result<Annotation, DecodeError> {
    Ok(match number {
        0 => Annotation::String,
        1 => Annotation::Map,
        // On a map's repeated group it says nothing; old writers put it on the map itself instead of MAP.
        2 if repetition == Some(Repetition::Repeated) => Annotation::None,
        2 => Annotation::Map,
        3 => Annotation::List,
        4 => Annotation::Enum,
        5 => return decimal(scale, precision),
        6 => Annotation::Date,
        7 => Annotation::TimeMillis,
        8 => Annotation::TimeMicros,
        9 => Annotation::TimestampMillis { utc: true },
        10 => Annotation::TimestampMicros { utc: true },
        11 => Annotation::Integer {
            bits: 8,
            signed: false,
        },
        12 => Annotation::Integer {
            bits: 16,
            signed: false,
        },
        13 => Annotation::Integer {
            bits: 32,
            signed: false,
        },
        14 => Annotation::Integer {
            bits: 64,
            signed: false,
        },
        15 => Annotation::Integer {
            bits: 8,
            signed: true,
        },
        16 => Annotation::Integer {
            bits: 16,
            signed: true,
        },
        17 => Annotation::Integer {
            bits: 32,
            signed: true,
        },
        18 => Annotation::Integer {
            bits: 64,
            signed: true,
        },
        19 => Annotation::Json,
        20 => Annotation::Bson,
        21 => Annotation::Interval,
        _ => Annotation::None,
    })
}

fn row_group(
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

pub(super) fn statistics(reader: &mut Reader<'_>, field: Field) -> Result<Statistics, DecodeError> {
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

impl PageHeader {
    /// Reads the header at the front of `bytes`; gives it with its length in bytes. The page follows it.
    pub fn parse(bytes: &[u8]) -> Result<(PageHeader, usize), DecodeError> {
        let mut page_type = None;
        let mut uncompressed_size = None;
        let mut compressed_size = None;
        let mut crc = None;
        let (mut data_v1, mut dictionary, mut data_v2) = (None, None, None);
        let mut reader = Reader::new(bytes);
        reader.fields(|reader, field| {
            match field.id {
                1 => page_type = Some(reader.i32(field)?),
                2 => uncompressed_size = Some(count(reader, field)?),
                3 => compressed_size = Some(count(reader, field)?),
                4 => crc = Some(reader.i32(field)?),
                5 => data_v1 = Some(data_page_header(reader, field)?),
                7 => dictionary = Some(dictionary_page_header(reader, field)?),
                8 => data_v2 = Some(data_page_header_v2(reader, field)?),
                _ => reader.skip(field)?,
            }
            Ok(())
        })?;
        let page = match page_type.ok_or_else(|| missing(PAGE_HEADER, "type"))? {
            0 => data_v1.ok_or_else(|| missing(PAGE_HEADER, "data_page_header"))?,
            2 => dictionary.ok_or_else(|| missing(PAGE_HEADER, "dictionary_page_header"))?,
            3 => data_v2.ok_or_else(|| missing(PAGE_HEADER, "data_page_header_v2"))?,
            other => Page::Other(other),
        };
        let header = PageHeader {
            uncompressed_size: uncompressed_size
                .ok_or_else(|| missing(PAGE_HEADER, "uncompressed_page_size"))?,
            compressed_size: compressed_size
                .ok_or_else(|| missing(PAGE_HEADER, "compressed_page_size"))?,
            crc,
            page,
        };
        Ok((header, reader.position()))
    }
}

/// A 32-bit integer that cannot be negative.
fn count(reader: &mut Reader<'_>, field: Field) -> Result<u32, DecodeError> {
    let value = reader.i32(field)?;
    u32::try_from(value).map_err(|_| {
        DecodeError::corrupt(
            PAGE_HEADER,
            format!("field {} is negative ({value})", field.id),
        )
    })
}

fn encoding(reader: &mut Reader<'_>, field: Field) -> Result<Option<Encoding>, DecodeError> {
    reader
        .i32(field)
        .map(|number| Some(Encoding::from_number(number)))
}

fn data_page_header(reader: &mut Reader<'_>, field: Field) -> Result<Page, DecodeError> {
    const WHAT: &str = "data page header";
    let mut num_values = None;
    let (mut values, mut def, mut rep) = (None, None, None);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => num_values = Some(count(reader, field)?),
            2 => values = encoding(reader, field)?,
            3 => def = encoding(reader, field)?,
            4 => rep = encoding(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(Page::DataV1 {
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        encoding: values.ok_or_else(|| missing(WHAT, "encoding"))?,
        def_encoding: def.ok_or_else(|| missing(WHAT, "definition_level_encoding"))?,
        rep_encoding: rep.ok_or_else(|| missing(WHAT, "repetition_level_encoding"))?,
    })
}

fn dictionary_page_header(reader: &mut Reader<'_>, field: Field) -> Result<Page, DecodeError> {
    const WHAT: &str = "dictionary page header";
    let mut num_values = None;
    let mut values = None;
    reader.structure(field, |reader, field| {
        match field.id {
            1 => num_values = Some(count(reader, field)?),
            2 => values = encoding(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(Page::Dictionary {
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        encoding: values.ok_or_else(|| missing(WHAT, "encoding"))?,
    })
}

fn data_page_header_v2(reader: &mut Reader<'_>, field: Field) -> Result<Page, DecodeError> {
    const WHAT: &str = "data page header";
    let (mut num_values, mut num_nulls, mut num_rows) = (None, None, None);
    let mut values = None;
    let (mut def_len, mut rep_len) = (None, None);
    let mut is_compressed = true;
    reader.structure(field, |reader, field| {
        match field.id {
            1 => num_values = Some(count(reader, field)?),
            2 => num_nulls = Some(count(reader, field)?),
            3 => num_rows = Some(count(reader, field)?),
            4 => values = encoding(reader, field)?,
            5 => def_len = Some(count(reader, field)?),
            6 => rep_len = Some(count(reader, field)?),
            7 => is_compressed = reader.bool(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(Page::DataV2 {
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        num_nulls: num_nulls.ok_or_else(|| missing(WHAT, "num_nulls"))?,
        num_rows: num_rows.ok_or_else(|| missing(WHAT, "num_rows"))?,
        encoding: values.ok_or_else(|| missing(WHAT, "encoding"))?,
        def_len: def_len.ok_or_else(|| missing(WHAT, "definition_levels_byte_length"))?,
        rep_len: rep_len.ok_or_else(|| missing(WHAT, "repetition_levels_byte_length"))?,
        is_compressed,
    })
}
