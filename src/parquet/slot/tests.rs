#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

#[test]
fn every_remainder_from_the_reserve_on_can_be_filled() {
    for closing in [Closing::Required, Closing::Optional, Closing::OptionalFixed] {
        for rest in (FILL as usize..20_000).chain([1 << 20, (1 << 20) + 1, (1 << 27) + 3]) {
            let head = filler(rest, closing).unwrap_or_else(|| panic!("{rest} bytes, {closing:?}"));
            assert!(head.len() <= rest);
            let mut bytes = head.clone();
            bytes.resize(rest.min(20_000), 0);
            let mut at = 0;
            while at < bytes.len() {
                let (header, len) = PageHeader::parse(&bytes[at..]).unwrap();
                assert!(
                    matches!(header.page, Page::DataV1 { num_values: 0, .. }),
                    "{header:?}"
                );
                at += len + header.compressed_size as usize;
            }
            assert_eq!(at, rest, "the closing pages end where the slot does");
        }
    }
}

#[test]
fn a_remainder_too_short_for_a_page_is_said_to_be() {
    assert_eq!(filler(3, Closing::Required), None);
    assert_eq!(filler(0, Closing::Required), Some(Vec::new()));
}
