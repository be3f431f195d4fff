//! Tables that lie in a store: the rules of local directories, asked of listings.
//!
//! A level is listed when somebody looks at it, and each of its directories then looked into, many at once. Where the
//! store does not list (a web server), a metadata file or a table with a version hint can be mounted.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::warehouse::{
    Child, ChildKind, MAX_DEPTH, listed, may_hold_tables, possible_names, shorten_names,
    without_uuid,
};
use super::{NAMELESS, no_current};
use crate::catalog::metadata_file::{self, Folder, HINT, is_metadata_file, marks_table};
use crate::catalog::{Catalog, CatalogError, Listing, TableIdent, TablePointer};
use crate::parallel::in_parallel_waiting;
use crate::storage::{Address, Level, Properties, StorageOptions, StoreAccess, StoreFolder};

/// Directories looked into to learn whether one without a table of its own is a namespace. Fewer than on a disk: each
/// costs a request.
const LOOK_AHEAD: usize = 32;

/// A catalog over a place in a store.
#[derive(Debug)]
pub struct StoreDirectoryCatalog {
    source: StoreFolder,
    kind: SourceKind,
}

#[derive(Debug)]
enum SourceKind {
    /// A metadata file, which is the table's current one for as long as it is mounted. It may be replaced by a newer one.
    MetadataFile,
    /// With what was seen of its metadata's directory when it was opened: whoever mounts it asks for the table at once, and
    /// that first question costs no second listing.
    Table(Mutex<Option<Looked>>),
    Warehouse,
}

/// A directory of a store with what was learnt of it while one question is answered.
#[derive(Debug)]
struct Looked {
    folder: StoreFolder,
    level: OnceCell<Level>,
}

impl Looked {
    fn new(folder: StoreFolder) -> Self {
        Self {
            folder,
            level: OnceCell::new(),
        }
    }

    fn level(&self) -> Result<&Level, CatalogError> {
        if let Some(level) = self.level.get() {
            return Ok(level);
        }
        let level = self.folder.level()?;
        Ok(self.level.get_or_init(|| level))
    }

    /// Whether it holds a table's metadata files.
    fn holds_metadata(&self) -> Result<bool, CatalogError> {
        if !self.folder.can_list() {
            return Ok(self.folder.has_file(HINT)?);
        }
        Ok(self.level()?.files.iter().any(|name| marks_table(name)))
    }

    /// The directory that holds the table's metadata files, where this is a table: its `metadata`, or itself.
    fn metadata_directory(self) -> Result<Result<Looked, Looked>, CatalogError> {
        let lacks = |level: &Level| !level.directories.iter().any(|name| name == "metadata");
        if !self.level.get().is_some_and(lacks) {
            let inner = Looked::new(self.folder.child("metadata"));
            if inner.holds_metadata()? {
                return Ok(Ok(inner));
            }
        }
        Ok(if self.holds_metadata()? {
            Ok(self)
        } else {
            Err(self)
        })
    }

    /// What it is, with the directory that was looked into to tell: a table's metadata, or a namespace itself. `None`:
    /// neither.
    fn kind(self) -> Result<Option<(ChildKind, Looked)>, CatalogError> {
        Ok(match self.metadata_directory()? {
            Ok(holder) => Some((ChildKind::Table, holder)),
            Err(place) => place
                .leads_to_table(&mut LOOK_AHEAD.clone(), 0)?
                .then_some((ChildKind::Namespace, place)),
        })
    }

    /// The directories that may be tables or namespaces.
    fn subdirectories(&self) -> Result<Vec<String>, CatalogError> {
        let directories = &self.level()?.directories;
        let has_metadata = directories.iter().any(|name| name == "metadata");
        let mut names = directories.clone();
        names.retain(|name| may_hold_tables(name, has_metadata));
        Ok(names)
    }

    /// Whether a table lies somewhere below, or may do so.
    fn leads_to_table(&self, budget: &mut usize, depth: usize) -> Result<bool, CatalogError> {
        if depth > MAX_DEPTH {
            return Ok(false);
        }
        for name in self.subdirectories()? {
            let Some(left) = budget.checked_sub(1) else {
                return Ok(true);
            };
            *budget = left;
            let below = Looked::new(self.folder.child(&name));
            match below.metadata_directory()? {
                Ok(_) => return Ok(true),
                Err(below) if below.leads_to_table(budget, depth + 1)? => return Ok(true),
                Err(_) => {}
            }
        }
        Ok(false)
    }
}

impl Folder for Looked {
    fn names(&self) -> Result<Vec<String>, CatalogError> {
        match self.folder.can_list() {
            true => Ok(self.level()?.files.clone()),
            false => Ok(Vec::new()),
        }
    }

    fn is_file(&self, name: &str) -> Result<bool, CatalogError> {
        if !self.folder.can_list() {
            return Ok(self.folder.has_file(name)?);
        }
        Ok(self.level()?.files.iter().any(|file| file == name))
    }

    fn beginning(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, CatalogError> {
        if self.folder.can_list() && !self.is_file(name)? {
            return Ok(None);
        }
        Ok(self.folder.read(name, max)?.map(|bytes| bytes.to_vec()))
    }

    fn shown(&self) -> String {
        self.folder.to_string()
    }
}

impl StoreDirectoryCatalog {
    /// Looks at what `url` is: a metadata file, a table's directory, or a directory with tables somewhere below.
    ///
    /// # Errors
    /// It is none of these, no store has such URLs, or the store cannot be asked.
    pub fn open(
        url: &Url,
        options: &StorageOptions,
        properties: &Properties,
    ) -> Result<Self, CatalogError> {
        let access = Arc::new(StoreAccess {
            properties: properties.clone(),
            ..StoreAccess::default()
        });
        let source = StoreFolder::new(options, url, &access)?;
        let kind = if source.name().is_some_and(is_metadata_file) {
            SourceKind::MetadataFile
        } else {
            match Looked::new(source.clone()).metadata_directory()? {
                Ok(holder) => SourceKind::Table(Mutex::new(Some(holder))),
                Err(place)
                    if source.can_list() && place.leads_to_table(&mut LOOK_AHEAD.clone(), 0)? =>
                {
                    SourceKind::Warehouse
                }
                Err(_) => {
                    return Err(CatalogError::NoTable {
                        path: source.to_string(),
                    });
                }
            }
        };
        Ok(Self { source, kind })
    }

    /// A namespace, found level by level. `None`: there is no such namespace.
    fn namespace(&self, namespace: &[String]) -> Result<Option<Looked>, CatalogError> {
        if namespace.len() > MAX_DEPTH {
            return Ok(None);
        }
        let mut place = Looked::new(self.source.clone());
        for name in namespace {
            match self.child(&place, name, ChildKind::Namespace)? {
                Some(child) => place = child.directory,
                None => return Ok(None),
            }
        }
        Ok(Some(place))
    }

    /// One child of a namespace; looks only into those whose names have to do with its name.
    fn child(
        &self,
        place: &Looked,
        name: &str,
        kind: ChildKind,
    ) -> Result<Option<Child<Looked>>, CatalogError> {
        let forms = possible_names(name);
        let mut names = place.subdirectories()?;
        names.retain(|other| {
            let mut names = possible_names(other).into_iter();
            names.any(|form| forms.contains(&form))
        });
        let children = match (kind, names.as_slice()) {
            // Nothing competes with it for the name. Whether a table lies below it is seen by who looks there.
            (ChildKind::Namespace, [only]) => {
                let looked = Looked::new(place.folder.child(only));
                looked.level()?;
                let mut children = Vec::new();
                if let Err(directory) = looked.metadata_directory()? {
                    let name = only.clone();
                    children.push(Child {
                        name,
                        directory,
                        kind,
                    });
                }
                shorten_names(&mut children);
                children
            }
            _ => children(place, names)?,
        };
        Ok(children
            .into_iter()
            .find(|child| child.kind == kind && child.name == name))
    }
}

/// Those of the directories in a place that are tables and namespaces. Those that the store refuses to show are left out.
fn children(place: &Looked, names: Vec<String>) -> Result<Vec<Child<Looked>>, CatalogError> {
    let folder = &place.folder;
    let kinds = in_parallel_waiting(&names, |name| Looked::new(folder.child(name)).kind());
    let mut children = Vec::new();
    for (name, kind) in names.into_iter().zip(kinds) {
        match kind {
            Ok(Some((kind, directory))) => children.push(Child {
                name,
                directory,
                kind,
            }),
            Ok(None) => {}
            Err(error) if is_denied(&error) => {
                tracing::debug!(%folder, name, %error, "left out of the listing");
            }
            Err(error) => return Err(error),
        }
    }
    shorten_names(&mut children);
    Ok(children)
}

fn is_denied(error: &CatalogError) -> bool {
    let CatalogError::Storage(crate::storage::StorageError::Io { source, .. }) = error else {
        return false;
    };
    source.kind() == std::io::ErrorKind::PermissionDenied
}

impl Catalog for StoreDirectoryCatalog {
    fn single_table(&self) -> Option<TableIdent> {
        let root = match self.kind {
            SourceKind::Warehouse => return None,
            SourceKind::MetadataFile => table_root(&self.source.parent()),
            SourceKind::Table(_) => table_root(&self.source),
        };
        let name = root.name().unwrap_or(NAMELESS);
        let name = without_uuid(name).unwrap_or(name).to_owned();
        Some(TableIdent {
            namespace: Vec::new(),
            name,
        })
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        let missing = || CatalogError::NoTable {
            path: format!("{}/{}", self.source, namespace.join("/")),
        };
        if let Some(table) = self.single_table() {
            if !namespace.is_empty() {
                return Err(missing());
            }
            return Ok(Listing {
                tables: vec![table.name],
                ..Listing::default()
            });
        }
        let place = self.namespace(namespace)?.ok_or_else(missing)?;
        let children = children(&place, place.subdirectories()?)?;
        // As if it were not there: no table lies below it.
        if children.is_empty() && !namespace.is_empty() {
            return Err(missing());
        }
        Ok(listed(children, namespace.len()))
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        if let Some(single) = self.single_table() {
            if single != *ident {
                return Ok(None);
            }
            return match &self.kind {
                SourceKind::MetadataFile => {
                    let holder = self.source.parent();
                    let Some(version) = holder.version(self.source.name().unwrap_or_default())?
                    else {
                        return Ok(None);
                    };
                    let metadata = self.source.url().clone();
                    let mut pointer = store_pointer(metadata, &table_root(&holder));
                    pointer.version = Some(version);
                    Ok(Some(pointer))
                }
                SourceKind::Table(seen) => {
                    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let holder = match seen {
                        Some(holder) => Some(holder),
                        None => Looked::new(self.source.clone()).metadata_directory()?.ok(),
                    };
                    holder.as_ref().map(pointer).transpose()
                }
                SourceKind::Warehouse => Ok(None),
            };
        }
        let Some(place) = self.namespace(&ident.namespace)? else {
            return Ok(None);
        };
        let child = self.child(&place, &ident.name, ChildKind::Table)?;
        child.map(|child| pointer(&child.directory)).transpose()
    }
}

/// The current metadata of the table whose metadata files lie in a directory.
fn pointer(holder: &Looked) -> Result<TablePointer, CatalogError> {
    match metadata_file::current(holder)? {
        Some(name) => {
            let root = table_root(&holder.folder);
            let mut pointer = store_pointer(holder.folder.file(&name), &root);
            pointer.version = match holder.folder.can_list() {
                true => holder.level()?.versions.get(&name).cloned(),
                false => holder.folder.version(&name)?,
            };
            Ok(pointer)
        }
        None => Err(no_current(holder.shown())),
    }
}

fn store_pointer(metadata: Url, root: &StoreFolder) -> TablePointer {
    TablePointer {
        metadata: Address::Remote(metadata),
        root: Address::Remote(root.url().clone()),
        access: Arc::clone(root.access()),
        content: None,
        version: None,
    }
}

/// The directory of the table whose metadata files lie in `holder`.
fn table_root(holder: &StoreFolder) -> StoreFolder {
    match holder.name() {
        Some("metadata") => holder.parent(),
        _ => holder.clone(),
    }
}
