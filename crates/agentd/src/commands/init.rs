//! `agentd init`.

mod found;
mod questions;
mod trial;

use crate::ask;
use crate::complete;
use crate::config_file::ConfigFile;
use crate::described::approval_mode;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers;
use crate::render::word;
use agentd_core::spec::ApprovalMode;
use found::Found;
use questions::Answers;
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  agentd init
  agentd init --yes                        Take the proposed answers
  agentd init --yes --provider ollama --model qwen3
  agentd init --no-test                    Send nothing to the model

Asks for the provider, the model and the approval mode of new agents, sends a test prompt, and writes the answers to \
[agents] in config.toml. Providers are proposed whose key is in the environment, stored or in config.toml, and local \
servers that answer. Comments and other keys of the file stay, and no value is replaced without a question. Keys are never \
written there: `agentd secret set NAME` stores one.";

/// Choose the provider, the model and the approval mode of new agents
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Take the proposed answers instead of asking
    #[arg(short, long)]
    yes: bool,
    /// The provider, instead of the first question
    #[arg(long, add = complete::providers())]
    provider: Option<String>,
    /// The model, instead of the second question
    #[arg(long, add = complete::models())]
    model: Option<String>,
    /// The approval mode, instead of the third question: on-request, always or never
    #[arg(long, value_name = "MODE", value_parser = approval_mode)]
    approval: Option<ApprovalMode>,
    /// Do not send a test prompt
    #[arg(long)]
    no_test: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    if !args.yes && !ask::is_possible() {
        let what = "`agentd init` asks questions, and there is no terminal";
        return Err(Error::new(Exit::Usage, what)
            .next("pass --yes; --provider, --model and --approval answer the questions"));
    }
    let catalog = providers::catalog()?;
    let mut file = ConfigFile::open()?;
    let found = Found::look(&catalog).await;
    let answers = questions::ask(args, &catalog, &found, out).await?;
    let changes = changes(&file, &answers);
    confirm(&changes, args.yes).await?;
    if !args.no_test {
        let trial = trial::run(&catalog, &answers, out).await;
        trial.inspect_err(|_| {
            // The error itself is what matters, if this line cannot be written.
            let _unseen = out.aside("the test failed: config.toml was not changed");
        })?;
    }
    for change in &changes {
        file.set_agents(change.key, &change.new);
    }
    if !changes.is_empty() {
        file.save()?;
    }
    report(args, &file, &answers, &changes, out)
}

/// A key of the file whose value will change.
struct Change {
    key: &'static str,
    old: Option<String>,
    new: String,
}

fn changes(file: &ConfigFile, answers: &Answers) -> Vec<Change> {
    let wanted = [
        ("provider", answers.provider.name.clone()),
        ("model", answers.model.clone()),
        ("approval", word(answers.approval)),
    ];
    let changes = wanted.into_iter().filter_map(|(key, new)| {
        let old = file.agents(key).map(str::to_owned);
        (old.as_ref() != Some(&new)).then_some(Change { key, old, new })
    });
    changes.collect()
}

/// Asks before a value is replaced.
async fn confirm(changes: &[Change], is_yes: bool) -> Result<(), Error> {
    for Change { key, old, new } in changes {
        let Some(old) = old else { continue };
        let what = format!("config.toml has {key} = \"{old}\"");
        let kept = Error::new(Exit::Refused, format!("{what}, which was kept"));
        if is_yes {
            return Err(kept.next(format!(
                "change it to \"{new}\" in the file, or run `agentd init` without --yes"
            )));
        }
        let answer = ask::line(&format!("{what}. Replace it by \"{new}\"? [y/N]")).await?;
        let answer = answer.unwrap_or_default().to_lowercase();
        if !matches!(answer.as_str(), "y" | "yes") {
            return Err(kept.next("nothing was written; run `agentd init` again for other answers"));
        }
    }
    Ok(())
}

fn report(
    args: &Args,
    file: &ConfigFile,
    answers: &Answers,
    changes: &[Change],
    out: &mut Output,
) -> Result<(), Error> {
    let path = file.path().display().to_string();
    if args.json {
        let changed: Vec<&str> = changes.iter().map(|change| change.key).collect();
        return out.json(&json!({
            "config": path,
            "provider": answers.provider.name,
            "model": answers.model,
            "approval": word(answers.approval),
            "changed": changed,
            "tested": !args.no_test,
        }));
    }
    match changes.is_empty() {
        true => out.line(format_args!("{path} already has these settings"))?,
        false => {
            let changes = changes
                .iter()
                .map(|Change { key, new, .. }| format!("{key} = \"{new}\""));
            let changes: Vec<String> = changes.collect();
            out.line(format_args!("{path}: {}", changes.join(", ")))?;
        }
    }
    if let Some(name) = &answers.unstored_key {
        out.line(format_args!(
            "  {name} is only in this shell; for agents that run unattended: agentd secret set {name}"
        ))?;
    }
    out.line("  next: agentd run \"What is in this directory?\"")
}
