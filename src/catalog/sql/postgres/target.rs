//! Which server, database and user: the URL of a PostgreSQL database as libpq, SQLAlchemy and JDBC write it.
//!
//! `postgresql://user:password@host1:5432,host2/database?option=value`. What the URL leaves open comes from the variables
//! that libpq reads (`PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE`, `PGSSLROOTCERT`) and, for the password,
//! from its password file. Options that would change how a connection is secured, and that are not supported, are refused;
//! others, which concern the driver, are passed over.

use std::fmt;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use url::form_urlencoded;

use crate::catalog::CatalogError;
use crate::storage::percent_decoded;

/// PostgreSQL's own.
const PORT: u16 = 5432;

/// Where Debian's and most others' servers have their socket.
const SOCKETS: &str = "/var/run/postgresql";

/// What a server must prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    Disable,
    /// Encrypted where the server can; nothing is proven.
    Prefer,
    /// Encrypted; nothing is proven.
    Require,
    /// Encrypted, with a certificate that is trusted, of whatever name.
    VerifyCa,
    /// Encrypted, with a trusted certificate of the server's name.
    VerifyFull,
}

/// A database on a server. `Debug` shows no secrets.
#[derive(Clone)]
pub(in crate::catalog) struct Target {
    /// Names, addresses or directories of sockets, each with its port.
    hosts: Vec<(String, u16)>,
    user: String,
    password: Option<String>,
    database: String,
    pub(super) tls: Tls,
    /// Certificates that are trusted, in a PEM file.
    pub(super) trusted: Option<PathBuf>,
    /// `options` of the server's command line.
    options: Option<String>,
    writable: bool,
}

/// Where what a URL leaves open comes from.
pub(super) trait Environment {
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of a file; `None` where there is none.
    fn file(&self, path: &Path) -> Option<String>;
}

/// The process's.
pub(super) struct Process;

impl Environment for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn file(&self, path: &Path) -> Option<String> {
        std::fs::read_to_string(path).ok()
    }
}

impl Target {
    /// Parses what follows the scheme and its colon. `options` stand before the URL's own.
    pub(in crate::catalog) fn parse(
        rest: &str,
        options: &[(String, String)],
    ) -> Result<Self, CatalogError> {
        Self::parse_in(rest, options, &Process)
    }

    pub(super) fn parse_in(
        rest: &str,
        more: &[(String, String)],
        environment: &dyn Environment,
    ) -> Result<Self, CatalogError> {
        // JDBC allows a database alone.
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = match before.strip_prefix("//") {
            Some(after) => after.split_once('/').unwrap_or((after, "")),
            None => ("", before),
        };
        let (login, places) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));

        let mut given: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        given.extend(more.iter().cloned());
        let option = |name: &str| {
            let found = given.iter().rev().find(|(other, _)| other == name);
            found
                .map(|(_, value)| value.clone())
                .filter(|value| !value.is_empty())
        };
        for refused in [
            "sslcert",
            "sslkey",
            "sslcrl",
            "sslcrldir",
            "sslfactory",
            "require_auth",
            "krbsrvname",
        ] {
            if option(refused).is_some() {
                return Err(CatalogError::Unsupported {
                    catalog: "postgresql".to_owned(),
                    feature: refused.to_owned(),
                });
            }
        }
        let or = |text: &str, name: &str, variable: &str| {
            Some(decoded(text))
                .filter(|text| !text.is_empty())
                .or_else(|| option(name))
                .or_else(|| environment.variable(variable))
        };

        let ports = option("port").or_else(|| environment.variable("PGPORT"));
        let hosts = hosts(
            places,
            option("host").or_else(|| {
                places
                    .is_empty()
                    .then(|| environment.variable("PGHOST"))
                    .flatten()
            }),
            ports,
        )?;
        let user = or(user, "user", "PGUSER")
            .or_else(|| environment.variable("USER"))
            .or_else(|| environment.variable("LOGNAME"))
            .ok_or_else(|| configuration("names no user"))?;
        let database = or(database, "dbname", "PGDATABASE").unwrap_or_else(|| user.clone());
        let password = or(password, "password", "PGPASSWORD")
            .or_else(|| password_of(environment, hosts.first()?, &database, &user));
        let mode = option("sslmode").or_else(|| {
            // JDBC's older way to say so.
            match option("ssl").as_deref() {
                Some("true" | "") => Some("verify-full".to_owned()),
                _ => environment.variable("PGSSLMODE"),
            }
        });
        let trusted = option("sslrootcert")
            .or_else(|| environment.variable("PGSSLROOTCERT"))
            .filter(|path| path != "system")
            .map(PathBuf::from);
        if trusted.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(configuration("sslrootcert must be an absolute path"));
        }
        // Where libpq looks unless it is told otherwise.
        let own = environment
            .variable("HOME")
            .map(|home| Path::new(&home).join(".postgresql/root.crt"))
            .filter(|path| option("sslrootcert").is_none() && environment.file(path).is_some());
        let tls = match mode.as_deref() {
            Some("disable") => Tls::Disable,
            None | Some("prefer" | "allow") => Tls::Prefer,
            // As libpq has it: whoever names certificates wants them used.
            Some("require") if trusted.is_some() || own.is_some() => Tls::VerifyCa,
            Some("require") => Tls::Require,
            Some("verify-ca") => Tls::VerifyCa,
            Some("verify-full") => Tls::VerifyFull,
            Some(_) => {
                return Err(configuration(
                    "sslmode is one of disable, allow, prefer, require, verify-ca and verify-full",
                ));
            }
        };
        let schema = option("currentSchema").map(|schema| format!("-c search_path={schema}"));
        let writable = matches!(
            option("target_session_attrs")
                .or_else(|| option("targetServerType"))
                .as_deref(),
            Some("read-write" | "primary" | "master")
        );
        Ok(Self {
            hosts,
            user,
            password,
            database,
            tls,
            trusted: trusted.or(own),
            options: option("options").or(schema),
            writable,
        })
    }

    /// Without user, password and options.
    pub(in crate::catalog) fn shown(&self) -> String {
        let hosts: Vec<String> = self
            .hosts
            .iter()
            .map(|(host, port)| match port {
                _ if host.starts_with('/') => host.clone(),
                &PORT => host.clone(),
                port => format!("{host}:{port}"),
            })
            .collect();
        format!("postgresql://{}/{}", hosts.join(","), self.database)
    }

    pub(super) fn config(&self) -> Config {
        let mut config = Config::new();
        for (host, port) in &self.hosts {
            config.host(host).port(*port);
        }
        config.user(&self.user).dbname(&self.database);
        if let Some(password) = &self.password {
            config.password(password);
        }
        if let Some(options) = &self.options {
            config.options(options);
        }
        if self.writable {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.ssl_mode(match self.tls {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            Tls::Require | Tls::VerifyCa | Tls::VerifyFull => SslMode::Require,
        });
        config
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("shown", &self.shown())
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Hosts with their ports: those of the URL, else those that an option or variable lists, else the local socket.
fn hosts(
    places: &str,
    listed: Option<String>,
    ports: Option<String>,
) -> Result<Vec<(String, u16)>, CatalogError> {
    let number = |text: &str| {
        text.parse()
            .map_err(|_| configuration("names a port that is no number from 0 to 65535"))
    };
    let default = match ports.as_deref() {
        None => PORT,
        Some(text) => number(text.split(',').next().unwrap_or(text))?,
    };
    let places = if places.is_empty() {
        listed.unwrap_or_else(|| SOCKETS.to_owned())
    } else {
        places.to_owned()
    };
    places
        .split(',')
        .map(|place| {
            let (host, port) = match place
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'))
            {
                Some((address, rest)) => (address, rest.strip_prefix(':')),
                None if place.starts_with('/') => (place, None),
                None => place
                    .split_once(':')
                    .map_or((place, None), |(host, port)| (host, Some(port))),
            };
            let port = port.filter(|port| !port.is_empty());
            let host = decoded(host);
            let host = if host.is_empty() {
                "localhost".to_owned()
            } else {
                host
            };
            Ok((host, port.map_or(Ok(default), number)?))
        })
        .collect()
}

/// The password in libpq's password file (`host:port:database:user:password` a line, `*` for any).
fn password_of(
    environment: &dyn Environment,
    (host, port): &(String, u16),
    database: &str,
    user: &str,
) -> Option<String> {
    let path = environment.variable("PGPASSFILE").map(PathBuf::from);
    let path = path.or_else(|| Some(Path::new(&environment.variable("HOME")?).join(".pgpass")))?;
    let host = if host == SOCKETS { "localhost" } else { host };
    let wanted = [host, &port.to_string(), database, user];
    environment.file(&path)?.lines().find_map(|line| {
        let fields = fields(line);
        let [first @ .., password] = fields.as_slice() else {
            return None;
        };
        let matches = !line.starts_with('#')
            && first.len() == wanted.len()
            && first
                .iter()
                .zip(wanted)
                .all(|(field, wanted)| field == "*" || field == wanted);
        matches.then(|| password.clone())
    })
}

/// Fields between colons, where `\` takes the sign after it as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        let sign = match sign {
            ':' => {
                fields.push(String::new());
                continue;
            }
            '\\' => signs.next().unwrap_or('\\'),
            sign => sign,
        };
        if let Some(field) = fields.last_mut() {
            field.push(sign);
        }
    }
    fields
}

fn decoded(text: &str) -> String {
    percent_decoded(text).unwrap_or_else(|| text.to_owned())
}

/// The text is not shown: it may hold a password.
fn configuration(reason: &str) -> CatalogError {
    CatalogError::Configuration {
        catalog: "postgresql".to_owned(),
        reason: reason.to_owned(),
    }
}
