//! The lines of a transcript: each event of a conversation as in the journal, with the fields that hooks look for that were
//! written for other programs (`type`, `message`, `uuid`, `parentUuid`, `sessionId`, `timestamp`).

use crate::digest::uuid_of;
use crate::event::{Body, Event, MessageAdded, MessageStatus, ResultAdded, StopReason};
use crate::hook_inputs::tool_input;
use crate::id::{AgentId, PromptId, Seq};
use crate::message::{Block, ToolCall};
use crate::tool_names::tool_names;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// What later lines need of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The prompts that the conversation has and that no turn has taken yet.
    pending: BTreeMap<PromptId, Vec<Block>>,
    /// The line before.
    parent: Option<Uuid>,
}

impl Lines {
    /// The lines after one that an earlier process wrote.
    pub fn after(agent: AgentId, last: Seq) -> Self {
        Self {
            pending: BTreeMap::new(),
            parent: (last > Seq::ZERO).then(|| id(agent, last)),
        }
    }

    /// Whether the text of a prompt that this event takes is unknown: an earlier process wrote its line.
    pub fn lacks_prompt(&self, event: &Event) -> bool {
        let Body::PromptsTaken(taken) = &event.body else {
            return false;
        };
        let mut prompts = taken.prompts.iter();
        prompts.any(|prompt| !self.pending.contains_key(prompt))
    }

    /// Takes note of the prompts of an event whose line is written already.
    pub fn recall(&mut self, event: &Event) {
        match &event.body {
            Body::Prompt(body) => {
                self.pending.insert(body.prompt, body.blocks.clone());
            }
            Body::PromptsTaken(body) => self.forget(&body.prompts),
            Body::PromptsRemoved(body) => self.forget(&body.prompts),
            Body::PromptBlocked(body) => self.forget(&[body.prompt]),
            _ => {}
        }
    }

    fn forget(&mut self, prompts: &[PromptId]) {
        self.pending.retain(|prompt, _| !prompts.contains(prompt));
    }

    /// The line of the next event; `at` is its time as RFC 3339.
    pub fn line(&mut self, event: &Event, at: String) -> serde_json::Result<Value> {
        let mut line = serde_json::to_value(event)?;
        let own = id(event.agent, event.seq);
        let parent = self.parent.replace(own);
        if let Value::Object(fields) = &mut line {
            fields.extend(self.message(event));
            fields.entry("type").or_insert_with(|| "agentd".into());
            fields.extend(object(json!({
                "uuid": own,
                "parentUuid": parent,
                "sessionId": event.conversation,
                "timestamp": at,
                "isSidechain": false,
                "userType": "external",
            })));
        }
        Ok(line)
    }

    /// The fields of a line that is a message.
    fn message(&mut self, event: &Event) -> Map<String, Value> {
        match &event.body {
            Body::PromptsTaken(taken) => {
                let prompts = taken.prompts.iter();
                let blocks = prompts.filter_map(|prompt| self.pending.remove(prompt));
                let blocks: Vec<Block> = blocks.flatten().collect();
                match blocks.as_slice() {
                    [] => Map::new(),
                    [Block::Text { text }] => user(json!(text)),
                    blocks => user(content(blocks)),
                }
            }
            Body::MessageAdded(body) if body.status != MessageStatus::Superseded => {
                assistant(body, id(event.agent, event.seq))
            }
            Body::ResultAdded(body) => result(body),
            Body::Notice(body) => beside("isMeta", &body.text),
            Body::InstructionsChanged(body) => beside("isMeta", &body.text),
            Body::Summary(body) => beside("isCompactSummary", &body.text),
            _ => {
                self.recall(event);
                Map::new()
            }
        }
    }
}

/// The id of an event's line: the same whenever the transcript is written again.
fn id(agent: AgentId, seq: Seq) -> Uuid {
    uuid_of(&[agent.as_bytes(), &seq.0.to_le_bytes()])
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn user(content: Value) -> Map<String, Value> {
    let message = json!({"role": "user", "content": content});
    object(json!({"type": "user", "message": message}))
}

/// Text that stands in the user's role, and is not the user's.
fn beside(mark: &str, text: &str) -> Map<String, Value> {
    let mut fields = user(json!(text));
    fields.insert(mark.to_owned(), true.into());
    fields
}

fn assistant(body: &MessageAdded, id: Uuid) -> Map<String, Value> {
    let stop = match body.stop {
        Some(StopReason::EndTurn) => Some("end_turn"),
        Some(StopReason::ToolUse) => Some("tool_use"),
        Some(StopReason::MaxTokens) => Some("max_tokens"),
        Some(StopReason::Refusal) => Some("refusal"),
        Some(StopReason::Paused) => Some("pause_turn"),
        Some(StopReason::Other) | None => None,
    };
    let message = json!({
        "id": format!("msg_{}", id.simple()),
        "type": "message",
        "role": "assistant",
        "content": content(&body.blocks),
        "stop_reason": stop,
        "stop_sequence": null,
    });
    object(json!({"type": "assistant", "message": message}))
}

fn result(body: &ResultAdded) -> Map<String, Value> {
    let mut texts = Vec::new();
    for block in &body.blocks {
        block.words(&mut texts);
    }
    let text = texts.join("\n");
    let mut block = object(json!({
        "type": "tool_result",
        "tool_use_id": body.call.as_str(),
        "content": text,
    }));
    if !body.outcome.is_ok() {
        block.insert("is_error".to_owned(), true.into());
    }
    let mut fields = user(json!([block]));
    fields.insert("toolUseResult".to_owned(), text.into());
    fields
}

/// Data of files is left out: the event itself has it.
fn content(blocks: &[Block]) -> Value {
    let blocks = blocks.iter().filter_map(|block| match block {
        Block::Text { text } | Block::Annotated { text, .. } | Block::Notice { text } => {
            Some(json!({"type": "text", "text": text}))
        }
        Block::Thinking { text, .. } => Some(json!({"type": "thinking", "thinking": text})),
        Block::ToolCall(call) => Some(tool_use(call)),
        Block::Image { media_type, .. } => {
            Some(json!({"type": "text", "text": format!("[{media_type}]")}))
        }
        Block::Attachment(file) => {
            Some(json!({"type": "text", "text": format!("[file {}]", file.name)}))
        }
        Block::ToolResult(_) | Block::Native { .. } | Block::Cut { .. } => None,
    });
    blocks.collect::<Vec<_>>().into()
}

/// A tool has the name that other programs have for it, and a command is a line.
fn tool_use(call: &ToolCall) -> Value {
    let name = tool_names(&call.name).nth(1).unwrap_or(&call.name);
    json!({
        "type": "tool_use",
        "id": call.id.as_str(),
        "name": name,
        "input": tool_input(call),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Notice, NoticeCause, Prompt, PromptsTaken};
    use crate::id::{CallId, ConversationId};
    use crate::message::{Arguments, CallOutcome};
    use crate::time::Timestamp;

    fn event(seq: u64, body: impl Into<Body>) -> Event {
        Event {
            agent: AgentId::new(Uuid::from_u128(1)),
            seq: Seq(seq),
            at: Timestamp(0),
            conversation: ConversationId::new(Uuid::from_u128(2)),
            turn: None,
            body: body.into(),
        }
    }

    fn reply(blocks: Vec<Block>) -> MessageAdded {
        MessageAdded {
            request: None,
            status: MessageStatus::Complete,
            stop: Some(StopReason::EndTurn),
            blocks,
        }
    }

    /// Regression: hooks of other programs found no message in a transcript. Those that keep an agent working until it says
    /// a certain word then ended at once.
    #[test]
    fn hooks_of_other_programs_find_prompts_replies_calls_and_results() {
        let mut lines = Lines::default();
        let prompt = PromptId::new(Uuid::from_u128(3));
        let blocks = vec![Block::text("do it")];
        let call = ToolCall {
            id: CallId::new("c"),
            name: "shell".to_owned(),
            arguments: Arguments::parse(r#"{"command": ["ls", "-l"]}"#),
            signature: None,
        };
        let result = ResultAdded {
            call: call.id.clone(),
            outcome: CallOutcome::Error,
            blocks: vec![Block::text("none")],
        };
        let notice = Notice {
            cause: NoticeCause::Hook,
            text: "go on".to_owned(),
        };
        let events = [
            event(1, Prompt { prompt, blocks }),
            event(
                2,
                PromptsTaken {
                    prompts: vec![prompt],
                },
            ),
            event(
                3,
                reply(vec![Block::text("I look."), Block::ToolCall(call)]),
            ),
            event(4, result),
            event(5, notice),
        ];
        let lines: Vec<Value> = events
            .iter()
            .map(|event| {
                lines
                    .line(event, "2026-01-31T09:30:00.000Z".to_owned())
                    .unwrap()
            })
            .collect();
        let types: Vec<_> = lines.iter().map(|line| line["type"].as_str()).collect();
        let expected = ["agentd", "user", "assistant", "user", "user"].map(Some);
        assert_eq!(types, expected);
        assert_eq!(
            lines[1]["message"],
            json!({"role": "user", "content": "do it"})
        );
        let content = &lines[2]["message"]["content"];
        assert_eq!(content[0], json!({"type": "text", "text": "I look."}));
        assert_eq!(
            (&content[1]["name"], &content[1]["input"]["command"]),
            (&json!("Bash"), &json!("ls -l"))
        );
        // Scripts search for this text.
        assert!(lines[2].to_string().contains(r#""role":"assistant""#));
        let answer = &lines[3]["message"]["content"][0];
        assert_eq!(
            (&answer["tool_use_id"], &answer["is_error"]),
            (&json!("c"), &json!(true))
        );
        assert_eq!(lines[4]["isMeta"], true);
        for (index, line) in lines.iter().enumerate().skip(1) {
            assert_eq!(line["parentUuid"], lines[index - 1]["uuid"]);
        }
        // The event is there as it is in the journal.
        for (line, event) in lines.iter().zip(&events) {
            assert_eq!(
                &serde_json::from_value::<Event>(line.clone()).unwrap(),
                event
            );
        }
    }

    #[test]
    fn a_prompt_whose_line_is_written_already_is_recalled() {
        let prompt = PromptId::new(Uuid::from_u128(3));
        let recorded = event(
            1,
            Prompt {
                prompt,
                blocks: vec![Block::text("do it")],
            },
        );
        let taken = event(
            2,
            PromptsTaken {
                prompts: vec![prompt],
            },
        );
        let mut lines = Lines::after(recorded.agent, recorded.seq);
        assert!(lines.lacks_prompt(&taken));
        lines.recall(&recorded);
        assert!(!lines.lacks_prompt(&taken));
        let line = lines.line(&taken, String::new()).unwrap();
        assert_eq!(line["message"]["content"], "do it");
        assert_eq!(line["parentUuid"], json!(id(recorded.agent, recorded.seq)));
    }

    #[test]
    fn a_reply_that_was_repeated_is_no_message() {
        let superseded = MessageAdded {
            status: MessageStatus::Superseded,
            ..reply(vec![Block::text("half")])
        };
        let line = Lines::default().line(&event(1, superseded), String::new());
        assert_eq!(line.unwrap()["type"], "agentd");
    }
}
