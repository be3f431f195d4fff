//! From a directory and a name to the node of that name.

use std::sync::Arc;

use crate::catalog::TableIdent;
use crate::iceberg::metadata::RefKind;
use crate::text::Format;

use super::faults::{ErrorKind, TreeError};
use super::node::{self, DaemonNode, Node, TableNode, ViewId, ViewNode};
use super::table::TableState;
use super::{DAEMON_DIRECTORY, Result, Tree, names, not_a_directory, times};

impl Tree {
    pub(super) fn find(&self, parent: &Node, name: &str) -> Result<Node> {
        if *parent == self.root && name == DAEMON_DIRECTORY {
            return Ok(Node::Daemon(DaemonNode::Directory));
        }
        let found = match parent {
            Node::Namespace(namespace) => self.find_in_namespace(namespace, name)?,
            Node::Table(ident, place) => self
                .find_in_table(ident, place, name)?
                .map(|place| Node::Table(Arc::clone(ident), place)),
            Node::Daemon(DaemonNode::Directory) => {
                let file = DaemonNode::FILES.iter().find(|(file, _)| *file == name);
                file.map(|(_, node)| Node::Daemon(*node))
            }
            Node::Daemon(_) => return Err(not_a_directory()),
        };
        found.ok_or_else(TreeError::not_found)
    }

    fn find_in_namespace(&self, namespace: &Arc<[String]>, name: &str) -> Result<Option<Node>> {
        if let Some(ident) = self.still_there(namespace, name)? {
            return Ok(Some(Node::Table(ident, TableNode::Root)));
        }
        let (listing, _) = self.kept_listing(namespace)?;
        if let Some(name) = find_name(name, &listing.tables)? {
            let ident = TableIdent {
                namespace: namespace.to_vec(),
                name,
            };
            return Ok(Some(Node::Table(Arc::new(ident), TableNode::Root)));
        }
        let below = find_name(name, &listing.namespaces)?;
        Ok(below.map(|name| Node::Namespace(namespace.iter().cloned().chain([name]).collect())))
    }

    /// A table that an old listing names, where the table itself says that it is still there: to list a large namespace
    /// anew may be a hundred questions to a catalog, and to look at one table is one.
    fn still_there(
        &self,
        namespace: &Arc<[String]>,
        name: &str,
    ) -> Result<Option<Arc<TableIdent>>> {
        let Some(listing) = self.old_listing(namespace) else {
            return Ok(None);
        };
        let Some(name) = find_name(name, &listing.tables)? else {
            return Ok(None);
        };
        let ident = Arc::new(TableIdent {
            namespace: namespace.to_vec(),
            name,
        });
        Ok(self.kept(&ident).is_ok().then_some(ident))
    }

    fn find_in_table(
        &self,
        ident: &Arc<TableIdent>,
        place: &TableNode,
        name: &str,
    ) -> Result<Option<TableNode>> {
        Ok(match place {
            TableNode::Root => match name {
                "at" => Some(TableNode::At),
                "branches" => Some(TableNode::Branches),
                "current" => Some(TableNode::Current),
                "metadata" => Some(TableNode::Metadata),
                "snapshots" => Some(TableNode::Snapshots),
                "tags" => Some(TableNode::Tags),
                _ => None,
            },
            TableNode::Branches => self
                .find_ref(ident, RefKind::Branch, name)?
                .map(TableNode::Branch),
            TableNode::Tags => self
                .find_ref(ident, RefKind::Tag, name)?
                .map(TableNode::Tag),
            TableNode::Snapshots => {
                let (state, _) = self.kept(ident)?;
                view_id(&state, name)?.map(|id| TableNode::View(id, ViewNode::Root))
            }
            TableNode::At => times::parse(name).map(|_| TableNode::Time(Arc::from(name))),
            TableNode::Metadata => (name == "table.json").then_some(TableNode::TableJson),
            TableNode::View(id, ViewNode::Root) => match name {
                "parts" => Some(ViewNode::Parts),
                "schema.json" => Some(ViewNode::SchemaJson),
                "snapshot.json" => Some(ViewNode::SnapshotJson),
                name if name == node::whole_name(ident) => Some(ViewNode::Whole),
                name => self.find_text(ident, name).map(ViewNode::Text),
            }
            .map(|node| TableNode::View(*id, node)),
            TableNode::View(id, ViewNode::Parts) => {
                let known = self.view(ident, *id)?.parts()?.find(name).is_some();
                known.then(|| TableNode::View(*id, ViewNode::Part(Arc::from(name))))
            }
            TableNode::Current
            | TableNode::Branch(_)
            | TableNode::Tag(_)
            | TableNode::Time(_)
            | TableNode::TableJson
            | TableNode::View(..) => return Err(not_a_directory()),
        })
    }

    /// The kind of text that a name in a view's directory names.
    fn find_text(&self, ident: &TableIdent, name: &str) -> Option<Format> {
        let shown = self.source.text.options().shown;
        let mut formats = Format::ALL.into_iter().filter(|_| shown);
        formats.find(|format| name == node::text_name(ident, *format))
    }

    fn find_ref(
        &self,
        ident: &Arc<TableIdent>,
        kind: RefKind,
        name: &str,
    ) -> Result<Option<Arc<str>>> {
        let (state, _) = self.state(ident)?;
        let found = names::find(name.as_bytes(), state.refs(kind).into_keys());
        found.map(|found| found.map(Arc::from)).map_err(ambiguous)
    }
}

fn find_name(name: &str, names: &[String]) -> Result<Option<String>> {
    let found = names::find(name.as_bytes(), names.iter().map(String::as_str));
    found
        .map(|found| found.map(str::to_owned))
        .map_err(ambiguous)
}

fn ambiguous(_: names::Ambiguous) -> TreeError {
    TreeError::new(
        ErrorKind::Io,
        "two names look the same once cut to 255 bytes",
    )
}

/// The view that a name in `snapshots/` names, where the table has it.
pub(super) fn view_id(state: &TableState, name: &str) -> Result<Option<ViewId>> {
    let Some((snapshot, schema)) = node::parse_view_name(name) else {
        return Ok(None);
    };
    let found = match snapshot {
        Some(id) => match state.metadata.snapshots.get(&id) {
            Some(snapshot) => Some(&**snapshot),
            None => return Ok(None),
        },
        None if state.metadata.current_snapshot_id.is_some() => return Ok(None),
        None => None,
    };
    let own = state.schema_of(found);
    if schema.is_some_and(|schema| !state.metadata.schemas.contains_key(&schema)) {
        return Ok(None);
    }
    // A snapshot of a schema that is not there is broken, and not merely absent.
    let read_with = state.schema(schema.unwrap_or(own))?.id;
    Ok(Some(ViewId {
        incarnation: state.incarnation,
        manner: state.manner,
        snapshot,
        schema: read_with,
        schema_named: schema.is_some(),
    }))
}
