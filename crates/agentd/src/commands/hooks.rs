//! `agentd hooks`.

use crate::complete;
use crate::connect;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::render::table::{Head, table};
use crate::render::{count, word};
use agentd_client::api::{
    CheckHooks, HookLine, HookList, HookSource, HooksQuery, TestHooks, TestedHooks,
};
use agentd_core::hook::{HookEvent, Problem, Severity};
use agentd_files::own;
use clap::Subcommand;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  agentd hooks list coder                  List the hooks of an agent and whether they run
  agentd hooks check .agentd/hooks.json    Check a hooks file
  agentd hooks test PreToolUse --agent coder --set tool_input='{\"command\":\"make\"}'

Hooks are your programs that agentd runs when an event happens to an agent, and that may block or change it. They are \
defined in hooks.json in the state directory, under `hooks:` in an agent's file, and in .agentd/hooks.json and \
.claude/settings.json in the working directory of an agent. Hooks of a working directory run only after you have trusted their current content (`agentd trust`).";

/// List, check and test hooks
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the hooks of the user, of an agent and of a directory
    #[command(
        after_help = "Examples:\n  agentd hooks list\n  agentd hooks list coder --json | jq '.hooks[] | select(.state == \"untrusted\")'"
    )]
    List {
        /// The agent [default: the hooks of this directory]
        #[arg(add = complete::agents())]
        name: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Report the problems of a hooks file
    #[command(
        after_help = "Examples:\n  agentd hooks check\n  agentd hooks check .agentd/hooks.json\n\nExit: 0 every hook can run, 1 some hook cannot."
    )]
    Check {
        /// The file [default: yours and the one of this directory]
        file: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run the hooks of an event on a sample input and print their decision; nothing is recorded
    #[command(
        after_help = "Examples:\n  agentd hooks test SessionStart\n  agentd hooks test PreToolUse --agent coder --set tool_name=read_file"
    )]
    Test {
        /// The name of the event, as in a hooks file
        event: String,
        /// The agent whose hooks are run [default: the hooks of this directory]
        #[arg(long, value_name = "NAME", add = complete::agents())]
        agent: Option<String>,
        /// Replace a field of the sample input; the value is JSON or text
        #[arg(long, value_name = "FIELD=VALUE")]
        set: Vec<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    match &args.verb {
        Verb::List { name, json } => list(name.as_deref(), *json, out).await,
        Verb::Check { file, json } => check(file.as_deref(), *json, out).await,
        Verb::Test {
            event,
            agent,
            set,
            json,
        } => test(event, agent.clone(), set, *json, out).await,
    }
}

/// The absolute path of the given directory, or of the current one.
fn dir(given: Option<&Path>) -> Result<String, Error> {
    let given = given.unwrap_or(Path::new("."));
    let whole = std::fs::canonicalize(given).map_err(|error| {
        let what = format!("{} is not a directory", given.display());
        Error::of_file(what, &error)
    })?;
    Ok(whole.display().to_string())
}

async fn find(name: Option<&str>) -> Result<HookList, Error> {
    let query = HooksQuery {
        agent: name.map(str::to_owned),
        cwd: match name {
            Some(_) => None,
            None => Some(dir(None)?),
        },
    };
    Ok(connect::client().await?.hooks(&query).await?)
}

async fn list(name: Option<&str>, json: bool, out: &mut Output) -> Result<(), Error> {
    let list = find(name).await?;
    if json {
        return out.json(&list);
    }
    if list.hooks.is_empty() {
        out.line("no hooks")?;
    }
    let rows: Vec<_> = list.hooks.iter().map(row).collect();
    let head = [
        Head::Kept("EVENT"),
        Head::Spare("MATCHER", 2),
        Head::Spare("FROM", 3),
        Head::Kept("STATE"),
        Head::Spare("AGENTS", 1),
        Head::Kept("RUNS"),
    ];
    if !rows.is_empty() {
        for line in table(&head, &rows, out.width()) {
            out.line(line)?;
        }
    }
    for source in &list.sources {
        if let (Some(path), false) = (&source.path, source.trusted) {
            out.line(format_args!("{path} is not trusted in its current state"))?;
            out.line("  next: read it, then run `agentd trust` in its directory")?;
        }
        tell(source, out)?;
    }
    Ok(())
}

fn row(hook: &HookLine) -> Vec<String> {
    let matcher = match hook.matcher.as_str() {
        "" => "*",
        matcher => matcher,
    };
    let agents = match hook.runtimes.len() {
        3 => "all".to_owned(),
        _ => {
            let words: Vec<_> = hook.runtimes.iter().map(word).collect();
            words.join(", ")
        }
    };
    vec![
        hook.event.to_string(),
        matcher.to_owned(),
        word(hook.layer),
        word(hook.state),
        agents,
        hook.run.clone(),
    ]
}

fn tell(source: &HookSource, out: &mut Output) -> Result<(), Error> {
    let of = source.path.as_deref().unwrap_or("the agent's spec");
    for problem in &source.problems {
        out.line(format_args!("{of}: {}", said(problem)))?;
    }
    Ok(())
}

fn said(problem: &Problem) -> String {
    let severity = word(problem.severity);
    let at = match problem.at.as_str() {
        "" => String::new(),
        at => format!("{at}: "),
    };
    let hint = problem.hint.as_ref().map(|hint| format!("; {hint}"));
    format!(
        "{severity}: {at}{}{}",
        problem.what,
        hint.unwrap_or_default()
    )
}

async fn check(file: Option<&Path>, json: bool, out: &mut Output) -> Result<(), Error> {
    let Some(file) = file else {
        return check_all(json, out).await;
    };
    let text = own::read_to_string(file).map_err(|error| {
        let what = format!("{} cannot be read", file.display());
        Error::of_file(what, &error)
    })?;
    let client = connect::client().await?;
    let checked = client.check_hooks(&CheckHooks { text }).await?;
    if json {
        out.json(&checked)?;
    } else {
        for problem in &checked.problems {
            out.line(said(problem))?;
        }
        let handlers = count(checked.handlers, "handler");
        out.line(format_args!("{}: {handlers}", file.display()))?;
    }
    verdict(checked.ok, json)
}

async fn check_all(json: bool, out: &mut Output) -> Result<(), Error> {
    let list = find(None).await?;
    let mut problems = list.sources.iter().flat_map(|source| &source.problems);
    let is_good = !problems.any(|problem| problem.severity == Severity::Error);
    if json {
        out.json(&json!({ "ok": is_good, "sources": list.sources }))?;
    } else {
        for source in &list.sources {
            tell(source, out)?;
            let errors = source.problems.iter();
            let errors = errors.filter(|problem| problem.severity == Severity::Error);
            let path = source.path.as_deref().unwrap_or_default();
            match errors.count() {
                0 => out.line(format_args!("{path}: ok"))?,
                errors => out.line(format_args!("{path}: {}", count(errors as u64, "error")))?,
            }
        }
        if list.sources.is_empty() {
            out.line("no hooks")?;
        }
    }
    verdict(is_good, json)
}

fn verdict(is_good: bool, json: bool) -> Result<(), Error> {
    let error = Error::new(Exit::Failed, "some hooks cannot run");
    match (is_good, json) {
        (true, _) => Ok(()),
        (false, true) => Err(error.printed()),
        (false, false) => Err(error),
    }
}

async fn test(
    event: &str,
    agent: Option<String>,
    set: &[String],
    json: bool,
    out: &mut Output,
) -> Result<(), Error> {
    let Some(event) = HookEvent::parse(event) else {
        let error = Error::new(Exit::Usage, format!("unknown event `{event}`"));
        return Err(match HookEvent::nearest(event) {
            Some(near) => error.next(format!("did you mean `{near}`?")),
            None => error.next("see docs/hooks.md for all events"),
        });
    };
    let mut fields = Map::new();
    for pair in set {
        let Some((field, value)) = pair.split_once('=') else {
            let what = format!("`{pair}` is not of the form FIELD=VALUE");
            return Err(Error::new(Exit::Usage, what));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        fields.insert(field.to_owned(), value);
    }
    let ask = TestHooks {
        event,
        cwd: match agent {
            Some(_) => None,
            None => Some(dir(None)?),
        },
        agent,
        fields,
    };
    let tested = connect::client().await?.test_hooks(&ask).await?;
    match json {
        true => out.json(&tested),
        false => print(&tested, out),
    }
}

fn print(tested: &TestedHooks, out: &mut Output) -> Result<(), Error> {
    if tested.runs.is_empty() {
        return out.line("no hook matches");
    }
    for run in &tested.runs {
        let exit = run.exit.map(|code| format!(", exit {code}"));
        out.line(format_args!(
            "{} ({}): {}{}, {} ms",
            run.run,
            word(run.layer),
            word(run.outcome),
            exit.unwrap_or_default(),
            run.duration_ms
        ))?;
        if let Some(warning) = &run.answer.warning {
            out.line(format_args!("  {warning}"))?;
        }
    }
    let verdict = &tested.verdict;
    let said = [
        ("decision", Some(word(verdict.decision))),
        ("reason", verdict.reason.clone()),
        ("for the model", verdict.context.clone()),
        ("ends the turn", verdict.stop.clone()),
    ];
    for (what, text) in said {
        if let Some(text) = text {
            out.line(format_args!("{what}: {text}"))?;
        }
    }
    Ok(())
}
