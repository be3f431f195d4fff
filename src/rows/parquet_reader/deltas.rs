//! Pages of 32-bit integers in DELTA_BINARY_PACKED, decoded before the `parquet` crate sees them: it refuses the widths
//! that DuckDB packs them in.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

use crate::packed::decode_delta;

/// Values of a page that is decoded here, at most; those of larger ones would take too much memory at once.
const MAX_VALUES: u32 = 1 << 24;

/// The pages of a flat column of 32-bit integers, such pages as PLAIN ones.
pub struct DeltasAsPlain<P> {
    pub pages: P,
    pub max_def: u16,
}

impl<P: PageReader> PageReader for DeltasAsPlain<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| plain(page, self.max_def)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl<P: PageReader> Iterator for DeltasAsPlain<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// The page with its values in PLAIN encoding, where they are deltas.
fn plain(mut page: Page, max_def: u16) -> Result<Page> {
    let (buf, encoding, num_values, levels) = match &mut page {
        Page::DataPage {
            buf,
            encoding,
            num_values,
            def_level_encoding,
            ..
        } => {
            if max_def > 0 && *def_level_encoding != Encoding::RLE {
                return Ok(page);
            }
            // Of version 1: the levels' length, then they.
            let len = buf.first_chunk().map(|len| u32::from_le_bytes(*len));
            let levels = match max_def {
                0 => Some(0),
                _ => len.and_then(|len| len.checked_add(4)),
            };
            (buf, encoding, *num_values, levels)
        }
        Page::DataPageV2 {
            buf,
            encoding,
            num_values,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => {
            let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len);
            (buf, encoding, *num_values, levels)
        }
        _ => return Ok(page),
    };
    if *encoding != Encoding::DELTA_BINARY_PACKED || num_values > MAX_VALUES {
        return Ok(page);
    }
    let short = || ParquetError::EOF("a page that ends in its levels".to_owned());
    let levels = levels.and_then(|len| usize::try_from(len).ok());
    let (levels, values) = levels
        .and_then(|len| buf.split_at_checked(len))
        .ok_or_else(short)?;
    let max = usize::try_from(num_values).unwrap_or(usize::MAX);
    let (values, _) = match values {
        // Of nothing but nulls.
        [] => (Vec::new(), 0),
        _ => decode_delta(values, max).map_err(|error| ParquetError::General(error.to_string()))?,
    };
    let mut out = levels.to_vec();
    // The lower half is the value.
    out.extend(
        values
            .iter()
            .flat_map(|value| (*value as i32).to_le_bytes()),
    );
    (*buf, *encoding) = (Bytes::from(out), Encoding::PLAIN);
    Ok(page)
}
