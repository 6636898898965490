//! The gate: an HTTP proxy that leads to the hosts of an agent's `network` list and nowhere else.
//!
//! Each sandboxed command of such an agent has one, in a process of its own, which its shim starts and which ends with the
//! shim. Clients are hostile: a host is checked by the name that was asked for and by the address that it is resolved to, and
//! that address is the one that is connected to.

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

/// Connections at once; the next one waits.
const CONNECTIONS: usize = 64;
/// How long a client may take to say what it wants.
const ASKING: Duration = Duration::from_secs(10);
/// How long one address may take.
const CONNECTING: Duration = Duration::from_secs(10);
/// A connection on which nobody says anything for so long is closed.
const SILENCE: Duration = Duration::from_secs(600);
/// Between two tries where there are no descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// If this process was started as a gate: is one, and never comes back.
pub fn run_if_asked(args: impl IntoIterator<Item = OsString>) {
    let mut args = args.into_iter().skip(1);
    if args.next().is_none_or(|first| first != GATE_ARGUMENT) {
        return;
    }
    let hosts = Hosts::parse(args.map(|host| host.to_string_lossy().into_owned()));
    // Nobody would hear of an error: the clients find a closed port.
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

/// Serves connections, one thread each, for ever.
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
            // Whatever went wrong, the connection is closed.
            let _closed = lead(&client, &hosts);
            drop(permit);
        };
        // Without a thread the connection is closed.
        drop(std::thread::Builder::new().spawn(lead));
    }
}

/// How many more connections there may be.
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

/// Many programs show the words of the status, and not the text behind it.
const NOT_LISTED: &str = "403 Host not listed";

/// What a client is told that is led nowhere.
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

/// Until the end of what one has to say.
fn pass(from: &TcpStream, to: &TcpStream) {
    let whole = io::copy(&mut &*from, &mut &*to);
    let _closed = match whole {
        Ok(_) => to.shutdown(Shutdown::Write),
        // The other direction is of no use then.
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
        let why = format!("{host} is not on the public internet, and its address is not listed");
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

/// Those of a name's addresses that may be connected to.
fn reachable(found: impl Iterator<Item = SocketAddr>, hosts: &Hosts) -> Vec<SocketAddr> {
    found
        .filter(|address| hosts.allow_address(address.ip()))
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
