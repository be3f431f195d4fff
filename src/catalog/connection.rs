//! Catalogs by the texts that name them: which kind a text means, and the catalog behind it.
//!
//! | text | catalog |
//! |---|---|
//! | `rest+https://host/base`, `rest+https://host/base#namespace.table` | [`super::rest`] |
//! | `glue:`, `glue://account/database` | [`super::glue`] |
//! | `pyiceberg:name`, `pyiceberg:` | the one that [`super::pyiceberg`]'s configuration means |
//! | `sqlite:///file`, `jdbc:sqlite:file` | [`super::sql`], over SQLite |
//! | `postgresql://user@host/database`, `jdbc:postgresql:…` | [`super::sql`], over PostgreSQL |
//! | `thrift://host:port[/database]`, several between commas | [`super::hive`] |
//!
//! Everything relative is resolved when a text is parsed, since the daemon leaves the working directory afterwards. What is
//! shown of a connection has no secrets.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use url::Url;

use crate::counters::Counters;
use crate::storage::Properties;

use super::glue::{Glue, Place};
use super::hive::{Hive, Servers};
use super::metastore::MetastoreCatalog;
use super::outage::Patient;
use super::pyiceberg::{Entry, EntryKind, Surroundings};
use super::rest::{self, RestCatalog};
use super::sql::postgres::{Postgres, Target};
use super::sql::sqlite::{self, Sqlite};
use super::sql::{CATALOG_NAME, SqlCatalog};
use super::{Catalog, CatalogError, TableIdent};

/// A catalog that has been named and not yet asked.
#[derive(Clone)]
pub struct Connection {
    locator: Locator,
    /// Of a configuration file; the user's own stand before them.
    properties: Properties,
    /// The name in that file.
    entry: Option<String>,
}

/// Which catalog.
#[derive(Clone)]
enum Locator {
    /// A server, and the table that is meant where it is one.
    Rest(Url, Option<TableIdent>),
    /// Absolute.
    Sqlite(PathBuf),
    /// What follows the scheme and its colon. Holds secrets.
    Postgres(String),
    Hive(Servers),
    Glue(Place),
}

impl Connection {
    /// What a text means; `None` where it names no catalog.
    ///
    /// # Errors
    /// It names one in a form that is not understood.
    pub fn parse(text: &str) -> Result<Option<Self>, CatalogError> {
        if let Some(name) = text.strip_prefix("pyiceberg:") {
            // As in URLs.
            let name = name.strip_prefix("//").unwrap_or(name);
            return Self::configured(Some(name).filter(|name| !name.is_empty())).map(Some);
        }
        Ok(Locator::parse(text)?.map(|locator| Self {
            locator,
            properties: Properties::default(),
            entry: None,
        }))
    }

    /// An entry of PyIceberg's configuration.
    fn configured(name: Option<&str>) -> Result<Self, CatalogError> {
        let entry = Entry::find(name, &Surroundings::of_process())?;
        let unknown = || CatalogError::Unsupported {
            catalog: format!("pyiceberg:{}", entry.name),
            feature: "the scheme of its `uri`".to_owned(),
        };
        let mut properties = entry.properties;
        let locator = match entry.kind {
            EntryKind::Rest(uri) => Locator::parse(&format!("rest+{uri}"))?,
            EntryKind::Hive(uri) => Some(Locator::Hive(Servers::parse(&uri)?)),
            EntryKind::Sql(uri) => {
                // PyIceberg's catalogs in a database have the name of the entry.
                let name = entry.name.clone();
                properties.0.entry(CATALOG_NAME.to_owned()).or_insert(name);
                Locator::parse(&uri)?
            }
            EntryKind::Glue => Some(Locator::Glue(Place::default())),
        };
        Ok(Self {
            locator: locator.ok_or_else(unknown)?,
            properties,
            entry: Some(entry.name),
        })
    }

    /// How it is shown: without user, password and options.
    pub fn shown(&self) -> String {
        if let Some(name) = &self.entry {
            return format!("pyiceberg:{name}");
        }
        match &self.locator {
            Locator::Rest(base, only) => rest::shown(base, only.as_ref()),
            Locator::Sqlite(path) => format!("sqlite:///{}", path.display()),
            Locator::Postgres(rest) => {
                Target::parse(rest, &[]).map_or_else(|_| "postgresql".to_owned(), |t| t.shown())
            }
            Locator::Hive(servers) => servers.shown(),
            Locator::Glue(place) => place.shown(),
        }
    }

    /// The catalog, asked whether it is one. `properties` are the user's.
    pub fn open(
        &self,
        properties: &Properties,
        counters: &Arc<Counters>,
    ) -> Result<Box<dyn Catalog>, CatalogError> {
        let mut merged = self.properties.clone();
        merged.0.extend(properties.0.clone());
        let catalog: Box<dyn Catalog> = match &self.locator {
            Locator::Rest(base, only) => {
                Box::new(RestCatalog::open(base, only.clone(), &merged, counters)?)
            }
            Locator::Sqlite(path) => {
                let database = Box::new(Sqlite::new(path.clone()));
                Box::new(SqlCatalog::open(database, merged, counters)?)
            }
            Locator::Postgres(rest) => {
                let options = merged.0.iter().filter_map(|(name, value)| {
                    let name = name.strip_prefix("jdbc.")?;
                    Some((name.to_owned(), value.clone()))
                });
                let target = Target::parse(rest, &options.collect::<Vec<_>>())?;
                let database = Box::new(Postgres::new(&target)?);
                Box::new(SqlCatalog::open(database, merged, counters)?)
            }
            Locator::Hive(servers) => {
                let metastore = Hive::new(servers, &merged, counters)?;
                let only = servers.only.clone();
                Box::new(MetastoreCatalog::new(metastore, only, merged))
            }
            Locator::Glue(place) => {
                let metastore = Glue::new(place, &merged, counters)?;
                let only = place.database.clone();
                Box::new(MetastoreCatalog::new(metastore, only, merged))
            }
        };
        Ok(Box::new(Patient::new(catalog)))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("shown", &self.shown())
            .field("properties", &self.properties)
            .finish()
    }
}

impl Locator {
    fn parse(text: &str) -> Result<Option<Self>, CatalogError> {
        let Some((scheme, rest)) = scheme(text) else {
            return Ok(None);
        };
        if matches!(scheme, "rest+http" | "rest+https") {
            let url = text.strip_prefix("rest+").unwrap_or(text);
            let (base, only) = rest::parse(url).map_err(|reason| CatalogError::Configuration {
                catalog: scheme.to_owned(),
                reason,
            })?;
            return Ok(Some(Self::Rest(base, only)));
        }
        // SQLAlchemy's `dialect+driver`: which driver is no concern of ours.
        let dialect = scheme
            .split_once('+')
            .map_or(scheme, |(dialect, _)| dialect);
        match dialect {
            "sqlite" => {
                let path = sqlite::path(rest);
                if path.file_name().is_none() || path.as_os_str() == ":memory:" {
                    return Err(CatalogError::Configuration {
                        catalog: "sqlite".to_owned(),
                        reason: "names no file (sqlite:///relative or sqlite:////absolute)"
                            .to_owned(),
                    });
                }
                let path = std::path::absolute(&path).map_err(|source| CatalogError::Io {
                    path: path.display().to_string(),
                    source,
                })?;
                Ok(Some(Self::Sqlite(path)))
            }
            "postgresql" | "postgres" => Ok(Some(Self::Postgres(rest.to_owned()))),
            "glue" => Ok(Some(Self::Glue(Place::parse(rest)))),
            "thrift" | "hive" => Ok(Some(Self::Hive(Servers::parse(text)?))),
            _ => Ok(None),
        }
    }
}

/// A text's scheme, and what follows its colon. JDBC's prefix says no more than what follows it.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("jdbc:").unwrap_or(text);
    text.split_once(':')
}
