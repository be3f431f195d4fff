//! Where the pages of a flat column chunk lie: what their headers say, or the file's page index.

use std::borrow::Cow;
use std::ops::Range;

use super::format::{Encoding, Page, PageHeader, page_header_bounds};
use super::integers::integer;
use super::transcode::StoredChunk;
use super::{DecodeError, ParquetError};

const WHAT: &str = "column chunk";

/// A data page, not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// In the chunk, its header included.
    pub bytes: Range<u64>,
    /// In the row group.
    pub first_row: u64,
    pub rows: u64,
    /// No value of it is below the first or above the second, where that is known.
    pub bounds: Option<(i64, i64)>,
}

/// The pages of a chunk, not decoded.
#[derive(Clone, Debug, Default)]
pub struct FoundPages {
    /// The dictionary page: where it is, and its [`FoundPage::size`].
    pub dictionary: Option<(Range<u64>, u64)>,
    /// Data pages, whose rows follow each other.
    pub pages: Vec<FoundPage>,
}

/// A data page by its header.
#[derive(Clone, Debug)]
pub struct FoundPage {
    pub place: PagePlace,
    /// Bytes, not compressed, the header included.
    pub size: u64,
    pub encoding: Encoding,
}

impl FoundPages {
    /// The places of the dictionary and the data pages.
    pub fn places(self) -> (Option<Range<u64>>, Vec<PagePlace>) {
        let pages = self.pages.into_iter().map(|page| page.place);
        (self.dictionary.map(|(place, _)| place), pages.collect())
    }
}

/// Why pages cannot be decoded: what is in them, or reading them.
#[derive(Debug)]
pub enum PageError {
    Decode(DecodeError),
    Read(ParquetError),
}

impl From<DecodeError> for PageError {
    fn from(error: DecodeError) -> PageError {
        PageError::Decode(error)
    }
}

/// Gives a range of a chunk's bytes.
pub type ReadRange<'a> = &'a (dyn Fn(Range<u64>) -> Result<Cow<'a, [u8]>, PageError> + 'a);

/// Bytes that mostly hold a page's header, with its statistics.
pub const HEADER_READ: u64 = 256;

/// Bytes of a page, at most, behind which the headers of some pages are read at once.
const SHORT_PAGE: u64 = 12 << 10;

/// So many bytes are read then.
const HEADERS_READ: u64 = 64 << 10;

/// The pages of a flat chunk by their headers, and no more than these is read. What they hold is checked when they are
/// decoded.
pub fn find_pages(chunk: StoredChunk<'_>, read: ReadRange<'_>) -> Result<FoundPages, PageError> {
    let mut found = FoundPages::default();
    let mut headers = Headers::new(read);
    let (mut row, mut at) = (0, 0);
    while row < chunk.rows {
        let (bytes, header) = headers.at(chunk, at)?;
        let len = bytes.len() as u64;
        let end = (at.saturating_add(len)).saturating_add(u64::from(header.compressed_size));
        let size = len + u64::from(header.uncompressed_size);
        if end > chunk.len {
            return Err(DecodeError::truncated(WHAT).into());
        }
        match header.page {
            Page::Dictionary { .. } if at == 0 => {
                found.dictionary = Some((at..end, size));
            }
            Page::Dictionary { .. } => {
                let reason = "has a dictionary page after its first page";
                return Err(DecodeError::corrupt(WHAT, reason).into());
            }
            Page::DataV1 { num_values: 0, .. } | Page::DataV2 { num_values: 0, .. } => {}
            Page::DataV1 {
                num_values,
                encoding,
                ..
            }
            | Page::DataV2 {
                num_values,
                encoding,
                ..
            } => {
                let rows = u64::from(num_values);
                let bounds = page_header_bounds(bytes);
                found.pages.push(FoundPage {
                    place: PagePlace {
                        bytes: at..end,
                        first_row: row,
                        rows,
                        bounds: bounds.and_then(|[least, greatest]| {
                            Some((integer(&least)?, integer(&greatest)?))
                        }),
                    },
                    size,
                    encoding,
                });
                row += rows;
            }
            Page::Other(_) => {}
        }
        at = end;
    }
    if row == chunk.rows {
        return Ok(found);
    }
    let reason = format!("holds {row} rows, its row group {}", chunk.rows);
    Err(DecodeError::corrupt(WHAT, reason).into())
}

/// Reads page headers, in the order of the pages.
struct Headers<'r> {
    read: ReadRange<'r>,
    /// Bytes of the chunk, from `start` on.
    bytes: Cow<'r, [u8]>,
    start: u64,
    /// Where the last header was asked for.
    last: u64,
}

impl<'r> Headers<'r> {
    fn new(read: ReadRange<'r>) -> Headers<'r> {
        Headers {
            read,
            bytes: Cow::Borrowed(&[]),
            start: 0,
            last: 0,
        }
    }

    /// The page header that stands at `at`, with its bytes.
    fn at(&mut self, chunk: StoredChunk<'_>, at: u64) -> Result<(&[u8], PageHeader), PageError> {
        let left = chunk.len.saturating_sub(at);
        let is_short = at > 0 && at - self.last <= SHORT_PAGE;
        self.last = at;
        let mut len = if is_short { HEADERS_READ } else { HEADER_READ }.min(left);
        let mut skipped = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        let header = loop {
            match PageHeader::parse(self.bytes.get(skipped..).unwrap_or_default()) {
                Ok(header) => break header,
                Err(error) if skipped == 0 && self.bytes.len() as u64 == left => {
                    return Err(error.into());
                }
                // It may go on behind them.
                Err(_) if skipped == 0 && !self.bytes.is_empty() => {
                    len = len.saturating_mul(16).min(left);
                }
                Err(_) => {}
            }
            self.bytes = (self.read)(at..at.saturating_add(len))?;
            (self.start, skipped) = (at, 0);
        };
        let (header, len) = header;
        let bytes = self.bytes.get(skipped..).unwrap_or_default();
        Ok((bytes.get(..len).unwrap_or_default(), header))
    }
}
