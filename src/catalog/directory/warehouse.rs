//! The levels of a warehouse: which directories are tables, which are namespaces, and what they are called.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{CatalogError, Listing, io_error, metadata_directory};

/// Namespaces below one another. Real warehouses have one or two; this ends what symlinks could go on with.
pub(super) const MAX_DEPTH: usize = 16;

/// Directories looked into to learn whether one without a table of its own is a namespace. A directory so large that
/// this does not suffice is shown.
const LOOK_AHEAD: usize = 256;

/// A directory with tables somewhere below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Warehouse {
    root: PathBuf,
    /// The real path of a directory that is never looked into.
    excluded: Option<PathBuf>,
}

/// A namespace's directory.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    /// The real paths of the directories from the warehouse's down to this one.
    passed: Vec<PathBuf>,
}

/// A table or namespace directly below a namespace.
#[derive(Debug)]
pub(super) struct Child<D = PathBuf> {
    /// As listed.
    pub(super) name: String,
    pub(super) directory: D,
    pub(super) kind: ChildKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildKind {
    Namespace,
    Table,
}

/// What a namespace at a depth shows of its children.
pub(super) fn listed<D>(children: Vec<Child<D>>, depth: usize) -> Listing {
    let mut listing = Listing::default();
    for child in children {
        match child.kind {
            // What lies deeper could not be entered.
            ChildKind::Namespace if depth == MAX_DEPTH => {}
            ChildKind::Namespace => listing.namespaces.push(child.name),
            ChildKind::Table => listing.tables.push(child.name),
        }
    }
    listing.namespaces.sort();
    listing.tables.sort();
    listing
}

impl Place {
    fn new(directory: PathBuf, above: &[PathBuf]) -> io::Result<Self> {
        let real = directory.canonicalize()?;
        let passed = above.iter().cloned().chain([real]).collect();
        Ok(Self { directory, passed })
    }

    /// Whether a symlink leads to a directory that one has come through, or one above it.
    fn is_reached_through(&self, link: &Path) -> bool {
        let Ok(target) = link.canonicalize() else {
            return true;
        };
        self.passed.iter().any(|real| real.starts_with(&target))
    }
}

impl Warehouse {
    pub(super) fn new(root: PathBuf) -> Self {
        let excluded = None;
        Self { root, excluded }
    }

    pub(super) fn exclude(&mut self, real: PathBuf) {
        self.excluded = Some(real);
    }

    /// Whether there is a table, or may be one.
    pub(super) fn may_hold_tables(&self) -> bool {
        self.is_namespace(&self.root, &[])
    }

    /// A namespace, found level by level. `None`: there is no such namespace.
    pub(super) fn namespace(&self, namespace: &[String]) -> Result<Option<Place>, CatalogError> {
        if namespace.len() > MAX_DEPTH {
            return Ok(None);
        }
        let enter = |directory: PathBuf, above: &[PathBuf]| {
            let shown = directory.clone();
            Place::new(directory, above).map_err(|error| io_error(&shown, error))
        };
        let mut place = enter(self.root.clone(), &[])?;
        for name in namespace {
            let Some(child) = self.child(&place, name, ChildKind::Namespace)? else {
                return Ok(None);
            };
            place = enter(child.directory, &place.passed)?;
        }
        Ok(Some(place))
    }

    /// One child of a namespace. Looks only into those whose names have to do with its name, so that finding a table
    /// costs the same in a namespace of ten thousand.
    pub(super) fn child(
        &self,
        place: &Place,
        name: &str,
        kind: ChildKind,
    ) -> Result<Option<Child>, CatalogError> {
        let forms = possible_names(name);
        let related = |other: &str| {
            possible_names(other)
                .iter()
                .any(|form| forms.contains(form))
        };
        let children = self.children(place, related)?;
        Ok(children
            .into_iter()
            .find(|child| child.kind == kind && child.name == name))
    }

    /// The tables and namespaces directly in a namespace, as far as `wanted` admits the directories' names.
    /// Directories that cannot be read are left out.
    pub(super) fn children(
        &self,
        place: &Place,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Child>, CatalogError> {
        let mut children = Vec::new();
        let below = self
            .subdirectories(place)
            .map_err(|error| io_error(&place.directory, error))?;
        for (name, directory) in below {
            if !wanted(&name) {
                continue;
            }
            let kind = match metadata_directory(&directory) {
                Ok(Some(_)) => ChildKind::Table,
                Ok(None) if self.is_namespace(&directory, &place.passed) => ChildKind::Namespace,
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

    /// Whether a table lies somewhere below `directory`, or may do so.
    fn is_namespace(&self, directory: &Path, above: &[PathBuf]) -> bool {
        let mut budget = LOOK_AHEAD;
        self.leads_to_table(directory, above, &mut budget, 0)
    }

    /// Whether a table lies somewhere below `directory`, as far as `budget` directories tell; true where they do not.
    fn leads_to_table(
        &self,
        directory: &Path,
        above: &[PathBuf],
        budget: &mut usize,
        depth: usize,
    ) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let Some(left) = budget.checked_sub(1) else {
            return true;
        };
        *budget = left;
        let Ok(place) = Place::new(directory.to_owned(), above) else {
            return false;
        };
        let Ok(subdirectories) = self.subdirectories(&place) else {
            return false;
        };
        subdirectories.iter().any(|(_, below)| {
            matches!(metadata_directory(below), Ok(Some(_)))
                || self.leads_to_table(below, &place.passed, budget, depth + 1)
        })
    }

    /// The directories in a place that may be tables or namespaces, by name: not hidden ones, not what belongs to a
    /// table that was dropped or has no metadata yet, and no symlink back to where one came from.
    fn subdirectories(&self, place: &Place) -> io::Result<Vec<(String, PathBuf)>> {
        let has_metadata = place.directory.join("metadata").is_dir();
        let excluded = self.excluded_in(place);
        let mut found = Vec::new();
        for entry in fs::read_dir(&place.directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if !may_hold_tables(&name, has_metadata) {
                continue;
            }
            if excluded == Some(name.as_str()) {
                continue;
            }
            let path = entry.path();
            let kind = entry.file_type()?;
            let entered = if kind.is_symlink() {
                path.is_dir() && !place.is_reached_through(&path)
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

    /// The name of the excluded directory, where it lies directly in a place.
    fn excluded_in(&self, place: &Place) -> Option<&str> {
        let excluded = self.excluded.as_deref()?;
        let here = excluded.parent() == place.passed.last().map(PathBuf::as_path);
        excluded.file_name().filter(|_| here)?.to_str()
    }
}

/// Whether a directory may be a table or namespace by its name: it is not hidden, and not what belongs to a table that
/// was dropped or has no metadata yet (`has_metadata`: there is a `metadata` beside it).
pub(super) fn may_hold_tables(name: &str, has_metadata: bool) -> bool {
    !name.starts_with('.') && name != "metadata" && !(name == "data" && has_metadata)
}

/// What a directory may be listed as, and what would then compete for that name.
pub(super) fn possible_names(directory: &str) -> Vec<&str> {
    let shorter = [without_db(directory), without_uuid(directory)];
    shorter.into_iter().flatten().chain([directory]).collect()
}

/// Gives children their shorter names, where those are free.
pub(super) fn shorten_names<D>(children: &mut [Child<D>]) {
    let shorter = |child: &Child<D>| match child.kind {
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

/// `name` without its trailing `.db`; `None` where it has none.
fn without_db(name: &str) -> Option<&str> {
    name.strip_suffix(".db").filter(|name| !name.is_empty())
}

/// `name` without its trailing `-<uuid>` (32 hex digits, hyphens or not); `None` where it has none.
pub(super) fn without_uuid(name: &str) -> Option<&str> {
    const HYPHENATED: usize = 36;
    const SIMPLE: usize = 32;
    [HYPHENATED, SIMPLE].into_iter().find_map(|length| {
        let (stem, id) = name.split_at_checked(name.len().checked_sub(length)?)?;
        uuid::Uuid::try_parse(id).ok()?;
        stem.strip_suffix('-').filter(|stem| !stem.is_empty())
    })
}
