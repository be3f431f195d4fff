//! Requests signed as AWS's own services ask for (Signature Version 4): the REST endpoints of Glue and of S3 Tables.
//!
//! The keys are those of the properties (`rest.access-key-id` …), else those that the environment gives to everything
//! that speaks to AWS.

use std::env;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use object_store::CredentialProvider;
use object_store::StaticCredentialProvider;
use object_store::aws::{AmazonS3Builder, AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use reqwest::Request;

use crate::catalog::CatalogError;
use crate::storage::{Properties, web};

use super::auth::Auth;
use super::transport::Transport;

/// What requests are signed for where the properties do not say: Java's default.
const DEFAULT_SERVICE: &str = "execute-api";

/// Signs requests.
pub(super) struct SigV4 {
    service: String,
    region: String,
    keys: Arc<dyn CredentialProvider<Credential = AwsCredential>>,
}

impl fmt::Debug for SigV4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigV4({}, {})", self.service, self.region)
    }
}

impl SigV4 {
    /// What the properties and the environment say.
    ///
    /// # Errors
    /// There is no region.
    pub(super) fn new(properties: &Properties, catalog: &str) -> Result<Self, CatalogError> {
        let wrong = |reason: String| CatalogError::Configuration {
            catalog: catalog.to_owned(),
            reason,
        };
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let region = ["rest.signing-region", "client.region"]
            .into_iter()
            .find_map(|name| properties.get(name).map(str::to_owned))
            .or_else(|| variable("AWS_REGION"))
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .ok_or_else(|| wrong("rest.signing-region: no region to sign for".to_owned()))?;
        let keys: Arc<dyn CredentialProvider<Credential = AwsCredential>> =
            match Auth::keys(properties) {
                Some(keys) => Arc::new(StaticCredentialProvider::new(keys)),
                None => environment(&region).map_err(wrong)?,
            };
        let service = properties.get("rest.signing-name");
        Ok(Self {
            service: service.unwrap_or(DEFAULT_SERVICE).to_owned(),
            region,
            keys,
        })
    }

    /// Adds the signature, and all that belongs to it.
    pub(super) async fn sign(
        &self,
        request: &mut Request,
        transport: &Transport,
    ) -> Result<(), CatalogError> {
        let wrong = |reason: String| CatalogError::Configuration {
            catalog: transport.name().to_owned(),
            reason: transport.scrubbed(&format!("requests cannot be signed: {reason}")),
        };
        let keys = self.keys.get_credential().await;
        let keys = keys.map_err(|error| wrong(error.to_string()))?;
        let texts = [Some(&keys.key_id), keys.token.as_ref()];
        // The signer takes for granted that they make headers.
        if !texts
            .into_iter()
            .flatten()
            .all(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(wrong("a key has characters that no header has".to_owned()));
        }
        let body = request.body().and_then(|body| body.as_bytes());
        let body = Bytes::copy_from_slice(body.unwrap_or_default());
        let mut signed = HttpRequest::new(HttpRequestBody::from(body));
        *signed.method_mut() = request.method().clone();
        *signed.uri_mut() = request
            .url()
            .as_str()
            .parse()
            .map_err(|_| wrong("the URL is none".to_owned()))?;
        *signed.headers_mut() = request.headers().clone();
        AwsAuthorizer::new(&keys, &self.service, &self.region)
            .try_authorize(&mut signed, None)
            .map_err(|error| wrong(error.to_string()))?;
        *request.headers_mut() = signed.headers().clone();
        Ok(())
    }
}

/// The keys of the environment: variables, a web identity, a container's or the machine's role.
fn environment(
    region: &str,
) -> Result<Arc<dyn CredentialProvider<Credential = AwsCredential>>, String> {
    // Sets TLS up, which what asks for keys needs too.
    web::client().map_err(|error| error.to_string())?;
    let store = AmazonS3Builder::from_env()
        .with_region(region)
        // Never asked: only the keys are.
        .with_bucket_name("none")
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Arc::clone(store.credentials()))
}
