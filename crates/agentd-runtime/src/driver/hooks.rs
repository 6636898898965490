//! Hooks around a tool call: before it is prepared, and after it has ended.

use super::{Driver, Happening, Hooks, Tools};
use agentd_core::hook::{Decision, HookEvent, HookInput, HookInvocation, Verdict};
use agentd_core::id::TurnId;
use agentd_core::message::{Arguments, Block, CallOutcome, ToolCall};
use agentd_core::turn::{Consent, Finished, Prepared};
use agentd_core::window::SeenFiles;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, watch};

/// Why a call needs approval if a hook might have refused it. The journal keeps it, so it has no text of the hook.
const NOT_HEARD: &str = "a hook for this call could not run or did not finish";

/// The hooks and the turn whose calls they are about; `None` without hooks or without a turn.
pub(super) type Around = Option<(Arc<dyn Hooks>, TurnId)>;

impl Driver {
    pub(super) fn around(&self) -> Around {
        let turn = self.machine.agent().turn.as_ref()?.id;
        Some((Arc::clone(self.hooks.as_ref()?), turn))
    }

    pub(super) fn invoke(&self, invocation: HookInvocation) {
        let Some(hooks) = self.hooks.clone() else {
            return;
        };
        let happened = self.happened.clone();
        tokio::spawn(async move {
            let id = invocation.id;
            let verdict = hooks.invoke(invocation).await;
            let _gone = happened.send(Happening::HooksAnswered(id, verdict));
        });
    }
}

/// Whether a call may start, according to the hooks and the rules; and the reason to end the turn, if a hook gives one.
pub(super) async fn prepare(
    tools: &dyn Tools,
    around: Around,
    mut call: ToolCall,
    consent: Consent,
    seen: &SeenFiles,
) -> (Prepared, Option<String>) {
    // The hooks were invoked before the user was asked.
    let is_open = consent == Consent::NotAsked && tools.awaits_decision(&call);
    let Some((hooks, turn)) = around.filter(|_| is_open) else {
        return (tools.prepare(&call, consent, seen).await, None);
    };
    let invocation = |event, call: &ToolCall| {
        let hook_input = HookInput::before_call(event, call);
        HookInvocation::of_call(turn, &call.id, hook_input)
    };
    let before = hooks.invoke(invocation(HookEvent::PreToolUse, &call)).await;
    if before.is_no() || before.stop.is_some() {
        return (refused(&before), before.stop);
    }
    if !revise(tools, &mut call, &before) {
        return (cannot_revise(), None);
    }
    let consent = match before.decision {
        Decision::Allow => Consent::OfHook,
        _ => Consent::NotAsked,
    };
    let prepared = tools.prepare(&call, consent, seen).await;
    let by_hook = matches!(before.decision, Decision::Ask | Decision::Defer);
    let why = match (prepared, by_hook) {
        (Prepared::Ask(why), _) => why,
        (Prepared::Run(..), true) if before.unheard => NOT_HEARD.to_owned(),
        (Prepared::Run(..), true) => "a hook requires approval".to_owned(),
        (prepared, _) => return (prepared, None),
    };
    if by_hook && tools.never_asks() {
        return (not_asked(&why), None);
    }
    let asked = hooks
        .invoke(invocation(HookEvent::PermissionRequest, &call))
        .await;
    if !revise(tools, &mut call, &asked) {
        return (cannot_revise(), asked.stop);
    }
    match asked.decision {
        Decision::Deny => (refused(&asked), asked.stop),
        Decision::Allow => {
            let prepared = tools.prepare(&call, Consent::OfHook, seen).await;
            (prepared, asked.stop)
        }
        _ => (Prepared::Ask(why), asked.stop),
    }
}

/// Gives the call the arguments that a hook has changed. Returns false if it cannot run with them.
fn revise(tools: &dyn Tools, call: &mut ToolCall, verdict: &Verdict) -> bool {
    let Some(arguments) = &verdict.updated_input else {
        return true;
    };
    let arguments = Arguments::Object(arguments.clone());
    if arguments != call.arguments && !tools.takes_other_input() {
        return false;
    }
    call.arguments = arguments;
    true
}

/// As the rules say it that require approval.
fn not_asked(why: &str) -> Prepared {
    let text = format!(
        "This call needs the user's approval ({why}), but this agent never asks (`approval: never`); nothing was run. Find \
         another way, or report what is missing."
    );
    Prepared::Refuse {
        outcome: CallOutcome::Denied,
        blocks: vec![Block::text(text)],
    }
}

fn cannot_revise() -> Prepared {
    let text = "A hook changed the arguments of this call, but the agent's program runs its calls itself and cannot be \
                given other ones; nothing was run.";
    Prepared::Refuse {
        outcome: CallOutcome::Denied,
        blocks: vec![Block::text(text)],
    }
}

fn refused(verdict: &Verdict) -> Prepared {
    let reason = verdict.reason.as_ref().or(verdict.stop.as_ref());
    let reason = reason.map(|reason| format!(": {reason}"));
    let text = format!(
        "A hook refused this call; nothing was run{}",
        reason.unwrap_or_else(|| ".".to_owned())
    );
    Prepared::Refuse {
        outcome: CallOutcome::Denied,
        blocks: vec![Block::text(text)],
    }
}

/// Passes on the result of a call after the hooks have seen it. An interrupted call does not wait for the hooks.
pub(super) async fn finish(
    around: Around,
    call: ToolCall,
    mut finished: Finished,
    begin: Option<Instant>,
    mut cancelled: watch::Receiver<bool>,
    happened: &mpsc::UnboundedSender<Happening>,
) {
    let mut halt = None;
    if let Some((hooks, turn)) = around {
        let ms = begin.map(|begin| u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX));
        let hook_input = HookInput::after_call(&call, finished.outcome, &finished.blocks, ms);
        let invocation = HookInvocation::of_call(turn, &call.id, hook_input);
        if finished.outcome == CallOutcome::Interrupted {
            tokio::spawn(async move { hooks.invoke(invocation).await });
        } else {
            tokio::select! {
                biased;
                verdict = hooks.invoke(invocation) => halt = heard(&mut finished, verdict),
                _ = cancelled.wait_for(|cancelled| *cancelled) => {}
            }
        }
    }
    let _gone = happened.send(Happening::Finished(call.id, finished));
    if let Some(reason) = halt {
        let _gone = happened.send(Happening::Halt(reason));
    }
}

/// Adds the hooks' output to a result, and returns the reason to end the turn, if a hook gave one.
fn heard(finished: &mut Finished, verdict: Verdict) -> Option<String> {
    if let Some(text) = verdict.updated_output.clone() {
        finished.blocks = vec![Block::text(text)];
    }
    if verdict.is_no() {
        let reason = verdict.reason.unwrap_or_default();
        finished.blocks.push(Block::text(format!(
            "A hook rejected this result: {reason}"
        )));
    }
    finished.blocks.extend(verdict.context.map(Block::text));
    verdict.stop
}

#[cfg(test)]
mod tests;
