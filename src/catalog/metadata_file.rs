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
const HINT: &str = "version-hint.text";

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

/// Whether a file of this name marks the directory that holds it as a table's metadata directory.
fn marks_table(name: &str) -> bool {
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

/// The current metadata file among those in `directory`; `None` where there is none.
pub(super) fn current(directory: &Path) -> Result<Option<PathBuf>, CatalogError> {
    let hinted = match read_hint(directory)? {
        Some(hint) => by_hint(directory, &hint)?,
        None => None,
    };
    match hinted {
        Some(file) => Ok(Some(file)),
        None => by_listing(directory),
    }
}

/// The hint's first line; `None` where there is no hint, or none that is text.
fn read_hint(directory: &Path) -> Result<Option<String>, CatalogError> {
    let path = directory.join(HINT);
    // Looked at before it is opened: opening a FIFO would wait for ever.
    if !path.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|file| file.take(MAX_HINT).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(CatalogError::Io {
                path: path.display().to_string(),
                source,
            });
        }
    }
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
fn by_hint(directory: &Path, hint: &str) -> Result<Option<PathBuf>, CatalogError> {
    // Some writers give the whole path; the table may have moved since.
    let hint = hint.rsplit('/').next().unwrap_or(hint);
    let stem = stem(hint).unwrap_or(hint);
    let version = number(stem).or_else(|| stem.strip_prefix('v').and_then(number));
    let exact = directory.join(hint);
    if MetadataName::parse(hint).is_some() && exact.is_file() {
        let newer = version
            .and_then(|version| version.checked_add(1))
            .map(|next| newest_from(directory, next));
        return Ok(newer.transpose()?.flatten().or(Some(exact)));
    }
    match version {
        Some(version) => newest_from(directory, version),
        None => only_one(existing(directory, stem), directory, hint),
    }
}

/// The newest of the versions that follow `version` without a gap.
fn newest_from(directory: &Path, version: u64) -> Result<Option<PathBuf>, CatalogError> {
    let mut newest = None;
    let mut version = Some(version);
    while let Some(tried) = version {
        let name = format!("v{tried}");
        let Some(file) = only_one(existing(directory, &name), directory, &name)? else {
            break;
        };
        newest = Some(file);
        version = tried.checked_add(1);
    }
    Ok(newest)
}

/// The files of one stem, in every way it may be compressed.
fn existing(directory: &Path, stem: &str) -> Vec<PathBuf> {
    SUFFIXES
        .iter()
        .map(|suffix| directory.join(format!("{stem}{suffix}")))
        .filter(|path| path.is_file())
        .collect()
}

/// The largest number wins; without numbers, the only file.
fn by_listing(directory: &Path) -> Result<Option<PathBuf>, CatalogError> {
    let io_error = |source| CatalogError::Io {
        path: directory.display().to_string(),
        source,
    };
    let mut highest: Option<u64> = None;
    let mut candidates = Vec::new();
    for entry in fs::read_dir(directory).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let number = match entry.file_name().to_str().and_then(MetadataName::parse) {
            Some(MetadataName::Version(number) | MetadataName::Numbered(number)) => Some(number),
            Some(MetadataName::Other) => None,
            Some(MetadataName::Unfinished) | None => continue,
        };
        if number < highest || !entry.path().is_file() {
            continue;
        }
        if number > highest {
            candidates.clear();
            highest = number;
        }
        candidates.push(entry.path());
    }
    let what = highest.map_or_else(
        || "no version".to_owned(),
        |version| format!("version {version}"),
    );
    only_one(candidates, directory, &what)
}

/// The one candidate; an error that names two where there are more, for nothing tells which was committed.
fn only_one(
    mut candidates: Vec<PathBuf>,
    directory: &Path,
    what: &str,
) -> Result<Option<PathBuf>, CatalogError> {
    candidates.sort();
    match candidates.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        [first, second, ..] => {
            let name = |path: &Path| {
                path.file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
            };
            let (first, second) = (name(first), name(second));
            let reason = format!(
                "{first} and {second} are both metadata files of {what}; mount the right one by its own path, or \
                 name it in {HINT}"
            );
            Err(CatalogError::Pointer {
                path: directory.display().to_string(),
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
