//! What the user says about storage, and what all tables of a mount share of it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use url::Url;

use super::descriptors::Descriptors;
use super::directory::{Directory, StoreDirectory};
use super::error::{StorageError, io_error, storage_error};
use super::location::{self, Location};
use super::remote::Remotes;
use super::roots::{self, Root};
use super::source_file::{read_counted, zeroed};
use super::spill::Spill;
use super::store::{StoreUrl, Stores};
use super::{Address, StoreAccess};
use crate::cache::Cache;
use crate::counters::Counters;

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
    pub(super) descriptors: Arc<Descriptors>,
    pub(super) spill: Arc<Spill>,
    pub(super) stores: Arc<Stores>,
    pub(super) remotes: Arc<Remotes>,
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
    pub(super) fn store_directory(
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

    pub(super) fn directory(
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

fn open_root(path: &Path) -> Result<Arc<Root>, StorageError> {
    Root::open(path)
        .map(Arc::new)
        .map_err(|source| io_error(&path.display().to_string(), source))
}
