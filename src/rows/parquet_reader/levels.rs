//! Pages whose levels the `parquet` crate would misread are refused.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// The pages of a flat column. An error instead of one whose definition levels are in the encoding BIT_PACKED, which is
/// deprecated: its bits begin at the most significant one of a byte, and the crate begins at the least, so that it takes
/// other rows for null.
pub struct KnownLevels<P> {
    pub pages: P,
    pub max_def: u16,
}

impl<P: PageReader> PageReader for KnownLevels<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(Page::DataPage {
            def_level_encoding, ..
        }) = &page
            && self.max_def > 0
            && *def_level_encoding != Encoding::RLE
        {
            let feature = format!("levels of key columns in the encoding {def_level_encoding}");
            return Err(ParquetError::NYI(feature));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl<P: PageReader> Iterator for KnownLevels<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    struct One(Option<Page>);

    impl PageReader for One {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    impl Iterator for One {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    fn read(def_level_encoding: Encoding, max_def: u16) -> Result<Option<Page>> {
        let page = Page::DataPage {
            buf: vec![0b1010_0000].into(),
            num_values: 3,
            encoding: Encoding::PLAIN,
            def_level_encoding,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let pages = One(Some(page));
        KnownLevels { pages, max_def }.get_next_page()
    }

    #[test]
    #[expect(deprecated, reason = "files of old writers may have it")]
    fn levels_that_would_be_misread_are_refused() {
        assert!(matches!(
            read(Encoding::BIT_PACKED, 1),
            Err(ParquetError::NYI(_))
        ));
        // A required column has none, whatever its pages name.
        assert!(read(Encoding::BIT_PACKED, 0).unwrap().is_some());
        assert!(read(Encoding::RLE, 1).unwrap().is_some());
    }
}
