//! What stores and catalogs share of the web: one runtime, one client, one way to try again.
//!
//! The daemon's own threads block; what they wait for runs on one runtime of a few threads, however many requests are
//! under way ([`block_on`]). All requests go out through one [`client`], so that connections are shared, and through
//! [`send`], which
//!
//! - bounds how many are under way in the process ([`MAX_IN_FLIGHT`]);
//! - reads the answer's body whole, up to a limit, and gives none that is shorter than the answer said;
//! - tries again, after a growing pause with jitter, what may well succeed then: throttling (429, 503 …), connections
//!   that were reset or never made, answers that stop half-way, silence;
//! - gives up after a bounded time ([`Limits::patience`]), so that a server that is down is an error and no hang.
//!
//! An error never holds a URL: it may carry a signature or a token. The caller says what it asked for.

use std::error::Error;
use std::fmt::Write;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_RANGE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, Request, StatusCode};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::counters::Counters;

/// Requests under way in the process. Object stores answer hundreds at once; a home connection does not gain by more.
const MAX_IN_FLIGHT: usize = 64;

/// Enough to drive what waits for the network all the time.
const RUNTIME_THREADS: usize = 2;

/// A server that takes longer than this to accept a connection is asked again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Silence, before an answer or within one, after which it is asked for again.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before the second attempt; each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Bytes per second below which an answer that does come is taken for none.
const SLOWEST: u64 = 16 << 10;

/// Links in a chain of redirections.
const MAX_REDIRECTS: usize = 5;

/// Bounds of one request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For how long it is tried. What is being answered by then may take longer.
    pub patience: Duration,
    /// Bytes of the answer's body.
    pub max_body: u64,
    /// Which statuses are worth another attempt.
    pub temporary: fn(StatusCode) -> bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            max_body: 64 << 20,
            temporary: is_temporary,
        }
    }
}

/// What a server said, whole.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Any: also the last of those that were worth another attempt, where time ran out.
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The system's TLS is not usable, or the request is none.
    #[error("no HTTP request can be made: {reason}")]
    Client { reason: String },
    #[error("no answer after {attempts} attempts in {} s: {reason}", waited.as_secs())]
    Unanswered {
        attempts: u32,
        waited: Duration,
        reason: String,
    },
    /// Trying again would not help.
    #[error("{reason}")]
    Failed { reason: String },
    #[error("an answer of more than {max} bytes")]
    TooLarge { max: u64 },
}

/// Runs a future to its end on the process's runtime. Not for use on the runtime's own threads; what blocks there runs
/// under [`blocking`].
///
/// # Errors
/// The runtime cannot be started: no threads are left.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    Ok(runtime()?.block_on(future))
}

/// Starts a future that nobody waits for.
///
/// # Errors
/// The runtime cannot be started.
pub fn spawn<F>(future: F) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    runtime()?.spawn(future);
    Ok(())
}

/// Runs what blocks (a catalog's renewal, a program that gives credentials) from within a future.
///
/// # Errors
/// It panicked, or the runtime is ending.
pub async fn blocking<R: Send + 'static>(
    run: impl FnOnce() -> R + Send + 'static,
) -> io::Result<R> {
    let handle = runtime()?.handle();
    handle.spawn_blocking(run).await.map_err(io::Error::other)
}

fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Result<Runtime, io::ErrorKind>> = OnceLock::new();
    RUNTIME
        .get_or_init(|| {
            Builder::new_multi_thread()
                .worker_threads(RUNTIME_THREADS)
                .thread_name("web")
                .enable_all()
                .build()
                .map_err(|error| error.kind())
        })
        .as_ref()
        .map_err(|kind| io::Error::from(*kind))
}

/// The process's client: TLS by rustls with the system's certificates (or those of `SSL_CERT_FILE`), the proxies of the
/// environment, timeouts, and no redirection from `https` to `http`. Cheap to clone.
///
/// # Errors
/// TLS cannot be set up.
pub fn client() -> Result<Client, WebError> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    CLIENT
        .get_or_init(|| make_client().map_err(|error| chain(&error)))
        .clone()
        .map_err(|reason| WebError::Client { reason })
}

fn make_client() -> reqwest::Result<Client> {
    // Fails where one is installed already, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A machine without certificates can still ask servers that have none.
    builder()
        .build()
        .or_else(|_| builder().tls_certs_only([]).build())
}

fn builder() -> reqwest::ClientBuilder {
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        let from_https = attempt.previous().iter().any(|url| url.scheme() == "https");
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirections")
        } else if from_https && attempt.url().scheme() != "https" {
            attempt.error("a redirection from https to http")
        } else {
            attempt.follow()
        }
    });
    Client::builder()
        .user_agent(concat!("bergfs/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(STALL_TIMEOUT)
        .pool_max_idle_per_host(MAX_IN_FLIGHT)
        .redirect(redirects)
}

/// Sends a request until there is an answer that is worth having. Requests and bytes are counted in `counters`.
///
/// # Errors
/// No answer within the limits. An answer of any status is none: the caller knows what it means.
pub async fn send(
    request: Request,
    limits: Limits,
    counters: Option<&Counters>,
) -> Result<Answer, WebError> {
    let client = client()?;
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let Some(copy) = request.try_clone() else {
            let reason = "its body can be sent once only".to_owned();
            return Err(WebError::Client { reason });
        };
        if let Some(counters) = counters {
            counters.store_requests.add(1);
            counters.store_retries.add(u64::from(attempts > 1));
        }
        let left = limits.patience.saturating_sub(began.elapsed());
        let outcome = attempt(&client, copy, limits, left).await;
        if let (Ok(answer), Some(counters)) = (&outcome, counters) {
            counters.store_bytes.add(to_u64(answer.body.len()));
        }
        let asked_pause = match &outcome {
            Ok(answer) if (limits.temporary)(answer.status) => retry_after(&answer.headers),
            Err(Failure::Temporary(_)) => None,
            _ => return outcome.map_err(|failure| failure.finally(attempts, began.elapsed())),
        };
        let wait = asked_pause.unwrap_or(pause).max(jittered(pause));
        if began.elapsed().saturating_add(wait) >= limits.patience {
            return outcome.map_err(|failure| failure.finally(attempts, began.elapsed()));
        }
        match &outcome {
            Ok(answer) => tracing::debug!(status = answer.status.as_u16(), ?wait, "asked again"),
            Err(Failure::Temporary(reason)) => tracing::debug!(reason, ?wait, "asked again"),
            Err(_) => {}
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Why one attempt gave no answer.
enum Failure {
    /// The next may.
    Temporary(String),
    Final(WebError),
}

impl Failure {
    fn finally(self, attempts: u32, waited: Duration) -> WebError {
        match self {
            Self::Temporary(reason) => WebError::Unanswered {
                attempts,
                waited,
                reason,
            },
            Self::Final(error) => error,
        }
    }
}

async fn attempt(
    client: &Client,
    request: Request,
    limits: Limits,
    left: Duration,
) -> Result<Answer, Failure> {
    static IN_FLIGHT: OnceLock<Arc<Semaphore>> = OnceLock::new();
    let budget = Arc::clone(IN_FLIGHT.get_or_init(|| Arc::new(Semaphore::new(MAX_IN_FLIGHT))));
    let no_body = request.method() == Method::HEAD;
    let _permit = budget.acquire_owned().await;
    let silence = || Failure::Temporary("it does not answer".to_owned());
    let answered = client.execute(request);
    let answered = tokio::time::timeout(left.min(STALL_TIMEOUT), answered).await;
    let mut response = answered.map_err(|_| silence())?.map_err(failure)?;
    let (status, headers) = (response.status(), response.headers().clone());
    // What is no success is a message, of which the beginning will do.
    let max = if status.is_success() {
        limits.max_body
    } else {
        limits.max_body.min(1 << 20)
    };
    if response.content_length().is_some_and(|len| len > max) && !no_body {
        return Err(Failure::Final(WebError::TooLarge { max }));
    }
    let slowest = left.max(STALL_TIMEOUT) + Duration::from_secs(max / SLOWEST);
    let read = async {
        let mut body = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(failure)? {
            body.extend_from_slice(&piece);
            if to_u64(body.len()) > max {
                return Err(Failure::Final(WebError::TooLarge { max }));
            }
        }
        Ok(body.freeze())
    };
    let body = tokio::time::timeout(slowest, read).await;
    let body = body.map_err(|_| Failure::Temporary("its answer does not end".to_owned()))??;
    let promised = headers
        .get(CONTENT_RANGE)
        .and_then(|text| range_len(text.to_str().ok()?));
    if status.is_success() && promised.is_some_and(|len| len != to_u64(body.len())) {
        let reason = format!("{} bytes where the answer promised others", body.len());
        return Err(Failure::Temporary(reason));
    }
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// Bytes of a `bytes FIRST-LAST/SIZE`.
fn range_len(content_range: &str) -> Option<u64> {
    let (range, _) = content_range
        .trim()
        .strip_prefix("bytes ")?
        .split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

/// Whether the same request may be answered otherwise in a while.
pub fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Seconds; a date is not looked at.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// Between a half and the whole of a pause, so that those who were turned away together do not come back together.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) % 1024;
    pause / 2 + pause / 2048 * u32::try_from(random).unwrap_or(0)
}

fn failure(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let reason = chain(&error);
    if error.is_builder() || error.is_redirect() || is_untrusted(&error) {
        Failure::Final(WebError::Failed { reason })
    } else {
        Failure::Temporary(reason)
    }
}

/// Whether the server could not prove who it is.
fn is_untrusted(error: &reqwest::Error) -> bool {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        // An `io::Error` holds another error, perhaps one of its own kind, without naming it as its source.
        let held = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match held {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    false
}

/// An error's message with those of its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            let _ = write!(text, ": {cause}");
        }
        source = error.source();
    }
    text
}

fn to_u64(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
