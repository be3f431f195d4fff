//! Requests signed as AWS's own services ask for (Signature Version 4): the REST endpoints of Glue and of S3 Tables.
//!
//! The keys are those of the properties (`rest.access-key-id` …), else those that all of AWS is asked with: the profile
//! that is named, or what the environment gives.

use std::fmt;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::StaticCredentialProvider;
use object_store::aws::AwsCredential;
use reqwest::Request;

use crate::catalog::CatalogError;
use crate::storage::{AwsIdentity, Properties, sign_for_aws};

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
        let named = ["rest.signing-region", "client.region"];
        let named = named.into_iter().find_map(|name| properties.get(name));
        // Looked for only where the properties leave something open.
        let found = || AwsIdentity::find(properties).map_err(|error| wrong(error.to_string()));
        let keys: Arc<dyn CredentialProvider<Credential = AwsCredential>> =
            match own_keys(properties) {
                Some(keys) => Arc::new(StaticCredentialProvider::new(keys)),
                None => found()?.keys,
            };
        let region = match named {
            Some(region) => region.to_owned(),
            None => found()?
                .region
                .ok_or_else(|| wrong("rest.signing-region: no region to sign for".to_owned()))?,
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
        sign_for_aws(request, &keys, &self.service, &self.region).map_err(wrong)
    }
}

/// The keys that are for this alone.
fn own_keys(properties: &Properties) -> Option<AwsCredential> {
    let get = |name: &str| {
        let value = properties.get(name).filter(|value| !value.is_empty());
        value.map(str::to_owned)
    };
    Some(AwsCredential {
        key_id: get("rest.access-key-id")?,
        secret_key: get("rest.secret-access-key")?,
        token: get("rest.session-token"),
    })
}
