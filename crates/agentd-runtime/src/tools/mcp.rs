//! Calls of tools of MCP servers: the same rules, limits and redaction as for other tools.

use super::ToolboxOptions;
use super::blocking::{self, Cancelled};
use super::context::{CallOf, ToolContext};
use super::escalate::Escalation;
use super::failure::{Failure, said};
use super::output;
use super::scan;
use super::traits::Traits;
use crate::mcp::{Answer, Cut, Options, Servers, Target};
use agentd_core::approval::Ruling;
use agentd_core::event::ToolStarted;
use agentd_core::message::{Arguments, Block, CallOutcome, ToolCall};
use agentd_core::permission::Subject;
use agentd_core::recover::CallFact;
use agentd_core::turn::{Consent, Finished, Prepared};
use std::sync::Arc;

/// A tool changes something, unless the user has said otherwise.
const fn traits(is_read_only: bool) -> Traits {
    Traits {
        parallel: is_read_only,
        idempotent: is_read_only,
        approval: !is_read_only,
    }
}

/// The servers run like the commands of the tools.
pub(super) fn options(options: &ToolboxOptions) -> Options {
    Options {
        cwd: options.cwd.clone(),
        state: options.state.clone(),
        env: options.env.clone(),
        confined: options.confined.clone(),
        limits: options.task_limits,
        secrets: options.secrets.clone(),
        shim: options.shim.clone(),
        begin: crate::mcp::BEGIN,
        lab: options.lab.clone(),
    }
}

fn no_such_tool(servers: &Servers, name: &str) -> Failure {
    let known: Vec<&str> = servers.names().collect();
    Failure::new(format!(
        "Unknown tool `{name}`. The MCP servers of this agent: {}.",
        match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        }
    ))
}

pub(super) fn prepare(
    servers: &Servers,
    context: &ToolContext,
    call: &ToolCall,
    consent: Consent,
) -> Prepared {
    let Some(target) = servers.target(&call.name) else {
        return no_such_tool(servers, &call.name).into();
    };
    let ruling = context.rule(&CallOf {
        tool: &call.name,
        traits: traits(target.is_read_only()),
        subjects: &[Subject::name(target.tool())],
        escalation: &Escalation::None,
        may_be_covered: false,
    });
    match (ruling, consent) {
        (Ruling::Refuse(text), _) => Prepared::Refuse {
            outcome: CallOutcome::Denied,
            blocks: vec![Block::text(text)],
        },
        (Ruling::Ask(why), Consent::NotAsked) => Prepared::Ask(why),
        (Ruling::Ask(_), Consent::Given | Consent::OfHook) | (Ruling::Run, _) => {
            let started = ToolStarted {
                may_change_files: !target.is_read_only(),
                ..ToolStarted::new(call.id.clone(), call.name.clone())
            };
            Prepared::Run(started, Vec::new())
        }
    }
}

pub(super) async fn run(
    servers: &Servers,
    context: &Arc<ToolContext>,
    call: ToolCall,
    mut cancelled: Cancelled,
) -> Finished {
    let Some(target) = servers.target(&call.name) else {
        return no_such_tool(servers, &call.name).into();
    };
    let arguments = match call.arguments {
        Arguments::Object(arguments) => arguments,
        Arguments::Malformed(_) => return Failure::new("The arguments are not an object.").into(),
    };
    let _running = match target.is_read_only() {
        true => None,
        false => tokio::select! {
            running = scan::before_command(context) => Some(running),
            () = cancelled.wait() => {
                let text = "Interrupted. The server was not called.";
                return said(CallOutcome::Interrupted, text);
            }
        },
    };
    match target.call(&call.id, arguments, cancelled.wait()).await {
        Ok(answer) => finished(context, &call.id, answer).await,
        Err(cut) => cut_off(&target, cut),
    }
}

async fn finished(
    context: &Arc<ToolContext>,
    call: &agentd_core::id::CallId,
    answer: Answer,
) -> Finished {
    let (at, call, text) = (Arc::clone(context), call.clone(), answer.text);
    let text = blocking::whole(move || output::capped(&at, &call, &text)).await;
    let text = match text {
        Ok(text) => text,
        Err(failure) => return failure.into(),
    };
    let outcome = match answer.is_error {
        true => CallOutcome::Error,
        false => CallOutcome::Ok,
    };
    let mut blocks = vec![Block::text(text)];
    blocks.extend(answer.images);
    Finished::new(outcome, blocks)
}

/// The result of a call that got no answer.
fn cut_off(target: &Target, cut: Cut) -> Finished {
    match (cut, target.is_read_only()) {
        (Cut::Refused(text), _) => said(CallOutcome::Error, text),
        (Cut::Cancelled, true) => said(
            CallOutcome::Interrupted,
            "Interrupted. The tool is marked as read-only, so nothing was changed.",
        ),
        (Cut::Cancelled, false) => said(
            CallOutcome::Interrupted,
            "Interrupted. The server was told to stop; whether the call had an effect is unknown.",
        ),
        (Cut::Unknown(text), true) => said(
            CallOutcome::NotStarted,
            format!("{text} Not done: the tool is marked as read-only, so nothing was changed."),
        ),
        (Cut::Unknown(text), false) => said(
            CallOutcome::Unknown,
            format!(
                "{text} Whether the call had an effect is unknown; check before you repeat it."
            ),
        ),
    }
}

/// The outcome of a call that an earlier process started: that process has taken its servers with it.
pub(super) fn find(servers: &Servers, call: &ToolCall) -> CallFact {
    match servers.target(&call.name) {
        Some(target) if target.is_read_only() => CallFact::NotStarted,
        _ => CallFact::Unknown,
    }
}
