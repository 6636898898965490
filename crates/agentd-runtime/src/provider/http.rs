//! A provider over HTTP. Providers differ in the URL of a request and the header of the key; the formats of request and
//! reply are in `agentd_core::wire`.

use super::{Failure, Options, SetUpError, address};
use crate::tls;
use agentd_core::draft::Delta;
use agentd_core::event::FailureClass;
use agentd_core::message::Wire;
use agentd_core::request::Request;
use agentd_core::secrets::Secrets;
use agentd_core::wire;
use agentd_core::wire::stream::{Decoder, End};
use agentd_failpoint as failpoint;
use futures_util::{Stream, StreamExt as _};
use sse_stream::SseStream;
use std::error::Error;
use std::io::{self, Cursor};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    options: Options,
}

/// Error bodies are read up to this length.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How much of an error body is shown to users.
const MAX_DETAIL: usize = 2000;
/// The limit on the size of a document that is not a reply of a model.
const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;
/// The limit on the size of a reply on the wire. It is many times what any model returns.
const MAX_REPLY_BYTES: usize = 32 * 1024 * 1024;

impl Http {
    pub fn new(options: Options) -> Result<Self, SetUpError> {
        let is_http = ["http://", "https://"]
            .iter()
            .any(|scheme| options.base_url.starts_with(scheme));
        if !is_http {
            return Err(SetUpError::BadAddress {
                url: options.base_url,
            });
        }
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config().map_err(SetUpError::Tls)?)
            .connect_timeout(options.connect_timeout)
            .read_timeout(options.silence)
            .default_headers(address::headers(&options)?)
            // A redirect must not send the key to another server.
            .redirect(match failpoint::injected_bug("provider_redirects") {
                true => reqwest::redirect::Policy::limited(5),
                false => reqwest::redirect::Policy::none(),
            })
            .build()
            .map_err(SetUpError::Client)?;
        Ok(Self { client, options })
    }

    pub async fn stream(
        &self,
        request: &Request,
        on_delta: impl FnMut(Delta) + Send,
    ) -> Result<End, Failure> {
        let url = address::url(&self.options, &request.context.model);
        let body = wire::body(request);
        let response = self.client.post(url).body(body).send().await;
        let response = response.map_err(|error| dropped(&error))?;
        if !response.status().is_success() {
            let whom = Whom {
                provider: &request.context.provider,
                model: &request.context.model,
            };
            return Err(self.refused(response).await.naming(whom, &self.options));
        }
        read(self.options.wire, response.bytes_stream(), on_delta).await
    }

    /// A short document: at most [`MAX_DOCUMENT_BYTES`].
    pub async fn get(&self, url: &str) -> Result<Vec<u8>, Failure> {
        let response = self.client.get(url).send().await;
        let response = response.map_err(|error| dropped(&error))?;
        let status = response.status();
        if !status.is_success() {
            let mut failure = self.refused(response).await;
            failure.detail = format!("HTTP {}: {}", status.as_u16(), failure.detail);
            return Err(failure);
        }
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(|error| dropped(&error))?);
            if body.len() > MAX_DOCUMENT_BYTES {
                let detail = format!("the answer has more than {MAX_DOCUMENT_BYTES} bytes");
                return Err(Failure::new(FailureClass::Rejected, detail));
            }
        }
        Ok(body)
    }

    pub fn redact(&mut self, secrets: &Secrets) {
        if failpoint::injected_bug("errors_unredacted") {
            self.options.secrets = Secrets::default();
            return;
        }
        let own = std::mem::take(&mut self.options.secrets);
        self.options.secrets = own.and(secrets.values());
    }

    /// A provider's error may repeat what was sent to it, so it is redacted.
    pub fn redacted(&self, mut failure: Failure) -> Failure {
        let detail = self.options.secrets.redact(&failure.detail);
        failure.detail = detail.chars().take(MAX_DETAIL).collect();
        failure
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
        // Redacted before it is shortened: half of a key would not be recognised.
        let body = self.options.secrets.redact_cut(&body);
        let refusal = wire::failure::classify(self.options.wire, status, &body);
        Failure {
            class: refusal.class,
            status: Some(refusal.status),
            retry_after_ms,
            detail: refusal.detail,
        }
    }
}

/// Whom a request was for.
#[derive(Clone, Copy)]
struct Whom<'a> {
    provider: &'a str,
    model: &'a str,
}

impl Failure {
    /// The words of the provider, with what the user needs to know to do something about them.
    fn naming(mut self, whom: Whom<'_>, options: &Options) -> Self {
        let Whom { provider, model } = whom;
        let Some(status) = self.status else {
            return self;
        };
        let said = match self.detail.trim() {
            "" => String::new(),
            said => format!(": {said}"),
        };
        self.detail = match self.class {
            FailureClass::Unauthorized => {
                let from = match options.key_env.first() {
                    Some(name) => format!(" ({name}; `agentd secret set {name}` stores one)"),
                    None => String::new(),
                };
                format!(
                    "{provider} refused the key{from}, or the lack of one, with HTTP {status}{said}"
                )
            }
            _ => format!("{provider} answered HTTP {status} for the model {model}{said}"),
        };
        self
    }
}

/// Reads a reply from a streamed body, independent of the chunk boundaries.
pub async fn read<D, E>(
    wire: Wire,
    body: impl Stream<Item = Result<D, E>>,
    mut on_delta: impl FnMut(Delta),
) -> Result<End, Failure>
where
    D: AsRef<[u8]>,
    E: Error + Send + Sync + 'static,
{
    let is_too_large = AtomicBool::new(false);
    let mut length = 0;
    // Bytes are counted before parsing: an event that never ends would never be counted.
    let body = body.map(|chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        length += chunk.as_ref().len();
        if length > MAX_REPLY_BYTES {
            is_too_large.store(true, Ordering::Relaxed);
            return Err(io::Error::other("it is too large"));
        }
        Ok(Cursor::new(chunk))
    });
    let mut events = pin!(SseStream::from_bytes_stream(body));
    let mut decoder = Decoder::new(wire);
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| {
            if is_too_large.load(Ordering::Relaxed) {
                // A retry would get the same reply.
                let detail = format!("the reply has more than {MAX_REPLY_BYTES} bytes");
                return Failure::new(FailureClass::Rejected, detail);
            }
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

/// The text of the HTTP client names the URL and not the reason, so the causes are used instead. Without a connection
/// only the last one is of use: the others say in other words that there is none.
fn dropped(error: &reqwest::Error) -> Failure {
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    let (class, what) = match error.is_connect() {
        true => (FailureClass::Unreachable, "cannot reach"),
        false => (FailureClass::Dropped, "the connection broke to"),
    };
    if error.is_connect() && causes.len() > 1 {
        causes.drain(..causes.len() - 1);
    }
    let whom = error.url().map_or_else(
        || "the provider".to_owned(),
        |url| url.origin().ascii_serialization(),
    );
    let why: String = causes.iter().map(|cause| format!(": {cause}")).collect();
    Failure::new(class, format!("{what} {whom}{why}"))
}
