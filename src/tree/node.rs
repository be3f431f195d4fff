//! The places of the tree. A [`Node`] is a value: it names a place and holds nothing open, so the kernel may remember
//! it for as long as it likes.

use std::sync::Arc;

use crate::catalog::TableIdent;
use crate::iceberg::metadata::SnapshotId;
use crate::iceberg::schema::SchemaId;
use crate::text::Format;

use super::names;

/// A file, directory or link of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A namespace of a source with many tables; the empty one is the root.
    Namespace(Arc<[String]>),
    Table(Arc<TableIdent>, TableNode),
    Daemon(DaemonNode),
}

/// `.bergfs/` and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DaemonNode {
    Directory,
    Stats,
    Errors,
    Version,
}

impl DaemonNode {
    /// The files, with their names.
    pub(super) const FILES: [(&'static str, DaemonNode); 3] = [
        ("errors", DaemonNode::Errors),
        ("stats", DaemonNode::Stats),
        ("version", DaemonNode::Version),
    ];
}

/// A place below a table's directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TableNode {
    Root,
    Current,
    Branches,
    /// By the branch's own name.
    Branch(Arc<str>),
    Tags,
    /// By the tag's own name.
    Tag(Arc<str>),
    Snapshots,
    At,
    /// By the text that was looked up.
    Time(Arc<str>),
    Metadata,
    TableJson,
    View(ViewId, ViewNode),
}

/// A place below a view's directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ViewNode {
    Root,
    Parts,
    /// By file name.
    Part(Arc<str>),
    Whole,
    /// The whole view as text.
    Text(Format),
    SchemaJson,
    SnapshotJson,
}

/// What makes a view the same view for ever: two equal ids show the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewId {
    pub(super) incarnation: Incarnation,
    pub(super) manner: Manner,
    /// `None`: the table has no snapshot.
    pub(super) snapshot: Option<SnapshotId>,
    pub(super) schema: SchemaId,
    /// Whether the directory's name says the schema.
    pub(super) schema_named: bool,
}

/// Tells a table from another that has come to its place: a hash of its uuid (of its location, where it has none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Incarnation(pub(super) u64);

/// A hash of what else in the table's metadata decides what a snapshot shows, and how long its files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Manner(pub(super) u64);

/// The directory of a table without a snapshot.
pub(super) const NO_SNAPSHOT: &str = "none";

/// The name of a view's directory in `snapshots/`.
pub(super) fn view_name(snapshot: Option<SnapshotId>, schema: Option<SchemaId>) -> String {
    let snapshot = snapshot.map_or(NO_SNAPSHOT.to_owned(), |id| id.0.to_string());
    match schema {
        Some(schema) => format!("{snapshot}@schema-{}", schema.0),
        None => snapshot,
    }
}

/// What a name in `snapshots/` asks for; nothing where [`view_name`] cannot give it.
pub(super) fn parse_view_name(name: &str) -> Option<(Option<SnapshotId>, Option<SchemaId>)> {
    let (id, schema) = match name.split_once("@schema-") {
        Some((id, schema)) => (id, Some(SchemaId(schema.parse().ok()?))),
        None => (name, None),
    };
    let snapshot = if id == NO_SNAPSHOT {
        None
    } else {
        Some(SnapshotId(id.parse().ok()?))
    };
    (view_name(snapshot, schema) == name).then_some((snapshot, schema))
}

/// The name of the file that holds a whole view.
pub(super) fn whole_name(ident: &TableIdent) -> String {
    names::encode(&ident.name, ".parquet")
}

/// The name of the file that holds a whole view as text.
pub(super) fn text_name(ident: &TableIdent, format: Format) -> String {
    names::encode(&ident.name, format.suffix())
}

impl Node {
    /// The path from the mount's root, for messages. `single`: the mount is this node's table.
    pub(super) fn path(&self, single: bool) -> String {
        let mut path = String::new();
        let mut push = |name: &str| {
            path.push('/');
            path.push_str(name);
        };
        match self {
            Node::Namespace(namespace) => namespace
                .iter()
                .for_each(|name| push(&names::encode(name, ""))),
            Node::Daemon(node) => {
                push(".bergfs");
                DaemonNode::FILES
                    .iter()
                    .filter(|(_, file)| file == node)
                    .for_each(|(name, _)| push(name));
            }
            Node::Table(ident, place) => {
                if !single {
                    ident
                        .namespace
                        .iter()
                        .chain([&ident.name])
                        .for_each(|name| push(&names::encode(name, "")));
                }
                place.push_path(ident, push);
            }
        }
        if path.is_empty() {
            "/".to_owned()
        } else {
            path
        }
    }
}

impl TableNode {
    /// Whether what it is, and not only what it holds, changes with the table: a link, or a file about its state.
    pub(super) fn changes(&self) -> bool {
        matches!(
            self,
            TableNode::Current
                | TableNode::Branch(_)
                | TableNode::Tag(_)
                | TableNode::Time(_)
                | TableNode::TableJson
        )
    }

    fn push_path(&self, ident: &TableIdent, mut push: impl FnMut(&str)) {
        match self {
            TableNode::Root => {}
            TableNode::Current => push("current"),
            TableNode::Branches => push("branches"),
            TableNode::Branch(name) => {
                push("branches");
                push(&names::encode(name, ""));
            }
            TableNode::Tags => push("tags"),
            TableNode::Tag(name) => {
                push("tags");
                push(&names::encode(name, ""));
            }
            TableNode::Snapshots => push("snapshots"),
            TableNode::At => push("at"),
            TableNode::Time(name) => {
                push("at");
                push(name);
            }
            TableNode::Metadata => push("metadata"),
            TableNode::TableJson => {
                push("metadata");
                push("table.json");
            }
            TableNode::View(id, node) => {
                push("snapshots");
                push(&view_name(
                    id.snapshot,
                    id.schema_named.then_some(id.schema),
                ));
                match node {
                    ViewNode::Root => {}
                    ViewNode::Parts => push("parts"),
                    ViewNode::Part(name) => {
                        push("parts");
                        push(name);
                    }
                    ViewNode::Whole => push(&whole_name(ident)),
                    ViewNode::Text(format) => push(&text_name(ident, *format)),
                    ViewNode::SchemaJson => push("schema.json"),
                    ViewNode::SnapshotJson => push("snapshot.json"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_name_has_one_spelling() {
        let id = |id| Some(SnapshotId(id));
        assert_eq!(parse_view_name("-7"), Some((id(-7), None)));
        assert_eq!(
            parse_view_name("7@schema-0"),
            Some((id(7), Some(SchemaId(0))))
        );
        assert_eq!(parse_view_name("none"), Some((None, None)));
        for name in [
            "+7",
            "07",
            "7@schema-",
            "7@schema-00",
            "7@schema-1@schema-1",
            "",
            "x",
            "99999999999999999999",
        ] {
            assert_eq!(parse_view_name(name), None, "{name}");
        }
    }
}
