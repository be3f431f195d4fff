//! Paths that lead out of the table, and places that are no regular files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use libc::{EIO, ENOTSUP};
use serde_json::json;

use crate::builder::avro::Codec;
use crate::builder::{Commit, TableBuilder};
use crate::{Shown, WHOLE, guarded, name, refused, show, victim};

/// A table whose only data file has this path.
fn pointing_to(path: impl FnOnce(&TableBuilder) -> String) -> TableBuilder {
    let mut t = TableBuilder::new(2, "1 id: long");
    let a = t.data(json!([[1]]));
    let path = path(&t);
    t.commit(Commit::of([a.with(|e| e.path = path)]));
    t.save();
    t
}

#[track_caller]
fn never_opens(t: &TableBuilder, case: &str) {
    let root = t.root();
    match guarded(case, move || show(&root, WHOLE)) {
        Shown::Refused { errno, errors } => {
            assert!([EIO, ENOTSUP].contains(&errno), "{case}: errno {errno}");
            assert!(!errors.contains("root:x:"), "{case}: {errors}");
        }
        other => panic!("{case}: {other:?}"),
    }
}

#[test]
fn no_path_leads_out_of_the_table() {
    let outside = tempfile::tempdir().unwrap();
    let mut other = TableBuilder::new(2, "1 id: long");
    let secret = other.data(json!([[42]]));
    let stolen = outside.path().join("secret.parquet");
    fs::copy(other.local(&secret.path), &stolen).unwrap();
    let stolen = stolen.to_str().unwrap().to_owned();

    for path in [
        "/etc/passwd",
        "file:///etc/passwd",
        "../../../../../../etc/passwd",
        "/dev/zero",
        "/proc/self/mem",
        "",
        "/",
        ".",
    ] {
        never_opens(&pointing_to(|_| path.to_owned()), path);
    }
    never_opens(&pointing_to(|_| stolen.clone()), "a file elsewhere");
    never_opens(
        &pointing_to(|t| t.recorded("data/../../../../../../../../etc/passwd")),
        "dots",
    );
    never_opens(
        &pointing_to(|t| t.recorded(&format!("data/../../..{stolen}"))),
        "dots to a good file",
    );
    never_opens(&pointing_to(|t| t.recorded("data")), "a directory");
    never_opens(&pointing_to(|t| t.recorded("data/\0.parquet")), "NUL");
    never_opens(
        &pointing_to(|t| t.recorded(&"x".repeat(5000))),
        "a long name",
    );
    for scheme in ["s3", "http", "hdfs"] {
        never_opens(
            &pointing_to(|_| format!("{scheme}://host/bucket/file.parquet")),
            scheme,
        );
    }
    let linked = pointing_to(|t| t.recorded("data/link.parquet"));
    symlink(&stolen, linked.root().join("data/link.parquet")).unwrap();
    never_opens(&linked, "a link to a file elsewhere");
    let linked = pointing_to(|t| t.recorded("data/there/secret.parquet"));
    symlink(outside.path(), linked.root().join("data/there")).unwrap();
    never_opens(&linked, "a link to a directory elsewhere");
    let linked = pointing_to(|t| t.recorded("data/loop"));
    symlink(
        linked.root().join("data/loop"),
        linked.root().join("data/loop"),
    )
    .unwrap();
    never_opens(&linked, "a link to itself");
}

fn fifo(path: &Path) {
    let _ = fs::remove_file(path);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
}

#[test]
fn a_fifo_in_place_of_a_file_does_not_hang() {
    let v = victim(Codec::Null);
    for file in v.files().into_iter().skip(1) {
        let right = fs::read(&file).unwrap();
        fifo(&file);
        let root = v.t.root();
        let case = format!("{} is a FIFO", name(&file));
        refused(
            &guarded(&case, move || show(&root, WHOLE)),
            name(&file),
            &case,
        );
        fs::remove_file(&file).unwrap();
        fs::write(&file, right).unwrap();
    }
    for file in [
        v.metadata.clone(),
        v.metadata.with_file_name("version-hint.text"),
    ] {
        let v = victim(Codec::Null);
        let file = v.t.root().join("metadata").join(name(&file));
        fifo(&file);
        let root = v.t.root();
        guarded("a FIFO among the metadata", move || show(&root, WHOLE));
    }
}
