//! Avro object container files, as manifests and manifest lists use them, and data files (Avro spec, "Object Container Files").
//!
//! A manifest may hold 100,000 entries of a hundred fields each, of which a scan wants few. So records are not turned
//! into trees of values: the caller walks the writer's schema with a [`Cursor`], takes the fields it knows by
//! `field-id`, and skips the rest. Every length is checked against the bytes that are there, and the work per byte is
//! bounded, so that no file can exhaust memory, stack or time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

use super::error::FormatError;

mod cursor;
mod schema;

pub(crate) use cursor::Cursor;
pub(crate) use schema::{Logical, Record, Schema, Shape};

const MAGIC: [u8; 4] = *b"Obj\x01";
pub(crate) const SYNC_LENGTH: usize = 16;
/// Bytes that one block may decompress to. Writers aim at 16 to 64 KiB.
pub(crate) const MAX_BLOCK: u64 = 256 << 20;
/// KiB that the dictionary of a block may take: twice what the highest preset of xz asks for.
const MAX_XZ: u32 = 128 << 10;
/// Bytes that all blocks of a file may decompress to: over 10 million manifest entries.
const MAX_FILE: u64 = 4 << 30;

/// An opened file: its header read, its blocks still to come.
pub(crate) struct Container<'a> {
    pub(crate) schema: Schema,
    metadata: HashMap<String, &'a [u8]>,
    codec: Codec,
    sync: &'a [u8],
    blocks: &'a [u8],
}

#[derive(Clone, Copy)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
    Bzip2,
    Xz,
}

impl<'a> Container<'a> {
    /// Reads the header.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let header = bytes
            .strip_prefix(&MAGIC)
            .ok_or_else(|| invalid("does not start with the magic bytes of Avro"))?;
        let mut cursor = Cursor::new(header);
        let mut metadata = HashMap::new();
        cursor.blocks(|cursor| {
            let key = cursor.string()?.to_owned();
            metadata.insert(key, cursor.bytes()?);
            Ok(())
        })?;
        let sync = cursor.take(SYNC_LENGTH)?;
        let schema = metadata
            .get("avro.schema")
            .ok_or_else(|| invalid("has no avro.schema in its header"))?;
        let schema = Schema::parse(schema).map_err(|e| e.within("avro.schema"))?;
        let codec = match metadata.get("avro.codec").copied() {
            None | Some(b"null") => Codec::Null,
            Some(b"deflate") => Codec::Deflate,
            Some(b"snappy") => Codec::Snappy,
            Some(b"zstandard") => Codec::Zstandard,
            Some(b"bzip2") => Codec::Bzip2,
            Some(b"xz") => Codec::Xz,
            Some(other) => {
                return Err(FormatError::unsupported(format!(
                    "Avro codec {:?}",
                    String::from_utf8_lossy(other)
                )));
            }
        };
        Ok(Self {
            schema,
            metadata,
            codec,
            sync,
            blocks: cursor.rest(),
        })
    }

    /// Bytes that the header takes, where the file was opened by its first bytes alone.
    pub(crate) fn header_len(&self, opened: &[u8]) -> usize {
        opened.len().saturating_sub(self.blocks.len())
    }

    /// What each block ends with.
    pub(crate) fn sync(&self) -> &'a [u8] {
        self.sync
    }

    /// The objects of a block, encoded one after the other.
    pub(crate) fn decompress<'b>(&self, block: &'b [u8]) -> Result<Cow<'b, [u8]>, FormatError> {
        self.codec.decompress(block)
    }

    /// A key of the header's metadata, as text.
    pub(crate) fn metadata(&self, key: &str) -> Result<Option<&'a str>, FormatError> {
        let text = self
            .metadata
            .get(key)
            .map(|bytes| std::str::from_utf8(bytes));
        text.transpose()
            .map_err(|_| invalid(format!("header key {key:?} is not UTF-8")))
    }

    /// Hands each object of the file, in order, to `read`, which must consume it.
    pub(crate) fn for_each(
        &self,
        mut read: impl FnMut(&mut Cursor<'_>) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let mut file = Cursor::new(self.blocks);
        let mut decompressed = 0_u64;
        while !file.is_empty() {
            let count = file.long()?;
            let block = file.bytes()?;
            if file.take(SYNC_LENGTH)? != self.sync {
                return Err(invalid("a block does not end in the file's sync marker"));
            }
            let block = self.codec.decompress(block)?;
            decompressed = decompressed.saturating_add(block.len() as u64);
            if decompressed > MAX_FILE {
                return Err(invalid(format!(
                    "decompresses to more than {MAX_FILE} bytes"
                )));
            }
            let mut cursor = Cursor::new(&block);
            for _ in 0..count {
                cursor.step()?;
                read(&mut cursor)?;
            }
            if !cursor.is_empty() {
                return Err(invalid("a block holds more bytes than its objects take"));
            }
        }
        Ok(())
    }
}

impl Codec {
    fn decompress(self, block: &[u8]) -> Result<Cow<'_, [u8]>, FormatError> {
        match self {
            Self::Null => Ok(Cow::Borrowed(block)),
            Self::Deflate => inflate(flate2::read::DeflateDecoder::new(block)),
            Self::Zstandard => {
                inflate(zstd::stream::read::Decoder::with_buffer(block).map_err(broken_block)?)
            }
            Self::Bzip2 => inflate(bzip2::read::BzDecoder::new(block)),
            Self::Xz => inflate(lzma_rust2::XzReader::new_mem_limit(block, true, MAX_XZ)),
            Self::Snappy => {
                let (packed, crc) = block
                    .split_last_chunk::<4>()
                    .ok_or_else(|| invalid("a snappy block has no checksum"))?;
                let length = snap::raw::decompress_len(packed).map_err(broken_block)?;
                if length as u64 > MAX_BLOCK {
                    return Err(block_too_long());
                }
                let bytes = snap::raw::Decoder::new()
                    .decompress_vec(packed)
                    .map_err(broken_block)?;
                match crc32fast::hash(&bytes) == u32::from_be_bytes(*crc) {
                    true => Ok(Cow::Owned(bytes)),
                    false => Err(invalid(
                        "a snappy block does not have its recorded checksum",
                    )),
                }
            }
        }
    }
}

fn inflate(decoder: impl Read) -> Result<Cow<'static, [u8]>, FormatError> {
    let mut bytes = Vec::new();
    decoder
        .take(MAX_BLOCK + 1)
        .read_to_end(&mut bytes)
        .map_err(broken_block)?;
    if bytes.len() as u64 > MAX_BLOCK {
        Err(block_too_long())
    } else {
        Ok(Cow::Owned(bytes))
    }
}

fn block_too_long() -> FormatError {
    invalid(format!(
        "a block decompresses to more than {MAX_BLOCK} bytes"
    ))
}

fn broken_block(error: impl std::fmt::Display) -> FormatError {
    invalid(format!("a block does not decompress: {error}"))
}

fn invalid(reason: impl Into<String>) -> FormatError {
    FormatError::invalid("Avro file", reason)
}

#[cfg(test)]
mod tests;
