//! Footers and page headers from their bytes.
//!
//! Fields and logical types this reader does not know are passed over, as the format asks. A field that must be there
//! and is not, or a number that cannot be right (a negative size, an unknown physical type), is an error.

use super::{FileMetaData, SchemaElement};
use crate::parquet::DecodeError;
use crate::parquet::thrift::{Field, Reader};
use crate::rows::file_schema::Physical;

mod page;
mod row_group;
mod schema;

pub(super) use row_group::statistics;

/// The most nodes a schema may have. Wide tables have some tens of thousands.
pub const MAX_SCHEMA_NODES: usize = 100_000;

/// The most levels a schema may have.
pub const MAX_SCHEMA_DEPTH: usize = 100;

const FOOTER: &str = "Parquet footer";

fn missing(what: &'static str, field: &str) -> DecodeError {
    DecodeError::corrupt(what, format!("has no `{field}`"))
}

impl FileMetaData {
    /// Reads the Thrift struct at the front of `bytes` (a footer without its length and magic).
    ///
    /// # Errors
    /// Bytes that break the format; [`DecodeError::Unsupported`] where column metadata is encrypted.
    pub fn parse(bytes: &[u8]) -> Result<FileMetaData, DecodeError> {
        let mut version = None;
        let mut schema: Option<Vec<SchemaElement>> = None;
        let mut num_rows = None;
        let mut row_groups = None;
        let mut key_value_metadata = Vec::new();
        let mut created_by = None;
        let mut column_orders = false;
        let mut encrypted = false;
        Reader::new(bytes).fields(|reader, field| {
            match field.id {
                1 => version = Some(reader.i32(field)?),
                2 => {
                    let mut nodes = 0;
                    schema = Some(reader.list(field, |reader, element| {
                        nodes += 1;
                        if nodes > MAX_SCHEMA_NODES {
                            let reason =
                                format!("the schema has more than {MAX_SCHEMA_NODES} nodes");
                            return Err(DecodeError::corrupt(FOOTER, reason));
                        }
                        schema::schema_element(reader, element)
                    })?);
                }
                3 => num_rows = Some(reader.i64(field)?),
                4 => {
                    let schema = schema.as_deref().ok_or_else(|| missing(FOOTER, "schema"))?;
                    let leaves = LeafColumns::of(schema);
                    row_groups = Some(reader.list(field, |reader, element| {
                        row_group::row_group(reader, element, &leaves)
                    })?);
                }
                5 => key_value_metadata = reader.list(field, key_value)?,
                6 => created_by = Some(reader.string(field)?.to_owned()),
                7 => {
                    column_orders = true;
                    reader.skip(field)?;
                }
                8 => {
                    encrypted = true;
                    reader.skip(field)?;
                }
                _ => reader.skip(field)?,
            }
            Ok(())
        })?;
        Ok(FileMetaData {
            version: version.ok_or_else(|| missing(FOOTER, "version"))?,
            schema: schema.ok_or_else(|| missing(FOOTER, "schema"))?,
            num_rows: num_rows.ok_or_else(|| missing(FOOTER, "num_rows"))?,
            row_groups: row_groups.ok_or_else(|| missing(FOOTER, "row_groups"))?,
            key_value_metadata,
            created_by,
            column_orders,
            encrypted,
        })
    }
}

/// What a schema says of one leaf column.
pub(super) struct LeafColumn<'a> {
    /// The names on the way to it, from below the root; at most [`MAX_SCHEMA_DEPTH`] of them.
    pub path: Vec<&'a str>,
    physical: Physical,
}

/// The leaf columns of a schema, in order.
pub(super) struct LeafColumns<'a> {
    schema: &'a [SchemaElement],
    /// The group around each node; the root and its children have none.
    parents: Vec<Option<usize>>,
    /// The nodes that are leaves.
    leaves: Vec<usize>,
}

impl<'a> LeafColumns<'a> {
    /// Where the child counts do not add up, paths may be wrong: whoever builds a tree from the schema refuses it.
    pub fn of(schema: &'a [SchemaElement]) -> LeafColumns<'a> {
        let mut columns = LeafColumns {
            schema,
            parents: Vec::new(),
            leaves: Vec::new(),
        };
        // The groups we are in, each with how many of its children are still to come.
        let mut open: Vec<(usize, i32)> = Vec::new();
        for (at, element) in schema.iter().enumerate() {
            while open.last().is_some_and(|(_, left)| *left <= 0) {
                open.pop();
            }
            columns.parents.push(open.last().map(|(group, _)| *group));
            if let Some((_, left)) = open.last_mut() {
                *left -= 1;
            }
            if at == 0 {
                continue;
            }
            if element.physical.is_some() {
                columns.leaves.push(at);
            } else {
                open.push((at, element.num_children.unwrap_or(0)));
            }
        }
        columns
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// A leaf by its index.
    pub fn get(&self, leaf: usize) -> Option<LeafColumn<'a>> {
        let physical = self.schema.get(*self.leaves.get(leaf)?)?.physical?;
        Some(LeafColumn {
            path: self.path(leaf),
            physical,
        })
    }

    fn path(&self, leaf: usize) -> Vec<&'a str> {
        let mut path = Vec::new();
        let mut next = self.leaves.get(leaf).copied();
        while let Some(at) = next.filter(|_| path.len() < MAX_SCHEMA_DEPTH) {
            path.extend(self.schema.get(at).map(|element| element.name.as_str()));
            next = self.parents.get(at).copied().flatten();
        }
        path.reverse();
        path
    }
}

fn key_value(
    reader: &mut Reader<'_>,
    element: Field,
) -> Result<(String, Option<String>), DecodeError> {
    let mut key = String::new();
    let mut value = None;
    reader.structure(element, |reader, field| {
        match field.id {
            1 => key = String::from_utf8_lossy(reader.binary(field)?).into_owned(),
            // Some writers put bytes here. No value decides how the data is read.
            2 => value = Some(String::from_utf8_lossy(reader.binary(field)?).into_owned()),
            _ => reader.skip(field)?,
        }
        Ok(())
    })?;
    Ok((key, value))
}
