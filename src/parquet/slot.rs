//! Slots: the length reserved for a column chunk before anybody has transcoded it, and what fills the rest of it.
//!
//! A virtual file's size must be known from metadata alone, so a chunk that will be transcoded gets a length that
//! provably bounds what the transcoder can emit. The transcoder works page by page: every source page gives at most one
//! page, without compression, of data page version 1. Let `S` be the chunk's uncompressed size (page headers included,
//! as the footer gives it), `n` its number of values and `P` its number of pages.
//!
//! | part | why it grows | bound |
//! |---|---|---|
//! | header | the compressed size becomes the uncompressed one: its varint is at most 4 bytes longer, and longer by `k` only in a page of `u ≥ 64` bytes (`k=1`), `8192` (`k=2`), `2^20` (`k=3`), `2^27` (`k=4`); every header is 17 bytes or more, so the growth per byte is at most `1/(64+17)` | `min(4P, S/81)` |
//! | header of a version 2 page | it names three more sizes and two fewer encodings than ours: ours is 4 bytes shorter | `0` |
//! | levels of a version 2 page | each kind of levels gets a 4-byte length; 4 bytes are paid for by the header | `0` flat, `4P` nested |
//! | levels, same widths | runs are only shortened, merged or dropped (`rle::RunWriter`) | `0` |
//! | levels, other widths or BIT_PACKED | written anew: at most `width` bits a value, and 14 bytes a page | `n·width/8 + 14P` |
//! | PLAIN, dictionary indices, BYTE_STREAM_SPLIT | values are only dropped | `0` |
//! | DELTA_BINARY_PACKED → PLAIN | | `n·width` |
//! | DELTA_LENGTH_BYTE_ARRAY → PLAIN | a length of 4 bytes a value; the bytes are the source's | `4n` |
//! | DELTA_BYTE_ARRAY, encoded as itself | a suffix grows only by bytes that stood in the suffix of a dropped row; lengths take at most 4 bytes and an eighth each, twice, and the last miniblock of a page is filled up (`delta::byte_array_bound`) | `9n + 320P` |
//! | DELTA_BYTE_ARRAY or DELTA_LENGTH_BYTE_ARRAY → PLAIN, of a fixed width | | `n·width` |
//! | RLE booleans → PLAIN | | `n/8 + P` |
//! | wider values | every value, in pages and dictionary, grows by the ratio of the widths, where a variable-length one takes 4 bytes at least | `S·ratio` |
//!
//! Where `k` of the values are kept, for fewer than that other bound may be less. Of values of a fixed width that stay as
//! wide, in a flat chunk whose dictionary page takes `D` bytes, each takes at most
//!
//! | part | why | bytes |
//! |---|---|---|
//! | a value | PLAIN, or as a run of its own among the indices: its header, 4 bytes, and its share of the header of the packed run behind it | `max(width, 6)` |
//! | a level, where there are any | a run of its own: its header, a byte, and the same share | `3` |
//! | a page | header, lengths, bit width, the last packed group of levels and of indices | `128` |
//!
//! so `D + k·(value + level) + 128P` is a bound too.
//!
//! `P` is what the footer's encoding statistics say, else at most `S/17`. Where a value encoding makes pages grow, both
//! sizes in a header can: 8 bytes a page. A footer that lies makes the chunk overflow its slot, which is an error when
//! the chunk is read, never a wrong byte.

use super::format::{ColumnChunk, Encoding, Page, PageHeader};
use super::split::PageSpan;
use crate::rows::file_schema::Physical;

use super::format::Encoding::{
    BitPacked, DeltaBinaryPacked, DeltaByteArray, DeltaLengthByteArray, Plain, PlainDictionary, Rle,
};

/// A slot always has room for this much filler (two page headers), so that any remainder can be filled.
pub const FILL: u64 = 64;
/// Bytes of the length that stands before the levels of a page of version 1.
const LEVELS_LEN: usize = 4;
/// The least bytes a page header takes: eight fields and two stops.
const MIN_HEADER: u64 = 17;
/// The most bytes that a kept dictionary index takes, a kept level, and what a page takes beside them.
const INDEX: u64 = 6;
const LEVEL: u64 = 3;
const PAGE_OVERHEAD: u64 = 128;
/// Room for writers that count their own headers a little short in `total_uncompressed_size`.
const SLACK: u64 = 192;

/// What about a chunk bounds its transcoded length, beside its footer entry.
#[derive(Clone, Copy, Debug)]
pub struct SlotShape {
    pub source: Physical,
    /// Bytes of a value before and after, where values change their width.
    pub widths: Option<(u32, u32)>,
    /// Whether the leaf stands in a list or map.
    pub nested: bool,
    /// Bits per virtual level, repetition and definition together.
    pub level_bits: u32,
    /// Whether levels are written anew.
    pub new_levels: bool,
}

/// What a stored chunk takes, or some pages of it.
#[derive(Clone, Copy, Debug)]
pub struct StoredSize<'a> {
    /// Bytes, not compressed, page headers included.
    pub bytes: u64,
    /// Entries, nulls and list placeholders counted.
    pub values: u64,
    /// How many pages there are at most.
    pub pages: u64,
    /// Bytes of the dictionary page, not compressed, where that is known.
    pub dictionary: Option<u64>,
    /// All that the pages may use.
    pub encodings: &'a [Encoding],
}

impl<'a> StoredSize<'a> {
    /// Of a whole chunk, as its footer gives it.
    pub fn of_chunk(chunk: &'a ColumnChunk) -> StoredSize<'a> {
        let bytes = chunk
            .total_uncompressed_size
            .max(chunk.total_compressed_size);
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let most_pages = bytes / MIN_HEADER + 1;
        let counted = chunk.encoding_stats.iter();
        let counted: u64 = counted.map(|s| u64::try_from(s.count).unwrap_or(0)).sum();
        StoredSize {
            bytes,
            values: u64::try_from(chunk.num_values).unwrap_or(0),
            pages: if counted == 0 {
                most_pages
            } else {
                counted.min(most_pages)
            },
            dictionary: (!has_dictionary(&chunk.encodings)).then_some(0),
            encodings: &chunk.encodings,
        }
    }

    /// Of the pages of a span of the chunk.
    pub fn of_span(chunk: &'a ColumnChunk, span: &PageSpan) -> StoredSize<'a> {
        StoredSize {
            bytes: span.size,
            values: span.values,
            pages: span.pages,
            dictionary: Some(span.dictionary_size),
            encodings: &chunk.encodings,
        }
    }
}

/// Bytes to reserve for a transcoded chunk of which so many entries are kept at most.
pub fn slot_len(stored: StoredSize<'_>, shape: SlotShape, kept: u64) -> u64 {
    let all = all_len(stored, shape);
    let some = kept_len(stored, shape, kept).unwrap_or(u64::MAX);
    all.min(some).saturating_add(SLACK + FILL)
}

/// The second bound: `None` where it does not hold.
fn kept_len(stored: StoredSize<'_>, shape: SlotShape, kept: u64) -> Option<u64> {
    let is_fixed = width(shape) > 0 && shape.widths.is_none();
    if !is_fixed || shape.nested || shape.level_bits > 8 {
        return None;
    }
    let level = if shape.level_bits > 0 { LEVEL } else { 0 };
    let each = width(shape).max(INDEX) + level;
    let values = kept.saturating_mul(each);
    let pages = stored.pages.saturating_mul(PAGE_OVERHEAD);
    Some(
        stored
            .dictionary?
            .saturating_add(values)
            .saturating_add(pages),
    )
}

/// The first bound.
fn all_len(stored: StoredSize<'_>, shape: SlotShape) -> u64 {
    let StoredSize {
        bytes: size,
        values,
        pages,
        encodings,
        ..
    } = stored;

    let mut growth = if shape.nested { 4 * pages } else { 0 };
    let mut pages_grow = false;
    // Writers of RLE levels name BIT_PACKED too, for levels of no bits.
    let bit_packed = encodings.contains(&BitPacked) && !encodings.contains(&Rle);
    if shape.new_levels || bit_packed {
        let bits = values.saturating_mul(u64::from(shape.level_bits));
        growth += bits.div_ceil(8) + 14 * pages;
        pages_grow = true;
    }
    for encoding in encodings {
        growth += match encoding {
            DeltaBinaryPacked => values.saturating_mul(width(shape)),
            DeltaLengthByteArray if width(shape) > 0 => values.saturating_mul(width(shape)),
            DeltaLengthByteArray => 4 * values,
            DeltaByteArray if width(shape) > 0 => values.saturating_mul(width(shape)),
            DeltaByteArray => 9 * values + 320 * pages.min(values),
            Rle if shape.source == Physical::Boolean => values / 8 + pages,
            _ => continue,
        };
        pages_grow = true;
    }
    let size = match shape.widths {
        Some((from, to)) if to > from => {
            pages_grow = true;
            size.saturating_mul(u64::from(to))
                .div_ceil(u64::from(from.max(1)))
        }
        _ => size,
    };
    growth += if pages_grow {
        8 * pages
    } else {
        (4 * pages).min(size / 81 + 1)
    };
    size.saturating_add(growth)
}

/// Bytes of a value in PLAIN encoding, once transcoded; 0 where that is not fixed.
fn width(shape: SlotShape) -> u64 {
    if let Some((_, to)) = shape.widths {
        return u64::from(to);
    }
    match shape.source {
        Physical::Int32 | Physical::Float => 4,
        Physical::Int64 | Physical::Double => 8,
        Physical::Int96 => 12,
        Physical::Fixed(width) => u64::from(width),
        Physical::Boolean | Physical::ByteArray => 0,
    }
}

/// What stands behind a chunk that is shorter than its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Closing pages without values: the slot is the chunk, whose length nobody knows before it is made.
    ClosingPages(Closing),
    /// Zeros that belong to no chunk: the footer says the chunk's own length, and it is made with the footer.
    Gap,
}

/// How a closing page's body begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The leaf has no levels: the body is spare bytes.
    Required,
    /// Definition levels of no bytes, then spare bytes.
    Optional,
    /// Definition levels that take the whole body.
    OptionalFixed,
}

impl Behind {
    /// What a leaf's slots end with.
    ///
    /// `parquet` 60 knows that a list is whole only at the end of the last page, or where another begins with values: a
    /// closing page behind it costs the last row. And it wants PLAIN pages of fixed-length byte arrays to have exactly
    /// the bytes of their values, of which a closing page has none.
    pub fn of(physical: Physical, max_def: u16, max_rep: u16) -> Behind {
        match (physical, max_def, max_rep) {
            (_, _, 1..) | (Physical::Fixed(_), 0, _) => Behind::Gap,
            (Physical::Fixed(_), _, 0) => Behind::ClosingPages(Closing::OptionalFixed),
            (_, 0, 0) => Behind::ClosingPages(Closing::Required),
            (_, _, 0) => Behind::ClosingPages(Closing::Optional),
        }
    }
}

/// What fills `rest` bytes behind a chunk's last page: the heads of closing pages without values, to be followed by
/// zeros. `None` when a page cannot be so short.
///
/// A page header's length depends on the sizes in it, so a few remainders fit no single page; a first, short page
/// shifts those.
pub fn filler(rest: usize, closing: Closing) -> Option<Vec<u8>> {
    if rest == 0 {
        return Some(Vec::new());
    }
    if let Some(body) = closing_body(rest, closing) {
        return Some(closing_page(body, closing));
    }
    let least = least_body(closing);
    let mut first = closing_page(least, closing);
    let body = closing_body(rest.checked_sub(first.len())?, closing)?;
    first.extend(closing_page(body, closing));
    Some(first)
}

/// Readers read the length of the levels, whatever the number of values.
fn least_body(closing: Closing) -> usize {
    if closing == Closing::Required {
        0
    } else {
        LEVELS_LEN
    }
}

/// The body length with which a closing page takes exactly `total` bytes.
fn closing_body(total: usize, closing: Closing) -> Option<usize> {
    // Two sizes of up to 5 bytes stand in a header whose other parts take at most MIN_HEADER.
    (0..=10 + MIN_HEADER as usize)
        .filter_map(|header_len| total.checked_sub(header_len))
        .find(|&body| body >= least_body(closing) && header(body).len() + body == total)
}

/// A closing page up to where its body is zeros.
fn closing_page(body: usize, closing: Closing) -> Vec<u8> {
    let mut page = header(body);
    let levels = match closing {
        Closing::Required => return page,
        Closing::Optional => 0,
        Closing::OptionalFixed => u32::try_from(body - LEVELS_LEN).unwrap_or(u32::MAX),
    };
    page.extend(levels.to_le_bytes());
    page
}

fn header(body: usize) -> Vec<u8> {
    let size = u32::try_from(body).unwrap_or(u32::MAX);
    let header = PageHeader {
        uncompressed_size: size,
        compressed_size: size,
        crc: None,
        page: Page::DataV1 {
            num_values: 0,
            encoding: Plain,
            def_encoding: Rle,
            rep_encoding: Rle,
        },
    };
    let mut out = Vec::with_capacity(32);
    header.write(&mut out);
    out
}

/// Whether chunks with these encodings have a dictionary page that the transcoder keeps.
pub fn has_dictionary(encodings: &[Encoding]) -> bool {
    encodings
        .iter()
        .any(|e| matches!(e, PlainDictionary | Encoding::RleDictionary))
}

/// The encodings a transcoded chunk may hold, given the source's, with or without a dictionary.
pub fn transcoded_encodings(encodings: &[Encoding], has_dictionary: bool) -> Vec<Encoding> {
    let mut out = vec![Plain, Rle];
    if has_dictionary {
        out.push(Encoding::RleDictionary);
    }
    if encodings.contains(&DeltaByteArray) {
        out.push(DeltaByteArray);
    }
    out
}

#[cfg(test)]
mod tests;
