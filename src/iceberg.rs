//! The table format: table metadata, schemas, types and values, partition specs, manifest lists, manifests, deletion
//! vectors, name mappings.
//!
//! Bytes in, structs out. Nothing here opens a file, and nothing here panics on any input: every malformed byte is a
//! [`FormatError`] that says what was expected.

pub(crate) mod avro;
pub mod deletion_vector;
mod error;
mod json;
pub mod manifest;
pub mod metadata;
mod murmur3;
pub mod name_mapping;
pub mod partition;
pub mod schema;
pub mod types;
pub mod value;
pub mod variant;

pub use error::FormatError;

#[cfg(test)]
mod tests;
