//! Names of files and directories made from names that a table's metadata holds.
//!
//! Refs, tables, namespaces and data files may be called anything. The encoding is reversible: `/`, NUL, `%`, `=`,
//! control characters and a leading `.` become `%XX` (`=` because DuckDB takes `a=b` in a path for a partition column),
//! so nothing a table says can name a path outside the mount. Linux allows 255 bytes: a longer name is cut and ends in
//! `~` and a hash of the whole; its full text is kept in an extended attribute.

/// Bytes Linux allows in one component of a path.
const MAX_NAME: usize = 255;

/// `~` and sixteen hexadecimal digits.
const HASH_LEN: usize = 17;

/// `name` as a file name, `suffix` (taken as it is) at its end.
pub fn encode(name: &str, suffix: &str) -> String {
    let mut out = String::with_capacity(name.len() + suffix.len());
    for (i, c) in name.char_indices() {
        if c == '/' || c == '%' || c == '=' || c.is_control() || (c == '.' && i == 0) {
            let mut bytes = [0; 4];
            for b in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{b:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    if out.is_empty() {
        // An escape of no character: no other name can give it.
        out.push('%');
    }
    if out.len() + suffix.len() > MAX_NAME {
        let mut end = MAX_NAME.saturating_sub(HASH_LEN + suffix.len());
        while !out.is_char_boundary(end) {
            end -= 1;
        }
        out.truncate(end);
        out.push_str(&format!("~{:016x}", fnv1a(name.as_bytes())));
    }
    out.push_str(suffix);
    out
}

/// Whether [`encode`] cuts the name, so that it cannot be read back.
pub fn is_cut(name: &str, suffix: &str) -> bool {
    let escaped: usize = name.char_indices().map(|(i, c)| escaped_len(i, c)).sum();
    escaped + suffix.len() > MAX_NAME
}

fn escaped_len(index: usize, c: char) -> usize {
    match c {
        '/' | '%' | '=' => 3,
        '.' if index == 0 => 3,
        c if c.is_control() => 3 * c.len_utf8(),
        c => c.len_utf8(),
    }
}

/// The one of `names` that is encoded as `encoded`; an error where several are (their hashes collide).
pub fn find<'a>(
    encoded: &[u8],
    names: impl Iterator<Item = &'a str>,
) -> Result<Option<&'a str>, Ambiguous> {
    let mut found = None;
    for name in names {
        if encode(name, "").as_bytes() == encoded && found.replace(name).is_some() {
            return Err(Ambiguous);
        }
    }
    Ok(found)
}

/// Two long names look the same once cut.
#[derive(Debug)]
pub struct Ambiguous;

/// The 64-bit FNV-1a hash: the same on every machine.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
        (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rule_05_no_ref_name_leaves_its_directory() {
        for (name, encoded) in [
            ("main", "main"),
            ("feature/x", "feature%2Fx"),
            ("..", "%2E."),
            (".", "%2E"),
            ("a=b", "a%3Db"),
            ("100%", "100%25"),
            ("tab\tnul\0", "tab%09nul%00"),
            ("été", "été"),
            ("", "%"),
        ] {
            assert_eq!(encode(name, ""), encoded);
        }
    }

    #[test]
    fn a_long_name_is_cut_to_what_linux_allows_and_stays_distinct() {
        let (a, b) = ("é".repeat(200) + "a", "é".repeat(200) + "b");
        assert!(encode(&a, ".parquet").len() <= 255);
        assert_ne!(encode(&a, ".parquet"), encode(&b, ".parquet"));
        assert!(is_cut(&a, ".parquet") && !is_cut("short", ".parquet"));
        assert_eq!(
            find(encode(&b, "").as_bytes(), [&*a, &*b].into_iter()).unwrap(),
            Some(&*b)
        );
    }
}
