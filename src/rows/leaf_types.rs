//! Whether a stored column can be read as a column of an Iceberg type (spec, "Parquet" in Appendix A, and "Schema
//! Evolution" for promotions).

use crate::iceberg::types::PrimitiveType;

use super::file_schema::{Annotation, Physical};

/// The answer to [`fit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The stored type is the wanted one, or can be promoted to it.
    Reads,
    /// Nothing but nulls is stored (Parquet's `UNKNOWN`), which can be read as any optional type.
    AllNull,
    /// An encoding that is legal or seen in the wild, but not read by this version.
    Unsupported(String),
    /// The types contradict each other.
    Mismatch,
}

/// Whether values stored as `physical`, annotated with `annotation`, can be read as `wanted`.
///
/// Whether a timestamp is marked as adjusted to UTC is not looked at: files that carry only the older converted type
/// say "adjusted" of both of Iceberg's timestamp types.
pub fn fit(wanted: &PrimitiveType, physical: Physical, annotation: Annotation) -> Fit {
    use Annotation as A;
    use Physical as P;
    use PrimitiveType as T;

    if annotation == A::Unknown {
        return Fit::AllNull;
    }
    let refused = match (wanted, physical, annotation) {
        (
            T::Int,
            P::Int32,
            A::Integer {
                bits: 32,
                signed: false,
            },
        ) => Some("an unsigned 32-bit integer in a column of type int".to_owned()),
        (_, _, A::Other(number)) => Some(format!("a Parquet column of the logical type {number}")),
        _ => None,
    };
    if let Some(feature) = refused {
        return Fit::Unsupported(feature);
    }

    let plain_int = |bits_up_to: u8| match annotation {
        A::None => true,
        A::Integer { bits, .. } => bits <= bits_up_to,
        _ => false,
    };
    let reads = match (wanted, physical) {
        (T::Boolean, P::Boolean) => annotation == A::None,
        (T::Int | T::Long, P::Int32) => plain_int(32),
        (T::Long, P::Int64) => plain_int(64),
        (T::Float | T::Double, P::Float) | (T::Double, P::Double) => annotation == A::None,
        (T::Decimal { precision, scale }, P::Int32 | P::Int64 | P::Fixed(1..) | P::ByteArray) => {
            match annotation {
                A::Decimal {
                    precision: stored,
                    scale: stored_scale,
                } => stored_scale == u32::from(*scale) && stored <= u32::from(*precision),
                _ => false,
            }
        }
        (T::Date | T::Timestamp | T::TimestampNs, P::Int32) => annotation == A::Date,
        (T::Time, P::Int32) => annotation == A::TimeMillis,
        (T::Time, P::Int64) => matches!(annotation, A::TimeMicros | A::TimeNanos),
        (T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs, P::Int96) => true,
        (T::Timestamp | T::Timestamptz | T::TimestampNs | T::TimestamptzNs, P::Int64) => matches!(
            annotation,
            A::TimestampMillis { .. } | A::TimestampMicros { .. } | A::TimestampNanos { .. }
        ),
        (T::String, P::ByteArray) => matches!(annotation, A::None | A::String | A::Enum | A::Json),
        (T::Uuid, P::Fixed(16)) => matches!(annotation, A::None | A::Uuid),
        (T::Fixed(wanted), P::Fixed(stored)) => *wanted == stored && annotation == A::None,
        (T::Binary, P::ByteArray) => matches!(
            annotation,
            A::None | A::String | A::Enum | A::Json | A::Bson
        ),
        (T::Geometry { .. }, P::ByteArray) => matches!(annotation, A::None | A::Geometry),
        (T::Geography { .. }, P::ByteArray) => matches!(annotation, A::None | A::Geography),
        _ => false,
    };
    if reads { Fit::Reads } else { Fit::Mismatch }
}
