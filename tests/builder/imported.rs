//! Parquet files of any schema and any physical types, column by column, as other engines write them.

use std::sync::Arc;

use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// The present values of one leaf column in one row group.
#[derive(Clone, Debug)]
pub enum Values {
    Booleans(Vec<bool>),
    Int32s(Vec<i32>),
    Int64s(Vec<i64>),
    /// Julian day, and nanoseconds of it.
    Int96s(Vec<(i32, i64)>),
    Bytes(Vec<Vec<u8>>),
    Fixed(Vec<Vec<u8>>),
}

/// One leaf column in one row group.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub values: Values,
    pub definition: Vec<i16>,
    pub repetition: Vec<i16>,
}

impl Chunk {
    /// A flat column in which every row has a value.
    pub fn dense(values: Values) -> Chunk {
        let rows = match &values {
            Values::Booleans(v) => v.len(),
            Values::Int32s(v) => v.len(),
            Values::Int64s(v) => v.len(),
            Values::Int96s(v) => v.len(),
            Values::Bytes(v) | Values::Fixed(v) => v.len(),
        };
        Chunk::flat(values, &vec![1; rows])
    }

    /// A flat column, with the definition level of each row.
    pub fn flat(values: Values, definition: &[i16]) -> Chunk {
        Chunk::nested(values, definition, &[])
    }

    pub fn nested(values: Values, definition: &[i16], repetition: &[i16]) -> Chunk {
        Chunk {
            values,
            definition: definition.to_vec(),
            repetition: repetition.to_vec(),
        }
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>) {
        match &self.values {
            Values::Booleans(v) => self.put::<BoolType>(group, v),
            Values::Int32s(v) => self.put::<Int32Type>(group, v),
            Values::Int64s(v) => self.put::<Int64Type>(group, v),
            Values::Int96s(v) => {
                let values: Vec<Int96> = v.iter().map(|(day, nanos)| int96(*day, *nanos)).collect();
                self.put::<Int96Type>(group, &values);
            }
            Values::Bytes(v) => {
                let values: Vec<ByteArray> = v.iter().map(|v| ByteArray::from(v.clone())).collect();
                self.put::<ByteArrayType>(group, &values);
            }
            Values::Fixed(v) => {
                let values: Vec<FixedLenByteArray> = v
                    .iter()
                    .map(|v| FixedLenByteArray::from(v.clone()))
                    .collect();
                self.put::<FixedLenByteArrayType>(group, &values);
            }
        }
    }

    fn put<T: DataType>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
        values: &[T::T],
    ) {
        let mut column = group
            .next_column()
            .unwrap()
            .expect("a column for each chunk");
        let levels = |levels: &'_ [i16]| (!levels.is_empty()).then(|| levels.to_vec());
        column
            .typed::<T>()
            .write_batch(
                values,
                levels(&self.definition).as_deref(),
                levels(&self.repetition).as_deref(),
            )
            .unwrap();
        column.close().unwrap();
    }
}

fn int96(day: i32, nanos: i64) -> Int96 {
    let mut value = Int96::new();
    let nanos = nanos.cast_unsigned();
    value.set_data(nanos as u32, (nanos >> 32) as u32, day.cast_unsigned());
    value
}

/// A file of this schema (in Parquet's notation, without the message around it), with these row groups.
pub fn parquet_file(
    columns: &str,
    groups: &[Vec<Chunk>],
    change: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
) -> Vec<u8> {
    let schema = parse_message_type(&format!("message t {{ {columns} }}")).unwrap();
    let properties = Arc::new(change(WriterProperties::builder()).build());
    let mut bytes = vec![];
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), properties).unwrap();
    for group in groups {
        let mut out = writer.next_row_group().unwrap();
        group.iter().for_each(|chunk| chunk.write(&mut out));
        out.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}
