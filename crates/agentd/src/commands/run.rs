//! `agentd run`.

use crate::connect::Connection;
use crate::described::Described;
use crate::error::{Error, Exit};
use crate::follow::{Follow, Seen};
use crate::last_run;
use crate::output::Output;
use crate::printer::{Printer, Style};
use crate::prompt::{self, StdinOptions};
use crate::providers;
use crate::waiting::{self, Show};
use agentd_client::api::{Create, Created, EventQuery, Status};
use agentd_core::event::{Body, Event, Mode};
use agentd_core::id::{PromptId, TurnId};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  agentd run \"What is in this directory?\"
  agentd run --provider demo \"list the files here and count the lines of the largest\"
  agentd run --json \"Count the lines of code\" | jq -r .text
  git diff | agentd run \"Review this change\"
  agentd run --continue \"Now fix what you found\"
  agentd run --detach \"Update the dependencies and run the tests\"

The agent answers this one prompt; `agentd show` and `agentd logs` work afterwards. A daemon is started if \
none is running. If standard output is not a terminal, it receives only the answer. Ctrl-C interrupts the turn \
and keeps its messages.

If standard input is a pipe, a socket or a file, it is read to its end and appended to the prompt after a blank line; \
without a prompt, it is the prompt. A terminal, a device such as /dev/null, and empty input add nothing. If a pipe or a \
socket is open but sends nothing for 3 seconds, the prompt is sent without it, with a warning: --stdin waits longer. In \
a loop such as `while read`, pass --no-stdin, or the command reads the rest of the loop's input.
Exit: 0 ok, 1 the turn failed, 2 usage, 3 refused, 4 unavailable, 5 limited, 6 waiting for you, 130 \
interrupted.";

/// How long to wait for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(5);

/// Run an agent for one prompt and stream its answer
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The prompt; `-` reads all of it from standard input
    prompt: Option<String>,
    #[command(flatten)]
    stdin: StdinOptions,
    /// Continue the conversation of the last one-shot agent of this directory, in a new agent
    #[arg(short, long = "continue")]
    continue_last: bool,
    #[command(flatten)]
    described: Described,
    /// Print the name of the agent and do not wait for the answer
    #[arg(short, long)]
    detach: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    // The settings first: a mistake in them is reported before input is waited for.
    let create = match args.continue_last {
        true => None,
        false => Some(new(&args.described)?),
    };
    let text = prompt::with_stdin(args.prompt.as_deref(), args.stdin, out)?;
    let mut connection = Connection::open().await?;
    // From here on there is a turn to interrupt.
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Error::no_runtime)?;
    let client = &connection.client;
    let created = match create {
        Some(create) => {
            let prompt = Some(text);
            client.create(&Create { prompt, ..create }).await?
        }
        None => last_run::fork(client, &args.described, text).await?,
    };
    if args.detach {
        return detached(args, &created, out);
    }
    let name = created.agent.name.as_str();
    let Some(prompt) = created.prompt else {
        let what = format!("{name} was created without its prompt");
        return Err(Error::new(Exit::Unavailable, what)
            .next("the daemon may have another version: `agentd daemon stop`, then try again"));
    };
    let show = match (args.json, out.is_watched()) {
        (true, _) => Show::Json,
        (_, true) => Show::Nothing,
        // A program that reads the output gets the answer, without the messages before it.
        (_, false) => Show::Text,
    };
    watch(&mut connection, &mut interrupts, name, prompt, show).await?;
    let answer = waiting::answer(&mut connection, name, prompt, out).await?;
    waiting::finish(&mut connection, name, prompt, &answer, show, out).await
}

/// A one-shot agent that has no prompt yet.
fn new(described: &Described) -> Result<Create, Error> {
    let catalog = providers::catalog()?;
    Ok(Create {
        mode: Some(Mode::Oneshot),
        spec: described.spec(&catalog)?,
        env: providers::env(&catalog),
        ..Create::default()
    })
}

fn detached(args: &Args, created: &Created, out: &mut Output) -> Result<(), Error> {
    match args.json {
        true => out.json(created),
        false => out.line(&created.agent.name),
    }
}

/// Shows the turn as it runs, until it has ended or waits for the user.
async fn watch(
    connection: &mut Connection,
    interrupts: &mut Signal,
    name: &str,
    prompt: PromptId,
    show: Show,
) -> Result<(), Error> {
    let mut printer = Printer::new(Style::Text);
    let mut follow = Follow::new(name, EventQuery::default());
    let mut turn = Turn { prompt, id: None };
    let mut is_interrupted = false;
    let ended = loop {
        let seen = tokio::select! {
            biased;
            Some(()) = interrupts.recv() => {
                if std::mem::replace(&mut is_interrupted, true) {
                    let next = format!("see `agentd logs {name}`");
                    break Err(Error::interrupted().next(next));
                }
                // The turn ends soon; its end is seen in the same way as any other.
                let asked = connection.client.interrupt(name).await;
                if connection.or_again(asked).await?.is_none() {
                    connection.client.interrupt(name).await?;
                }
                continue;
            }
            seen = follow.next(connection) => seen?,
        };
        let event = match seen {
            Seen::Delta(delta) if show == Show::Nothing => {
                printer.streamed(&delta.request, &delta.text);
                continue;
            }
            Seen::Delta(_) | Seen::CaughtUp => continue,
            Seen::Event(event) => event,
        };
        match show {
            Show::Nothing => printer.event(&event),
            Show::Text => printer.beside(&event),
            Show::Json => {}
        }
        match turn.look(&event) {
            Now::Continues => {}
            Now::Over => break Ok(()),
            Now::MayWait => {
                let answer = connection.client.answer(name, prompt, Duration::ZERO).await;
                let answer = connection.or_again(answer).await?;
                if answer.is_some_and(|answer| answer.status == Status::Waiting) {
                    break Ok(());
                }
            }
        }
    };
    printer.finish(LAST_LINES);
    ended
}

/// The turn that answers the prompt.
struct Turn {
    prompt: PromptId,
    id: Option<TurnId>,
}

enum Now {
    Continues,
    /// It waits for the user, unless that has ended in the meantime.
    MayWait,
    Over,
}

impl Turn {
    fn look(&mut self, event: &Event) -> Now {
        match &event.body {
            Body::PromptsTaken(taken) if taken.prompts.contains(&self.prompt) => {
                self.id = event.turn;
                Now::Continues
            }
            Body::TurnEnded(_) if self.id.is_some() && event.turn == self.id => Now::Over,
            Body::PromptsRemoved(gone) if gone.prompts.contains(&self.prompt) => Now::Over,
            Body::PromptsSetAside(aside) if aside.prompts.contains(&self.prompt) => Now::Over,
            Body::TurnPaused(_)
            | Body::ApprovalRequested(_)
            | Body::AgentFailed(_)
            | Body::AgentStopped(_) => Now::MayWait,
            _ => Now::Continues,
        }
    }
}
