//! Errors of the API as errors of the protocol. Editors show the message alone, so it also says what to do next.

use crate::error::Error as CliError;
use agent_client_protocol::v1::schema::{self, SessionId};
use agent_client_protocol::{Error, ErrorCode};
use serde_json::json;

/// Codes outside the ranges that JSON-RPC and the protocol reserve.
const REFUSED: i32 = 3;
const UNAVAILABLE: i32 = 4;
const WAITING: i32 = 6;

pub fn of(error: impl Into<CliError>) -> Error {
    let error = error.into();
    let failure = error.failure();
    let code = match failure.kind {
        "usage" => ErrorCode::INVALID_PARAMS,
        "not_found" => ErrorCode::RESOURCE_NOT_FOUND,
        "refused" | "limited" => ErrorCode::new(REFUSED),
        "unavailable" => ErrorCode::new(UNAVAILABLE),
        "waiting" => ErrorCode::new(WAITING),
        _ => ErrorCode::INTERNAL_ERROR,
    };
    Error::new(code, message(&error)).data(json!({
        "kind": failure.kind,
        "why": failure.why,
        "next": failure.next,
    }))
}

/// What failed, why, and what to do next.
pub fn message(error: &CliError) -> String {
    let failure = error.failure();
    let mut message = failure.error.to_owned();
    if let Some(why) = failure.why {
        message.push_str(": ");
        message.push_str(why);
    }
    if let Some(next) = failure.next {
        message.push_str("; next: ");
        message.push_str(next);
    }
    message
}

/// A session that is not open in this connection, or does not exist.
pub fn no_session(id: &SessionId) -> Error {
    let mut error: Error = schema::Error::session_not_found(id.clone()).into();
    error.message =
        format!("no session {id} is open; next: open it with session/load or session/resume");
    error
}

/// Logs to stderr: stdout belongs to the protocol.
pub fn log(error: &CliError) {
    use std::io::Write as _;
    let text = crate::terminal::uncoloured(&error.to_string());
    let _closed = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Exit;

    #[test]
    fn a_message_says_what_to_do_next() {
        let error = CliError::new(Exit::NotFound, "there is no agent x")
            .because("it was never created")
            .next("`agentd create x`");
        let found = of(error);
        assert_eq!(found.code, ErrorCode::RESOURCE_NOT_FOUND);
        assert_eq!(
            found.message,
            "there is no agent x: it was never created; next: `agentd create x`"
        );
        assert_eq!(found.data.unwrap()["next"], "`agentd create x`");
    }
}
