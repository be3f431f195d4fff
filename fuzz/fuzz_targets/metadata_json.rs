//! Any bytes as table metadata: an answer or an error.
#![no_main]

use bergfs::iceberg::metadata::TableMetadata;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(metadata) = TableMetadata::parse(bytes) {
        let _ = metadata.current_schema();
        let _ = metadata.name_mapping();
    }
});
