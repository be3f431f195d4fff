#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value as Json, json};

use super::{Schema, SchemaId};
use crate::iceberg::types::{FieldId, Type};
use crate::iceberg::value::Value;

fn nested() -> Json {
    json!({
        "type": "struct",
        "schema-id": 7,
        "identifier-field-ids": [1],
        "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long", "doc": "the key"},
            {"id": 2, "name": "tags", "required": false, "type": {
                "type": "list", "element-id": 3, "element-required": false, "element": "string"}},
            {"id": 4, "name": "by.name", "required": false, "type": {
                "type": "map", "key-id": 5, "key": "string", "value-id": 6, "value-required": true, "value": {
                    "type": "struct", "fields": [
                        {"id": 8, "name": "x", "required": false, "type": "int", "initial-default": 5}]}}},
        ],
    })
}

fn with_field(field: Json) -> Json {
    json!({ "type": "struct", "fields": [field] })
}

fn default_of(ty: Json, default: Json) -> Result<Option<Value>, String> {
    let json =
        json!({"id": 1, "name": "a", "required": false, "type": ty, "initial-default": default});
    let schema = Schema::from_json(&with_field(json)).map_err(|e| e.to_string())?;
    Ok(schema.fields.fields[0].initial_default.clone())
}

#[test]
fn rule_03_a_v1_schema_without_an_id_has_id_zero() {
    let schema = Schema::from_json(&json!({"type": "struct", "fields": []})).unwrap();
    assert_eq!(schema.id, SchemaId(0));
}

#[test]
fn schemas_write_the_json_they_were_read_from() {
    assert_eq!(Schema::from_json(&nested()).unwrap().to_json(), nested());
}

#[test]
fn fields_are_found_by_id_and_by_path_at_any_depth() {
    let schema = Schema::from_json(&nested()).unwrap();
    let x = schema.field_by_id(FieldId(8)).unwrap();
    assert_eq!((x.name.as_str(), x.ty.to_string().as_str()), ("x", "int"));
    let path: Vec<&str> = schema
        .path_to(FieldId(8))
        .unwrap()
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(path, ["by.name", "value", "x"]);
    assert_eq!(
        schema.field_by_path(&["by.name", "value", "x"]).unwrap().id,
        FieldId(8)
    );
    assert_eq!(
        schema.field_by_path(&["tags", "element"]).unwrap().id,
        FieldId(3)
    );
    assert!(schema.field_by_path(&["by", "name"]).is_none());
    assert!(schema.field_by_id(FieldId(7)).is_none());
}

#[test]
fn a_field_id_used_twice_is_an_error() {
    let mut json = nested();
    json["fields"][2]["type"]["value"]["fields"][0]["id"] = json!(3);
    let error = Schema::from_json(&json).unwrap_err().to_string();
    assert_eq!(
        error,
        "fields[2].type.value.fields[0].id: field id 3 is used twice in one schema"
    );
}

#[test]
fn errors_name_the_place() {
    let json = with_field(json!({"id": 1, "name": "a", "required": true, "type": "strin"}));
    let error = Schema::from_json(&json).unwrap_err().to_string();
    assert_eq!(
        error,
        "fields[0].type.type: expected a type of the table format, found \"strin\""
    );
    let json = with_field(json!({"id": 1, "required": true, "type": "int"}));
    assert_eq!(
        Schema::from_json(&json).unwrap_err().to_string(),
        "fields[0].name: is required but missing"
    );
}

#[test]
fn nesting_is_bounded() {
    let mut ty = json!("int");
    for level in 0..150 {
        ty = json!({"type": "list", "element-id": level + 10, "element-required": true, "element": ty});
    }
    let error = Schema::from_json(&with_field(
        json!({"id": 1, "name": "a", "required": true, "type": ty}),
    ));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("nested deeper than 100 levels")
    );
}

#[test]
fn rule_44_a_null_default_is_no_default() {
    assert_eq!(default_of(json!("int"), Json::Null), Ok(None));
    assert_eq!(default_of(json!("variant"), Json::Null), Ok(None));
}

#[test]
fn rule_44_unknown_variant_and_geo_default_to_null_only() {
    for ty in ["unknown", "variant", "geometry", "geography"] {
        assert!(
            default_of(json!(ty), json!("x"))
                .unwrap_err()
                .contains("null"),
            "{ty}"
        );
    }
}

#[test]
fn rule_44_an_empty_struct_default_takes_the_defaults_of_its_leaves() {
    let ty = json!({"type": "struct", "fields": [
        {"id": 2, "name": "x", "required": false, "type": "int", "initial-default": 34},
        {"id": 3, "name": "y", "required": false, "type": "string"},
    ]});
    let default = default_of(ty.clone(), json!({})).unwrap();
    assert_eq!(
        default,
        Some(Value::Struct(vec![Some(Value::Int(34)), None]))
    );
    assert_eq!(default_of(ty, Json::Null).unwrap(), None);
}

#[test]
fn rule_44_write_defaults_do_not_matter() {
    let json = with_field(
        json!({"id": 1, "name": "a", "required": false, "type": "int", "write-default": 1}),
    );
    let schema = Schema::from_json(&json).unwrap();
    assert_eq!(schema.fields.fields[0].initial_default, None);
    assert!(matches!(schema.fields.fields[0].ty, Type::Primitive(_)));
}
