//! Where each field of a view comes from in one data file (spec, "Column Projection"; rules 40 to 45).
//!
//! Fields are matched by id, never by name. A field the file does not hold takes, in this order, the value of an
//! identity partition field of the file's own spec, its initial default, or null; one that is required and has none of
//! these is an error. A column the file holds wins over the partition value.
//!
//! ```text
//! view                      file                           projection
//! 1 id    long              a  (id 1)  INT32               Leaf { a }, widened when read
//! 2 place struct            p  (id 2)  group               Struct { p }
//!   3 lat double              q (id 3) DOUBLE                Leaf { q }
//!   4 alt double = 0.0                                       Constant(0.0)
//! 5 day   date                                             Constant(2024-01-01), from the partition
//! ```
//!
//! A file whose columns have no ids at all is resolved through the table's name mapping, or failing that by position
//! (`file_ids`), or by name if it is an Avro or ORC file; positions that the names contradict are refused. What can be read as what is decided in `leaf_types`.
//!
//! Refused rather than read as null, since a reader could not tell the difference: a group without an id around fields
//! that have theirs, and a list or map whose element, key or value has no id.

use std::collections::HashMap;
use std::sync::Arc;

use crate::iceberg::manifest::{DataFile, FileFormat};
use crate::iceberg::name_mapping::NameMapping;
use crate::iceberg::partition::{PartitionSpec, Transform};
use crate::iceberg::schema::reserved;
use crate::iceberg::types::{
    FieldId, ListType, MapType, NestedField, PrimitiveType, StructType, Type,
};
use crate::iceberg::value::Value;

use super::RowsError;
use super::file_ids::{FileIds, IdSource};
use super::file_schema::{Annotation, FileNode, FileSchema, NodeId, Physical, Repetition};
use super::leaf_types::{Fit, fit};

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
    /// A variant: a group of `metadata`, and `value` or `typed_value` or both, found by these names.
    Variant { node: NodeId },
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

/// What a projection takes beside the two schemas.
#[derive(Clone, Debug)]
pub struct ProjectionContext<'a> {
    /// The data file's path as recorded, for messages.
    pub path: &'a str,
    /// The table's `schema.name-mapping.default`.
    pub name_mapping: Option<&'a NameMapping>,
    /// Whether a file without ids and a table without a mapping are matched by the names of the table's schema, as
    /// Iceberg Java does for Avro and ORC, and not by position.
    pub names_are_mapping: bool,
    /// Whether the file tells timestamps with a time zone from those without, so that one in a column of the other is
    /// another time: in ORC, the clock on its writer's wall.
    pub tells_zones: bool,
    /// The file's identity-partition values, by source field id.
    pub partition: HashMap<FieldId, Option<Value>>,
}

impl<'a> ProjectionContext<'a> {
    /// The context of a file written under `spec`, which is the file's own spec (absent where the table does not
    /// record it any more: then no column is filled from the partition).
    pub fn new(
        file: &'a DataFile,
        spec: Option<&PartitionSpec>,
        name_mapping: Option<&'a NameMapping>,
    ) -> Self {
        let mut partition = HashMap::new();
        for field in spec.map_or(&[][..], |spec| &spec.fields) {
            if let (Transform::Identity, [source]) = (&field.transform, field.source_ids.as_slice())
                && let Some((_, value)) = file
                    .partition
                    .fields
                    .iter()
                    .find(|(id, _)| *id == field.field_id)
            {
                partition.insert(*source, value.clone());
            }
        }
        ProjectionContext {
            path: &file.path,
            name_mapping,
            names_are_mapping: file.format != FileFormat::Parquet,
            tells_zones: file.format == FileFormat::Orc,
            partition,
        }
    }
}

/// Resolves a view's fields against a data file's schema.
///
/// # Errors
/// [`RowsError::Unsupported`] for encodings and types this version does not read; [`RowsError::Corrupt`] for a required
/// field the file lacks and nothing stands in for, a column whose type is not the field's, and ids that contradict one
/// another.
pub fn project(
    view_fields: &[Arc<NestedField>],
    file: &FileSchema,
    context: &ProjectionContext<'_>,
) -> Result<Projection, RowsError> {
    let own_names = (context.names_are_mapping && context.name_mapping.is_none())
        .then(|| NameMapping::of(view_fields));
    let mapping = context.name_mapping.or(own_names.as_ref());
    let ids = FileIds::resolve(file, mapping, context.path)?;
    let projector = Projector {
        file,
        ids: &ids,
        context,
    };
    projector.check_positions(view_fields)?;
    let fields = projector.by_id(view_fields, &file.roots)?;
    Ok(Projection {
        fields,
        ids_by_position: ids.source == IdSource::Position,
    })
}

/// The columns of a data file that carry row lineage themselves (spec, "Row Lineage").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhysicalLineage {
    pub row_id: Option<NodeId>,
    pub last_updated: Option<NodeId>,
}

/// Finds the lineage columns of a data file by their reserved ids. `path` is for messages.
///
/// # Errors
/// Where a column has such an id but does not hold 64-bit integers.
pub fn physical_lineage(file: &FileSchema, path: &str) -> Result<PhysicalLineage, RowsError> {
    let find = |id: FieldId| {
        let Some(node_id) = file
            .roots
            .iter()
            .copied()
            .find(|n| file.get(*n).is_some_and(|n| n.field_id == Some(id.0)))
        else {
            return Ok(None);
        };
        let reads = file.get(node_id).is_some_and(|node| {
            node.repetition != Repetition::Repeated
                && node
                    .leaf
                    .is_some_and(|leaf| leaf.physical == Physical::Int64)
                && matches!(
                    node.annotation,
                    Annotation::None
                        | Annotation::Integer {
                            bits: 64,
                            signed: true
                        }
                )
        });
        if reads {
            Ok(Some(node_id))
        } else {
            Err(RowsError::corrupt(
                path,
                format!("the row lineage column with field id {id} is not a 64-bit integer"),
            ))
        }
    };
    Ok(PhysicalLineage {
        row_id: find(reserved::ROW_ID)?,
        last_updated: find(reserved::LAST_UPDATED_SEQUENCE_NUMBER)?,
    })
}

struct Projector<'a> {
    file: &'a FileSchema,
    ids: &'a FileIds,
    context: &'a ProjectionContext<'a>,
}

/// Recursion goes down the view's schema, whose depth parsing has bounded.
impl Projector<'_> {
    fn by_id(
        &self,
        fields: &[Arc<NestedField>],
        siblings: &[NodeId],
    ) -> Result<Vec<ProjectedField>, RowsError> {
        let each = |field: &Arc<NestedField>| match self.ids.find(siblings, field.id) {
            Some(node) => self.present(field, node),
            None => self.absent(field),
        };
        fields.iter().map(each).collect()
    }

    /// Ids given by position are wrong if a column bears the name of another field: then the file was not written
    /// with the table's columns in the order of their ids (partition columns left out of it, say).
    fn check_positions(&self, view_fields: &[Arc<NestedField>]) -> Result<(), RowsError> {
        if self.ids.source != IdSource::Position {
            return Ok(());
        }
        for root in &self.file.roots {
            let name = &self.node(*root)?.name;
            let position = self.ids.of(*root);
            if let Some(field) = view_fields.iter().find(|field| field.name == *name)
                && position != Some(field.id)
            {
                return Err(self.unsupported(format!(
                    "a file without field ids whose columns are not in the order of the table's ids (column {name:?}, \
                     field id {})",
                    field.id
                )));
            }
        }
        Ok(())
    }

    fn present(&self, field: &Arc<NestedField>, node: NodeId) -> Result<ProjectedField, RowsError> {
        let source = match &field.ty {
            Type::Primitive(PrimitiveType::Unknown) => FieldSource::Constant(None),
            Type::Primitive(PrimitiveType::Variant) => self.variant(field, node)?,
            Type::Primitive(ty) => self.leaf(field, ty, node, false)?,
            Type::Struct(ty) => self.group(field, ty, node, false)?,
            Type::List(ty) => self.list(field, ty, node)?,
            Type::Map(ty) => self.map(field, ty, node)?,
        };
        Ok(ProjectedField {
            field: field.clone(),
            source,
        })
    }

    /// `is_element`: the node is repeated, and stands here for the element of the list it makes.
    fn leaf(
        &self,
        field: &NestedField,
        ty: &PrimitiveType,
        node_id: NodeId,
        is_element: bool,
    ) -> Result<FieldSource, RowsError> {
        let node = self.node(node_id)?;
        let Some(leaf) = node
            .leaf
            .filter(|_| is_element || node.repetition != Repetition::Repeated)
        else {
            return Err(self.mismatch(field, node));
        };
        let zoned = matches!(
            ty,
            PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs
        );
        if self.context.tells_zones
            && let Annotation::TimestampMicros { utc } | Annotation::TimestampNanos { utc } =
                node.annotation
            && utc != zoned
        {
            let with = if utc { "with" } else { "without" };
            return Err(self.unsupported(format!(
                "a timestamp {with} a time zone in a column of type {ty} (column {:?}, field id {})",
                node.name, field.id
            )));
        }
        match fit(ty, leaf.physical, node.annotation) {
            Fit::Reads => Ok(FieldSource::Leaf { node: node_id }),
            Fit::AllNull if !field.required => Ok(FieldSource::Constant(None)),
            Fit::Unsupported(feature) => Err(self.unsupported(format!(
                "{feature} (column {:?}, field id {})",
                node.name, field.id
            ))),
            Fit::AllNull | Fit::Mismatch => Err(self.mismatch(field, node)),
        }
    }

    fn variant(&self, field: &NestedField, node_id: NodeId) -> Result<FieldSource, RowsError> {
        let node = self.node(node_id)?;
        let binary = |name| {
            let child = self.file.child(node_id, name)?;
            let leaf = self.file.get(child)?.leaf?;
            Some(leaf.physical == Physical::ByteArray)
        };
        let typed = self.file.child(node_id, "typed_value").is_some();
        let is_variant = node.repetition != Repetition::Repeated
            && matches!(node.annotation, Annotation::None | Annotation::Variant)
            && binary("metadata") == Some(true)
            && binary("value").unwrap_or(typed);
        if is_variant {
            Ok(FieldSource::Variant { node: node_id })
        } else {
            Err(self.mismatch(field, node))
        }
    }

    fn group(
        &self,
        field: &NestedField,
        ty: &StructType,
        node_id: NodeId,
        is_element: bool,
    ) -> Result<FieldSource, RowsError> {
        let node = self.node(node_id)?;
        if node.leaf.is_some()
            || (node.repetition == Repetition::Repeated && !is_element)
            || node.annotation != Annotation::None
        {
            return Err(self.mismatch(field, node));
        }
        let fields = match self.ids.source {
            IdSource::File | IdSource::NameMapping => self.by_id(&ty.fields, &node.children)?,
            IdSource::Position => self.by_equal_shape(field, ty, &node.children)?,
        };
        Ok(FieldSource::Struct {
            node: node_id,
            fields,
        })
    }

    /// Below a column whose id was given by position there are no ids: the fields must be the very ones of the view.
    fn by_equal_shape(
        &self,
        field: &NestedField,
        ty: &StructType,
        children: &[NodeId],
    ) -> Result<Vec<ProjectedField>, RowsError> {
        let names = children
            .iter()
            .map(|child| self.node(*child).map(|node| &node.name));
        let same = ty.fields.len() == children.len()
            && ty
                .fields
                .iter()
                .zip(names)
                .all(|(field, name)| name.is_ok_and(|name| *name == field.name));
        if !same {
            return Err(self.unsupported(format!(
                "a file without field ids whose struct {:?} has other fields than the table's",
                field.name
            )));
        }
        ty.fields
            .iter()
            .zip(children)
            .map(|(field, child)| self.present(field, *child))
            .collect()
    }

    fn list(
        &self,
        field: &NestedField,
        ty: &ListType,
        node_id: NodeId,
    ) -> Result<FieldSource, RowsError> {
        let node = self.node(node_id)?;
        let Some(mut shape) = self.file.list_shape(node_id) else {
            return Err(self.mismatch(field, node));
        };
        if shape.repeated != shape.outer && self.ids.source != IdSource::Position {
            // The ids tell two-level from three-level lists where names and shape mislead.
            let inner = self
                .file
                .get(shape.repeated)
                .map_or(&[][..], |node| &node.children);
            let wanted = ty.element.id;
            shape.element = if self.ids.of(shape.element) == Some(wanted) {
                shape.element
            } else if self.ids.of(shape.repeated) == Some(wanted) {
                shape.repeated
            } else if let ([only], true) = (inner, self.ids.find(inner, wanted).is_some()) {
                *only
            } else {
                return Err(self.unsupported(format!(
                    "a list whose element has no field id (column {:?})",
                    node.name
                )));
            };
        }
        let element = if shape.element == shape.repeated {
            let source = match &ty.element.ty {
                Type::Primitive(PrimitiveType::Unknown) => FieldSource::Constant(None),
                Type::Primitive(inner) => self.leaf(&ty.element, inner, shape.element, true)?,
                Type::Struct(inner) => self.group(&ty.element, inner, shape.element, true)?,
                Type::List(_) | Type::Map(_) => {
                    return Err(self.mismatch(&ty.element, self.node(shape.element)?));
                }
            };
            ProjectedField {
                field: ty.element.clone(),
                source,
            }
        } else {
            self.present(&ty.element, shape.element)?
        };
        Ok(FieldSource::List {
            outer: shape.outer,
            repeated: shape.repeated,
            element: Box::new(element),
        })
    }

    fn map(
        &self,
        field: &NestedField,
        ty: &MapType,
        node_id: NodeId,
    ) -> Result<FieldSource, RowsError> {
        let node = self.node(node_id)?;
        let Some(shape) = self.file.map_shape(node_id) else {
            return Err(self.mismatch(field, node));
        };
        let known = |node, field: &NestedField| {
            self.ids.source == IdSource::Position || self.ids.of(node) == Some(field.id)
        };
        if !known(shape.key, &ty.key) || !known(shape.value, &ty.value) {
            return Err(self.unsupported(format!(
                "a map whose key or value has no field id (column {:?})",
                node.name
            )));
        }
        Ok(FieldSource::Map {
            outer: shape.outer,
            repeated: shape.repeated,
            key: Box::new(self.present(&ty.key, shape.key)?),
            value: Box::new(self.present(&ty.value, shape.value)?),
        })
    }

    /// A field the file does not hold.
    fn absent(&self, field: &Arc<NestedField>) -> Result<ProjectedField, RowsError> {
        let value = match &field.ty {
            Type::Primitive(ty) => match self.context.partition.get(&field.id) {
                Some(Some(value)) => {
                    // Manifests give it in the type that the column has now, which an old view knows nothing of.
                    let value = value
                        .promote(ty)
                        .or_else(|| value.before_promotion(ty))
                        .ok_or_else(|| {
                            self.corrupt(format!(
                                "its partition value for {:?} is not of that column's type",
                                field.name
                            ))
                        })?;
                    Some(value)
                }
                Some(None) => None,
                None => field.initial_default.clone(),
            },
            Type::Struct(_) | Type::List(_) | Type::Map(_) => {
                self.check_no_descendant(&field.ty, &field.name)?;
                default_of(field)
            }
        };
        self.check_filled(field, value.as_ref())?;
        Ok(ProjectedField {
            field: field.clone(),
            source: FieldSource::Constant(value),
        })
    }

    /// That a value, built from defaults alone, has all that is required.
    fn check_filled(&self, field: &NestedField, value: Option<&Value>) -> Result<(), RowsError> {
        let Some(value) = value else {
            return if field.required {
                Err(self.corrupt(format!(
                    "the required column {:?} (field id {}) is absent and has no default",
                    field.name, field.id
                )))
            } else {
                Ok(())
            };
        };
        if let (Value::Struct(values), Type::Struct(ty)) = (value, &field.ty) {
            for (value, field) in values.iter().zip(&ty.fields) {
                self.check_filled(field, value.as_ref())?;
            }
        }
        Ok(())
    }

    /// A nested field that is absent must be absent with all it holds: a part of it elsewhere in the file, or in the
    /// partition, would be lost without a word.
    fn check_no_descendant(&self, ty: &Type, name: &str) -> Result<(), RowsError> {
        let children: &[Arc<NestedField>] = match ty {
            Type::Primitive(_) => return Ok(()),
            Type::Struct(ty) => &ty.fields,
            Type::List(ty) => std::slice::from_ref(&ty.element),
            Type::Map(ty) => {
                self.check_part(&ty.key, name)?;
                std::slice::from_ref(&ty.value)
            }
        };
        children
            .iter()
            .try_for_each(|child| self.check_part(child, name))
    }

    fn check_part(&self, part: &NestedField, of: &str) -> Result<(), RowsError> {
        let in_file = self.ids.source != IdSource::Position && self.ids.contains(part.id);
        let in_partition = matches!(self.context.partition.get(&part.id), Some(Some(_)));
        if in_file || in_partition {
            return Err(self.unsupported(format!(
                "a file that holds {:?} (field id {}) without {of:?}, of which it is a part,",
                part.name, part.id
            )));
        }
        self.check_no_descendant(&part.ty, of)
    }

    fn node(&self, node: NodeId) -> Result<&FileNode, RowsError> {
        self.file
            .get(node)
            .ok_or_else(|| self.corrupt("its schema names a column it does not have".to_owned()))
    }

    fn mismatch(&self, field: &NestedField, node: &FileNode) -> RowsError {
        self.corrupt(format!(
            "column {:?} is {}, which cannot be read as the table's {:?} (field id {}), {}",
            node.name,
            describe_stored(node),
            field.name,
            field.id,
            describe(&field.ty)
        ))
    }

    fn corrupt(&self, reason: String) -> RowsError {
        RowsError::corrupt(self.context.path, reason)
    }

    fn unsupported(&self, feature: String) -> RowsError {
        RowsError::unsupported(self.context.path, feature)
    }
}

/// The initial default of a field, with each struct's leaves filled from their own defaults (spec, "Default Values":
/// a struct's default is null or an empty struct).
fn default_of(field: &NestedField) -> Option<Value> {
    match (&field.ty, &field.initial_default) {
        (Type::Struct(ty), Some(_)) => Some(Value::Struct(
            ty.fields.iter().map(|field| default_of(field)).collect(),
        )),
        (_, default) => default.clone(),
    }
}

fn describe_stored(node: &FileNode) -> String {
    let kind = match node.leaf {
        Some(leaf) => format!("{:?}", leaf.physical),
        None => "a group".to_owned(),
    };
    let repeated = if node.repetition == Repetition::Repeated {
        "repeated "
    } else {
        ""
    };
    match node.annotation {
        Annotation::None => format!("{repeated}{kind}"),
        annotation => format!("{repeated}{kind} ({annotation:?})"),
    }
}

fn describe(ty: &Type) -> String {
    match ty {
        Type::Primitive(ty) => format!("of type {ty:?}"),
        Type::Struct(_) => "a struct".to_owned(),
        Type::List(_) => "a list".to_owned(),
        Type::Map(_) => "a map".to_owned(),
    }
}

#[cfg(test)]
mod tests;
