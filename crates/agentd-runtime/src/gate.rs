//! The gate: an HTTP proxy that connects only to the hosts of an agent's `network` list.
//!
//! Each sandboxed command of such an agent has its own gate, in a separate process that the shim starts and that ends
//! with the shim. Clients are untrusted: a host is checked by the requested name and by the address that it resolves
//! to, and the gate connects to exactly that address.

mod ask;

use agentd_core::hosts::Hosts;
use agentd_process::shim::GATE_ARGUMENT;
use ask::{Ask, Way};
use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The limit on concurrent connections; the next one waits.
const CONNECTIONS: usize = 64;
/// How long a client may take to send its request.
const ASKING: Duration = Duration::from_secs(10);
/// The connect timeout for one address.
const CONNECTING: Duration = Duration::from_secs(10);
/// A connection without any data for this long is closed.
const SILENCE: Duration = Duration::from_secs(600);
/// The pause between two attempts when there are no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// If this process was started as a gate: runs it and never returns.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_none_or(|first| first != GATE_ARGUMENT) {
        return;
    }
    let hosts = Hosts::parse(args.map(|host| host.to_string_lossy().into_owned()));
    // There is no way to report an error: the clients find a closed port.
    let Ok(hosts) = hosts else {
        std::process::exit(2);
    };
    let listener = io::stdin().as_fd().try_clone_to_owned();
    let until = io::stdout().as_fd().try_clone_to_owned();
    let (Ok(listener), Ok(until)) = (listener, until) else {
        std::process::exit(2);
    };
    std::thread::spawn(move || {
        let mut until = PipeReader::from(until);
        let _closed = until.read(&mut [0]);
        std::process::exit(0);
    });
    serve(&TcpListener::from(listener), &Arc::new(hosts));
}

/// Serves connections forever, one thread each.
pub fn serve(listener: &TcpListener, hosts: &Arc<Hosts>) -> ! {
    let room = Arc::new(Room::default());
    loop {
        let permit = Room::take(&room);
        let Ok((client, _)) = listener.accept() else {
            // tidy: polls until there are descriptors again
            std::thread::sleep(PAUSE);
            continue;
        };
        let hosts = Arc::clone(hosts);
        let lead = move || {
            // After any error the connection is closed.
            let _closed = lead(&client, &hosts);
            drop(permit);
        };
        // If no thread can be started, the connection is closed.
        drop(std::thread::Builder::new().spawn(lead));
    }
}

/// The number of connections that may still be opened.
struct Room {
    left: Mutex<usize>,
    freed: Condvar,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            left: Mutex::new(CONNECTIONS),
            freed: Condvar::new(),
        }
    }
}

struct Permit(Arc<Room>);

impl Room {
    fn take(room: &Arc<Self>) -> Permit {
        let left = room.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = room.freed.wait_while(left, |left| *left == 0);
        *left.unwrap_or_else(PoisonError::into_inner) -= 1;
        Permit(Arc::clone(room))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// Many programs show the status line and not the body.
const NOT_LISTED: &str = "403 Host not listed";

/// The response to a client whose request is refused.
struct Refusal {
    status: &'static str,
    why: String,
}

fn lead(client: &TcpStream, hosts: &Hosts) -> io::Result<()> {
    client.set_read_timeout(Some(ASKING))?;
    client.set_write_timeout(Some(SILENCE))?;
    let found = ask::read(client)
        .map_err(|why| Refusal {
            status: "400 Bad Request",
            why,
        })
        .and_then(|ask| Ok((connect(&ask, hosts)?, ask)));
    let (server, ask) = match found {
        Ok(found) => found,
        Err(refusal) => return refuse(client, &refusal),
    };
    for stream in [client, &server] {
        stream.set_read_timeout(Some(SILENCE))?;
    }
    server.set_write_timeout(Some(SILENCE))?;
    match ask.way {
        Way::Tunnel => {
            let said = b"HTTP/1.1 200 Connection established\r\n\r\n";
            (&mut &*client).write_all(said)?;
        }
        Way::Request(head) => (&mut &server).write_all(&head)?,
    }
    (&mut &server).write_all(&ask.more)?;
    std::thread::scope(|scope| {
        scope.spawn(|| pass(client, &server));
        pass(&server, client);
    });
    Ok(())
}

/// Copies until the end of the input.
fn pass(from: &TcpStream, to: &TcpStream) {
    let whole = io::copy(&mut &*from, &mut &*to);
    let _closed = match whole {
        Ok(_) => to.shutdown(Shutdown::Write),
        // The other direction is of no use any more.
        Err(_) => from
            .shutdown(Shutdown::Both)
            .and_then(|()| to.shutdown(Shutdown::Both)),
    };
}

fn connect(ask: &Ask, hosts: &Hosts) -> Result<TcpStream, Refusal> {
    let Ask { host, port, .. } = ask;
    let forbidden = |why: String| Refusal {
        status: NOT_LISTED,
        why,
    };
    if !hosts.allow(host, *port) {
        let why = format!("{host}:{port} is not in this agent's `network` list: {hosts}");
        return Err(forbidden(why));
    }
    let unreachable = |error: io::Error| Refusal {
        status: "502 Bad Gateway",
        why: format!("{host}:{port}: {error}"),
    };
    let plain = host.trim_matches(['[', ']']);
    let found = (plain, *port).to_socket_addrs().map_err(unreachable)?;
    let open = reachable(found, hosts);
    if open.is_empty() {
        let why = format!(
            "{host} is not on the public internet, and its address is not in the `network` list"
        );
        return Err(forbidden(why));
    }
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in open {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(server) => return Ok(server),
            Err(error) => last = error,
        }
    }
    Err(unreachable(last))
}

/// The addresses of a name that may be connected to.
fn reachable(found: impl Iterator<Item = SocketAddr>, hosts: &Hosts) -> Vec<SocketAddr> {
    found
        .filter(|address| hosts.allow_address(address.ip(), address.port()))
        .collect()
}

fn refuse(mut client: &TcpStream, refusal: &Refusal) -> io::Result<()> {
    let Refusal { status, why } = refusal;
    let body = format!("agentd: {why}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests;
