//! The hybrid of runs and packed groups that levels, dictionary indices and RLE booleans are written in (parquet-format,
//! "Run Length Encoding / Bit-Packing Hybrid").
//!
//! ```text
//! run    = varint(count << 1)      value in ceil(width / 8) bytes      count times the value
//!        | varint(groups << 1 | 1) groups × width bytes                8 values a group, from the least significant bit
//! ```

use super::{PackedError, packed_len, varint};

const WHAT: &str = "run-length encoded values";

/// Some consecutive values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run<'a> {
    /// One value, several times.
    Rle {
        /// Fits the sequence's width.
        value: u32,
        /// How many times.
        len: usize,
    },
    /// Values packed from the least significant bit on.
    Packed {
        /// Holds at least `len` values.
        bytes: &'a [u8],
        /// How many of them count.
        len: usize,
    },
}

impl Run<'_> {
    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Run::Rle { len, .. } | Run::Packed { len, .. } => *len,
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The runs of an encoded sequence of a known number of values.
#[derive(Clone, Debug)]
pub struct RunReader<'a> {
    bytes: &'a [u8],
    width: u8,
    left: usize,
    cut: bool,
}

impl<'a> RunReader<'a> {
    /// Reads `count` values of `width` bits.
    ///
    /// # Errors
    /// `width` is over 32.
    pub fn new(bytes: &'a [u8], width: u8, count: usize) -> Result<RunReader<'a>, PackedError> {
        if width > 32 {
            return Err(PackedError::Corrupt(
                WHAT,
                format!("of {width} bits (more than 32)"),
            ));
        }
        Ok(RunReader {
            bytes,
            width,
            left: count,
            cut: false,
        })
    }

    /// The next run, not empty; `None` after the last value.
    pub fn next_run(&mut self) -> Result<Option<Run<'a>>, PackedError> {
        while self.left > 0 {
            let run = self.read()?;
            if !run.is_empty() {
                self.left -= run.len();
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the zeros that fill the last group were found to be cut off.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    fn read(&mut self) -> Result<Run<'a>, PackedError> {
        let (header, header_len) = varint(self.bytes).ok_or(PackedError::Truncated(WHAT))?;
        let rest = self.bytes.get(header_len..).unwrap_or_default();
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        let width = usize::from(self.width);
        if header & 1 == 0 {
            let (value, rest) = rest
                .split_at_checked(width.div_ceil(8))
                .ok_or(PackedError::Truncated(WHAT))?;
            let value = value
                .iter()
                .rev()
                .fold(0u32, |value, byte| value << 8 | u32::from(*byte));
            if width < 32 && value >> width != 0 {
                return Err(PackedError::Corrupt(
                    WHAT,
                    format!("a value {value} does not fit {width} bits"),
                ));
            }
            self.bytes = rest;
            return Ok(Run::Rle {
                value,
                len: count.min(self.left),
            });
        }
        let len = count.saturating_mul(8).min(self.left);
        let (bytes, rest) = match rest.split_at_checked(count.saturating_mul(width)) {
            Some(split) => split,
            // The zeros that fill the last group may have been cut off.
            None if packed_len(len, self.width).is_some_and(|needed| needed <= rest.len())
                && len == self.left =>
            {
                self.cut = true;
                (rest, &[][..])
            }
            None => return Err(PackedError::Truncated(WHAT)),
        };
        self.bytes = rest;
        Ok(Run::Packed { bytes, len })
    }
}
