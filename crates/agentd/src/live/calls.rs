//! The tool calls of a turn: what is shown when one starts, and when it has ended.

use super::diff::{self, Diff};
use super::line::Line;
use crate::render::event::words;
use crate::render::{Detail, call, count, patched, time};
use crate::terminal::{ADDED, BAD, HEADING, QUIET, REMOVED, visible_prose, without_controls};
use agentd_core::event::{FileBefore, FileKept, KeptBy, KeptContent};
use agentd_core::id::CallId;
use agentd_core::mcp::CallProgress;
use agentd_core::message::{Block, CallOutcome, ToolCall};
use agentd_core::patch::{self, FilePatch};
use agentd_core::time::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The lines at the beginning and at the end of a long output that are shown.
const HEAD: usize = 4;
const TAIL: usize = 4;
/// The same for the change to a file.
const CHANGE: usize = 15;
/// The rows that a long line of an error may take.
const ERROR_ROWS: usize = 4;
/// A shorter time is not shown.
const NOTABLE_MS: u64 = 1000;
const INDENT: &str = "  ";
/// Sets the plan, which an event of its own shows.
const PLAN: &str = "update_plan";

struct Call {
    tool: String,
    input: Map<String, Value>,
    /// In brief: the status line shows it again and again.
    title: String,
    /// What a file contained that is written as a whole.
    before: Option<String>,
    started: Option<Timestamp>,
    /// What it reported last.
    progress: Option<String>,
}

impl Call {
    fn new(tool: &str, input: Map<String, Value>) -> Self {
        Self {
            tool: tool.to_owned(),
            title: call::title(tool, &input, Detail::Brief),
            input,
            before: None,
            started: None,
            progress: None,
        }
    }

    /// Its title as lines: a command may have several.
    fn titles(&self, detail: Detail) -> Vec<Line> {
        let title = call::title(&self.tool, &self.input, detail);
        let lines = title.split('\n');
        lines.map(|line| Line::painted(HEADING, line)).collect()
    }
}

#[derive(Default)]
pub struct Calls {
    known: BTreeMap<CallId, Call>,
    /// The running calls, in the order in which they started.
    order: Vec<CallId>,
    /// The call whose title was the last line.
    titled: Option<CallId>,
}

impl Calls {
    /// The model has made a call.
    pub fn made(&mut self, made: &ToolCall) {
        let call = Call::new(&made.name, made.arguments.to_object());
        self.known.insert(made.id.clone(), call);
    }

    /// A hook has replaced its arguments.
    pub fn revised(&mut self, id: &CallId, input: &Map<String, Value>) {
        if let Some(call) = self.known.get_mut(id) {
            *call = Call {
                started: call.started,
                ..Call::new(&call.tool, input.clone())
            };
        }
    }

    /// The content of a file before the call was kept.
    pub fn kept(&mut self, kept: &FileKept) {
        if let KeptBy::Call { call } = &kept.by
            && let Some(call) = self.known.get_mut(call)
            && let FileBefore::File {
                content: KeptContent::Text { text },
                ..
            } = &kept.before
            && kept.parts == 1
        {
            call.before = Some(visible_prose(text).into_owned());
        }
    }

    pub fn title(&self, id: &CallId) -> Option<String> {
        self.known.get(id).map(|call| call.title.clone())
    }

    /// The running calls: the title of the first, since when it runs, and how many more there are.
    pub fn running(&self) -> Option<(String, Timestamp, usize)> {
        let first = self.known.get(self.order.first()?)?;
        let title = match &first.progress {
            Some(progress) => format!("{} ({progress})", first.title),
            None => first.title.clone(),
        };
        Some((title, first.started?, self.order.len() - 1))
    }

    /// How far a running call is. All of it is the server's word.
    pub fn progress(&mut self, progress: &CallProgress) {
        if let Some(call) = self.known.get_mut(&progress.call) {
            call.progress = Some(without_controls(&progress.text()).into_owned());
        }
    }

    /// The call runs from now on. The lines are its title and the change that it makes.
    pub fn started(&mut self, id: &CallId, tool: &str, at: Timestamp, shown: Shown) -> Vec<Line> {
        let call = self.known.entry(id.clone());
        let call = call.or_insert_with(|| Call::new(tool, Map::new()));
        call.started = Some(at);
        let lines = begin(call, shown);
        self.order.push(id.clone());
        self.titled = Some(id.clone());
        lines
    }

    /// The call has ended with this result.
    pub fn ended(
        &mut self,
        id: &CallId,
        outcome: CallOutcome,
        blocks: &[Block],
        at: Timestamp,
        shown: Shown,
    ) -> Vec<Line> {
        self.order.retain(|running| running != id);
        let call = self.known.remove(id);
        let call = call.unwrap_or_else(|| Call::new("an earlier call", Map::new()));
        let mut lines = Vec::new();
        if call.tool == PLAN && outcome.is_ok() {
            return lines;
        }
        if self.titled.as_ref() != Some(id) || call.tool == PLAN {
            // It never started, or other calls were shown after its start.
            lines.extend(call.titles(Detail::Brief));
        }
        self.titled = None;
        lines.extend(output(&call, outcome, blocks, shown));
        let took = call.started.map(|started| at.since(started));
        lines.extend(outcome_line(outcome, took));
        lines
    }

    /// The call has ended; its result may come later, or never.
    pub fn over(&mut self, id: &CallId) {
        self.order.retain(|running| running != id);
    }

    /// Other lines were shown.
    pub fn interrupted_by_others(&mut self) {
        self.titled = None;
    }

    /// The turn has ended.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// How output is fitted into the terminal.
#[derive(Clone, Copy)]
pub struct Shown {
    pub detail: Detail,
    pub width: usize,
}

impl Shown {
    /// Indented; in brief, only the beginning and the end, cut to the width.
    fn fitted(self, lines: Vec<Line>, head: usize, tail: usize) -> Vec<Line> {
        let lines = fold(lines, self.detail, head, tail);
        let fitted = lines.iter().map(|line| match self.detail {
            Detail::Full => indented(line),
            Detail::Brief => indented(line).truncated(self.width),
        });
        fitted.collect()
    }

    /// The same with lines that are continued on the next row: an error says at its end what to do.
    fn wrapped(self, lines: Vec<Line>) -> Vec<Line> {
        let lines = fold(lines, self.detail, HEAD, TAIL);
        let indent = Line::plain(INDENT);
        let most = match self.detail {
            Detail::Full => usize::MAX,
            Detail::Brief => ERROR_ROWS * self.width,
        };
        let rows = lines.iter().flat_map(|line| {
            let line = line.truncated(most);
            line.wrapped(self.width, &indent, &indent)
        });
        rows.collect()
    }
}

fn begin(call: &Call, shown: Shown) -> Vec<Line> {
    let text = |key: &str| {
        let text = call.input.get(key).and_then(Value::as_str);
        visible_prose(text.unwrap_or_default()).into_owned()
    };
    if let (patch::TOOL, Some(patch)) = (call.tool.as_str(), patched::patch_of(&call.input)) {
        let files = patch.files.iter();
        return files.flat_map(|file| changed_file(file, shown)).collect();
    }
    let change = match call.tool.as_str() {
        // The plan itself is shown when it is set.
        PLAN => return Vec::new(),
        "edit_file" => diff::of(&text("old_string"), &text("new_string")),
        "write_file" => match &call.before {
            Some(before) => diff::replaced(before, &text("content")),
            None => diff::of("", &text("content")),
        },
        _ => return call.titles(shown.detail),
    };
    with_change(call.titles(shown.detail), change, shown)
}

/// A file of a patch: what happens to it, and how it changes.
fn changed_file(file: &FilePatch, shown: Shown) -> Vec<Line> {
    let title = Line::painted(HEADING, patched::title(file).replace('\n', " "));
    with_change(vec![title], diff::of_patch(file), shown)
}

fn with_change(mut lines: Vec<Line>, change: Diff, shown: Shown) -> Vec<Line> {
    if let Some(title) = lines.last_mut() {
        if change.added > 0 {
            title.push(Some(ADDED), &format!(" +{}", change.added));
        }
        if change.removed > 0 {
            title.push(Some(REMOVED), &format!(" −{}", change.removed));
        }
    }
    lines.extend(shown.fitted(change.lines, CHANGE, CHANGE));
    lines
}

fn output(call: &Call, outcome: CallOutcome, blocks: &[Block], shown: Shown) -> Vec<Line> {
    let text = words(blocks);
    let text = without_controls(&text);
    let all: Vec<&str> = text.lines().collect();
    let is_brief = outcome.is_ok() && shown.detail == Detail::Brief;
    match call.tool.as_str() {
        // Its change was shown when it started.
        "edit_file" | "write_file" | patch::TOOL | PLAN if is_brief => return Vec::new(),
        // What the model reads is in the file.
        "read_file" if is_brief => {
            let lines = count(all.len() as u64, "line");
            return vec![indented(&Line::painted(QUIET, lines))];
        }
        _ => {}
    }
    let paint = if outcome.is_ok() { QUIET } else { BAD };
    // The output of a command says itself what went wrong.
    let paint = if call.tool == "shell" { QUIET } else { paint };
    let lines: Vec<Line> = all.iter().map(|text| Line::painted(paint, text)).collect();
    match paint {
        BAD => shown.wrapped(lines),
        _ => shown.fitted(lines, HEAD, TAIL),
    }
}

/// The beginning and the end, with a line between them that says how many are left out.
fn fold(lines: Vec<Line>, detail: Detail, head: usize, tail: usize) -> Vec<Line> {
    // One line is not replaced by one.
    if detail == Detail::Full || lines.len() <= head + tail + 1 {
        return lines;
    }
    let left_out = count((lines.len() - head - tail) as u64, "line");
    let left_out = Line::painted(QUIET, format!("… {left_out}"));
    let begin = lines.iter().take(head).cloned();
    let end = lines.iter().skip(lines.len() - tail).cloned();
    begin.chain([left_out]).chain(end).collect()
}

fn indented(line: &Line) -> Line {
    let mut indented = Line::plain(INDENT);
    indented.append(line);
    indented
}

/// How it ended and how long it took, if that is worth a line.
fn outcome_line(outcome: CallOutcome, took: Option<u64>) -> Option<Line> {
    let word = match outcome {
        CallOutcome::Ok => None,
        CallOutcome::Error => Some("failed"),
        CallOutcome::Interrupted => Some("interrupted"),
        CallOutcome::Denied => Some("denied"),
        CallOutcome::NotStarted => Some("not started"),
        CallOutcome::Unknown => Some("outcome unknown"),
    };
    let took = took.filter(|took| *took >= NOTABLE_MS).map(time::took);
    let (paint, text) = match (word, took) {
        (None, None) => return None,
        (None, Some(took)) => (QUIET, took),
        (Some(word), None) => (BAD, word.to_owned()),
        (Some(word), Some(took)) => (BAD, format!("{word} after {took}")),
    };
    Some(indented(&Line::painted(paint, text)))
}
