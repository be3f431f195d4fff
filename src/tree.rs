//! The name space: names to nodes, nodes to attributes, listings, link targets and bytes. Nothing here knows FUSE.
//!
//! ```text
//! .bergfs/  stats errors version                 the daemon, at the mount's root
//! <namespace>/…/<table>/                         left out where the source is one table
//!     current -> branches/main
//!     branches/<name> -> ../snapshots/<id>[@schema-<n>]
//!     tags/<name>     -> ../snapshots/<id>
//!     at/<time>       -> ../snapshots/<id>
//!     snapshots/<id>[@schema-<n>]/               a view
//!         parts/<data file>.parquet  <table>.parquet  <table>.csv  <table>.jsonl  schema.json  snapshot.json
//!     metadata/table.json
//! ```
//!
//! Two kinds of places: those that change with the table (links, and the listings that hold them) ask [`table::Table`]
//! for its current state, which is looked at again when it is due; those below a view never change and ask for the
//! view, which is kept among the last [`MAX_VIEWS`] used. What each level costs: a link reads metadata; a listing of
//! `parts/` reads manifests; the size of a Parquet file reads footers; only a read reads data.
//!
//! An operation that fails for another reason than a name that does not exist is noted in `.bergfs/errors` and logged.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lru::LruCache;

use crate::cache::Cache;
use crate::catalog::{Catalog, Listing, TableIdent};
use crate::counters::Counters;
use crate::text::Engine;

mod ahead;
mod faults;
mod links;
mod listing;
mod load;
mod lookup;
mod names;
mod node;
mod open;
mod parts;
mod prepare;
mod table;
mod text;
mod times;
mod view;

#[cfg(test)]
mod tests;

pub use crate::text::{Sizing, SpilledText};
pub use faults::{ErrorKind, Faults, TreeError};
pub use listing::{Entries, Entry};
pub use load::{Lineage, TreeOptions};
pub use node::{DaemonNode, Node, TableNode, ViewId, ViewNode};
pub use open::{Caching, OpenFile};
pub use parts::Parts;
pub use prepare::Prepared;

use load::Source;
use table::{Table, TableState};
use view::ViewDirectory;

/// Namespaces whose listing is kept.
const MAX_LISTINGS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

/// Tables whose metadata is kept.
const MAX_TABLES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(511);

/// Views that are kept with their plans and layouts.
const MAX_VIEWS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// The directory of the daemon's own files.
const DAEMON_DIRECTORY: &str = ".bergfs";

/// How long what never changes may be remembered.
const FOR_EVER: Duration = Duration::from_secs(24 * 60 * 60);

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Link,
}

/// A node's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub kind: Kind,
    /// Bytes; exact, always.
    pub size: u64,
    pub modified: SystemTime,
    /// How long this, and the name that led here, may be remembered.
    pub lifetime: Duration,
}

type Result<T> = std::result::Result<T, TreeError>;

/// A namespace's listing, and when it was made.
type Listings = LruCache<Arc<[String]>, (Instant, Arc<Listing>)>;
type Tables = LruCache<Arc<TableIdent>, Arc<Table>>;
type Views = LruCache<(Arc<TableIdent>, ViewId), Arc<ViewDirectory>>;

/// The whole tree.
pub struct Tree {
    source: Source,
    faults: Faults,
    listings: Mutex<Listings>,
    tables: Mutex<Tables>,
    views: Mutex<Views>,
    /// When the tree was made: the time of what has none of its own.
    started: SystemTime,
    root: Node,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Tree {
    /// A tree over a catalog. Looks at no table.
    pub fn new(catalog: Box<dyn Catalog>, cache: Arc<Cache>, options: TreeOptions) -> Tree {
        let root = match catalog.single_table() {
            Some(ident) => Node::Table(Arc::new(ident), TableNode::Root),
            None => Node::Namespace(Arc::from([])),
        };
        let counters = Arc::clone(&options.storage.counters);
        let text = Engine::new(
            options.text.clone(),
            Arc::clone(&cache),
            Arc::clone(&counters),
        );
        Tree {
            source: Source {
                catalog,
                cache,
                counters,
                options,
                text: Arc::new(text),
                ahead: Arc::default(),
            },
            faults: Faults::default(),
            listings: Mutex::new(LruCache::new(MAX_LISTINGS)),
            tables: Mutex::new(LruCache::new(MAX_TABLES)),
            views: Mutex::new(LruCache::new(MAX_VIEWS)),
            started: SystemTime::now(),
            root,
        }
    }

    /// Whether the source can be read at all: one table's metadata, or the names of many.
    pub fn check(&self) -> Result<()> {
        match &self.root {
            Node::Table(ident, _) => self.state(ident).map(drop),
            root => self.entries(root).map(drop),
        }
    }

    /// The mount's root directory.
    pub fn root(&self) -> Node {
        self.root.clone()
    }

    /// Counters of the work done.
    pub fn counters(&self) -> &Counters {
        &self.source.counters
    }

    /// The faults so far, and where more are noted.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// A node's path from the root of the mount, for messages.
    pub fn path(&self, node: &Node) -> String {
        node.path(matches!(self.root, Node::Table(..)))
    }

    /// The node that `name` names in a directory.
    pub fn lookup(&self, parent: &Node, name: &str) -> Result<Node> {
        self.noted(
            || format!("{}/{name}", self.path(parent).trim_end_matches('/')),
            self.find(parent, name),
        )
    }

    /// A node's attributes. For a Parquet file this reads its footers; for a text it waits for its sizing.
    pub fn attributes(&self, node: &Node) -> Result<Attributes> {
        self.noted(|| self.path(node), self.describe(node, true))
    }

    /// A node's attributes as they are for somebody who asks for its name only. A text that has not been sized has no
    /// size, and a lifetime of nothing: whoever wants the size has to ask for it.
    pub fn named_attributes(&self, node: &Node) -> Result<Attributes> {
        self.noted(|| self.path(node), self.describe(node, false))
    }

    /// What kind of thing a node is.
    pub fn kind(&self, node: &Node) -> Kind {
        match node {
            Node::Namespace(_) | Node::Daemon(DaemonNode::Directory) => Kind::Directory,
            Node::Daemon(_) | Node::Table(_, TableNode::TableJson) => Kind::File,
            Node::Table(_, TableNode::View(_, ViewNode::Root | ViewNode::Parts)) => Kind::Directory,
            Node::Table(_, TableNode::View(..)) => Kind::File,
            Node::Table(_, place) if place.changes() => Kind::Link,
            Node::Table(..) => Kind::Directory,
        }
    }

    /// What a directory holds.
    pub fn list(&self, node: &Node) -> Result<Entries> {
        let list = || match node {
            Node::Table(ident, TableNode::View(id, ViewNode::Parts)) => {
                Ok(Entries::Parts(self.view(ident, *id)?.parts()?))
            }
            node => self.entries(node).map(Entries::Few),
        };
        self.noted(|| self.path(node), list())
    }

    /// Where a link leads.
    pub fn read_link(&self, node: &Node) -> Result<String> {
        self.noted(|| self.path(node), self.target(node))
    }

    /// The full text of a name that was too long for a file name and had to be cut.
    pub fn full_name(&self, node: &Node) -> Option<String> {
        let name = match node {
            Node::Namespace(namespace) => namespace.last()?,
            Node::Table(ident, TableNode::Root) => &ident.name,
            Node::Table(_, TableNode::Branch(name) | TableNode::Tag(name)) => &**name,
            Node::Table(ident, TableNode::View(_, ViewNode::Whole)) => {
                return names::is_cut(&ident.name, ".parquet").then(|| ident.name.clone());
            }
            Node::Table(ident, TableNode::View(_, ViewNode::Text(format))) => {
                return names::is_cut(&ident.name, format.suffix()).then(|| ident.name.clone());
            }
            Node::Table(ident, TableNode::View(id, ViewNode::Part(name))) => {
                return self.view(ident, *id).ok()?.parts().ok()?.cut_name(name);
            }
            Node::Table(..) | Node::Daemon(_) => return None,
        };
        names::is_cut(name, "").then(|| name.to_owned())
    }

    fn noted<T>(&self, path: impl FnOnce() -> String, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && error.is_fault()
        {
            self.faults.record(&path(), &error.message);
        }
        result
    }

    fn table(&self, ident: &Arc<TableIdent>) -> Arc<Table> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tables.get_or_insert(Arc::clone(ident), || {
            Arc::new(Table::new(Arc::clone(ident)))
        }))
    }

    fn state(&self, ident: &Arc<TableIdent>) -> Result<(Arc<TableState>, Duration)> {
        self.table(ident).current(&self.source)
    }

    fn kept(&self, ident: &Arc<TableIdent>) -> Result<(Arc<TableState>, Duration)> {
        self.table(ident).kept(&self.source)
    }

    fn view(&self, ident: &Arc<TableIdent>, id: ViewId) -> Result<Arc<ViewDirectory>> {
        let (state, _) = self.kept(ident)?;
        if state.incarnation != id.incarnation {
            return Err(TreeError::new(
                ErrorKind::Stale,
                "another table has come to this one's place",
            ));
        }
        let key = (Arc::clone(ident), id);
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&key) {
            return Ok(Arc::clone(view));
        }
        if state.manner != id.manner {
            return Err(TreeError::new(
                ErrorKind::Stale,
                "the table's format version, name mapping, partition specs or sort orders have changed",
            ));
        }
        let node = Node::Table(Arc::clone(ident), TableNode::View(id, ViewNode::Root));
        let view = ViewDirectory::new(&self.source, &state, id, &self.path(&node), &self.faults)?;
        let view = Arc::new(view);
        views.put(key, Arc::clone(&view));
        Ok(view)
    }

    fn describe(&self, node: &Node, sized: bool) -> Result<Attributes> {
        let directory = |modified, lifetime| Attributes {
            kind: Kind::Directory,
            size: 0,
            modified,
            lifetime,
        };
        let file = |size, modified, lifetime| Attributes {
            kind: Kind::File,
            size,
            modified,
            lifetime,
        };
        Ok(match node {
            // The root answers whatever has become of its table: `.bergfs/errors` lies below it.
            _ if *node == self.root => directory(self.started, self.source.options.refresh),
            Node::Namespace(namespace) => {
                // For as long as the listing that named it.
                let above = namespace.split_last().map_or(&[][..], |(_, above)| above);
                directory(self.started, self.kept_listing(&Arc::from(above))?.1)
            }
            Node::Daemon(DaemonNode::Directory) => directory(self.started, FOR_EVER),
            Node::Daemon(document) => {
                let size = length(self.daemon_text(*document).len());
                let modified = match document {
                    DaemonNode::Errors => self.faults.changed(),
                    _ => None,
                };
                file(size, modified.unwrap_or(self.started), Duration::ZERO)
            }
            Node::Table(ident, TableNode::View(id, place)) => {
                let view = self.view(ident, *id)?;
                let modified = system_time(view.modified_ms);
                match place {
                    // Its name goes when the snapshot is expired.
                    ViewNode::Root => directory(modified, self.kept(ident)?.1),
                    ViewNode::Parts => directory(modified, FOR_EVER),
                    ViewNode::Part(name) => {
                        let len = ViewDirectory::part_len(&view, name, &self.source.ahead)?;
                        file(len, modified, FOR_EVER)
                    }
                    ViewNode::Whole => file(view.whole_len()?, modified, FOR_EVER),
                    place if !sized && text::is_unsized(&view, place) => {
                        file(0, modified, Duration::ZERO)
                    }
                    ViewNode::Text(format) => {
                        file(self.text_len(&view, *format)?, modified, FOR_EVER)
                    }
                    ViewNode::SchemaJson => {
                        file(length(view.schema_json().len()), modified, FOR_EVER)
                    }
                    ViewNode::SnapshotJson => {
                        file(length(view.snapshot_json().len()), modified, FOR_EVER)
                    }
                }
            }
            Node::Table(ident, place) if place.changes() => {
                let (state, left) = self.state(ident)?;
                let updated = system_time(state.metadata.last_updated_ms);
                match self.link(&state, place)? {
                    None => file(state.json_len, updated, left),
                    Some(link) => {
                        let snapshot = link
                            .snapshot
                            .and_then(|id| state.metadata.snapshots.get(&id));
                        Attributes {
                            kind: Kind::Link,
                            size: length(link.target.len()),
                            modified: snapshot.map_or(updated, |s| system_time(s.timestamp_ms)),
                            lifetime: left,
                        }
                    }
                }
            }
            Node::Table(ident, _) => {
                let (state, left) = self.kept(ident)?;
                directory(system_time(state.metadata.last_updated_ms), left)
            }
        })
    }

    fn target(&self, node: &Node) -> Result<String> {
        let not_a_link = || TreeError::new(ErrorKind::Invalid, "not a symbolic link");
        let Node::Table(ident, place) = node else {
            return Err(not_a_link());
        };
        let (state, _) = self.state(ident)?;
        Ok(self.link(&state, place)?.ok_or_else(not_a_link)?.target)
    }

    /// The whole of a file in `.bergfs/`.
    fn daemon_text(&self, document: DaemonNode) -> String {
        match document {
            DaemonNode::Directory => String::new(),
            DaemonNode::Errors => self.faults.text(),
            DaemonNode::Version => format!("bergfs {}\n", env!("CARGO_PKG_VERSION")),
            DaemonNode::Stats => {
                let counters = self.source.counters.snapshot();
                let mut text: String = counters
                    .iter()
                    .map(|(name, value)| format!("{name} {value}\n"))
                    .collect();
                let cache = &self.source.cache;
                text.push_str(&format!("memory_bytes {}\n", cache.bytes()));
                text.push_str(&format!("spilled_bytes {}\n", cache.spilled_bytes()));
                if let Some(disk) = cache.disk() {
                    text.push_str(&format!("disk_cache_bytes {}\n", disk.bytes()));
                }
                text
            }
        }
    }
}

fn not_a_directory() -> TreeError {
    TreeError::new(ErrorKind::NotDirectory, "not a directory")
}

fn length(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970, before it too.
fn system_time(ms: i64) -> SystemTime {
    let distance = Duration::from_millis(ms.unsigned_abs());
    let time = if ms < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}
