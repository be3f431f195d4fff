//! Tables that lie in directories, of this machine or of a store ([`store`]): one table, one metadata file, or a warehouse of tables at any depth.
//!
//! A directory is a table where it, or its `metadata`, holds metadata files; a directory that is none and has a table
//! somewhere below is a namespace. Nothing is remembered between two questions: each reads the directories on the way
//! to its answer, one level at a time, so what other programs add or remove is seen at once.
//!
//! Names are the directories', with two habits of writers undone where the shorter name is free: PyIceberg and Hive
//! keep a namespace in `<name>.db`, and Trino, Polaris and others a table in `<name>-<uuid>`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::metadata_file::{self, LocalFolder, metadata_directory};
use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};
use crate::storage::{Properties, StoreAccess};

mod store;
#[cfg(test)]
mod tests;
mod warehouse;

pub use store::StoreDirectoryCatalog;
use warehouse::{ChildKind, Warehouse, listed, without_uuid};

/// The name of a table that lies at the root of a file system, whose directory has no name.
const NAMELESS: &str = "table";

/// A catalog over a local path.
#[derive(Debug)]
pub struct DirectoryCatalog {
    /// Absolute.
    source: PathBuf,
    kind: SourceKind,
    /// For what of the tables lies in stores.
    access: Arc<StoreAccess>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SourceKind {
    /// A metadata file, which is the table's current one for as long as it is mounted.
    MetadataFile {
        root: PathBuf,
    },
    Table {
        root: PathBuf,
    },
    Warehouse(Warehouse),
}

impl DirectoryCatalog {
    /// Looks at what `source` is: a metadata file, a table's directory, or a directory with tables somewhere below.
    pub fn open(source: &Path) -> Result<Self, CatalogError> {
        let source = std::path::absolute(source).map_err(|error| io_error(source, error))?;
        let status = fs::metadata(&source).map_err(|error| io_error(&source, error))?;
        let kind = if status.is_file() {
            SourceKind::MetadataFile {
                root: table_root(source.parent().unwrap_or(&source)).to_owned(),
            }
        } else if !status.is_dir() {
            return Err(CatalogError::NoTable {
                path: source.display().to_string(),
            });
        } else if let Some(holder) =
            metadata_directory(&source).map_err(|error| io_error(&source, error))?
        {
            SourceKind::Table {
                root: table_root(&holder).to_owned(),
            }
        } else {
            let warehouse = Warehouse::new(source.clone());
            if !warehouse.may_hold_tables() {
                return Err(CatalogError::NoTable {
                    path: source.display().to_string(),
                });
            }
            SourceKind::Warehouse(warehouse)
        };
        Ok(Self {
            source,
            kind,
            access: Arc::default(),
        })
    }

    /// Reaches the stores in which parts of a table lie (`--map-path`) with these properties.
    pub fn with_properties(mut self, properties: &Properties) -> Self {
        self.access = Arc::new(StoreAccess {
            properties: properties.clone(),
            ..StoreAccess::default()
        });
        self
    }

    /// Never looks into `directory`: where the mountpoint lies in the warehouse that is mounted, the file system must
    /// not wait for itself. To be called before the mount, while the path can still be looked at.
    pub fn excluding(mut self, directory: &Path) -> Result<Self, CatalogError> {
        if let SourceKind::Warehouse(warehouse) = &mut self.kind {
            warehouse.exclude(real_path(directory)?);
        }
        Ok(self)
    }

    /// Where the one table lies; `None` for a warehouse.
    fn single_root(&self) -> Option<&Path> {
        match &self.kind {
            SourceKind::MetadataFile { root } | SourceKind::Table { root } => Some(root),
            SourceKind::Warehouse(_) => None,
        }
    }
}

impl Catalog for DirectoryCatalog {
    fn single_table(&self) -> Option<TableIdent> {
        let name = self
            .single_root()?
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(NAMELESS);
        let name = without_uuid(name).unwrap_or(name).to_owned();
        Some(TableIdent {
            namespace: Vec::new(),
            name,
        })
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        let missing = || CatalogError::NoTable {
            path: format!("{}/{}", self.source.display(), namespace.join("/")),
        };
        let SourceKind::Warehouse(warehouse) = &self.kind else {
            let table = self.single_table().filter(|_| namespace.is_empty());
            return Ok(Listing {
                tables: vec![table.ok_or_else(missing)?.name],
                ..Listing::default()
            });
        };
        let place = warehouse.namespace(namespace)?.ok_or_else(missing)?;
        Ok(listed(
            warehouse.children(&place, |_| true)?,
            namespace.len(),
        ))
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        let named = || self.single_table().as_ref() == Some(ident);
        match &self.kind {
            SourceKind::MetadataFile { root } => {
                let (source, root) = (self.source.clone(), root.clone());
                Ok(named().then(|| local_pointer(source, root, &self.access)))
            }
            SourceKind::Table { .. } if named() => pointer(&self.source, &self.access),
            SourceKind::Table { .. } => Ok(None),
            SourceKind::Warehouse(warehouse) => {
                let Some(place) = warehouse.namespace(&ident.namespace)? else {
                    return Ok(None);
                };
                let found = warehouse.child(&place, &ident.name, ChildKind::Table)?;
                found.map_or(Ok(None), |child| pointer(&child.directory, &self.access))
            }
        }
    }
}

/// The current metadata of the table in `directory`; `None` where it is none any more.
fn pointer(
    directory: &Path,
    access: &Arc<StoreAccess>,
) -> Result<Option<TablePointer>, CatalogError> {
    let holder = match metadata_directory(directory) {
        Ok(Some(holder)) => holder,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(directory, error)),
    };
    match metadata_file::current(&LocalFolder(&holder))? {
        Some(name) => {
            let root = table_root(&holder).to_owned();
            Ok(Some(local_pointer(holder.join(name), root, access)))
        }
        None => Err(no_current(holder.display().to_string())),
    }
}

/// A table whose hint leads nowhere.
fn no_current(path: String) -> CatalogError {
    let reason =
        "version-hint.text names no metadata file that exists, and there is no other".to_owned();
    CatalogError::Pointer { path, reason }
}

fn local_pointer(metadata: PathBuf, root: PathBuf, access: &Arc<StoreAccess>) -> TablePointer {
    TablePointer {
        metadata: metadata.into(),
        root: root.into(),
        access: Arc::clone(access),
        content: None,
        version: None,
    }
}

/// The directory of the table whose metadata files lie in `holder`.
fn table_root(holder: &Path) -> &Path {
    match holder.parent() {
        Some(parent) if holder.file_name().is_some_and(|name| name == "metadata") => parent,
        _ => holder,
    }
}

fn real_path(directory: &Path) -> Result<PathBuf, CatalogError> {
    directory
        .canonicalize()
        .map_err(|error| io_error(directory, error))
}

fn io_error(path: &Path, source: io::Error) -> CatalogError {
    CatalogError::Io {
        path: path.display().to_string(),
        source,
    }
}
