//! Open files. What an open file shows stays as it was when it was opened.

use std::sync::Arc;

use bytes::Bytes;

use crate::parquet::ParquetFile;
use crate::text::{Cursor, Sizing, SpilledText, TextFile};

use super::ahead::Streams;
use super::faults::{ErrorKind, TreeError};
use super::load;
use super::node::{DaemonNode, Incarnation, Node, TableNode, ViewNode};
use super::table::Table;
use super::view::ViewDirectory;
use super::{Result, Tree, length};

/// A file of the tree, opened.
#[derive(Debug)]
pub struct OpenFile {
    node: Node,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Made when the file was opened.
    Text { text: Bytes, changing: bool },
    /// Rendered as it is read.
    Rendered {
        file: Arc<TextFile>,
        cursor: Cursor,
        /// Keeps the view, so that files of it that are opened later share what has been rendered.
        _view: Arc<ViewDirectory>,
        table: Arc<Table>,
        incarnation: Incarnation,
    },
    /// Made as it is read.
    Parquet {
        file: Arc<ParquetFile>,
        /// Whether nobody had opened it before.
        is_first: bool,
        streams: Streams,
        /// Keeps the view, so that files of it that are opened later share what it has read.
        _view: Arc<ViewDirectory>,
        table: Arc<Table>,
        incarnation: Incarnation,
    },
}

/// How the kernel should treat an open file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// The same bytes whenever it is opened.
    Immutable,
    /// Other bytes at each opening.
    None,
    /// The same from now on; what the kernel has of it may have been made of another state of its data files, which
    /// nobody should write to.
    Fresh,
    /// Immutable, and read column by column: readahead would make, or fetch, what nobody reads.
    Exact,
}

impl OpenFile {
    /// How its pages may be cached.
    pub fn caching(&self) -> Caching {
        match self.content {
            Content::Text { changing: true, .. } => Caching::None,
            Content::Text {
                changing: false, ..
            } => Caching::Immutable,
            Content::Rendered { ref file, .. } if file.len().is_some() => Caching::Immutable,
            // The kernel cannot cache pages of a file whose end it does not know.
            Content::Rendered { .. } => Caching::None,
            Content::Parquet { ref file, .. } if !file.suits_page_cache() => Caching::Exact,
            Content::Parquet { is_first: true, .. } => Caching::Fresh,
            Content::Parquet { .. } => Caching::Immutable,
        }
    }

    /// The file of the system that holds the same bytes, if there is one.
    pub fn backing(&self) -> Option<Arc<SpilledText>> {
        match &self.content {
            Content::Rendered { file, .. } => file.backing(),
            Content::Text { .. } | Content::Parquet { .. } => None,
        }
    }

    /// The file's place.
    pub fn node(&self) -> &Node {
        &self.node
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match &self.content {
            Content::Text { text, .. } => {
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(text.len());
                let len = buffer.len().min(text.len() - start);
                let from = text.get(start..start + len).unwrap_or_default();
                buffer
                    .iter_mut()
                    .zip(from)
                    .for_each(|(to, byte)| *to = *byte);
                Ok(len)
            }
            Content::Rendered {
                file,
                cursor,
                table,
                incarnation,
                ..
            } => {
                still(table, *incarnation)?;
                file.read_at(offset, buffer, cursor)
                    .map_err(|e| load::text_error(&e))
            }
            Content::Parquet {
                file,
                table,
                incarnation,
                ..
            } => {
                still(table, *incarnation)?;
                file.read_at(offset, buffer)
                    .map_err(|e| load::parquet_error(&e))
            }
        }
    }
}

/// Refuses to read on from a table that is not there any more.
fn still(table: &Table, incarnation: Incarnation) -> Result<()> {
    if table.is(incarnation) {
        return Ok(());
    }
    let message = "the table is gone, or another has come to its place";
    Err(TreeError::new(ErrorKind::Stale, message))
}

impl Tree {
    /// Opens a file.
    pub fn open(&self, node: &Node) -> Result<OpenFile> {
        let content = self.noted(|| self.path(node), self.content(node))?;
        Ok(OpenFile {
            node: node.clone(),
            content,
        })
    }

    /// Fills `buffer` from an open file at `offset`; gives fewer bytes only at the file's end.
    pub fn read(&self, file: &OpenFile, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.noted(|| self.path(&file.node), file.read(offset, buffer))
    }

    /// `len` bytes from an open file at `offset`, where they lie in memory as they are; else they have to be
    /// [read](Tree::read).
    pub fn read_shared(&self, file: &OpenFile, offset: u64, len: usize) -> Result<Option<Bytes>> {
        let Content::Parquet {
            file: parquet,
            streams,
            table,
            incarnation,
            ..
        } = &file.content
        else {
            return Ok(None);
        };
        let shared = || {
            still(table, *incarnation)?;
            let there = parquet.len().saturating_sub(offset).min(length(len));
            streams.note(parquet, offset, there, &self.source.ahead);
            let shared = parquet.read_shared(offset, len);
            shared.map_err(|e| load::parquet_error(&e))
        };
        self.noted(|| self.path(&file.node), shared())
    }

    /// What a read has to wait for: the sizing of a text, where the offset lies far behind what is known of it. The
    /// caller is one of those who wait for it.
    pub fn awaited(&self, file: &OpenFile, offset: u64) -> Option<Arc<Sizing>> {
        match &file.content {
            Content::Rendered { file, .. } if !file.is_near(offset) => Some(file.size()),
            _ => None,
        }
    }

    fn content(&self, node: &Node) -> Result<Content> {
        let is_directory = || Err(TreeError::new(ErrorKind::IsDirectory, "is a directory"));
        let text = |text: &str, changing| Content::Text {
            text: Bytes::copy_from_slice(text.as_bytes()),
            changing,
        };
        Ok(match node {
            Node::Namespace(_) | Node::Daemon(DaemonNode::Directory) => return is_directory(),
            Node::Daemon(document) => text(&self.daemon_text(*document), true),
            Node::Table(ident, TableNode::TableJson) => {
                let (state, _) = self.state(ident)?;
                let text = load::metadata_text(&self.source, &state.pointer)?;
                if length(text.len()) != state.json_len {
                    return Err(state.broken("it has changed since it was read"));
                }
                Content::Text {
                    text,
                    changing: true,
                }
            }
            Node::Table(ident, TableNode::View(id, place)) => {
                let view = self.view(ident, *id)?;
                let file = match place {
                    ViewNode::Root | ViewNode::Parts => return is_directory(),
                    ViewNode::SchemaJson => return Ok(text(view.schema_json(), false)),
                    ViewNode::SnapshotJson => return Ok(text(&view.snapshot_json(), false)),
                    ViewNode::Part(name) => view.part(name)?,
                    ViewNode::Whole => view.whole()?,
                    ViewNode::Text(format) => {
                        return Ok(Content::Rendered {
                            file: view.text(*format)?,
                            cursor: Cursor::default(),
                            _view: view,
                            table: self.table(ident),
                            incarnation: id.incarnation,
                        });
                    }
                };
                for warning in file.warnings() {
                    self.faults.record(&self.path(node), &warning);
                }
                Content::Parquet {
                    is_first: file.is_first_opening(),
                    file,
                    streams: Streams::default(),
                    _view: view,
                    table: self.table(ident),
                    incarnation: id.incarnation,
                }
            }
            Node::Table(..) => return is_directory(),
        })
    }
}
