//! Approves a call that waits for the user, once or by a rule for all calls like it.

use super::approval::{Question, answer};
use super::create::check_spec;
use super::ops::Asked;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use agentd_client::api::{Approve, Call};
use agentd_core::event::{AnsweredBy, Decision, SpecSet};
use agentd_core::id::ApprovalId;
use agentd_core::patch::{self, Patch};
use agentd_core::permission::{Subject, verdict};
use agentd_core::shell_words;
use agentd_core::spec::{self, AgentSpec, Rule};

pub async fn approve(
    handle: &AgentHandle,
    approval: ApprovalId,
    (ask, by): (Approve, AnsweredBy),
    asked: &Asked,
) -> Result<()> {
    let question = Question {
        approval,
        hash: ask.hash,
        by,
    };
    let rule = |guard: &AgentGuard<'_>, call: Option<&Call>| match ask.always {
        true => {
            let spec = Box::new(with_rule(&guard.state.spec, call)?);
            Ok(vec![SpecSet { spec }.into()])
        }
        false => Ok(Vec::new()),
    };
    answer(handle, question, Decision::Allow, rule, asked).await
}

/// The agent's settings with one more rule, which allows the same call.
fn with_rule(spec: &AgentSpec, call: Option<&Call>) -> Result<AgentSpec> {
    let invalid = |what: &str| Error::new(Kind::Invalid, what);
    let call = call.ok_or_else(|| invalid("the call cannot be read, so no rule can name it"))?;
    if call.input.get("escalate").is_some() {
        let what = "a rule cannot let a call leave the sandbox";
        let next = "approve this call only, or add the directory to `writable:`";
        return Err(invalid(what).next(next));
    }
    let patterns = patterns(call);
    let has_wildcard = |pattern: &String| pattern.contains(['*', '?']);
    if patterns.iter().flatten().any(has_wildcard) {
        let what = "the call contains `*` or `?`, which a rule would read as a pattern";
        return Err(invalid(what).next("write the rule yourself: `agentd edit`"));
    }
    let mut spec = spec.clone();
    for pattern in &patterns {
        spec.permissions.push(Rule {
            tool: call.tool.clone(),
            pattern: pattern.clone(),
            decision: spec::Decision::Allow,
        });
    }
    for pattern in patterns {
        let subject = match (call.tool.as_str(), pattern) {
            (shell_words::TOOL, Some(line)) => Subject::Command(line),
            (_, name) => Subject::name(name.unwrap_or_default()),
        };
        let said = verdict(&spec.permissions, &call.tool, &subject);
        if said.is_none_or(|said| said.decision != spec::Decision::Allow) {
            let what = "another rule says ask for this call, and ask takes precedence over allow";
            return Err(invalid(what).next("change that rule: `agentd edit`"));
        }
    }
    check_spec(&spec)?;
    Ok(spec)
}

/// The patterns of rules that together allow the call and nothing else; a tool without a pattern is allowed as a whole.
fn patterns(call: &Call) -> Vec<Option<String>> {
    let text = |key: &str| call.input.get(key).and_then(|text| text.as_str());
    let pattern = match call.tool.as_str() {
        shell_words::TOOL => call.input.as_object().and_then(shell_words::line_of),
        "fetch_url" => text("url").map(str::to_owned),
        "write_file" | "edit_file" | "read_file" => text("file_path").map(str::to_owned),
        patch::TOOL => {
            let patch = Patch::parse(text("input").unwrap_or_default());
            let patch = patch.unwrap_or(Patch { files: Vec::new() });
            let paths = patch.paths().into_iter();
            return paths.map(|path| Some(path.to_owned())).collect();
        }
        _ => None,
    };
    vec![pattern]
}
