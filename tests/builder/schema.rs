//! Schemas in a short notation, and what they are as Iceberg JSON and as an Arrow schema.
//!
//! ```text
//! 1 id: required long, 2 name: string = "n/a", 3 tags: list<4 required string>,
//! 5 at: struct<6 x: double, 7 y: double>, 8 props: map<9 string, 10 int>
//! ```
//!
//! A field is `id name: [required] type [= initial-default as JSON]`; the id `-` stands for none (for schemas of data
//! files whose writer knew no ids). List elements and map keys and values are written without names. A name with a
//! blank or a sign stands in double quotes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, TimeUnit};
use serde_json::{Value, json};

/// A field of a schema of a table or of a data file.
#[derive(Clone, Debug)]
pub struct Field {
    pub id: Option<i32>,
    pub name: String,
    pub required: bool,
    pub ty: Ty,
    pub initial_default: Option<Value>,
}

#[derive(Clone, Debug)]
pub enum Ty {
    /// The type's name as the spec writes it: `long`, `decimal(9,2)`, `fixed[16]`.
    Primitive(String),
    Struct(Vec<Field>),
    List(Box<Field>),
    Map(Box<Field>, Box<Field>),
}

/// Reads the notation of the module's head.
pub fn fields(text: &str) -> Vec<Field> {
    let mut parser = Parser { rest: text };
    let fields = parser.fields();
    assert!(
        parser.rest.is_empty(),
        "schema notation: {:?} is left over of {text:?}",
        parser.rest
    );
    fields
}

/// The `fields` of an Iceberg struct, as JSON.
pub fn fields_json(fields: &[Field]) -> Value {
    Value::Array(fields.iter().map(Field::json).collect())
}

/// An Arrow schema that carries the field ids to the Parquet writer.
pub fn arrow_schema(fields: &[Field]) -> Arc<ArrowSchema> {
    Arc::new(ArrowSchema::new(
        fields.iter().map(Field::arrow).collect::<Vec<_>>(),
    ))
}

/// The field with this id, at any depth.
pub fn find(fields: &[Field], id: i32) -> Option<&Field> {
    fields.iter().find_map(|f| {
        if f.id == Some(id) {
            Some(f)
        } else {
            f.children().find_map(|c| find(std::slice::from_ref(c), id))
        }
    })
}

impl Field {
    /// The field's children, whatever kind of parent it is.
    pub fn children(&self) -> impl Iterator<Item = &Field> {
        let children: Vec<&Field> = match &self.ty {
            Ty::Primitive(_) => vec![],
            Ty::Struct(fields) => fields.iter().collect(),
            Ty::List(element) => vec![element],
            Ty::Map(key, value) => vec![key, value],
        };
        children.into_iter()
    }

    fn json(&self) -> Value {
        let mut field = json!({"id": self.id, "name": self.name, "required": self.required, "type": self.ty.json()});
        if let Some(default) = &self.initial_default {
            field["initial-default"] = default.clone();
            field["write-default"] = default.clone();
        }
        field
    }

    /// The field as Arrow has it, its id in the metadata where the Parquet writer looks for it.
    pub fn arrow(&self) -> ArrowField {
        let field = ArrowField::new(&self.name, self.ty.arrow(), !self.required);
        match self.id {
            Some(id) => field.with_metadata(HashMap::from([(
                "PARQUET:field_id".to_owned(),
                id.to_string(),
            )])),
            None => field,
        }
    }
}

impl Ty {
    /// The type as table metadata writes it.
    pub fn json(&self) -> Value {
        match self {
            Ty::Primitive(name) => json!(name),
            Ty::Struct(fields) => json!({"type": "struct", "fields": fields_json(fields)}),
            Ty::List(element) => json!({
                "type": "list", "element-id": element.id, "element": element.ty.json(),
                "element-required": element.required}),
            Ty::Map(key, value) => json!({
                "type": "map", "key-id": key.id, "key": key.ty.json(), "value-id": value.id,
                "value": value.ty.json(), "value-required": value.required}),
        }
    }

    /// The Arrow type that the Parquet writer stores as the spec's Appendix A asks.
    pub fn arrow(&self) -> DataType {
        match self {
            Ty::Primitive(name) => primitive_arrow(name),
            Ty::Struct(fields) => DataType::Struct(fields.iter().map(Field::arrow).collect()),
            Ty::List(element) => DataType::List(Arc::new(element.arrow())),
            Ty::Map(key, value) => {
                let entries = Fields::from(vec![key.arrow(), value.arrow()]);
                DataType::Map(
                    Arc::new(ArrowField::new(
                        "key_value",
                        DataType::Struct(entries),
                        false,
                    )),
                    false,
                )
            }
        }
    }

    /// The numbers in the type's brackets: `decimal(9,2)` gives 9 and 2.
    pub fn numbers(name: &str) -> Vec<i32> {
        name.split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse().ok())
            .collect()
    }
}

fn primitive_arrow(name: &str) -> DataType {
    let numbers = Ty::numbers(name);
    match name.split(['(', '[']).next().unwrap().trim() {
        "boolean" => DataType::Boolean,
        "int" => DataType::Int32,
        "long" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "decimal" => DataType::Decimal128(numbers[0] as u8, numbers[1] as i8),
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "timestamptz_ns" => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        "string" => DataType::Utf8,
        "uuid" => DataType::FixedSizeBinary(16),
        "fixed" => DataType::FixedSizeBinary(numbers[0]),
        "binary" => DataType::Binary,
        // Types of data files only: what writers of smaller integers and of milliseconds leave behind.
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "timestamp_ms" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "time_ms" => DataType::Time32(TimeUnit::Millisecond),
        other => panic!("schema notation: no Arrow type for {other:?}"),
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn fields(&mut self) -> Vec<Field> {
        let mut fields = vec![];
        while !self.rest.trim_start().is_empty() && !self.rest.trim_start().starts_with('>') {
            let id = self.id();
            let name = self.name();
            self.sign(':');
            fields.push(self.typed(id, name));
            if !self.eat(',') {
                break;
            }
        }
        self.rest = self.rest.trim_start();
        fields
    }

    /// `[required] type [= default]`.
    fn typed(&mut self, id: Option<i32>, name: String) -> Field {
        let required = self.eat_word("required");
        let ty = self.ty();
        let initial_default = self.eat('=').then(|| self.json());
        Field {
            id,
            name,
            required,
            ty,
            initial_default,
        }
    }

    fn ty(&mut self) -> Ty {
        if self.eat_word("struct<") {
            let fields = self.fields();
            self.sign('>');
            return Ty::Struct(fields);
        }
        if self.eat_word("list<") {
            let id = self.id();
            let element = self.typed(id, "element".to_owned());
            self.sign('>');
            return Ty::List(Box::new(element));
        }
        if self.eat_word("map<") {
            let id = self.id();
            let mut key = self.typed(id, "key".to_owned());
            key.required = true;
            self.sign(',');
            let id = self.id();
            let value = self.typed(id, "value".to_owned());
            self.sign('>');
            return Ty::Map(Box::new(key), Box::new(value));
        }
        // Signs inside brackets belong to the type's name: `decimal(9, 2)`.
        let mut depth = 0;
        let text = self.rest.trim_start();
        let end = text.char_indices().find(|(_, c)| {
            depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
            depth == 0 && matches!(c, ',' | '>' | '=')
        });
        let (name, rest) = text.split_at(end.map_or(text.len(), |(at, _)| at));
        self.rest = rest;
        Ty::Primitive(name.trim().to_owned())
    }

    fn id(&mut self) -> Option<i32> {
        let text = self.rest.trim_start();
        if let Some(rest) = text.strip_prefix('-') {
            self.rest = rest;
            return None;
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        self.rest = &text[end..];
        Some(
            text[..end]
                .parse()
                .unwrap_or_else(|_| panic!("schema notation: an id, not {text:?}")),
        )
    }

    fn name(&mut self) -> String {
        let text = self.rest.trim_start();
        if text.starts_with('"') {
            let Value::String(name) = self.json() else {
                unreachable!()
            };
            return name;
        }
        let (name, rest) = text.split_at(
            text.find(':')
                .unwrap_or_else(|| panic!("schema notation: ':' in {text:?}")),
        );
        self.rest = rest;
        name.trim().to_owned()
    }

    fn json(&mut self) -> Value {
        let text = self.rest.trim_start();
        if !text.starts_with(['"', '{', '[']) {
            // A number or a word ends where the field does.
            let (word, rest) = text.split_at(text.find([',', '>']).unwrap_or(text.len()));
            self.rest = rest;
            return serde_json::from_str(word).unwrap();
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        let value = values.next().unwrap().unwrap();
        self.rest = &text[values.byte_offset()..];
        value
    }

    fn eat(&mut self, sign: char) -> bool {
        match self.rest.trim_start().strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        match self.rest.trim_start().strip_prefix(word) {
            Some(rest) if word.ends_with('<') || rest.starts_with(' ') => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn sign(&mut self, sign: char) {
        assert!(
            self.eat(sign),
            "schema notation: {sign:?}, not {:?}",
            self.rest
        );
    }
}
