//! Typed access to parsed JSON, with errors that name the key.
//!
//! A key whose value is `null` counts as absent, as the spec's optional fields ask.

use serde_json::Value as Json;

use super::error::FormatError;

/// A JSON object that is read by key; keys nobody asks for are ignored.
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(&'a serde_json::Map<String, Json>);

impl<'a> Object<'a> {
    pub(super) fn of(json: &'a Json) -> Result<Self, FormatError> {
        json.as_object()
            .map(Self)
            .ok_or_else(|| mismatch("", "an object", json))
    }

    /// The value of `key`, unless it is absent or null.
    pub(super) fn get(self, key: &str) -> Option<&'a Json> {
        self.0.get(key).filter(|v| !v.is_null())
    }

    pub(super) fn entries(self) -> impl Iterator<Item = (&'a String, &'a Json)> {
        self.0.iter()
    }

    pub(super) fn i64(self, key: &str) -> Result<Option<i64>, FormatError> {
        self.get(key)
            .map(|v| {
                v.as_i64()
                    .ok_or_else(|| mismatch(key, "a 64-bit integer", v))
            })
            .transpose()
    }

    pub(super) fn i32(self, key: &str) -> Result<Option<i32>, FormatError> {
        self.get(key)
            .map(|v| as_i32(v).map_err(|e| e.within(key)))
            .transpose()
    }

    pub(super) fn bool(self, key: &str) -> Result<Option<bool>, FormatError> {
        self.get(key)
            .map(|v| v.as_bool().ok_or_else(|| mismatch(key, "true or false", v)))
            .transpose()
    }

    pub(super) fn str(self, key: &str) -> Result<Option<&'a str>, FormatError> {
        self.get(key)
            .map(|v| v.as_str().ok_or_else(|| mismatch(key, "a string", v)))
            .transpose()
    }

    pub(super) fn array(self, key: &str) -> Result<Option<&'a [Json]>, FormatError> {
        self.get(key)
            .map(|v| {
                v.as_array()
                    .map(Vec::as_slice)
                    .ok_or_else(|| mismatch(key, "an array", v))
            })
            .transpose()
    }

    pub(super) fn object(self, key: &str) -> Result<Option<Object<'a>>, FormatError> {
        self.get(key)
            .map(|v| Object::of(v).map_err(|e| e.within(key)))
            .transpose()
    }

    /// The elements of the array at `key`, each read by `read`; an absent array has none.
    pub(super) fn each<T>(
        self,
        key: &str,
        mut read: impl FnMut(&'a Json) -> Result<T, FormatError>,
    ) -> Result<Vec<T>, FormatError> {
        let elements = self.array(key)?.unwrap_or_default();
        elements
            .iter()
            .enumerate()
            .map(|(i, v)| read(v).map_err(|e| e.within(format!("{key}[{i}]"))))
            .collect()
    }
}

/// What an optional key holds, or an error that the key is missing.
pub(super) fn required<T>(key: &str, value: Option<T>) -> Result<T, FormatError> {
    value.ok_or_else(|| FormatError::invalid(key, "is required but missing"))
}

pub(super) fn as_i32(json: &Json) -> Result<i32, FormatError> {
    json.as_i64()
        .and_then(|v| i32::try_from(v).ok())
        .ok_or_else(|| mismatch("", "a 32-bit integer", json))
}

/// The error that `json`, found at `what`, is not `expected`.
pub(super) fn mismatch(what: &str, expected: &str, json: &Json) -> FormatError {
    let found = match json {
        Json::Null => "null".to_owned(),
        Json::Bool(b) => b.to_string(),
        Json::Number(n) => n.to_string(),
        Json::String(s) => format!("the string {:?}", s.chars().take(80).collect::<String>()),
        Json::Array(_) => "an array".to_owned(),
        Json::Object(_) => "an object".to_owned(),
    };
    FormatError::invalid(what, format!("expected {expected}, found {found}"))
}
