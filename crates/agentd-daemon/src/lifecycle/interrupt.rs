//! Ends the turn in progress, and the commands that the user runs. Queued prompts are answered afterwards. A prompt whose UserPromptSubmit hooks are running
//! has no turn yet: it gets one that ends at once, and its hooks are ended too.

use super::GRACE;
use super::ops::Asked;
use super::run_command;
use crate::daemon::{AgentGuard, AgentHandle};
use crate::error::{Error, Kind, Result};
use crate::hooks::run;
use agentd_core::event::OpReceipt;
use agentd_core::hook::HookInvocation;
use agentd_core::id::{CommandId, HookId, PromptId, TurnId};
use agentd_core::link::Order;

/// What is interrupted.
enum Target {
    Turn(TurnId),
    /// A prompt whose hooks are running.
    Prompt(PromptId, Vec<HookId>),
}

pub async fn interrupt(handle: &AgentHandle, asked: &Asked) -> Result<()> {
    let (target, commands) = {
        let mut guard = handle.lock().await;
        guard.check_released()?;
        let made = asked
            .made(&guard.state)?
            .map(|made| made.operation.receipt.clone());
        let (target, commands) = match made {
            // A repeated request interrupts the same turn as before, not a later one.
            Some(receipt) => of_receipt(receipt, target(&guard)),
            None => {
                let (target, commands) = (target(&guard), commands(&guard));
                if target.is_none() && commands.is_empty() {
                    let what = format!("`{}` has no turn in progress", guard.state.name);
                    return Err(Error::new(Kind::Conflict, what));
                }
                let receipt = receipt(target.as_ref(), commands.clone());
                guard.note(asked.with(receipt)).await?;
                (target, commands)
            }
        };
        guard.reconcile();
        (target, commands)
    };
    let (turn, ()) = tokio::join!(
        end_turn(handle, target),
        run_command::end(handle, &commands)
    );
    turn
}

async fn end_turn(handle: &AgentHandle, target: Option<Target>) -> Result<()> {
    let Some(target) = target else { return Ok(()) };
    let mut told = None;
    let over = handle.within(GRACE, |guard| {
        let turn = turn_of(guard, &target);
        let is_queued = is_queued(guard, &target);
        if (turn.is_some() || is_queued) && guard.process.is_none() {
            // A turn that waits may have no process, and only a process can end a turn.
            guard.wanted = true;
            guard.reconcile();
        }
        let connection = guard.down.as_ref().map(|it| it.number);
        if (turn.is_some() || is_queued) && connection.is_some() && told != Some((connection, turn))
        {
            // Once on each connection: an order may be lost when a connection breaks.
            // For this turn only: it may end by itself before the order arrives.
            match turn {
                Some(turn) => guard.order_turn(Order::Interrupt, turn),
                None => guard.order(Order::Interrupt),
            }
            told = Some((connection, turn));
        }
        (turn.is_none() && !is_queued).then_some(())
    });
    over.await.ok_or_else(|| {
        let what = "the turn has not ended yet";
        Error::new(Kind::Unavailable, what).next("wait for it, or stop the agent")
    })?;
    if let Target::Prompt(_, hooks) = target {
        for hook in hooks {
            run::end(handle.daemon.layout.hook_dir(hook)).await;
        }
    }
    Ok(())
}

fn receipt(target: Option<&Target>, commands: Vec<CommandId>) -> OpReceipt {
    let (turn, prompt) = match target {
        Some(Target::Turn(turn)) => (Some(*turn), None),
        Some(Target::Prompt(prompt, _)) => (None, Some(*prompt)),
        None => (None, None),
    };
    OpReceipt::Interrupt {
        turn,
        prompt,
        commands,
    }
}

/// What is left to do of an interrupt that was requested before.
fn of_receipt(receipt: OpReceipt, now: Option<Target>) -> (Option<Target>, Vec<CommandId>) {
    let OpReceipt::Interrupt {
        turn,
        prompt,
        commands,
    } = receipt
    else {
        return (None, Vec::new());
    };
    let target = match now {
        Some(Target::Prompt(now, hooks)) if Some(now) == prompt => Some(Target::Prompt(now, hooks)),
        // The turn of the prompt may have begun since.
        _ => match (turn, prompt) {
            (Some(turn), _) => Some(Target::Turn(turn)),
            (None, Some(prompt)) => Some(Target::Prompt(prompt, Vec::new())),
            (None, None) => None,
        },
    };
    (target, commands)
}

/// The commands that the user runs.
fn commands(guard: &AgentGuard<'_>) -> Vec<CommandId> {
    let running = guard.state.commands.running();
    running.map(|(command, _)| *command).collect()
}

fn target(guard: &AgentGuard<'_>) -> Option<Target> {
    let state = &guard.state;
    if let Some(turn) = &state.turn {
        return Some(Target::Turn(turn.id));
    }
    state.inbox.waiting().find_map(|queued| {
        let invocation = HookInvocation::prompt_id(queued.prompt, queued.edits);
        let invoked = state
            .hooks
            .open()
            .find(|invoked| invoked.id == invocation)?;
        let open = invoked.runs.iter().filter(|run| run.ended.is_none());
        let hooks = open.map(|run| run.started.hook);
        Some(Target::Prompt(queued.prompt, hooks.collect()))
    })
}

/// The turn to end, if there is one. The turn of a prompt may have begun meanwhile.
fn turn_of(guard: &AgentGuard<'_>, target: &Target) -> Option<TurnId> {
    let turn = guard.state.turn.as_ref()?;
    let is_it = match target {
        Target::Turn(id) => turn.id == *id,
        Target::Prompt(prompt, _) => turn.prompts.contains(prompt),
    };
    is_it.then_some(turn.id)
}

fn is_queued(guard: &AgentGuard<'_>, target: &Target) -> bool {
    let mut waiting = guard.state.inbox.waiting();
    match target {
        Target::Turn(_) => false,
        Target::Prompt(prompt, _) => waiting.any(|queued| queued.prompt == *prompt),
    }
}
