//! The FUSE adapter: kernel requests to calls on the tree, and their answers back.
//!
//! Thin on purpose; what can be decided without a kernel is decided in [`crate::tree`]. Here are inode numbers
//! ([`inodes`]), open handles, and what the kernel may cache:
//!
//! - names and attributes for as long as the tree says ([`Attributes::lifetime`]), so that a commit shows in time;
//! - no pages of Parquet files whose chunks have to be made, or fetched from a store: readahead past the end of a column
//!   chunk would make the next column's. They open with `FOPEN_DIRECT_IO` and the mount asks for
//!   `FUSE_DIRECT_IO_ALLOW_MMAP`; a kernel before 6.6 has no mmap on such files, and there they open through the page
//!   cache, as local files that are nearly all source bytes, and files of many short chunks, do everywhere;
//! - no pages of files that differ from one opening to the next; the pages of the others for ever;
//! - no pages of a text that lies whole in a file of the system, which the kernel reads by itself ([`backing`]);
//! - no size of a text that has not been sized: [`Filesystem::lookup`] answers with a lifetime of nothing, and whoever
//!   asks for the size waits for it ([`waiting`]). The kernel would ask for attributes before it opens a file if it
//!   checked permissions (`default_permissions`), so that `head` would wait too; there is nothing to check: everybody
//!   may read every file, and nobody may write or execute one.
//!
//! Some threads take requests from the kernel, and each answers what it has taken: a read of what is in memory takes less
//! time than handing it to another thread. A slow read holds up nobody as long as others are free, and none of them waits
//! for a sizing; who did wait is answered by other threads ([`workers`]). A panic answers `EIO` and is noted; it never
//! ends the session.

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use bytes::Bytes;
use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use crate::tree::{Attributes, Caching, ErrorKind, Kind, Node, OpenFile, Sizing, Tree, TreeError};

mod backing;
mod buffers;
mod handles;
mod inodes;
mod mount;
mod waiting;
mod workers;

pub use mount::{Event, Mount, MountOptions, MountTable, MountedAt, resolve, unmount};

use backing::Backings;
use buffers::{Buffer, Buffers};
use handles::{Handles, Listing};
use inodes::Inodes;
use waiting::Waiting;
use workers::Workers;

/// Bytes of one read the kernel sends at most, and more than any it sends.
const MAX_READ: u32 = 16 << 20;

/// The extended attribute that holds a name which had to be cut.
const NAME_ATTRIBUTE: &str = "user.bergfs.name";

/// Who owns the files.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// The filesystem, as `fuser` serves it.
pub(crate) struct BergFs {
    shared: Arc<Shared>,
    /// For those who have waited.
    workers: Arc<Workers>,
    waiting: Arc<Waiting>,
    /// Told when the kernel has ended the session.
    ended: Sender<mount::Event>,
}

/// What all threads work on.
struct Shared {
    tree: Arc<Tree>,
    owner: Owner,
    inodes: Inodes,
    files: Handles<OpenFile>,
    listings: Handles<Listing>,
    backings: Backings,
    buffers: Arc<Buffers>,
    /// Whether files that are read past the page cache can be mapped into memory.
    direct_mmap: bool,
}

impl BergFs {
    pub(crate) fn new(tree: Arc<Tree>, owner: Owner, ended: Sender<mount::Event>) -> BergFs {
        let root = tree.root();
        BergFs {
            shared: Arc::new(Shared {
                tree,
                owner,
                inodes: Inodes::new(root),
                files: Handles::default(),
                listings: Handles::default(),
                backings: Backings::default(),
                buffers: Arc::default(),
                direct_mmap: false,
            }),
            workers: Arc::new(Workers::new()),
            waiting: Arc::default(),
            ended,
        }
    }

    /// Does work that may have to wait for a sizing, inside the panic boundary, and hands its outcome to `answer`. No
    /// thread waits with it. `thread` is the one that asks.
    fn answer_sized<T: 'static>(
        &self,
        what: &'static str,
        thread: u32,
        awaited: impl FnOnce(&Shared) -> Result<Option<Arc<Sizing>>, Errno>,
        work: impl FnOnce(&Shared, Option<&Sizing>) -> Result<T, Errno> + Send + 'static,
        answer: impl FnOnce(Result<T, Errno>) + Send + 'static,
    ) {
        match self.shared.guarded(what, awaited) {
            Ok(None) => answer(self.shared.guarded(what, |shared| work(shared, None))),
            Ok(Some(sizing)) => {
                let (shared, workers) = (Arc::clone(&self.shared), Arc::clone(&self.workers));
                let joined = Arc::clone(&sizing);
                self.waiting.park(sizing, thread, move |ended| {
                    let work =
                        move |shared: &Shared| ended.and_then(|()| work(shared, Some(&joined)));
                    workers.run(Box::new(move || answer(shared.guarded(what, work))));
                });
            }
            Err(errno) => answer(Err(errno)),
        }
    }
}

/// What a read gives.
enum ReadBytes {
    /// Bytes that are in memory anyway.
    Shared(Bytes),
    /// So many of a buffer's.
    Buffer(Buffer, usize),
}

impl Shared {
    /// Does work inside the panic boundary.
    fn guarded<T>(
        &self,
        what: &str,
        work: impl FnOnce(&Shared) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        outcome.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let reason = format!("bug: {what} panicked: {}", text.unwrap_or("no message"));
            self.tree.faults().record("/", &reason);
            Err(Errno::EIO)
        })
    }

    fn node(&self, ino: INodeNo) -> Result<Node, Errno> {
        self.inodes.node(ino.0).ok_or(Errno::ESTALE)
    }

    fn lookup(&self, parent: INodeNo, name: &OsStr) -> Result<(Attributes, FileAttr), Errno> {
        let directory = self.node(parent)?;
        // Every name in the tree is UTF-8.
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let node = self.tree.lookup(&directory, name).map_err(errno)?;
        let attributes = self.tree.named_attributes(&node).map_err(errno)?;
        let ino = self.inodes.remember(parent.0, name, node);
        Ok((attributes, self.file_attr(ino, &attributes)))
    }

    fn file_attr(&self, ino: u64, attributes: &Attributes) -> FileAttr {
        let time = attributes.modified;
        let (kind, perm) = match attributes.kind {
            Kind::Directory => (FileType::Directory, 0o555),
            Kind::File => (FileType::RegularFile, 0o444),
            Kind::Link => (FileType::Symlink, 0o777),
        };
        FileAttr {
            ino: INodeNo(ino),
            size: attributes.size,
            blocks: attributes.size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            // Of a directory too: as two it would say that there is no directory below.
            nlink: 1,
            uid: self.owner.uid,
            gid: self.owner.gid,
            rdev: 0,
            blksize: 1 << 20,
            flags: 0,
        }
    }

    fn open_flags(&self, file: &OpenFile) -> FopenFlags {
        match file.caching() {
            Caching::Exact if self.direct_mmap => FopenFlags::FOPEN_DIRECT_IO,
            Caching::Exact | Caching::Immutable => FopenFlags::FOPEN_KEEP_CACHE,
            Caching::Fresh => FopenFlags::empty(),
            Caching::None => FopenFlags::FOPEN_DIRECT_IO,
        }
    }

    fn read(&self, file: &OpenFile, offset: u64, size: usize) -> Result<ReadBytes, Errno> {
        let shared = self.tree.read_shared(file, offset, size).map_err(errno)?;
        if let Some(bytes) = shared {
            return Ok(ReadBytes::Shared(bytes));
        }
        let mut buffer = self.buffers.take(size);
        let bytes = buffer.bytes.get_mut(..size).unwrap_or_default();
        let len = self.tree.read(file, offset, bytes).map_err(errno)?;
        Ok(ReadBytes::Buffer(buffer, len))
    }

    fn list(&self, ino: INodeNo) -> Result<Listing, Errno> {
        let node = self.node(ino)?;
        let entries = self.tree.list(&node).map_err(errno)?;
        Ok(Listing::new(ino.0, self.inodes.parent(ino.0), entries))
    }

    fn xattr(&self, ino: INodeNo) -> Result<Option<String>, Errno> {
        Ok(self.tree.full_name(&self.node(ino)?))
    }
}

/// The error number of a failure in the tree.
fn errno(error: TreeError) -> Errno {
    match error.kind {
        ErrorKind::NotFound | ErrorKind::Absent => Errno::ENOENT,
        ErrorKind::NotDirectory => Errno::ENOTDIR,
        ErrorKind::IsDirectory => Errno::EISDIR,
        ErrorKind::Invalid => Errno::EINVAL,
        ErrorKind::Io | ErrorKind::Unfinished => Errno::EIO,
        ErrorKind::Unsupported => Errno::ENOTSUP,
        ErrorKind::Stale => Errno::ESTALE,
    }
}

/// Answers a question about an extended attribute's value, or the list of names, as its protocol has it.
fn reply_xattr(value: &[u8], size: u32, reply: ReplyXattr) {
    match u32::try_from(value.len()) {
        Ok(len) if size == 0 => reply.size(len),
        Ok(len) if len <= size => reply.data(value),
        _ => reply.error(Errno::ERANGE),
    }
}

impl Filesystem for BergFs {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let direct_mmap = config
            .add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP)
            .is_ok();
        // Look-ups and listings in one directory need no order between them; nor do reads of one file.
        let wished = [InitFlags::FUSE_PARALLEL_DIROPS, InitFlags::FUSE_ASYNC_DIO];
        for flag in wished {
            let _ = config.add_capabilities(flag);
        }
        // With this depth a file system may still be laid over the mount.
        if config.set_max_stack_depth(1).is_ok() {
            let _ = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH);
        }
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.direct_mmap = direct_mmap;
        }
        Ok(())
    }

    fn destroy(&mut self) {
        let _ = self.ended.send(mount::Event::Ended);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let work = |shared: &Shared| shared.lookup(parent, name);
        match self.shared.guarded("lookup", work) {
            Ok((attributes, attr)) => reply.entry(&attributes.lifetime, &attr, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, nlookup: u64) {
        self.shared.inodes.forget(ino.0, nlookup);
    }

    fn getattr(&self, request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let awaited = |shared: &Shared| shared.tree.sizing(&shared.node(ino)?).map_err(errno);
        let work = move |shared: &Shared, sizing: Option<&Sizing>| {
            let node = shared.node(ino)?;
            shared.tree.check_sizing(&node, sizing).map_err(errno)?;
            let attributes = shared.tree.attributes(&node).map_err(errno)?;
            Ok((attributes.lifetime, shared.file_attr(ino.0, &attributes)))
        };
        let thread = request.pid();
        self.answer_sized("getattr", thread, awaited, work, |outcome| match outcome {
            Ok((lifetime, attr)) => reply.attr(&lifetime, &attr),
            Err(errno) => reply.error(errno),
        });
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let work = |shared: &Shared| shared.tree.read_link(&shared.node(ino)?).map_err(errno);
        match self.shared.guarded("readlink", work) {
            Ok(target) => reply.data(target.as_bytes()),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        let shared = &self.shared;
        let work = |shared: &Shared| {
            let file = shared.tree.open(&shared.node(ino)?).map_err(errno)?;
            let (flags, backing) = (shared.open_flags(&file), file.backing());
            Ok((shared.files.add(file), flags, backing))
        };
        match shared.guarded("open", work) {
            Ok((handle, flags, file)) => {
                let handle = FileHandle(handle);
                match shared.backings.open(ino.0, file.as_deref(), &reply) {
                    Some(backing) => {
                        shared.tree.counters().files_passed_through.add(1);
                        reply.opened_passthrough(handle, FopenFlags::empty(), &backing);
                    }
                    None => reply.opened(handle, flags),
                }
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let awaited = |shared: &Shared| {
            let file = shared.files.get(fh.0).ok_or(Errno::EBADF)?;
            Ok(shared.tree.awaited(&file, offset))
        };
        let work = move |shared: &Shared, sizing: Option<&Sizing>| {
            let file = shared.files.get(fh.0).ok_or(Errno::EBADF)?;
            shared
                .tree
                .check_sizing(file.node(), sizing)
                .map_err(errno)?;
            let size = usize::try_from(size.min(MAX_READ)).map_err(|_| Errno::EINVAL)?;
            shared.read(&file, offset, size)
        };
        let thread = request.pid();
        self.answer_sized("read", thread, awaited, work, |outcome| match outcome {
            Ok(ReadBytes::Shared(bytes)) => reply.data(&bytes),
            Ok(ReadBytes::Buffer(buffer, len)) => {
                reply.data(buffer.bytes.get(..len).unwrap_or_default());
            }
            Err(errno) => reply.error(errno),
        });
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // The kernel takes this for success, and does not ask again at each `close`.
        reply.error(Errno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.shared.files.remove(fh.0);
        self.shared.backings.close(ino.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let work = |shared: &Shared| Ok(shared.listings.add(shared.list(ino)?));
        match self.shared.guarded("opendir", work) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(listing) = self.shared.listings.get(fh.0) else {
            return reply.error(Errno::EBADF);
        };
        for (ino, next, kind, name) in listing.from(offset) {
            let kind = match kind {
                Kind::Directory => FileType::Directory,
                Kind::File => FileType::RegularFile,
                Kind::Link => FileType::Symlink,
            };
            if reply.add(INodeNo(ino), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, fh: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.shared.listings.remove(fh.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // Full, and with nothing to fill: as other read-only filesystems of unknown size say it.
        reply.statfs(0, 0, 0, 0, 0, 4096, 255, 4096);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if name != NAME_ATTRIBUTE {
            return reply.error(Errno::NO_XATTR);
        }
        let work = |shared: &Shared| shared.xattr(ino);
        match self.shared.guarded("getxattr", work) {
            Ok(Some(value)) => reply_xattr(value.as_bytes(), size, reply),
            Ok(None) => reply.error(Errno::NO_XATTR),
            Err(errno) => reply.error(errno),
        }
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let work = |shared: &Shared| shared.xattr(ino);
        match self.shared.guarded("listxattr", work) {
            Ok(Some(_)) => reply_xattr(format!("{NAME_ATTRIBUTE}\0").as_bytes(), size, reply),
            Ok(None) => reply_xattr(&[], size, reply),
            Err(errno) => reply.error(errno),
        }
    }

    fn access(&self, _: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let node = self.shared.node(ino);
        let is_file = || {
            node.as_ref()
                .is_ok_and(|node| self.shared.tree.kind(node) == Kind::File)
        };
        if mask.contains(AccessFlags::W_OK) {
            reply.error(Errno::EROFS)
        } else if mask.contains(AccessFlags::X_OK) && is_file() {
            reply.error(Errno::EACCES)
        } else {
            reply.ok()
        }
    }

    // What writes. The mount is read-only, so the kernel refuses first, unless somebody remounts it.

    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EROFS);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &std::path::Path, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::EROFS);
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn setxattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }
}
