//! What directories hold.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::catalog::{CatalogError, Listing, TableIdent};
use crate::iceberg::metadata::RefKind;
use crate::text::Format;

use super::faults::TreeError;
use super::node::{self, DaemonNode, Node, TableNode, ViewNode};
use super::parts::Parts;
use super::{DAEMON_DIRECTORY, Kind, Result, Tree, names, not_a_directory};

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
}

/// What a directory holds, in an order that stays, without `.` and `..`.
#[derive(Debug)]
pub enum Entries {
    Few(Vec<Entry>),
    /// A snapshot may have a million data files: their names are not copied.
    Parts(Arc<Parts>),
}

impl Entries {
    /// The name and kind of the entry at a place; nothing behind the last.
    pub fn get(&self, place: usize) -> Option<(&str, Kind)> {
        match self {
            Entries::Few(entries) => entries.get(place).map(|e| (e.name.as_str(), e.kind)),
            Entries::Parts(parts) => parts.name(place).map(|name| (name, Kind::File)),
        }
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Kind)> {
        (0..).map_while(|place| self.get(place))
    }
}

impl Entry {
    fn new(name: impl Into<String>, kind: Kind) -> Entry {
        Entry {
            name: name.into(),
            kind,
        }
    }
}

impl Tree {
    pub(super) fn entries(&self, node: &Node) -> Result<Vec<Entry>> {
        let mut entries = match node {
            Node::Namespace(namespace) => self.namespace_entries(namespace)?,
            Node::Table(ident, place) => self.table_entries(ident, place)?,
            Node::Daemon(DaemonNode::Directory) => {
                let files = DaemonNode::FILES.iter();
                files
                    .map(|(name, _)| Entry::new(*name, Kind::File))
                    .collect()
            }
            Node::Daemon(_) => return Err(not_a_directory()),
        };
        if *node == self.root {
            entries.push(Entry::new(DAEMON_DIRECTORY, Kind::Directory));
        }
        Ok(entries)
    }

    /// What a namespace holds, and how long that may be kept.
    pub(super) fn listing(&self, namespace: &Arc<[String]>) -> Result<(Arc<Listing>, Duration)> {
        let refresh = self.source.options.refresh;
        let listings = || self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, listing)) = listings().get(namespace)
            && let Some(left) = refresh
                .checked_sub(made.elapsed())
                .filter(|left| !left.is_zero())
        {
            return Ok((Arc::clone(listing), left));
        }
        // Taken before the look, so that nothing that comes after it is taken for seen.
        let now = Instant::now();
        let listing = self.source.catalog.list(namespace);
        if matches!(listing, Err(CatalogError::NoTable { .. })) {
            listings().pop(namespace);
        }
        let listing = listing.map_err(|e| TreeError::from_source(&e, e.is_unsupported()))?;
        let listing = Arc::new(listing);
        listings().put(Arc::clone(namespace), (now, Arc::clone(&listing)));
        Ok((listing, refresh.saturating_sub(now.elapsed())))
    }

    /// The listing for finding what is named in it: where the catalog does not answer, the last one, so that the way to
    /// snapshots stays open. Whether a table still is what it was is the table's own affair.
    pub(super) fn kept_listing(
        &self,
        namespace: &Arc<[String]>,
    ) -> Result<(Arc<Listing>, Duration)> {
        self.listing(namespace).or_else(|error| {
            let listings = self.listings.lock();
            let mut listings = listings.unwrap_or_else(PoisonError::into_inner);
            let (_, last) = listings.get(namespace).ok_or(error)?;
            Ok((Arc::clone(last), Duration::ZERO))
        })
    }

    /// The last listing, where it is to be made anew.
    pub(super) fn old_listing(&self, namespace: &Arc<[String]>) -> Option<Arc<Listing>> {
        let listings = self.listings.lock();
        let mut listings = listings.unwrap_or_else(PoisonError::into_inner);
        let (made, listing) = listings.get(namespace)?;
        (made.elapsed() >= self.source.options.refresh).then(|| Arc::clone(listing))
    }

    fn namespace_entries(&self, namespace: &Arc<[String]>) -> Result<Vec<Entry>> {
        let (listing, _) = self.listing(namespace)?;
        // A table that holds tables of its own is shown as the table.
        let namespaces = listing
            .namespaces
            .iter()
            .filter(|name| !listing.tables.contains(name));
        let names = listing.tables.iter().chain(namespaces);
        Ok(names
            .map(|name| Entry::new(names::encode(name, ""), Kind::Directory))
            .collect())
    }

    fn table_entries(&self, ident: &Arc<TableIdent>, place: &TableNode) -> Result<Vec<Entry>> {
        let directory = |name| Entry::new(name, Kind::Directory);
        let link = |name: String| Entry::new(name, Kind::Link);
        let file = |name: &str| Entry::new(name, Kind::File);
        Ok(match place {
            TableNode::Root => {
                let directories = ["at", "branches", "metadata", "snapshots", "tags"];
                let mut entries: Vec<Entry> = directories.into_iter().map(directory).collect();
                entries.push(link("current".to_owned()));
                entries
            }
            TableNode::Branches | TableNode::Tags => {
                let kind = if *place == TableNode::Tags {
                    RefKind::Tag
                } else {
                    RefKind::Branch
                };
                let (state, _) = self.state(ident)?;
                state
                    .refs(kind)
                    .into_keys()
                    .map(|name| link(names::encode(name, "")))
                    .collect()
            }
            TableNode::At => self
                .state(ident)?
                .0
                .listed_times()
                .into_iter()
                .map(link)
                .collect(),
            TableNode::Snapshots => {
                let views = self.kept(ident)?.0.listed_views();
                views
                    .into_iter()
                    .map(|name| Entry::new(name, Kind::Directory))
                    .collect()
            }
            TableNode::Metadata => vec![file("table.json")],
            TableNode::View(id, ViewNode::Root) => {
                let mut entries = vec![
                    directory("parts"),
                    file("schema.json"),
                    file("snapshot.json"),
                ];
                let view = self.view(ident, *id)?;
                // A view whose manifests cannot be read keeps its file, whose opening then says why.
                match view.whole_unlisted() {
                    Ok(Some(reason)) => {
                        let whole = TableNode::View(*id, ViewNode::Whole);
                        let path = self.path(&Node::Table(Arc::clone(ident), whole));
                        self.faults.record(&path, &reason);
                    }
                    Ok(None) | Err(_) => entries.push(file(&node::whole_name(ident))),
                }
                if self.source.options.text.shown {
                    let listed = Format::ALL.into_iter().filter(|f| view.lists_text(*f));
                    entries.extend(listed.map(|f| file(&node::text_name(ident, f))));
                    view.size_small_texts();
                }
                entries
            }
            TableNode::Current
            | TableNode::Branch(_)
            | TableNode::Tag(_)
            | TableNode::Time(_)
            | TableNode::TableJson
            | TableNode::View(..) => return Err(not_a_directory()),
        })
    }
}
