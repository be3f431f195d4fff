//! Who asks: what a request carries so that the catalog answers it.

use std::fmt;
use std::sync::Arc;

use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use url::Url;

use crate::catalog::CatalogError;
use crate::storage::Properties;

use super::sigv4::SigV4;
use super::tokens::{Bearer, Tokens};
use super::transport::{Transport, secret_value};

/// Where the delegate's `Authorization` goes when another is needed for the signature.
const RELOCATED: HeaderName = HeaderName::from_static("original-authorization");

/// How requests are authenticated.
pub(super) struct Auth {
    bearer: Option<Arc<Tokens>>,
    /// Of `basic`.
    fixed: Option<HeaderValue>,
    signature: Option<SigV4>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth")
    }
}

impl Auth {
    /// What the properties say: `rest.auth.type`, or the older ways to mean the same.
    ///
    /// # Errors
    /// A kind that is not supported, or one that lacks what it needs.
    pub(super) fn new(
        properties: &Properties,
        base: &Url,
        catalog: &str,
    ) -> Result<Self, CatalogError> {
        let wrong = |reason: &str| CatalogError::Configuration {
            catalog: catalog.to_owned(),
            reason: reason.to_owned(),
        };
        let is_true = |name| matches!(properties.get(name), Some(value) if value.eq_ignore_ascii_case("true"));
        let named = properties
            .get("rest.auth.type")
            .map(str::to_ascii_lowercase);
        let implied = || {
            let has = |name| properties.get(name).is_some_and(|value| !value.is_empty());
            let oauth = has("credential") || has("token");
            if oauth { "oauth2" } else { "none" }.to_owned()
        };
        let mut kind = named.unwrap_or_else(implied);
        let signature = if is_true("rest.sigv4-enabled") || kind == "sigv4" {
            let delegate = properties.get("rest.auth.sigv4.delegate-auth-type");
            kind = delegate.map_or_else(implied, str::to_ascii_lowercase);
            Some(SigV4::new(properties, catalog)?)
        } else {
            None
        };
        let (mut bearer, mut fixed) = (None, None);
        match kind.as_str() {
            "none" => {}
            "oauth2" => bearer = Some(Arc::new(Tokens::new(properties, base))),
            "basic" => {
                let get = |name| properties.get(name).unwrap_or_default();
                let user = get("rest.auth.basic.username");
                let password = get("rest.auth.basic.password");
                let text = format!("{user}:{password}");
                let value = secret_value(&format!("Basic {}", base64(text.as_bytes())));
                fixed = Some(value.ok_or_else(|| wrong("rest.auth.basic.username: no header"))?);
            }
            other => {
                return Err(CatalogError::Unsupported {
                    catalog: catalog.to_owned(),
                    feature: format!(
                        "rest.auth.type {other:?} (none, basic, oauth2 and sigv4 are)"
                    ),
                });
            }
        }
        Ok(Self {
            bearer,
            fixed,
            signature,
        })
    }

    /// Takes over from `first`, which asked for the catalog's configuration.
    pub(super) async fn follow(&self, first: &Self, transport: &Arc<Transport>) {
        if let (Some(tokens), Some(before)) = (&self.bearer, &first.bearer) {
            tokens.carry_over(before).await;
        }
        if let Some(tokens) = &self.bearer {
            tokens.keep_exchanged(transport);
        }
    }

    /// The token to send now, where requests carry one.
    pub(super) async fn bearer(
        &self,
        transport: &Transport,
    ) -> Result<Option<Bearer>, CatalogError> {
        match &self.bearer {
            Some(tokens) => tokens.current(transport).await,
            None => Ok(None),
        }
    }

    /// Another token after the server has refused one. `None`: asking again is of no use.
    pub(super) async fn after_refusal(
        &self,
        refused: Option<&Bearer>,
        transport: &Transport,
    ) -> Result<Option<Bearer>, CatalogError> {
        match (&self.bearer, refused) {
            (Some(tokens), Some(refused)) => tokens.after_refusal(refused, transport).await,
            _ => Ok(None),
        }
    }

    /// Puts into a request what it needs. `own` stands before the catalog's token.
    pub(super) async fn authorize(
        &self,
        request: &mut Request,
        own: Option<HeaderValue>,
        transport: &Transport,
    ) -> Result<(), CatalogError> {
        let authorization = own.or_else(|| self.fixed.clone());
        let headers = request.headers_mut();
        // A header that the user has set stands.
        if let Some(value) = authorization
            && !headers.contains_key(AUTHORIZATION)
        {
            headers.insert(AUTHORIZATION, value);
        }
        if let Some(signature) = &self.signature {
            if let Some(value) = headers.remove(AUTHORIZATION) {
                headers.insert(RELOCATED, value);
            }
            signature.sign(request, transport).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Auth {
    /// The tokens, to let time pass over them.
    pub(super) fn tokens(&self) -> &Tokens {
        #[allow(clippy::expect_used)]
        self.bearer.as_deref().expect("no tokens")
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = 0_u32;
        for place in 0..3 {
            bits = (bits << 8) | u32::from(group.get(place).copied().unwrap_or(0));
        }
        for place in 0..4_usize {
            let digit = usize::try_from((bits >> (18 - 6 * place)) & 63).unwrap_or(0);
            let digit = DIGITS.get(digit).copied().unwrap_or(b'=');
            text.push(if place <= group.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xFB, 0xFF]), "+/8=");
    }
}
