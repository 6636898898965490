//! The command line: which verbs there are. Each verb's arguments, help and code are in its own file.

mod advice;
mod groups;
mod mode;

pub use mode::Asked;

use crate::commands::{
    acp, adopt_copy, agent, answer, apply, approve, backup, bind, bindings, chat, checkpoint,
    compact, completions, config, context, r#continue, conversations, create, daemon, demo, deny,
    diff, doctor, edit, exec, export, files, fork, hooks, import, init, interrupt, list, logs, man,
    mcp, models, prune, purge, queue, rename, replay, reset, restart, restore, restore_backup,
    rewind, rm, run, runtime, schedule, search, secret, send, set, show, start, status, stop,
    tasks, trust, unbind, untrust, usage, verify, wait,
};
use crate::error::{self, Error, Exit, Format};
use crate::output::Output;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use mode::Named;
use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  agentd demo                              Show a conversation that survives kill -9
  agentd run \"What is in this directory?\"  Run an agent for one prompt
  agentd                                   Talk to the agent of this directory
  agentd create coder                      Create a persistent agent
  agentd send coder \"Fix the tests\"        Send it a prompt
  agentd logs -f coder                     Follow its log
  agentd reset coder                       Begin a new conversation; --undo reverses it

State is stored in $AGENTD_HOME, or else in $XDG_STATE_HOME/agentd, or else in ~/.local/state/agentd.";

/// Runs AI agents for as long as they are needed, and never loses a conversation
#[derive(Debug, Parser)]
#[command(
    name = "agentd",
    version = crate::version::TEXT,
    // Without a command, it opens the chat.
    override_usage = "agentd [OPTIONS] [COMMAND]",
    after_help = EXAMPLES,
    max_term_width = 100
)]
pub struct Cli {
    /// Print text unchanged, including control sequences from agents, tools and files
    #[arg(long, global = true)]
    pub raw: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The arguments of a verb are built when that verb runs: building all of them takes longer than most verbs do.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Verb {
    Chat(Named<chat::Args>),
    Run(run::Args),
    Create(create::Args),
    Send(Named<send::Args>),
    Wait(Named<wait::Args>),
    Queue(Named<queue::Args>),
    Schedule(Named<schedule::Args>),
    Exec(Named<exec::Args>),
    Interrupt(Named<interrupt::Args>),
    Continue(Named<r#continue::Args>),
    Approve(Named<approve::Args>),
    Deny(Named<deny::Args>),
    Answer(Named<answer::Args>),
    Reset(Named<reset::Args>),
    Rewind(Named<rewind::Args>),
    Fork(Named<fork::Args>),
    Compact(Named<compact::Args>),
    Diff(Named<diff::Args>),
    Files(Named<files::Args>),
    Start(Named<start::Args>),
    Stop(Named<stop::Args>),
    Restart(Named<restart::Args>),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Status(Named<status::Args>),
    Show(Named<show::Args>),
    Logs(Named<logs::Args>),
    Replay(Named<replay::Args>),
    Context(Named<context::Args>),
    Search(search::Args),
    Usage(Named<usage::Args>),
    Conversations(Named<conversations::Args>),
    Tasks(Named<tasks::Args>),
    Checkpoint(Named<checkpoint::Args>),
    Edit(Named<edit::Args>),
    Set(Named<set::Args>),
    Apply(Named<apply::Args>),
    Hooks(Named<hooks::Args>),
    Trust(trust::Args),
    Untrust(untrust::Args),
    Mcp(mcp::Args),
    Secret(secret::Args),
    Bind(Named<bind::Args>),
    Unbind(unbind::Args),
    Bindings(bindings::Args),
    Rename(Named<rename::Args>),
    Export(Named<export::Args>),
    Import(import::Args),
    Rm(Named<rm::Args>),
    Restore(Named<restore::Args>),
    Purge(Named<purge::Args>),
    Prune(prune::Args),
    Daemon(daemon::Args),
    Agent(Box<agent::Args>),
    Config(Box<config::Args>),
    Init(init::Args),
    Models(models::Args),
    Completions(completions::Args),
    Man(man::Args),
    Runtime(runtime::Args),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Backup(backup::Args),
    RestoreBackup(restore_backup::Args),
    AdoptCopy(adopt_copy::Args),
    Acp(Named<acp::Args>),
    Demo(demo::Args),
}

impl Verb {
    /// Whether the verb handles signals itself. At Ctrl-C, the future of any other verb is dropped.
    pub fn handles_signals(&self) -> bool {
        match self {
            Self::Agent(_)
            | Self::Chat(_)
            | Self::Run(_)
            | Self::Send(_)
            | Self::Edit(_)
            | Self::RestoreBackup(_)
            | Self::Runtime(_) => true,
            Self::Daemon(args) => args.handles_signals(),
            Self::Queue(args) => args.handles_signals(),
            _ => false,
        }
    }

    pub async fn run(self, out: &mut Output) -> Result<(), Error> {
        match self {
            Self::Acp(args) => acp::run(&args).await,
            Self::AdoptCopy(args) => adopt_copy::run(&args, out).await,
            Self::Agent(args) => agent::run(*args).await,
            Self::Apply(args) => apply::run(&args, out).await,
            Self::Approve(args) => approve::run(&args, out).await,
            Self::Backup(args) => backup::run(&args, out).await,
            Self::Bind(args) => bind::run(&args, out).await,
            Self::Bindings(args) => bindings::run(&args, out).await,
            Self::Chat(args) => chat::run(&args, out).await,
            Self::Checkpoint(args) => checkpoint::run(&args, out).await,
            Self::Compact(args) => compact::run(&args, out).await,
            Self::Completions(args) => completions::run(&args, out),
            Self::Config(args) => config::run(&args, out).await,
            Self::Continue(args) => r#continue::run(&args, out).await,
            Self::Context(args) => context::run(&args, out).await,
            Self::Conversations(args) => conversations::run(&args, out).await,
            Self::Create(args) => create::run(&args, out).await,
            Self::Daemon(args) => daemon::run(&args, out).await,
            Self::Demo(args) => demo::run(&args, out).await,
            Self::Deny(args) => deny::run(&args, out).await,
            Self::Answer(args) => answer::run(&args, out).await,
            Self::Diff(args) => diff::run(&args, out).await,
            Self::Doctor(args) => doctor::run(&args, out).await,
            Self::Edit(args) => edit::run(&args, out).await,
            Self::Exec(args) => exec::run(&args, out).await,
            Self::Export(args) => export::run(&args, out).await,
            Self::Files(args) => files::run(&args, out).await,
            Self::Fork(args) => fork::run(&args, out).await,
            Self::Hooks(args) => hooks::run(&args, out).await,
            Self::Trust(args) => trust::run(&args, out).await,
            Self::Untrust(args) => untrust::run(&args, out).await,
            Self::Import(args) => import::run(&args, out).await,
            Self::Init(args) => init::run(&args, out).await,
            Self::Interrupt(args) => interrupt::run(&args, out).await,
            Self::List(args) => list::run(&args, out).await,
            Self::Logs(args) => logs::run(&args, out).await,
            Self::Man(args) => man::run(&args, Cli::command()),
            Self::Models(args) => models::run(&args, out).await,
            Self::Prune(args) => prune::run(&args, out).await,
            Self::Purge(args) => purge::run(&args, out).await,
            Self::Queue(args) => queue::run(&args, out).await,
            Self::Rename(args) => rename::run(&args, out).await,
            Self::Replay(args) => replay::run(&args, out).await,
            Self::Reset(args) => reset::run(&args, out).await,
            Self::Restart(args) => restart::run(&args, out).await,
            Self::Restore(args) => restore::run(&args, out).await,
            Self::RestoreBackup(args) => restore_backup::run(&args, out).await,
            Self::Rewind(args) => rewind::run(&args, out).await,
            Self::Rm(args) => rm::run(&args, out).await,
            Self::Run(args) => run::run(&args, out).await,
            Self::Runtime(args) => runtime::run(args).await,
            Self::Schedule(args) => schedule::run(&args, out).await,
            Self::Search(args) => search::run(&args, out).await,
            Self::Mcp(args) => mcp::run(&args, out).await,
            Self::Secret(args) => secret::run(&args, out).await,
            Self::Send(args) => send::run(&args, out).await,
            Self::Set(args) => set::run(&args, out).await,
            Self::Show(args) => show::run(&args, out).await,
            Self::Start(args) => start::run(&args, out).await,
            Self::Status(args) => status::run(&args, out).await,
            Self::Stop(args) => stop::run(&args, out).await,
            Self::Tasks(args) => tasks::run(&args, out).await,
            Self::Unbind(args) => unbind::run(&args, out).await,
            Self::Usage(args) => usage::run(&args, out).await,
            Self::Verify(args) => verify::run(&args, out).await,
            Self::Wait(args) => wait::run(&args, out).await,
        }
    }
}

/// The whole command line, with the arguments of every verb.
pub fn command() -> Command {
    let mut command = Cli::command();
    command.build();
    groups::list(command)
}

/// The parsed command line, and the agent whose mode must be checked first.
pub fn parse() -> Result<(Cli, Option<Asked>), clap::Error> {
    // An error or a help text may mention every verb: parse again with all of them built.
    let args = args();
    let parsed = Cli::command().try_get_matches_from(&args);
    let parsed = parsed.or_else(|_| command().try_get_matches_from(&args));
    let matches: ArgMatches = parsed.map_err(without_hidden)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))?;
    Ok((cli, mode::asked(&matches)))
}

/// The arguments. Without any, a terminal gets the chat.
fn args() -> Vec<OsString> {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if args.len() == 1 && chat::is_possible() {
        args.push("chat".into());
    }
    args
}

/// Whether the arguments ask for JSON. Checked before parsing, because a usage error is an object, too.
pub fn format(args: impl Iterator<Item = OsString>) -> Format {
    let options: Vec<OsString> = args.skip(1).take_while(|arg| arg != "--").collect();
    // The output of `agent` has its own contract (docs/runtime.md), including its errors.
    let is_agent = options.first().is_some_and(|verb| verb == "agent");
    let is_json = |(n, arg): (usize, &OsString)| {
        let value = options.get(n + 1).and_then(|value| value.to_str());
        match arg.to_str() {
            Some("--json" | "--output=json" | "--output=stream-json") => true,
            Some("--output") => matches!(value, Some("json" | "stream-json")),
            _ => false,
        }
    };
    match !is_agent && options.iter().enumerate().any(is_json) {
        true => Format::Json,
        false => Format::Text,
    }
}

/// What to type instead.
fn advice(answer: &clap::Error) -> Option<String> {
    let args = std::env::args_os().skip(1);
    let args = args.map(|arg| arg.to_string_lossy().into_owned());
    advice::advice(&args.collect::<Vec<_>>(), advice::Wrong::of(answer))
}

/// Does not suggest a verb that is hidden.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let hidden = |name: &String| name == "runtime";
    let suggested = error.get(ContextKind::SuggestedSubcommand);
    let is_hidden = match suggested {
        Some(ContextValue::String(name)) => hidden(name),
        Some(ContextValue::Strings(names)) => names.iter().any(hidden),
        _ => false,
    };
    if is_hidden {
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}

/// Prints what clap returned. Help and version are successes; every other message is a usage error.
pub fn answer(answer: &clap::Error, format: Format) -> ExitCode {
    let advice = match answer.exit_code() {
        0 => None,
        _ => advice(answer),
    };
    if answer.exit_code() != 0 && format == Format::Json {
        let text = answer.to_string();
        let first = text.lines().next().unwrap_or_default();
        let what = first.strip_prefix("error: ").unwrap_or(first);
        let next = advice.as_deref().unwrap_or("see `agentd --help`");
        let error = Error::new(Exit::Usage, what).next(next);
        // If stdout is closed, the error cannot be reported in any other way.
        let _ignored = Output::stdout().json(&error.failure());
    }
    // A closed stdout or stderr is not an error here.
    let _ignored = answer.print();
    if let Some(advice) = advice {
        let _ignored = writeln!(std::io::stderr(), "  next: {advice}");
    }
    match answer.exit_code() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(error::usage_code()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap_complete::engine::ArgValueCompleter;

    #[test]
    fn json_is_asked_for_in_three_ways() {
        let format = |args: &str| format(args.split(' ').map(OsString::from));
        for args in [
            "--json",
            "--output json",
            "--output stream-json",
            "--output=json",
        ] {
            assert_eq!(
                format(&format!("agentd send coder {args} hello")),
                Format::Json,
                "{args}"
            );
        }
        for args in [
            "agentd send coder",
            "agentd send coder --output text",
            "agentd agent --json",
            "agentd send -- --json",
        ] {
            assert_eq!(format(args), Format::Text, "{args}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// Arguments that name something that exists. `create NAME` names something new.
    #[test]
    fn every_argument_that_names_something_is_completed() {
        const NAMES: [&str; 12] = [
            "name",
            "agent",
            "which",
            "conversation",
            "turn",
            "task",
            "approval",
            "at",
            "provider",
            "model",
            "paths",
            "settings",
        ];
        fn missing(command: &Command, found: &mut Vec<String>) {
            // `--approval` is a mode.
            let is_name = |arg: &&clap::Arg| {
                let id = arg.get_id().as_str();
                NAMES.contains(&id) && (id != "approval" || arg.is_positional())
            };
            let args = command.get_arguments().filter(is_name);
            let without = args.filter(|arg| arg.get::<ArgValueCompleter>().is_none());
            let verb = command.get_name();
            found.extend(without.map(|arg| format!("{verb} {}", arg.get_id())));
            let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
            verbs.for_each(|verb| missing(verb, found));
        }
        let mut found = Vec::new();
        missing(&command(), &mut found);
        // The name of a new agent, and a time.
        found.retain(|arg| arg != "create name" && arg != "add at");
        assert_eq!(found, [] as [&str; 0]);
    }
}
