//! Approves a call that waits for the user, once or by a rule for all calls like it.

use super::approval::{Answered, Question, answer};
use super::create::check_spec;
use super::ops::Asked;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use agentd_client::api::{Approve, Call};
use agentd_core::event::{AnsweredBy, Decision, SpecSet};
use agentd_core::id::ApprovalId;
use agentd_core::patch::{self, Change, Patch};
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
    let rule = |guard: &AgentGuard<'_>, what: &Answered| {
        if what.question.is_some() && !ask.always {
            super::answer::check(guard, what, &serde_json::Map::new())?;
            return Ok(Vec::new());
        }
        if what.question.is_some() {
            let what = "no rule can answer the question of an MCP server";
            return Err(Error::new(Kind::Invalid, what));
        }
        match ask.always {
            true => {
                let spec = Box::new(with_rule(&guard.state.spec, what.call.as_ref())?);
                Ok(vec![SpecSet { spec }.into()])
            }
            false => Ok(Vec::new()),
        }
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
    let allowed = allowed(call);
    let has_wildcard = |pattern: &String| pattern.contains(['*', '?']);
    let mut patterns = allowed.iter().filter_map(|rule| rule.pattern.as_ref());
    if patterns.any(has_wildcard) {
        let what = "the call contains `*` or `?`, which a rule would read as a pattern";
        return Err(invalid(what).next("write the rule yourself: `agentd edit`"));
    }
    let mut spec = spec.clone();
    spec.permissions.extend(allowed);
    for subject in subjects(call) {
        let said = verdict(&spec.permissions, &call.tool, &subject);
        if said.is_none_or(|said| said.decision != spec::Decision::Allow) {
            let what = "another rule says ask for this call, and ask takes precedence over allow";
            return Err(invalid(what).next("change that rule: `agentd edit`"));
        }
    }
    check_spec(&spec)?;
    Ok(spec)
}

/// The rules that together allow the call and nothing else; a tool without a pattern is allowed as a whole. A patch that
/// updates a file is allowed as an edit of it, so that the rule does not allow to delete the file.
fn allowed(call: &Call) -> Vec<Rule> {
    let rule = |tool: &str, pattern: Option<String>| Rule {
        tool: tool.to_owned(),
        pattern,
        decision: spec::Decision::Allow,
    };
    if call.tool == patch::TOOL {
        let patch = patch_of(call);
        let rules = patch.changes().map(|(path, change)| {
            let tool = match change {
                Change::Update => "edit_file",
                Change::Write => "write_file",
                Change::Remove => patch::TOOL,
            };
            rule(tool, Some(path.to_owned()))
        });
        return rules.collect();
    }
    vec![rule(&call.tool, pattern(call))]
}

/// What the rules are asked about.
fn subjects(call: &Call) -> Vec<Subject> {
    if call.tool == patch::TOOL {
        let patch = patch_of(call);
        let subjects = patch.changes().map(|(path, change)| Subject::Patched {
            names: vec![path.to_owned()],
            change,
        });
        return subjects.collect();
    }
    vec![match (call.tool.as_str(), pattern(call)) {
        (shell_words::TOOL, Some(line)) => Subject::Command(line),
        (_, name) => Subject::name(name.unwrap_or_default()),
    }]
}

fn text<'a>(call: &'a Call, key: &str) -> Option<&'a str> {
    call.input.get(key).and_then(|text| text.as_str())
}

fn patch_of(call: &Call) -> Patch {
    let patch = Patch::parse(text(call, "input").unwrap_or_default());
    patch.unwrap_or(Patch { files: Vec::new() })
}

fn pattern(call: &Call) -> Option<String> {
    match call.tool.as_str() {
        shell_words::TOOL => call.input.as_object().and_then(shell_words::line_of),
        "fetch_url" => text(call, "url").map(str::to_owned),
        "write_file" | "edit_file" | "read_file" => text(call, "file_path").map(str::to_owned),
        _ => None,
    }
}
