//! The bounds of single pages: in the page index, which also says where pages are, and in page headers.

use super::read;
use crate::parquet::DecodeError;
use crate::parquet::thrift::Reader;

const WHAT: &str = "page index";

/// `PageLocation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLocation {
    /// In the file, in bytes.
    pub offset: i64,
    /// Bytes, the header included.
    pub size: i32,
    /// In the row group.
    pub first_row: i64,
}

/// Reads an `OffsetIndex`: a location for each data page.
pub fn offset_index(bytes: &[u8]) -> Result<Vec<PageLocation>, DecodeError> {
    let mut pages = None;
    Reader::new(bytes).fields(|reader, field| {
        if field.id != 1 {
            return reader.skip(field);
        }
        pages = Some(reader.list(field, |reader, element| {
            let (mut offset, mut size, mut first_row) = (None, None, None);
            reader.structure(element, |reader, field| {
                match field.id {
                    1 => offset = Some(reader.i64(field)?),
                    2 => size = Some(reader.i32(field)?),
                    3 => first_row = Some(reader.i64(field)?),
                    _ => reader.skip(field)?,
                }
                Ok(())
            })?;
            match (offset, size, first_row) {
                (Some(offset), Some(size), Some(first_row)) => Ok(PageLocation {
                    offset,
                    size,
                    first_row,
                }),
                _ => Err(DecodeError::corrupt(WHAT, "an incomplete location")),
            }
        })?);
        Ok(())
    })?;
    pages.ok_or_else(|| DecodeError::corrupt(WHAT, "without locations"))
}

/// The bounds of a page's values in PLAIN encoding; `None` where all are null.
pub type PageBounds<'a> = Option<(&'a [u8], &'a [u8])>;

/// Reads a `ColumnIndex`: bounds for each data page.
pub fn column_index(bytes: &[u8]) -> Result<Vec<PageBounds<'_>>, DecodeError> {
    let (mut nulls, mut least, mut greatest) = (Vec::new(), Vec::new(), Vec::new());
    Reader::new(bytes).fields(|reader, field| {
        match field.id {
            1 => nulls = reader.list(field, |reader, element| reader.bool(element))?,
            2 => least = reader.list(field, |reader, element| reader.binary(element))?,
            3 => greatest = reader.list(field, |reader, element| reader.binary(element))?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    if nulls.len() != least.len() || nulls.len() != greatest.len() {
        return Err(DecodeError::corrupt(WHAT, "lists of unequal lengths"));
    }
    let pages = nulls.iter().zip(least.into_iter().zip(greatest));
    Ok(pages
        .map(|(null, bounds)| Some(bounds).filter(|_| !null))
        .collect())
}

/// The bounds that the page header at the front of `bytes` states, where it does: of the page's values, in PLAIN
/// encoding.
pub fn page_header_bounds(bytes: &[u8]) -> Option<[Box<[u8]>; 2]> {
    let mut found = None;
    let outcome = Reader::new(bytes).fields(|reader, field| {
        // `DataPageHeader` and `DataPageHeaderV2`, with their `Statistics`.
        let statistics = match field.id {
            5 => 5,
            8 => 8,
            _ => return reader.skip(field),
        };
        reader.structure(field, |reader, field| {
            if field.id != statistics {
                return reader.skip(field);
            }
            let stated = read::statistics(reader, field)?;
            found = stated.min_value.zip(stated.max_value).map(<[_; 2]>::from);
            Ok(())
        })
    });
    outcome.ok().and(found)
}
