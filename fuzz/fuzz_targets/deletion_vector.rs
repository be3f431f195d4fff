//! Any bytes as a deletion vector, whatever the cardinality that its manifest claims: as a blob, and in a sound frame.
#![no_main]

use bergfs::iceberg::deletion_vector;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, &[u8])| {
    let (cardinality, bytes) = input;
    for blob in [bytes.to_vec(), framed(bytes)] {
        if let Ok(positions) = deletion_vector::parse(&blob, cardinality) {
            assert_eq!(positions.len(), cardinality);
        }
    }
});

/// Length, magic and checksum around a vector: noise does not guess them.
fn framed(vector: &[u8]) -> Vec<u8> {
    let body = [&[0xD1, 0xD3, 0x39, 0x64], vector].concat();
    let mut blob = (body.len() as u32).to_be_bytes().to_vec();
    blob.extend_from_slice(&body);
    blob.extend_from_slice(&crc32fast::hash(&body).to_be_bytes());
    blob
}
