//! Where a table's files lie: recorded paths to files beneath allowed roots, and reads of their ranges.
//!
//! A table's metadata records its files by full paths, written by another program, perhaps on another machine. Three
//! things happen here between such a path and its bytes:
//!
//! 1. **Resolving.** In this order: the longest `--map-path` prefix; the table's recorded location, which stands for
//!    the directory where the table lies now; the allowed directories of this machine (the table's own,
//!    `write.data.path` and its like, `--allow-path`). Spellings that differ only in the scheme (`file:/t`, `/t`;
//!    `s3://b/t`, `s3a://b/t`; `hdfs://host/t`, `/t`) are equal. What none of these explains is matched from its end:
//!    the longest end of the path, two components at least, that exists in the table's directory. A table copied from
//!    anywhere is so read where it lies.
//! 2. **Opening.** Only beneath an allowed root, which the kernel enforces (`openat2`), and only regular files.
//! 3. **Reading.** Positioned and exact, each range checked against the file's size before memory is taken, each read
//!    counted. Descriptors are bounded for the whole process; one that was given up is opened again when it is
//!    needed, and the file must then be the same one, for the files of a table never change.
//!
//! Iceberg's own ideas stop at paths: nothing here knows what a manifest is.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use url::Url;

use crate::cache::Cache;
use crate::counters::Counters;
use crate::parallel::{in_parallel, in_parallel_waiting};

use descriptors::Descriptors;
use directory::{Directory, StoreDirectory};
use location::Location;
use remote::RemoteFile;
use remote::Remotes;
use roots::{OpenError, Root};
use source_file::{Place, read_counted, zeroed};
use store::{StoreUrl, Stores};

mod access;
pub mod chunk_reader;
mod descriptors;
mod directory;
mod location;
mod remote;
mod roots;
mod source_file;
mod spill;
mod store;
#[cfg(test)]
mod tests;
pub mod web;

pub use access::{
    Address, PrefixedProperties, Properties, Renewal, RequestSigner, SignedRequest, Signing,
    StoreAccess,
};
pub use directory::StoreFolder;
pub(crate) use location::percent_decoded;
pub use remote::Expected;
pub use source_file::{FileIdentity, SourceFile};
pub use spill::{Spill, SpillWriter, Spilled, SpilledReader};
pub use store::{AwsIdentity, Level};

/// Linux's `PATH_MAX`. A longer recorded path opens nothing, and is refused before it is matched against anything.
const MAX_PATH: usize = 4096;

/// Why a file could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system's answer.
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    /// No allowed root holds it, or the way to it leads out of one.
    #[error("{path}: outside the table's own storage (allow it with --allow-path or --map-path)")]
    NotAllowed { path: String },
    /// A directory, FIFO, socket or device.
    #[error("{path}: not a regular file")]
    NotRegular { path: String },
    /// A path on remote storage that no mapping brings here.
    #[error("{path}: {scheme}: is not local storage (say where the files lie now with --map-path)")]
    Scheme { path: String, scheme: String },
    /// A range that metadata or a footer names is not in the file. All in bytes.
    #[error("{path}: read of {len} bytes at {offset} passes the end of the file ({size} bytes)")]
    PastEnd {
        path: String,
        offset: u64,
        len: u64,
        size: u64,
    },
    /// Replaced, truncated or written to under us.
    #[error("{path}: changed since it was first read (files of a table never change)")]
    Changed { path: String },
    /// A file to be read whole is larger than any honest one. All in bytes.
    #[error("{path}: {size} bytes, where at most {max} are expected")]
    TooLarge { path: String, size: u64, max: u64 },
    /// A property of a store, or what stands for one, that cannot be used. The value may be secret and is not shown.
    #[error("{name}: {reason}")]
    Property { name: String, reason: String },
    /// A location that is recorded for a table or its metadata file names no place.
    #[error("{text}: {reason}")]
    BadLocation { text: String, reason: String },
    /// `--map-path` without its `=`, or with nothing to map.
    #[error("--map-path {text}: expected OLD=NEW")]
    BadMapping { text: String },
}

impl StorageError {
    /// Whether the file may be sound but lies on storage that is not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Scheme { .. })
    }
}

/// One `--map-path OLD=NEW`: recorded paths under `old` are read under the directory `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMapping {
    /// A recorded location or path prefix, of whole components.
    pub old: String,
    /// A directory of this machine or of a store.
    pub new: Address,
}

impl std::str::FromStr for PathMapping {
    type Err = StorageError;

    /// `OLD=NEW`, split at the last `=` after which a directory is named, since recorded paths hold `=` in partition
    /// names more often than directories given by hand do; a `NEW` that is a URL or exists decides.
    fn from_str(text: &str) -> Result<Self, StorageError> {
        let splits = || {
            text.rmatch_indices('=')
                .filter(|(at, _)| *at > 0 && at + 1 < text.len())
        };
        let split = splits()
            .find(|(at, _)| {
                let new = &text[at + 1..];
                location::is_url(new) || Path::new(new).is_dir()
            })
            .or_else(|| splits().next_back());
        let (at, _) = split.ok_or_else(|| StorageError::BadMapping {
            text: text.to_owned(),
        })?;
        Ok(Self {
            old: text[..at].to_owned(),
            new: text[at + 1..].parse()?,
        })
    }
}

/// What the user says about storage, for all tables of a mount. Storages made from one (or its clones) share one bound
/// on open descriptors.
#[derive(Clone, Debug, Default)]
pub struct StorageOptions {
    /// `--map-path`, in any order: the longest prefix wins.
    pub map_paths: Vec<PathMapping>,
    /// `--allow-path`: directories whose files may be read if the metadata names them by their own paths.
    pub allow_paths: Vec<Address>,
    /// The process's counters.
    pub counters: Arc<Counters>,
    descriptors: Arc<Descriptors>,
    spill: Arc<Spill>,
    stores: Arc<Stores>,
    remotes: Arc<Remotes>,
}

impl StorageOptions {
    /// Options that allow each table its own directory and nothing else.
    pub fn new(counters: Arc<Counters>) -> Self {
        Self {
            counters,
            ..Self::default()
        }
    }

    /// The same with blocks of stores' files kept in `cache`.
    pub fn with_cache(self, cache: &Arc<Cache>) -> Self {
        Self {
            remotes: Arc::new(Remotes::new(Some(Arc::clone(cache)))),
            ..self
        }
    }

    /// A directory of a store.
    fn store_directory(
        &self,
        url: &Url,
        access: &Arc<StoreAccess>,
    ) -> Result<StoreDirectory, StorageError> {
        let url = StoreUrl::parse(url)?;
        let store = self.stores.open(&url, access, &self.counters)?;
        Ok(StoreDirectory::new(store, url, Arc::clone(&self.remotes)))
    }

    /// Where a place that a catalog names lies now: the longest `--map-path` that explains it brings it elsewhere.
    pub fn mapped(&self, named: &Address) -> Address {
        let place = named.location();
        let explained = self.map_paths.iter().filter_map(|mapping| {
            let old = Location::parse(&mapping.old);
            let below = match old.relative(&place) {
                Some(below) => below,
                None if old.may_be(&place) => "",
                None => return None,
            };
            Some((old.depth(), mapping.new.below(below)?))
        });
        let closest = explained.max_by_key(|(depth, _)| *depth);
        closest.map_or_else(|| named.clone(), |(_, address)| address)
    }

    fn directory(
        &self,
        address: &Address,
        access: &Arc<StoreAccess>,
    ) -> Result<Directory, StorageError> {
        match address {
            Address::Local(path) => open_root(path).map(Directory::Local),
            Address::Remote(url) => {
                let directory = self.store_directory(url, access)?;
                Ok(Directory::Store(Arc::new(directory)))
            }
        }
    }
}

/// The files of one table.
#[derive(Debug)]
pub struct Storage {
    /// In the order in which they are tried.
    rules: Vec<Rule>,
    table_root: Directory,
    counters: Arc<Counters>,
    descriptors: Arc<Descriptors>,
    spill: Arc<Spill>,
}

/// Recorded paths under `from` lie under `root`.
#[derive(Debug)]
struct Rule {
    from: Location,
    root: Directory,
}

/// A file that was found, not yet a [`SourceFile`].
enum Found {
    Local(Place, File),
    Remote(RemoteFile),
}

impl Storage {
    /// The storage of a table that lies in `table_root` now and records `recorded_location` in its metadata.
    /// `extra_locations` are the values of `write.data.path`, `write.metadata.path` and the like: files may be read from
    /// there too where they name local directories that exist, of a local table; of a table in a store, places in the
    /// same bucket, or in another that the catalog grants.
    ///
    /// Fails where the table's directory, a `--map-path` target or an `--allow-path` cannot be opened. Asks no store.
    pub fn new(
        options: &StorageOptions,
        table_root: &Address,
        access: &Arc<StoreAccess>,
        recorded_location: &str,
        extra_locations: &[String],
    ) -> Result<Self, StorageError> {
        let mut mappings = Vec::new();
        for mapping in &options.map_paths {
            mappings.push(Rule {
                from: Location::parse(&mapping.old),
                root: options.directory(&mapping.new, access)?,
            });
        }
        mappings.sort_by_key(|rule| std::cmp::Reverse(rule.from.depth()));
        let mut rules = mappings;

        let table = options.directory(table_root, access)?;
        let location = Location::parse(recorded_location);
        rules.extend(granted_below(options, &location, access)?);
        if !location.is_everything() {
            rules.push(Rule {
                from: location.clone(),
                root: table.clone(),
            });
        }

        let mut here = rules_for(table_root, &table);
        for allowed in &options.allow_paths {
            here.extend(rules_for(allowed, &options.directory(allowed, access)?));
        }
        for text in extra_locations {
            let extra = Location::parse(text);
            let moves_with_table = location.relative(&extra).is_some();
            if moves_with_table || extra.is_everything() {
                continue;
            }
            let address = match &table {
                Directory::Local(_) if extra.is_local_absolute() => {
                    Address::Local(PathBuf::from(extra.path()))
                }
                Directory::Store(store) => match directory::vouched_for(text, store, access) {
                    Some(url) => Address::Remote(url),
                    None => continue,
                },
                Directory::Local(_) => continue,
            };
            // A table that was copied from elsewhere names directories that this machine does not have.
            if let Ok(root) = options.directory(&address, access) {
                here.extend(rules_for(&address, &root));
            }
        }
        here.sort_by_key(|rule| std::cmp::Reverse(rule.from.depth()));
        rules.extend(here);

        Ok(Self {
            rules,
            table_root: table,
            counters: Arc::clone(&options.counters),
            descriptors: Arc::clone(&options.descriptors),
            spill: Arc::clone(&options.spill),
        })
    }

    /// Whether the table lies in a store, so that many files are better asked for at once.
    pub fn is_remote(&self) -> bool {
        matches!(self.table_root, Directory::Store(_))
    }

    /// Applies `read` to each item on several threads: on many where they wait for a store.
    pub fn in_parallel<I: Sync, R: Send>(
        &self,
        items: &[I],
        read: impl Fn(&I) -> R + Sync,
    ) -> Vec<R> {
        match self.is_remote() {
            true => in_parallel_waiting(items, read),
            false => in_parallel(items, read),
        }
    }

    /// Opens a file by the path the table's metadata records for it. Regular files beneath allowed roots only.
    pub fn open(&self, recorded: &str) -> Result<Arc<SourceFile>, StorageError> {
        self.open_expecting(recorded, &Expected::default())
    }

    /// Opens a file of which something is known beforehand, which saves requests where it lies in a store.
    pub fn open_expecting(
        &self,
        recorded: &str,
        expected: &Expected,
    ) -> Result<Arc<SourceFile>, StorageError> {
        let file = match self.find(recorded, expected)? {
            Found::Local(place, file) => {
                SourceFile::new(recorded, place, file, &self.descriptors, &self.counters)?
            }
            Found::Remote(file) => SourceFile::remote(recorded, file, &self.counters),
        };
        Ok(Arc::new(file))
    }

    /// Opens a file about which something was learnt before: [`StorageError::Changed`] where it is another file now.
    pub fn open_same(
        &self,
        recorded: &str,
        identity: &FileIdentity,
    ) -> Result<Arc<SourceFile>, StorageError> {
        let file = self.open(recorded)?;
        if file.identity() == identity {
            Ok(file)
        } else {
            Err(StorageError::Changed {
                path: recorded.to_owned(),
            })
        }
    }

    /// A whole file, of `max` bytes at most.
    pub fn read_file_limited(&self, recorded: &str, max: u64) -> Result<Bytes, StorageError> {
        let path = Location::parse(recorded);
        if let Some((Directory::Store(directory), relative)) = self.resolve(&path) {
            check_text(recorded)?;
            return directory.read_whole(&path.key(relative), max, recorded);
        }
        let file = self.open(recorded)?;
        if file.len() > max {
            return Err(StorageError::TooLarge {
                path: recorded.to_owned(),
                size: file.len(),
                max,
            });
        }
        file.read_range(0, file.len())
    }

    /// One key for all spellings of a recorded path (schemes and moved locations resolved): two recorded paths name the
    /// same file exactly when their keys are equal. Touches no file.
    pub fn canonical(&self, recorded: &str) -> String {
        let path = Location::parse(recorded);
        match self.resolve(&path) {
            Some((Directory::Local(root), relative)) => {
                format!("{}/{}", root.path().display(), location::tidy(relative))
            }
            Some((Directory::Store(directory), relative)) => {
                format!("{}/{}", directory.name(), path.key(relative))
            }
            None => path.normal_text(),
        }
    }

    /// Where the process keeps what it cannot keep in memory.
    pub fn spill(&self) -> &Arc<Spill> {
        &self.spill
    }

    /// The process's counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The first rule that explains the path. Rules of one length stand together: the one of the same kind is meant.
    fn resolve<'p>(&self, path: &'p Location) -> Option<(&Directory, &'p str)> {
        let mut matching = self
            .rules
            .iter()
            .filter_map(|rule| Some((rule, rule.from.relative(path)?)))
            .peekable();
        let (first, relative) = matching.next()?;
        if first.from.same_storage(path) {
            return Some((&first.root, relative));
        }
        let closer = matching
            .take_while(|(rule, _)| rule.from.depth() == first.from.depth())
            .find(|(rule, _)| rule.from.same_storage(path));
        let (rule, relative) = closer.unwrap_or((first, relative));
        Some((&rule.root, relative))
    }

    fn find(&self, recorded: &str, expected: &Expected) -> Result<Found, StorageError> {
        check_text(recorded)?;
        let path = Location::parse(recorded);
        let (root, relative) = match self.resolve(&path) {
            Some((Directory::Local(root), relative)) => (root, relative),
            Some((Directory::Store(directory), relative)) => {
                let file = directory.open(&path.key(relative), expected, recorded)?;
                return Ok(Found::Remote(file));
            }
            None => return self.find_by_end(recorded, &path, expected),
        };
        let literal = self.open_place(root, relative);
        if is_missing(&literal)
            && recorded.starts_with("file:")
            && let Some(decoded) = location::percent_decoded(relative)
            && let Ok((place, file)) = self.open_place(root, &decoded)
        {
            return Ok(Found::Local(place, file));
        }
        let (place, file) = literal.map_err(|error| storage_error(recorded, error))?;
        Ok(Found::Local(place, file))
    }

    /// Opens what no rule explains by the longest end of its path that exists in the table's directory. Ends of a
    /// single component are not tried: a bare file name says too little.
    fn find_by_end(
        &self,
        recorded: &str,
        path: &Location,
        expected: &Expected,
    ) -> Result<Found, StorageError> {
        let mut end = path.path().trim_start_matches('/');
        let reaches_up = end.split('/').any(|part| part == "..");
        while !reaches_up && let Some((_, shorter)) = end.split_once('/') {
            match &self.table_root {
                Directory::Local(root) => {
                    let found = self.open_place(root, end);
                    if !is_missing(&found) {
                        let (place, file) =
                            found.map_err(|error| storage_error(recorded, error))?;
                        return Ok(Found::Local(place, file));
                    }
                }
                Directory::Store(directory) => {
                    if let Some(file) = directory.open_if_there(end, expected, recorded)? {
                        return Ok(Found::Remote(file));
                    }
                }
            }
            end = shorter.trim_start_matches('/');
        }
        Err(match (path.remote_scheme(), &self.table_root) {
            (Some(scheme), Directory::Local(_)) => StorageError::Scheme {
                path: recorded.to_owned(),
                scheme: scheme.to_owned(),
            },
            _ => StorageError::NotAllowed {
                path: recorded.to_owned(),
            },
        })
    }

    /// Opens a file beneath a root. A symlink that leads out of it may still lead into another allowed root (a `data`
    /// directory on a second disk, say): the file is then opened beneath that one.
    fn open_place(&self, root: &Arc<Root>, relative: &str) -> Result<(Place, File), OpenError> {
        match root.open_file(relative) {
            Ok(file) => Ok((
                Place {
                    root: Arc::clone(root),
                    relative: relative.to_owned(),
                },
                file,
            )),
            Err(OpenError::Escapes) => {
                let real = root
                    .path()
                    .join(relative)
                    .canonicalize()
                    .map_err(|_| OpenError::Escapes)?;
                let allowed = self
                    .rules
                    .iter()
                    .map(|rule| &rule.root)
                    .chain([&self.table_root]);
                for other in allowed {
                    let Directory::Local(other) = other else {
                        continue;
                    };
                    let Some(below) = real.strip_prefix(other.path()).ok().and_then(Path::to_str)
                    else {
                        continue;
                    };
                    let file = other.open_file(below)?;
                    return Ok((
                        Place {
                            root: Arc::clone(other),
                            relative: below.to_owned(),
                        },
                        file,
                    ));
                }
                Err(OpenError::Escapes)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads a file that the catalog named (a table's metadata file, which says where everything else is) whole, of `max`
/// bytes at most.
pub fn read_named_file(
    options: &StorageOptions,
    address: &Address,
    access: &Arc<StoreAccess>,
    max: u64,
) -> Result<Bytes, StorageError> {
    let path = match address {
        Address::Local(path) => path,
        Address::Remote(url) => {
            let file = options.store_directory(url, access)?;
            return file.read_itself(max, &address.to_string());
        }
    };
    let name = path.display().to_string();
    let file = roots::open_named(path).map_err(|error| storage_error(&name, error))?;
    let size = file
        .metadata()
        .map_err(|source| io_error(&name, source))?
        .len();
    if size > max {
        return Err(StorageError::TooLarge {
            path: name,
            size,
            max,
        });
    }
    let mut buffer = zeroed(&name, size)?;
    read_counted(&file, &mut buffer, 0, &name, &options.counters)?;
    Ok(Bytes::from(buffer))
}

/// Places beneath a location for which the catalog grants access of their own, the deepest first.
fn granted_below(
    options: &StorageOptions,
    location: &Location,
    access: &Arc<StoreAccess>,
) -> Result<Vec<Rule>, StorageError> {
    let mut rules = Vec::new();
    for grant in &access.credentials {
        let from = Location::parse(&grant.prefix);
        if location.relative(&from).is_some()
            && let Ok(address @ Address::Remote(_)) = grant.prefix.parse()
        {
            let root = options.directory(&address, access)?;
            rules.push(Rule { from, root });
        }
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.from.depth()));
    Ok(rules)
}

/// A directory under the path it was given by, made absolute, and under its real one; a store's under its URL.
fn rules_for(given: &Address, root: &Directory) -> Vec<Rule> {
    let rule = |from: Location| Rule {
        from,
        root: root.clone(),
    };
    match (given, root) {
        (Address::Local(path), Directory::Local(real)) => {
            let absolute = std::path::absolute(path).ok();
            let paths = [absolute.as_deref(), Some(real.path())];
            let local = |path: &Path| Some(rule(Location::local(path.to_str()?)));
            paths.into_iter().flatten().filter_map(local).collect()
        }
        (Address::Remote(_), Directory::Store(directory)) => {
            vec![rule(Location::parse(&directory.name()))]
        }
        _ => Vec::new(),
    }
}

/// What no file can be called is refused before it is matched against anything.
fn check_text(recorded: &str) -> Result<(), StorageError> {
    if recorded.len() > MAX_PATH || recorded.contains('\0') {
        return Err(io_error(
            recorded,
            io::Error::from(io::ErrorKind::InvalidFilename),
        ));
    }
    Ok(())
}

fn open_root(path: &Path) -> Result<Arc<Root>, StorageError> {
    Root::open(path)
        .map(Arc::new)
        .map_err(|source| io_error(&path.display().to_string(), source))
}

fn is_missing<T>(opened: &Result<T, OpenError>) -> bool {
    let Err(OpenError::Io(error)) = opened else {
        return false;
    };
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn io_error(path: &str, source: io::Error) -> StorageError {
    StorageError::Io {
        path: path.to_owned(),
        source,
    }
}

fn storage_error(path: &str, error: OpenError) -> StorageError {
    let path = path.to_owned();
    match error {
        OpenError::Escapes => StorageError::NotAllowed { path },
        OpenError::NotRegular => StorageError::NotRegular { path },
        OpenError::Io(source) => StorageError::Io { path, source },
    }
}
