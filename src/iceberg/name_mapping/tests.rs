#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::NameMapping;
use crate::iceberg::types::FieldId;

#[test]
fn rule_41_mappings_are_recursive_with_several_names_per_id() {
    let mapping = NameMapping::parse(
        r#"[{"field-id": 1, "names": ["id", "record_id"]},
            {"field-id": 2, "names": ["points"], "fields": [
              {"field-id": 3, "names": ["element"], "fields": [{"field-id": 4, "names": ["x"]}]}]},
            {"names": ["ignored"]},
            {"field-id": 5, "names": ["a.b"]},
            {"field-id": 6, "names": []}]"#,
    )
    .unwrap();
    assert_eq!(mapping.find("id").unwrap().field_id, Some(FieldId(1)));
    assert_eq!(
        mapping.find("record_id").unwrap().field_id,
        Some(FieldId(1))
    );
    let element = mapping
        .find("points")
        .unwrap()
        .fields
        .find("element")
        .unwrap();
    assert_eq!(element.fields.find("x").unwrap().field_id, Some(FieldId(4)));
    assert_eq!(mapping.find("ignored").unwrap().field_id, None);
    assert_eq!(mapping.find("a.b").unwrap().field_id, Some(FieldId(5)));
    assert!(mapping.find("a").is_none());
}

#[test]
fn rule_41_broken_mappings_are_errors() {
    let error = |text: &str| NameMapping::parse(text).unwrap_err().to_string();
    assert!(error("{}").contains("array"));
    assert!(error("[").contains("EOF"));
    assert_eq!(
        error(r#"[{"field-id": 1}]"#),
        "[0].names: is required but missing"
    );
    assert!(
        error(r#"[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]"#)
            .contains("two fields")
    );
}
