//! What can be wrong with the bytes of a table.

/// Why bytes could not be read as what they should be.
///
/// File names are not here: this module never sees them. Callers add them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The bytes ask for something that this reader does not do.
    #[error("{feature} is not supported")]
    Unsupported {
        /// The feature, as the spec names it.
        feature: String,
    },
    /// The bytes break the format.
    #[error("{what}: {reason}")]
    Invalid {
        /// Where: a path into the JSON, or the field of the record.
        what: String,
        /// What was expected there, and what was found.
        reason: String,
    },
}

impl FormatError {
    pub(super) fn invalid(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            reason: reason.into(),
        }
    }

    pub(super) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported {
            feature: feature.into(),
        }
    }

    /// The same error, told from one level further out: `within("schemas[2]")` of an error in `fields[0]` is an error
    /// in `schemas[2].fields[0]`.
    pub(super) fn within(self, outer: impl AsRef<str>) -> Self {
        match self {
            Self::Unsupported { .. } => self,
            Self::Invalid { what, reason } => {
                let outer = outer.as_ref();
                let what = match what.as_str() {
                    "" => outer.to_owned(),
                    inner if inner.starts_with('[') => format!("{outer}{inner}"),
                    inner => format!("{outer}.{inner}"),
                };
                Self::Invalid { what, reason }
            }
        }
    }

    /// Whether the feature is not supported (`ENOTSUP`), rather than the bytes being broken (`EIO`).
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported { .. })
    }
}
