//! A call that waits for the user's approval, with everything that is needed to judge it.

use super::{named, word};
use crate::terminal::visible;
use agentd_client::api::{Approval, Call};
use agentd_core::mcp::{Field, Question};
use agentd_core::{patch, shell_words};
use serde_json::Value;
use std::borrow::Cow;

/// Indented lines, the first of which names the call.
pub fn lines(approval: &Approval) -> Vec<String> {
    let of = approval.agent.as_ref();
    let of = of.map(|agent| format!(" of {}", named(agent)));
    let mut lines = Vec::new();
    match &approval.what {
        Some(call) => {
            lines.push(format!("{}{}:", call.tool, of.unwrap_or_default()));
            lines.extend(input(call).into_iter().map(|line| format!("    {line}")));
            lines.push(format!("  in {}", surroundings(call)));
        }
        None => lines.push(format!(
            "a call{} that cannot be read: {}",
            of.unwrap_or_default(),
            approval.call
        )),
    }
    lines.extend(approval.question.iter().flat_map(question));
    lines.extend(
        approval
            .why
            .as_ref()
            .map(|why| format!("  approval needed because {why}")),
    );
    let reason = approval
        .what
        .as_ref()
        .and_then(|call| text(call, "escalate"));
    lines.extend(reason.map(|reason| format!("  the model's reason: {reason}")));
    lines.push(format!("  id {}", approval.id));
    lines
}

/// The question of a server: its text, its page and its fields. All texts are the server's.
pub fn question(question: &Question) -> Vec<String> {
    let mut lines = vec![format!(
        "  the MCP server {} asks:",
        visible(&question.server)
    )];
    let text = visible(&question.message);
    lines.extend(text.lines().map(|line| format!("    {line}")));
    let page = question.url.as_deref().map(visible);
    lines.extend(page.map(|url| format!("    visit {url}")));
    lines.extend(
        question
            .fields()
            .iter()
            .map(|field| format!("    {}", self::field(field))),
    );
    lines
}

/// A field of a form in one line.
pub fn field(field: &Field) -> String {
    let kind = match field.options.is_empty() {
        true => field.kind.clone(),
        false => field.options.join(" | "),
    };
    let need = match field.is_required {
        true => "",
        false => ", optional",
    };
    let about = field.description.as_deref().unwrap_or_default();
    let line = format!("{} ({kind}{need}) {about}", field.name);
    visible(line.trim_end()).replace('\n', " ")
}

/// The call in one line.
pub fn line(call: &Call) -> String {
    let first = input(call).into_iter().next().unwrap_or_default();
    format!("{}: {first}", call.tool)
}

fn surroundings(call: &Call) -> String {
    let cwd = call.cwd.as_deref().unwrap_or("no directory");
    let leaves = if call.input.get("escalate").is_some() {
        ", which this call asks to leave"
    } else {
        ""
    };
    format!(
        "{cwd}; sandbox {}{leaves}; network {}",
        word(call.sandbox),
        call.network
    )
}

/// What the model wrote; control characters are visible.
fn text<'a>(call: &'a Call, key: &str) -> Option<Cow<'a, str>> {
    let text = call.input.get(key).and_then(Value::as_str);
    text.map(visible)
}

/// The command, the change to the file, or the raw input.
fn input(call: &Call) -> Vec<String> {
    let signed = |sign: char, text: &str| -> Vec<String> {
        text.lines().map(|line| format!("{sign}{line}")).collect()
    };
    let path = text(call, "file_path");
    let arguments = call.input.as_object();
    let line = arguments.and_then(shell_words::line_of);
    match (call.tool.as_str(), path) {
        (shell_words::TOOL, _) if line.is_some() => {
            let line = line.unwrap_or_default();
            let elsewhere = arguments.and_then(shell_words::dir_of);
            let elsewhere = elsewhere.map(|cwd| format!("(cd {})", visible(cwd)));
            let line = visible(&line);
            let lines = line.lines().map(str::to_owned);
            elsewhere.into_iter().chain(lines).collect()
        }
        (patch::TOOL, _) if text(call, "input").is_some() => {
            let patch = text(call, "input").unwrap_or_default();
            patch.trim().lines().map(str::to_owned).collect()
        }
        ("write_file", Some(path)) => {
            let mut lines = vec![path.into_owned()];
            lines.extend(signed('+', &text(call, "content").unwrap_or_default()));
            lines
        }
        ("edit_file", Some(path)) => {
            let mut lines = vec![path.into_owned()];
            lines.extend(signed('-', &text(call, "old_string").unwrap_or_default()));
            lines.extend(signed('+', &text(call, "new_string").unwrap_or_default()));
            lines
        }
        ("fetch_url", _) if text(call, "url").is_some() => {
            vec![text(call, "url").unwrap_or_default().into_owned()]
        }
        _ => {
            let shown = serde_json::to_string_pretty(&call.input).unwrap_or_default();
            visible(&shown).lines().map(str::to_owned).collect()
        }
    }
}
