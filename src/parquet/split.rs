//! The row groups of a virtual file: those of its data files, and the large ones that lose rows in several.
//!
//! Whoever looks for one key, or for the first rows, reads whole row groups, and a chunk that is made costs what its
//! pages take to decode. A writer's row group may have a million rows; one that is served as it is stays as it is, and
//! so costs what it costs in the data file. One that is made anew can as well be made in pieces, each a row group of the
//! virtual file, with bounds of its own.
//!
//! Where the pages of a chunk lie is known from their headers, which are all that is read for this. Pieces begin where
//! pages do, in as many columns as may be; a page that two pieces share is decoded for both.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use super::chunk::GroupRows;
use super::clustered::indexed;
use super::levels::LeafPlan;
use super::part::Part;
use super::places::{FoundPage, FoundPages, PageError, PagePlace, find_pages};
use super::target::TargetSchema;
use super::{DecodeError, ParquetError, View};
use crate::rows::file_schema::Physical;

/// Column chunks of a virtual file whose pages are looked for, at most: of larger files the row groups stay whole, since
/// readers skip most of them anyway, and looking would take long.
const MAX_CHUNKS: usize = 1 << 11;

/// Pieces of a row group, about, at most: its footer may claim any number of rows.
const MAX_PIECES: u64 = 128;

/// Which row groups are shown in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splitting {
    /// Rows of a piece, about; a row group has half as many more at least.
    pub rows: u64,
    /// Rows of a page, on average, at least: where pages are shorter it is not worth while to look at each.
    pub page_rows: u64,
    /// By how many percent all pieces may take more bytes than the whole: each has the dictionaries that its pages need.
    pub growth: u64,
}

impl Default for Splitting {
    /// About as many rows as DuckDB writes to a row group.
    fn default() -> Splitting {
        Splitting {
            rows: 1 << 17,
            page_rows: 256,
            growth: 25,
        }
    }
}

/// A row group of a virtual file.
#[derive(Clone, Debug)]
pub struct Group {
    /// Index of the data file in the virtual file.
    pub part: usize,
    /// Index of the row group in the data file.
    pub group: usize,
    /// Its rows, by their position in the data file.
    pub rows: Range<u64>,
    /// Where they stand in each column of the data file that is read, unless they are the whole row group.
    pub spans: Option<Box<[Option<PageSpan>]>>,
}

/// Where some rows of a row group stand in the chunk of a flat column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// The rows, in the row group.
    pub rows: Range<u64>,
    /// The data pages that hold any of them, in the chunk, in bytes.
    pub bytes: Range<u64>,
    /// The first row of these pages, in the row group.
    pub first_row: u64,
    /// The dictionary page, in the chunk, where any of these pages needs it.
    pub dictionary: Option<Range<u64>>,
    /// Bytes of these pages and the dictionary, not compressed, headers included.
    pub size: u64,
    /// Bytes of the dictionary among them.
    pub dictionary_size: u64,
    /// Rows of these pages.
    pub values: u64,
    /// How many pages these are, and the dictionary.
    pub pages: u64,
    /// The least and the greatest value of an integer column in those of the pages that hold no other rows, if they say so.
    /// A row of the other pages may be below or above.
    pub bounds_inside: Option<(i64, i64)>,
}

/// The row groups of a virtual file, in order. One that surely lost all of its rows is none.
pub fn row_groups(view: &View, parts: &[Part], target: &TargetSchema) -> Vec<Group> {
    let indexed: Vec<(usize, &Part)> = parts.iter().enumerate().collect();
    let count = |part: &Part| part.opened.footer.metadata.row_groups.len();
    let chunks = parts.iter().map(count).sum::<usize>() * target.leaves.len();
    let flat = target.leaves.iter().all(|leaf| leaf.max_rep == 0);
    let may_split = flat && chunks <= MAX_CHUNKS;
    let of_part = |(index, part): &(usize, &Part)| {
        let groups = (0..count(part)).flat_map(|group| {
            let whole = Group {
                part: *index,
                group,
                rows: part.rows(group),
                spans: None,
            };
            let pieces = may_split
                .then(|| split(part, &whole, view.splitting))
                .flatten();
            pieces.unwrap_or_else(|| vec![whole])
        });
        let deleted = &part.opened.position_deleted;
        let is_left = |group: &Group| {
            deleted.range_cardinality(group.rows.clone()) < group.rows.end - group.rows.start
        };
        groups.filter(is_left).collect::<Vec<_>>()
    };
    let groups = view.storage.in_parallel(&indexed, of_part);
    groups.into_iter().flatten().collect()
}

/// A row group in pieces, where that is worth while and its pages can be found. What is wrong with its pages is met by
/// who reads them.
fn split(part: &Part, whole: &Group, splitting: Splitting) -> Option<Vec<Group>> {
    let rows = whole.rows.end - whole.rows.start;
    let deleted = &part.opened.position_deleted;
    let is_made = part.has_equality_deletes() || deleted.range_cardinality(whole.rows.clone()) > 0;
    // Every look at a page would be a request to a store.
    if rows < splitting.rows.saturating_add(splitting.rows / 2)
        || !is_made
        || part.opened.file.is_remote()
    {
        return None;
    }
    let columns = pages_of_columns(part, whole, rows / splitting.page_rows.max(1)).ok()??;
    let found = || columns.values();
    let whole_spans = found().map(|found| span(found, 0..rows));
    let size = whole_spans
        .map(|span| Some(span?.size))
        .sum::<Option<u64>>()?;
    let most = size.saturating_add((size / 100).saturating_mul(splitting.growth));
    let mut piece = least_piece(rows, splitting);
    while piece < rows {
        let pieces = cuts(rows, piece, found().flat_map(|found| &found.pages));
        let groups: Vec<Group> = pieces
            .into_iter()
            .map(|rows| in_piece(whole, &columns, rows))
            .collect::<Option<_>>()?;
        let spans = groups.iter().filter_map(|group| group.spans.as_deref());
        let size: u64 = spans.flatten().flatten().map(|span| span.size).sum();
        if size <= most {
            return (groups.len() > 1).then_some(groups);
        }
        piece *= 2;
    }
    None
}

/// Rows of the smallest pieces of a row group of so many rows.
fn least_piece(rows: u64, splitting: Splitting) -> u64 {
    splitting.rows.max(rows / MAX_PIECES).max(1)
}

/// The pages of each column that leaves are made from, by at most so many looks at each. `None`: some leaf is not made from
/// flat columns.
fn pages_of_columns(
    part: &Part,
    whole: &Group,
    most: u64,
) -> Result<Option<BTreeMap<usize, FoundPages>>, ParquetError> {
    let none = roaring::RoaringTreemap::new();
    let rows = GroupRows::new(part, whole, &none);
    let mut columns = BTreeMap::new();
    for leaf in &part.leaves {
        let column = match &leaf.plan {
            LeafPlan::Stored { column, .. } if leaf.stored.is_some_and(|s| s.max_rep == 0) => {
                Some(*column)
            }
            LeafPlan::Stored { .. } => return Ok(None),
            LeafPlan::Missing(missing) if missing.guide.is_some() => return Ok(None),
            LeafPlan::RowId { stored, .. } | LeafPlan::LastUpdated { stored, .. } => *stored,
            LeafPlan::Missing(_) | LeafPlan::Position => None,
        };
        let Some(column) = column.filter(|column| !columns.contains_key(column)) else {
            continue;
        };
        let headers = Cell::new(most);
        let found = rows.with_ranges(column, &[], |chunk, read| {
            let read = |range| match headers.get().checked_sub(1) {
                Some(left) => {
                    headers.set(left);
                    read(range)
                }
                None => Err(PageError::Decode(DecodeError::unsupported("short pages"))),
            };
            find_pages(chunk, &read)
        })?;
        let found = with_index_bounds(found, &rows, column)?;
        columns.insert(column, found);
    }
    Ok((!columns.is_empty()).then_some(columns))
}

/// With the bounds that the file's page index gives, where the headers of an integer column give none.
fn with_index_bounds(
    mut found: FoundPages,
    rows: &GroupRows<'_>,
    column: usize,
) -> Result<FoundPages, ParquetError> {
    let physical = rows.part.chunk(rows.group(), column)?.physical;
    let has_bounds = found.pages.iter().all(|page| page.place.bounds.is_some());
    if has_bounds || !matches!(physical, Physical::Int32 | Physical::Int64) {
        return Ok(found);
    }
    let Some((_, places)) = indexed(rows, column)? else {
        return Ok(found);
    };
    let is_same = |(page, place): (&FoundPage, &PagePlace)| {
        (page.place.first_row, page.place.rows) == (place.first_row, place.rows)
    };
    if places.len() == found.pages.len() && found.pages.iter().zip(&places).all(is_same) {
        for (page, place) in found.pages.iter_mut().zip(places) {
            page.place.bounds = place.bounds;
        }
    }
    Ok(found)
}

/// Row ranges of about `piece` rows, which begin where pages of as many columns as may be do.
fn cuts<'p>(rows: u64, piece: u64, pages: impl Iterator<Item = &'p FoundPage>) -> Vec<Range<u64>> {
    let mut starts: BTreeMap<u64, usize> = BTreeMap::new();
    for page in pages {
        *starts.entry(page.place.first_row).or_default() += 1;
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    // No short piece is left over.
    while rows - at > piece + piece / 2 {
        let here = starts.range(at + piece / 2 + 1..=at + piece);
        let best = here.max_by_key(|(row, columns)| (**columns, **row));
        let end = best.map_or(at + piece, |(row, _)| *row);
        pieces.push(at..end);
        at = end;
    }
    pieces.push(at..rows);
    pieces
}

/// A piece of a row group; `rows` are counted from its first.
fn in_piece(
    whole: &Group,
    columns: &BTreeMap<usize, FoundPages>,
    rows: Range<u64>,
) -> Option<Group> {
    let last = *columns.keys().next_back()?;
    let mut spans = vec![None; last + 1];
    for (column, pages) in columns {
        *spans.get_mut(*column)? = Some(span(pages, rows.clone())?);
    }
    Some(Group {
        rows: whole.rows.start + rows.start..whole.rows.start + rows.end,
        spans: Some(spans.into()),
        ..whole.clone()
    })
}

/// Where rows stand in a chunk with these pages.
fn span(found: &FoundPages, rows: Range<u64>) -> Option<PageSpan> {
    let pages = &found.pages;
    let place = |page: &FoundPage| page.place.first_row..page.place.first_row + page.place.rows;
    let from = pages.partition_point(|page| place(page).end <= rows.start);
    let until = pages.partition_point(|page| place(page).start < rows.end);
    let here = pages.get(from..until)?;
    let (first, last) = (&here.first()?.place, &here.last()?.place);
    let needs_dictionary = here.iter().any(|page| page.encoding.is_dictionary());
    let dictionary = found.dictionary.as_ref().filter(|_| needs_dictionary);
    let dictionary_size = dictionary.map_or(0, |(_, size)| *size);
    let size = here.iter().map(|page| page.size).sum::<u64>();
    let is_inside = |page: &&FoundPage| {
        let page = place(page);
        rows.start <= page.start && page.end <= rows.end
    };
    let inside = here.iter().filter(is_inside);
    let bounds_inside = inside.map(|page| page.place.bounds).reduce(|all, page| {
        let (all, page) = (all?, page?);
        Some((all.0.min(page.0), all.1.max(page.1)))
    });
    Some(PageSpan {
        bounds_inside: bounds_inside.flatten(),
        bytes: first.bytes.start..last.bytes.end,
        first_row: first.first_row,
        dictionary: dictionary.map(|(place, _)| place.clone()),
        size: size + dictionary_size,
        dictionary_size,
        values: here.iter().map(|page| page.place.rows).sum(),
        pages: here.len() as u64 + u64::from(dictionary.is_some()),
        rows,
    })
}

#[cfg(test)]
mod tests;
