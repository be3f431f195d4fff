//! The command and a real mount: listings, links, refusals, refresh, exit statuses. Needs `/dev/fuse`; without it each
//! test says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// 2024-05-01T10:00:00Z, in milliseconds.
const TEN: i64 = 1_714_557_600_000;

/// How long a test waits for what should happen soon, on a loaded machine.
const SOON: Duration = Duration::from_secs(20);

/// The metadata of a table with snapshots 1 to `snapshots`, the last being current.
fn metadata(snapshots: i64) -> Value {
    let snapshot = |id: i64| {
        json!({
            "snapshot-id": id, "sequence-number": id, "timestamp-ms": TEN + id * 1000, "schema-id": 0,
            "summary": {"operation": "append"}, "manifest-list": format!("/t/metadata/snap-{id}.avro"),
        })
    };
    json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-sequence-number": snapshots, "last-updated-ms": TEN + snapshots * 1000, "last-column-id": 1,
        "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields":
            [{"id": 1, "name": "a", "required": false, "type": "long"}]}],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
        "current-snapshot-id": snapshots,
        "snapshots": (1..=snapshots).map(snapshot).collect::<Vec<_>>(),
        "snapshot-log": (1..=snapshots)
            .map(|id| json!({"snapshot-id": id, "timestamp-ms": TEN + id * 1000})).collect::<Vec<_>>(),
        "refs": {
            "main": {"snapshot-id": snapshots, "type": "branch"},
            "first/of all": {"snapshot-id": 1, "type": "tag"},
        },
    })
}

fn commit(table: &Path, version: i64, metadata: &str) {
    let directory = table.join("metadata");
    fs::create_dir_all(&directory).unwrap();
    fs::write(
        directory.join(format!("v{version}.metadata.json")),
        metadata,
    )
    .unwrap();
    fs::write(directory.join("version-hint.text"), version.to_string()).unwrap();
}

fn bergfs(arguments: &[&str]) -> Output {
    // Whoever runs the tests may have them go on when the terminal is closed.
    Command::new("env")
        .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_bergfs")])
        .args(arguments)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A table `orders` with two snapshots, and a place to mount it.
struct Setting {
    directory: TempDir,
}

impl Setting {
    /// `None`, with a word on stderr, where this machine has no FUSE.
    fn new() -> Option<Setting> {
        if !Path::new("/dev/fuse").exists() {
            eprintln!("SKIPPED: no /dev/fuse on this machine, nothing was tested");
            return None;
        }
        let setting = Setting {
            directory: tempfile::tempdir().unwrap(),
        };
        commit(&setting.table(), 1, &metadata(2).to_string());
        fs::create_dir(setting.mountpoint()).unwrap();
        Some(setting)
    }

    /// With the table mounted.
    fn mounted(options: &[&str]) -> Option<Setting> {
        let setting = Setting::new()?;
        let output = setting.mount(options);
        assert!(output.status.success(), "{}", stderr(&output));
        Some(setting)
    }

    fn table(&self) -> PathBuf {
        self.directory.path().join("orders")
    }

    fn mountpoint(&self) -> PathBuf {
        self.directory.path().join("mnt")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.mountpoint().join(path)
    }

    fn mount(&self, options: &[&str]) -> Output {
        let (table, mountpoint) = (self.table(), self.mountpoint());
        let mut arguments = vec!["mount"];
        arguments.extend(options);
        arguments.extend([table.to_str().unwrap(), mountpoint.to_str().unwrap()]);
        bergfs(&arguments)
    }

    fn umount(&self, options: &[&str]) -> Output {
        let mountpoint = self.mountpoint();
        let mut arguments = vec!["umount"];
        arguments.extend(options);
        arguments.push(mountpoint.to_str().unwrap());
        bergfs(&arguments)
    }

    fn is_mounted(&self) -> bool {
        let mountpoint = self.mountpoint();
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table
            .lines()
            .any(|line| line.split(' ').nth(4) == mountpoint.to_str())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The daemon that serves the mount.
    fn daemon(&self) -> i32 {
        let mountpoint = self.mountpoint();
        let is_ours = |pid: &i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut arguments = arguments.split(|byte| *byte == 0);
            arguments.clone().any(|argument| argument == b"--daemon")
                && arguments.any(|argument| argument == mountpoint.as_os_str().as_encoded_bytes())
        };
        let processes = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        processes.into_iter().find(is_ours).expect("a daemon")
    }

    fn kill(&self, signal: &str) {
        let pid = self.daemon().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if self.is_mounted() {
            self.umount(&["--lazy"]);
        }
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_mounted_table_lists_its_states() {
    let Some(mount) = Setting::mounted(&[]) else {
        return;
    };
    assert_eq!(
        mount.names(""),
        [
            ".bergfs",
            "at",
            "branches",
            "current",
            "metadata",
            "snapshots",
            "tags"
        ]
    );
    assert_eq!(mount.names("snapshots"), ["1", "2"]);
    assert_eq!(mount.names("tags"), ["first%2Fof all"]);
    let resolved = fs::canonicalize(mount.path("current")).unwrap();
    assert_eq!(
        resolved,
        fs::canonicalize(mount.path("snapshots/2")).unwrap()
    );
    assert_eq!(
        fs::canonicalize(mount.path("at/2024-05-01T10:00:01Z")).unwrap(),
        mount.path("snapshots/1")
    );
    let json = fs::read_to_string(mount.path("current/snapshot.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["snapshot-id"],
        2
    );
    assert_eq!(
        fs::read_to_string(mount.path("metadata/table.json")).unwrap(),
        metadata(2).to_string()
    );
    assert_eq!(
        fs::read_to_string(mount.path(".bergfs/errors")).unwrap(),
        ""
    );
    assert!(mount.umount(&[]).status.success());
    assert!(!mount.is_mounted());
}

#[test]
fn attributes_are_those_of_a_read_only_tree() {
    let Some(mount) = Setting::mounted(&[]) else {
        return;
    };
    let mode = |path: &str| {
        fs::symlink_metadata(mount.path(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(
        (
            mode("snapshots/1"),
            mode("current/schema.json"),
            mode("current")
        ),
        (0o555, 0o444, 0o777)
    );
    let snapshot = fs::metadata(mount.path("snapshots/1")).unwrap();
    assert_eq!(snapshot.mtime(), TEN / 1000 + 1);
    let file = mount.path("snapshots/1/snapshot.json");
    assert_eq!(
        fs::metadata(&file).unwrap().len(),
        u64::try_from(fs::read(&file).unwrap().len()).unwrap()
    );
}

#[test]
fn every_write_is_refused() {
    let Some(mount) = Setting::mounted(&[]) else {
        return;
    };
    let file = mount.path("current/schema.json");
    let refused = [
        fs::write(mount.path("new"), "x"),
        fs::write(&file, "x"),
        fs::create_dir(mount.path("new")),
        fs::remove_file(&file),
        fs::remove_dir(mount.path("tags")),
        fs::rename(&file, mount.path("new")),
        fs::hard_link(&file, mount.path("new")),
        symlink("x", mount.path("new")),
        fs::set_permissions(&file, fs::Permissions::from_mode(0o777)),
    ];
    for (number, outcome) in refused.into_iter().enumerate() {
        assert_eq!(
            outcome.unwrap_err().kind(),
            ErrorKind::ReadOnlyFilesystem,
            "{number}"
        );
    }
}

#[test]
fn a_name_that_is_not_there_is_not_found() {
    let Some(mount) = Setting::mounted(&[]) else {
        return;
    };
    for path in [
        "x",
        "snapshots/3",
        "at/never",
        "tags/main",
        "current/x",
        "current/parts/../x",
        ".bergfs/x",
    ] {
        assert_eq!(
            fs::metadata(mount.path(path)).unwrap_err().kind(),
            ErrorKind::NotFound,
            "{path}"
        );
    }
}

#[test]
fn a_commit_by_another_program_shows_within_the_refresh_time() {
    let Some(mount) = Setting::mounted(&["--refresh", "200ms"]) else {
        return;
    };
    let old = fs::canonicalize(mount.path("current")).unwrap();
    commit(&mount.table(), 2, &metadata(3).to_string());
    std::thread::sleep(Duration::from_millis(250));
    assert_eq!(
        fs::canonicalize(mount.path("current")).unwrap(),
        mount.path("snapshots/3")
    );
    assert_eq!(mount.names("snapshots"), ["1", "2", "3"]);
    fs::read(old.join("snapshot.json")).unwrap();
}

#[test]
fn a_broken_commit_is_an_error_with_its_reason() {
    let Some(mount) = Setting::mounted(&["--refresh", "0"]) else {
        return;
    };
    commit(&mount.table(), 2, "{\"format-version\": 4}");
    assert!(fs::read_link(mount.path("current")).is_err());
    let errors = fs::read_to_string(mount.path(".bergfs/errors")).unwrap();
    assert!(errors.contains("v2.metadata.json"), "{errors}");
    fs::read(mount.path("snapshots/1/snapshot.json")).unwrap();
}

#[test]
fn what_cannot_be_mounted_is_said_with_exit_status_1() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let root = setting.directory.path();
    let (table, mountpoint) = (setting.table(), setting.mountpoint());
    let (table, mountpoint) = (table.to_str().unwrap(), mountpoint.to_str().unwrap());
    let file = root.join("file");
    fs::write(&file, "").unwrap();
    let broken = root.join("broken");
    commit(&broken, 1, "{}");
    let inside = setting.table().join("mnt");
    fs::create_dir(&inside).unwrap();
    let cases = [
        (
            vec!["mount", "/nowhere/at/all", mountpoint],
            "/nowhere/at/all",
        ),
        (vec!["mount", table, "/nowhere/at/all"], "/nowhere/at/all"),
        (
            vec!["mount", table, file.to_str().unwrap()],
            "not a directory",
        ),
        (
            vec!["mount", broken.to_str().unwrap(), mountpoint],
            "v1.metadata.json",
        ),
        (
            vec!["mount", table, inside.to_str().unwrap()],
            "lies in the table",
        ),
        (vec!["umount", mountpoint], "nothing is mounted here"),
        (vec!["umount", "/proc"], "mounted by something else (proc)"),
    ];
    for (arguments, said) in cases {
        let output = bergfs(&arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(
            stderr(&output).contains(said),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    assert!(!setting.is_mounted());
}

#[test]
fn a_warehouse_can_be_mounted_in_itself_and_does_not_show_the_mount() {
    let Some(setting) = Setting::new() else {
        return;
    };
    let (root, mountpoint) = (setting.directory.path(), setting.mountpoint());
    let output = bergfs(&[
        "mount",
        root.to_str().unwrap(),
        mountpoint.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(setting.names(""), [".bergfs", "orders"]);
    assert!(mountpoint.join("orders/current/schema.json").exists());
}

#[test]
fn a_mountpoint_in_use_is_refused_and_a_dead_one_cleared() {
    let Some(mount) = Setting::mounted(&[]) else {
        return;
    };
    let again = mount.mount(&[]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        stderr(&again).contains("mounted here already"),
        "{}",
        stderr(&again)
    );

    mount.kill("-KILL");
    let stats = mount.path(".bergfs/stats");
    eventually("the mount is dead", || fs::read(&stats).is_err());
    let cleared = mount.mount(&[]);
    assert!(cleared.status.success(), "{}", stderr(&cleared));
    assert_eq!(mount.names("snapshots"), ["1", "2"]);
}

#[test]
fn a_busy_mount_is_unmounted_only_lazily() {
    let Some(mount) = Setting::mounted(&[]) else {
        return;
    };
    let open = fs::File::open(mount.path("current/schema.json")).unwrap();
    let refused = mount.umount(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("busy"), "{}", stderr(&refused));
    assert!(mount.umount(&["--lazy"]).status.success());
    assert!(!mount.is_mounted());
    assert!(
        std::io::read_to_string(open)
            .unwrap()
            .contains("\"type\": \"struct\"")
    );
}

/// A terminal that is closed hangs up on what runs in it.
#[test]
fn termination_interrupt_and_hangup_unmount() {
    for signal in ["-TERM", "-INT", "-HUP"] {
        let Some(mount) = Setting::mounted(&[]) else {
            return;
        };
        let _busy = fs::File::open(mount.path("current/schema.json")).unwrap();
        mount.kill(signal);
        eventually(&format!("the mount is gone after {signal}"), || {
            !mount.is_mounted()
        });
    }
}
