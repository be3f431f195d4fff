//! One unlinked file for all that the process makes and cannot keep in memory.
//!
//! What is written to it is a [`Spilled`]: the pieces of the file that hold its bytes, in order. Its room is given back
//! to the file system when it is dropped. The file lies in the directory for temporary files, has no name from the
//! start, and so ends with the process however that ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, Mode, OFlags};

/// Bytes left free on the file system for others.
const KEPT_FREE: u64 = 1 << 30;

/// The file; made when it is first needed.
#[derive(Debug, Default)]
pub struct Spill {
    file: Mutex<Option<Arc<File>>>,
    /// Where the next piece goes.
    end: AtomicU64,
}

/// Bytes that were written; see [`Spill`].
#[derive(Debug)]
pub struct Spilled {
    file: Arc<File>,
    pieces: Vec<Piece>,
    len: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Among the bytes that were written.
    start: u64,
    /// In the file.
    place: u64,
    len: u64,
}

/// Writes one [`Spilled`]; several may be written at once. Each write becomes a piece, so small ones want a buffer.
#[derive(Debug)]
pub struct SpillWriter {
    spill: Arc<Spill>,
    made: Spilled,
}

impl Spill {
    /// Whether so many more bytes leave the file system with room for others. What must be written is written even if
    /// they do not.
    pub fn has_room(&self, len: u64) -> bool {
        has_room(len)
    }

    /// Begins a new run of bytes.
    ///
    /// # Errors
    /// The directory for temporary files cannot be written to.
    pub fn writer(self: &Arc<Self>) -> io::Result<SpillWriter> {
        let mut kept = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &*kept {
            Some(file) => Arc::clone(file),
            None => Arc::clone(kept.insert(Arc::new(unnamed_file()?))),
        };
        Ok(SpillWriter {
            spill: Arc::clone(self),
            made: Spilled {
                file,
                pieces: Vec::new(),
                len: 0,
            },
        })
    }
}

/// `/var/tmp` is on disk where `/tmp` may be memory.
fn directory() -> PathBuf {
    std::env::var_os("TMPDIR").map_or("/var/tmp".into(), PathBuf::from)
}

/// See [`Spill::has_room`].
pub fn has_room(len: u64) -> bool {
    rustix::fs::statvfs(directory()).is_ok_and(|system| {
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        free >= KEPT_FREE.saturating_add(len)
    })
}

/// A file of its own in the directory for temporary files, without a name.
///
/// # Errors
/// The directory cannot be written to.
pub fn unnamed_file() -> io::Result<File> {
    let directory = directory();
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    if let Ok(file) = rustix::fs::open(&directory, flags | OFlags::TMPFILE, mode) {
        return Ok(File::from(file));
    }
    // Not every file system has files without names.
    let path = directory.join(format!("bergfs-{}", uuid::Uuid::from_u128(random()?)));
    let created = flags | OFlags::CREATE | OFlags::EXCL;
    let file = rustix::fs::open(&path, created, mode).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
    })?;
    std::fs::remove_file(&path)?;
    Ok(File::from(file))
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

impl SpillWriter {
    /// All that was written.
    pub fn finish(self) -> Spilled {
        self.made
    }
}

impl Write for SpillWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if len > 0 {
            let place = self.spill.end.fetch_add(len, Ordering::Relaxed);
            self.made.file.write_all_at(bytes, place)?;
            self.made.pieces.push(Piece {
                start: self.made.len,
                place,
                len,
            });
            self.made.len += len;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Spilled {
    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// The range passes the end, or the file cannot be read.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        let mut index = self.pieces.partition_point(|p| p.start + p.len <= offset);
        while !buffer.is_empty() {
            let piece = self.pieces.get(index).ok_or(io::ErrorKind::UnexpectedEof)?;
            let inside = offset - piece.start;
            let take = usize::try_from(piece.len - inside).unwrap_or(usize::MAX);
            let (now, rest) = buffer.split_at_mut(take.min(buffer.len()));
            self.file.read_exact_at(now, piece.place + inside)?;
            offset += u64::try_from(now.len()).unwrap_or(0);
            buffer = rest;
            index += 1;
        }
        Ok(())
    }
}

/// Reads what was written from its begin to its end.
#[derive(Debug)]
pub struct SpilledReader {
    spilled: Arc<Spilled>,
    at: u64,
}

impl SpilledReader {
    /// At the begin.
    pub fn new(spilled: Arc<Spilled>) -> Self {
        Self { spilled, at: 0 }
    }
}

impl Read for SpilledReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.spilled.len() - self.at).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        let buffer = buffer.get_mut(..len).unwrap_or_default();
        self.spilled.read_exact_at(buffer, self.at)?;
        self.at += u64::try_from(len).unwrap_or(0);
        Ok(len)
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        for piece in &self.pieces {
            // Where the file system cannot give room back, it comes back when the process ends.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&*self.file, flags, piece.place, piece.len);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn runs_written_at_once_are_read_back_and_their_room_is_given_back() {
        let spill = Arc::new(Spill::default());
        let (mut a, mut b) = (spill.writer().unwrap(), spill.writer().unwrap());
        for i in 0..100u8 {
            a.write_all(&[i; 1000]).unwrap();
            b.write_all(&[255 - i; 10]).unwrap();
        }
        let (a, b) = (a.finish(), b.finish());
        assert_eq!((a.len(), b.len()), (100_000, 1000));
        let mut read = [0; 2002];
        a.read_exact_at(&mut read, 999).unwrap();
        assert_eq!(
            (read[0], read[1], read[1000], read[1001], read[2001]),
            (0, 1, 1, 2, 3)
        );
        b.read_exact_at(&mut read[..25], 975).unwrap();
        assert_eq!((read[0], read[5], read[24]), (158, 157, 156));
        assert!(b.read_exact_at(&mut read[..26], 975).is_err());
        let file = Arc::clone(&a.file);
        drop((a, b));
        file.read_exact_at(&mut read[..10], 0).unwrap();
        assert_eq!(read[..10], [0; 10]);
    }
}
