//! The same entries are ignored as by the crate's own walk, and no odd file is followed, waited for or read to its end.

use super::*;
use ignore::WalkBuilder;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

fn tree() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    (dir, root)
}

/// The entries below a directory, by our rules.
fn ours(root: &Path) -> (BTreeSet<PathBuf>, Option<String>) {
    let ignored = std::sync::Arc::new(Ignored::new(root));
    let asked = std::sync::Arc::clone(&ignored);
    let mut builder = WalkBuilder::new(root);
    builder.standard_filters(false).filter_entry(move |entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || !asked.contains(entry.path(), is_dir)
    });
    (entries(&builder), ignored.unused())
}

/// The same by those of the crate.
fn theirs(root: &Path) -> BTreeSet<PathBuf> {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).require_git(false).git_global(false);
    entries(&builder)
}

fn entries(builder: &WalkBuilder) -> BTreeSet<PathBuf> {
    let entries = builder.build().filter_map(Result::ok);
    entries.map(|entry| entry.into_path()).collect()
}

/// The names and patterns of the property test: few, so that they often meet.
const NAMES: [&str; 4] = ["a", "b", "a.log", "c"];
const PATTERNS: [&str; 14] = [
    "a", "/a", "a/", "!a", "*.log", "!*.log", "b/*", "!b/a", "**/a", "a/**", "b/c", "!c/", "# a",
    "\\!a",
];

proptest! {
    /// Nested files, negations, the order of the kinds, and files above the root of the walk.
    #[test]
    fn the_same_entries_are_ignored_as_by_the_crate(
        files in prop::collection::vec(prop::collection::vec(0..NAMES.len(), 1..4), 1..12),
        rules in prop::collection::vec(
            (prop::collection::vec(0..NAMES.len(), 0..3), 0..3_usize, prop::collection::vec(0..PATTERNS.len(), 1..5)),
            0..6,
        ),
        from in prop::collection::vec(0..NAMES.len(), 0..2),
    ) {
        let (_dir, root) = tree();
        let path = |parts: &[usize]| parts.iter().fold(root.clone(), |at, part| at.join(NAMES[*part]));
        for parts in &files {
            let path = path(parts);
            // A name may be taken by a file or a directory already.
            let _taken = fs::create_dir_all(path.parent().unwrap());
            if !path.exists() {
                let _taken = fs::write(&path, "");
            }
        }
        for (dir, kind, patterns) in &rules {
            let name = [".ignore", ".gitignore", ".git/info/exclude"][*kind];
            let path = path(dir).join(name);
            let _taken = fs::create_dir_all(path.parent().unwrap());
            let lines = patterns.iter().map(|pattern| format!("{}\n", PATTERNS[*pattern]));
            let _taken = fs::write(path, lines.collect::<String>());
        }
        let from = path(&from);
        if from.is_dir() {
            let (ours, unused) = ours(&from);
            prop_assert_eq!(ours, theirs(&from));
            prop_assert_eq!(unused, None);
        }
    }
}

#[test]
fn the_exclude_file_of_a_linked_work_tree_counts() {
    let (_dir, root) = tree();
    fs::create_dir_all(root.join("main/.git/worktrees/w")).unwrap();
    fs::create_dir_all(root.join("main/.git/info")).unwrap();
    fs::write(root.join("main/.git/info/exclude"), "*.log\n").unwrap();
    fs::write(root.join("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
    let tree = root.join("w");
    fs::create_dir(&tree).unwrap();
    let git = root.join("main/.git/worktrees/w");
    fs::write(tree.join(".git"), format!("gitdir: {}\n", git.display())).unwrap();
    fs::write(tree.join("a.log"), "").unwrap();
    fs::write(tree.join("a.rs"), "").unwrap();
    assert_eq!(ours(&tree).0, theirs(&tree));
    assert!(!ours(&tree).0.contains(&tree.join("a.log")));
}

#[test]
fn links_devices_pipes_and_large_files_are_not_read() {
    for name in [".gitignore", ".ignore", ".git/info/exclude"] {
        let (_dir, root) = tree();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::write(root.join("a.rs"), "").unwrap();
        let path = root.join(name);
        let check = |why: &str| {
            let (found, unused) = ours(&root);
            assert!(found.contains(&root.join("a.rs")), "{name}");
            let unused = unused.unwrap();
            assert!(unused.contains(name) && unused.contains(why), "{unused}");
            fs::remove_file(&path).unwrap();
        };
        symlink("/dev/zero", &path).unwrap();
        check("symbolic link");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
        check("not a regular file");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        check("too large");
    }
}

/// Each is small enough, and together they are not.
#[test]
fn a_deep_chain_of_ignore_files_is_bounded() {
    let (_dir, root) = tree();
    let mut dir = root.clone();
    for _ in 0..12 {
        fs::write(dir.join(".gitignore"), "# \n".repeat(80_000)).unwrap();
        dir = dir.join("d");
        fs::create_dir(&dir).unwrap();
    }
    let (found, unused) = ours(&root);
    assert!(found.contains(&dir));
    assert!(unused.unwrap().contains("too large"));
}

#[test]
fn the_lines_before_invalid_text_and_after_a_byte_order_mark_count() {
    let (_dir, root) = tree();
    fs::write(root.join(".gitignore"), b"\xef\xbb\xbfa\nb\n\xff\nc\n").unwrap();
    for name in ["a", "b", "c"] {
        fs::write(root.join(name), "").unwrap();
    }
    assert_eq!(ours(&root).0, theirs(&root));
    assert!(!ours(&root).0.contains(&root.join("a")));
}
