//! A catalog that is away.
