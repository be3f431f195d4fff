//! bergfs mounts Apache Iceberg tables as a read-only filesystem.
//!
//! ```text
//! catalog ──► iceberg ──► scan ──► rows ──► parquet ──► text ──► tree ──► fs (FUSE)
//!  where        what the     which      which     layouts and    names    kernel
//!  tables are   metadata     files and  rows of   their          to       adapter
//!               says         deletes    a file    segments       layouts
//!                as_parquet, storage and cache lie under all of them
//! ```
//!
//! A module imports only from its left, and from [`storage`], [`cache`], [`packed`] and [`as_parquet`].

// The documentation is for those who work on the code: private items are in it.
#![allow(rustdoc::private_intra_doc_links)]

pub mod as_parquet;
pub mod cache;
pub mod catalog;
pub mod cli;
pub mod counters;
pub mod fs;
pub mod iceberg;
pub mod packed;
pub mod parallel;
pub mod parquet;
pub mod rows;
pub mod scan;
pub mod storage;
pub mod text;
pub mod tree;
