//! Any bytes as a deletion vector's blob, whatever the cardinality that its manifest claims.
#![no_main]

use bergfs::iceberg::deletion_vector;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u64, &[u8])| {
    let (cardinality, blob) = input;
    if let Ok(positions) = deletion_vector::parse(blob, cardinality) {
        assert_eq!(positions.len(), cardinality);
    }
});
