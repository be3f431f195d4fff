//! Servers that are away, or answer that they are.

use super::*;

/// Answers a catalog's configuration at first, and then as long as there are any what `answers` has.
fn failing(answers: Vec<Said>) -> Server {
    let mut answers = answers.into_iter();
    let mut configured = false;
    Server::start(move |_| {
        if std::mem::replace(&mut configured, true) {
            answers
                .next()
                .unwrap_or_else(|| ok(r#"{"namespaces":[["a"]]}"#))
        } else {
            config()
        }
    })
}

#[test]
fn what_may_be_answered_in_a_while_is_asked_again() {
    for answers in [
        vec![
            said(0, ""),
            refused(503, "SlowDown", "later"),
            said(429, ""),
        ],
        vec![said(502, "<html>"), said(504, "")],
    ] {
        let asked = answers.len() + 1;
        let server = failing(answers);
        let catalog = open(&server, &[]).unwrap();
        server.take();
        assert_eq!(catalog.list(&[]).unwrap().namespaces, ["a"]);
        assert_eq!(server.lines(), vec!["GET /v1/namespaces?pageToken="; asked]);
    }
}

#[test]
fn what_will_not_be_answered_otherwise_is_asked_once() {
    for status in [400, 403, 404, 409, 500, 501] {
        let server = failing(vec![refused(status, "E", "no")]);
        let catalog = open(&server, &[]).unwrap();
        server.take();
        let error = catalog.list(&[]).unwrap_err();
        assert!(matches!(error, CatalogError::Answer { .. }), "{error}");
        assert_eq!(server.take().len(), 1);
    }
}

#[test]
fn a_server_that_stays_away_is_unreachable_within_the_time_that_was_given() {
    for answer in [
        || said(0, ""),
        || refused(503, "ServiceUnavailable", "down"),
    ] {
        let server = failing((0..1000).map(|_| answer()).collect());
        let catalog = open(&server, &[("rest.timeout-ms", "300")]).unwrap();
        let first = catalog.list(&[]).unwrap_err();
        assert!(matches!(first, CatalogError::Unreachable { .. }), "{first}");
        // One outage is one line.
        assert_eq!(
            first.to_string(),
            catalog.list(&[]).unwrap_err().to_string()
        );
        assert!(matches!(
            catalog.answers(),
            Err(CatalogError::Unreachable { .. })
        ));
    }
}

#[test]
fn a_server_that_does_not_know_the_asker_is_there_all_the_same() {
    let server = failing(vec![said(401, "")]);
    let catalog = open(&server, &[("token", "t")]).unwrap();
    server.take();
    catalog.answers().unwrap();
    let asked = server.take();
    assert_eq!(asked[0].line, "GET /v1/config");
    assert_eq!(asked[0].header("authorization"), "");
}

#[test]
fn a_token_that_could_not_be_renewed_is_used_while_it_lasts() {
    let mut issued = 0;
    let server = Server::start(move |asked| match asked.line.as_str() {
        "GET /v1/config" => config(),
        "POST /v1/oauth/tokens" => {
            issued += 1;
            match issued {
                1 => ok(r#"{"access_token":"t1","token_type":"bearer","expires_in":3600}"#),
                _ => said(503, ""),
            }
        }
        _ => ok(r#"{"namespaces":[]}"#),
    });
    let given = [("credential", "id:secret"), ("rest.timeout-ms", "200")];
    let catalog = open(&server, &given).unwrap();
    let grow_old = |expired| {
        with_blocking("c", async {
            catalog
                .service
                .session
                .auth
                .tokens()
                .grow_old(expired)
                .await;
            Ok(())
        })
        .unwrap();
    };
    grow_old(false);
    catalog.list(&[]).unwrap();
    // Not asked for again at once.
    server.take();
    catalog.list(&[]).unwrap();
    assert_eq!(server.lines(), ["GET /v1/namespaces?pageToken="]);
    grow_old(true);
    let error = catalog.list(&[]).unwrap_err().to_string();
    assert!(error.contains("a token was asked for: HTTP 503"), "{error}");
}
