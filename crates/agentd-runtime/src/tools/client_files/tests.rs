//! Reading parts of texts, and writing files, as a program asks for it.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

struct Dir {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Dir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        Self { _dir: dir, path }
    }

    fn path(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path.join(name), content).unwrap();
        self.path(name)
    }
}

fn text_of(path: &str, line: Option<u64>, limit: Option<u64>) -> String {
    match read(path, line, limit) {
        FileReport::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

fn why(report: FileReport) -> String {
    match report {
        FileReport::Failed(why) | FileReport::Missing(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lines_are_read_as_they_are() {
    let dir = Dir::new();
    let path = dir.file("a", "one\r\ntwo\n\nlast é");
    assert_eq!(text_of(&path, None, None), "one\r\ntwo\n\nlast é");
    assert_eq!(text_of(&path, Some(1), Some(1)), "one\r\n");
    assert_eq!(text_of(&path, Some(0), Some(1)), "one\r\n");
    assert_eq!(text_of(&path, Some(2), Some(2)), "two\n\n");
    assert_eq!(text_of(&path, Some(4), None), "last é");
    assert_eq!(text_of(&path, None, Some(2)), "one\r\ntwo\n");
    assert_eq!(text_of(&path, Some(5), None), "");
    assert_eq!(text_of(&path, None, Some(0)), "");
    assert_eq!(text_of(&path, Some(u64::MAX), Some(u64::MAX)), "");
    assert_eq!(text_of(&dir.file("empty", ""), None, None), "");
    symlink("a", dir.path.join("link")).unwrap();
    assert_eq!(text_of(&dir.path("link"), Some(4), None), "last é");
}

#[test]
fn what_is_no_text_is_an_error_that_says_so() {
    let dir = Dir::new();
    let missing = read(&dir.path("missing"), None, None);
    assert!(matches!(&missing, FileReport::Missing(why) if why.contains("Resource not found")));
    for (path, expected) in [
        (dir.path("."), "is a directory"),
        (dir.file("binary", b"a\0b"), "binary"),
        (dir.file("latin", b"caf\xe9\n"), "UTF-8"),
        ("/dev/null".to_owned(), "not a regular file"),
    ] {
        let why = why(read(&path, None, None));
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_long_text_is_read_in_parts_only() {
    let dir = Dir::new();
    let line = format!("{}\n", "x".repeat(LONGEST_TEXT - 1));
    let path = dir.file("long", format!("{line}{line}end"));
    assert!(why(read(&path, None, None)).contains("`limit`"));
    assert!(why(read(&path, Some(1), Some(2))).contains("`limit`"));
    assert_eq!(text_of(&path, Some(2), Some(1)).len(), LONGEST_TEXT);
    assert_eq!(text_of(&path, Some(3), None), "end");
}

#[test]
fn a_file_is_created_with_its_directories_and_replaced_with_its_mode() {
    let dir = Dir::new();
    let path = dir.path("new/deep/a");
    write(&path, "first", GitDirs::Protected).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    write(&path, "second", GitDirs::Protected).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let entries = fs::read_dir(dir.path.join("new/deep")).unwrap();
    assert_eq!(entries.count(), 1, "no temporary file is left");
    // A link stays a link.
    symlink("new/deep/a", dir.path.join("link")).unwrap();
    write(&dir.path("link"), "third", GitDirs::Protected).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "third");
}

#[test]
fn a_git_directory_is_protected_in_a_sandbox() {
    let dir = Dir::new();
    let path = dir.path("tree/.git/hooks/pre-commit");
    let refused = write(&path, "#!/bin/sh\n", GitDirs::Protected).unwrap_err();
    assert!(
        refused.text().contains("write-protected"),
        "{}",
        refused.text()
    );
    let around = dir.path("tree/sub/../.git/config");
    assert!(write(&around, "", GitDirs::Protected).is_err());
    fs::create_dir_all(dir.path.join("tree/.git")).unwrap();
    symlink(".git", dir.path.join("tree/link")).unwrap();
    assert!(write(&dir.path("tree/link/config"), "", GitDirs::Protected).is_err());
    assert_eq!(fs::read_dir(dir.path.join("tree/.git")).unwrap().count(), 0);
    write(&path, "#!/bin/sh\n", GitDirs::Open).unwrap();
    assert!(Path::new(&path).is_file());
    // Regression: git needs no `.git`, and took a directory with these files for a git directory.
    for name in ["config", "objects/a", "refs/a"] {
        let made = dir.path(&format!("tree/made/{name}"));
        write(&made, "", GitDirs::Protected).unwrap();
    }
    let head = dir.path("tree/made/HEAD");
    assert!(write(&head, "", GitDirs::Protected).is_err());
    assert!(!Path::new(&head).exists());
}

#[test]
fn a_directory_is_not_replaced() {
    let dir = Dir::new();
    fs::create_dir(dir.path.join("sub")).unwrap();
    let refused = write(&dir.path("sub"), "text", GitDirs::Open).unwrap_err();
    assert!(refused.text().contains("is a directory"));
}

#[test]
fn each_line_of_work_has_a_report() {
    let dir = Dir::new();
    let path = dir.path("a");
    let work = [
        FileWork::Write {
            path: path.clone(),
            content: "a\nb\n".to_owned(),
        },
        FileWork::Read {
            path,
            line: Some(2),
            limit: None,
        },
    ];
    let lines = work.map(|work| serde_json::to_string(&work).unwrap() + "\n");
    let mut out = Vec::new();
    serve(GitDirs::Open, lines.concat().as_bytes(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let reports = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let expected = [FileReport::Written, FileReport::Text("b\n".to_owned())];
    assert_eq!(reports.collect::<Vec<FileReport>>(), expected);
    assert!(serve(GitDirs::Open, &b"garbage\n"[..], Vec::<u8>::new()).is_err());
}
