//! One request to a model, streamed: over HTTP, or to the model that is built in.
//!
//! [`connect`] makes a [`Provider`] of what the catalog says, with its key from wherever that is.

mod address;
mod connect;
mod demo;
mod http;
mod key;
mod key_source;

pub use connect::{ConnectError, Overrides, connect};
pub use demo::{Demo, HELP as DEMO_HELP};
pub use http::read;
pub use key::Key;
pub use key_source::{KeyError, find_key};

use agentd_core::draft::Delta;
use agentd_core::event::FailureClass;
use agentd_core::message::Wire;
use agentd_core::request::Request;
use agentd_core::secrets::Secrets;
use agentd_core::wire::stream::{Broken, End};
use std::time::Duration;

/// How a try failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Failure {
    pub class: FailureClass,
    pub status: Option<u16>,
    /// What the provider asked for.
    pub retry_after_ms: Option<u64>,
    /// For people; never holds the key.
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

/// The provider cannot be set up at all.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    #[error(
        "`{url}` is not an address of a provider; give one that begins with http:// or https://"
    )]
    BadAddress { url: String },
    #[error("the key holds characters that cannot be sent; check where it comes from")]
    BadKey,
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[source] reqwest::Error),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[source] rustls::Error),
}

/// Where to find a provider.
#[derive(Clone, Debug)]
pub struct Options {
    pub wire: Wire,
    /// As the vendor's own SDK takes it.
    pub base_url: String,
    pub key: Option<Key>,
    /// What must not be in any error text, whatever the provider repeats: the key, and all others that are known.
    pub secrets: Secrets,
    pub connect_timeout: Duration,
    /// A stream that is silent for so long has been cut off.
    pub silence: Duration,
}

impl Options {
    pub fn new(wire: Wire, base_url: impl Into<String>, key: Option<Key>) -> Self {
        Self {
            wire,
            base_url: base_url.into(),
            secrets: Secrets::new(key.iter().map(|key| key.expose().to_owned())),
            key,
            connect_timeout: Duration::from_secs(20),
            silence: Duration::from_secs(300),
        }
    }
}

/// A provider that can be asked. Clones share their connections.
#[derive(Clone)]
pub struct Provider {
    way: Way,
}

#[derive(Clone)]
enum Way {
    Http(http::Http),
    Demo(Demo),
}

impl Provider {
    /// One that is asked over HTTP.
    pub fn new(options: Options) -> Result<Self, SetUpError> {
        let way = Way::Http(http::Http::new(options)?);
        Ok(Self { way })
    }

    /// The same, whose error texts are without these as well.
    #[must_use]
    pub fn redacting(mut self, secrets: &Secrets) -> Self {
        if let Way::Http(http) = &mut self.way {
            http.redact(secrets);
        }
        self
    }

    /// The model that is built in.
    pub const fn demo(demo: Demo) -> Self {
        let way = Way::Demo(demo);
        Self { way }
    }

    /// Sends a request and hands out what streams back. Dropping the future lets go of the request.
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
        }
    }
}
