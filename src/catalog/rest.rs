//! The Iceberg REST catalog: tables that a server knows, by the open definition that Polaris, Nessie, Lakekeeper, Unity,
//! Gravitino, Glue, S3 Tables and others follow.
//!
//! ```text
//! RestCatalog ─► Service ─► Session ─► Auth ─► Transport ─► web::send
//!  what the      what the    asks once  tokens, headers,
//!  tree asks     server is   more after signing errors
//!                            a 401
//! ```
//!
//! The catalog is asked for its configuration when it is mounted. Listing a namespace is one question a page for its tables
//! and one for the namespaces in it; no table is loaded for it. Loading a table gives its metadata along with its place, so
//! that the metadata file itself is not read, and how its stores are reached: the catalog's properties, the table's own,
//! credentials that are lent and renewed ([`delegation`]), or the catalog's signature. A table that has not changed since
//! (`ETag`) is not sent again.
//!
//! Views and functions are not shown: they are no tables.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use url::Url;

use crate::counters::Counters;
use crate::storage::{Properties, web};

use super::{Catalog, CatalogError, Listing, TableIdent, TablePointer};

mod auth;
mod configuration;
mod delegation;
mod load;
mod names;
mod session;
mod sigv4;
#[cfg(test)]
mod tests;
mod tokens;
mod transport;

use auth::Auth;
use configuration::{Configuration, Endpoint};
use load::{Answered, Loaded};
use names::Paths;
use session::{Question, Session};
use transport::{Transport, is_temporary};

/// Tables whose last answer is kept, to be used again where nothing has changed: as many as the tree keeps.
const MAX_LOADED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(511);

/// Pages of one listing, and names in it: more than any catalog has, and an end to one that never ends.
const MAX_PAGES: usize = 20_000;
const MAX_NAMES: usize = 2_000_000;

/// What is asked to be lent for the stores, unless `rest.access-delegation` says otherwise (`none`: nothing).
const DELEGATION: &str = "vended-credentials,remote-signing";
const DELEGATION_HEADER: HeaderName = HeaderName::from_static("x-iceberg-access-delegation");
const DELEGATION_PROPERTY: &str = "rest.access-delegation";

/// A catalog's server, as it has said it is.
#[derive(Debug)]
struct Service {
    name: String,
    base: Url,
    /// Of the catalog's configuration.
    config: Url,
    session: Session,
    paths: Paths,
    configuration: Configuration,
}

/// A REST catalog, or one table of it.
#[derive(Debug)]
pub(super) struct RestCatalog {
    service: Arc<Service>,
    only: Option<TableIdent>,
    loaded: Mutex<LruCache<TableIdent, Loaded>>,
}

impl RestCatalog {
    /// Asks the server at `base` for its configuration. `only`: the table that is the whole source.
    ///
    /// # Errors
    /// The server cannot be reached, or is no REST catalog, or a property cannot be followed.
    pub(super) fn open(
        base: &Url,
        only: Option<TableIdent>,
        properties: &Properties,
        counters: &Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let name = shown(base, None);
        let service = with_blocking(&name, Service::open(&name, base, properties, counters))?;
        Ok(Self {
            service: Arc::new(service),
            only,
            loaded: Mutex::new(LruCache::new(MAX_LOADED)),
        })
    }
}

/// How a REST catalog, or a table of it, is shown and named: without user, password and query.
pub(super) fn shown(base: &Url, only: Option<&TableIdent>) -> String {
    let mut base = base.clone();
    // Fails only for URLs that can have neither.
    let _ = base.set_username("");
    let _ = base.set_password(None);
    base.set_query(None);
    base.set_fragment(None);
    let mut text = format!("rest+{}", base.as_str().trim_end_matches('/'));
    if let Some(ident) = only {
        let levels = ident.namespace.iter().chain([&ident.name]);
        let levels: Vec<String> = levels
            .map(|level| names::encode(level).replace('.', "%2E"))
            .collect();
        text.push('#');
        text.push_str(&levels.join("."));
    }
    text
}

/// The server's URL, and the one table that a source of the form `rest+https://host/base#namespace.table` means.
///
/// # Errors
/// What is wrong with it, without repeating it: it may hold a password.
pub(super) fn parse(text: &str) -> Result<(Url, Option<TableIdent>), String> {
    let mut base = Url::parse(text).map_err(|error| format!("no valid URL: {error}"))?;
    if base.host_str().is_none() || !matches!(base.scheme(), "http" | "https") {
        return Err("expected rest+https://HOST[:PORT][/BASE][#NAMESPACE.TABLE]".to_owned());
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(
            "a user and password belong into a file of properties (rest.auth.type=basic, \
                    rest.auth.basic.username, rest.auth.basic.password)"
                .to_owned(),
        );
    }
    if base.query().is_some() {
        return Err("options are given as properties: -p warehouse=NAME".to_owned());
    }
    let fragment = base.fragment().map(str::to_owned);
    base.set_fragment(None);
    let Some(fragment) = fragment else {
        return Ok((base, None));
    };
    let levels: Option<Vec<String>> = fragment.split('.').map(names::decode).collect();
    let mut levels = levels
        .filter(|levels| levels.len() > 1 && levels.iter().all(|level| !level.is_empty()))
        .ok_or("after # stands NAMESPACE.TABLE, in which a dot of a name is written %2E")?;
    let name = levels.pop().unwrap_or_default();
    let ident = TableIdent {
        namespace: levels,
        name,
    };
    Ok((base, Some(ident)))
}

/// Waits for an answer.
fn with_blocking<T>(
    name: &str,
    asked: impl Future<Output = Result<T, CatalogError>>,
) -> Result<T, CatalogError> {
    web::block_on(asked).map_err(|source| CatalogError::Io {
        path: name.to_owned(),
        source,
    })?
}

impl Service {
    async fn open(
        name: &str,
        base: &Url,
        properties: &Properties,
        counters: &Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let first = Session {
            transport: Arc::new(Transport::new(name, properties, counters)?),
            auth: Auth::new(properties, base, name)?,
        };
        let config = Url::parse(&names::endpoint(base, "v1/config"))
            .map_err(|error| first.transport.wrong(error.to_string()))?;
        let configuration = Configuration::ask(&first, &config, properties).await?;
        let merged = &configuration.properties;
        let base = match merged.get("uri") {
            Some(uri) => moved(base, uri).map_err(|reason| first.transport.wrong(reason))?,
            None => base.clone(),
        };
        let transport = Arc::new(Transport::new(name, merged, counters)?);
        let auth = Auth::new(merged, &base, name)?;
        auth.follow(&first.auth, &transport).await;
        let paths = Paths::new(name, &base, merged.get("prefix"), configuration.separator())?;
        Ok(Self {
            name: name.to_owned(),
            base,
            config,
            session: Session { transport, auth },
            paths,
            configuration,
        })
    }

    /// Whether the server is there, whatever it says.
    async fn answers(&self) -> Result<(), CatalogError> {
        let request = self.transport().request(Method::GET, self.config.clone());
        let answer = self.transport().send_briefly(request).await?;
        if is_temporary(answer.status) {
            return Err(self.transport().refusal("v1/config was asked for", &answer));
        }
        Ok(())
    }

    fn transport(&self) -> &Transport {
        &self.session.transport
    }

    /// What asks for credentials or signatures to be lent.
    fn delegation_header(&self) -> Vec<(HeaderName, HeaderValue)> {
        let asked = self.configuration.properties.get(DELEGATION_PROPERTY);
        let asked = asked.unwrap_or(DELEGATION);
        let value = HeaderValue::from_str(asked).ok();
        let value = value.filter(|_| !asked.is_empty() && !asked.eq_ignore_ascii_case("none"));
        value
            .map(|value| (DELEGATION_HEADER, value))
            .into_iter()
            .collect()
    }

    /// All of a listing, page after page.
    async fn pages<P: Page>(
        &self,
        url: Url,
        parent: Option<&str>,
    ) -> Result<Pages<P::Item>, CatalogError> {
        let page_size = self.configuration.properties.get("rest-page-size");
        let mut items = Vec::new();
        // An empty one tells a server that pages are understood.
        let mut token = String::new();
        for _ in 0..MAX_PAGES {
            let mut query: Vec<(&str, &str)> = Vec::new();
            query.extend(parent.map(|parent| ("parent", parent)));
            query.push(("pageToken", &token));
            query.extend(page_size.map(|size| ("pageSize", size)));
            let answer = self
                .session
                .ask(&Question::get(url.clone(), &query))
                .await?;
            if !answer.status.is_success() {
                return Ok(Pages::Refused {
                    status: answer.status,
                    error: self.transport().refusal(P::WHAT, &answer),
                });
            }
            let page: P = serde_json::from_slice(&answer.body)
                .map_err(|error| self.transport().wrong(format!("{}: {error}", P::WHAT)))?;
            let (more, next) = page.split();
            items.extend(more);
            if items.len() > MAX_NAMES {
                break;
            }
            match next.filter(|next| !next.is_empty()) {
                None => return Ok(Pages::All(items)),
                Some(next) if next == token => {
                    let reason = format!("{}: a page leads to itself", P::WHAT);
                    return Err(self.transport().wrong(reason));
                }
                Some(next) => token = next,
            }
        }
        let reason = format!(
            "{}: more than {MAX_NAMES} names or {MAX_PAGES} pages",
            P::WHAT
        );
        Err(self.transport().wrong(reason))
    }

    async fn namespaces(&self, above: &[String]) -> Result<Pages<Vec<String>>, CatalogError> {
        if !self.configuration.has(Endpoint::ListNamespaces) {
            return Err(self.unlisted("namespaces"));
        }
        let parent = match above {
            [] => None,
            above => Some(self.paths.parent(above)?),
        };
        self.pages::<NamespacesPage>(self.paths.namespaces()?, parent.as_deref())
            .await
    }

    async fn tables(&self, namespace: &[String]) -> Result<Pages<Identifier>, CatalogError> {
        if !self.configuration.has(Endpoint::ListTables) {
            return Err(self.unlisted("tables"));
        }
        self.pages::<TablesPage>(self.paths.tables(namespace)?, None)
            .await
    }

    fn unlisted(&self, what: &str) -> CatalogError {
        CatalogError::Unsupported {
            catalog: self.name.clone(),
            feature: format!(
                "a catalog that does not list {what} (mount a table: {}#NAMESPACE.TABLE)",
                self.name
            ),
        }
    }

    async fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        let mut listing = Listing::default();
        // At the top there are none.
        if !namespace.is_empty() {
            let tables = self.tables(namespace).await?.all()?;
            let here = tables
                .into_iter()
                .filter(|table| table.namespace.as_ref().is_none_or(|of| of == namespace));
            listing.tables = here.map(|table| table.name).collect();
        }
        let below = match self.namespaces(namespace).await {
            Ok(Pages::Refused { status, error }) if !namespace.is_empty() && is_no(status) => {
                // There are none where namespaces have one level.
                tracing::debug!(%error, "no namespaces in this one");
                Vec::new()
            }
            Err(CatalogError::Unsupported { .. }) if !namespace.is_empty() => Vec::new(),
            answered => answered?.all()?,
        };
        // Some servers list all there are, whatever they were asked for.
        listing.namespaces = below
            .into_iter()
            .filter_map(|mut levels| {
                let name = levels.pop()?;
                (levels == namespace).then_some(name)
            })
            .collect();
        for names in [&mut listing.tables, &mut listing.namespaces] {
            names.retain(|name| !name.is_empty());
            names.sort();
            names.dedup();
        }
        Ok(listing)
    }
}

/// Where a catalog says it is to be asked from now on.
fn moved(base: &Url, uri: &str) -> Result<Url, String> {
    let url = Url::parse(uri).map_err(|error| format!("its uri is none: {error}"))?;
    let secure = url.scheme() == "https" || base.scheme() == "http";
    if !secure || !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("its uri leads from https to what is not".to_owned());
    }
    Ok(url)
}

/// Whether a status says that what was asked does not exist there, and not that it may not be known.
fn is_no(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405 | 406 | 501)
}

/// What came of a listing.
enum Pages<T> {
    All(Vec<T>),
    Refused {
        status: StatusCode,
        error: CatalogError,
    },
}

impl<T> Pages<T> {
    fn all(self) -> Result<Vec<T>, CatalogError> {
        match self {
            Self::All(items) => Ok(items),
            Self::Refused { error, .. } => Err(error),
        }
    }
}

/// A page of a listing.
trait Page: serde::de::DeserializeOwned {
    type Item;
    /// What was asked, for messages.
    const WHAT: &'static str;
    /// What it lists, and the token of the next.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct NamespacesPage {
    namespaces: Vec<Vec<String>>,
    next_page_token: Option<String>,
}

impl Page for NamespacesPage {
    type Item = Vec<String>;
    const WHAT: &'static str = "its namespaces were asked for";

    fn split(self) -> (Vec<Self::Item>, Option<String>) {
        (self.namespaces, self.next_page_token)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TablesPage {
    identifiers: Vec<Identifier>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Identifier {
    namespace: Option<Vec<String>>,
    name: String,
}

impl Page for TablesPage {
    type Item = Identifier;
    const WHAT: &'static str = "a namespace's tables were asked for";

    fn split(self) -> (Vec<Self::Item>, Option<String>) {
        (self.identifiers, self.next_page_token)
    }
}

impl Catalog for RestCatalog {
    fn single_table(&self) -> Option<TableIdent> {
        self.only.clone()
    }

    fn list(&self, namespace: &[String]) -> Result<Listing, CatalogError> {
        match &self.only {
            None => with_blocking(&self.service.name, self.service.list(namespace)),
            Some(only) => Ok(Listing {
                namespaces: Vec::new(),
                tables: vec![only.name.clone()],
            }),
        }
    }

    fn table(&self, ident: &TableIdent) -> Result<Option<TablePointer>, CatalogError> {
        // A name that stands at the top is no table's.
        if ident.namespace.is_empty() {
            return Ok(None);
        }
        let loaded = || self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded().get(ident).cloned();
        let tag = known.as_ref().and_then(|known| known.etag.as_ref());
        let asked = load::ask(&self.service, ident, tag);
        match (with_blocking(&self.service.name, asked)?, known) {
            (Answered::Loaded(table), _) => {
                let pointer = table.pointer.clone();
                if table.etag.is_some() {
                    loaded().put(ident.clone(), *table);
                } else {
                    loaded().pop(ident);
                }
                Ok(Some(pointer))
            }
            (Answered::Unchanged, Some(known)) => Ok(Some(known.pointer)),
            (Answered::Unchanged | Answered::Missing, _) => {
                loaded().pop(ident);
                Ok(None)
            }
        }
    }

    fn answers(&self) -> Result<(), CatalogError> {
        with_blocking(&self.service.name, self.service.answers())
    }

    fn tables_lie_where_recorded(&self) -> bool {
        true
    }
}
