//! Column chunks that bergfs writes: uncompressed pages of version 1, and what a footer must know of them.

use super::format::{Encoding, Page, PageHeader};

/// A column chunk written by bergfs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeChunk {
    /// The dictionary page, if any, then data pages.
    pub bytes: Vec<u8>,
    /// Entries in the data pages, nulls and list placeholders counted.
    pub num_values: u64,
}

impl MadeChunk {
    /// Appends a dictionary page of PLAIN values; it must be the first page.
    pub fn push_dictionary(&mut self, num_values: u32, values: &[u8]) {
        let page = Page::Dictionary {
            num_values,
            encoding: Encoding::Plain,
        };
        self.push_header(values.len(), page);
        self.bytes.extend_from_slice(values);
    }

    /// Appends a data page. Levels come without their length prefix; `None` where the maximum level is 0.
    pub fn push_data(
        &mut self,
        num_values: u32,
        encoding: Encoding,
        rep: Option<&[u8]>,
        def: Option<&[u8]>,
        values: &[&[u8]],
    ) {
        let levels = [rep, def];
        let levels_len: usize = levels.iter().flatten().map(|l| 4 + l.len()).sum();
        let len = levels_len + values.iter().map(|v| v.len()).sum::<usize>();
        let page = Page::DataV1 {
            num_values,
            encoding,
            def_encoding: Encoding::Rle,
            rep_encoding: Encoding::Rle,
        };
        self.push_header(len, page);
        for level in levels.into_iter().flatten() {
            self.bytes
                .extend_from_slice(&size32(level.len()).to_le_bytes());
            self.bytes.extend_from_slice(level);
        }
        for part in values {
            self.bytes.extend_from_slice(part);
        }
        self.num_values += u64::from(num_values);
    }

    fn push_header(&mut self, len: usize, page: Page) {
        let size = size32(len);
        PageHeader {
            uncompressed_size: size,
            compressed_size: size,
            crc: None,
            page,
        }
        .write(&mut self.bytes);
    }
}

/// The length of a dictionary page, header included, that holds so many values in so many bytes.
pub fn dictionary_page_len(num_values: u32, values_len: usize) -> usize {
    let size = size32(values_len);
    let page = Page::Dictionary {
        num_values,
        encoding: Encoding::Plain,
    };
    let mut header = Vec::with_capacity(32);
    PageHeader {
        uncompressed_size: size,
        compressed_size: size,
        crc: None,
        page,
    }
    .write(&mut header);
    header.len() + values_len
}

/// Page sizes are 32 bits in the format; source pages are, and ours are bounded by them or by a row group's rows.
fn size32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The bits that hold levels up to `max`.
pub fn level_width(max: u16) -> u32 {
    u16::BITS - max.leading_zeros()
}

/// One run of the RLE hybrid: `len` times `value`.
pub fn rle_run(value: u32, len: u64, width: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    let mut header = len << 1;
    while header >= 0x80 {
        out.push((header & 0x7f) as u8 | 0x80);
        header >>= 7;
    }
    out.push(header as u8);
    out.extend(value.to_le_bytes().iter().take(width.div_ceil(8) as usize));
    out
}
