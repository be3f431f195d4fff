//! Counters of the work the process has done since it started, shown by `.bergfs/stats` and checked exactly by tests.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter.
///
/// Counts only grow, so a test takes a [`Counters::snapshot`] before and after and compares.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Everything that is counted.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: Counter),* }
        impl Counters {
            /// Names and values, in the order `.bergfs/stats` lists them.
            pub fn snapshot(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get())),*]
            }

            /// What was counted since an earlier snapshot: the names that grew, and by how much.
            pub fn since(&self, earlier: &[(&'static str, u64)]) -> Vec<(&'static str, u64)> {
                let before = |name| earlier.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count);
                let grown = self.snapshot().into_iter().map(|(name, now)| (name, now.saturating_sub(before(name))));
                grown.filter(|(_, count)| *count > 0).collect()
            }
        }
    };
}

counters! {
    /// Table metadata files parsed.
    metadata_read,
    /// Manifest lists parsed.
    manifest_lists_read,
    /// Manifests parsed.
    manifests_read,
    /// Data files whose footer was parsed.
    footers_read,
    /// Avro and ORC files converted to Parquet.
    files_converted,
    /// Position delete files and deletion vectors read.
    position_deletes_read,
    /// Equality delete files read.
    equality_deletes_read,
    /// Keys of data files that were looked for among deleted ones: rows, or entries of a dictionary.
    equality_keys_asked,
    /// Read calls on files of the tables.
    source_reads,
    /// Bytes those calls gave.
    source_bytes,
    /// Requests sent to stores, those that were sent again included.
    store_requests,
    /// Bytes of the answers' bodies.
    store_bytes,
    /// Questions to catalogs and to those who give out their tokens.
    catalog_requests,
    /// Requests sent again, after throttling, a reset, a broken answer or silence.
    store_retries,
    /// Column chunks transcoded (a chunk made again after eviction counts again).
    chunks_transcoded,
    /// Bytes served of slots: of chunks that are made, and of what fills their slots up.
    slot_bytes_served,
    /// Bytes of them that fill up.
    padding_bytes_served,
    /// Data pages decompressed or decoded, of data files.
    pages_decoded,
    /// Virtual footers made.
    footers_made,
    /// Pieces of text rendered (a piece rendered again counts again).
    text_pieces_rendered,
    /// Texts sized.
    texts_sized,
    /// Openings of files that the kernel reads without asking.
    files_passed_through,
    /// Look-ups in the memory cache that found their entry.
    cache_hits,
    /// Look-ups that did not.
    cache_misses,
    /// Entries that left the memory cache for the spill file.
    cache_spilled,
    /// Look-ups in the cache on disk that found their entry.
    disk_cache_hits,
    /// Look-ups that did not.
    disk_cache_misses,
    /// Entries written to the cache on disk.
    disk_cache_writes,
    /// Entries that were not, since too many waited, the disk was full, or they were too large.
    disk_cache_dropped,
    /// Entries that were torn or altered, and deleted.
    disk_cache_damaged,
    /// Entries deleted to make room.
    disk_cache_evicted,
    /// Entries that no live snapshot leads to, set to go first.
    disk_cache_pruned,
}
