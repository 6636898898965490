//! One request to a model, streamed. Formats differ in where a request goes and how its key is shown;
//! what it says and how the answer reads is `agentd_core::wire`.

mod address;
mod key;

pub use key::Key;

use agentd_core::draft::Delta;
use agentd_core::event::FailureClass;
use agentd_core::message::Wire;
use agentd_core::request::Request;
use agentd_core::wire;
use agentd_core::wire::stream::{Broken, Decoder, End};
use futures_util::StreamExt as _;
use sse_stream::SseStream;
use std::error::Error as _;
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
}

/// Where to find a provider.
#[derive(Clone, Debug)]
pub struct Options {
    pub wire: Wire,
    /// As the vendor's own SDK takes it.
    pub base_url: String,
    pub key: Option<Key>,
    pub connect_timeout: Duration,
    /// A stream that is silent for so long has been cut off.
    pub silence: Duration,
}

impl Options {
    pub fn new(wire: Wire, base_url: impl Into<String>, key: Option<Key>) -> Self {
        Self {
            wire,
            base_url: base_url.into(),
            key,
            connect_timeout: Duration::from_secs(20),
            silence: Duration::from_secs(300),
        }
    }
}

/// A provider that can be asked. Clones share their connections.
#[derive(Clone)]
pub struct Provider {
    http: reqwest::Client,
    options: Options,
}

/// Errors are read up to this length.
const MAX_ERROR_BYTES: usize = 64 * 1024;

impl Provider {
    pub fn new(options: Options) -> Result<Self, SetUpError> {
        let is_http = ["http://", "https://"]
            .iter()
            .any(|scheme| options.base_url.starts_with(scheme));
        if !is_http {
            return Err(SetUpError::BadAddress {
                url: options.base_url,
            });
        }
        // Somebody else in this process may have chosen one before: theirs is as good.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.silence)
            .default_headers(address::headers(&options)?)
            // A key must not follow a redirect to somebody else.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(SetUpError::Client)?;
        Ok(Self { http, options })
    }

    /// Sends a request and hands out what streams back. Dropping the future lets go of the request.
    pub async fn stream(
        &self,
        request: &Request,
        mut on_delta: impl FnMut(Delta) + Send,
    ) -> Result<End, Failure> {
        let url = address::url(&self.options, &request.context.model);
        let body = wire::encode(request).to_string();
        let response = self.http.post(url).body(body).send().await;
        let response = response.map_err(|error| dropped(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut events = SseStream::from_bytes_stream(response.bytes_stream());
        let mut decoder = Decoder::new(self.options.wire);
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| {
                let detail = format!("the stream broke: {error}");
                Failure::new(FailureClass::Dropped, detail)
            })?;
            let Some(data) = event.data else { continue };
            for delta in decoder.event(&data)? {
                on_delta(delta);
            }
        }
        Ok(decoder.finish()?)
    }

    async fn refused(&self, response: reqwest::Response) -> Failure {
        let status = response.status().as_u16();
        let retry_after_ms = address::retry_after_ms(response.headers());
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BYTES {
                break;
            }
        }
        let body = String::from_utf8_lossy(&body);
        let refusal = wire::failure::classify(self.options.wire, status, &body);
        Failure {
            class: refusal.class,
            status: Some(refusal.status),
            retry_after_ms,
            detail: refusal.detail,
        }
    }
}

/// The client's own words name the address and hide the reason behind it.
fn dropped(error: &reqwest::Error) -> Failure {
    let mut detail = "the provider cannot be reached".to_owned();
    let mut source = error.source();
    while let Some(cause) = source {
        detail = format!("{detail}: {cause}");
        source = cause.source();
    }
    Failure::new(FailureClass::Dropped, detail)
}
