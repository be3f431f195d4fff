//! An open file of a table: exact, checked, counted reads.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use bytes::Bytes;

use super::descriptors::{DescriptorId, Descriptors};
use super::roots::Root;
use super::{Spilled, StorageError, io_error, storage_error};
use crate::counters::Counters;

/// What tells one file, in one state, from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    /// Bytes.
    size: u64,
    /// Seconds and nanoseconds of the last change to its content.
    modified: (i64, i64),
}

impl FileIdentity {
    fn of(file: &File) -> io::Result<Self> {
        let status: fs::Metadata = file.metadata()?;
        Ok(Self {
            device: status.dev(),
            inode: status.ino(),
            size: status.len(),
            modified: (status.mtime(), status.mtime_nsec()),
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
        place: Place,
        descriptor: DescriptorId,
        descriptors: Arc<Descriptors>,
    },
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
        let identity = FileIdentity::of(&file).map_err(|source| io_error(recorded, source))?;
        Ok(Self {
            recorded: recorded.to_owned(),
            identity,
            bytes: Content::Stored {
                place,
                descriptor: descriptors.add(file),
                descriptors: Arc::clone(descriptors),
            },
            counters: Arc::clone(counters),
        })
    }

    /// What was made from this file, under its name and identity.
    pub fn made_into(&self, bytes: Arc<Spilled>) -> Self {
        Self {
            recorded: self.recorded.clone(),
            identity: self.identity,
            bytes: Content::Made(bytes),
            counters: Arc::clone(&self.counters),
        }
    }

    /// This file with more bytes behind its last one, under its name and identity.
    pub fn followed_by(self: &Arc<Self>, more: Arc<Spilled>) -> Self {
        Self {
            recorded: self.recorded.clone(),
            identity: self.identity,
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
            Content::Stored { .. } => self.identity.size,
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
        self.read(buf, offset)
    }

    /// `len` bytes from `offset`; checked against the file's size before any memory is taken.
    pub fn read_range(&self, offset: u64, len: u64) -> Result<Bytes, StorageError> {
        self.check_range(offset, len)?;
        let mut buffer = zeroed(&self.recorded, len)?;
        self.read(&mut buffer, offset)?;
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

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        match &self.bytes {
            Content::Stored {
                place,
                descriptor,
                descriptors,
            } => {
                let file = self.file(place, *descriptor, descriptors)?;
                read_counted(&file, buffer, offset, &self.recorded, &self.counters)?;
                // Rewritten in place, it would give old and new rows.
                self.check_identity(&file)
            }
            Content::Made(bytes) => bytes
                .read_exact_at(buffer, offset)
                .map_err(|source| io_error(&self.recorded, source)),
            Content::Followed { file, more } => {
                let left = file.len().saturating_sub(offset);
                let here = usize::try_from(left).unwrap_or(usize::MAX);
                let (own, behind) = buffer.split_at_mut(here.min(buffer.len()));
                if !own.is_empty() {
                    file.read(own, offset)?;
                }
                more.read_exact_at(behind, offset.saturating_sub(file.len()))
                    .map_err(|source| io_error(&self.recorded, source))
            }
        }
    }

    /// The open file; opened again, and found to be the same, where its descriptor was given up.
    fn file(
        &self,
        place: &Place,
        descriptor: DescriptorId,
        descriptors: &Descriptors,
    ) -> Result<Arc<File>, StorageError> {
        if let Some(file) = descriptors.get(descriptor) {
            return Ok(file);
        }
        let opened = place.root.open_file(&place.relative);
        let file = Arc::new(opened.map_err(|error| storage_error(&self.recorded, error))?);
        self.check_identity(&file)?;
        descriptors.put(descriptor, Arc::clone(&file));
        Ok(file)
    }

    fn check_identity(&self, file: &File) -> Result<(), StorageError> {
        let identity = FileIdentity::of(file).map_err(|source| io_error(&self.recorded, source))?;
        if identity == self.identity {
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
