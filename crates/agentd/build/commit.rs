//! The commit that is checked out, read from the files of git: the program `git` may be missing, or refuse a directory of
//! another user.

use std::fs;
use std::path::{Path, PathBuf};

/// How much of a commit's id is shown.
const SHOWN: usize = 12;

#[derive(Debug, PartialEq, Eq)]
pub struct Commit {
    /// In hexadecimal digits, all of them.
    pub id: String,
    /// The files of which one changes when another commit is checked out.
    pub watched: Vec<PathBuf>,
}

/// None where there is no repository, or one in a format that is unknown here.
pub fn find(root: &Path) -> Option<Commit> {
    let dir = git_dir(root)?;
    // A linked worktree has a HEAD of its own, and shares the branches.
    let shared = match read(&dir.join("commondir")) {
        Some(path) => dir.join(path),
        None => dir.clone(),
    };
    let head = dir.join("HEAD");
    let text = read(&head)?;
    let Some(branch) = text.strip_prefix("ref: ") else {
        return commit(&text, vec![head]);
    };
    let loose = shared.join(branch);
    if let Some(id) = read(&loose) {
        return commit(&id, vec![head, loose]);
    }
    let packed = shared.join("packed-refs");
    let all = read(&packed)?;
    let id = all.lines().find_map(|line| {
        let (id, name) = line.split_once(' ')?;
        (name == branch).then_some(id)
    });
    // The next commit on a packed branch changes neither HEAD nor this file, but the log of HEAD. A file that is missing
    // counts as changed each time.
    let mut watched = vec![head, packed];
    watched.extend(Some(dir.join("logs/HEAD")).filter(|path| path.is_file()));
    commit(id?, watched)
}

/// What is in parentheses after the version.
pub fn described(commit: Option<&str>, seconds: u64) -> String {
    let commit = match commit.and_then(|id| id.get(..SHOWN)) {
        Some(id) => format!("commit {id}"),
        None => "commit unknown: built without git".to_owned(),
    };
    format!("{commit}, {}", date(seconds))
}

/// The directory, or what the file of a linked worktree says.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = read(&git)?;
    Some(root.join(text.strip_prefix("gitdir: ")?))
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}

fn commit(id: &str, watched: Vec<PathBuf>) -> Option<Commit> {
    let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Commit {
        id: id.to_owned(),
        watched,
    })
}

/// The day in UTC, as `2026-11-17`. Years are counted from March, so that a leap day is the last day of its year.
fn date(seconds: u64) -> String {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    const FROM_0000_03_01_TO_1970: u64 = 719_468;
    let days = seconds / 86_400 + FROM_0000_03_01_TO_1970;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn repository() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join(".git/HEAD"), "ref: refs/heads/main\n");
        root
    }

    #[test]
    fn the_commit_of_a_branch_is_found_and_its_files_are_watched() {
        let root = repository();
        let git = root.path().join(".git");
        assert_eq!(find(root.path()), None, "a branch without a commit");
        write(&git.join("refs/heads/main"), &format!("{ONE}\n"));
        let found = find(root.path()).unwrap();
        assert_eq!(found.id, ONE);
        assert_eq!(
            found.watched,
            [git.join("HEAD"), git.join("refs/heads/main")]
        );
        write(&git.join("HEAD"), &format!("{TWO}\n"));
        let detached = find(root.path()).unwrap();
        assert_eq!(
            (detached.id.as_str(), detached.watched),
            (TWO, vec![git.join("HEAD")])
        );
    }

    #[test]
    fn a_packed_branch_is_found_and_only_files_that_exist_are_watched() {
        let root = repository();
        let git = root.path().join(".git");
        let packed =
            format!("# pack-refs\n{TWO} refs/heads/main-2\n{ONE} refs/heads/main\n^{TWO}\n");
        write(&git.join("packed-refs"), &packed);
        let found = find(root.path()).unwrap();
        assert_eq!(found.id, ONE);
        assert_eq!(found.watched, [git.join("HEAD"), git.join("packed-refs")]);
        write(&git.join("logs/HEAD"), "");
        let found = find(root.path()).unwrap();
        assert_eq!(found.watched.last(), Some(&git.join("logs/HEAD")));
    }

    #[test]
    fn a_linked_worktree_has_its_own_head_and_shared_branches() {
        let root = repository();
        let git = root.path().join(".git");
        write(&git.join("refs/heads/side"), TWO);
        let own = git.join("worktrees/w");
        write(&own.join("HEAD"), "ref: refs/heads/side\n");
        write(&own.join("commondir"), "../..\n");
        let worktree = root.path().join("w");
        write(&worktree.join(".git"), "gitdir: ../.git/worktrees/w\n");
        assert_eq!(find(&worktree).map(|found| found.id).as_deref(), Some(TWO));
    }

    #[test]
    fn without_git_the_version_says_so() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(find(root.path()), None);
        assert_eq!(
            described(None, 0),
            "commit unknown: built without git, 1970-01-01"
        );
        assert_eq!(
            described(Some(ONE), 1_795_000_000),
            "commit 111111111111, 2026-11-18"
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (86_399, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), expected, "{seconds}");
        }
    }
}
