//! Keys of a role, taken with other keys (`AssumeRole`), and kept until they are about to run out.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use reqwest::{Method, Request, Url};
use tokio::sync::Mutex;

use super::{failed, sign_for_aws, variable};
use crate::storage::StorageError;
use crate::storage::web::{self, Limits};

/// How long before they run out keys are taken anew.
const AHEAD: Duration = Duration::from_secs(300);

type Base = Arc<dyn CredentialProvider<Credential = AwsCredential>>;

/// A role, and the keys it is taken with.
pub(super) struct Role {
    base: Base,
    arn: String,
    session: String,
    external_id: Option<String>,
    region: String,
    kept: Mutex<Option<(Arc<AwsCredential>, SystemTime)>>,
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Role").field("arn", &self.arn).finish()
    }
}

impl Role {
    pub(super) fn new(
        base: Base,
        arn: &str,
        session: Option<&str>,
        external_id: Option<&str>,
        region: &str,
    ) -> Self {
        Self {
            base,
            arn: arn.to_owned(),
            session: session.unwrap_or("bergfs").to_owned(),
            external_id: external_id.map(str::to_owned),
            region: region.to_owned(),
            kept: Mutex::new(None),
        }
    }

    async fn take(&self) -> Result<(Arc<AwsCredential>, SystemTime), StorageError> {
        let wrong = |reason: String| StorageError::Property {
            name: "s3.role-arn".to_owned(),
            reason: format!("{}: {reason}", self.arn),
        };
        let base = self.base.get_credential().await;
        let base = base.map_err(|error| wrong(error.to_string()))?;
        let endpoint = variable("AWS_ENDPOINT_URL_STS")
            .unwrap_or_else(|| format!("https://sts.{}.amazonaws.com", self.region));
        let mut url = Url::parse(&endpoint).map_err(|error| wrong(error.to_string()))?;
        url.query_pairs_mut()
            .append_pair("Action", "AssumeRole")
            .append_pair("Version", "2011-06-15")
            .append_pair("RoleArn", &self.arn)
            .append_pair("RoleSessionName", &self.session);
        if let Some(id) = &self.external_id {
            url.query_pairs_mut().append_pair("ExternalId", id);
        }
        let mut request = Request::new(Method::GET, url);
        sign_for_aws(&mut request, &base, "sts", &self.region).map_err(wrong)?;
        let answer = web::send(request, Limits::default(), None)
            .await
            .map_err(|error| wrong(error.to_string()))?;
        let text = String::from_utf8_lossy(&answer.body);
        if !answer.status.is_success() {
            let code = element(&text, "Code").unwrap_or_default();
            let message = element(&text, "Message").unwrap_or_default();
            return Err(wrong(format!("{} {code}: {message}", answer.status)));
        }
        let found = |name| element(&text, name).ok_or_else(|| wrong(format!("no {name}")));
        let keys = AwsCredential {
            key_id: found("AccessKeyId")?,
            secret_key: found("SecretAccessKey")?,
            token: Some(found("SessionToken")?),
        };
        let expires = time(&found("Expiration")?).ok_or_else(|| wrong("no time".to_owned()))?;
        Ok((Arc::new(keys), expires))
    }
}

#[async_trait]
impl CredentialProvider for Role {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut kept = self.kept.lock().await;
        if let Some((keys, expires)) = &*kept
            && *expires > SystemTime::now() + AHEAD
        {
            return Ok(Arc::clone(keys));
        }
        let taken = self.take().await.map_err(failed)?;
        let keys = Arc::clone(&taken.0);
        *kept = Some(taken);
        Ok(keys)
    }
}

/// The text of the first element of a name, for answers whose elements hold plain text.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, after) = xml.split_once(&format!("<{name}>"))?;
    let (inside, _) = after.split_once(&format!("</{name}>"))?;
    Some(inside.trim().to_owned())
}

/// A time as RFC 3339 has it.
pub(super) fn time(text: &str) -> Option<SystemTime> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    let since = u64::try_from(time.as_millisecond()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(since))
}
