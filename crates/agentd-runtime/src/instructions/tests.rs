//! Tests of the instruction files.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn files(cwd: &Path) -> InstructionFiles {
    InstructionFiles::new(cwd.to_owned(), None, None)
}

fn read(cwd: &Path) -> Vec<Instructions> {
    files(cwd).read()
}

fn texts(files: &[Instructions]) -> Vec<&str> {
    let texts = files.iter().map(|file| match &file.text {
        Ok(text) | Err(text) => text.as_str(),
    });
    texts.collect()
}

fn repository() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    (dir, root)
}

#[test]
fn files_are_read_from_the_root_down_to_the_working_directory() {
    let (_dir, root) = repository();
    let cwd = root.join("a/b");
    fs::write(root.join("AGENTS.md"), "root").unwrap();
    fs::write(root.join("CLAUDE.md"), "not used").unwrap();
    fs::write(root.join("a/CLAUDE.md"), "middle").unwrap();
    fs::write(cwd.join("AGENTS.md"), "not used").unwrap();
    fs::write(cwd.join("AGENTS.override.md"), "override").unwrap();
    assert_eq!(texts(&read(&cwd)), ["root", "middle", "override"]);
    assert_eq!(texts(&read(&root)), ["root"]);
    // A file without text is as good as none.
    fs::write(cwd.join("AGENTS.override.md"), " \n").unwrap();
    fs::write(cwd.join("AGENTS.md"), "own").unwrap();
    assert_eq!(texts(&read(&cwd)), ["root", "middle", "own"]);
    // Without a repository, only the working directory counts.
    fs::remove_dir(root.join(".git")).unwrap();
    assert_eq!(texts(&read(&cwd)), ["own"]);
}

#[test]
fn the_user_s_own_file_comes_first() {
    let (_dir, root) = repository();
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    fs::create_dir_all(home.path().join(".claude")).unwrap();
    fs::create_dir_all(&state).unwrap();
    fs::write(root.join("AGENTS.md"), "project").unwrap();
    fs::write(home.path().join(".claude/CLAUDE.md"), "claude").unwrap();
    let home_dir = Some(home.path().to_owned());
    let files = InstructionFiles::new(root, Some(state.clone()), home_dir);
    assert_eq!(texts(&files.read()), ["claude", "project"]);
    // The user's own files may be links: dotfiles often are.
    fs::write(home.path().join("dotfile"), "own").unwrap();
    symlink("../dotfile", state.join("AGENTS.md")).unwrap();
    assert_eq!(texts(&files.read()), ["own", "project"]);
}

/// A repository must not bring a file of the user into the conversation.
#[test]
fn a_link_leads_only_to_another_markdown_file_of_the_project() {
    let (_dir, root) = repository();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.md");
    fs::write(&secret, "the secret").unwrap();
    fs::write(root.join("secret.env"), "the secret").unwrap();
    fs::write(root.join("guide.md"), "the guide").unwrap();
    let file = root.join("a/AGENTS.md");
    let relative = Path::new("../../../../../..").join(secret.strip_prefix("/").unwrap());
    for target in [
        secret.as_path(),
        &relative,
        Path::new("../secret.env"),
        Path::new("/proc/self/environ"),
    ] {
        symlink(target, &file).unwrap();
        let found = read(&root.join("a"));
        let why = found[0].text.clone().unwrap_err();
        assert!(why.contains("symbolic link"), "{}: {why}", target.display());
        fs::remove_file(&file).unwrap();
    }
    // The tools of an agent in `a` can create a link there, but cannot read what it leads to.
    symlink("../guide.md", &file).unwrap();
    let found = read(&root.join("a"));
    assert!(found[0].text.is_err(), "{found:?}");
    assert_eq!(texts(&read(&root.join("a/b"))), ["the guide"]);
    fs::write(root.join("a/own.md"), "own").unwrap();
    fs::remove_file(&file).unwrap();
    symlink("own.md", &file).unwrap();
    assert_eq!(texts(&read(&root.join("a"))), ["own"]);
}

#[test]
fn directories_below_count_once_the_agent_has_worked_there() {
    let (_dir, root) = repository();
    fs::write(root.join("a/AGENTS.md"), "of a").unwrap();
    fs::write(root.join("a/b/CLAUDE.md"), "of b").unwrap();
    let files = files(&root);
    assert_eq!(texts(&files.files(&[])), [""; 0]);
    files.touch(&root.join("a/b/some.rs"));
    files.touch(Path::new("/elsewhere/AGENTS.md"));
    assert_eq!(texts(&files.files(&[])), ["of a", "of b"]);
    // After a restart, the files that the model knows are still looked at.
    let files = self::files(&root);
    let told = [root.join("a/AGENTS.md").display().to_string()];
    assert_eq!(texts(&files.files(&told)), ["of a"]);
    for n in 0..1000 {
        files.touch(&root.join(format!("d{n}/x")));
    }
    assert!(files.touched().dirs.len() <= MOST_TOUCHED);
}

#[test]
fn what_is_no_text_file_is_named_and_does_not_block() {
    let (_dir, root) = repository();
    let file = root.join("AGENTS.md");
    let why = || read(&root)[0].text.clone().unwrap_err();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert_eq!(why(), "it is not a regular file");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(why(), "it is not a regular file");
    fs::remove_dir(&file).unwrap();
    let large = fs::File::create(&file).unwrap();
    large.set_len(LARGEST + 1).unwrap();
    assert!(why().starts_with("it is too large"));
    fs::write(&file, b"caf\xe9").unwrap();
    assert_eq!(texts(&read(&root)), ["caf\u{fffd}"]);
}

#[test]
fn the_branch_is_read_without_running_git() {
    let (_dir, root) = repository();
    let head = |text: &str| {
        fs::write(root.join(".git/HEAD"), text).unwrap();
        git(&root)
    };
    let branch = |name: &str| Git::Branch(name.to_owned());
    assert_eq!(git(&root), Git::None, "no HEAD");
    assert_eq!(head("ref: refs/heads/main\n"), branch("main"));
    assert_eq!(head("ref: refs/heads/feature/x\n"), branch("feature/x"));
    assert_eq!(
        head("0123456789abcdef0123456789abcdef01234567\n"),
        Git::Detached
    );
    for text in ["", "ref: refs/heads/\n", "ref: elsewhere", "x"] {
        assert_eq!(head(text), Git::None, "{text}");
    }
    assert_eq!(
        head(&format!("ref: refs/heads/{}", "x".repeat(300))),
        Git::None
    );
    // A work tree: `.git` is a file that names the directory.
    fs::create_dir_all(root.join("a/.hidden/wt")).unwrap();
    fs::write(root.join("a/.hidden/wt/HEAD"), "ref: refs/heads/topic").unwrap();
    fs::write(root.join("a/b/.git"), "gitdir: ../.hidden/wt\n").unwrap();
    assert_eq!(git(&root.join("a/b")), branch("topic"));
    let place = workplace(&root.join("a/b"), String::new(), String::new());
    assert_eq!((place.root, place.git), (None, branch("topic")));
    assert_eq!(
        workplace(&root.join("a"), String::new(), String::new()).root,
        Some(root.display().to_string())
    );
}

fn names(files: &[Instructions], root: &Path) -> Vec<String> {
    let names = files.iter().map(|file| {
        let path = Path::new(&file.path);
        path.strip_prefix(root)
            .unwrap_or(path)
            .display()
            .to_string()
    });
    names.collect()
}

fn write(root: &Path, below: &str, text: &str) {
    let path = root.join(below);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Regression: `CLAUDE.local.md`, `.claude/rules` and imports were not read.
#[test]
fn rules_local_files_and_imports_are_read_with_the_files_of_a_directory() {
    let (_dir, root) = repository();
    write(
        &root,
        "CLAUDE.md",
        "See @docs/style.md and @package.json, @someone and @~/x.md.",
    );
    write(&root, "docs/style.md", "Tabs. @deep.md");
    write(
        &root,
        "docs/deep.md",
        "Back to @../CLAUDE.md and @style.md.",
    );
    write(&root, "package.json", "{}");
    write(&root, ".claude/rules/a.md", "Rule a.");
    write(
        &root,
        ".claude/rules/inner/b.md",
        "---\ndescription: x\n---\nRule b.",
    );
    write(&root, ".claude/rules/notes.txt", "no rule");
    write(&root, "CLAUDE.local.md", "Mine.");
    let found = read(&root);
    assert_eq!(
        names(&found, &root),
        [
            "docs/deep.md",
            "docs/style.md",
            "CLAUDE.md",
            ".claude/rules/a.md",
            ".claude/rules/inner/b.md",
            "CLAUDE.local.md"
        ]
    );
    assert_eq!(texts(&found)[4], "Rule b.");
}

/// Imports and rules must not bring a file in that is not the project's, nor one that its tools cannot read.
#[test]
fn imports_and_rules_stay_in_the_project_and_in_the_working_directory() {
    let (_dir, root) = repository();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.md");
    fs::write(&secret, "the secret").unwrap();
    let up = Path::new("../../../../../../..").join(secret.strip_prefix("/").unwrap());
    let text = format!(
        "@{} @{} @link.md @../guide.md @.env",
        secret.display(),
        up.display()
    );
    write(&root, "guide.md", "the guide");
    write(&root, "a/.env", "the secret");
    write(&root, "a/AGENTS.md", &text);
    symlink(&secret, root.join("a/link.md")).unwrap();
    symlink(outside.path(), root.join("a/.claude")).unwrap();
    fs::create_dir(outside.path().join("rules")).unwrap();
    fs::copy(&secret, outside.path().join("rules/secret.md")).unwrap();
    let found = read(&root.join("a"));
    assert_eq!(names(&found, &root), ["a/link.md", "a/AGENTS.md"]);
    let why = found[0].text.clone().unwrap_err();
    assert!(why.contains("symbolic link"), "{why}");
    // For an agent in the root of the project, its file is in the project.
    fs::rename(root.join("a/AGENTS.md"), root.join("AGENTS.md")).unwrap();
    fs::write(root.join("AGENTS.md"), "@guide.md").unwrap();
    assert_eq!(names(&read(&root), &root), ["guide.md", "AGENTS.md"]);
    // A file that imports without end.
    for n in 0..100 {
        write(&root, &format!("n{n}.md"), &format!("@n{}.md", n + 1));
    }
    fs::write(root.join("AGENTS.md"), "@n0.md").unwrap();
    assert_eq!(read(&root).len(), 6);
    let all: Vec<String> = (0..100).map(|n| format!("@n{n}.md")).collect();
    fs::write(root.join("AGENTS.md"), all.join(" ")).unwrap();
    assert!(read(&root).len() <= 33);
}

#[test]
fn a_rule_for_some_paths_applies_once_the_agent_works_with_one() {
    let (_dir, root) = repository();
    write(
        &root,
        ".claude/rules/ts.md",
        "---\npaths:\n  - \"src/**/*.{ts,tsx}\"\n---\nTyped.",
    );
    let files = files(&root);
    assert_eq!(texts(&files.read()), [""; 0]);
    files.touch(&root.join("src/a/b.rs"));
    assert_eq!(texts(&files.files(&[])), [""; 0]);
    files.touch(&root.join("src/a/b.tsx"));
    assert_eq!(texts(&files.files(&[])), ["Typed."]);
    // After a restart, the model still knows it.
    let told = [root.join(".claude/rules/ts.md").display().to_string()];
    assert_eq!(texts(&self::files(&root).files(&told)), ["Typed."]);
    // In a directory below, too.
    write(&root, "a/.claude/rules/own.md", "Own.");
    let told = [root.join("a/.claude/rules/own.md").display().to_string()];
    assert_eq!(texts(&self::files(&root).files(&told)), ["Own."]);
}

/// Regression: a project with instructions for other programs alone had none.
#[test]
fn instructions_for_other_programs_are_read_where_there_are_no_others() {
    let (_dir, root) = repository();
    write(&root, ".github/copilot-instructions.md", "Copilot.");
    write(
        &root,
        ".cursor/rules/always.mdc",
        "---\nalwaysApply: true\nglobs: *.ts\n---\nCursor.",
    );
    write(
        &root,
        ".cursor/rules/asked.mdc",
        "---\ndescription: d\nalwaysApply: false\n---\nAsked.",
    );
    write(
        &root,
        ".cursor/rules/ts.mdc",
        "---\nglobs: *.ts\nalwaysApply: false\n---\nTyped.",
    );
    let files = files(&root);
    assert_eq!(texts(&files.read()), ["Copilot.", "Cursor."]);
    files.touch(&root.join("x/y.ts"));
    assert_eq!(texts(&files.files(&[])), ["Copilot.", "Cursor.", "Typed."]);
    write(&root, "CLAUDE.md", "Claude.");
    assert_eq!(texts(&files.files(&[])), ["Claude."]);
}
