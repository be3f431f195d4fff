//! PostgreSQL as the database of a catalog.
//!
//! One connection serves the process. It is made when it is first needed and again when it is lost: a question that
//! finds it broken is asked once more over a new one. All we ever do is SELECT. How long a statement may take is watched
//! here and not set on the server, which a pooler in between would not allow, or would do to other clients' statements.

use std::error::Error as _;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Column, Database, MAX_ROWS, QueryError};
use crate::catalog::CatalogError;
use crate::storage::web;

mod target;
#[cfg(test)]
mod tests;
mod tls;

pub(in crate::catalog) use target::Target;

/// How long a connection may take, encryption and login included.
const CONNECT: Duration = Duration::from_secs(10);

/// How long one statement may take.
const STATEMENT: Duration = Duration::from_secs(20);

/// A database on a server.
pub(in crate::catalog) struct Postgres {
    config: Config,
    tls: MakeRustlsConnect,
    name: String,
    client: Mutex<Option<Arc<Client>>>,
}

impl Postgres {
    /// Connects to nothing yet.
    pub(in crate::catalog) fn new(target: &Target) -> Result<Self, CatalogError> {
        let tls = tls::connector(target)?;
        let mut config = target.config();
        config
            .application_name("bergfs")
            .connect_timeout(CONNECT)
            .keepalives_idle(Duration::from_secs(60));
        Ok(Self {
            config,
            tls,
            name: target.shown(),
            client: Mutex::new(None),
        })
    }

    async fn ask(
        &self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError> {
        let (client, fresh) = self.client().await?;
        match self.rows(&client, statement, parameters).await {
            Err(Failure::Lost(_)) if !fresh => {
                self.forget(&client).await;
                let (client, _) = self.client().await?;
                let answer = self.rows(&client, statement, parameters).await;
                answer.map_err(|failure| self.error(failure))
            }
            Err(failure @ (Failure::Lost(_) | Failure::Late)) => {
                self.forget(&client).await;
                Err(self.error(failure))
            }
            answer => answer.map_err(|failure| self.error(failure)),
        }
    }

    /// The connection, and whether it has just been made.
    async fn client(&self) -> Result<(Arc<Client>, bool), QueryError> {
        let mut kept = self.client.lock().await;
        if let Some(client) = kept.as_ref().filter(|client| !client.is_closed()) {
            return Ok((Arc::clone(client), false));
        }
        let connected = tokio::time::timeout(CONNECT, self.config.connect(self.tls.clone())).await;
        let (client, connection) = connected
            .map_err(|_| self.error(Failure::Late))?
            .map_err(|error| self.error(Failure::of(error)))?;
        tokio::spawn(async move {
            // What it ends with is told to those who wait for answers.
            let _ = connection.await;
        });
        let client = Arc::new(client);
        *kept = Some(Arc::clone(&client));
        Ok((client, true))
    }

    /// Drops a connection that is of no use, unless another has replaced it.
    async fn forget(&self, client: &Arc<Client>) {
        let mut kept = self.client.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, client)) {
            *kept = None;
        }
    }

    async fn rows(
        &self,
        client: &Client,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, Failure> {
        let statement = format!("{statement} LIMIT {MAX_ROWS}");
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> = parameters
            .iter()
            .map(|text| (text as &(dyn ToSql + Sync), Type::TEXT))
            .collect();
        // Without a name, so that a pooler may give the next statement to another connection.
        let query = client.query_typed(&statement, &parameters);
        let rows = match tokio::time::timeout(STATEMENT, query).await {
            Ok(rows) => rows.map_err(Failure::of)?,
            Err(_) => {
                // Best effort: the connection is dropped in any case.
                let token = client.cancel_token();
                let cancel = token.cancel_query(self.tls.clone());
                let _ = tokio::time::timeout(CONNECT, cancel).await;
                return Err(Failure::Late);
            }
        };
        let mut column = Column::default();
        for row in rows {
            let value: Option<&str> = row.try_get(0).map_err(Failure::of)?;
            column.push(value, &self.name).map_err(Failure::Known)?;
        }
        Ok(column.values)
    }

    fn error(&self, failure: Failure) -> QueryError {
        let catalog = self.name.clone();
        match failure {
            Failure::Known(error) => error,
            Failure::Lost(reason) => {
                QueryError::Failed(CatalogError::Unreachable { catalog, reason })
            }
            Failure::Late => QueryError::Failed(CatalogError::Unreachable {
                catalog,
                reason: "no answer in time".to_owned(),
            }),
            Failure::Refused(reason) => {
                QueryError::Failed(CatalogError::Answer { catalog, reason })
            }
        }
    }
}

/// Why a statement gave nothing.
enum Failure {
    /// No connection; another attempt may make one.
    Lost(String),
    Late,
    /// The server says no.
    Refused(String),
    Known(QueryError),
}

impl Failure {
    fn of(error: Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            let reason = chain(&error);
            // An authentication that is not offered, a certificate that is not trusted: no server trouble.
            let is_lost = error.is_closed()
                || error.source().is_some_and(|cause| {
                    cause.downcast_ref::<std::io::Error>().is_some_and(is_lost)
                });
            return if is_lost {
                Self::Lost(reason)
            } else {
                Self::Refused(reason)
            };
        };
        let reason = message(answer);
        let code = answer.code();
        if *code == SqlState::UNDEFINED_TABLE {
            Self::Known(QueryError::NoTable)
        } else if *code == SqlState::UNDEFINED_COLUMN {
            Self::Known(QueryError::NoColumn(reason))
        } else if *code == SqlState::TOO_MANY_CONNECTIONS
            || code.code().starts_with("57P")
            || code.code().starts_with("08")
        {
            // Shutting down, starting up, full.
            Self::Lost(reason)
        } else {
            Self::Refused(reason)
        }
    }
}

/// Whether the network failed, rather than the TLS above it.
fn is_lost(error: &std::io::Error) -> bool {
    !matches!(
        error.kind(),
        std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput
    )
}

/// What the server says, with its code.
fn message(answer: &DbError) -> String {
    format!("{} (SQLSTATE {})", answer.message(), answer.code().code())
}

/// An error's message with those of its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}

impl Database for Postgres {
    fn column(
        &self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError> {
        let answer = web::block_on(self.ask(statement, parameters));
        answer.unwrap_or_else(|error| Err(self.error(Failure::Lost(error.to_string()))))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Postgres").field(&self.name).finish()
    }
}
