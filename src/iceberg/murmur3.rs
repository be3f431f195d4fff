//! The hash of the `bucket` transform: 32-bit Murmur3, x86 variant, seed 0 (spec, Appendix B).

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// The hash of `bytes`.
pub(super) fn hash(bytes: &[u8]) -> u32 {
    let mut state = 0_u32;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        state ^= scramble(u32::from_le_bytes(*block));
        state = state
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let last = tail
            .iter()
            .rev()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        state ^= scramble(last);
    }
    // The length is mixed in modulo 2^32, as the reference does.
    state ^= bytes.len() as u32;
    state ^= state >> 16;
    state = state.wrapping_mul(0x85eb_ca6b);
    state ^= state >> 13;
    state = state.wrapping_mul(0xc2b2_ae35);
    state ^ state >> 16
}

fn scramble(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

#[cfg(test)]
mod tests;
