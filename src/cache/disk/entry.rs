//! The file of an entry: a header that says what it is, then its bytes.
//!
//! ```text
//! magic 8 │ key length 4 │ bytes 8 │ checksum of the bytes 8 │ key │ checksum of all before 8 │ the bytes
//! ```
//!
//! Numbers are little-endian; checksums are XXH64. The key stands in full: a file whose name happens to be the wanted
//! one, or that somebody has renamed, is not taken for the entry.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom, Write};

use bytes::Bytes;
use twox_hash::XxHash64;

const MAGIC: &[u8; 8] = b"bergfsC1";

/// Bytes before the key.
const FIXED: usize = 8 + 4 + 8 + 8;

/// Bytes of the header's checksum.
const CHECKSUM: usize = 8;

/// Bytes of a key's text. Ours have some hundreds.
const MAX_KEY: usize = 1 << 16;

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Bytes that are copied at once.
const COPIED: usize = 1 << 20;

/// What is written as an entry.
pub enum Payload {
    /// In memory, in this order.
    Parts(Vec<Bytes>),
    /// Read when it is written: exactly so many bytes.
    Stream {
        len: u64,
        read: Box<dyn Read + Send>,
    },
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload of {} bytes", self.len())
    }
}

impl Payload {
    /// Bytes.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Parts(parts) => sum(parts.iter().map(Bytes::len)),
            Payload::Stream { len, .. } => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that it keeps.
    pub(super) fn memory(&self) -> u64 {
        match self {
            Payload::Parts(_) => self.len(),
            Payload::Stream { .. } => 0,
        }
    }
}

fn sum(lens: impl Iterator<Item = usize>) -> u64 {
    lens.map(|len| u64::try_from(len).unwrap_or(u64::MAX))
        .fold(0, u64::saturating_add)
}

/// Why an entry's file does not give the entry.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// Torn, altered, or of another key.
    Damaged,
    Io(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Unreadable::Damaged,
            _ => Unreadable::Io(error),
        }
    }
}

/// Bytes of the file system that an entry takes, in blocks of the size that most have.
pub(super) fn taken(key: &str, payload: &Payload) -> u64 {
    let header = sum([FIXED, key.len(), CHECKSUM].into_iter());
    let len = payload.len().saturating_add(header);
    len.checked_next_multiple_of(BLOCK).unwrap_or(len)
}

/// Writes an entry to an empty file.
pub(super) fn write(file: &mut File, key: &str, payload: Payload) -> io::Result<()> {
    if key.len() > MAX_KEY {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let len = payload.len();
    match payload {
        Payload::Parts(parts) => {
            let mut checksum = XxHash64::with_seed(0);
            parts.iter().for_each(|part| checksum.write(part));
            file.write_all(&header(key, len, checksum.finish()))?;
            parts.iter().try_for_each(|part| file.write_all(part))
        }
        Payload::Stream { mut read, .. } => {
            // The header waits for the checksum.
            let start = header(key, len, 0).len();
            file.seek(SeekFrom::Start(u64::try_from(start).unwrap_or(0)))?;
            let checksum = copy(&mut read, file, len).map_err(|error| match error {
                Unreadable::Damaged => io::ErrorKind::UnexpectedEof.into(),
                Unreadable::Io(error) => error,
            })?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header(key, len, checksum))
        }
    }
}

fn header(key: &str, len: u64, checksum: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(FIXED + key.len() + CHECKSUM);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
    header.extend_from_slice(&len.to_le_bytes());
    header.extend_from_slice(&checksum.to_le_bytes());
    header.extend_from_slice(key.as_bytes());
    let own = XxHash64::oneshot(0, &header);
    header.extend_from_slice(&own.to_le_bytes());
    header
}

/// The whole of an entry's bytes. `size` is the file's.
pub(super) fn read(file: &mut File, size: u64, key: &str) -> Result<Bytes, Unreadable> {
    let (len, checksum) = read_header(file, size, key)?;
    let len = usize::try_from(len).map_err(|_| Unreadable::Damaged)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    bytes.resize(len, 0);
    file.read_exact(&mut bytes)?;
    if XxHash64::oneshot(0, &bytes) == checksum {
        Ok(bytes.into())
    } else {
        Err(Unreadable::Damaged)
    }
}

/// Writes an entry's bytes to `out`, and gives how many those are. What has been written where this fails is worth
/// nothing.
pub(super) fn read_to(
    file: &mut File,
    size: u64,
    key: &str,
    out: &mut impl Write,
) -> Result<u64, Unreadable> {
    let (len, checksum) = read_header(file, size, key)?;
    if copy(file, out, len)? == checksum {
        Ok(len)
    } else {
        Err(Unreadable::Damaged)
    }
}

/// The length and checksum of the bytes.
fn read_header(file: &mut File, size: u64, key: &str) -> Result<(u64, u64), Unreadable> {
    let mut found = vec![0; FIXED + key.len() + CHECKSUM];
    file.read_exact(&mut found)?;
    let number = |at: usize| {
        let bytes = found.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let (len, checksum) = (number(12), number(20));
    // Whatever differs from the header that this entry would have is damage.
    let whole = u64::try_from(found.len()).unwrap_or(u64::MAX);
    if found == header(key, len, checksum) && whole.checked_add(len) == Some(size) {
        Ok((len, checksum))
    } else {
        Err(Unreadable::Damaged)
    }
}

/// Copies exactly `len` bytes, and gives their checksum.
fn copy(from: &mut impl Read, to: &mut impl Write, len: u64) -> Result<u64, Unreadable> {
    let mut checksum = XxHash64::with_seed(0);
    let mut buffer = vec![0; COPIED];
    let mut left = len;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(COPIED).min(COPIED);
        let part = buffer.get_mut(..now).unwrap_or_default();
        from.read_exact(part)?;
        checksum.write(part);
        to.write_all(part)?;
        left -= u64::try_from(now).unwrap_or(left);
    }
    Ok(checksum.finish())
}
