//! How glibc's allocator is told to give memory back.
//!
//! The daemon makes and drops buffers of some megabytes on many threads. By default glibc keeps what is dropped, for each
//! thread's arena by itself, so that the process came to hold more than twice its cache budget (measured on six million
//! rows: 700 MB resident with a budget of 256 MiB; 280 MB with these settings, in the same time). Memory that comes anew
//! from the system costs a page fault every 4 KiB, so large pages are asked for (measured on the same: a seventh less
//! time, and no more memory). The settings are read when a process starts, so this program runs itself with them.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Large buffers go back to the system when they are dropped, but not those of single pages, which writers make 1 MiB
/// long and a little more (with a threshold of 1 MiB each was mapped and cleared anew: measured on six million rows,
/// three times the page faults, a tenth more time for making all chunks, and the same peak); threads share two arenas,
/// each of which keeps some megabytes for the next pages (giving those back and taking them anew took a tenth of the
/// time of making chunks); large pages where there are.
const SETTINGS: [(&str, &str); 5] = [
    ("MALLOC_MMAP_THRESHOLD_", "4194304"),
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_TRIM_THRESHOLD_", "8388608"),
    ("MALLOC_TOP_PAD_", "1048576"),
    ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
];

/// Adds the settings that the user has not made.
pub(super) fn settle(command: &mut Command) {
    for (name, value) in SETTINGS {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
}

/// Runs this program anew in this process with the settings, unless it has them. Goes on without them where it cannot.
pub(super) fn settle_self() {
    if SETTINGS
        .iter()
        .all(|(name, _)| std::env::var_os(name).is_some())
    {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1));
        settle(&mut command);
        let error = command.exec();
        tracing::debug!(%error, "the allocator's settings stay as they are");
    }
}
