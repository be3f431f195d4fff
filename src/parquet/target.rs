//! The schema of a virtual file: a view's fields as Parquet nodes, the same for every row group in the file.
//!
//! A view's schema says what is optional; the data files may say otherwise. A node is `OPTIONAL` when the view's field
//! is optional, when any of the data files stores it so, or when one of them lacks it and it is null there; else
//! `REQUIRED`. A leaf keeps the physical type that its data files have when they all agree on one that can legally hold
//! the view's type, so that their chunks can be served as they are; otherwise it takes the type's canonical one.

use std::collections::BTreeSet;

use crate::iceberg::types::{DEFAULT_CRS, FieldId, NestedField, PrimitiveType, Type};
use crate::rows::file_schema::{Annotation, FileSchema, NodeId, Physical, Repetition};
use crate::rows::projection::{FieldSource, ProjectedField};

use super::format::{GeoParameters, SchemaElement};

mod variant;

use variant::Levels;

/// The nodes and leaves of a virtual file.
#[derive(Debug)]
pub struct TargetSchema {
    /// Top-level columns, in order.
    pub roots: Vec<TargetNode>,
    /// Leaf columns in schema order.
    pub leaves: Vec<TargetLeaf>,
}

/// A node of a virtual file's schema.
#[derive(Debug)]
pub struct TargetNode {
    pub name: String,
    pub field_id: Option<FieldId>,
    pub repetition: Repetition,
    pub annotation: Annotation,
    pub kind: TargetKind,
}

/// What a node is.
#[derive(Debug)]
pub enum TargetKind {
    /// Its index in [`TargetSchema::leaves`].
    Leaf(usize),
    /// A struct; or a variant, or a group within one.
    Struct(Vec<TargetNode>),
    /// The repeated `list` node stands between this one and the element.
    List(Box<TargetNode>),
    /// The repeated `key_value` node stands between this one and key and value.
    Map(Box<TargetNode>, Box<TargetNode>),
}

/// A leaf column of a virtual file.
#[derive(Clone, Debug)]
pub struct TargetLeaf {
    /// Names from the top-level column down, as `path_in_schema` has them.
    pub path: Vec<String>,
    /// `Variant` for the leaves of one, which are kept as they are stored.
    pub ty: PrimitiveType,
    pub physical: Physical,
    pub max_def: u16,
    pub max_rep: u16,
}

/// Files that store a column in ways that no single column has.
#[derive(Debug)]
pub struct Unmergeable {
    /// Text that can stand before "is not supported".
    pub feature: String,
    /// The variants that are shredded in ways that differ: they can be one column each when they no longer are. None
    /// where it is something else.
    pub variants: BTreeSet<FieldId>,
}

/// A field's source in each of the data files that hold its parent.
pub type FieldSources<'a> = Vec<(&'a FileSchema, &'a FieldSource)>;

impl TargetSchema {
    /// The schema of a file with these top-level fields, each with its sources. `Err` names what cannot be merged.
    pub fn build(fields: &[(&NestedField, FieldSources<'_>)]) -> Result<TargetSchema, Unmergeable> {
        let mut builder = Builder {
            leaves: Vec::new(),
            path: Vec::new(),
            differing: None,
        };
        let roots = fields
            .iter()
            .map(|(field, sources)| builder.node(field, sources, 0, 0))
            .collect::<Result<_, _>>()?;
        match builder.differing {
            Some(differing) => Err(differing),
            None => Ok(TargetSchema {
                roots,
                leaves: builder.leaves,
            }),
        }
    }

    /// The schema's elements depth first, the root included, as a footer lists them.
    pub fn elements(&self) -> Vec<SchemaElement> {
        let mut out = vec![group(
            "table",
            None,
            Annotation::None,
            None,
            self.roots.len(),
        )];
        for node in &self.roots {
            self.push_elements(node, &mut out);
        }
        out
    }

    fn push_elements(&self, node: &TargetNode, out: &mut Vec<SchemaElement>) {
        let repetition = Some(node.repetition);
        match &node.kind {
            TargetKind::Leaf(leaf) => out.push(SchemaElement {
                physical: self.leaves.get(*leaf).map(|l| l.physical),
                repetition,
                name: node.name.clone(),
                num_children: None,
                annotation: node.annotation,
                field_id: node.field_id.map(|id| id.0),
                geo: self.leaves.get(*leaf).and_then(|l| geo_parameters(&l.ty)),
            }),
            TargetKind::Struct(children) => {
                out.push(group(
                    &node.name,
                    repetition,
                    node.annotation,
                    node.field_id,
                    children.len(),
                ));
                for child in children {
                    self.push_elements(child, out);
                }
            }
            TargetKind::List(element) => {
                out.push(group(
                    &node.name,
                    repetition,
                    Annotation::List,
                    node.field_id,
                    1,
                ));
                out.push(group(
                    "list",
                    Some(Repetition::Repeated),
                    Annotation::None,
                    None,
                    1,
                ));
                self.push_elements(element, out);
            }
            TargetKind::Map(key, value) => {
                out.push(group(
                    &node.name,
                    repetition,
                    Annotation::Map,
                    node.field_id,
                    1,
                ));
                out.push(group(
                    "key_value",
                    Some(Repetition::Repeated),
                    Annotation::None,
                    None,
                    2,
                ));
                self.push_elements(key, out);
                self.push_elements(value, out);
            }
        }
    }
}

fn group(
    name: &str,
    repetition: Option<Repetition>,
    annotation: Annotation,
    field_id: Option<FieldId>,
    children: usize,
) -> SchemaElement {
    SchemaElement {
        physical: None,
        repetition,
        name: name.to_owned(),
        num_children: Some(i32::try_from(children).unwrap_or(i32::MAX)),
        annotation,
        field_id: field_id.map(|id| id.0),
        geo: None,
    }
}

/// What a geometry or geography says of itself in Parquet.
fn geo_parameters(ty: &PrimitiveType) -> Option<GeoParameters> {
    let other_than = |text: &str, default| (text != default).then(|| text.to_owned());
    match ty {
        PrimitiveType::Geometry { crs } => Some(GeoParameters {
            crs: other_than(crs, DEFAULT_CRS),
            algorithm: None,
        }),
        PrimitiveType::Geography { crs, algorithm } => Some(GeoParameters {
            crs: other_than(crs, DEFAULT_CRS),
            algorithm: EDGE_ALGORITHMS
                .iter()
                .zip(0..)
                .skip(1)
                .find_map(|(name, number)| name.eq_ignore_ascii_case(algorithm).then_some(number)),
        }),
        _ => None,
    }
}

/// The names of `EdgeInterpolationAlgorithm`, in the order of their numbers; the first is the default.
const EDGE_ALGORITHMS: [&str; 5] = ["spherical", "vincenty", "thomas", "andoyer", "karney"];

struct Builder {
    leaves: Vec<TargetLeaf>,
    path: Vec<String>,
    /// The variants that are shredded in ways that differ, and how the first one does.
    differing: Option<Unmergeable>,
}

impl Builder {
    /// `def` and `rep` are the maximum levels of the node's parent.
    fn node(
        &mut self,
        field: &NestedField,
        sources: &FieldSources<'_>,
        def: u16,
        rep: u16,
    ) -> Result<TargetNode, Unmergeable> {
        let optional = !field.required
            || sources
                .iter()
                .any(|(schema, source)| may_be_null(schema, source));
        let def = def + u16::from(optional);
        self.path.push(field.name.clone());
        let (annotation, kind) = match &field.ty {
            Type::Primitive(PrimitiveType::Variant) => {
                let stored = sources.iter().filter_map(|(schema, source)| match source {
                    FieldSource::Variant { node } => Some((*schema, *node)),
                    _ => None,
                });
                let stored: Vec<_> = stored.collect();
                let children = self.variant(field.id, &stored, Levels { def, rep });
                (Annotation::Variant, TargetKind::Struct(children))
            }
            Type::Primitive(ty) => {
                let physical = leaf_physical(ty, sources);
                self.leaves.push(TargetLeaf {
                    path: self.path.clone(),
                    ty: ty.clone(),
                    physical,
                    max_def: def,
                    max_rep: rep,
                });
                (annotation(ty), TargetKind::Leaf(self.leaves.len() - 1))
            }
            Type::Struct(ty) if ty.fields.is_empty() => {
                let column = self.path.join(".");
                return Err(Unmergeable {
                    feature: format!("column {column}: a struct without fields"),
                    variants: BTreeSet::new(),
                });
            }
            Type::Struct(ty) => {
                let children = ty.fields.iter().enumerate().map(|(i, child)| {
                    let below = below(sources, |source| match source {
                        FieldSource::Struct { fields, .. } => fields.get(i),
                        _ => None,
                    });
                    self.node(child, &below, def, rep)
                });
                let children = children.collect::<Result<_, _>>()?;
                (Annotation::None, TargetKind::Struct(children))
            }
            Type::List(ty) => {
                self.path.push("list".to_owned());
                let below = below(sources, |source| match source {
                    FieldSource::List { element, .. } => Some(element),
                    _ => None,
                });
                let element = self.node(&ty.element, &below, def + 1, rep + 1)?;
                self.path.pop();
                (Annotation::List, TargetKind::List(Box::new(element)))
            }
            Type::Map(ty) => {
                self.path.push("key_value".to_owned());
                let keys = below(sources, |source| match source {
                    FieldSource::Map { key, .. } => Some(key),
                    _ => None,
                });
                let key = self.node(&ty.key, &keys, def + 1, rep + 1)?;
                let values = below(sources, |source| match source {
                    FieldSource::Map { value, .. } => Some(value),
                    _ => None,
                });
                let value = self.node(&ty.value, &values, def + 1, rep + 1)?;
                self.path.pop();
                (
                    Annotation::Map,
                    TargetKind::Map(Box::new(key), Box::new(value)),
                )
            }
        };
        self.path.pop();
        let repetition = if optional {
            Repetition::Optional
        } else {
            Repetition::Required
        };
        Ok(TargetNode {
            name: field.name.clone(),
            field_id: known_id(field.id),
            repetition,
            annotation,
            kind,
        })
    }
}

/// Fields that the view makes up below `_partition` have no id of their own.
fn known_id(id: FieldId) -> Option<FieldId> {
    (id.0 >= 0).then_some(id)
}

fn below<'a>(
    sources: &FieldSources<'a>,
    child: impl Fn(&'a FieldSource) -> Option<&'a ProjectedField>,
) -> FieldSources<'a> {
    sources
        .iter()
        .filter_map(|(schema, source)| Some((*schema, &child(source)?.source)))
        .collect()
}

/// Whether a data file's rows may lack the field where its parent is present.
fn may_be_null(schema: &FileSchema, source: &FieldSource) -> bool {
    let optional = |node: NodeId| {
        schema
            .nodes
            .get(node)
            .is_none_or(|n| n.repetition == Repetition::Optional)
    };
    match source {
        FieldSource::Constant(value) => value.is_none(),
        FieldSource::Leaf { node }
        | FieldSource::Variant { node }
        | FieldSource::Struct { node, .. } => optional(*node),
        FieldSource::List { outer, .. } | FieldSource::Map { outer, .. } => optional(*outer),
    }
}

/// The physical type of a leaf: what its sources agree on, where that can hold the type, else the canonical one.
fn leaf_physical(ty: &PrimitiveType, sources: &FieldSources<'_>) -> Physical {
    let mut stored = sources.iter().filter_map(|(schema, source)| match source {
        FieldSource::Leaf { node } => schema.nodes.get(*node)?.leaf.map(|leaf| leaf.physical),
        _ => None,
    });
    match stored.next() {
        Some(first) if holds(ty, first) && stored.all(|other| other == first) => first,
        _ => canonical_physical(ty),
    }
}

/// Whether the Parquet format lets this physical type hold values of the type.
pub fn holds(ty: &PrimitiveType, physical: Physical) -> bool {
    match (ty, physical) {
        (PrimitiveType::Decimal { precision, .. }, Physical::Int32) => *precision <= 9,
        (PrimitiveType::Decimal { precision, .. }, Physical::Int64) => *precision <= 18,
        (PrimitiveType::Decimal { precision, .. }, Physical::Fixed(width)) => {
            width <= 16 && width >= decimal_width(*precision)
        }
        _ => physical == canonical_physical(ty),
    }
}

/// The physical type the Iceberg spec gives a type (Appendix A, Parquet).
pub fn canonical_physical(ty: &PrimitiveType) -> Physical {
    match ty {
        PrimitiveType::Boolean => Physical::Boolean,
        PrimitiveType::Unknown | PrimitiveType::Int | PrimitiveType::Date => Physical::Int32,
        PrimitiveType::Long
        | PrimitiveType::Time
        | PrimitiveType::Timestamp
        | PrimitiveType::Timestamptz
        | PrimitiveType::TimestampNs
        | PrimitiveType::TimestamptzNs => Physical::Int64,
        PrimitiveType::Float => Physical::Float,
        PrimitiveType::Double => Physical::Double,
        PrimitiveType::Decimal { precision, .. } => match precision {
            0..=9 => Physical::Int32,
            10..=18 => Physical::Int64,
            _ => Physical::Fixed(decimal_width(*precision)),
        },
        PrimitiveType::Uuid => Physical::Fixed(16),
        PrimitiveType::Fixed(width) => Physical::Fixed(*width),
        PrimitiveType::String
        | PrimitiveType::Binary
        | PrimitiveType::Variant
        | PrimitiveType::Geometry { .. }
        | PrimitiveType::Geography { .. } => Physical::ByteArray,
    }
}

/// The fewest bytes that hold a decimal of so many digits in two's complement.
fn decimal_width(precision: u8) -> u32 {
    // 10^p - 1 < 2^(8w - 1); log2(10) = 3.3219…
    let bits = f64::from(precision) * std::f64::consts::LOG2_10;
    ((bits + 1.0) / 8.0).ceil() as u32
}

/// The logical type a leaf of this type is annotated with.
fn annotation(ty: &PrimitiveType) -> Annotation {
    match ty {
        PrimitiveType::Unknown => Annotation::Unknown,
        PrimitiveType::Decimal { precision, scale } => Annotation::Decimal {
            precision: u32::from(*precision),
            scale: u32::from(*scale),
        },
        PrimitiveType::Date => Annotation::Date,
        PrimitiveType::Time => Annotation::TimeMicros,
        PrimitiveType::Timestamp => Annotation::TimestampMicros { utc: false },
        PrimitiveType::Timestamptz => Annotation::TimestampMicros { utc: true },
        PrimitiveType::TimestampNs => Annotation::TimestampNanos { utc: false },
        PrimitiveType::TimestamptzNs => Annotation::TimestampNanos { utc: true },
        PrimitiveType::String => Annotation::String,
        PrimitiveType::Uuid => Annotation::Uuid,
        PrimitiveType::Boolean
        | PrimitiveType::Int
        | PrimitiveType::Long
        | PrimitiveType::Float
        | PrimitiveType::Double
        | PrimitiveType::Fixed(_)
        | PrimitiveType::Binary => Annotation::None,
        PrimitiveType::Variant => Annotation::Variant,
        PrimitiveType::Geometry { .. } => Annotation::Geometry,
        PrimitiveType::Geography { .. } => Annotation::Geography,
    }
}

#[cfg(test)]
mod tests;
