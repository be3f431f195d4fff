//! Keys that AWS's token service gives: of a role that is taken with other keys (`AssumeRole`), or with a token that
//! somebody else has signed (`AssumeRoleWithWebIdentity`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use object_store::aws::AwsCredential;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Url};

use super::fresh::{Keys, Source, Taken};
use super::{sign_for_aws, variable};
use crate::storage::StorageError;
use crate::storage::store::listing::element;
use crate::storage::web::{self, Limits};

/// A role, as whose session is known to whoever looks into its account's logs.
#[derive(Clone, Debug)]
pub(super) struct RoleName {
    pub(super) arn: String,
    pub(super) session: Option<String>,
    /// Whose token service is asked.
    pub(super) region: String,
}

impl RoleName {
    fn wrong(&self, reason: impl Into<String>) -> StorageError {
        StorageError::Property {
            name: "s3.role-arn".to_owned(),
            reason: format!("{}: {}", self.arn, reason.into()),
        }
    }

    /// A question to the token service, without who asks.
    fn question(&self, action: &str, more: &[(&str, &str)]) -> Result<Request, StorageError> {
        let endpoint = variable("AWS_ENDPOINT_URL_STS")
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .unwrap_or_else(|| {
                let region = &self.region;
                let end = if region.starts_with("cn-") { ".cn" } else { "" };
                format!("https://sts.{region}.amazonaws.com{end}")
            });
        let url = Url::parse(&endpoint).map_err(|error| self.wrong(error.to_string()))?;
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", action)
            .append_pair("Version", "2011-06-15")
            .append_pair("RoleArn", &self.arn)
            .append_pair(
                "RoleSessionName",
                self.session.as_deref().unwrap_or("bergfs"),
            );
        for (name, value) in more {
            form.append_pair(name, value);
        }
        // In the body, which nobody logs: it may hold a token.
        let mut request = Request::new(Method::POST, url);
        *request.body_mut() = Some(form.finish().into());
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        Ok(request)
    }

    async fn ask(&self, request: Request) -> Result<Taken, StorageError> {
        let answer = web::send(request, Limits::default(), None).await;
        let answer = answer.map_err(|error| self.wrong(error.to_string()))?;
        let text = String::from_utf8_lossy(&answer.body);
        let element = |name: &str| Some(element(&text, name)?.trim().to_owned());
        if !answer.status.is_success() {
            let code = element("Code").unwrap_or_default();
            let message = element("Message").unwrap_or_default();
            return Err(self.wrong(format!("{} {code}: {message}", answer.status)));
        }
        let found = |name| element(name).ok_or_else(|| self.wrong(format!("no {name}")));
        let keys = AwsCredential {
            key_id: found("AccessKeyId")?,
            secret_key: found("SecretAccessKey")?,
            token: Some(found("SessionToken")?),
        };
        let expires = time(&found("Expiration")?).ok_or_else(|| self.wrong("no time"))?;
        Ok((keys, Some(expires)))
    }
}

/// A role, and the keys it is taken with.
#[derive(Debug)]
pub(super) struct Role {
    pub(super) base: Arc<dyn Keys>,
    pub(super) name: RoleName,
    pub(super) external_id: Option<String>,
}

#[async_trait]
impl Source for Role {
    async fn take(&self) -> Result<Taken, StorageError> {
        let base = self.base.get_credential().await;
        let base = base.map_err(|error| self.name.wrong(error.to_string()))?;
        let external = self
            .external_id
            .iter()
            .map(|id| ("ExternalId", id.as_str()));
        let external: Vec<_> = external.collect();
        let mut request = self.name.question("AssumeRole", &external)?;
        sign_for_aws(&mut request, &base, "sts", &self.name.region)
            .map_err(|reason| self.name.wrong(reason))?;
        self.name.ask(request).await
    }
}

/// A role that is taken with a token in a file, which is read each time: whoever writes it renews it.
#[derive(Debug)]
pub(super) struct WebIdentity {
    pub(super) name: RoleName,
    pub(super) token_file: PathBuf,
}

#[async_trait]
impl Source for WebIdentity {
    async fn take(&self) -> Result<Taken, StorageError> {
        let file = self.token_file.clone();
        let token = web::blocking(move || super::profile::read(&file)).await;
        let token = token.and_then(|token| token).map_err(|error| {
            let file = self.token_file.display();
            self.name.wrong(format!("the token in {file}: {error}"))
        })?;
        let token = [("WebIdentityToken", token.trim())];
        let request = self.name.question("AssumeRoleWithWebIdentity", &token)?;
        self.name.ask(request).await
    }
}

/// A time as RFC 3339 has it.
pub(super) fn time(text: &str) -> Option<SystemTime> {
    let time: jiff::Timestamp = text.trim().parse().ok()?;
    let since = u64::try_from(time.as_millisecond()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(since))
}
