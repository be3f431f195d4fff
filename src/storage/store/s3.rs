//! S3 and all that speaks it.
//!
//! Credentials are those of the first of these that has any: the properties (renewed by the catalog), the profile that
//! the properties name, the environment's keys, its profile, a web identity, a container's role, a machine's role.

use std::env;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AwsCredential};
use reqwest::{Method, Request};
use url::Url;

use super::grant::Grant;
use super::renewable::Renewable;
use super::transport::Signer;
use super::web::{self, Limits};
use super::{Client, Opening, Properties, StorageError, StoreUrl, flag, no_retries};

mod fresh;
mod metadata;
mod profile;
mod signature;
mod sts;

use fresh::{Fixed, Fresh, Keys};
use metadata::{Container, Machine};
use profile::Profile;
pub use signature::sign_for_aws;
use sts::{Role, RoleName, WebIdentity};

/// The region of endpoints that have none: what they sign for.
const ANY_REGION: &str = "us-east-1";

pub(super) fn open(opening: Opening<'_>) -> Result<Client, StorageError> {
    let Opening {
        url,
        access,
        properties,
        grant,
        mut transport,
    } = opening;
    let named = first(properties, &["s3.profile-name", "client.profile-name"]);
    let profile = Profile::find(named)?;
    let settings = profile.as_ref().map(Profile::settings).transpose()?;
    let setting = |name: &str| settings.as_ref().and_then(|all| all.get(name)).cloned();
    let endpoint = first(properties, &["s3.endpoint"])
        .map(str::to_owned)
        .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
        .or_else(|| variable("AWS_ENDPOINT_URL"))
        .or_else(|| setting("endpoint_url"));
    let region = first(properties, &["s3.region", "client.region"])
        .map(str::to_owned)
        .or_else(|| variable("AWS_REGION"))
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .or_else(|| setting("region"));
    let region = match (region, &endpoint) {
        (Some(region), _) => region,
        (None, Some(_)) => ANY_REGION.to_owned(),
        (None, None) => bucket_region(url, transport.limits).unwrap_or(ANY_REGION.to_owned()),
    };

    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&url.bucket)
        .with_region(&region)
        .with_allow_http(true)
        .with_retry(no_retries());
    // Java says path style, Python says virtual hosts. An own endpoint rarely has a host name for each bucket.
    let virtual_hosts = match flag(properties, "s3.path-style-access")? {
        Some(path_style) => !path_style,
        None => flag(properties, "s3.force-virtual-addressing")?
            .unwrap_or(endpoint.is_none() && !url.bucket.contains('.')),
    };
    builder = builder.with_virtual_hosted_style_request(virtual_hosts);
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint_for(endpoint, &url.bucket, virtual_hosts)?);
    }

    let anonymous = flag(properties, "s3.anonymous")?.unwrap_or(false);
    if let Some(signer) = &access.signer {
        builder = builder.with_skip_signature(true);
        transport.signer = Some(Signer {
            signer: Arc::clone(signer),
            region: region.clone(),
        });
    } else if anonymous {
        builder = builder.with_skip_signature(true);
    } else {
        let base: Arc<dyn Keys> = match granted(properties) {
            Some(_) => Arc::new(Granted(Arc::clone(grant))),
            None => ambient(named, profile, &region)?,
        };
        let keys = with_role(base, properties, &region);
        let own: Arc<dyn Renewable> = keys.clone();
        grant.set_own(&own);
        builder = builder.with_credentials(keys);
    }
    let store = builder.with_http_connector(transport).build();
    Client::of(url, store, endpoint)
}

/// The first of the properties that is set.
fn first<'p>(properties: &'p Properties, names: &[&str]) -> Option<&'p str> {
    let values = names.iter().filter_map(|name| properties.get(name));
    values.map(str::trim).find(|value| !value.is_empty())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The endpoint's URL, with the bucket as part of its host where that is its style.
fn endpoint_for(endpoint: &str, bucket: &str, virtual_hosts: bool) -> Result<String, StorageError> {
    let misspelt = |reason: String| StorageError::Property {
        name: "s3.endpoint".to_owned(),
        reason,
    };
    let full = match endpoint.contains("://") {
        true => endpoint.to_owned(),
        false => format!("https://{endpoint}"),
    };
    let mut url = Url::parse(&full).map_err(|error| misspelt(error.to_string()))?;
    if virtual_hosts && let Some(host) = url.host_str() {
        let host = format!("{bucket}.{host}");
        url.set_host(Some(&host))
            .map_err(|error| misspelt(error.to_string()))?;
    }
    Ok(url.to_string().trim_end_matches('/').to_owned())
}

/// Asks S3 where a bucket lies.
fn bucket_region(url: &StoreUrl, limits: Limits) -> Option<String> {
    let asked = Url::parse(&format!("https://s3.amazonaws.com/{}", url.bucket)).ok()?;
    let request = Request::new(Method::HEAD, asked);
    let answer = web::block_on(web::send(request, limits, None)).ok()?.ok()?;
    let region = answer.headers.get("x-amz-bucket-region")?;
    Some(region.to_str().ok()?.to_owned())
}

/// Keys from the first place outside of the properties that has any: the environment, unless a profile was asked for by
/// name; the profile; a web identity, the container, the machine. Asks nobody yet.
fn ambient(
    named: Option<&str>,
    profile: Option<Profile>,
    region: &str,
) -> Result<Arc<dyn Keys>, StorageError> {
    if named.is_none()
        && let Some(keys) = environment()
    {
        return Ok(Arc::new(Fixed::new(keys)));
    }
    if let Some(profile) = profile.filter(Profile::has_credentials) {
        return Ok(Arc::new(profile));
    }
    if let (Some(file), Some(arn)) = (
        variable("AWS_WEB_IDENTITY_TOKEN_FILE"),
        variable("AWS_ROLE_ARN"),
    ) {
        return Ok(Arc::new(Fresh::new(WebIdentity {
            name: RoleName {
                arn,
                session: variable("AWS_ROLE_SESSION_NAME"),
                region: region.to_owned(),
            },
            token_file: file.into(),
        })));
    }
    if let Some(container) = Container::find()? {
        return Ok(Arc::new(Fresh::new(container)));
    }
    match Machine::find() {
        Some(machine) => Ok(Arc::new(Fresh::new(machine))),
        None => Err(StorageError::Property {
            name: "s3.access-key-id".to_owned(),
            reason: "no credentials are in the properties, the environment or a profile \
                     (s3.anonymous=true asks without)"
                .to_owned(),
        }),
    }
}

/// The environment's keys.
fn environment() -> Option<AwsCredential> {
    Some(AwsCredential {
        key_id: variable("AWS_ACCESS_KEY_ID")?,
        secret_key: variable("AWS_SECRET_ACCESS_KEY")?,
        token: variable("AWS_SESSION_TOKEN"),
    })
}

/// The keys among the properties.
fn granted(properties: &Properties) -> Option<AwsCredential> {
    let key_id = first(properties, &["s3.access-key-id", "client.access-key-id"])?;
    let secret_key = first(
        properties,
        &["s3.secret-access-key", "client.secret-access-key"],
    )?;
    let token = first(properties, &["s3.session-token", "client.session-token"]);
    Some(AwsCredential {
        key_id: key_id.to_owned(),
        secret_key: secret_key.to_owned(),
        token: token.map(str::to_owned),
    })
}

/// The keys of the role that is to be taken with `base`, where the properties name one.
fn with_role(base: Arc<dyn Keys>, properties: &Properties, region: &str) -> Arc<dyn Keys> {
    let get = |names: &[&str]| first(properties, names).map(str::to_owned);
    let Some(arn) = get(&["s3.role-arn", "client.role-arn", "client.assume-role.arn"]) else {
        return base;
    };
    let session = get(&[
        "s3.role-session-name",
        "client.role-session-name",
        "client.assume-role.session-name",
    ]);
    let own_region = get(&["client.assume-role.region"]);
    Arc::new(Fresh::new(Role {
        base,
        name: RoleName {
            arn,
            session,
            region: own_region.unwrap_or_else(|| region.to_owned()),
        },
        external_id: get(&["client.assume-role.external-id"]),
    }))
}

/// Who asks AWS's services, for those that are no stores: found as for S3.
pub struct AwsIdentity {
    /// Renewed as they run out. What `Debug` shows of them may be secret.
    pub keys: Arc<dyn CredentialProvider<Credential = AwsCredential>>,
    /// Of the environment or the profile.
    pub region: Option<String>,
    /// Of the profile.
    pub endpoint: Option<String>,
}

impl fmt::Debug for AwsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsIdentity")
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

impl AwsIdentity {
    /// The keys that the properties hold (`client.access-key-id` …), else those of the profile that they name
    /// (`client.profile-name`), else those that the environment gives. Asks nobody yet.
    ///
    /// # Errors
    /// There are none, or a profile that cannot be followed.
    pub fn find(properties: &Properties) -> Result<AwsIdentity, StorageError> {
        let named = first(properties, &["client.profile-name"]);
        let profile = Profile::find(named)?;
        let settings = profile.as_ref().map(Profile::settings).transpose()?;
        let setting = |name: &str| settings.as_ref().and_then(|all| all.get(name)).cloned();
        let region = variable("AWS_REGION")
            .or_else(|| variable("AWS_DEFAULT_REGION"))
            .or_else(|| setting("region"));
        let endpoint = setting("endpoint_url");
        let signed_for = region.clone().unwrap_or_else(|| ANY_REGION.to_owned());
        let base: Arc<dyn Keys> = match granted(properties) {
            Some(keys) => Arc::new(Fixed::new(keys)),
            None => ambient(named, profile, &signed_for)?,
        };
        let keys = with_role(base, properties, &signed_for);
        Ok(AwsIdentity {
            keys,
            region,
            endpoint,
        })
    }
}

/// The keys that the catalog has granted, each time a request is signed.
#[derive(Debug)]
struct Granted(Arc<Grant>);

#[async_trait]
impl CredentialProvider for Granted {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let properties = self.0.current().await.map_err(failed)?;
        let keys = granted(&properties).ok_or_else(|| {
            failed(StorageError::Property {
                name: "s3.access-key-id".to_owned(),
                reason: "the catalog granted none".to_owned(),
            })
        })?;
        Ok(Arc::new(keys))
    }
}

/// The grant itself is told.
impl Renewable for Granted {
    fn generation(&self) -> u64 {
        0
    }

    fn forget(&self, _: u64) -> bool {
        false
    }
}

fn failed(error: StorageError) -> object_store::Error {
    // As text: what lies beneath the error would else be shown in its place.
    object_store::Error::Generic {
        store: "S3",
        source: error.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_endpoint_holds_the_bucket_where_buckets_are_hosts() {
        let of = |endpoint, hosts| endpoint_for(endpoint, "b", hosts).unwrap();
        assert_eq!(of("http://127.0.0.1:9000/", false), "http://127.0.0.1:9000");
        assert_eq!(of("minio:9000", false), "https://minio:9000");
        assert_eq!(of("http://localhost:9000", true), "http://b.localhost:9000");
        assert!(endpoint_for("http://", "b", false).is_err());
    }
}
