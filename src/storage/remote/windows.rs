//! Blocks of stores' files on disk: an entry is a window of a file, with those of its blocks that have been fetched.
//!
//! Single blocks would be as many files; whole windows would fetch what nobody asked for. So a window's entry is
//! written again when more of its blocks come: a bit for each block that is there, then the blocks in order.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use super::{BLOCK, State, len};
use crate::cache::Tag;
use crate::cache::disk::{DiskCache, DiskKey};

/// Blocks of a window.
const BLOCKS: u64 = 16;

/// Bytes of a window.
const WINDOW: u64 = BLOCKS * BLOCK;

fn key(state: &State, window: u64) -> DiskKey {
    DiskKey {
        kind: "block",
        id: format!("{state:?} {window}"),
        tag: Tag::NONE,
    }
}

/// The blocks of a window, by their number in it.
#[derive(Debug, Default)]
struct Window(Vec<Option<Bytes>>);

impl Window {
    /// Of a file of `size` bytes. An entry that does not fit is none.
    fn parse(entry: Option<Bytes>, window: u64, size: u64) -> Window {
        let none = || Window(vec![None; usize::try_from(BLOCKS).unwrap_or(0)]);
        let Some(mut entry) = entry.filter(|entry| entry.len() >= 2) else {
            return none();
        };
        let bits = entry.split_to(2);
        let bits = bits
            .first_chunk()
            .map_or(0, |bits| u16::from_le_bytes(*bits));
        let mut blocks = none();
        for (number, block) in (0..).zip(&mut blocks.0) {
            if bits & (1 << number) == 0 {
                continue;
            }
            let start = window * WINDOW + number * BLOCK;
            let len = usize::try_from(BLOCK.min(size.saturating_sub(start))).unwrap_or(0);
            if len == 0 || len > entry.len() {
                return none();
            }
            *block = Some(entry.split_to(len));
        }
        if entry.is_empty() { blocks } else { none() }
    }

    fn entry(&self) -> Bytes {
        let mut bits = 0u16;
        for (number, block) in self.0.iter().enumerate() {
            bits |= u16::from(block.is_some()) << number;
        }
        let mut entry = BytesMut::new();
        entry.put_u16_le(bits);
        for block in self.0.iter().flatten() {
            entry.extend_from_slice(block);
        }
        entry.freeze()
    }
}

/// What there is of a range, whose borders are those of blocks: from its beginning on, and, where something is missing
/// between them, up to its end.
pub(super) fn read(disk: Option<&DiskCache>, state: &State, range: Range<u64>) -> (Bytes, Bytes) {
    let Some(disk) = disk else {
        return Default::default();
    };
    let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
    let mut found = Vec::new();
    for window in blocks.start / BLOCKS..blocks.end.div_ceil(BLOCKS) {
        let entry = disk.get(&key(state, window));
        let numbered = (window * BLOCKS..).zip(Window::parse(entry, window, state.size).0);
        found.extend(
            numbered
                .filter(|(block, _)| blocks.contains(block))
                .map(|(_, block)| block),
        );
    }
    let joined = |blocks: &[Option<Bytes>]| {
        let mut bytes = BytesMut::new();
        blocks
            .iter()
            .flatten()
            .for_each(|block| bytes.extend_from_slice(block));
        bytes.freeze()
    };
    let before = found.iter().take_while(|block| block.is_some()).count();
    let (before, rest) = found.split_at(before);
    let after = rest
        .iter()
        .rev()
        .take_while(|block| block.is_some())
        .count();
    let (_, after) = rest.split_at(rest.len() - after);
    (joined(before), joined(after))
}

/// Keeps bytes that begin at `start`, the border of a block, and end at another or with the file.
pub(super) fn keep(disk: Option<&DiskCache>, state: &State, start: u64, bytes: &Bytes) {
    let Some(disk) = disk else { return };
    let end = start + len(bytes);
    for window in start / WINDOW..end.div_ceil(WINDOW) {
        let from = start.max(window * WINDOW);
        let to = end.min((window + 1) * WINDOW);
        let inside = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
        let Some(part) = bytes.get(inside(from)..inside(to)) else {
            return;
        };
        // Copied: a slice would keep the whole answer.
        let part = Bytes::copy_from_slice(part);
        let (first, size) = (from % WINDOW / BLOCK, state.size);
        disk.update(&key(state, window), len(&part), move |entry| {
            let mut kept = Window::parse(entry, window, size);
            let mut part = part;
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            let block = usize::try_from(BLOCK).unwrap_or(usize::MAX);
            for slot in kept.0.iter_mut().skip(first) {
                if part.is_empty() {
                    break;
                }
                *slot = Some(part.split_to(block.min(part.len())));
            }
            kept.entry()
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_window_holds_the_blocks_it_was_given_and_a_strange_one_none() {
        let size = WINDOW + 3 * BLOCK + 100;
        let short = Bytes::from(vec![7; 100]);
        let block = Bytes::from(vec![9; BLOCK as usize]);
        let mut window = Window::parse(None, 1, size);
        window.0[3] = Some(short.clone());
        window.0[1] = Some(block.clone());
        let entry = window.entry();
        let again = Window::parse(Some(entry.clone()), 1, size);
        assert_eq!(again.0[..4], [None, Some(block), None, Some(short)]);
        let none = |entry: Bytes, window| {
            let parsed = Window::parse(Some(entry), window, size);
            parsed.0.iter().all(Option::is_none)
        };
        assert!(none(entry.slice(..entry.len() - 1), 1));
        assert!(none(Bytes::from([&entry[..], &[0]].concat()), 1));
        assert!(none(entry, 0));
        assert!(none(Bytes::from_static(&[1]), 0));
    }
}
