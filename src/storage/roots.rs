//! Directories that files may be opened beneath, and the opening itself.
//!
//! A table's metadata is not trusted: it may name `../../etc/shadow`, a symlink that leads away, a FIFO that never
//! answers, a device. So a file is only ever opened relative to the descriptor of an allowed directory, by `openat2`
//! with `RESOLVE_BENEATH` (Linux 5.6), which makes the kernel refuse every way out; elsewhere component by component
//! without following symlinks. What was opened must be a regular file.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// A directory that files may be opened beneath. It stays the same directory if its path is renamed.
#[derive(Debug)]
pub(super) struct Root {
    /// Absolute, without symlinks.
    path: PathBuf,
    directory: OwnedFd,
}

/// Why a file was not opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The way to it leads out of the root.
    Escapes,
    NotRegular,
    Io(io::Error),
}

impl Root {
    /// Opens the directory; symlinks on the way to it are followed, since the user named it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { path, directory })
    }

    /// Absolute, without symlinks.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file by its path relative to this directory, for reading.
    pub(super) fn open_file(&self, relative: &str) -> Result<File, OpenError> {
        let relative = Path::new(relative);
        if relative.is_absolute() {
            return Err(OpenError::Escapes);
        }
        regular(open_beneath(&self.directory, relative).map_err(OpenError::from)?)
    }
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::XDEV | Errno::LOOP => Self::Escapes,
            // A socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV => Self::NotRegular,
            other => Self::Io(other.into()),
        }
    }
}

/// Opens a file that the user or the catalog named, rather than a table's metadata.
pub(super) fn open_named(path: &Path) -> Result<File, OpenError> {
    regular(rustix::fs::open(path, read_flags(), Mode::empty()).map_err(OpenError::from)?)
}

/// `NONBLOCK`: a FIFO must not make the opening wait; it means nothing to a regular file.
fn read_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY
}

fn regular(descriptor: OwnedFd) -> Result<File, OpenError> {
    let status = rustix::fs::fstat(&descriptor).map_err(OpenError::from)?;
    if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile {
        Ok(File::from(descriptor))
    } else {
        Err(OpenError::NotRegular)
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;

    /// `openat2` answers `EAGAIN` when a rename elsewhere kept it from being sure; a rename storm is not waited out.
    const ATTEMPTS: u32 = 16;

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS {
        match rustix::fs::openat2(directory, relative, read_flags(), Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // No such system call: an old kernel, or a sandbox (some answer EPERM for calls they do not know).
            Err(Errno::NOSYS | Errno::PERM) => return open_by_components(directory, relative),
            answer => return answer,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    open_by_components(directory, relative)
}

/// Walks down one component at a time, following no symlink and never going up.
pub(super) fn open_by_components(directory: &OwnedFd, relative: &Path) -> Result<OwnedFd, Errno> {
    let mut components = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => components.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::XDEV);
            }
        }
    }
    let (file, directories) = components.split_last().ok_or(Errno::ISDIR)?;
    let mut held: Option<OwnedFd> = None;
    for name in directories {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = rustix::fs::openat(
            held.as_ref().unwrap_or(directory).as_fd(),
            *name,
            flags,
            Mode::empty(),
        )?;
        held = Some(below);
    }
    let flags = read_flags() | OFlags::NOFOLLOW;
    rustix::fs::openat(
        held.as_ref().unwrap_or(directory).as_fd(),
        *file,
        flags,
        Mode::empty(),
    )
}
