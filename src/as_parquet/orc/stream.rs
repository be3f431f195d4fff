//! The bytes of a stream of a stripe, decompressed a chunk at a time (ORC specification v1, "Compression").

use std::io::Read;

use bytes::{Buf, Bytes};

use crate::as_parquet::Failure;

/// The largest chunk that is decompressed, in bytes. Writers use 256 KiB; the format's lengths end at 8 MiB.
const MAX_BLOCK: u64 = 64 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug)]
pub struct Compression {
    codec: Codec,
    /// Bytes of a decompressed chunk, at most.
    block_size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    None,
    Zlib,
    Snappy,
    Lz4,
    Zstd,
    Brotli,
}

impl Compression {
    /// By the numbers of the postscript.
    pub fn of(kind: u64, block_size: u64) -> Result<Compression, Failure> {
        let codec = match kind {
            0 => Codec::None,
            1 => Codec::Zlib,
            2 => Codec::Snappy,
            4 => Codec::Lz4,
            5 => Codec::Zstd,
            6 => Codec::Brotli,
            3 => return Err(Failure::Unsupported("the codec LZO".to_owned())),
            other => return Err(Failure::Unsupported(format!("the ORC codec {other}"))),
        };
        let block_size = usize::try_from(block_size.min(MAX_BLOCK)).unwrap_or(0);
        Ok(Compression { codec, block_size })
    }

    fn decompress(self, chunk: &[u8]) -> Result<Vec<u8>, Failure> {
        let max = self.block_size;
        let broken =
            |reason: String| Failure::Corrupt(format!("a chunk does not decompress: {reason}"));
        match self.codec {
            Codec::None => Ok(chunk.to_vec()),
            Codec::Zlib => inflate(flate2::read::DeflateDecoder::new(chunk), max),
            Codec::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(chunk);
                inflate(decoder.map_err(|e| broken(e.to_string()))?, max)
            }
            Codec::Brotli => inflate(brotli::Decompressor::new(chunk, 4096), max),
            Codec::Lz4 => {
                lz4_flex::block::decompress(chunk, max).map_err(|e| broken(e.to_string()))
            }
            Codec::Snappy => {
                let len = snap::raw::decompress_len(chunk).map_err(|e| broken(e.to_string()))?;
                if len > max {
                    return Err(too_long());
                }
                snap::raw::Decoder::new()
                    .decompress_vec(chunk)
                    .map_err(|e| broken(e.to_string()))
            }
        }
    }
}

fn inflate(decoder: impl Read, max: usize) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::new();
    let read = decoder.take(max as u64 + 1).read_to_end(&mut out);
    read.map_err(|e| Failure::Corrupt(format!("a chunk does not decompress: {e}")))?;
    if out.len() > max {
        return Err(too_long());
    }
    Ok(out)
}

fn too_long() -> Failure {
    Failure::Corrupt("a chunk that decompresses to more than the file says".to_owned())
}

/// A stream that is read from its start to its end.
#[derive(Debug)]
pub struct Stream {
    /// Chunks that have not been decompressed.
    stored: Bytes,
    compression: Compression,
    /// What is left of the last one that has.
    chunk: Bytes,
}

impl Stream {
    pub fn new(stored: Bytes, compression: Compression) -> Stream {
        Stream {
            stored,
            compression,
            chunk: Bytes::new(),
        }
    }

    /// Decompresses the next chunk, when the last is used up. False at the end.
    fn fill(&mut self) -> Result<bool, Failure> {
        while self.chunk.is_empty() {
            if self.stored.is_empty() {
                return Ok(false);
            }
            if self.compression.codec == Codec::None {
                self.chunk = std::mem::take(&mut self.stored);
                continue;
            }
            let header = self.stored.first_chunk::<3>().copied().ok_or_else(ended)?;
            self.stored.advance(header.len());
            let [a, b, c] = header.map(usize::from);
            let (len, original) = ((a | b << 8 | c << 16) >> 1, a & 1 == 1);
            if len > self.stored.len() {
                return Err(ended());
            }
            let chunk = self.stored.split_to(len);
            self.chunk = if original {
                chunk
            } else {
                self.compression.decompress(&chunk)?.into()
            };
        }
        Ok(true)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, Failure> {
        if !self.fill()? {
            return Err(ended());
        }
        Ok(self.chunk.get_u8())
    }

    /// Appends the next `len` bytes.
    pub fn read(&mut self, len: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut left = len;
        while left > 0 {
            if !self.fill()? {
                return Err(ended());
            }
            let piece = self.chunk.split_to(left.min(self.chunk.len()));
            out.extend_from_slice(&piece);
            left -= piece.len();
        }
        Ok(())
    }

    /// The next bytes, as many as the array has.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let mut out = [0; N];
        if let Some(there) = self.chunk.first_chunk() {
            out = *there;
            self.chunk.advance(N);
            return Ok(out);
        }
        for byte in &mut out {
            *byte = self.byte()?;
        }
        Ok(out)
    }

    /// All that is left, at most `max` bytes.
    pub fn rest(&mut self, max: usize) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        while self.fill()? {
            if out.len() + self.chunk.len() > max {
                return Err(Failure::Corrupt(format!(
                    "more than {max} bytes of metadata or dictionary"
                )));
            }
            out.extend_from_slice(&std::mem::take(&mut self.chunk));
        }
        Ok(out)
    }

    /// A number in base 128, least significant digit first.
    pub fn varint(&mut self) -> Result<u64, Failure> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Failure::Corrupt("a number longer than 64 bits".to_owned()))
    }

    /// A signed number of up to 128 bits in base 128.
    pub fn wide(&mut self) -> Result<i128, Failure> {
        let mut number = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                let sign = 0u128.wrapping_sub(number & 1);
                return Ok(((number >> 1) ^ sign).cast_signed());
            }
        }
        Err(Failure::Corrupt("a number longer than 128 bits".to_owned()))
    }
}

fn ended() -> Failure {
    Failure::Corrupt("a stream ends before its values".to_owned())
}
