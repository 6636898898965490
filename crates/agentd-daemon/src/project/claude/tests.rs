//! Which files count, and what of them.

use super::*;
use crate::project;
use std::fs;
use std::os::unix::fs::symlink;

struct Project {
    _dir: tempfile::TempDir,
    layout: Layout,
    work: PathBuf,
}

fn project() -> Project {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let layout = Layout::new(root.join("state"));
    layout.make().unwrap();
    let work = root.join("work");
    fs::create_dir_all(work.join(".git")).unwrap();
    fs::create_dir_all(work.join(".claude/agents")).unwrap();
    fs::create_dir_all(work.join("below")).unwrap();
    Project {
        _dir: dir,
        layout,
        work,
    }
}

impl Project {
    fn write(&self, below: &str, text: &str) {
        fs::write(self.work.join(below), text).unwrap();
    }

    fn trust(&self) {
        let files = project::files(&self.work).unwrap().into_iter();
        let all = files.map(|file| {
            let path = self.work.join(&file.below).display().to_string();
            (path, file.hash)
        });
        trusted::write(&self.layout, &all.collect()).unwrap();
    }

    fn rules(&self, below: &str) -> Vec<Rule> {
        rules(&self.layout, &self.work.join(below), None)
    }
}

/// Regression: a project's denials for another program were not read at all.
#[test]
fn denials_count_while_the_file_is_trusted_as_it_is() {
    let project = project();
    project.write(
        SETTINGS,
        r#"{"permissions": {"allow": ["Bash"], "deny": ["Bash(curl:*)"]}}"#,
    );
    assert_eq!(project.rules(""), []);
    let path = project.work.join(SETTINGS);
    let untrusted = || untrusted(&project.layout, &project.work, None);
    assert_eq!(untrusted(), std::slice::from_ref(&path));
    project.trust();
    assert_eq!(project.rules("").len(), 2);
    // Also for an agent further down, even if a tool makes a repository there.
    assert_eq!(project.rules("below").len(), 2);
    fs::create_dir(project.work.join("below/.git")).unwrap();
    assert_eq!(project.rules("below").len(), 2);
    assert!(untrusted().is_empty());
    project.write(SETTINGS, r#"{"permissions": {"deny": []}}"#);
    assert_eq!(project.rules(""), []);
    assert_eq!(
        untrusted(),
        [path],
        "it no longer restricts anything, and did"
    );
}

#[test]
fn a_file_that_restricts_nothing_is_not_mentioned() {
    let project = project();
    project.write(SETTINGS, r#"{"permissions": {"allow": ["Bash"]}}"#);
    assert!(untrusted(&project.layout, &project.work, None).is_empty());
}

/// Regression: `.claude/agents` was not read.
#[test]
fn agents_are_kinds_of_subagents_once_they_are_trusted() {
    let project = project();
    project.write(
        ".claude/agents/reviewer.md",
        "---\ndescription: Reviews.\ntools: Read\n---\nReview.\n",
    );
    project.write(".claude/agents/broken.md", "No front matter.");
    project.write(".claude/agents/notes.txt", "Not an agent.");
    assert!(agents(&project.layout, &project.work).is_empty());
    project.trust();
    let found = agents(&project.layout, &project.work.join("below"));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["reviewer"]);
    assert_eq!(
        found["reviewer"].tools.as_deref(),
        Some(["read_file".to_owned()].as_slice())
    );
    let unused = unused(&project.work, None);
    assert_eq!(unused.len(), 1);
    assert!(
        unused[0].starts_with(".claude/agents/broken.md: not used: "),
        "{unused:?}"
    );
    project.write(
        ".claude/agents/reviewer.md",
        "---\ndescription: Deletes.\n---\n",
    );
    assert!(agents(&project.layout, &project.work).is_empty());
}

/// A link must not make the rest of a project untrustable, nor bring a file of the user in.
#[test]
fn a_link_is_named_and_does_not_count() {
    let project = project();
    symlink("/etc/passwd", project.work.join(SETTINGS)).unwrap();
    project.write(".claude/agents/a.md", "---\ndescription: d\n---\n");
    project.trust();
    let unused = unused(&project.work, None);
    assert!(unused[0].contains("symbolic link"), "{unused:?}");
    assert_eq!(project.rules(""), []);
    assert_eq!(agents(&project.layout, &project.work).len(), 1);
}
