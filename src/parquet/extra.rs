//! Columns of a view that are not in the table's schema: row lineage (spec, "Row Lineage") and metadata columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::View;
use super::levels::LeafPlan;
use super::part::{OpenedFile, leaf_node};
use crate::iceberg::manifest::PartitionTuple;
use crate::iceberg::metadata::TableMetadata;
use crate::iceberg::schema::reserved;
use crate::iceberg::types::{FieldId, NestedField, PrimitiveType, StructType, Type};
use crate::iceberg::value::Value;
use crate::rows::file_schema::NodeId;
use crate::rows::projection::FieldSource;

/// A column beside the schema's own.
#[derive(Clone, Debug)]
pub struct ExtraColumn {
    pub field: Arc<NestedField>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    RowId,
    LastUpdated,
    File,
    Position,
    SpecId,
    /// Partition field ids and types, in the column's order.
    Partition(Vec<(FieldId, PrimitiveType)>),
}

/// Where an extra column comes from in a data file.
pub enum ExtraSource {
    /// The same for every row of the file.
    Constant(FieldSource),
    /// Made row by row.
    Plan(LeafPlan),
}

impl ExtraColumn {
    /// The extra columns of a view, in the order they stand behind the schema's own.
    pub fn of(view: &View) -> Vec<ExtraColumn> {
        let mut columns = Vec::new();
        let long = || Type::Primitive(PrimitiveType::Long);
        if view.columns.lineage {
            let last_updated = "_last_updated_sequence_number";
            columns.push(column(reserved::ROW_ID, "_row_id", long(), Kind::RowId));
            columns.push(column(
                reserved::LAST_UPDATED_SEQUENCE_NUMBER,
                last_updated,
                long(),
                Kind::LastUpdated,
            ));
        }
        if view.columns.metadata {
            let text = Type::Primitive(PrimitiveType::String);
            columns.push(column(reserved::FILE, "_file", text, Kind::File));
            columns.push(column(reserved::POS, "_pos", long(), Kind::Position));
            let int = Type::Primitive(PrimitiveType::Int);
            columns.push(column(reserved::SPEC_ID, "_spec_id", int, Kind::SpecId));
            columns.extend(partition_column(&view.metadata));
        }
        columns
    }

    /// Where the column comes from in a data file.
    pub fn source(&self, opened: &OpenedFile) -> ExtraSource {
        let file = &opened.scan.file;
        let first = file.first_row_id;
        // A null first row id nulls both columns, whatever the file holds (rule 37).
        let stored = |node: Option<NodeId>| {
            let leaf = opened.footer.schema.nodes.get(node?)?.leaf?;
            first.map(|_| leaf.column)
        };
        let constant = |value: Option<Value>| ExtraSource::Constant(FieldSource::Constant(value));
        match &self.kind {
            Kind::RowId => {
                let stored = stored(opened.lineage.row_id);
                ExtraSource::Plan(LeafPlan::RowId { first, stored })
            }
            Kind::LastUpdated => {
                let inherited = first.map(|_| opened.scan.sequence_number.0);
                let stored = stored(opened.lineage.last_updated);
                ExtraSource::Plan(LeafPlan::LastUpdated { inherited, stored })
            }
            Kind::Position => ExtraSource::Plan(LeafPlan::Position),
            Kind::File => constant(Some(Value::String(file.path.clone()))),
            Kind::SpecId => constant(Some(Value::Int(file.spec_id.0))),
            Kind::Partition(fields) => constant(Some(partition_value(&file.partition, fields))),
        }
    }
}

fn column(id: FieldId, name: &str, ty: Type, kind: Kind) -> ExtraColumn {
    ExtraColumn {
        field: Arc::new(field(id, name, ty)),
        kind,
    }
}

fn field(id: FieldId, name: &str, ty: Type) -> NestedField {
    NestedField {
        id,
        name: name.to_owned(),
        required: false,
        ty,
        doc: None,
        initial_default: None,
    }
}

/// `_partition`: a struct of the fields of all the table's specs. Its children have no ids: a partition field's id may
/// be that of a column.
fn partition_column(metadata: &TableMetadata) -> Option<ExtraColumn> {
    let mut fields: BTreeMap<FieldId, (String, PrimitiveType)> = BTreeMap::new();
    for spec in metadata.partition_specs.values() {
        for (field, ty) in spec.fields.iter().zip(metadata.partition_type(spec)) {
            if let Some(ty) = ty {
                fields.insert(field.field_id, (field.name.clone(), ty));
            }
        }
    }
    if fields.is_empty() {
        return None;
    }
    let without_id = FieldId(-1);
    let children = fields
        .values()
        .map(|(name, ty)| Arc::new(field(without_id, name, Type::Primitive(ty.clone()))))
        .collect();
    let kinds = fields.into_iter().map(|(id, (_, ty))| (id, ty)).collect();
    let ty = Type::Struct(StructType { fields: children });
    Some(column(
        reserved::PARTITION,
        "_partition",
        ty,
        Kind::Partition(kinds),
    ))
}

fn partition_value(partition: &PartitionTuple, fields: &[(FieldId, PrimitiveType)]) -> Value {
    let value = |(id, ty): &(FieldId, PrimitiveType)| {
        let (_, value) = partition.fields.iter().find(|(field, _)| field == id)?;
        value.as_ref()?.promote(ty)
    };
    Value::Struct(fields.iter().map(value).collect())
}

/// Whether a stored lineage column can be served as it is where no row was dropped: optional, and without a null.
pub fn lineage_is_complete(opened: &OpenedFile, group: usize, column: usize) -> bool {
    let optional = leaf_node(&opened.footer, column).is_some_and(|node| node.max_def == 1);
    let chunk = opened
        .footer
        .metadata
        .row_groups
        .get(group)
        .and_then(|g| g.columns.get(column));
    let nulls = chunk.and_then(|c| c.statistics.as_ref()?.null_count);
    optional && nulls == Some(0)
}
