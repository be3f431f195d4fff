//! The hybrid of runs and packed groups ([`crate::packed::runs`]) decoded, filtered and written.
//!
//! # Filtering never makes a sequence longer
//!
//! [`filter`] takes values out of an encoded sequence, and its output is **at most as long as its input**, whatever the
//! input's runs and whatever goes. That is what lets a filtered page live in the space of the page it comes from.
//! Encoding the kept values anew would not give that: an encoder may choose other runs than the source's did.
//!
//! It keeps the source's runs. A repeated run stays one, with a lower count, or goes. Packed values are appended to the
//! *open* packed run. When a repeated run follows while the open run's last group has room, the run's first values fill
//! that group; if any are left, the open run is closed, with whole groups only, and the rest of the repeated run is
//! written. Only the sequence's last group is filled up with zeros.
//!
//! *Proof.* Each repeated run that is written comes from one source run, with the same value bytes and no larger a
//! count, so no longer a varint. Each packed run that is written is charged to the source's packed runs that gave it
//! values. These are different runs for different written ones, and at least one each, since only a packed run opens
//! one. Let it be charged to runs of `g₁ … gₖ` groups. Its number of groups, a group that is not full counted, is at
//! most `g₁ + … + gₖ`: appending `n ≤ 8gᵢ` values adds at most `ceil(n / 8) ≤ gᵢ` groups, and values of repeated runs
//! only fill room in a group that is there. So the packed bytes are no more. Its header is no longer than theirs
//! together: a varint of `a + b`, for `a, b ≥ 1`, takes at most one byte more than that of the larger, and the smaller
//! takes at least one. ∎
//!
//! Some writers cut the zeros off a sequence's last group. Where the source does that, so does [`filter`]: with `v`
//! values in the last packed run, `v ≤ 8(g₁ + … + gₖ₋₁) + n` for the `n` values the cut run still holds, hence
//! `ceil(v × width / 8)` bytes are no more than the source's.

use super::DecodeError;
use super::bits::BitWriter;
use super::keep::KeepRuns;
use super::thrift::{varint_len, write_varint};
use crate::packed::unpacked;

pub use crate::packed::runs::{Run, RunReader};

/// Appends the `count` values of a sequence of values of `width` bits. `count` bounds the memory taken.
pub fn decode(
    bytes: &[u8],
    width: u8,
    count: usize,
    out: &mut Vec<u32>,
) -> Result<(), DecodeError> {
    let mut runs = RunReader::new(bytes, width, count)?;
    while let Some(run) = runs.next_run()? {
        match run {
            Run::Rle { value, len } => out.resize(out.len() + len, value),
            Run::Packed { bytes, len } => out.extend(unpacked(bytes, width, len)),
        }
    }
    Ok(())
}

/// Appends the kept values of a sequence of `keep.total()` values of `width` bits, encoded: never more bytes than
/// `bytes` has.
pub fn filter(
    bytes: &[u8],
    width: u8,
    keep: &KeepRuns,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut reader = RunReader::new(bytes, width, keep.total())?;
    let mut writer = RunWriter::new(width, out);
    let mut kept = keep.runs().iter().cloned().peekable();
    let mut start = 0;
    while let Some(run) = reader.next_run()? {
        let end = start + run.len();
        let mut repeats = 0;
        while let Some(range) = kept.peek() {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                match run {
                    Run::Rle { .. } => repeats += to - from,
                    Run::Packed { bytes, .. } => writer.packed(bytes, from - start, to - from),
                }
            }
            if range.end > end {
                break;
            }
            kept.next();
        }
        if let Run::Rle { value, .. } = run {
            writer.rle(value, repeats);
        }
        start = end;
    }
    writer.finish(reader.is_cut());
    Ok(())
}

/// Writes runs, as the module's proof has them.
#[derive(Debug)]
pub struct RunWriter<'a> {
    out: &'a mut Vec<u8>,
    width: u8,
    /// The open packed run's values.
    packed: BitWriter,
    packed_len: usize,
}

impl<'a> RunWriter<'a> {
    /// Appends values of `width` bits (at most 32) to `out`.
    pub fn new(width: u8, out: &'a mut Vec<u8>) -> RunWriter<'a> {
        RunWriter {
            out,
            width: width.min(32),
            packed: BitWriter::new(),
            packed_len: 0,
        }
    }

    /// Adds `len` times a value.
    pub fn rle(&mut self, value: u32, mut len: usize) {
        while len > 0 && !self.packed_len.is_multiple_of(8) {
            self.packed.push(value.into(), self.width.into());
            self.packed_len += 1;
            len -= 1;
        }
        if len > 0 {
            self.close(false);
            write_varint(self.out, (len as u64) << 1);
            let bytes = value.to_le_bytes();
            self.out
                .extend(bytes.iter().take(usize::from(self.width).div_ceil(8)));
        }
    }

    /// Adds `len` packed values, from number `start` of `bytes` on.
    pub fn packed(&mut self, bytes: &[u8], start: usize, len: usize) {
        let width = usize::from(self.width);
        self.packed.copy(bytes, start * width, len * width);
        self.packed_len += len;
    }

    fn levels(&mut self, levels: &[u16]) {
        for level in levels {
            self.packed.push((*level).into(), self.width.into());
        }
        self.packed_len += levels.len();
    }

    /// Ends the sequence. The zeros that fill its last group are left out if `cut`.
    pub fn finish(mut self, cut: bool) {
        self.close(cut);
    }

    fn close(&mut self, cut: bool) {
        if self.packed_len == 0 {
            return;
        }
        let groups = self.packed_len.div_ceil(8);
        write_varint(self.out, (groups as u64) << 1 | 1);
        let start = self.out.len();
        self.out.append(&mut self.packed.take());
        if !cut {
            self.out.resize(start + groups * usize::from(self.width), 0);
        }
        self.packed_len = 0;
    }
}

/// Encodes levels of `width` bits (at most 16): runs of eight and more equal levels as such and others packed, or, where
/// that is no longer, all of them packed. At most [`encoded_len_bound`] bytes.
pub fn encode_levels(levels: &[u16], width: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = RunWriter::new(width, &mut out);
    let mut rest = levels;
    while let Some(first) = rest.first() {
        let repeats = rest.iter().take_while(|level| *level == first).count();
        let taken = if repeats >= 8 {
            repeats
        } else {
            rest.len().min(8)
        };
        let (run, after) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
        if repeats >= 8 {
            writer.rle((*first).into(), repeats);
        } else {
            writer.levels(run);
        }
        rest = after;
    }
    writer.finish(false);
    if out.len() > encoded_len_bound(levels.len(), width) {
        out.clear();
        let mut writer = RunWriter::new(width, &mut out);
        writer.levels(levels);
        writer.finish(false);
    }
    out
}

/// The most bytes [`encode_levels`] gives for `count` levels of `width` bits: those of one packed run of them all.
pub fn encoded_len_bound(count: usize, width: u8) -> usize {
    let groups = count.div_ceil(8);
    varint_len((groups as u64) << 1 | 1) + groups * usize::from(width)
}

/// A sequence with its length in four bytes before it (levels of v1 pages, RLE booleans), and what follows it.
pub fn split_length_prefixed<'a>(
    bytes: &'a [u8],
    what: &'static str,
) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    let (len, rest) = bytes
        .split_first_chunk::<4>()
        .ok_or_else(|| DecodeError::truncated(what))?;
    let len =
        usize::try_from(u32::from_le_bytes(*len)).map_err(|_| DecodeError::truncated(what))?;
    rest.split_at_checked(len)
        .ok_or_else(|| DecodeError::truncated(what))
}

/// The bit width of a data page's dictionary indices (its first byte, at most 32), and the encoded indices.
pub fn split_index_width(values: &[u8]) -> Result<(u8, &[u8]), DecodeError> {
    const WHAT: &str = "dictionary indices";
    match values.split_first() {
        Some((width @ 0..=32, rest)) => Ok((*width, rest)),
        Some((width, _)) => Err(DecodeError::corrupt(
            WHAT,
            format!("of {width} bits (more than 32)"),
        )),
        // Pages of nothing but nulls may have no value bytes at all.
        None => Ok((0, &[])),
    }
}

#[cfg(test)]
mod tests;
