//! The URL and the headers of a request.

use super::{Options, SetUpError};
use agentd_core::message::Wire;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};

const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The base URL is the one that the vendor's SDK takes, with or without a trailing slash.
pub fn url(options: &Options, model: &str) -> String {
    let base = options.base_url.trim_end_matches('/');
    match options.wire {
        Wire::AnthropicMessages => format!("{base}/v1/messages"),
        Wire::OpenaiChat => format!("{base}/chat/completions"),
        Wire::OpenaiResponses => format!("{base}/responses"),
        Wire::Gemini => {
            let model = model.trim_start_matches("models/");
            format!("{base}/v1beta/models/{model}:streamGenerateContent?alt=sse")
        }
    }
}

pub fn headers(options: &Options) -> Result<HeaderMap, SetUpError> {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if options.wire == Wire::AnthropicMessages {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    if let Some(key) = &options.key {
        let (name, value) = match options.wire {
            Wire::AnthropicMessages => (
                HeaderName::from_static("x-api-key"),
                key.expose().to_owned(),
            ),
            Wire::Gemini => (
                HeaderName::from_static("x-goog-api-key"),
                key.expose().to_owned(),
            ),
            Wire::OpenaiChat | Wire::OpenaiResponses => {
                (header::AUTHORIZATION, format!("Bearer {}", key.expose()))
            }
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| SetUpError::BadKey)?;
        // So that no log of the HTTP client shows it.
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// In milliseconds or seconds; the date form is ignored, because it needs a clock.
pub fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let number =
        |name: &str| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let ms = number("retry-after-ms").or_else(|| number("retry-after").map(|s| s * 1000.0))?;
    (ms.is_finite() && ms >= 0.0).then_some(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Key;

    fn options(wire: Wire) -> Options {
        Options::new(wire, "http://127.0.0.1:1/", Some(Key::new("k")))
    }

    #[test]
    fn each_format_has_its_place() {
        let at = |wire| url(&options(wire), "m");
        assert_eq!(
            at(Wire::AnthropicMessages),
            "http://127.0.0.1:1/v1/messages"
        );
        assert_eq!(at(Wire::OpenaiChat), "http://127.0.0.1:1/chat/completions");
        assert_eq!(at(Wire::OpenaiResponses), "http://127.0.0.1:1/responses");
        let gemini = "http://127.0.0.1:1/v1beta/models/m:streamGenerateContent?alt=sse";
        assert_eq!(at(Wire::Gemini), gemini);
        assert_eq!(url(&options(Wire::Gemini), "models/m"), gemini);
    }

    #[test]
    fn the_key_is_marked_as_secret_in_every_format() {
        for wire in Wire::ALL {
            let headers = headers(&options(wire)).unwrap();
            assert_eq!(
                headers
                    .values()
                    .filter(|value| value.is_sensitive())
                    .count(),
                1
            );
        }
    }

    #[test]
    fn retry_after_is_read_in_both_units() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after_ms(&headers), None);
        headers.insert("retry-after", HeaderValue::from_static("1.5"));
        assert_eq!(retry_after_ms(&headers), Some(1500));
        headers.insert("retry-after-ms", HeaderValue::from_static("20"));
        assert_eq!(retry_after_ms(&headers), Some(20));
        headers.insert("retry-after-ms", HeaderValue::from_static("soon"));
        assert_eq!(retry_after_ms(&headers), Some(1500));
    }
}
