//! What went wrong, for the reader of a file (an error number) and for `.bergfs/errors` (the whole reason).

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Faults kept; older ones are dropped.
const MAX_FAULTS: usize = 1000;

/// Bytes kept of one reason: a table's own text may stand in it.
const MAX_REASON: usize = 4096;

/// What a failed operation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    NotFound,
    /// Like `NotFound`, with a reason worth noting: a time before the table's log, a snapshot that has been expired.
    Absent,
    NotDirectory,
    IsDirectory,
    /// Not what is asked: reading the target of what is no link.
    Invalid,
    /// The table cannot be read rightly.
    Io,
    /// A metadata file that ends too early, and was touched a moment ago: a commit may be writing it.
    Unfinished,
    /// The table uses a feature that is not supported.
    Unsupported,
    /// The table that this belonged to is gone, or another table is at its place.
    Stale,
}

/// Why an operation on the tree failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct TreeError {
    pub kind: ErrorKind,
    pub message: String,
}

impl TreeError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> TreeError {
        TreeError {
            kind,
            message: message.into(),
        }
    }

    pub(super) fn not_found() -> TreeError {
        TreeError::new(ErrorKind::NotFound, "no such file or directory")
    }

    /// An error of a module below, which says itself whether it is about an unsupported feature.
    pub(super) fn from_source(error: &dyn std::error::Error, unsupported: bool) -> TreeError {
        let kind = if unsupported {
            ErrorKind::Unsupported
        } else {
            ErrorKind::Io
        };
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                let _ = write!(message, ": {text}");
            }
            source = cause.source();
        }
        TreeError::new(kind, message)
    }

    /// Whether it tells of a fault, and not merely of a name that does not exist.
    pub fn is_fault(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Absent
                | ErrorKind::Io
                | ErrorKind::Unfinished
                | ErrorKind::Unsupported
                | ErrorKind::Stale
        )
    }
}

#[derive(Debug)]
struct Fault {
    time: Timestamp,
    path: String,
    reason: String,
    times: u64,
}

/// The last faults, each once.
#[derive(Debug, Default)]
pub struct Faults(Mutex<VecDeque<Fault>>);

impl Faults {
    /// Notes a fault at a path of the mount. One that is known already moves to the end, with its count.
    pub fn record(&self, path: &str, reason: &str) {
        let reason: String = reason
            .chars()
            .take(MAX_REASON)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = faults
            .iter()
            .position(|fault| fault.path == path && fault.reason == reason);
        let times = match known.and_then(|index| faults.remove(index)) {
            Some(fault) => fault.times.saturating_add(1),
            None => {
                tracing::error!(path, reason, "fault");
                1
            }
        };
        if faults.len() == MAX_FAULTS {
            faults.pop_front();
        }
        faults.push_back(Fault {
            time: Timestamp::now(),
            path: path.to_owned(),
            reason,
            times,
        });
    }

    /// When the last fault was noted.
    pub fn changed(&self) -> Option<SystemTime> {
        let faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since_1970 = Duration::try_from(faults.back()?.time.as_duration()).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(since_1970)
    }

    /// One line a fault: time, path, reason, and how often where it was more than once.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for fault in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = write!(text, "{:.3} {}: {}", fault.time, fault.path, fault.reason);
            if fault.times > 1 {
                let _ = write!(text, " ({} times)", fault.times);
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_listed_once_and_cannot_break_its_line() {
        let faults = Faults::default();
        faults.record("/a", "bad\nfile");
        faults.record("/b", "worse");
        faults.record("/a", "bad\nfile");
        let text = faults.text();
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.split_once(' ').map_or("", |(_, rest)| rest))
            .collect();
        assert_eq!(lines, ["/b: worse", "/a: bad file (2 times)"]);
    }

    #[test]
    fn the_list_is_bounded() {
        let faults = Faults::default();
        (0..MAX_FAULTS + 5).for_each(|i| faults.record("/a", &i.to_string()));
        assert_eq!(faults.text().lines().count(), MAX_FAULTS);
    }
}
