//! What an entry was made of, so that it can go when that goes.

use super::identity::Identity;

/// Of which data file of which table an entry was made, in short, so that it can go with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag(pub(super) u64);

impl Tag {
    /// Of an entry that belongs to no file.
    pub const NONE: Tag = Tag(0);

    /// Of a data file (its canonical path) of a table (its UUID or location).
    ///
    /// 32 bits tell each: tables and files that share them only keep each other's entries from going early.
    pub fn new(table: &str, file: &str) -> Tag {
        let half = |text: &str| {
            let mut identity = Identity::default();
            identity.push(text.as_bytes());
            identity.short() & 0xffff_ffff
        };
        Tag((half(table) << 32 | half(file)).max(1))
    }

    /// Whether both are of one table.
    pub fn same_table(self, other: Tag) -> bool {
        self != Tag::NONE && other != Tag::NONE && self.0 >> 32 == other.0 >> 32
    }
}
