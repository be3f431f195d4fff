//! How questions reach a catalog's servers: what every request carries, how long an answer is waited for, and what is
//! said of an answer that is none.
//!
//! Whatever a server says goes through [`Transport::scrubbed`] before it stands in an error: it may repeat what it was sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Request, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::catalog::{CatalogError, MAX_MESSAGE};
use crate::counters::Counters;
use crate::storage::Properties;
use crate::storage::web::{self, Answer, Limits, WebError};

/// How long a catalog may take to answer a question, in milliseconds.
pub(super) const TIMEOUT_PROPERTY: &str = "rest.timeout-ms";

/// Where that is not set: what an interactive program bears, and what a restarting server mostly needs.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long it is waited to hear whether a server is there at all.
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);

/// Properties that are sent as headers with each request.
const HEADER_PREFIX: &str = "header.";

/// Properties whose values are secret, besides those that are headers.
const SECRETS: [&str; 6] = [
    "credential",
    "token",
    "rest.auth.basic.password",
    "rest.secret-access-key",
    "rest.session-token",
    "client.secret-access-key",
];

/// Bytes of an answer: a table's metadata may have tens of megabytes, a listing has less.
const MAX_BODY: u64 = 512 << 20;

/// Sends requests to one catalog.
pub(super) struct Transport {
    /// The catalog's, for messages.
    name: String,
    headers: HeaderMap,
    secrets: Vec<String>,
    limits: Limits,
    counters: Arc<Counters>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Transport {
    /// What the properties say about requests.
    ///
    /// # Errors
    /// A property that makes no header, or no time.
    pub(super) fn new(
        name: &str,
        properties: &Properties,
        counters: &Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let wrong = |property: &str, reason: &str| CatalogError::Configuration {
            catalog: name.to_owned(),
            reason: format!("{property}: {reason}"),
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(
            "x-client-version",
            HeaderValue::from_static(concat!("bergfs/", env!("CARGO_PKG_VERSION"))),
        );
        let mut secrets = Vec::new();
        for (property, value) in &properties.0 {
            if let Some(header) = property.strip_prefix(HEADER_PREFIX) {
                let header = HeaderName::from_bytes(header.as_bytes());
                let header = header.map_err(|_| wrong(property, "names no HTTP header"))?;
                let sent = secret_value(value);
                headers.insert(
                    header,
                    sent.ok_or_else(|| wrong(property, "has characters that no header has"))?,
                );
            } else if !SECRETS.contains(&property.as_str()) {
                continue;
            }
            secrets.push(value.clone());
            // `id:secret`: the second part alone is one too.
            secrets.extend(value.split_once(':').map(|(_, secret)| secret.to_owned()));
        }
        // The longer first, lest a part hide the whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let patience = match properties.get(TIMEOUT_PROPERTY) {
            None => DEFAULT_TIMEOUT,
            Some(text) => text
                .trim()
                .parse()
                .map(Duration::from_millis)
                .map_err(|_| wrong(TIMEOUT_PROPERTY, "expected a number of milliseconds"))?,
        };
        Ok(Self {
            name: name.to_owned(),
            headers,
            secrets,
            limits: Limits {
                patience,
                max_body: MAX_BODY,
                temporary: is_temporary,
            },
            counters: Arc::clone(counters),
        })
    }

    /// The catalog's name, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A request with the headers that all have.
    pub(super) fn request(&self, method: Method, url: Url) -> Request {
        let mut request = Request::new(method, url);
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request until it is answered. An answer of any status is one.
    ///
    /// # Errors
    /// [`CatalogError::Unreachable`] where there is none in time.
    pub(super) async fn send(&self, request: Request) -> Result<Answer, CatalogError> {
        self.send_within(request, self.limits).await
    }

    /// Sends a request, and does not wait long for the answer.
    pub(super) async fn send_briefly(&self, request: Request) -> Result<Answer, CatalogError> {
        let limits = Limits {
            patience: self.limits.patience.min(SHORT_TIMEOUT),
            temporary: |_| false,
            ..self.limits
        };
        self.send_within(request, limits).await
    }

    async fn send_within(&self, request: Request, limits: Limits) -> Result<Answer, CatalogError> {
        self.counters.catalog_requests.add(1);
        web::send(request, limits, None)
            .await
            .map_err(|error| match error {
                // Without its times and counts, which would make each outage another.
                WebError::Unanswered { reason, .. } => self.unreachable(reason),
                other => self.unreachable(other.to_string()),
            })
    }

    fn unreachable(&self, reason: String) -> CatalogError {
        CatalogError::Unreachable {
            catalog: self.name.clone(),
            reason: self.scrubbed(&reason),
        }
    }

    /// The error that an answer means which is not what was asked for. `what` was asked.
    pub(super) fn refusal(&self, what: &str, answer: &Answer) -> CatalogError {
        let status = answer.status;
        let mut reason = format!("{what}: HTTP {}", status.as_u16());
        if let Some(phrase) = status.canonical_reason() {
            reason.push(' ');
            reason.push_str(phrase);
        }
        if let Some(said) = message(&answer.body) {
            reason.push_str(": ");
            reason.push_str(&self.scrubbed(&said));
        }
        if is_temporary(status) {
            CatalogError::Unreachable {
                catalog: self.name.clone(),
                reason,
            }
        } else {
            self.wrong(reason)
        }
    }

    /// The error that a catalog answers what makes no sense.
    pub(super) fn wrong(&self, reason: impl Into<String>) -> CatalogError {
        CatalogError::Answer {
            catalog: self.name.clone(),
            reason: reason.into(),
        }
    }

    /// A text without the secrets among the properties, and no longer than a message should be.
    pub(super) fn scrubbed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // What is shorter is no secret, and may stand in any word.
        for secret in self.secrets.iter().filter(|secret| secret.len() >= 6) {
            text = text.replace(secret.as_str(), "***");
        }
        match text.char_indices().nth(MAX_MESSAGE) {
            None => text,
            Some((end, _)) => format!("{} …", &text[..end]),
        }
    }
}

/// A header's value that is not shown. `None`: it cannot be one.
pub(super) fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Whether the same question may be answered in a while. Not 500, which catalogs answer for tables that they cannot load.
pub(super) fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

/// Iceberg's error model, and OAuth's.
#[derive(Deserialize)]
struct ErrorModel {
    error: ErrorBody,
    error_description: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorBody {
    Iceberg {
        message: Option<String>,
        #[serde(rename = "type")]
        kind: Option<String>,
    },
    OAuth(String),
}

/// What a body says went wrong, where it is of a known form.
fn message(body: &[u8]) -> Option<String> {
    let model: ErrorModel = serde_json::from_slice(body).ok()?;
    let parts: Vec<String> = match model.error {
        ErrorBody::Iceberg { message, kind } => [kind, message].into_iter().flatten().collect(),
        ErrorBody::OAuth(code) => [Some(code), model.error_description]
            .into_iter()
            .flatten()
            .collect(),
    };
    let text = parts.join(": ");
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    (!text.is_empty()).then_some(text)
}

/// Whether a 404 is a catalog's own word, and not that of something on the way which knows no such path.
pub(super) fn is_catalogs_word(answer: &Answer) -> bool {
    answer.body.is_empty() || serde_json::from_slice::<ErrorModel>(&answer.body).is_ok()
}
