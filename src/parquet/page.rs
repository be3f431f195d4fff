//! The pages of one column chunk.
//!
//! ```text
//! chunk = [dictionary page] data page*
//! page  = header (Thrift), then its bytes as stored
//!
//! v1 data page, once decompressed:  repetition levels | definition levels | values
//! v2 data page:                     repetition levels | definition levels   as they are; then values, compressed
//! ```
//!
//! [`PageReader`] finds them, and checks what can be checked without decoding: that pages lie inside the chunk, their
//! checksums, that the dictionary comes first and once, and that the data pages hold as many values as the chunk.

use std::borrow::Cow;

use super::DecodeError;
use super::codec::{Scratch, decompress, decompress_front};
use super::format::{Codec, Encoding, Page, PageHeader};
use super::rle::{self, split_length_prefixed};
use crate::packed::{bit_width, packed_len};

/// The most values a page may have. Writers put some ten thousand in one, or as many as a row group has rows; decoded
/// levels take four bytes each.
pub const MAX_PAGE_VALUES: u32 = 1 << 26;

const WHAT: &str = "page";

/// Walks the pages of a chunk.
#[derive(Debug)]
pub struct PageReader<'a> {
    rest: &'a [u8],
    /// Where in the chunk `rest` ends, in bytes.
    end: u64,
    codec: Codec,
    /// Values of data pages that have not come yet.
    values_left: u64,
    started: bool,
}

/// Where the reading of a chunk's pages stands, to go on from there later: before its first page by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct PagePosition {
    /// In the chunk, in bytes.
    pub at: u64,
    /// Values of data pages that have come.
    values: u64,
    started: bool,
}

impl PagePosition {
    /// Before the data page that stands at `at`, behind pages of so many values.
    pub fn behind(at: u64, values: u64) -> PagePosition {
        PagePosition {
            at,
            values,
            started: true,
        }
    }
}

impl<'a> PageReader<'a> {
    /// Reads a chunk's bytes, which hold `num_values` values (nulls and list placeholders counted).
    pub fn new(chunk: &'a [u8], codec: Codec, num_values: u64) -> PageReader<'a> {
        PageReader::resume(chunk, codec, num_values, PagePosition::default())
    }

    /// Goes on in a chunk of `num_values` values, of whose bytes there are some from `place` on.
    pub fn resume(
        bytes: &'a [u8],
        codec: Codec,
        num_values: u64,
        place: PagePosition,
    ) -> PageReader<'a> {
        PageReader {
            rest: bytes,
            end: place.at.saturating_add(bytes.len() as u64),
            codec,
            values_left: num_values.saturating_sub(place.values),
            started: place.started,
        }
    }

    /// Where in the chunk the last page that was given ends, in bytes.
    pub fn position(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    /// Where to [resume](PageReader::resume) behind the last page that was given, in a chunk of `num_values` values.
    pub fn place(&self, num_values: u64) -> PagePosition {
        PagePosition {
            at: self.position(),
            values: num_values.saturating_sub(self.values_left),
            started: self.started,
        }
    }

    /// Whether the next page's bytes are all there.
    pub fn has_whole_page(&self) -> bool {
        self.values_left == 0
            || self
                .next_page_len()
                .is_some_and(|len| len <= self.rest.len())
    }

    /// How many bytes, from where this stands, the next dictionary or data page takes to its end: at least so many where
    /// they are more than there are. `None`: its header is not whole, or not one.
    pub fn next_page_len(&self) -> Option<usize> {
        let mut len = 0usize;
        loop {
            let (header, header_len) = PageHeader::parse(self.rest.get(len..)?).ok()?;
            let size = usize::try_from(header.compressed_size).ok()?;
            len = len.checked_add(header_len)?.checked_add(size)?;
            if !matches!(header.page, Page::Other(_)) || len >= self.rest.len() {
                return Some(len);
            }
        }
    }

    /// The next dictionary or data page; `None` once all values have come. Pages of other types are passed over.
    pub fn next_page(&mut self) -> Result<Option<RawPage<'a>>, DecodeError> {
        while self.values_left > 0 {
            if self.rest.is_empty() {
                return Err(DecodeError::corrupt(
                    "column chunk",
                    format!("lacks {} values", self.values_left),
                ));
            }
            let (header, len) = PageHeader::parse(self.rest)?;
            let rest = self.rest.get(len..).unwrap_or_default();
            let size = usize::try_from(header.compressed_size)
                .map_err(|_| DecodeError::truncated(WHAT))?;
            let (body, rest) = rest
                .split_at_checked(size)
                .ok_or_else(|| DecodeError::truncated(WHAT))?;
            self.rest = rest;
            if matches!(header.page, Page::Other(_)) {
                continue;
            }
            if header
                .crc
                .is_some_and(|crc| crc.cast_unsigned() != crc32fast::hash(body))
            {
                return Err(DecodeError::corrupt(WHAT, "does not match its checksum"));
            }
            let page = RawPage {
                header,
                body,
                codec: self.codec,
            };
            self.count(&page)?;
            return Ok(Some(page));
        }
        Ok(None)
    }

    fn count(&mut self, page: &RawPage<'_>) -> Result<(), DecodeError> {
        let values = page.num_values();
        if values > MAX_PAGE_VALUES {
            return Err(DecodeError::unsupported(format!(
                "a page of {values} values (over {MAX_PAGE_VALUES})"
            )));
        }
        let first = !self.started;
        if page.is_dictionary() {
            if !first {
                return Err(DecodeError::corrupt(
                    "column chunk",
                    "has a dictionary page after its first page",
                ));
            }
        } else {
            self.values_left = self.values_left.checked_sub(values.into()).ok_or_else(|| {
                DecodeError::corrupt("column chunk", "has more values in its pages than it says")
            })?;
        }
        self.started = true;
        Ok(())
    }
}

/// A page as it is stored.
#[derive(Clone, Debug)]
pub struct RawPage<'a> {
    /// Never of the kind [`Page::Other`].
    pub header: PageHeader,
    /// What follows the header, as it is stored.
    pub body: &'a [u8],
    codec: Codec,
}

impl<'a> RawPage<'a> {
    /// Whether this is the dictionary page.
    pub fn is_dictionary(&self) -> bool {
        matches!(self.header.page, Page::Dictionary { .. })
    }

    /// How many values it has: of a data page, nulls and list placeholders counted.
    pub fn num_values(&self) -> u32 {
        match self.header.page {
            Page::DataV1 { num_values, .. }
            | Page::DataV2 { num_values, .. }
            | Page::Dictionary { num_values, .. } => num_values,
            Page::Other(_) => 0,
        }
    }

    /// How its values are encoded.
    pub fn encoding(&self) -> Encoding {
        match self.header.page {
            Page::DataV1 { encoding, .. }
            | Page::DataV2 { encoding, .. }
            | Page::Dictionary { encoding, .. } => encoding,
            Page::Other(number) => Encoding::Other(number),
        }
    }

    /// The page, decompressed: levels, then values.
    pub fn decompress(&self) -> Result<Cow<'a, [u8]>, DecodeError> {
        let size = usize::try_from(self.header.uncompressed_size)
            .map_err(|_| DecodeError::truncated(WHAT))?;
        if let Page::DataV2 {
            def_len,
            rep_len,
            is_compressed,
            ..
        } = self.header.page
        {
            let levels_len = level_bytes(def_len, rep_len)?;
            let (levels, values) = self
                .body
                .split_at_checked(levels_len)
                .ok_or_else(|| DecodeError::truncated("page levels"))?;
            if is_compressed && self.codec != Codec::Uncompressed {
                let values_len = size
                    .checked_sub(levels_len)
                    .ok_or_else(|| DecodeError::truncated("page levels"))?;
                let values = decompress(self.codec, values, values_len)?;
                return Ok(Cow::Owned([levels, &values].concat()));
            }
        } else if self.codec != Codec::Uncompressed {
            return decompress(self.codec, self.body, size).map(Cow::Owned);
        }
        if self.body.len() != size {
            let reason = format!(
                "is not compressed, but takes {} bytes and states {size}",
                self.body.len()
            );
            return Err(DecodeError::corrupt(WHAT, reason));
        }
        Ok(Cow::Borrowed(self.body))
    }

    /// As [`RawPage::decompress`], in memory that is used again for each page.
    pub fn decompress_with<'s>(
        &self,
        scratch: &'s mut Scratch,
    ) -> Result<Cow<'s, [u8]>, DecodeError>
    where
        'a: 's,
    {
        if matches!(self.header.page, Page::DataV2 { .. }) || self.codec == Codec::Uncompressed {
            return self.decompress();
        }
        let size = usize::try_from(self.header.uncompressed_size)
            .map_err(|_| DecodeError::truncated(WHAT))?;
        scratch
            .decompress(self.codec, self.body, size)
            .map(Cow::Borrowed)
    }

    /// The first `wanted` bytes of a dictionary page, decompressed, or more of it: fewer only where it has no more.
    pub fn decompress_front(&self, wanted: usize) -> Result<Cow<'a, [u8]>, DecodeError> {
        let size = usize::try_from(self.header.uncompressed_size)
            .map_err(|_| DecodeError::truncated(WHAT))?;
        if !self.is_dictionary() || self.codec == Codec::Uncompressed {
            return self.decompress();
        }
        decompress_front(self.codec, self.body, size, wanted.min(size)).map(Cow::Owned)
    }

    /// The parts of a data page in `page`, which is the page decompressed. A column whose highest level is 0 has none
    /// stored.
    ///
    /// # Errors
    /// The levels do not lie inside the page, are in an encoding that levels are never in, or this is a dictionary page.
    pub fn split<'p>(
        &self,
        page: &'p [u8],
        max_rep: u16,
        max_def: u16,
    ) -> Result<PageParts<'p>, DecodeError> {
        match self.header.page {
            Page::DataV1 {
                num_values,
                def_encoding,
                rep_encoding,
                ..
            } => {
                let (repetition, rest) = Levels::split_v1(page, num_values, rep_encoding, max_rep)?;
                let (definition, values) =
                    Levels::split_v1(rest, num_values, def_encoding, max_def)?;
                Ok(PageParts {
                    repetition,
                    definition,
                    values,
                })
            }
            Page::DataV2 {
                num_values,
                def_len,
                rep_len,
                ..
            } => {
                let (levels, values) = page
                    .split_at_checked(level_bytes(def_len, rep_len)?)
                    .ok_or_else(|| DecodeError::truncated("page levels"))?;
                let (repetition, definition) = usize::try_from(rep_len)
                    .ok()
                    .and_then(|len| levels.split_at_checked(len))
                    .ok_or_else(|| DecodeError::truncated("page levels"))?;
                Ok(PageParts {
                    repetition: Levels::v2(repetition, num_values, max_rep),
                    definition: Levels::v2(definition, num_values, max_def),
                    values,
                })
            }
            Page::Dictionary { .. } | Page::Other(_) => {
                Err(DecodeError::corrupt(WHAT, "is no data page"))
            }
        }
    }
}

fn level_bytes(def_len: u32, rep_len: u32) -> Result<usize, DecodeError> {
    def_len
        .checked_add(rep_len)
        .and_then(|len| usize::try_from(len).ok())
        .ok_or_else(|| DecodeError::truncated("page levels"))
}

/// What a data page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageParts<'a> {
    /// One for each value.
    pub repetition: Levels<'a>,
    /// One for each value.
    pub definition: Levels<'a>,
    /// Those that are not null, encoded.
    pub values: &'a [u8],
}

/// The repetition or definition levels of a page, encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels<'a> {
    /// Without a length before them. Empty where the highest level is 0.
    pub bytes: &'a [u8],
    /// How many there are.
    pub count: usize,
    /// The highest level of the column.
    pub max: u16,
    /// Whether they are in the deprecated BIT_PACKED encoding, and not in the hybrid of runs.
    pub bit_packed: bool,
}

impl<'a> Levels<'a> {
    fn v2(bytes: &'a [u8], num_values: u32, max: u16) -> Levels<'a> {
        Levels {
            bytes,
            count: num_values as usize,
            max,
            bit_packed: false,
        }
    }

    /// Takes levels off the front of a v1 page's bytes.
    fn split_v1(
        page: &'a [u8],
        num_values: u32,
        encoding: Encoding,
        max: u16,
    ) -> Result<(Levels<'a>, &'a [u8]), DecodeError> {
        const WHAT: &str = "page levels";
        let levels = Levels::v2(&[], num_values, max);
        if max == 0 {
            return Ok((levels, page));
        }
        match encoding {
            Encoding::Rle => {
                let (bytes, rest) = split_length_prefixed(page, WHAT)?;
                Ok((Levels { bytes, ..levels }, rest))
            }
            Encoding::BitPacked => {
                let (bytes, rest) = packed_len(levels.count, levels.width())
                    .and_then(|len| page.split_at_checked(len))
                    .ok_or_else(|| DecodeError::truncated(WHAT))?;
                Ok((
                    Levels {
                        bytes,
                        bit_packed: true,
                        ..levels
                    },
                    rest,
                ))
            }
            other => Err(DecodeError::unsupported(format!(
                "levels in the encoding {other:?}"
            ))),
        }
    }

    /// Bits a level takes: 0 where the highest is 0.
    pub fn width(&self) -> u8 {
        bit_width(self.max.into())
    }

    /// Appends the levels, one for each value, none above the highest.
    pub fn decode(&self, out: &mut Vec<u32>) -> Result<(), DecodeError> {
        let start = out.len();
        if self.max == 0 {
            out.resize(start + self.count, 0);
            return Ok(());
        }
        if self.bit_packed {
            super::bits::unpack_msb_first(self.bytes, self.width(), self.count, out)?;
        } else {
            rle::decode(self.bytes, self.width(), self.count, out)?;
        }
        match out.iter().skip(start).max() {
            Some(highest) if *highest > self.max.into() => {
                let reason = format!("reach {highest}, the schema allows {}", self.max);
                Err(DecodeError::corrupt("page levels", reason))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
