//! A prompt as a list of steps.

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Run {
        command: String,
    },
    Write {
        path: String,
        text: String,
    },
    Read {
        path: String,
    },
    /// Give a prompt to a subagent.
    Ask {
        kind: String,
        prompt: String,
    },
    Count {
        to: u64,
    },
    List,
    /// Count the lines of the largest file in the working directory.
    Largest,
    /// A prompt that the model does not understand.
    Other {
        words: String,
    },
}

const THEN: &str = "; then ";
const AND: &str = " and ";
/// So that a typing mistake does not make it count for days.
const COUNT_LIMIT: u64 = 10_000;

pub fn parse(prompt: &str) -> Vec<Step> {
    split(prompt).into_iter().flat_map(steps).collect()
}

/// One step, or several with `and` between them, if each of them is understood.
fn steps(text: &str) -> Vec<Step> {
    let whole = step(text);
    if matches!(whole, Step::Other { .. }) {
        let parts: Vec<Step> = text.split(AND).map(step).collect();
        if !parts.iter().any(|part| matches!(part, Step::Other { .. })) {
            return parts;
        }
    }
    vec![whole]
}

/// Whether the prompt only asks to continue the previous one.
pub fn is_continue(prompt: &str) -> bool {
    is_one_of(prompt, &["go on", "continue", "carry on"])
}

/// Splits at `; then `, but not inside a command: a shell script may contain it too.
fn split(prompt: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut rest, mut from) = (prompt, 0);
    while let Some(tail) = rest.get(from..) {
        let Some(at) = tail.find(['`', ';']).map(|at| from + at) else {
            break;
        };
        let found = rest.get(at..).unwrap_or_default();
        if let Some(after) = found.strip_prefix(THEN) {
            parts.push(rest.get(..at).unwrap_or_default());
            (rest, from) = (after, 0);
        } else if let Some(quoted) = found.strip_prefix('`')
            && let Some(end) = quoted.find('`')
        {
            from = at + 1 + end + 1;
        } else {
            from = at + 1;
        }
    }
    parts.push(rest);
    parts
}

fn step(text: &str) -> Step {
    let text = text.trim();
    let other = || Step::Other {
        words: text.to_owned(),
    };
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim_start();
    let known = match verb.to_ascii_lowercase().as_str() {
        "run" => quoted(rest).map(|command| Step::Run {
            command: command.to_owned(),
        }),
        "write" => rest.split_once(':').and_then(|(name, text)| {
            Some(Step::Write {
                path: path(name)?,
                text: text.strip_prefix(' ').unwrap_or(text).to_owned(),
            })
        }),
        "ask" => rest.split_once(':').and_then(|(kind, prompt)| {
            Some(Step::Ask {
                kind: path(kind)?,
                prompt: Some(prompt.trim()).filter(|it| !it.is_empty())?.to_owned(),
            })
        }),
        "read" => path(rest).map(|path| Step::Read { path }),
        "count" if is_largest(rest) => Some(Step::Largest),
        "count" => count(rest).map(|to| Step::Count { to }),
        "list" if is_files(rest) => Some(Step::List),
        _ => None,
    };
    known.unwrap_or_else(other)
}

fn is_files(text: &str) -> bool {
    is_one_of(
        text,
        &["files", "the files", "files here", "the files here"],
    )
}

fn is_largest(text: &str) -> bool {
    let known = ["the lines of the largest", "the lines of the largest file"];
    is_one_of(text, &known)
}

fn is_one_of(text: &str, known: &[&str]) -> bool {
    let text = text.trim().trim_end_matches(['.', '!', '?']);
    known.iter().any(|known| text.eq_ignore_ascii_case(known))
}

/// The text between the first backtick and the last.
fn quoted(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('`')?;
    let (inside, _) = inside.rsplit_once('`')?;
    (!inside.trim().is_empty()).then_some(inside)
}

/// One word, or any text in backticks: `read the manual` does not name a file.
fn path(text: &str) -> Option<String> {
    let text = text.trim();
    match quoted(text) {
        Some(path) => Some(path.to_owned()),
        None if text.is_empty() || text.contains(char::is_whitespace) => None,
        None => Some(text.to_owned()),
    }
}

fn count(text: &str) -> Option<u64> {
    let number = text.strip_prefix("to ")?.trim().trim_end_matches('.');
    let to: u64 = number.parse().ok()?;
    Some(to.min(COUNT_LIMIT))
}
