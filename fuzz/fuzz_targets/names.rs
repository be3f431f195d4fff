//! Any text as what names a catalog, a mapping of paths, a file of a table, and as PyIceberg's configuration.
#![no_main]

use std::sync::LazyLock;

use bergfs::catalog::Connection;
use bergfs::storage::PathMapping;
use bergfs_fuzz::with_file;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

/// Where the configuration lies. PyIceberg's variable says so to the process that the fuzzer starts.
static HOME: LazyLock<TempDir> = LazyLock::new(|| {
    let home = tempfile::tempdir().expect("a directory");
    // SAFETY: set before there is another thread.
    unsafe { std::env::set_var("PYICEBERG_HOME", home.path()) };
    home
});

fuzz_target!(|text: &str| {
    std::fs::write(HOME.path().join(".pyiceberg.yaml"), text).expect("a file");
    for named in [text, "pyiceberg:", "pyiceberg:a"] {
        if let Ok(Some(connection)) = Connection::parse(named) {
            let _ = connection.shown();
        }
    }
    let _ = text.parse::<PathMapping>();
    with_file(b"what lies in the table", |table| {
        let canonical = table.storage.canonical(text);
        // Nothing but the table's one file can be opened, however it is spelled.
        if let Ok(file) = table.storage.open(text) {
            assert_eq!(file.len(), 22, "{text:?} is {canonical:?}");
        }
    });
});
