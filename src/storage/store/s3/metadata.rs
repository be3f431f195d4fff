//! Keys that the place gives where bergfs runs: a container's role (ECS, EKS), or a machine's (EC2).

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use object_store::aws::AwsCredential;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Method, Request, StatusCode, Url};
use serde::Deserialize;

use super::fresh::{Source, Taken};
use super::sts::time;
use super::variable;
use crate::storage::StorageError;
use crate::storage::web::{self, Answer, Limits};

/// Who has the roles of a container, on each machine of ECS.
const CONTAINERS: &str = "http://169.254.170.2";

/// Who has the role of a machine, on each of EC2.
const MACHINE: &str = "http://169.254.169.254";
const MACHINE_V6: &str = "http://[fd00:ec2::254]";

/// For how long a machine is asked whether it has keys: most have none, and nothing answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Hosts beyond this machine that may be asked for keys without TLS: of ECS, and of EKS in both families.
const TRUSTED: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

const TOKEN: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token");
const TOKEN_LIFE: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");

/// A container's role.
#[derive(Debug)]
pub(super) struct Container {
    url: Url,
    authorization: Authorization,
}

enum Authorization {
    None,
    Text(String),
    /// Read each time.
    File(PathBuf),
}

impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authorization")
    }
}

impl Container {
    /// What the environment says. `None`: nothing.
    ///
    /// # Errors
    /// It says to ask a stranger without TLS.
    pub(super) fn find() -> Result<Option<Self>, StorageError> {
        let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let (name, url) = match (relative, variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
            (Some(path), _) => (
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                format!("{CONTAINERS}{path}"),
            ),
            (None, Some(url)) => ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url),
            (None, None) => return Ok(None),
        };
        let wrong = |reason: &str| StorageError::Property {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let url = Url::parse(&url).map_err(|error| wrong(&error.to_string()))?;
        if !may_be_asked(&url) {
            return Err(wrong("its host is neither this machine nor asked by https"));
        }
        let authorization = match variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => Authorization::File(file.into()),
            None => variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
                .map_or(Authorization::None, Authorization::Text),
        };
        Ok(Some(Self { url, authorization }))
    }
}

/// By TLS, or where nobody listens in between.
fn may_be_asked(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_here = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    url.scheme() == "https" || (url.scheme() == "http" && (is_here || TRUSTED.contains(&host)))
}

#[async_trait]
impl Source for Container {
    async fn take(&self) -> Result<Taken, StorageError> {
        let wrong = |reason: String| StorageError::Property {
            name: "the container's credentials".to_owned(),
            reason,
        };
        let token = match &self.authorization {
            Authorization::None => None,
            Authorization::Text(text) => Some(text.clone()),
            Authorization::File(file) => {
                let (file, shown) = (file.clone(), file.display().to_string());
                let text = web::blocking(move || super::profile::read(&file)).await;
                let text = text.and_then(|text| text);
                Some(text.map_err(|error| wrong(format!("the token in {shown}: {error}")))?)
            }
        };
        let mut request = Request::new(Method::GET, self.url.clone());
        if let Some(token) = token {
            let value = HeaderValue::from_str(token.trim());
            let value = value.map_err(|_| wrong("the token makes no header".to_owned()))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let answer = web::send(request, Limits::default(), None).await;
        let answer = answer.map_err(|error| wrong(error.to_string()))?;
        keys(&answer).map_err(wrong)
    }
}

/// The role of the machine.
#[derive(Debug)]
pub(super) struct Machine {
    endpoint: String,
}

impl Machine {
    /// `None`: the environment says that it has none.
    pub(super) fn find() -> Option<Self> {
        let is = |name: &str, value: &str| {
            variable(name).is_some_and(|given| given.eq_ignore_ascii_case(value))
        };
        if is("AWS_EC2_METADATA_DISABLED", "true") {
            return None;
        }
        let usual = match is("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6") {
            true => MACHINE_V6,
            false => MACHINE,
        };
        let endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let endpoint = endpoint.unwrap_or_else(|| usual.to_owned());
        Some(Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
        })
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        header: Option<(HeaderName, &str)>,
    ) -> Result<Answer, String> {
        let url = Url::parse(&format!("{}/latest/{path}", self.endpoint));
        let mut request = Request::new(method, url.map_err(|error| error.to_string())?);
        if let Some((name, value)) = header {
            let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
            request.headers_mut().insert(name, value);
        }
        let limits = Limits {
            patience: PATIENCE,
            ..Limits::default()
        };
        web::send(request, limits, None).await.map_err(|_| {
            "neither the properties nor the environment have any, and this machine has no role in a cloud".to_owned()
        })
    }

    async fn find_keys(&self) -> Result<Taken, String> {
        let text = |answer: Answer| match answer.status.is_success() {
            true => Ok(String::from_utf8_lossy(&answer.body).trim().to_owned()),
            false => Err(format!(
                "the machine's metadata: HTTP {}",
                answer.status.as_u16()
            )),
        };
        let asked = self
            .ask(Method::PUT, "api/token", Some((TOKEN_LIFE, "600")))
            .await?;
        // Old machines have no tokens.
        let token = match asked.status {
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => None,
            _ => Some(text(asked)?),
        };
        let header = || token.as_deref().map(|token| (TOKEN, token));
        let roles = "meta-data/iam/security-credentials/";
        let role = text(self.ask(Method::GET, roles, header()).await?)?;
        let role = role.lines().next().unwrap_or_default();
        let path = format!("{roles}{role}");
        keys(&self.ask(Method::GET, &path, header()).await?)
    }
}

#[async_trait]
impl Source for Machine {
    async fn take(&self) -> Result<Taken, StorageError> {
        let found = self.find_keys().await;
        found.map_err(|reason| StorageError::Property {
            name: "no credentials".to_owned(),
            reason,
        })
    }
}

/// The keys of an answer.
fn keys(answer: &Answer) -> Result<Taken, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Said {
        access_key_id: String,
        secret_access_key: String,
        token: Option<String>,
        expiration: Option<String>,
    }
    if !answer.status.is_success() {
        return Err(format!("HTTP {}", answer.status.as_u16()));
    }
    // Without what is there, which may be a key.
    let said: Said = serde_json::from_slice(&answer.body).map_err(|_| "the answer holds none")?;
    let expires = match said.expiration {
        Some(text) => Some(time(&text).ok_or("the time when they run out is none")?),
        None => None,
    };
    let keys = AwsCredential {
        key_id: said.access_key_id,
        secret_key: said.secret_access_key,
        token: said.token,
    };
    Ok((keys, expires))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn keys_are_asked_for_without_tls_only_of_this_machine_and_those_aws_names() {
        let may = |text: &str| may_be_asked(&Url::parse(text).unwrap());
        for text in [
            "https://keys.example.com/",
            "http://127.0.0.1:8/",
            "http://127.9.9.9/",
            "http://localhost:9/x",
            "http://[::1]/",
            "http://169.254.170.2/v2",
            "http://169.254.170.23/v1/credentials",
            "http://[fd00:ec2::23]/v1/credentials",
        ] {
            assert!(may(text), "{text}");
        }
        for text in [
            "http://keys.example.com/",
            "http://169.254.169.254/",
            "http://10.0.0.1/",
            "http://localhost.example.com/",
            "ftp://127.0.0.1/",
        ] {
            assert!(!may(text), "{text}");
        }
    }
}
