//! The AWS Glue Data Catalog.
//!
//! Questions are JSON over HTTPS, signed with AWS's own keys. Answers come by pages of at most [`PAGE`]. A listing shows
//! each table's properties already, so that Iceberg's are told from others without asking for each.
//!
//! The catalog is that of the account the keys belong to, or of `glue.id`, in the region of `glue.region`; keys and
//! region are looked for in the properties (`glue.`, then `client.`, then `s3.`), else where AWS's own tools find them.

use std::fmt;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::Url;

use crate::counters::Counters;
use crate::storage::web::{self, Answer, Limits, WebError};
use crate::storage::{AwsIdentity, Properties, sign_for_aws};

use super::metastore::{Metastore, TableEntry};
use super::{CatalogError, one_line};

#[cfg(test)]
mod tests;

/// What the service allows in one answer.
const PAGE: u32 = 100;

/// Answers of one listing, and names in it: more than an account may have, and an end to one that never ends.
const MAX_PAGES: usize = 20_000;
const MAX_NAMES: usize = 2_000_000;

const TARGET: HeaderName = HeaderName::from_static("x-amz-target");
const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.1");

/// Where properties for Glue are looked for, the first that has any.
const PREFIXES: [&str; 3] = ["glue.", "client.", "s3."];

/// An account, and a database where that is the whole source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    account: Option<String>,
    pub(super) database: Option<String>,
}

impl Place {
    /// Parses what follows `glue:`: `//[account][/database]`.
    pub(super) fn parse(rest: &str) -> Self {
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (account, database) = rest.split_once('/').unwrap_or((rest, ""));
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            account: some(account),
            database: some(database.trim_end_matches('/')),
        }
    }

    pub(super) fn shown(&self) -> String {
        let account = self.account.as_deref().unwrap_or_default();
        let database = self.database.iter().map(|name| format!("/{name}"));
        format!("glue://{account}{}", database.collect::<String>())
    }
}

/// The service in one region, for one account.
pub(super) struct Glue {
    name: String,
    endpoint: Url,
    region: String,
    account: Option<String>,
    keys: Arc<dyn CredentialProvider<Credential = AwsCredential>>,
    counters: Arc<Counters>,
}

impl fmt::Debug for Glue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glue").field(&self.name).finish()
    }
}

/// Why the service gave no answer.
enum Refusal {
    /// `EntityNotFoundException`.
    Missing,
    Error(CatalogError),
}

impl Glue {
    /// Asks nothing yet.
    ///
    /// # Errors
    /// There is no region, or a property cannot be followed.
    pub(super) fn new(
        place: &Place,
        properties: &Properties,
        counters: &Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let name = place.shown();
        let wrong = |reason: String| CatalogError::Configuration {
            catalog: name.clone(),
            reason,
        };
        let identity = AwsIdentity::find(&identity_properties(properties))
            .map_err(|error| wrong(error.to_string()))?;
        let region = property(properties, "region")
            .map(str::to_owned)
            .or(identity.region)
            .ok_or_else(|| wrong("glue.region: no region is known".to_owned()))?;
        if !region
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        {
            return Err(wrong("glue.region: names no region".to_owned()));
        }
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoint = properties
            .get("glue.endpoint")
            .map(str::to_owned)
            .or_else(|| variable("AWS_ENDPOINT_URL_GLUE"))
            .or_else(|| variable("AWS_ENDPOINT_URL"))
            .or(identity.endpoint)
            .unwrap_or_else(|| {
                let end = if region.starts_with("cn-") { ".cn" } else { "" };
                format!("https://glue.{region}.amazonaws.com{end}")
            });
        let endpoint = if endpoint.contains("://") {
            endpoint
        } else {
            format!("https://{endpoint}")
        };
        let endpoint =
            Url::parse(&endpoint).map_err(|error| wrong(format!("glue.endpoint: {error}")))?;
        let account = place
            .account
            .clone()
            .or_else(|| properties.get("glue.id").map(str::to_owned));
        Ok(Self {
            name,
            endpoint,
            region,
            account: account.filter(|account| !account.is_empty()),
            keys: identity.keys,
            counters: Arc::clone(counters),
        })
    }

    /// Asks one question. The body has the account added.
    fn ask<T: DeserializeOwned>(&self, action: &str, body: Value) -> Result<T, Refusal> {
        let answer = web::block_on(self.send(action, body))
            .map_err(|error| Refusal::Error(self.unreachable(error.to_string())))?
            .map_err(Refusal::Error)?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(action, &answer));
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            Refusal::Error(self.wrong(format!("{action}: an answer that makes no sense: {error}")))
        })
    }

    async fn send(&self, action: &str, body: Value) -> Result<Answer, CatalogError> {
        let mut fields = match body {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        if let Some(account) = &self.account {
            fields.insert("CatalogId".to_owned(), json!(account));
        }
        let mut request = Request::new(Method::POST, self.endpoint.clone());
        let target = HeaderValue::from_str(&format!("AWSGlue.{action}"))
            .map_err(|_| self.wrong(format!("{action}: no such action")))?;
        request.headers_mut().insert(TARGET, target);
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        *request.body_mut() = Some(Value::Object(fields).to_string().into());
        self.sign(&mut request).await?;
        self.counters.catalog_requests.add(1);
        let sent = web::send(request, Limits::default(), None).await;
        sent.map_err(|error| match error {
            // Without its times and counts, which would make each outage another.
            WebError::Unanswered { reason, .. } => self.unreachable(reason),
            other => self.unreachable(other.to_string()),
        })
    }

    async fn sign(&self, request: &mut Request) -> Result<(), CatalogError> {
        let failed = |reason: String| self.wrong(format!("requests cannot be signed: {reason}"));
        let keys = self.keys.get_credential().await;
        let keys = keys.map_err(|error| failed(error.to_string()))?;
        sign_for_aws(request, &keys, "glue", &self.region).map_err(failed)
    }

    fn unreachable(&self, reason: String) -> CatalogError {
        CatalogError::Unreachable {
            catalog: self.name.clone(),
            reason,
        }
    }

    fn wrong(&self, reason: String) -> CatalogError {
        CatalogError::Answer {
            catalog: self.name.clone(),
            reason,
        }
    }

    /// What an answer means that is not what was asked for.
    fn refusal(&self, action: &str, answer: &Answer) -> Refusal {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Said {
            #[serde(rename = "__type")]
            kind: String,
            #[serde(alias = "Message")]
            message: String,
        }
        let said: Said = serde_json::from_slice(&answer.body).unwrap_or_default();
        // It may have a namespace before it.
        let kind = said.kind.rsplit('#').next().unwrap_or_default();
        if kind == "EntityNotFoundException" {
            return Refusal::Missing;
        }
        let message = one_line(&said.message);
        let parts = [kind, &message].into_iter().filter(|part| !part.is_empty());
        let said: String = parts.map(|part| format!(": {part}")).collect();
        let reason = format!("{action}: HTTP {}{said}", answer.status.as_u16());
        let is_busy = matches!(
            kind,
            "ThrottlingException" | "InternalServiceException" | "OperationTimeoutException"
        );
        Refusal::Error(if is_busy || web::is_temporary(answer.status) {
            self.unreachable(reason)
        } else {
            self.wrong(reason)
        })
    }

    /// All pages of a listing.
    fn pages<T: DeserializeOwned>(
        &self,
        action: &str,
        question: &Value,
        mut page: impl FnMut(T) -> (Vec<String>, Option<String>),
    ) -> Result<Vec<String>, Refusal> {
        let mut names = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut body = question.clone();
            if let Some(token) = &token {
                body["NextToken"] = json!(token);
            }
            let (found, next) = page(self.ask(action, body)?);
            names.extend(found);
            if names.len() > MAX_NAMES {
                break;
            }
            match next.filter(|next| !next.is_empty()) {
                None => return Ok(names),
                same if same == token => break,
                next => token = next,
            }
        }
        Err(Refusal::Error(
            self.wrong(format!("{action}: a listing that does not end")),
        ))
    }
}

#[derive(Deserialize)]
struct Databases {
    #[serde(default, rename = "DatabaseList")]
    databases: Vec<Named>,
    #[serde(rename = "NextToken")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "Name")]
    name: String,
}

#[derive(Deserialize)]
struct Tables {
    #[serde(default, rename = "TableList")]
    tables: Vec<Table>,
    #[serde(rename = "NextToken")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Table {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Parameters")]
    parameters: Option<Parameters>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    #[serde(rename = "table_type")]
    kind: Option<String>,
    metadata_location: Option<String>,
}

impl Table {
    fn entry(self) -> TableEntry {
        let parameters = self.parameters.unwrap_or_default();
        TableEntry {
            kind: parameters.kind,
            metadata_location: parameters.metadata_location,
        }
    }
}

#[derive(Deserialize)]
struct OneTable {
    #[serde(rename = "Table")]
    table: Table,
}

impl Metastore for Glue {
    fn databases(&self) -> Result<Vec<String>, CatalogError> {
        let question = json!({"MaxResults": PAGE});
        let listed = self.pages("GetDatabases", &question, |page: Databases| {
            let names = page.databases.into_iter().map(|database| database.name);
            (names.collect(), page.next)
        });
        listed.map_err(|refusal| match refusal {
            Refusal::Missing => self.wrong("GetDatabases: there is no such catalog".to_owned()),
            Refusal::Error(error) => error,
        })
    }

    fn tables(&self, database: &str) -> Result<Option<Vec<String>>, CatalogError> {
        let question = json!({"DatabaseName": database, "MaxResults": PAGE});
        let listed = self.pages("GetTables", &question, |page: Tables| {
            let names = page.tables.into_iter().filter_map(|table| {
                let name = table.name.clone();
                table.entry().is_iceberg().then_some(name)
            });
            (names.collect(), page.next)
        });
        match listed {
            Ok(names) => Ok(Some(names)),
            Err(Refusal::Missing) => Ok(None),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    fn table(&self, database: &str, name: &str) -> Result<Option<TableEntry>, CatalogError> {
        let question = json!({"DatabaseName": database, "Name": name});
        match self.ask::<OneTable>("GetTable", question) {
            Ok(found) => Ok(Some(found.table.entry())),
            Err(Refusal::Missing) => Ok(None),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// The first of the prefixes' properties of a name.
fn property<'p>(properties: &'p Properties, name: &str) -> Option<&'p str> {
    let values = PREFIXES.iter().map(|prefix| format!("{prefix}{name}"));
    let mut values = values.filter_map(|name| properties.get(&name));
    values.find(|value| !value.is_empty())
}

/// Who asks, by the names that stores have for it: the keys of one prefix, never parts of several.
fn identity_properties(properties: &Properties) -> Properties {
    let mut identity = Properties::default();
    let mut take = |from: &str, to: &str| {
        if let Some(value) = properties.get(from).filter(|value| !value.is_empty()) {
            identity.0.insert(to.to_owned(), value.to_owned());
        }
    };
    let has_keys = |prefix: &&&str| properties.get(&format!("{prefix}access-key-id")).is_some();
    if let Some(prefix) = PREFIXES.iter().find(has_keys) {
        for name in ["access-key-id", "secret-access-key", "session-token"] {
            take(&format!("{prefix}{name}"), &format!("client.{name}"));
        }
    }
    let has_profile = |prefix: &&&str| properties.get(&format!("{prefix}profile-name")).is_some();
    if let Some(prefix) = PREFIXES.iter().find(has_profile) {
        take(&format!("{prefix}profile-name"), "client.profile-name");
    }
    for name in properties.0.keys() {
        if name.starts_with("client.role") || name.starts_with("client.assume-role") {
            take(name, name);
        }
    }
    identity
}
