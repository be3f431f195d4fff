//! The structures of a Parquet file's footer and page headers (parquet-format's `parquet.thrift`), read and written in
//! Thrift's compact protocol.
//!
//! A footer is read with [`FileMetaData::parse`] and written with [`FileMetaData::write`]; a page header, which stands
//! before each page's bytes, with [`PageHeader::parse`] and [`PageHeader::write`]. What is written follows from the
//! struct alone, so equal structs give equal bytes. Only what bergfs uses is kept: sorting columns, size and geospatial
//! statistics, and key-value metadata of single columns are passed over.

use crate::rows::file_schema::{Annotation, Physical, Repetition};

mod index;
mod read;
mod write;

pub use index::{PageLocation, column_index, offset_index, page_header_bounds};
pub use read::{MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES};
pub use write::{PAGE_HEADER_V1_MAX, page_header_v1_len};

/// Encodings (`Encoding` in `parquet.thrift`), by their number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    Plain,
    PlainDictionary,
    Rle,
    BitPacked,
    DeltaBinaryPacked,
    DeltaLengthByteArray,
    DeltaByteArray,
    RleDictionary,
    ByteStreamSplit,
    /// A number this reader does not know.
    Other(i32),
}

/// Compression codecs (`CompressionCodec`), by their number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    Uncompressed,
    Snappy,
    Gzip,
    Lzo,
    Brotli,
    /// Hadoop's framing, or (as some writers do) a bare LZ4 frame or block.
    Lz4,
    Zstd,
    Lz4Raw,
    Other(i32),
}

/// `FileMetaData`: what a footer says.
#[derive(Clone, Debug, PartialEq)]
pub struct FileMetaData {
    /// 1 or 2.
    pub version: i32,
    /// The schema's nodes, depth first; the first one is the root.
    pub schema: Vec<SchemaElement>,
    pub num_rows: i64,
    pub row_groups: Vec<RowGroup>,
    pub key_value_metadata: Vec<(String, Option<String>)>,
    pub created_by: Option<String>,
    /// Whether `column_orders` is there (written as TYPE_ORDER for every leaf).
    pub column_orders: bool,
    /// Set when the file says how its footer or columns are encrypted.
    pub encrypted: bool,
}

/// `SchemaElement`, with its logical type (or, without one, its converted type) as an [`Annotation`].
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaElement {
    /// Absent on groups.
    pub physical: Option<Physical>,
    /// Absent on the root.
    pub repetition: Option<Repetition>,
    pub name: String,
    /// Set on groups.
    pub num_children: Option<i32>,
    pub annotation: Annotation,
    pub field_id: Option<i32>,
    /// What a `Geometry` or `Geography` annotation says beside itself. Written, and not read: a table's own schema says
    /// the same.
    pub geo: Option<GeoParameters>,
}

/// The parameters of Parquet's `GEOMETRY` and `GEOGRAPHY`; an absent one is the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeoParameters {
    /// The coordinate reference system, `OGC:CRS84` by default.
    pub crs: Option<String>,
    /// `EdgeInterpolationAlgorithm`, `SPHERICAL` (0) by default; of geographies only.
    pub algorithm: Option<i32>,
}

/// `RowGroup`.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroup {
    pub columns: Vec<ColumnChunk>,
    pub total_byte_size: i64,
    pub num_rows: i64,
    pub file_offset: Option<i64>,
    pub total_compressed_size: Option<i64>,
    pub ordinal: Option<i16>,
}

/// `ColumnChunk` with its `ColumnMetaData`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnChunk {
    /// Set when the chunk lies in another file (which this reader refuses).
    pub file_path: Option<String>,
    pub file_offset: i64,
    /// Set when the chunk is encrypted (which this reader refuses).
    pub encrypted: bool,
    pub physical: Physical,
    /// All that its pages use. (`path_in_schema` is not kept: it follows from the schema. It is checked against it when
    /// a footer is read, and written from it.)
    pub encodings: Vec<Encoding>,
    pub codec: Codec,
    /// Values, nulls and list placeholders counted.
    pub num_values: i64,
    pub total_uncompressed_size: i64,
    pub total_compressed_size: i64,
    pub data_page_offset: i64,
    pub dictionary_page_offset: Option<i64>,
    pub statistics: Option<Statistics>,
    /// `PageEncodingStats`.
    pub encoding_stats: Vec<PageEncodingStats>,
    pub bloom_filter_offset: Option<i64>,
    pub bloom_filter_length: Option<i32>,
    pub offset_index: Option<IndexRange>,
    pub column_index: Option<IndexRange>,
}

/// Where a page index lies in its file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRange {
    pub offset: i64,
    pub length: i32,
}

/// How many pages of one type and encoding a column chunk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEncodingStats {
    /// As `PageType` in `parquet.thrift`: 0 data, 1 index, 2 dictionary, 3 data v2.
    pub page_type: i32,
    pub encoding: Encoding,
    pub count: i32,
}

/// `Statistics`, values in PLAIN encoding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Legacy, with undefined order.
    pub max: Option<Box<[u8]>>,
    /// Legacy, with undefined order.
    pub min: Option<Box<[u8]>>,
    pub null_count: Option<i64>,
    pub distinct_count: Option<i64>,
    pub max_value: Option<Box<[u8]>>,
    pub min_value: Option<Box<[u8]>>,
    pub is_max_value_exact: Option<bool>,
    pub is_min_value_exact: Option<bool>,
}

/// `PageHeader`.
#[derive(Clone, Debug, PartialEq)]
pub struct PageHeader {
    /// Bytes, of the page without its header.
    pub uncompressed_size: u32,
    /// Bytes, of the page without its header.
    pub compressed_size: u32,
    pub crc: Option<i32>,
    pub page: Page,
}

/// What kind of page follows a header.
#[derive(Clone, Debug, PartialEq)]
pub enum Page {
    DataV1 {
        num_values: u32,
        encoding: Encoding,
        def_encoding: Encoding,
        rep_encoding: Encoding,
    },
    DataV2 {
        num_values: u32,
        num_nulls: u32,
        num_rows: u32,
        encoding: Encoding,
        /// Bytes of definition levels (no length prefix; never compressed).
        def_len: u32,
        rep_len: u32,
        is_compressed: bool,
    },
    Dictionary {
        num_values: u32,
        encoding: Encoding,
    },
    /// An index page, or one of a type this reader does not know: skipped.
    Other(i32),
}

impl Encoding {
    /// The encoding with this number in `parquet.thrift`.
    pub fn from_number(number: i32) -> Encoding {
        match number {
            0 => Encoding::Plain,
            2 => Encoding::PlainDictionary,
            3 => Encoding::Rle,
            4 => Encoding::BitPacked,
            5 => Encoding::DeltaBinaryPacked,
            6 => Encoding::DeltaLengthByteArray,
            7 => Encoding::DeltaByteArray,
            8 => Encoding::RleDictionary,
            9 => Encoding::ByteStreamSplit,
            other => Encoding::Other(other),
        }
    }

    /// Its number in `parquet.thrift`.
    pub fn number(self) -> i32 {
        match self {
            Encoding::Plain => 0,
            Encoding::PlainDictionary => 2,
            Encoding::Rle => 3,
            Encoding::BitPacked => 4,
            Encoding::DeltaBinaryPacked => 5,
            Encoding::DeltaLengthByteArray => 6,
            Encoding::DeltaByteArray => 7,
            Encoding::RleDictionary => 8,
            Encoding::ByteStreamSplit => 9,
            Encoding::Other(number) => number,
        }
    }

    /// Whether data pages hold indices into the chunk's dictionary page (under either of its two names).
    pub fn is_dictionary(self) -> bool {
        matches!(self, Encoding::PlainDictionary | Encoding::RleDictionary)
    }
}

impl Codec {
    /// The codec with this number in `parquet.thrift`.
    pub fn from_number(number: i32) -> Codec {
        match number {
            0 => Codec::Uncompressed,
            1 => Codec::Snappy,
            2 => Codec::Gzip,
            3 => Codec::Lzo,
            4 => Codec::Brotli,
            5 => Codec::Lz4,
            6 => Codec::Zstd,
            7 => Codec::Lz4Raw,
            other => Codec::Other(other),
        }
    }

    /// Its number in `parquet.thrift`.
    pub fn number(self) -> i32 {
        match self {
            Codec::Uncompressed => 0,
            Codec::Snappy => 1,
            Codec::Gzip => 2,
            Codec::Lzo => 3,
            Codec::Brotli => 4,
            Codec::Lz4 => 5,
            Codec::Zstd => 6,
            Codec::Lz4Raw => 7,
            Codec::Other(number) => number,
        }
    }
}

#[cfg(test)]
mod tests;
