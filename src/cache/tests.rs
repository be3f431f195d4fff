#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::convert::Infallible;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use super::{Cache, CacheKey, ENTRY_OVERHEAD, budget};
use crate::counters::Counters;

fn key(id: &str) -> CacheKey {
    CacheKey {
        kind: "test",
        id: id.to_owned(),
    }
}

fn cache(budget: usize) -> Cache {
    Cache::new(budget, Arc::new(Counters::default()))
}

/// Asks for an entry that is made from its id; whether it had to be made.
fn ask(cache: &Cache, id: &str, weight: usize) -> bool {
    let mut made = false;
    let value = cache.get_or_make(key(id), || {
        made = true;
        Ok::<_, Infallible>((id.to_owned(), weight))
    });
    assert_eq!(*value.unwrap(), id);
    made
}

/// The weight at which an entry with a key of one letter takes exactly `bytes`.
fn weight_for(bytes: usize) -> usize {
    bytes - ENTRY_OVERHEAD - 1
}

#[test]
fn an_entry_is_made_once_and_found_afterwards() {
    let cache = cache(10_000);
    assert!(ask(&cache, "a", 100));
    assert!(!ask(&cache, "a", 100));
    assert_eq!(
        (
            cache.counters.cache_misses.get(),
            cache.counters.cache_hits.get()
        ),
        (1, 1)
    );
    assert_eq!(cache.bytes(), 100 + ENTRY_OVERHEAD + 1);
    cache.clear();
    assert_eq!(cache.bytes(), 0);
    assert!(ask(&cache, "a", 100));
}

#[test]
fn keys_of_another_kind_are_other_entries() {
    let cache = cache(10_000);
    let number = cache.get_or_make(
        CacheKey {
            kind: "number",
            id: "a".to_owned(),
        },
        || Ok::<_, Infallible>((7u64, 8)),
    );
    assert_eq!(*number.unwrap(), 7);
    assert!(ask(&cache, "a", 1));
}

#[test]
fn the_least_recently_used_go_when_the_weights_pass_the_budget() {
    let cache = cache(3000);
    for id in ["a", "b", "c"] {
        ask(&cache, id, weight_for(1000));
    }
    assert_eq!(cache.bytes(), 3000);
    assert!(!ask(&cache, "a", 0), "all three fit");
    ask(&cache, "d", weight_for(1500));
    assert_eq!(cache.bytes(), 2500, "b and c went");
    assert!(!ask(&cache, "a", 0));
    assert!(!ask(&cache, "d", 0));
    assert!(ask(&cache, "b", 1));
}

#[test]
fn an_entry_heavier_than_the_budget_is_handed_out_and_not_kept() {
    let cache = cache(1000);
    ask(&cache, "a", weight_for(500));
    assert!(ask(&cache, "b", 1000));
    assert!(ask(&cache, "c", usize::MAX));
    assert_eq!(cache.bytes(), 500, "and costs no other entry its place");
    assert!(!ask(&cache, "a", 0));
}

#[test]
fn an_error_belongs_to_its_caller_and_is_not_kept() {
    let cache = cache(1000);
    let failed = cache.get_or_make::<String, _>(key("a"), || Err("no"));
    assert_eq!(failed.unwrap_err(), "no");
    assert_eq!(cache.bytes(), 0);
    assert!(ask(&cache, "a", 1));
}

#[test]
fn a_panic_in_make_neither_poisons_nor_hangs_others() {
    let cache = cache(1000);
    let (started, wait_started) = mpsc::channel();
    let (release, wait_release) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let (cache, started) = (&cache, &started);
        let panicking = scope.spawn(move || {
            let asked = || {
                cache.get_or_make::<String, Infallible>(key("a"), || {
                    started.send(()).unwrap();
                    wait_release.recv().unwrap();
                    panic!("while making");
                })
            };
            catch_unwind(AssertUnwindSafe(asked)).is_err()
        });
        wait_started.recv().unwrap();
        let waiting = scope.spawn(move || ask(cache, "a", 1));
        thread::sleep(Duration::from_millis(20));
        release.send(()).unwrap();
        assert!(panicking.join().unwrap());
        assert!(waiting.join().unwrap(), "the one who waited makes it");
    });
    assert!(!ask(&cache, "a", 1));
}

#[test]
fn callers_at_once_wait_for_one_make() {
    let cache = cache(100_000);
    let makes = AtomicUsize::new(0);
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                let value = cache.get_or_make(key("a"), || {
                    makes.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(30));
                    Ok::<_, Infallible>((42, 8))
                });
                assert_eq!(*value.unwrap(), 42);
            });
        }
    });
    assert_eq!(makes.load(Ordering::SeqCst), 1);
    assert_eq!(
        (
            cache.counters.cache_misses.get(),
            cache.counters.cache_hits.get()
        ),
        (1, 7)
    );
}

#[test]
fn those_who_wait_get_an_entry_too_heavy_to_keep() {
    let cache = cache(10);
    let makes = AtomicUsize::new(0);
    let (started, wait_started) = mpsc::channel();
    let make = |pause| {
        makes.fetch_add(1, Ordering::SeqCst);
        thread::sleep(pause);
        Ok::<_, Infallible>((7, 1_000_000))
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let value = cache.get_or_make(key("a"), || {
                started.send(()).unwrap();
                make(Duration::from_millis(200))
            });
            assert_eq!(*value.unwrap(), 7);
        });
        wait_started.recv().unwrap();
        assert_eq!(
            *cache
                .get_or_make(key("a"), || make(Duration::ZERO))
                .unwrap(),
            7
        );
    });
    assert_eq!(makes.load(Ordering::SeqCst), 1);
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn after_an_error_each_of_those_who_waited_makes_its_own() {
    let cache = cache(1000);
    let makes = AtomicUsize::new(0);
    let barrier = Barrier::new(4);
    let errors: usize = thread::scope(|scope| {
        let asking = || {
            barrier.wait();
            let made = cache.get_or_make::<u8, _>(key("a"), || {
                thread::sleep(Duration::from_millis(10));
                Err(makes.fetch_add(1, Ordering::SeqCst))
            });
            usize::from(made.is_err())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(asking)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(errors, 4);
    assert_eq!(makes.load(Ordering::SeqCst), 4);
}

#[test]
fn making_one_entry_may_ask_for_another() {
    let cache = cache(10_000);
    let outer = cache.get_or_make(key("outer"), || {
        let inner = cache.get_or_make(key("inner"), || Ok::<_, Infallible>((1, 8)))?;
        Ok::<_, Infallible>((*inner + 1, 8))
    });
    assert_eq!(*outer.unwrap(), 2);
}

#[test]
fn default_budget_is_a_quarter_of_the_tightest_cgroup_limit() {
    let mount = tempfile::TempDir::new().unwrap();
    let write = |path: &str, text: &str| {
        let path = mount.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let limit = |groups| budget::memory_limit(groups, mount.path());
    assert_eq!(limit("0::/a/b\n"), None);
    write("a/b/memory.max", "max\n");
    assert_eq!(limit("0::/a/b\n"), None);
    write("a/memory.max", "400000000\n");
    assert_eq!(
        limit("0::/a/b\n"),
        Some(400_000_000),
        "the group above limits"
    );
    write("memory/x/memory.limit_in_bytes", "300000000\n");
    assert_eq!(limit("4:memory:/x\n0::/a/b\n"), Some(300_000_000));
    assert_eq!(limit("4:cpu,memory:/x\n3:cpuset:/\n"), Some(300_000_000));
    write("memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(
        limit("4:memory:/seen/from/the/host\n"),
        Some(9_223_372_036_854_771_712)
    );
    assert_eq!(limit("nonsense\n::\n"), None);
    assert!((1..=256 * 1024 * 1024).contains(&budget::default_budget()));
}
