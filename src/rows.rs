//! Which rows of one data file survive, and where each column of a view comes from in it.
//!
//! - [`projection`] resolves a view's schema against a file's, by field id: which leaf a column is read from, or which
//!   constant stands for it.
//! - [`position_deletes`] gives the positions that position delete files or a deletion vector remove from a file.
//! - [`equality_deletes`] gives the positions that equality deletes remove.
//!
//! All three answer about one data file at a time and take a [`ScanFile`](crate::scan::ScanFile), which names the
//! deletes that apply. What is shared between data files (a delete file that names many of them, a set of deleted keys)
//! is kept in the [`Cache`](crate::cache::Cache), so it is read once however many data files ask.

use crate::as_parquet::ConvertError;
use crate::storage::StorageError;

#[cfg(test)]
mod corpus_tests;
pub mod equality_deletes;
mod file_ids;
pub mod file_schema;
mod leaf_types;
mod parquet_reader;
pub mod position_deletes;
pub mod projection;
pub mod row_bits;
pub mod stored_values;
#[cfg(test)]
pub(crate) mod test_table;

/// Why the rows of a data file cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// The file is well formed, but needs something this version does not do.
    #[error("{path}: {feature} is not supported")]
    Unsupported {
        /// The data or delete file, as recorded.
        path: String,
        /// What is missing, as the subject of a sentence.
        feature: String,
    },
    /// The file is damaged, or does not fit the table.
    #[error("{path}: {reason}")]
    Corrupt {
        /// The data or delete file, as recorded.
        path: String,
        /// What was found, and what was expected.
        reason: String,
    },
    /// The file cannot be opened or read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// What was made of the file cannot be kept.
    #[error("{path}: its conversion to Parquet: {source}")]
    Spill {
        /// The data or delete file, as recorded.
        path: String,
        source: std::io::Error,
    },
}

impl From<ConvertError> for RowsError {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Unsupported { path, feature } => RowsError::Unsupported { path, feature },
            ConvertError::Corrupt { path, reason } => RowsError::Corrupt { path, reason },
            ConvertError::Write { path, source } => RowsError::Spill { path, source },
            ConvertError::Storage(error) => RowsError::Storage(error),
        }
    }
}

impl RowsError {
    /// Whether the reason is a feature that is not supported (`ENOTSUP`), rather than a fault (`EIO`).
    pub fn is_unsupported(&self) -> bool {
        matches!(self, RowsError::Unsupported { .. })
    }

    fn unsupported(path: &str, feature: impl Into<String>) -> RowsError {
        RowsError::Unsupported {
            path: path.to_owned(),
            feature: feature.into(),
        }
    }

    fn corrupt(path: &str, reason: impl Into<String>) -> RowsError {
        RowsError::Corrupt {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}
