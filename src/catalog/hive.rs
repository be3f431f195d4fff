//! The Hive metastore, over its Thrift interface.
//!
//! Databases are asked for by `get_all_databases`, a table's properties by `get_table`. Which of a database's tables are
//! Iceberg's is one question (`get_table_names_by_filter`, which looks at the property `table_type`); a metastore that
//! cannot do that is asked for all names and then for the tables themselves, a hundred at a time. No metadata file is read for a
//! listing.
//!
//! Several servers may be named; the first that accepts is used. One connection serves the process, and is made again
//! when it is lost. Logins over SASL (Kerberos) and TLS are not supported.

use std::sync::{Arc, Mutex, PoisonError};

use crate::counters::Counters;
use crate::storage::Properties;

use super::metastore::{METADATA_LOCATION, Metastore, TABLE_TYPE, TableEntry, is_iceberg};
use super::{CatalogError, one_line};

mod client;
#[cfg(test)]
mod tests;
mod thrift;

use client::{Client, Server};
use thrift::{LIST, MAP, Reply, Request, STRING, STRUCT, ThriftError};

/// A metastore's own.
const PORT: u16 = 9083;

/// Tables asked for at once, where they must be looked at one by one.
const BATCH: usize = 100;

/// Both spellings that writers use. `LIKE`, since some of the metastore's databases cannot compare long texts.
const IS_ICEBERG: &str = "hive_filter_field_params__table_type LIKE \"ICEBERG\" or \
     hive_filter_field_params__table_type LIKE \"iceberg\"";

/// Properties that ask for what is not supported, by their names in PyIceberg and in Hive.
const UNSUPPORTED: [&str; 4] = [
    "hive.kerberos-authentication",
    "hive.metastore.sasl.enabled",
    "hive.metastore.use.SSL",
    "hive.metastore.thrift.compact.protocol.enabled",
];

/// Properties that ask for the framed transport.
const FRAMED: [&str; 2] = [
    "hive.thrift-framed",
    "hive.metastore.thrift.framed.transport.enabled",
];

/// Where the servers are, as a text names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Servers {
    servers: Vec<Server>,
    /// The database that is the whole source.
    pub(super) only: Option<String>,
}

impl Servers {
    /// Parses `thrift://host:port[/database][,thrift://host:port…]`.
    pub(super) fn parse(text: &str) -> Result<Self, CatalogError> {
        let wrong = |reason: &str| CatalogError::Configuration {
            catalog: "thrift".to_owned(),
            reason: reason.to_owned(),
        };
        let mut servers = Vec::new();
        let mut only = None;
        for place in text.split(',') {
            let place = place.trim();
            let place = ["thrift://", "hive://"]
                .iter()
                .find_map(|scheme| place.strip_prefix(scheme))
                .unwrap_or(place);
            if ["thrift:", "hive:"]
                .iter()
                .any(|scheme| place.starts_with(scheme))
            {
                return Err(wrong("two slashes follow the colon (thrift://host:port)"));
            }
            let (place, database) = place.split_once('/').unwrap_or((place, ""));
            if !database.is_empty() {
                only = Some(database.trim_end_matches('/').to_owned());
            }
            // What stands before an `@` is no part of the address, and may be secret.
            let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
            let (host, port) = match place
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'))
            {
                Some((address, rest)) => (address, rest.strip_prefix(':')),
                None => place
                    .split_once(':')
                    .map_or((place, None), |(host, port)| (host, Some(port))),
            };
            let port = port.map_or(Ok(PORT), str::parse);
            let port = port.map_err(|_| wrong("the port is no number from 0 to 65535"))?;
            if host.is_empty() {
                return Err(wrong("names no host (thrift://host:port)"));
            }
            servers.push((host.to_owned(), port));
        }
        Ok(Self { servers, only })
    }

    /// One text for all servers.
    pub(super) fn shown(&self) -> String {
        let servers: Vec<String> = self
            .servers
            .iter()
            .map(|(host, port)| match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            })
            .collect();
        let only = self.only.iter().map(|only| format!("/{only}"));
        format!("thrift://{}{}", servers.join(","), only.collect::<String>())
    }
}

/// A metastore.
#[derive(Debug)]
pub(super) struct Hive {
    servers: Servers,
    framed: bool,
    /// The user and group to act for.
    user: Option<(String, String)>,
    client: Mutex<Option<Client>>,
    counters: Arc<Counters>,
}

/// A result's field 0 or an exception's number, and what it says.
enum Answered<T> {
    Value(T),
    /// Of the kinds that a method may raise, by its number.
    Raised(i16, String),
}

impl Hive {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// A property asks for what is not supported.
    pub(super) fn new(
        servers: &Servers,
        properties: &Properties,
        counters: &Arc<Counters>,
    ) -> Result<Self, CatalogError> {
        let on = |name: &&&str| {
            properties.get(name).is_some_and(|value| {
                matches!(
                    value.to_ascii_lowercase().as_str(),
                    "true" | "1" | "yes" | "y" | "t" | "on"
                )
            })
        };
        if let Some(name) = UNSUPPORTED.iter().find(on) {
            return Err(CatalogError::Unsupported {
                catalog: servers.shown(),
                feature: (*name).to_owned(),
            });
        }
        let user = properties.get("ugi").map(|ugi| {
            let (user, group) = ugi.split_once(':').unwrap_or((ugi, ""));
            (user.to_owned(), group.to_owned())
        });
        Ok(Self {
            servers: servers.clone(),
            framed: FRAMED.iter().any(|name| on(&name)),
            user,
            client: Mutex::new(None),
            counters: Arc::clone(counters),
        })
    }

    /// Asks over the kept connection, or a new one where there is none or it has been lost.
    fn ask<T>(
        &self,
        question: impl Fn(&mut Client) -> Result<T, ThriftError>,
    ) -> Result<T, CatalogError> {
        self.counters.catalog_requests.add(1);
        let mut kept = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = kept.as_mut() {
            match question(client) {
                // The server has closed it meanwhile, or has been started again.
                Err(ThriftError::Io(error)) if error.kind() != std::io::ErrorKind::TimedOut => {}
                answer => return self.settle(answer, &mut kept),
            }
        }
        *kept = None;
        let mut client = self.connect().map_err(|error| self.error(error))?;
        let answer = question(&mut client);
        *kept = Some(client);
        self.settle(answer, &mut kept)
    }

    /// Keeps a connection only where the answer was read to its end.
    fn settle<T>(
        &self,
        answer: Result<T, ThriftError>,
        kept: &mut Option<Client>,
    ) -> Result<T, CatalogError> {
        answer.map_err(|error| {
            if !matches!(error, ThriftError::Exception(_)) {
                *kept = None;
            }
            self.error(error)
        })
    }

    fn connect(&self) -> Result<Client, ThriftError> {
        let mut client = Client::connect(&self.servers.servers, self.framed)?;
        if let Some((user, group)) = &self.user {
            let reply = client.call("set_ugi", |call| call.string(1, user).strings(2, &[group]))?;
            if let Answered::Raised(_, message) =
                result(reply, |reply, kind| reply.pass_over(kind))?
            {
                return Err(ThriftError::Exception(message));
            }
        }
        Ok(client)
    }

    fn error(&self, error: ThriftError) -> CatalogError {
        let catalog = self.servers.shown();
        match error {
            ThriftError::Io(error) => CatalogError::Unreachable {
                catalog,
                reason: error.to_string(),
            },
            ThriftError::Sasl => CatalogError::Unsupported {
                catalog,
                feature: error.to_string(),
            },
            ThriftError::Broken(_) => CatalogError::Answer {
                catalog,
                reason: error.to_string(),
            },
            ThriftError::Exception(message) => self.refusal(&message),
        }
    }

    /// What the server says is wrong.
    fn refusal(&self, message: &str) -> CatalogError {
        let mut reason = one_line(message);
        if reason.is_empty() {
            reason.push_str("it fails without a word");
        }
        CatalogError::Answer {
            catalog: self.servers.shown(),
            reason,
        }
    }

    /// The names of Iceberg's tables by one question; `None` where the metastore cannot tell that way.
    fn filtered(&self, database: &str) -> Result<Option<Vec<String>>, CatalogError> {
        let answer = self.ask(|client| {
            let call = |call: Request| call.string(1, database).string(2, IS_ICEBERG).small(3, -1);
            let reply = client.call("get_table_names_by_filter", call);
            match reply.and_then(|reply| result(reply, |reply, _| reply.strings())) {
                // A method that it does not know.
                Err(ThriftError::Exception(message)) => Ok(Answered::Raised(0, message)),
                answer => answer,
            }
        })?;
        Ok(match answer {
            Answered::Value(names) => Some(names),
            Answered::Raised(_, reason) => {
                tracing::debug!(database, reason, "the metastore does not filter tables");
                None
            }
        })
    }

    /// The names of Iceberg's tables by a look at all.
    fn looked_at(&self, database: &str) -> Result<Vec<String>, CatalogError> {
        let all = self.value(|client| {
            let reply = client.call("get_all_tables", |call| call.string(1, database))?;
            result(reply, |reply, _| reply.strings())
        })?;
        let mut names = Vec::new();
        for batch in all.chunks(BATCH) {
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            let tables = self.value(|client| {
                let call = |call: Request| call.string(1, database).strings(2, &batch);
                let reply = client.call("get_table_objects_by_name", call)?;
                result(reply, |reply, _| {
                    let mut tables = Vec::new();
                    for _ in 0..reply.list(STRUCT)? {
                        tables.push(table(reply)?);
                    }
                    Ok(tables)
                })
            })?;
            let iceberg = tables
                .into_iter()
                .filter(|(_, entry)| is_iceberg(entry.kind.as_deref()));
            names.extend(iceberg.filter_map(|(name, _)| name));
        }
        Ok(names)
    }

    /// An answer in which whatever is raised is an error.
    fn value<T>(
        &self,
        question: impl Fn(&mut Client) -> Result<Answered<T>, ThriftError>,
    ) -> Result<T, CatalogError> {
        match self.ask(question)? {
            Answered::Value(value) => Ok(value),
            Answered::Raised(_, message) => Err(self.refusal(&message)),
        }
    }

    fn has_database(&self, name: &str) -> Result<bool, CatalogError> {
        Ok(self.databases()?.iter().any(|other| other == name))
    }
}

impl Metastore for Hive {
    fn databases(&self) -> Result<Vec<String>, CatalogError> {
        self.value(|client| {
            let reply = client.call("get_all_databases", |call| call)?;
            result(reply, |reply, _| reply.strings())
        })
    }

    fn tables(&self, database: &str) -> Result<Option<Vec<String>>, CatalogError> {
        let names = match self.filtered(database)? {
            Some(names) => names,
            None if !self.has_database(database)? => return Ok(None),
            None => self.looked_at(database)?,
        };
        // The filter of a database that is not there finds nothing.
        if names.is_empty() && !self.has_database(database)? {
            return Ok(None);
        }
        Ok(Some(names))
    }

    fn table(&self, database: &str, name: &str) -> Result<Option<TableEntry>, CatalogError> {
        let asked = self.ask(|client| {
            let call = |call: Request| call.string(1, database).string(2, name);
            let reply = client.call("get_table", call)?;
            result(reply, |reply, _| table(reply))
        });
        let answer = match asked {
            // Later metastores have another method for it.
            Err(CatalogError::Answer { .. }) => self.ask(|client| {
                let call = |call: Request| call.texts(1, &[(1, database), (2, name)]);
                let reply = client.call("get_table_req", call)?;
                result(reply, |reply, _| {
                    let mut found = None;
                    while let Some((kind, id)) = reply.next_field()? {
                        if (kind, id) == (STRUCT, 1) {
                            found = Some(table(reply)?);
                        } else {
                            reply.pass_over(kind)?;
                        }
                    }
                    found.ok_or(ThriftError::Broken("a result without a table"))
                })
            }),
            answer => answer,
        };
        match answer? {
            Answered::Value((_, entry)) => Ok(Some(entry)),
            // NoSuchObjectException.
            Answered::Raised(2, _) => Ok(None),
            Answered::Raised(_, message) => Err(self.refusal(&message)),
        }
    }

    fn name(&self) -> String {
        self.servers.shown()
    }
}

/// Reads a result to its end: its value by `value`, which is given the value's type, or what is raised instead.
fn result<R: std::io::Read, T>(
    mut reply: Reply<R>,
    value: impl FnOnce(&mut Reply<R>, u8) -> Result<T, ThriftError>,
) -> Result<Answered<T>, ThriftError> {
    let mut value = Some(value);
    let mut answered = None;
    while let Some((kind, id)) = reply.next_field()? {
        match (id, value.take()) {
            (0, Some(value)) if matches!(kind, LIST | STRUCT) => {
                answered = Some(Answered::Value(value(&mut reply, kind)?));
            }
            (id, unused) if id > 0 && kind == STRUCT => {
                value = unused;
                answered = Some(Answered::Raised(id, message(&mut reply)?));
            }
            _ => return Err(ThriftError::Broken("a result of another type")),
        }
    }
    answered.ok_or(ThriftError::Broken("a result without a value"))
}

/// The text of an exception.
fn message<R: std::io::Read>(reply: &mut Reply<R>) -> Result<String, ThriftError> {
    let mut message = String::new();
    while let Some((kind, id)) = reply.next_field()? {
        if (kind, id) == (STRING, 1) {
            message = reply.string()?;
        } else {
            reply.pass_over(kind)?;
        }
    }
    Ok(message)
}

/// What of a table's description is of use: its name and two of its properties.
fn table<R: std::io::Read>(
    reply: &mut Reply<R>,
) -> Result<(Option<String>, TableEntry), ThriftError> {
    let mut name = None;
    let mut entry = TableEntry::default();
    while let Some((kind, id)) = reply.next_field()? {
        match (id, kind) {
            (1, STRING) => name = Some(reply.string()?),
            (9, MAP) => {
                for _ in 0..reply.text_map()? {
                    let property = reply.string()?;
                    match property.as_str() {
                        TABLE_TYPE => entry.kind = Some(reply.string()?),
                        METADATA_LOCATION => entry.metadata_location = Some(reply.string()?),
                        _ => reply.pass_over(STRING)?,
                    }
                }
            }
            (_, kind) => reply.pass_over(kind)?,
        }
    }
    Ok((name, entry))
}
