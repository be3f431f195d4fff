//! Columns of every type and encoding, and values for them.

use parquet::basic::Encoding;
use serde_json::{Value, json};

use crate::builder::schema::{Field, Ty};

/// A small generator of numbers: the same for the same seed, on every machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
}

/// How the values of a file are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// How many different values a column has, at most.
    pub distinct: u64,
    /// Nulls in a hundred.
    pub nulls: u64,
}

/// A column's type in the builder's notation, and its encoding: `None` is the dictionary.
pub type Column = (&'static str, Option<Encoding>);

/// Every primitive type in every encoding that writers use for it.
pub const FLAT: &[Column] = &[
    ("boolean", Some(Encoding::PLAIN)),
    ("boolean", Some(Encoding::RLE)),
    ("int", None),
    ("int", Some(Encoding::PLAIN)),
    ("int", Some(Encoding::DELTA_BINARY_PACKED)),
    ("int", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("long", None),
    ("long", Some(Encoding::PLAIN)),
    ("long", Some(Encoding::DELTA_BINARY_PACKED)),
    ("long", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("required long", Some(Encoding::PLAIN)),
    ("required long", Some(Encoding::DELTA_BINARY_PACKED)),
    ("float", None),
    ("float", Some(Encoding::PLAIN)),
    ("float", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("double", None),
    ("double", Some(Encoding::PLAIN)),
    ("double", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("decimal(9,2)", Some(Encoding::DELTA_BINARY_PACKED)),
    ("decimal(18,4)", Some(Encoding::PLAIN)),
    ("decimal(38,10)", None),
    ("decimal(38,10)", Some(Encoding::PLAIN)),
    ("decimal(38,10)", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("decimal(38,10)", Some(Encoding::DELTA_BYTE_ARRAY)),
    ("date", None),
    ("date", Some(Encoding::DELTA_BINARY_PACKED)),
    ("time", Some(Encoding::PLAIN)),
    ("timestamp", None),
    ("timestamp", Some(Encoding::DELTA_BINARY_PACKED)),
    ("timestamptz", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("timestamp_ns", Some(Encoding::DELTA_BINARY_PACKED)),
    ("string", None),
    ("string", Some(Encoding::PLAIN)),
    ("string", Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
    ("string", Some(Encoding::DELTA_BYTE_ARRAY)),
    ("required string", None),
    ("required string", Some(Encoding::DELTA_BYTE_ARRAY)),
    ("uuid", None),
    ("uuid", Some(Encoding::BYTE_STREAM_SPLIT)),
    ("fixed[5]", Some(Encoding::PLAIN)),
    ("fixed[5]", Some(Encoding::DELTA_BYTE_ARRAY)),
    ("binary", None),
    ("binary", Some(Encoding::PLAIN)),
    ("binary", Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
];

/// Every shape of nesting. The ids are made up when the columns are put together.
pub const NESTED: &[Column] = &[
    ("struct<0 a: long, 0 b: string>", Some(Encoding::PLAIN)),
    ("required struct<0 a: required long, 0 b: string>", None),
    (
        "struct<0 a: struct<0 b: struct<0 c: int>>>",
        Some(Encoding::DELTA_BINARY_PACKED),
    ),
    ("list<0 long>", Some(Encoding::PLAIN)),
    ("list<0 required long>", Some(Encoding::DELTA_BINARY_PACKED)),
    ("required list<0 string>", None),
    ("list<0 boolean>", Some(Encoding::PLAIN)),
    (
        "list<0 struct<0 a: double, 0 b: required string>>",
        Some(Encoding::PLAIN),
    ),
    ("map<0 string, 0 long>", None),
    ("map<0 string, 0 long>", Some(Encoding::PLAIN)),
    ("map<0 int, 0 struct<0 a: string>>", Some(Encoding::PLAIN)),
    ("list<0 list<0 int>>", Some(Encoding::PLAIN)),
    ("list<0 list<0 string>>", Some(Encoding::DELTA_BYTE_ARRAY)),
    (
        "map<0 string, 0 list<0 long>>",
        Some(Encoding::BYTE_STREAM_SPLIT),
    ),
    (
        "struct<0 a: list<0 fixed[3]>, 0 b: map<0 long, 0 date>>",
        None,
    ),
];

/// Columns, and what the table has made of them since: wider, optional, with a leaf more.
pub const PROMOTED: &[(Column, Column)] = &[
    (("int", None), ("long", None)),
    (
        ("int", Some(Encoding::PLAIN)),
        ("long", Some(Encoding::DELTA_BINARY_PACKED)),
    ),
    (
        ("int", Some(Encoding::DELTA_BINARY_PACKED)),
        ("long", Some(Encoding::PLAIN)),
    ),
    (
        ("required int", Some(Encoding::BYTE_STREAM_SPLIT)),
        ("long", None),
    ),
    (
        ("required long", Some(Encoding::DELTA_BINARY_PACKED)),
        ("long", Some(Encoding::BYTE_STREAM_SPLIT)),
    ),
    (("float", None), ("double", Some(Encoding::PLAIN))),
    (
        ("float", Some(Encoding::BYTE_STREAM_SPLIT)),
        ("double", Some(Encoding::BYTE_STREAM_SPLIT)),
    ),
    (
        ("decimal(7,2)", Some(Encoding::PLAIN)),
        ("decimal(9,2)", None),
    ),
    (
        ("decimal(9,2)", None),
        ("decimal(18,2)", Some(Encoding::PLAIN)),
    ),
    (
        ("decimal(9,2)", Some(Encoding::DELTA_BINARY_PACKED)),
        ("decimal(38,2)", None),
    ),
    (
        ("decimal(18,4)", Some(Encoding::PLAIN)),
        ("decimal(20,4)", Some(Encoding::PLAIN)),
    ),
    (
        ("required decimal(20,4)", Some(Encoding::PLAIN)),
        ("decimal(38,4)", None),
    ),
    (
        ("decimal(20,4)", Some(Encoding::DELTA_BYTE_ARRAY)),
        ("decimal(30,4)", Some(Encoding::DELTA_BYTE_ARRAY)),
    ),
    (
        ("date", None),
        ("timestamp", Some(Encoding::DELTA_BINARY_PACKED)),
    ),
    (
        ("date", Some(Encoding::DELTA_BINARY_PACKED)),
        ("timestamp", Some(Encoding::PLAIN)),
    ),
    (
        ("required string", Some(Encoding::DELTA_BYTE_ARRAY)),
        ("string", Some(Encoding::PLAIN)),
    ),
    (("required string", None), ("string", None)),
    (("required uuid", Some(Encoding::PLAIN)), ("uuid", None)),
    (
        ("list<0 int>", Some(Encoding::PLAIN)),
        ("list<0 long>", None),
    ),
    (
        ("required list<0 required int>", None),
        ("list<0 long>", Some(Encoding::DELTA_BINARY_PACKED)),
    ),
    (
        ("map<0 string, 0 float>", None),
        ("map<0 string, 0 double>", Some(Encoding::PLAIN)),
    ),
    (
        (
            "required struct<0 a: required int, 0 b: required string>",
            None,
        ),
        ("struct<0 a: long, 0 b: string>", Some(Encoding::PLAIN)),
    ),
    (
        (
            "list<0 list<0 required int>>",
            Some(Encoding::DELTA_BINARY_PACKED),
        ),
        ("list<0 list<0 long>>", None),
    ),
];

/// The notation of a schema of these columns, named `c0`, `c1`, …
pub fn notation(columns: &[Column]) -> String {
    let mut next = 100;
    let columns = columns.iter().enumerate().map(|(i, (ty, _))| {
        let mut parts = ty.split("0 ");
        let mut text = format!("{} c{i}: {}", i + 1, parts.next().unwrap());
        for part in parts {
            next += 1;
            text += &format!("{next} {part}");
        }
        text
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// A leaf column: its path, as Parquet has it, and its Iceberg type.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub path: Vec<String>,
    ty: String,
}

impl Leaf {
    /// The wished encoding, where the leaf's type has it; PLAIN where it has not.
    pub fn encoding(&self, wish: Encoding) -> Encoding {
        let (name, numbers) = (
            self.ty.split(['(', '[']).next().unwrap(),
            Ty::numbers(&self.ty),
        );
        let bytes = matches!(name, "string" | "binary");
        let fixed = matches!(name, "uuid" | "fixed") || (name == "decimal" && numbers[0] > 18);
        let float = matches!(name, "float" | "double");
        let integer = !(bytes || fixed || float || name == "boolean");
        let has = match wish {
            Encoding::RLE => name == "boolean",
            Encoding::DELTA_BINARY_PACKED => integer,
            Encoding::BYTE_STREAM_SPLIT => integer || float || fixed,
            Encoding::DELTA_LENGTH_BYTE_ARRAY => bytes,
            Encoding::DELTA_BYTE_ARRAY => bytes || fixed,
            _ => true,
        };
        if has { wish } else { Encoding::PLAIN }
    }
}

/// The leaf columns of a field, below the groups whose names are given.
pub fn leaves(field: &Field, above: &[String]) -> Vec<Leaf> {
    let mut path = above.to_vec();
    path.push(field.name.clone());
    match &field.ty {
        Ty::Primitive(ty) => {
            return vec![Leaf {
                path,
                ty: ty.clone(),
            }];
        }
        Ty::Struct(_) => {}
        Ty::List(_) => path.push("list".to_owned()),
        Ty::Map(_, _) => path.push("key_value".to_owned()),
    }
    field
        .children()
        .flat_map(|child| leaves(child, &path))
        .collect()
}

/// A value of a field's type.
pub fn value(field: &Field, dice: &mut Dice, draw: Draw) -> Value {
    if !field.required && dice.below(100) < draw.nulls {
        return Value::Null;
    }
    match &field.ty {
        Ty::Struct(fields) => fields
            .iter()
            .map(|f| (f.name.clone(), value(f, dice, draw)))
            .collect(),
        Ty::List(element) => (0..dice.below(4))
            .map(|_| value(element, dice, draw))
            .collect(),
        Ty::Map(key, item) => {
            // Readers want the keys of a map to differ.
            let mut pairs: Vec<Value> = vec![];
            for _ in 0..dice.below(3) {
                let key = value(key, dice, draw);
                if pairs.iter().all(|pair| pair[0] != key) {
                    pairs.push(json!([key, value(item, dice, draw)]));
                }
            }
            Value::Array(pairs)
        }
        Ty::Primitive(name) => primitive(name, dice.below(draw.distinct)),
    }
}

/// The `k`th value of a primitive type; the first are its extremes.
fn primitive(name: &str, k: u64) -> Value {
    let mut dice = Dice::new(k);
    let noise = dice.next();
    let hex = |len: usize| {
        (0..len)
            .map(|i| format!("{:02x}", (noise >> (i % 8 * 8)) as u8))
            .collect::<String>()
    };
    match name.split(['(', '[']).next().unwrap() {
        "boolean" => json!(k.is_multiple_of(3)),
        "int" => json!([i32::MIN, i32::MAX, noise as i32 % 1000, noise as i32][k.min(3) as usize]),
        "long" | "timestamp_ns" => {
            json!([i64::MIN, i64::MAX, noise as i64 % 1000, noise as i64][k.min(3) as usize])
        }
        "float" => match k {
            0 => json!("NaN"),
            1 => json!(-0.0),
            2 => json!("-inf"),
            _ => json!(f64::from((noise as i32) as f32 / 64.0)),
        },
        "double" => match k {
            0 => json!("NaN"),
            1 => json!(0.0),
            2 => json!("inf"),
            _ => json!((noise as i64) as f64 / 1e6),
        },
        "decimal" => {
            let numbers = Ty::numbers(name);
            let (precision, scale) = (numbers[0] as usize, numbers[1] as usize);
            let digits = if k < 2 {
                "9".repeat(precision)
            } else {
                format!("{:01$}", noise % 99_999_999, precision)
            };
            let sign = if k.is_multiple_of(2) { "-" } else { "" };
            let sign = if digits.bytes().all(|d| d == b'0') {
                ""
            } else {
                sign
            };
            let digits = digits[digits.len() - precision..].to_owned();
            let (whole, fraction) = digits.split_at(precision - scale);
            let whole = whole.trim_start_matches('0');
            let whole = if whole.is_empty() { "0" } else { whole };
            json!(format!("{sign}{whole}.{fraction}"))
        }
        "date" => json!((noise % 60_000) as i64 - 20_000),
        "time" => json!(noise % 86_400_000_000),
        "timestamp" | "timestamptz" => json!((noise >> 12) as i64 - (1 << 50)),
        "string" => match k {
            0 => json!(""),
            1 => json!(
                "\u{1f9ca} long enough to be cut short in statistics, which keep sixty-four bytes of it at most"
            ),
            _ => json!(format!("prefix-{:03}/{}", k % 7, hex((k % 9) as usize))),
        },
        "uuid" => json!(hex(16)),
        "fixed" => json!(hex(Ty::numbers(name)[0] as usize)),
        "binary" => json!(hex((k % 12) as usize)),
        other => panic!("no values of {other}"),
    }
}
