//! A server that is a service: streamable HTTP. The user chose its URL, so it is used as it is, and no redirect is followed:
//! headers go to that host only.

use super::Error;
use super::http_client::BoundedClient;
use crate::tls;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::BTreeMap;

pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<BoundedClient>, Error> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    // A call is never sent twice.
    config.reinit_on_expired_session = false;
    for (name, value) in headers {
        let bad = || Error::Settings(format!("the header `{name}` is not valid"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        config.custom_headers.insert(key, value);
    }
    let client = BoundedClient::new(client()?);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

pub(super) fn client() -> Result<reqwest::Client, Error> {
    let tls = tls::config().map_err(|error| Error::CannotStart(error.to_string()))?;
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| Error::CannotStart(error.to_string()))
}
