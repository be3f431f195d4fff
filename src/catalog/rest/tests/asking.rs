//! Configuration, listings, loading, tokens.

use super::*;

#[test]
fn the_catalogs_properties_stand_around_the_clients() {
    let server = Server::start(|asked| {
        match asked.line.as_str() {
        "GET /base/v1/config?warehouse=my%20wh" => ok(json!({
            "defaults": {"s3.region": "default", "s3.endpoint": "default", "n": 5, "b": true, "z": null},
            "overrides": {"s3.region": "override", "prefix": "ws/1"},
        })
        .to_string()),
        "GET /base/v1/ws/1/namespaces/a/tables/t?snapshots=all" => {
            let mut table = table("/w/t");
            table["config"] = json!({"s3.region": "table"});
            ok(table.to_string())
        }
        line => panic!("{line}"),
    }
    });
    let base = server.base.join("/base/").unwrap();
    let given = properties(&[
        ("s3.region", "client"),
        ("s3.endpoint", "client"),
        ("warehouse", "my wh"),
    ]);
    let catalog = RestCatalog::open(&base, None, &given, &Arc::default()).unwrap();
    let merged = &catalog.service.configuration.properties;
    assert_eq!(merged.get("s3.region"), Some("override"));
    assert_eq!(merged.get("s3.endpoint"), Some("client"));
    assert_eq!(
        (merged.get("n"), merged.get("b"), merged.get("z")),
        (Some("5"), Some("true"), None)
    );
    let access = catalog.table(&ident(&["a"], "t")).unwrap().unwrap().access;
    assert_eq!(access.properties.get("s3.region"), Some("table"));
    assert_eq!(access.properties.get("s3.endpoint"), Some("client"));
}

#[test]
fn requests_go_where_the_catalog_says_it_is_but_never_from_https_to_http() {
    use crate::catalog::rest::moved;
    let base = |text| url::Url::parse(text).unwrap();
    assert_eq!(
        moved(&base("http://a"), "http://b/c").unwrap().as_str(),
        "http://b/c"
    );
    assert!(moved(&base("http://a"), "https://b").is_ok());
    assert!(moved(&base("https://a"), "http://b").is_err());
    assert!(moved(&base("http://a"), "file:///etc").is_err());
}

#[test]
fn every_request_has_the_headers_that_the_user_set() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        _ => ok(table("/w/t").to_string()),
    });
    let given = [
        ("header.X-Tenant", "t1"),
        ("header.X-Iceberg-Access-Delegation", "vended-credentials"),
    ];
    let catalog = open(&server, &given).unwrap();
    catalog.table(&ident(&["a"], "t")).unwrap().unwrap();
    let asked = server.take();
    assert_eq!(asked.len(), 2);
    for asked in &asked {
        assert_eq!(asked.header("x-tenant"), "t1");
        assert_eq!(
            asked.header("x-iceberg-access-delegation"),
            "vended-credentials"
        );
        assert_eq!(asked.header("authorization"), "");
    }
}

#[test]
fn delegation_is_asked_for_unless_the_user_says_otherwise() {
    for (given, expected) in [
        (None, "vended-credentials,remote-signing"),
        (Some("remote-signing"), "remote-signing"),
        (Some("none"), ""),
    ] {
        let server = Server::start(|asked| match asked.line.as_str() {
            "GET /v1/config" => config(),
            _ => ok(table("/w/t").to_string()),
        });
        let given: Vec<(&str, &str)> = given
            .into_iter()
            .map(|value| ("rest.access-delegation", value))
            .collect();
        let catalog = open(&server, &given).unwrap();
        catalog.table(&ident(&["a"], "t")).unwrap().unwrap();
        let asked = server.take();
        assert_eq!(asked[1].header("x-iceberg-access-delegation"), expected);
    }
}

/// A catalog of one namespace with so many tables, in pages of 100.
fn large(tables: usize) -> Server {
    Server::start(move |asked| {
        let (path, query) = asked.line.split_once('?').unwrap_or((&asked.line, ""));
        let page = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("pageToken="))
            .map_or(0, |token| {
                token.strip_prefix('p').map_or(0, |n| n.parse().unwrap())
            });
        match path {
            "GET /v1/config" => config(),
            "GET /v1/namespaces" if query.contains("parent=") => {
                ok(r#"{"namespaces":[],"next-page-token":null}"#)
            }
            "GET /v1/namespaces" => ok(r#"{"namespaces":[["big"]]}"#),
            "GET /v1/namespaces/big/tables" => {
                let last = ((page + 1) * 100).min(tables);
                let identifiers: Vec<_> = (page * 100..last)
                    .map(|n| json!({"namespace": ["big"], "name": format!("t{n:05}")}))
                    .collect();
                let next = (last < tables).then(|| format!("p{}", page + 1));
                ok(json!({"identifiers": identifiers, "next-page-token": next}).to_string())
            }
            line => panic!("{line}"),
        }
    })
}

#[test]
fn ten_thousand_tables_are_listed_page_by_page_and_none_is_loaded() {
    let server = large(10_000);
    let counters = Arc::<Counters>::default();
    let catalog = RestCatalog::open(&server.base, None, &Properties::default(), &counters).unwrap();
    assert_eq!(catalog.list(&[]).unwrap().namespaces, ["big"]);
    server.take();
    let before = counters.snapshot();
    let listing = catalog.list(&levels(&["big"])).unwrap();
    assert_eq!(listing.tables.len(), 10_000);
    assert_eq!(listing.tables[9_999], "t09999");
    assert_eq!(listing.namespaces, Vec::<String>::new());
    // A hundred pages of tables, and one of the namespaces below.
    assert_eq!(counters.since(&before), [("catalog_requests", 101)]);
    let lines = server.lines();
    assert_eq!(lines[0], "GET /v1/namespaces/big/tables?pageToken=");
    assert_eq!(lines[1], "GET /v1/namespaces/big/tables?pageToken=p1");
    assert_eq!(lines[99], "GET /v1/namespaces/big/tables?pageToken=p99");
    assert_eq!(lines[100], "GET /v1/namespaces?parent=big&pageToken=");
    assert_eq!(lines.len(), 101);
}

#[test]
fn a_page_that_leads_to_itself_is_an_error() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        _ => ok(r#"{"namespaces":[["a"]],"next-page-token":"same"}"#),
    });
    let catalog = open(&server, &[("rest-page-size", "7")]).unwrap();
    let error = catalog.list(&[]).unwrap_err().to_string();
    assert!(error.contains("a page leads to itself"), "{error}");
    assert_eq!(
        server.lines()[1..],
        [
            "GET /v1/namespaces?pageToken=&pageSize=7",
            "GET /v1/namespaces?pageToken=same&pageSize=7",
        ]
    );
}

#[test]
fn namespaces_of_many_levels_are_asked_for_with_the_catalogs_separator() {
    for (separator, path, parent) in [
        (None, "a%1Fb%20c", "a%1Fb%20c"),
        (Some("%2E"), "a.b%20c", "a.b%20c"),
        (Some("::"), "a%3A%3Ab%20c", "a%3A%3Ab%20c"),
    ] {
        let server = Server::start(move |asked| {
            let path = asked.line.split('?').next().unwrap();
            match path {
                "GET /v1/config" => {
                    let overrides = separator.map_or(json!({}), |s| json!({"namespace-separator": s}));
                    ok(json!({"defaults": {}, "overrides": overrides}).to_string())
                }
                "GET /v1/namespaces" => ok(json!({"namespaces": [
                    ["a", "b c", "d"], ["a", "b c", "d", "e"], ["a"], ["x", "b c", "d"], ["a", "b c", "D/E"]
                ]})
                .to_string()),
                _ => ok(json!({"identifiers": [
                    {"namespace": ["a", "b c"], "name": "t"}, {"namespace": ["a"], "name": "u"}
                ]})
                .to_string()),
            }
        });
        let catalog = open(&server, &[]).unwrap();
        let listing = catalog.list(&levels(&["a", "b c"])).unwrap();
        // What is not directly below is not shown there.
        assert_eq!(listing.namespaces, ["D/E", "d"]);
        assert_eq!(listing.tables, ["t"]);
        assert_eq!(
            server.lines()[1..],
            [
                format!("GET /v1/namespaces/{path}/tables?pageToken="),
                format!("GET /v1/namespaces?parent={parent}&pageToken="),
            ]
        );
    }
}

#[test]
fn a_catalog_whose_namespaces_have_one_level_has_none_below() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        line if line.contains("/tables") => {
            ok(r#"{"identifiers":[{"namespace":["a"],"name":"t"}]}"#)
        }
        line if line.contains("parent=a&") => refused(400, "BadRequest", "no nested namespaces"),
        _ => refused(403, "Forbidden", "not yours"),
    });
    let catalog = open(&server, &[]).unwrap();
    assert_eq!(catalog.list(&levels(&["a"])).unwrap().tables, ["t"]);
    // What may not be known is not passed off as nothing.
    assert!(catalog.list(&levels(&["b"])).is_err());
    let error = catalog.list(&[]).unwrap_err().to_string();
    assert!(
        error.ends_with("HTTP 403 Forbidden: Forbidden: not yours"),
        "{error}"
    );
}

#[test]
fn what_a_catalog_does_not_answer_is_not_asked() {
    let server = Server::start(|_| {
        ok(
            json!({"defaults": {}, "overrides": {}, "endpoints": ["GET /v1/{prefix}/namespaces"]})
                .to_string(),
        )
    });
    let catalog = open(&server, &[]).unwrap();
    server.take();
    assert!(catalog.list(&levels(&["a"])).unwrap_err().is_unsupported());
    assert!(
        catalog
            .table(&ident(&["a"], "t"))
            .unwrap_err()
            .is_unsupported()
    );
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[test]
fn a_table_is_loaded_with_its_metadata_as_it_was_sent() {
    let text = r#"{"config":{},"metadata":{ "location":"s3://b/t",  "big":12345678901234567890.10 },"metadata-location":"s3://b/t/metadata/1.json"}"#;
    let server = Server::start(move |asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        _ => ok(text),
    });
    let catalog = open(&server, &[]).unwrap();
    let pointer = catalog.table(&ident(&["a"], "t")).unwrap().unwrap();
    assert_eq!(pointer.metadata.to_string(), "s3://b/t/metadata/1.json");
    assert_eq!(
        pointer.content.unwrap(),
        r#"{ "location":"s3://b/t",  "big":12345678901234567890.10 }"#
    );
}

#[test]
fn a_table_in_a_local_directory_is_local_in_every_spelling() {
    for location in ["file:/w/t", "file:///w/t", "/w/t"] {
        let server = Server::start(move |asked| match asked.line.as_str() {
            "GET /v1/config" => config(),
            _ => ok(table(location).to_string()),
        });
        let pointer = open(&server, &[]).unwrap().table(&ident(&["a"], "t"));
        let expected = Address::Local("/w/t/metadata/00000-a.metadata.json".into());
        assert_eq!(pointer.unwrap().unwrap().metadata, expected);
    }
}

#[test]
fn a_table_that_has_not_changed_is_not_sent_again() {
    let commits = Arc::new(AtomicU32::new(1));
    let now = Arc::clone(&commits);
    let server = Server::start(move |asked| {
        let tag = format!("\"v{}\"", now.load(Ordering::Relaxed));
        match asked.line.as_str() {
            "GET /v1/config" => config(),
            _ if asked.header("if-none-match") == tag => said(304, ""),
            _ => Said {
                headers: vec![("ETag", tag.clone())],
                ..ok(table(&format!("/w/{}", tag.trim_matches('"'))).to_string())
            },
        }
    });
    let catalog = open(&server, &[]).unwrap();
    let load = || catalog.table(&ident(&["a"], "t")).unwrap().unwrap();
    let first = load();
    let second = load();
    assert!(first.is_same(&second));
    assert_eq!(first.content, second.content);
    commits.store(2, Ordering::Relaxed);
    let third = load();
    assert_eq!(
        third.metadata.to_string(),
        "/w/v2/metadata/00000-a.metadata.json"
    );
    assert!(third.is_same(&load()));
    let tags: Vec<String> = server
        .take()
        .iter()
        .skip(1)
        .map(|asked| asked.header("if-none-match").to_owned())
        .collect();
    assert_eq!(tags, ["", "\"v1\"", "\"v1\"", "\"v2\""]);
}

#[test]
fn a_table_that_does_not_exist_is_none_but_a_path_that_does_not_is_an_error() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        line if line.contains("/gone") => refused(404, "NoSuchTableException", "gone"),
        line if line.contains("/empty") => said(404, ""),
        line if line.contains("/forbidden") => refused(403, "ForbiddenException", "not yours"),
        line if line.contains("/broken") => refused(500, "RuntimeException", "its file is gone"),
        line if line.contains("/unchanged") => said(304, ""),
        line if line.contains("/nothing") => ok("{}"),
        line if line.contains("/staged") => ok(r#"{"metadata":{},"metadata-location":null}"#),
        line if line.contains("/text") => ok(r#"{"metadata":"x","metadata-location":"/m"}"#),
        line if line.contains("/good") => ok(table("/w/t").to_string()),
        _ => said(404, "<html>no such service</html>"),
    });
    let catalog = open(&server, &[]).unwrap();
    let load = |name| catalog.table(&ident(&["a"], name));
    assert!(load("gone").unwrap().is_none());
    assert!(load("empty").unwrap().is_none());
    for (name, part) in [
        ("elsewhere", "HTTP 404"),
        (
            "forbidden",
            "table a.forbidden: HTTP 403 Forbidden: ForbiddenException: not yours",
        ),
        ("broken", "HTTP 500"),
        ("unchanged", "HTTP 304"),
        ("nothing", "missing field"),
        ("staged", "it has no metadata file"),
        ("text", "the answer holds no metadata"),
    ] {
        let error = load(name).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    // They spoil nothing but themselves.
    assert!(load("good").unwrap().is_some());
    assert!(catalog.table(&ident(&[], "top")).unwrap().is_none());
}

#[test]
fn a_server_that_is_no_catalog_is_refused() {
    for (answer, part) in [
        (
            said(404, "no such page"),
            "v1/config) was asked for: HTTP 404 Not Found",
        ),
        (ok("<html>"), "answers no configuration"),
        (
            refused(400, "BadRequest", "no warehouse"),
            "BadRequest: no warehouse",
        ),
    ] {
        let mut answer = Some(answer);
        let server = Server::start(move |_| answer.take().unwrap());
        let error = open(&server, &[]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.starts_with("rest+http://127.0.0.1:"), "{error}");
    }
}

/// A catalog that wants the newest of the tokens it has issued.
struct Issuer {
    server: Server,
    issued: Arc<AtomicU32>,
}

impl Issuer {
    fn start(expires_in: Option<u32>) -> Self {
        let issued = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&issued);
        let server = Server::start(move |asked| {
            if asked.line == "POST /v1/oauth/tokens" {
                let token = format!("token-{}", count.fetch_add(1, Ordering::Relaxed) + 1);
                let mut answer = json!({"access_token": token, "token_type": "bearer"});
                if let Some(seconds) = expires_in {
                    answer["expires_in"] = json!(seconds);
                }
                return ok(answer.to_string());
            }
            let wanted = format!("Bearer token-{}", count.load(Ordering::Relaxed));
            match asked.line.as_str() {
                _ if asked.header("authorization") != wanted => {
                    refused(401, "NotAuthorizedException", "who are you?")
                }
                "GET /v1/config" => config(),
                _ => ok(r#"{"namespaces":[]}"#),
            }
        });
        Self { server, issued }
    }

    /// As if the newest token had been issued to somebody else.
    fn forget(&self) {
        self.issued.fetch_add(1, Ordering::Relaxed);
    }
}

const CREDENTIAL: [(&str, &str); 4] = [
    ("credential", "my id:se&cret:x"),
    ("scope", "PRINCIPAL_ROLE:ALL"),
    ("audience", "aud"),
    ("resource", "res"),
];

#[test]
fn a_credential_is_exchanged_for_a_token_once_and_that_is_sent() {
    let issuer = Issuer::start(Some(3600));
    let catalog = open(&issuer.server, &CREDENTIAL).unwrap();
    catalog.list(&[]).unwrap();
    catalog.list(&[]).unwrap();
    let asked = issuer.server.take();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let list = "GET /v1/namespaces?pageToken=";
    assert_eq!(
        lines,
        ["POST /v1/oauth/tokens", "GET /v1/config", list, list]
    );
    assert_eq!(
        asked[0].header("content-type"),
        "application/x-www-form-urlencoded"
    );
    assert_eq!(
        asked[0].body,
        "grant_type=client_credentials&client_id=my%20id&client_secret=se%26cret%3Ax\
         &scope=PRINCIPAL_ROLE%3AALL&audience=aud&resource=res"
    );
    assert_eq!(asked[0].header("authorization"), "");
    assert_eq!(asked[3].header("authorization"), "Bearer token-1");
}

#[test]
fn a_token_is_renewed_before_it_runs_out() {
    let issuer = Issuer::start(Some(3600));
    let catalog = open(&issuer.server, &CREDENTIAL[..1]).unwrap();
    with_blocking("c", async {
        catalog.service.session.auth.tokens().grow_old(false).await;
        Ok(())
    })
    .unwrap();
    issuer.server.take();
    catalog.list(&[]).unwrap();
    catalog.list(&[]).unwrap();
    let asked = issuer.server.take();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    let list = "GET /v1/namespaces?pageToken=";
    assert_eq!(lines, ["POST /v1/oauth/tokens", list, list]);
    assert_eq!(
        asked[0].body,
        "grant_type=client_credentials&client_id=my%20id&client_secret=se%26cret%3Ax&scope=catalog"
    );
    assert_eq!(asked[2].header("authorization"), "Bearer token-2");
}

#[test]
fn a_token_that_is_refused_is_renewed_once_and_the_question_asked_once_more() {
    let issuer = Issuer::start(None);
    let catalog = open(&issuer.server, &CREDENTIAL[..1]).unwrap();
    issuer.forget();
    issuer.server.take();
    catalog.list(&[]).unwrap();
    let list = "GET /v1/namespaces?pageToken=";
    assert_eq!(issuer.server.lines(), [list, "POST /v1/oauth/tokens", list]);
}

#[test]
fn who_is_refused_with_a_fresh_token_too_is_told_so() {
    for status in [401, 419] {
        let server = Server::start(move |asked| match asked.line.as_str() {
            "GET /v1/config" => config(),
            "POST /v1/oauth/tokens" => ok(r#"{"access_token":"t","token_type":"bearer"}"#),
            _ => refused(
                status,
                "NotAuthorizedException",
                "my id:very-secret is not welcome",
            ),
        });
        let catalog = open(&server, &[("credential", "my id:very-secret")]).unwrap();
        server.take();
        let error = catalog.list(&[]).unwrap_err().to_string();
        assert!(error.contains(&format!("HTTP {status}")), "{error}");
        // What the server repeats is not repeated.
        assert!(
            error.contains("*** is not welcome") && !error.contains("very-secret"),
            "{error}"
        );
        let list = "GET /v1/namespaces?pageToken=";
        assert_eq!(server.lines(), [list, "POST /v1/oauth/tokens", list]);
    }
}

#[test]
fn a_token_that_was_given_is_sent_and_nothing_renews_it_after_a_refusal() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        _ => said(401, ""),
    });
    let catalog = open(&server, &[("token", "given")]).unwrap();
    let error = catalog.list(&[]).unwrap_err().to_string();
    assert!(error.contains("HTTP 401 Unauthorized"), "{error}");
    let asked = server.take();
    assert_eq!(asked.len(), 2);
    assert!(
        asked
            .iter()
            .all(|asked| asked.header("authorization") == "Bearer given")
    );
}

#[test]
fn a_token_without_a_credential_is_exchanged_for_another_before_it_runs_out() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        "POST /sts" => ok(
            json!({"access_token": "second", "token_type": "bearer", "expires_in": 3600,
            "issued_token_type": "urn:ietf:params:oauth:token-type:jwt"})
            .to_string(),
        ),
        _ => ok(r#"{"namespaces":[]}"#),
    });
    let given = [
        ("token", "first"),
        ("token-expires-in-ms", "3600000"),
        ("oauth2-server-uri", "sts"),
    ];
    let catalog = open(&server, &given).unwrap();
    server.take();
    with_blocking("c", async {
        catalog.service.session.auth.tokens().grow_old(false).await;
        Ok(())
    })
    .unwrap();
    catalog.list(&[]).unwrap();
    let asked = server.take();
    assert_eq!(asked[0].line, "POST /sts");
    assert_eq!(asked[0].header("authorization"), "Bearer first");
    assert_eq!(
        asked[0].body,
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=first\
         &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&scope=catalog"
    );
    assert_eq!(asked[1].header("authorization"), "Bearer second");
}

#[test]
fn a_server_that_exchanges_no_tokens_is_not_asked_again_and_the_token_is_used_on() {
    let server = Server::start(|asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        "POST /v1/oauth/tokens" => said(400, r#"{"error":"unsupported_grant_type"}"#),
        _ => ok(r#"{"namespaces":[]}"#),
    });
    let catalog = open(
        &server,
        &[("token", "first"), ("token-expires-in-ms", "3600000")],
    )
    .unwrap();
    server.take();
    with_blocking("c", async {
        catalog.service.session.auth.tokens().grow_old(false).await;
        Ok(())
    })
    .unwrap();
    catalog.list(&[]).unwrap();
    catalog.list(&[]).unwrap();
    let list = "GET /v1/namespaces?pageToken=";
    assert_eq!(server.lines(), ["POST /v1/oauth/tokens", list, list]);
}

#[test]
fn a_credential_that_is_refused_is_told_without_repeating_it() {
    let server = Server::start(|_| {
        said(
            401,
            r#"{"error":"invalid_client","error_description":"bad secret hunter2hunter2"}"#,
        )
    });
    let error = open(&server, &[("credential", "id:hunter2hunter2")])
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(
            "a token was asked for: HTTP 401 Unauthorized: invalid_client: bad secret ***"
        ),
        "{error}"
    );
}

#[test]
fn a_user_and_password_are_sent_as_basic_authentication() {
    let server = Server::start(|_| config());
    let given = [
        ("rest.auth.type", "basic"),
        ("rest.auth.basic.username", "Aladdin"),
        ("rest.auth.basic.password", "open sesame"),
    ];
    open(&server, &given).unwrap();
    // RFC 7617, section 2.
    assert_eq!(
        server.take()[0].header("authorization"),
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    );
    assert!(
        open(&server, &[("rest.auth.type", "google")])
            .unwrap_err()
            .is_unsupported()
    );
}

#[test]
fn requests_are_signed_for_aws_with_the_bearer_token_moved_aside() {
    let server = Server::start(|_| config());
    let given = [
        ("rest.sigv4-enabled", "true"),
        ("rest.signing-name", "glue"),
        ("rest.signing-region", "eu-west-1"),
        ("rest.access-key-id", "AKIDEXAMPLE"),
        (
            "rest.secret-access-key",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        ),
        ("rest.session-token", "session"),
        ("token", "given"),
    ];
    open(&server, &given).unwrap();
    let asked = server.take();
    let asked: &Asked = &asked[0];
    let authorization = asked.header("authorization");
    let date = asked.header("x-amz-date").get(..8).unwrap();
    let expected = format!(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{date}/eu-west-1/glue/aws4_request, SignedHeaders="
    );
    assert!(authorization.starts_with(&expected), "{authorization}");
    assert_eq!(asked.header("original-authorization"), "Bearer given");
    assert_eq!(asked.header("x-amz-security-token"), "session");
    let signed = authorization.split("SignedHeaders=").nth(1).unwrap();
    let signed = signed.split(',').next().unwrap();
    for name in [
        "host",
        "original-authorization",
        "x-amz-content-sha256",
        "x-amz-date",
    ] {
        assert!(signed.split(';').any(|signed| signed == name), "{signed}");
    }
}

#[test]
fn a_secret_is_in_no_debug_output() {
    let issuer = Issuer::start(Some(3600));
    let catalog = open(&issuer.server, &[("credential", "id:hunter2hunter2")]).unwrap();
    let shown = format!("{catalog:?}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("token-1"),
        "{shown}"
    );
}
