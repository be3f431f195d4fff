//! SQLite as the database of a catalog.
//!
//! The file is opened anew for each question, read-only: so a file that is replaced is noticed, no lock is held between
//! questions, and a writer is never kept waiting for longer than a question takes. While a writer commits, we wait.
//!
//! A database in WAL mode needs a `-shm` file beside it, which cannot be made in a directory that we may only read. Such a
//! database can be read as it lies (`immutable`), which is right as long as nobody writes: so only where there is no log
//! of changes beside it, neither before nor after the question.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, types::ValueRef};

use super::{Column, Database, MAX_VALUE, QueryError};
use crate::catalog::CatalogError;

/// How long a writer that commits is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// How long one statement may take.
const STATEMENT: Duration = Duration::from_secs(10);

/// Bytes of a row, and of a statement.
const LONGEST_ROW: usize = 16 * MAX_VALUE;

/// A database file.
#[derive(Debug)]
pub(in crate::catalog) struct Sqlite {
    path: PathBuf,
    name: String,
}

/// The path in what follows `sqlite:` or `jdbc:sqlite:`, as SQLAlchemy and SQLite's JDBC driver read them: relative after three
/// slashes, absolute after four; without slashes, a path as it stands. Queries are options of the drivers.
pub(in crate::catalog) fn path(rest: &str) -> PathBuf {
    let path = rest.strip_prefix("///").unwrap_or(rest);
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    PathBuf::from(path.strip_prefix("file:").unwrap_or(path))
}

impl Sqlite {
    /// `path` must be absolute: the daemon changes its directory.
    pub(in crate::catalog) fn new(path: PathBuf) -> Self {
        let name = format!("sqlite:///{}", path.display());
        Self { path, name }
    }

    fn ask(
        &self,
        immutable: bool,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError> {
        let failed = |error: rusqlite::Error| self.error(error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection =
            Connection::open_with_flags(uri(&self.path, immutable), flags).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        // What is longer is not even read.
        let longest = i32::try_from(LONGEST_ROW).unwrap_or(i32::MAX);
        connection
            .set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)
            .map_err(failed)?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON")
            .map_err(failed)?;

        let interrupt = connection.get_interrupt_handle();
        let (finished, wait) = mpsc::channel::<()>();
        let watch = std::thread::Builder::new().spawn(move || {
            if wait.recv_timeout(BUSY + STATEMENT) == Err(mpsc::RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let answer = self.rows(&connection, statement, parameters);
        drop(finished);
        if let Ok(watch) = watch {
            let _ = watch.join();
        }
        answer
    }

    fn rows(
        &self,
        connection: &Connection,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError> {
        let failed = |error: rusqlite::Error| self.error(error);
        let mut statement = connection.prepare(statement).map_err(failed)?;
        let mut rows = statement
            .query(rusqlite::params_from_iter(parameters))
            .map_err(failed)?;
        let mut column = Column::default();
        while let Some(row) = rows.next().map_err(failed)? {
            let value = match row.get_ref(0).map_err(failed)? {
                ValueRef::Null => None,
                ValueRef::Text(text) => Some(
                    str::from_utf8(text)
                        .map_err(|_| self.answer("a name that is no UTF-8".to_owned()))?,
                ),
                _ => return Err(self.answer("a name that is no text".to_owned())),
            };
            column.push(value, &self.name)?;
        }
        Ok(column.values)
    }

    fn answer(&self, reason: String) -> QueryError {
        QueryError::Failed(CatalogError::Answer {
            catalog: self.name.clone(),
            reason,
        })
    }

    fn error(&self, error: rusqlite::Error) -> QueryError {
        let text = error.to_string();
        if text.contains("no such table") {
            return QueryError::NoTable;
        }
        if text.contains("no such column") {
            return QueryError::NoColumn(text);
        }
        let catalog = self.name.clone();
        QueryError::Failed(match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => CatalogError::Unreachable {
                catalog,
                reason: format!("no answer within {} s", (BUSY + STATEMENT).as_secs()),
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                CatalogError::Unreachable {
                    catalog,
                    reason: "another program keeps it locked".to_owned(),
                }
            }
            _ => CatalogError::Answer {
                catalog,
                reason: text,
            },
        })
    }

    /// What SQLite keeps beside the file while changes are not in it.
    fn has_log(&self) -> bool {
        ["-wal", "-journal"].iter().any(|end| {
            let mut path = self.path.clone().into_os_string();
            path.push(end);
            std::fs::metadata(path).is_ok_and(|log| log.len() > 0)
        })
    }

    /// What tells that the file was written to.
    fn stamp(&self) -> Option<(u64, std::time::SystemTime)> {
        let status = std::fs::metadata(&self.path).ok()?;
        Some((status.len(), status.modified().ok()?))
    }
}

impl Database for Sqlite {
    fn column(
        &self,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Option<String>>, QueryError> {
        // SQLite says "unable to open database file" for all of it.
        match std::fs::metadata(&self.path) {
            Ok(status) if status.is_file() => {}
            Ok(_) => return Err(self.answer("not a regular file".to_owned())),
            Err(source) => {
                let mut path = self.path.display().to_string();
                if source.kind() == std::io::ErrorKind::NotFound {
                    path.push_str(" (an absolute path follows four slashes, sqlite:////path)");
                }
                return Err(QueryError::Failed(CatalogError::Io { path, source }));
            }
        }
        let before = self.stamp();
        let answer = self.ask(false, statement, parameters);
        if answer.is_ok() || self.has_log() || !needs_files_beside(&answer) {
            return answer;
        }
        let as_it_lies = self.ask(true, statement, parameters);
        if self.has_log() || self.stamp() != before {
            return answer;
        }
        as_it_lies
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Whether SQLite failed because it could not make the files that it needs beside the database.
fn needs_files_beside(answer: &Result<Vec<Option<String>>, QueryError>) -> bool {
    matches!(answer, Err(QueryError::Failed(CatalogError::Answer { reason, .. }))
        if reason.contains("unable to open database file") || reason.contains("readonly database"))
}

/// The file as a URI, which is how SQLite takes options: what means something in a URI is escaped.
fn uri(path: &Path, immutable: bool) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro");
    if immutable {
        uri.push_str("&immutable=1");
    }
    uri
}
