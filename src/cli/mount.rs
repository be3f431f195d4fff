//! `bergfs mount`: checks what can be checked, mounts, and serves until the mount ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::cache::Cache;
use crate::cache::disk::{self, DiskCache};
use crate::counters::Counters;
use crate::fs::{self, Event, Mount, MountOptions, MountTable, Owner};
use crate::parquet::Splitting;
use crate::storage::{Address, PathMapping, StorageOptions};
use crate::text::TextOptions;
use crate::tree::{ErrorKind, Tree, TreeOptions};

use super::source::{self, Source};
use super::{MountArgs, background, memory};

/// How long the daemon stays after its mount has ended, to write to the disk what waits for that.
const LAST_WRITES: Duration = Duration::from_secs(3);

pub(super) fn run(args: &MountArgs) -> anyhow::Result<()> {
    let source = Source::parse(&args.source)?;
    if !args.foreground && !args.daemon {
        return background::start(&source.shown(), &args.mountpoint);
    }
    memory::settle_self();
    let mountpoint = free_mountpoint(&args.mountpoint)?;
    // Everything relative is resolved before the daemon leaves the working directory.
    if let Source::Local(path) = &source
        && path.starts_with(&mountpoint)
    {
        bail!(
            "{}: lies below the mountpoint, which would hide it",
            path.display()
        );
    }
    let properties = source::properties(&args.properties_files, &args.properties)?;
    let counters = Arc::new(Counters::default());
    let mut storage = StorageOptions::new(Arc::clone(&counters));
    storage.map_paths = args
        .map_path
        .iter()
        .map(|map| {
            Ok(PathMapping {
                old: map.old.clone(),
                new: place(&map.new)?,
            })
        })
        .collect::<anyhow::Result<_>>()?;
    storage.allow_paths = args
        .allow_path
        .iter()
        .map(place)
        .collect::<anyhow::Result<_>>()?;
    let cache_dir = args.cache_dir.as_deref().map(|path| {
        let path = std::path::absolute(path).with_context(|| path.display().to_string())?;
        if path.starts_with(&mountpoint) {
            bail!("--cache-dir {}: lies below the mountpoint", path.display());
        }
        Ok(path)
    });
    let cache_dir = cache_dir.transpose()?;
    start_log(args)?;
    if args.daemon {
        background::detach()?;
    }

    let cache_memory = args
        .cache_memory
        .unwrap_or_else(crate::cache::default_budget);
    let mut cache = Cache::new(cache_memory, Arc::clone(&counters));
    if let Some(directory) = &cache_dir {
        let size = u64::try_from(args.cache_size).unwrap_or(u64::MAX);
        let program = disk::this_program().context("cannot read this program's own file")?;
        let disk = DiskCache::open(directory, size, &program, &counters);
        cache = cache.on_disk(disk.context("--cache-dir")?);
    }
    let cache = Arc::new(cache);
    let storage = storage.with_cache(&cache);
    raise_descriptor_limit();
    let catalog = source.open(&mountpoint, &properties, &storage)?;
    let tree = Arc::new(Tree::new(
        catalog,
        Arc::clone(&cache),
        TreeOptions {
            refresh: args.refresh,
            lineage: args.lineage,
            metadata_columns: args.metadata_columns,
            storage,
            text: TextOptions {
                shown: !args.no_text,
                csv_null: args.csv_null.clone(),
                limit: u64::try_from(args.text_limit).unwrap_or(u64::MAX),
                ..TextOptions::default()
            },
            splitting: Splitting::default(),
        },
    ));
    // A table that cannot be read is better refused now than mounted as an error.
    tree.check().map_err(|error| match error.kind {
        // Of a source that is one table or file.
        ErrorKind::NotFound => anyhow!("{}: {}", source.shown(), error.message),
        _ => error.into(),
    })?;

    let root = rustix::process::getuid().is_root();
    let options = MountOptions {
        source: source.shown(),
        allow_other: args.allow_other || root,
        owner: Owner {
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        },
    };
    let mount = Mount::new(Arc::clone(&tree), &mountpoint, &options)
        .map_err(|error| explain(error, &mountpoint))
        .with_context(|| format!("{}: cannot mount", mountpoint.display()))?;
    let stop = mount.stopper();
    let mut signals = vec![signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT];
    if !ignores_hangups() {
        signals.push(signal_hook::consts::SIGHUP);
    }
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for _ in signals.forever() {
                let _ = stop.send(Event::Stop);
            }
        })?;
    tracing::info!(source = %source.shown(), mountpoint = %mountpoint.display(), "mounted");
    if args.daemon {
        background::report_ready();
    }
    if !args.no_ahead {
        tree.prepare_in_background();
    }
    drop(tree);
    mount.wait()?;
    if let Some(disk) = cache.disk() {
        disk.settle(LAST_WRITES);
    }
    tracing::info!(mountpoint = %mountpoint.display(), "unmounted");
    Ok(())
}

/// Whether whoever started this process has it go on when its terminal is closed, as `nohup` does.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal_hook::consts::SIGHUP - 1) & 1 == 1)
}

/// Every table keeps its directory open, beside the data files that are being read.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit on open files stays as it is");
    }
}

/// The mountpoint, resolved, after a check that it is a directory and that nothing of ours is mounted there. What a
/// daemon that has died left there is cleared away.
fn free_mountpoint(path: &Path) -> anyhow::Result<PathBuf> {
    let name = path.display();
    let mountpoint = fs::resolve(path).with_context(|| name.to_string())?;
    if MountTable::read()?
        .top(&mountpoint)
        .is_some_and(|mount| mount.is_bergfs())
    {
        // Unlike attributes, this is never answered from what the kernel remembers of a daemon that has died.
        if rustix::fs::statfs(&mountpoint).err() != Some(rustix::io::Errno::NOTCONN) {
            bail!("{name}: a table is mounted here already (bergfs umount {name})");
        }
        fs::unmount(&mountpoint, true)
            .with_context(|| format!("{name}: a dead bergfs mount could not be cleared"))?;
    }
    if !std::fs::metadata(&mountpoint)
        .with_context(|| name.to_string())?
        .is_dir()
    {
        bail!("{name}: not a directory");
    }
    Ok(mountpoint)
}

/// A directory that the user named: resolved, where it is of this machine.
fn place(given: &Address) -> anyhow::Result<Address> {
    let Address::Local(path) = given else {
        return Ok(given.clone());
    };
    let resolved = path
        .canonicalize()
        .with_context(|| path.display().to_string())?;
    if !resolved.is_dir() {
        bail!("{}: not a directory", path.display());
    }
    Ok(Address::Local(resolved))
}

/// What to do about a mount that failed.
fn explain(error: io::Error, mountpoint: &Path) -> anyhow::Error {
    let advice = if !Path::new("/dev/fuse").exists() {
        "there is no /dev/fuse: load the kernel module (modprobe fuse), or give the container the device"
    } else if error.to_string().contains("user_allow_other") {
        "--allow-other needs `user_allow_other` in /etc/fuse.conf"
    } else if error.kind() == io::ErrorKind::NotFound {
        "fusermount3 is needed to mount as this user: install fuse3"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "this user may not use /dev/fuse, or not mount there"
    } else {
        return anyhow::Error::new(error);
    };
    tracing::debug!(mountpoint = %mountpoint.display(), advice, "mount failed");
    anyhow::Error::new(error).context(advice)
}

/// Logs to the log file, or to stderr in the foreground; a daemon without a log file has `.bergfs/errors` alone.
fn start_log(args: &MountArgs) -> anyhow::Result<()> {
    let level = match args.verbose {
        0 => "bergfs=warn",
        1 => "bergfs=info",
        _ => "bergfs=debug,fuser=debug",
    };
    let filter = EnvFilter::try_from_env("BERGFS_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let writer = match &args.log_file {
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            BoxMakeWriter::new(Arc::new(file.with_context(|| path.display().to_string())?))
        }
        None if args.daemon => return Ok(()),
        None => BoxMakeWriter::new(io::stderr),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(writer)
        .init();
    Ok(())
}
