//! The nodes of a variant column (parquet-format, `VariantShredding.md`; SPEC.md rule 48).
//!
//! A variant is a group of `metadata` and `value`. A writer may shred it: then `typed_value` holds the values that are
//! of a type it has chosen, and `value` the others. An object is shredded into a group for each of its fields, a list
//! into its elements, each with a `value` and a `typed_value` of its own:
//!
//! ```text
//! variant = metadata, wrapper              typed = a leaf
//! wrapper = [value], [typed_value: typed]        | group { <field>: wrapper … }
//!                                                | group (LIST) { repeated group list { element: wrapper } }
//! ```
//!
//! A virtual file keeps a variant as its data files have it. Where they differ, a leaf that one of them lacks in a
//! wrapper is null for its rows, which is what a value that was not shredded says of itself. Objects and lists are
//! another matter: readers may take a value without `typed_value` for neither, so all files must have it. What is typed
//! must be of one type in all files that have it, down to the fields of an object: a field that is not shredded stands
//! in the object's `value`, and nobody may look there for a field that is. Variants of which that is not true are named,
//! and unshredded first (see `unshred`).

use std::collections::BTreeSet;

use super::{Builder, TargetKind, TargetLeaf, TargetNode, Unmergeable};
use crate::iceberg::types::{FieldId, PrimitiveType};
use crate::rows::file_schema::{Annotation, FileNode, FileSchema, NodeId, Physical, Repetition};

/// A node in each of the data files that have it.
type Nodes<'a> = [(&'a FileSchema, NodeId)];

/// A node's maximum levels.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    pub(super) def: u16,
    pub(super) rep: u16,
}

impl Levels {
    fn below(self, optional: bool) -> Levels {
        Levels {
            def: self.def + u16::from(optional),
            ..self
        }
    }
}

/// Recursion goes down the files' schemas, whose depth parsing has bounded.
impl Builder {
    /// The children of a variant whose group has these levels, and these nodes in the files. Where the files differ, that
    /// is noted, and no children are right.
    pub(super) fn variant(
        &mut self,
        field: FieldId,
        nodes: &Nodes<'_>,
        levels: Levels,
    ) -> Vec<TargetNode> {
        let depth = self.path.len();
        let mut children = vec![self.binary("metadata", nodes, levels)];
        match self.wrapper(nodes, levels) {
            Ok(wrapper) => children.extend(wrapper),
            Err(feature) => {
                self.path.truncate(depth);
                let differing = self.differing.get_or_insert_with(|| Unmergeable {
                    feature,
                    variants: BTreeSet::new(),
                });
                differing.variants.insert(field);
            }
        }
        children
    }

    /// `value` and `typed_value`, as far as there are any; always one of them. `Err` says what cannot be merged.
    fn wrapper(&mut self, nodes: &Nodes<'_>, levels: Levels) -> Result<Vec<TargetNode>, String> {
        let mut children = Vec::new();
        let typed = below(nodes, "typed_value");
        let is_group = |node| get(node).is_some_and(|node| node.leaf.is_none());
        if typed.len() < nodes.len() && typed.iter().any(is_group) {
            let path = self.path.join(".");
            return Err(format!(
                "merging variants that are shredded and others ({path})"
            ));
        }
        if typed.is_empty() || !below(nodes, "value").is_empty() {
            children.push(self.binary("value", nodes, levels));
        }
        if !typed.is_empty() {
            let optional = typed.len() < nodes.len() || any_optional(&typed);
            children.push(self.typed(&typed, optional, levels.below(optional))?);
        }
        Ok(children)
    }

    /// A binary child, which is optional where it is so, or lacking, in any file.
    fn binary(&mut self, name: &str, nodes: &Nodes<'_>, levels: Levels) -> TargetNode {
        let stored = below(nodes, name);
        let optional = stored.len() < nodes.len() || any_optional(&stored);
        self.path.push(name.to_owned());
        let kind = self.stored_leaf(Physical::ByteArray, levels.below(optional));
        self.path.pop();
        node(name, optional, Annotation::None, kind)
    }

    fn stored_leaf(&mut self, physical: Physical, levels: Levels) -> TargetKind {
        self.leaves.push(TargetLeaf {
            path: self.path.clone(),
            ty: PrimitiveType::Variant,
            physical,
            max_def: levels.def,
            max_rep: levels.rep,
        });
        TargetKind::Leaf(self.leaves.len() - 1)
    }

    /// A `typed_value` with these levels, of the same type in all of `nodes`, of which there is at least one.
    fn typed(
        &mut self,
        nodes: &Nodes<'_>,
        optional: bool,
        levels: Levels,
    ) -> Result<TargetNode, String> {
        let differ = || {
            let path = self.path.join(".");
            format!("merging variants of different types ({path})")
        };
        let first = nodes.first().and_then(get).ok_or_else(differ)?;
        let alike = |other: &FileNode| {
            first.leaf.map(|l| l.physical) == other.leaf.map(|l| l.physical)
                && first.annotation == other.annotation
                && first.children.len() == other.children.len()
                && other.repetition != Repetition::Repeated
        };
        if !nodes.iter().all(|node| get(node).is_some_and(alike)) {
            return Err(differ());
        }
        let annotation = first.annotation;
        if let Annotation::Other(number) = annotation {
            return Err(format!("a variant shredded as the logical type {number}"));
        }
        self.path.push("typed_value".to_owned());
        let kind = match first.leaf {
            Some(leaf) => self.stored_leaf(leaf.physical, levels),
            None if annotation == Annotation::List => {
                TargetKind::Struct(vec![self.list(nodes, levels)?])
            }
            None => {
                let mut fields = Vec::new();
                for name in names(nodes) {
                    let stored = below(nodes, name);
                    if stored.len() < nodes.len() {
                        let path = self.path.join(".");
                        return Err(format!("merging variants with different fields ({path})"));
                    }
                    fields.push(self.group(name, &stored, levels)?);
                }
                TargetKind::Struct(fields)
            }
        };
        self.path.pop();
        Ok(node("typed_value", optional, annotation, kind))
    }

    /// The repeated group of a list, and the element in it.
    fn list(&mut self, nodes: &Nodes<'_>, levels: Levels) -> Result<TargetNode, String> {
        let path = self.path.join(".");
        let odd = || format!("a list of this shape in a variant ({path})");
        let [name] = names(nodes)[..] else {
            return Err(odd());
        };
        let repeated = below(nodes, name);
        let repeats = |node| get(node).is_some_and(|n| n.repetition == Repetition::Repeated);
        let [element] = names(&repeated)[..] else {
            return Err(odd());
        };
        let elements = below(&repeated, element);
        if elements.len() < nodes.len() || !repeated.iter().all(repeats) {
            return Err(odd());
        }
        let inside = Levels {
            def: levels.def + 1,
            rep: levels.rep + 1,
        };
        self.path.push(name.to_owned());
        let element = self.group(element, &elements, inside)?;
        self.path.pop();
        Ok(TargetNode {
            repetition: Repetition::Repeated,
            ..node(
                name,
                false,
                Annotation::None,
                TargetKind::Struct(vec![element]),
            )
        })
    }

    /// A field of an object or an element of a list: a group that is a wrapper.
    fn group(
        &mut self,
        name: &str,
        nodes: &Nodes<'_>,
        levels: Levels,
    ) -> Result<TargetNode, String> {
        let optional = any_optional(nodes);
        self.path.push(name.to_owned());
        let children = self.wrapper(nodes, levels.below(optional))?;
        self.path.pop();
        let kind = TargetKind::Struct(children);
        Ok(node(name, optional, Annotation::None, kind))
    }
}

fn node(name: &str, optional: bool, annotation: Annotation, kind: TargetKind) -> TargetNode {
    TargetNode {
        name: name.to_owned(),
        field_id: None,
        repetition: if optional {
            Repetition::Optional
        } else {
            Repetition::Required
        },
        annotation,
        kind,
    }
}

fn get<'a>((schema, node): &(&'a FileSchema, NodeId)) -> Option<&'a FileNode> {
    schema.get(*node)
}

fn below<'a>(nodes: &Nodes<'a>, name: &str) -> Vec<(&'a FileSchema, NodeId)> {
    nodes
        .iter()
        .filter_map(|(schema, node)| Some((*schema, schema.child(*node, name)?)))
        .collect()
}

/// The names of the children of the first of `nodes`.
fn names<'a>(nodes: &Nodes<'a>) -> Vec<&'a str> {
    let Some((schema, node)) = nodes.first().and_then(|n| Some((n.0, get(n)?))) else {
        return Vec::new();
    };
    let children = node.children.iter();
    children
        .filter_map(|child| Some(schema.get(*child)?.name.as_str()))
        .collect()
}

fn any_optional(nodes: &Nodes<'_>) -> bool {
    nodes
        .iter()
        .any(|node| get(node).is_none_or(|n| n.repetition == Repetition::Optional))
}
