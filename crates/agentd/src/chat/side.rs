//! The side list: background tasks and subagents, and the output of the selected one.

use super::effect::Effect;
use super::focused::Focused;
use crate::live::Line;
use crate::render::{event, time, word};
use crate::terminal::{HEADING, QUIET, without_controls};
use agentd_client::api::{Agent, Child, Output, Task};
use agentd_core::id::{AgentId, TaskId};
use agentd_core::time::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

/// Bytes of an output that are kept.
const KEPT: usize = 32 * 1024;
/// Subagents that have ended and are still listed.
const ENDED: usize = 5;

#[derive(Default)]
pub struct Side {
    tasks: Vec<Task>,
    children: Vec<Child>,
    selected: usize,
    output: Option<Shown>,
}

/// What is known about the selected entry.
struct Shown {
    of: Entry,
    text: String,
    /// Where the next part of the output begins.
    next: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Task(TaskId),
    Subagent(AgentId),
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Effect(Effect),
    Leave,
    /// The list stays open beside the prompt line.
    Prompt,
    Nothing,
}

impl Side {
    pub fn set_tasks(&mut self, tasks: Vec<Task>) {
        self.tasks = tasks;
        self.keep_selection();
    }

    pub fn set_children(&mut self, children: &[Child]) {
        let (running, ended): (Vec<&Child>, Vec<&Child>) =
            children.iter().partition(|child| child.outcome.is_none());
        let last = ended.into_iter().rev().take(ENDED);
        self.children = running.into_iter().chain(last).cloned().collect();
        self.keep_selection();
    }

    fn keep_selection(&mut self) {
        let last = self.entries().len().saturating_sub(1);
        self.selected = self.selected.min(last);
    }

    /// Tasks and subagents that run.
    pub fn running(&self) -> usize {
        let tasks = self.tasks.iter().filter(|task| task.running).count();
        let children = self.children.iter();
        tasks + children.filter(|child| child.outcome.is_none()).count()
    }

    fn entries(&self) -> Vec<Entry> {
        let tasks = self.tasks.iter().map(|task| Entry::Task(task.id));
        let children = self.children.iter().map(|it| Entry::Subagent(it.id));
        tasks.chain(children).collect()
    }

    fn entry(&self) -> Option<Entry> {
        self.entries().get(self.selected).copied()
    }

    /// The request for what is shown of the selected entry.
    pub fn load(&self) -> Option<Effect> {
        Some(match self.entry()? {
            Entry::Task(task) => {
                let shown = self.output.as_ref();
                let shown = shown.filter(|shown| shown.of == Entry::Task(task));
                let size = self.tasks.iter().find(|it| it.id == task)?.output_bytes;
                // Only the end of a long output is read.
                let offset = shown.map_or(size.saturating_sub(KEPT as u64), |it| it.next);
                Effect::LoadOutput { task, offset }
            }
            Entry::Subagent(agent) => Effect::LoadSubagent(agent),
        })
    }

    /// Adds output that begins at an offset. What is known already, or no longer shown, is left out.
    pub fn output(&mut self, task: TaskId, offset: u64, output: &Output) {
        let of = Entry::Task(task);
        let known = self.output.as_ref().filter(|shown| shown.of == of);
        if self.entry() != Some(of) || known.is_some_and(|shown| shown.next != offset) {
            return;
        }
        let before = self.output.take().filter(|shown| shown.of == of);
        let mut text = before.map(|shown| shown.text).unwrap_or_default();
        text.push_str(&output.text);
        let mut cut = text.len().saturating_sub(KEPT);
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        text.drain(..cut);
        let next = output.next;
        self.output = Some(Shown { of, text, next });
    }

    pub fn subagent(&mut self, id: AgentId, agent: &Agent) {
        let of = Entry::Subagent(id);
        if self.entry() != Some(of) {
            return;
        }
        let mut text = crate::render::agent::line(agent);
        for part in [&agent.title, &agent.summary].into_iter().flatten() {
            text.push_str("\n\n");
            text.push_str(part);
        }
        self.output = Some(Shown { of, text, next: 0 });
    }

    pub fn key(&mut self, key: KeyEvent) -> Reply {
        let last = self.entries().len().saturating_sub(1);
        let before = self.selected;
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reply::Leave,
            KeyCode::Tab => return Reply::Prompt,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('x') => {
                if let Some(Entry::Task(task)) = self.entry() {
                    return Reply::Effect(Effect::StopTask(task));
                }
            }
            _ => {}
        }
        if self.selected == before {
            return Reply::Nothing;
        }
        self.output = None;
        self.load().map_or(Reply::Nothing, Reply::Effect)
    }

    /// The list, and below it the end of the output.
    pub fn rows(&self, width: usize, height: usize, focused: Focused, now: Timestamp) -> Vec<Line> {
        let head = match focused {
            Focused::Yes => "tasks and subagents: x ends a task · Tab prompt · Esc closes",
            Focused::No => "tasks and subagents · Ctrl-T",
        };
        let mut rows = vec![Line::painted(QUIET, head).truncated(width)];
        let tasks = self.tasks.iter().map(|task| of_task(task, now));
        let children = self.children.iter().map(|child| of_child(child, now));
        let entries: Vec<String> = tasks.chain(children).collect();
        if entries.is_empty() {
            rows.push(Line::painted(QUIET, "  none").truncated(width));
        }
        let room = (height / 2).max(1);
        let first = (self.selected + 1).saturating_sub(room);
        for (n, entry) in entries.iter().enumerate().skip(first).take(room) {
            let (mark, paint) = match n == self.selected {
                true => ("> ", Some(HEADING)),
                false => ("  ", None),
            };
            let line = Line::plain(mark).and(paint, entry);
            rows.push(line.truncated(width));
        }
        rows.push(Line::default());
        let output = self.end_of_output(width, height.saturating_sub(rows.len()));
        rows.extend(output);
        rows.truncate(height);
        rows
    }

    fn end_of_output(&self, width: usize, height: usize) -> Vec<Line> {
        let shown = self.output.as_ref();
        let Some(shown) = shown.filter(|shown| Some(shown.of) == self.entry()) else {
            return Vec::new();
        };
        let text = without_controls(&shown.text);
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(height);
        let none = Line::default();
        let last = lines.get(from..).unwrap_or_default().iter();
        let mut rows: Vec<Line> = last
            .flat_map(|line| Line::painted(QUIET, line).wrapped(width, &none, &none))
            .collect();
        rows.drain(..rows.len().saturating_sub(height));
        rows
    }
}

fn of_task(task: &Task, now: Timestamp) -> String {
    let state = match &task.exit {
        Some(exit) => event::exit(exit),
        None => word(task.state),
    };
    let command = task.command.as_deref().unwrap_or(&task.tool);
    let command = command.lines().next().unwrap_or_default();
    let age = time::rough(now.since(task.started_at));
    format!("$ {command} · {state}, {age}")
}

fn of_child(child: &Child, now: Timestamp) -> String {
    let state = child.outcome.map_or_else(|| "running".to_owned(), word);
    let age = time::rough(now.since(child.started_at));
    format!("agent {} · {state}, {age}", child.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal;
    use agentd_client::api::{AgentRef, TaskState};
    use agentd_core::id::ConversationId;
    use uuid::Uuid;

    fn task(n: u128, output_bytes: u64) -> Task {
        Task {
            id: TaskId::new(Uuid::from_u128(n)),
            agent: AgentRef {
                id: AgentId::new(Uuid::nil()),
                name: None,
            },
            conversation: ConversationId::new(Uuid::nil()),
            ordinal: None,
            turn: None,
            tool: "shell".to_owned(),
            command: Some(format!("make {n}\nx")),
            started_at: Timestamp::default(),
            output_bytes,
            state: TaskState::Running,
            running: true,
            exit: None,
        }
    }

    fn output(text: &str, next: u64) -> Output {
        Output {
            text: text.to_owned(),
            next,
            is_over: false,
        }
    }

    #[test]
    fn the_output_of_the_selected_task_grows() {
        let mut side = Side::default();
        side.set_tasks(vec![task(1, 100_000), task(2, 5)]);
        let (one, two) = (task(1, 0).id, task(2, 0).id);
        let load = |task, offset| Some(Effect::LoadOutput { task, offset });
        assert_eq!(side.load(), load(one, 100_000 - KEPT as u64));
        side.output(one, 67_232, &output("first\u{1b}[2J\nsecond\n", 100_000));
        side.output(two, 0, &output("not shown", 9));
        side.output(one, 67_232, &output("twice", 100_000));
        assert_eq!(side.load(), load(one, 100_000));
        side.output(one, 100_000, &output("third\n", 100_006));
        let now = Timestamp::from_millis(61_000);
        let rows = side.rows(40, 8, Focused::Yes, now);
        let text: Vec<String> = rows
            .iter()
            .map(|row| terminal::uncoloured(&row.to_string()))
            .collect();
        assert_eq!(text[1], "> $ make 1 · running, 1m");
        assert_eq!(text[4..], ["first", "second", "third"]);
        let down = side.key(KeyCode::Down.into());
        assert_eq!(down, Reply::Effect(load(two, 0).unwrap()));
        let stop = side.key(KeyCode::Char('x').into());
        assert_eq!(stop, Reply::Effect(Effect::StopTask(two)));
    }

    #[test]
    fn a_long_output_is_cut_at_a_character() {
        let mut side = Side::default();
        side.set_tasks(vec![task(1, 0)]);
        let long = "ż".repeat(KEPT);
        side.output(task(1, 0).id, 0, &output(&long, 1));
        side.output(task(1, 0).id, 1, &output("a", 2));
        assert!(side.output.as_ref().unwrap().text.len() <= KEPT);
        assert_eq!(side.running(), 1);
        side.set_tasks(Vec::new());
        assert_eq!(side.load(), None);
    }
}
