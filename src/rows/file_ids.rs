//! The field id of each node of a data file: the file's own, or a name mapping's, or given by position (spec, "Column
//! Projection" and "Name Mapping Serialization"; rule 41).

use std::collections::HashSet;

use crate::iceberg::name_mapping::NameMapping;
use crate::iceberg::types::FieldId;

use super::RowsError;
use super::file_schema::{FileSchema, NodeId};

/// Where a file's ids come from. A file that holds even one id is read by its own ids alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdSource {
    File,
    NameMapping,
    /// Ids are given to the top-level columns alone, 1 to the first; below them, structure and names must agree.
    Position,
}

/// The ids of a file's nodes.
#[derive(Debug)]
pub struct FileIds {
    pub source: IdSource,
    /// By node.
    ids: Vec<Option<FieldId>>,
    present: HashSet<FieldId>,
}

impl FileIds {
    /// Finds the ids of `file`. `path` is for messages.
    ///
    /// # Errors
    /// Where two fields of one struct have the same id.
    pub fn resolve(
        file: &FileSchema,
        mapping: Option<&NameMapping>,
        path: &str,
    ) -> Result<FileIds, RowsError> {
        // Writers that know no ids are seen to write -1.
        let own = |id: Option<i32>| id.filter(|id| *id >= 0).map(FieldId);
        let mut ids: Vec<Option<FieldId>> =
            file.nodes.iter().map(|node| own(node.field_id)).collect();
        let source = if ids.iter().any(Option::is_some) {
            IdSource::File
        } else if let Some(mapping) = mapping {
            map_names(file, &file.roots, mapping, &mut ids);
            IdSource::NameMapping
        } else {
            for (id, root) in (1..).zip(&file.roots) {
                set(&mut ids, *root, Some(FieldId(id)));
            }
            IdSource::Position
        };
        let resolved = FileIds {
            source,
            present: ids.iter().flatten().copied().collect(),
            ids,
        };
        resolved.check_siblings(file, &file.roots, path)?;
        for node in &file.nodes {
            resolved.check_siblings(file, &node.children, path)?;
        }
        Ok(resolved)
    }

    /// The id of a node.
    pub fn of(&self, node: NodeId) -> Option<FieldId> {
        self.ids.get(node).copied().flatten()
    }

    /// The node with this id among `siblings`.
    pub fn find(&self, siblings: &[NodeId], id: FieldId) -> Option<NodeId> {
        siblings
            .iter()
            .copied()
            .find(|node| self.of(*node) == Some(id))
    }

    /// Whether any node of the file, at any depth, has this id.
    pub fn contains(&self, id: FieldId) -> bool {
        self.present.contains(&id)
    }

    fn check_siblings(
        &self,
        file: &FileSchema,
        siblings: &[NodeId],
        path: &str,
    ) -> Result<(), RowsError> {
        let mut seen = HashSet::new();
        for node in siblings {
            if let Some(id) = self.of(*node)
                && !seen.insert(id)
            {
                let name = file.get(*node).map_or("", |node| node.name.as_str());
                return Err(RowsError::corrupt(
                    path,
                    format!("two columns have field id {id}, the second of them {name:?}"),
                ));
            }
        }
        Ok(())
    }
}

/// Gives the ids of `mapped` to the nodes among `siblings` that bear one of their names, and so on downwards. The
/// depth is bounded by the mapping's.
fn map_names(
    file: &FileSchema,
    siblings: &[NodeId],
    mapped: &NameMapping,
    ids: &mut [Option<FieldId>],
) {
    for node_id in siblings {
        let Some(node) = file.get(*node_id) else {
            continue;
        };
        if let Some(field) = mapped.find(&node.name) {
            set(ids, *node_id, field.field_id);
            map_children(file, *node_id, &field.fields, ids);
        }
    }
}

fn map_children(
    file: &FileSchema,
    node: NodeId,
    mapped: &NameMapping,
    ids: &mut [Option<FieldId>],
) {
    if mapped.fields.is_empty() {
        return;
    }
    let mut child = |node, name| {
        if let Some(field) = mapped.find(name) {
            set(ids, node, field.field_id);
            map_children(file, node, &field.fields, ids);
        }
    };
    if let Some(map) = file.map_shape(node) {
        child(map.key, "key");
        child(map.value, "value");
    } else if let Some(list) = file.list_shape(node) {
        if list.element != list.repeated {
            child(list.element, "element");
        } else if let (Some(element), Some(node)) = (mapped.find("element"), file.get(list.element))
        {
            // A repeated field with no group around it is the list and its element at once: the id is the list's.
            if list.element != list.outer {
                set(ids, list.element, element.field_id);
            }
            map_names(file, &node.children, &element.fields, ids);
        }
    } else if let Some(node) = file.get(node) {
        map_names(file, &node.children, mapped, ids);
    }
}

fn set(ids: &mut [Option<FieldId>], node: NodeId, id: Option<FieldId>) {
    if let Some(slot) = ids.get_mut(node) {
        *slot = id;
    }
}
