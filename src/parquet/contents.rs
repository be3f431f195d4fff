//! What the rows of a virtual file follow from, row group by row group, for those who keep what they made of them.

use super::ParquetError;
use super::chunk::GroupRows;
use super::file::ParquetFile;
use crate::cache::Tag;
use crate::cache::identity::Identity;

/// A row group of a virtual file that has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupContent {
    /// The same for the same rows of the same columns, in whichever file, snapshot or process.
    pub identity: String,
    /// Of its data file.
    pub tag: Tag,
    /// Whether the identity may be kept beyond this process.
    pub lasting: bool,
}

impl ParquetFile {
    /// The row groups that the footer lists, in its order.
    ///
    /// An identity holds the state of the data file, the row group, the rows that are deleted from it, how each leaf is
    /// got (which column, with which conversion and constants), and the file's whole schema.
    ///
    /// # Errors
    /// A delete file cannot be read.
    pub fn group_contents(&self) -> Result<Vec<GroupContent>, ParquetError> {
        let schema = format!("{:?}", self.target());
        let mut plans: Option<(usize, String)> = None;
        let mut contents = Vec::new();
        for (place, known) in self.groups() {
            let part = self.part(place.part)?;
            let deleted = self.deleted(part)?;
            let rows = GroupRows::new(part, place, &deleted).noting(known);
            if rows.rows() == 0 {
                continue;
            }
            if plans.as_ref().is_none_or(|(of, _)| *of != place.part) {
                let mut identity = Identity::default();
                identity.push(schema.as_bytes());
                for (leaf, target) in part.leaves.iter().zip(&self.target().leaves) {
                    identity.push(leaf.identity(target).as_bytes());
                }
                plans = Some((place.part, identity.finish()));
            }
            let mut identity = Identity::default();
            identity.push(rows.identity()?.as_bytes());
            identity.push(plans.as_ref().map_or("", |(_, plans)| plans).as_bytes());
            contents.push(GroupContent {
                identity: identity.finish(),
                tag: part.tag,
                lasting: part.is_lasting(),
            });
        }
        Ok(contents)
    }
}
