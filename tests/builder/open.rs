//! A built table as bergfs shows it: through the tree without a kernel, and through a real mount.
//!
//! Paths are relative to the table's directory; links are followed. Failures are errno values, whichever way they come.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bergfs::cache::Cache;
use bergfs::catalog::directory::DirectoryCatalog;
use bergfs::counters::Counters;
use bergfs::parquet::Splitting;
use bergfs::storage::StorageOptions;
use bergfs::text::TextOptions;
use bergfs::tree::{
    Caching, ErrorKind, Kind, Lineage, Node, Prepared, Tree, TreeError, TreeOptions,
};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use tempfile::TempDir;

use super::rows::{json_rows, type_name};

/// What [`Opened::refused`] answers for a table that could not even be opened.
pub const NOT_MOUNTED: i32 = -1;

/// How a table is opened, beside its path.
#[derive(Clone, Debug)]
pub struct Options {
    pub lineage: Lineage,
    pub metadata_columns: bool,
    /// Bytes.
    pub cache: usize,
    pub text: TextOptions,
    pub splitting: Splitting,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            lineage: Lineage::Auto,
            metadata_columns: false,
            cache: 64 << 20,
            text: TextOptions::default(),
            splitting: Splitting::default(),
        }
    }
}

/// A table that bergfs has opened.
pub enum Opened {
    Tree {
        tree: Box<Tree>,
        counters: Arc<Counters>,
    },
    Mount {
        mountpoint: TempDir,
    },
    /// `bergfs mount` said this, and no more.
    Refused {
        message: String,
    },
}

/// A Parquet file as the `parquet` crate reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Name and Iceberg type.
    pub columns: Vec<(String, String)>,
    pub rows: Vec<Value>,
}

impl Served {
    /// Reads a file's bytes, which have to be a good Parquet file.
    pub fn of(bytes: Vec<u8>) -> Served {
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).expect("a served footer");
        let fields = builder.schema().fields().clone();
        let columns = fields
            .iter()
            .map(|f| (f.name().clone(), type_name(f.data_type())))
            .collect();
        let batches: Vec<_> = builder
            .build()
            .unwrap()
            .map(|batch| batch.expect("a served row group"))
            .collect();
        Served {
            columns,
            rows: json_rows(&batches),
        }
    }
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Opened::Tree { .. } => "the tree",
            Opened::Mount { .. } | Opened::Refused { .. } => "the mount",
        })
    }
}

impl Opened {
    /// Through the tree, and through a mount where this machine can mount.
    pub fn every_way(source: &Path) -> Vec<Opened> {
        let mut ways = vec![Opened::tree(source)];
        if Path::new("/dev/fuse").exists()
            && std::env::var_os("BERGFS_TEST_WITHOUT_MOUNT").is_none()
        {
            ways.push(Opened::mount(source, &["--no-ahead"]));
        }
        ways
    }

    /// Without a kernel.
    pub fn tree(source: &Path) -> Opened {
        Opened::tree_with(source, &Options::default())
    }

    /// Without a kernel, with options.
    pub fn tree_with(source: &Path, options: &Options) -> Opened {
        let counters = Arc::new(Counters::default());
        let catalog = match DirectoryCatalog::open(source) {
            Ok(catalog) => catalog,
            Err(error) => {
                return Opened::Refused {
                    message: error.to_string(),
                };
            }
        };
        let cache = Arc::new(Cache::new(options.cache, Arc::clone(&counters)));
        let tree = Tree::new(
            Box::new(catalog),
            cache,
            TreeOptions {
                refresh: Duration::ZERO,
                lineage: options.lineage,
                metadata_columns: options.metadata_columns,
                storage: StorageOptions::new(Arc::clone(&counters)),
                text: options.text.clone(),
                splitting: options.splitting,
            },
        );
        Opened::Tree {
            tree: Box::new(tree),
            counters,
        }
    }

    /// By `bergfs mount`, unmounted again when dropped.
    pub fn mount(source: &Path, options: &[&str]) -> Opened {
        let mountpoint = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_bergfs"));
        command
            .args(["mount", "--refresh", "0"])
            .args(options)
            .arg(source)
            .arg(mountpoint.path());
        let output = command.output().unwrap();
        if output.status.success() {
            Opened::Mount { mountpoint }
        } else {
            Opened::Refused {
                message: String::from_utf8_lossy(&output.stderr).into_owned(),
            }
        }
    }

    /// A file's bytes.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, i32> {
        match self {
            Opened::Tree { tree, .. } => read_all(tree, &resolve(tree, path)?),
            Opened::Mount { mountpoint } => {
                fs::read(mountpoint.path().join(path)).map_err(|e| errno_of(&e))
            }
            Opened::Refused { .. } => Err(NOT_MOUNTED),
        }
    }

    /// Looks at the table and makes ahead what a mount does; gives how far that went. Not through a mount.
    pub fn prepare(&self) -> Result<Prepared, i32> {
        let Opened::Tree { tree, .. } = self else {
            return Err(NOT_MOUNTED);
        };
        tree.check().map_err(|e| errno(&e))?;
        tree.prepare().map_err(|e| errno(&e))
    }

    /// How the kernel is to treat the pages of a file that is opened now.
    pub fn caching(&self, path: &str) -> Result<Caching, i32> {
        let Opened::Tree { tree, .. } = self else {
            return Err(NOT_MOUNTED);
        };
        let node = resolve(tree, path)?;
        let file = tree.open(&node).map_err(|e| errno(&e))?;
        Ok(file.caching())
    }

    /// `len` bytes from an offset on, opened once and read piece by piece, as a program reads from a mount.
    pub fn read_in_pieces(
        &self,
        path: &str,
        offset: u64,
        len: usize,
        piece: usize,
    ) -> Result<Vec<u8>, i32> {
        let Opened::Tree { tree, .. } = self else {
            return Err(NOT_MOUNTED);
        };
        let file = tree.open(&resolve(tree, path)?).map_err(|e| errno(&e))?;
        let mut all = Vec::new();
        while all.len() < len {
            let (at, wanted) = (offset + all.len() as u64, piece.min(len - all.len()));
            if let Some(bytes) = tree.read_shared(&file, at, wanted).map_err(|e| errno(&e))? {
                all.extend_from_slice(&bytes);
                continue;
            }
            let mut bytes = vec![0; wanted];
            let read = tree.read(&file, at, &mut bytes).map_err(|e| errno(&e))?;
            all.extend(bytes.drain(..read));
            if read < wanted {
                break;
            }
        }
        Ok(all)
    }

    /// Bytes from an offset on; fewer only at the file's end.
    pub fn read_range(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; len];
        let read = match self {
            Opened::Tree { tree, .. } => {
                let file = tree.open(&resolve(tree, path)?).map_err(|e| errno(&e))?;
                tree.read(&file, offset, &mut bytes)
                    .map_err(|e| errno(&e))?
            }
            Opened::Mount { mountpoint } => {
                let file =
                    fs::File::open(mountpoint.path().join(path)).map_err(|e| errno_of(&e))?;
                file.read_at(&mut bytes, offset).map_err(|e| errno_of(&e))?
            }
            Opened::Refused { .. } => return Err(NOT_MOUNTED),
        };
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The size that `stat` gives.
    pub fn size(&self, path: &str) -> Result<u64, i32> {
        match self {
            Opened::Tree { tree, .. } => tree
                .attributes(&resolve(tree, path)?)
                .map(|a| a.size)
                .map_err(|e| errno(&e)),
            Opened::Mount { mountpoint } => fs::metadata(mountpoint.path().join(path))
                .map(|m| m.len())
                .map_err(|e| errno_of(&e)),
            Opened::Refused { .. } => Err(NOT_MOUNTED),
        }
    }

    /// A directory's entries, sorted.
    pub fn list(&self, path: &str) -> Result<Vec<String>, i32> {
        let mut names: Vec<String> = match self {
            Opened::Tree { tree, .. } => {
                let entries = tree.list(&resolve(tree, path)?).map_err(|e| errno(&e))?;
                entries.iter().map(|(name, _)| name.to_owned()).collect()
            }
            Opened::Mount { mountpoint } => {
                let entries =
                    fs::read_dir(mountpoint.path().join(path)).map_err(|e| errno_of(&e))?;
                let names: Result<Vec<_>, _> = entries.map(|e| e.map(|e| e.file_name())).collect();
                names
                    .map_err(|e| errno_of(&e))?
                    .into_iter()
                    .map(|n| n.into_string().unwrap())
                    .collect()
            }
            Opened::Refused { .. } => return Err(NOT_MOUNTED),
        };
        names.sort();
        Ok(names)
    }

    /// Where a link leads, as it is written.
    pub fn link(&self, path: &str) -> Result<String, i32> {
        match self {
            Opened::Tree { tree, .. } => {
                let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
                let node = tree
                    .lookup(&resolve(tree, parent)?, name)
                    .map_err(|e| errno(&e))?;
                tree.read_link(&node).map_err(|e| errno(&e))
            }
            Opened::Mount { mountpoint } => {
                let target =
                    fs::read_link(mountpoint.path().join(path)).map_err(|e| errno_of(&e))?;
                Ok(target.into_os_string().into_string().unwrap())
            }
            Opened::Refused { .. } => Err(NOT_MOUNTED),
        }
    }

    /// A Parquet file, read.
    pub fn table(&self, path: &str) -> Result<Served, i32> {
        self.read(path).map(Served::of)
    }

    /// A Parquet file's rows.
    pub fn rows(&self, path: &str) -> Result<Value, i32> {
        self.table(path).map(|served| Value::Array(served.rows))
    }

    /// What `.bergfs/errors` holds; what the command said, if it did not mount.
    pub fn errors(&self) -> String {
        match self {
            Opened::Refused { message } => message.clone(),
            _ => String::from_utf8(self.read(".bergfs/errors").unwrap()).unwrap(),
        }
    }

    /// The counters, by name.
    pub fn stats(&self) -> BTreeMap<String, u64> {
        let text = String::from_utf8(self.read(".bergfs/stats").unwrap()).unwrap();
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(n, v)| (n.to_owned(), v.parse().unwrap()))
            .collect()
    }

    /// Where it is mounted.
    pub fn mountpoint(&self) -> Option<PathBuf> {
        match self {
            Opened::Mount { mountpoint } => Some(mountpoint.path().to_owned()),
            _ => None,
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Opened::Mount { mountpoint } = self {
            // A process that another test starts holds this one's files open for a moment, until it is the other program.
            for patience in 0.. {
                let mut umount = Command::new(env!("CARGO_BIN_EXE_bergfs"));
                let output = umount
                    .arg("umount")
                    .arg(mountpoint.path())
                    .output()
                    .unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                if output.status.success() || std::thread::panicking() {
                    break;
                }
                assert!(
                    said.contains("busy") && patience < 50,
                    "the mount could not be ended: {said}"
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// The node at a path, links followed.
fn resolve(tree: &Tree, path: &str) -> Result<Node, i32> {
    let mut trail = vec![tree.root()];
    let mut names: Vec<String> = path
        .split('/')
        .rev()
        .filter(|n| !n.is_empty())
        .map(str::to_owned)
        .collect();
    for _ in 0..100 {
        let Some(name) = names.pop() else {
            return Ok(trail.pop().unwrap());
        };
        if name == ".." {
            trail.pop();
            continue;
        }
        let node = tree
            .lookup(trail.last().unwrap(), &name)
            .map_err(|e| errno(&e))?;
        if tree.attributes(&node).map_err(|e| errno(&e))?.kind == Kind::Link {
            let target = tree.read_link(&node).map_err(|e| errno(&e))?;
            names.extend(target.split('/').rev().map(str::to_owned));
        } else {
            trail.push(node);
        }
    }
    Err(libc::ELOOP)
}

/// Reads a file to its end, a piece at a time; its length has to be its size.
fn read_all(tree: &Tree, node: &Node) -> Result<Vec<u8>, i32> {
    let size = tree.attributes(node).map_err(|e| errno(&e))?.size;
    let file = tree.open(node).map_err(|e| errno(&e))?;
    let mut bytes = vec![];
    let mut piece = vec![0; 128 << 10];
    loop {
        match tree
            .read(&file, bytes.len() as u64, &mut piece)
            .map_err(|e| errno(&e))?
        {
            0 => break,
            len => bytes.extend_from_slice(&piece[..len]),
        }
    }
    // The daemon's own files change as they are read.
    assert!(
        bytes.len() as u64 == size || matches!(node, Node::Daemon(_)),
        "{size} bytes by stat, {}",
        bytes.len()
    );
    Ok(bytes)
}

fn errno(error: &TreeError) -> i32 {
    match error.kind {
        ErrorKind::NotFound | ErrorKind::Absent => libc::ENOENT,
        ErrorKind::NotDirectory => libc::ENOTDIR,
        ErrorKind::IsDirectory => libc::EISDIR,
        ErrorKind::Invalid => libc::EINVAL,
        ErrorKind::Io | ErrorKind::Unfinished => libc::EIO,
        ErrorKind::Unsupported => libc::ENOTSUP,
        ErrorKind::Stale => libc::ESTALE,
    }
}

fn errno_of(error: &std::io::Error) -> i32 {
    error
        .raw_os_error()
        .unwrap_or_else(|| panic!("not from the kernel: {error}"))
}
