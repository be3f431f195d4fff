//! Parquet files by message type and column levels: what Arrow cannot say.

use parquet::data_type::DataType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// A file of one row group, its columns written in order.
pub struct RawFile<'a> {
    group: SerializedRowGroupWriter<'a, Vec<u8>>,
}

impl RawFile<'_> {
    /// The next leaf column: values that are there, and levels where the column has any.
    pub fn column<T: DataType>(&mut self, values: &[T::T], defs: &[i16], reps: &[i16]) {
        let mut column = self.group.next_column().unwrap().expect("a column more");
        let levels = |levels: &'_ [i16]| (!levels.is_empty()).then(|| levels.to_vec());
        column
            .typed::<T>()
            .write_batch(values, levels(defs).as_deref(), levels(reps).as_deref())
            .unwrap();
        column.close().unwrap();
    }
}

/// The bytes of a file with this schema: `message m { optional int96 at = 1; }`.
pub fn raw_file(message: &str, write: impl FnOnce(&mut RawFile<'_>)) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let mut writer =
        SerializedFileWriter::new(vec![], schema, Arc::new(WriterProperties::default())).unwrap();
    {
        let mut file = RawFile {
            group: writer.next_row_group().unwrap(),
        };
        write(&mut file);
        file.group.close().unwrap();
    }
    writer.into_inner().unwrap()
}
