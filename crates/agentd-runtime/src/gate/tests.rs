//! The proxy with real connections on loopback.

use super::*;
use std::io::{BufRead as _, BufReader};

/// A server that answers `hello`. Returns its port, and the requests that it has received.
fn server() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = Vec::new();
            for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
                lines.push(line);
            }
            log.lock().unwrap().push(lines.join("\n"));
            let body = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
            (&stream).write_all(body.as_bytes()).unwrap();
        }
    });
    (port, heard)
}

fn gate(hosts: &[String]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hosts = Arc::new(Hosts::parse(hosts).unwrap());
    std::thread::spawn(move || serve(&listener, &hosts));
    port
}

fn said(gate: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", gate)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_listed_host_is_reached_by_request_and_by_tunnel() {
    let (port, heard) = server();
    let gate = gate(&[format!("127.0.0.1:{port}")]);
    let plain = said(
        gate,
        &format!(
            "GET http://127.0.0.1:{port}/a?b=c HTTP/1.1\r\nhost: other.example\r\nproxy-connection: keep-alive\r\n\
             x-own: 1\r\n\r\n"
        ),
    );
    assert!(plain.ends_with("hello"), "{plain}");
    let asked = heard.lock().unwrap().remove(0);
    assert_eq!(
        asked,
        format!("GET /a?b=c HTTP/1.1\nx-own: 1\nhost: 127.0.0.1:{port}\nconnection: close")
    );
    let tunnel = said(
        gate,
        &format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n"),
    );
    assert!(
        tunnel.starts_with("HTTP/1.1 200 Connection established"),
        "{tunnel}"
    );
    assert!(tunnel.ends_with("hello"), "{tunnel}");
    assert_eq!(heard.lock().unwrap().remove(0), "GET / HTTP/1.1\nhost: x");
}

#[test]
fn another_host_another_port_and_another_name_for_it_are_refused() {
    let (port, heard) = server();
    let (other, _) = server();
    let gate = gate(&[format!("127.0.0.1:{port}"), "localhost.example".to_owned()]);
    for target in [
        format!("127.0.0.1:{other}"),
        format!("localhost:{port}"),
        format!("2130706433:{port}"),
        format!("127.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("127.0.0.1:{port}@127.0.0.1:{other}"),
        "example.com:443".to_owned(),
    ] {
        let answer = said(gate, &format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
        assert!(answer.contains("`network` list"), "{target}: {answer}");
    }
    let answer = said(
        gate,
        &format!("GET http://localhost:{port}/ HTTP/1.1\r\n\r\n"),
    );
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn a_listed_name_does_not_lead_into_this_machine() {
    let hosts = Hosts::parse(["intranet.example", "10.0.0.7"]).unwrap();
    let resolved = [
        "127.0.0.1:80",
        "[::1]:80",
        "10.0.0.7:80",
        "10.0.0.8:80",
        "9.9.9.9:80",
    ];
    let resolved = resolved.map(|address| address.parse::<SocketAddr>().unwrap());
    let open = reachable(resolved.into_iter(), &hosts);
    assert_eq!(open, [resolved[2], resolved[4]]);
}

#[test]
fn what_is_no_request_is_refused() {
    let gate = gate(&["example.com".to_owned()]);
    for request in [
        "hello\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://example.com/ HTTP/1.1\r\n\r\n",
        "GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        "CONNECT example.com HTTP/1.1\r\n\r\n",
        "CONNECT :443 HTTP/1.1\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nhost: exa",
    ] {
        let answer = said(gate, request);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?}: {answer}");
    }
    let long = format!(
        "GET http://example.com/{} HTTP/1.1\r\n\r\n",
        "a".repeat(20_000)
    );
    let mut stream = TcpStream::connect(("127.0.0.1", gate)).unwrap();
    let _closed = stream.write_all(long.as_bytes());
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400 "));
}
