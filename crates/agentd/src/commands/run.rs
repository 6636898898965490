//! `agentd run`.

use crate::attach::AttachArgs;
use crate::connect::Connection;
use crate::described::Described;
use crate::error::{Error, Exit};
use crate::last_run;
use crate::live::Scope;
use crate::output::Output;
use crate::prompt::{self, StdinOptions};
use crate::showing::{Remarks, ShowArgs};
use crate::watch::Awaited;
use crate::{approve_in_place, attach, mentions, outside, providers, waiting};
use agentd_client::Client;
use agentd_client::api::{Answer, Archive, Create, Created, Send, Status};
use agentd_core::event::{Mode, PromptMode};
use agentd_core::id::Seq;
use agentd_daemon::clock;
use std::pin::pin;
use tokio::signal::unix::{Signal, SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  agentd run \"What is in this directory?\"
  agentd run --provider demo \"list the files here and count the lines of the largest\"
  agentd run --json \"Count the lines of code\" | jq -r .text
  agentd run --output stream-json \"Run the tests\" | jq -r .kind
  git diff | agentd run \"Review this change\"
  agentd run --attach report.pdf --attach chart.png \"Does the chart match the report?\"
  agentd run --continue \"Now fix what you found\"
  agentd run --detach \"Update the dependencies and run the tests\"

The agent answers this one prompt; `agentd show` and `agentd logs` work afterwards. A daemon is started if \
none is running. A terminal shows the work as it happens; if standard output is not a terminal, it receives only \
the answer. Ctrl-C interrupts the turn and keeps its messages.

If standard input is a pipe, a socket or a file, it is read to its end and appended to the prompt after a blank line; \
without a prompt, it is the prompt. A terminal, a device such as /dev/null, and empty input add nothing. If a pipe or a \
socket is open but sends nothing for 3 seconds, the prompt is sent without it, with a warning: --stdin waits longer. In \
a loop such as `while read`, pass --no-stdin, or the command reads the rest of the loop's input.
Exit: 0 ok, 1 the turn failed, 2 usage, 3 refused, 4 unavailable, 5 limited, 6 waiting for you, 130 \
interrupted.";

/// Run an agent for one prompt and stream its answer
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The prompt; `-` reads all of it from standard input
    prompt: Option<String>,
    #[command(flatten)]
    stdin: StdinOptions,
    #[command(flatten)]
    attach: AttachArgs,
    /// Continue the conversation of the last one-shot agent of this directory, in a new agent
    #[arg(short, long = "continue")]
    continue_last: bool,
    #[command(flatten)]
    described: Described,
    /// Print the name of the agent and do not wait for the answer
    #[arg(short, long)]
    detach: bool,
    #[command(flatten)]
    show: ShowArgs,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    // The settings first: a mistake in them is reported before input is waited for.
    let create = match args.continue_last {
        true => None,
        false => Some(new(&args.described, out).await?),
    };
    let attachments = args.attach.read()?;
    let attached = attachments.clone();
    let text = prompt::with_stdin(args.prompt.as_deref(), args.stdin, out)?;
    let mut connection = Connection::open().await?;
    // From here on there is a turn to interrupt.
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Error::no_runtime)?;
    let client = &connection.client;
    let created = match create {
        Some(create) => {
            let prompt = Some(text);
            let create = Create {
                prompt,
                attachments,
                ..create
            };
            match typed(args).filter(|typed| mentions::may_be_in(typed)) {
                Some(typed) => with_mentions(client, create, typed).await?,
                None => client.create(&create).await?,
            }
        }
        None => last_run::fork(client, &args.described, text, attachments).await?,
    };
    let agent = providers::with_model(created.agent.clone());
    attach::tell_omitted(&attached, &agent, out)?;
    if args.detach {
        return detached(args, &created, out);
    }
    let name = created.agent.name.as_str();
    let Some(prompt) = created.prompt else {
        let what = format!("{name} was created without its prompt");
        return Err(Error::new(Exit::Unavailable, what)
            .next("the daemon may have another version: `agentd daemon stop`, then try again"));
    };
    let scope = Scope::Prompt(prompt);
    let mut showing = args
        .show
        .showing(scope, &created.agent, Remarks::Printed, out)?;
    let client = connection.client.clone();
    let awaited = Awaited {
        prompt,
        turn: None,
        after: Seq(0),
    };
    let answer = approve_in_place::answer(&mut connection, name, awaited, &mut showing, out);
    let answer = interruptible(answer, &mut interrupts, &client, name).await?;
    let show = showing.end(Some(&answer));
    let finished = waiting::finish(&mut connection, name, prompt, &answer, show, out).await;
    match answer.status {
        Status::Interrupted => finished.map_err(|error| error.next(continued(name))),
        _ => finished,
    }
}

/// What the user typed. Text from standard input names nothing.
fn typed(args: &Args) -> Option<&str> {
    let typed = args.prompt.as_deref();
    typed.filter(|typed| *typed != "-" && !outside::is_told())
}

/// Creates the agent, whose MCP servers are then asked for what the prompt names, and sends the prompt.
async fn with_mentions(client: &Client, create: Create, typed: &str) -> Result<Created, Error> {
    let text = create.prompt.clone().unwrap_or_default();
    let (attachments, env) = (create.attachments.clone(), create.env.clone());
    let create = Create {
        prompt: None,
        attachments: Vec::new(),
        ..create
    };
    let created = client.create(&create).await?;
    let name = created.agent.name.as_str();
    let resolved = match mentions::resolve(client, name, typed).await {
        Ok(resolved) => resolved,
        Err(error) => {
            // Nothing can be done with an agent that runs one prompt and has none.
            let _stays = client.archive(name, &Archive::default()).await;
            return Err(error);
        }
    };
    let text = match (resolved.text, text.strip_prefix(typed)) {
        (Some(named), Some(rest)) => format!("{named}{rest}"),
        (Some(named), None) => named,
        (None, _) => text,
    };
    let send = Send {
        text,
        attachments: attachments
            .into_iter()
            .chain(resolved.attachments)
            .collect(),
        key: Some(clock::new_id().to_string()),
        mode: PromptMode::Queue,
        notify: false,
        env,
    };
    let sent = client.send(name, &send).await?;
    let prompt = Some(sent.prompt);
    Ok(Created { prompt, ..created })
}

/// What to do after an interrupt.
fn continued(name: &str) -> String {
    format!("`agentd run --continue \"…\"` goes on from here; see `agentd logs {name}`")
}

/// A one-shot agent that has no prompt yet.
async fn new(described: &Described, out: &mut Output) -> Result<Create, Error> {
    let catalog = providers::catalog()?;
    let spec = described.spec(&catalog, out).await?;
    Ok(Create {
        mode: Some(Mode::Oneshot),
        env: providers::env(&catalog, &providers::env_names(&spec)),
        spec,
        ..Create::default()
    })
}

fn detached(args: &Args, created: &Created, out: &mut Output) -> Result<(), Error> {
    match args.show.is_json() {
        true => out.json(created),
        false => out.line(&created.agent.name),
    }
}

/// Waits for the answer. The first Ctrl-C interrupts the turn, the second one ends this command.
async fn interruptible(
    answer: impl Future<Output = Result<Answer, Error>>,
    interrupts: &mut Signal,
    client: &Client,
    name: &str,
) -> Result<Answer, Error> {
    let mut answer = pin!(answer);
    let mut is_interrupted = false;
    loop {
        tokio::select! {
            biased;
            Some(()) = interrupts.recv() => {
                if std::mem::replace(&mut is_interrupted, true) {
                    return Err(Error::interrupted().next(continued(name)));
                }
                // The turn ends soon; its end is seen in the same way as any other.
                client.interrupt(name).await?;
            }
            answer = &mut answer => return answer,
        }
    }
}
