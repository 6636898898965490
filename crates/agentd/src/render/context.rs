//! What the model is given, as lines: how full its window is, the parts of a request, the instruction files and skills.

use super::table::{Head, table};
use super::{count, usage};
use crate::terminal::QUIET;
use agentd_client::api::ModelContext;
use agentd_core::event::InstructionFile;
use agentd_core::request::PartKind;

/// `window` is the size of the model's window in tokens, if it is known.
pub fn lines(
    name: &str,
    context: &ModelContext,
    window: Option<u64>,
    width: Option<u16>,
) -> Vec<String> {
    let files = context.instructions.iter();
    let files = files.map(|file| format!("{QUIET}{}{QUIET:#}", instruction_file(file)));
    let skills = context.skills.iter().map(|skill| {
        let (name, path) = (&skill.name, &skill.path);
        format!("{QUIET}skill: {name} ({path}){QUIET:#}")
    });
    let mut lines = vec![title(name, context, window)];
    lines.extend(parts(context, width));
    lines.extend(files);
    lines.extend(skills);
    lines
}

/// `coder: about 12.3k tokens, 6% of the window of claude-sonnet`.
fn title(name: &str, context: &ModelContext, window: Option<u64>) -> String {
    let tokens = usage::tokens(context.tokens);
    let Some(model) = &context.model else {
        if context.tokens == 0 {
            return format!(
                "{name}: no prompt yet; the system prompt, the tools and the instruction files come with the first one"
            );
        }
        return format!(
            "{name}: about {tokens} tokens; the system prompt and the tools are added with the first request"
        );
    };
    match window {
        Some(window) if window > 0 => {
            let share = context.tokens.saturating_mul(100) / window;
            let window = usage::tokens(window);
            format!("{name}: about {tokens} of {window} tokens ({share}%) of {model}")
        }
        _ => format!("{name}: about {tokens} tokens for {model}"),
    }
}

fn parts(context: &ModelContext, width: Option<u16>) -> Vec<String> {
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
    match rows.is_empty() {
        true => Vec::new(),
        false => table(&head, &rows, width),
    }
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

/// `instructions: /src/AGENTS.md (1234 bytes)`.
fn instruction_file(file: &InstructionFile) -> String {
    let size = count(file.bytes, "byte");
    let size = match (&file.digest, file.shown < file.bytes) {
        (None, _) => "not read".to_owned(),
        (_, true) => format!("{} of {size}", file.shown),
        _ => size,
    };
    format!("instructions: {} ({size})", file.path)
}
