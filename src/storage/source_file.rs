//! An open file of a table: exact, checked, counted reads.

use std::fmt;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use bytes::Bytes;

use super::descriptors::{DescriptorId, Descriptors};
use super::remote::{self, RemoteFile};
use super::roots::Root;
use super::{Spilled, StorageError, io_error, storage_error};
use crate::counters::Counters;

/// Bytes between two ranges of a store's file that are fetched rather than asked for separately. All are asked for at once,
/// so one more costs a small part of a round trip; a gap as large as a column chunk would fetch whole row groups.
const COALESCED_GAP: u64 = 64 << 10;

/// What tells one file, in one state, from every other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity(Identity);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    Local(LocalIdentity),
    Remote(Arc<remote::State>),
}

#[derive(Clone, Copy)]
struct LocalIdentity {
    device: u64,
    inode: u64,
    /// Bytes.
    size: u64,
    /// Seconds and nanoseconds of the last change to its content.
    modified: (i64, i64),
    /// Of the last change to it in any way, which nobody can set back: for keys, which may outlive the file, its inode and
    /// the file system. A file that is open does not become another by a `chmod`, so it is not compared.
    changed: (i64, i64),
}

impl LocalIdentity {
    fn compared(&self) -> (u64, u64, u64, (i64, i64)) {
        (self.device, self.inode, self.size, self.modified)
    }
}

impl PartialEq for LocalIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.compared() == other.compared()
    }
}

impl Eq for LocalIdentity {}

impl fmt::Debug for LocalIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.compared(), self.changed)
    }
}

impl Hash for LocalIdentity {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.compared().hash(hasher);
    }
}

impl FileIdentity {
    /// Whether it tells states of the file from each other for good, so that what is kept under it may outlive this
    /// process. A store's file has to have a strong ETag for that: a time of change is too coarse, and a weak ETag
    /// promises no equal bytes.
    pub fn is_lasting(&self) -> bool {
        match &self.0 {
            Identity::Local(_) => true,
            Identity::Remote(state) => state.is_lasting(),
        }
    }
}

/// Cache keys are made of it.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(local) => local.fmt(f),
            Self::Remote(state) => state.fmt(f),
        }
    }
}

impl LocalIdentity {
    fn of(file: &File) -> io::Result<Self> {
        let status: fs::Metadata = file.metadata()?;
        Ok(Self {
            device: status.dev(),
            inode: status.ino(),
            size: status.len(),
            modified: (status.mtime(), status.mtime_nsec()),
            changed: (status.ctime(), status.ctime_nsec()),
        })
    }
}

/// Where a file was found.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: Arc<Root>,
    /// To the root.
    pub(super) relative: String,
}

/// An open file of a table. Cheap to keep; the descriptor behind it may be closed and opened again.
#[derive(Debug)]
pub struct SourceFile {
    recorded: String,
    identity: FileIdentity,
    bytes: Content,
    counters: Arc<Counters>,
}

/// Where the bytes are.
#[derive(Debug)]
enum Content {
    /// In the file itself.
    Stored {
        identity: LocalIdentity,
        place: Place,
        descriptor: DescriptorId,
        descriptors: Arc<Descriptors>,
    },
    /// In a file of a store.
    Remote(Arc<RemoteFile>),
    /// Made from it, and kept.
    Made(Arc<Spilled>),
    /// A file, and behind its last byte what was made from it.
    Followed {
        file: Arc<SourceFile>,
        more: Arc<Spilled>,
    },
}

impl SourceFile {
    /// A newly opened file, found at `place`.
    pub(super) fn new(
        recorded: &str,
        place: Place,
        file: File,
        descriptors: &Arc<Descriptors>,
        counters: &Arc<Counters>,
    ) -> Result<Self, StorageError> {
        let identity = LocalIdentity::of(&file).map_err(|source| io_error(recorded, source))?;
        Ok(Self {
            recorded: recorded.to_owned(),
            identity: FileIdentity(Identity::Local(identity)),
            bytes: Content::Stored {
                identity,
                place,
                descriptor: descriptors.add(file),
                descriptors: Arc::clone(descriptors),
            },
            counters: Arc::clone(counters),
        })
    }

    /// A file of a store.
    pub(super) fn remote(recorded: &str, file: RemoteFile, counters: &Arc<Counters>) -> Self {
        Self {
            recorded: recorded.to_owned(),
            identity: FileIdentity(Identity::Remote(Arc::clone(file.state()))),
            bytes: Content::Remote(Arc::new(file)),
            counters: Arc::clone(counters),
        }
    }

    /// What was made from this file, under its name and identity.
    pub fn made_into(&self, bytes: Arc<Spilled>) -> Self {
        Self {
            recorded: self.recorded.clone(),
            identity: self.identity.clone(),
            bytes: Content::Made(bytes),
            counters: Arc::clone(&self.counters),
        }
    }

    /// This file with more bytes behind its last one, under its name and identity.
    pub fn followed_by(self: &Arc<Self>, more: Arc<Spilled>) -> Self {
        Self {
            recorded: self.recorded.clone(),
            identity: self.identity.clone(),
            bytes: Content::Followed {
                file: Arc::clone(self),
                more,
            },
            counters: Arc::clone(&self.counters),
        }
    }

    /// Closes the descriptor, as the bound on them may at any time.
    #[cfg(test)]
    pub(super) fn give_up_descriptor(&self) {
        if let Content::Stored {
            descriptor,
            descriptors,
            ..
        } = &self.bytes
        {
            descriptors.remove(*descriptor);
        }
    }

    /// The recorded path, for messages.
    pub fn path(&self) -> &str {
        &self.recorded
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Content::Stored { identity, .. } => identity.size,
            Content::Remote(file) => file.state().size,
            Content::Made(bytes) => bytes.len(),
            Content::Followed { file, more } => file.len().saturating_add(more.len()),
        }
    }

    /// Tells this state of this file from every other.
    pub fn identity(&self) -> &FileIdentity {
        &self.identity
    }

    /// Fills `buf` from `offset`, or fails: never a short read.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<(), StorageError> {
        // A `usize` is no wider than 64 bits on any machine there is.
        self.check_range(offset, u64::try_from(buf.len()).unwrap_or(u64::MAX))?;
        self.read(buf, offset, None)
    }

    /// The same for a reader that goes through `bounds` in order: a file of a store is read ahead of it.
    pub fn read_exact_within(
        &self,
        buf: &mut [u8],
        offset: u64,
        bounds: &Range<u64>,
    ) -> Result<(), StorageError> {
        self.check_range(offset, u64::try_from(buf.len()).unwrap_or(u64::MAX))?;
        self.read(buf, offset, Some(bounds))
    }

    /// Begins to fetch ranges that will be read soon, all at once. Does nothing for files of this machine.
    pub fn prefetch(&self, ranges: &[Range<u64>]) {
        match &self.bytes {
            Content::Remote(file) => file.prefetch(ranges, COALESCED_GAP),
            Content::Followed { file, .. } => {
                let own = ranges.iter().filter(|range| range.end <= file.len());
                file.prefetch(&own.cloned().collect::<Vec<_>>());
            }
            Content::Stored { .. } | Content::Made(_) => {}
        }
    }

    /// Whether its bytes come from a store.
    pub fn is_remote(&self) -> bool {
        match &self.bytes {
            Content::Followed { file, .. } => file.is_remote(),
            bytes => matches!(bytes, Content::Remote(_)),
        }
    }

    /// `len` bytes from `offset`; checked against the file's size before any memory is taken.
    pub fn read_range(&self, offset: u64, len: u64) -> Result<Bytes, StorageError> {
        self.check_range(offset, len)?;
        let mut buffer = zeroed(&self.recorded, len)?;
        self.read(&mut buffer, offset, None)?;
        Ok(Bytes::from(buffer))
    }

    /// [`SourceFile::read_range`] for a reader that goes through `bounds` in order.
    pub fn read_range_within(
        &self,
        offset: u64,
        len: u64,
        bounds: &Range<u64>,
    ) -> Result<Bytes, StorageError> {
        self.check_range(offset, len)?;
        let mut buffer = zeroed(&self.recorded, len)?;
        self.read(&mut buffer, offset, Some(bounds))?;
        Ok(Bytes::from(buffer))
    }

    fn check_range(&self, offset: u64, len: u64) -> Result<(), StorageError> {
        let size = self.len();
        if offset.checked_add(len).is_some_and(|end| end <= size) {
            return Ok(());
        }
        Err(StorageError::PastEnd {
            path: self.recorded.clone(),
            offset,
            len,
            size,
        })
    }

    fn read(
        &self,
        buffer: &mut [u8],
        offset: u64,
        bounds: Option<&Range<u64>>,
    ) -> Result<(), StorageError> {
        match &self.bytes {
            Content::Stored {
                identity,
                place,
                descriptor,
                descriptors,
            } => {
                let file = self.file(identity, place, *descriptor, descriptors)?;
                read_counted(&file, buffer, offset, &self.recorded, &self.counters)?;
                // Rewritten in place, it would give old and new rows.
                self.check_identity(identity, &file)
            }
            Content::Remote(file) => {
                file.read(buffer, offset, bounds, &self.recorded)?;
                self.counters.source_reads.add(1);
                let len = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
                self.counters.source_bytes.add(len);
                Ok(())
            }
            Content::Made(bytes) => bytes
                .read_exact_at(buffer, offset)
                .map_err(|source| io_error(&self.recorded, source)),
            Content::Followed { file, more } => {
                let left = file.len().saturating_sub(offset);
                let here = usize::try_from(left).unwrap_or(usize::MAX);
                let (own, behind) = buffer.split_at_mut(here.min(buffer.len()));
                if !own.is_empty() {
                    file.read(own, offset, bounds)?;
                }
                more.read_exact_at(behind, offset.saturating_sub(file.len()))
                    .map_err(|source| io_error(&self.recorded, source))
            }
        }
    }

    /// The open file; opened again, and found to be the same, where its descriptor was given up.
    fn file(
        &self,
        identity: &LocalIdentity,
        place: &Place,
        descriptor: DescriptorId,
        descriptors: &Descriptors,
    ) -> Result<Arc<File>, StorageError> {
        if let Some(file) = descriptors.get(descriptor) {
            return Ok(file);
        }
        let opened = place.root.open_file(&place.relative);
        let file = Arc::new(opened.map_err(|error| storage_error(&self.recorded, error))?);
        self.check_identity(identity, &file)?;
        descriptors.put(descriptor, Arc::clone(&file));
        Ok(file)
    }

    fn check_identity(&self, identity: &LocalIdentity, file: &File) -> Result<(), StorageError> {
        let now = LocalIdentity::of(file).map_err(|source| io_error(&self.recorded, source))?;
        if now == *identity {
            return Ok(());
        }
        Err(StorageError::Changed {
            path: self.recorded.clone(),
        })
    }
}

impl Drop for SourceFile {
    fn drop(&mut self) {
        if let Content::Stored {
            descriptor,
            descriptors,
            ..
        } = &self.bytes
        {
            descriptors.remove(*descriptor);
        }
    }
}

/// Memory for `len` bytes, refused politely where there is none: a sparse file can claim any size.
pub(super) fn zeroed(path: &str, len: u64) -> Result<Vec<u8>, StorageError> {
    let out_of_memory = || io_error(path, io::Error::from(io::ErrorKind::OutOfMemory));
    let len = usize::try_from(len).map_err(|_| out_of_memory())?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(len).map_err(|_| out_of_memory())?;
    buffer.resize(len, 0);
    Ok(buffer)
}

pub(super) fn read_counted(
    file: &File,
    buffer: &mut [u8],
    offset: u64,
    path: &str,
    counters: &Counters,
) -> Result<(), StorageError> {
    file.read_exact_at(buffer, offset)
        .map_err(|source| match source.kind() {
            // The range was checked against the size, so the file has become shorter.
            io::ErrorKind::UnexpectedEof => StorageError::Changed {
                path: path.to_owned(),
            },
            _ => io_error(path, source),
        })?;
    counters.source_reads.add(1);
    counters
        .source_bytes
        .add(u64::try_from(buffer.len()).unwrap_or(u64::MAX));
    Ok(())
}
