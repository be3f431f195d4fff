//! Which equality deletes cannot hit a data file, by what the manifest says of both (rules 29 and 30).
//!
//! A delete file is put aside only where some equality column cannot have one value in both files: both files have
//! bounds for it, the bounds do not meet, and null does not stand in both. All else applies, for a bound is worth
//! nothing if it is not surely right:
//!
//! - Only integers, dates and text are looked at. Floats have NaN outside their bounds; UUIDs, decimals and timestamps
//!   have been given wrong bounds by writers of the past.
//! - Text counts only where the bounds are ASCII, since writers disagree on the order of some other characters; and an
//!   upper bound may have been cut short without being rounded up.
//! - Only top-level columns are looked at: a leaf is also null where its parent is.

use crate::iceberg::manifest::DataFile;
use crate::iceberg::metadata::TableMetadata;
use crate::iceberg::types::{FieldId, PrimitiveType, Type};
use crate::iceberg::value::Value;

/// Whether the equality deletes of `delete` may hit a row of `data`.
pub fn may_hit(delete: &DataFile, data: &DataFile, metadata: &TableMetadata) -> bool {
    !delete.deletes().equality_ids.iter().any(|id| {
        let values_meet =
            column_type(*id, metadata).is_none_or(|ty| ranges_meet(delete, data, *id, ty));
        !values_meet && (has_no_null(delete, *id) || has_no_null(data, *id))
    })
}

/// The type of a top-level column of a type whose bounds can be relied on.
fn column_type(id: FieldId, metadata: &TableMetadata) -> Option<&PrimitiveType> {
    let current = metadata.schemas.get(&metadata.current_schema_id);
    let mut schemas = current.into_iter().chain(metadata.schemas.values().rev());
    let field =
        schemas.find_map(|schema| schema.fields.fields.iter().find(|field| field.id == id))?;
    match &field.ty {
        Type::Primitive(
            ty @ (PrimitiveType::Int
            | PrimitiveType::Long
            | PrimitiveType::Date
            | PrimitiveType::String),
        ) => Some(ty),
        _ => None,
    }
}

fn has_no_null(file: &DataFile, id: FieldId) -> bool {
    file.statistics()
        .null_value_counts
        .iter()
        .any(|(column, nulls)| *column == id && *nulls == 0)
}

fn ranges_meet(a: &DataFile, b: &DataFile, id: FieldId, ty: &PrimitiveType) -> bool {
    match (Range::of(a, id, ty), Range::of(b, id, ty)) {
        (Some(a), Some(b)) => !a.ends_before(&b) && !b.ends_before(&a),
        _ => true,
    }
}

struct Range {
    lower: Value,
    upper: Value,
}

impl Range {
    fn of(file: &DataFile, id: FieldId, ty: &PrimitiveType) -> Option<Range> {
        let bound = |bounds: &[(FieldId, Box<[u8]>)]| {
            let (_, bytes) = bounds.iter().find(|(column, _)| *column == id)?;
            if *ty == PrimitiveType::String && !bytes.is_ascii() {
                return None;
            }
            Value::from_bytes(ty, bytes).ok()
        };
        Some(Range {
            lower: bound(&file.statistics().lower_bounds)?,
            upper: bound(&file.statistics().upper_bounds)?,
        })
    }

    fn ends_before(&self, other: &Range) -> bool {
        match (&self.upper, &other.lower) {
            (Value::String(upper), Value::String(lower)) => {
                upper < lower && !lower.starts_with(upper.as_str())
            }
            (upper, lower) => upper.compare(lower).is_some_and(|order| order.is_lt()),
        }
    }
}

#[cfg(test)]
mod tests;
