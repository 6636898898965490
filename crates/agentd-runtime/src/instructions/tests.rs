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
    assert!(files.touched.lock().unwrap().len() <= MOST_TOUCHED);
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
