//! Google Cloud Storage.
//!
//! Credentials are those of the properties (renewed by the catalog), a file that they or `GOOGLE_APPLICATION_CREDENTIALS`
//! name, what `gcloud` has left, the machine's service account.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};

use super::grant::Grant;
use super::renewable::{Remade, Renewable};
use super::{Client, Opening, StorageError, cannot_open, flag, no_retries, transport};

/// The property that holds a token.
const TOKEN: &str = "gcs.oauth2.token";

pub(super) fn open(opening: Opening<'_>) -> Result<Client, StorageError> {
    let Opening {
        url,
        properties,
        grant,
        transport,
        ..
    } = opening;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&url.bucket)
        .with_client_options(object_store::ClientOptions::new().with_allow_http(true))
        .with_http_connector(transport)
        .with_retry(no_retries());
    let endpoint = properties
        .get("gcs.service.host")
        .or_else(|| properties.get("gcs.endpoint"))
        .map(str::to_owned)
        .or_else(|| std::env::var("STORAGE_EMULATOR_HOST").ok())
        .map(|host| match host.contains("://") {
            true => host.trim_end_matches('/').to_owned(),
            false => format!("http://{host}"),
        });
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint);
    }
    let anonymous = flag(properties, "gcs.no-auth")?
        .or(flag(properties, "gcs.allow-anonymous")?)
        .unwrap_or(false);
    if anonymous {
        builder = builder.with_skip_signature(true).with_credentials(Arc::new(
            object_store::StaticCredentialProvider::new(GcpCredential {
                bearer: String::new(),
            }),
        ));
    } else if properties.get(TOKEN).is_some() {
        builder = builder.with_credentials(Arc::new(Granted(Arc::clone(grant))));
    } else {
        // Where it is looked for, and by which name.
        let mut named = None;
        if let Some(key) = properties.get("gcs.credentials-json") {
            builder = builder.with_service_account_key(key);
            named = Some("gcs.credentials-json".to_owned());
        } else if let Some(file) = properties.get("gcs.credentials-file") {
            builder = builder.with_application_credentials(file);
            named = Some(format!("gcs.credentials-file: {file}"));
        } else if let Ok(file) = std::env::var("GOOGLE_APPLICATION_CREDENTIALS") {
            named = Some(format!("GOOGLE_APPLICATION_CREDENTIALS: {file}"));
            builder = builder.with_application_credentials(file);
        }
        let found = builder.clone();
        let keys = Remade::new(move || Ok(found.clone().build()?.credentials().clone()));
        let keys = keys.map_err(|error| match named {
            Some(name) => StorageError::Property {
                name,
                reason: transport::innermost(&error),
            },
            None => cannot_open(url, &error),
        })?;
        let keys = Arc::new(keys);
        let own: Arc<dyn Renewable> = keys.clone();
        grant.set_own(&own);
        builder = builder.with_credentials(keys);
    }
    Client::of(url, builder.build(), endpoint)
}

/// The token among the properties, each time a request is made.
#[derive(Debug)]
struct Granted(Arc<Grant>);

#[async_trait]
impl CredentialProvider for Granted {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        let failed = |error: StorageError| object_store::Error::Generic {
            store: "GCS",
            source: error.to_string().into(),
        };
        let properties = self.0.current().await.map_err(failed)?;
        let token = properties.get(TOKEN).ok_or_else(|| {
            failed(StorageError::Property {
                name: TOKEN.to_owned(),
                reason: "the catalog granted none".to_owned(),
            })
        })?;
        Ok(Arc::new(GcpCredential {
            bearer: token.to_owned(),
        }))
    }
}
