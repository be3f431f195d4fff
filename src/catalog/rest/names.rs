//! The URLs of a catalog's resources, with the names of namespaces and tables in them.
//!
//! The levels of a namespace are one component of the path, each percent-encoded, joined by a separator that the catalog
//! names (the unit separator, `%1F`, where it names none). All but letters, digits and `-._~` is encoded, and a space as
//! `%20`: so `/`, `%` and `?` in names are safe. What no encoding can say is refused, never asked for by another name:
//! a component that is `.` or `..` (which every URL parser removes, encoded or not), and a level that holds the separator.

use std::fmt::Write;

use url::Url;

use crate::catalog::{CatalogError, TableIdent};

/// The unit separator, as a catalog would name it.
const DEFAULT_SEPARATOR: &str = "%1F";

/// Where a catalog's resources are.
#[derive(Debug)]
pub(super) struct Paths {
    catalog: String,
    /// Up to and with `/v1` and the catalog's prefix, without a slash at its end.
    root: String,
    /// As it stands between the levels in a path.
    encoded_separator: String,
    separator: String,
}

impl Paths {
    /// `prefix` and `separator` are the catalog's, as it wrote them: both are put into the path as they are.
    pub(super) fn new(
        catalog: &str,
        base: &Url,
        prefix: Option<&str>,
        separator: Option<&str>,
    ) -> Result<Self, CatalogError> {
        let mut root = endpoint(base, "v1");
        for part in prefix.unwrap_or_default().split('/') {
            if !part.is_empty() {
                root.push('/');
                root.push_str(part);
            }
        }
        let given = separator.filter(|text| !text.is_empty());
        let decoded = decode(given.unwrap_or(DEFAULT_SEPARATOR));
        let separator =
            decoded
                .filter(|text| !text.contains('/'))
                .ok_or_else(|| CatalogError::Answer {
                    catalog: catalog.to_owned(),
                    reason: "its namespace-separator is none".to_owned(),
                })?;
        Ok(Self {
            catalog: catalog.to_owned(),
            root,
            encoded_separator: encode(&separator),
            separator,
        })
    }

    pub(super) fn namespaces(&self) -> Result<Url, CatalogError> {
        self.url(&[])
    }

    pub(super) fn tables(&self, namespace: &[String]) -> Result<Url, CatalogError> {
        self.url(&[&self.namespace(namespace)?, "tables"])
    }

    pub(super) fn table(&self, ident: &TableIdent) -> Result<Url, CatalogError> {
        self.table_resource(ident, &[])
    }

    pub(super) fn credentials(&self, ident: &TableIdent) -> Result<Url, CatalogError> {
        self.table_resource(ident, &["credentials"])
    }

    pub(super) fn sign(&self, ident: &TableIdent) -> Result<Url, CatalogError> {
        self.table_resource(ident, &["sign"])
    }

    /// A namespace as the value of the query's `parent`, not yet encoded.
    pub(super) fn parent(&self, namespace: &[String]) -> Result<String, CatalogError> {
        self.check_levels(namespace)?;
        Ok(namespace.join(&self.separator))
    }

    fn table_resource(&self, ident: &TableIdent, below: &[&str]) -> Result<Url, CatalogError> {
        let namespace = self.namespace(&ident.namespace)?;
        let name = encode(&ident.name);
        self.check_component(&name)?;
        let mut components = vec![namespace.as_str(), "tables", &name];
        components.extend(below);
        self.url(&components)
    }

    fn namespace(&self, namespace: &[String]) -> Result<String, CatalogError> {
        self.check_levels(namespace)?;
        let levels: Vec<String> = namespace.iter().map(|level| encode(level)).collect();
        let joined = levels.join(&self.encoded_separator);
        self.check_component(&joined)?;
        Ok(joined)
    }

    fn check_levels(&self, namespace: &[String]) -> Result<(), CatalogError> {
        match namespace
            .iter()
            .find(|level| level.contains(self.separator.as_str()))
        {
            None => Ok(()),
            Some(level) => Err(self.unspeakable(&format!(
                "the namespace {level:?}, whose name holds the catalog's namespace separator"
            ))),
        }
    }

    fn check_component(&self, encoded: &str) -> Result<(), CatalogError> {
        match encoded {
            "" | "." | ".." => Err(self.unspeakable(&format!("the name {encoded:?}"))),
            _ => Ok(()),
        }
    }

    fn unspeakable(&self, what: &str) -> CatalogError {
        CatalogError::Unsupported {
            catalog: self.catalog.clone(),
            feature: what.to_owned(),
        }
    }

    fn url(&self, components: &[&str]) -> Result<Url, CatalogError> {
        let mut text = format!("{}/namespaces", self.root);
        for component in components {
            text.push('/');
            text.push_str(component);
        }
        Url::parse(&text).map_err(|error| CatalogError::Answer {
            catalog: self.catalog.clone(),
            reason: format!("its prefix makes no URL: {error}"),
        })
    }
}

/// A path below a base URL, which may end in a slash or not.
pub(super) fn endpoint(base: &Url, path: &str) -> String {
    format!(
        "{}/{}",
        base.as_str().trim_end_matches('/'),
        path.trim_start_matches('/')
    )
}

/// A URL with a query, of names and values that are encoded here.
pub(super) fn with_query(mut url: Url, query: &[(&str, &str)]) -> Url {
    if !query.is_empty() {
        let pairs: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        url.set_query(Some(&pairs.join("&")));
    }
    url
}

/// Percent-encodes all but RFC 3986's unreserved characters.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Undoes percent-encoding. `None`: broken, or no text.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn paths(base: &str, prefix: Option<&str>, separator: Option<&str>) -> Paths {
        Paths::new("c", &Url::parse(base).unwrap(), prefix, separator).unwrap()
    }

    fn ident(namespace: &[&str], name: &str) -> TableIdent {
        TableIdent {
            namespace: namespace.iter().map(|level| (*level).to_owned()).collect(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn levels_are_joined_by_the_unit_separator_unless_the_catalog_names_another() {
        let table = ident(&["accounting", "tax"], "paid");
        let of = |separator| {
            paths("http://h:1/base/", None, separator)
                .table(&table)
                .unwrap()
                .to_string()
        };
        let default = "http://h:1/base/v1/namespaces/accounting%1Ftax/tables/paid";
        assert_eq!(of(None), default);
        assert_eq!(of(Some("")), default);
        assert_eq!(
            of(Some("%2E")),
            "http://h:1/base/v1/namespaces/accounting.tax/tables/paid"
        );
        assert_eq!(
            of(Some("::")),
            "http://h:1/base/v1/namespaces/accounting%3A%3Atax/tables/paid"
        );
        let dotted = paths("http://h", None, Some("."));
        assert_eq!(dotted.parent(&table.namespace).unwrap(), "accounting.tax");
    }

    #[test]
    fn a_prefix_stands_in_the_path_as_the_catalog_wrote_it() {
        let of = |prefix| {
            let paths = paths("https://h/iceberg", Some(prefix), None);
            paths.namespaces().unwrap().to_string()
        };
        assert_eq!(of("ws"), "https://h/iceberg/v1/ws/namespaces");
        assert_eq!(of("/ws/"), "https://h/iceberg/v1/ws/namespaces");
        assert_eq!(
            of("catalogs/1:s3/b"),
            "https://h/iceberg/v1/catalogs/1:s3/b/namespaces"
        );
        assert_eq!(
            of("arn%3Aaws%3As3tables"),
            "https://h/iceberg/v1/arn%3Aaws%3As3tables/namespaces"
        );
    }

    #[test]
    fn names_are_encoded_whatever_they_hold() {
        let url = paths("http://h", None, None)
            .credentials(&ident(&["a b", "ü+"], "x/../y?z#%"))
            .unwrap();
        assert_eq!(
            url.as_str(),
            "http://h/v1/namespaces/a%20b%1F%C3%BC%2B/tables/x%2F..%2Fy%3Fz%23%25/credentials"
        );
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused_and_not_asked_otherwise() {
        let default = paths("http://h", None, None);
        for name in [".", "..", ""] {
            assert!(default.table(&ident(&["n"], name)).is_err(), "{name}");
            assert!(default.tables(&[name.to_owned()]).is_err(), "{name}");
        }
        assert!(default.table(&ident(&["a\u{1f}b"], "t")).is_err());
        let dotted = paths("http://h", None, Some("."));
        assert!(dotted.table(&ident(&["a.b"], "t")).is_err());
        assert!(dotted.parent(&["a.b".to_owned()]).is_err());
        assert!(dotted.table(&ident(&["a"], "t.u")).is_ok());
    }

    #[test]
    fn a_separator_that_is_none_is_refused() {
        let base = Url::parse("http://h").unwrap();
        for separator in ["%", "%zz", "/", "%2F"] {
            assert!(Paths::new("c", &base, None, Some(separator)).is_err());
        }
    }
}
