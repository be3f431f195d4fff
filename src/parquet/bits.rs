//! Values of a few bits each, packed without gaps: written least significant bit first (dictionary indices, levels,
//! booleans, deltas; [`crate::packed`] reads them), or read most significant bit first, as the long deprecated BIT_PACKED
//! encoding of levels has them.

use super::DecodeError;
use crate::packed::{packed_len, word};

/// Appends `count` values in the deprecated BIT_PACKED encoding, from the most significant bit of each byte on.
pub fn unpack_msb_first(
    bytes: &[u8],
    width: u8,
    count: usize,
    out: &mut Vec<u32>,
) -> Result<(), DecodeError> {
    const WHAT: &str = "bit-packed levels";
    match packed_len(count, width) {
        Some(len) if width <= 32 && len <= bytes.len() => {}
        _ => return Err(DecodeError::truncated(WHAT)),
    }
    let mut bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    out.extend((0..count).map(|_| {
        bits.by_ref()
            .take(width.into())
            .fold(0, |value, bit| value << 1 | bit)
    }));
    Ok(())
}

/// Bits appended one after the other, from the least significant bit of each byte on.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet: fewer than eight between calls.
    pending: u64,
    pending_bits: usize,
}

impl BitWriter {
    /// No bits.
    pub fn new() -> BitWriter {
        BitWriter::default()
    }

    /// Appends the low `width` bits (0 to 56) of `value`.
    pub fn push(&mut self, value: u64, width: usize) {
        self.pending |= (value & ((1 << width) - 1)) << self.pending_bits;
        self.pending_bits += width;
        let whole = self.pending_bits / 8;
        let bytes = self.pending.to_le_bytes();
        self.bytes.extend_from_slice(
            bytes
                .split_at_checked(whole)
                .map_or(&bytes[..], |(whole, _)| whole),
        );
        self.pending >>= 8 * whole;
        self.pending_bits %= 8;
    }

    /// Appends `count` bits of `bytes`, from bit `start` on. Bits past the end of `bytes` are zero: callers check.
    pub fn copy(&mut self, bytes: &[u8], start: usize, count: usize) {
        let (mut at, end) = (start, start + count);
        if self.pending_bits == 0
            && start.is_multiple_of(8)
            && let Some(whole) = bytes.get(start / 8..end / 8)
        {
            self.bytes.extend_from_slice(whole);
            at = end / 8 * 8;
        }
        while end - at >= 64 {
            let (byte, shift) = (at / 8, at % 8);
            let mut next = word(bytes, byte) >> shift;
            if shift > 0 {
                next |= u64::from(bytes.get(byte + 8).copied().unwrap_or(0)) << (64 - shift);
            }
            let whole = self.pending | next << self.pending_bits;
            self.bytes.extend_from_slice(&whole.to_le_bytes());
            // What did not fit; in two steps, since a shift by 64 is none.
            self.pending = next >> 1 >> (63 - self.pending_bits);
            at += 64;
        }
        while at < end {
            let bits = (end - at).min(48);
            self.push(word(bytes, at / 8) >> (at % 8), bits);
            at += bits;
        }
    }

    /// Fills the last byte with zeros, gives all bytes, and starts anew.
    pub fn take(&mut self) -> Vec<u8> {
        if self.pending_bits > 0 {
            self.push(0, 8 - self.pending_bits);
        }
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests;
