//! `bergfs cache`: what lies in a cache on disk.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;

use super::{CacheAction, CacheArgs};
use crate::cache::disk::{self, Usage};

pub(super) fn run(args: &CacheArgs) -> anyhow::Result<()> {
    let parent = match &args.cache_dir {
        Some(directory) => directory.clone(),
        None => default_directory(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
            .context("there is no home directory: say where the cache lies with --cache-dir")?,
    };
    let mut out = io::stdout();
    match args.action {
        CacheAction::Show => out.write_all(table(&disk::usage(&parent)?).as_bytes())?,
        CacheAction::Clear => writeln!(out, "{} bytes freed", disk::clear(&parent)?)?,
    }
    Ok(())
}

/// `bergfs` in the user's directory for caches.
fn default_directory(caches: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let set = |directory: Option<OsString>| directory.filter(|directory| !directory.is_empty());
    let caches = set(caches).map(PathBuf::from);
    let caches = caches.or_else(|| Some(PathBuf::from(set(home)?).join(".cache")))?;
    Some(caches.join("bergfs"))
}

/// What `show` prints: the kinds, their sum, and the uses.
fn table(usage: &Usage) -> String {
    let mut text = format!("{:<12} {:>10} {:>16}\n", "kind", "entries", "bytes");
    let (mut entries, mut bytes) = (0u64, 0u64);
    for kind in &usage.kinds {
        text.push_str(&line(&kind.kind, kind.entries, kind.bytes));
        entries = entries.saturating_add(kind.entries);
        bytes = bytes.saturating_add(kind.bytes);
    }
    text.push_str(&line("total", entries, bytes));
    let totals = usage.totals;
    text.push_str(&format!("hits {}, misses {}\n", totals.hits, totals.misses));
    text
}

fn line(kind: &str, entries: u64, bytes: u64) -> String {
    format!("{kind:<12} {entries:>10} {bytes:>16}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_directory_is_the_users_for_caches() {
        let of = |caches: Option<&str>, home: Option<&str>| {
            default_directory(caches.map(Into::into), home.map(Into::into))
        };
        assert_eq!(of(Some("/c"), Some("/h")), Some("/c/bergfs".into()));
        assert_eq!(of(Some(""), Some("/h")), Some("/h/.cache/bergfs".into()));
        assert_eq!(of(None, None), None);
    }
}
