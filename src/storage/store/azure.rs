//! Azure: `abfss://container@account.dfs.core.windows.net/…`, read through the account's blob endpoint.
//!
//! The account is the URL's, else `adls.account-name`, a connection string's or the environment's. Credentials are those
//! of the properties (renewed by the catalog), a connection string, the environment (`AZURE_…`), the machine's identity.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::azure::{
    AzureAccessKey, AzureConfigKey, AzureCredential, MicrosoftAzureBuilder, split_sas,
};

use super::grant::Grant;
use super::renewable::{Remade, Renewable};
use super::{Client, Opening, Properties, StorageError, cannot_open, flag, no_retries, transport};

pub(super) fn open(opening: Opening<'_>) -> Result<Client, StorageError> {
    let Opening {
        url,
        properties,
        grant,
        transport,
        ..
    } = opening;
    let connection = connection(properties, url.account());
    let account = url
        .account()
        .or_else(|| properties.get("adls.account-name"))
        .or_else(|| properties.get("adls.auth.shared-key.account.name"))
        .or_else(|| connection.get("accountname").map(String::as_str))
        .map(str::to_owned)
        .or_else(|| std::env::var("AZURE_STORAGE_ACCOUNT_NAME").ok());
    let Some(account) = account else {
        return Err(StorageError::Property {
            name: "adls.account-name".to_owned(),
            reason: format!(
                "{} names no account (abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/…)",
                url.base()
            ),
        });
    };
    let endpoint = endpoint(&url.host, &account, properties, &connection);
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_account(&account)
        .with_container_name(&url.bucket)
        .with_endpoint(endpoint.clone())
        .with_allow_http(true)
        .with_http_connector(transport)
        .with_retry(no_retries());
    for (name, key) in [
        ("adls.client-id", AzureConfigKey::ClientId),
        ("adls.client-secret", AzureConfigKey::ClientSecret),
        ("adls.tenant-id", AzureConfigKey::AuthorityId),
        ("adls.authority-host", AzureConfigKey::AuthorityHost),
    ] {
        if let Some(value) = properties.get(name) {
            builder = builder.with_config(key, value);
        }
    }
    let own_login = ["adls.client-id", "adls.client-secret", "adls.tenant-id"]
        .iter()
        .all(|name| properties.get(name).is_some());
    if flag(properties, "adls.anonymous")?.unwrap_or(false) {
        builder = builder.with_skip_signature(true);
    } else if credential(properties, &connection, &account)?.is_some() {
        builder = builder.with_credentials(Arc::new(Granted {
            grant: Arc::clone(grant),
            account,
            host: url.host.clone(),
        }));
    } else {
        if own_login {
            // Else a key of the environment would stand before it.
            builder = builder.with_credential_type("client_secret");
        }
        let found = builder.clone();
        let keys = Remade::new(move || Ok(found.clone().build()?.credentials().clone()))
            .map_err(|error| cannot_open(url, &error))?;
        let keys = Arc::new(keys);
        let own: Arc<dyn Renewable> = keys.clone();
        grant.set_own(&own);
        builder = builder.with_credentials(keys);
    }
    Client::of(url, builder.build(), Some(endpoint))
}

/// Where the account's blobs are asked for.
fn endpoint(
    host: &str,
    account: &str,
    properties: &Properties,
    connection: &BTreeMap<String, String>,
) -> String {
    if let Some(endpoint) = connection.get("blobendpoint") {
        return endpoint.trim_end_matches('/').to_owned();
    }
    let scheme = properties
        .get("adls.blob-storage-scheme")
        .unwrap_or("https");
    if let Some(authority) = properties.get("adls.blob-storage-authority") {
        return format!("{scheme}://{authority}");
    }
    let suffix = connection.get("endpointsuffix").map(String::as_str);
    if let Some(suffix) = suffix {
        return format!("{scheme}://{account}.blob.{suffix}");
    }
    let host = properties.get("adls.account-host").unwrap_or(host);
    let (_, domain) = host.split_once('.').unwrap_or_default();
    let domain = domain.strip_prefix("dfs.").unwrap_or(domain);
    match domain.strip_prefix("blob.").unwrap_or(domain) {
        "" => format!("{scheme}://{account}.blob.core.windows.net"),
        domain => format!("{scheme}://{account}.blob.{domain}"),
    }
}

/// The parts of the connection string that holds for an account, names in lower case.
fn connection(properties: &Properties, account: Option<&str>) -> BTreeMap<String, String> {
    let own =
        account.and_then(|account| properties.get(&format!("adls.connection-string.{account}")));
    let text = own.or_else(|| properties.get("adls.connection-string"));
    let part = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    text.unwrap_or_default()
        .split(';')
        .filter_map(part)
        .collect()
}

/// What the properties or a connection string prove themselves with.
fn credential(
    properties: &Properties,
    connection: &BTreeMap<String, String>,
    account: &str,
) -> Result<Option<AzureCredential>, StorageError> {
    let wrong = |name: &str, error: &object_store::Error| StorageError::Property {
        name: name.to_owned(),
        reason: transport::innermost(error),
    };
    let prefix = format!("adls.sas-token.{account}");
    let for_account = properties.0.iter().find(|(name, _)| {
        name.strip_prefix(&prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    let sas = for_account
        .map(|(_, token)| token.as_str())
        .or_else(|| properties.get("adls.sas-token"))
        .or_else(|| connection.get("sharedaccesssignature").map(String::as_str));
    if let Some(token) = sas {
        let pairs = split_sas(token.trim_start_matches('?'));
        let pairs = pairs.map_err(|error| wrong("adls.sas-token", &error))?;
        return Ok(Some(AzureCredential::SASToken(pairs)));
    }
    if let Some(token) = properties.get("adls.token") {
        return Ok(Some(AzureCredential::BearerToken(token.to_owned())));
    }
    let key = properties
        .get("adls.account-key")
        .or_else(|| properties.get("adls.auth.shared-key.account.key"))
        .or_else(|| connection.get("accountkey").map(String::as_str));
    let Some(key) = key else {
        return Ok(None);
    };
    let key = AzureAccessKey::try_new(key).map_err(|_| StorageError::Property {
        name: "adls.account-key".to_owned(),
        reason: "expected base64".to_owned(),
    })?;
    Ok(Some(AzureCredential::AccessKey(key)))
}

/// What the properties hold, each time a request is signed.
#[derive(Debug)]
struct Granted {
    grant: Arc<Grant>,
    account: String,
    host: String,
}

#[async_trait]
impl CredentialProvider for Granted {
    type Credential = AzureCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        let failed = |error: StorageError| object_store::Error::Generic {
            store: "Azure",
            source: error.to_string().into(),
        };
        let properties = self.grant.current().await.map_err(failed)?;
        let account = self.host.split('.').next();
        let connection = connection(&properties, account);
        let found = credential(&properties, &connection, &self.account).map_err(failed)?;
        found.map(Arc::new).ok_or_else(|| {
            failed(StorageError::Property {
                name: "adls.sas-token".to_owned(),
                reason: "the catalog granted none".to_owned(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn properties(pairs: &[(&str, &str)]) -> Properties {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Properties(pairs.iter().map(pair).collect())
    }

    #[test]
    fn an_accounts_own_token_stands_before_that_of_all() {
        let all = properties(&[
            ("adls.sas-token", "sig=all"),
            ("adls.sas-token.mine.dfs.core.windows.net", "sig=mine"),
            ("adls.sas-token.mine2", "sig=other"),
        ]);
        let of = |account: &str| {
            credential(&all, &BTreeMap::new(), account)
                .unwrap()
                .unwrap()
        };
        let token =
            |value: &str| AzureCredential::SASToken(vec![("sig".to_owned(), value.to_owned())]);
        assert_eq!(of("mine"), token("mine"));
        assert_eq!(of("mine2"), token("other"));
        assert_eq!(of("third"), token("all"));
    }

    #[test]
    fn the_blob_endpoint_follows_from_the_host_or_the_connection_string() {
        let none = BTreeMap::new();
        let of =
            |host: &str, pairs: &[(&str, &str)]| endpoint(host, "a", &properties(pairs), &none);
        assert_eq!(
            of("a.dfs.core.windows.net", &[]),
            "https://a.blob.core.windows.net"
        );
        assert_eq!(
            of("a.blob.core.chinacloudapi.cn", &[]),
            "https://a.blob.core.chinacloudapi.cn"
        );
        assert_eq!(of("", &[]), "https://a.blob.core.windows.net");
        let text = "DefaultEndpointsProtocol=http;AccountName=dev;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:10000/dev;";
        let given = properties(&[("adls.connection-string", text)]);
        let parts = connection(&given, None);
        assert_eq!(
            endpoint("", "dev", &given, &parts),
            "http://127.0.0.1:10000/dev"
        );
        assert!(matches!(
            credential(&given, &parts, "dev").unwrap(),
            Some(AzureCredential::AccessKey(_))
        ));
    }
}
