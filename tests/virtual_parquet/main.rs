//! Properties of virtual Parquet files, over types, encodings, codecs, page versions, shapes and delete patterns.
//!
//! [`case`] is one table and everything that has to hold of it; [`matrix`] walks through the combinations in order,
//! [`random`] draws them; [`laziness`] counts what reading costs, [`ahead`] what is made before
//! anybody reads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../builder/mod.rs"]
mod builder;

mod ahead;
mod case;
mod columns;
mod laziness;
mod matrix;
mod random;
mod statistics;
