//! Where every piece of a text begins, as far as that is known yet, and where it is kept.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use super::TextError;
use super::spill::Place;

/// Pieces that wait in memory for those before them, at most; beyond that they are rendered again when they are read.
const MAX_UNPLACED: usize = 64;

/// Strips of a text, at most, of some 100 bytes of memory each: those of eight thousand million rows, or of some terabytes.
const MAX_STRIPS: u64 = 1 << 20;

/// A row group's rows, and how many of them a strip has.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupRows {
    pub(super) rows: u64,
    /// At least one.
    pub(super) strip: u64,
}

/// Whether a text of these row groups has no more rows than a text may have. A footer may claim any number of them.
pub(super) fn check_rows(row_groups: &[GroupRows]) -> Result<(), TextError> {
    let sum =
        |count: fn(&GroupRows) -> u64| row_groups.iter().map(count).fold(0, u64::saturating_add);
    if sum(|group| group.rows.div_ceil(group.strip.max(1))) > MAX_STRIPS {
        return Err(TextError::Long {
            rows: sum(|group| group.rows),
        });
    }
    Ok(())
}

/// A range of rows of one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strip {
    pub(super) group: usize,
    /// In the row group.
    pub(super) rows: Range<u64>,
}

/// The text of some rows of a strip.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// In the row group.
    pub(super) rows: Range<u64>,
    /// Bytes.
    pub(super) len: u64,
    pub(super) kept: Kept,
}

/// Where the text of a piece is.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// Nowhere but perhaps in the cache.
    No,
    /// In memory, until it is known where in the text it stands, and it has been written there.
    Unwritten(Bytes),
    InFile(Place),
}

impl Kept {
    /// Whether the text can be had without rendering it.
    pub(super) fn is_at_hand(&self) -> bool {
        match self {
            Kept::No => false,
            Kept::Unwritten(_) => true,
            Kept::InFile(place) => place.is_kept(),
        }
    }
}

/// A piece that is to be written.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) id: PieceId,
    /// Where it stands in the text, in bytes.
    pub(super) offset: u64,
    pub(super) text: Bytes,
}

/// Which piece of which strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PieceId {
    pub(super) strip: usize,
    pub(super) number: usize,
}

/// What is known of a piece.
#[derive(Clone, Debug)]
pub(super) enum Found {
    Known(Piece),
    /// It begins at this row and has not been rendered.
    Next(u64),
    /// The strip ends before it.
    None,
}

/// Where a byte of the text lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Location {
    Header,
    /// In a piece that is known.
    Piece {
        id: PieceId,
        inside: u64,
    },
    /// In or behind the first piece that is not known.
    Unknown {
        id: PieceId,
    },
    End,
}

/// All strips of a text, and the pieces that have been rendered.
#[derive(Debug)]
pub(super) struct Index {
    header: u64,
    strips: Vec<Strip>,
    state: Mutex<State>,
    total: OnceLock<u64>,
}

#[derive(Debug)]
struct State {
    strips: Vec<Pieces>,
    /// Where each strip begins, in bytes, up to the first that is not known whole. Never empty.
    starts: Vec<u64>,
    /// Strips that are not known whole.
    unknown: usize,
    /// Pieces that wait to be written, since those before them are not known.
    unplaced: Vec<PieceId>,
}

#[derive(Debug, Default)]
struct Pieces {
    pieces: Vec<Piece>,
    whole: bool,
}

impl Index {
    /// Over these row groups.
    pub(super) fn new(header: u64, row_groups: impl IntoIterator<Item = GroupRows>) -> Index {
        let mut strips = Vec::new();
        for (group, GroupRows { rows, strip }) in row_groups.into_iter().enumerate() {
            let mut start = 0;
            while start < rows {
                let end = start.saturating_add(strip.max(1)).min(rows);
                strips.push(Strip {
                    group,
                    rows: start..end,
                });
                start = end;
            }
        }
        let state = State {
            strips: strips.iter().map(|_| Pieces::default()).collect(),
            starts: vec![header],
            unknown: strips.len(),
            unplaced: Vec::new(),
        };
        let index = Index {
            header,
            strips,
            state: Mutex::new(state),
            total: OnceLock::new(),
        };
        if index.strips.is_empty() {
            index.total.get_or_init(|| header);
        }
        index
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn strips(&self) -> &[Strip] {
        &self.strips
    }

    /// Bytes of the whole text, once known.
    pub(super) fn total(&self) -> Option<u64> {
        self.total.get().copied()
    }

    /// Where the first piece that is not known begins, in bytes; the text's end where all are.
    pub(super) fn known(&self) -> u64 {
        let state = self.lock();
        let start = state.starts.last().copied().unwrap_or(self.header);
        let after = state.strips.get(state.starts.len() - 1);
        let pieces = after.map_or(&[][..], |strip| &strip.pieces);
        pieces
            .iter()
            .map(|piece| piece.len)
            .fold(start, u64::saturating_add)
    }

    /// The first strip that is not known whole, in order.
    pub(super) fn known_strips(&self) -> usize {
        self.lock().starts.len() - 1
    }

    /// Whether a strip's pieces are all known, and need not be rendered to be read.
    pub(super) fn is_at_hand(&self, strip: usize) -> bool {
        let state = self.lock();
        state.strips.get(strip).is_none_or(|strip| {
            strip.whole && strip.pieces.iter().all(|piece| piece.kept.is_at_hand())
        })
    }

    pub(super) fn locate(&self, offset: u64) -> Location {
        if offset < self.header {
            return Location::Header;
        }
        let state = self.lock();
        // The last strip that begins at or before the offset; strips are never empty.
        let strip = state.starts.partition_point(|start| *start <= offset) - 1;
        let Some(pieces) = state.strips.get(strip) else {
            return Location::End;
        };
        let mut start = state.starts.get(strip).copied().unwrap_or(self.header);
        for (number, piece) in pieces.pieces.iter().enumerate() {
            let id = PieceId { strip, number };
            if offset - start < piece.len {
                let inside = offset - start;
                return Location::Piece { id, inside };
            }
            start += piece.len;
        }
        let number = pieces.pieces.len();
        let id = PieceId { strip, number };
        Location::Unknown { id }
    }

    pub(super) fn find(&self, id: PieceId) -> Found {
        let state = self.lock();
        let (Some(strip), Some(pieces)) = (self.strips.get(id.strip), state.strips.get(id.strip))
        else {
            return Found::None;
        };
        match pieces.pieces.get(id.number) {
            Some(piece) => Found::Known(piece.clone()),
            None if pieces.whole => Found::None,
            None => Found::Next(
                pieces
                    .pieces
                    .last()
                    .map_or(strip.rows.start, |last| last.rows.end),
            ),
        }
    }

    /// Notes a piece that has been rendered: the first time, where it ends; later, where it is kept now. Gives the pieces
    /// that are to be written: this one, if it is [`Kept::Unwritten`] and it is known where it stands, and those that
    /// have waited for this one.
    pub(super) fn record(&self, id: PieceId, piece: Piece) -> Result<Vec<Unwritten>, TextError> {
        let Some(strip) = self.strips.get(id.strip) else {
            return Err(TextError::Changed);
        };
        let mut piece = piece;
        let mut state = self.lock();
        if matches!(piece.kept, Kept::Unwritten(_)) {
            if id.strip < state.starts.len() || state.unplaced.len() < MAX_UNPLACED {
                state.unplaced.push(id);
            } else {
                piece.kept = Kept::No;
            }
        }
        let Some(pieces) = state.strips.get_mut(id.strip) else {
            return Err(TextError::Changed);
        };
        let count = pieces.pieces.len();
        match pieces.pieces.get_mut(id.number) {
            Some(known) if known.rows == piece.rows && known.len == piece.len => {
                known.kept = piece.kept;
            }
            None if id.number == count && !pieces.whole => {
                pieces.whole = piece.rows.end >= strip.rows.end;
                let whole = pieces.whole;
                pieces.pieces.push(piece);
                if whole {
                    pieces.pieces.shrink_to_fit();
                    state.unknown -= 1;
                    self.advance(&mut state);
                }
            }
            _ => {
                state.unplaced.retain(|other| *other != id);
                return Err(TextError::Changed);
            }
        }
        Ok(state.placed())
    }

    /// Notes where a piece that was to be written is kept.
    pub(super) fn written(&self, id: PieceId, place: Option<Place>) {
        let mut state = self.lock();
        let pieces = state.strips.get_mut(id.strip).map(|s| &mut s.pieces);
        if let Some(piece) = pieces.and_then(|pieces| pieces.get_mut(id.number)) {
            piece.kept = place.map_or(Kept::No, Kept::InFile);
        }
    }

    /// Notes that a piece is not kept any more where it was.
    pub(super) fn lost(&self, id: PieceId, place: &Place) {
        let mut state = self.lock();
        let pieces = state.strips.get_mut(id.strip).map(|s| &mut s.pieces);
        if let Some(piece) = pieces.and_then(|pieces| pieces.get_mut(id.number))
            && matches!(&piece.kept, Kept::InFile(kept) if kept.is(place))
        {
            piece.kept = Kept::No;
        }
    }

    /// All pieces in order: the row after the last of each, and its bytes.
    pub(super) fn saved(&self) -> Vec<u64> {
        let state = self.lock();
        let pieces = state.strips.iter().flat_map(|strip| &strip.pieces);
        pieces
            .flat_map(|piece| [piece.rows.end, piece.len])
            .collect()
    }

    /// Notes all pieces as [`Index::saved`] gave them, for an index of which nothing is known; whether they fit. Where
    /// they do not, nothing of this index may be used.
    pub(super) fn restore(&self, saved: impl Iterator<Item = u64>) -> bool {
        let mut saved = saved;
        for (number, strip) in self.strips.iter().enumerate() {
            let mut id = PieceId {
                strip: number,
                number: 0,
            };
            let mut start = strip.rows.start;
            while start < strip.rows.end {
                let (Some(end), Some(len)) = (saved.next(), saved.next()) else {
                    return false;
                };
                if end <= start || end > strip.rows.end || len == 0 {
                    return false;
                }
                let rows = start..end;
                let kept = Kept::No;
                if self.record(id, Piece { rows, len, kept }).is_err() {
                    return false;
                }
                start = end;
                id.number += 1;
            }
        }
        saved.next().is_none()
    }

    fn advance(&self, state: &mut State) {
        while let (Some(start), Some(strip)) = (
            state.starts.last(),
            state.strips.get(state.starts.len() - 1),
        ) && strip.whole
        {
            let lens = strip.pieces.iter().map(|piece| piece.len);
            let end = lens.fold(*start, u64::saturating_add);
            state.starts.push(end);
        }
        if state.unknown == 0
            && let Some(end) = state.starts.last()
        {
            self.total.get_or_init(|| *end);
        }
    }
}

impl State {
    /// Takes the pieces that wait to be written and of which it is known now where they stand.
    fn placed(&mut self) -> Vec<Unwritten> {
        let known = self.starts.len();
        let (strips, starts) = (&self.strips, &self.starts);
        let taken = self.unplaced.extract_if(.., |id| id.strip < known);
        let placed = taken.filter_map(|id| {
            let pieces = &strips.get(id.strip)?.pieces;
            let Kept::Unwritten(text) = &pieces.get(id.number)?.kept else {
                return None;
            };
            let before = pieces.iter().take(id.number).map(|piece| piece.len);
            let offset = before.fold(*starts.get(id.strip)?, u64::saturating_add);
            let text = text.clone();
            Some(Unwritten { id, offset, text })
        });
        placed.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Rows of a strip.
    const STRIP_ROWS: u64 = 1000;

    fn over(header: u64, groups: impl IntoIterator<Item = u64>) -> Index {
        let strip = STRIP_ROWS;
        Index::new(
            header,
            groups.into_iter().map(|rows| GroupRows { rows, strip }),
        )
    }

    fn id(strip: usize, number: usize) -> PieceId {
        PieceId { strip, number }
    }

    fn piece(rows: Range<u64>, len: u64) -> Piece {
        Piece {
            rows,
            len,
            kept: Kept::No,
        }
    }

    #[test]
    fn a_text_of_more_rows_than_could_be_rendered_is_refused() {
        let group = |rows, strip| GroupRows { rows, strip };
        assert!(check_rows(&[group(1 << 32, 8192), group(1 << 32, 8192), group(0, 1)]).is_ok());
        let [long, wide] = [group(1 << 34, 8192), group(1 << 21, 1)];
        for groups in [&[long][..], &[wide], &[group(u64::MAX, 8192); 9]] {
            let error = check_rows(groups).unwrap_err();
            assert!(error.is_unsupported(), "{error}");
        }
    }

    #[test]
    fn strips_do_not_cross_row_groups() {
        let index = over(0, [STRIP_ROWS + 1, 0, 5]);
        let rows: Vec<_> = index
            .strips()
            .iter()
            .map(|strip| (strip.group, strip.rows.clone()))
            .collect();
        let expected = [
            (0, 0..STRIP_ROWS),
            (0, STRIP_ROWS..STRIP_ROWS + 1),
            (2, 0..5),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn bytes_are_found_as_far_as_pieces_are_known() {
        let index = over(4, [STRIP_ROWS + 1]);
        assert_eq!(index.locate(3), Location::Header);
        let first = id(0, 0);
        assert_eq!(index.locate(9), Location::Unknown { id: first });
        // The second strip is known first.
        index
            .record(id(1, 0), piece(STRIP_ROWS..STRIP_ROWS + 1, 7))
            .unwrap();
        index.record(first, piece(0..10, 100)).unwrap();
        assert!(matches!(index.find(id(0, 1)), Found::Next(10)));
        assert_eq!((index.total(), index.known()), (None, 104));
        index.record(id(0, 1), piece(10..STRIP_ROWS, 50)).unwrap();
        assert!(matches!(index.find(id(0, 2)), Found::None));
        assert_eq!((index.total(), index.known()), (Some(161), 161));
        let inside = |strip, number, inside| Location::Piece {
            id: id(strip, number),
            inside,
        };
        assert_eq!(index.locate(4), inside(0, 0, 0));
        assert_eq!(index.locate(104), inside(0, 1, 0));
        assert_eq!(index.locate(160), inside(1, 0, 6));
        assert_eq!(index.locate(161), Location::End);
    }

    #[test]
    fn a_piece_that_comes_out_otherwise_the_second_time_is_an_error() {
        let index = over(0, [10]);
        index.record(id(0, 0), piece(0..10, 100)).unwrap();
        index.record(id(0, 0), piece(0..10, 100)).unwrap();
        assert!(index.record(id(0, 0), piece(0..10, 101)).is_err());
    }

    #[test]
    fn an_index_is_restored_whole_or_not_at_all() {
        let groups = [STRIP_ROWS + 1, 5];
        let index = over(4, groups);
        index.record(id(0, 0), piece(0..10, 100)).unwrap();
        index.record(id(0, 1), piece(10..STRIP_ROWS, 50)).unwrap();
        index
            .record(id(1, 0), piece(STRIP_ROWS..STRIP_ROWS + 1, 7))
            .unwrap();
        index.record(id(2, 0), piece(0..5, 9)).unwrap();
        let saved = index.saved();
        let restored = over(4, groups);
        assert!(restored.restore(saved.clone().into_iter()));
        assert_eq!(restored.total(), Some(170));
        assert_eq!(restored.saved(), saved);
        for cut in 0..saved.len() {
            let other = over(4, groups);
            assert!(!other.restore(saved[..cut].iter().copied()));
        }
        let long = saved.iter().copied().chain([1]);
        assert!(!over(4, groups).restore(long));
        assert!(!over(4, [STRIP_ROWS, 5]).restore(saved.into_iter()));
    }

    #[test]
    fn a_piece_is_to_be_written_once_it_is_known_where_it_stands() {
        let index = over(4, [2 * STRIP_ROWS + 1]);
        let unwritten = |rows: Range<u64>, text: &'static [u8]| Piece {
            rows,
            len: text.len() as u64,
            kept: Kept::Unwritten(Bytes::from_static(text)),
        };
        let placed = |unwritten: Vec<Unwritten>| -> Vec<(usize, u64, Bytes)> {
            unwritten
                .into_iter()
                .map(|u| (u.id.strip, u.offset, u.text))
                .collect()
        };
        let (second, third) = (
            STRIP_ROWS..2 * STRIP_ROWS,
            2 * STRIP_ROWS..2 * STRIP_ROWS + 1,
        );
        assert!(
            index
                .record(id(2, 0), unwritten(third, b"third"))
                .unwrap()
                .is_empty()
        );
        assert!(
            index
                .record(id(1, 0), unwritten(second, b"second"))
                .unwrap()
                .is_empty()
        );
        let found = index.find(id(2, 0));
        assert!(matches!(found, Found::Known(piece) if piece.kept.is_at_hand()));
        let now = index.record(id(0, 0), unwritten(0..10, b"a")).unwrap();
        assert_eq!(placed(now), [(0, 4, Bytes::from_static(b"a"))]);
        let mut now = placed(
            index
                .record(id(0, 1), unwritten(10..STRIP_ROWS, b"bc"))
                .unwrap(),
        );
        now.sort();
        let expected = [(0, 5, "bc"), (1, 7, "second"), (2, 13, "third")];
        assert_eq!(
            now,
            expected.map(|(strip, at, text)| (strip, at, Bytes::from(text)))
        );
        index.written(id(0, 0), None);
        assert!(!index.is_at_hand(0) && index.is_at_hand(1));
    }

    #[test]
    fn a_text_without_rows_is_its_header() {
        let index = over(4, []);
        assert_eq!(index.total(), Some(4));
        assert_eq!(index.locate(4), Location::End);
    }
}
