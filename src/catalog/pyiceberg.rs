//! Catalogs by the names that PyIceberg's configuration gives them.
//!
//! PyIceberg takes the first `.pyiceberg.yaml` of `$PYICEBERG_HOME`, the home directory and the working directory that
//! says anything. Over it go the variables `PYICEBERG_CATALOG__<NAME>__<KEY>`, where two underscores are a dot and one is
//! a hyphen. Names and keys are lower case, whatever their spelling. Values are texts as they stand in the file: an
//! account `0123` or a key `1e5` is no number. Nested keys are joined with dots.
//!
//! An entry is read as PyIceberg reads it: `type`, or else what `uri` begins with, says which catalog it is.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_yaml_ng::Value;

use crate::storage::Properties;

use super::CatalogError;

#[cfg(test)]
mod tests;

const FILE: &str = ".pyiceberg.yaml";

/// Begins the variables.
const PREFIX: &str = "pyiceberg_";

/// Where no configuration names a default.
const DEFAULT: &str = "default";

/// Bytes of a configuration file: one for each of a thousand catalogs is smaller.
const MAX_FILE: u64 = 4 << 20;

/// What a process is started with.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Names and values.
    pub(super) variables: Vec<(String, String)>,
    pub(super) home: Option<PathBuf>,
    pub(super) working_directory: Option<PathBuf>,
}

impl Surroundings {
    /// This process's.
    pub(super) fn of_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self {
            variables: variables.collect(),
            home: std::env::home_dir(),
            working_directory: std::env::current_dir().ok(),
        }
    }
}

/// One catalog of the configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// As it was asked for: what an SQL catalog is called.
    pub(super) name: String,
    pub(super) kind: EntryKind,
    pub(super) properties: Properties,
}

/// Which catalog an entry means, with its `uri`.
#[derive(PartialEq, Eq)]
pub(super) enum EntryKind {
    Rest(String),
    Sql(String),
    Glue,
    Hive(String),
}

impl fmt::Debug for EntryKind {
    /// Without the URI, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rest(_) => "Rest",
            Self::Sql(_) => "Sql",
            Self::Glue => "Glue",
            Self::Hive(_) => "Hive",
        })
    }
}

impl Entry {
    /// The entry of a name; without one, the default.
    ///
    /// # Errors
    /// There is no such entry, or none that can be followed.
    pub(super) fn find(
        name: Option<&str>,
        surroundings: &Surroundings,
    ) -> Result<Self, CatalogError> {
        let (path, mut settings) = read(surroundings)?;
        overlay(&mut settings, &surroundings.variables);
        let name = match name {
            Some(name) => name.to_owned(),
            None => match settings.get("default-catalog") {
                Some(Setting::Text(name)) if !name.is_empty() => name.clone(),
                _ => DEFAULT.to_owned(),
            },
        };
        let failed = |reason: String| CatalogError::Configuration {
            catalog: format!("pyiceberg:{name}"),
            reason,
        };
        let place = path.as_ref().map_or_else(
            || "the environment".to_owned(),
            |path| path.display().to_string(),
        );
        let catalogs = match settings.remove("catalog") {
            Some(Setting::Map(catalogs)) => catalogs,
            None if path.is_none() => {
                return Err(failed(format!(
                    "there is no {FILE} in $PYICEBERG_HOME, the home directory or the working directory"
                )));
            }
            _ => return Err(failed(format!("{place}: configures no catalogs"))),
        };
        let entry = match catalogs.get(&name.to_lowercase()) {
            Some(Setting::Map(entry)) => entry,
            Some(_) => return Err(failed(format!("{place}: its entry is no mapping"))),
            None => {
                let names: Vec<&str> = catalogs.keys().map(String::as_str).collect();
                let names = names.join(", ");
                return Err(failed(format!(
                    "{place}: configures no catalog of this name (there are: {names})"
                )));
            }
        };
        let mut properties = Properties::default();
        flatten(entry, "", &mut properties);
        authentication(&mut properties);
        let kind = kind(&name, &properties).map_err(|error| error.at(&name))?;
        Ok(Self {
            name,
            kind,
            properties,
        })
    }
}

/// Why an entry cannot be followed.
enum Refusal {
    Unsupported(String),
    Wrong(String),
}

impl Refusal {
    fn at(self, name: &str) -> CatalogError {
        let catalog = format!("pyiceberg:{name}");
        match self {
            Self::Unsupported(feature) => CatalogError::Unsupported { catalog, feature },
            Self::Wrong(reason) => CatalogError::Configuration { catalog, reason },
        }
    }
}

fn kind(name: &str, properties: &Properties) -> Result<EntryKind, Refusal> {
    let get = |key| properties.get(key).filter(|value| !value.is_empty());
    if get("py-catalog-impl").is_some() {
        return Err(Refusal::Unsupported("py-catalog-impl".to_owned()));
    }
    let uri = || {
        let variable = name.to_uppercase();
        get("uri").map(str::to_owned).ok_or_else(|| {
            Refusal::Wrong(format!(
                "has no `uri` (nor is there a variable PYICEBERG_CATALOG__{variable}__URI)"
            ))
        })
    };
    match get("type").map(str::to_lowercase).as_deref() {
        Some("rest") => Ok(EntryKind::Rest(uri()?)),
        Some("sql") => Ok(EntryKind::Sql(uri()?)),
        Some("hive") => Ok(EntryKind::Hive(uri()?)),
        Some("glue") => Ok(EntryKind::Glue),
        Some(other) => Err(Refusal::Unsupported(format!("type: {other}"))),
        None => {
            let uri = uri()?;
            if uri.starts_with("http") {
                Ok(EntryKind::Rest(uri))
            } else if uri.starts_with("thrift") {
                Ok(EntryKind::Hive(uri))
            } else if uri.starts_with("sqlite") || uri.starts_with("postgresql") {
                Ok(EntryKind::Sql(uri))
            } else {
                // The text is not shown: it may hold a password.
                let reason = "has no `type`, and its `uri` does not tell";
                Err(Refusal::Wrong(reason.to_owned()))
            }
        }
    }
}

/// PyIceberg's nested `auth` under the names that the REST catalog has for it.
fn authentication(properties: &mut Properties) {
    let nested: Vec<(String, String)> = properties
        .0
        .iter()
        .filter(|(key, _)| key.starts_with("auth."))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let of = |key: &str| {
        let found = nested.iter().find(|(other, _)| other == key);
        found.map(|(_, value)| value.clone())
    };
    let mut set = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            properties.0.insert(key.to_owned(), value);
        }
    };
    let kind = of("auth.type").map(|kind| match kind.to_lowercase().as_str() {
        "noop" => "none".to_owned(),
        "legacyoauth2" => "oauth2".to_owned(),
        other => other.to_owned(),
    });
    set("rest.auth.type", kind);
    set("rest.auth.basic.username", of("auth.basic.username"));
    set("rest.auth.basic.password", of("auth.basic.password"));
    let secret = of("auth.oauth2.client_secret");
    let credential = secret.map(|secret| match of("auth.oauth2.client_id") {
        Some(id) => format!("{id}:{secret}"),
        None => secret,
    });
    set("credential", credential);
    set("oauth2-server-uri", of("auth.oauth2.token_url"));
    set("scope", of("auth.oauth2.scope"));
}

/// What a configuration says under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Setting {
    Text(String),
    Map(Settings),
    /// A list, which nothing of a catalog is.
    Other,
}

type Settings = BTreeMap<String, Setting>;

fn flatten(settings: &Settings, prefix: &str, into: &mut Properties) {
    for (key, setting) in settings {
        let key = format!("{prefix}{key}");
        match setting {
            Setting::Text(text) => {
                into.0.insert(key, text.clone());
            }
            Setting::Map(below) => flatten(below, &format!("{key}."), into),
            Setting::Other => {}
        }
    }
}

/// Puts the variables over what the file says.
fn overlay(settings: &mut Settings, variables: &[(String, String)]) {
    for (name, value) in variables {
        let name = name.to_lowercase();
        let Some(key) = name.strip_prefix(PREFIX) else {
            continue;
        };
        let parts: Vec<String> = key
            .splitn(3, "__")
            .map(|part| part.replace("__", ".").replace('_', "-"))
            .collect();
        set(settings, &parts, value);
    }
}

fn set(settings: &mut Settings, path: &[String], value: &str) {
    match path {
        [] => {}
        [key] => {
            // What is set to nothing does not hide what the file says.
            if !value.is_empty() || !settings.contains_key(key) {
                settings.insert(key.clone(), Setting::Text(value.to_owned()));
            }
        }
        [key, below @ ..] => {
            let place = settings.entry(key.clone()).or_insert(Setting::Other);
            if !matches!(place, Setting::Map(_)) {
                *place = Setting::Map(Settings::new());
            }
            if let Setting::Map(settings) = place {
                set(settings, below, value);
            }
        }
    }
}

/// The first file that says anything, and what it says.
fn read(surroundings: &Surroundings) -> Result<(Option<PathBuf>, Settings), CatalogError> {
    let variable = |wanted: &str| {
        let found = surroundings.variables.iter();
        let mut found = found.filter(|(name, value)| name == wanted && !value.is_empty());
        found.next().map(|(_, value)| PathBuf::from(value))
    };
    let directories = [
        variable("PYICEBERG_HOME"),
        surroundings.home.clone(),
        surroundings.working_directory.clone(),
    ];
    for directory in directories.into_iter().flatten() {
        let path = directory.join(FILE);
        if !path.is_file() {
            continue;
        }
        let settings = read_file(&path)?;
        if !settings.is_empty() {
            return Ok((Some(path), settings));
        }
    }
    Ok((None, Settings::new()))
}

fn read_file(path: &Path) -> Result<Settings, CatalogError> {
    let failed = |source| CatalogError::Io {
        path: path.display().to_string(),
        source,
    };
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > MAX_FILE {
        return Err(wrong(path, format!("more than {MAX_FILE} bytes")));
    }
    parse(&std::fs::read_to_string(path).map_err(failed)?).map_err(|reason| wrong(path, reason))
}

fn wrong(path: &Path, reason: String) -> CatalogError {
    CatalogError::Configuration {
        catalog: path.display().to_string(),
        reason,
    }
}

fn parse(text: &str) -> Result<Settings, String> {
    // An error quotes nothing of the text, in which there may be secrets: only where it went wrong.
    let place = |error: serde_yaml_ng::Error| match error.location() {
        Some(at) => format!("no YAML at line {}, column {}", at.line(), at.column()),
        None => "no YAML that PyIceberg would read".to_owned(),
    };
    // Twice: the first time tells texts from maps, the second takes the texts as they stand.
    let shape: Value = serde_yaml_ng::from_str(text).map_err(place)?;
    match &shape {
        Value::Null => Ok(Settings::new()),
        Value::Mapping(_) => {
            let seed = Shaped(&shape);
            match seed.deserialize(serde_yaml_ng::Deserializer::from_str(text)) {
                Ok(Setting::Map(settings)) => Ok(settings),
                Ok(_) => Err("no mapping of keys".to_owned()),
                Err(error) => Err(place(error)),
            }
        }
        _ => Err("no mapping of keys".to_owned()),
    }
}

/// Reads what has a known shape.
struct Shaped<'v>(&'v Value);

impl<'de> DeserializeSeed<'de> for Shaped<'_> {
    type Value = Setting;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Setting, D::Error> {
        match self.0 {
            Value::Mapping(_) => from.deserialize_map(self),
            Value::Sequence(_) | Value::Tagged(_) => {
                from.deserialize_ignored_any(IgnoredAny)?;
                Ok(Setting::Other)
            }
            _ => from.deserialize_str(self),
        }
    }
}

impl<'de> Visitor<'de> for Shaped<'_> {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a mapping")
    }

    fn visit_str<E>(self, text: &str) -> Result<Setting, E> {
        Ok(Setting::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Setting, E> {
        Ok(Setting::Text(String::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Setting, A::Error> {
        let mut settings = Settings::new();
        while let Some(Setting::Text(key)) = entries.next_key_seed(Shaped(&Value::Null))? {
            // The shape has keys by what they mean: a text of the same spelling, in all that configures a catalog.
            let shape = match self.0.get(&key) {
                Some(shape) => shape,
                None => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let setting = entries.next_value_seed(Shaped(shape))?;
            settings.insert(key.to_lowercase(), setting);
        }
        Ok(Setting::Map(settings))
    }
}
