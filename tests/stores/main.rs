//! Tables in a store: what reading them costs, in exact counts of requests and bytes, and that faults of the store make
//! errors or pauses and never wrong bytes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../builder/mod.rs"]
mod builder;

mod access;
mod cost;
mod faults;
mod keys;
mod server;
mod shelf;
mod variants;
