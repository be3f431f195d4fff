//! Which rows of one data file survive, and where each column of a view comes from in it.

pub mod file_schema;
pub mod projection;
