//! Addresses, content types, and redirects.

use super::super::tests::Fixture;
use super::is_text;
use agentd_core::message::CallOutcome;
use agentd_core::spec::Decision;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.options.tools = Some(vec!["fetch_url".into()]);
    fixture
}

/// Answers each path with what is given for it; returns its address.
fn server(answers: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let answer = answers.iter().find(|(for_path, _)| *for_path == path);
            let (_, answer) = answer.unwrap_or(&("", "404 Not Found\r\n\r\nnothing here"));
            let answer = format!("HTTP/1.1 {answer}");
            // The client may have gone.
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn only_web_addresses_are_fetched() {
    let fixture = fixture();
    for (url, said) in [
        ("file:///etc/passwd", "only http and https"),
        ("ftp://a/b", "only http and https"),
        ("no address", "`url` is not a valid URL"),
    ] {
        let text = fixture.error("fetch_url", json!({"url": url})).await;
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn texts_are_told_from_the_rest() {
    for kind in [
        "text/html",
        "application/json",
        "application/ld+json",
        "application/xml",
    ] {
        assert!(is_text(kind), "{kind}");
    }
    for kind in ["image/png", "application/octet-stream", "application/zip"] {
        assert!(!is_text(kind), "{kind}");
    }
}

#[tokio::test]
async fn a_text_is_fetched_and_an_error_is_one() {
    let base = server(&[
        (
            "/a",
            "200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nhello sk-0123456789",
        ),
        ("/b", "200 OK\r\nContent-Type: image/png\r\n\r\nx"),
        (
            "/c",
            "302 Found\r\nLocation: /a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            "/d",
            "302 Found\r\nLocation: /d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
    ]);
    let fixture = fixture();
    for path in ["/a", "/c"] {
        let url = format!("{base}{path}");
        let text = fixture.ok("fetch_url", json!({"url": url})).await;
        assert_eq!(text, format!("{base}/a 200 OK\nhello [redacted by agentd]"));
    }
    for (path, said) in [
        (
            "/b",
            "The content type is image/png; only text is returned.",
        ),
        ("/d", "more than 5 redirects"),
        ("/e", "404 Not Found\nnothing here"),
    ] {
        let url = format!("{base}{path}");
        let text = fixture.error("fetch_url", json!({"url": url})).await;
        assert!(text.contains(said), "{text}");
    }
}

#[tokio::test]
async fn a_rule_holds_for_where_an_address_leads() {
    let base = server(&[(
        "/c",
        "302 Found\r\nLocation: /secret\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    )]);
    let fixture = fixture().rule("fetch_url", "*/secret*", Decision::Deny);
    let url = format!("{base}/x/../secret");
    let finished = fixture.finish("fetch_url", json!({"url": url})).await;
    assert_eq!(finished.outcome, CallOutcome::Denied);
    let url = format!("{base}/c");
    let text = fixture.error("fetch_url", json!({"url": url})).await;
    assert!(text.contains("which needs a separate call"), "{text}");
}
