//! Where the tables are: the trait that lists them, and the catalogs, one file each.
//!
//! A catalog answers two questions, anew each time: what is in a namespace, and which file is a table's metadata now.
//! It loads no table, so one broken table spoils no listing.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::{Address, StorageError, StoreAccess};

pub mod directory;
mod metadata_file;

/// A table's name in its catalog.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableIdent {
    /// Outermost first; empty for a table at the top.
    pub namespace: Vec<String>,
    /// Unique in its namespace.
    pub name: String,
}

/// What a namespace holds, by name, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Namespaces directly in it.
    pub namespaces: Vec<String>,
    /// Tables directly in it.
    pub tables: Vec<String>,
}

/// A table's current metadata file, found anew at each look.
#[derive(Clone, Debug)]
pub struct TablePointer {
    /// The metadata file.
    pub metadata: Address,
    /// Where the table lies now.
    pub root: Address,
    /// How its stores are reached.
    pub access: Arc<StoreAccess>,
    /// The metadata file's JSON, where the catalog has handed it out with the pointer.
    pub content: Option<Bytes>,
}

impl TablePointer {
    /// Whether both name the same metadata file of a table at the same place.
    pub fn same_place(&self, other: &Self) -> bool {
        self.metadata == other.metadata && self.root == other.root
    }
}

/// Why a catalog could not answer.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The operating system's answer.
    #[error("{path}: {source}")]
    Io {
        path: String,
        source: std::io::Error,
    },
    /// Nothing here is a table.
    #[error("{path}: no Iceberg table and no directory of tables")]
    NoTable { path: String },
    /// There is a table, and it cannot be told which metadata file is its current one.
    #[error("{path}: {reason}")]
    Pointer { path: String, reason: String },
    /// A store's answer.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CatalogError {
    /// Whether the table may be sound but is of a kind that is not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Storage(error) if error.is_unsupported())
    }
}

/// A place that knows tables. Lists without loading any.
pub trait Catalog: Send + Sync {
    /// Set where the source is one table, which then is the whole mount.
    fn single_table(&self) -> Option<TableIdent>;
    /// The namespaces and tables directly below a namespace (the empty one is the root).
    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError>;
    /// Where a table's current metadata is now. `Ok(None)`: there is no such table.
    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError>;
}
