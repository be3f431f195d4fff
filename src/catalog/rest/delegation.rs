//! What a catalog lends for the stores of one table: credentials, given anew when they run out, or its signature.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use reqwest::Method;
use reqwest::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use url::Url;

use crate::catalog::{CatalogError, TableIdent};
use crate::storage::{
    PrefixedProperties, Properties, Renewal, RequestSigner, SignedRequest, Signing, StorageError,
};

use super::configuration::{Endpoint, texts};
use super::load;
use super::names;
use super::session::Question;
use super::{Service, with_blocking};

/// Signatures that may be used again are, for so long and so many of them: as Java does.
const SIGNATURE_LIFETIME: Duration = Duration::from_secs(30);
const MAX_SIGNATURES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(99);

/// Where signatures are asked for when neither the table nor the list of endpoints says so.
const OLD_SIGN_PATH: &str = "v1/aws/s3/sign";

/// Properties that are credentials, to which something may follow.
const CREDENTIALS: [&str; 6] = [
    "s3.access-key-id",
    "s3.session-token",
    "gcs.oauth2.token",
    "adls.sas-token",
    "adls.auth.shared-key",
    "adls.account-key",
];

/// `storage-credentials`, in what a table is loaded as and alone.
#[derive(Deserialize)]
pub(super) struct StorageCredential {
    prefix: String,
    config: Option<Map<String, Json>>,
}

/// What a catalog lends: those with a prefix, and where there are none those among the table's own configuration.
pub(super) fn credentials(
    lent: Vec<StorageCredential>,
    config: &Properties,
) -> Vec<PrefixedProperties> {
    let mut credentials: Vec<PrefixedProperties> = lent
        .into_iter()
        .map(|lent| PrefixedProperties {
            prefix: lent.prefix,
            properties: texts(lent.config),
        })
        .collect();
    if credentials.is_empty() && config.0.keys().any(|name| is_credential(name)) {
        credentials.push(PrefixedProperties {
            prefix: String::new(),
            properties: config.clone(),
        });
    }
    credentials
}

fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|known| name.starts_with(known))
}

/// Asks the catalog for a table's credentials again.
pub(super) struct Grants {
    pub(super) service: Arc<Service>,
    pub(super) ident: TableIdent,
    pub(super) token: Option<String>,
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Grants").field(&self.ident).finish()
    }
}

impl Renewal for Grants {
    fn renew(&self) -> Result<Vec<PrefixedProperties>, StorageError> {
        with_blocking(&self.service.name, self.ask()).map_err(|error| failed(&self.ident, &error))
    }
}

impl Grants {
    async fn ask(&self) -> Result<Vec<PrefixedProperties>, CatalogError> {
        let service = &self.service;
        if !service.configuration.has(Endpoint::LoadCredentials) {
            // Loading the table lends anew.
            let loaded = load::ask(service, &self.ident, None).await?;
            return match loaded {
                load::Answered::Loaded(loaded) => Ok(loaded.credentials),
                load::Answered::Missing | load::Answered::Unchanged => {
                    Err(service.transport().wrong("the table is gone"))
                }
            };
        }
        #[derive(Deserialize)]
        struct Lent {
            #[serde(rename = "storage-credentials")]
            credentials: Vec<StorageCredential>,
        }
        let mut question = Question::get(service.paths.credentials(&self.ident)?, &[]);
        question.headers = service.delegation_header();
        question.token = self.token.as_deref();
        let answer = service.session.ask(&question).await?;
        let what = "the table's credentials were asked for";
        if !answer.status.is_success() {
            return Err(service.transport().refusal(what, &answer));
        }
        let lent: Lent = serde_json::from_slice(&answer.body)
            // Without what is there.
            .map_err(|_| {
                service
                    .transport()
                    .wrong(format!("{what}: the answer holds none"))
            })?;
        Ok(credentials(lent.credentials, &Properties::default()))
    }
}

/// `remote-signing-config`: what goes along with each request for a signature.
#[derive(Clone, Default, Deserialize)]
pub(super) struct SigningConfig {
    properties: Option<Map<String, Json>>,
    headers: Option<Map<String, Json>>,
}

/// Has requests to S3 signed by the catalog.
pub(super) struct Signer {
    service: Arc<Service>,
    ident: TableIdent,
    url: Url,
    token: Option<String>,
    properties: Option<Map<String, Json>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    kept: Mutex<LruCache<SignatureKey, (Instant, SignedRequest)>>,
}

/// Method, region and URL.
type SignatureKey = (String, String, String);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.ident).finish()
    }
}

#[derive(Serialize)]
struct SignQuestion<'q> {
    region: &'q str,
    uri: &'q str,
    method: &'q str,
    headers: Map<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<&'q Map<String, Json>>,
    provider: &'static str,
}

#[derive(Deserialize)]
struct SignAnswer {
    uri: String,
    headers: Map<String, Json>,
}

impl Signer {
    /// The signer of a table, of whose configuration (the catalog's below it) `properties` are.
    pub(super) fn new(
        service: &Arc<Service>,
        ident: &TableIdent,
        properties: &Properties,
        config: Option<SigningConfig>,
        token: Option<String>,
    ) -> Result<Self, CatalogError> {
        let given = |names: [&str; 2]| names.into_iter().find_map(|name| properties.get(name));
        let path = given(["s3.signer.endpoint", "signer.endpoint"]);
        let host = given(["s3.signer.uri", "signer.uri"]);
        let wrong = |reason: &str| service.transport().wrong(format!("signer.uri: {reason}"));
        let base = match host {
            Some(host) => Url::parse(host).map_err(|error| wrong(&error.to_string()))?,
            None => service.base.clone(),
        };
        let standard = service.configuration.has(Endpoint::Sign) || config.is_some();
        let url = match path {
            Some(path) if path.starts_with("http://") || path.starts_with("https://") => {
                Url::parse(path)
            }
            Some(path) => Url::parse(&names::endpoint(&base, path)),
            None if host.is_none() && standard => Ok(service.paths.sign(ident)?),
            None => Url::parse(&names::endpoint(&base, OLD_SIGN_PATH)),
        }
        .map_err(|error| wrong(&error.to_string()))?;
        if service.base.scheme() == "https" && url.scheme() != "https" {
            return Err(wrong("the catalog's token is not sent in the clear"));
        }
        let config = config.unwrap_or_default();
        let mut headers = Vec::new();
        for (name, values) in config.headers.unwrap_or_default() {
            let value = HeaderValue::from_str(&list(&values).join(", "));
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
                headers.push((name, value));
            }
        }
        Ok(Self {
            service: Arc::clone(service),
            ident: ident.clone(),
            url,
            token,
            properties: config.properties,
            headers,
            kept: Mutex::new(LruCache::new(MAX_SIGNATURES)),
        })
    }

    async fn signed(
        &self,
        method: &str,
        url: &str,
        region: &str,
        headers: &[(String, String)],
    ) -> Result<SignedRequest, CatalogError> {
        let key = (method.to_owned(), region.to_owned(), url.to_owned());
        if let Some(kept) = self.kept(&key) {
            return Ok(completed(kept, headers));
        }
        let transport = self.service.transport();
        let what = "a signature was asked for";
        let mut sent: Map<String, Json> = Map::new();
        for (name, value) in headers {
            let values = sent
                .entry(name.clone())
                .or_insert_with(|| Json::Array(Vec::new()));
            if let Json::Array(values) = values {
                values.push(Json::String(value.clone()));
            }
        }
        let body = serde_json::to_vec(&SignQuestion {
            region,
            uri: url,
            method,
            headers: sent,
            properties: self.properties.as_ref(),
            provider: "s3",
        })
        .map_err(|error| transport.wrong(error.to_string()))?;
        let question = Question {
            method: Method::POST,
            url: self.url.clone(),
            query: &[],
            headers: self.headers.clone(),
            body: Some(body.into()),
            token: self.token.as_deref(),
        };
        let answer = self.service.session.ask(&question).await?;
        if !answer.status.is_success() {
            return Err(transport.refusal(what, &answer));
        }
        let signed: SignAnswer = serde_json::from_slice(&answer.body)
            .map_err(|_| transport.wrong(format!("{what}: the answer holds none")))?;
        let signed = SignedRequest {
            url: signed.uri,
            headers: signed
                .headers
                .iter()
                .filter(|(name, _)| !name.eq_ignore_ascii_case(CACHE_CONTROL.as_str()))
                .map(|(name, values)| (name.clone(), list(values).join(", ")))
                .collect(),
        };
        let private = answer.headers.get(CACHE_CONTROL);
        if private.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"private"))
            && !signs_range(&signed)
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.put(key, (Instant::now(), signed.clone()));
        }
        Ok(completed(signed, headers))
    }

    fn kept(&self, key: &SignatureKey) -> Option<SignedRequest> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, signed) = kept.get(key)?;
        (made.elapsed() < SIGNATURE_LIFETIME).then(|| signed.clone())
    }
}

impl RequestSigner for Signer {
    fn sign<'s>(
        &'s self,
        method: &'s str,
        url: &'s str,
        region: &'s str,
        headers: &'s [(String, String)],
    ) -> Signing<'s> {
        Box::pin(async move {
            let signed = self.signed(method, url, region, headers).await;
            signed.map_err(|error| failed(&self.ident, &error))
        })
    }
}

/// A signature's headers, with those of the request: each as the request has it where both have it.
fn completed(signed: SignedRequest, own: &[(String, String)]) -> SignedRequest {
    let is_own = |name: &str| {
        own.iter()
            .any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    let mut headers: Vec<(String, String)> = signed
        .headers
        .into_iter()
        .filter(|(name, _)| !is_own(name))
        .collect();
    headers.extend(own.iter().cloned());
    SignedRequest {
        url: signed.url,
        headers,
    }
}

/// Whether a signature is good for one range of a file only.
fn signs_range(signed: &SignedRequest) -> bool {
    let mut headers = signed.headers.iter();
    headers.any(|(name, value)| {
        name.eq_ignore_ascii_case("authorization")
            && value
                .split("SignedHeaders=")
                .nth(1)
                .and_then(|rest| rest.split(',').next())
                .is_some_and(|names| names.split(';').any(|name| name.trim() == "range"))
    })
}

/// The texts of an array, or a text alone.
fn list(values: &Json) -> Vec<&str> {
    match values {
        Json::Array(values) => values.iter().filter_map(Json::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

fn failed(ident: &TableIdent, error: &CatalogError) -> StorageError {
    StorageError::Io {
        path: format!("{}.{}", ident.namespace.join("."), ident.name),
        source: io::Error::other(error.to_string()),
    }
}
