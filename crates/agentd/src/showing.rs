//! How a command that waits for an agent shows its work: `--output`, `--json`, `--quiet`, `--full`.

use crate::connect::Connection;
use crate::error::Error;
use crate::follow::Seen;
use crate::live::{LineMode, Options, Scope};
use crate::output::Output;
use crate::printer::{Printer, Style};
use crate::providers;
use crate::render::Detail;
use crate::waiting::Show;
use agentd_client::api::{Agent, Answer, Delta, EventQuery};
use agentd_core::id::Seq;
use agentd_core::mcp::CallProgress;
use serde::Serialize;
use std::time::Duration;

/// How long to wait for the last remarks to be written.
const LAST_LINES: Duration = Duration::from_secs(5);

// The values have no help of their own, which would double the length of every help text: the option explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Output format: text (the live view on a terminal, otherwise only the result), json (the result as one object), or
    /// stream-json (every event and then the result, one object per line)
    #[arg(long, value_enum, value_name = "FORMAT")]
    output: Option<OutputFormat>,
    /// Print the result as one JSON object; short for `--output json`
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Print only the result, on a terminal too
    #[arg(short, long)]
    quiet: bool,
    /// Show thinking, tool output and changes in full
    #[arg(long, conflicts_with = "quiet")]
    full: bool,
}

/// Whether the messages and calls before the answer are remarks on standard error, if standard output is not a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remarks {
    Printed,
    Omitted,
}

impl ShowArgs {
    pub const fn format(&self) -> OutputFormat {
        match self.output {
            Some(format) => format,
            None if self.json => OutputFormat::Json,
            None => OutputFormat::Text,
        }
    }

    /// Whether standard output gets JSON.
    pub const fn is_json(&self) -> bool {
        !matches!(self.format(), OutputFormat::Text)
    }

    /// Whether the command shows the work of the agent as it happens.
    pub const fn is_live(&self, out: &Output) -> bool {
        match self.format() {
            OutputFormat::Text => out.is_watched() && !self.quiet,
            OutputFormat::Json => false,
            OutputFormat::StreamJson => true,
        }
    }

    pub const fn detail(&self) -> Detail {
        match self.full {
            true => Detail::Full,
            false => Detail::Brief,
        }
    }

    /// For a command that shows nothing but its result.
    pub const fn only_result(&self) -> Showing {
        Showing::Result(match self.is_json() {
            true => Show::Json,
            false => Show::Text,
        })
    }

    /// How this command shows the agent.
    pub fn showing(
        &self,
        scope: Scope,
        agent: &Agent,
        remarks: Remarks,
        out: &Output,
    ) -> Result<Showing, Error> {
        Ok(match (self.format(), out.is_watched()) {
            (OutputFormat::StreamJson, _) => Showing::Stream,
            (OutputFormat::Json, _) => self.only_result(),
            _ if self.quiet => self.only_result(),
            (OutputFormat::Text, true) => Showing::live(scope, self.detail(), agent)?,
            // A program that reads the output gets the answer, without the messages before it.
            (OutputFormat::Text, false) if remarks == Remarks::Printed => {
                Showing::Remarks(Printer::new(Style::Text))
            }
            (OutputFormat::Text, false) => self.only_result(),
        })
    }
}

pub enum Showing {
    /// The live view.
    Live(Box<LineMode>),
    /// Events and pieces of replies as JSON lines.
    Stream,
    /// The messages and calls before the answer, on standard error.
    Remarks(Printer),
    /// Only the result.
    Result(Show),
}

/// A piece of a reply in a stream of JSON lines.
#[derive(Serialize)]
struct DeltaLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    delta: &'a Delta,
}

/// A report of a running call in such a stream.
#[derive(Serialize)]
struct ProgressLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    progress: &'a CallProgress,
}

impl Showing {
    pub fn live(scope: Scope, detail: Detail, agent: &Agent) -> Result<Self, Error> {
        let window = providers::window(agent);
        let live = LineMode::new(Options {
            scope,
            detail,
            window,
        })?;
        Ok(Self::Live(Box::new(live)))
    }

    /// Whether events are shown at all.
    pub const fn follows(&self) -> bool {
        !matches!(self, Self::Result(_))
    }

    /// Takes notice of the running turn up to an event, so that the status line says what it does.
    pub async fn catch_up(
        &mut self,
        connection: &Connection,
        agent: &Agent,
        through: Seq,
    ) -> Result<(), Error> {
        let (Self::Live(live), Some(turn)) = (self, agent.turn) else {
            return Ok(());
        };
        let mut query = EventQuery {
            turn: Some(turn),
            ..EventQuery::default()
        };
        loop {
            let (events, next) = connection.client.page(&agent.name, &query).await?;
            let seen = events.iter().filter(|event| event.seq <= through);
            seen.for_each(|event| live.prime(event));
            match next {
                Some(next) if next.0 > query.after && next <= through => query.after = next.0,
                _ => return Ok(()),
            }
        }
    }

    pub fn seen(&mut self, seen: &Seen, out: &mut Output) -> Result<(), Error> {
        match (self, seen) {
            (Self::Live(live), seen) => live.seen(seen, None),
            (Self::Stream, Seen::Event(event)) => out.json(event)?,
            (Self::Stream, Seen::Delta(delta)) => {
                let kind = "delta";
                out.json(&DeltaLine { kind, delta })?;
            }
            (Self::Stream, Seen::Progress(progress)) => {
                let kind = "progress";
                out.json(&ProgressLine { kind, progress })?;
            }
            (Self::Remarks(printer), Seen::Event(event)) => printer.beside(event),
            _ => {}
        }
        Ok(())
    }

    /// Why the turn of the prompt cannot begin yet, for the status line. False if there is none.
    pub fn set_waits(&mut self, why: Option<&str>) -> bool {
        let Self::Live(live) = self else {
            return false;
        };
        live.set_waits(why);
        true
    }

    /// Returns when [`Self::tick`] is due.
    pub async fn ticked(&mut self) {
        match self {
            Self::Live(live) => live.ticked().await,
            _ => std::future::pending().await,
        }
    }

    pub fn tick(&mut self) {
        if let Self::Live(live) = self {
            live.tick();
        }
    }

    /// Removes the status line, because the user is asked something. The next event or tick shows it again.
    pub fn pause(&mut self) {
        if let Self::Live(live) = self {
            live.pause();
        }
    }

    /// Ends the view before the result is printed, and says how that is shown.
    pub fn end(self, answer: Option<&Answer>) -> Show {
        match self {
            Self::Live(mut live) => {
                if let Some(answer) = answer {
                    live.answer(&answer.text);
                }
                Show::Nothing
            }
            Self::Stream => Show::Json,
            Self::Remarks(printer) => {
                printer.finish(LAST_LINES);
                Show::Text
            }
            Self::Result(show) => show,
        }
    }
}
