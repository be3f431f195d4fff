//! Decompression of pages, bounded by the size their header states.
//!
//! A page is given back only if it has exactly that size. No more than that is ever written, and, for the codecs that
//! have a highest ratio, a size that cannot come from so few bytes is refused before memory is taken for it.

use std::io::Read;

use super::DecodeError;
use super::format::Codec;

/// The largest page that is decompressed, in bytes. Writers aim at 1 MiB; a page holds at least one value, and a value
/// can be large.
pub const MAX_PAGE: usize = 1 << 30;

/// Snappy's most productive element copies 64 bytes and takes two or three.
const SNAPPY_MAX_RATIO: usize = 64;

/// LZ4 codes at most 255 more bytes of a match by each further byte.
const LZ4_MAX_RATIO: usize = 256;

const WHAT: &str = "compressed page";

impl Codec {
    /// Its name in `parquet.thrift`.
    pub fn name(self) -> String {
        match self {
            Codec::Uncompressed => "UNCOMPRESSED".into(),
            Codec::Snappy => "SNAPPY".into(),
            Codec::Gzip => "GZIP".into(),
            Codec::Lzo => "LZO".into(),
            Codec::Brotli => "BROTLI".into(),
            Codec::Lz4 => "LZ4".into(),
            Codec::Zstd => "ZSTD".into(),
            Codec::Lz4Raw => "LZ4_RAW".into(),
            Codec::Other(number) => format!("number {number}"),
        }
    }
}

/// Decompresses a page to the `size` bytes that its header states.
///
/// # Errors
/// The bytes are not what the codec writes, or not of that size; [`DecodeError::Unsupported`] for LZO, unknown codecs,
/// and pages over [`MAX_PAGE`].
pub fn decompress(codec: Codec, compressed: &[u8], size: usize) -> Result<Vec<u8>, DecodeError> {
    if size > MAX_PAGE {
        return Err(DecodeError::unsupported(format!(
            "a page of {size} bytes (over {MAX_PAGE})"
        )));
    }
    if size == 0 && compressed.is_empty() {
        return Ok(Vec::new());
    }
    let page = match codec {
        Codec::Uncompressed => compressed.to_vec(),
        Codec::Snappy => snappy(compressed, size)?,
        Codec::Gzip => stream(flate2::bufread::MultiGzDecoder::new(compressed), size)?,
        Codec::Brotli => stream(brotli::Decompressor::new(compressed, 4096), size)?,
        Codec::Zstd => zstd(compressed, size)?,
        Codec::Lz4Raw => lz4_block(compressed, size)?,
        Codec::Lz4 => lz4(compressed, size)?,
        Codec::Lzo | Codec::Other(_) => {
            return Err(DecodeError::unsupported(format!(
                "compression codec {}",
                codec.name()
            )));
        }
    };
    if page.len() == size {
        Ok(page)
    } else {
        Err(wrong_size(page.len(), size))
    }
}

/// What decompressing one page after the other can use again: fresh memory and contexts cost as much as the work.
#[derive(Default)]
pub struct Scratch {
    page: Vec<u8>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Scratch {
    /// As [`decompress`]; the page stays until the next one.
    pub fn decompress(
        &mut self,
        codec: Codec,
        compressed: &[u8],
        size: usize,
    ) -> Result<&[u8], DecodeError> {
        if codec != Codec::Zstd || size > MAX_PAGE || compressed.is_empty() {
            self.page = decompress(codec, compressed, size)?;
            return Ok(&self.page);
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => self
                .zstd
                .insert(zstd::bulk::Decompressor::new().map_err(bad)?),
        };
        self.page.clear();
        self.page.try_reserve(size).map_err(bad)?;
        // It fills the buffer, which may be longer: the length tells.
        zstd.decompress_to_buffer(compressed, &mut self.page)
            .map_err(bad)?;
        if self.page.len() == size {
            Ok(&self.page)
        } else {
            Err(wrong_size(self.page.len(), size))
        }
    }
}

/// The first `wanted` bytes of a page, or more of it, for less work than all where the codec allows that.
pub fn decompress_front(
    codec: Codec,
    compressed: &[u8],
    size: usize,
    wanted: usize,
) -> Result<Vec<u8>, DecodeError> {
    if wanted > size / 2 || size > MAX_PAGE {
        return decompress(codec, compressed, size);
    }
    let front: Box<dyn Read + '_> = match codec {
        Codec::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(compressed)),
        Codec::Brotli => Box::new(brotli::Decompressor::new(compressed, 4096)),
        Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(compressed).map_err(bad)?),
        _ => return decompress(codec, compressed, size),
    };
    let mut page = stream(front.take(wanted as u64), wanted)?;
    if page.len() < wanted {
        return Err(wrong_size(page.len(), size));
    }
    page.truncate(wanted);
    Ok(page)
}

fn wrong_size(got: usize, size: usize) -> DecodeError {
    let more = if got > size { "more than " } else { "" };
    DecodeError::corrupt(
        WHAT,
        format!(
            "holds {more}{} bytes, its header says {size}",
            got.min(size)
        ),
    )
}

fn bad(error: impl std::fmt::Display) -> DecodeError {
    DecodeError::corrupt(WHAT, error.to_string())
}

/// Refuses a size that so many compressed bytes cannot give.
fn check_ratio(compressed: &[u8], size: usize, ratio: usize) -> Result<(), DecodeError> {
    if size / ratio > compressed.len() {
        return Err(DecodeError::corrupt(
            WHAT,
            format!("{} bytes cannot hold {size}", compressed.len()),
        ));
    }
    Ok(())
}

/// `size` zeros; an error rather than an abort where there is no memory for them.
fn buffer(size: usize) -> Result<Vec<u8>, DecodeError> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(size).map_err(bad)?;
    Ok(buffer)
}

fn snappy(compressed: &[u8], size: usize) -> Result<Vec<u8>, DecodeError> {
    let stated = snap::raw::decompress_len(compressed).map_err(bad)?;
    if stated != size {
        return Err(wrong_size(stated, size));
    }
    check_ratio(compressed, size, SNAPPY_MAX_RATIO)?;
    let mut page = buffer(size)?;
    page.resize(size, 0);
    let len = snap::raw::Decoder::new()
        .decompress(compressed, &mut page)
        .map_err(bad)?;
    page.truncate(len);
    Ok(page)
}

fn zstd(compressed: &[u8], size: usize) -> Result<Vec<u8>, DecodeError> {
    // Memory that is reserved and not written costs nothing; the page never grows beyond it.
    let mut page = buffer(size)?;
    let mut decompressor = zstd::bulk::Decompressor::new().map_err(bad)?;
    decompressor
        .decompress_to_buffer(compressed, &mut page)
        .map_err(bad)?;
    Ok(page)
}

/// Reads no more than a byte beyond `size`, which the caller takes for an error.
fn stream(reader: impl Read, size: usize) -> Result<Vec<u8>, DecodeError> {
    let mut page = buffer(size)?;
    reader
        .take(size as u64 + 1)
        .read_to_end(&mut page)
        .map_err(bad)?;
    Ok(page)
}

fn lz4_block(compressed: &[u8], size: usize) -> Result<Vec<u8>, DecodeError> {
    check_ratio(compressed, size, LZ4_MAX_RATIO)?;
    let mut page = buffer(size)?;
    page.resize(size, 0);
    let len = lz4_flex::block::decompress_into(compressed, &mut page).map_err(bad)?;
    page.truncate(len);
    Ok(page)
}

/// The codec `LZ4`, which was never said to be one thing: Hadoop's framing (parquet-mr, newer parquet-cpp), an LZ4 frame
/// (older parquet-cpp), or a bare block. The first that gives the stated size is taken, as other readers do.
fn lz4(compressed: &[u8], size: usize) -> Result<Vec<u8>, DecodeError> {
    if let Some(page) = lz4_hadoop(compressed, size) {
        return Ok(page);
    }
    match stream(lz4_flex::frame::FrameDecoder::new(compressed), size) {
        Ok(page) if page.len() == size => Ok(page),
        _ => lz4_block(compressed, size),
    }
}

/// Hadoop's framing: sizes before and after compression (4 bytes each, big endian), then a block; and again.
fn lz4_hadoop(compressed: &[u8], size: usize) -> Option<Vec<u8>> {
    check_ratio(compressed, size, LZ4_MAX_RATIO).ok()?;
    let number = |bytes: &[u8; 4]| usize::try_from(u32::from_be_bytes(*bytes)).ok();
    let mut page = buffer(size).ok()?;
    let mut rest = compressed;
    while !rest.is_empty() {
        let (after, tail) = rest.split_first_chunk::<4>()?;
        let (before, tail) = (number(after)?, tail);
        let (length, tail) = tail.split_first_chunk::<4>()?;
        let (block, tail) = tail.split_at_checked(number(length)?)?;
        if page.len().checked_add(before)? > size {
            return None;
        }
        let block = lz4_block(block, before).ok()?;
        if block.len() != before {
            return None;
        }
        page.extend_from_slice(&block);
        rest = tail;
    }
    (page.len() == size).then_some(page)
}

#[cfg(test)]
mod tests;
