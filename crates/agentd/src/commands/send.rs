//! `agentd send`.

use crate::attach::AttachArgs;
use crate::connect::Connection;
use crate::error::{Error, Exit};
use crate::live::Scope;
use crate::output::Output;
use crate::render::{time, word};
use crate::showing::{Remarks, ShowArgs, Showing};
use crate::watch::Awaited;
use crate::{
    approve_in_place, attach, complete, keys, mentions, outside, prompt, providers, waiting,
};
use agentd_client::api::{Env, Send, Sent};
use agentd_core::catalog::Catalog;
use agentd_core::event::PromptMode;
use agentd_core::state::Phase;
use agentd_daemon::clock;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  agentd send coder \"Fix the failing test\"
  agentd send coder --no-wait \"And then update the changelog\"
  agentd send coder --json --timeout 30s \"How far are you?\" | jq -r .text
  agentd send coder --steer \"Leave the public API as it is\"
  agentd send coder --attach screenshot.png \"Why is the button grey?\"
  agentd send coder --no-wait --notify \"Run the whole test suite\"
  make 2>&1 | agentd send coder --key build-1234 -

A terminal shows the turn as it happens; if standard output is not a terminal, it receives only the answer. The \
prompt is on disk before this command returns. A prompt that is sent twice with the same key is delivered \
once. Ctrl-C and --timeout only stop waiting: the turn continues, and `agentd wait` waits for it again.
Exit: 0 ok, 1 the turn failed, 2 usage, 3 refused, set aside or removed, 4 unavailable, 5 limited, 6 waiting for \
you, 7 not found, 124 timeout, 130 interrupted. A prompt to a stopped agent is queued: exit 6, \
or 0 with --no-wait.";

/// Send a prompt to an agent and wait for the answer
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The prompt; `-` reads it from standard input
    prompt: String,
    /// Wait for the answer (the default)
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Return as soon as the prompt is accepted
    #[arg(long)]
    no_wait: bool,
    /// Wait at most this long; the turn continues
    #[arg(long, value_name = "TIME", value_parser = time::duration, conflicts_with = "no_wait")]
    timeout: Option<Duration>,
    /// Idempotency key: a prompt that is sent repeatedly with the same key is delivered once
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Add the prompt to the running turn, instead of queueing it
    #[arg(long, conflicts_with = "interrupt")]
    steer: bool,
    /// Interrupt the running turn, and answer this prompt next
    #[arg(long)]
    interrupt: bool,
    /// Send a notification when the turn ends or waits for you
    #[arg(long)]
    notify: bool,
    #[command(flatten)]
    attach: AttachArgs,
    #[command(flatten)]
    show: ShowArgs,
}

/// Why the command stops waiting.
enum StopWaiting {
    TimedOut,
    Interrupted,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let catalog = providers::catalog()?;
    let mut send = Send {
        text: prompt::read(&args.prompt)?,
        attachments: args.attach.read()?,
        // Generated if none is given: the client may have to send the prompt again after it was accepted.
        key: Some(
            args.key
                .clone()
                .unwrap_or_else(|| clock::new_id().to_string()),
        ),
        mode: match (args.steer, args.interrupt) {
            (true, _) => PromptMode::Steer,
            (_, true) => PromptMode::Interrupt,
            _ => PromptMode::Queue,
        },
        notify: args.notify,
        env: Env::new(),
    };
    let interrupts = signal(SignalKind::interrupt()).map_err(Error::no_runtime)?;
    let mut stop_waiting = std::pin::pin!(stop_waiting(args.timeout, interrupts));
    let mut connection = Connection::open().await?;
    // Text from standard input is not typed, and names nothing.
    if args.prompt != "-" && !outside::is_told() {
        let resolved = tokio::select! {
            biased;
            why = &mut stop_waiting => return Err(not_sent(&why, &args.name)),
            resolved = mentions::resolve(&connection.client, &args.name, &send.text) => resolved?,
        };
        send.attachments.extend(resolved.attachments);
        send.text = resolved.text.unwrap_or(send.text);
    }
    let sent = tokio::select! {
        biased;
        why = &mut stop_waiting => return Err(not_sent(&why, &args.name)),
        sent = deliver(&mut connection, &args.name, &catalog, &mut send) => sent?,
    };
    if !args.attach.is_empty() {
        let agent = connection.client.agent(&args.name).await?;
        let agent = providers::with_model(agent);
        attach::tell_omitted(&send.attachments, &agent, out)?;
    }
    if args.no_wait {
        return accepted(args, &sent, out);
    }
    let name = args.name.as_str();
    let prompt = sent.prompt;
    let showing = tokio::select! {
        biased;
        why = &mut stop_waiting => return Err(not_answered(&why, name, &sent)),
        showing = showing(&connection, args, &sent, out) => showing,
    };
    let mut showing = showing?;
    let awaited = Awaited {
        prompt,
        turn: None,
        after: sent.seq,
    };
    let answer = tokio::select! {
        biased;
        why = &mut stop_waiting => Err(not_answered(&why, name, &sent)),
        answer = approve_in_place::answer(&mut connection, name, awaited, &mut showing, out) => answer,
    };
    let show = showing.end(answer.as_ref().ok());
    waiting::finish(&mut connection, name, prompt, &answer?, show, out).await
}

/// How the turn is shown. A turn that runs already is caught up with.
async fn showing(
    connection: &Connection,
    args: &Args,
    sent: &Sent,
    out: &Output,
) -> Result<Showing, Error> {
    if !args.show.is_live(out) {
        return Ok(args.show.only_result());
    }
    let agent = connection.client.agent(&args.name).await?;
    let scope = Scope::Prompt(sent.prompt);
    let mut showing = args.show.showing(scope, &agent, Remarks::Omitted, out)?;
    if !sent.repeated {
        showing.catch_up(connection, &agent, sent.seq).await?;
    }
    Ok(showing)
}

/// Sends the prompt, with the caller's variables for the agent.
async fn deliver(
    connection: &mut Connection,
    name: &str,
    catalog: &Catalog,
    send: &mut Send,
) -> Result<Sent, Error> {
    loop {
        let passed = keys::passed(&connection.client, name).await;
        let Some(passed) = connection.or_again(passed).await? else {
            continue;
        };
        send.env = providers::env(catalog, &passed);
        let sent = connection.client.send(name, send).await;
        if let Some(sent) = connection.or_again(sent).await? {
            return Ok(sent);
        }
    }
}

async fn stop_waiting(timeout: Option<Duration>, mut interrupts: Signal) -> StopWaiting {
    let timed_out = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        Some(()) = interrupts.recv() => StopWaiting::Interrupted,
        () = timed_out => StopWaiting::TimedOut,
    }
}

fn accepted(args: &Args, sent: &Sent, out: &mut Output) -> Result<(), Error> {
    if args.show.is_json() {
        return out.json(sent);
    }
    let (name, prompt) = (&args.name, sent.prompt);
    match sent.repeated {
        true => out.line(format_args!(
            "{name} had already accepted the prompt as {prompt}"
        ))?,
        false => out.line(format_args!("{name} accepted the prompt as {prompt}"))?,
    }
    if matches!(sent.phase, Phase::Stopped | Phase::Failed) {
        let phase = word(sent.phase);
        out.line(format_args!(
            "  {name} is {phase} and answers after: agentd start {name}"
        ))?;
    }
    out.line(format_args!(
        "  to wait for the answer: agentd wait {name} {prompt}"
    ))
}

fn not_sent(why: &StopWaiting, name: &str) -> Error {
    let error = match why {
        StopWaiting::TimedOut => {
            Error::new(Exit::TimedOut, "timed out sending the prompt to the daemon")
        }
        StopWaiting::Interrupted => Error::interrupted(),
    };
    error.next(format!(
        "check with `agentd logs {name}` whether the prompt arrived"
    ))
}

fn not_answered(why: &StopWaiting, name: &str, sent: &Sent) -> Error {
    let error = match why {
        StopWaiting::TimedOut => Error::new(Exit::TimedOut, "timed out waiting for the answer"),
        StopWaiting::Interrupted => Error::new(Exit::Interrupted, "stopped waiting for the answer"),
    };
    let prompt = sent.prompt;
    let error = error.about_prompt(prompt);
    error.because("the turn continues").next(format!(
        "`agentd wait {name} {prompt}` for the answer, `agentd interrupt {name}` to end the turn"
    ))
}
