//! Catalogs that keep their tables in an SQL database, as PyIceberg's `SqlCatalog` and Java's `JdbcCatalog` write them.
//!
//! Both write two tables: `iceberg_tables`, a row for a table with its metadata file, and
//! `iceberg_namespace_properties`, a row for a property of a namespace. Both join the levels of a namespace with dots,
//! and split what they read at every dot. One database may hold several catalogs, told apart by `catalog_name`.
//!
//! A database that has never held views lacks the column `iceberg_type` (Java's schema version 0). Which it is is found
//! with each question, since a writer may add the column at any time: the question is put with the column first.
//!
//! Listing a namespace is two questions whatever it holds; nothing is remembered between questions but the catalog's
//! name.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::counters::Counters;
use crate::storage::{Properties, StoreAccess};

use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};

pub(super) mod postgres;
pub(super) mod sqlite;
#[cfg(test)]
mod tests;

/// The property that tells which of the catalogs of a database is meant.
pub(super) const CATALOG_NAME: &str = "catalog-name";

/// Rows of one answer that are taken: more tables than a directory can sensibly hold.
const MAX_ROWS: usize = 2_000_000;

/// Bytes of one value that are taken: four times what both writers have room for, in characters.
const MAX_VALUE: usize = 16 << 10;

/// Bytes of one answer.
const MAX_ANSWER: usize = 256 << 20;

/// Tables only. Rows written before there were views have no type.
const IS_TABLE: &str = " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)";

const CATALOG_NAMES: &str = "SELECT catalog_name FROM iceberg_tables \
     UNION SELECT catalog_name FROM iceberg_namespace_properties";

const TABLES: &str =
    "SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2";

const NAMESPACES: &str = "SELECT table_namespace FROM iceberg_tables \
     WHERE catalog_name = $1 AND table_namespace LIKE $2 ESCAPE '!' \
     UNION SELECT namespace FROM iceberg_namespace_properties \
     WHERE catalog_name = $1 AND namespace LIKE $2 ESCAPE '!'";

const NAMESPACE: &str = "SELECT namespace FROM iceberg_namespace_properties \
     WHERE catalog_name = $1 AND namespace = $2 \
     UNION SELECT table_namespace FROM iceberg_tables \
     WHERE catalog_name = $1 AND table_namespace = $2";

const POINTER: &str = "SELECT metadata_location FROM iceberg_tables \
     WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3";

/// Why a database gave no rows.
#[derive(Debug)]
pub(super) enum QueryError {
    /// The statement names a column that is not there.
    NoColumn(String),
    /// The statement names a table that is not there.
    NoTable,
    Failed(CatalogError),
}

/// A database that may hold Iceberg's tables.
pub(super) trait Database: Send + Sync + fmt::Debug {
    /// The one column of the rows that a statement gives. Parameters stand in it as `$1`, `$2` … in the order of their
    /// numbers.
    fn column(
        &self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError>;
    /// For messages: without secrets.
    fn name(&self) -> &str;
}

/// A catalog in a database.
#[derive(Debug)]
pub(super) struct SqlCatalog {
    database: Box<dyn Database>,
    /// Set once it is known.
    name: OnceLock<String>,
    access: Arc<StoreAccess>,
    counters: Arc<Counters>,
}

impl SqlCatalog {
    /// The catalog of that name, or the only one there is. Asks the database, so that a mount of what is none fails.
    pub(super) fn open(
        database: Box<dyn Database>,
        properties: Properties,
        counters: &Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let name = OnceLock::new();
        let is_given = properties.get(CATALOG_NAME).is_some();
        if let Some(given) = properties.get(CATALOG_NAME) {
            let _ = name.set(given.to_owned());
        }
        let catalog = Self {
            database,
            name,
            access: Arc::new(StoreAccess {
                properties,
                ..StoreAccess::default()
            }),
            counters: Arc::clone(counters),
        };
        match catalog.catalog_name()? {
            Some(name) if is_given => catalog.check_name(name)?,
            _ => {}
        }
        Ok(catalog)
    }

    /// The catalog's name; `None` while the database holds no catalog.
    fn catalog_name(&self) -> Result<Option<&str>, CatalogError> {
        if let Some(name) = self.name.get() {
            return Ok(Some(name));
        }
        let names = self.texts(CATALOG_NAMES, &[])?;
        match names.as_slice() {
            [] => Ok(None),
            [name] => Ok(Some(self.name.get_or_init(|| name.clone()))),
            several => Err(self.choose(several, "several catalogs")),
        }
    }

    /// An error where the database holds catalogs, and none of this name. While it holds none, this one may yet come.
    fn check_name(&self, name: &str) -> Result<(), CatalogError> {
        let names = self.texts(CATALOG_NAMES, &[])?;
        if names.is_empty() || names.iter().any(|other| other == name) {
            return Ok(());
        }
        Err(self.choose(&names, &format!("no catalog {name:?}")))
    }

    fn choose(&self, names: &[String], held: &str) -> CatalogError {
        let names = names.join(", ");
        CatalogError::Configuration {
            catalog: self.database.name().to_owned(),
            reason: format!(
                "holds {held}: choose one with --property {CATALOG_NAME}=NAME ({names})"
            ),
        }
    }

    fn ask(&self, statement: &str, parameters: &[&str]) -> Result<Vec<Option<String>>, QueryError> {
        self.counters.catalog_requests.add(1);
        self.database.column(statement, parameters)
    }

    /// The values of a statement's one column, sorted, each once. Nulls are left out.
    fn texts(&self, statement: &str, parameters: &[&str]) -> Result<Vec<String>, CatalogError> {
        let column = self
            .ask(statement, parameters)
            .map_err(|error| self.error(error))?;
        let texts: BTreeSet<String> = column.into_iter().flatten().collect();
        Ok(texts.into_iter().collect())
    }

    /// What a statement about `iceberg_tables` gives for rows that are tables.
    fn of_tables(
        &self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, CatalogError> {
        let typed = format!("{statement}{IS_TABLE}");
        match self.ask(&typed, parameters) {
            Err(QueryError::NoColumn(_)) => self.ask(statement, parameters),
            answer => answer,
        }
        .map_err(|error| self.error(error))
    }

    fn error(&self, error: QueryError) -> CatalogError {
        let catalog = self.database.name().to_owned();
        match error {
            QueryError::NoTable => CatalogError::Answer {
                catalog,
                reason: "holds no Iceberg catalog (tables iceberg_tables and \
                         iceberg_namespace_properties)"
                    .to_owned(),
            },
            QueryError::NoColumn(reason) => CatalogError::Answer { catalog, reason },
            QueryError::Failed(error) => error,
        }
    }

    fn missing(&self, namespace: &[String]) -> CatalogError {
        CatalogError::NoTable {
            path: format!("{}: {}", self.database.name(), namespace.join(".")),
        }
    }
}

impl Catalog for SqlCatalog {
    fn single_table(&self) -> Option<TableIdent> {
        None
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        let Some(catalog) = self.catalog_name()? else {
            return if namespace.is_empty() {
                Ok(Listing::default())
            } else {
                Err(self.missing(namespace))
            };
        };
        let Some(joined) = joined(namespace) else {
            return Err(self.missing(namespace));
        };
        let tables = self.of_tables(TABLES, &[catalog, &joined])?;
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{joined}.")
        };
        let below = self.texts(NAMESPACES, &[catalog, &like(&prefix)])?;
        let namespaces: BTreeSet<&str> = below
            .iter()
            // `LIKE` may ignore case.
            .filter_map(|name| name.strip_prefix(&prefix))
            // Tables without a namespace have the empty one, which is the root.
            .filter(|rest| !(rest.is_empty() && namespace.is_empty()))
            .map(|rest| rest.split_once('.').map_or(rest, |(level, _)| level))
            .collect();
        if tables.is_empty() && namespaces.is_empty() && !namespace.is_empty() {
            let itself = self.texts(NAMESPACE, &[catalog, &joined])?;
            if itself.is_empty() {
                return Err(self.missing(namespace));
            }
        }
        let tables: BTreeSet<String> = tables.into_iter().flatten().collect();
        Ok(Listing {
            namespaces: namespaces.into_iter().map(str::to_owned).collect(),
            tables: tables.into_iter().collect(),
        })
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        let Some(catalog) = self.catalog_name()? else {
            return Ok(None);
        };
        let Some(namespace) = joined(&ident.namespace) else {
            return Ok(None);
        };
        let found = self.of_tables(POINTER, &[catalog, &namespace, &ident.name])?;
        match found.as_slice() {
            [] => Ok(None),
            [Some(location)] => super::pointer(location, &self.access).map(Some),
            [None] => Err(CatalogError::Pointer {
                path: format!("{}: {namespace}.{}", self.database.name(), ident.name),
                reason: "the catalog names no metadata file for it".to_owned(),
            }),
            _ => Err(CatalogError::Answer {
                catalog: self.database.name().to_owned(),
                reason: format!("{namespace}.{}: is there more than once", ident.name),
            }),
        }
    }

    fn tables_lie_where_recorded(&self) -> bool {
        true
    }
}

/// The levels as the writers join them; `None` where no writer can have meant these levels.
fn joined(namespace: &[String]) -> Option<String> {
    let splits_as_given = !namespace.iter().any(|level| level.contains('.'));
    // One empty level is written as no level is.
    let is_written = namespace != [String::new()];
    (splits_as_given && is_written).then(|| namespace.join("."))
}

/// A `LIKE` pattern for what begins with `prefix`, escaped by `!`.
fn like(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for c in prefix.chars() {
        if matches!(c, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// The column of an answer, no longer than any honest one.
#[derive(Debug, Default)]
struct Column {
    values: Vec<Option<String>>,
    bytes: usize,
}

impl Column {
    /// Takes the value of one more row.
    fn push(&mut self, value: Option<&str>, database: &str) -> Result<(), QueryError> {
        let len = value.map_or(0, str::len);
        self.bytes += len;
        let reason = if len > MAX_VALUE {
            format!("a value of more than {MAX_VALUE} bytes")
        } else if self.values.len() + 1 >= MAX_ROWS || self.bytes > MAX_ANSWER {
            "an answer that is too long".to_owned()
        } else {
            self.values.push(value.map(str::to_owned));
            return Ok(());
        };
        Err(QueryError::Failed(CatalogError::Answer {
            catalog: database.to_owned(),
            reason,
        }))
    }
}
