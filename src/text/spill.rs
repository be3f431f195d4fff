//! Rendered text in unlinked files, beyond what memory may hold.
//!
//! Pieces are appended to segments of [`SEGMENT_BYTES`]; where all segments together pass the limit the oldest goes,
//! and the pieces in it are rendered again when they are asked for. Nothing is left behind when the process ends,
//! however it ends, for the files have no names. A full disk means that pieces are not kept here, and no more.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{Mode, OFlags};

/// Bytes of a file: few files, and little that goes at once.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Bytes left free on the disk for others.
const KEPT_FREE: u64 = 1 << 30;

/// Where rendered pieces are kept.
#[derive(Debug)]
pub(super) struct Spill {
    /// Bytes.
    limit: u64,
    /// Oldest first; the last is appended to.
    segments: Mutex<VecDeque<Arc<Segment>>>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    /// Bytes given away to pieces, written or being written.
    used: AtomicU64,
}

/// Where a piece lies, as long as its segment is kept.
#[derive(Clone, Debug)]
pub(super) struct Place {
    segment: Weak<Segment>,
    offset: u64,
}

impl Spill {
    pub(super) fn new(limit: u64) -> Spill {
        Spill {
            limit,
            segments: Mutex::default(),
        }
    }

    /// Keeps a piece. Nothing where there is no room for it.
    pub(super) fn put(&self, bytes: &[u8]) -> Option<Place> {
        let len = u64::try_from(bytes.len()).ok()?;
        let (segment, offset) = self.reserve(len)?;
        match segment.file.write_all_at(bytes, offset) {
            Ok(()) => Some(Place {
                segment: Arc::downgrade(&segment),
                offset,
            }),
            Err(error) => {
                tracing::debug!(%error, "rendered text is not kept on disk");
                None
            }
        }
    }

    fn reserve(&self, len: u64) -> Option<(Arc<Segment>, u64)> {
        if len > self.limit {
            return None;
        }
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = segments.back() {
            let used = last.used.load(Ordering::Relaxed);
            if used.saturating_add(len) <= SEGMENT_BYTES {
                last.used.store(used + len, Ordering::Relaxed);
                return Some((Arc::clone(last), used));
            }
        }
        let used = |segments: &VecDeque<Arc<Segment>>| {
            let sizes = segments
                .iter()
                .map(|segment| segment.used.load(Ordering::Relaxed));
            sizes.fold(len, u64::saturating_add)
        };
        let mut dropped = Vec::new();
        while used(&segments) > self.limit
            && let Some(oldest) = segments.pop_front()
        {
            dropped.push(oldest);
        }
        let file = unlinked_file()
            .inspect_err(|error| tracing::debug!(%error, "no file for rendered text"))
            .ok()?;
        let segment = Arc::new(Segment {
            file,
            used: len.into(),
        });
        segments.push_back(Arc::clone(&segment));
        drop(segments);
        // Closing a file that is gone frees its blocks, which takes a moment.
        drop(dropped);
        Some((segment, 0))
    }
}

impl Place {
    /// Fills a buffer from the piece's byte `inside` on. `false`: the piece is not kept any more.
    pub(super) fn read(&self, inside: u64, buffer: &mut [u8]) -> bool {
        let Some(segment) = self.segment.upgrade() else {
            return false;
        };
        let read = segment.file.read_exact_at(buffer, self.offset + inside);
        read.inspect_err(|error| tracing::debug!(%error, "rendered text is lost"))
            .is_ok()
    }

    /// Whether the piece can be read here.
    pub(super) fn is_kept(&self) -> bool {
        self.segment.strong_count() > 0
    }
}

/// A file without a name, where the disk has room.
fn unlinked_file() -> io::Result<File> {
    // `/var/tmp` is on disk where `/tmp` may be memory.
    let directory = std::env::var_os("TMPDIR").map_or("/var/tmp".into(), PathBuf::from);
    let room = rustix::fs::statvfs(&directory)?;
    if room.f_bavail.saturating_mul(room.f_frsize) < KEPT_FREE + SEGMENT_BYTES {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        Err(_) => named_and_unlinked(&directory),
    }
}

/// For file systems that make no files without names.
fn named_and_unlinked(directory: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("bergfs-{}-{number}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_oldest_pieces_go_when_there_is_no_room() {
        let spill = Spill::new(SEGMENT_BYTES + 10);
        let first = spill.put(b"first").unwrap();
        let mut bytes = [0; 3];
        assert!(first.read(2, &mut bytes));
        assert_eq!(&bytes, b"rst");
        let second = spill.put(&vec![7; SEGMENT_BYTES as usize]).unwrap();
        assert!(first.is_kept());
        let third = spill.put(&[8; 11]).unwrap();
        assert!(!first.is_kept() && !first.read(0, &mut bytes));
        assert!(!second.is_kept() && third.read(0, &mut bytes));
        assert!(spill.put(&vec![0; SEGMENT_BYTES as usize + 11]).is_none());
    }
}
