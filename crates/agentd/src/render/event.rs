//! Events as text for people.

use crate::output::{BAD, HEADING, QUIET};
use crate::render::call::{self, shortened};
use crate::render::{Detail, count, ended, plan, time, word};
use agentd_core::event::{
    Asks, Body, Event, FiringOutcome, HookOutcome, MessageAdded, MessageStatus, ResetTo, TurnEnded,
    TurnStatus,
};
use agentd_core::hook::Decision;
use agentd_core::id::ConversationId;
use agentd_core::message::Block;
use agentd_core::spec::Limits;
use serde_json::Value;

/// Lines at the beginning and at the end of a result that are shown in brief: errors are at the end.
const HEAD: usize = 6;
const TAIL: usize = 4;

/// The conversation that becomes current with an event.
pub const fn begins(event: &Event) -> Option<ConversationId> {
    match &event.body {
        Body::ConversationBegan(_) => Some(event.conversation),
        Body::PointerMoved(moved) => Some(moved.to),
        _ => None,
    }
}

/// What `logs` shows of an event; none for internal events. `number` is that of the conversation that
/// [`begins`].
pub fn told(event: &Event, number: Option<u32>, detail: Detail) -> Option<String> {
    let conversation = || match (number, begins(event)) {
        (Some(number), _) => number.to_string(),
        (None, Some(id)) => id.to_string(),
        (None, None) => String::new(),
    };
    let text = match &event.body {
        Body::Prompt(prompt) => format!("{HEADING}> {}{HEADING:#}", words(&prompt.blocks)),
        Body::MessageAdded(message) => {
            let mut lines = Vec::new();
            let text = words(&message.blocks);
            if !text.is_empty() {
                lines.push(text);
            }
            for call in message.blocks.iter().filter_map(Block::as_call) {
                let arguments = call.arguments.to_object();
                let call = match detail {
                    Detail::Brief => call::title(&call.name, &arguments, detail),
                    Detail::Full => format!("{} {}", call.name, Value::Object(arguments)),
                };
                lines.push(dimmed(&format!("· {call}")));
            }
            match message.status {
                MessageStatus::Complete => {}
                MessageStatus::Interrupted => lines.push(dimmed("(interrupted)")),
                MessageStatus::Superseded => lines.push(dimmed("(superseded)")),
            }
            lines.join("\n")
        }
        Body::ResultAdded(result) => dimmed(&output(&words(&result.blocks), detail)),
        Body::Notice(notice) => dimmed(&format!("[{}]", notice.text)),
        Body::InstructionsChanged(changed) => dimmed(&match changed.digest {
            Some(_) => format!("[instructions from {}]", changed.path),
            None => format!("[instructions in {} no longer apply]", changed.path),
        }),
        Body::McpListed(listed) => dimmed(&match &listed.problem {
            Some(text) => format!("[{text}]"),
            None => format!(
                "[MCP server {}: {} tools]",
                listed.server,
                listed.tools.len()
            ),
        }),
        Body::PlanSet(set) => {
            let mut lines = vec![plan::title(set)];
            lines.extend(plan::lines(set).iter().map(|line| format!("  {line}")));
            dimmed(&lines.join("\n"))
        }
        Body::CommandLine(command) => format!("{HEADING}! {}{HEADING:#}", command.line),
        Body::CommandOutput(command) => {
            let mut text = output(&command.output, detail);
            if let Some(how) = command.end.trouble() {
                text.push_str(&format!("\n  {how}"));
            }
            dimmed(&text)
        }
        Body::Summary(summary) => dimmed(&format!("[summary: {}]", summary.text)),
        Body::Note(note) => dimmed(&format!("({})", note.text)),
        Body::Gone(kind) => dimmed(&format!("({}: purged)", kind.name())),
        Body::TurnEnded(ended) if ended.status == TurnStatus::Completed => return None,
        Body::TurnEnded(ended) => turn_ended(ended, None),
        Body::TurnPaused(paused) => format!("turn paused: {}", word(paused.reason)),
        Body::ApprovalRequested(asked) if asked.asks == Asks::Input => return None,
        Body::ApprovalRequested(asked) => format!("approval requested: {}", asked.approval),
        Body::QuestionAsked(asked) => {
            let lines = super::approval::question(&asked.question);
            format!("question {}\n{}", asked.approval, lines.join("\n"))
        }
        Body::ApprovalAnswered(answered) => dimmed(match answered.decision {
            agentd_core::event::Decision::Allow => "approved",
            agentd_core::event::Decision::Deny => "denied",
        }),
        Body::TaskStarted(task) => dimmed(&format!("task {} started: {}", task.task, task.tool)),
        Body::TaskEnded(task) => dimmed(&format!("task {} ended: {}", task.task, exit(&task.exit))),
        Body::SubagentStarted(started) => {
            let aside = if started.background {
                " in the background"
            } else {
                ""
            };
            dimmed(&format!("subagent {} started{aside}", started.name))
        }
        Body::SubagentEnded(ended) => {
            let outcome = word(ended.outcome);
            dimmed(&format!("subagent {} ended: {outcome}", ended.agent))
        }
        Body::SubagentOf(of) => dimmed(&format!("subagent of {}", of.parent)),
        Body::ConversationBegan(began) => {
            let source = word(began.source);
            format!(
                "{HEADING}── conversation {} ({source}){HEADING:#}",
                conversation()
            )
        }
        Body::PointerMoved(moved) => {
            let direction = word(moved.direction);
            format!(
                "{HEADING}── conversation {} ({direction}){HEADING:#}",
                conversation()
            )
        }
        Body::ResetBegan(began) => dimmed(match began.to {
            ResetTo::Fresh => "reset",
            ResetTo::Undo => "undo",
            ResetTo::Redo => "redo",
            ResetTo::Rewind { .. } => "rewind",
        }),
        Body::ResetScheduled(_) => dimmed("reset scheduled for the end of this turn"),
        Body::CompactionAsked(_) => dimmed("compaction requested"),
        Body::Instruction(instruction) => dimmed(&format!("({})", instruction.text)),
        Body::ResetWithdrawn(withdrawn) => {
            format!("reset withdrawn: {}", word(withdrawn.why))
        }
        Body::HookStarted(started) => dimmed(&format!("hook {} started", started.event)),
        Body::HookEnded(ended) => match (ended.outcome, ended.decision) {
            (HookOutcome::Ran, Decision::None) => return None,
            (HookOutcome::Ran, decision) => dimmed(&format!("hook decided: {}", word(decision))),
            (outcome, _) => format!("{BAD}hook: {}{BAD:#}", word(outcome)),
        },
        Body::HookOutput(output) => {
            let answer = &output.answer;
            let said = [&answer.message, &answer.warning, &answer.reason];
            let said: Vec<_> = said.into_iter().flatten().map(String::as_str).collect();
            match said.is_empty() {
                true => return None,
                false => dimmed(&format!("[hook: {}]", said.join("\n"))),
            }
        }
        Body::CallRevised(revised) => {
            let arguments = Value::Object(revised.arguments.clone()).to_string();
            dimmed(&format!("· changed by a hook to {}", shortened(&arguments)))
        }
        Body::PromptsSetAside(aside) => {
            let prompts = count(aside.prompts.len() as u64, "prompt");
            dimmed(&format!("set aside: {prompts}"))
        }
        Body::PromptEdited(_) => dimmed("the queued prompt was changed to:"),
        Body::PromptMoved(_) => dimmed("a queued prompt was moved"),
        Body::PromptsRemoved(gone) => {
            let prompts = count(gone.prompts.len() as u64, "prompt");
            dimmed(&format!("removed from the queue: {prompts}"))
        }
        Body::AgentStopped(_) => dimmed("stopped"),
        Body::AgentStarted(_) => dimmed("started"),
        Body::AgentFailed(failed) => {
            format!("{BAD}agent failed: {}{BAD:#}", word(failed.cause))
        }
        Body::AgentRenamed(renamed) => dimmed(&format!("renamed to {}", renamed.name)),
        Body::AgentImported(from) => dimmed(&format!("imported, a copy of agent {}", from.agent)),
        Body::AgentHeld(_) => dimmed("held until it is started"),
        Body::AgentReleased(_) => dimmed("released"),
        Body::AgentArchived(_) => dimmed("archived"),
        Body::AgentRestored(_) => dimmed("restored"),
        Body::Compacted(_) => dimmed("compacted"),
        Body::ScheduleAdded(added) => dimmed(&format!("schedule {} added", added.name)),
        Body::ScheduleFired(fired) => dimmed(&match fired.outcome {
            FiringOutcome::Fired { .. } if fired.due.is_none() => "schedule run".to_owned(),
            FiringOutcome::Fired { .. } => "schedule due".to_owned(),
            FiringOutcome::Skipped { why } => {
                format!("schedule due, and skipped: {}", word(why))
            }
        }),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// How a turn ended that was not completed. `limits` are those that it had, if they are known.
pub fn turn_ended(ended: &TurnEnded, limits: Option<&Limits>) -> String {
    let (line, next) = ended::lines(ended, limits);
    let next = next.map(|next| format!("\n  next: {next}"));
    format!("{BAD}{line}{BAD:#}{}", next.unwrap_or_default())
}

/// The lines of an output, indented; in brief, only the first and the last ones.
fn output(text: &str, detail: Detail) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let left = lines.len().saturating_sub(HEAD + TAIL);
    let omitted = format!("… {}", count(left as u64, "line"));
    if left > 0 && detail == Detail::Brief {
        lines.splice(HEAD..HEAD + left, [omitted.as_str()]);
    }
    format!("  {}", lines.join("\n  "))
}

/// One event in one line, for `replay`: time, agent, sequence number, kind, body.
pub fn line(event: &Event) -> String {
    let body = match event.body.to_json() {
        Ok(Some(body)) => shortened(&body),
        Ok(None) => "(purged)".to_owned(),
        Err(error) => error.to_string(),
    };
    let (at, agent, seq) = (time::clock(event.at), event.agent, event.seq);
    let kind = event.kind().name();
    format!("{QUIET}{at}{QUIET:#} {agent} {seq:>6} {HEADING}{kind}{HEADING:#} {body}")
}

fn dimmed(text: &str) -> String {
    format!("{QUIET}{text}{QUIET:#}")
}

/// The exit of a task as text.
pub fn exit(exit: &agentd_core::event::TaskExit) -> String {
    use agentd_core::event::TaskExit;
    match exit {
        TaskExit::Code { code } => format!("exit {code}"),
        TaskExit::Signal { signal } => format!("signal {signal}"),
        TaskExit::NotStarted => "never started".to_owned(),
        TaskExit::Unknown => "unknown exit status".to_owned(),
    }
}

/// The text of a reply.
pub fn text_of(message: &MessageAdded) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The texts of some blocks, a line each. A file is shown by its name.
pub fn words(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } => Some(text.clone()),
        Block::Image { .. } => Some("(an image)".to_owned()),
        Block::Attachment(attachment) => Some(attachment.info().to_string()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::id::{AgentId, CallId, Seq};
    use agentd_core::message::{Arguments, ToolCall};
    use agentd_core::time::Timestamp;
    use uuid::Uuid;

    fn plain(body: impl Into<Body>) -> Option<String> {
        let event = Event {
            agent: AgentId::new(Uuid::nil()),
            seq: Seq(1),
            at: Timestamp::default(),
            conversation: ConversationId::new(Uuid::nil()),
            turn: None,
            body: body.into(),
        };
        Some(crate::terminal::uncoloured(&told(
            &event,
            None,
            Detail::Brief,
        )?))
    }

    #[test]
    fn a_message_is_its_text_and_its_calls() {
        let call = ToolCall {
            id: CallId::new("c"),
            name: "shell".to_owned(),
            arguments: Arguments::parse(r#"{"command":"ls"}"#),
            signature: None,
        };
        let message = MessageAdded {
            request: None,
            status: MessageStatus::Complete,
            stop: None,
            blocks: vec![Block::text("Let me look.\n"), Block::ToolCall(call)],
        };
        let expected = "Let me look.\n· $ ls";
        assert_eq!(plain(message).as_deref(), Some(expected));
    }

    #[test]
    fn only_a_turn_that_did_not_complete_is_shown() {
        assert_eq!(plain(TurnEnded::with(TurnStatus::Completed)), None);
        let lost = plain(TurnEnded::with(TurnStatus::Lost));
        assert_eq!(lost.as_deref(), Some("turn ended: lost"));
    }
}
