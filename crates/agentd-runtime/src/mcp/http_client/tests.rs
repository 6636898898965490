//! Answers of services, from a listener on loopback.

use super::*;
use crate::mcp::http;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A service that answers one request with these headers, and then with the chunk as often as it is read, up to a number.
async fn answers(head: &'static str, chunk: Vec<u8>, most: usize) -> Arc<str> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await;
        let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..most {
            // The client has enough.
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
    });
    format!("http://{address}/mcp").into()
}

/// Reads a small request, up to the end of its body.
async fn read_request(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"}") {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the request was cut off");
        seen.extend_from_slice(&buffer[..read]);
    }
}

fn request() -> ClientJsonRpcMessage {
    serde_json::from_value(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap()
}

async fn post(uri: Arc<str>) -> Result<StreamableHttpPostResponse, Failed> {
    let client = BoundedClient::new(http::client().unwrap());
    let headers = Headers::new();
    client
        .post_message(uri, request(), None, None, headers)
        .await
}

#[tokio::test]
async fn a_body_without_end_is_not_read_to_its_end() {
    let head = "200 OK\r\ncontent-type: application/json";
    let uri = answers(head, vec![b' '; 1 << 20], 4096).await;
    let error = post(uri).await.unwrap_err().to_string();
    assert!(error.contains("more than 16 MiB"), "{error}");
}

#[tokio::test]
async fn an_event_without_end_is_not_read_to_its_end() {
    let head = "200 OK\r\ncontent-type: text/event-stream";
    let chunk = b"data: x\r\n".repeat(1 << 16);
    let uri = answers(head, chunk, 1 << 16).await;
    let Ok(StreamableHttpPostResponse::Sse(mut events, _)) = post(uri).await else {
        panic!();
    };
    let error = events.next().await.unwrap().unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
}

#[tokio::test]
async fn a_message_is_read() {
    let head = "200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s1";
    let answer = br#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#.to_vec();
    let uri = answers(head, answer, 1).await;
    let Ok(StreamableHttpPostResponse::Json(message, session)) = post(uri).await else {
        panic!();
    };
    assert!(matches!(message, JsonRpcMessage::Response(_)));
    assert_eq!(session.as_deref(), Some("s1"));
}

#[tokio::test]
async fn a_refusal_is_named_and_cut() {
    let head = "400 Bad Request\r\ncontent-type: text/plain";
    let uri = answers(head, b"no such thing ".repeat(1000), 1).await;
    let error = post(uri).await.unwrap_err().to_string();
    assert!(error.contains("HTTP 400"), "{error}");
    assert!(
        error.contains("no such thing") && error.len() < 3000,
        "{}",
        error.len()
    );
    let head = "401 Unauthorized\r\nwww-authenticate: Bearer";
    let error = post(answers(head, Vec::new(), 0).await).await;
    assert!(matches!(error, Err(Failed::AuthRequired(_))));
}

#[test]
fn an_empty_line_ends_an_event() {
    for end in ["\n", "\r\n", "\r"] {
        let mut size = EventSize::default();
        let event = format!("data: abc{end}id: 1{end}{end}");
        let largest = size.largest_with(event.repeat(100).as_bytes());
        assert!(largest <= event.len() + 1, "{end:?} {largest}");
        let lines = format!("data: abc{end}").repeat(100);
        assert!(
            size.largest_with(lines.as_bytes()) >= lines.len(),
            "{end:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_connection_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = http::client().unwrap();
    let refused = client.get(format!("http://{address}/mcp")).send().await;
    let text = not_sent(&refused.unwrap_err()).to_string();
    assert!(text.contains("Connection refused"), "{text}");
    assert!(text.contains(&address.to_string()), "{text}");
}
