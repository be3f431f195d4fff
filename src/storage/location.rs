//! The spellings of a recorded path, and when one recorded path lies under another.
//!
//! Writers record the same place in many ways: `/t`, `file:/t`, `file:///t`, `file://localhost/t`; `s3://b/t` and
//! `s3a://b/t`; `hdfs://host:8020/t`, `hdfs:///t` and plain `/t`; even `file://data/t` for a relative path. A
//! [`Location`] keeps apart what such a text says: what kind of storage, which authority, which path. Nothing is
//! percent-decoded, because Iceberg records paths as they are.

/// A recorded path or location, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    storage: StorageKind,
    /// Begins with one `/` where it is absolute; never begins with `./`.
    path: String,
}

/// What storage a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StorageKind {
    /// No scheme: a local file, or one of the default file system of whoever wrote the table.
    Bare,
    /// `file:`.
    File,
    /// Any other scheme. The authority is the bucket, the container or the name node; it may be empty.
    Remote { family: String, authority: String },
}

impl Location {
    /// Takes a recorded text apart. Every text has a meaning: what has no scheme is a path.
    pub(super) fn parse(text: &str) -> Self {
        let Some((scheme, rest)) = split_scheme(text) else {
            return Self {
                storage: StorageKind::Bare,
                path: local_path(text),
            };
        };
        if scheme == "file" {
            let path = match rest.strip_prefix("//") {
                Some(after) => after
                    .strip_prefix("localhost/")
                    .map_or(after.to_owned(), |path| format!("/{path}")),
                None => rest.to_owned(),
            };
            return Self {
                storage: StorageKind::File,
                path: local_path(&path),
            };
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) => after
                .find('/')
                .map_or((after, ""), |slash| after.split_at(slash)),
            None => ("", rest),
        };
        let storage = StorageKind::Remote {
            family: family(&scheme).to_owned(),
            authority: authority.to_owned(),
        };
        Self {
            storage,
            path: path.to_owned(),
        }
    }

    /// A directory of this machine: unlike a bare recorded path, it never stands for a path on remote storage.
    pub(super) fn local(path: &str) -> Self {
        Self {
            storage: StorageKind::File,
            path: local_path(path),
        }
    }

    /// What follows `self` in `path`, without leading slashes, where `path` lies under `self`. Texts are compared
    /// component-wise as they stand: no `.`, `..` or `//` is resolved.
    pub(super) fn relative<'p>(&self, path: &'p Location) -> Option<&'p str> {
        if !self.storage.may_equal(&path.storage) {
            return None;
        }
        let prefix = self.path.trim_end_matches('/');
        if prefix.is_empty() && self.is_absolute() != path.is_absolute() {
            return None;
        }
        let rest = path.path.strip_prefix(prefix)?;
        let below = rest.trim_start_matches('/');
        let at_boundary = rest.len() > below.len() || (prefix.is_empty() && !self.is_absolute());
        (at_boundary && !below.is_empty()).then_some(below)
    }

    /// What of this path follows a directory, as the key that a store has for it: a web address is percent-decoded, all
    /// others are keys as they stand.
    pub(super) fn key<'p>(&self, relative: &'p str) -> std::borrow::Cow<'p, str> {
        let is_web = matches!(self.remote_scheme(), Some("http" | "https"));
        match percent_decoded(relative).filter(|_| is_web) {
            Some(decoded) => decoded.into(),
            None => relative.into(),
        }
    }

    /// Whether the place that a text names is this one or lies in it.
    pub(super) fn holds(&self, text: &str) -> bool {
        let other = Self::parse(text);
        self.relative(&other).is_some()
            || (self.same_storage(&other)
                && self.path.trim_end_matches('/') == other.path.trim_end_matches('/'))
    }

    /// Whether both can name one place.
    pub(super) fn may_be(&self, other: &Location) -> bool {
        self.storage.may_equal(&other.storage)
            && self.path.trim_end_matches('/') == other.path.trim_end_matches('/')
    }

    /// The path, for matching from its end.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The scheme of remote storage; `None` for what may be local.
    pub(super) fn remote_scheme(&self) -> Option<&str> {
        match &self.storage {
            StorageKind::Remote { family, .. } => Some(family),
            StorageKind::Bare | StorageKind::File => None,
        }
    }

    /// Whether this names an absolute path that may be on this machine.
    pub(super) fn is_local_absolute(&self) -> bool {
        self.remote_scheme().is_none() && self.is_absolute()
    }

    /// Whether this says so little that every path would lie under it: the root of the local file system, or nothing.
    pub(super) fn is_everything(&self) -> bool {
        let no_authority = match &self.storage {
            StorageKind::Remote { authority, .. } => authority.is_empty(),
            StorageKind::Bare | StorageKind::File => true,
        };
        no_authority
            && self
                .path
                .split('/')
                .all(|part| part.is_empty() || part == ".")
    }

    /// How closely `self` as a prefix fits `path`: among prefixes of one length, the one of the same kind is meant.
    pub(super) fn same_storage(&self, path: &Location) -> bool {
        self.storage == path.storage
    }

    /// Bytes of the path, for ordering prefixes by length.
    pub(super) fn depth(&self) -> usize {
        self.path.trim_end_matches('/').len()
    }

    /// One text for all spellings that are equal without knowing where anything lies.
    pub(super) fn normal_text(&self) -> String {
        match &self.storage {
            StorageKind::Bare | StorageKind::File => tidy(&self.path),
            StorageKind::Remote { family, authority } => {
                format!("{family}://{authority}{}", tidy(&self.path))
            }
        }
    }

    fn is_absolute(&self) -> bool {
        self.path.starts_with('/') || (self.remote_scheme().is_some() && self.path.is_empty())
    }
}

impl StorageKind {
    /// Whether two texts of these kinds can name one place: a text without a scheme, or without an authority, leaves
    /// open which one it means.
    fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File, Self::Remote { .. }) | (Self::Remote { .. }, Self::File) => false,
            (
                Self::Remote { family, authority },
                Self::Remote {
                    family: family2,
                    authority: authority2,
                },
            ) => {
                family == family2
                    && (authority == authority2 || authority.is_empty() || authority2.is_empty())
            }
            (Self::Bare, _) | (_, Self::Bare) | (Self::File, Self::File) => true,
        }
    }
}

/// Removes doubled slashes and `.` components, as the local file system does. `..` stays: with symlinks about, only the
/// file system can tell what it means.
pub(super) fn tidy(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    if path.starts_with('/') {
        text.push('/');
    }
    for part in path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if !text.is_empty() && !text.ends_with('/') {
            text.push('/');
        }
        text.push_str(part);
    }
    text
}

/// `text` with each `%XX` decoded, where there is one and the outcome is a path of valid UTF-8.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = match (byte, tail) {
            (b'%', [high, low, ..]) => hex_digit(*high)
                .zip(hex_digit(*low))
                .map(|(high, low)| high * 16 + low),
            _ => None,
        };
        decoded.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() {
            tail.get(2..).unwrap_or_default()
        } else {
            tail
        };
    }
    String::from_utf8(decoded)
        .ok()
        .filter(|decoded| decoded != text && !decoded.contains('\0'))
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Whether a text is a URL of a store rather than a path of this machine.
pub(super) fn is_url(text: &str) -> bool {
    text.contains("://") && split_scheme(text).is_some_and(|(scheme, _)| scheme != "file")
}

/// The scheme in lower case, and what follows its colon. `ab:/x` has one (Hadoop writes `hdfs:/x`); `a:b` has none.
fn split_scheme(text: &str) -> Option<(String, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let valid = scheme.len() >= 2
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let scheme = scheme.to_ascii_lowercase();
    (valid && (rest.starts_with('/') || scheme == "file")).then_some((scheme, rest))
}

/// Schemes that differ only in the client that reads them.
fn family(scheme: &str) -> &str {
    match scheme {
        "s3a" | "s3n" => "s3",
        "gcs" => "gs",
        "abfs" => "abfss",
        "wasb" => "wasbs",
        other => other,
    }
}

/// A local path with one leading slash at most, and no leading `./`.
fn local_path(path: &str) -> String {
    if path.starts_with('/') {
        return format!("/{}", path.trim_start_matches('/'));
    }
    let mut rest = path;
    while let Some(after) = rest.strip_prefix("./") {
        rest = after.trim_start_matches('/');
    }
    if rest == "." {
        String::new()
    } else {
        rest.to_owned()
    }
}
