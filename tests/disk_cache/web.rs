//! A web server over a directory: whole files and ranges, with what ETag a test wants, counting what it sends.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What was sent: the path asked for, and the bytes of the answer.
type Sent = Arc<Mutex<Vec<(String, u64)>>>;

pub struct Web {
    pub url: String,
    sent: Sent,
}

impl Web {
    /// Serves the files below `root`; `etag` makes a file's ETag of its size and time of change.
    pub fn start(root: &Path, etag: fn(u64, i64) -> Option<String>) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sent = Sent::default();
        let (root, log) = (root.to_owned(), Arc::clone(&sent));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, log) = (root.clone(), Arc::clone(&log));
                std::thread::spawn(move || {
                    // Ends with its client.
                    let _ = serve(&stream, &root, &log, etag);
                });
            }
        });
        Web { url, sent }
    }

    /// Bytes sent of files whose path ends so, since this was asked last.
    pub fn bytes_of(&self, end: &str) -> u64 {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        let of = sent.iter().filter(|(path, _)| path.ends_with(end));
        of.map(|(_, bytes)| bytes).sum()
    }
}

fn serve(
    stream: &TcpStream,
    root: &Path,
    log: &Sent,
    etag: fn(u64, i64) -> Option<String>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut stream = stream;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let (mut range, mut wanted) = (None, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "range" => range = value.trim().strip_prefix("bytes=").map(str::to_owned),
                "if-match" => wanted = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut words = request.split_whitespace();
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let file = root.join(path.trim_start_matches('/'));
        let (Ok(body), Ok(status)) = (fs::read(&file), fs::metadata(&file)) else {
            write!(
                stream,
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            )?;
            continue;
        };
        let etag = etag(status.len(), status.mtime_nsec());
        if wanted.is_some() && wanted != etag {
            write!(
                stream,
                "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n"
            )?;
            continue;
        }
        let size = body.len();
        let (start, end) = match range.as_deref().and_then(|range| range.split_once('-')) {
            Some(("", last)) => (size - last.parse::<usize>().unwrap().min(size), size),
            Some((start, "")) => (start.parse().unwrap(), size),
            Some((start, end)) => (
                start.parse().unwrap(),
                (end.parse::<usize>().unwrap() + 1).min(size),
            ),
            None => (0, size),
        };
        let (code, place) = match range {
            Some(_) => (
                "206 Partial Content",
                format!("Content-Range: bytes {start}-{}/{size}\r\n", end - 1),
            ),
            None => ("200 OK", String::new()),
        };
        let etag = etag.map_or(String::new(), |etag| format!("ETag: {etag}\r\n"));
        write!(
            stream,
            "HTTP/1.1 {code}\r\nContent-Length: {}\r\n{place}{etag}\
             Last-Modified: Sun, 29 Nov 2026 12:00:00 GMT\r\n\r\n",
            end - start
        )?;
        if method != "HEAD" {
            // Counted first: who has the answer may ask at once for the count.
            let sent = u64::try_from(end - start).unwrap();
            log.lock().unwrap().push((path.to_owned(), sent));
            stream.write_all(&body[start..end])?;
        }
    }
}
