//! What a tool may try to reach on this machine: TCP, UDP and two kinds of Unix sockets. They record what they receive.

use crate::lab::testbed::lock;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A client that sends nothing is not waited for.
const PATIENCE: Duration = Duration::from_millis(500);

pub struct Listeners {
    pub tcp: u16,
    pub udp: u16,
    /// Answers every request with a redirect to [`Self::tcp`].
    pub redirecting: u16,
    /// Refuses every request with an error that repeats its key.
    pub echoing: u16,
    pub unix: PathBuf,
    /// The name of the abstract one.
    pub name: String,
    heard: Heard,
}

type Heard = Arc<Mutex<Vec<(&'static str, String)>>>;

impl Listeners {
    /// With the pathname socket in this directory.
    pub fn start(dir: &Path) -> std::io::Result<Self> {
        let heard = Heard::default();
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let redirecting = TcpListener::bind("127.0.0.1:0")?;
        let echoing = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind("127.0.0.1:0")?;
        let unix = dir.join("listener");
        let pathname = UnixListener::bind(&unix)?;
        let name = format!("siege-{}-{}", std::process::id(), tcp.local_addr()?.port());
        let abstract_one = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let listeners = Self {
            tcp: tcp.local_addr()?.port(),
            udp: udp.local_addr()?.port(),
            redirecting: redirecting.local_addr()?.port(),
            echoing: echoing.local_addr()?.port(),
            unix,
            name,
            heard: Arc::clone(&heard),
        };
        let body = "200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nhi\n".to_owned();
        serve_tcp(tcp, "tcp", move |_| body.clone(), Arc::clone(&heard));
        let location = format!("http://127.0.0.1:{}/led", listeners.tcp);
        let redirect =
            format!("307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        serve_tcp(
            redirecting,
            "redirecting",
            move |_| redirect.clone(),
            Arc::clone(&heard),
        );
        serve_tcp(echoing, "echoing", echo, Arc::clone(&heard));
        serve_unix(pathname, "unix", Arc::clone(&heard));
        serve_unix(abstract_one, "abstract", Arc::clone(&heard));
        std::thread::spawn(move || {
            let mut packet = [0; 2048];
            while let Ok(size) = udp.recv(&mut packet) {
                lock(&heard).push(("udp", text(&packet[..size])));
            }
        });
        Ok(listeners)
    }

    /// What this listener has received since the last call.
    pub fn take(&self, which: &str) -> Option<String> {
        let mut heard = lock(&self.heard);
        let found = heard.iter().find(|(from, _)| *from == which);
        let found = found.map(|(_, said)| said.clone());
        heard.retain(|(from, _)| *from != which);
        found
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A refusal with the key of the request in it.
fn echo(request: &str) -> String {
    let mut lines = request.lines();
    let key = lines.find_map(|line| line.strip_prefix("x-api-key: "));
    let message = format!("invalid x-api-key: {}", key.unwrap_or_default());
    let error = serde_json::json!({"type": "authentication_error", "message": message});
    let body = serde_json::json!({"type": "error", "error": error}).to_string();
    let length = body.len();
    format!(
        "401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn serve_tcp(
    listener: TcpListener,
    from: &'static str,
    answer: impl Fn(&str) -> String + Send + 'static,
    heard: Heard,
) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut said = [0; 8192];
            let _waits = stream.set_read_timeout(Some(PATIENCE));
            let size = stream.read(&mut said).unwrap_or_default();
            let said = text(&said[..size]);
            let answer = format!("HTTP/1.1 {}", answer(&said));
            lock(&heard).push((from, said));
            let _gone = stream.write_all(answer.as_bytes());
        }
    });
}

fn serve_unix(listener: UnixListener, from: &'static str, heard: Heard) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut said = [0; 4096];
            let _waits = stream.set_read_timeout(Some(PATIENCE));
            let size = stream.read(&mut said).unwrap_or_default();
            lock(&heard).push((from, text(&said[..size])));
        }
    });
}
