#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::file::reader::{ChunkReader, Length};
use tempfile::TempDir;

use super::chunk_reader::SourceReader;
use super::{Address, PathMapping, Storage, StorageError, StorageOptions, roots};
use crate::counters::Counters;

mod paths;

/// A directory that stands for a machine: tables and other directories lie in it.
struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    /// Writes a file whose content is its own relative path, so that a test sees which file was opened.
    fn file(&self, relative: &str) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, relative).unwrap();
        self
    }

    fn storage(&self, location: &str) -> Storage {
        Storage::new(
            &options(&[], &[]),
            &self.path("table").into(),
            &Default::default(),
            location,
            &[],
        )
        .unwrap()
    }
}

fn options(maps: &[(&str, &Path)], allowed: &[&Path]) -> StorageOptions {
    let mapping = |(old, new): &(&str, &Path)| PathMapping {
        old: (*old).to_owned(),
        new: (*new).into(),
    };
    StorageOptions {
        map_paths: maps.iter().map(mapping).collect(),
        allow_paths: allowed.iter().map(|path| (*path).into()).collect(),
        ..StorageOptions::default()
    }
}

fn content(storage: &Storage, recorded: &str) -> String {
    let bytes = storage
        .read_file_limited(recorded, 1 << 20)
        .unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn is_not_found(result: &Result<Arc<super::SourceFile>, StorageError>) -> bool {
    matches!(result, Err(StorageError::Io { source, .. }) if source.kind() == ErrorKind::NotFound)
}

#[test]
fn only_regular_files_are_opened_and_none_makes_the_opening_wait() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let fifo = machine.path("table/data/fifo");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket =
        std::os::unix::net::UnixListener::bind(machine.path("table/data/socket")).unwrap();
    let dev = Path::new("/dev");
    let storage = Storage::new(
        &options(&[], &[dev]),
        &machine.path("table").into(),
        &Default::default(),
        "/t",
        &[],
    )
    .unwrap();
    for other in ["/t/data", "/t/data/fifo", "/t/data/socket", "/dev/zero"] {
        let opened = storage.open(other);
        assert!(
            matches!(opened, Err(StorageError::NotRegular { .. })),
            "{other}: {opened:?}"
        );
    }
    let options = StorageOptions::new(Arc::new(Counters::default()));

    let named = super::read_named_file(&options, &fifo.into(), &Arc::default(), 100);
    assert!(matches!(named, Err(StorageError::NotRegular { .. })));
}

#[test]
fn without_openat2_no_symlink_is_followed_and_no_way_up_is_taken() {
    let machine = Machine::new();
    machine.file("table/data/f").file("secret/f");
    symlink("data", machine.path("table/link")).unwrap();
    symlink("f", machine.path("table/data/g")).unwrap();
    let root = fs::File::open(machine.path("table")).unwrap().into();
    let open = |path: &str| roots::open_by_components(&root, Path::new(path));
    let mut text = String::new();
    fs::File::from(open("data/./f").unwrap())
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "table/data/f");
    for refused in [
        "link/f",
        "data/g",
        "../secret/f",
        "data/../../secret/f",
        "/etc/passwd",
        "",
        ".",
    ] {
        assert!(open(refused).is_err(), "{refused}");
    }
}

#[test]
fn reads_are_exact_checked_and_counted() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("/t");
    let file = storage.open("/t/data/f").unwrap();
    let before = storage.counters().snapshot();
    assert_eq!(file.len(), 12);
    assert_eq!(&file.read_range(6, 4).unwrap()[..], b"data");
    let mut buffer = [0; 5];
    file.read_exact_at(&mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"table");
    assert_eq!(
        storage.counters().since(&before),
        [("source_reads", 2), ("source_bytes", 9)]
    );
    for (offset, len) in [
        (0, 13),
        (12, 1),
        (13, 0),
        (u64::MAX, 1),
        (1, u64::MAX),
        (0, u64::MAX),
    ] {
        let read = file.read_range(offset, len);
        assert!(
            matches!(read, Err(StorageError::PastEnd { size: 12, .. })),
            "{offset} {len}: {read:?}"
        );
    }
    assert!(file.read_range(12, 0).unwrap().is_empty());
    assert!(file.read_exact_at(&mut buffer, 8).is_err());
    let whole = storage.read_file_limited("/t/data/f", 11);
    assert!(matches!(
        whole,
        Err(StorageError::TooLarge {
            size: 12,
            max: 11,
            ..
        })
    ));
}

#[test]
fn a_file_rewritten_with_its_size_and_time_kept_has_another_key() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("f");
    fs::write(&path, b"old").unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let table = Address::Local(directory.path().to_owned());
    let (options, access) = Default::default();
    let storage = Storage::new(&options, &table, &access, "/t", &[]).unwrap();
    let key = || format!("{:?}", storage.open("/t/f").unwrap().identity());
    let before = key();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    // Clocks of file systems tick some hundred times a second.
    while key() == before && std::time::Instant::now() < until {
        fs::write(&path, b"new").unwrap();
        let times = fs::FileTimes::new().set_modified(modified);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_times(times).unwrap();
    }
    assert_ne!(key(), before);
}

#[test]
fn a_file_that_changed_or_went_is_noticed() {
    let machine = Machine::new();
    machine.file("table/data/f").file("table/data/g");
    let storage = machine.storage("/t");
    let identity = storage.open("/t/data/f").unwrap().identity().clone();
    assert!(storage.open_same("/t/data/f", &identity).is_ok());
    assert!(matches!(
        storage.open_same("/t/data/g", &identity),
        Err(StorageError::Changed { .. })
    ));

    let file = storage.open("/t/data/f").unwrap();
    fs::write(machine.path("table/data/f"), "short").unwrap();
    assert!(matches!(
        file.read_range(0, 12),
        Err(StorageError::Changed { .. })
    ));

    let file = storage.open("/t/data/g").unwrap();
    fs::remove_file(machine.path("table/data/g")).unwrap();
    assert!(file.read_range(0, 12).is_ok(), "an open file goes on");
    file.give_up_descriptor();
    assert!(
        file.read_range(0, 12).is_err(),
        "a file that must be opened again is gone"
    );
}

#[test]
fn open_descriptors_are_bounded_and_given_up_files_go_on_being_read() {
    let machine = Machine::new();
    for n in 0..300 {
        machine.file(&format!("table/data/{n}"));
    }
    let storage = machine.storage("/t");
    let files: Vec<_> = (0..300)
        .map(|n| storage.open(&format!("/t/data/{n}")).unwrap())
        .collect();
    assert_eq!(storage.descriptors.len(), 256);
    for (n, file) in files.iter().enumerate() {
        let text = file.read_range(0, file.len()).unwrap();
        assert_eq!(&text[..], format!("table/data/{n}").as_bytes());
    }
    assert_eq!(storage.descriptors.len(), 256);
    drop(files);
    assert_eq!(storage.descriptors.len(), 0);
}

#[test]
fn the_parquet_crate_reads_a_source_file() {
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("/t");
    let reader = SourceReader::new(storage.open("/t/data/f").unwrap());
    assert_eq!(Length::len(&reader), 12);
    assert_eq!(&reader.get_bytes(6, 4).unwrap()[..], b"data");
    assert!(reader.get_bytes(6, 7).is_err());
    let mut rest = String::new();
    reader
        .get_read(6)
        .unwrap()
        .read_to_string(&mut rest)
        .unwrap();
    assert_eq!(rest, "data/f");
    rest.clear();
    reader
        .get_read(99)
        .unwrap()
        .read_to_string(&mut rest)
        .unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_file_followed_by_more_bytes_is_read_as_one() {
    use std::io::Write;
    let machine = Machine::new();
    machine.file("table/data/f");
    let storage = machine.storage("/t");
    let file = storage.open("/t/data/f").unwrap();
    let own = file.read_range(0, file.len()).unwrap();
    let mut more = storage.spill().writer().unwrap();
    more.write_all(b"and more").unwrap();
    let both = file.followed_by(Arc::new(more.finish()));
    let whole = [&own[..], b"and more"].concat();
    assert_eq!(both.len(), whole.len() as u64);
    for start in 0..whole.len() {
        for end in start..=whole.len() {
            let read = both.read_range(start as u64, (end - start) as u64);
            assert_eq!(read.unwrap(), whole[start..end]);
        }
    }
    assert!(both.read_range(0, both.len() + 1).is_err());
}
