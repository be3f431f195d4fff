//! How `object_store` sends its requests: through [`web::send`], which counts them, bounds them and tries again.
//!
//! `object_store`'s own attempts are switched off. Where the catalog signs requests, that happens here, anew for each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, HeaderName, HeaderValue, RANGE};
use reqwest::{Request, StatusCode, Url};

use super::listing::{self, element};
use crate::counters::Counters;
use crate::storage::RequestSigner;
use crate::storage::web::{self, Answer, Limits};

/// For how long a machine is asked whether it has credentials: most have none, and nothing answers.
const METADATA_PATIENCE: Duration = Duration::from_secs(3);

/// The last place where credentials might have been has none.
#[derive(Debug, thiserror::Error)]
#[error(
    "no credentials: neither the properties nor the environment have any, and this machine has no role in a cloud"
)]
struct NoCredentials;

/// Makes the requests of one store.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) limits: Limits,
    pub(super) counters: Arc<Counters>,
    pub(super) signer: Option<Signer>,
}

/// Signs in the catalog's name.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    pub(super) signer: Arc<dyn RequestSigner>,
    pub(super) region: String,
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(unknown)?;
        let is_listing = is_listing(&url);
        let mut limits = self.limits;
        let mut counters = Some(&*self.counters);
        let is_machine = is_machine_metadata(&url);
        if is_machine {
            limits.patience = limits.patience.min(METADATA_PATIENCE);
            counters = None;
        }
        let mut request = Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        if let Some(bytes) = body.as_bytes().filter(|bytes| !bytes.is_empty()) {
            *request.body_mut() = Some(bytes.clone().into());
        }
        if let Some(signer) = &self.signer {
            request = signer.signed(request).await?;
        }
        let range = request.headers().get(RANGE).cloned();
        let answer = web::send(request, limits, counters).await;
        if is_machine
            && !answer
                .as_ref()
                .is_ok_and(|answer| answer.status.is_success())
        {
            return Err(unknown(NoCredentials));
        }
        let mut answer = answer.map_err(unknown)?;
        if answer.status == StatusCode::OK
            && let Some(range) = range.as_ref().and_then(|range| range.to_str().ok())
        {
            cut(&mut answer, range);
        }
        let body = match answer.status.is_success() {
            true if is_listing => listing::without_strays(answer.body).into(),
            true => answer.body.into(),
            false => HttpResponseBody::from(summary(&answer.body)),
        };
        let mut response = HttpResponse::new(body);
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

impl Signer {
    async fn signed(&self, mut request: Request) -> Result<Request, HttpError> {
        let headers: Vec<(String, String)> = request
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect();
        let method = request.method().clone();
        let url = request.url().to_string();
        let signed = self
            .signer
            .sign(method.as_str(), &url, &self.region, &headers)
            .await
            .map_err(unknown)?;
        *request.url_mut() = Url::parse(&signed.url).map_err(unknown)?;
        let mut names = HeaderMap::new();
        for (name, value) in &signed.headers {
            let name: HeaderName = name.parse().map_err(unknown)?;
            let value: HeaderValue = value.parse().map_err(unknown)?;
            names.insert(name, value);
        }
        // The client sets it from the URL, which the signature holds for.
        names.remove(reqwest::header::HOST);
        request.headers_mut().extend(names);
        Ok(request)
    }
}

/// Makes what was asked for of a whole file: a server may send that instead of a range, and some do where the range
/// holds all of it. What is not in the file stays uncut, and is then refused.
fn cut(answer: &mut Answer, range: &str) {
    if answer.headers.contains_key(CONTENT_RANGE) {
        // A range after all, under the wrong status.
        answer.status = StatusCode::PARTIAL_CONTENT;
        return;
    }
    let Ok(size) = u64::try_from(answer.body.len()) else {
        return;
    };
    let bounds = range.strip_prefix("bytes=").and_then(|text| {
        let (first, last) = text.split_once('-')?;
        match (first, last) {
            ("", len) => Some(size.saturating_sub(len.parse().ok()?)..size),
            (first, "") => Some(first.parse().ok()?..size),
            (first, last) => {
                Some(first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?.min(size))
            }
        }
    });
    let Some(bounds) = bounds.filter(|bounds| bounds.start < bounds.end) else {
        return;
    };
    let (Ok(start), Ok(end)) = (usize::try_from(bounds.start), usize::try_from(bounds.end)) else {
        return;
    };
    let told = format!("bytes {}-{}/{size}", bounds.start, bounds.end - 1);
    if let Ok(told) = HeaderValue::from_str(&told) {
        answer.body = answer.body.slice(start..end);
        answer.headers.insert(CONTENT_RANGE, told);
        answer
            .headers
            .insert(CONTENT_LENGTH, HeaderValue::from(bounds.end - bounds.start));
        answer.status = StatusCode::PARTIAL_CONTENT;
    }
}

fn unknown(error: impl std::error::Error + Send + Sync + 'static) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, error)
}

/// Whether it is this machine that is asked, by an address that leads nowhere else.
fn is_machine_metadata(url: &Url) -> bool {
    url.host_str()
        .is_some_and(|host| host.starts_with("169.254.") || host == "metadata.google.internal")
}

/// Whether a store is asked what it holds.
fn is_listing(url: &Url) -> bool {
    let mut pairs = url.query_pairs();
    pairs.any(|(name, value)| name == "list-type" || (name == "comp" && value == "list"))
}

/// What a store says of a request it refuses: its code and message, without what it repeats of the request.
fn summary(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..4096.min(body.len())).unwrap_or_default());
    let element = |name: &str| Some(element(&text, name)?.trim().to_owned());
    let json = |name: &str| {
        let value: serde_json::Value = serde_json::from_slice(body).ok()?;
        let error = value.get("error").unwrap_or(&value);
        Some(error.get(name)?.to_string())
    };
    let code = element("Code").or_else(|| json("code"));
    let message = element("Message").or_else(|| json("message"));
    let message = message.map(|text| {
        let line = text.lines().next().unwrap_or_default();
        line.chars().take(300).collect::<String>()
    });
    match (code, message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => String::new(),
    }
}

/// What was wrong, as far as it says so without a URL.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    // An `io::Error` shows what it holds without naming it as its source.
    if let Some(error) = inner.downcast_ref::<io::Error>() {
        return error.to_string();
    }
    let text = inner.to_string();
    text.trim_start_matches("Server returned non-2xx status code: ")
        .trim_end_matches(": ")
        .to_owned()
}
