//! A store in this process: a directory's files by S3's protocol, and by plain HTTP, with a record of what was asked and
//! faults where a test wants them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Answered with this status.
    Status(u16),
    /// Answered with 503, and that so many seconds should pass before the next.
    Later(u64),
    /// The connection ends without an answer.
    Reset,
    /// The answer promises all bytes and stops half-way.
    Truncated,
    /// The answer promises and gives one byte less than the range.
    Short,
    /// There is no answer, and the connection stays open.
    Silence,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub method: String,
    /// Without the leading slash and the query.
    pub path: String,
    pub query: String,
    pub range: Option<String>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    /// For the next requests of files, the first first.
    faults: Mutex<Vec<Fault>>,
    /// Of all requests.
    down: AtomicBool,
    /// Whose access key is let in; all are where it is not set.
    key: Mutex<Option<String>>,
    /// Names in a page of a listing.
    page: Mutex<usize>,
    /// Keys that are listed beside the files: such as no file can have.
    strays: Mutex<Vec<String>>,
    together: Together,
}

/// Requests of files that are answered when all of them are there.
#[derive(Default)]
struct Together {
    gathering: Mutex<Gathering>,
    all: Condvar,
}

#[derive(Default)]
struct Gathering {
    /// How many are still to come.
    missing: usize,
    /// Whether one has waited in vain.
    in_vain: bool,
}

/// How long they are waited for: whoever asks for one after the other never comes to the second.
const TOGETHER_PATIENCE: Duration = Duration::from_secs(5);

impl Together {
    fn arrive(&self) {
        let mut gathering = self.gathering.lock().unwrap();
        if gathering.missing == 0 || gathering.in_vain {
            return;
        }
        gathering.missing -= 1;
        self.all.notify_all();
        let incomplete = |gathering: &mut Gathering| gathering.missing > 0 && !gathering.in_vain;
        let waited = self
            .all
            .wait_timeout_while(gathering, TOGETHER_PATIENCE, incomplete);
        let (mut gathering, _) = waited.unwrap();
        if gathering.missing > 0 {
            gathering.in_vain = true;
            self.all.notify_all();
        }
    }
}

/// Serves until the test ends.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Serves the directories of `root` as buckets.
    pub fn start(root: PathBuf) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        *shared.page.lock().unwrap() = 1000;
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, root) = (Arc::clone(&serving), root.clone());
                if let Ok(stream) = stream {
                    thread::spawn(move || serve(stream, &root, &shared));
                }
            }
        });
        Server { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked since this was asked last.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.shared.asked.lock().unwrap())
    }

    pub fn fail(&self, faults: &[Fault]) {
        *self.shared.faults.lock().unwrap() = faults.to_vec();
    }

    pub fn faults_left(&self) -> usize {
        self.shared.faults.lock().unwrap().len()
    }

    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::SeqCst);
    }

    pub fn let_in(&self, key: &str) {
        *self.shared.key.lock().unwrap() = Some(key.to_owned());
    }

    /// The next so many requests of files wait for one another.
    pub fn gather(&self, requests: usize) {
        self.shared.together.gathering.lock().unwrap().missing = requests;
    }

    /// Whether all of them came at once.
    pub fn gathered(&self) -> bool {
        let gathering = self.shared.together.gathering.lock().unwrap();
        gathering.missing == 0 && !gathering.in_vain
    }

    pub fn page(&self, names: usize) {
        *self.shared.page.lock().unwrap() = names;
    }

    pub fn add_strays(&self, keys: &[&str]) {
        let keys = keys.iter().map(|key| (*key).to_owned());
        self.shared.strays.lock().unwrap().extend(keys);
    }
}

fn serve(stream: TcpStream, root: &std::path::Path, shared: &Shared) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut words = line.split_whitespace();
        let (Some(method), Some(target)) = (words.next(), words.next()) else {
            return;
        };
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
            let Some((name, value)) = header.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| {
            let found = headers.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.clone())
        };
        if let Some(len) = header("content-length").and_then(|len| len.parse().ok()) {
            let mut body = vec![0; len];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decoded(path.trim_start_matches('/'));
        let asked = Asked {
            method: method.to_owned(),
            path: path.clone(),
            query: query.to_owned(),
            range: header("range"),
        };
        shared.asked.lock().unwrap().push(asked);
        if shared.down.load(Ordering::SeqCst) {
            return;
        }
        let key = shared.key.lock().unwrap().clone();
        let authorization = header("authorization").unwrap_or_default();
        let answer =
            if key.is_some_and(|key| !authorization.contains(&format!("Credential={key}/"))) {
                Answer::error(403, "AccessDenied")
            } else if query.contains("list-type=2") {
                list(root, &path, query, shared)
            } else {
                file(root, &path, &header)
            };
        let is_file = !query.contains("list-type");
        if is_file {
            shared.together.arrive();
        }
        let fault = {
            let mut faults = shared.faults.lock().unwrap();
            (is_file && !faults.is_empty()).then(|| faults.remove(0))
        };
        let answer = match fault {
            Some(Fault::Reset) => return,
            Some(Fault::Silence) => {
                // Until the other side gives up.
                let _ = reader.read_to_end(&mut Vec::new());
                return;
            }
            Some(Fault::Status(status)) => Answer::error(status, "SlowDown"),
            Some(Fault::Later(seconds)) => {
                let mut answer = Answer::error(503, "SlowDown");
                let pause = ("retry-after".to_owned(), seconds.to_string());
                answer.headers.push(pause);
                answer
            }
            _ => answer,
        };
        if !answer.send(&mut stream, method == "HEAD", fault) {
            return;
        }
    }
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn error(status: u16, code: &str) -> Answer {
        let body = format!("<Error><Code>{code}</Code><Message>{code} it is</Message></Error>");
        Answer {
            status,
            headers: Vec::new(),
            body: body.into_bytes(),
        }
    }

    /// Whether the connection goes on.
    fn send(mut self, stream: &mut TcpStream, head: bool, fault: Option<Fault>) -> bool {
        if fault == Some(Fault::Short) {
            self.body.pop();
        }
        let mut text = format!(
            "HTTP/1.1 {} X\r\ncontent-length: {}\r\n",
            self.status,
            self.body.len()
        );
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        if !head {
            bytes.extend_from_slice(&self.body);
        }
        if fault == Some(Fault::Truncated) {
            bytes.truncate(bytes.len() - self.body.len().div_ceil(2));
        }
        stream.write_all(&bytes).is_ok() && fault != Some(Fault::Truncated)
    }
}

fn file(root: &std::path::Path, path: &str, header: &dyn Fn(&str) -> Option<String>) -> Answer {
    let Ok(mut stored) = fs::File::open(root.join(path)) else {
        return Answer::error(404, "NoSuchKey");
    };
    let status = stored.metadata().unwrap();
    if !status.is_file() {
        return Answer::error(404, "NoSuchKey");
    }
    let size = status.len();
    let etag = format!("\"{size}-{}\"", status.mtime_nsec());
    if header("if-match").is_some_and(|wanted| wanted != etag) {
        return Answer::error(412, "PreconditionFailed");
    }
    let mut headers = vec![
        ("etag".to_owned(), etag),
        (
            "last-modified".to_owned(),
            "Mon, 01 Jan 2024 00:00:00 GMT".to_owned(),
        ),
    ];
    let mut read = |start: u64, end: u64| {
        let mut body = vec![0; (end - start) as usize];
        stored.seek(SeekFrom::Start(start)).unwrap();
        stored.read_exact(&mut body).unwrap();
        body
    };
    let Some(range) = header("range") else {
        let body = read(0, size);
        return Answer {
            status: 200,
            headers,
            body,
        };
    };
    let (first, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let number = |text: &str| text.parse::<u64>().unwrap();
    let (start, end) = match (first, last) {
        ("", len) => (size.saturating_sub(number(len)), size),
        (first, "") => (number(first), size),
        (first, last) => (number(first), number(last) + 1),
    };
    let end = end.min(size);
    if start >= end {
        return Answer::error(416, "InvalidRange");
    }
    headers.push((
        "content-range".to_owned(),
        format!("bytes {start}-{}/{size}", end - 1),
    ));
    let body = read(start, end);
    Answer {
        status: 206,
        headers,
        body,
    }
}

/// `ListObjectsV2` with a delimiter, in pages.
fn list(root: &std::path::Path, bucket: &str, query: &str, shared: &Shared) -> Answer {
    let page = *shared.page.lock().unwrap();
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| decoded(&value.replace('+', " ")))
    };
    let prefix = parameter("prefix").unwrap_or_default();
    assert_eq!(parameter("delimiter").as_deref(), Some("/"));
    let from: usize = parameter("continuation-token").map_or(0, |token| token.parse().unwrap());
    let place = root.join(bucket.trim_end_matches('/')).join(&prefix);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(place).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_directory = entry.path().is_dir();
        let len = match is_directory {
            true => 0,
            false => entry.metadata().unwrap().len(),
        };
        found.insert((name, is_directory, len));
    }
    for key in shared.strays.lock().unwrap().iter() {
        if let Some(below) = key.strip_prefix(&prefix) {
            let (name, is_directory) = match below.split_once('/') {
                Some((name, _)) => (name, true),
                None => (below, false),
            };
            found.insert((name.to_owned(), is_directory, 0));
        }
    }
    let mut xml = String::from("<?xml version=\"1.0\"?><ListBucketResult>");
    let here: Vec<_> = found.iter().skip(from).take(page).collect();
    for (name, is_directory, len) in &here {
        let name = format!("{prefix}{name}")
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('\n', "&#10;");
        xml.push_str(&match is_directory {
            true => format!("<CommonPrefixes><Prefix>{name}/</Prefix></CommonPrefixes>"),
            false => format!(
                "<Contents><Key>{name}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>\
                 <ETag>\"x\"</ETag><Size>{len}</Size></Contents>"
            ),
        });
    }
    let next = from + here.len();
    let more = next < found.len();
    xml.push_str(&format!("<IsTruncated>{more}</IsTruncated>"));
    if more {
        xml.push_str(&format!(
            "<NextContinuationToken>{next}</NextContinuationToken>"
        ));
    }
    xml.push_str("</ListBucketResult>");
    Answer {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/xml".to_owned())],
        body: xml.into_bytes(),
    }
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}
