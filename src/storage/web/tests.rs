#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Condvar, Mutex};
use std::thread;

use super::*;

/// A server that answers nobody until so many requests wait for it, and then one after the other.
#[derive(Default)]
struct Gate {
    state: Mutex<Gathered>,
    changed: Condvar,
}

#[derive(Default)]
struct Gathered {
    waiting: usize,
    /// The most that waited at once.
    most: usize,
    open: bool,
}

/// For how long the requests that are to come are waited for.
const GATE_PATIENCE: Duration = Duration::from_secs(20);

/// What a request too many has to come.
const GRACE: Duration = Duration::from_millis(300);

impl Gate {
    fn serve(self: &Arc<Self>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let gate = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let gate = Arc::clone(&gate);
                thread::spawn(move || gate.answer(&stream.unwrap()));
            }
        });
        address
    }

    fn answer(&self, mut stream: &TcpStream) {
        let lines = BufReader::new(stream).lines();
        let _head: Vec<_> = lines
            .map_while(|line| line.ok().filter(|line| !line.is_empty()))
            .collect();
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        state.most = state.most.max(state.waiting);
        self.changed.notify_all();
        let waited = self
            .changed
            .wait_timeout_while(state, GATE_PATIENCE, |state| !state.open);
        let (mut state, _) = waited.unwrap();
        state.waiting -= 1;
        let _ =
            stream.write_all(b"HTTP/1.1 200 X\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    }

    /// Opens when `count` requests wait, and one more has had the time to come.
    fn open_at(&self, count: usize) {
        let waits = |patience, few: usize| {
            let state = self.state.lock().unwrap();
            let fewer = |state: &mut Gathered| state.waiting < few;
            drop(self.changed.wait_timeout_while(state, patience, fewer));
        };
        waits(GATE_PATIENCE, count);
        waits(GRACE, count + 1);
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }
}

#[test]
fn no_more_requests_than_the_budget_are_under_way_and_all_are_answered() {
    let gate = Arc::new(Gate::default());
    let url: reqwest::Url = format!("http://{}/", gate.serve()).parse().unwrap();
    let ask = || {
        let request = Request::new(Method::GET, url.clone());
        block_on(send(request, Limits::default(), None)).unwrap()
    };
    thread::scope(|scope| {
        let asking: Vec<_> = (0..3 * MAX_IN_FLIGHT).map(|_| scope.spawn(ask)).collect();
        gate.open_at(MAX_IN_FLIGHT);
        for answer in asking {
            assert_eq!(answer.join().unwrap().unwrap().body, "ok");
        }
    });
    assert_eq!(gate.state.lock().unwrap().most, MAX_IN_FLIGHT);
}

#[test]
fn a_range_says_how_long_it_is() {
    assert_eq!(range_len("bytes 0-0/1"), Some(1));
    assert_eq!(range_len("bytes 10-19/*"), Some(10));
    for broken in [
        "bytes */5",
        "bytes 5-4/9",
        "bytes 0-18446744073709551615/9",
        "",
    ] {
        assert_eq!(range_len(broken), None, "{broken}");
    }
}

#[test]
fn pauses_are_at_least_half_and_at_most_what_they_are_meant_to_be() {
    for _ in 0..100 {
        let pause = jittered(FIRST_PAUSE);
        assert!(
            FIRST_PAUSE / 2 <= pause && pause <= FIRST_PAUSE,
            "{pause:?}"
        );
    }
}
