//! Buffers that reads fill, kept for the next reads: fresh memory costs more than what is read into it.

use std::sync::{Arc, Mutex, PoisonError};

/// Buffers kept, and the bytes of the largest kept one: a read of the kernel asks for 1 MiB at most, unless somebody has
/// configured more.
const KEPT: usize = 8;
const KEPT_BYTES: usize = 1 << 20;

/// Buffers that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// A buffer in use. Its bytes are whatever they were.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    home: Arc<Buffers>,
}

impl Buffers {
    /// A buffer of `size` bytes or more.
    pub(super) fn take(self: &Arc<Self>, size: usize) -> Buffer {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bytes = kept.unwrap_or_default();
        if bytes.len() < size {
            // Fresh zeros, and nothing of the old copied.
            bytes = vec![0; size];
        }
        Buffer {
            bytes,
            home: Arc::clone(self),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut kept = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT && bytes.len() <= KEPT_BYTES {
            kept.push(bytes);
        }
    }
}
