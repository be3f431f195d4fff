//! Which metadata file of a table directory is the current one, where no catalog says so.
//!
//! The spec calls such tables deprecated ("File System Tables"); they are everywhere all the same. Writers leave three
//! kinds of traces, looked at in this order:
//!
//! 1. `version-hint.text`. Its first line is a version, a version string or a file name. A version is only a hint: a
//!    commit writes `v<N+1>.metadata.json` first and the hint afterwards, so the versions that follow without a gap are
//!    tried, as the reference implementation does. A hint that leads nowhere is passed over.
//! 2. Numbered names, `v<N>.metadata.json` and `<N>-<uuid>.metadata.json`: the largest number wins (9 before 10). Where
//!    two files bear it, nothing tells which was committed, and the table is refused.
//! 3. A single metadata file of any other name. A bare `<uuid>.metadata.json` is none: that is a commit that was being
//!    written and never took its name.
//!
//! Each may be compressed: `.gz.metadata.json`, `.gzip.metadata.json`, `.metadata.json.gz`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::CatalogError;

/// The file that hints at the current version.
pub(super) const HINT: &str = "version-hint.text";

/// Bytes of a hint that are looked at. A hint is a number or a file name.
const MAX_HINT: u64 = 4096;

/// What may stand between a metadata file's stem and the end of its name.
const SUFFIXES: [&str; 4] = [
    ".gz.metadata.json",
    ".gzip.metadata.json",
    ".metadata.json.gz",
    ".metadata.json",
];

/// What the name of a metadata file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetadataName {
    /// `v<N>`: written by a table that keeps its own versions.
    Version(u64),
    /// `<N>-<uuid>`: written by a table whose catalog keeps the pointer.
    Numbered(u64),
    /// `<uuid>`: being written.
    Unfinished,
    Other,
}

impl MetadataName {
    /// `None`: not a metadata file.
    fn parse(name: &str) -> Option<Self> {
        if name.starts_with('.') {
            return None;
        }
        let stem = stem(name)?;
        if let Some(version) = stem.strip_prefix('v').and_then(number) {
            return Some(Self::Version(version));
        }
        if uuid::Uuid::try_parse(stem).is_ok() {
            return Some(Self::Unfinished);
        }
        let numbered = stem
            .split_once('-')
            .filter(|(_, id)| uuid::Uuid::try_parse(id).is_ok());
        Some(
            numbered
                .and_then(|(digits, _)| number(digits))
                .map_or(Self::Other, Self::Numbered),
        )
    }
}

/// A directory that may hold a table's metadata files.
pub(super) trait Folder {
    /// The names of its files; of other things too, where [`Folder::is_file`] tells them apart.
    fn names(&self) -> Result<Vec<String>, CatalogError>;
    /// Whether it has a file of this name.
    fn is_file(&self, name: &str) -> Result<bool, CatalogError>;
    /// The beginning of a file; `None` where there is none.
    fn beginning(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, CatalogError>;
    /// For messages.
    fn shown(&self) -> String;
}

/// A directory of this machine.
#[derive(Debug)]
pub(super) struct LocalFolder<'p>(pub(super) &'p Path);

impl LocalFolder<'_> {
    fn error(&self, source: io::Error) -> CatalogError {
        CatalogError::Io {
            path: self.shown(),
            source,
        }
    }
}

impl Folder for LocalFolder<'_> {
    fn names(&self) -> Result<Vec<String>, CatalogError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.0).map_err(|error| self.error(error))? {
            let entry = entry.map_err(|error| self.error(error))?;
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    fn is_file(&self, name: &str) -> Result<bool, CatalogError> {
        Ok(self.0.join(name).is_file())
    }

    fn beginning(&self, name: &str, max: u64) -> Result<Option<Vec<u8>>, CatalogError> {
        let path = self.0.join(name);
        // Looked at before it is opened: opening a FIFO would wait for ever.
        if !path.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        match File::open(&path).and_then(|file| file.take(max).read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(CatalogError::Io {
                path: path.display().to_string(),
                source,
            }),
        }
    }

    fn shown(&self) -> String {
        self.0.display().to_string()
    }
}

/// Whether a file of this name is a metadata file.
pub(super) fn is_metadata_file(name: &str) -> bool {
    MetadataName::parse(name).is_some()
}

/// Whether a file of this name marks the directory that holds it as a table's metadata directory.
pub(super) fn marks_table(name: &str) -> bool {
    name == HINT || MetadataName::parse(name).is_some_and(|name| name != MetadataName::Unfinished)
}

/// The directory that holds a table's metadata files, where `directory` is a table: its `metadata`, or itself.
pub(super) fn metadata_directory(directory: &Path) -> io::Result<Option<PathBuf>> {
    let inner = directory.join("metadata");
    match holds_metadata(&inner) {
        Ok(true) => return Ok(Some(inner)),
        Ok(false) => {}
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) => {}
        Err(error) => return Err(error),
    }
    Ok(holds_metadata(directory)?.then(|| directory.to_owned()))
}

fn holds_metadata(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(marks_table) && entry.path().is_file() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The name of the current metadata file among those in `folder`; `None` where there is none.
pub(super) fn current(folder: &impl Folder) -> Result<Option<String>, CatalogError> {
    let hinted = match read_hint(folder)? {
        Some(hint) => by_hint(folder, &hint)?,
        None => None,
    };
    match hinted {
        Some(file) => Ok(Some(file)),
        None => by_listing(folder),
    }
}

/// The hint's first line; `None` where there is no hint, or none that is text.
fn read_hint(folder: &impl Folder) -> Result<Option<String>, CatalogError> {
    let Some(bytes) = folder.beginning(HINT, MAX_HINT)? else {
        return Ok(None);
    };
    let text = String::from_utf8(bytes).unwrap_or_default();
    let line = text
        .trim_start_matches('\u{feff}')
        .lines()
        .next()
        .unwrap_or_default()
        .trim();
    Ok((!line.is_empty()).then(|| line.to_owned()))
}

/// The file a hint leads to; `None` where it leads nowhere.
fn by_hint(folder: &impl Folder, hint: &str) -> Result<Option<String>, CatalogError> {
    // Some writers give the whole path; the table may have moved since.
    let hint = hint.rsplit('/').next().unwrap_or(hint);
    let stem = stem(hint).unwrap_or(hint);
    let version = number(stem).or_else(|| stem.strip_prefix('v').and_then(number));
    if MetadataName::parse(hint).is_some() && folder.is_file(hint)? {
        let newer = version
            .and_then(|version| version.checked_add(1))
            .map(|next| newest_from(folder, next));
        return Ok(newer.transpose()?.flatten().or(Some(hint.to_owned())));
    }
    match version {
        Some(version) => newest_from(folder, version),
        None => only_one(existing(folder, stem)?, folder, hint),
    }
}

/// The newest of the versions that follow `version` without a gap.
fn newest_from(folder: &impl Folder, version: u64) -> Result<Option<String>, CatalogError> {
    let mut newest = None;
    let mut version = Some(version);
    while let Some(tried) = version {
        let name = format!("v{tried}");
        let Some(file) = only_one(existing(folder, &name)?, folder, &name)? else {
            break;
        };
        newest = Some(file);
        version = tried.checked_add(1);
    }
    Ok(newest)
}

/// The files of one stem, in every way it may be compressed.
fn existing(folder: &impl Folder, stem: &str) -> Result<Vec<String>, CatalogError> {
    let mut found = Vec::new();
    for suffix in SUFFIXES {
        let name = format!("{stem}{suffix}");
        if folder.is_file(&name)? {
            found.push(name);
        }
    }
    Ok(found)
}

/// The largest number wins; without numbers, the only file.
fn by_listing(folder: &impl Folder) -> Result<Option<String>, CatalogError> {
    let mut highest: Option<u64> = None;
    let mut candidates = Vec::new();
    for name in folder.names()? {
        let number = match MetadataName::parse(&name) {
            Some(MetadataName::Version(number) | MetadataName::Numbered(number)) => Some(number),
            Some(MetadataName::Other) => None,
            Some(MetadataName::Unfinished) | None => continue,
        };
        if number < highest || !folder.is_file(&name)? {
            continue;
        }
        if number > highest {
            candidates.clear();
            highest = number;
        }
        candidates.push(name);
    }
    let what = highest.map_or_else(
        || "no version".to_owned(),
        |version| format!("version {version}"),
    );
    only_one(candidates, folder, &what)
}

/// The one candidate; an error that names two where there are more, for nothing tells which was committed.
fn only_one(
    mut candidates: Vec<String>,
    folder: &impl Folder,
    what: &str,
) -> Result<Option<String>, CatalogError> {
    candidates.sort();
    match candidates.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        [first, second, ..] => {
            let reason = format!(
                "{first} and {second} are both metadata files of {what}; mount the right one by its own path, or \
                 name it in {HINT}"
            );
            Err(CatalogError::Pointer {
                path: folder.shown(),
                reason,
            })
        }
    }
}

/// A metadata file's name without what marks it as one; `None` where it is none.
fn stem(name: &str) -> Option<&str> {
    SUFFIXES
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .filter(|stem| !stem.is_empty())
}

/// A run of digits. `None` where it is anything else, or exceeds 64 bits.
fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}
