//! The tree without a kernel.
