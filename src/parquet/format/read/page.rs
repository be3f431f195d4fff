//! Page headers.

use super::missing;
use crate::parquet::DecodeError;
use crate::parquet::format::{Encoding, Page, PageHeader};
use crate::parquet::thrift::{Field, Reader};

const PAGE_HEADER: &str = "page header";

impl PageHeader {
    /// Reads the header at the front of `bytes`; gives it with its length in bytes. The page follows it.
    pub fn parse(bytes: &[u8]) -> Result<(PageHeader, usize), DecodeError> {
        let mut page_type = None;
        let mut uncompressed_size = None;
        let mut compressed_size = None;
        let mut crc = None;
        let (mut data_v1, mut dictionary, mut data_v2) = (None, None, None);
        let mut reader = Reader::new(bytes);
        reader.fields(|reader, field| {
            match field.id {
                1 => page_type = Some(reader.i32(field)?),
                2 => uncompressed_size = Some(count(reader, field)?),
                3 => compressed_size = Some(count(reader, field)?),
                4 => crc = Some(reader.i32(field)?),
                5 => data_v1 = Some(data_page_header(reader, field)?),
                7 => dictionary = Some(dictionary_page_header(reader, field)?),
                8 => data_v2 = Some(data_page_header_v2(reader, field)?),
                _ => reader.skip(field)?,
            }
            Ok(())
        })?;
        let page = match page_type.ok_or_else(|| missing(PAGE_HEADER, "type"))? {
            0 => data_v1.ok_or_else(|| missing(PAGE_HEADER, "data_page_header"))?,
            2 => dictionary.ok_or_else(|| missing(PAGE_HEADER, "dictionary_page_header"))?,
            3 => data_v2.ok_or_else(|| missing(PAGE_HEADER, "data_page_header_v2"))?,
            other => Page::Other(other),
        };
        let header = PageHeader {
            uncompressed_size: uncompressed_size
                .ok_or_else(|| missing(PAGE_HEADER, "uncompressed_page_size"))?,
            compressed_size: compressed_size
                .ok_or_else(|| missing(PAGE_HEADER, "compressed_page_size"))?,
            crc,
            page,
        };
        Ok((header, reader.position()))
    }
}

/// A 32-bit integer that cannot be negative.
fn count(reader: &mut Reader<'_>, field: Field) -> Result<u32, DecodeError> {
    let value = reader.i32(field)?;
    u32::try_from(value).map_err(|_| {
        DecodeError::corrupt(
            PAGE_HEADER,
            format!("field {} is negative ({value})", field.id),
        )
    })
}

fn encoding(reader: &mut Reader<'_>, field: Field) -> Result<Option<Encoding>, DecodeError> {
    reader
        .i32(field)
        .map(|number| Some(Encoding::from_number(number)))
}

fn data_page_header(reader: &mut Reader<'_>, field: Field) -> Result<Page, DecodeError> {
    const WHAT: &str = "data page header";
    let mut num_values = None;
    let (mut values, mut def, mut rep) = (None, None, None);
    reader.structure(field, |reader, field| {
        match field.id {
            1 => num_values = Some(count(reader, field)?),
            2 => values = encoding(reader, field)?,
            3 => def = encoding(reader, field)?,
            4 => rep = encoding(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(Page::DataV1 {
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        encoding: values.ok_or_else(|| missing(WHAT, "encoding"))?,
        def_encoding: def.ok_or_else(|| missing(WHAT, "definition_level_encoding"))?,
        rep_encoding: rep.ok_or_else(|| missing(WHAT, "repetition_level_encoding"))?,
    })
}

fn dictionary_page_header(reader: &mut Reader<'_>, field: Field) -> Result<Page, DecodeError> {
    const WHAT: &str = "dictionary page header";
    let mut num_values = None;
    let mut values = None;
    reader.structure(field, |reader, field| {
        match field.id {
            1 => num_values = Some(count(reader, field)?),
            2 => values = encoding(reader, field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(Page::Dictionary {
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        encoding: values.ok_or_else(|| missing(WHAT, "encoding"))?,
    })
}

fn data_page_header_v2(reader: &mut Reader<'_>, field: Field) -> Result<Page, DecodeError> {
    const WHAT: &str = "data page header";
    let (mut num_values, mut num_nulls, mut num_rows) = (None, None, None);
    let mut values = None;
    let (mut def_len, mut rep_len) = (None, None);
    let mut is_compressed = true;
    reader.structure(field, |reader, field| {
        match field.id {
            1 => num_values = Some(count(reader, field)?),
            2 => num_nulls = Some(count(reader, field)?),
            3 => num_rows = Some(count(reader, field)?),
            4 => values = encoding(reader, field)?,
            5 => def_len = Some(count(reader, field)?),
            6 => rep_len = Some(count(reader, field)?),
            7 => is_compressed = reader.bool(field)?,
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok(Page::DataV2 {
        num_values: num_values.ok_or_else(|| missing(WHAT, "num_values"))?,
        num_nulls: num_nulls.ok_or_else(|| missing(WHAT, "num_nulls"))?,
        num_rows: num_rows.ok_or_else(|| missing(WHAT, "num_rows"))?,
        encoding: values.ok_or_else(|| missing(WHAT, "encoding"))?,
        def_len: def_len.ok_or_else(|| missing(WHAT, "definition_levels_byte_length"))?,
        rep_len: rep_len.ok_or_else(|| missing(WHAT, "repetition_levels_byte_length"))?,
        is_compressed,
    })
}
