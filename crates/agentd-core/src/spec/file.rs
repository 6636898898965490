//! The three parts of the file: the front matter between two `---` lines, and the body.

use super::Error;

const FENCE: &str = "---";
const BOM: char = '\u{feff}';

/// The parts of a spec file.
pub(super) struct Parts<'a> {
    /// The text between the fences; empty if there is no front matter.
    pub yaml: &'a str,
    /// How many lines of the file come before `yaml`.
    pub lines_before: usize,
    pub body: &'a str,
}

pub(super) fn split(text: &str) -> Result<Parts<'_>, Error> {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    let mut lines_before = 0;
    let mut start = 0;
    let mut lines = text.split_inclusive('\n');
    // Blank lines before the opening fence are skipped. If the settings below them were read as part of the prompt,
    // the agent would silently lose its permissions.
    let opened = lines.by_ref().find(|line| {
        lines_before += 1;
        start += line.len();
        !line.trim().is_empty()
    });
    if !opened.is_some_and(is_fence) {
        return Ok(Parts {
            yaml: "",
            lines_before: 0,
            body: text,
        });
    }
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Ok(Parts {
                yaml: &text[start..end],
                lines_before,
                body: &text[end + line.len()..],
            });
        }
        end += line.len();
    }
    Err(Error::UnclosedFrontMatter)
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == FENCE
}

/// The prompt in a body, without the blank line before it and without trailing whitespace.
pub(super) fn system(body: &str) -> &str {
    let body = body
        .strip_prefix("\r\n")
        .or_else(|| body.strip_prefix('\n'))
        .unwrap_or(body);
    body.trim_end()
}

/// The file that [`split`] splits into `yaml` and `system`.
pub(super) fn join(yaml: &str, system: &str) -> String {
    let system = system.trim_end();
    let mut out = String::new();
    if !yaml.is_empty() || needs_fences(system) {
        out = format!("{FENCE}\n{yaml}{FENCE}\n");
        if !system.is_empty() {
            out.push('\n');
        }
    }
    if !system.is_empty() {
        out.push_str(system);
        out.push('\n');
    }
    out
}

/// Whether a prompt at the very top of a file would be read as something else.
fn needs_fences(system: &str) -> bool {
    system.starts_with(['\n', '\r', BOM]) || system.trim_start().starts_with(FENCE)
}
