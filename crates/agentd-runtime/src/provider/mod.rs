//! One request to a model, streamed: over HTTP, or to the built-in model.
//!
//! [`connect`] creates a [`Provider`] from the catalog's entry, and finds its key.

mod address;
mod connect;
mod demo;
mod http;
mod key;
mod key_source;
mod served;

pub use connect::{ConnectError, Overrides, connect};
pub use demo::{Demo, HELP as DEMO_HELP};
pub use http::read;
pub use key::Key;
pub use key_source::{KeyError, check_own_source, find_key, key_file};
pub use served::{ServedError, served_models};

use crate::outer::Outer;
use agentd_core::draft::Delta;
use agentd_core::event::FailureClass;
use agentd_core::message::Wire;
use agentd_core::request::Request;
use agentd_core::secrets::Secrets;
use agentd_core::wire::stream::{Broken, End};
use std::time::Duration;

/// How an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failure {
    pub class: FailureClass,
    pub status: Option<u16>,
    /// The wait that the provider asked for.
    pub retry_after_ms: Option<u64>,
    /// For users; never contains the key.
    pub detail: String,
}

impl Failure {
    fn new(class: FailureClass, detail: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            retry_after_ms: None,
            detail: detail.into(),
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::new(broken.class, broken.detail)
    }
}

/// The provider cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error("`{url}` is not a provider URL; it must begin with http:// or https://")]
    BadAddress { url: String },
    #[error("the key contains characters that cannot be sent; check its source")]
    BadKey,
    #[error("cannot set up the HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[source] rustls::Error),
}

/// The address and settings of a provider.
#[derive(Clone, Debug)]
pub struct Options {
    pub wire: Wire,
    /// The base URL, as the vendor's own SDK takes it.
    pub base_url: String,
    pub key: Option<Key>,
    /// Redacted in every error text: the key, and all other known secrets. A provider may repeat what it was sent.
    pub secrets: Secrets,
    /// The variables that may hold the key, for errors about it.
    pub key_env: Vec<String>,
    pub connect_timeout: Duration,
    /// A stream without data for this long counts as cut off.
    pub silence: Duration,
}

impl Options {
    pub fn new(wire: Wire, base_url: impl Into<String>, key: Option<Key>) -> Self {
        Self {
            wire,
            base_url: base_url.into(),
            secrets: Secrets::new(key.iter().map(|key| key.expose().to_owned())),
            key,
            key_env: Vec::new(),
            connect_timeout: Duration::from_secs(20),
            silence: Duration::from_secs(300),
        }
    }
}

/// A provider that is ready for requests. Clones share their connections.
#[derive(Clone)]
pub struct Provider {
    way: Way,
}

#[derive(Clone)]
enum Way {
    Http(http::Http),
    Demo(Demo),
    Outer(Outer),
}

impl Provider {
    /// A provider over HTTP.
    pub fn new(options: Options) -> Result<Self, SetUpError> {
        let way = Way::Http(http::Http::new(options)?);
        Ok(Self { way })
    }

    /// The same provider, with more secrets to redact in error texts.
    #[must_use]
    pub fn redacting(mut self, secrets: &Secrets) -> Self {
        if let Way::Http(http) = &mut self.way {
            http.redact(secrets);
        }
        self
    }

    /// The built-in model.
    pub const fn demo(demo: Demo) -> Self {
        let way = Way::Demo(demo);
        Self { way }
    }

    /// The program of an outer agent, in place of a model.
    pub const fn outer(outer: Outer) -> Self {
        let way = Way::Outer(outer);
        Self { way }
    }

    pub(crate) const fn as_outer(&self) -> Option<&Outer> {
        match &self.way {
            Way::Outer(outer) => Some(outer),
            Way::Http(_) | Way::Demo(_) => None,
        }
    }

    /// Sends a request and passes on the streamed reply. Dropping the future cancels the request.
    pub async fn stream(
        &self,
        request: &Request,
        on_delta: impl FnMut(Delta) + Send,
    ) -> Result<End, Failure> {
        match &self.way {
            Way::Http(http) => http
                .stream(request, on_delta)
                .await
                .map_err(|it| http.redacted(it)),
            Way::Demo(demo) => Ok(demo.stream(request, on_delta).await),
            Way::Outer(_) => {
                let detail = "an outer agent answers no requests";
                Err(Failure::new(FailureClass::Rejected, detail))
            }
        }
    }
}
