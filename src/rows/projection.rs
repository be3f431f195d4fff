//! Where each field of a view comes from in one data file (spec, "Column Projection"; SPEC.md rules 40 to 45).

use std::sync::Arc;

use crate::iceberg::types::NestedField;
use crate::iceberg::value::Value;

use super::file_schema::NodeId;

/// A view's schema resolved against one data file: the view's top-level fields, in the view's order.
#[derive(Clone, Debug)]
pub struct Projection {
    pub fields: Vec<ProjectedField>,
    /// Set where the file had neither field ids nor a name mapping, and ids were given by position.
    pub ids_by_position: bool,
}

/// A field of the view and its source.
#[derive(Clone, Debug)]
pub struct ProjectedField {
    pub field: Arc<NestedField>,
    pub source: FieldSource,
}

/// Where a field's values come from.
#[derive(Clone, Debug)]
pub enum FieldSource {
    /// The file does not hold the field: wherever its parent is present, it is this (an identity-partition value,
    /// an initial default, or null). A struct default holds its leaves' own defaults.
    Constant(Option<Value>),
    /// A primitive, stored in the leaf at this node, in a physical type that can be read as the field's type.
    Leaf { node: NodeId },
    /// A group; its children, parallel to the view's struct fields.
    Struct {
        node: NodeId,
        fields: Vec<ProjectedField>,
    },
    /// A list: the outer node (for a two-level list of a bare repeated field, `outer == repeated`), the repeated node,
    /// and the element, which may lie at the repeated node itself (two-level) or below it.
    List {
        outer: NodeId,
        repeated: NodeId,
        element: Box<ProjectedField>,
    },
    /// A map: the outer node, the repeated node, key and value.
    Map {
        outer: NodeId,
        repeated: NodeId,
        key: Box<ProjectedField>,
        value: Box<ProjectedField>,
    },
}
