//! `agentd context`.

use crate::error::Error;
use crate::output::{HEADING, Output, QUIET};
use crate::render::table::{Head, table};
use crate::render::{count, usage};
use crate::{complete, connect, providers};
use agentd_client::api::ModelContext;
use agentd_core::event::InstructionFile;
use agentd_core::request::PartKind;

const EXAMPLES: &str = "\
Examples:
  agentd context coder
  agentd context coder --full | less
  agentd context coder --json | jq -r .system

The system prompt and the instruction files are those with which the current conversation began; `agentd reset` reads \
the files again. Numbers of tokens are estimates.";

/// Show what the model is given, and how much of its context each part takes
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The agent
    #[arg(add = complete::archived())]
    name: String,
    /// Print the system prompt and the descriptions of the tools as well
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: &Args, out: &mut Output) -> Result<(), Error> {
    let client = connect::client().await?;
    let context = client.context(&args.name).await?;
    if args.json {
        return out.json(&context);
    }
    out.line(title(&args.name, &context)?)?;
    for line in lines(&context, out.width()) {
        out.line(line)?;
    }
    for file in &context.instructions {
        out.line(format_args!("{QUIET}{}{QUIET:#}", instruction_file(file)))?;
    }
    for skill in &context.skills {
        let (name, path) = (&skill.name, &skill.path);
        out.line(format_args!("{QUIET}skill: {name} ({path}){QUIET:#}"))?;
    }
    if args.full {
        out.line(format_args!("\n{HEADING}System prompt{HEADING:#}\n"))?;
        out.line(context.system.trim_end())?;
        for tool in &context.tools {
            let (name, what) = (&tool.name, &tool.description);
            out.line(format_args!("\n{HEADING}Tool {name}{HEADING:#}\n\n{what}"))?;
            out.line(format_args!("{QUIET}{}{QUIET:#}", tool.parameters))?;
        }
    }
    Ok(())
}

/// `coder: about 12.3k tokens, 6% of the window of claude-sonnet`.
fn title(name: &str, context: &ModelContext) -> Result<String, Error> {
    let tokens = usage::tokens(context.tokens);
    let Some(model) = &context.model else {
        return Ok(format!(
            "{name}: about {tokens} tokens; the system prompt and the tools are added with the first request"
        ));
    };
    let catalog = providers::catalog()?;
    let choice = catalog.resolve(context.provider.as_deref(), Some(model));
    let known = choice.ok().and_then(|choice| choice.known);
    Ok(match known.and_then(|known| known.window) {
        Some(window) if window > 0 => {
            let share = context.tokens.saturating_mul(100) / window;
            let window = usage::tokens(window);
            format!("{name}: about {tokens} of {window} tokens ({share}%) of {model}")
        }
        _ => format!("{name}: about {tokens} tokens for {model}"),
    })
}

fn lines(context: &ModelContext, width: Option<u16>) -> Vec<String> {
    let head = [
        Head::Kept("PART"),
        Head::Kept("COUNT"),
        Head::Kept("TOKENS"),
    ];
    let shown = context.parts.iter().filter(|part| part.count > 0);
    let rows: Vec<Vec<String>> = shown
        .map(|part| {
            vec![
                kind(part.kind).to_owned(),
                part.count.to_string(),
                usage::tokens(part.tokens),
            ]
        })
        .collect();
    table(&head, &rows, width)
}

const fn kind(kind: PartKind) -> &'static str {
    match kind {
        PartKind::System => "system prompt",
        PartKind::Tools => "tools",
        PartKind::Summaries => "summaries",
        PartKind::Prompts => "prompts",
        PartKind::Replies => "replies",
        PartKind::Results => "results",
        PartKind::Notices => "notices",
    }
}

/// `instructions: /work/AGENTS.md (1234 bytes)`.
fn instruction_file(file: &InstructionFile) -> String {
    let size = count(file.bytes, "byte");
    let size = match (&file.digest, file.shown < file.bytes) {
        (None, _) => "not read".to_owned(),
        (_, true) => format!("{} of {size}", file.shown),
        _ => size,
    };
    format!("instructions: {} ({size})", file.path)
}
