#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::thread;

use super::*;

/// Each request: its head's lines in lower case, and its body.
type Heard = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that gives each request the next of its answers.
fn service(answers: Vec<(u16, Value)>, properties: &[(&str, &str)]) -> (Glue, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let heard: Heard = Arc::default();
    let noted = Arc::clone(&heard);
    thread::spawn(move || {
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            let mut line = String::new();
            while input.read_line(&mut line).unwrap() > 2 {
                head.push_str(&line.to_lowercase());
                line.clear();
            }
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            input.read_exact(&mut body).unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            noted.lock().unwrap().push((head, body));
            let body = answer.to_string();
            let len = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} Told\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    let mut all = vec![
        ("glue.endpoint", endpoint.as_str()),
        ("glue.region", "eu-test-1"),
        ("glue.access-key-id", "AKIA-GLUE"),
        ("glue.secret-access-key", "hidden"),
    ];
    all.extend(properties);
    let all = all
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let place = Place::default();
    let glue = Glue::new(&place, &Properties(all.collect()), &Arc::default()).unwrap();
    (glue, heard)
}

fn table(name: &str, kind: Option<&str>) -> Value {
    let parameters = kind.map(|kind| json!({"table_type": kind, "metadata_location": "s3://b/m"}));
    json!({"Name": name, "DatabaseName": "db", "Parameters": parameters, "StorageDescriptor": {"Columns": []}})
}

#[test]
fn listings_come_by_pages_and_hold_iceberg_tables_alone() {
    let first = json!({"TableList": [table("a", Some("ICEBERG")), table("hive", None)], "NextToken": "more"});
    let second = json!({"TableList": [table("b", Some("iceberg")), table("delta", Some("DELTA"))]});
    let (glue, heard) = service(
        vec![(200, first), (200, second)],
        &[("glue.id", "012345678901")],
    );
    assert_eq!(glue.tables("db").unwrap().unwrap(), ["a", "b"]);
    let heard = heard.lock().unwrap();
    let (head, body) = &heard[0];
    assert!(head.contains("x-amz-target: awsglue.gettables"), "{head}");
    assert!(head.contains("credential=akia-glue/"), "{head}");
    assert!(head.contains("/eu-test-1/glue/aws4_request"), "{head}");
    assert_eq!(
        *body,
        json!({"CatalogId": "012345678901", "DatabaseName": "db", "MaxResults": 100})
    );
    assert_eq!(heard[1].1["NextToken"], "more");
}

#[test]
fn what_is_not_there_is_none() {
    let missing = || {
        (
            400,
            json!({"__type": "com.amazonaws.glue#EntityNotFoundException"}),
        )
    };
    let (glue, _) = service(vec![missing(), missing(), missing()], &[]);
    assert_eq!(glue.table("db", "t").unwrap(), None);
    assert_eq!(glue.tables("db").unwrap(), None);
    assert!(glue.databases().is_err());
}

#[test]
fn a_table_is_its_parameters() {
    let answer = json!({"Table": table("t", Some("ICEBERG"))});
    let (glue, _) = service(vec![(200, answer)], &[]);
    let entry = glue.table("db", "t").unwrap().unwrap();
    assert!(entry.is_iceberg());
    assert_eq!(entry.metadata_location.as_deref(), Some("s3://b/m"));
}

#[test]
fn a_refusal_is_told_and_shows_no_secret() {
    let denied = json!({"__type": "AccessDeniedException", "Message": "User is not\nauthorized"});
    let (glue, _) = service(vec![(400, denied)], &[("glue.session-token", "hidden-too")]);
    let error = glue.databases().unwrap_err().to_string();
    assert_eq!(
        error,
        "glue://: GetDatabases: HTTP 400: AccessDeniedException: User is not authorized"
    );
    assert!(!format!("{glue:?}").contains("hidden"));
}

#[test]
fn a_listing_that_never_ends_and_an_answer_of_no_sense_are_errors() {
    let page = || {
        (
            200,
            json!({"DatabaseList": [{"Name": "a"}], "NextToken": "same"}),
        )
    };
    let (glue, _) = service(vec![page(), page()], &[]);
    let error = glue.databases().unwrap_err().to_string();
    assert!(error.contains("does not end"), "{error}");
    let (glue, _) = service(vec![(200, json!(["no", "object"]))], &[]);
    let error = glue.table("db", "t").unwrap_err().to_string();
    assert!(error.contains("makes no sense"), "{error}");
}

#[test]
fn keys_are_those_of_one_prefix() {
    let of = |given: &[(&str, &str)]| {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        identity_properties(&Properties(given.collect()))
    };
    let found = of(&[
        ("glue.access-key-id", "g"),
        ("glue.secret-access-key", "gs"),
        ("client.session-token", "c"),
        ("s3.access-key-id", "s"),
    ]);
    assert_eq!(found.get("client.access-key-id"), Some("g"));
    assert_eq!(found.get("client.secret-access-key"), Some("gs"));
    assert_eq!(found.get("client.session-token"), None);
    let found = of(&[("s3.access-key-id", "s"), ("s3.secret-access-key", "ss")]);
    assert_eq!(found.get("client.access-key-id"), Some("s"));
    let found = of(&[("glue.profile-name", "p")]);
    assert_eq!(found.get("client.profile-name"), Some("p"));
}

#[test]
fn places_are_accounts_and_databases() {
    let place = |text: &str| {
        let place = Place::parse(text);
        (place.account.clone(), place.database.clone(), place.shown())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(place(""), (None, None, "glue://".to_owned()));
    assert_eq!(
        place("//0123"),
        (some("0123"), None, "glue://0123".to_owned())
    );
    assert_eq!(place("///db/"), (None, some("db"), "glue:///db".to_owned()));
    assert_eq!(
        place("//0123/db"),
        (some("0123"), some("db"), "glue://0123/db".to_owned())
    );
}
