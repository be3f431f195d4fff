//! The schema of a data file, as the file has it: a tree in one vector, whatever the file's format.

/// Index of a node in [`FileSchema::nodes`].
pub type NodeId = usize;

/// A data file's schema.
#[derive(Clone, Debug, Default)]
pub struct FileSchema {
    /// All nodes, parents before their children, in the file's order.
    pub nodes: Vec<FileNode>,
    /// The top-level columns.
    pub roots: Vec<NodeId>,
    /// The node of each leaf column, by leaf column index.
    pub leaves: Vec<NodeId>,
}

/// A column, or a part of one.
#[derive(Clone, Debug)]
pub struct FileNode {
    pub name: String,
    pub field_id: Option<i32>,
    pub repetition: Repetition,
    pub parent: Option<NodeId>,
    pub children: Vec<NodeId>,
    pub annotation: Annotation,
    /// Set on leaves only.
    pub leaf: Option<FileLeaf>,
    /// How many optional or repeated nodes stand on the path from the root to this node, itself included.
    pub max_def: u16,
    /// How many repeated nodes stand on that path, itself included.
    pub max_rep: u16,
}

/// What a leaf column stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLeaf {
    /// Leaf column index.
    pub column: usize,
    pub physical: Physical,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repetition {
    Required,
    Optional,
    Repeated,
}

/// A Parquet physical type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    /// So many bytes a value.
    Fixed(u32),
}

/// What a node's logical (or legacy converted) type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Annotation {
    None,
    List,
    Map,
    Variant,
    String,
    Enum,
    Json,
    Bson,
    Decimal {
        precision: u32,
        scale: u32,
    },
    Date,
    TimeMillis,
    TimeMicros,
    TimeNanos,
    /// `utc`: adjusted to UTC.
    TimestampMillis {
        utc: bool,
    },
    TimestampMicros {
        utc: bool,
    },
    TimestampNanos {
        utc: bool,
    },
    /// 8, 16, 32 or 64 bits.
    Integer {
        bits: u8,
        signed: bool,
    },
    Uuid,
    Interval,
    Float16,
    Unknown,
    Geometry,
    Geography,
    /// A type that came after this reader, by its number in `parquet.thrift`: its values may mean anything.
    Other(i32),
}

impl FileSchema {
    /// The node with this id, if the schema has one.
    pub fn get(&self, node: NodeId) -> Option<&FileNode> {
        self.nodes.get(node)
    }

    /// The child of a node that has this name.
    pub fn child(&self, node: NodeId, name: &str) -> Option<NodeId> {
        let children = &self.get(node)?.children;
        children
            .iter()
            .copied()
            .find(|child| self.get(*child).is_some_and(|child| child.name == name))
    }

    /// The only child of a node, where it has exactly one.
    fn only_child(&self, node: NodeId) -> Option<(NodeId, &FileNode)> {
        match self.get(node)?.children.as_slice() {
            [child] => Some((*child, self.get(*child)?)),
            _ => None,
        }
    }

    /// The first leaf below a group that does not repeat.
    pub fn leaf_below(&self, group: NodeId) -> Option<NodeId> {
        let children = &self.get(group)?.children;
        children.iter().find_map(|id| {
            let child = self.get(*id)?;
            match child.leaf {
                _ if child.repetition == Repetition::Repeated => None,
                Some(_) => Some(*id),
                None => self.leaf_below(*id),
            }
        })
    }

    /// Reads a node as a list, by Parquet's rules of backward compatibility (`LogicalTypes.md`, "Lists").
    ///
    /// The element of a two-level list is the repeated node itself; that of a three-level list is its only child. A
    /// field that is repeated with no group around it is a list too.
    pub fn list_shape(&self, outer: NodeId) -> Option<ListShape> {
        let outer_node = self.get(outer)?;
        if outer_node.repetition == Repetition::Repeated {
            return Some(ListShape {
                outer,
                repeated: outer,
                element: outer,
            });
        }
        if !matches!(outer_node.annotation, Annotation::List | Annotation::None) {
            return None;
        }
        let (repeated, repeated_node) = self.only_child(outer)?;
        if repeated_node.repetition != Repetition::Repeated {
            return None;
        }
        let element = match self.only_child(repeated) {
            Some((inner, inner_node))
                if inner_node.repetition != Repetition::Repeated
                    && repeated_node.name != "array"
                    && repeated_node.name.strip_suffix("_tuple")
                        != Some(outer_node.name.as_str()) =>
            {
                inner
            }
            _ => repeated,
        };
        Some(ListShape {
            outer,
            repeated,
            element,
        })
    }

    /// Reads a node as a map: a group around a repeated group of a key and a value, whatever their names.
    pub fn map_shape(&self, outer: NodeId) -> Option<MapShape> {
        let outer_node = self.get(outer)?;
        if outer_node.repetition == Repetition::Repeated
            || !matches!(outer_node.annotation, Annotation::Map | Annotation::None)
        {
            return None;
        }
        let (repeated, repeated_node) = self.only_child(outer)?;
        match repeated_node.children.as_slice() {
            [key, value]
                if repeated_node.repetition == Repetition::Repeated
                    && self.get(*key)?.repetition != Repetition::Repeated =>
            {
                Some(MapShape {
                    outer,
                    repeated,
                    key: *key,
                    value: *value,
                })
            }
            _ => None,
        }
    }
}

/// The nodes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListShape {
    /// The list itself.
    pub outer: NodeId,
    /// The repeated node; the same as `outer` for a repeated field with no group around it.
    pub repeated: NodeId,
    /// The element: the repeated node, or its only child.
    pub element: NodeId,
}

/// The nodes of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// The map itself.
    pub outer: NodeId,
    /// The repeated group.
    pub repeated: NodeId,
    pub key: NodeId,
    pub value: NodeId,
}
