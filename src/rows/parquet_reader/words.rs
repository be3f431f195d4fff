//! Asks a question of every row of a flat column of integers, page by page: of each entry of a dictionary once, and of
//! plain values as they stand in their page. No value is copied, which takes several times as long as asking.

use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::{ParquetReader, guarded};
use crate::packed::runs::{Run, RunReader};
use crate::packed::{bit_width, unpacked};
use crate::rows::file_schema::{Annotation, NodeId, Physical};
use crate::rows::row_bits::RowBits;

/// Rows of a row group that is read here, at most, since each takes a bit.
const MAX_ROWS: usize = 1 << 28;

impl ParquetReader {
    /// Adds the answer for each row of one row group to `answers`, and gives how many times `ask` was asked; null is
    /// answered by `null`. `None`: the column is not of signed integers, or has a page of another kind than writers mostly
    /// write, or a broken one. [`ParquetReader::column`] reads them all, or says what is wrong; `answers` is of no use then.
    pub fn ask_words(
        &self,
        row_group: usize,
        node: NodeId,
        ask: impl Fn(i64) -> bool,
        null: bool,
        answers: &mut RowBits,
    ) -> Option<u64> {
        let chunk = self.chunk(row_group, node).ok()?;
        let width = match (chunk.node.leaf?.physical, chunk.node.annotation) {
            (_, Annotation::Integer { signed: false, .. }) => return None,
            (Physical::Int32, _) => 4,
            (Physical::Int64, _) => 8,
            _ => return None,
        };
        if chunk.rows > MAX_ROWS {
            return None;
        }
        let end = answers.next().checked_add(chunk.rows as u64)?;
        let mut asking = Asking {
            ask,
            null,
            width,
            max_def: chunk.node.max_def,
            end,
            dictionary: Vec::new(),
            asked: 0,
            answers,
        };
        let mut pages = chunk.pages;
        while asking.answers.next() < end {
            let page = guarded(&self.path, || pages.get_next_page()).ok()??;
            asking.page(&page)?;
        }
        Some(asking.asked)
    }
}

struct Asking<'a, F> {
    ask: F,
    null: bool,
    /// Bytes of a value.
    width: usize,
    max_def: u16,
    /// Position behind the last row.
    end: u64,
    /// The answers for the dictionary's entries.
    dictionary: Vec<bool>,
    asked: u64,
    answers: &'a mut RowBits,
}

impl<F: Fn(i64) -> bool> Asking<'_, F> {
    fn page(&mut self, page: &Page) -> Option<()> {
        let (levels, values, encoding) = match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            } => {
                let len = usize::try_from(*num_values).ok()?.checked_mul(self.width)?;
                self.dictionary = self.plain(buf.get(..len)?).collect();
                self.asked += u64::from(*num_values);
                return Some(());
            }
            Page::DictionaryPage { .. } => return None,
            Page::DataPage { buf, encoding, .. } if self.max_def == 0 => {
                (&[][..], &**buf, encoding)
            }
            Page::DataPage {
                buf,
                encoding,
                def_level_encoding: Encoding::RLE,
                ..
            } => {
                let (len, rest) = buf.split_first_chunk()?;
                let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
                let (levels, values) = rest.split_at_checked(len)?;
                (levels, values, encoding)
            }
            Page::DataPage { .. } => return None,
            Page::DataPageV2 {
                buf,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len: 0,
                ..
            } => {
                let len = usize::try_from(*def_levels_byte_len).ok()?;
                let (levels, values) = buf.split_at_checked(len)?;
                (levels, values, encoding)
            }
            Page::DataPageV2 { .. } => return None,
        };
        let rows = u64::from(page.num_values());
        let end = self.answers.next().checked_add(rows)?;
        if end > self.end {
            return None;
        }
        let rows = usize::try_from(rows).ok()?;
        let present = self.present(levels, rows)?;
        if present == rows {
            let mut answers = std::mem::take(self.answers);
            self.values(values, *encoding, rows, &mut answers)?;
            *self.answers = answers;
        } else {
            let mut answers = RowBits::new(0);
            self.values(values, *encoding, present, &mut answers)?;
            self.spread(levels, rows, &answers)?;
        }
        (self.answers.next() == end).then_some(())
    }

    fn plain<'p>(&'p self, values: &'p [u8]) -> impl Iterator<Item = bool> + 'p {
        // One of the two is empty.
        let (wide, narrow) = match self.width {
            8 => (values.as_chunks::<8>().0, &[][..]),
            _ => (&[][..], values.as_chunks::<4>().0),
        };
        let wide = wide.iter().map(|value| i64::from_le_bytes(*value));
        let narrow = narrow.iter().map(|value| i32::from_le_bytes(*value).into());
        wide.chain(narrow).map(&self.ask)
    }

    /// Adds the answers for the values of a page, those of its rows that have one.
    fn values(
        &mut self,
        values: &[u8],
        encoding: Encoding,
        count: usize,
        answers: &mut RowBits,
    ) -> Option<()> {
        match encoding {
            Encoding::PLAIN => {
                let values = values.get(..count.checked_mul(self.width)?)?;
                answers.extend(self.plain(values));
                self.asked += count as u64;
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY if count > 0 => {
                let (width, indexes) = values.split_first()?;
                let mut runs = RunReader::new(indexes, *width, count).ok()?;
                let entries = self.dictionary.as_slice();
                while let Some(run) = runs.next_run().ok()? {
                    match run {
                        Run::Rle { value, len } => {
                            let answer = *entries.get(usize::try_from(value).ok()?)?;
                            answers.extend(std::iter::repeat_n(answer, len));
                        }
                        Run::Packed { bytes, len } => {
                            let mut all_known = true;
                            answers.extend(unpacked(bytes, *width, len).map(|index| {
                                let answer = entries.get(index as usize).copied();
                                all_known &= answer.is_some();
                                answer.unwrap_or(false)
                            }));
                            if !all_known {
                                return None;
                            }
                        }
                    }
                }
            }
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {}
            _ => return None,
        }
        Some(())
    }

    /// How many of a page's rows have a value.
    fn present(&self, levels: &[u8], rows: usize) -> Option<usize> {
        if self.max_def == 0 {
            return Some(rows);
        }
        let width = bit_width(self.max_def.into());
        let max = u32::from(self.max_def);
        let mut present = 0;
        let mut runs = RunReader::new(levels, width, rows).ok()?;
        while let Some(run) = runs.next_run().ok()? {
            match run {
                Run::Rle { value, .. } if value > max => return None,
                Run::Rle { value, len } => present += if value == max { len } else { 0 },
                Run::Packed { bytes, len } => {
                    for level in unpacked(bytes, width, len) {
                        if level > max {
                            return None;
                        }
                        present += usize::from(level == max);
                    }
                }
            }
        }
        Some(present)
    }

    /// Adds the answer for each of a page's rows, from those for its values.
    fn spread(&mut self, levels: &[u8], rows: usize, values: &RowBits) -> Option<()> {
        let (null, max) = (self.null, u32::from(self.max_def));
        let width = bit_width(max);
        let mut values = values.iter();
        let mut runs = RunReader::new(levels, width, rows).ok()?;
        while let Some(run) = runs.next_run().ok()? {
            match run {
                Run::Rle { value, len } if value == max => {
                    self.answers.extend(values.by_ref().take(len));
                }
                Run::Rle { len, .. } => self.answers.extend(std::iter::repeat_n(null, len)),
                Run::Packed { bytes, len } => {
                    let levels = unpacked(bytes, width, len);
                    self.answers.extend(levels.map(|level| {
                        let value = (level == max).then(|| values.next()).flatten();
                        value.unwrap_or(null)
                    }));
                }
            }
        }
        Some(())
    }
}
