//! Avro object container files, encoded by hand: manifests and manifest lists of every shape, right or wrong.

use std::io::Write;

use serde_json::{Value, json};

/// An Avro value; which bytes it is follows from the value alone.
#[derive(Clone, Debug)]
pub enum Avro {
    Null,
    Boolean(bool),
    /// `int` and `long` have one encoding.
    Number(i64),
    Float(f32),
    Double(f64),
    /// `string` and `bytes` have one encoding.
    Bytes(Vec<u8>),
    Fixed(Vec<u8>),
    Record(Vec<Avro>),
    Array(Vec<Avro>),
    /// A branch of a union.
    Branch(i64, Box<Avro>),
}

impl Avro {
    pub fn text(text: &str) -> Avro {
        Avro::Bytes(text.as_bytes().to_vec())
    }

    /// A value of the union `["null", type]`.
    pub fn optional(value: Option<Avro>) -> Avro {
        match value {
            None => Avro::Branch(0, Box::new(Avro::Null)),
            Some(value) => Avro::Branch(1, Box::new(value)),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Avro::Null => {}
            Avro::Boolean(value) => out.push(u8::from(*value)),
            Avro::Number(value) => number(out, *value),
            Avro::Float(value) => out.extend(value.to_le_bytes()),
            Avro::Double(value) => out.extend(value.to_le_bytes()),
            Avro::Bytes(bytes) => {
                number(out, bytes.len() as i64);
                out.extend(bytes);
            }
            Avro::Fixed(bytes) => out.extend(bytes),
            Avro::Record(values) => values.iter().for_each(|v| v.encode(out)),
            Avro::Array(values) => {
                if !values.is_empty() {
                    number(out, values.len() as i64);
                    values.iter().for_each(|v| v.encode(out));
                }
                number(out, 0);
            }
            Avro::Branch(branch, value) => {
                number(out, *branch);
                value.encode(out);
            }
        }
    }
}

/// The zigzag variable-length form of a number.
fn number(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push((rest as u8) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A codec of the blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    #[default]
    Null,
    Deflate,
    Snappy,
    Zstandard,
    Bzip2,
}

/// A field of a record: its id, name, Avro type and value.
#[derive(Clone, Debug)]
pub struct Column {
    pub id: i32,
    pub name: String,
    pub ty: Value,
    pub value: Avro,
}

impl Column {
    pub fn required(id: i32, name: &str, ty: Value, value: Avro) -> Column {
        Column {
            id,
            name: name.to_owned(),
            ty,
            value,
        }
    }

    pub fn optional(id: i32, name: &str, ty: Value, value: Option<Avro>) -> Column {
        Column {
            id,
            name: name.to_owned(),
            ty: json!(["null", ty]),
            value: Avro::optional(value),
        }
    }

    fn schema(&self) -> Value {
        let mut field = json!({"name": self.name, "type": self.ty, "field-id": self.id});
        if self.ty.get(0) == Some(&json!("null")) {
            field["default"] = Value::Null;
        }
        field
    }
}

/// A record type of these columns.
pub fn record_type(name: &str, columns: &[Column]) -> Value {
    json!({"type": "record", "name": name, "fields": columns.iter().map(Column::schema).collect::<Vec<_>>()})
}

/// The value of a record of these columns.
pub fn record(columns: Vec<Column>) -> Avro {
    Avro::Record(columns.into_iter().map(|c| c.value).collect())
}

/// An Avro container file of one block (none, if there are no records).
pub fn container(
    schema: &Value,
    metadata: &[(String, String)],
    codec: Codec,
    records: &[Avro],
) -> Vec<u8> {
    const SYNC: [u8; 16] = *b"synchronisation.";
    let codec_name = match codec {
        Codec::Null => "null",
        Codec::Deflate => "deflate",
        Codec::Snappy => "snappy",
        Codec::Zstandard => "zstandard",
        Codec::Bzip2 => "bzip2",
    };
    let mut pairs = vec![
        ("avro.schema".to_owned(), schema.to_string()),
        ("avro.codec".to_owned(), codec_name.into()),
    ];
    pairs.extend_from_slice(metadata);
    let mut out = b"Obj\x01".to_vec();
    number(&mut out, pairs.len() as i64);
    for (key, value) in pairs {
        Avro::text(&key).encode(&mut out);
        Avro::text(&value).encode(&mut out);
    }
    number(&mut out, 0);
    out.extend(SYNC);
    if !records.is_empty() {
        let mut plain = vec![];
        records.iter().for_each(|r| r.encode(&mut plain));
        let block = compress(&plain, codec);
        number(&mut out, records.len() as i64);
        number(&mut out, block.len() as i64);
        out.extend(block);
        out.extend(SYNC);
    }
    out
}

fn compress(plain: &[u8], codec: Codec) -> Vec<u8> {
    match codec {
        Codec::Null => plain.to_vec(),
        Codec::Deflate => {
            let mut encoder =
                flate2::write::DeflateEncoder::new(vec![], flate2::Compression::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(vec![], bzip2::Compression::best());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Snappy => {
            let mut block = snap::raw::Encoder::new().compress_vec(plain).unwrap();
            block.extend(crc32fast::hash(plain).to_be_bytes());
            block
        }
        Codec::Zstandard => zstd::bulk::compress(plain, 3).unwrap(),
    }
}
