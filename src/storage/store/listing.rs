//! Listings without the keys that no file can be asked for by.
//!
//! A store may hold keys with an empty part, one that is `.` or `..`, or a control character: a program that joined its
//! paths wrongly has left them. `object_store` has no such keys, and refuses a whole listing for one of them. No file of a
//! table is missed without them: it could not be read by that name.

use bytes::Bytes;
use object_store::path::Path;

/// The elements of a listing that stand for a key each, with the element that holds it: of S3 and Google, of Azure.
const ENTRIES: [(&str, &str); 4] = [
    ("Contents", "Key"),
    ("CommonPrefixes", "Prefix"),
    ("Blob", "Name"),
    ("BlobPrefix", "Name"),
];

/// A page of a listing as the store sent it, without such keys.
pub(super) fn without_strays(page: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&page) else {
        return page;
    };
    let mut kept = text.to_owned();
    for (entry, key) in ENTRIES {
        kept = without(&kept, entry, key);
    }
    match kept.len() == text.len() {
        true => page,
        false => kept.into(),
    }
}

fn without(text: &str, entry: &str, key: &str) -> String {
    let (open, close) = (format!("<{entry}>"), format!("</{entry}>"));
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(&open) {
        let Some((inside, behind)) = after.split_once(&close) else {
            break;
        };
        kept.push_str(before);
        match element(inside, key).filter(|key| is_stray(key)) {
            Some(key) => tracing::debug!(key, "a key that no file has is left out of a listing"),
            None => kept.extend([&open, inside, &close]),
        }
        rest = behind;
    }
    kept + rest
}

fn is_stray(escaped: &str) -> bool {
    Path::parse(unescaped(escaped)).is_err()
}

/// The text of the first element of a name, as the document has it.
pub(super) fn element<'x>(xml: &'x str, name: &str) -> Option<&'x str> {
    let (_, after) = xml.split_once(&format!("<{name}>"))?;
    let (inside, _) = after.split_once(&format!("</{name}>"))?;
    Some(inside)
}

/// With the characters that are given by their numbers; those that are given by a name make no difference to a key.
fn unescaped(text: &str) -> String {
    let mut parts = text.split("&#");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let numbered = part.split_once(';').and_then(|(number, rest)| {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            Some((char::from_u32(code.ok()?)?, rest))
        });
        match numbered {
            Some((character, rest)) => {
                whole.push(character);
                whole.push_str(rest);
            }
            None => whole.extend(["&#", part]),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(page: &str) -> Vec<String> {
        let page = without_strays(Bytes::copy_from_slice(page.as_bytes()));
        let text = String::from_utf8(page.to_vec()).unwrap();
        let ends = text
            .split("</Name>")
            .filter_map(|part| part.rsplit_once("<Name>"));
        ends.map(|(_, name)| name.to_owned()).collect()
    }

    /// A page in the form that Azure gives.
    fn azure(blobs: &[&str], prefixes: &[&str]) -> String {
        let blob = |name: &&str| {
            format!("<Blob><Name>{name}</Name><Properties><Etag>0x1</Etag></Properties></Blob>")
        };
        let prefix = |name: &&str| format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>");
        let blobs: String = blobs.iter().map(blob).collect();
        let prefixes: String = prefixes.iter().map(prefix).collect();
        format!(
            "<EnumerationResults><Blobs>{blobs}{prefixes}</Blobs><NextMarker/></EnumerationResults>"
        )
    }

    #[test]
    fn keys_that_have_an_empty_part_dots_or_control_characters_are_left_out() {
        let strays = [
            "t/m//a",
            "//",
            "t/./a",
            "t/..",
            "t&#47;&#x2F;a",
            "t/a&#10;b",
            "t/&#x7f;",
        ];
        let sound = [
            "t/m/a",
            "t/m/",
            "/",
            "/t",
            "t/..a",
            "t/a&amp;b",
            "t/&#252;",
            "t/&#;",
            "t/&#x",
        ];
        for (blobs, prefixes) in [(&strays[..], &sound[..]), (&sound, &strays)] {
            assert_eq!(names(&azure(blobs, prefixes)), sound);
        }
    }

    #[test]
    fn what_has_no_strays_is_as_it_was_sent() {
        for page in [
            &azure(&["t/a", "t/b"], &["t/c/"]),
            "",
            "<Blob><Name>//",
            "{}",
        ] {
            assert_eq!(
                without_strays(Bytes::copy_from_slice(page.as_bytes())),
                page
            );
        }
    }
}
