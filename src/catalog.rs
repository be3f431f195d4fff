//! Where the tables are: the trait that lists them, and the catalogs, one file each.
//!
//! A catalog answers two questions, anew each time: what is in a namespace, and which file is a table's metadata now.
//! It loads no table, so one broken table spoils no listing.

use std::sync::Arc;

use bytes::Bytes;

use crate::storage::{Address, StorageError, StoreAccess};

mod connection;
pub mod directory;
mod glue;
mod hive;
mod metadata_file;
mod metastore;
mod outage;
mod pyiceberg;
mod rest;
mod sql;

pub use connection::Connection;

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
    /// Tells what the metadata file holds from what it held under the same name before, where the catalog has learnt it:
    /// a table that is dropped and made again begins with the same names.
    pub version: Option<String>,
}

impl TablePointer {
    /// Whether both name the same metadata file, in one state, of a table at the same place.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.metadata, &self.root, &self.version)
            == (&other.metadata, &other.root, &other.version)
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
    /// What was said about a catalog cannot be followed.
    #[error("{catalog}: {reason}")]
    Configuration { catalog: String, reason: String },
    /// No answer: the catalog is down, or the way to it is.
    #[error("{catalog}: cannot be reached: {reason}")]
    Unreachable { catalog: String, reason: String },
    /// The catalog refused, or answered what makes no sense.
    #[error("{catalog}: {reason}")]
    Answer { catalog: String, reason: String },
    /// The catalog asks for something that is not supported.
    #[error("{catalog}: {feature}: is not supported")]
    Unsupported { catalog: String, feature: String },
}

impl CatalogError {
    /// Whether the table may be sound but is of a kind that is not supported.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Storage(error) => error.is_unsupported(),
            Self::Unsupported { .. } => true,
            _ => false,
        }
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
    /// Whether the catalog answers at all: the simplest question there is.
    fn answers(&self) -> Result<(), CatalogError> {
        self.list(&[]).map(drop)
    }
    /// Whether a table lies where its metadata says, whatever the pointer's `root`: so in catalogs that know a table by
    /// its metadata file alone, which may lie apart from it (`write.metadata.path`).
    fn tables_lie_where_recorded(&self) -> bool {
        false
    }
}

/// Characters kept of a server's message.
const MAX_MESSAGE: usize = 400;

/// The beginning of a server's message, without what ends lines.
fn one_line(message: &str) -> String {
    let beginning = message.chars().take(MAX_MESSAGE);
    beginning
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// The pointer to a table of which a catalog knows its metadata file alone.
fn pointer(
    metadata_location: &str,
    access: &Arc<StoreAccess>,
) -> Result<TablePointer, CatalogError> {
    let metadata = Address::recorded(metadata_location).map_err(|error| CatalogError::Pointer {
        path: metadata_location.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(TablePointer {
        // Not used: such tables lie where their metadata says.
        root: metadata.clone(),
        metadata,
        access: Arc::clone(access),
        content: None,
        version: None,
    })
}
