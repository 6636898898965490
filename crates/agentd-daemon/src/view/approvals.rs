//! The calls that wait for the user's approval, in full: what would run, where, and with which rights.

mod needs;

use crate::confine;
use crate::daemon::AgentGuard;
use crate::daemon::Daemon;
use agentd_client::api::{AgentRef, Approval, Call};
use agentd_core::approval::digest;
use agentd_core::event::{Asks, Body, Event};
use agentd_core::id::{AgentId, ApprovalId, CallId, Seq};
use agentd_core::mcp::Question;
use agentd_core::message::{Arguments, Block};
use agentd_core::spec::{AgentSpec, Sandbox};
use agentd_core::state;
use agentd_store::ReadQuery;
use serde_json::{Value, json};

/// Events that are read at a time, backwards from the approval request. Only other calls of the same message can be
/// between the call and the request.
const PAGE: u64 = 64;
/// How many such pages are searched for the call.
const PAGES: u64 = 64;

/// The waiting calls of one agent; `of` names it if it is a subagent of the agent that is shown.
pub async fn waiting(guard: &AgentGuard<'_>, of: Option<AgentRef>) -> Vec<Approval> {
    let mut approvals = Vec::new();
    for (id, asked) in guard.state.approvals.waiting() {
        approvals.push(Approval {
            id: *id,
            call: asked.call.to_string(),
            asked_at: asked.asked_at,
            agent: of.clone(),
            why: asked.why.clone(),
            what: whole(guard, asked).await,
            question: question_of(guard, *id, asked).await,
        });
    }
    approvals
}

/// The call of an approval request; none if it was purged or cannot be read.
pub async fn call(guard: &AgentGuard<'_>, approval: ApprovalId) -> Option<Call> {
    let mut waiting = guard.state.approvals.waiting();
    let (_, asked) = waiting.find(|(id, _)| **id == approval)?;
    whole(guard, asked).await
}

/// The question that an MCP server asks; none if the call only waits for approval, or if the question was purged.
pub async fn question(guard: &AgentGuard<'_>, approval: ApprovalId) -> Option<Question> {
    let mut waiting = guard.state.approvals.waiting();
    let (_, asked) = waiting.find(|(id, _)| **id == approval)?;
    question_of(guard, approval, asked).await
}

/// It is in the event before the request.
async fn question_of(
    guard: &AgentGuard<'_>,
    approval: ApprovalId,
    asked: &state::Approval,
) -> Option<Question> {
    if asked.asks != Asks::Input {
        return None;
    }
    let before = Seq(asked.seq.0.saturating_sub(2));
    let query = ReadQuery::all(guard.state.id, before, 1);
    let page = guard.handle.daemon.store.read(query).await.ok()?;
    match page.events.into_iter().next()?.body {
        Body::QuestionAsked(asked) if asked.approval == approval => Some(asked.question),
        _ => None,
    }
}

async fn whole(guard: &AgentGuard<'_>, asked: &state::Approval) -> Option<Call> {
    let (tool, input) = written(&guard.handle.daemon, guard.state.id, asked).await?;
    let spec = &guard.state.spec;
    let needs = needs::of(spec, &guard.env, &input).await;
    let mut call = Call {
        tool,
        input,
        needs,
        cwd: spec.cwd.clone(),
        sandbox: level(&guard.handle.daemon, spec),
        network: spec.network.clone().unwrap_or_default(),
        hash: String::new(),
    };
    call.hash = hash(&call);
    Some(call)
}

/// The sandbox level of the call; the default if the settings name none.
fn level(daemon: &Daemon, spec: &AgentSpec) -> Sandbox {
    let default = daemon.default_level();
    confine::level(spec, default.as_deref()).unwrap_or_default()
}

fn hash(call: &Call) -> String {
    let plain = json!([call.tool, call.input, call.cwd, call.sandbox, call.network]);
    match call.needs.is_empty() {
        true => digest(&plain),
        // The user has seen these, with what is there.
        false => digest(&json!([plain, call.needs])),
    }
}

/// The tool and its input: as the model wrote it, or as a hook revised it.
async fn written(
    daemon: &Daemon,
    agent: AgentId,
    asked: &state::Approval,
) -> Option<(String, Value)> {
    let mut revised = None;
    let mut end = asked.seq.0;
    for _ in 0..PAGES {
        let after = end.saturating_sub(PAGE + 1);
        let count = usize::try_from(end.saturating_sub(after)).ok()?;
        let page = daemon
            .store
            .read(ReadQuery::all(agent, Seq(after), count))
            .await;
        for event in page.ok()?.events.iter().rev() {
            match found(event, &asked.call)? {
                Found::Nothing => {}
                Found::Revised(input) => revised = revised.or(Some(input)),
                Found::Call(tool, input) => return Some((tool, revised.unwrap_or(input))),
            }
        }
        if after == 0 {
            return None;
        }
        end = after + 1;
    }
    None
}

enum Found {
    Nothing,
    Revised(Value),
    Call(String, Value),
}

/// What an event says about the wanted call. None if the call cannot be shown, because its arguments are not valid.
fn found(event: &Event, wanted: &CallId) -> Option<Found> {
    match &event.body {
        Body::CallRevised(revised) if revised.call == *wanted => {
            Some(Found::Revised(Value::Object(revised.arguments.clone())))
        }
        Body::MessageAdded(message) => {
            let mut calls = message.blocks.iter().filter_map(|block| match block {
                Block::ToolCall(call) if call.id == *wanted => Some(call),
                _ => None,
            });
            match calls.next() {
                None => Some(Found::Nothing),
                Some(call) => match &call.arguments {
                    Arguments::Object(input) => {
                        Some(Found::Call(call.name.clone(), Value::Object(input.clone())))
                    }
                    _ => None,
                },
            }
        }
        _ => Some(Found::Nothing),
    }
}
