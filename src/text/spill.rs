//! Rendered text in unlinked files, beyond what memory may hold: a file for each text, which is the text byte for byte,
//! as far as it has been written.
//!
//! So a piece is written once, where it stands in the text, and a text that lies there whole can be handed to the kernel
//! as it is. Where all files together pass the limit the oldest goes, and its pieces are rendered again when they are
//! asked for; a text that is longer than the limit by itself is kept from its beginning on, as far as there is room.
//! Nothing is left behind when the process ends, however it ends, for the files have no names. A full disk means that
//! pieces are not kept here, and no more.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::storage::{has_room, unnamed_file};

/// Bytes after which the room on the disk is looked at again.
const CHECKED_BYTES: u64 = 64 << 20;

/// Where rendered texts are kept.
#[derive(Debug)]
pub(super) struct Spill {
    /// Bytes.
    limit: u64,
    /// Oldest first.
    files: Mutex<VecDeque<Arc<SpilledText>>>,
}

/// A text's file.
#[derive(Debug)]
pub struct SpilledText {
    file: File,
    /// Bytes given away to pieces, written or being written.
    used: AtomicU64,
    /// Bytes that have been written.
    written: AtomicU64,
}

impl AsFd for SpilledText {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Which file a text has, if any.
#[derive(Debug, Default)]
pub(super) struct Home(Mutex<Weak<SpilledText>>);

impl Home {
    /// The text's file, if all of its `len` bytes lie there.
    pub(super) fn whole(&self, len: u64) -> Option<Arc<SpilledText>> {
        let home = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = home.upgrade()?;
        (file.written.load(Ordering::Acquire) == len).then_some(file)
    }
}

/// Where a piece lies, as long as its file is kept.
#[derive(Clone, Debug)]
pub(super) struct Place {
    file: Weak<SpilledText>,
    offset: u64,
}

impl Spill {
    pub(super) fn new(limit: u64) -> Spill {
        Spill {
            limit,
            files: Mutex::default(),
        }
    }

    /// Keeps bytes of a text, which are not kept yet, where they stand in it. A new file begins with `header`. Nothing
    /// where there is no room.
    pub(super) fn put(
        &self,
        home: &Home,
        header: &[u8],
        bytes: &[u8],
        offset: u64,
    ) -> Option<Place> {
        let len = u64::try_from(bytes.len()).ok()?;
        let file = self.reserve(home, header, len)?;
        match file.file.write_all_at(bytes, offset) {
            Ok(()) => {
                file.written.fetch_add(len, Ordering::Release);
                Some(Place {
                    file: Arc::downgrade(&file),
                    offset,
                })
            }
            Err(error) => {
                tracing::debug!(%error, "rendered text is not kept on disk");
                file.used.fetch_sub(len, Ordering::Relaxed);
                None
            }
        }
    }

    fn reserve(&self, home: &Home, header: &[u8], len: u64) -> Option<Arc<SpilledText>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut home = home.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = home.upgrade();
        let used = |file: &Arc<SpilledText>| file.used.load(Ordering::Relaxed);
        let before = own.as_ref().map_or(0, used);
        if before.saturating_add(len) > self.limit {
            return None;
        }
        let mut dropped = Vec::new();
        while files.iter().map(used).fold(len, u64::saturating_add) > self.limit {
            let is_own =
                |file: &Arc<SpilledText>| own.as_ref().is_some_and(|own| Arc::ptr_eq(own, file));
            let oldest = files.iter().position(|file| !is_own(file));
            dropped.push(files.remove(oldest?)?);
        }
        let file = match own {
            Some(file) => {
                if before / CHECKED_BYTES != (before + len) / CHECKED_BYTES
                    && !has_room(CHECKED_BYTES)
                {
                    return None;
                }
                file
            }
            None => {
                let file = begin(header)
                    .inspect_err(|error| tracing::debug!(%error, "no file for rendered text"))
                    .ok()?;
                let file = Arc::new(file);
                *home = Arc::downgrade(&file);
                files.push_back(Arc::clone(&file));
                file
            }
        };
        file.used.fetch_add(len, Ordering::Relaxed);
        drop((home, files));
        // Closing a file that is gone frees its blocks, which takes a moment.
        drop(dropped);
        Some(file)
    }
}

impl Place {
    /// Fills a buffer from the piece's byte `inside` on. `false`: the piece is not kept any more.
    pub(super) fn read(&self, inside: u64, buffer: &mut [u8]) -> bool {
        let Some(file) = self.file.upgrade() else {
            return false;
        };
        let read = file.file.read_exact_at(buffer, self.offset + inside);
        read.inspect_err(|error| tracing::debug!(%error, "rendered text is lost"))
            .is_ok()
    }

    /// Whether both are one place of one file.
    pub(super) fn is(&self, other: &Place) -> bool {
        self.offset == other.offset && Weak::ptr_eq(&self.file, &other.file)
    }

    /// Whether the piece can be read here.
    pub(super) fn is_kept(&self) -> bool {
        self.file.strong_count() > 0
    }
}

/// A file that begins with a header, where the disk has room.
fn begin(header: &[u8]) -> io::Result<SpilledText> {
    if !has_room(CHECKED_BYTES) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let file = unnamed_file()?;
    file.write_all_at(header, 0)?;
    let len = u64::try_from(header.len()).unwrap_or(0);
    Ok(SpilledText {
        file,
        used: len.into(),
        written: len.into(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_oldest_texts_go_when_there_is_no_room_and_never_the_one_that_is_written() {
        let spill = Spill::new(1000);
        let (a, b) = (Home::default(), Home::default());
        let first = spill.put(&a, b"head", b"first", 4).unwrap();
        let mut bytes = [0; 3];
        assert!(first.read(2, &mut bytes));
        assert_eq!(&bytes, b"rst");
        let second = spill.put(&b, b"", &[7; 900], 0).unwrap();
        assert!(first.is_kept() && a.whole(9).is_some());
        let third = spill.put(&b, b"", &[8; 100], 900).unwrap();
        assert!(!first.is_kept() && !first.read(0, &mut bytes) && a.whole(9).is_none());
        assert!(second.is_kept() && third.is_kept());
        assert!(spill.put(&b, b"", &[9], 1000).is_none());
        assert!(second.is_kept());
        let again = spill.put(&a, b"head", b"first", 4).unwrap();
        assert!(!second.is_kept() && again.is_kept());
    }

    #[test]
    fn a_text_that_is_written_in_any_order_is_whole_when_all_of_it_is_there() {
        let spill = Spill::new(1000);
        let home = Home::default();
        spill.put(&home, b"head", b"third", 14).unwrap();
        spill.put(&home, b"head", b"first", 4).unwrap();
        assert!(home.whole(19).is_none());
        spill.put(&home, b"head", b"other", 9).unwrap();
        let whole = home.whole(19).unwrap();
        let mut bytes = [0; 19];
        whole.file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"headfirstotherthird");
    }
}
