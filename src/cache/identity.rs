//! Short names for what is identified by long texts: the same in every process and on every machine, and different for
//! different texts even where somebody tries to make them equal.

use std::io::{self, Write};

use ring::digest::{Context, Digest, SHA256};

/// SHA-256 of what is written to it.
pub struct Identity(Context);

impl Default for Identity {
    fn default() -> Identity {
        Identity(Context::new(&SHA256))
    }
}

impl Identity {
    /// Of one text.
    pub fn of(text: &str) -> String {
        let mut identity = Identity::default();
        identity.push(text.as_bytes());
        identity.finish()
    }

    /// Adds a part, told apart from its neighbours by its length.
    pub fn push(&mut self, part: &[u8]) {
        let len = u64::try_from(part.len()).unwrap_or(u64::MAX);
        self.0.update(&len.to_le_bytes());
        self.0.update(part);
    }

    /// 64 hexadecimal digits.
    pub fn finish(self) -> String {
        hex(&self.digest())
    }

    fn digest(self) -> Digest {
        self.0.finish()
    }

    /// The first bytes of the hash, as a number.
    pub fn short(self) -> u64 {
        let digest = self.digest();
        let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
        u64::from_le_bytes(first)
    }
}

/// For what writes itself as bytes of a known form, such as a bitmap.
impl Write for Identity {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(digest: &Digest) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in digest.as_ref() {
        // A string takes all that is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let of = |parts: &[&str]| {
            let mut identity = Identity::default();
            parts.iter().for_each(|part| identity.push(part.as_bytes()));
            identity.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab"]), Identity::of("ab"));
        // SHA-256 of eight bytes of length, 0, and nothing: the same whatever makes it (sha256sum of 8 zero bytes).
        assert_eq!(
            Identity::of(""),
            "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc"
        );
    }
}
