//! Mounting and unmounting, and what `/proc/self/mountinfo` says is mounted where.
//!
//! `fuser` would unmount by path when its session is dropped, whatever is mounted at that path by then. So its handle
//! is never dropped: [`Mount`] unmounts by itself, and only after it has seen that the mount at the path is its own.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::mount::UnmountFlags;

use crate::tree::Tree;

use super::{BergFs, Owner};

/// The file system type that mountinfo shows.
const FILE_SYSTEM: &str = "fuse.bergfs";

/// How long unmounting waits for the session to end.
const ENDING: Duration = Duration::from_secs(5);

/// Requests answered at once. They mostly wait for storage, so more than there are cores; beyond it the kernel's queue
/// holds them, and who asks can be killed.
const THREADS: usize = 12;

/// How a tree is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// What is mounted, for the mount table, which everybody can read.
    pub source: String,
    /// Whether users other than the one who mounts may look in.
    pub allow_other: bool,
    pub owner: Owner,
}

/// What ends a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The kernel has: somebody unmounted it.
    Ended,
    /// Somebody asks this process to.
    Stop,
}

/// A mounted tree.
pub struct Mount {
    session: std::mem::ManuallyDrop<BackgroundSession>,
    mountpoint: PathBuf,
    device: (u32, u32),
    events: Receiver<Event>,
    stop: Sender<Event>,
}

impl Mount {
    /// Mounts a tree at a directory (an absolute path without links) and serves it until the mount ends. The mount
    /// answers when this returns.
    pub fn new(tree: Arc<Tree>, mountpoint: &Path, options: &MountOptions) -> io::Result<Mount> {
        let (stop, events) = channel();
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::RO,
            MountOption::NoSuid,
            MountOption::NoDev,
            MountOption::NoExec,
            MountOption::FSName(plain(&options.source)),
            // As a kernel option, so that root's mounts, which no helper makes, have the type too.
            MountOption::CUSTOM("subtype=bergfs".to_owned()),
        ];
        config.acl = if options.allow_other {
            SessionACL::All
        } else {
            SessionACL::Owner
        };
        config.n_threads = Some(THREADS);
        let filesystem = BergFs::new(tree, options.owner, stop.clone());
        let session = Session::new(filesystem, mountpoint, &config)?.spawn()?;
        let session = std::mem::ManuallyDrop::new(session);
        let answer = std::fs::metadata(mountpoint);
        let device = answer
            .inspect_err(|_| drop(unmount(mountpoint, true)))?
            .dev();
        let device = (rustix::fs::major(device), rustix::fs::minor(device));
        let mountpoint = mountpoint.to_owned();
        Ok(Mount {
            session,
            mountpoint,
            device,
            events,
            stop,
        })
    }

    /// Where to send [`Event::Stop`].
    pub fn stopper(&self) -> Sender<Event> {
        self.stop.clone()
    }

    /// Waits until the mount ends, or unmounts when told to stop.
    pub fn wait(self) -> io::Result<()> {
        if self.events.recv() != Ok(Event::Stop) {
            return Ok(());
        }
        let top = MountTable::read()?.top(&self.mountpoint);
        if top.is_none_or(|mount| mount.device != self.device) {
            let mountpoint = self.mountpoint.display();
            tracing::warn!(%mountpoint, "not what is mounted there now, which is left alone");
            return Ok(());
        }
        // Files that are open keep a mount busy; who asks this process to end means it.
        unmount(&self.mountpoint, false).or_else(|_| unmount(&self.mountpoint, true))?;
        let begun = Instant::now();
        while !self.session.guard.is_finished() && begun.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// A source's name as a mount option can hold it: a comma would begin another option.
fn plain(source: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_graphic() && !matches!(c, ',' | '\\' | '"' | '#') {
            c
        } else {
            '_'
        }
    };
    source.chars().map(allowed).collect()
}

/// Unmounts what is mounted at a path; `lazy`: detached now, gone when nobody uses it any more.
pub fn unmount(mountpoint: &Path, lazy: bool) -> io::Result<()> {
    let flags = UnmountFlags::NOFOLLOW
        | if lazy {
            UnmountFlags::DETACH
        } else {
            UnmountFlags::empty()
        };
    match rustix::mount::unmount(mountpoint, flags) {
        Err(rustix::io::Errno::PERM) => {}
        outcome => return Ok(outcome?),
    }
    // Only root may unmount; for others there is FUSE's own program.
    let mut command = Command::new("fusermount3");
    command
        .arg("-u")
        .args(lazy.then_some("-z"))
        .arg("--")
        .arg(mountpoint);
    let output = command
        .output()
        .map_err(|e| io::Error::new(e.kind(), format!("fusermount3: {e} (is fuse3 installed?)")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let kind = if message.contains("busy") {
        io::ErrorKind::ResourceBusy
    } else {
        io::ErrorKind::Other
    };
    Err(io::Error::new(kind, message))
}

/// What is mounted at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedAt {
    pub mountpoint: PathBuf,
    /// Major and minor device number.
    pub device: (u32, u32),
    pub file_system: String,
    /// Of FUSE mounts: who mounted it.
    pub user_id: Option<u32>,
}

impl MountedAt {
    /// Whether bergfs mounted it.
    pub fn is_bergfs(&self) -> bool {
        self.file_system == FILE_SYSTEM
    }

    fn parse(line: &[u8]) -> Option<MountedAt> {
        let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        let (before, after) = (fields.get(..dash)?, fields.get(dash + 1..)?);
        let device = std::str::from_utf8(before.get(2)?).ok()?.split_once(':')?;
        let user = std::str::from_utf8(after.get(2)?)
            .ok()?
            .split(',')
            .find_map(|o| o.strip_prefix("user_id="));
        Some(MountedAt {
            mountpoint: PathBuf::from(OsString::from_vec(unescape(before.get(4)?))),
            device: (device.0.parse().ok()?, device.1.parse().ok()?),
            file_system: String::from_utf8_lossy(after.first()?).into_owned(),
            user_id: user.and_then(|id| id.parse().ok()),
        })
    }
}

/// The mounts of this process's namespace, in order.
#[derive(Debug)]
pub struct MountTable(Vec<MountedAt>);

impl MountTable {
    /// Reads `/proc/self/mountinfo`.
    pub fn read() -> io::Result<MountTable> {
        let text = std::fs::read("/proc/self/mountinfo")?;
        Ok(MountTable(
            text.split(|b| *b == b'\n')
                .filter_map(MountedAt::parse)
                .collect(),
        ))
    }

    /// The mount that is seen at a path: the last one made there.
    pub fn top(&self, path: &Path) -> Option<MountedAt> {
        self.0
            .iter()
            .rev()
            .find(|mount| mount.mountpoint == path)
            .cloned()
    }
}

/// Undoes mountinfo's `\040` and the like.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// A path without links, also where its last component cannot be looked at because the daemon behind it is dead.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    match absolute.canonicalize() {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error()) => {
            let parent = absolute
                .parent()
                .ok_or_else(|| io::Error::from(error.kind()))?;
            Ok(parent
                .canonicalize()?
                .join(absolute.file_name().unwrap_or(OsStr::from_bytes(b""))))
        }
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn mountinfo_is_read_with_its_escapes() {
        let line = br"36 35 0:51 / /mnt/a\040b ro,nosuid - fuse.bergfs /data ro,user_id=1000,group_id=1000";
        let mount = MountedAt::parse(line).unwrap();
        assert_eq!(mount.mountpoint, Path::new("/mnt/a b"));
        assert_eq!((mount.device, mount.user_id), ((0, 51), Some(1000)));
        assert!(mount.is_bergfs());
    }

    #[test]
    fn a_source_cannot_add_mount_options() {
        assert_eq!(plain("/data/a,suid b"), "/data/a_suid_b");
    }
}
