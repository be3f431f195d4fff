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
}
