//! What a provider's error response means for the next step.

use crate::event::FailureClass;
use crate::message::Wire;
use serde_json::Value;

/// A response that is not a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub class: FailureClass,
    pub status: u16,
    /// The provider's own message, shortened, for users.
    pub detail: String,
}

const MAX_DETAIL: usize = 2000;

/// Reads a response with an error status.
pub fn classify(wire: Wire, status: u16, body: &str) -> Refusal {
    let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    // Gemini wraps its errors in a list when it streams.
    let error = match &value {
        Value::Array(items) => items.first().map_or(&Value::Null, |item| &item["error"]),
        value => &value["error"],
    };
    let message = error.get("message").and_then(Value::as_str);
    let code = error
        .get("code")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let detail: String = message.unwrap_or(body).chars().take(MAX_DETAIL).collect();
    let class = match status {
        400 | 413 | 422 if is_overflow(wire, code, &detail) => FailureClass::ContextOverflow,
        401 | 403 => FailureClass::Unauthorized,
        429 => FailureClass::RateLimited,
        503 | 529 => FailureClass::Overloaded,
        408 | 409 | 500..=599 => FailureClass::Unavailable,
        _ => FailureClass::Rejected,
    };
    Refusal {
        class,
        status,
        detail,
    }
}

/// Only OpenAI has a code for it.
fn is_overflow(wire: Wire, code: &str, detail: &str) -> bool {
    let detail = detail.to_ascii_lowercase();
    let says = |words: &str| detail.contains(words);
    match wire {
        Wire::AnthropicMessages => says("prompt is too long") || says("exceed context limit"),
        Wire::OpenaiChat | Wire::OpenaiResponses => {
            code == "context_length_exceeded"
                || says("maximum context length")
                || says("context window")
                || says("context size")
        }
        Wire::Gemini => says("exceeds the maximum number of tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_next_step() {
        let class = |status| classify(Wire::OpenaiChat, status, "{}").class;
        assert_eq!(class(400), FailureClass::Rejected);
        assert_eq!(class(401), FailureClass::Unauthorized);
        assert_eq!(class(429), FailureClass::RateLimited);
        assert_eq!(class(529), FailureClass::Overloaded);
        for status in [408, 409, 500, 502, 504] {
            assert_eq!(class(status), FailureClass::Unavailable);
            assert!(class(status).is_transient());
        }
    }

    #[test]
    fn a_window_that_is_too_small_is_told_from_a_bad_request() {
        let cases = [
            (
                Wire::AnthropicMessages,
                r#"{"error":{"message":"prompt is too long: 9 tokens"}}"#,
            ),
            (
                Wire::OpenaiChat,
                r#"{"error":{"code":"context_length_exceeded"}}"#,
            ),
            (
                Wire::OpenaiResponses,
                r#"{"error":{"message":"exceeds the context window"}}"#,
            ),
            (
                Wire::Gemini,
                r#"[{"error":{"message":"The input exceeds the maximum number of tokens"}}]"#,
            ),
        ];
        for (wire, body) in cases {
            let refusal = classify(wire, 400, body);
            assert_eq!(refusal.class, FailureClass::ContextOverflow, "{wire:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_shown_as_it_is() {
        let refusal = classify(Wire::Gemini, 502, "<html>bad gateway</html>");
        assert_eq!(refusal.detail, "<html>bad gateway</html>");
    }
}
