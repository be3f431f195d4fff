//! What can be wrong with the bytes of a Parquet file, without the file's name: callers add it.

use super::ParquetError;
use crate::packed::PackedError;

/// Why some bytes of a Parquet file could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes break the format.
    #[error("{what}: {reason}")]
    Corrupt {
        /// The structure that was being read.
        what: &'static str,
        /// What was expected, and what was there.
        reason: String,
    },
    /// The bytes may be right, but use something this reader does not have.
    #[error("{feature} is not supported")]
    Unsupported {
        /// A name a user can search for (`compression codec LZO`).
        feature: String,
    },
}

impl From<PackedError> for DecodeError {
    fn from(error: PackedError) -> Self {
        match error {
            PackedError::Truncated(what) => DecodeError::truncated(what),
            PackedError::Corrupt(what, reason) => DecodeError::corrupt(what, reason),
        }
    }
}

impl DecodeError {
    /// Bytes that break the format.
    pub fn corrupt(what: &'static str, reason: impl Into<String>) -> DecodeError {
        DecodeError::Corrupt {
            what,
            reason: reason.into(),
        }
    }

    /// A feature this reader lacks.
    pub fn unsupported(feature: impl Into<String>) -> DecodeError {
        DecodeError::Unsupported {
            feature: feature.into(),
        }
    }

    /// Bytes that end before the structure does.
    pub fn truncated(what: &'static str) -> DecodeError {
        DecodeError::corrupt(what, "ends too early")
    }

    /// The error, said of a column.
    pub fn in_column(self, column: &str) -> DecodeError {
        match self {
            DecodeError::Unsupported { feature } => DecodeError::Unsupported {
                feature: format!("column {column}: {feature}"),
            },
            DecodeError::Corrupt { what, reason } => DecodeError::Corrupt {
                what,
                reason: format!("{reason} (column {column})"),
            },
        }
    }

    /// The error of the file at `path`.
    pub fn in_file(self, path: &str) -> ParquetError {
        let path = path.to_owned();
        match self {
            DecodeError::Unsupported { feature } => ParquetError::Unsupported { path, feature },
            corrupt @ DecodeError::Corrupt { .. } => ParquetError::Corrupt {
                path,
                reason: corrupt.to_string(),
            },
        }
    }

    /// Whether the file needs a feature this reader lacks (`ENOTSUP`), rather than being broken (`EIO`).
    pub fn is_unsupported(&self) -> bool {
        matches!(self, DecodeError::Unsupported { .. })
    }
}
