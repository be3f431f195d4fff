//! Loading a table: its metadata and where it lies, and how its stores are reached.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::catalog::{CatalogError, TableIdent, TablePointer, pointer};
use crate::storage::{PrefixedProperties, Properties, StoreAccess};

use super::Service;
use super::configuration::{Endpoint, texts};
use super::delegation::{Grants, Signer, SigningConfig, StorageCredential, credentials};
use super::session::Question;
use super::transport::is_catalogs_word;

/// Properties of the catalog that its stores have no use for: who asks the catalog is no concern of theirs.
const CATALOGS_OWN: [&str; 4] = ["credential", "token", "header.", "rest."];

/// A table, and what tells whether it has changed since.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) pointer: TablePointer,
    pub(super) etag: Option<HeaderValue>,
    pub(super) credentials: Vec<PrefixedProperties>,
}

/// What a catalog answers to who wants a table.
#[derive(Debug)]
pub(super) enum Answered {
    Loaded(Box<Loaded>),
    /// Since the state of the tag that was sent.
    Unchanged,
    Missing,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct LoadTableAnswer {
    metadata_location: Option<String>,
    #[serde(rename = "metadata")]
    _metadata: serde::de::IgnoredAny,
    config: Option<Map<String, Json>>,
    storage_credentials: Option<Vec<StorageCredential>>,
    remote_signing_config: Option<SigningConfig>,
}

/// Asks for a table, with all its snapshots. `known` is the tag of the state that is known.
pub(super) async fn ask(
    service: &Arc<Service>,
    ident: &TableIdent,
    known: Option<&HeaderValue>,
) -> Result<Answered, CatalogError> {
    let transport = service.transport();
    let name = format!("table {}.{}", ident.namespace.join("."), ident.name);
    if !service.configuration.has(Endpoint::LoadTable) {
        return Err(CatalogError::Unsupported {
            catalog: service.name.clone(),
            feature: "a catalog that loads no tables".to_owned(),
        });
    }
    let mut question = Question::get(service.paths.table(ident)?, &[("snapshots", "all")]);
    question.headers = service.delegation_header();
    if let Some(tag) = known {
        question.headers.push((IF_NONE_MATCH, tag.clone()));
    }
    let answer = service.session.ask(&question).await?;
    match answer.status {
        StatusCode::OK => {}
        StatusCode::NOT_MODIFIED if known.is_some() => return Ok(Answered::Unchanged),
        StatusCode::NOT_FOUND if is_catalogs_word(&answer) => return Ok(Answered::Missing),
        _ => return Err(transport.refusal(&name, &answer)),
    }
    let said: LoadTableAnswer = serde_json::from_slice(&answer.body)
        .map_err(|error| transport.wrong(format!("{name}: {error}")))?;
    let location = said
        .metadata_location
        .filter(|location| !location.is_empty())
        .ok_or_else(|| transport.wrong(format!("{name}: it has no metadata file")))?;
    let content = member(&answer.body, "metadata").map(|range| answer.body.slice(range));
    let content = content.filter(|content| content.first() == Some(&b'{'));
    let content =
        content.ok_or_else(|| transport.wrong(format!("{name}: the answer holds no metadata")))?;
    let config = texts(said.config);
    let credentials = credentials(said.storage_credentials.unwrap_or_default(), &config);
    let access = access(
        service,
        ident,
        &config,
        &credentials,
        said.remote_signing_config,
    )?;
    let mut pointer = pointer(&location, &Arc::new(access))?;
    pointer.content = Some(content);
    Ok(Answered::Loaded(Box::new(Loaded {
        pointer,
        etag: answer.headers.get(ETAG).cloned(),
        credentials,
    })))
}

/// How the stores of a table are reached.
fn access(
    service: &Arc<Service>,
    ident: &TableIdent,
    config: &Properties,
    credentials: &[PrefixedProperties],
    signing: Option<SigningConfig>,
) -> Result<StoreAccess, CatalogError> {
    let mut properties = service.configuration.properties.clone();
    properties
        .0
        .retain(|name, _| !CATALOGS_OWN.iter().any(|own| name.starts_with(own)));
    let token = config.get("token").map(str::to_owned);
    let own = config.0.iter().filter(|(name, _)| *name != "token");
    properties
        .0
        .extend(own.map(|(name, value)| (name.clone(), value.clone())));
    let is = |name, value: &str| {
        let said: Option<&str> = properties.get(name);
        said.is_some_and(|said| said.eq_ignore_ascii_case(value))
    };
    if is("scan-planning-mode", "server") {
        return Err(CatalogError::Unsupported {
            catalog: service.name.clone(),
            feature: format!(
                "table {}.{}: scan planning by the catalog (scan-planning-mode=server)",
                ident.namespace.join("."),
                ident.name
            ),
        });
    }
    let lent = |name: &str| {
        credentials
            .iter()
            .any(|of| of.properties.get(name).is_some())
    };
    let signs = is("s3.remote-signing-enabled", "true") && !lent("s3.access-key-id");
    let signer = signs
        .then(|| Signer::new(service, ident, &properties, signing, token.clone()))
        .transpose()?;
    let grants = (!credentials.is_empty()).then(|| Grants {
        service: Arc::clone(service),
        ident: ident.clone(),
        token,
    });
    Ok(StoreAccess {
        properties,
        credentials: credentials.to_vec(),
        renewal: grants.map(|grants| Arc::new(grants) as _),
        signer: signer.map(|signer| Arc::new(signer) as _),
    })
}

/// Where the value of a member stands in a JSON object that is known to be one: the metadata is kept as it was sent, with
/// its numbers as they were written, and is not copied.
fn member(object: &Bytes, name: &str) -> Option<Range<usize>> {
    let mut scan = Scan {
        text: object,
        at: 0,
    };
    scan.expect(b'{')?;
    loop {
        scan.space();
        let key = scan.value()?;
        scan.expect(b':')?;
        scan.space();
        let value = scan.value()?;
        let key = object.get(key)?;
        if key
            .strip_prefix(b"\"")
            .and_then(|key| key.strip_suffix(b"\""))
            == Some(name.as_bytes())
        {
            return Some(value);
        }
        scan.expect(b',')?;
    }
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Passes a value: a string, what brackets hold, or what ends before a comma or bracket.
    fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                    if depth == 0 {
                        return Some(start..self.at);
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => return Some(start..self.at),
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Some(start..self.at);
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn found(text: &str) -> Option<String> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let range = member(&bytes, "metadata")?;
        Some(text[range].to_owned())
    }

    #[test]
    fn the_metadata_is_kept_as_it_was_sent() {
        for metadata in [
            r#"{"a":[1,{"b":"}\"]{"}], "c" : 1e400}"#,
            r#"{}"#,
            r#"[{"metadata":1}]"#,
            r#""te\\\"xt""#,
            "12345678901234567890.10",
            "null",
        ] {
            let before = r#"{ "metadata-location" : "m\"etadata\":", "x":[{"metadata":0}],"#;
            let text = format!("{before}\n\"metadata\" : {metadata}, \"config\":{{}}}}");
            assert_eq!(found(&text).unwrap().trim(), metadata, "{text}");
            assert!(metadata.contains("e400") || serde_json::from_str::<Json>(&text).is_ok());
        }
        assert_eq!(found(r#"{"metadata":{}}"#).unwrap(), "{}");
    }

    #[test]
    fn a_member_that_is_not_there_is_not_found() {
        for text in [
            "{}",
            r#"{"x":{"metadata":1}}"#,
            "",
            "{",
            r#"{"metadata""#,
            r#"{"a"#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
