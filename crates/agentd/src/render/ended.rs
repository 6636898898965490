//! How a turn ended without an answer, and what to do about it.

use super::limit::{meaning, value};
use super::word;
use agentd_core::event::{FailureClass, TurnEnded};
use agentd_core::spec::Limits;

/// How a turn ended, in words, and what to do next. `limits` are those that the turn had, if they are known.
pub fn lines(ended: &TurnEnded, limits: Option<&Limits>) -> (String, Option<String>) {
    let status = word(ended.status);
    match (ended.limit, ended.failure) {
        (Some(limit), _) => {
            let (what, key) = meaning(limit);
            let next = format!(
                "raise the limit with `agentd set NAME {key}=…`, then `agentd continue NAME` (in the chat: /continue)"
            );
            let number = limits.and_then(|limits| value(limit, limits));
            let number = number.map_or_else(String::new, |number| format!(" ({number})"));
            let line = format!("turn ended: {status}: it reached the limit on {what}{number}");
            (line, Some(next))
        }
        (None, Some(failure)) => {
            let line = format!("turn ended: {status}: {}", words(failure));
            (line, next(failure, "NAME"))
        }
        (None, None) => (format!("turn ended: {status}"), None),
    }
}

/// What went wrong.
const fn words(failure: FailureClass) -> &'static str {
    match failure {
        FailureClass::Unavailable => "the provider had an error",
        FailureClass::RateLimited => "the provider's rate limit is reached",
        FailureClass::Overloaded => "the provider is overloaded",
        FailureClass::Unreachable => "the provider cannot be reached",
        FailureClass::Dropped => "the connection to the provider broke",
        FailureClass::Malformed => "the provider's reply cannot be read",
        FailureClass::ContextOverflow => "the request does not fit into the model's context window",
        FailureClass::TurnTooLarge => "the turn alone does not fit into the model's context window",
        FailureClass::Unauthorized => "the provider refused the key",
        FailureClass::Rejected => "the provider rejected the request",
        FailureClass::Refused => "the model declined to answer",
        FailureClass::Blocked => "a hook refused the prompt",
        FailureClass::ProgramFailed => "the agent's program failed",
    }
}

/// What to do about it; none if only the provider's own words help.
pub fn next(failure: FailureClass, name: &str) -> Option<String> {
    Some(match failure {
        // Most often the provider has no such model.
        FailureClass::Rejected => format!(
            "`agentd models` lists models; choose another with `agentd set {name} model=…`, or `--model` for `agentd run`"
        ),
        FailureClass::Unauthorized => {
            "store the key with `agentd secret set`, or set its variable, and send the prompt again"
                .to_owned()
        }
        FailureClass::ContextOverflow | FailureClass::TurnTooLarge => format!(
            "`agentd compact {name}` or `agentd rewind {name}`, or a model with a larger window (`agentd models`)"
        ),
        FailureClass::ProgramFailed => format!(
            "`agentd logs {name} --process` shows what the program wrote; `agentd show {name}` shows its `command`"
        ),
        failure if failure.is_transient() => "send the prompt again later".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::{LimitKind, TurnStatus};

    #[test]
    fn a_limit_is_named_in_words_with_the_setting_and_what_continues_the_turn() {
        let ended = TurnEnded {
            limit: Some(LimitKind::Iterations),
            ..TurnEnded::with(TurnStatus::Limited)
        };
        let (line, next) = lines(&ended, None);
        assert_eq!(
            line,
            "turn ended: limited: it reached the limit on model requests of one turn"
        );
        let next = next.unwrap();
        for part in ["limits.max_iterations", "agentd continue", "/continue"] {
            assert!(next.contains(part), "{part}: {next}");
        }
        let limits = Limits {
            max_iterations: 7,
            ..Limits::default()
        };
        let (line, _) = lines(&ended, Some(&limits));
        assert!(line.ends_with("model requests of one turn (7)"), "{line}");
    }

    #[test]
    fn a_rejected_request_leads_to_the_list_of_models() {
        let ended = TurnEnded {
            failure: Some(FailureClass::Rejected),
            ..TurnEnded::with(TurnStatus::Failed)
        };
        let (line, next) = lines(&ended, None);
        assert_eq!(
            line,
            "turn ended: failed: the provider rejected the request"
        );
        assert!(next.unwrap().contains("agentd models"));
    }

    #[test]
    fn a_program_that_failed_is_not_called_a_provider() {
        let ended = TurnEnded {
            failure: Some(FailureClass::ProgramFailed),
            ..TurnEnded::with(TurnStatus::Failed)
        };
        let (line, next) = lines(&ended, None);
        assert_eq!(line, "turn ended: failed: the agent's program failed");
        let next = next.unwrap();
        assert!(next.contains("agentd logs NAME --process"), "{next}");
        assert!(!next.contains("agentd models"), "{next}");
    }

    #[test]
    fn an_interrupted_turn_needs_no_next_step() {
        let ended = TurnEnded::with(TurnStatus::Interrupted);
        assert_eq!(
            lines(&ended, None),
            ("turn ended: interrupted".to_owned(), None)
        );
    }
}
