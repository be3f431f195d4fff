//! A builder of Iceberg tables for tests: writes any table state, valid or broken, with code of its own.
//!
//! It shares nothing with `src/`, so that it cannot share its mistakes: metadata is JSON, Avro and vectors are encoded
//! here by hand, data files come from the `parquet` crate's writer.
//!
//! ```ignore
//! let mut t = TableBuilder::new(2, "1 id: long, 2 name: string");
//! let a = t.data(json!([[1, "a"], [2, "b"]]));
//! t.commit(Commit::of([a.clone()]));
//! let d = t.position_deletes(&[(&a.path, 0)]);
//! t.commit(Commit::of([d]));
//! t.save();
//! ```
//!
//! - [`schema`]: schemas in a short notation;
//! - [`rows`]: rows as JSON, into Arrow and out of it;
//! - [`avro`], [`manifests`]: entries, manifests and manifest lists, each field in the test's hands;
//! - [`deletes`]: vectors and Puffin files;
//! - [`raw`]: Parquet files that Arrow cannot write;
//! - [`table`]: the table itself, its commits and its metadata;
//! - [`open`]: the table as bergfs shows it.

// Each test binary uses a part of it.
#![allow(dead_code, unused_imports)]

pub mod avro;
pub mod deletes;
pub mod manifests;
pub mod open;
pub mod raw;
pub mod rows;
pub mod schema;
pub mod table;

pub use manifests::{Content, Entry, Manifest, Status, Style};
pub use table::{Commit, Data, TableBuilder};
