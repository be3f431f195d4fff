//! One test per rule of what the Iceberg spec asks of a reader, through the crate's tree and through a real mount.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../builder/mod.rs"]
mod builder;

mod builder_itself;
