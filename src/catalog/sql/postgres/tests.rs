#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use super::target::{Environment, Target, Tls};

#[derive(Default)]
struct Given {
    variables: BTreeMap<&'static str, &'static str>,
    password_file: Option<&'static str>,
}

impl Environment for Given {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    fn file(&self, path: &Path) -> Option<String> {
        (path == Path::new("/home/u/.pgpass"))
            .then_some(self.password_file)?
            .map(str::to_owned)
    }
}

fn given(variables: &[(&'static str, &'static str)]) -> Given {
    Given {
        variables: variables.iter().copied().collect(),
        password_file: None,
    }
}

fn parse(text: &str) -> Target {
    parse_in(text, &Given::default()).unwrap()
}

fn parse_in(text: &str, environment: &Given) -> Result<Target, crate::catalog::CatalogError> {
    Target::parse_in(text, &[], environment)
}

fn password(target: &Target) -> Option<String> {
    let config = target.config();
    let password = config.get_password()?;
    Some(String::from_utf8(password.to_owned()).unwrap())
}

#[test]
fn a_url_names_server_database_and_user() {
    let target = parse("//al%40ice:p%3Aw@db.example:5433/lake?sslmode=disable");
    let config = target.config();
    assert_eq!(config.get_user(), Some("al@ice"));
    assert_eq!(password(&target).as_deref(), Some("p:w"));
    assert_eq!(config.get_dbname(), Some("lake"));
    assert_eq!(config.get_ports(), [5433]);
    assert_eq!(target.shown(), "postgresql://db.example:5433/lake");
    assert_eq!(target.tls, Tls::Disable);
}

#[test]
fn several_hosts_sockets_and_addresses_are_hosts() {
    let shown = |text: &str| parse(text).shown();
    assert_eq!(shown("//u@a:1,b/d"), "postgresql://a:1,b/d");
    assert_eq!(shown("//u@[::1]:7/d"), "postgresql://::1:7/d");
    assert_eq!(
        shown("//u@/d?host=/run/pg&port=7"),
        "postgresql:///run/pg/d"
    );
    assert_eq!(shown("//u@%2Frun%2Fpg/d"), "postgresql:///run/pg/d");
    assert_eq!(shown("///d?user=u"), "postgresql:///var/run/postgresql/d");
    assert_eq!(shown("//u@h"), "postgresql://h/u");
    assert!(parse_in("//u@h:port/d", &Given::default()).is_err());
}

#[test]
fn jdbc_says_user_and_password_in_options() {
    let target = parse("//h/d?user=u&password=p%26w&currentSchema=ice");
    assert_eq!(target.config().get_user(), Some("u"));
    assert_eq!(password(&target).as_deref(), Some("p&w"));
    assert_eq!(target.config().get_options(), Some("-c search_path=ice"));
    let more = [("password".to_owned(), "other".to_owned())];
    let target = Target::parse_in("//h/d?user=u", &more, &Given::default()).unwrap();
    assert_eq!(password(&target).as_deref(), Some("other"));
}

#[test]
fn what_the_url_leaves_open_comes_from_the_variables_of_libpq() {
    let variables = [
        ("PGHOST", "h"),
        ("PGPORT", "7"),
        ("PGUSER", "u"),
        ("PGPASSWORD", "p"),
        ("PGDATABASE", "d"),
        ("PGSSLMODE", "require"),
    ];
    let target = parse_in("//", &given(&variables)).unwrap();
    assert_eq!(target.shown(), "postgresql://h:7/d");
    assert_eq!(password(&target).as_deref(), Some("p"));
    assert_eq!(target.tls, Tls::Require);
    let target = parse_in("//v:w@g/e?sslmode=prefer", &given(&variables)).unwrap();
    assert_eq!(target.config().get_user(), Some("v"));
    assert_eq!(password(&target).as_deref(), Some("w"));
    assert_eq!(target.tls, Tls::Prefer);
}

#[test]
fn the_password_file_is_matched_field_by_field() {
    let environment = Given {
        variables: [("HOME", "/home/u")].into(),
        password_file: Some(
            "# h:5432:d:u:comment\nh:1:d:u:port\nh:*:d:v:user\nh:5432:*:u:p\\:w\n*:*:*:*:last\n",
        ),
    };
    let of = |text: &str| password(&parse_in(text, &environment).unwrap());
    assert_eq!(of("//u@h/d").as_deref(), Some("p:w"));
    assert_eq!(of("//v@h/d").as_deref(), Some("user"));
    assert_eq!(of("//w@g/d").as_deref(), Some("last"));
    assert_eq!(of("//u:own@h/d").as_deref(), Some("own"));
}

#[test]
fn sslmode_says_what_a_server_must_prove() {
    let tls = |query: &str| parse(&format!("//u@h/d?{query}")).tls;
    assert_eq!(tls(""), Tls::Prefer);
    assert_eq!(tls("sslmode=require"), Tls::Require);
    assert_eq!(tls("sslmode=require&sslrootcert=/ca.pem"), Tls::VerifyCa);
    assert_eq!(tls("sslmode=verify-ca"), Tls::VerifyCa);
    assert_eq!(
        tls("sslmode=verify-full&sslrootcert=system"),
        Tls::VerifyFull
    );
    assert_eq!(tls("ssl=true"), Tls::VerifyFull);
    assert!(parse_in("//u@h/d?sslmode=full", &Given::default()).is_err());
}

#[test]
fn what_would_weaken_a_connection_unseen_is_refused_by_name() {
    for option in ["sslcert=/c", "sslkey=/k", "sslfactory=x.NonValidating"] {
        let error = parse_in(&format!("//u:secret@h/d?{option}"), &Given::default()).unwrap_err();
        let (name, _) = option.split_once('=').unwrap();
        assert!(error.is_unsupported() && error.to_string().contains(name));
    }
}

#[test]
fn no_secret_is_shown() {
    let target = parse("//u:secret@h/d?options=-c%20x=secret");
    assert!(!format!("{target:?}{}", target.shown()).contains("secret"));
    let postgres = super::Postgres::new(&target).unwrap();
    assert!(!format!("{postgres:?}").contains("secret"));
    let error = parse_in("//u:secret@h:x/d", &Given::default()).unwrap_err();
    assert!(!error.to_string().contains("secret"));
}
