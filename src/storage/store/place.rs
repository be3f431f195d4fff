//! What a URL of a store says.

use object_store::path::Path;
use url::Url;

use crate::storage::location::percent_decoded;
use crate::storage::{Address, StorageError};

/// The stores there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::storage) enum Kind {
    S3,
    Gcs,
    Azure,
    Http,
    Https,
}

/// A place in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::storage) struct StoreUrl {
    pub(super) kind: Kind,
    /// The bucket or container; empty for a web server.
    pub(super) bucket: String,
    /// The account's host, or the web server with its port. Empty where the bucket is all there is.
    pub(super) host: String,
    /// Without slashes at either end.
    pub(in crate::storage) key: String,
}

impl StoreUrl {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// No store has such URLs.
    pub(in crate::storage) fn parse(url: &Url) -> Result<Self, StorageError> {
        let kind = match url.scheme() {
            "s3" | "s3a" | "s3n" => Kind::S3,
            "gs" | "gcs" => Kind::Gcs,
            "abfss" | "abfs" | "wasbs" | "wasb" => Kind::Azure,
            "http" => Kind::Http,
            "https" => Kind::Https,
            other => {
                return Err(StorageError::Scheme {
                    path: Address::Remote(url.clone()).to_string(),
                    scheme: other.to_owned(),
                });
            }
        };
        let authority = url.host_str().unwrap_or_default().to_owned();
        let (bucket, host) = match kind {
            Kind::S3 | Kind::Gcs => (authority, String::new()),
            Kind::Azure if url.username().is_empty() => (authority, String::new()),
            Kind::Azure => {
                let host = url
                    .port()
                    .map_or(authority.clone(), |port| format!("{authority}:{port}"));
                (url.username().to_owned(), host)
            }
            Kind::Http | Kind::Https => {
                let port = url.port().map(|port| format!(":{port}"));
                (String::new(), authority + &port.unwrap_or_default())
            }
        };
        if bucket.is_empty() && host.is_empty() {
            return Err(StorageError::BadLocation {
                text: Address::Remote(url.clone()).to_string(),
                reason: "names no bucket".to_owned(),
            });
        }
        let path = url.path().trim_matches('/');
        let key = percent_decoded(path).unwrap_or_else(|| path.to_owned());
        Ok(Self {
            kind,
            bucket,
            host,
            key,
        })
    }

    /// The store's own URL: what it is told from others by, and shown as.
    pub(in crate::storage) fn base(&self) -> String {
        let Self { bucket, host, .. } = self;
        match self.kind {
            Kind::S3 => format!("s3://{bucket}"),
            Kind::Gcs => format!("gs://{bucket}"),
            Kind::Azure if host.is_empty() => format!("abfss://{bucket}"),
            Kind::Azure => format!("abfss://{bucket}@{host}"),
            Kind::Http => format!("http://{host}"),
            Kind::Https => format!("https://{host}"),
        }
    }

    /// The place as catalogs may spell it, with a slash at its end.
    pub(super) fn spellings(&self) -> Vec<String> {
        let schemes: &[&str] = match self.kind {
            Kind::S3 => &["s3", "s3a", "s3n"],
            Kind::Gcs => &["gs", "gcs"],
            Kind::Azure => &["abfss", "abfs", "wasbs", "wasb"],
            Kind::Http => &["http"],
            Kind::Https => &["https"],
        };
        let base = self.base();
        let rest = base.split_once(':').map_or("", |(_, rest)| rest);
        let spelling = |scheme: &&str| match self.key.as_str() {
            "" => format!("{scheme}:{rest}/"),
            key => format!("{scheme}:{rest}/{key}/"),
        };
        schemes.iter().map(spelling).collect()
    }

    /// The storage account of an Azure URL that names one.
    pub(super) fn account(&self) -> Option<&str> {
        self.host
            .split('.')
            .next()
            .filter(|account| !account.is_empty())
    }

    /// A place directly in this one.
    pub(in crate::storage) fn child(&self, name: &str) -> Self {
        let key = match self.key.as_str() {
            "" => name.to_owned(),
            key => format!("{key}/{name}"),
        };
        Self {
            key,
            ..self.clone()
        }
    }

    /// The place that this one lies in; itself at the top.
    pub(in crate::storage) fn parent(&self) -> Self {
        let key = self.key.rsplit_once('/').map_or("", |(parent, _)| parent);
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// The key of a file below this place. `None`: stores have no such keys, or it leads out of the place.
    pub(in crate::storage) fn below(&self, relative: &str) -> Option<Path> {
        let relative = relative.trim_matches('/');
        let joined = match self.key.as_str() {
            _ if relative.is_empty() => return None,
            "" => relative.to_owned(),
            key => format!("{key}/{relative}"),
        };
        // Refuses `.`, `..` and empty components.
        Path::parse(joined).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parse(text: &str) -> StoreUrl {
        StoreUrl::parse(&Url::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn schemes_that_differ_in_the_client_only_name_one_store() {
        for scheme in ["s3", "s3a", "s3n"] {
            let url = parse(&format!("{scheme}://bucket_1/a b/c/"));
            assert_eq!(
                (url.base().as_str(), url.key.as_str()),
                ("s3://bucket_1", "a b/c")
            );
        }
        let azure = parse("abfs://files@account.dfs.core.windows.net/t");
        assert_eq!(azure.account(), Some("account"));
        assert_eq!(azure.bucket, "files");
        assert_eq!(
            parse("wasbs://files@account.blob.core.windows.net/t").bucket,
            "files"
        );
        assert_eq!(
            parse("http://127.0.0.1:9000/x/y").base(),
            "http://127.0.0.1:9000"
        );
        assert!(StoreUrl::parse(&Url::parse("hdfs://n/t").unwrap()).is_err());
        assert!(StoreUrl::parse(&Url::parse("s3:///t").unwrap()).is_err());
    }

    #[test]
    fn no_path_leads_out_of_its_place() {
        let table = parse("s3://b/wh/t");
        assert_eq!(
            table.below("data/p=a%20b/f").unwrap().as_ref(),
            "wh/t/data/p=a%20b/f"
        );
        for hostile in ["../u/f", "data/../../u/f", "./f", "a//b", "", "/"] {
            assert_eq!(table.below(hostile), None, "{hostile}");
        }
    }
}
