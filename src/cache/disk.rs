//! What is kept on disk across mounts, and shared by them: `--cache-dir`.
//!
//! An entry is a file, named by a hash of its key, that holds the key, a checksum and the bytes ([`entry`]). It is
//! written under another name and renamed, so that a reader sees a whole entry or none; what a crash tore all the same,
//! or a disk altered, the checksum tells, and it is deleted and made again. There is no index that could be wrong: the
//! directory ([`directory`]) is the index. Several processes may use one directory; what one deletes, another misses.
//!
//! Reading happens where the entry is wanted. Writing happens on a thread of its own ([`writer`]), behind a queue that
//! drops rather than lets anybody wait. That thread also keeps the budget.
//!
//! # Which entries go
//!
//! A file's modification time says when it was used last (to a minute). When the files' blocks pass the budget, or the
//! file system has less free than is kept back for others, the oldest go. What a table's manifests no longer lead to is
//! first: its time is set to 1970 ([`DiskCache::prune`]).
//!
//! # What a key must hold
//!
//! All that the bytes follow from, since an entry outlives the process: an entry under a key that leaves something out
//! would give wrong rows. To every key is added what this program is ([`DiskCache::open`] takes it: its version and a
//! hash of its file), for another program may make other bytes of the same.
//!
//! | kind | the bytes | the key |
//! |---|---|---|
//! | `chunk` | a column chunk as it is served | the data file's identity, the row group, **the deleted rows themselves**, and the leaf's plan and target, which say all of the projection: column, levels, conversion, constants, first row id, sequence number |
//! | `text` | rendered rows of a row group | the row group's content (the same of all its leaves, and their names), the format and its options, the first row |
//! | `text-index` | the lengths of all pieces of a text, and so its size | the contents of all its row groups, in order, the format and its options |
//! | `as-parquet` | an Avro or ORC file as Parquet | the file's identity |
//! | `block` | bytes of a store's file, as far as they were fetched | the file's identity, the place |
//!
//! The identity of a local file is its device, inode and size, the time of change of its content, and that of any
//! change, which tells it from a file that has come to the same inode with its time set back (`tar`, `rsync`, another
//! file system mounted there); that of a store's file is its address, size and ETag, and where there is no strong ETag nothing of the file is kept here. Deletes stand in a key by the rows they
//! delete rather than by their files' names: what was rewritten under an old name is so not mistaken, and snapshots share
//! the row groups that their deletes have in common. Nothing about a table is in a key, nor a snapshot: neither
//! changes the bytes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::Tag;
use super::identity::Identity;
use crate::counters::Counters;

mod directory;
mod entry;
#[cfg(test)]
mod tests;
mod writer;

pub use directory::{DirectoryError, Totals};
pub use entry::Payload;

use directory::{Directory, EntryName, OpenEntry};
use entry::Unreadable;
use writer::{Job, Update, Writer};

/// How old an entry's time may be before a use is noted: a write for each use would cost more than it tells.
const NOTED_AFTER: i64 = 60;

/// An entry's key. See the module for what must be in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DiskKey {
    /// A word, of letters and `-`.
    pub kind: &'static str,
    pub id: String,
    pub tag: Tag,
}

/// Entries of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindUse {
    pub kind: String,
    pub entries: u64,
    /// On disk, in whole blocks.
    pub bytes: u64,
}

/// What lies in a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// By name of the kind.
    pub kinds: Vec<KindUse>,
    pub totals: Totals,
}

/// A cache on disk. See the module.
#[derive(Debug)]
pub struct DiskCache {
    directory: Arc<Directory>,
    /// What every key begins with.
    maker: String,
    counters: Arc<Counters>,
    writer: Writer,
}

impl DiskCache {
    /// The cache in a subdirectory of `parent`, of at most `budget` bytes on disk, for what the program `maker` makes.
    ///
    /// # Errors
    /// The subdirectory cannot be made, belongs to somebody else, can be looked into by others, or is none.
    pub fn open(
        parent: &Path,
        budget: u64,
        maker: &str,
        counters: &Arc<Counters>,
    ) -> Result<DiskCache, DirectoryError> {
        let directory = Arc::new(Directory::open(parent, true)?);
        Ok(DiskCache {
            writer: Writer::start(&directory, budget, counters),
            directory,
            maker: maker.to_owned(),
            counters: Arc::clone(counters),
        })
    }

    /// An entry's bytes. `None`: it is not kept, or not readable.
    pub fn get(&self, key: &DiskKey) -> Option<Bytes> {
        self.read(key, |opened, text| {
            entry::read(&mut opened.file, opened.size, text)
        })
    }

    /// Writes an entry's bytes to `out` and gives how many those are. Where this gives nothing, what was written is
    /// worth nothing.
    pub fn get_to(&self, key: &DiskKey, out: &mut impl std::io::Write) -> Option<u64> {
        self.read(key, |opened, text| {
            entry::read_to(&mut opened.file, opened.size, text, out)
        })
    }

    /// Whether an entry seems to be there.
    pub fn holds(&self, key: &DiskKey) -> bool {
        self.directory.holds(&self.name(key).0)
    }

    /// Keeps an entry, soon, if there is time and room for it.
    pub fn put(&self, key: &DiskKey, payload: Payload) {
        let (name, text) = self.name(key);
        self.writer.push(Job::Write {
            name,
            text,
            payload,
        });
    }

    /// Keeps an entry, soon, that `update` makes of the one there is, if any. `memory` is how many bytes `update` keeps
    /// while it waits.
    pub fn update(
        &self,
        key: &DiskKey,
        memory: u64,
        update: impl FnOnce(Option<Bytes>) -> Bytes + Send + 'static,
    ) {
        let (name, text) = self.name(key);
        self.writer.push(Job::Update {
            name,
            text,
            memory,
            update: Update(Box::new(update)),
        });
    }

    /// Lets those entries go first that are of the table of `live`'s tags and none of them.
    pub fn prune(&self, live: Arc<std::collections::HashSet<Tag>>) {
        self.writer.push(Job::Prune(live));
    }

    /// Waits until all that was put is written, or until some time has passed.
    pub fn settle(&self, limit: Duration) {
        self.writer.settle(limit);
    }

    /// Bytes on disk, as far as this process knows.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    fn name(&self, key: &DiskKey) -> (EntryName, String) {
        let text = format!("{}\n{}\n{}", self.maker, key.kind, key.id);
        (EntryName::new(key.kind, &text, key.tag), text)
    }

    fn read<T>(
        &self,
        key: &DiskKey,
        read: impl FnOnce(&mut OpenEntry, &str) -> Result<T, Unreadable>,
    ) -> Option<T> {
        let (name, text) = self.name(key);
        let found = match self.directory.entry(&name) {
            Ok(None) => None,
            Ok(Some(mut opened)) => match read(&mut opened, &text) {
                Ok(value) => {
                    if opened.used.saturating_add(NOTED_AFTER) < now() {
                        Directory::touch(&opened.file);
                    }
                    Some(value)
                }
                Err(Unreadable::Damaged) => {
                    self.counters.disk_cache_damaged.add(1);
                    tracing::debug!(
                        kind = key.kind,
                        "a damaged entry of the disk cache is deleted"
                    );
                    self.directory.remove(&name);
                    None
                }
                Err(Unreadable::Io(error)) => {
                    tracing::debug!(kind = key.kind, %error, "an entry of the disk cache is not readable");
                    if error.kind() != std::io::ErrorKind::OutOfMemory {
                        self.directory.remove(&name);
                    }
                    None
                }
            },
            Err(error) => {
                tracing::debug!(kind = key.kind, %error, "an entry of the disk cache cannot be opened");
                None
            }
        };
        match found {
            Some(_) => self.counters.disk_cache_hits.add(1),
            None => self.counters.disk_cache_misses.add(1),
        }
        found
    }
}

/// What lies in the cache below `parent`, whoever's it is.
///
/// # Errors
/// There is none, it cannot be listed, or it is not this user's.
pub fn usage(parent: &Path) -> Result<Usage, DirectoryError> {
    let directory = Directory::open(parent, false)?;
    let mut kinds: std::collections::BTreeMap<String, (u64, u64)> = Default::default();
    for entry in list(&directory)? {
        let kind = kinds.entry(entry.name.kind().to_owned()).or_default();
        kind.0 += 1;
        kind.1 = kind.1.saturating_add(entry.blocks);
    }
    let kinds = kinds.into_iter().map(|(kind, (entries, bytes))| KindUse {
        kind,
        entries,
        bytes,
    });
    Ok(Usage {
        kinds: kinds.collect(),
        totals: directory.totals(),
    })
}

/// Deletes all entries of the cache below `parent`, and gives how many bytes that were. Mounts that use it go on: they
/// make again what they need.
///
/// # Errors
/// There is no cache, it cannot be listed, or it is not this user's.
pub fn clear(parent: &Path) -> Result<u64, DirectoryError> {
    let directory = Directory::open(parent, false)?;
    directory.sweep();
    let removed = list(&directory)?
        .into_iter()
        .filter(|entry| directory.remove(&entry.name))
        .map(|entry| entry.blocks);
    Ok(removed.fold(0, u64::saturating_add))
}

fn list(directory: &Directory) -> Result<Vec<directory::Listed>, DirectoryError> {
    directory.list().map_err(|cause| DirectoryError::Io {
        path: directory.path().to_owned(),
        cause,
    })
}

/// What this program is: its version, and a hash of its file, since a version is built more than once while it is
/// worked on.
///
/// # Errors
/// The program's file cannot be read.
pub fn this_program() -> std::io::Result<String> {
    let mut identity = Identity::default();
    let mut program = std::fs::File::open("/proc/self/exe")?;
    std::io::copy(&mut program, &mut identity)?;
    Ok(format!(
        "{} {}",
        env!("CARGO_PKG_VERSION"),
        identity.finish()
    ))
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}
