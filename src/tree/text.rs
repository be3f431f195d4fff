//! The texts of a view: opened, sized and listed.

use std::sync::Arc;

use crate::cache::CacheKey;
use crate::iceberg::types::{PrimitiveType, Type};
use crate::text::{EAGER_BYTES, Engine, Format, Sizing, Text, TextFile};

use super::load;
use super::node::{Node, TableNode, ViewId, ViewNode};
use super::view::ViewDirectory;
use super::{Result, Tree};

/// Bytes of a nested value's text beside its parts, about.
const NESTED_BYTES: u64 = 16;

/// A view's texts: what is known of each for good.
#[derive(Debug)]
pub(super) struct Texts {
    engine: Arc<Engine>,
    csv: Arc<Text>,
    json_lines: Arc<Text>,
}

impl Texts {
    pub(super) fn new(engine: Arc<Engine>) -> Texts {
        Texts {
            engine,
            csv: Arc::new(Text::new(Format::Csv)),
            json_lines: Arc::new(Text::new(Format::JsonLines)),
        }
    }

    fn of(&self, format: Format) -> &Arc<Text> {
        match format {
            Format::Csv => &self.csv,
            Format::JsonLines => &self.json_lines,
        }
    }
}

impl ViewDirectory {
    /// The size of a text, in bytes, once it has been sized.
    pub(super) fn text_len(&self, format: Format) -> Option<u64> {
        self.texts.of(format).len()
    }

    /// A text, opened. Reads every footer.
    pub(super) fn text(&self, format: Format) -> Result<Arc<TextFile>> {
        let key = CacheKey {
            kind: "text-file",
            id: format!("{}/{}", self.number, format.suffix()),
        };
        self.view.cache.get_or_make(key, || {
            let whole = self.whole()?;
            let file = TextFile::open(self.texts.of(format), whole, &self.texts.engine);
            let file = file.map_err(|e| load::text_error(&e))?;
            let weight = file.weight().min(self.view.cache.budget() / 2);
            Ok((file, weight))
        })
    }

    /// Bytes of a text, as far as the manifests tell. Only good for deciding what to do at all.
    fn estimate(&self, format: Format) -> Result<u64> {
        let files = &self.parts()?.plan.files;
        let (mut rows, mut stored) = (0u64, 0u64);
        for file in files {
            rows = rows.saturating_add(file.file.record_count);
            stored = stored.saturating_add(file.file.file_size);
        }
        let fields = &self.view.schema.fields.fields;
        let width = fields.iter().fold(0u64, |width, field| {
            let name = match format {
                Format::Csv => 1,
                Format::JsonLines => u64::try_from(field.name.len()).unwrap_or(0) + 4,
            };
            width + name + typical_width(&field.ty)
        });
        Ok(rows.saturating_mul(width).max(stored))
    }

    /// Whether a text is listed: one that may be huge only once its size is known, so that `ls -l` never renders it.
    /// One that cannot be estimated is: its opening says why.
    pub(super) fn lists_text(&self, format: Format) -> bool {
        let limit = self.texts.engine.options().limit;
        // It is read by way of the view's Parquet file, the footer included.
        let small = || {
            self.whole_unlisted()
                .map_or(true, |reason| reason.is_none())
        };
        let short = || self.estimate(format).map_or(true, |bytes| bytes <= limit);
        self.text_len(format).is_some() || (small() && short())
    }

    /// Begins to size the texts that are small, where the machine has nothing else to render: somebody has looked into
    /// the directory, and will ask. Not of tables in a store: to look would cost all of their data.
    pub(super) fn size_small_texts(self: &Arc<Self>) {
        if self.view.storage.is_remote() {
            return;
        }
        let is_small = |format: &Format| {
            self.text_len(*format).is_none()
                && self.lists_text(*format)
                && self
                    .estimate(*format)
                    .is_ok_and(|bytes| bytes <= EAGER_BYTES)
        };
        let small: Vec<Format> = Format::ALL.into_iter().filter(is_small).collect();
        if small.is_empty() {
            return;
        }
        let view = Arc::clone(self);
        self.texts.engine.when_idle(move || {
            for format in small {
                // Whoever asks for the size learns why there is none.
                if let Ok(file) = view.text(format) {
                    drop(file.size());
                }
            }
        });
    }
}

/// Bytes that a value takes as text, about.
fn typical_width(ty: &Type) -> u64 {
    let Type::Primitive(primitive) = ty else {
        let parts = ty
            .children()
            .into_iter()
            .map(|child| typical_width(&child.ty));
        return parts.fold(NESTED_BYTES, u64::saturating_add);
    };
    match primitive {
        PrimitiveType::Unknown => 0,
        PrimitiveType::Boolean => 5,
        PrimitiveType::Int | PrimitiveType::Long => 7,
        PrimitiveType::Float
        | PrimitiveType::Double
        | PrimitiveType::Decimal { .. }
        | PrimitiveType::Date
        | PrimitiveType::String => 10,
        PrimitiveType::Time => 15,
        PrimitiveType::Timestamp | PrimitiveType::TimestampNs => 26,
        PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs => 32,
        PrimitiveType::Uuid => 36,
        PrimitiveType::Fixed(len) => 2 * u64::from(*len),
        PrimitiveType::Binary
        | PrimitiveType::Variant
        | PrimitiveType::Geometry { .. }
        | PrimitiveType::Geography { .. } => 40,
    }
}

impl Tree {
    /// The sizing of a text whose size is not known yet, begun now unless it goes on already; the caller is one of those
    /// who wait for it. Nothing for any other node.
    pub fn sizing(&self, node: &Node) -> Result<Option<Arc<Sizing>>> {
        let Some((id, format, ident)) = text_of(node) else {
            return Ok(None);
        };
        self.noted(|| self.path(node), {
            let begin = || {
                let view = self.view(ident, id)?;
                if view.text_len(format).is_some() {
                    return Ok(None);
                }
                Ok(Some(view.text(format)?.size()))
            };
            begin()
        })
    }

    /// Whether a sizing that has been waited for came to a size.
    pub fn check_sizing(&self, node: &Node, sizing: Option<&Sizing>) -> Result<()> {
        let outcome = sizing.map_or(Ok(0), Sizing::wait);
        let outcome = outcome.map(drop).map_err(|e| load::text_error(&e));
        self.noted(|| self.path(node), outcome)
    }

    /// The size of a text, in bytes. Waits for its sizing.
    pub(super) fn text_len(&self, view: &ViewDirectory, format: Format) -> Result<u64> {
        match view.text_len(format) {
            Some(len) => Ok(len),
            None => view
                .text(format)?
                .size()
                .wait()
                .map_err(|e| load::text_error(&e)),
        }
    }
}

fn text_of(node: &Node) -> Option<(ViewId, Format, &Arc<crate::catalog::TableIdent>)> {
    match node {
        Node::Table(ident, TableNode::View(id, ViewNode::Text(format))) => {
            Some((*id, *format, ident))
        }
        _ => None,
    }
}

/// Whether a text's size is not known, in which case nobody may be told one.
pub(super) fn is_unsized(view: &ViewDirectory, place: &ViewNode) -> bool {
    matches!(place, ViewNode::Text(format) if view.text_len(*format).is_none())
}
