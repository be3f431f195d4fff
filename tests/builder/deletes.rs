//! Deletion vectors and the Puffin files around them (spec, "Deletion Vectors"; Puffin spec).

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde_json::{Value, json};

const VECTOR_MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

/// The bitmaps of a vector: one of 32-bit positions for each upper half that occurs.
pub fn bitmaps(positions: impl IntoIterator<Item = u64>) -> Vec<(u32, RoaringBitmap)> {
    let mut bitmaps: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    for position in positions {
        bitmaps
            .entry((position >> 32) as u32)
            .or_default()
            .insert(position as u32);
    }
    bitmaps.into_iter().collect()
}

/// A `deletion-vector-v1` blob of these bitmaps, which are written in the order given.
pub fn vector_blob(bitmaps: &[(u32, RoaringBitmap)]) -> Vec<u8> {
    let mut body = VECTOR_MAGIC.to_vec();
    body.extend((bitmaps.len() as u64).to_le_bytes());
    for (key, bitmap) in bitmaps {
        body.extend(key.to_le_bytes());
        bitmap.serialize_into(&mut body).unwrap();
    }
    blob_of(&body)
}

/// The frame of a blob (length before, checksum behind) around a body that may be anything.
pub fn blob_of(body: &[u8]) -> Vec<u8> {
    let mut blob = (body.len() as u32).to_be_bytes().to_vec();
    blob.extend(body);
    blob.extend(crc32fast::hash(body).to_be_bytes());
    blob
}

/// A blob and what it is about, for a Puffin file.
pub struct Blob {
    pub bytes: Vec<u8>,
    pub referenced_data_file: String,
    pub cardinality: u64,
}

/// A Puffin file of these blobs, and the offset of each in it.
pub fn puffin(blobs: &[Blob]) -> (Vec<u8>, Vec<u64>) {
    let mut out = b"PFA1".to_vec();
    let mut offsets = vec![];
    let mut described: Vec<Value> = vec![];
    for blob in blobs {
        let offset = out.len() as u64;
        offsets.push(offset);
        out.extend(&blob.bytes);
        described.push(json!({
            "type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1,
            "offset": offset, "length": blob.bytes.len(),
            "properties": {
                "referenced-data-file": blob.referenced_data_file, "cardinality": blob.cardinality.to_string()}}));
    }
    let payload = json!({"blobs": described, "properties": {"created-by": "a test"}}).to_string();
    out.extend(b"PFA1");
    out.extend(payload.as_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend(b"PFA1");
    (out, offsets)
}
