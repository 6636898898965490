//! The user's decision about a call of the agent or of one of its subagents. The first decision counts, from any
//! client, and only for the call that the user saw.

use super::create::check_spec;
use super::held;
use super::ops::Asked;
use super::send;
use crate::agent_handle::{AgentGuard, AgentHandle};
use crate::caller::Caller;
use crate::clock;
use crate::daemon::Daemon;
use crate::problem::Result;
use crate::supervisor::end_process;
use crate::view;
use agentd_client::api::{Answered, Call};
use agentd_client::{Kind, Problem};
use agentd_core::event::{AnsweredBy, ApprovalAnswered, Body, Decision, PromptMode, SpecSet};
use agentd_core::id::{ApprovalId, PromptId};
use agentd_core::permission::{Subject, verdict};
use agentd_core::plain::is_plain_line;
use agentd_core::spec::{self, AgentSpec, Rule};
use agentd_failpoint as failpoint;
use std::sync::Arc;

/// Characters of a client's name that are recorded.
const CLIENT_CHARACTERS: usize = 64;

pub fn answered_by(caller: Caller, client: Option<&str>) -> AnsweredBy {
    let client = client.filter(|client| is_plain_line(client));
    AnsweredBy {
        caller: caller.kind().to_owned(),
        uid: rustix::process::getuid().as_raw(),
        client: client.map(|client| client.chars().take(CLIENT_CHARACTERS).collect()),
    }
}

pub async fn decide(
    daemon: &Arc<Daemon>,
    handle: &Arc<AgentHandle>,
    approval: ApprovalId,
    (answer, by): (Answered, AnsweredBy),
    asked: &Asked,
) -> Result<()> {
    let mut asker = Arc::clone(handle);
    if !is_asked(&asker.lock().await, approval) {
        // The call may belong to a subagent, whose approvals the same user decides.
        let below = view::subagents::below(daemon, handle).await;
        for answered in below.iter().chain([handle]) {
            if asked.is_made(&answered.lock().await.state)? {
                return Ok(());
            }
        }
        for child in below {
            if is_asked(&child.lock().await, approval) {
                asker = child;
                break;
            }
        }
    }
    let handle = &asker;
    let mut guard = handle.lock().await;
    held::check_released(&guard.state)?;
    if !is_asked(&guard, approval) {
        let what = format!("no call is waiting for approval {approval}");
        return Err(Problem::new(Kind::Conflict, what)
            .because("it was answered or withdrawn, or never existed"));
    }
    let call = view::approvals::call(daemon, &guard, approval).await;
    check_hash(&answer, call.as_ref())?;
    let mut bodies = vec![Body::from(ApprovalAnswered {
        by: Some(by),
        ..ApprovalAnswered::new(approval, answer.decision)
    })];
    let wider = match (answer.always, answer.decision) {
        (false, _) => None,
        (true, Decision::Allow) => Some(with_rule(&guard.state.spec, call.as_ref())?),
        (true, Decision::Deny) => {
            let what = "`always` is for approvals only";
            return Err(Problem::new(Kind::Invalid, what));
        }
    };
    let changes_spec = wider.is_some();
    bodies.extend(wider.map(|spec| {
        let spec = Box::new(spec);
        Body::from(SpecSet { spec })
    }));
    if let Some(reason) = &answer.reason {
        // As a prompt that steers the turn: the model reads it together with the refusal.
        let prompt = PromptId::new(clock::new_id());
        bodies.extend(send::bodies(prompt, reason, None, PromptMode::Steer)?);
    }
    guard.note(bodies.into_iter().chain(asked.line())).await?;
    // The answer is durable before it counts.
    failpoint::hit("at", "barrier.5");
    if changes_spec {
        end_process(&mut guard);
    }
    daemon.reconcile(handle, &mut guard);
    Ok(())
}

fn is_asked(guard: &AgentGuard<'_>, approval: ApprovalId) -> bool {
    let mut waiting = guard.state.approvals.waiting();
    waiting.any(|(id, _)| *id == approval)
}

/// Checks that the call that would run is the one that the user saw.
fn check_hash(answer: &Answered, call: Option<&Call>) -> Result<()> {
    let Some(seen) = &answer.hash else {
        return Ok(());
    };
    if call.is_some_and(|call| call.hash == *seen) {
        return Ok(());
    }
    let what = "the call is not the one that the answer is for";
    Err(Problem::new(Kind::Conflict, what).next("look at it again: `agentd show`"))
}

/// The agent's settings with one more rule, which allows the same call.
fn with_rule(spec: &AgentSpec, call: Option<&Call>) -> Result<AgentSpec> {
    let invalid = |what: &str| Problem::new(Kind::Invalid, what);
    let call = call.ok_or_else(|| invalid("the call cannot be read, so no rule can name it"))?;
    if call.input.get("escalate").is_some() {
        let what = "a rule cannot let a call leave the sandbox";
        let next = "approve this call only, or add the directory to `writable:`";
        return Err(invalid(what).next(next));
    }
    let text = |key: &str| call.input.get(key).and_then(|text| text.as_str());
    let pattern = match call.tool.as_str() {
        "shell" => text("command"),
        "fetch_url" => text("url"),
        "write_file" | "edit_file" | "read_file" => text("file_path"),
        _ => None,
    };
    if pattern.is_some_and(|pattern| pattern.contains(['*', '?'])) {
        let what = "the call contains `*` or `?`, which a rule would read as a pattern";
        return Err(invalid(what).next("write the rule yourself: `agentd edit`"));
    }
    let mut spec = spec.clone();
    spec.permissions.push(Rule {
        tool: call.tool.clone(),
        pattern: pattern.map(str::to_owned),
        decision: spec::Decision::Allow,
    });
    let subject = match (call.tool.as_str(), pattern) {
        ("shell", Some(line)) => Subject::Command(line.to_owned()),
        (_, name) => Subject::name(name.unwrap_or_default()),
    };
    let said = verdict(&spec.permissions, &call.tool, &subject);
    if said.is_none_or(|said| said.decision != spec::Decision::Allow) {
        let what = "another rule says ask for this call, and ask takes precedence over allow";
        return Err(invalid(what).next("change that rule: `agentd edit`"));
    }
    check_spec(&spec)?;
    Ok(spec)
}
