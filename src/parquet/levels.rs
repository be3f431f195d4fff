//! How each leaf of a virtual file is got from one data file: which stored leaf, and how its levels map.
//!
//! A definition level counts the optional and repeated nodes that are present on a value's path. Source and virtual
//! file may disagree on which nodes are optional (a required column that became optional) and on which exist (a
//! two-level list), so a source level `d` becomes `def_map[d]`. Repetition levels are the same on both sides.
//!
//! A leaf that the data file lacks takes its levels from a *guide*, another leaf below the same group, cut down to the
//! group: wherever the group is present stand the leaf's default entries (one null, one value, or the shredded items of
//! a list default); wherever it is absent, what the guide says of its ancestors.

use crate::iceberg::value::Value;
use crate::rows::file_schema::{FileSchema, NodeId, Repetition};
use crate::rows::projection::{FieldSource, ProjectedField};

use super::target::{TargetKind, TargetNode};

/// Where a leaf's chunk comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum LeafPlan {
    /// A leaf column of the file, by index; `def_map` gives the virtual definition level for each of its own.
    Stored { column: usize, def_map: Vec<u16> },
    /// Not in the file.
    Missing(MissingLeaf),
    /// `_row_id`: the first row's id, and the leaf column that holds ids explicitly.
    RowId {
        first: Option<i64>,
        stored: Option<usize>,
    },
    /// `_last_updated_sequence_number`, likewise.
    LastUpdated {
        inherited: Option<i64>,
        stored: Option<usize>,
    },
    /// `_pos`: the row's position in the file.
    Position,
}

/// A leaf that a file lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingLeaf {
    /// `None` for a field of the row itself, which is always present.
    pub guide: Option<Guide>,
    /// What stands wherever the parent is present; never empty. The first entry's repetition level is the parent's.
    pub entries: Vec<Entry>,
}

/// A stored leaf whose levels say where a missing leaf's parent is present.
#[derive(Clone, Debug, PartialEq)]
pub struct Guide {
    pub column: usize,
    /// The parent is present where the guide's definition level is at least this.
    pub parent_def: u16,
    /// Guide entries with a higher repetition level lie inside one parent.
    pub parent_rep: u16,
    /// Virtual definition levels for guide levels below `parent_def`.
    pub def_map: Vec<u16>,
}

/// One entry of a shredded default.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub rep: u16,
    pub def: u16,
    pub value: Option<Value>,
}

/// One node on the path from the root: whether it counts in the source's levels, and in the virtual file's.
#[derive(Clone, Copy)]
struct Step {
    source: bool,
    target: bool,
}

/// The plans of a virtual file's leaves for one data file, for the top-level nodes that the projection covers. Plans are
/// put in `plans` by leaf index. `Err` says what does not fit.
pub fn plan_leaves(
    schema: &FileSchema,
    nodes: &[TargetNode],
    fields: &[ProjectedField],
    plans: &mut [Option<LeafPlan>],
) -> Result<(), String> {
    let mut walk = Walk {
        schema,
        plans,
        steps: Vec::new(),
    };
    for (node, field) in nodes.iter().zip(fields) {
        walk.node(node, field, None)?;
    }
    Ok(())
}

struct Walk<'a> {
    schema: &'a FileSchema,
    plans: &'a mut [Option<LeafPlan>],
    steps: Vec<Step>,
}

impl Walk<'_> {
    fn node(
        &mut self,
        node: &TargetNode,
        field: &ProjectedField,
        parent: Option<NodeId>,
    ) -> Result<(), String> {
        match (&node.kind, &field.source) {
            (_, FieldSource::Constant(value)) => self.missing(node, value.as_ref(), parent),
            (TargetKind::Leaf(leaf), FieldSource::Leaf { node: source }) => {
                self.step(*source, node.repetition);
                let plan = self.stored(*source)?;
                self.set(*leaf, plan);
                self.steps.pop();
                Ok(())
            }
            (
                TargetKind::Struct(children),
                FieldSource::Struct {
                    node: source,
                    fields,
                },
            ) => {
                self.step(*source, node.repetition);
                for (child, field) in children.iter().zip(fields) {
                    self.node(child, field, Some(*source))?;
                }
                self.steps.pop();
                Ok(())
            }
            (
                TargetKind::List(child),
                FieldSource::List {
                    outer,
                    repeated,
                    element,
                },
            ) => {
                self.step(*outer, node.repetition);
                self.steps.push(Step {
                    source: true,
                    target: true,
                });
                self.node(child, element, Some(*repeated))?;
                self.steps.pop();
                self.steps.pop();
                Ok(())
            }
            (
                TargetKind::Map(key_node, value_node),
                FieldSource::Map {
                    outer,
                    repeated,
                    key,
                    value,
                },
            ) => {
                self.step(*outer, node.repetition);
                self.steps.push(Step {
                    source: true,
                    target: true,
                });
                self.node(key_node, key, Some(*repeated))?;
                self.node(value_node, value, Some(*repeated))?;
                self.steps.pop();
                self.steps.pop();
                Ok(())
            }
            _ => Err(format!(
                "column {}: its projection does not fit its type",
                node.name
            )),
        }
    }

    /// A repeated source node counts once, where its list stands: a two-level list's outer node or element does not.
    fn step(&mut self, source: NodeId, target: Repetition) {
        let source = self
            .schema
            .nodes
            .get(source)
            .is_some_and(|n| n.repetition == Repetition::Optional);
        self.steps.push(Step {
            source,
            target: target == Repetition::Optional,
        });
    }

    fn set(&mut self, leaf: usize, plan: LeafPlan) {
        if let Some(slot) = self.plans.get_mut(leaf) {
            *slot = Some(plan);
        }
    }

    fn stored(&self, source: NodeId) -> Result<LeafPlan, String> {
        let node = self.schema.nodes.get(source).ok_or("no such node")?;
        let leaf = node
            .leaf
            .ok_or_else(|| format!("column {}: a group where a value was expected", node.name))?;
        let source_max = self.steps.iter().filter(|s| s.source).count();
        if source_max != usize::from(node.max_def) {
            return Err(format!(
                "column {}: its nesting does not fit its type",
                node.name
            ));
        }
        Ok(LeafPlan::Stored {
            column: leaf.column,
            def_map: def_map(&self.steps, node.max_def),
        })
    }

    fn missing(
        &mut self,
        node: &TargetNode,
        value: Option<&Value>,
        parent: Option<NodeId>,
    ) -> Result<(), String> {
        let guide = match parent {
            None => None,
            Some(parent) => {
                let group = self.schema.nodes.get(parent).ok_or("no such node")?;
                let column = guide_leaf(self.schema, parent)
                    .ok_or_else(|| format!("column {}: a group without columns", group.name))?;
                Some(Guide {
                    column,
                    parent_def: group.max_def,
                    parent_rep: group.max_rep,
                    def_map: def_map(&self.steps, group.max_def),
                })
            }
        };
        let def = u16::try_from(self.steps.iter().filter(|s| s.target).count()).unwrap_or(u16::MAX);
        let rep = guide.as_ref().map_or(0, |g| g.parent_rep);
        let mut leaves = Vec::new();
        shred(node, value, def, rep, rep, &mut leaves)?;
        for (leaf, entries) in leaves {
            self.set(
                leaf,
                LeafPlan::Missing(MissingLeaf {
                    guide: guide.clone(),
                    entries,
                }),
            );
        }
        Ok(())
    }
}

/// For each source level, how many of the target's optional and repeated nodes are present.
fn def_map(steps: &[Step], source_max: u16) -> Vec<u16> {
    (0..=source_max)
        .map(|mut left| {
            let mut target = 0;
            for step in steps {
                if step.source {
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                }
                target += u16::from(step.target);
            }
            target
        })
        .collect()
}

/// The leaf below a group that is the least deep inside further lists.
fn guide_leaf(schema: &FileSchema, group: NodeId) -> Option<usize> {
    let mut best: Option<(u16, usize)> = None;
    let mut pending = vec![group];
    while let Some(id) = pending.pop() {
        let node = schema.nodes.get(id)?;
        if let Some(leaf) = node.leaf {
            let candidate = (node.max_rep, leaf.column);
            if best.is_none_or(|b| candidate < b) {
                best = Some(candidate);
            }
        }
        pending.extend(&node.children);
    }
    best.map(|(_, column)| column)
}

/// Puts the entries of a missing node's leaves for one present parent into `out`, by leaf. `first_rep` is the first
/// entry's repetition level, `rep` the number of lists the node stands in.
fn shred(
    node: &TargetNode,
    value: Option<&Value>,
    def: u16,
    first_rep: u16,
    rep: u16,
    out: &mut Vec<(usize, Vec<Entry>)>,
) -> Result<(), String> {
    let misfit = || {
        Err(format!(
            "column {}: its default does not fit its type",
            node.name
        ))
    };
    let Some(value) = value else {
        absent(node, def, first_rep, out);
        return Ok(());
    };
    let def = def + u16::from(node.repetition == Repetition::Optional);
    match (&node.kind, value) {
        (_, Value::Struct(values)) => {
            let TargetKind::Struct(children) = &node.kind else {
                return misfit();
            };
            for (child, value) in children.iter().zip(
                values
                    .iter()
                    .map(Option::as_ref)
                    .chain(std::iter::repeat(None)),
            ) {
                shred(child, value, def, first_rep, rep, out)?;
            }
        }
        (TargetKind::List(element), Value::List(items)) => {
            if items.is_empty() {
                absent(element, def, first_rep, out);
            }
            for (i, item) in items.iter().enumerate() {
                let item_rep = if i == 0 { first_rep } else { rep + 1 };
                shred(element, item.as_ref(), def + 1, item_rep, rep + 1, out)?;
            }
        }
        (TargetKind::Map(key_node, value_node), Value::Map(items)) => {
            if items.is_empty() {
                absent(key_node, def, first_rep, out);
                absent(value_node, def, first_rep, out);
            }
            for (i, (key, value)) in items.iter().enumerate() {
                let item_rep = if i == 0 { first_rep } else { rep + 1 };
                shred(key_node, Some(key), def + 1, item_rep, rep + 1, out)?;
                shred(value_node, value.as_ref(), def + 1, item_rep, rep + 1, out)?;
            }
        }
        (TargetKind::Leaf(leaf), value) => push(
            *leaf,
            Entry {
                rep: first_rep,
                def,
                value: Some(value.clone()),
            },
            out,
        ),
        _ => return misfit(),
    }
    Ok(())
}

fn absent(node: &TargetNode, def: u16, rep: u16, out: &mut Vec<(usize, Vec<Entry>)>) {
    match &node.kind {
        TargetKind::Leaf(leaf) => push(
            *leaf,
            Entry {
                rep,
                def,
                value: None,
            },
            out,
        ),
        TargetKind::Struct(children) => children
            .iter()
            .for_each(|child| absent(child, def, rep, out)),
        TargetKind::List(element) => absent(element, def, rep, out),
        TargetKind::Map(key, value) => {
            absent(key, def, rep, out);
            absent(value, def, rep, out);
        }
    }
}

fn push(leaf: usize, entry: Entry, out: &mut Vec<(usize, Vec<Entry>)>) {
    match out.iter_mut().find(|(l, _)| *l == leaf) {
        Some((_, entries)) => entries.push(entry),
        None => out.push((leaf, vec![entry])),
    }
}

#[cfg(test)]
mod tests;
