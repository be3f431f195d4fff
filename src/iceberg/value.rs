//! Values of Iceberg types, as they stand in partition tuples, column bounds and default values.

/// A value of any type; null is the absence of one (`Option<Value>`).
///
/// Two values compare equal only when they are the same bits: floats are held as bits with NaN made canonical, so
/// `-0.0` and `+0.0` differ, as partition equality asks (spec, "Scan Planning").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Boolean(bool),
    Int(i32),
    Long(i64),
    /// IEEE 754 bits, NaN canonical.
    Float(u32),
    /// IEEE 754 bits, NaN canonical.
    Double(u64),
    /// The unscaled value; the scale is the type's.
    Decimal(i128),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since the epoch, with or without zone.
    Timestamp(i64),
    /// Nanoseconds since the epoch, with or without zone.
    TimestampNs(i64),
    String(String),
    /// 16 bytes, big endian.
    Uuid([u8; 16]),
    /// `fixed`, `binary`, and the WKB of geometries.
    Binary(Vec<u8>),
    /// A struct's values by field order; used by default values only.
    Struct(Vec<Option<Value>>),
    /// Used by default values only.
    List(Vec<Option<Value>>),
    /// Keys and values, in order; used by default values only.
    Map(Vec<(Value, Option<Value>)>),
}
