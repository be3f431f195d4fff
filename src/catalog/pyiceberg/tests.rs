#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use tempfile::TempDir;

use super::*;

const CONFIGURATION: &str = "
default-catalog: Lake
catalog:
  Lake:
    uri: http://127.0.0.1:8181/
    Warehouse: 0123
    s3.access-key-id: 1e5
    s3.path-style-access: yes
    credential: 'id:secret # with a sign'
    s3.secret-access-key: a:b#c
    empty:
    header.X-Thing: ~
  meta:
    uri: thrift://h:9083
  files:
    type: SQL
    uri: sqlite:////tmp/c.db
  typed:
    type: glue
    glue.id: 012345678901
";

/// Directories that may hold configurations.
struct Place {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    fn new(home: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["special", "home", "here"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let setting = Self {
            directory,
            variables: Vec::new(),
        };
        setting.write("home", home);
        setting
    }

    fn write(&self, place: &str, text: &str) {
        fs::write(self.directory.path().join(place).join(FILE), text).unwrap();
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn find(&self, name: &str) -> Result<Entry, CatalogError> {
        let surroundings = Surroundings {
            variables: self.variables.clone(),
            home: Some(self.directory.path().join("home")),
            working_directory: Some(self.directory.path().join("here")),
        };
        Entry::find(Some(name).filter(|name| !name.is_empty()), &surroundings)
    }
}

#[test]
fn values_are_texts_as_they_stand() {
    let entry = Place::new(CONFIGURATION).find("lake").unwrap();
    let get = |key| entry.properties.get(key).unwrap();
    assert_eq!(
        entry.kind,
        EntryKind::Rest("http://127.0.0.1:8181/".to_owned())
    );
    assert_eq!(get("warehouse"), "0123");
    assert_eq!(get("s3.access-key-id"), "1e5");
    assert_eq!(get("s3.path-style-access"), "yes");
    assert_eq!(get("credential"), "id:secret # with a sign");
    assert_eq!(get("s3.secret-access-key"), "a:b#c");
    assert_eq!(get("empty"), "");
    assert_eq!(get("header.x-thing"), "~");
}

#[test]
fn the_default_is_what_the_configuration_says_else_default() {
    assert_eq!(Place::new(CONFIGURATION).find("").unwrap().name, "Lake");
    let text = CONFIGURATION.replace("default-catalog: Lake", "other: x");
    let error = Place::new(&text).find("").unwrap_err().to_string();
    assert!(
        error.contains("pyiceberg:default") && error.contains("files, lake, meta, typed"),
        "{error}"
    );
    let setting = Place::new(CONFIGURATION).variable("PYICEBERG_DEFAULT_CATALOG", "meta");
    assert_eq!(setting.find("").unwrap().name, "meta");
}

#[test]
fn the_kind_is_the_type_or_what_the_uri_tells() {
    let setting = Place::new(CONFIGURATION);
    let kind = |name| setting.find(name).unwrap().kind;
    assert_eq!(kind("meta"), EntryKind::Hive("thrift://h:9083".to_owned()));
    assert_eq!(
        kind("files"),
        EntryKind::Sql("sqlite:////tmp/c.db".to_owned())
    );
    assert_eq!(kind("typed"), EntryKind::Glue);
    let typed = setting.find("typed").unwrap();
    assert_eq!(typed.properties.get("glue.id"), Some("012345678901"));
}

#[test]
fn kinds_that_are_not_supported_are_refused_by_name() {
    for kind in ["dynamodb", "in-memory", "bigquery", "other"] {
        let text = format!("catalog:\n  c:\n    type: {kind}\n    uri: http://h\n");
        let error = Place::new(&text).find("c").unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains(kind));
    }
    let text = "catalog:\n  c:\n    py-catalog-impl: a.B\n";
    assert!(Place::new(text).find("c").unwrap_err().is_unsupported());
    let text = "catalog:\n  c:\n    uri: mysql://u:secret@h/d\n";
    let error = Place::new(text).find("c").unwrap_err().to_string();
    assert!(error.contains("`uri` does not tell") && !error.contains("secret"));
    let text = "catalog:\n  c:\n    type: rest\n";
    let error = Place::new(text).find("c").unwrap_err().to_string();
    assert!(error.contains("PYICEBERG_CATALOG__C__URI"));
}

#[test]
fn variables_stand_over_the_file_and_make_entries() {
    let setting = Place::new(CONFIGURATION)
        .variable("PYICEBERG_CATALOG__LAKE__S3__ACCESS_KEY_ID", "from-env")
        .variable("PYICEBERG_CATALOG__LAKE__WAREHOUSE", "")
        .variable("PYICEBERG_CATALOG__NEW__URI", "postgresql://u@h/d");
    let lake = setting.find("LAKE").unwrap();
    assert_eq!(lake.properties.get("s3.access-key-id"), Some("from-env"));
    assert_eq!(lake.properties.get("warehouse"), Some("0123"));
    let new = setting.find("new").unwrap();
    assert_eq!(new.kind, EntryKind::Sql("postgresql://u@h/d".to_owned()));
}

#[test]
fn the_first_file_that_says_anything_counts() {
    let entry = |uri: &str| format!("catalog:\n  c:\n    uri: {uri}\n");
    let uri = |setting: &Place| match setting.find("c").unwrap().kind {
        EntryKind::Rest(uri) => uri,
        other => panic!("{other:?}"),
    };
    let setting = Place::new(&entry("http://home"));
    setting.write("here", &entry("http://here"));
    setting.write("special", &entry("http://special"));
    assert_eq!(uri(&setting), "http://home");
    setting.write("home", "# nothing\n");
    assert_eq!(uri(&setting), "http://here");
    let special = setting.directory.path().join("special");
    let setting = setting.variable("PYICEBERG_HOME", special.to_str().unwrap());
    assert_eq!(uri(&setting), "http://special");
}

#[test]
fn nested_authentication_has_the_names_of_the_rest_catalog() {
    let text = "
catalog:
  basic:
    uri: https://h
    auth:
      type: basic
      basic:
        username: u
        password: 007
  oauth:
    uri: https://h
    auth:
      type: oauth2
      oauth2:
        client_id: id
        client_secret: s
        token_url: https://t
        scope: all
";
    let setting = Place::new(text);
    let basic = setting.find("basic").unwrap().properties;
    assert_eq!(basic.get("rest.auth.type"), Some("basic"));
    assert_eq!(basic.get("rest.auth.basic.username"), Some("u"));
    assert_eq!(basic.get("rest.auth.basic.password"), Some("007"));
    let oauth = setting.find("oauth").unwrap().properties;
    assert_eq!(oauth.get("credential"), Some("id:s"));
    assert_eq!(oauth.get("oauth2-server-uri"), Some("https://t"));
    assert_eq!(oauth.get("scope"), Some("all"));
}

#[test]
fn a_broken_file_is_an_error_that_shows_nothing_of_it() {
    let text = "catalog:\n  c:\n    credential: [secret\n    uri: x\n";
    let error = Place::new(text).find("c").unwrap_err().to_string();
    assert!(error.contains(FILE) && error.contains("line"), "{error}");
    assert!(!error.contains("secret"));
    let error = Place::new("- a\n").find("c").unwrap_err().to_string();
    assert!(error.contains("no mapping"), "{error}");
    let error = Place::new("catalog: x\n")
        .find("c")
        .unwrap_err()
        .to_string();
    assert!(error.contains("configures no catalogs"), "{error}");
    let deep = format!("catalog: {}", "{a: ".repeat(5000));
    assert!(Place::new(&deep).find("c").is_err());
}

#[test]
fn no_secret_is_shown() {
    let text = "catalog:\n  c:\n    uri: postgresql://u:secret@h/d\n    token: secret\n";
    let entry = Place::new(text).find("c").unwrap();
    assert!(!format!("{entry:?}").contains("secret"));
}
