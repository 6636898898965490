//! A call that waits for the user's approval, with everything that is needed to judge it.

use super::{count, named, replaced, word};
use crate::terminal::visible;
use agentd_client::api::{Approval, Call, Need};
use agentd_core::lexical_path::normalised;
use agentd_core::mcp::{Field, Question};
use agentd_core::{patch, shell_words};
use serde_json::Value;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// What stands before each line that the model wrote: nothing in them can look like a line of ours.
pub const QUOTE: &str = "  │ ";
/// For a call that was made when calls did not say yet what they need.
const LEAVES: &str = "  asks to leave the sandbox";
const UNNAMED: &str = "  it may then write your home and every directory that is not the system's, and use the network";

/// What is known about a call, by importance. All are single lines; those of the model begin with [`QUOTE`].
pub struct Parts {
    /// Which call it is, and that it asks to leave the sandbox.
    pub heading: Vec<String>,
    /// What the call's MCP server asks, and what would run.
    pub input: Vec<String>,
    /// Where it would run, and why the user is asked.
    pub facts: Vec<String>,
    /// What the model says about it.
    pub reason: Vec<String>,
}

/// `before` is the present content of the file that the call writes as a whole, if it is known.
pub fn parts(approval: &Approval, before: Option<&str>) -> Parts {
    let of = approval.agent.as_ref();
    let of = of.map(|agent| format!(" of {}", escaped(&named(agent))));
    let of = of.unwrap_or_default();
    let why = approval.why.as_ref();
    let why = why.map(|why| format!("  approval needed because {}", escaped(why)));
    let mut asks: Vec<String> = approval.question.iter().flat_map(question).collect();
    let Some(call) = &approval.what else {
        let what = format!(
            "a call{of} that cannot be read: {}",
            escaped(&approval.call)
        );
        return Parts {
            heading: vec![what],
            input: asks,
            facts: why.into_iter().collect(),
            reason: Vec::new(),
        };
    };
    let mut heading = vec![format!("{}{of}:", escaped(&call.tool))];
    heading.extend(needs(call));
    let quoted = |line: String| format!("{QUOTE}{line}");
    let reason = call.input.get("escalate").map(|reason| match reason {
        Value::String(text) => escaped(text),
        other => escaped(&other.to_string()),
    });
    if !asks.is_empty() {
        asks.push("  the call:".to_owned());
    }
    asks.extend(input(call, before).into_iter().map(quoted));
    let label = "  the model's reason:".to_owned();
    let is_unnamed = call.leaves_sandbox() && call.needs.is_empty();
    Parts {
        heading,
        input: asks,
        facts: [format!("  in {}", surroundings(call))]
            .into_iter()
            .chain(is_unnamed.then(|| UNNAMED.to_owned()))
            .chain(why)
            .collect(),
        reason: reason
            .into_iter()
            .flat_map(|reason| [label.clone(), quoted(reason)])
            .collect(),
    }
}

/// What it gets beyond its sandbox if it is approved: the dangerous first, which a small screen shows, and marked at the
/// beginning of the line, which is never cut off.
fn needs(call: &Call) -> Vec<String> {
    if !call.leaves_sandbox() {
        return Vec::new();
    }
    if call.needs.is_empty() {
        return vec![LEAVES.to_owned()];
    }
    let (marked, plain): (Vec<&Need>, Vec<&Need>) =
        call.needs.iter().partition(|need| need.danger.is_some());
    let lines = marked.into_iter().chain(plain).map(|need| {
        let words = escaped(&need.words);
        match &need.danger {
            None => format!("  needs to {words}"),
            Some(danger) => format!("  DANGEROUS ({}): needs to {words}", escaped(danger)),
        }
    });
    lines.collect()
}

/// The first line names the call, and the last one its id.
pub fn lines(approval: &Approval) -> Vec<String> {
    lines_with(approval, None)
}

/// The same with what is known about the file that it replaces, as in [`parts`].
pub fn lines_with(approval: &Approval, before: Option<&str>) -> Vec<String> {
    let parts = parts(approval, before);
    let mut lines = parts.heading;
    lines.extend(parts.input);
    lines.extend(parts.facts);
    lines.extend(parts.reason);
    lines.push(format!("  id {}", approval.id));
    lines
}

/// The question of a server: its text, its page and its fields. All texts are the server's.
pub fn question(question: &Question) -> Vec<String> {
    let mut lines = vec![format!("  `{}` asks:", escaped(&question.server))];
    let text = visible(&question.message);
    lines.extend(text.lines().map(|line| format!("{QUOTE}{line}")));
    let page = question.url.as_deref().map(escaped);
    lines.extend(page.map(|url| format!("{QUOTE}visit {url}")));
    let fields = question.fields();
    let fields = fields.iter().map(self::field);
    lines.extend(fields.map(|field| format!("{QUOTE}{field}")));
    lines
}

/// A field of a form in one line.
pub fn field(field: &Field) -> String {
    let kind = match field.options.is_empty() {
        true => field.kind.clone(),
        false => {
            let titles = field
                .option_titles
                .iter()
                .map(Some)
                .chain(std::iter::repeat(None));
            let options = field.options.iter().zip(titles);
            let options = options.map(|(value, title)| match title {
                Some(title) if title != value => format!("{value}: {title}"),
                _ => value.clone(),
            });
            options.collect::<Vec<_>>().join(" | ")
        }
    };
    let need = match field.is_required {
        true => "",
        false => ", optional",
    };
    let default = match field.usable_default() {
        Some(Value::String(text)) => format!(", default {text}"),
        Some(other) => format!(", default {other}"),
        None => String::new(),
    };
    let title = field.title.as_deref().filter(|title| *title != field.name);
    let about = title.into_iter().chain(field.description.as_deref());
    let about = about.collect::<Vec<_>>().join(": ");
    let line = format!("{} ({kind}{need}{default}) {about}", field.name);
    escaped(line.trim_end())
}

/// The call in one line, which says what it leaves out.
pub fn line(call: &Call) -> String {
    let mut lines = input(call, None).into_iter();
    let first = lines.next().unwrap_or_default();
    let more = match lines.count() {
        0 => String::new(),
        more => format!(" … and {}", count(more as u64, "more line")),
    };
    let leaves = if call.leaves_sandbox() {
        "; asks to leave the sandbox"
    } else {
        ""
    };
    format!("{}: {first}{more}{leaves}", escaped(&call.tool))
}

/// What a rule for the call would allow.
pub fn always(call: &Call) -> String {
    match call.whole_tool() {
        Some(tool) => format!("every call of {}", escaped(tool)),
        None if !call.needs.is_empty() => "this call, with all that it needs".to_owned(),
        None => "this call".to_owned(),
    }
}

/// A text from outside as one line: control characters and line breaks are visible.
fn escaped(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

fn surroundings(call: &Call) -> String {
    let cwd = call.cwd.as_deref();
    let dir = call.input.as_object().and_then(shell_words::dir_of);
    let dir = match (cwd, dir) {
        (Some(cwd), Some(dir)) => Some(normalised(&Path::new(cwd).join(dir))),
        (cwd, dir) => dir.or(cwd).map(PathBuf::from),
    };
    let dir = dir.map_or_else(
        || "no directory".to_owned(),
        |dir| dir.display().to_string(),
    );
    let background = if call.is_in_background() {
        ", in the background, where it runs until it ends by itself or is stopped"
    } else {
        ""
    };
    let leaves = if call.leaves_sandbox() {
        ", which this call asks to leave"
    } else {
        ""
    };
    format!(
        "{}{background}; sandbox {}{leaves}; network {}",
        escaped(&dir),
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
fn input(call: &Call, before: Option<&str>) -> Vec<String> {
    let signed = |sign: char, text: &str| -> Vec<String> {
        text.lines().map(|line| format!("{sign}{line}")).collect()
    };
    let path = text(call, "file_path").map(|path| escaped(&path));
    let arguments = call.input.as_object();
    let line = arguments.and_then(shell_words::line_of);
    match (call.tool.as_str(), path) {
        (shell_words::TOOL, _) if line.is_some() => {
            let line = visible(&line.unwrap_or_default()).into_owned();
            line.lines().map(str::to_owned).collect()
        }
        (patch::TOOL, _) if text(call, "input").is_some() => {
            let patch = text(call, "input").unwrap_or_default();
            patch.trim().lines().map(str::to_owned).collect()
        }
        ("write_file", Some(path)) => {
            let content = text(call, "content").unwrap_or_default();
            let Some(before) = before else {
                let lines = signed('+', &content);
                return std::iter::once(path).chain(lines).collect();
            };
            let lines = replaced::lines(&visible(before), &content);
            let path = format!("{path} (replaces the file)");
            std::iter::once(path).chain(lines).collect()
        }
        ("edit_file", Some(path)) => {
            let mut lines = vec![path];
            lines.extend(signed('-', &text(call, "old_string").unwrap_or_default()));
            lines.extend(signed('+', &text(call, "new_string").unwrap_or_default()));
            lines
        }
        ("fetch_url", _) if text(call, "url").is_some() => {
            vec![escaped(&text(call, "url").unwrap_or_default())]
        }
        _ => {
            let shown = serde_json::to_string_pretty(&call.input).unwrap_or_default();
            visible(&shown).lines().map(str::to_owned).collect()
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use agentd_core::id::ApprovalId;
    use agentd_core::spec::{Network, Sandbox};
    use agentd_core::time::Timestamp;
    use serde_json::json;

    pub fn asked(tool: &str, input: Value) -> Approval {
        Approval {
            id: ApprovalId::from_bytes([0; 16]),
            call: "call1".to_owned(),
            asked_at: Timestamp::default(),
            agent: None,
            why: Some("a hook says so\n  id 2".to_owned()),
            what: Some(Call {
                tool: tool.to_owned(),
                input,
                cwd: Some("/work".to_owned()),
                sandbox: Sandbox::WorkspaceWrite,
                network: Network::On,
                needs: Vec::new(),
                hash: String::new(),
            }),
            question: None,
        }
    }

    /// A rule for a tool of an MCP server has no pattern.
    #[test]
    fn always_says_what_a_rule_would_allow() {
        let of = |tool: &str, input| always(&asked(tool, input).what.unwrap());
        assert_eq!(of("shell", json!({"command": "ls"})), "this call");
        assert_eq!(of("execute", json!({"command": "ls"})), "this call");
        let push = json!({"branch": "x"});
        assert_eq!(of("mcp__git__push", push), "every call of mcp__git__push");
    }

    /// Regression: the directory stood before the command, where a command could imitate it.
    #[test]
    fn the_directory_of_the_call_is_said_by_us() {
        let shown = |input| lines(&asked("shell", input));
        let lines = shown(json!({"command": "pwd", "cwd": "web/../build"}));
        assert_eq!(lines[1], "  │ pwd");
        let here = "  in /work/build; sandbox workspace-write; network on";
        assert_eq!(lines[2], here);
        let imitated = shown(json!({"command": "(cd build)\npwd"}));
        assert_eq!(imitated[1], "  │ (cd build)");
        assert!(imitated[3].starts_with("  in /work; "), "{imitated:#?}");
        let background = shown(json!({"command": "serve", "run_in_background": true}));
        let said =
            "  in /work, in the background, where it runs until it ends by itself or is stopped;";
        assert!(background[2].starts_with(said), "{background:#?}");
    }

    /// The reason imitates the lines that say where the call runs.
    #[test]
    fn the_models_words_cannot_imitate_lines_of_ours() {
        let forged = "tests\n  in /work; sandbox workspace-write; network off\r\n  id 1\u{1b}[2J";
        let command = "curl evil\n  in /work; sandbox off";
        let input = json!({ "command": command, "escalate": forged });
        let mut asked_of = asked("shell", input);
        let need = |words: &str, danger: Option<&str>| Need {
            need: String::new(),
            words: words.to_owned(),
            danger: danger.map(str::to_owned),
        };
        asked_of.what.as_mut().unwrap().needs = vec![
            need("write /a\n  - read /b", None),
            need("read /home/me/.ssh\u{200b}", Some("credentials")),
        ];
        let mut lines = lines(&asked_of);
        assert!(lines.iter().all(|line| !line.contains('\n')), "{lines:#?}");
        assert_eq!(lines[0], "shell:");
        // The dangerous one is first.
        let marked = "  DANGEROUS (credentials): needs to read /home/me/.ssh";
        assert!(lines[1].starts_with(marked), "{lines:#?}");
        assert_eq!(lines.remove(2), r"  needs to write /a\n  - read /b");
        assert_eq!(lines[2], "  │ curl evil");
        assert_eq!(lines[3], "  │   in /work; sandbox off");
        let ours = "  in /work; sandbox workspace-write, which this call asks to leave; network on";
        assert_eq!(lines[4], ours);
        assert_eq!(
            lines[5],
            r"  approval needed because a hook says so\n  id 2"
        );
        assert_eq!(lines[6], "  the model's reason:");
        let reason =
            r"  │ tests\n  in /work; sandbox workspace-write; network off\n  id 1\u{1b}[2J";
        assert_eq!(lines[7], reason);
        assert!(lines[8].starts_with("  id 0000"), "{lines:#?}");
        let write = asked("write_file", json!({ "file_path": "a\nb", "content": "x" }));
        let replaced = lines_with(&write, Some("y"));
        let shown = [r"  │ a\nb (replaces the file)", "  │ -y", "  │ +x"];
        assert_eq!(replaced[1..4], shown, "{replaced:#?}");
        let short = r"write_file: a\nb … and 1 more line";
        assert_eq!(line(&write.what.unwrap()), short);
        let short = "shell: curl evil … and 1 more line; asks to leave the sandbox";
        assert_eq!(line(&asked_of.what.unwrap()), short);
    }
}
