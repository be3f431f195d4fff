//! Rows as JSON, in both directions: into Arrow arrays for the files a test writes, and out of the Arrow arrays that a
//! served file reads as.
//!
//! A row is an array of its columns; a struct an object, a list an array, a map an array of `[key, value]` pairs.
//! Dates, times and timestamps are the stored integers; decimals strings with their scale; uuid, fixed and binary
//! hexadecimal strings; floats JSON numbers with a point, or the strings `NaN`, `inf`, `-inf`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, make_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Fields, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit,
};
use serde_json::{Value, json};

use super::schema::{Field, Ty, arrow_schema};

/// Rows as an Arrow batch of these columns.
pub fn batch(fields: &[Field], rows: &Value) -> RecordBatch {
    let rows = rows.as_array().expect("rows: an array of arrays");
    let columns = fields.iter().enumerate().map(|(i, field)| {
        let values: Vec<&Value> = rows
            .iter()
            .map(|row| row.get(i).unwrap_or(&Value::Null))
            .collect();
        array(field, &values)
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(arrow_schema(fields), columns.collect(), &options).unwrap()
}

/// A column of these values.
pub fn array(field: &Field, values: &[&Value]) -> ArrayRef {
    match &field.ty {
        Ty::Primitive(name) => primitive(name, values),
        Ty::Struct(fields) => {
            let columns: Vec<ArrayRef> = fields
                .iter()
                .map(|f| {
                    array(
                        f,
                        &values
                            .iter()
                            .map(|v| v.get(&f.name).unwrap_or(&Value::Null))
                            .collect::<Vec<_>>(),
                    )
                })
                .collect();
            let arrow: Fields = fields.iter().map(Field::arrow).collect();
            Arc::new(
                StructArray::try_new_with_length(arrow, columns, nulls(values), values.len())
                    .unwrap(),
            )
        }
        Ty::List(element) => {
            let items: Vec<&Value> = values
                .iter()
                .filter_map(|v| v.as_array())
                .flatten()
                .collect();
            let array = array(element, &items);
            Arc::new(ListArray::new(
                Arc::new(element.arrow()),
                offsets(values),
                array,
                nulls(values),
            ))
        }
        Ty::Map(key, value) => {
            let pairs: Vec<&Value> = values
                .iter()
                .filter_map(|v| v.as_array())
                .flatten()
                .collect();
            let keys = array(key, &pairs.iter().map(|p| &p[0]).collect::<Vec<_>>());
            let items = array(value, &pairs.iter().map(|p| &p[1]).collect::<Vec<_>>());
            let DataType::Map(entry, _) = field.ty.arrow() else {
                unreachable!()
            };
            let DataType::Struct(entry_fields) = entry.data_type().clone() else {
                unreachable!()
            };
            let entries = StructArray::new(entry_fields, vec![keys, items], None);
            Arc::new(MapArray::new(
                entry,
                offsets(values),
                entries,
                nulls(values),
                false,
            ))
        }
    }
}

fn nulls(values: &[&Value]) -> Option<NullBuffer> {
    let nulls = NullBuffer::from_iter(values.iter().map(|v| !v.is_null()));
    (nulls.null_count() > 0).then_some(nulls)
}

fn offsets(values: &[&Value]) -> OffsetBuffer<i32> {
    OffsetBuffer::from_lengths(values.iter().map(|v| v.as_array().map_or(0, Vec::len)))
}

fn primitive(name: &str, values: &[&Value]) -> ArrayRef {
    let longs = || Int64Array::from_iter(values.iter().map(|v| v.as_i64()));
    let ints = || {
        Int32Array::from_iter(
            values
                .iter()
                .map(|v| v.as_i64().map(|v| i32::try_from(v).unwrap())),
        )
    };
    let bytes = || {
        values
            .iter()
            .map(|v| v.as_str().map(unhex))
            .collect::<Vec<_>>()
    };
    match (Ty::Primitive(name.to_owned())).arrow() {
        DataType::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|v| v.as_bool()))),
        DataType::Int8 => Arc::new(Int8Array::from_iter(
            values.iter().map(|v| v.as_i64().map(|v| v as i8)),
        )),
        DataType::Int16 => Arc::new(Int16Array::from_iter(
            values.iter().map(|v| v.as_i64().map(|v| v as i16)),
        )),
        DataType::Int32 => Arc::new(ints()),
        DataType::Int64 => Arc::new(longs()),
        DataType::Float32 => Arc::new(Float32Array::from_iter(
            values.iter().map(|v| float(v).map(|v| v as f32)),
        )),
        DataType::Float64 => Arc::new(Float64Array::from_iter(values.iter().map(|v| float(v)))),
        DataType::Decimal128(precision, scale) => {
            let values = values
                .iter()
                .map(|v| v.as_str().map(|v| unscaled(v, scale)));
            let array = Decimal128Array::from_iter(values);
            Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
        }
        DataType::Utf8 => Arc::new(StringArray::from_iter(values.iter().map(|v| v.as_str()))),
        DataType::Binary => Arc::new(BinaryArray::from_iter(bytes())),
        DataType::FixedSizeBinary(width) => Arc::new(
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes().into_iter(), width)
                .unwrap(),
        ),
        // Dates, times and timestamps: the integer, under the logical type's name.
        narrow @ (DataType::Date32 | DataType::Time32(_)) => retyped(&ints(), narrow),
        wide => retyped(&longs(), wide),
    }
}

fn retyped(array: &dyn Array, ty: DataType) -> ArrayRef {
    make_array(
        array
            .to_data()
            .into_builder()
            .data_type(ty)
            .build()
            .unwrap(),
    )
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => Some(text.parse().unwrap()),
        other => other.as_f64(),
    }
}

/// `12.34` at scale 2 is 1234.
pub fn unscaled(text: &str, scale: i8) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert_eq!(
        fraction.len(),
        scale as usize,
        "decimal {text:?}: as many digits after the point as its scale"
    );
    format!("{whole}{fraction}").parse().unwrap()
}

fn scaled(unscaled: i128, scale: i8) -> String {
    let scale = scale as usize;
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The bytes these hexadecimal digits stand for.
pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

/// The rows of Arrow batches.
pub fn json_rows(batches: &[RecordBatch]) -> Vec<Value> {
    let row = |batch: &RecordBatch, i| {
        Value::Array(batch.columns().iter().map(|c| json_value(c, i)).collect())
    };
    batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(move |i| row(batch, i)))
        .collect()
}

/// One value of an Arrow array.
pub fn json_value(array: &dyn Array, i: usize) -> Value {
    if array.is_null(i) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(i)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(i)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(i)),
        DataType::Date32 => json!(array.as_primitive::<Date32Type>().value(i)),
        DataType::Time64(_) | DataType::Timestamp(_, _) => {
            json!(
                PrimitiveArray::<Int64Type>::from(retyped(array, DataType::Int64).to_data())
                    .value(i)
            )
        }
        DataType::Float32 => json_float(array.as_primitive::<Float32Type>().value(i).into()),
        DataType::Float64 => json_float(array.as_primitive::<Float64Type>().value(i)),
        DataType::Decimal128(_, scale) => {
            json!(scaled(
                array
                    .as_any()
                    .downcast_ref::<Decimal128Array>()
                    .unwrap()
                    .value(i),
                *scale
            ))
        }
        DataType::Utf8 => json!(array.as_string::<i32>().value(i)),
        DataType::Binary => json!(hex(array.as_binary::<i32>().value(i))),
        DataType::FixedSizeBinary(_) => json!(hex(array.as_fixed_size_binary().value(i))),
        DataType::Null => Value::Null,
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            fields
                .iter()
                .zip(columns)
                .map(|(f, c)| (f.name().clone(), json_value(c, i)))
                .collect()
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(i);
            (0..items.len()).map(|j| json_value(&items, j)).collect()
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(i);
            let pair = |j| {
                json!([
                    json_value(entries.column(0), j),
                    json_value(entries.column(1), j)
                ])
            };
            (0..entries.len()).map(pair).collect()
        }
        other => panic!("a served file reads as {other}, which no Iceberg type is"),
    }
}

fn json_float(value: f64) -> Value {
    if value.is_finite() {
        json!(value)
    } else {
        json!(value.to_string())
    }
}

/// The Iceberg type that a column of a served file reads as.
pub fn type_name(ty: &DataType) -> String {
    match ty {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Date32 => "date".to_owned(),
        DataType::Time64(TimeUnit::Microsecond) => "time".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamptz".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "timestamp_ns".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => "timestamptz_ns".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::FixedSizeBinary(width) => format!("fixed[{width}]"),
        DataType::Binary => "binary".to_owned(),
        DataType::List(element) => format!("list<{}>", type_name(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|f| format!("{}: {}", f.name(), type_name(f.data_type())))
                .collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(f) => format!(
                "map<{}, {}>",
                type_name(f[0].data_type()),
                type_name(f[1].data_type())
            ),
            other => panic!("a map of {other}"),
        },
        other => other.to_string(),
    }
}
