//! The text of instruction files: the files that it imports (`@style.md`), and the paths that a rule applies to.

/// When a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applies {
    Always,
    /// Once the agent works with a file that one of these patterns matches.
    To(Vec<String>),
    /// Only if a user asks for it by name, which agentd does not know.
    OnDemand,
}

/// The paths that a text imports: words that begin with `@`, outside of code.
pub fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => found.extend(imports_of_line(line)),
            (Some(_), _) => {}
        }
    }
    found
}

fn imports_of_line(line: &str) -> impl Iterator<Item = &str> {
    // Every second part is between backticks.
    let outside_code = line.split('`').step_by(2);
    let words = outside_code.flat_map(str::split_whitespace);
    let paths =
        words.filter_map(|word| word.trim_start_matches(['(', '"', '\'']).strip_prefix('@'));
    let paths =
        paths.map(|path| path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']));
    paths.filter(|path| !path.is_empty() && !path.contains('@'))
}

/// A rule of `.claude/rules`: its text without the front matter, and when it applies (`paths`).
pub fn claude_rule(text: &str) -> (&str, Applies) {
    let (front, body) = parts(text);
    let applies = match values(front, "paths") {
        Some(paths) if !paths.is_empty() => Applies::To(paths),
        _ => Applies::Always,
    };
    (body, applies)
}

/// A rule of `.cursor/rules`: its text without the front matter, and when it applies (`alwaysApply`, `globs`).
pub fn cursor_rule(text: &str) -> (&str, Applies) {
    let (front, body) = parts(text);
    let is_always = values(front, "alwaysApply").is_some_and(|value| value == ["true"]);
    let globs = values(front, "globs").filter(|globs| !globs.is_empty());
    let applies = match globs {
        _ if is_always || front.trim().is_empty() => Applies::Always,
        Some(globs) => Applies::To(globs),
        None => Applies::OnDemand,
    };
    (body, applies)
}

/// The front matter, which is empty if there is none, and the text below it.
fn parts(text: &str) -> (&str, &str) {
    crate::spec::front_and_body(text).unwrap_or(("", text))
}

/// The values of a key in front matter: a text with commas, or a list. Read by line, because patterns such as `*.ts` are often
/// not quoted and then are not valid YAML.
fn values(front: &str, key: &str) -> Option<Vec<String>> {
    let mut lines = front.lines();
    let first = lines.find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))?;
    let first = first.trim();
    let inner = first
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let mut found = separated(inner.unwrap_or(first));
    if first.is_empty() {
        let items = lines.map_while(|line| line.trim_start().strip_prefix('-'));
        found = items
            .map(unquoted)
            .filter(|item| !item.is_empty())
            .collect();
    }
    Some(found)
}

/// Split at commas that are not in braces: `src/*.{ts,tsx}` is one pattern.
fn separated(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(unquoted)
        .filter(|part| !part.is_empty())
        .collect()
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_words_with_an_at_sign_outside_of_code() {
        let text = "See @README.md and (@docs/a.md), not `@b.md`.\n```\n@c.md\n```\n~~~sh\n```\n@d.md\n~~~\n- @e.md.\nme@x.org @ @@x\n";
        assert_eq!(imports(text), ["README.md", "docs/a.md", "e.md"]);
    }

    #[test]
    fn a_rule_applies_always_or_to_paths() {
        let to =
            |paths: &[&str]| Applies::To(paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(
            claude_rule("Text.\n"),
            ("Text.\n".trim_end(), Applies::Always)
        );
        let list = "---\npaths:\n  - \"src/**/*.ts\"\n  - **/*.{a,b}\n---\nText.\n";
        assert_eq!(
            claude_rule(list),
            ("Text.", to(&["src/**/*.ts", "**/*.{a,b}"]))
        );
        let line = "---\npaths: [src/*.{ts,tsx}, 'x/**']\n---\nText.\n";
        assert_eq!(claude_rule(line).1, to(&["src/*.{ts,tsx}", "x/**"]));
        assert_eq!(claude_rule("---\npaths:\n---\nText.").1, Applies::Always);
        let cursor = |front: &str| cursor_rule(&format!("---\n{front}\n---\nText.")).1.clone();
        assert_eq!(
            cursor("description: d\nglobs: *.ts,*.tsx\nalwaysApply: false"),
            to(&["*.ts", "*.tsx"])
        );
        assert_eq!(cursor("globs:\nalwaysApply: true"), Applies::Always);
        assert_eq!(
            cursor("description: d\nglobs:\nalwaysApply: false"),
            Applies::OnDemand
        );
        assert_eq!(cursor_rule("Text.").1, Applies::Always);
    }
}
