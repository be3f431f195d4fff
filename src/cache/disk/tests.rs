#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

const MIB: u64 = 1 << 20;

fn open(parent: &Path, budget: u64) -> DiskCache {
    DiskCache::open(parent, budget, "test", &Arc::default()).unwrap()
}

fn key(id: &str) -> DiskKey {
    DiskKey {
        kind: "test",
        id: id.to_owned(),
        tag: Tag::NONE,
    }
}

fn put(cache: &DiskCache, key: &DiskKey, bytes: &[u8]) {
    let parts = vec![Bytes::copy_from_slice(bytes)];
    cache.put(key, Payload::Parts(parts));
    cache.settle(LIMIT);
}

/// The files of the entries.
fn files(parent: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for shard in fs::read_dir(parent.join("bergfs-cache-1")).unwrap() {
        let shard = shard.unwrap();
        if shard.file_type().unwrap().is_dir() && shard.file_name() != "new" {
            let entries = fs::read_dir(shard.path()).unwrap();
            files.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    files
}

/// Blocks of the entries, as `du` counts them.
fn on_disk(parent: &Path) -> u64 {
    let blocks = |path: &PathBuf| fs::metadata(path).unwrap().blocks() * 512;
    files(parent).iter().map(blocks).sum()
}

/// Sets when an entry was used last: seconds since 1970.
fn set_used(cache: &DiskCache, parent: &Path, key: &DiskKey, seconds: u64) {
    let path = parent.join("bergfs-cache-1").join(cache.name(key).0.path());
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    let file = File::options().write(true).open(path).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn an_entry_outlives_the_cache_that_wrote_it() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    assert_eq!(cache.get(&key("a")), None);
    put(&cache, &key("a"), b"bytes");
    cache.put(
        &key("stream"),
        Payload::Stream {
            len: 3_000_000,
            read: Box::new(std::io::repeat(7)),
        },
    );
    cache.settle(LIMIT);
    assert_eq!(
        cache.get(&key("stream")),
        None,
        "larger than half the budget"
    );
    drop(cache);
    let cache = open(parent.path(), 100 * MIB);
    assert_eq!(cache.get(&key("a")).as_deref(), Some(&b"bytes"[..]));
    cache.put(
        &key("stream"),
        Payload::Stream {
            len: 3_000_000,
            read: Box::new(std::io::repeat(7)),
        },
    );
    put(&cache, &key("parts"), b"");
    assert_eq!(cache.get(&key("parts")).as_deref(), Some(&b""[..]));
    let mut out = Vec::new();
    assert_eq!(cache.get_to(&key("stream"), &mut out), Some(3_000_000));
    assert!(out == vec![7; 3_000_000]);
    let counters = &cache.counters;
    assert_eq!(
        (
            counters.disk_cache_hits.get(),
            counters.disk_cache_misses.get(),
            counters.disk_cache_writes.get()
        ),
        (3, 0, 2)
    );
}

#[test]
fn another_program_kind_or_tag_has_other_entries() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    put(&cache, &key("a"), b"bytes");
    let other = DiskCache::open(parent.path(), MIB, "another build", &Arc::default()).unwrap();
    assert_eq!(other.get(&key("a")), None);
    let kind = DiskKey {
        kind: "other",
        ..key("a")
    };
    assert_eq!(cache.get(&kind), None);
}

#[test]
fn a_stream_that_ends_early_leaves_nothing_behind() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    cache.put(
        &key("a"),
        Payload::Stream {
            len: 10,
            read: Box::new(std::io::Cursor::new(b"short")),
        },
    );
    cache.settle(LIMIT);
    assert_eq!(cache.get(&key("a")), None);
    assert!(files(parent.path()).is_empty());
    let new = fs::read_dir(parent.path().join("bergfs-cache-1/new")).unwrap();
    assert_eq!(new.count(), 0);
}

#[test]
fn every_bit_of_an_entry_that_flips_is_noticed() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    put(&cache, &key("a"), b"some bytes");
    let [path] = &files(parent.path())[..] else {
        panic!("one entry");
    };
    let sound = fs::read(path).unwrap();
    for bit in 0..sound.len() * 8 {
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(path, &flipped).unwrap();
        assert_eq!(cache.get(&key("a")), None, "bit {bit}");
        assert!(!path.exists(), "it is deleted");
    }
    assert_eq!(
        cache.counters.disk_cache_damaged.get(),
        sound.len() as u64 * 8
    );
    put(&cache, &key("a"), b"some bytes");
    assert!(cache.get(&key("a")).is_some(), "and made again");
}

#[test]
fn a_torn_entry_or_one_with_a_tail_is_noticed() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    put(&cache, &key("a"), b"some bytes");
    let [path] = &files(parent.path())[..] else {
        panic!("one entry");
    };
    let mut sound = fs::read(path).unwrap();
    for len in 0..sound.len() {
        fs::write(path, &sound[..len]).unwrap();
        assert_eq!(cache.get(&key("a")), None, "{len} bytes");
        fs::write(path, &sound[..len]).unwrap();
        let mut out = Vec::new();
        assert_eq!(cache.get_to(&key("a"), &mut out), None, "{len} bytes");
    }
    sound.push(0);
    fs::write(path, &sound).unwrap();
    assert_eq!(cache.get(&key("a")), None);
}

#[test]
fn an_entry_under_another_ones_name_is_not_taken_for_it() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    put(&cache, &key("a"), b"of a");
    let [path] = &files(parent.path())[..] else {
        panic!("one entry");
    };
    let of_a = fs::read(path).unwrap();
    put(&cache, &key("b"), b"of b");
    let of_b = files(parent.path())
        .into_iter()
        .find(|other| other != path)
        .unwrap();
    fs::write(of_b, of_a).unwrap();
    assert_eq!(cache.get(&key("b")), None);
    assert_eq!(cache.get(&key("a")).as_deref(), Some(&b"of a"[..]));
}

#[test]
fn the_least_recently_used_go_when_the_blocks_pass_the_budget() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    let bytes = vec![1; 100_000];
    for id in 0..8 {
        put(&cache, &key(&id.to_string()), &bytes);
        set_used(&cache, parent.path(), &key(&id.to_string()), 1000 + id);
    }
    assert!(cache.get(&key("0")).is_some(), "which is a use");
    for id in 8..12 {
        put(&cache, &key(&id.to_string()), &bytes);
    }
    assert!(on_disk(parent.path()) <= MIB);
    assert_eq!(on_disk(parent.path()), cache.bytes());
    assert!(cache.get(&key("0")).is_some());
    assert_eq!(cache.get(&key("1")), None);
    assert!(cache.get(&key("11")).is_some());
}

#[test]
fn entries_that_no_snapshot_leads_to_go_first() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    let of = |table: &str, file: &str| DiskKey {
        tag: Tag::new(table, file),
        ..key(&format!("{table} {file}"))
    };
    let bytes = vec![1; 300_000];
    put(&cache, &of("t", "dead"), &bytes);
    put(&cache, &of("t", "live"), &bytes);
    put(&cache, &of("other", "dead"), &bytes);
    set_used(&cache, parent.path(), &of("t", "live"), 1000);
    set_used(&cache, parent.path(), &of("other", "dead"), 2000);
    cache.prune(Arc::new(HashSet::from([Tag::new("t", "live")])));
    put(&cache, &key("more"), &bytes);
    assert_eq!(
        cache.get(&of("t", "dead")),
        None,
        "though it was the newest"
    );
    assert!(cache.get(&of("t", "live")).is_some());
    assert!(cache.get(&of("other", "dead")).is_some());
    assert_eq!(cache.counters.disk_cache_pruned.get(), 1);
}

#[test]
fn what_a_dead_writer_left_is_swept_away_and_what_a_live_one_writes_is_not() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    cache.settle(LIMIT);
    let new = parent.path().join("bergfs-cache-1/new");
    fs::write(new.join("left"), b"half").unwrap();
    let live = cache.directory.new_file().unwrap();
    drop(cache);
    let cache = open(parent.path(), MIB);
    cache.settle(LIMIT);
    assert!(!new.join("left").exists());
    assert_eq!(fs::read_dir(&new).unwrap().count(), 1);
    cache.directory.discard(live);
    assert_eq!(fs::read_dir(&new).unwrap().count(), 0);
}

#[test]
fn two_caches_on_one_directory_share_entries_and_miss_what_the_other_deletes() {
    let parent = TempDir::new().unwrap();
    let (one, two) = (open(parent.path(), MIB), open(parent.path(), MIB));
    std::thread::scope(|scope| {
        for cache in [&one, &two] {
            scope.spawn(move || {
                for id in 0..200 {
                    let text = id.to_string().repeat(20_000);
                    put(cache, &key(&id.to_string()), text.as_bytes());
                    for id in 0..=id {
                        let text = id.to_string().repeat(20_000);
                        let found = cache.get(&key(&id.to_string()));
                        assert!(found.is_none_or(|found| found == text.as_bytes()));
                    }
                }
            });
        }
    });
    put(&one, &key("x"), b"x");
    assert_eq!(two.get(&key("x")).as_deref(), Some(&b"x"[..]));
    // Each may overshoot by what it writes before it lists again.
    assert!(on_disk(parent.path()) <= MIB + MIB / 4);
    for cache in [&one, &two] {
        assert_eq!(cache.counters.disk_cache_damaged.get(), 0);
    }
    clear(parent.path()).unwrap();
    assert_eq!(one.get(&key("x")), None);
    put(&one, &key("x"), b"again");
    assert_eq!(two.get(&key("x")).as_deref(), Some(&b"again"[..]));
}

#[test]
fn a_directory_that_others_can_reach_is_refused() {
    let parent = TempDir::new().unwrap();
    let own = parent.path().join("bergfs-cache-1");
    let refused = || DiskCache::open(parent.path(), MIB, "test", &Arc::default()).unwrap_err();

    let elsewhere = TempDir::new().unwrap();
    symlink(elsewhere.path(), &own).unwrap();
    assert!(matches!(refused(), DirectoryError::NotADirectory { .. }));
    fs::remove_file(&own).unwrap();

    fs::write(&own, b"").unwrap();
    assert!(matches!(refused(), DirectoryError::NotADirectory { .. }));
    fs::remove_file(&own).unwrap();

    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o750)).unwrap();
    assert!(matches!(
        refused(),
        DirectoryError::Mode { mode: 0o750, .. }
    ));
    fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();

    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&own, Some(12345), None).unwrap();
        assert!(matches!(
            refused(),
            DirectoryError::Owner { owner: 12345, .. }
        ));
    } else {
        eprintln!("SKIPPED: a directory of somebody else's, which only root can make");
    }
}

#[test]
fn the_directory_is_made_for_its_owner_alone() {
    let parent = TempDir::new().unwrap();
    let made = parent.path().join("made");
    let cache = open(&made, MIB);
    put(&cache, &key("a"), b"bytes");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&made), 0o700);
    assert_eq!(mode(&made.join("bergfs-cache-1")), 0o700);
    assert_eq!(mode(&files(&made)[0]), 0o600);
}

#[test]
fn directories_of_older_formats_are_removed_and_those_of_newer_ones_left() {
    let parent = TempDir::new().unwrap();
    for name in ["bergfs-cache-0", "bergfs-cache-2", "bergfs-cache-x", "mine"] {
        fs::create_dir(parent.path().join(name)).unwrap();
        fs::write(parent.path().join(name).join("file"), b"").unwrap();
    }
    open(parent.path(), MIB).settle(LIMIT);
    let left = |name: &str| parent.path().join(name).join("file").exists();
    assert!(!left("bergfs-cache-0"));
    assert!(left("bergfs-cache-2") && left("bergfs-cache-x") && left("mine"));
}

#[test]
fn what_lies_in_a_cache_is_told_by_kind_with_the_hits_of_all_processes() {
    let parent = TempDir::new().unwrap();
    assert!(usage(parent.path()).is_err(), "there is none");
    let cache = open(parent.path(), MIB);
    put(&cache, &key("a"), b"bytes");
    put(&cache, &key("b"), &[0; 5000]);
    assert_eq!(cache.get(&key("none")), None);
    let found = usage(parent.path()).unwrap();
    let [kind] = &found.kinds[..] else {
        panic!("one kind");
    };
    assert_eq!((kind.kind.as_str(), kind.entries), ("test", 2));
    assert_eq!(kind.bytes, on_disk(parent.path()));
    for (hits, misses) in [(2, 1), (40, 0)] {
        let added = cache.directory.add_totals(Totals { hits, misses });
        assert!(added.unwrap());
    }
    let expected = Totals {
        hits: 42,
        misses: 1,
    };
    assert_eq!(usage(parent.path()).unwrap().totals, expected);
    assert_eq!(clear(parent.path()).unwrap(), kind.bytes);
    assert_eq!(usage(parent.path()).unwrap().kinds, []);
    assert_eq!(cache.get(&key("a")), None);
}

/// A small file system in memory, where this user may mount one.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Option<SmallDisk> {
        let at = TempDir::new().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", size, "tmpfs"])
            .arg(at.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            Some(SmallDisk(at))
        } else {
            eprintln!("SKIPPED: this user may not mount a small file system to fill up");
            None
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .output();
    }
}

#[test]
fn a_part_of_the_file_system_is_kept_free_whatever_the_budget() {
    let Some(disk) = SmallDisk::mount("size=8M") else {
        return;
    };
    let cache = open(disk.0.path(), 1 << 30);
    for id in 0..30 {
        put(&cache, &key(&id.to_string()), &vec![1; 1_000_000]);
    }
    let system = rustix::fs::statvfs(disk.0.path()).unwrap();
    let free = system.f_bavail * system.f_frsize;
    assert!(free >= 8 * MIB / 20, "{free} bytes are free");
    assert!(cache.get(&key("29")).is_some());
    assert_eq!(cache.get(&key("0")), None);
}

#[test]
fn a_full_disk_costs_entries_and_nothing_else() {
    let Some(disk) = SmallDisk::mount("size=8M") else {
        return;
    };
    let cache = open(disk.0.path(), 1 << 30);
    put(&cache, &key("a"), &vec![1; 2_000_000]);
    assert!(cache.get(&key("a")).is_some());
    // Somebody else takes the rest.
    let mut other = File::create(disk.0.path().join("other")).unwrap();
    while std::io::Write::write_all(&mut other, &[0; 4096]).is_ok() {}
    put(&cache, &key("b"), &vec![2; 2_000_000]);
    assert_eq!(cache.get(&key("b")), None);
    assert!(cache.counters.disk_cache_dropped.get() > 0);
    let left = files(disk.0.path());
    let new = fs::read_dir(disk.0.path().join("bergfs-cache-1/new")).unwrap();
    assert_eq!(
        (left.len(), new.count()),
        (0, 0),
        "room was made for others"
    );
}

#[test]
fn a_disk_without_inodes_is_a_full_disk() {
    // The directory itself, the cache's, `new`, `totals`, and little more.
    let Some(disk) = SmallDisk::mount("size=8M,nr_inodes=8") else {
        return;
    };
    let cache = open(disk.0.path(), 1 << 30);
    for id in 0..20 {
        put(&cache, &key(&id.to_string()), b"bytes");
    }
    assert!(cache.counters.disk_cache_dropped.get() > 0);
    let found: Vec<_> = (0..20)
        .filter_map(|id| cache.get(&key(&id.to_string())))
        .collect();
    assert!(found.iter().all(|bytes| **bytes == *b"bytes"));
}

#[test]
fn the_queue_drops_rather_than_lets_anybody_wait() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), 1 << 30);
    cache.settle(LIMIT);
    let (release, wait) = std::sync::mpsc::channel::<()>();
    struct Blocked(std::sync::mpsc::Receiver<()>);
    impl std::io::Read for Blocked {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            Ok(0)
        }
    }
    let read = Box::new(Blocked(wait));
    cache.put(&key("slow"), Payload::Stream { len: 1, read });
    let large = Bytes::from(vec![0; 5_000_000]);
    for id in 0..20 {
        let parts = vec![large.clone()];
        cache.put(&key(&id.to_string()), Payload::Parts(parts));
    }
    let dropped = cache.counters.disk_cache_dropped.get();
    assert!(dropped >= 13, "32 MiB hold six: {dropped} were dropped");
    release.send(()).unwrap();
    cache.settle(LIMIT);
    assert!(cache.get(&key("0")).is_some());
}

#[test]
fn a_panic_while_an_entry_is_written_ends_nothing() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), 1 << 30);
    struct Panics;
    impl std::io::Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("while reading")
        }
    }
    let read = Box::new(Panics);
    cache.put(&key("panics"), Payload::Stream { len: 1, read });
    put(&cache, &key("after"), b"bytes");
    assert!(cache.get(&key("after")).is_some());
}

#[test]
fn an_old_entry_that_is_used_is_new_again() {
    let parent = TempDir::new().unwrap();
    let cache = open(parent.path(), MIB);
    put(&cache, &key("a"), b"bytes");
    set_used(&cache, parent.path(), &key("a"), 1000);
    assert!(cache.get(&key("a")).is_some());
    let used = fs::metadata(&files(parent.path())[0]).unwrap();
    let age = SystemTime::now().duration_since(used.modified().unwrap());
    assert!(age.unwrap_or_default() < Duration::from_secs(3600));
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u16),
    Get(u8),
    Damage(u8),
    Reopen,
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (any::<u8>(), any::<u16>()).prop_map(|(id, len)| Step::Put(id % 32, len)),
        5 => any::<u8>().prop_map(|id| Step::Get(id % 32)),
        1 => any::<u8>().prop_map(Step::Damage),
        1 => Just(Step::Reopen),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 1..60)
}

#[test]
fn an_entry_that_fits_only_without_its_header_and_its_last_block_makes_room() {
    let parent = TempDir::new().unwrap();
    let budget = 4 * 8192 - 100;
    let cache = open(parent.path(), budget);
    // Two blocks each, with their headers.
    for id in 0..4 {
        put(&cache, &key(&id.to_string()), &[id; 8000]);
        assert!(on_disk(parent.path()) <= budget);
    }
    assert_eq!(cache.get(&key("3")).unwrap(), &[3; 8000][..]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A model of what was put: the cache gives that or nothing, and never takes more than its budget.
    #[test]
    fn what_is_found_is_what_was_put(steps in steps()) {
        let parent = TempDir::new().unwrap();
        let budget = 256 << 10;
        let mut cache = open(parent.path(), budget);
        let mut model: HashMap<u8, Vec<u8>> = HashMap::new();
        for step in steps {
            match step {
                Step::Put(id, len) => {
                    // Contents never change under a key.
                    let content = model.entry(id).or_insert_with(|| vec![id; len.into()]);
                    put(&cache, &key(&id.to_string()), content);
                    if cache.get(&key(&id.to_string())).is_none() {
                        // There was a damaged one.
                        put(&cache, &key(&id.to_string()), content);
                        prop_assert!(cache.get(&key(&id.to_string())).is_some());
                    }
                }
                Step::Get(id) => {
                    if let Some(found) = cache.get(&key(&id.to_string())) {
                        prop_assert_eq!(Some(&found[..]), model.get(&id).map(|bytes| &bytes[..]));
                    }
                }
                Step::Damage(which) => {
                    let files = files(parent.path());
                    if let Some(path) = files.get(usize::from(which) % files.len().max(1)) {
                        let mut bytes = fs::read(path).unwrap();
                        let at = usize::from(which) % bytes.len();
                        bytes[at] ^= 0x40;
                        fs::write(path, bytes).unwrap();
                    }
                }
                Step::Reopen => {
                    drop(cache);
                    cache = open(parent.path(), budget);
                    cache.settle(LIMIT);
                }
                Step::Clear => {
                    clear(parent.path()).unwrap();
                }
            }
            prop_assert!(on_disk(parent.path()) <= budget);
        }
    }
}
