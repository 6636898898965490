//! The service manager that started the daemon, if one did: the socket that it passed, and what it is told.
//!
//! The program reads this from its environment. Everything here works without a service manager too, and does nothing.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Service {
    /// The API socket, if the service manager listens on it. The file belongs to the service manager.
    pub listener: Option<Arc<UnixListener>>,
    pub notify: Option<Arc<Notify>>,
    /// Whether it is the user's own service manager, which creates scopes for agents. The system's manager does so for
    /// root only, and a scope of another manager would end when the user logs out.
    pub is_users_own: bool,
    /// The daemon is killed and started again if it sends no sign of life for this long.
    pub watchdog: Option<Duration>,
    pub without_scopes: Arc<WithoutScopes>,
}

/// Why agents run without scopes although they should have them; none if they have them. The starts of agents' processes
/// change it, and `GET /v1/daemon` shows it.
#[derive(Debug, Default)]
pub struct WithoutScopes(Mutex<Option<String>>);

impl WithoutScopes {
    fn inner(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, why: Option<String>) {
        *self.inner() = why;
    }

    pub fn why(&self) -> Option<String> {
        self.inner().clone()
    }
}

/// What the service manager is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The daemon serves requests.
    Ready,
    /// It is alive.
    Alive,
    /// It has begun to end.
    Stopping,
}

impl News {
    const fn text(self) -> &'static str {
        match self {
            Self::Ready => "READY=1\nSTATUS=serving requests",
            Self::Alive => "WATCHDOG=1",
            Self::Stopping => "STOPPING=1",
        }
    }
}

/// The socket on which the service manager receives news.
#[derive(Debug)]
pub struct Notify {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Notify {
    /// The socket that `NOTIFY_SOCKET` names: a path, or an abstract name after `@`.
    pub fn at(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        // A service manager that does not read may not delay the daemon.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }
}

impl Service {
    pub fn tell(&self, news: News) {
        let Some(notify) = &self.notify else { return };
        let text = news.text().as_bytes();
        if let Err(error) = notify.socket.send_to_addr(text, &notify.address) {
            tracing::warn!(?news, %error, "service manager not told");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(at: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = at.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn news_go_to_a_path_and_to_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        let name = format!("agentd-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        for (socket, name) in [
            (&by_path, path.into_os_string()),
            (&by_name, format!("@{name}").into()),
        ] {
            let service = Service {
                notify: Some(Arc::new(Notify::at(&name).unwrap())),
                ..Service::default()
            };
            service.tell(News::Stopping);
            assert_eq!(received(socket), "STOPPING=1");
        }
    }

    #[test]
    fn without_a_service_manager_there_is_nothing_to_tell() {
        Service::default().tell(News::Ready);
    }
}
