//! Questions to a catalog, asked as somebody, and once more where the catalog takes the asker's token for stale.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use url::Url;

use crate::catalog::CatalogError;
use crate::storage::web::Answer;

use super::auth::Auth;
use super::names::with_query;
use super::tokens;
use super::transport::Transport;

/// `419`: "Authentication timeout", as the REST definition has it.
const AUTHENTICATION_TIMEOUT: u16 = 419;

/// A catalog that is spoken to.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) transport: Arc<Transport>,
    pub(super) auth: Auth,
}

/// One request.
#[derive(Debug)]
pub(super) struct Question<'q> {
    pub(super) method: Method,
    pub(super) url: Url,
    /// Not encoded.
    pub(super) query: &'q [(&'q str, &'q str)],
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON.
    pub(super) body: Option<Bytes>,
    /// A token of the table's own, in place of the catalog's.
    pub(super) token: Option<&'q str>,
}

impl<'q> Question<'q> {
    pub(super) fn get(url: Url, query: &'q [(&'q str, &'q str)]) -> Self {
        Self {
            method: Method::GET,
            url,
            query,
            headers: Vec::new(),
            body: None,
            token: None,
        }
    }
}

impl Session {
    /// The catalog's answer, of any status.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Answer, CatalogError> {
        let own = question
            .token
            .map(|token| tokens::bearer(token, &self.transport))
            .transpose()?;
        let held = self.auth.bearer(&self.transport).await?;
        let first = own
            .clone()
            .or_else(|| held.as_ref().map(|held| held.header.clone()));
        let answer = self.send(question, first).await?;
        if !is_stale(answer.status) {
            return Ok(answer);
        }
        // A table's token that has run out leaves the catalog's.
        let other = match (own, held) {
            (Some(_), held) => held,
            (None, held) => {
                self.auth
                    .after_refusal(held.as_ref(), &self.transport)
                    .await?
            }
        };
        match other {
            Some(other) => self.send(question, Some(other.header)).await,
            None => Ok(answer),
        }
    }

    async fn send(
        &self,
        question: &Question<'_>,
        token: Option<HeaderValue>,
    ) -> Result<Answer, CatalogError> {
        let url = with_query(question.url.clone(), question.query);
        let mut request = self.transport.request(question.method.clone(), url);
        let headers = request.headers_mut();
        for (name, value) in &question.headers {
            // What the user has set for all requests stands.
            if !headers.contains_key(name) {
                headers.insert(name.clone(), value.clone());
            }
        }
        if let Some(body) = &question.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.clone().into());
        }
        self.auth
            .authorize(&mut request, token, &self.transport)
            .await?;
        self.transport.send(request).await
    }
}

/// Whether the asker is unknown: perhaps only because of the time that has passed.
fn is_stale(status: StatusCode) -> bool {
    status == StatusCode::UNAUTHORIZED || status.as_u16() == AUTHENTICATION_TIMEOUT
}
