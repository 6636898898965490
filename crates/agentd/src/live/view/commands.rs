//! Commands that the user runs: they are shown like calls of the shell.

use super::{Moment, Section, View};
use crate::live::calls::Shown;
use agentd_core::event::{Body, CommandCut, CommandEnd, CommandLine, CommandOutput, TaskExit};
use agentd_core::id::{CallId, CommandId};
use agentd_core::message::{Arguments, Block, CallOutcome, ToolCall};
use agentd_core::time::Timestamp;
use serde_json::{Map, Value};

const SHELL: &str = "shell";

fn call_id(command: CommandId) -> CallId {
    CallId::new(command.to_string())
}

fn call(command: CommandId, line: &str) -> ToolCall {
    let line = Value::String(line.to_owned());
    ToolCall {
        id: call_id(command),
        name: SHELL.to_owned(),
        arguments: Arguments::Object(Map::from_iter([("command".to_owned(), line)])),
        signature: None,
    }
}

const fn outcome(end: &CommandEnd) -> CallOutcome {
    match (end.cut, end.exit) {
        (Some(CommandCut::Interrupted), _) => CallOutcome::Interrupted,
        (None, TaskExit::Code { code: 0 }) => CallOutcome::Ok,
        (None, TaskExit::NotStarted) => CallOutcome::NotStarted,
        (None, TaskExit::Unknown) => CallOutcome::Unknown,
        _ => CallOutcome::Error,
    }
}

impl View {
    /// Other lines were shown, after the title of a call or a command.
    pub(super) fn interrupted_by_others(&mut self) {
        self.calls.interrupted_by_others();
        self.commands.interrupted_by_others();
    }

    pub(super) fn command(&mut self, body: &Body, at: Timestamp, moment: Moment) {
        match body {
            Body::CommandLine(body) => self.command_began(body, at, moment),
            Body::CommandEnded(body) => self.commands.over(&call_id(body.command)),
            Body::CommandOutput(body) => self.command_ended(body, at, moment),
            _ => {}
        }
    }

    fn command_began(&mut self, body: &CommandLine, at: Timestamp, moment: Moment) {
        self.interrupted_by_others();
        let call = call(body.command, &body.line);
        self.commands.made(&call);
        let lines = self.commands.started(&call.id, SHELL, at, self.fit(moment));
        self.say(Section::Other, lines);
    }

    fn command_ended(&mut self, body: &CommandOutput, at: Timestamp, moment: Moment) {
        let call = call(body.command, &body.line);
        if self.commands.title(&call.id).is_none() {
            // Its start is not among the events that are shown.
            self.commands.made(&call);
        }
        let mut text = body.output.trim_end().to_owned();
        if let Some(how) = body.end.trouble() {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{how}"));
        }
        let blocks = [Block::text(text)];
        let (outcome, shown) = (outcome(&body.end), self.fit(moment));
        let lines = self.commands.ended(&call.id, outcome, &blocks, at, shown);
        self.calls.interrupted_by_others();
        self.say(Section::Other, lines);
    }

    /// Whether a command of the user is running.
    pub fn runs_command(&self) -> bool {
        self.commands.running().is_some()
    }

    /// How output is fitted into the terminal.
    pub(super) const fn fit(&self, moment: Moment) -> Shown {
        Shown {
            detail: self.options.detail,
            width: moment.width,
        }
    }
}
