//! The request of a gate's client: the head of one HTTP request.

use httparse::{EMPTY_HEADER, Request, Status};
use reqwest::Url;
use std::io::Read;

/// The limit on the size of a head.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 100;

pub struct Ask {
    pub host: String,
    pub port: u16,
    pub way: Way,
    /// What the client has sent after the head.
    pub more: Vec<u8>,
}

pub enum Way {
    /// `CONNECT`: a tunnel in both directions.
    Tunnel,
    /// The head of the request to send to the server.
    Request(Vec<u8>),
}

/// Reads a request; the error says what is wrong with it.
pub fn read(mut client: impl Read) -> Result<Ask, String> {
    let mut said = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let count = client.read(&mut bytes);
        let count = count.map_err(|error| format!("the request could not be read: {error}"))?;
        if count == 0 {
            return Err("the request ends inside its head".to_owned());
        }
        said.extend(bytes.iter().take(count));
        if let Some(ask) = parse(&said)? {
            return Ok(ask);
        }
        if said.len() >= MAX_HEAD {
            return Err("the head of the request is too long".to_owned());
        }
    }
}

/// `None` if the head is incomplete.
fn parse(said: &[u8]) -> Result<Option<Ask>, String> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    let parsed = request.parse(said).map_err(|error| error.to_string())?;
    let Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    let more = said.get(length..).unwrap_or_default().to_vec();
    if method == "CONNECT" {
        let (host, port) = authority(target)?;
        let way = Way::Tunnel;
        return Ok(Some(Ask {
            host,
            port,
            way,
            more,
        }));
    }
    let url: Url = target
        .parse()
        .map_err(|_| "this is a proxy: the request needs an absolute URL".to_owned())?;
    let (Some(host), "http") = (url.host_str(), url.scheme()) else {
        return Err("only http URLs can be requested; use CONNECT for https".to_owned());
    };
    let mut path = url.path().to_owned();
    if let Some(query) = url.query() {
        path = format!("{path}?{query}");
    }
    let mut head = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    for header in request.headers.iter() {
        if !is_of_proxy(header.name) {
            head.extend_from_slice(header.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(header.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    // The server gets the host name that was checked. One request per connection: the next one may be to another host.
    let named = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    head.extend_from_slice(format!("host: {named}\r\nconnection: close\r\n\r\n").as_bytes());
    Ok(Some(Ask {
        host: host.to_owned(),
        port: url.port_or_known_default().unwrap_or(80),
        way: Way::Request(head),
        more,
    }))
}

/// Headers that are between the client and the gate, and the host, which is replaced.
fn is_of_proxy(name: &str) -> bool {
    const OURS: [&str; 7] = [
        "connection",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "upgrade",
    ];
    OURS.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// `HOST:PORT`, with an IPv6 address in brackets.
fn authority(text: &str) -> Result<(String, u16), String> {
    let found = text.rsplit_once(':');
    let found = found.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
    found
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| format!("`{text}` is not a host with a port"))
}
