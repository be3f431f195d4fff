#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use super::*;

/// A message of the binary protocol, written out by hand from its description.
fn reply(kind: u8, method: &str, sequence: u8, result: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, 0x01, 0x00, kind];
    bytes.extend(text(method));
    bytes.extend([0, 0, 0, sequence]);
    bytes.extend(result);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// A field of a struct.
fn field(kind: u8, id: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, 0, id], value].concat()
}

fn texts(names: &[&str]) -> Vec<u8> {
    let mut bytes = vec![11];
    bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
    names.iter().for_each(|name| bytes.extend(text(name)));
    bytes
}

/// The struct of a table with some of what a metastore says of one.
fn table_struct(name: &str, properties: &[(&str, &str)]) -> Vec<u8> {
    let mut map = vec![11, 11];
    map.extend(u32::try_from(properties.len()).unwrap().to_be_bytes());
    for (key, value) in properties {
        map.extend(text(key));
        map.extend(text(value));
    }
    // A column: its name, its type.
    let column = [
        field(11, 1, &text("c")),
        field(11, 2, &text("int")),
        vec![0],
    ]
    .concat();
    let columns = [&[12, 0, 0, 0, 1][..], &column].concat();
    let storage = [field(15, 1, &columns), field(2, 5, &[1]), vec![0]].concat();
    [
        field(11, 1, &text(name)),
        field(11, 2, &text("db")),
        field(8, 4, &[0, 0, 0, 7]),
        field(12, 7, &storage),
        field(13, 9, &map),
        field(11, 12, &text("EXTERNAL_TABLE")),
        vec![0],
    ]
    .concat()
}

/// A server that gives each connection its answers, one a question, and then closes it.
struct Server {
    port: u16,
    questions: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Server {
    fn new(connections: Vec<Vec<Vec<u8>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let questions: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let heard = Arc::clone(&questions);
        thread::spawn(move || {
            for answers in connections {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                for answer in answers {
                    let mut question = vec![0; 4096];
                    // Our questions are short: one read gives all of one.
                    let len = stream.read(&mut question).unwrap_or(0);
                    question.truncate(len);
                    heard.lock().unwrap().push(question);
                    let _ = stream.write_all(&answer);
                }
            }
        });
        Self { port, questions }
    }

    fn hive(&self, properties: &[(&str, &str)]) -> Hive {
        let servers = Servers::parse(&format!("thrift://127.0.0.1:{}", self.port)).unwrap();
        let properties = properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Hive::new(&servers, &Properties(properties.collect()), &Arc::default()).unwrap()
    }
}

fn answering(answers: Vec<Vec<u8>>) -> (Server, Hive) {
    let server = Server::new(vec![answers]);
    let hive = server.hive(&[]);
    (server, hive)
}

fn strings(method: &str, sequence: u8, names: &[&str]) -> Vec<u8> {
    let result = [field(15, 0, &texts(names)), vec![0]].concat();
    reply(2, method, sequence, &result)
}

#[test]
fn questions_are_written_as_the_protocol_says() {
    let (server, hive) = answering(vec![strings("get_all_databases", 1, &["default", "db"])]);
    assert_eq!(hive.databases().unwrap(), ["default", "db"]);
    let expected = [
        &[0x80, 0x01, 0x00, 0x01, 0, 0, 0, 17][..],
        b"get_all_databases",
        &[0, 0, 0, 1, 0],
    ]
    .concat();
    assert_eq!(server.questions.lock().unwrap()[0], expected);
}

#[test]
fn the_framed_transport_has_lengths_before_messages_and_may_split_them() {
    let whole = strings("get_all_databases", 1, &["default"]);
    let (first, second) = whole.split_at(30);
    let frame = |bytes: &[u8]| {
        let len = u32::try_from(bytes.len()).unwrap();
        [&len.to_be_bytes()[..], bytes].concat()
    };
    let server = Server::new(vec![vec![[frame(first), frame(second)].concat()]]);
    let hive = server.hive(&[("hive.thrift-framed", "true")]);
    assert_eq!(hive.databases().unwrap(), ["default"]);
    assert_eq!(server.questions.lock().unwrap()[0][..4], [0, 0, 0, 30]);
}

#[test]
fn a_table_is_its_properties_whatever_else_is_said_of_it() {
    let properties = [
        ("EXTERNAL", "TRUE"),
        ("metadata_location", "s3://b/t/metadata/1.metadata.json"),
        ("table_type", "ICEBERG"),
    ];
    let result = [field(12, 0, &table_struct("t", &properties)), vec![0]].concat();
    let (_server, hive) = answering(vec![reply(2, "get_table", 1, &result)]);
    let entry = hive.table("db", "t").unwrap().unwrap();
    assert!(entry.is_iceberg());
    let location = entry.metadata_location.as_deref();
    assert_eq!(location, Some("s3://b/t/metadata/1.metadata.json"));
}

#[test]
fn a_table_that_is_not_there_is_none_and_other_trouble_is_an_error() {
    let raised = |id, message| {
        let exception = [field(11, 1, &text(message)), vec![0]].concat();
        [field(12, id, &exception), vec![0]].concat()
    };
    let (_server, hive) = answering(vec![
        reply(2, "get_table", 1, &raised(2, "db.t table not found")),
        reply(2, "get_table", 2, &raised(1, "no\nconnection")),
    ]);
    assert_eq!(hive.table("db", "t").unwrap(), None);
    let error = hive.table("db", "t").unwrap_err().to_string();
    assert!(error.ends_with(": no connection"), "{error}");
}

#[test]
fn a_metastore_that_knows_only_the_newer_method_is_asked_by_it() {
    let unknown = [
        field(11, 1, &text("Invalid method name: 'get_table'")),
        field(8, 2, &[0, 0, 0, 1]),
        vec![0],
    ]
    .concat();
    let inner = [
        field(12, 1, &table_struct("t", &[("table_type", "iceberg")])),
        vec![0],
    ]
    .concat();
    let result = [field(12, 0, &inner), vec![0]].concat();
    let (_server, hive) = answering(vec![
        reply(3, "get_table", 1, &unknown),
        reply(2, "get_table_req", 2, &result),
    ]);
    assert!(hive.table("db", "t").unwrap().unwrap().is_iceberg());
}

#[test]
fn listing_ten_thousand_tables_is_one_question() {
    let names: Vec<String> = (0..10_000).map(|i| format!("t{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (server, hive) = answering(vec![strings("get_table_names_by_filter", 1, &names)]);
    assert_eq!(hive.tables("db").unwrap().unwrap().len(), 10_000);
    assert_eq!(server.questions.lock().unwrap().len(), 1);
}

#[test]
fn a_metastore_that_cannot_filter_is_asked_for_the_tables_in_batches() {
    let unknown = [field(11, 1, &text("Invalid method name")), vec![0]].concat();
    let names: Vec<String> = (0..BATCH + 1).map(|i| format!("t{i}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let tables = |names: &[&str]| {
        let mut list = vec![12];
        list.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
        for name in names {
            let kind = if *name == "t1" { "other" } else { "ICEBERG" };
            list.extend(table_struct(name, &[("table_type", kind)]));
        }
        [field(15, 0, &list), vec![0]].concat()
    };
    let (_server, hive) = answering(vec![
        reply(3, "get_table_names_by_filter", 1, &unknown),
        strings("get_all_databases", 2, &["db"]),
        strings("get_all_tables", 3, &all),
        reply(2, "get_table_objects_by_name", 4, &tables(&all[..BATCH])),
        reply(2, "get_table_objects_by_name", 5, &tables(&all[BATCH..])),
    ]);
    let found = hive.tables("db").unwrap().unwrap();
    assert_eq!(found.len(), BATCH);
    assert!(!found.contains(&"t1".to_owned()));
}

#[test]
fn a_database_that_is_not_there_is_none() {
    let (_server, hive) = answering(vec![
        strings("get_table_names_by_filter", 1, &[]),
        strings("get_all_databases", 2, &["default"]),
    ]);
    assert_eq!(hive.tables("gone").unwrap(), None);
}

#[test]
fn a_connection_that_was_closed_is_made_again() {
    let server = Server::new(vec![
        vec![strings("get_all_databases", 1, &["a"])],
        vec![strings("get_all_databases", 1, &["b"])],
    ]);
    let hive = server.hive(&[]);
    assert_eq!(hive.databases().unwrap(), ["a"]);
    assert_eq!(hive.databases().unwrap(), ["b"]);
}

#[test]
fn a_server_that_is_not_there_cannot_be_reached_and_the_next_is_tried() {
    let server = Server::new(vec![vec![strings("get_all_databases", 1, &["a"])]]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = closed.local_addr().unwrap().port();
    drop(closed);
    let text = format!("thrift://127.0.0.1:{nobody}");
    let hive = Hive::new(
        &Servers::parse(&text).unwrap(),
        &Properties::default(),
        &Arc::default(),
    )
    .unwrap();
    let error = hive.databases().unwrap_err();
    assert!(matches!(error, CatalogError::Unreachable { .. }), "{error}");
    let text = format!("{text},thrift://127.0.0.1:{}", server.port);
    let hive = Hive::new(
        &Servers::parse(&text).unwrap(),
        &Properties::default(),
        &Arc::default(),
    )
    .unwrap();
    assert_eq!(hive.databases().unwrap(), ["a"]);
}

#[test]
fn the_user_to_act_for_is_said_first() {
    let server = Server::new(vec![vec![
        strings("set_ugi", 1, &["u"]),
        strings("get_all_databases", 2, &["a"]),
    ]]);
    let hive = server.hive(&[("ugi", "alice:analysts")]);
    assert_eq!(hive.databases().unwrap(), ["a"]);
    let questions = server.questions.lock().unwrap();
    let said = String::from_utf8_lossy(&questions[0]).into_owned();
    assert!(said.contains("set_ugi") && said.contains("alice") && said.contains("analysts"));
}

#[test]
fn answers_that_make_no_sense_are_errors_and_take_no_memory() {
    let huge = [0x7f, 0xff, 0xff, 0xff];
    let mut deep = [12, 0, 1].repeat(100_000);
    deep.push(0);
    let broken: Vec<Vec<u8>> = vec![
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        strings("get_all_tables", 1, &["a"]),
        strings("get_all_databases", 9, &["a"]),
        reply(2, "get_all_databases", 1, &[0]),
        reply(
            2,
            "get_all_databases",
            1,
            &field(15, 0, &[&[11][..], &huge].concat()),
        ),
        reply(
            2,
            "get_all_databases",
            1,
            &field(15, 0, &[11, 0xff, 0xff, 0xff, 0xff]),
        ),
        reply(
            2,
            "get_all_databases",
            1,
            &field(15, 0, &[&[11, 0, 0, 0, 1][..], &huge].concat()),
        ),
        reply(
            2,
            "get_all_databases",
            1,
            &field(15, 0, &[12, 0, 0, 0, 1, 0]),
        ),
        reply(2, "get_all_databases", 1, &field(11, 0, &text("a"))),
        reply(2, "get_all_databases", 1, &field(12, 1, &deep)),
        reply(2, "get_all_databases", 1, &field(99, 0, &[0])),
        [&[0x80, 0x01, 0x00, 0x02][..], &huge].concat(),
        vec![0x80, 0x01],
        Vec::new(),
    ];
    for bytes in broken {
        // Closed after the answer: whatever is missing never comes.
        let (_server, hive) = answering(vec![bytes.clone()]);
        assert!(hive.databases().is_err(), "{bytes:?}");
    }
}

#[test]
fn a_login_that_the_server_asks_for_is_refused_by_name() {
    // Status 3 (bad) of SASL's negotiation, and a message.
    let answer = [&[3, 0, 0, 0, 20][..], b"Invalid status -128!"].concat();
    let (_server, hive) = answering(vec![answer]);
    let error = hive.databases().unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("Kerberos"));
    let servers = Servers::parse("thrift://h:1").unwrap();
    for name in UNSUPPORTED {
        let properties = Properties([(name.to_owned(), "true".to_owned())].into());
        let error = Hive::new(&servers, &properties, &Arc::default()).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains(name));
    }
}

#[test]
fn servers_are_read_from_texts_of_all_forms() {
    let shown = |text: &str| Servers::parse(text).unwrap().shown();
    assert_eq!(shown("thrift://a:1"), "thrift://a:1");
    assert_eq!(shown("hive://a"), "thrift://a:9083");
    assert_eq!(shown("thrift://a:1, thrift://b:2"), "thrift://a:1,b:2");
    assert_eq!(shown("thrift://[::1]:7/db"), "thrift://[::1]:7/db");
    assert_eq!(shown("thrift://user:secret@a:1/"), "thrift://a:1");
    assert!(Servers::parse("thrift://").is_err());
    assert!(Servers::parse("thrift://a:x").is_err());
}
