//! The user's own commands: Markdown files in `.claude/commands` of the agent's directory and of the user. The name of a file
//! is the name of the command, and its text is the prompt.
//!
//! Tools can write the files of the project. Therefore such a file cannot replace a command of the user, and no symbolic link
//! is followed to it: otherwise a tool could make the chat send a file that the tool itself cannot read.

use super::commands::{Own, is_of_name};
use agentd_daemon::project;
use agentd_files::foreign::{self, Links};
use std::io;
use std::path::{Path, PathBuf};

/// A larger file is no command.
const LARGEST: usize = 64 * 1024;
const MOST: usize = 200;
/// Files in subdirectories have the directory's name before their own: `git:commit`.
const DEPTH: usize = 3;

/// The commands of the user, and those of the project that have other names.
pub fn read(user: Option<&Path>, project: Option<&Path>) -> Vec<Own> {
    let mut found = Vec::new();
    if let Some(user) = user {
        found.extend(Commands::of(user, |path| {
            let read = foreign::read(&user.join(path), Links::Follow, LARGEST as u64);
            Ok(read?)
        }));
    }
    if let Some(project) = project {
        let mut own = Commands::of(project, |path| project::read(project, path));
        own.retain(|own| found.iter().all(|known: &Own| known.name != own.name));
        found.extend(own);
    }
    found.truncate(MOST);
    found
}

/// The commands below a directory.
struct Commands<'a, R> {
    root: &'a Path,
    /// Reads a file, which has a path below the root.
    read: R,
    found: Vec<Own>,
}

impl<'a, R: Fn(&Path) -> io::Result<Vec<u8>>> Commands<'a, R> {
    fn of(root: &'a Path, read: R) -> Vec<Own> {
        let found = Vec::new();
        let mut commands = Self { root, read, found };
        commands.collect(Path::new(".claude/commands"), "", DEPTH);
        commands.found.sort_by(|a, b| a.name.cmp(&b.name));
        commands.found
    }

    /// A directory that cannot be read has no commands.
    fn collect(&mut self, dir: &Path, prefix: &str, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        let Ok(entries) = std::fs::read_dir(self.root.join(dir)) else {
            return;
        };
        for entry in entries.flatten() {
            if self.found.len() >= MOST {
                return;
            }
            self.add(&dir.join(entry.file_name()), prefix, depth);
        }
    }

    fn add(&mut self, path: &Path, prefix: &str, depth: usize) {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let Some(stem) = stem.filter(|stem| stem.chars().all(is_of_name)) else {
            return;
        };
        let name = format!("{prefix}{stem}");
        let whole: PathBuf = self.root.join(path);
        if whole.is_dir() {
            self.collect(path, &format!("{name}:"), depth);
        } else if whole.is_file() && path.extension().is_some_and(|ending| ending == "md") {
            self.found.extend(self.file(path, name));
        }
    }

    fn file(&self, path: &Path, name: String) -> Option<Own> {
        let bytes = (self.read)(path).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (description, prompt) = split(&text);
        let prompt = prompt.trim();
        let first = prompt.lines().next().unwrap_or_default();
        (!prompt.is_empty() && text.len() <= LARGEST).then(|| Own {
            name,
            help: description.unwrap_or(first).to_owned(),
            prompt: prompt.to_owned(),
        })
    }
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
    fn files_are_commands_and_those_of_the_user_win() {
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
        let found = read(Some(user.path()), Some(project.path()));
        let shown: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.help.as_str(), it.prompt.as_str()))
            .collect();
        let expected = [
            ("plan", "Plan", "Plan\nwell"),
            ("review", "mine", "mine"),
            ("git:commit", "Commit it", "Commit $ARGUMENTS"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(read(Some(Path::new("/nowhere")), None), []);
    }

    /// A tool can create a link to a file that only the user can read, and wait until the user runs the command.
    #[test]
    fn no_link_of_the_project_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (project, secret) = (dir.path().join("project"), dir.path().join("secret"));
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("key.md"), "word").unwrap();
        put(&project, "real.md", "Do it");
        let commands = project.join(".claude/commands");
        std::os::unix::fs::symlink(secret.join("key.md"), commands.join("link.md")).unwrap();
        std::os::unix::fs::symlink(&secret, commands.join("dir")).unwrap();
        let names =
            |found: Vec<Own>| -> Vec<String> { found.into_iter().map(|it| it.name).collect() };
        assert_eq!(names(read(None, Some(&project))), ["real"]);
        // The user's own links are the user's choice.
        assert_eq!(
            names(read(Some(&project), None)),
            ["dir:key", "link", "real"]
        );
        // The directory itself is not reached through a link either.
        let other = dir.path().join("other");
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(project.join(".claude"), other.join(".claude")).unwrap();
        assert_eq!(read(None, Some(&other)), []);
    }
}
