//! How much memory the cache may take when the user does not say.

use std::fs;
use std::path::{Path, PathBuf};

/// 192 MiB: holds the manifests and footers of a table of some ten thousand files. The process as a whole stays within
/// 256 MiB: the rest is for its threads, buffers, and what is being decoded.
const DEFAULT: usize = 192 * 1024 * 1024;

/// Bytes: 192 MiB, or a quarter of what the process's cgroup grants (version 1 or 2, the tightest group above it
/// counts) if that is less.
pub fn default_budget() -> usize {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    match memory_limit(&groups, Path::new("/sys/fs/cgroup")) {
        Some(limit) => DEFAULT.min(usize::try_from(limit / 4).unwrap_or(DEFAULT)),
        None => DEFAULT,
    }
}

/// The tightest memory limit, in bytes, of the groups listed in `groups` (the text of `/proc/self/cgroup`) and of the
/// groups above them. `None`: no group limits memory.
pub(super) fn memory_limit(groups: &str, mount: &Path) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| limit_of_line(line, mount))
        .min()
}

/// A line is `hierarchy:controllers:path`; hierarchy 0 without controllers is version 2.
fn limit_of_line(line: &str, mount: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    let (hierarchy, file) = if controllers.is_empty() {
        (mount.to_owned(), "memory.max")
    } else if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        (mount.join("memory"), "memory.limit_in_bytes")
    } else {
        return None;
    };
    // In a container the path may be the host's, of which only the mount's root is seen: it is always looked at.
    let own: PathBuf = hierarchy.join(group.trim_start_matches('/'));
    own.ancestors()
        .take_while(|group| group.starts_with(&hierarchy))
        .filter_map(|group| limit(&group.join(file)))
        .min()
}

/// `max` and version 1's huge number both mean that there is no limit; the latter is larger than any budget anyway.
fn limit(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
