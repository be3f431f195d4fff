//! What a catalog says about itself (`GET v1/config`): properties before and after the client's own, and what can be asked.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use url::Url;

use crate::catalog::CatalogError;
use crate::storage::Properties;

use super::session::{Question, Session};

/// What can be asked, as the list of endpoints has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    ListNamespaces,
    ListTables,
    LoadTable,
    LoadCredentials,
    Sign,
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::ListNamespaces => "GET /v1/{prefix}/namespaces",
            Self::ListTables => "GET /v1/{prefix}/namespaces/{namespace}/tables",
            Self::LoadTable => "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
            Self::LoadCredentials => {
                "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
            }
            Self::Sign => "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
        }
    }

    /// Whether a catalog that lists none is taken to have it.
    fn is_old(self) -> bool {
        !matches!(self, Self::LoadCredentials | Self::Sign)
    }
}

/// A catalog's configuration, with the client's properties in it.
#[derive(Debug)]
pub(super) struct Configuration {
    pub(super) properties: Properties,
    /// `None`: the catalog lists none.
    endpoints: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
struct ConfigAnswer {
    defaults: Option<Map<String, Json>>,
    overrides: Option<Map<String, Json>>,
    endpoints: Option<Vec<String>>,
}

impl Configuration {
    /// Asks the catalog at `url`. `own` are the client's properties.
    pub(super) async fn ask(
        session: &Session,
        url: &Url,
        own: &Properties,
    ) -> Result<Self, CatalogError> {
        let transport = &session.transport;
        let warehouse: Vec<(&str, &str)> = own
            .get("warehouse")
            .map(|name| ("warehouse", name))
            .into_iter()
            .collect();
        let answer = session.ask(&Question::get(url.clone(), &warehouse)).await?;
        if !answer.status.is_success() {
            return Err(transport.refusal("its configuration (v1/config) was asked for", &answer));
        }
        let said: ConfigAnswer = serde_json::from_slice(&answer.body).map_err(|error| {
            transport.wrong(format!("v1/config answers no configuration: {error}"))
        })?;
        let mut properties = texts(said.defaults);
        properties.0.extend(
            own.0
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        properties.0.extend(texts(said.overrides).0);
        let endpoints = said.endpoints.filter(|listed| !listed.is_empty());
        Ok(Self {
            properties,
            endpoints: endpoints.map(|listed| listed.iter().map(|name| normal(name)).collect()),
        })
    }

    /// Whether the catalog answers such questions.
    pub(super) fn has(&self, endpoint: Endpoint) -> bool {
        match &self.endpoints {
            None => endpoint.is_old(),
            Some(listed) => listed.contains(&normal(endpoint.name())),
        }
    }

    /// The separator of namespaces in paths, as the catalog wrote it.
    pub(super) fn separator(&self) -> Option<&str> {
        ["namespace-separator", "rest-namespace-separator"]
            .into_iter()
            .find_map(|name| self.properties.get(name))
    }
}

/// An endpoint without the names of its parameters, which catalogs spell in their own ways, and without the prefix, which
/// some leave out.
fn normal(endpoint: &str) -> String {
    let mut words = endpoint.split_whitespace();
    let verb = words.next().unwrap_or_default().to_ascii_uppercase();
    let parts: Vec<&str> = words
        .next()
        .unwrap_or_default()
        .split('/')
        .filter(|part| !part.is_empty() && *part != "{prefix}")
        .map(|part| if part.starts_with('{') { "{}" } else { part })
        .collect();
    format!("{verb} /{}", parts.join("/"))
}

/// The texts of an object; numbers and truth values as texts, and nothing else.
pub(super) fn texts(object: Option<Map<String, Json>>) -> Properties {
    let members = object.unwrap_or_default().into_iter();
    let scalars = members.filter_map(|(name, value)| match value {
        Json::String(text) => Some((name, text)),
        Json::Bool(_) | Json::Number(_) => Some((name, value.to_string())),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    });
    Properties(scalars.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_the_same_in_all_their_spellings() {
        let tables = normal(Endpoint::ListTables.name());
        for spelling in [
            "get  /v1/{prefix}/namespaces/{ns}/tables",
            " GET /v1/namespaces/{namespace}/tables/",
        ] {
            assert_eq!(normal(spelling), tables);
        }
        assert_ne!(
            normal("POST /v1/{prefix}/namespaces/{namespace}/tables"),
            tables
        );
    }
}
