//! Any bytes as a variant: names, and a value that uses them.
#![no_main]

use bergfs::iceberg::variant::{Names, Object, value_len};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (names, value) = input;
    if let Ok(len) = value_len(value) {
        assert!(len <= value.len());
    }
    if let Ok(names) = Names::parse(names) {
        for id in 0..names.count() {
            let _ = names.get(id);
        }
        let _ = Object::parse(&names, value);
    }
});
