//! Tables that lie in local directories: one table, one metadata file, or a warehouse of tables at any depth.
//!
//! A directory is a table where it, or its `metadata`, holds metadata files; a directory that is none and has a table
//! somewhere below is a namespace. Nothing is remembered between two questions: each reads the directories on the way
//! to its answer, one level at a time, so what other programs add or remove is seen at once.
//!
//! Names are the directories', with two habits of writers undone where the shorter name is free: PyIceberg and Hive
//! keep a namespace in `<name>.db`, and Trino, Polaris and others a table in `<name>-<uuid>`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::metadata_file::{self, metadata_directory};
use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};

#[cfg(test)]
mod tests;

/// Namespaces below one another. Real warehouses have one or two; this ends what symlinks could go on with.
const MAX_DEPTH: usize = 16;

/// Directories looked into to learn whether one without a table of its own is a namespace. A directory so large that
/// this does not suffice is shown.
const LOOK_AHEAD: usize = 256;

/// The name of a table that lies at the root of a file system, whose directory has no name.
const NAMELESS: &str = "table";

/// A catalog over a local path.
#[derive(Debug)]
pub struct DirectoryCatalog {
    /// Absolute.
    source: PathBuf,
    kind: SourceKind,
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
    Warehouse,
}

/// A table or namespace directly below a namespace.
#[derive(Debug)]
struct Child {
    /// As listed.
    name: String,
    directory: PathBuf,
    kind: ChildKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildKind {
    Namespace,
    Table,
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
        } else if is_namespace(&source, &[]) {
            SourceKind::Warehouse
        } else {
            return Err(CatalogError::NoTable {
                path: source.display().to_string(),
            });
        };
        Ok(Self { source, kind })
    }

    /// Where the one table lies; `None` for a warehouse.
    fn single_root(&self) -> Option<&Path> {
        match &self.kind {
            SourceKind::MetadataFile { root } | SourceKind::Table { root } => Some(root),
            SourceKind::Warehouse => None,
        }
    }

    /// The directory of a namespace, found level by level, with the real paths of those passed on the way to it.
    /// `None`: there is no such namespace.
    fn namespace(
        &self,
        namespace: &[String],
    ) -> Result<Option<(PathBuf, Vec<PathBuf>)>, CatalogError> {
        if namespace.len() > MAX_DEPTH {
            return Ok(None);
        }
        let mut directory = self.source.clone();
        let mut passed = vec![real_path(&directory)?];
        for name in namespace {
            let found = child(&directory, &passed, name, ChildKind::Namespace)?;
            let Some(child) = found else { return Ok(None) };
            directory = child.directory;
            passed.push(real_path(&directory)?);
        }
        Ok(Some((directory, passed)))
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
        if let Some(table) = self.single_table() {
            return Ok(Listing {
                namespaces: Vec::new(),
                tables: vec![table.name],
            });
        }
        let missing = || CatalogError::NoTable {
            path: format!("{}/{}", self.source.display(), namespace.join("/")),
        };
        let (directory, passed) = self.namespace(namespace)?.ok_or_else(missing)?;
        let mut listing = Listing::default();
        for child in children(&directory, &passed, |_| true)? {
            match child.kind {
                // What lies deeper could not be entered.
                ChildKind::Namespace if namespace.len() == MAX_DEPTH => {}
                ChildKind::Namespace => listing.namespaces.push(child.name),
                ChildKind::Table => listing.tables.push(child.name),
            }
        }
        listing.namespaces.sort();
        listing.tables.sort();
        Ok(listing)
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        if self.single_root().is_some() && self.single_table().as_ref() != Some(ident) {
            return Ok(None);
        }
        match &self.kind {
            SourceKind::MetadataFile { root } => {
                return Ok(Some(TablePointer {
                    metadata: self.source.clone(),
                    root: root.clone(),
                }));
            }
            SourceKind::Table { .. } => return pointer(&self.source),
            SourceKind::Warehouse => {}
        }
        let Some((directory, passed)) = self.namespace(&ident.namespace)? else {
            return Ok(None);
        };
        let found = child(&directory, &passed, &ident.name, ChildKind::Table)?;
        found.map_or(Ok(None), |child| pointer(&child.directory))
    }
}

/// The current metadata of the table in `directory`; `None` where it is none any more.
fn pointer(directory: &Path) -> Result<Option<TablePointer>, CatalogError> {
    let holder = match metadata_directory(directory) {
        Ok(Some(holder)) => holder,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(directory, error)),
    };
    match metadata_file::current(&holder)? {
        Some(metadata) => Ok(Some(TablePointer {
            metadata,
            root: table_root(&holder).to_owned(),
        })),
        None => {
            let reason =
                "version-hint.text names no metadata file that exists, and there is no other"
                    .to_owned();
            Err(CatalogError::Pointer {
                path: holder.display().to_string(),
                reason,
            })
        }
    }
}

/// The directory of the table whose metadata files lie in `holder`.
fn table_root(holder: &Path) -> &Path {
    match holder.parent() {
        Some(parent) if holder.file_name().is_some_and(|name| name == "metadata") => parent,
        _ => holder,
    }
}

/// One child of `directory`. Looks only into those whose names have to do with its name, so that finding a table costs
/// the same in a namespace of ten thousand.
fn child(
    directory: &Path,
    passed: &[PathBuf],
    name: &str,
    kind: ChildKind,
) -> Result<Option<Child>, CatalogError> {
    let forms = possible_names(name);
    let related = |other: &str| {
        possible_names(other)
            .iter()
            .any(|form| forms.contains(form))
    };
    let children = children(directory, passed, related)?;
    Ok(children
        .into_iter()
        .find(|child| child.kind == kind && child.name == name))
}

/// What a directory may be listed as, and what would then compete for that name.
fn possible_names(directory: &str) -> Vec<&str> {
    let shorter = [without_db(directory), without_uuid(directory)];
    shorter.into_iter().flatten().chain([directory]).collect()
}

/// The tables and namespaces directly in `directory`, as far as `wanted` admits the directories' names. `passed`: the
/// real paths of the namespaces it lies in, itself included. Directories that cannot be read are left out.
fn children(
    directory: &Path,
    passed: &[PathBuf],
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Child>, CatalogError> {
    let mut children = Vec::new();
    for (name, directory) in
        subdirectories(directory, passed).map_err(|error| io_error(directory, error))?
    {
        if !wanted(&name) {
            continue;
        }
        let kind = match metadata_directory(&directory) {
            Ok(Some(_)) => ChildKind::Table,
            Ok(None) if is_namespace(&directory, passed) => ChildKind::Namespace,
            Ok(None) => continue,
            Err(error) => {
                tracing::debug!(directory = %directory.display(), %error, "left out of the listing");
                continue;
            }
        };
        children.push(Child {
            name,
            directory,
            kind,
        });
    }
    shorten_names(&mut children);
    Ok(children)
}

/// Gives children their shorter names, where those are free.
fn shorten_names(children: &mut [Child]) {
    let shorter = |child: &Child| match child.kind {
        ChildKind::Namespace => without_db(&child.name).map(str::to_owned),
        ChildKind::Table => without_uuid(&child.name).map(str::to_owned),
    };
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for child in children.iter() {
        // A directory's own name is wanted by itself too, so that nothing is shortened to it.
        for name in shorter(child).into_iter().chain([child.name.clone()]) {
            *wanted.entry(name).or_default() += 1;
        }
    }
    for child in children {
        if let Some(name) = shorter(child).filter(|name| wanted.get(name) == Some(&1)) {
            child.name = name;
        }
    }
}

/// Whether a table lies somewhere below `directory`, or may do so.
fn is_namespace(directory: &Path, passed: &[PathBuf]) -> bool {
    let mut budget = LOOK_AHEAD;
    may_hold_tables(directory, passed, &mut budget, 0)
}

/// Whether a table lies somewhere below `directory`, as far as `budget` directories tell; true where they do not.
fn may_hold_tables(directory: &Path, passed: &[PathBuf], budget: &mut usize, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    let Some(left) = budget.checked_sub(1) else {
        return true;
    };
    *budget = left;
    let Ok(real) = directory.canonicalize() else {
        return false;
    };
    let passed: Vec<PathBuf> = passed.iter().cloned().chain([real]).collect();
    let Ok(subdirectories) = subdirectories(directory, &passed) else {
        return false;
    };
    subdirectories.iter().any(|(_, below)| {
        matches!(metadata_directory(below), Ok(Some(_)))
            || may_hold_tables(below, &passed, budget, depth + 1)
    })
}

/// The directories in `directory` that may be tables or namespaces, by name: not hidden ones, not what belongs to a
/// table that was dropped or has no metadata yet, and no symlink back to where one came from.
fn subdirectories(directory: &Path, passed: &[PathBuf]) -> io::Result<Vec<(String, PathBuf)>> {
    let has_metadata = directory.join("metadata").is_dir();
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') || name == "metadata" || (name == "data" && has_metadata) {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type()?;
        let entered = if kind.is_symlink() {
            path.is_dir() && !leads_back(&path, passed)
        } else {
            kind.is_dir()
        };
        if entered {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

fn leads_back(link: &Path, passed: &[PathBuf]) -> bool {
    link.canonicalize().map_or(true, |target| {
        passed.iter().any(|real| real.starts_with(&target))
    })
}

/// `name` without its trailing `.db`; `None` where it has none.
fn without_db(name: &str) -> Option<&str> {
    name.strip_suffix(".db").filter(|name| !name.is_empty())
}

/// `name` without its trailing `-<uuid>` (32 hex digits, hyphens or not); `None` where it has none.
fn without_uuid(name: &str) -> Option<&str> {
    const HYPHENATED: usize = 36;
    const SIMPLE: usize = 32;
    [HYPHENATED, SIMPLE].into_iter().find_map(|length| {
        let (stem, id) = name.split_at_checked(name.len().checked_sub(length)?)?;
        uuid::Uuid::try_parse(id).ok()?;
        stem.strip_suffix('-').filter(|stem| !stem.is_empty())
    })
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
