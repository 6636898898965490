//! What the worker does to files, without a process.

use super::Reports;
use super::read::{Bounds, report};
use super::write::write;
use agentd_core::digest::sha256;
use agentd_core::event::{FileState, KEPT_PART_BYTES, KeptContent, NotKept};
use agentd_core::files::work::{Found, HASHED_BYTES, Report, WriteFile, Written};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Tree {
    dir: TempDir,
}

impl Tree {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn put(&self, name: &str, content: &[u8], mode: u32) -> FileState {
        fs::write(self.path(name), content).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        file(content, mode)
    }

    fn write(&self, name: &str, expected: FileState, target: FileState, content: &[u8]) -> Written {
        let kept = tempfile::NamedTempFile::new().unwrap();
        fs::write(kept.path(), content).unwrap();
        let order = WriteFile {
            path: self.path(name).display().to_string(),
            expected,
            target,
            content: Some(kept.path().to_owned()),
        };
        let mut written = write(&[order], "op");
        assert_eq!(written.len(), 1);
        written.remove(0)
    }

    /// The names in the directory, so that a temporary file is found.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn file(content: &[u8], mode: u32) -> FileState {
    let hash = sha256(content);
    FileState::File { mode, hash }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn seen(path: &Path, largest: u64) -> (Vec<KeptContent>, Found) {
    bounded(path, largest, u64::MAX)
}

fn bounded(path: &Path, largest: u64, hashed: u64) -> (Vec<KeptContent>, Found) {
    let mut reports = Reports(Vec::new());
    let path = path.display().to_string();
    report(&path, &Bounds { largest, hashed }, &mut reports).unwrap();
    let mut parts = Vec::new();
    for line in reports.0.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line).unwrap() {
            Report::Part { content } => parts.push(content),
            Report::Found { found, .. } => return (parts, found),
            other => panic!("{other:?}"),
        }
    }
    panic!("nothing is reported");
}

#[test]
fn a_file_gets_its_content_and_its_mode() {
    let tree = Tree::new();
    let old = tree.put("a", b"new\r\n", 0o755);
    let target = file(b"old\r\n\0\xff", 0o640);
    let done = tree.write("a", old, target, b"old\r\n\0\xff");
    assert_eq!(done, Written::Done);
    assert_eq!(fs::read(tree.path("a")).unwrap(), b"old\r\n\0\xff");
    assert_eq!(mode(&tree.path("a")), 0o640);
    assert_eq!(tree.names(), ["a"]);
}

#[test]
fn the_same_work_again_changes_nothing() {
    let tree = Tree::new();
    let old = tree.put("a", b"new", 0o644);
    let target = file(b"old", 0o600);
    for _ in 0..2 {
        let done = tree.write("a", old.clone(), target.clone(), b"old");
        assert_eq!(done, Written::Done);
        assert_eq!(fs::read(tree.path("a")).unwrap(), b"old");
    }
    for _ in 0..2 {
        let done = tree.write("a", target.clone(), FileState::Absent, b"");
        assert_eq!(done, Written::Done);
        assert_eq!(tree.names(), [] as [&str; 0]);
    }
}

#[test]
fn a_file_that_was_changed_since_is_left_alone() {
    let tree = Tree::new();
    tree.put("a", b"of the user", 0o644);
    let done = tree.write("a", file(b"new", 0o644), file(b"old", 0o644), b"old");
    assert_eq!(done, Written::Changed);
    assert_eq!(fs::read(tree.path("a")).unwrap(), b"of the user");
    let done = tree.write("a", file(b"new", 0o644), FileState::Absent, b"");
    assert_eq!(done, Written::Changed);
    fs::create_dir(tree.path("dir")).unwrap();
    let done = tree.write("dir", file(b"new", 0o644), file(b"old", 0o644), b"old");
    assert_eq!(done, Written::Changed);
    assert_eq!(tree.names(), ["a", "dir"]);
}

#[test]
fn a_content_other_than_the_kept_one_is_not_written() {
    let tree = Tree::new();
    let old = tree.put("a", b"new", 0o644);
    let done = tree.write("a", old, file(b"old", 0o644), b"another");
    assert!(matches!(done, Written::Failed { .. }), "{done:?}");
    assert_eq!(fs::read(tree.path("a")).unwrap(), b"new");
    assert_eq!(tree.names(), ["a"]);
}

#[test]
fn a_symlink_is_restored_as_such_and_never_followed() {
    let tree = Tree::new();
    let outside = tree.put("outside", b"outside", 0o644);
    symlink("outside", tree.path("link")).unwrap();
    let link = FileState::Symlink {
        target: "outside".to_owned(),
    };
    // A file takes the place of the link, and the link of the file.
    let done = tree.write("link", link.clone(), file(b"old", 0o644), b"old");
    assert_eq!(done, Written::Done);
    assert_eq!(fs::read(tree.path("link")).unwrap(), b"old");
    let done = tree.write("link", file(b"old", 0o644), link, b"");
    assert_eq!(done, Written::Done);
    let target = fs::read_link(tree.path("link")).unwrap();
    assert_eq!(target, Path::new("outside"));
    // The content behind a link is not what is at the path.
    let done = tree.write("link", outside, file(b"old", 0o644), b"old");
    assert_eq!(done, Written::Changed);
    assert_eq!(fs::read(tree.path("outside")).unwrap(), b"outside");
}

#[test]
fn a_directory_that_became_a_symlink_redirects_nothing() {
    let tree = Tree::new();
    fs::create_dir(tree.path("elsewhere")).unwrap();
    symlink("elsewhere", tree.path("dir")).unwrap();
    let done = tree.write("dir/a", FileState::Absent, file(b"old", 0o644), b"old");
    assert!(matches!(done, Written::Failed { .. }), "{done:?}");
    assert!(!tree.path("elsewhere/a").exists());
    let (_, found) = seen(&tree.path("dir/a"), 100);
    let what = format!("{} is a symlink", tree.path("dir").display());
    assert_eq!(found, Found::Blocked { what });
}

/// The content is nowhere but in the file.
#[test]
fn permission_bits_are_restored_without_a_content() {
    let tree = Tree::new();
    let now = tree.put("a", b"one", 0o755);
    let order = |expected: FileState, hash: &[u8]| WriteFile {
        path: tree.path("a").display().to_string(),
        expected,
        target: file(hash, 0o640),
        content: None,
    };
    let done = write(&[order(now.clone(), b"other")], "op");
    let is_failed = matches!(done.as_slice(), [Written::Failed { .. }]);
    assert!(is_failed, "{done:?}");
    let done = write(&[order(now, b"one")], "op");
    assert_eq!(done, [Written::Done]);
    let mode = fs::metadata(tree.path("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert_eq!(fs::read(tree.path("a")).unwrap(), b"one");
}

#[test]
fn a_directory_that_became_a_file_is_named() {
    let tree = Tree::new();
    tree.put("dir", b"of the user", 0o644);
    let (_, found) = seen(&tree.path("dir/deep/a"), 100);
    let what = format!("{} is not a directory", tree.path("dir").display());
    assert_eq!(found, Found::Blocked { what });
    let done = tree.write("dir/deep/a", FileState::Absent, file(b"old", 0o644), b"old");
    assert!(matches!(done, Written::Failed { .. }), "{done:?}");
    assert_eq!(fs::read(tree.path("dir")).unwrap(), b"of the user");
}

#[test]
fn directories_that_are_missing_are_created() {
    let tree = Tree::new();
    let target = file(b"old", 0o644);
    let done = tree.write("x/y/a", FileState::Absent, target, b"old");
    assert_eq!(done, Written::Done);
    assert_eq!(fs::read(tree.path("x/y/a")).unwrap(), b"old");
    let done = tree.write("no/such/a", file(b"a", 0o644), FileState::Absent, b"");
    assert_eq!(done, Written::Done);
    assert_eq!(tree.names(), ["x"]);
}

#[test]
fn what_is_at_a_path_is_reported_with_its_content() {
    let tree = Tree::new();
    let state = tree.put("text", b"one\r\n\ttwo", 0o640);
    let (parts, found) = seen(&tree.path("text"), 100);
    let text = "one\r\n\ttwo".to_owned();
    assert_eq!(parts, [KeptContent::Text { text }]);
    let known = |state, size, not_kept| Found::Known {
        state,
        size,
        not_kept,
    };
    assert_eq!(found, known(state.clone(), 9, None));
    let (parts, found) = seen(&tree.path("text"), 8);
    assert_eq!(parts, []);
    assert_eq!(found, known(state, 9, Some(NotKept::TooLarge)));
    let (parts, found) = seen(&tree.path("missing/too"), 8);
    assert_eq!((parts.len(), found), (0, known(FileState::Absent, 0, None)));
    let (_, found) = seen(&tree.path(""), 8);
    assert!(matches!(found, Found::Other { .. } | Found::Failed { .. }));
    let empty = tree.put("empty", b"", 0o644);
    let (parts, found) = seen(&tree.path("empty"), 8);
    assert_eq!((parts.len(), found), (1, known(empty, 0, None)));
}

/// A sparse file is made in a moment, and would take minutes to read.
#[test]
fn of_a_file_that_is_too_large_only_the_size_is_reported() {
    let tree = Tree::new();
    let size = 40 * 1024 * 1024 * 1024;
    let sparse = fs::File::create(tree.path("sparse")).unwrap();
    sparse.set_len(size).unwrap();
    let (parts, found) = bounded(&tree.path("sparse"), 100, HASHED_BYTES);
    let too_large = |found: &Found| match found {
        Found::Failed { size, .. } => *size,
        other => panic!("{other:?}"),
    };
    assert_eq!((parts.len(), too_large(&found)), (0, Some(size)));
    tree.put("text", b"four", 0o644);
    let (_, found) = bounded(&tree.path("text"), 100, 3);
    assert_eq!(too_large(&found), Some(4));
    let (parts, found) = bounded(&tree.path("text"), 100, 4);
    assert_eq!(parts.len(), 1);
    assert!(matches!(found, Found::Known { size: 4, .. }), "{found:?}");
    // It cannot be what a restore expects, and is not read to find that out.
    let expected = file(b"old", 0o644);
    let done = tree.write("sparse", expected, file(b"new", 0o644), b"new");
    assert_eq!(done, Written::Changed);
    assert_eq!(fs::metadata(tree.path("sparse")).unwrap().len(), size);
}

#[test]
fn a_large_file_comes_in_parts() {
    let tree = Tree::new();
    let content = vec![b'x'; KEPT_PART_BYTES + 5];
    tree.put("large", &content, 0o644);
    let (parts, _) = seen(&tree.path("large"), u64::MAX);
    let sizes = parts.iter().map(|part| match part {
        KeptContent::Text { text } => text.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [KEPT_PART_BYTES, 5]);
}

/// Names that begin with the same 200 bytes, and one file that something else has changed.
#[test]
fn files_that_are_written_together_do_not_disturb_each_other() {
    let tree = Tree::new();
    let kept = tempfile::NamedTempFile::new().unwrap();
    fs::write(kept.path(), "old").unwrap();
    let mut names: Vec<String> = (0..100)
        .map(|n| format!("{}{n}", "x".repeat(220)))
        .collect();
    names.sort();
    let order = |name: &String| WriteFile {
        path: tree.path(name).display().to_string(),
        expected: tree.put(name, b"new", 0o644),
        target: file(b"old", 0o600),
        content: Some(kept.path().to_owned()),
    };
    let orders: Vec<WriteFile> = names.iter().map(order).collect();
    fs::write(tree.path(&names[7]), "of the user").unwrap();
    let mut rest = orders.as_slice();
    let mut written = Vec::new();
    while !rest.is_empty() {
        let batch = super::write::batch(rest);
        written.extend(write(batch, "op"));
        rest = &rest[batch.len()..];
    }
    assert_eq!(written.len(), names.len());
    for (n, (name, written)) in names.iter().zip(&written).enumerate() {
        let (outcome, content) = match n {
            7 => (Written::Changed, "of the user"),
            _ => (Written::Done, "old"),
        };
        assert_eq!(written, &outcome, "{name}");
        assert_eq!(fs::read_to_string(tree.path(name)).unwrap(), content);
    }
    // No temporary file is left.
    assert_eq!(tree.names(), names);
}
