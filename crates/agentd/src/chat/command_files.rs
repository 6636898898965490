//! The user's own commands: Markdown files in `.claude/commands` of the agent's directory and of the user. The name of a file
//! is the name of the command, and its text is the prompt.

use super::commands::{Own, is_of_name};
use std::path::Path;

/// A larger file is no command.
const LARGEST: u64 = 64 * 1024;
const MOST: usize = 200;
/// Files in subdirectories have the directory's name before their own: `git:commit`.
const DEPTH: usize = 3;

/// Those of the project come first: they win over the user's.
pub fn read(dirs: &[&Path]) -> Vec<Own> {
    let mut found: Vec<Own> = Vec::new();
    for dir in dirs {
        let mut here = Vec::new();
        collect(&dir.join(".claude/commands"), "", DEPTH, &mut here);
        here.sort_by(|a, b| a.name.cmp(&b.name));
        here.retain(|own| found.iter().all(|known| known.name != own.name));
        found.extend(here);
    }
    found.truncate(MOST);
    found
}

/// A directory that cannot be read has no commands.
fn collect(dir: &Path, prefix: &str, depth: usize, found: &mut Vec<Own>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if found.len() >= MOST {
            return;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let Some(stem) = stem.filter(|stem| stem.chars().all(is_of_name)) else {
            continue;
        };
        let name = format!("{prefix}{stem}");
        if path.is_dir() {
            collect(&path, &format!("{name}:"), depth, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.extend(file(&path, name));
        }
    }
}

fn file(path: &Path, name: String) -> Option<Own> {
    let about = path.metadata().ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let (description, prompt) = split(&text);
    let prompt = prompt.trim();
    let first = prompt.lines().next().unwrap_or_default();
    (!prompt.is_empty()).then(|| Own {
        name,
        help: description.unwrap_or(first).to_owned(),
        prompt: prompt.to_owned(),
    })
}

/// The description in the front matter, and the text after it.
fn split(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix("---\n") else {
        return (None, text);
    };
    let Some((matter, body)) = rest.split_once("\n---") else {
        return (None, text);
    };
    let mut lines = matter.lines();
    let description = lines.find_map(|line| line.strip_prefix("description:"));
    let description = description.map(|text| text.trim().trim_matches('"'));
    let body = body.split_once('\n').map_or("", |(_, body)| body);
    (description.filter(|text| !text.is_empty()), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, path: &str, text: &str) {
        let path = dir.join(".claude/commands").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn files_are_commands_and_those_of_the_project_win() {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(project.path(), "review.md", "Review this");
        put(
            project.path(),
            "git/commit.md",
            "---\ndescription: \"Commit it\"\nmodel: x\n---\n\nCommit $ARGUMENTS\n",
        );
        put(project.path(), "notes.txt", "no");
        put(project.path(), "odd name.md", "no");
        put(project.path(), "large.md", &"x".repeat(100_000));
        put(user.path(), "review.md", "mine");
        put(user.path(), "plan.md", "Plan\nwell");
        let found = read(&[project.path(), user.path()]);
        let shown: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.help.as_str(), it.prompt.as_str()))
            .collect();
        let expected = [
            ("git:commit", "Commit it", "Commit $ARGUMENTS"),
            ("review", "Review this", "Review this"),
            ("plan", "Plan", "Plan\nwell"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(read(&[Path::new("/nowhere")]), []);
    }
}
