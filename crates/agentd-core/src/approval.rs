//! Decides whether a tool call runs, needs the user's approval or is refused, from the agent's rules, its approval
//! mode and its sandbox.
//!
//! Among matching rules, deny beats ask and ask beats allow. The mode applies only if no rule matches. An allow rule
//! skips the approval, and it skips the sandbox only as far as it names what the call needs. An agent that never asks
//! (`approval: never`) refuses every call that asks to leave the sandbox.

use crate::canonical;
use crate::permission::{Because, Verdict};
use crate::spec::{ApprovalMode, Decision, Rule};
use sha2::{Digest as _, Sha256};

/// What a call would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// It changes something, or uses the network.
    pub change: bool,
    /// It asks to write or reach more than the sandbox permits.
    pub leave_sandbox: bool,
    /// An allow rule of the user names all that it needs: see [`needs::covering`](crate::needs::covering).
    pub is_covered: bool,
}

/// Ordered by strictness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    Run,
    /// The user must approve the call, for this reason.
    Ask(String),
    /// The call is refused. The model gets this text.
    Refuse(String),
}

/// `verdict` is the decision of the rules, or `None` if no rule matches the call.
pub fn rule(mode: ApprovalMode, verdict: Option<&Verdict>, wants: Wants) -> Ruling {
    let because = |verdict: &Verdict| verdict.because.to_string();
    if let Some(denied) = verdict.filter(|verdict| verdict.decision == Decision::Deny) {
        return Ruling::Refuse(format!(
            "The agent's permission rules do not allow this call; nothing was run. {}.",
            capital(&because(denied))
        ));
    }
    let may_leave = wants.is_covered && mode != ApprovalMode::Never;
    let why = if wants.leave_sandbox && !may_leave {
        Some("the call asks to leave the sandbox".to_owned())
    } else {
        match verdict.map(|verdict| verdict.decision) {
            Some(Decision::Ask) => verdict.map(|verdict| without_words(&verdict.because)),
            None if mode == ApprovalMode::Always && wants.change => {
                Some("the agent asks about every change (`approval: always`)".to_owned())
            }
            _ => None,
        }
    };
    match why {
        None => Ruling::Run,
        Some(why) if mode == ApprovalMode::Never => Ruling::Refuse(format!(
            "This call needs the user's approval ({why}), but this agent never asks (`approval: never`); nothing was \
             run. Find another way, or report what is missing."
        )),
        Some(why) => Ruling::Ask(why),
    }
}

/// The digest of a call and of everything it runs with. An approval is bound to it.
pub fn digest(call: &serde_json::Value) -> String {
    let text = canonical::sorted(call.clone()).to_string();
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reason without any text of the call, because the journal keeps the reason when the call's text is purged.
fn without_words(because: &Because) -> String {
    let named = |rule: &Rule| match &rule.pattern {
        Some(pattern) => format!("`ask {} {pattern}`", rule.tool),
        None => format!("`ask {}`", rule.tool),
    };
    match because {
        Because::Rule { rule, .. } => format!("the rule {} matches", named(rule)),
        Because::CouldMatch { rule, .. } => format!("the rule {} could match", named(rule)),
        Because::Opaque(_) => "a command decides at run time what it runs".to_owned(),
        other => other.to_string(),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{Subject, verdict};

    const CHANGE: Wants = Wants {
        change: true,
        leave_sandbox: false,
        is_covered: false,
    };
    const LOOK: Wants = Wants {
        change: false,
        leave_sandbox: false,
        is_covered: false,
    };
    const LEAVE: Wants = Wants {
        change: true,
        leave_sandbox: true,
        is_covered: false,
    };
    const COVERED: Wants = Wants {
        is_covered: true,
        ..LEAVE
    };

    fn ruled(mode: ApprovalMode, decision: Option<Decision>, wants: Wants) -> &'static str {
        let rules: Vec<Rule> = decision
            .map(|decision| Rule {
                tool: "shell".to_owned(),
                pattern: None,
                decision,
                needs: Vec::new(),
            })
            .into_iter()
            .collect();
        let said = verdict(&rules, "shell", &Subject::Command("ls".to_owned()));
        match rule(mode, said.as_ref(), wants) {
            Ruling::Run => "run",
            Ruling::Ask(_) => "ask",
            Ruling::Refuse(_) => "refuse",
        }
    }

    #[test]
    fn the_whole_table() {
        use ApprovalMode::{Always, Never, OnRequest};
        use Decision::{Allow, Ask, Deny};
        let table = [
            (None, LOOK, ["run", "run", "run"]),
            (None, CHANGE, ["run", "ask", "run"]),
            (None, LEAVE, ["ask", "ask", "refuse"]),
            (Some(Allow), LOOK, ["run", "run", "run"]),
            (Some(Allow), CHANGE, ["run", "run", "run"]),
            // An allow rule skips the sandbox only if it names what the call needs.
            (Some(Allow), LEAVE, ["ask", "ask", "refuse"]),
            (Some(Allow), COVERED, ["run", "run", "refuse"]),
            (Some(Ask), LOOK, ["ask", "ask", "refuse"]),
            (Some(Ask), CHANGE, ["ask", "ask", "refuse"]),
            (Some(Ask), LEAVE, ["ask", "ask", "refuse"]),
            (Some(Ask), COVERED, ["ask", "ask", "refuse"]),
            (Some(Deny), LOOK, ["refuse", "refuse", "refuse"]),
            (Some(Deny), CHANGE, ["refuse", "refuse", "refuse"]),
            (Some(Deny), LEAVE, ["refuse", "refuse", "refuse"]),
            (Some(Deny), COVERED, ["refuse", "refuse", "refuse"]),
        ];
        for (decision, wants, expected) in table {
            let found = [OnRequest, Always, Never].map(|mode| ruled(mode, decision, wants));
            assert_eq!(found, expected, "{decision:?} {wants:?}");
        }
    }

    #[test]
    fn the_strictest_of_several_counts() {
        let ask = Ruling::Ask(String::new());
        assert!(Ruling::Run < ask && ask < Ruling::Refuse(String::new()));
    }

    #[test]
    fn an_approval_is_bound_to_a_call_in_whatever_order_its_keys_were_written() {
        let call = |text: &str| digest(&serde_json::from_str(text).unwrap());
        let one = call(r#"["shell",{"command":"ls","cwd":"/"}]"#);
        assert_eq!(one, call(r#"["shell",{"cwd":"/","command":"ls"}]"#));
        assert_ne!(one, call(r#"["shell",{"cwd":"/","command":"rm"}]"#));
        let text = r#"["shell",{"command":"ls","cwd":"/"}]"#;
        assert_eq!(one, crate::digest::sha256(text.as_bytes()));
    }
}
