//! Tool calls: what they are called, which files they touch, and what they wrote.

use super::changes::{diffs, kind};
use super::content;
use crate::render::approval::lines;
use crate::render::event::words;
use crate::render::{Detail, call, patched};
use crate::terminal::without_controls;
use agent_client_protocol::v1::schema::{
    ContentBlock, SessionUpdate, ToolCall as NewCall, ToolCallContent, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use agentd_client::api::{Approval, Output};
use agentd_core::event::{
    Body, CommandOutput, Event, FileBefore, FileKept, KeptBy, KeptContent, ResultAdded,
};
use agentd_core::id::{CallId, TaskId};
use agentd_core::message::{Block, ToolCall};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// It is shown as the plan itself.
const PLAN: &str = "update_plan";
/// How much of the output of a running call is shown: its end.
const TAIL: usize = 16 * 1024;

/// The calls that have no result yet.
pub struct Calls {
    cwd: Option<PathBuf>,
    open: BTreeMap<CallId, Open>,
}

struct Open {
    /// Models use an id again in another reply, so this one contains the number of the event.
    id: ToolCallId,
    tool: String,
    input: Map<String, Value>,
    /// What a file contained that is written as a whole.
    before: Option<String>,
    task: Option<TaskId>,
    tail: String,
    offset: u64,
}

/// A running call whose output can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub call: CallId,
    pub task: TaskId,
    pub offset: u64,
}

impl Calls {
    pub const fn new(cwd: Option<PathBuf>) -> Self {
        let open = BTreeMap::new();
        Self { cwd, open }
    }

    /// A call of the model.
    pub fn called(&mut self, event: &Event, made: &ToolCall) -> Option<SessionUpdate> {
        let open = Open {
            id: ToolCallId::new(format!("{}-{}-{}", event.agent, event.seq, made.id)),
            tool: made.name.clone(),
            input: made.arguments.to_object(),
            before: None,
            task: None,
            tail: String::new(),
            offset: 0,
        };
        let shown = self.shown(&open);
        self.open.insert(made.id.clone(), open);
        shown
    }

    fn shown(&self, open: &Open) -> Option<SessionUpdate> {
        if open.tool == PLAN {
            return None;
        }
        let title = call::title(&open.tool, &open.input, Detail::Brief);
        let shown = NewCall::new(open.id.clone(), title)
            .name(open.tool.clone())
            .kind(kind(&open.tool, &open.input))
            .locations(self.locations(&open.input))
            .content(self.changes(open))
            .raw_input(Value::Object(open.input.clone()));
        Some(SessionUpdate::ToolCall(shown))
    }

    /// The updates of an event about calls; none if it is about something else.
    pub fn event(&mut self, event: &Event, body: &Body) -> Option<Vec<SessionUpdate>> {
        let update = match body {
            Body::FileKept(kept) => {
                self.kept(kept);
                None
            }
            Body::CallRevised(revised) => {
                let open = self.open.get_mut(&revised.call)?;
                open.input.clone_from(&revised.arguments);
                let open = self.open.get(&revised.call)?;
                let fields = ToolCallUpdateFields::new()
                    .title(call::title(&open.tool, &open.input, Detail::Brief))
                    .locations(self.locations(&open.input))
                    .content(self.changes(open))
                    .raw_input(Value::Object(open.input.clone()));
                update(open, fields)
            }
            Body::ToolStarted(started) => {
                let open = self.open.get_mut(&started.call)?;
                open.task = started.task;
                let open = self.open.get(&started.call)?;
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                let changes = open.before.as_ref().map(|_| self.changes(open));
                update(open, fields.content(changes))
            }
            Body::ResultAdded(result) => self.ended(result),
            Body::CommandOutput(output) => Some(command(event, output)),
            // A turn leaves no call open.
            Body::TurnEnded(ended) => {
                self.open.clear();
                return ended.limit.is_none().then(Vec::new);
            }
            _ => return None,
        };
        Some(update.into_iter().collect())
    }

    fn kept(&mut self, kept: &FileKept) {
        let KeptBy::Call { call } = &kept.by else {
            return;
        };
        if let Some(open) = self.open.get_mut(call)
            && let FileBefore::File {
                content: KeptContent::Text { text },
                ..
            } = &kept.before
            && kept.parts == 1
            && open.tool == "write_file"
        {
            open.before = Some(text.clone());
        }
    }

    fn ended(&mut self, result: &ResultAdded) -> Option<SessionUpdate> {
        let open = self.open.remove(&result.call)?;
        let is_ok = result.outcome.is_ok();
        let status = match is_ok {
            true => ToolCallStatus::Completed,
            false => ToolCallStatus::Failed,
        };
        let fields = ToolCallUpdateFields::new().status(status);
        let mut contents = self.changes(&open);
        // A change that was made says what the result would.
        if contents.is_empty() || !is_ok {
            contents.extend(output(&open.tool, &result.blocks));
        }
        update(&open, fields.content(contents))
    }

    /// The results of the calls will not be seen.
    pub fn forget(&mut self) {
        self.open.clear();
    }

    /// The calls that run now and whose output can be read.
    pub fn running(&self) -> Vec<Waiting> {
        let running = self.open.iter().filter_map(|(call, open)| {
            Some(Waiting {
                call: call.clone(),
                task: open.task?,
                offset: open.offset,
            })
        });
        running.collect()
    }

    pub fn is_running(&self) -> bool {
        self.open.values().any(|open| open.task.is_some())
    }

    /// More output of a running call.
    pub fn output(&mut self, waiting: &Waiting, output: &Output) -> Option<SessionUpdate> {
        let open = self.open.get_mut(&waiting.call)?;
        let is_next = open.task == Some(waiting.task) && open.offset == waiting.offset;
        if !is_next || output.text.is_empty() {
            return None;
        }
        open.offset = output.next;
        open.tail.push_str(&output.text);
        let mut cut = open.tail.len().saturating_sub(TAIL);
        while !open.tail.is_char_boundary(cut) {
            cut += 1;
        }
        open.tail.drain(..cut);
        let fields = ToolCallUpdateFields::new().content(vec![fenced(&open.tail)]);
        let open = self.open.get(&waiting.call)?;
        update(open, fields)
    }

    /// The call as the editor knows it.
    pub fn id(&self, call: &str) -> Option<ToolCallId> {
        let call = CallId::new(call);
        self.open.get(&call).map(|open| open.id.clone())
    }

    pub fn absolute(&self, path: &str) -> PathBuf {
        match &self.cwd {
            Some(cwd) => cwd.join(path),
            None => PathBuf::from(path),
        }
    }

    pub fn locations(&self, input: &Map<String, Value>) -> Vec<ToolCallLocation> {
        if let Some(patch) = patched::patch_of(input) {
            let paths = patch.paths().into_iter();
            return paths
                .map(|path| ToolCallLocation::new(self.absolute(path)))
                .collect();
        }
        let path = ["file_path", "path"].iter().find_map(|key| input.get(*key));
        let Some(path) = path.and_then(Value::as_str) else {
            return Vec::new();
        };
        let line = input.get("offset").and_then(Value::as_u64);
        let line = line.and_then(|line| u32::try_from(line).ok());
        vec![ToolCallLocation::new(self.absolute(path)).line(line)]
    }

    fn changes(&self, open: &Open) -> Vec<ToolCallContent> {
        let before = open.before.as_deref();
        diffs(&open.tool, &open.input, before, |path| self.absolute(path))
    }
}

/// A question about a call of a subagent, or about one that is shown already.
pub fn of_approval(calls: &Calls, approval: &Approval) -> ToolCallUpdate {
    let known = match approval.agent {
        Some(_) => None,
        None => calls.id(&approval.call),
    };
    let id = known.unwrap_or_else(|| ToolCallId::new(format!("approval-{}", approval.id)));
    let none = Map::new();
    let what = approval.what.as_ref();
    let input = what
        .and_then(|what| what.input.as_object())
        .unwrap_or(&none);
    let tool = what.map_or("a call", |what| what.tool.as_str());
    let title = call::title(tool, input, Detail::Brief);
    let title = match approval
        .agent
        .as_ref()
        .and_then(|agent| agent.name.as_ref())
    {
        Some(agent) => format!("{agent}: {title}"),
        None => title,
    };
    // Paths are relative to the directory of the call, which a subagent may have chosen.
    let cwd = what.and_then(|what| what.cwd.as_ref()).map(PathBuf::from);
    let there = Calls::new(cwd.or_else(|| calls.cwd.clone()));
    // The title is one line and may be shortened; the user judges the whole call.
    let mut contents = vec![fenced(&lines(approval).join("\n"))];
    contents.extend(diffs(tool, input, None, |path| there.absolute(path)));
    let fields = ToolCallUpdateFields::new()
        .title(title)
        .name(tool.to_owned())
        .kind(kind(tool, input))
        .status(ToolCallStatus::Pending)
        .locations(there.locations(input))
        .content(contents)
        .raw_input(what.map(|what| what.input.clone()));
    ToolCallUpdate::new(id, fields)
}

fn update(open: &Open, fields: ToolCallUpdateFields) -> Option<SessionUpdate> {
    let update = || ToolCallUpdate::new(open.id.clone(), fields);
    (open.tool != PLAN).then(|| SessionUpdate::ToolCallUpdate(update()))
}

/// A command that the user ran, with its output.
fn command(event: &Event, output: &CommandOutput) -> SessionUpdate {
    let id = ToolCallId::new(format!("{}-{}", event.agent, event.seq));
    let status = match output.end.trouble() {
        None => ToolCallStatus::Completed,
        Some(_) => ToolCallStatus::Failed,
    };
    let title = format!("$ {}", without_controls(&output.line));
    let shown = NewCall::new(id, title)
        .kind(ToolKind::Execute)
        .status(status)
        .content(vec![fenced(&output.output)]);
    SessionUpdate::ToolCall(shown)
}

/// What a call returned. The output of commands and the text of files is no Markdown.
fn output(tool: &str, blocks: &[Block]) -> Vec<ToolCallContent> {
    let is_verbatim = matches!(
        tool,
        "shell" | "read_file" | "task_output" | "list_files" | "search_files"
    );
    let mut contents = Vec::new();
    let text = words(blocks);
    let text = without_controls(&text);
    if !text.trim().is_empty() {
        contents.push(match is_verbatim {
            true => fenced(&text),
            false => ContentBlock::from(text.into_owned()).into(),
        });
    }
    let images = blocks
        .iter()
        .filter(|block| matches!(block, Block::Image { .. }));
    contents.extend(images.filter_map(content).map(ToolCallContent::from));
    contents
}

/// A text in a code block, whose fence is longer than any in the text.
fn fenced(text: &str) -> ToolCallContent {
    let text = without_controls(text);
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default().max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    ToolCallContent::from(format!("{fence}\n{text}{end}{fence}"))
}
