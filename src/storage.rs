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

use crate::counters::Counters;
use crate::parallel::{in_parallel, in_parallel_waiting};

use descriptors::Descriptors;
use directory::Directory;
use error::{io_error, storage_error};
use location::Location;
use moved::MovedDirectories;
use remote::RemoteFile;
use roots::{OpenError, Root};
use source_file::Place;

mod access;
pub mod chunk_reader;
mod descriptors;
mod directory;
mod error;
mod location;
mod moved;
mod options;
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
pub use error::StorageError;
pub(crate) use location::percent_decoded;
pub use options::{PathMapping, StorageOptions, read_named_file};
pub use remote::Expected;
pub use source_file::{FileIdentity, SourceFile};
pub use spill::{Spill, SpillWriter, Spilled, SpilledReader, has_room, unnamed_file};
pub use store::{AwsIdentity, Level, sign_for_aws};

/// Linux's `PATH_MAX`. A longer recorded path opens nothing, and is refused before it is matched against anything.
const MAX_PATH: usize = 4096;

/// The files of one table.
#[derive(Debug)]
pub struct Storage {
    /// In the order in which they are tried.
    rules: Vec<Rule>,
    table_root: Directory,
    moved: MovedDirectories,
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
            moved: MovedDirectories::default(),
            counters: Arc::clone(&options.counters),
            descriptors: Arc::clone(&options.descriptors),
            spill: Arc::clone(&options.spill),
        })
    }

    /// Whether the table lies in a store, so that many files are better asked for at once.
    pub fn is_remote(&self) -> bool {
        matches!(self.table_root, Directory::Store(_))
    }

    /// Whether any of the table's files may lie in a store.
    pub fn reaches_stores(&self) -> bool {
        let roots = self.rules.iter().map(|rule| &rule.root);
        let mut roots = roots.chain([&self.table_root]);
        roots.any(|root| matches!(root, Directory::Store(_)))
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
    /// same file exactly when their keys are equal, once [`Storage::locate`] has seen them. Touches no file.
    pub fn canonical(&self, recorded: &str) -> String {
        let path = Location::parse(recorded);
        let end;
        let place = match self.resolve(&path) {
            Some(place) => Some(place),
            None => {
                end = self.moved.end(recorded);
                end.as_deref().map(|end| (&self.table_root, end))
            }
        };
        match place {
            Some((Directory::Local(root), relative)) => {
                let decoded = percent_decoded(relative).filter(|_| self.moved.is_encoded(recorded));
                let relative = decoded.as_deref().unwrap_or(relative);
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
            None => {
                let found = self.by_end(recorded, expected)?;
                return found.map(|(_, found)| found).ok_or_else(|| {
                    match (path.remote_scheme(), &self.table_root) {
                        (Some(scheme), Directory::Local(_)) => StorageError::Scheme {
                            path: recorded.to_owned(),
                            scheme: scheme.to_owned(),
                        },
                        _ => StorageError::NotAllowed {
                            path: recorded.to_owned(),
                        },
                    }
                });
            }
        };
        let literal = self.open_place(root, relative);
        if is_missing(&literal)
            && let Some(found) = self.decoded(recorded)
        {
            return Ok(found);
        }
        let (place, file) = literal.map_err(|error| storage_error(recorded, error))?;
        Ok(Found::Local(place, file))
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

fn is_missing<T>(opened: &Result<T, OpenError>) -> bool {
    let Err(OpenError::Io(error)) = opened else {
        return false;
    };
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
