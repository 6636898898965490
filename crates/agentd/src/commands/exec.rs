//! `agentd exec`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::keys;
use crate::op::Op;
use crate::output::Output;
use crate::render::time;
use agentd_client::api::{EndedCommand, RunCommand};
use agentd_core::event::{CommandCut, TaskExit};
use std::time::Duration;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Examples:
  agentd exec coder -- cargo test
  agentd exec coder -- 'git log --oneline | head'

One argument is a line for the shell; several arguments are a program and its arguments. The command runs in the agent's \
working directory, with the sandbox and the environment of its tools. The model sees the command and its output in its next \
request; nothing is sent by itself. Ctrl-C does not end the command: `agentd interrupt` does.
Exit: 0 the command succeeded, 1 it failed (its exit code is shown) or its outcome is unknown, 3 refused or conflict, \
4 unavailable, 124 it timed out, 130 it was interrupted.";

/// Run a command in the sandbox of the agent's tools, for the model to see
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::agents())]
    name: String,
    /// The command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Time limit of the command: 30s, 10m, or a number of seconds; at most 1h
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time_limit)]
    timeout: Duration,
    #[command(flatten)]
    op: Op,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

fn time_limit(text: &str) -> Result<Duration, String> {
    let limit = time::duration(text)?;
    match (SHORTEST..=LONGEST).contains(&limit) {
        true => Ok(limit),
        false => Err("expected a time from 1s to 1h".to_owned()),
    }
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?.under(args.op.id);
    let run = RunCommand {
        command: line(&args.command),
        timeout_ms: Some(time::millis(args.timeout)),
        env: keys::env_of(&client, &args.name).await?,
    };
    let ended = client.run_command(&args.name, &run).await?;
    if args.json {
        out.json(&ended)?;
    } else if !ended.output.is_empty() {
        out.line(ended.output.trim_end_matches('\n'))?;
    }
    match trouble(&ended) {
        Some(error) if args.json => Err(error.printed()),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The error of a command that did not succeed.
fn trouble(ended: &EndedCommand) -> Option<Error> {
    let how = ended.end.trouble()?;
    let exit = match (ended.end.cut, ended.end.exit) {
        (Some(CommandCut::TimedOut), _) => Exit::TimedOut,
        (Some(CommandCut::Interrupted), _) => Exit::Interrupted,
        (None, _) => Exit::Failed,
    };
    let error = Error::new(exit, format!("the command did not succeed: {how}"));
    Some(match ended.end.exit {
        TaskExit::Unknown => error.next("check what it did before you repeat it"),
        _ => error,
    })
}

/// One argument is a line for the shell. Several are words that the shell must not interpret.
fn line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => {
            let words = words.iter().map(|word| quoted(word));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}

pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn one_argument_is_a_line_and_several_are_words() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            line(&words)
        };
        assert_eq!(of(&["ls | head"]), "ls | head");
        assert_eq!(of(&["ls", "-l", "a b"]), "ls -l 'a b'");
        assert_eq!(
            of(&["echo", "it's", "$HOME", ""]),
            r"echo 'it'\''s' '$HOME' ''"
        );
    }
}
