//! What a mount's SOURCE names, and the catalog behind it.
//!
//! A source is a local path unless it has the form of a URL (`scheme://…`) or names a catalog. Its properties come from `--properties`
//! files and `--property` options, the later ones winning. What is shown of a source (`mount`, `ps`, logs) has neither
//! user, password nor query.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use url::Url;

use crate::catalog::directory::{DirectoryCatalog, StoreDirectoryCatalog};
use crate::catalog::{Catalog, CatalogError, Connection};
use crate::storage::{Properties, StorageError, StorageOptions};

/// What a source can be, for those who have mistyped one.
const KINDS: &str = "there are paths, s3://, gs://, abfss://, https://, rest+https://, glue:, thrift://, \
                     postgresql://, sqlite:///, pyiceberg:";

/// What is mounted.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Resolved.
    Local(PathBuf),
    /// A store's directory.
    Url(Url),
    /// A catalog.
    Catalog(Connection),
}

impl Source {
    /// Parses a source and resolves a local path.
    pub(super) fn parse(text: &Path) -> anyhow::Result<Self> {
        if let Some(catalog) = text.to_str().map(Connection::parse).transpose()?.flatten() {
            return Ok(Self::Catalog(catalog));
        }
        if let Some(text) = text.to_str()
            && text.contains("://")
        {
            // The text is not shown: it may hold a password.
            let url = Url::parse(text).context("SOURCE is no valid URL")?;
            if url.scheme() == "file" {
                let path = url.to_file_path();
                let path = path.map_err(|()| anyhow::anyhow!("{url}: names no local path"))?;
                return Self::parse(&path);
            }
            return Ok(Self::Url(url));
        }
        let path = text.canonicalize().with_context(|| {
            let shown = text.display();
            match shown.to_string().split_once(":/") {
                Some((scheme, _)) => format!("{shown} (a URL begins with {scheme}://)"),
                None => shown.to_string(),
            }
        });
        Ok(Self::Local(path?))
    }

    /// How it is shown: without secrets.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Local(path) => path.display().to_string(),
            Self::Catalog(catalog) => catalog.shown(),
            Self::Url(url) => {
                let mut url = url.clone();
                // Fails only for URLs that can have neither.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.set_query(None);
                url.set_fragment(None);
                url.to_string()
            }
        }
    }

    /// The catalog, which never looks into the mountpoint.
    pub(super) fn open(
        &self,
        mountpoint: &Path,
        properties: &Properties,
        storage: &StorageOptions,
    ) -> anyhow::Result<Box<dyn Catalog>> {
        match self {
            Self::Local(path) => local(path, mountpoint, properties),
            Self::Catalog(catalog) => catalog
                .open(properties, &storage.counters)
                .map_err(|error| said_once(&error)),
            Self::Url(url) => match StoreDirectoryCatalog::open(url, storage, properties) {
                Ok(catalog) => Ok(Box::new(catalog)),
                Err(CatalogError::Storage(StorageError::Scheme { scheme, .. })) => {
                    bail!("{}: {scheme}: is no kind of source ({KINDS})", self.shown())
                }
                Err(error) => Err(said_once(&error)),
            },
        }
    }
}

/// An error whose text says all that its causes do.
fn said_once(error: &CatalogError) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

fn local(
    source: &Path,
    mountpoint: &Path,
    properties: &Properties,
) -> anyhow::Result<Box<dyn Catalog>> {
    let catalog = DirectoryCatalog::open(source).map_err(|error| said_once(&error))?;
    let catalog = catalog.with_properties(properties);
    // The daemon must not look for tables in its own mount: it would wait for itself.
    if !mountpoint.starts_with(source) {
        Ok(Box::new(catalog))
    } else if catalog.single_table().is_none() {
        Ok(Box::new(catalog.excluding(mountpoint)?))
    } else {
        bail!(
            "{}: lies in the table, which would then hold itself",
            mountpoint.display()
        );
    }
}

/// One `--property NAME=VALUE`.
pub(super) fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if name.trim().is_empty() {
        return Err("expected NAME=VALUE".to_owned());
    }
    Ok((name.trim().to_owned(), value.to_owned()))
}

/// Those of the files (a `NAME=VALUE` a line, `#` for comments), then those given one by one.
pub(super) fn properties(
    files: &[PathBuf],
    given: &[(String, String)],
) -> anyhow::Result<Properties> {
    let mut properties = Properties::default();
    for path in files {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = property(line).map_err(|reason| {
                anyhow::anyhow!("{}: line {}: {reason}", path.display(), number + 1)
            })?;
            properties.0.insert(name, value.trim().to_owned());
        }
    }
    properties.0.extend(given.iter().cloned());
    Ok(properties)
}
