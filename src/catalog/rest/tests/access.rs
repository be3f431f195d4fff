//! Credentials that are lent and renewed, and requests that the catalog signs.

use super::*;
use crate::storage::{PrefixedProperties, SignedRequest, StoreAccess};

const CREDENTIALS: &str = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials";
const LOAD: &str = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}";
const SIGN: &str = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign";

/// The access to a table that is loaded with `extra` from a catalog that has `endpoints`; and the catalog's server, which
/// answers `rest` to anything else.
fn access(
    endpoints: &[&str],
    extra: serde_json::Value,
    given: &[(&str, &str)],
    mut rest: impl FnMut(&Asked) -> Said + Send + 'static,
) -> (Server, RestCatalog, Arc<StoreAccess>) {
    let config = json!({"defaults": {}, "overrides": {}, "endpoints": endpoints}).to_string();
    let server = Server::start(move |asked| match asked.line.as_str() {
        "GET /v1/config" => ok(config.clone()),
        "GET /v1/namespaces/a/tables/t?snapshots=all" => {
            let mut table = table("s3://b/t");
            let extra = extra.as_object().unwrap().clone();
            table.as_object_mut().unwrap().extend(extra);
            ok(table.to_string())
        }
        _ => rest(asked),
    });
    let catalog = open(&server, given).unwrap();
    let access = catalog.table(&ident(&["a"], "t")).unwrap().unwrap().access;
    server.take();
    (server, catalog, access)
}

fn prefixed(prefix: &str, pairs: &[(&str, &str)]) -> PrefixedProperties {
    PrefixedProperties {
        prefix: prefix.to_owned(),
        properties: properties(pairs),
    }
}

#[test]
fn credentials_are_renewed_where_the_catalog_lends_them() {
    let lent = |key: &str| {
        json!([
            {"prefix": "s3://b", "config": {"s3.access-key-id": key}},
            {"prefix": "s3://b/t", "config": {"s3.access-key-id": "inner"}},
        ])
    };
    let extra =
        json!({"storage-credentials": lent("first"), "config": {"s3.region": "r", "token": "own"}});
    let (server, _catalog, access) = access(
        &[LOAD, CREDENTIALS],
        extra,
        &[("token", "catalogs")],
        move |_| ok(json!({"storage-credentials": lent("second")}).to_string()),
    );
    let inner = prefixed("s3://b/t", &[("s3.access-key-id", "inner")]);
    let outer = |key| prefixed("s3://b", &[("s3.access-key-id", key)]);
    assert_eq!(access.credentials, [outer("first"), inner.clone()]);
    assert_eq!(access.properties.get("s3.region"), Some("r"));
    // Who asks the catalog is no concern of the stores.
    assert_eq!(access.properties.get("token"), None);
    let renewed = access.renewal.as_ref().unwrap().renew().unwrap();
    assert_eq!(renewed, [outer("second"), inner]);
    let asked = server.take();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].line, "GET /v1/namespaces/a/tables/t/credentials");
    assert_eq!(asked[0].header("authorization"), "Bearer own");
    assert_eq!(
        asked[0].header("x-iceberg-access-delegation"),
        "vended-credentials,remote-signing"
    );
}

#[test]
fn a_tables_token_that_has_run_out_leaves_the_catalogs() {
    let extra = json!({
        "storage-credentials": [{"prefix": "s3", "config": {"s3.access-key-id": "k"}}],
        "config": {"token": "own"},
    });
    let (server, _catalog, access) = access(
        &[LOAD, CREDENTIALS],
        extra,
        &[("token", "catalogs")],
        |asked| match asked.header("authorization") {
            "Bearer catalogs" => ok(r#"{"storage-credentials":[]}"#),
            _ => said(401, ""),
        },
    );
    assert_eq!(access.renewal.as_ref().unwrap().renew().unwrap(), []);
    assert_eq!(server.take().len(), 2);
}

#[test]
fn credentials_among_a_tables_configuration_are_renewed_by_loading_it() {
    let extra = json!({"config": {"s3.access-key-id": "k", "s3.secret-access-key": "s"}});
    let (server, _catalog, access) = access(&[LOAD], extra, &[], |asked| panic!("{}", asked.line));
    let expected = [prefixed(
        "",
        &[("s3.access-key-id", "k"), ("s3.secret-access-key", "s")],
    )];
    assert_eq!(access.credentials, expected);
    assert_eq!(access.renewal.as_ref().unwrap().renew().unwrap(), expected);
    assert_eq!(
        server.lines(),
        ["GET /v1/namespaces/a/tables/t?snapshots=all"]
    );
}

#[test]
fn a_table_for_which_nothing_is_lent_has_the_users_own_credentials() {
    let extra = json!({"config": {"s3.region": "r"}});
    let given = [
        ("s3.access-key-id", "users"),
        ("credential", ""),
        ("header.X", "y"),
    ];
    let (_server, _catalog, access) = access(&[LOAD], extra, &given, |_| said(500, ""));
    assert!(access.renewal.is_none() && access.signer.is_none());
    assert!(access.credentials.is_empty());
    assert_eq!(
        access.properties,
        properties(&[("s3.access-key-id", "users"), ("s3.region", "r")])
    );
}

#[test]
fn a_table_that_only_the_catalog_can_plan_is_refused() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        _ => {
            let mut table = table("s3://b/t");
            table["config"] = json!({"scan-planning-mode": "SERVER"});
            ok(table.to_string())
        }
    });
    let error = open(&server, &[])
        .unwrap()
        .table(&ident(&["a"], "t"))
        .unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

fn sign(
    access: &StoreAccess,
    url: &str,
    headers: &[(&str, &str)],
) -> Result<SignedRequest, String> {
    let headers: Vec<(String, String)> = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let signer = access.signer.as_ref().unwrap();
    let signed = crate::storage::web::block_on(signer.sign("GET", url, "eu", &headers)).unwrap();
    signed.map_err(|error| error.to_string())
}

/// Signs whatever it is asked to, for so many header names, and says whether that may be kept.
fn signing(signed: &'static str, cache: &'static str) -> impl FnMut(&Asked) -> Said + Send {
    let mut count = 0;
    move |_| {
        count += 1;
        let authorization =
            format!("AWS4-HMAC-SHA256 Credential=c, SignedHeaders={signed}, Signature={count}");
        Said {
            headers: vec![("Cache-Control", cache.to_owned())],
            ..ok(json!({"uri": "https://b.s3/k?signed", "headers": {
                "Authorization": [authorization],
                "x-amz-date": ["d"],
                "Cache-Control": ["private"],
                "range": ["bytes=0-1"],
            }})
            .to_string())
        }
    }
}

#[test]
fn requests_are_signed_by_the_catalog_with_what_it_wants_passed_on() {
    let extra = json!({
        "config": {"s3.remote-signing-enabled": "true"},
        "remote-signing-config": {"properties": {"p": "1"}, "headers": {"X-Sign": ["a", "b"]}},
    });
    let (server, _catalog, access) = access(
        &[LOAD, SIGN],
        extra,
        &[("token", "mine")],
        signing("host", "no-cache"),
    );
    let signed = sign(&access, "https://b.s3/k", &[("range", "bytes=2-3")]).unwrap();
    assert_eq!(signed.url, "https://b.s3/k?signed");
    let header = |name: &str| {
        let found: Vec<&str> = signed
            .headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect();
        found
    };
    assert_eq!(
        header("authorization"),
        ["AWS4-HMAC-SHA256 Credential=c, SignedHeaders=host, Signature=1"]
    );
    assert_eq!(header("x-amz-date"), ["d"]);
    assert_eq!(header("range"), ["bytes=2-3"]);
    assert_eq!(header("cache-control"), [""; 0]);
    let asked = server.take();
    assert_eq!(asked[0].line, "POST /v1/namespaces/a/tables/t/sign");
    assert_eq!(asked[0].header("authorization"), "Bearer mine");
    assert_eq!(asked[0].header("x-sign"), "a, b");
    let body: serde_json::Value = serde_json::from_str(&asked[0].body).unwrap();
    assert_eq!(
        body,
        json!({"region": "eu", "uri": "https://b.s3/k", "method": "GET",
            "headers": {"range": ["bytes=2-3"]}, "properties": {"p": "1"}, "provider": "s3"})
    );
    // Not to be kept.
    sign(&access, "https://b.s3/k", &[]).unwrap();
    assert_eq!(server.take().len(), 1);
}

#[test]
fn a_signature_that_may_be_kept_is_for_the_same_request_unless_it_is_for_one_range() {
    for (signed, asked_again) in [("host;x-amz-date", 0), ("host;range;x-amz-date", 1)] {
        let extra = json!({"config": {"s3.remote-signing-enabled": true}});
        let (server, _catalog, access) = access(&[LOAD], extra, &[], signing(signed, "private"));
        sign(&access, "https://b.s3/k", &[("range", "bytes=0-1")]).unwrap();
        // Where neither the table nor the list of endpoints says where.
        assert_eq!(server.lines(), ["POST /v1/aws/s3/sign"]);
        let again = sign(&access, "https://b.s3/k", &[("range", "bytes=8-9")]).unwrap();
        assert!(
            again
                .headers
                .contains(&("range".to_owned(), "bytes=8-9".to_owned()))
        );
        assert_eq!(server.take().len(), asked_again);
        sign(&access, "https://b.s3/other", &[]).unwrap();
        assert_eq!(server.take().len(), 1);
    }
}

#[test]
fn the_signer_is_where_the_table_says() {
    for (config, path) in [
        (
            json!({"s3.signer.endpoint": "sign/here"}),
            "POST /sign/here",
        ),
        (json!({"signer.endpoint": "/sign"}), "POST /sign"),
        (json!({}), "POST /v1/namespaces/a/tables/t/sign"),
    ] {
        let mut config = config;
        config["s3.remote-signing-enabled"] = json!("true");
        let extra = json!({"config": config});
        let (server, _catalog, access) = access(&[LOAD, SIGN], extra, &[], signing("host", ""));
        sign(&access, "https://b.s3/k", &[]).unwrap();
        assert_eq!(server.lines(), [path]);
    }
    // Elsewhere altogether.
    let signer = Server::start(signing("host", ""));
    let uri = signer.base.to_string();
    let extra = json!({"config": {"s3.remote-signing-enabled": "true", "s3.signer.uri": uri}});
    let (_server, _catalog, access) = access(&[LOAD, SIGN], extra, &[], |_| said(500, ""));
    sign(&access, "https://b.s3/k", &[]).unwrap();
    assert_eq!(signer.lines(), ["POST /v1/aws/s3/sign"]);
}

#[test]
fn credentials_that_are_lent_make_signing_needless() {
    let extra = json!({
        "config": {"s3.remote-signing-enabled": "true"},
        "storage-credentials": [{"prefix": "s3", "config": {"s3.access-key-id": "k"}}],
    });
    let (_server, _catalog, access) = access(&[LOAD], extra, &[], |_| said(500, ""));
    assert!(access.signer.is_none() && access.renewal.is_some());
}

#[test]
fn a_signature_that_is_refused_is_an_error() {
    let extra = json!({"config": {"s3.remote-signing-enabled": "true"}});
    let (_server, _catalog, access) = access(&[LOAD], extra, &[], |_| {
        refused(403, "ForbiddenException", "not that file")
    });
    let error = sign(&access, "https://b.s3/k?secret=1", &[]).unwrap_err();
    assert!(
        error.contains("a signature was asked for: HTTP 403"),
        "{error}"
    );
    assert!(
        error.starts_with("a.t: ") && !error.contains("secret"),
        "{error}"
    );
}
