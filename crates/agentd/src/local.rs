//! Model servers on this machine, found without a configuration.

use crate::providers::variable;
use agentd_core::catalog::{Catalog, ProviderEntry};
use agentd_runtime::provider::{Options, ServedError, served_models};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::Duration;

/// How long a server may take to accept a connection, including the resolution of its name.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long a server may take to list its models.
const LIST_LIMIT: Duration = Duration::from_secs(2);

/// The base URL of Ollama, from `OLLAMA_HOST` or its default address, if a server answers there.
pub fn ollama(catalog: &Catalog) -> Option<String> {
    let address = address(catalog.provider("ollama")?)?;
    answers(&address).then_some(address)
}

/// The models that a server without a key lists.
pub async fn models(entry: &ProviderEntry) -> Result<Vec<String>, ServedError> {
    let base_url = address(entry).unwrap_or_default();
    let mut options = Options::new(entry.wire, base_url, None);
    options.connect_timeout = LIST_LIMIT;
    served_models(options, LIST_LIMIT).await
}

/// Whether a server answered that it wants a key.
pub fn wants_key(error: &ServedError) -> bool {
    let ServedError::Failed(failure) = error else {
        return false;
    };
    matches!(failure.status, Some(401 | 403))
}

/// The provider's base URL, which a variable may change.
fn address(entry: &ProviderEntry) -> Option<String> {
    let moved = entry.base_url_env.as_deref().and_then(variable);
    entry.address(moved.as_deref())
}

/// Whether a server accepts connections at this URL.
fn answers(url: &str) -> bool {
    let (rest, port) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (rest, 80),
        (_, Some(rest)) => (rest, 443),
        _ => return false,
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let target = match has_port {
        true => authority.to_owned(),
        false => format!("{authority}:{port}"),
    };
    let (answer, answered) = mpsc::channel();
    // On its own thread: the resolution of a name has no time limit.
    std::thread::spawn(move || {
        let found = target.to_socket_addrs().is_ok_and(|mut addresses| {
            addresses.any(|at| TcpStream::connect_timeout(&at, PATIENCE).is_ok())
        });
        // The caller may have given up.
        let _gone = answer.send(found);
    });
    answered.recv_timeout(PATIENCE).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::FailureClass;
    use agentd_runtime::provider::Failure;
    use std::net::TcpListener;

    #[test]
    fn a_server_that_wants_a_key_is_told_from_one_that_fails() {
        let failed = |status| {
            ServedError::Failed(Failure {
                class: FailureClass::Unavailable,
                status,
                retry_after_ms: None,
                detail: String::new(),
            })
        };
        assert!(wants_key(&failed(Some(401))));
        assert!(!wants_key(&failed(Some(500))));
        assert!(!wants_key(&failed(None)));
        assert!(!wants_key(&ServedError::TimedOut(PATIENCE)));
    }

    #[test]
    fn a_server_is_found_where_it_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        assert!(answers(&format!("http://{at}/v1")));
        drop(listener);
        assert!(!answers(&format!("http://{at}/v1")));
        for wrong in ["", "ftp://127.0.0.1:1", "http://", "http://127.0.0.1:x"] {
            assert!(!answers(wrong), "{wrong}");
        }
    }
}
