//! Files of the system that the kernel reads in place of asking for each part (passthrough): a text that lies whole in its
//! unlinked file is read at that file's speed, and takes no second place in the page cache.
//!
//! The kernel (6.9 and later) lets only root hand it a file, and not one on a file system that lies on another; in all
//! these cases the text is read through this process. It refuses to open an inode in two ways at once, so the first
//! opening decides for all until the last one is closed.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};

use fuser::{BackingId, ReplyOpen};

use crate::tree::SpilledText;

/// How each open inode was opened.
#[derive(Default)]
pub(super) struct Backings(Mutex<HashMap<u64, Opened>>);

#[derive(Default)]
struct Opened {
    handles: usize,
    backing: Option<Arc<BackingId>>,
}

impl Backings {
    /// Notes that an inode is being opened, and says which file the kernel is to read, if any: `file`, unless the inode is
    /// open already in another way.
    pub(super) fn open(
        &self,
        ino: u64,
        file: Option<&SpilledText>,
        reply: &ReplyOpen,
    ) -> Option<Arc<BackingId>> {
        let hand_over = |file: &SpilledText| reply.open_backing(file.as_fd()).ok().map(Arc::new);
        let mut inodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = inodes.entry(ino).or_default();
        if opened.handles == 0 {
            opened.backing = file.and_then(hand_over);
        }
        opened.handles += 1;
        opened.backing.clone()
    }

    /// Notes that one opening of an inode has ended.
    pub(super) fn close(&self, ino: u64) {
        let mut inodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(opened) = inodes.get_mut(&ino) else {
            return;
        };
        opened.handles = opened.handles.saturating_sub(1);
        let ended = (opened.handles == 0).then(|| inodes.remove(&ino));
        drop(inodes);
        drop(ended);
    }
}
