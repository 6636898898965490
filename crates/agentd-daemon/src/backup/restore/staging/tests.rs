//! Restores into directories that exist, that are cut off at each step, or that find files of others.

use super::*;

/// What is in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let mut names = names_in(dir).unwrap();
    names.sort();
    names
}

/// A restore that has built its home.
fn built(home: &Path) -> Staging {
    let staging = Staging::create(home).unwrap();
    for name in ["config.toml", JOURNAL] {
        fs::write(staging.dir().join(name), name).unwrap();
    }
    fs::create_dir(staging.dir().join("agents")).unwrap();
    fs::write(staging.dir().join("agents/x"), "x").unwrap();
    staging
}

/// Leaves everything as a kill would.
fn killed(mut staging: Staging) {
    staging.is_home = true;
}

#[test]
fn a_home_that_exists_keeps_its_directory_and_one_that_does_not_is_created() {
    use std::os::unix::fs::MetadataExt as _;
    let root = tempfile::tempdir().unwrap();
    let (there, new) = (root.path().join("there"), root.path().join("new"));
    fs::create_dir(&there).unwrap();
    fs::create_dir(there.join(LOST_AND_FOUND)).unwrap();
    let inode = || fs::metadata(&there).unwrap().ino();
    let before = inode();
    for home in [&there, &new] {
        let mut staging = built(home);
        staging.become_home().unwrap();
        drop(staging);
        assert_eq!(fs::read(home.join("agents/x")).unwrap(), b"x");
    }
    assert_eq!(inode(), before);
    assert_eq!(names(&new), ["agents", "config.toml", JOURNAL]);
    assert_eq!(
        names(&there),
        ["agents", "config.toml", JOURNAL, LOST_AND_FOUND]
    );
    assert_eq!(names(root.path()), ["new", "there"]);
}

#[test]
fn a_restore_that_fails_leaves_an_empty_directory_empty() {
    let root = tempfile::tempdir().unwrap();
    drop(built(root.path()));
    assert_eq!(names(root.path()), [""; 0]);
}

/// Where a restore is killed.
#[derive(Debug)]
enum Killed {
    BeforeMoves,
    /// When it comes to one of these names.
    AtMoveOf(&'static [&'static str]),
    AfterMoves,
}

/// At each step, the directory is marked, and the next restore begins again.
#[test]
fn a_restore_that_was_killed_can_be_repeated() {
    let all = ["agents", "config.toml", JOURNAL];
    for at in [
        Killed::BeforeMoves,
        Killed::AtMoveOf(&["agents", "config.toml", JOURNAL]),
        Killed::AtMoveOf(&["agents"]),
        Killed::AtMoveOf(&["config.toml"]),
        Killed::AtMoveOf(&[JOURNAL]),
        Killed::AfterMoves,
    ] {
        let root = tempfile::tempdir().unwrap();
        let home = root.path();
        let mut staging = built(home);
        match at {
            Killed::BeforeMoves => {}
            Killed::AtMoveOf(names) => {
                let paths: Vec<PathBuf> = names.iter().map(|name| home.join(name)).collect();
                for path in &paths {
                    fs::write(path, "in the way").unwrap();
                }
                let stopped = staging.become_home();
                assert!(matches!(stopped, Err(Error::HomeNotEmpty { .. })));
                for path in &paths {
                    fs::remove_file(path).unwrap();
                }
            }
            Killed::AfterMoves => staging.move_up().unwrap(),
        }
        killed(staging);
        assert!(mark(home).exists(), "{at:?}");
        let mut again = built(home);
        again.become_home().unwrap();
        assert_eq!(names(home), all, "{at:?}");
    }
}

/// Regression: the mark stayed when the disk was full, and no daemon started in an empty directory.
#[test]
fn a_mark_that_could_not_be_locked_is_removed_unless_another_restore_has_it() {
    let root = tempfile::tempdir().unwrap();
    let (home, mark) = (root.path(), mark(root.path()));
    let busy = Error::HomeBusy {
        home: home.to_owned(),
    };
    let full = Error::io(&mark)(io::ErrorKind::StorageFull.into());
    // The disk was full before the file of the lock was created, or the file system has no locks.
    let cases: [&[&str]; 2] = [&[], &[LOCK]];
    for left in cases {
        fs::create_dir(&mark).unwrap();
        for name in left {
            fs::write(mark.join(name), "").unwrap();
        }
        remove_unlocked(&mark, &busy);
        assert_eq!(names(&mark), left);
        remove_unlocked(&mark, &full);
        assert_eq!(names(home), [""; 0]);
    }
}

#[test]
fn files_of_others_stay_also_beside_a_restore_that_was_killed() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path();
    let staging = built(home);
    write_moves(&mark(home), &[JOURNAL.to_owned()]).unwrap();
    killed(staging);
    // Not moved: the restore has its own.
    fs::write(home.join(JOURNAL), "of another program").unwrap();
    let refused = Staging::create(home);
    assert!(matches!(refused, Err(Error::HomeNotEmpty { .. })));
    assert_eq!(names(home), [JOURNAL]);
}

#[test]
fn a_name_that_is_taken_meanwhile_is_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path();
    let mut staging = built(home);
    fs::write(home.join(JOURNAL), "of another program").unwrap();
    let refused = staging.become_home();
    assert!(matches!(refused, Err(Error::HomeNotEmpty { .. })));
    drop(staging);
    assert_eq!(names(home), [JOURNAL]);
    let left = fs::read_to_string(home.join(JOURNAL)).unwrap();
    assert_eq!(left, "of another program");
}

#[test]
fn two_restores_do_not_share_a_home() {
    let root = tempfile::tempdir().unwrap();
    let first = built(root.path());
    let refused = Staging::create(root.path());
    assert!(matches!(refused, Err(Error::HomeBusy { .. })));
    drop(first);
    drop(built(root.path()));
}
