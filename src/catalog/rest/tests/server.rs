//! An HTTP server of this process that answers by a function and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use url::Url;

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// `GET /path?query`.
    pub(super) line: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What is answered.
pub(super) struct Said {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

pub(super) fn said(status: u16, body: impl Into<String>) -> Said {
    Said {
        status,
        headers: Vec::new(),
        body: body.into(),
    }
}

pub(super) fn ok(body: impl Into<String>) -> Said {
    said(200, body)
}

/// Iceberg's error model.
pub(super) fn refused(status: u16, kind: &str, message: &str) -> Said {
    let error = serde_json::json!({"error": {"message": message, "type": kind, "code": status}});
    said(status, error.to_string())
}

type Answer = Box<dyn FnMut(&Asked) -> Said + Send>;

pub(super) struct Server {
    pub(super) base: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Serves until the process ends. `answer` is told the server's own URL.
    pub(super) fn start(answer: impl FnMut(&Asked) -> Said + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Box::new(answer)));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &log, &answer));
            }
        });
        Self {
            base: Url::parse(&base).unwrap(),
            asked,
        }
    }

    /// What was asked since the last time, in order.
    pub(super) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// The lines of what was asked since the last time.
    pub(super) fn lines(&self) -> Vec<String> {
        self.take().into_iter().map(|asked| asked.line).collect()
    }
}

/// Answers what comes over one connection.
fn serve(stream: TcpStream, log: &Mutex<Vec<Asked>>, answer: &Mutex<Answer>) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        log.lock().unwrap().push(asked.clone());
        let said = (answer.lock().unwrap())(&asked);
        // 0: hung up without a word.
        if said.status == 0 {
            return;
        }
        let mut text = format!("HTTP/1.1 {} Said\r\n", said.status);
        for (name, value) in &said.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n", said.body.len()));
        text.push_str(&said.body);
        if writer.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
    let line = line.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        line,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
