//! A directory that files may be opened beneath: of this machine, or of a store.

use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use url::Url;

use super::location::Location;
use super::remote::{Expected, RemoteFile, Remotes};
use super::roots::Root;
use super::store::{Level, Refusal, Store, StoreUrl};
use super::{Address, StorageError, StorageOptions, StoreAccess, web};

/// Where files may be opened.
#[derive(Clone, Debug)]
pub(super) enum Directory {
    Local(Arc<Root>),
    Store(Arc<StoreDirectory>),
}

/// A directory of a store. Keys are joined to it and can name nothing outside it.
#[derive(Debug)]
pub(super) struct StoreDirectory {
    store: Arc<Store>,
    url: StoreUrl,
    remotes: Arc<Remotes>,
}

impl StoreDirectory {
    pub(super) fn new(store: Arc<Store>, url: StoreUrl, remotes: Arc<Remotes>) -> Self {
        Self {
            store,
            url,
            remotes,
        }
    }

    /// Its URL as recorded paths have it: nothing is percent-encoded.
    pub(super) fn name(&self) -> String {
        match self.url.key.as_str() {
            "" => self.url.base(),
            key => format!("{}/{key}", self.url.base()),
        }
    }

    /// Opens a file beneath it. `path` is for messages.
    pub(super) fn open(
        &self,
        relative: &str,
        expected: &Expected,
        path: &str,
    ) -> Result<RemoteFile, StorageError> {
        let key = self.key(relative, path)?;
        let opened = self.remotes.open(&self.store, &key, expected);
        opened.map_err(|refusal| refusal.about(path))
    }

    /// Opens a file beneath it, if there is one.
    pub(super) fn open_if_there(
        &self,
        relative: &str,
        expected: &Expected,
        path: &str,
    ) -> Result<Option<RemoteFile>, StorageError> {
        let Some(key) = self.url.below(relative) else {
            return Ok(None);
        };
        match self.remotes.open(&self.store, &key, expected) {
            Ok(file) => Ok(Some(file)),
            Err(Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal.about(path)),
        }
    }

    /// A whole file beneath it, of `max` bytes at most.
    pub(super) fn read_whole(
        &self,
        relative: &str,
        max: u64,
        path: &str,
    ) -> Result<Bytes, StorageError> {
        let key = self.key(relative, path)?;
        self.remotes.read_whole(&self.store, &key, max, path)
    }

    /// The file that its own URL names.
    pub(super) fn read_itself(&self, max: u64, path: &str) -> Result<Bytes, StorageError> {
        let key = Path::parse(&self.url.key).map_err(|_| StorageError::NoKey {
            path: path.to_owned(),
        })?;
        self.remotes.read_whole(&self.store, &key, max, path)
    }

    fn key(&self, relative: &str, path: &str) -> Result<Path, StorageError> {
        let leads_out = || relative.split('/').any(|part| part == "..");
        self.url.below(relative).ok_or_else(|| match leads_out() {
            true => not_allowed(path),
            false => StorageError::NoKey {
                path: path.to_owned(),
            },
        })
    }
}

/// A directory of a store that the user or a catalog named, for looking at what lies in it.
#[derive(Clone, Debug)]
pub struct StoreFolder {
    url: Url,
    access: Arc<StoreAccess>,
    directory: Arc<StoreDirectory>,
}

impl StoreFolder {
    /// The directory that a URL names. Asks no store.
    ///
    /// # Errors
    /// No store has such URLs, or the properties cannot be used.
    pub fn new(
        options: &StorageOptions,
        url: &Url,
        access: &Arc<StoreAccess>,
    ) -> Result<Self, StorageError> {
        let mut url = url.clone();
        // What follows the path would be asked for no other file.
        if url.query().is_some() || url.fragment().is_some() {
            return Err(StorageError::Property {
                name: Address::Remote(url).to_string(),
                reason: "a URL with a query names a single file: give credentials by properties"
                    .to_owned(),
            });
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self {
            directory: Arc::new(options.store_directory(&url, access)?),
            access: Arc::clone(access),
            url,
        })
    }

    /// Its own, without a slash at its end.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// How its store is reached.
    pub fn access(&self) -> &Arc<StoreAccess> {
        &self.access
    }

    /// Its own name; `None` at the top of a store.
    pub fn name(&self) -> Option<&str> {
        let key = self.directory.url.key.as_str();
        key.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// A directory in it.
    pub fn child(&self, name: &str) -> Self {
        Self {
            url: self.file(name),
            access: Arc::clone(&self.access),
            directory: Arc::new(StoreDirectory {
                store: Arc::clone(&self.directory.store),
                url: self.directory.url.child(name),
                remotes: Arc::clone(&self.directory.remotes),
            }),
        }
    }

    /// The directory it lies in; itself at the top of a store.
    pub fn parent(&self) -> Self {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop();
        }
        Self {
            url,
            access: Arc::clone(&self.access),
            directory: Arc::new(StoreDirectory {
                store: Arc::clone(&self.directory.store),
                url: self.directory.url.parent(),
                remotes: Arc::clone(&self.directory.remotes),
            }),
        }
    }

    /// The URL of a file in it.
    pub fn file(&self, name: &str) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push(name);
        }
        url
    }

    /// A file in it, for messages. The URL of a server's top has a slash of its own.
    fn shown(&self, name: &str) -> String {
        format!("{}/{name}", self.to_string().trim_end_matches('/'))
    }

    /// Whether the store lists what it holds: web servers do not.
    pub fn can_list(&self) -> bool {
        self.directory.store.can_list()
    }

    /// What lies directly in it; nothing where there is no such directory.
    pub fn level(&self) -> Result<Level, StorageError> {
        let level = wait(self.directory.store.level(&self.directory.url.key));
        level.map_err(|refusal| refusal.about(&self.to_string()))
    }

    /// Whether it has a file of this name.
    pub fn has_file(&self, name: &str) -> Result<bool, StorageError> {
        let path = self.shown(name);
        let key = self.directory.key(name, &path)?;
        match wait(self.directory.store.size(&key)) {
            Ok(_) => Ok(true),
            Err(Refusal::NotFound) => Ok(false),
            Err(refusal) => Err(refusal.about(&path)),
        }
    }

    /// What tells the content of a file from what it was under the same name before; `None` where there is none.
    pub fn version(&self, name: &str) -> Result<Option<String>, StorageError> {
        let path = self.shown(name);
        let key = self.directory.key(name, &path)?;
        match wait(self.directory.store.version(&key)) {
            Ok(version) => Ok(Some(version)),
            Err(Refusal::NotFound) => Ok(None),
            Err(refusal) => Err(refusal.about(&path)),
        }
    }

    /// A file of `max` bytes at most; `None` where there is none.
    pub fn read(&self, name: &str, max: u64) -> Result<Option<Bytes>, StorageError> {
        match self.directory.read_whole(name, max, &self.shown(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Its URL without secrets.
impl fmt::Display for StoreFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Address::Remote(self.url.clone()).fmt(f)
    }
}

/// The URL of a place that a table in a store names beside its own: where it lies in the same bucket, or where the
/// catalog has granted what is needed for it. Metadata alone must not lead to other buckets, or out of stores.
pub(super) fn vouched_for(text: &str, table: &StoreDirectory, access: &StoreAccess) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let place = StoreUrl::parse(&url).ok()?;
    let granted = access
        .credentials
        .iter()
        .any(|grant| grant.prefix.contains("://") && Location::parse(&grant.prefix).holds(text));
    (place.base() == table.url.base() || granted).then_some(url)
}

fn wait<T>(future: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    web::block_on(future).unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())))
}

fn not_allowed(path: &str) -> StorageError {
    StorageError::NotAllowed {
        path: path.to_owned(),
    }
}
