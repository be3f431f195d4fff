//! Text of at most 16 bytes, as one number.
//!
//! It fits in a register: it is looked through and put together without a loop over its bytes, and stored whole. The
//! bytes behind its end are stored too and then cut off, which costs less than a copy of just so many.

/// Text of at most 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    /// The first byte is the lowest. Those behind the end mean nothing.
    bytes: u128,
    len: usize,
}

impl Short {
    /// The most bytes there can be.
    const MAX: usize = 16;

    /// `len` bytes, the first of which is the lowest of `bytes`.
    #[inline]
    pub(super) fn new(bytes: u128, len: usize) -> Short {
        Short { bytes, len }
    }

    /// Text, if it is short. The bytes behind its end are zero.
    #[inline]
    pub(super) fn of(text: &[u8]) -> Option<Short> {
        let len = text.len();
        // The first and the last bytes overlap, where they are the same.
        if len > Short::MAX {
            return None;
        }
        let bytes = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            let last = u128::from(u64::from_le_bytes(*last)) << (8 * (len - 8));
            u128::from(u64::from_le_bytes(*first)) | last
        } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
            let last = u128::from(u32::from_le_bytes(*last)) << (8 * (len - 4));
            u128::from(u32::from_le_bytes(*first)) | last
        } else {
            let byte = |at: usize| u128::from(text.get(at).copied().unwrap_or(0)) << (8 * at);
            byte(0) | byte(1) | byte(2)
        };
        Some(Short { bytes, len })
    }

    /// Bytes.
    #[inline]
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// The lower and the upper eight bytes.
    #[inline]
    pub(super) fn words(self) -> [u64; 2] {
        // Cut to its lower half on purpose.
        [self.bytes as u64, (self.bytes >> 64) as u64]
    }

    #[inline]
    pub(super) fn push(self, out: &mut Vec<u8>) {
        let end = out.len() + self.len;
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.truncate(end);
    }

    /// With a byte put in before the byte `at`, which is at most the length; that is at most 15.
    #[inline]
    pub(super) fn with(self, at: usize, byte: u8) -> Short {
        let before = (1 << (8 * at)) - 1;
        Short {
            bytes: (self.bytes & before)
                | (u128::from(byte) << (8 * at))
                | ((self.bytes & !before) << 8),
            len: self.len + 1,
        }
    }
}

/// The lowest bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The highest bit of each byte.
const TOPS: u64 = 0x80 * ONES;

/// Whether any of the eight bytes is this one.
#[inline]
pub(super) fn has(word: u64, byte: u8) -> bool {
    has_below(word ^ (ONES * u64::from(byte)), 1)
}

/// Whether any of the eight bytes is smaller than `limit`, which is at most 128.
#[inline]
pub(super) fn has_below(word: u64, limit: u8) -> bool {
    // A byte borrows from the one above it only where it is itself smaller.
    word.wrapping_sub(ONES * u64::from(limit)) & !word & TOPS != 0
}

/// Whether `found` says so of any eight bytes of a text; behind the last ones it is shown `filler`.
#[inline]
pub(super) fn any_word(text: &[u8], filler: u8, found: impl Fn(u64) -> bool) -> bool {
    let (words, rest) = text.as_chunks::<8>();
    let mut last = [filler; 8];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    let words = words.iter().chain([&last]);
    words.fold(false, |any, word| any | found(u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_short_text_is_its_bytes(text: Vec<u8>) {
            let text = text.get(..16).unwrap_or(&text);
            let mut out = Vec::new();
            if let Some(short) = Short::of(text) {
                short.push(&mut out);
            }
            prop_assert_eq!(out, text);
        }

        #[test]
        fn a_byte_is_put_in(text in proptest::collection::vec(any::<u8>(), 0..16), at in 0usize..16) {
            let at = at.min(text.len());
            let mut expected = text.clone();
            expected.insert(at, b'.');
            let mut out = Vec::new();
            if let Some(short) = Short::of(&text) {
                short.with(at, b'.').push(&mut out);
            }
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn bytes_are_found_as_one_by_one(text: Vec<u8>, byte: u8, limit in 1u8..=128) {
            let filler = byte.wrapping_add(1);
            prop_assert_eq!(super::any_word(&text, filler, |word| has(word, byte)), text.contains(&byte));
            let below = text.iter().any(|b| *b < limit);
            prop_assert_eq!(super::any_word(&text, 255, |word| has_below(word, limit)), below);
        }
    }

    #[test]
    fn a_text_of_17_bytes_is_not_short() {
        assert!(Short::of(&[b'a'; 17]).is_none());
    }
}
