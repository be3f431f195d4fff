//! A connection to one of a metastore's servers: questions and answers, each within a bounded time.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::thrift::{Reply, Request, ThriftError};

/// How long one address is tried.
const CONNECT: Duration = Duration::from_secs(5);

/// How long one question may take, to the last byte of its answer.
const QUESTION: Duration = Duration::from_secs(20);

/// Bytes of an answer: a hundred tables with a thousand columns each have less.
const MAX_ANSWER: usize = 256 << 20;

/// The name and port of a server.
pub(super) type Server = (String, u16);

/// An open connection.
#[derive(Debug)]
pub(super) struct Client {
    input: BufReader<Timed>,
    framed: bool,
    sequence: i32,
}

/// A stream whose reads and writes end by a deadline.
#[derive(Debug)]
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        self.deadline
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
            .ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        match self.stream.read(buffer) {
            // What a socket says when its time is over.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
            }
            read => read,
        }
    }
}

impl Client {
    /// Connects to the first of several servers that accepts.
    pub(super) fn connect(servers: &[Server], framed: bool) -> io::Result<Self> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "no server has an address");
        for (host, port) in servers {
            let addresses = match (host.as_str(), *port).to_socket_addrs() {
                Ok(addresses) => addresses,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            for address in addresses {
                match TcpStream::connect_timeout(&address, CONNECT) {
                    Ok(stream) => {
                        stream.set_nodelay(true)?;
                        let deadline = Instant::now();
                        return Ok(Self {
                            input: BufReader::new(Timed { stream, deadline }),
                            framed,
                            sequence: 0,
                        });
                    }
                    Err(error) => failure = error,
                }
            }
        }
        Err(failure)
    }

    /// Calls a method; `arguments` adds to the call. What is given stands at the beginning of the result.
    pub(super) fn call(
        &mut self,
        method: &str,
        arguments: impl FnOnce(Request) -> Request,
    ) -> Result<Reply<impl Read>, ThriftError> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = arguments(Request::call(method, self.sequence)).bytes(self.framed);
        let timed = self.input.get_mut();
        timed.deadline = Instant::now() + QUESTION;
        timed.stream.set_write_timeout(Some(QUESTION))?;
        timed.stream.write_all(&message)?;
        Reply::begin(
            &mut self.input,
            self.framed,
            MAX_ANSWER,
            method,
            self.sequence,
        )
    }
}
