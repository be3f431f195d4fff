//! Catalogs of databases that hold tables, Iceberg's and others': AWS Glue and the Hive metastore.
//!
//! Both have one level of namespaces, the databases, and note with each table a few properties: `table_type` says which
//! are Iceberg's, and `metadata_location` is the metadata file. A source may be one database, whose tables then are at
//! the top.

use std::sync::Arc;

use crate::storage::{Properties, StoreAccess};

use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};

/// The property of a table that says what it is.
pub(super) const TABLE_TYPE: &str = "table_type";

/// The property of a table that names its metadata file.
pub(super) const METADATA_LOCATION: &str = "metadata_location";

/// What a metastore knows of a table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TableEntry {
    /// `table_type`.
    pub(super) kind: Option<String>,
    /// `metadata_location`.
    pub(super) metadata_location: Option<String>,
}

impl TableEntry {
    /// Whether it is a table of Iceberg, and not another's, nor a view.
    pub(super) fn is_iceberg(&self) -> bool {
        is_iceberg(self.kind.as_deref())
    }
}

/// Whether a `table_type` is Iceberg's: writers differ in case.
pub(super) fn is_iceberg(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("iceberg"))
}

/// A service that knows databases and their tables.
pub(super) trait Metastore: Send + Sync {
    /// The names of all databases.
    fn databases(&self) -> Result<Vec<String>, CatalogError>;
    /// The names of a database's Iceberg tables; `None` where there is no such database.
    fn tables(&self, database: &str) -> Result<Option<Vec<String>>, CatalogError>;
    /// What is known of a table; `None` where there is none of this name.
    fn table(&self, database: &str, table: &str) -> Result<Option<TableEntry>, CatalogError>;
    /// For messages: without secrets.
    fn name(&self) -> String;
}

/// The tables of a metastore, or of one of its databases.
pub(super) struct MetastoreCatalog<M> {
    metastore: M,
    only: Option<String>,
    access: Arc<StoreAccess>,
}

impl<M: Metastore> MetastoreCatalog<M> {
    /// `only`: the database that is the whole source.
    pub(super) fn new(metastore: M, only: Option<String>, properties: Properties) -> Self {
        Self {
            metastore,
            only,
            access: Arc::new(StoreAccess {
                properties,
                ..StoreAccess::default()
            }),
        }
    }

    /// The database that a namespace is.
    fn database<'n>(&'n self, namespace: &'n [String]) -> Option<&'n str> {
        match (namespace, &self.only) {
            ([], Some(only)) => Some(only),
            ([name], None) => Some(name),
            _ => None,
        }
    }
}

impl<M: Metastore> Catalog for MetastoreCatalog<M> {
    fn single_table(&self) -> Option<TableIdent> {
        None
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        let mut listing = Listing::default();
        if namespace.is_empty() && self.only.is_none() {
            listing.namespaces = self.metastore.databases()?;
        } else {
            let found = self
                .database(namespace)
                .map_or(Ok(None), |name| self.metastore.tables(name))?;
            listing.tables = found.ok_or_else(|| CatalogError::NoTable {
                path: format!("{}: {}", self.metastore.name(), namespace.join(".")),
            })?;
        }
        for names in [&mut listing.namespaces, &mut listing.tables] {
            names.sort();
            names.dedup();
        }
        Ok(listing)
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        let Some(database) = self.database(&ident.namespace) else {
            return Ok(None);
        };
        let found = self.metastore.table(database, &ident.name)?;
        let Some(entry) = found.filter(TableEntry::is_iceberg) else {
            return Ok(None);
        };
        let location = entry
            .metadata_location
            .filter(|location| !location.is_empty())
            .ok_or_else(|| CatalogError::Pointer {
                path: format!("{}: {database}.{}", self.metastore.name(), ident.name),
                reason: "the catalog names no metadata file for it".to_owned(),
            })?;
        super::pointer(&location, &self.access).map(Some)
    }

    fn tables_lie_where_recorded(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    struct Fixed;

    impl Metastore for Fixed {
        fn databases(&self) -> Result<Vec<String>, CatalogError> {
            Ok(vec!["b".to_owned(), "a".to_owned()])
        }

        fn tables(&self, database: &str) -> Result<Option<Vec<String>>, CatalogError> {
            Ok((database == "a").then(|| vec!["u".to_owned(), "t".to_owned()]))
        }

        fn table(&self, _: &str, table: &str) -> Result<Option<TableEntry>, CatalogError> {
            let entry = |kind: &str, location: Option<&str>| TableEntry {
                kind: Some(kind.to_owned()),
                metadata_location: location.map(str::to_owned),
            };
            Ok(match table {
                "t" => Some(entry("ICEBERG", Some("file:/w/t/metadata/1.metadata.json"))),
                "u" => Some(entry("iceberg", None)),
                "view" => Some(entry("ICEBERG-VIEW", Some("file:/w/v.json"))),
                "hive" => Some(TableEntry::default()),
                _ => None,
            })
        }

        fn name(&self) -> String {
            "m".to_owned()
        }
    }

    fn ident(namespace: &[&str], name: &str) -> TableIdent {
        TableIdent {
            namespace: namespace.iter().map(|&level| level.to_owned()).collect(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn databases_are_namespaces_of_one_level() {
        let catalog = MetastoreCatalog::new(Fixed, None, Properties::default());
        assert_eq!(catalog.list(&[]).unwrap().namespaces, ["a", "b"]);
        assert_eq!(catalog.list(&["a".to_owned()]).unwrap().tables, ["t", "u"]);
        assert!(catalog.list(&["gone".to_owned()]).is_err());
        let deep = ["a".to_owned(), "b".to_owned()];
        assert!(catalog.list(&deep).is_err());
        let pointer = catalog.table(&ident(&["a"], "t")).unwrap().unwrap();
        assert_eq!(
            pointer.metadata.to_string(),
            "/w/t/metadata/1.metadata.json"
        );
        assert!(catalog.table(&ident(&[], "t")).unwrap().is_none());
    }

    #[test]
    fn one_database_may_be_the_whole_source() {
        let only = Some("a".to_owned());
        let catalog = MetastoreCatalog::new(Fixed, only, Properties::default());
        assert_eq!(catalog.list(&[]).unwrap().tables, ["t", "u"]);
        assert!(catalog.table(&ident(&[], "t")).unwrap().is_some());
        assert!(catalog.table(&ident(&["a"], "t")).unwrap().is_none());
    }

    #[test]
    fn only_tables_of_iceberg_are_tables() {
        let catalog = MetastoreCatalog::new(Fixed, None, Properties::default());
        for name in ["view", "hive", "none"] {
            assert!(catalog.table(&ident(&["a"], name)).unwrap().is_none());
        }
        let error = catalog.table(&ident(&["a"], "u")).unwrap_err().to_string();
        assert_eq!(error, "m: a.u: the catalog names no metadata file for it");
    }
}
