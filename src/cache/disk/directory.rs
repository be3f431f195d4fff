//! The directory of a cache on disk: made for its owner alone, checked, and listed.
//!
//! ```text
//! DIR/bergfs-cache-1/          0700; 1 is the format's version
//!     new/                     files that are being written, each locked by its writer
//!     totals                   how often all processes found an entry, and how often not
//!     00/ … ff/                entries, by the first digits of their names
//!         <kind>-<hash of the key>-<tag>
//! ```
//!
//! Everything is reached from the directory's own descriptor, so that nothing that is put in the path's place later is
//! followed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RawMode, Timespec, Timestamps,
};
use rustix::io::Errno;

use super::super::Tag;
use super::super::identity::Identity;

/// Of the directory's name. Other versions' directories are not read; older ones are removed.
const VERSION: u32 = 1;

/// What the directory's name begins with.
const PREFIX: &str = "bergfs-cache-";

const NEW: &str = "new";

/// Why a directory cannot hold a cache.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("{path}: no mount has kept anything here")]
    Missing { path: PathBuf },
    #[error("{path}: not a directory of its own (a symbolic link, or a file)")]
    NotADirectory { path: PathBuf },
    #[error("{path}: belongs to user {owner}, not to this one ({user})")]
    Owner {
        path: PathBuf,
        owner: u32,
        user: u32,
    },
    #[error("{path}: others may look into it (mode {mode:03o}; expected 700)")]
    Mode { path: PathBuf, mode: RawMode },
}

/// The name of an entry's file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntryName(String);

impl EntryName {
    pub(super) fn new(kind: &str, key: &str, tag: Tag) -> EntryName {
        let hash = Identity::of(key);
        let hash = hash.get(..32).unwrap_or(&hash);
        EntryName(format!("{kind}-{hash}-{:016x}", tag.0))
    }

    fn parse(name: &str) -> Option<EntryName> {
        let name = EntryName(name.to_owned());
        let hex =
            |text: &str, len| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
        let mut parts = name.0.rsplitn(3, '-');
        let tag = parts.next().is_some_and(|tag| hex(tag, 16));
        let hash = parts.next().is_some_and(|hash| hex(hash, 32));
        let kind = parts.next().is_some_and(|kind| !kind.is_empty());
        (tag && hash && kind).then_some(name)
    }

    /// The kind of entry.
    pub(super) fn kind(&self) -> &str {
        self.0.rsplitn(3, '-').nth(2).unwrap_or_default()
    }

    pub(super) fn tag(&self) -> Tag {
        let tag = self.0.rsplit('-').next();
        let tag = tag.and_then(|tag| u64::from_str_radix(tag, 16).ok());
        Tag(tag.unwrap_or(0))
    }

    fn shard(&self) -> &str {
        let hash = self.0.rsplit('-').nth(1).unwrap_or_default();
        hash.get(..2).unwrap_or("00")
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.shard(), self.0)
    }
}

/// An entry as a listing shows it.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: EntryName,
    /// Bytes on disk, in whole blocks.
    pub(super) blocks: u64,
    /// When it was used last, about: seconds since 1970, and nanoseconds.
    pub(super) used: (i64, i64),
}

/// An entry's file, open.
#[derive(Debug)]
pub(super) struct OpenEntry {
    pub(super) file: File,
    /// Bytes.
    pub(super) size: u64,
    /// When it was used last, about: seconds since 1970.
    pub(super) used: i64,
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) file: File,
    path: String,
}

/// What all processes counted, since the directory was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub hits: u64,
    pub misses: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// The cache's directory in `parent`; both are made where they are not there and `make` says so.
    pub(super) fn open(parent: &Path, make: bool) -> Result<Directory, DirectoryError> {
        let failed = |path: &Path, error: Errno| DirectoryError::Io {
            path: path.to_owned(),
            cause: error.into(),
        };
        if make {
            match rustix::fs::mkdir(parent, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(parent, error)),
            }
        }
        let path = parent.join(format!("{PREFIX}{VERSION}"));
        if make {
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(DirectoryError::NotADirectory { path }),
            Err(Errno::NOENT) => return Err(DirectoryError::Missing { path }),
            Err(error) => return Err(failed(&path, error)),
        };
        let status = rustix::fs::fstat(&fd).map_err(|error| failed(&path, error))?;
        let user = rustix::process::geteuid().as_raw();
        if status.st_uid != user {
            let owner = status.st_uid;
            return Err(DirectoryError::Owner { path, owner, user });
        }
        let mode = status.st_mode & 0o777;
        if mode & 0o077 != 0 {
            return Err(DirectoryError::Mode { path, mode });
        }
        if make {
            match rustix::fs::mkdirat(&fd, NEW, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
        Ok(Directory { fd, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens an entry's file. `None`: there is none.
    pub(super) fn entry(&self, name: &EntryName) -> io::Result<Option<OpenEntry>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.fd, name.path(), flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let status = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Some(OpenEntry {
            file,
            size: u64::try_from(status.st_size).unwrap_or(0),
            used: status.st_mtime,
        }))
    }

    /// Notes that an entry is used now.
    pub(super) fn touch(file: &File) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        };
        // An order of going that is a little off does no harm.
        let _ = rustix::fs::futimens(file, &times(now));
    }

    /// Notes that an entry may go first.
    pub(super) fn age(&self, name: &EntryName) {
        let never = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let _ = rustix::fs::utimensat(
            &self.fd,
            name.path(),
            &times(never),
            AtFlags::SYMLINK_NOFOLLOW,
        );
    }

    pub(super) fn holds(&self, name: &EntryName) -> bool {
        rustix::fs::statat(&self.fd, name.path(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Deletes an entry; whether it was there.
    pub(super) fn remove(&self, name: &EntryName) -> bool {
        rustix::fs::unlinkat(&self.fd, name.path(), AtFlags::empty()).is_ok()
    }

    /// A new file, locked for as long as it is open, so that no other process takes it for left behind.
    pub(super) fn new_file(&self) -> io::Result<NewFile> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let path = format!("{NEW}/{:032x}", u128::from_le_bytes(random));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, &path, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(NewFile {
            file: file.into(),
            path,
        })
    }

    /// Gives a file that has been written its name. Gives its bytes on disk.
    pub(super) fn keep(&self, new: &NewFile, name: &EntryName) -> io::Result<u64> {
        let to = name.path();
        let blocks = blocks(rustix::fs::fstat(&new.file)?.st_blocks);
        match rustix::fs::renameat(&self.fd, &new.path, &self.fd, &to) {
            Err(Errno::NOENT) => {
                match rustix::fs::mkdirat(&self.fd, name.shard(), Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                rustix::fs::renameat(&self.fd, &new.path, &self.fd, &to)?;
            }
            outcome => outcome?,
        }
        Ok(blocks)
    }

    /// Deletes a file that came to nothing.
    pub(super) fn discard(&self, new: NewFile) {
        let _ = rustix::fs::unlinkat(&self.fd, &new.path, AtFlags::empty());
    }

    /// Deletes what writers that have died left behind: their locks went with them.
    pub(super) fn sweep(&self) {
        let _ = self.each(NEW, |name| {
            let path = format!("{NEW}/{name}");
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let Ok(file) = rustix::fs::openat(&self.fd, &path, flags, Mode::empty()) else {
                return;
            };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                let _ = rustix::fs::unlinkat(&self.fd, &path, AtFlags::empty());
            }
        });
    }

    /// Deletes the directories of older formats beside this one.
    pub(super) fn remove_older(&self) {
        let Some(parent) = self.path.parent() else {
            return;
        };
        let Ok(entries) = std::fs::read_dir(parent) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let version = version.and_then(|version| version.parse::<u32>().ok());
            if version.is_some_and(|version| version < VERSION)
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
            {
                // Does not follow links either; whoever reads there misses its entries.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// All entries.
    pub(super) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for shard in 0..=255u8 {
            let shard = format!("{shard:02x}");
            self.each(&shard, |name| {
                let Some(name) = EntryName::parse(name) else {
                    return;
                };
                // One that went meanwhile is not there.
                let status = rustix::fs::statat(&self.fd, name.path(), AtFlags::SYMLINK_NOFOLLOW);
                if let Ok(status) = status {
                    listed.push(Listed {
                        name,
                        blocks: blocks(status.st_blocks),
                        used: (
                            status.st_mtime,
                            i64::try_from(status.st_mtime_nsec).unwrap_or(0),
                        ),
                    });
                }
            })?;
        }
        Ok(listed)
    }

    /// The names in a directory of this one.
    fn each(&self, directory: &str, mut each: impl FnMut(&str)) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, directory, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for entry in Dir::read_from(fd)? {
            if let Ok(name) = entry?.file_name().to_str()
                && !name.starts_with('.')
            {
                each(name);
            }
        }
        Ok(())
    }

    /// Bytes of the file system, and those that are free.
    pub(super) fn room(&self) -> io::Result<(u64, u64)> {
        let system = rustix::fs::fstatvfs(self.fd.as_fd())?;
        let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
        Ok((bytes(system.f_blocks), bytes(system.f_bavail)))
    }

    /// Adds to the totals, unless another process is at them, and gives whether it did.
    pub(super) fn add_totals(&self, more: Totals) -> io::Result<bool> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, "totals", flags, Mode::RUSR | Mode::WUSR)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let mut file = File::from(file);
        let mut totals = parse_totals(&mut file);
        totals.hits = totals.hits.saturating_add(more.hits);
        totals.misses = totals.misses.saturating_add(more.misses);
        file.seek(SeekFrom::Start(0))?;
        // Padded, so that no longer text is left behind it.
        file.write_all(format!("{:020} {:020}\n", totals.hits, totals.misses).as_bytes())?;
        Ok(true)
    }

    /// What all processes counted.
    pub(super) fn totals(&self) -> Totals {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.fd, "totals", flags, Mode::empty());
        file.map_or(Totals::default(), |file| {
            parse_totals(&mut File::from(file))
        })
    }
}

fn parse_totals(file: &mut File) -> Totals {
    let mut text = String::new();
    // What cannot be read counts from nothing again.
    let _ = file.take(64).read_to_string(&mut text);
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    Totals {
        hits: next(),
        misses: next(),
    }
}

fn times(time: Timespec) -> Timestamps {
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// Bytes of so many blocks, as `stat` counts them.
fn blocks(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0).saturating_mul(512)
}
