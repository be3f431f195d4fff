//! `bergfs cache`: what lies in a cache on disk.

use std::io::{self, Write};

use super::{CacheAction, CacheArgs};
use crate::cache::disk::{self, Usage};

pub(super) fn run(args: &CacheArgs) -> anyhow::Result<()> {
    let parent = &args.cache_dir;
    let mut out = io::stdout();
    match args.action {
        CacheAction::Show => out.write_all(table(&disk::usage(parent)?).as_bytes())?,
        CacheAction::Clear => writeln!(out, "{} bytes freed", disk::clear(parent)?)?,
    }
    Ok(())
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
