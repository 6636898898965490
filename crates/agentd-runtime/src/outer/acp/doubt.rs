//! Sessions that do not work any more. Some programs keep a call without its result when its turn is cut off, and then
//! every later prompt of the session fails. Such a session is given up: the next prompt begins a new one, which is
//! told the conversation so far. No prompt is sent twice. The session's file says so before the turn fails, because another
//! process may be given the next prompt.

use serde_json::Value;
use std::sync::atomic::{AtomicU8, Ordering};

/// The error of a program without a login.
const NO_LOGIN: i64 = -32000;

/// What an error says if it gives the session up.
pub const GIVEN_UP: &str = "; the program's session does not work after the turn that was cut off: the next prompt begins \
     a new session, which is told the conversation so far";

/// What is known of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompted {
    /// The turn before ended as usual.
    AsUsual,
    /// The turn before was interrupted or cut off.
    AfterCut,
}

/// Whether the session is given up.
#[derive(Default)]
pub struct Doubt(AtomicU8);

const NONE: u8 = 0;
const DOUBTFUL: u8 = 1;
const GIVEN: u8 = 2;

impl Doubt {
    /// The session is given a prompt.
    pub fn prompted(&self, how: Prompted) {
        let doubt = match how {
            Prompted::AsUsual => NONE,
            Prompted::AfterCut => DOUBTFUL,
        };
        self.0.store(doubt, Ordering::Release);
    }

    /// The prompt was answered with this error. Returns whether the session is given up.
    pub fn failed(&self, error: &Value) -> bool {
        if error["code"].as_i64() == Some(NO_LOGIN) {
            return false;
        }
        let (from, to) = (DOUBTFUL, GIVEN);
        let changed = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok()
    }

    /// Whether the session was given up, and no other has begun.
    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == GIVEN
    }

    /// The session that was given up is not used any more.
    pub fn clear(&self) {
        self.0.store(NONE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_error_after_a_cut_gives_the_session_up() {
        // As Gemini CLI answers after a call without a result.
        let error = json!({"code": 400, "message": "{\"error\":{\"code\":400,\"status\":\"INVALID_ARGUMENT\"}}"});
        let doubt = Doubt::default();
        doubt.prompted(Prompted::AsUsual);
        assert!(!doubt.failed(&error));
        assert!(!doubt.is_given_up());
        doubt.prompted(Prompted::AfterCut);
        assert!(!doubt.failed(&json!({"code": -32000, "message": "log in"})));
        assert!(doubt.failed(&error));
        assert!(!doubt.failed(&error), "once");
        assert!(doubt.is_given_up());
        doubt.clear();
        assert!(!doubt.is_given_up());
        // A session that has answered since is not doubted.
        doubt.prompted(Prompted::AfterCut);
        doubt.prompted(Prompted::AsUsual);
        assert!(!doubt.failed(&error));
    }
}
