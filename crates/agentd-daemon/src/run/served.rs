//! The daemon's own sockets: one for clients, one for runtimes.
//!
//! A clean-up job may delete them. Then no client could reach the daemon, or start another one, because the first still
//! holds its lock. So the daemon creates them again. If the whole home was deleted, the daemon ends.

use super::{StartError, io_error};
use crate::daemon::Daemon;
use crate::ending::left;
use crate::layout::Layout;
use crate::service::Service;
use crate::sockets::listen;
use crate::spawn::keep;
use crate::{http, link};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// How often the daemon checks that the sockets exist.
const LOOK: Duration = Duration::from_millis(150);

/// The file of the API socket, by device and inode, if this daemon created it. The file of the service manager's socket
/// stays when the daemon ends.
#[derive(Clone, Debug, Default)]
pub struct ApiFile(Arc<Mutex<Option<(u64, u64)>>>);

impl ApiFile {
    /// This daemon has created the file.
    fn remember(&self, path: &Path) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = file_id(path);
    }

    /// Removes the file, if it is the one that this daemon created.
    pub fn remove(&self, path: &Path) {
        let created = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if created.is_some() && created == file_id(path) {
            let _gone = std::fs::remove_file(path);
        }
    }
}

fn file_id(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// The API sockets: the one that the service manager passed, and a new one if clients do not find that one.
pub async fn listen_api(
    layout: &Layout,
    service: &Service,
    file: &ApiFile,
) -> Result<Vec<UnixListener>, StartError> {
    let path = layout.api_socket();
    let mut listeners = Vec::new();
    if let Some(passed) = passed(&path, service)? {
        // It is served in any case: clients may have connected before its file was deleted.
        listeners.push(passed);
        if accepts(&path).await {
            return Ok(listeners);
        }
        tracing::warn!(socket = %path.display(), "file of the service manager's socket created again");
    }
    listeners.push(super::listen(&path)?);
    file.remember(&path);
    Ok(listeners)
}

/// The socket that the service manager passed. A socket for another home is not used: clients would not find this daemon
/// there.
fn passed(path: &Path, service: &Service) -> Result<Option<UnixListener>, StartError> {
    let Some(passed) = &service.listener else {
        return Ok(None);
    };
    let address = passed.local_addr().ok();
    if address.is_none_or(|address| address.as_pathname() != Some(path)) {
        tracing::warn!(socket = %path.display(), "socket of the service manager not used: another path");
        return Ok(None);
    }
    let passed = passed.try_clone().and_then(|passed| {
        passed.set_nonblocking(true)?;
        UnixListener::from_std(passed)
    });
    let passed = passed.map_err(io_error("the socket of the service manager cannot be used"))?;
    Ok(Some(passed))
}

/// Whether clients can connect to this path. Its file may be gone, or be left from a daemon that has ended.
async fn accepts(path: &Path) -> bool {
    match UnixStream::connect(path).await {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
        ),
    }
}

/// Serves the runtimes that connect to this socket, until the daemon ends.
pub fn serve_links(daemon: &Arc<Daemon>, listener: UnixListener) -> JoinHandle<()> {
    let (daemon, listener) = (Arc::clone(daemon), Arc::new(listener));
    let room = link::Room::default();
    keep("link", daemon.ending(), move || {
        link::serve(Arc::clone(&daemon), Arc::clone(&listener), room.clone())
    })
}

/// Serves the clients that connect to this socket, until the daemon ends.
pub fn serve_api(daemon: &Arc<Daemon>, listener: UnixListener) -> JoinHandle<()> {
    let (daemon, listener) = (Arc::clone(daemon), Arc::new(listener));
    let room = http::Room::of_daemon();
    keep("API", daemon.ending(), move || {
        http::serve(
            Arc::clone(&daemon),
            Arc::clone(&listener),
            None,
            room.clone(),
        )
    })
}

/// Creates deleted sockets again. Existing connections continue.
pub async fn reconcile(daemon: Arc<Daemon>, layout: Layout, api_file: ApiFile) {
    let mut ending = daemon.ending();
    // How many checks in a row have found each socket missing. A deletion of the whole home may begin with the sockets,
    // so a socket is created again only if two checks found it missing and the home still exists.
    let (mut links, mut apis) = (0, 0);
    loop {
        tokio::select! {
            () = left(&mut ending) => return,
            // tidy: polls
            () = tokio::time::sleep(LOOK) => {}
        }
        if daemon.check_home().is_err() {
            return;
        }
        if let Some(listener) = again(&layout, &layout.link_socket(), &mut links) {
            serve_links(&daemon, listener);
        }
        if let Some(listener) = again(&layout, &layout.api_socket(), &mut apis) {
            api_file.remember(&layout.api_socket());
            serve_api(&daemon, listener);
        }
    }
}

/// Creates a socket that two checks in a row found missing. None if it exists, or cannot be created now.
fn again(layout: &Layout, path: &Path, missing: &mut u32) -> Option<UnixListener> {
    if path.exists() {
        *missing = 0;
        return None;
    }
    *missing += 1;
    if *missing < 2 {
        return None;
    }
    let made = layout.make_below(&layout.run());
    match made.and_then(|()| listen(path)) {
        Ok(listener) => {
            tracing::warn!(socket = %path.display(), "deleted socket created again");
            Some(listener)
        }
        Err(error) => {
            tracing::error!(socket = %path.display(), %error, "deleted socket not created again");
            None
        }
    }
}
