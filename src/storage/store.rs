//! One bucket, container or web server, and what can be asked of it: ranges of its files, and one level of a listing.
//!
//! ```text
//! s3://bucket/key ─► StoreUrl ─► Stores ─► Store ─► object_store ─► Transport ─► web::send
//!                                (kept)    (renews what the store refuses)
//! ```
//!
//! A store is kept for as long as tables are read through it, with its connections and credentials. What the user and
//! the catalog said (`StoreAccess`) decides what is asked and as whom; where they say nothing, the environment does, as
//! the SDKs of each store read it (`s3`, `azure`, `gcs`).

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use lru::LruCache;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, RetryConfig};

use super::web::{self, Limits};
use super::{Properties, StorageError, StoreAccess};
use crate::counters::Counters;

mod azure;
mod gcs;
mod grant;
mod listing;
mod place;
mod renewable;
mod s3;
mod transport;

use grant::Grant;
pub(super) use place::{Kind, StoreUrl};
pub use s3::{AwsIdentity, sign_for_aws};
use transport::Transport;

/// Stores kept open for tables to come.
const MAX_STORES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// Bytes of one request at most: what is lost when it breaks, and what a slow line takes a minute for.
pub(super) const LARGEST_REQUEST: u64 = 8 << 20;

/// Names in one level of a listing. More is no warehouse.
const MAX_LISTED: usize = 100_000;

/// Pages without a name in one listing, one after the other: stores give some where many keys have been deleted.
const MAX_EMPTY_PAGES: usize = 1000;

/// How long a store may be silent before a read fails, in milliseconds; 30 seconds where it is not set.
const TIMEOUT_PROPERTY: &str = "store.timeout-ms";

/// The stores that are open, of the whole process.
#[derive(Debug)]
pub(super) struct Stores {
    open: Mutex<LruCache<StoreKey, Vec<Arc<Store>>>>,
}

/// Kind, account and bucket.
type StoreKey = String;

impl Default for Stores {
    fn default() -> Self {
        Self {
            open: Mutex::new(LruCache::new(MAX_STORES)),
        }
    }
}

impl Stores {
    /// The store that holds `url`, for those who may use `access`.
    pub(super) fn open(
        &self,
        url: &StoreUrl,
        access: &Arc<StoreAccess>,
        counters: &Arc<Counters>,
    ) -> Result<Arc<Store>, StorageError> {
        let key = url.base();
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = open.get(&key).into_iter().flatten();
            for store in kept {
                if store.serves(url, access) {
                    return Ok(Arc::clone(store));
                }
            }
        }
        // Opened without the lock: the environment's credentials may take a while.
        let store = Arc::new(Store::open(url, access, counters)?);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = open.get_or_insert_mut(key, Vec::new);
        kept.retain(|store| Arc::strong_count(store) > 1);
        kept.push(Arc::clone(&store));
        Ok(store)
    }
}

/// A bucket, container or web server.
#[derive(Debug)]
pub(super) struct Store {
    /// Kind, account, bucket and endpoint, without secrets; one for all who mean the same.
    identity: String,
    kind: Kind,
    client: Arc<dyn ObjectStore>,
    lister: Option<Lister>,
    access: Arc<StoreAccess>,
    grant: Arc<Grant>,
    grant_urls: Vec<String>,
}

struct Lister(Arc<dyn PaginatedListStore>);

impl std::fmt::Debug for Lister {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lister")
    }
}

/// What an opened client is.
struct Client {
    store: Arc<dyn ObjectStore>,
    lister: Option<Arc<dyn PaginatedListStore>>,
    /// Where it is asked for, unless that is the usual place.
    endpoint: Option<String>,
}

impl Client {
    /// A store that lists what it holds.
    fn of<S: ObjectStore + PaginatedListStore>(
        url: &StoreUrl,
        store: object_store::Result<S>,
        endpoint: Option<String>,
    ) -> Result<Client, StorageError> {
        let store = Arc::new(store.map_err(|error| cannot_open(url, &error))?);
        Ok(Client {
            store: store.clone(),
            lister: Some(store),
            endpoint,
        })
    }
}

/// What is asked of a file.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Less where the file ends before.
    Range(Range<u64>),
    /// The last so many bytes.
    Tail(u64),
}

/// A part of a file, and what the answer says of the whole.
#[derive(Clone, Debug)]
pub(super) struct Fetched {
    /// The first byte's place in the file.
    pub(super) start: u64,
    pub(super) bytes: Bytes,
    /// Bytes of the file.
    pub(super) size: u64,
    /// Tells this state of the file from others: its ETag, or the time it was changed.
    pub(super) version: String,
}

/// One level of a listing: names without the level's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Level {
    pub files: Vec<String>,
    pub directories: Vec<String>,
    /// What tells the content of a file from what it was under the same name before, by the file's name.
    pub versions: BTreeMap<String, String>,
}

/// Why a store gave nothing.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    NotFound,
    /// It is another file now.
    Changed,
    /// The range lies past the end.
    PastEnd,
    Denied(String),
    /// The store is down, or does not do what is asked.
    Failed(String),
}

impl Refusal {
    /// As an error about `path`.
    pub(super) fn about(&self, path: &str) -> StorageError {
        let path = path.to_owned();
        let source = match self {
            Self::Changed => return StorageError::Changed { path },
            Self::NotFound => io::Error::from(io::ErrorKind::NotFound),
            Self::PastEnd => io::Error::other("the range lies past the end of the file"),
            Self::Denied(reason) => {
                io::Error::new(io::ErrorKind::PermissionDenied, format!("denied: {reason}"))
            }
            Self::Failed(reason) => io::Error::other(reason.clone()),
        };
        StorageError::Io { path, source }
    }
}

impl Store {
    fn open(
        url: &StoreUrl,
        access: &Arc<StoreAccess>,
        counters: &Arc<Counters>,
    ) -> Result<Self, StorageError> {
        let grant_urls = url.spellings();
        let properties = grant::effective(&access.properties, &access.credentials, &grant_urls);
        let grant = Arc::new(Grant::new(access, grant_urls.clone()));
        let transport = Transport {
            limits: Limits {
                patience: timeout(&properties)?,
                max_body: LARGEST_REQUEST.max(64 << 20),
                ..Limits::default()
            },
            counters: Arc::clone(counters),
            signer: None,
        };
        let opening = Opening {
            url,
            access,
            properties: &properties,
            grant: &grant,
            transport,
        };
        let client = match url.kind {
            Kind::S3 => s3::open(opening),
            Kind::Gcs => gcs::open(opening),
            Kind::Azure => azure::open(opening),
            Kind::Http | Kind::Https => http(opening),
        }?;
        let endpoint = client.endpoint.unwrap_or_default();
        Ok(Self {
            identity: format!("{} {endpoint}", url.base()),
            kind: url.kind,
            client: client.store,
            lister: client.lister.map(Lister),
            access: Arc::clone(access),
            grant,
            grant_urls,
        })
    }

    /// Whether this store is right for another table: it would be asked for as the same user.
    fn serves(&self, url: &StoreUrl, access: &Arc<StoreAccess>) -> bool {
        if Arc::ptr_eq(&self.access, access) && access.credentials.is_empty() {
            return true;
        }
        let same_renewal = match (&self.access.renewal, &access.renewal) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let same_signer = match (&self.access.signer, &access.signer) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same_renewal
            && same_signer
            && self.access.properties == access.properties
            && self.access.credentials == access.credentials
            && (access.credentials.is_empty() || self.grant_urls == url.spellings())
    }

    /// One text for all that mean this bucket.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether it lists what it holds.
    pub(super) fn can_list(&self) -> bool {
        self.lister.is_some()
    }

    /// Whether the end of a file can be asked for without knowing its size.
    pub(super) fn has_tails(&self) -> bool {
        self.kind != Kind::Azure
    }

    /// Part of a file. Where `version` is given, of that state of the file only.
    pub(super) async fn get(
        &self,
        key: &Path,
        part: Part,
        version: Option<&str>,
    ) -> Result<Fetched, Refusal> {
        let range = match part {
            Part::Range(range) => GetRange::Bounded(range),
            Part::Tail(len) => GetRange::Suffix(len),
        };
        // A weak ETag matches nothing; the answer's own is compared in any case.
        let if_match = version.filter(|version| version.starts_with('"'));
        let options = GetOptions {
            range: Some(range),
            if_match: if_match.map(str::to_owned),
            ..GetOptions::default()
        };
        let generation = self.grant.generation().await;
        let mut answer = self.client.get_opts(key, options.clone()).await;
        if let Err(error) = &answer
            && is_denial(error)
            && self.grant.refused(generation).await
        {
            answer = self.client.get_opts(key, options).await;
        }
        let answer = answer.map_err(|error| refusal(&error))?;
        let found = match &answer.meta.e_tag {
            Some(etag) => etag.clone(),
            None => answer.meta.last_modified.to_rfc3339(),
        };
        if version.is_some_and(|version| version != found) {
            return Err(Refusal::Changed);
        }
        let (start, len, size) = (
            answer.range.start,
            answer.range.end.saturating_sub(answer.range.start),
            answer.meta.size,
        );
        let bytes = answer.bytes().await.map_err(|error| refusal(&error))?;
        if u64::try_from(bytes.len()).ok() != Some(len) {
            let reason = format!("{} bytes instead of {len}", bytes.len());
            return Err(Refusal::Failed(reason));
        }
        Ok(Fetched {
            start,
            bytes,
            size,
            version: found,
        })
    }

    /// Bytes of a file.
    pub(super) async fn size(&self, key: &Path) -> Result<u64, Refusal> {
        Ok(self.look(key).await?.size)
    }

    /// What tells the content of a file from what it was under the same name before.
    pub(super) async fn version(&self, key: &Path) -> Result<String, Refusal> {
        Ok(version_of(&self.look(key).await?))
    }

    async fn look(&self, key: &Path) -> Result<ObjectMeta, Refusal> {
        let generation = self.grant.generation().await;
        let mut answer = self.head(key).await;
        if let Err(error) = &answer
            && is_denial(error)
            && self.grant.refused(generation).await
        {
            answer = self.head(key).await;
        }
        answer.map_err(|error| refusal(&error))
    }

    async fn head(&self, key: &Path) -> object_store::Result<ObjectMeta> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        Ok(self.client.get_opts(key, options).await?.meta)
    }

    /// What lies directly beneath a key.
    pub(super) async fn level(&self, directory: &str) -> Result<Level, Refusal> {
        let Some(Lister(lister)) = &self.lister else {
            let reason = "a web server does not list its files: give a metadata file, or a table with a version hint";
            return Err(Refusal::Failed(reason.to_owned()));
        };
        let directory = directory.trim_matches('/');
        let prefix = match directory {
            "" => String::new(),
            directory => format!("{directory}/"),
        };
        let mut level = Level::default();
        let (mut page_token, mut empty_pages) = (None, 0);
        loop {
            let generation = self.grant.generation().await;
            let options = || PaginatedListOptions {
                delimiter: Some("/".into()),
                page_token: page_token.clone(),
                ..PaginatedListOptions::default()
            };
            let given = Some(prefix.as_str()).filter(|prefix| !prefix.is_empty());
            let mut page = lister.list_paginated(given, options()).await;
            if let Err(error) = &page
                && is_denial(error)
                && self.grant.refused(generation).await
            {
                page = lister.list_paginated(given, options()).await;
            }
            let page = page.map_err(|error| refusal(&error))?;
            let below = |path: &Path| {
                let rest = path.as_ref().strip_prefix(&prefix)?;
                (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
            };
            for file in &page.result.objects {
                if let Some(name) = below(&file.location) {
                    level.versions.insert(name.clone(), version_of(file));
                    level.files.push(name);
                }
            }
            let directories = page.result.common_prefixes.iter();
            level.directories.extend(directories.filter_map(below));
            if level.files.len() + level.directories.len() > MAX_LISTED {
                let reason = format!("more than {MAX_LISTED} names in one place");
                return Err(Refusal::Failed(reason));
            }
            let is_empty = page.result.objects.is_empty() && page.result.common_prefixes.is_empty();
            empty_pages = if is_empty { empty_pages + 1 } else { 0 };
            if empty_pages > MAX_EMPTY_PAGES {
                let reason = format!("a listing of more than {MAX_EMPTY_PAGES} empty pages");
                return Err(Refusal::Failed(reason));
            }
            page_token = page.page_token;
            if page_token.is_none() {
                level.directories.sort();
                level.files.sort();
                return Ok(level);
            }
        }
    }
}

fn version_of(file: &ObjectMeta) -> String {
    let tag = file.e_tag.as_deref().unwrap_or_default();
    format!("{tag} {} {}", file.size, file.last_modified)
}

/// What is needed to open a client.
struct Opening<'a> {
    url: &'a StoreUrl,
    access: &'a Arc<StoreAccess>,
    properties: &'a Properties,
    grant: &'a Arc<Grant>,
    transport: Transport,
}

fn http(opening: Opening<'_>) -> Result<Client, StorageError> {
    let store = object_store::http::HttpBuilder::new()
        .with_url(opening.url.base())
        .with_http_connector(opening.transport)
        .with_retry(no_retries())
        .build()
        .map_err(|error| cannot_open(opening.url, &error))?;
    Ok(Client {
        store: Arc::new(store),
        lister: None,
        endpoint: None,
    })
}

fn timeout(properties: &Properties) -> Result<Duration, StorageError> {
    let Some(text) = properties.get(TIMEOUT_PROPERTY) else {
        return Ok(Limits::default().patience);
    };
    let milliseconds = text.trim().parse().map_err(|_| StorageError::Property {
        name: TIMEOUT_PROPERTY.to_owned(),
        reason: "expected a number of milliseconds".to_owned(),
    })?;
    Ok(Duration::from_millis(milliseconds))
}

/// `true` and `false`, as Java and Python write them.
fn flag(properties: &Properties, name: &str) -> Result<Option<bool>, StorageError> {
    let Some(text) = properties.get(name) else {
        return Ok(None);
    };
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(Some(true)),
        "false" | "0" | "no" | "" => Ok(Some(false)),
        _ => Err(StorageError::Property {
            name: name.to_owned(),
            reason: "expected true or false".to_owned(),
        }),
    }
}

/// Attempts are [`web::send`]'s matter.
fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

fn cannot_open(url: &StoreUrl, error: &object_store::Error) -> StorageError {
    StorageError::Io {
        path: url.base(),
        source: io::Error::other(transport::innermost(error)),
    }
}

/// Whether another credential may be let in. AWS calls a token that has run out a bad request.
fn is_denial(error: &object_store::Error) -> bool {
    use object_store::Error;
    match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => true,
        Error::Generic { .. } => {
            let reason = transport::innermost(error);
            // Listings are not told apart by the crate.
            reason.starts_with("401")
                || reason.starts_with("403")
                || (reason.starts_with("400") && reason.contains("Expired"))
        }
        _ => false,
    }
}

fn refusal(error: &object_store::Error) -> Refusal {
    use object_store::Error;
    let reason = transport::innermost(error);
    match error {
        Error::NotFound { .. } => Refusal::NotFound,
        Error::Precondition { .. } => Refusal::Changed,
        _ if is_denial(error) => Refusal::Denied(reason),
        _ if reason.starts_with("416") => Refusal::PastEnd,
        _ if reason.starts_with("Received non-partial response") => {
            Refusal::Failed("the server gives no ranges of its files".to_owned())
        }
        _ => Refusal::Failed(reason),
    }
}
