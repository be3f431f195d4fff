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
//! | levels, other widths | written anew: at most `width` bits a value, and 14 bytes a page | `n·width/8 + 14P` |
//! | PLAIN, dictionary indices, BYTE_STREAM_SPLIT | values are only dropped | `0` |
//! | DELTA_BINARY_PACKED → PLAIN | | `n·width` |
//! | DELTA_LENGTH_BYTE_ARRAY → PLAIN | a length of 4 bytes a value; the bytes are the source's | `4n` |
//! | DELTA_BYTE_ARRAY, encoded as itself | a suffix grows only by bytes that stood in the suffix of a dropped row; lengths take at most 4 bytes and an eighth each, twice, and the last miniblock of a page is filled up (`delta::byte_array_bound`) | `9n + 320P` |
//! | DELTA_BYTE_ARRAY → PLAIN, for a fixed width | | `n·width` |
//! | RLE booleans → PLAIN | | `n/8 + P` |
//! | wider values | every value, in pages and dictionary, grows by the ratio of the widths | `S·ratio` |
//!
//! `P` is what the footer's encoding statistics say, else at most `S/17`. Where a value encoding makes pages grow, both
//! sizes in a header can: 8 bytes a page. A footer that lies makes the chunk overflow its slot, which is an error when
//! the chunk is read, never a wrong byte.

use super::format::{ColumnChunk, Encoding, Page, PageHeader};
use super::target::TargetLeaf;
use super::thrift::write_varint;
use crate::rows::file_schema::Physical;

use super::format::Encoding::{
    DeltaBinaryPacked, DeltaByteArray, DeltaLengthByteArray, Plain, PlainDictionary, Rle,
};

/// A slot always has room for this much filler (two page heads), so that any remainder can be filled.
pub const FILL: u64 = 128;
/// No page head is longer: eleven fields, of which three are sizes of up to 5 bytes, three ends, and a length.
const MAX_HEAD: usize = 48;
/// The longest header with statistics; readers look for a header's end in so many bytes and more.
const STUFFED: usize = 8 << 10;
/// The least bytes a page header takes: eight fields and two stops.
const MIN_HEADER: u64 = 17;
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
    /// Bits per level, repetition and definition together, where levels are written anew.
    pub new_level_bits: Option<u32>,
}

/// Bytes to reserve for a transcoded chunk.
pub fn slot_len(chunk: &ColumnChunk, shape: SlotShape) -> u64 {
    let size = u64::try_from(
        chunk
            .total_uncompressed_size
            .max(chunk.total_compressed_size),
    )
    .unwrap_or(0);
    let values = u64::try_from(chunk.num_values).unwrap_or(0);
    let most_pages = size / MIN_HEADER + 1;
    let counted: u64 = chunk
        .encoding_stats
        .iter()
        .map(|s| u64::try_from(s.count).unwrap_or(0))
        .sum();
    let pages = if counted == 0 {
        most_pages
    } else {
        counted.min(most_pages)
    };

    let mut growth = if shape.nested { 4 * pages } else { 0 };
    let mut pages_grow = false;
    if let Some(bits) = shape.new_level_bits {
        growth += values.saturating_mul(u64::from(bits)).div_ceil(8) + 14 * pages;
        pages_grow = true;
    }
    for encoding in &chunk.encodings {
        growth += match encoding {
            DeltaBinaryPacked => values.saturating_mul(width(shape)),
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
    size.saturating_add(growth).saturating_add(SLACK + FILL)
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

/// What stands behind the last page of a chunk of this leaf, `rest` bytes of it: pages without values, of which the
/// bytes given here are to be followed by zeros. `None` when a page cannot be so short.
///
/// Readers stop at a chunk's number of values, but some look at the next page before they do. What they accept there:
///
/// | leaf | filler |
/// |---|---|
/// | flat | a page of version 1 with any body |
/// | flat, of fixed-length byte arrays | the same, its body all levels (arrow-rs wants no value bytes for no values) |
/// | the same, required, so without levels | pages without a body, with long statistics in their headers |
/// | nested | a page of version 2, its body all levels (behind a page of version 1, arrow-rs takes the last row for unfinished) |
///
/// A page header's length depends on the sizes in it, so a few remainders fit no single page; a first, empty page
/// shifts those.
pub fn filler(rest: usize, leaf: &TargetLeaf) -> Option<Vec<u8>> {
    if rest == 0 {
        return Some(Vec::new());
    }
    let fixed = matches!(leaf.physical, Physical::Fixed(_));
    if fixed && leaf.max_def == 0 {
        return stuffed(rest);
    }
    let head = match (leaf.max_rep, fixed) {
        (0, false) => plain_page,
        (0, true) => levels_page,
        _ => levels_page_v2,
    };
    if let Some(page) = closing_page(rest, head) {
        return Some(page);
    }
    let mut first = head(0);
    first.extend(closing_page(rest.checked_sub(first.len())?, head)?);
    Some(first)
}

/// The head of a page that, with the zeros behind it, takes exactly `total` bytes.
fn closing_page(total: usize, head: fn(usize) -> Vec<u8>) -> Option<Vec<u8>> {
    (0..=MAX_HEAD)
        .filter_map(|len| total.checked_sub(len))
        .map(|zeros| (zeros, head(zeros)))
        .find(|(zeros, head)| head.len() + zeros == total)
        .map(|(_, head)| head)
}

/// Version 1, values all zeros.
fn plain_page(zeros: usize) -> Vec<u8> {
    let page = Page::DataV1 {
        num_values: 0,
        encoding: Plain,
        def_encoding: Rle,
        rep_encoding: Rle,
    };
    header(zeros, page)
}

/// Version 1, definition levels all zeros, no value bytes.
fn levels_page(zeros: usize) -> Vec<u8> {
    let mut head = plain_page(zeros + 4);
    head.extend(u32::try_from(zeros).unwrap_or(u32::MAX).to_le_bytes());
    head
}

/// Version 2, definition levels all zeros, no value bytes.
fn levels_page_v2(zeros: usize) -> Vec<u8> {
    let page = Page::DataV2 {
        num_values: 0,
        num_nulls: 0,
        num_rows: 0,
        encoding: Plain,
        def_len: u32::try_from(zeros).unwrap_or(u32::MAX),
        rep_len: 0,
        is_compressed: false,
    };
    header(zeros, page)
}

fn header(body: usize, page: Page) -> Vec<u8> {
    let size = u32::try_from(body).unwrap_or(u32::MAX);
    let header = PageHeader {
        uncompressed_size: size,
        compressed_size: size,
        crc: None,
        page,
    };
    let mut out = Vec::with_capacity(MAX_HEAD);
    header.write(&mut out);
    out
}

/// Pages of version 1 without a body, `total` bytes of them: their headers hold a statistics field of the length that
/// is needed.
fn stuffed(total: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(total);
    while out.len() < total {
        let rest = total - out.len();
        let page = match stuffed_page(rest.min(STUFFED)) {
            // What is left then must be long enough for a page.
            Some(page) if page.len() == rest || rest - page.len() >= MAX_HEAD => page,
            _ => stuffed_page((rest / 2).min(STUFFED)).or_else(|| stuffed_page(MAX_HEAD))?,
        };
        if page.len() > rest {
            return None;
        }
        out.extend(page);
    }
    Some(out)
}

/// One such page of exactly `total` bytes; a few lengths cannot be had.
fn stuffed_page(total: usize) -> Option<Vec<u8>> {
    // PageHeader { type: 0, sizes: 0, data_page_header: { num_values: 0, PLAIN, RLE, RLE, statistics: { max: …
    const HEAD: [u8; 17] = [
        0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x15, 0, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18,
    ];
    // … } } }
    const STOPS: [u8; 3] = [0; 3];
    let around = HEAD.len() + STOPS.len();
    (1..=5).find_map(|digits| {
        let len = total.checked_sub(around + digits)?;
        let mut out = HEAD.to_vec();
        write_varint(&mut out, len as u64);
        out.resize(out.len() + len + STOPS.len(), 0);
        (out.len() == total).then_some(out)
    })
}

/// Whether chunks with these encodings have a dictionary page that the transcoder keeps.
pub fn has_dictionary(encodings: &[Encoding]) -> bool {
    encodings
        .iter()
        .any(|e| matches!(e, PlainDictionary | Encoding::RleDictionary))
}

/// The encodings a transcoded chunk may hold, given the source's.
pub fn transcoded_encodings(encodings: &[Encoding]) -> Vec<Encoding> {
    let mut out = vec![Plain, Rle];
    if has_dictionary(encodings) {
        out.push(Encoding::RleDictionary);
    }
    if encodings.contains(&DeltaByteArray) {
        out.push(DeltaByteArray);
    }
    out
}
