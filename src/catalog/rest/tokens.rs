//! The bearer token that requests carry, kept fresh.
//!
//! It comes from the client's credential (OAuth2's client credentials flow) or was given as it is. It is asked for anew
//! a while before it runs out, and once after a server has refused it: by the credential again, or, where there is none, in
//! exchange for the token itself (RFC 8693). An exchange needs a token that is still good, so it is not left to the next
//! request, which may be days away, but made in time by a task that ends with the catalog.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use crate::catalog::CatalogError;
use crate::storage::Properties;
use crate::storage::web;

use super::names::{encode, endpoint};
use super::transport::{Transport, secret_value};

/// Where tokens are asked for, unless `oauth2-server-uri` says so. Deprecated, and what most catalogs have.
const DEFAULT_ENDPOINT: &str = "v1/oauth/tokens";
const DEFAULT_SCOPE: &str = "catalog";

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// A token is asked for anew when a tenth of its life is left, or so much.
const LONGEST_MARGIN: Duration = Duration::from_secs(300);

/// How long a token that could not be had anew is used on, while it lasts.
const RETRY: Duration = Duration::from_secs(30);

/// The tokens of one catalog.
pub(super) struct Tokens {
    settings: Settings,
    held: Mutex<Held>,
}

/// How tokens are asked for.
#[derive(Clone, PartialEq, Eq)]
struct Settings {
    endpoint: String,
    credential: Option<Credential>,
    scope: String,
    audience: Option<String>,
    resource: Option<String>,
    /// `token-refresh-enabled`
    refreshes: bool,
    /// `token-exchange-enabled`
    exchanges: bool,
}

#[derive(Clone, PartialEq, Eq)]
struct Credential {
    id: Option<String>,
    secret: String,
}

impl Credential {
    /// `id:secret`, or a secret alone.
    fn parse(text: &str) -> Self {
        let (id, secret) = match text.split_once(':') {
            Some((id, secret)) => (Some(id.trim().to_owned()), secret),
            None => (None, text),
        };
        Self {
            id,
            secret: secret.trim().to_owned(),
        }
    }
}

#[derive(Clone, Default)]
struct Held {
    token: Option<String>,
    /// What was issued, as the server named it.
    kind: Option<String>,
    refresh_at: Option<SystemTime>,
    expires: Option<SystemTime>,
    /// Counts the tokens there have been.
    generation: u64,
}

/// A token, and which of those there have been it is.
#[derive(Clone)]
pub(super) struct Bearer {
    pub(super) header: HeaderValue,
    pub(super) generation: u64,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    issued_token_type: Option<String>,
    /// Seconds.
    expires_in: Option<f64>,
}

impl Tokens {
    /// What the properties say: a `credential`, or a `token`. No token is asked for yet.
    pub(super) fn new(properties: &Properties, base: &Url) -> Self {
        let given = |name| properties.get(name).filter(|value| !value.is_empty());
        let flag = |name| given(name).is_none_or(|value| !value.eq_ignore_ascii_case("false"));
        let server = given("oauth2-server-uri").unwrap_or(DEFAULT_ENDPOINT);
        let absolute = server.starts_with("http://") || server.starts_with("https://");
        let settings = Settings {
            endpoint: if absolute {
                server.to_owned()
            } else {
                endpoint(base, server)
            },
            credential: given("credential").map(Credential::parse),
            // An empty one is meant: some servers know no scopes.
            scope: properties.get("scope").unwrap_or(DEFAULT_SCOPE).to_owned(),
            audience: given("audience").map(str::to_owned),
            resource: given("resource").map(str::to_owned),
            refreshes: flag("token-refresh-enabled"),
            exchanges: flag("token-exchange-enabled"),
        };
        let mut held = Held::default();
        if let Some(token) = given("token") {
            let said = properties.get("token-expires-in-ms");
            let said = said.and_then(|text| Some(Duration::from_millis(text.trim().parse().ok()?)));
            held.take(token.to_owned(), None, lifetime(token).or(said));
        }
        Self {
            settings,
            held: Mutex::new(held),
        }
    }

    /// The token that `other` has had, where it was asked for in the same way.
    pub(super) async fn carry_over(&self, other: &Self) {
        if self.settings.credential.is_some()
            && self.settings.credential == other.settings.credential
        {
            *self.held.lock().await = other.held.lock().await.clone();
        }
    }

    /// Exchanges a token that nothing else can renew, again and again, for as long as somebody holds `self`.
    pub(super) fn keep_exchanged(self: &Arc<Self>, transport: &Arc<Transport>) {
        if self.settings.credential.is_some() || !self.renewable() {
            return;
        }
        let (tokens, transport) = (Arc::downgrade(self), Arc::clone(transport));
        if let Err(error) = web::spawn(exchange_in_time(tokens, transport)) {
            tracing::warn!(%error, "the token will not be renewed");
        }
    }

    /// The token to send now. `None`: there is none.
    pub(super) async fn current(
        &self,
        transport: &Transport,
    ) -> Result<Option<Bearer>, CatalogError> {
        let mut held = self.held.lock().await;
        if held.generation == 0 && self.settings.credential.is_some() {
            self.renew(&mut held, transport).await?;
        } else if held.is_due()
            && self.renewable()
            && let Err(error) = self.renew(&mut held, transport).await
        {
            let now = SystemTime::now();
            if held.expires.is_none_or(|expires| expires <= now) {
                return Err(error);
            }
            // A server that says no will say it again: not every one exchanges tokens.
            let again = matches!(error, CatalogError::Unreachable { .. });
            held.refresh_at = now.checked_add(RETRY).filter(|_| again);
            tracing::warn!(%error, again, "the token could not be renewed, and is used on");
        }
        held.bearer(transport)
    }

    /// After a server has refused a token: another, where one can be had. `None`: asking again is of no use.
    pub(super) async fn after_refusal(
        &self,
        refused: &Bearer,
        transport: &Transport,
    ) -> Result<Option<Bearer>, CatalogError> {
        let mut held = self.held.lock().await;
        // Else somebody has had it renewed since.
        if held.generation == refused.generation {
            // A token that was refused is good for no exchange.
            if self.settings.credential.is_none() || !self.settings.refreshes {
                return Ok(None);
            }
            self.renew(&mut held, transport).await?;
        }
        held.bearer(transport)
    }

    fn renewable(&self) -> bool {
        self.settings.refreshes && (self.settings.credential.is_some() || self.settings.exchanges)
    }

    async fn renew(&self, held: &mut Held, transport: &Transport) -> Result<(), CatalogError> {
        let settings = &self.settings;
        let mut form: Vec<(&str, &str)> = Vec::new();
        let authorization = match (&settings.credential, &held.token) {
            (Some(credential), token) => {
                form.push(("grant_type", "client_credentials"));
                if let Some(id) = &credential.id {
                    form.push(("client_id", id));
                }
                form.push(("client_secret", &credential.secret));
                // A token that was given beside the credential is what the server knows the client by at first.
                token.as_ref().filter(|_| held.generation == 0)
            }
            (None, Some(token)) => {
                form.push(("grant_type", TOKEN_EXCHANGE));
                form.push(("subject_token", token));
                form.push((
                    "subject_token_type",
                    held.kind.as_deref().unwrap_or(ACCESS_TOKEN),
                ));
                Some(token)
            }
            (None, None) => return Ok(()),
        };
        if !settings.scope.is_empty() {
            form.push(("scope", &settings.scope));
        }
        let optional = [
            ("audience", &settings.audience),
            ("resource", &settings.resource),
        ];
        form.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_deref()?))),
        );
        let answer = self.ask(&form, authorization, transport).await?;
        let lasts = answer.expires_in.filter(|seconds| *seconds > 0.0);
        let lasts = lasts
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .or_else(|| lifetime(&answer.access_token));
        held.take(answer.access_token, answer.issued_token_type, lasts);
        held.generation += 1;
        tracing::debug!(catalog = transport.name(), lasts = ?lasts, "a token was issued");
        Ok(())
    }

    async fn ask(
        &self,
        form: &[(&str, &str)],
        authorization: Option<&String>,
        transport: &Transport,
    ) -> Result<TokenAnswer, CatalogError> {
        let what = "a token was asked for";
        let url = Url::parse(&self.settings.endpoint)
            .map_err(|error| transport.wrong(format!("oauth2-server-uri: {error}")))?;
        let mut request = transport.request(Method::POST, url);
        let form: Vec<String> = form
            .iter()
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
        *request.body_mut() = Some(form.join("&").into());
        let headers = request.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        if let Some(token) = authorization {
            headers.insert(AUTHORIZATION, bearer(token, transport)?);
        }
        let answer = transport.send(request).await?;
        if !answer.status.is_success() {
            return Err(transport.refusal(what, &answer));
        }
        serde_json::from_slice(&answer.body)
            // Without what is there, which may be a token.
            .map_err(|_| transport.wrong(format!("{what}: the answer holds none")))
    }
}

impl Held {
    fn take(&mut self, token: String, kind: Option<String>, lasts: Option<Duration>) {
        let now = SystemTime::now();
        self.token = Some(token);
        self.kind = kind;
        self.expires = lasts.and_then(|lasts| now.checked_add(lasts));
        self.refresh_at =
            lasts.and_then(|lasts| now.checked_add(lasts - (lasts / 10).min(LONGEST_MARGIN)));
    }

    fn is_due(&self) -> bool {
        self.refresh_at.is_some_and(|at| at <= SystemTime::now())
    }

    fn bearer(&self, transport: &Transport) -> Result<Option<Bearer>, CatalogError> {
        let Some(token) = &self.token else {
            return Ok(None);
        };
        Ok(Some(Bearer {
            header: bearer(token, transport)?,
            generation: self.generation,
        }))
    }
}

/// A token as a header.
pub(super) fn bearer(token: &str, transport: &Transport) -> Result<HeaderValue, CatalogError> {
    secret_value(&format!("Bearer {token}"))
        .ok_or_else(|| transport.wrong("the token has characters that no header has"))
}

/// How long a token lasts from now on, where it is a JWT that says so. By this machine's clock, which may be wrong: one
/// that seems to have run out says nothing.
fn lifetime(token: &str) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        /// Seconds since 1970.
        exp: f64,
    }
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let claims: Claims = serde_json::from_slice(&base64url(claims)?).ok()?;
    let exp = Duration::try_from_secs_f64(claims.exp).ok()?;
    let left = SystemTime::UNIX_EPOCH
        .checked_add(exp)?
        .duration_since(SystemTime::now())
        .ok()?;
    (!left.is_zero()).then_some(left)
}

/// Base 64 in the alphabet of URLs, padded or not.
fn base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.trim_end_matches('=').bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xFF).ok()?);
        }
    }
    Some(bytes)
}

/// Renews the token whenever it is due.
async fn exchange_in_time(tokens: Weak<Tokens>, transport: Arc<Transport>) {
    loop {
        let wait = {
            let Some(tokens) = tokens.upgrade() else {
                return;
            };
            // Renews what is due, as a request would.
            if let Err(error) = tokens.current(&transport).await {
                tracing::warn!(%error, "the token has run out and could not be renewed");
                return;
            }
            let Some(at) = tokens.held.lock().await.refresh_at else {
                return;
            };
            at.duration_since(SystemTime::now()).unwrap_or_default()
        };
        // Not longer, since the machine may sleep meanwhile; not shorter, whatever the server says.
        tokio::time::sleep(wait.clamp(Duration::from_secs(1), Duration::from_secs(60))).await;
    }
}

#[cfg(test)]
impl Tokens {
    /// As if the time to renew had come, or also the token's end.
    pub(super) async fn grow_old(&self, expired: bool) {
        let mut held = self.held.lock().await;
        held.refresh_at = Some(SystemTime::UNIX_EPOCH);
        if expired {
            held.expires = Some(SystemTime::UNIX_EPOCH);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn base64url_is_read_padded_or_not() {
        // RFC 4648, section 10, and the two characters of its own.
        for (text, bytes) in [
            ("", ""),
            ("Zg", "f"),
            ("Zg==", "f"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(base64url(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(base64url("-_8").unwrap(), [0xFB, 0xFF]);
        assert!(base64url("a+b").is_none());
    }

    #[test]
    fn a_jwt_says_how_long_it_lasts_and_other_tokens_do_not() {
        // {"exp":4102444800}: the first second of 2100.
        let jwt = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(4_102_444_800);
        let expected = until.duration_since(SystemTime::now()).unwrap();
        let left = lifetime(jwt).unwrap();
        assert!(left.abs_diff(expected) < Duration::from_secs(60));
        // {"exp":1}: run out, or this machine's clock is wrong.
        assert_eq!(lifetime("e30.eyJleHAiOjF9.c2ln"), None);
        for token in [
            "opaque",
            "a.b",
            "e30.e30.c2ln",
            "a.b.c.d",
            "..",
            "e30.!.c2ln",
        ] {
            assert_eq!(lifetime(token), None, "{token}");
        }
    }
}
