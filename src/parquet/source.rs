//! The footer of a data file: read in one or two reads, checked, and its schema made a tree.
//!
//! What a [`SourceFooter`] says can be relied on: every column chunk lies inside the file and before the footer, row
//! counts add up, every row group has a chunk for each leaf, of the leaf's physical type, and nothing is encrypted or
//! lies in another file. Whatever does not hold is an error here, not a surprise later.

use std::ops::Range;

use super::{DecodeError, ParquetError};
use crate::counters::Counters;
use crate::rows::file_schema::{FileLeaf, FileNode, FileSchema, NodeId, Repetition};
use crate::storage::SourceFile;

use super::format::{ColumnChunk, FileMetaData, MAX_SCHEMA_DEPTH, SchemaElement};

/// Bytes read from a file's end before its footer's length is known. Holds most footers whole.
const TAIL: u64 = 64 << 10;

/// The largest footer that is read, in bytes. The largest seen in the wild are some tens of MiB.
const MAX_FOOTER: u64 = 512 << 20;

/// Rows of a row group, at most, as with parquet-mr. Row ids are made for as many as the footer claims.
const MAX_GROUP_ROWS: i64 = i32::MAX as i64;

/// After the footer: its length (4 bytes, little endian) and `PAR1`.
const TRAILER: u64 = 8;

/// The magic at a file's start.
const MAGIC_LEN: u64 = 4;

const WHAT: &str = "Parquet footer";

/// A data file's footer, checked.
#[derive(Debug)]
pub struct SourceFooter {
    /// What the footer says.
    pub metadata: FileMetaData,
    /// Its schema as a tree.
    pub schema: FileSchema,
    /// Bytes of the whole file.
    pub len: u64,
    /// Where the footer starts: all chunks lie before it.
    pub footer_start: u64,
}

impl SourceFooter {
    /// Reads the footer of a Parquet file: one read, or two where it is longer than 64 KiB.
    ///
    /// # Errors
    /// The file cannot be read, is no Parquet file, is encrypted, or its footer breaks the format.
    pub fn read(file: &SourceFile, counters: &Counters) -> Result<SourceFooter, ParquetError> {
        let named = |error: DecodeError| error.in_file(file.path());
        let len = file.len();
        let tail_len = len.min(TAIL);
        let tail = file.read_range(len - tail_len, tail_len)?;
        let footer_len = footer_len(&tail, len).map_err(named)?;
        let footer = match end_of(&tail, footer_len) {
            Some(footer) => SourceFooter::parse(footer, len),
            None => {
                let footer = file.read_range(len - TRAILER - footer_len, footer_len)?;
                SourceFooter::parse(&footer, len)
            }
        };
        let footer = footer.map_err(named)?;
        counters.footers_read.add(1);
        Ok(footer)
    }

    /// Checks a footer (without its length and magic) of a file of `len` bytes.
    fn parse(footer: &[u8], len: u64) -> Result<SourceFooter, DecodeError> {
        let metadata = FileMetaData::parse(footer)?;
        if metadata.encrypted {
            return Err(DecodeError::unsupported("Parquet modular encryption"));
        }
        let footer_start = len.saturating_sub(TRAILER + footer.len() as u64);
        SourceFooter::checked(metadata, footer_start, len)
    }

    /// Checks what the footer of a file of `len` bytes says, whose chunks must all lie before `footer_start`.
    pub fn checked(
        metadata: FileMetaData,
        footer_start: u64,
        len: u64,
    ) -> Result<SourceFooter, DecodeError> {
        let schema = file_schema(&metadata.schema)?;
        let footer = SourceFooter {
            footer_start,
            metadata,
            schema,
            len,
        };
        footer.check_rows()?;
        footer.check_writer()?;
        for group in &footer.metadata.row_groups {
            for (chunk, leaf) in group.columns.iter().zip(&footer.schema.leaves) {
                let node = footer.schema.nodes.get(*leaf);
                footer.check_chunk(
                    chunk,
                    group.num_rows,
                    node.is_some_and(|node| node.max_rep > 0),
                )?;
            }
        }
        Ok(footer)
    }

    /// Where a column chunk's bytes lie in the file: its dictionary page, if there is one, and its data pages. Never
    /// past [`SourceFooter::footer_start`]. `None` for a row group or column that is not there.
    pub fn chunk_range(&self, row_group: usize, column: usize) -> Option<Range<u64>> {
        self.range_of(
            self.metadata
                .row_groups
                .get(row_group)?
                .columns
                .get(column)?,
        )
    }

    /// Memory taken, in bytes, about.
    pub fn weight(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let bytes = |bytes: &Option<Box<[u8]>>| bytes.as_ref().map_or(0, |bytes| bytes.len());
        let chunks = self
            .metadata
            .row_groups
            .iter()
            .flat_map(|group| &group.columns)
            .map(|chunk| {
                let statistics = chunk.statistics.as_ref().map_or(0, |statistics| {
                    bytes(&statistics.max)
                        + bytes(&statistics.min)
                        + bytes(&statistics.max_value)
                        + bytes(&statistics.min_value)
                });
                size_of::<ColumnChunk>()
                    + 8 * chunk.encodings.len()
                    + 16 * chunk.encoding_stats.len()
                    + statistics
            });
        let nodes = self.metadata.schema.iter().map(|element| {
            // The name is there twice, and so is each node's index.
            size_of::<SchemaElement>()
                + size_of::<FileNode>()
                + 2 * element.name.len()
                + 2 * size_of::<NodeId>()
        });
        let pairs = self
            .metadata
            .key_value_metadata
            .iter()
            .map(|(key, value)| 48 + key.len() + text(value));
        size_of::<SourceFooter>()
            + chunks.sum::<usize>()
            + nodes.sum::<usize>()
            + pairs.sum::<usize>()
    }

    fn check_rows(&self) -> Result<(), DecodeError> {
        let mut rows = 0i64;
        for group in &self.metadata.row_groups {
            if group.num_rows < 0 {
                return Err(DecodeError::corrupt(
                    WHAT,
                    format!("a row group has {} rows", group.num_rows),
                ));
            }
            if group.num_rows > MAX_GROUP_ROWS {
                let feature = format!("a row group of {} rows", group.num_rows);
                return Err(DecodeError::unsupported(feature));
            }
            rows = rows
                .checked_add(group.num_rows)
                .ok_or_else(|| DecodeError::corrupt(WHAT, "the number of rows overflows"))?;
        }
        if rows != self.metadata.num_rows {
            let said = self.metadata.num_rows;
            return Err(DecodeError::corrupt(
                WHAT,
                format!("says {said} rows, its row groups hold {rows}"),
            ));
        }
        Ok(())
    }

    /// parquet-mr before 1.2.9 left the dictionary page's header out of a chunk's size (PARQUET-816), so such a chunk
    /// ends nobody knows where.
    fn check_writer(&self) -> Result<(), DecodeError> {
        let mut chunks = self
            .metadata
            .row_groups
            .iter()
            .flat_map(|group| &group.columns);
        match &self.metadata.created_by {
            Some(writer)
                if misstates_sizes(writer) && chunks.any(|chunk| dictionary(chunk).is_some()) =>
            {
                Err(DecodeError::unsupported(format!(
                    "a file with dictionaries written by {writer:?} (PARQUET-816)"
                )))
            }
            _ => Ok(()),
        }
    }

    fn check_chunk(
        &self,
        chunk: &ColumnChunk,
        rows: i64,
        repeated: bool,
    ) -> Result<(), DecodeError> {
        let corrupt = |reason: String| Err(DecodeError::corrupt("column chunk", reason));
        if chunk.encrypted {
            return Err(DecodeError::unsupported("Parquet modular encryption"));
        }
        if let Some(path) = &chunk.file_path {
            return Err(DecodeError::unsupported(format!(
                "a column chunk in another file ({path:?})"
            )));
        }
        // A row has exactly one value of a flat column, and at least one entry of a repeated one.
        if chunk.num_values < rows || (chunk.num_values > rows && !repeated) {
            return corrupt(format!("has {} values for {rows} rows", chunk.num_values));
        }
        if chunk.total_uncompressed_size < 0 {
            return corrupt(format!(
                "has uncompressed size {}",
                chunk.total_uncompressed_size
            ));
        }
        // A chunk without values may lie nowhere (arrow-rs writes an offset of 0): it is never read.
        if chunk.num_values > 0 && self.range_of(chunk).is_none() {
            return corrupt(format!(
                "{} bytes from {} (dictionary: {:?}) do not lie between the file's start and its footer at {}",
                chunk.total_compressed_size,
                chunk.data_page_offset,
                chunk.dictionary_page_offset,
                self.footer_start
            ));
        }
        Ok(())
    }

    /// `None` where the chunk does not lie wholly before the footer.
    fn range_of(&self, chunk: &ColumnChunk) -> Option<Range<u64>> {
        let start = u64::try_from(dictionary(chunk).unwrap_or(chunk.data_page_offset)).ok()?;
        let size = u64::try_from(chunk.total_compressed_size).ok()?;
        let end = start.checked_add(size)?;
        if end > self.footer_start || (size > 0 && start < MAGIC_LEN) {
            return None;
        }
        Some(start..end)
    }
}

/// Where a chunk's dictionary page starts, if it has one. parquet-mr writes 0 for "no dictionary"; other writers give an
/// offset although the chunk has none.
fn dictionary(chunk: &ColumnChunk) -> Option<i64> {
    chunk
        .dictionary_page_offset
        .filter(|offset| *offset > 0 && *offset < chunk.data_page_offset)
}

/// The last `len` bytes before the trailer; `None` where `tail` does not hold them all.
fn end_of(tail: &[u8], len: u64) -> Option<&[u8]> {
    let end = tail.len().checked_sub(TRAILER as usize)?;
    let start = end.checked_sub(usize::try_from(len).ok()?)?;
    tail.get(start..end)
}

/// The footer's length in bytes, from the last bytes of a file of `len` bytes.
fn footer_len(tail: &[u8], len: u64) -> Result<u64, DecodeError> {
    const FILE: &str = "Parquet file";
    let Some((rest, magic)) = tail.split_last_chunk::<4>() else {
        return Err(DecodeError::corrupt(
            FILE,
            format!("has {len} bytes, too few for any Parquet file"),
        ));
    };
    match magic {
        b"PAR1" => {}
        b"PARE" => {
            return Err(DecodeError::unsupported(
                "Parquet modular encryption (of the footer)",
            ));
        }
        _ => {
            return Err(DecodeError::corrupt(
                FILE,
                format!("ends in {magic:02x?}, not in `PAR1`"),
            ));
        }
    }
    let Some((_, footer)) = rest.split_last_chunk::<4>() else {
        return Err(DecodeError::corrupt(
            FILE,
            format!("has {len} bytes, too few for any Parquet file"),
        ));
    };
    let footer = u64::from(u32::from_le_bytes(*footer));
    if footer > MAX_FOOTER {
        return Err(DecodeError::unsupported(format!(
            "a footer of {footer} bytes (over {MAX_FOOTER})"
        )));
    }
    if footer + TRAILER + MAGIC_LEN > len {
        return Err(DecodeError::corrupt(
            FILE,
            format!("of {len} bytes claims a footer of {footer}"),
        ));
    }
    Ok(footer)
}

/// Whether `created_by` names parquet-mr before 1.2.9.
fn misstates_sizes(created_by: &str) -> bool {
    let Some(version) = created_by.strip_prefix("parquet-mr version ") else {
        return created_by == "parquet-mr";
    };
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next()) < (1, 2, 9)
}

/// The schema as a tree, from its nodes in depth-first order.
fn file_schema(elements: &[SchemaElement]) -> Result<FileSchema, DecodeError> {
    const WHAT: &str = "Parquet schema";
    let corrupt = |reason: String| DecodeError::corrupt(WHAT, reason);
    let Some((root, elements)) = elements.split_first() else {
        return Err(corrupt("has no root".into()));
    };
    if root.physical.is_some() {
        return Err(corrupt("its root is a column".into()));
    }
    let mut schema = FileSchema::default();
    // The groups we are in (`None`: the root), each with how many of its children are still to come.
    let mut open: Vec<(Option<NodeId>, i32)> = vec![(None, root.num_children.unwrap_or(0))];
    for element in elements {
        while open.last().is_some_and(|(_, left)| *left <= 0) {
            open.pop();
        }
        let depth = open.len();
        let Some((parent, left)) = open.last_mut() else {
            return Err(corrupt(format!("`{}` has no parent", element.name)));
        };
        *left -= 1;
        let parent = *parent;
        let id = schema.nodes.len();
        let repetition = element
            .repetition
            .ok_or_else(|| corrupt(format!("`{}` has no repetition type", element.name)))?;
        let (mut max_def, mut max_rep) = (0, 0);
        match parent.map(|parent| schema.nodes.get_mut(parent)) {
            Some(Some(parent)) => {
                parent.children.push(id);
                (max_def, max_rep) = (parent.max_def, parent.max_rep);
            }
            Some(None) => return Err(corrupt(format!("`{}` has no parent", element.name))),
            None => schema.roots.push(id),
        }
        max_def += u16::from(repetition != Repetition::Required);
        max_rep += u16::from(repetition == Repetition::Repeated);
        let children = element.num_children.unwrap_or(0);
        let leaf = match element.physical {
            Some(_) if children > 0 => {
                return Err(corrupt(format!(
                    "the column `{}` has children",
                    element.name
                )));
            }
            Some(physical) => {
                schema.leaves.push(id);
                Some(FileLeaf {
                    column: schema.leaves.len() - 1,
                    physical,
                })
            }
            None if depth >= MAX_SCHEMA_DEPTH => {
                return Err(corrupt(format!(
                    "is more than {MAX_SCHEMA_DEPTH} levels deep"
                )));
            }
            None => {
                open.push((Some(id), children));
                None
            }
        };
        schema.nodes.push(FileNode {
            name: element.name.clone(),
            field_id: element.field_id,
            repetition,
            parent,
            children: Vec::new(),
            annotation: element.annotation,
            leaf,
            max_def,
            max_rep,
        });
    }
    match open.iter().find(|(_, left)| *left > 0) {
        Some((_, left)) => Err(corrupt(format!("ends with {left} nodes missing"))),
        None => Ok(schema),
    }
}

#[cfg(test)]
mod tests;
