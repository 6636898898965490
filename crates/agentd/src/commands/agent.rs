//! `agentd agent`.

use crate::agent::{self, Input, Resume, Settings, Style};
use crate::attach::AttachArgs;
use crate::described::Described;
use crate::error::{Error, Exit};
use crate::home;
use crate::prompt;
use agentd_core::event::Decision;
use agentd_core::id::ApprovalId;
use agentd_core::message::Block;
use agentd_core::spec::AgentSpec;
use agentd_daemon::clock;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  agentd agent \"What is in this directory?\"
  agentd agent --provider demo 'run `date`'
  agentd agent --provider ollama --model qwen3 --json \"Count the TODOs\"
  printf 'first prompt\\0second prompt\\0' | agentd agent --checkpoint-dir ./run
  agentd agent --attach chart.png \"What does it show?\"
  agentd agent --resume ./run/session-latest.json \"And now?\"

Without a prompt, prompts are read from standard input, each terminated by a NUL byte (on a terminal, \
by a newline). Keys come from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY, \
GEMINI_API_KEY, …) or from config.toml.

SIGINT interrupts the turn and keeps its messages. SIGTERM finishes the current step, saves the session and \
exits with 0.
Exit: 0 ok, 1 the turn failed, 2 usage, 3 refused, 4 unavailable, 5 limited, 6 waiting for you, 130 \
interrupted.";

/// Its default differs from that of other commands, because there is no user to ask.
const APPROVAL: &str = "When a tool call that no rule matches needs approval: on-request, always or never \
[default: never]";

/// Run an agent in the foreground, without a daemon
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("approval", |arg| arg.help(APPROVAL)))]
pub struct Args {
    /// The prompt; `-` reads it from standard input
    prompt: Option<String>,
    #[command(flatten)]
    attach: AttachArgs,
    #[command(flatten)]
    described: Described,
    /// Base URL of the provider
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Name of this run, included in the output
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Print every event as a JSON line
    #[arg(long)]
    json: bool,
    /// Directory for the journal and the session [default: a new one in the state directory]
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,
    /// Resume from a session file, or from the journal in a directory
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Read NUL-terminated prompts from this named pipe
    #[arg(long, value_name = "PATH", conflicts_with = "prompt")]
    fifo: Option<PathBuf>,
    /// Prompts that arrive during a turn join it, instead of waiting for its end
    #[arg(long)]
    steer: bool,
    /// Continue the turn that reached a limit, or that waits after a crash
    #[arg(long, requires = "resume")]
    continue_turn: bool,
    /// Approve a tool call that is waiting for permission
    #[arg(long, value_name = "ID", requires = "resume")]
    approve: Vec<ApprovalId>,
    /// Deny a tool call that is waiting for permission
    #[arg(long, value_name = "ID", requires = "resume")]
    deny: Vec<ApprovalId>,
    /// Maximum number of tokens in a turn
    #[arg(long, value_name = "N")]
    max_turn_tokens: Option<u64>,
}

pub async fn run(args: Args) -> Result<(), Error> {
    agent::run(settings(args)?).await
}

fn settings(args: Args) -> Result<Settings, Error> {
    let resume = args.resume.as_deref().map(|path| match path.is_dir() {
        true => Resume::Journal,
        false => Resume::File(path.to_owned()),
    });
    let dir = dir(&args)?;
    let input = match (&args.prompt, &args.fifo) {
        (Some(text), _) => {
            let mut blocks = vec![Block::text(prompt::read(text)?)];
            blocks.extend(args.attach.blocks()?);
            Input::Prompt(blocks)
        }
        (None, _) if !args.attach.is_empty() => {
            let what = "--attach needs a prompt: files are attached to it";
            return Err(Error::new(Exit::Usage, what)
                .next("pass the prompt, or send frames with `attachments`"));
        }
        (None, Some(path)) => Input::Fifo(path.clone()),
        (None, None) if args.continue_turn || !args.approve.is_empty() || !args.deny.is_empty() => {
            Input::Nothing
        }
        (None, None) => Input::Stdin,
    };
    let allow = args.approve.iter().map(|id| (*id, Decision::Allow));
    let deny = args.deny.iter().map(|id| (*id, Decision::Deny));
    Ok(Settings {
        style: match args.json {
            true => Style::Json,
            false => Style::Text,
        },
        run_id: args.run_id.clone(),
        state_dir: dir,
        resume,
        base_url: args.base_url.clone(),
        input,
        steer: args.steer,
        continue_turn: args.continue_turn,
        answers: allow.chain(deny).collect(),
        adjust: Box::new(move |spec| adjust(&args, spec)),
    })
}

fn dir(args: &Args) -> Result<PathBuf, Error> {
    if let Some(dir) = &args.checkpoint_dir {
        return Ok(dir.clone());
    }
    match &args.resume {
        Some(path) if path.is_dir() => Ok(path.clone()),
        Some(path) => match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => Ok(parent.to_owned()),
            _ => Ok(PathBuf::from(".")),
        },
        None => {
            let name = match &args.run_id {
                Some(run_id) => safe(run_id)?,
                None => clock::new_id().to_string(),
            };
            Ok(home::dir()?.join("runs").join(name))
        }
    }
}

/// Accepts only a name that cannot leave its parent directory.
fn safe(name: &str) -> Result<String, Error> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || name.len() > 128 || !name.chars().all(is_plain) {
        let what = format!("`{name}` is not a valid directory name");
        return Err(Error::new(Exit::Usage, what)
            .next("use letters, digits, `-`, `_` and `.`, or pass --checkpoint-dir"));
    }
    Ok(name.to_owned())
}

/// Applies the settings of the command line to the spec.
fn adjust(args: &Args, spec: &mut AgentSpec) -> Result<(), Error> {
    args.described.apply(spec)?;
    spec.limits.turn.tokens = args.max_turn_tokens.or(spec.limits.turn.tokens);
    Ok(())
}
