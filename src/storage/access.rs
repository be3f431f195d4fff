//! Where a table lies and how its stores are reached, as catalogs hand it out.
//!
//! Property names are those that Iceberg catalogs use, whatever the catalog (`s3.endpoint`, `s3.access-key-id`,
//! `adls.sas-token.<account>`, `gcs.oauth2.token` …): the stores alone know what they mean. What may be secret is
//! never shown: `Debug` lists names.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use url::Url;

use super::StorageError;
use super::location::{self, Location};

/// A file or directory of this machine, or of a store. Shown without user, password and query.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Absolute.
    Local(PathBuf),
    /// Never `file:`.
    Remote(Url),
}

impl Address {
    /// A location as metadata and catalogs record it: a local path in any of its spellings, or a URL.
    pub fn recorded(text: &str) -> Result<Self, StorageError> {
        let location = Location::parse(text);
        if let Some(scheme) = location.remote_scheme() {
            // A URL's path is decoded, and recorded keys are as they stand; web addresses are URLs already.
            let url = match scheme {
                "http" | "https" => Url::parse(text),
                _ => Url::parse(
                    &text
                        .replace('%', "%25")
                        .replace('?', "%3F")
                        .replace('#', "%23"),
                ),
            };
            return url
                .map(Self::Remote)
                .map_err(|error| StorageError::BadLocation {
                    // What follows may be a signature.
                    text: text.split('?').next().unwrap_or_default().to_owned(),
                    reason: error.to_string(),
                });
        }
        if !location.is_local_absolute() || text.contains('\0') {
            return Err(StorageError::BadLocation {
                text: text.to_owned(),
                reason: "neither a URL nor an absolute path".to_owned(),
            });
        }
        let literal = PathBuf::from(location.path());
        // Java writes a `file:` URI for a path with spaces, PyIceberg the path as it is.
        let decoded = text
            .starts_with("file:")
            .then(|| location::percent_decoded(location.path()))
            .flatten()
            .map(PathBuf::from)
            .filter(|decoded| !literal.exists() && decoded.exists());
        Ok(Self::Local(decoded.unwrap_or(literal)))
    }

    /// The text that would be recorded for it.
    fn recorded_text(&self) -> String {
        match self {
            Self::Local(path) => path.display().to_string(),
            Self::Remote(url) if matches!(url.scheme(), "http" | "https") => url.to_string(),
            Self::Remote(url) => {
                location::percent_decoded(url.as_str()).unwrap_or_else(|| url.to_string())
            }
        }
    }

    pub(super) fn location(&self) -> Location {
        match self {
            Self::Local(path) => Location::local(&path.display().to_string()),
            Self::Remote(_) => Location::parse(&self.recorded_text()),
        }
    }

    /// A place below this one; `None` where the path leads out of it.
    pub(super) fn below(&self, relative: &str) -> Option<Address> {
        let parts: Vec<&str> = relative
            .split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .collect();
        if parts.contains(&"..") {
            return None;
        }
        if parts.is_empty() {
            return Some(self.clone());
        }
        match self {
            Self::Local(path) => Some(Self::Local(path.join(parts.join("/")))),
            Self::Remote(url) => {
                let mut url = url.clone();
                url.path_segments_mut()
                    .ok()?
                    .pop_if_empty()
                    // Escaped here.
                    .extend(parts);
                Some(Self::Remote(url))
            }
        }
    }

    /// The path, for what lies on this machine.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Self::Local(path) => Some(path),
            Self::Remote(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            Self::Remote(url) => {
                let mut url = url.clone();
                // A bucket's container stands where a password might.
                if url.password().is_some() || matches!(url.scheme(), "http" | "https" | "s3") {
                    // Fails only for URLs that can have neither.
                    let _ = url.set_username("");
                    let _ = url.set_password(None);
                }
                url.set_query(None);
                url.set_fragment(None);
                url.fmt(f)
            }
        }
    }
}

impl std::str::FromStr for Address {
    type Err = StorageError;

    /// A URL of a store, or a path of this machine.
    fn from_str(text: &str) -> Result<Self, StorageError> {
        if !super::location::is_url(text) {
            return Ok(Self::Local(PathBuf::from(text)));
        }
        // The text is not shown: it may hold a password.
        let url = Url::parse(text).map_err(|error| StorageError::Property {
            name: "URL".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self::Remote(url))
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Local(path)
    }
}

impl From<&Path> for Address {
    fn from(path: &Path) -> Self {
        Self::Local(path.to_owned())
    }
}

/// Properties of a store. `Debug` shows their names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(pub BTreeMap<String, String>);

impl Properties {
    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Properties for the URLs under a prefix: `storage-credentials` of the REST catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixedProperties {
    /// Of a URL; the longest that fits counts.
    pub prefix: String,
    /// Stand before those of the table.
    pub properties: Properties,
}

/// Gives credentials anew, before those it gave run out.
pub trait Renewal: Send + Sync + fmt::Debug {
    /// Asks the catalog. Blocks.
    fn renew(&self) -> Result<Vec<PrefixedProperties>, StorageError>;
}

/// A request as a signer sends it on.
#[derive(Clone, Debug)]
pub struct SignedRequest {
    /// Absolute.
    pub url: String,
    /// All headers that are signed or carry the signature.
    pub headers: Vec<(String, String)>,
}

/// What a signer gives, once it is there.
pub type Signing<'s> =
    Pin<Box<dyn Future<Output = Result<SignedRequest, StorageError>> + Send + 's>>;

/// Signs requests to S3 in the catalog's name (remote signing).
pub trait RequestSigner: Send + Sync + fmt::Debug {
    /// Signs one request, of a method and an absolute URL, for a region.
    fn sign<'s>(
        &'s self,
        method: &'s str,
        url: &'s str,
        region: &'s str,
        headers: &'s [(String, String)],
    ) -> Signing<'s>;
}

/// How the stores of one table are reached.
#[derive(Clone, Debug, Default)]
pub struct StoreAccess {
    /// Of all the table's stores: the user's, then the catalog's, then the table's own.
    pub properties: Properties,
    /// Beyond those, by prefix.
    pub credentials: Vec<PrefixedProperties>,
    /// Set where `credentials` run out.
    pub renewal: Option<Arc<dyn Renewal>>,
    /// Set where the catalog signs the requests.
    pub signer: Option<Arc<dyn RequestSigner>>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::storage::store::StoreUrl;

    #[test]
    fn recorded_keys_are_keys_as_they_stand() {
        for key in ["t/a b.json", "t/a%20b.json", "t/100%/x#1?y=ü.json"] {
            let address = Address::recorded(&format!("s3://bucket/{key}")).unwrap();
            let Address::Remote(url) = address else {
                panic!("{address:?}");
            };
            assert_eq!(StoreUrl::parse(&url).unwrap().key, key);
        }
    }

    #[test]
    fn what_a_catalog_names_may_be_mapped_elsewhere() {
        let mapping = |old: &str, new: &str| crate::storage::PathMapping {
            old: old.to_owned(),
            new: new.parse().unwrap(),
        };
        let options = crate::storage::StorageOptions {
            map_paths: vec![
                mapping("hdfs://name:8020/w", "/here"),
                mapping("hdfs://name:8020/w/other", "/there"),
                mapping("s3://old", "s3://new/copy"),
            ],
            ..Default::default()
        };
        let mapped = |text: &str| {
            options
                .mapped(&Address::recorded(text).unwrap())
                .to_string()
        };
        assert_eq!(mapped("hdfs://name:8020/w/t/m.json"), "/here/t/m.json");
        assert_eq!(mapped("hdfs://name:8020/w/other/m.json"), "/there/m.json");
        assert_eq!(mapped("hdfs://name:8020/w"), "/here");
        assert_eq!(mapped("hdfs://name:8020/wx/t"), "hdfs://name:8020/wx/t");
        assert_eq!(mapped("hdfs://name:8020/w/../t"), "hdfs://name:8020/t");
        assert_eq!(mapped("s3://old/a b/m"), "s3://new/copy/a%20b/m");
        assert_eq!(mapped("/w/t"), "/w/t");
    }

    #[test]
    fn local_paths_are_recorded_in_many_spellings() {
        for text in ["/w/t", "file:/w/t", "file:///w/t", "file://localhost/w/t"] {
            assert_eq!(Address::recorded(text).unwrap(), Path::new("/w/t").into());
        }
        assert!(Address::recorded("w/t").is_err());
        assert!(Address::recorded("").is_err());
        assert!(Address::recorded("/w\0/t").is_err());
    }

    #[test]
    fn a_uri_with_escapes_is_the_file_that_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a b.json");
        std::fs::write(&file, "").unwrap();
        let text = format!("file://{}", file.display()).replace(' ', "%20");
        assert_eq!(Address::recorded(&text).unwrap(), file.as_path().into());
        let literal = directory.path().join("a%20b.json");
        std::fs::write(&literal, "").unwrap();
        assert_eq!(Address::recorded(&text).unwrap(), literal.as_path().into());
    }
}
