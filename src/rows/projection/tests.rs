#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::sync::Arc;

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use super::*;
use crate::iceberg::name_mapping::MappedField;
use crate::rows::parquet_reader::file_schema;

/// A file's schema, from Parquet's own notation: `required int64 a = 1;`.
fn file(fields: &str) -> FileSchema {
    let message = parse_message_type(&format!("message m {{ {fields} }}")).unwrap();
    file_schema(&SchemaDescriptor::new(Arc::new(message))).unwrap()
}

fn optional(id: i32, name: &str, ty: Type) -> NestedField {
    NestedField {
        id: FieldId(id),
        name: name.into(),
        required: false,
        ty,
        doc: None,
        initial_default: None,
    }
}

fn required(id: i32, name: &str, ty: Type) -> NestedField {
    NestedField {
        required: true,
        ..optional(id, name, ty)
    }
}

fn with_default(field: NestedField, default: Value) -> NestedField {
    NestedField {
        initial_default: Some(default),
        ..field
    }
}

fn of(ty: PrimitiveType) -> Type {
    Type::Primitive(ty)
}

fn structure(fields: impl IntoIterator<Item = NestedField>) -> Type {
    Type::Struct(StructType {
        fields: fields.into_iter().map(Arc::new).collect(),
    })
}

fn list(id: i32, element: Type) -> Type {
    Type::List(Box::new(ListType {
        element: Arc::new(optional(id, "element", element)),
    }))
}

fn map(key: i32, value: i32, value_type: Type) -> Type {
    Type::Map(Box::new(MapType {
        key: Arc::new(required(key, "key", of(PrimitiveType::String))),
        value: Arc::new(optional(value, "value", value_type)),
    }))
}

const LONG: Type = Type::Primitive(PrimitiveType::Long);
const INT: Type = Type::Primitive(PrimitiveType::Int);
const STRING: Type = Type::Primitive(PrimitiveType::String);

fn context() -> ProjectionContext<'static> {
    ProjectionContext {
        path: "data.parquet",
        name_mapping: None,
        names_are_mapping: false,
        tells_zones: false,
        partition: HashMap::new(),
    }
}

fn in_partition(id: i32, value: Option<Value>) -> ProjectionContext<'static> {
    ProjectionContext {
        names_are_mapping: false,
        partition: HashMap::from([(FieldId(id), value)]),
        ..context()
    }
}

fn resolve(
    view: impl IntoIterator<Item = NestedField>,
    schema: &str,
) -> Result<Projection, RowsError> {
    resolve_with(view, schema, &context())
}

fn resolve_with(
    view: impl IntoIterator<Item = NestedField>,
    schema: &str,
    context: &ProjectionContext<'_>,
) -> Result<Projection, RowsError> {
    let view: Vec<Arc<NestedField>> = view.into_iter().map(Arc::new).collect();
    project(&view, &file(schema), context)
}

/// A projection as text, with nodes numbered depth first from 0.
fn show(fields: &[ProjectedField]) -> String {
    let each: Vec<String> = fields.iter().map(show_one).collect();
    each.join(", ")
}

fn show_one(field: &ProjectedField) -> String {
    match &field.source {
        FieldSource::Constant(None) => "null".into(),
        FieldSource::Constant(Some(value)) => format!("{value:?}"),
        FieldSource::Leaf { node } => format!("leaf {node}"),
        FieldSource::Variant { node } => format!("variant {node}"),
        FieldSource::Struct { node, fields } => format!("struct {node} ({})", show(fields)),
        FieldSource::List {
            outer,
            repeated,
            element,
        } => {
            format!("list {outer} {repeated} ({})", show_one(element))
        }
        FieldSource::Map {
            outer,
            repeated,
            key,
            value,
        } => {
            format!(
                "map {outer} {repeated} ({}, {})",
                show_one(key),
                show_one(value)
            )
        }
    }
}

fn shown(projection: Result<Projection, RowsError>) -> String {
    show(&projection.unwrap().fields)
}

#[test]
fn rule_40_columns_are_found_by_id_whatever_their_names_and_order() {
    let view = [optional(1, "a", LONG), optional(2, "b", STRING)];
    let schema = "optional binary a (STRING) = 2; optional int64 b = 1; optional int32 c = 3;";
    assert_eq!(shown(resolve(view, schema)), "leaf 1, leaf 0");
}

#[test]
fn rule_40_absent_column_takes_partition_value_then_default_then_null() {
    let absent = || with_default(optional(2, "b", LONG), Value::Long(7));
    let schema = "optional int64 a = 1;";
    let partition = in_partition(2, Some(Value::Int(5)));
    assert_eq!(
        shown(resolve_with([absent()], schema, &partition)),
        "Long(5)"
    );
    assert_eq!(
        shown(resolve_with([absent()], schema, &in_partition(2, None))),
        "null"
    );
    assert_eq!(shown(resolve([absent()], schema)), "Long(7)");
    assert_eq!(shown(resolve([optional(2, "b", LONG)], schema)), "null");
}

#[test]
fn rule_40_a_stored_column_wins_over_the_partition_value() {
    let partition = in_partition(1, Some(Value::Long(5)));
    assert_eq!(
        shown(resolve_with(
            [optional(1, "a", LONG)],
            "optional int64 a = 1;",
            &partition
        )),
        "leaf 0"
    );
}

#[test]
fn rule_40_required_column_with_nothing_to_stand_in_is_an_error() {
    let schema = "optional int64 a = 1;";
    let error = resolve([required(2, "b", LONG)], schema).unwrap_err();
    assert!(!error.is_unsupported());
    assert_eq!(
        error.to_string(),
        r#"data.parquet: the required column "b" (field id 2) is absent and has no default"#
    );
    let filled = with_default(required(2, "b", LONG), Value::Long(1));
    assert_eq!(shown(resolve([filled], schema)), "Long(1)");
    resolve_with([required(2, "b", LONG)], schema, &in_partition(2, None)).unwrap_err();
}

#[test]
fn rule_40_partition_value_of_another_type_is_an_error() {
    let partition = in_partition(2, Some(Value::String("x".into())));
    resolve_with(
        [optional(2, "b", LONG)],
        "optional int64 a = 1;",
        &partition,
    )
    .unwrap_err();
}

#[test]
fn rule_40_only_identity_fields_of_the_files_own_spec_give_constants() {
    use crate::iceberg::manifest::{FileContent, FileFormat, PartitionTuple};
    use crate::iceberg::partition::{PartitionField, SpecId};
    let field = |source, field_id, transform| PartitionField {
        source_ids: vec![FieldId(source)],
        field_id: FieldId(field_id),
        name: format!("p{field_id}"),
        transform,
    };
    let spec = PartitionSpec {
        id: SpecId(3),
        fields: vec![
            field(1, 1000, Transform::Bucket(4)),
            field(2, 1001, Transform::Identity),
            field(3, 1002, Transform::Void),
        ],
    };
    let tuple = [
        (1000, Some(Value::Int(3))),
        (1001, Some(Value::Int(9))),
        (1002, None),
    ];
    let data_file = DataFile {
        content: FileContent::Data,
        path: "data.parquet".into(),
        format: FileFormat::Parquet,
        spec_id: SpecId(3),
        partition: Arc::new(PartitionTuple {
            fields: tuple.map(|(id, value)| (FieldId(id), value)).into(),
        }),
        record_count: 1,
        file_size: 1,
        split_offsets_count: 0,
        first_row_id: None,
        column_statistics: None,
        delete_details: None,
        key_metadata: false,
    };
    let context = ProjectionContext::new(&data_file, Some(&spec), None);
    assert_eq!(
        context.partition,
        HashMap::from([(FieldId(2), Some(Value::Int(9)))])
    );
}

#[test]
fn rule_40_nested_fields_project_like_top_level_ones() {
    let view = [optional(
        1,
        "s",
        structure([
            optional(3, "y", LONG),
            with_default(optional(4, "z", INT), Value::Int(9)),
            optional(5, "w", INT),
        ]),
    )];
    let schema = "optional group old = 1 { optional int32 a = 2; required int64 b = 3; }";
    assert_eq!(
        shown(resolve(view, schema)),
        "struct 0 (leaf 2, Int(9), null)"
    );
}

#[test]
fn rule_41_name_mapping_is_used_only_where_the_file_has_no_ids_at_all() {
    let mapped = |id: Option<i32>, names: &[&str], fields: Vec<MappedField>| MappedField {
        field_id: id.map(FieldId),
        names: names.iter().map(|n| (*n).to_owned()).collect(),
        fields: NameMapping { fields },
    };
    let mapping = NameMapping {
        fields: vec![
            mapped(Some(1), &["id", "old.id"], vec![]),
            mapped(None, &["ignored"], vec![]),
            mapped(
                Some(3),
                &["tags"],
                vec![mapped(
                    Some(4),
                    &["element"],
                    vec![mapped(Some(5), &["inner", "in"], vec![])],
                )],
            ),
            mapped(
                Some(6),
                &["props"],
                vec![
                    mapped(Some(7), &["key"], vec![]),
                    mapped(Some(8), &["value"], vec![]),
                ],
            ),
        ],
    };
    let context = ProjectionContext {
        name_mapping: Some(&mapping),
        ..context()
    };
    let view = || {
        [
            optional(1, "renamed", LONG),
            optional(2, "ignored", LONG),
            optional(3, "t", list(4, structure([optional(5, "x", INT)]))),
            optional(6, "p", map(7, 8, INT)),
        ]
    };
    let schema = "optional int64 old.id; optional int64 ignored;
        optional group tags (LIST) { repeated group list { optional group element { optional int32 in; } } }
        optional group props (MAP) { repeated group key_value { required binary key (STRING); optional int32 value; } }";
    let projection = resolve_with(view(), schema, &context).unwrap();
    assert_eq!(
        show(&projection.fields),
        "leaf 0, null, list 2 3 (struct 4 (leaf 5)), map 6 7 (leaf 8, leaf 9)"
    );
    assert!(!projection.ids_by_position);

    let with_one_id = "optional int64 id; optional int64 ignored = 2;";
    assert_eq!(
        shown(resolve_with(view(), with_one_id, &context)),
        "null, leaf 1, null, null"
    );
}

#[test]
fn rule_41_without_ids_or_mapping_top_level_ids_go_by_position() {
    let view = || {
        [
            optional(2, "b", LONG),
            optional(4, "d", LONG),
            optional(1, "s", structure([optional(3, "x", INT)])),
        ]
    };
    let schema = "optional group s { optional int32 x; } optional int64 whatever;";
    let projection = resolve(view(), schema).unwrap();
    assert!(projection.ids_by_position);
    assert_eq!(show(&projection.fields), "leaf 2, null, struct 0 (leaf 1)");

    let other_fields =
        "optional group s { optional int32 x; optional int32 y; } optional int64 whatever;";
    assert!(resolve(view(), other_fields).unwrap_err().is_unsupported());
}

#[test]
fn rule_41_positions_that_the_names_contradict_are_refused() {
    let view = [
        optional(1, "day", LONG),
        optional(2, "a", LONG),
        optional(3, "b", LONG),
    ];
    let error = resolve(view, "optional int64 a; optional int64 b;").unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

#[test]
fn rule_41_two_columns_with_one_id_are_an_error() {
    let error = resolve(
        [optional(1, "a", LONG)],
        "optional int64 a = 1; optional int64 b = 1;",
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"data.parquet: two columns have field id 1, the second of them "b""#
    );
}

#[test]
fn rule_40_parts_of_a_group_without_id_are_not_lost_in_silence() {
    let view = || [optional(1, "s", structure([optional(2, "x", INT)]))];
    assert!(
        resolve(view(), "optional group s { optional int32 x = 2; }")
            .unwrap_err()
            .is_unsupported()
    );
    let partition = in_partition(2, Some(Value::Int(1)));
    assert!(
        resolve_with(view(), "optional int32 y = 3;", &partition)
            .unwrap_err()
            .is_unsupported()
    );
    assert_eq!(shown(resolve(view(), "optional int32 y = 3;")), "null");
}

#[test]
fn rule_42_promotions() {
    let reads = |ty: PrimitiveType, stored: &str| {
        resolve(
            [optional(1, "a", of(ty))],
            &format!("optional {stored} = 1;"),
        )
        .is_ok()
    };
    let decimal = |precision, scale| PrimitiveType::Decimal { precision, scale };
    assert!(reads(PrimitiveType::Long, "int32 a"));
    assert!(!reads(PrimitiveType::Int, "int64 a"));
    assert!(reads(PrimitiveType::Double, "float a"));
    assert!(!reads(PrimitiveType::Float, "double a"));
    assert!(reads(decimal(18, 2), "int32 a (DECIMAL(9, 2))"));
    assert!(reads(
        decimal(38, 2),
        "fixed_len_byte_array(5) a (DECIMAL(11, 2))"
    ));
    assert!(!reads(decimal(18, 3), "int32 a (DECIMAL(9, 2))"));
    assert!(!reads(decimal(5, 2), "int32 a (DECIMAL(9, 2))"));
    assert!(reads(PrimitiveType::Timestamp, "int32 a (DATE)"));
    assert!(reads(PrimitiveType::TimestampNs, "int32 a (DATE)"));
    assert!(!reads(PrimitiveType::Timestamptz, "int32 a (DATE)"));
    assert!(!reads(PrimitiveType::TimestamptzNs, "int32 a (DATE)"));
}

#[test]
fn rule_42_promotions_reach_list_elements_map_values_and_partition_values() {
    let view = [
        optional(1, "l", list(2, LONG)),
        optional(3, "m", map(4, 5, LONG)),
    ];
    let schema = "optional group l (LIST) = 1 { repeated group list { optional int32 element = 2; } }
        optional group m (MAP) = 3 { repeated group key_value { required binary key (STRING) = 4; optional int32 value = 5; } }";
    assert_eq!(
        shown(resolve(view, schema)),
        "list 0 1 (leaf 2), map 3 4 (leaf 5, leaf 6)"
    );
}

#[test]
fn rule_44_struct_defaults_are_made_of_their_leaves_defaults() {
    let children = || {
        [
            with_default(optional(2, "x", INT), Value::Int(4)),
            optional(3, "y", INT),
        ]
    };
    let empty = Value::Struct(vec![]);
    let schema = "optional int32 z = 9;";
    let defaulted = with_default(optional(1, "s", structure(children())), empty.clone());
    assert_eq!(
        shown(resolve([defaulted], schema)),
        "Struct([Some(Int(4)), None])"
    );
    assert_eq!(
        shown(resolve([optional(1, "s", structure(children()))], schema)),
        "null"
    );
    let lacking = with_default(optional(1, "s", structure([required(2, "x", INT)])), empty);
    resolve([lacking], schema).unwrap_err();
}

#[test]
fn rule_45_unknown_is_null_whatever_the_file_holds() {
    let view = || [optional(1, "a", of(PrimitiveType::Unknown))];
    assert_eq!(shown(resolve(view(), "optional int32 a = 1;")), "null");
    assert_eq!(shown(resolve(view(), "optional int32 b = 2;")), "null");
    let nulls = resolve(
        [optional(1, "a", STRING)],
        "optional int32 a (UNKNOWN) = 1;",
    );
    assert_eq!(shown(nulls), "null");
}

#[test]
fn rule_46_the_encodings_writers_use() {
    let reads = |ty: PrimitiveType, stored: &str| {
        let read = resolve(
            [optional(1, "a", of(ty.clone()))],
            &format!("optional {stored} = 1;"),
        );
        assert!(read.is_ok(), "{ty:?} from {stored}: {read:?}");
    };
    reads(PrimitiveType::Boolean, "boolean a");
    reads(PrimitiveType::Int, "int32 a (INTEGER(8, true))");
    reads(PrimitiveType::Int, "int32 a (INT_16)");
    reads(PrimitiveType::Long, "int64 a (INTEGER(64, true))");
    reads(
        PrimitiveType::Decimal {
            precision: 9,
            scale: 2,
        },
        "int64 a (DECIMAL(9, 2))",
    );
    reads(PrimitiveType::Date, "int32 a (DATE)");
    reads(PrimitiveType::Time, "int64 a (TIME(MICROS, false))");
    reads(
        PrimitiveType::Timestamp,
        "int64 a (TIMESTAMP(MICROS, false))",
    );
    reads(PrimitiveType::Timestamp, "int64 a (TIMESTAMP_MICROS)");
    reads(
        PrimitiveType::Timestamptz,
        "int64 a (TIMESTAMP(MICROS, true))",
    );
    reads(
        PrimitiveType::TimestampNs,
        "int64 a (TIMESTAMP(NANOS, false))",
    );
    reads(PrimitiveType::String, "binary a");
    reads(PrimitiveType::String, "binary a (ENUM)");
    reads(PrimitiveType::String, "binary a (JSON)");
    reads(PrimitiveType::Uuid, "fixed_len_byte_array(16) a");
    reads(PrimitiveType::Uuid, "fixed_len_byte_array(16) a (UUID)");
    reads(PrimitiveType::Fixed(3), "fixed_len_byte_array(3) a");
    reads(PrimitiveType::Binary, "binary a");
}

#[test]
fn rule_46_old_encodings_can_be_read() {
    let reads = |ty: PrimitiveType, stored: &str| {
        let stored = format!("optional {stored} = 1;");
        resolve([optional(1, "a", of(ty))], &stored).unwrap();
    };
    reads(PrimitiveType::Timestamp, "int96 a");
    reads(PrimitiveType::TimestamptzNs, "int96 a");
    reads(PrimitiveType::Timestamptz, "int64 a (TIMESTAMP_MILLIS)");
    reads(
        PrimitiveType::Timestamp,
        "int64 a (TIMESTAMP(NANOS, false))",
    );
    reads(PrimitiveType::Time, "int32 a (TIME_MILLIS)");
    reads(PrimitiveType::Time, "int64 a (TIME(NANOS, false))");
    reads(PrimitiveType::Int, "int32 a (UINT_16)");
    reads(PrimitiveType::Long, "int32 a (UINT_32)");
    reads(PrimitiveType::Long, "int64 a (UINT_64)");
    let decimal = PrimitiveType::Decimal {
        precision: 9,
        scale: 2,
    };
    reads(decimal.clone(), "binary a (DECIMAL(9, 2))");
    reads(decimal, "fixed_len_byte_array(20) a (DECIMAL(9, 2))");
}

#[test]
fn rule_46_what_cannot_be_read_is_refused_by_name() {
    let refused = |ty: PrimitiveType, stored: &str, feature: &str| {
        let error = resolve(
            [optional(1, "a", of(ty))],
            &format!("optional {stored} = 1;"),
        )
        .unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        assert!(error.to_string().contains(feature), "{error}");
    };
    refused(PrimitiveType::Int, "int32 a (UINT_32)", "unsigned");
}

#[test]
fn rule_48_a_variant_is_found_by_the_names_of_its_parts() {
    let variant = |parts: &str| {
        let file = format!("optional group a = 1 {{ {parts} }}");
        resolve([optional(1, "a", of(PrimitiveType::Variant))], &file)
    };
    for parts in [
        "required binary metadata; required binary value;",
        "optional binary value; required binary metadata;",
        "required binary metadata; optional int32 typed_value;",
        "required binary metadata; optional binary value; optional int32 typed_value;",
    ] {
        let projection = variant(parts).unwrap();
        assert!(matches!(
            projection.fields[0].source,
            FieldSource::Variant { node: 0 }
        ));
    }
    for parts in [
        "required binary metadata;",
        "required binary value;",
        "required int32 metadata; required binary value;",
    ] {
        assert!(!variant(parts).unwrap_err().is_unsupported());
    }
}

#[test]
fn rule_46_a_column_of_another_type_is_an_error_naming_both() {
    resolve(
        [optional(1, "a", INT)],
        "optional group a = 1 { optional int32 x; }",
    )
    .unwrap_err();
    let error = resolve([optional(1, "a", INT)], "optional binary b (STRING) = 1;")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(r#"column "b" is ByteArray (String)"#)
            && error.contains(r#""a" (field id 1)"#),
        "{error}"
    );
    resolve(
        [optional(1, "a", structure([optional(2, "x", INT)]))],
        "optional int32 a = 1;",
    )
    .unwrap_err();
    resolve([optional(1, "a", list(2, INT))], "optional int32 a = 1;").unwrap_err();
    resolve([optional(1, "a", INT)], "repeated int32 a = 1;").unwrap_err();
}

#[test]
fn rule_46_lists_of_two_and_three_levels() {
    let ints = |schema: &str| shown(resolve([optional(1, "a", list(2, INT))], schema));
    let standard =
        "optional group a (LIST) = 1 { repeated group list { optional int32 element = 2; } }";
    assert_eq!(ints(standard), "list 0 1 (leaf 2)");
    let hive =
        "optional group a (LIST) = 1 { repeated group bag { optional int32 array_element = 2; } }";
    assert_eq!(ints(hive), "list 0 1 (leaf 2)");
    let two_level = "optional group a (LIST) = 1 { repeated int32 array = 2; }";
    assert_eq!(ints(two_level), "list 0 1 (leaf 1)");
    assert_eq!(ints("repeated int32 a = 1;"), "list 0 0 (leaf 0)");
    // By name a two-level list of structs, but the id says three levels.
    let misnamed =
        "optional group a (LIST) = 1 { repeated group array { optional int32 element = 2; } }";
    assert_eq!(ints(misnamed), "list 0 1 (leaf 2)");

    let structs = |schema: &str| {
        let element = structure([optional(3, "x", INT), optional(4, "y", INT)]);
        shown(resolve([optional(1, "a", list(2, element))], schema))
    };
    let wide = "optional group a (LIST) = 1 { repeated group element = 2 { optional int32 x = 3; optional int32 y = 4; } }";
    assert_eq!(structs(wide), "list 0 1 (struct 1 (leaf 2, leaf 3))");
    let tuple =
        "optional group a (LIST) = 1 { repeated group a_tuple = 2 { optional int32 x = 3; } }";
    assert_eq!(structs(tuple), "list 0 1 (struct 1 (leaf 2, null))");
    assert_eq!(
        structs("repeated group a = 1 { optional int32 y = 4; }"),
        "list 0 0 (struct 0 (null, leaf 1))"
    );

    let no_id = "optional group a (LIST) = 1 { repeated group list { optional int32 element; } }";
    assert!(
        resolve([optional(1, "a", list(2, INT))], no_id)
            .unwrap_err()
            .is_unsupported()
    );
}

#[test]
fn rule_46_maps_of_either_name() {
    for inner in ["key_value", "map"] {
        let schema = format!(
            "optional group m (MAP) = 1 {{ repeated group {inner} {{ required binary k (STRING) = 2; optional int32 v = 3; }} }}"
        );
        assert_eq!(
            shown(resolve([optional(1, "m", map(2, 3, INT))], &schema)),
            "map 0 1 (leaf 2, leaf 3)"
        );
    }
    let legacy = "optional group m (MAP_KEY_VALUE) = 1 { repeated group map { required binary k (STRING) = 2; optional int32 v = 3; } }";
    assert_eq!(
        shown(resolve([optional(1, "m", map(2, 3, INT))], legacy)),
        "map 0 1 (leaf 2, leaf 3)"
    );
}

#[test]
fn rule_51_users_may_name_columns_like_metadata_columns() {
    let view = [
        optional(1, "_row_id", LONG),
        optional(2, "pos", LONG),
        optional(3, "file_path", STRING),
    ];
    let schema = "optional int64 pos = 2; optional int64 _row_id = 1; optional binary file_path (STRING) = 3;";
    assert_eq!(shown(resolve(view, schema)), "leaf 1, leaf 0, leaf 2");
    assert_eq!(
        physical_lineage(&file(schema), "f").unwrap(),
        PhysicalLineage::default()
    );
}

#[test]
fn rule_37_stored_lineage_columns_are_found_by_reserved_id() {
    let schema =
        file("optional int64 a = 1; optional int64 r = 2147483540; optional int64 u = 2147483539;");
    let found = physical_lineage(&schema, "f").unwrap();
    assert_eq!(
        found,
        PhysicalLineage {
            row_id: Some(1),
            last_updated: Some(2)
        }
    );
    physical_lineage(&file("optional int32 r = 2147483540;"), "f").unwrap_err();
}

#[test]
fn rule_50_a_timestamp_with_a_zone_is_none_without_where_the_file_tells_them_apart() {
    let schema = "optional int64 with (TIMESTAMP(MICROS,true)) = 1; optional int64 without (TIMESTAMP(MICROS,false)) = 2;";
    let column = |id, ty| optional(id, "t", Type::Primitive(ty));
    let fits = |tells_zones, id, ty| {
        let context = ProjectionContext {
            tells_zones,
            ..context()
        };
        project(&[Arc::new(column(id, ty))], &file(schema), &context).is_ok()
    };
    use PrimitiveType::{Timestamp, Timestamptz};
    for tells_zones in [false, true] {
        assert!(fits(tells_zones, 1, Timestamptz));
        assert!(fits(tells_zones, 2, Timestamp));
        // Parquet files that carry only the older converted type say "adjusted" of both.
        assert_eq!(fits(tells_zones, 1, Timestamp), !tells_zones);
        assert_eq!(fits(tells_zones, 2, Timestamptz), !tells_zones);
    }
}
