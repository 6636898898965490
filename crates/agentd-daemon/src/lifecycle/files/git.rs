//! Contents that a git repository has, as they would be in a work tree. Git runs in the sandbox of the agent's tools: its
//! configuration can run programs.

use super::sandbox::{Program, ToolSandbox};
use super::worker::make;
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_core::event::{FileState, Oid};
use agentd_core::files::work::HASHED_BYTES;
use agentd_files::foreign::{self, Links};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Each argument is the top directory of a repository. The objects of argument n are in the file `in` n; an index of its
/// own gets them, and they are written to the directory `out` n as git would write them to a work tree. Then there is a file
/// `done` n. The repository may be one that the model made: no monitor and no hook of its configuration runs. Its filters do,
/// because the contents depend on them.
const SCRIPT: &str = r#"g() {
  git --no-optional-locks -c core.fsmonitor=false -c core.untrackedCache=false -c core.hooksPath=/dev/null -C "$top" "$@"
}
n=0
for top; do
  GIT_INDEX_FILE="$TMPDIR/index$n"; export GIT_INDEX_FILE
  g update-index -z --index-info <"$TMPDIR/in$n" &&
    g checkout-index -q -a --prefix="$TMPDIR/out$n/" </dev/null
  # A signal has ended git, and not yet this shell.
  [ $? -le 128 ] || exit 1
  : >"$TMPDIR/done$n"
  n=$((n+1))
done"#;

/// How long git may take for a difference: the user waits for it.
pub const TIME_OF_DIFF: Duration = Duration::from_secs(10);
/// How long git may take for a restore.
pub const TIME_OF_RESTORE: Duration = Duration::from_secs(60);

/// The longest target of a symlink.
const LONGEST_LINK: u64 = 4096;

/// The permission bits of a file from the repository, which knows only whether it is executable. If that is as in the
/// repository, the bits stay: the umask of the user, for example, decides about the others. Otherwise a command has changed
/// them, and they are git's. Bits that no checkout gives are a command's, too.
const fn permissions(mode: u32, now: Option<u32>) -> u32 {
    let of_git = match mode & 0o100 {
        0 => 0o644,
        _ => 0o755,
    };
    match now {
        Some(now) if now & 0o100 == of_git & 0o100 && now & 0o7002 == 0 => now,
        _ => of_git,
    }
}

/// The state that a path gets from the repository. The target of a symlink is found when it is written.
pub fn state(mode: u32, hash: &str, now: &FileState) -> FileState {
    let now = match now {
        FileState::File { mode, .. } => Some(*mode),
        _ => None,
    };
    FileState::File {
        mode: permissions(mode, now),
        hash: hash.to_owned(),
    }
}

/// An object, and the path of the file that had its content.
pub type Object = (Oid, String);

/// What git has of the objects that it was asked for.
#[derive(Default)]
pub struct GitContents {
    /// The contents: files in the directory. An object that git does not have is missing.
    pub files: BTreeMap<Object, PathBuf>,
    /// The objects of repositories with which git was not done in its time.
    pub late: BTreeSet<Object>,
}

/// The contents of objects.
pub async fn contents(
    sandbox: &ToolSandbox,
    dir: &Path,
    objects: Vec<Object>,
    time: Duration,
) -> Result<GitContents> {
    if objects.is_empty() {
        return Ok(GitContents::default());
    }
    if sandbox.is_ending() {
        return Err(ended());
    }
    let at = dir.join("tmp");
    let prepared = blocking(move || prepare(&at, objects)).await;
    let (tmp, groups) = prepared.map_err(|error| failed(&error))?;
    let mut args = vec!["-c".to_owned(), SCRIPT.to_owned(), "sh".to_owned()];
    args.extend(groups.iter().map(|group| group.top.clone()));
    let program = Program {
        path: PathBuf::from("/bin/sh"),
        args,
        env: BTreeMap::from([("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned())]),
        stdin: String::new(),
        tmp: tmp.clone(),
        readable: Vec::new(),
        time,
        is_own: false,
    };
    let exit = sandbox.run(dir, program).await?;
    if exit.stopped {
        // What is missing may be there: that is not recorded as a result.
        return Err(ended());
    }
    Ok(blocking(move || written(&tmp, groups)).await)
}

/// What the script has written.
fn written(tmp: &Path, groups: Vec<Group>) -> GitContents {
    let mut contents = GitContents::default();
    for (n, group) in groups.into_iter().enumerate() {
        // What a filter has written so far of a content is not the content.
        if fs::symlink_metadata(tmp.join(format!("done{n}"))).is_err() {
            contents.late.extend(group.files.into_values());
            continue;
        }
        let out = tmp.join(format!("out{n}"));
        let files = group.files.into_iter();
        let files = files.map(|(inside, object)| (object, out.join(inside)));
        contents
            .files
            .extend(files.filter(|(_, file)| open(file).is_ok()));
    }
    contents
}

/// The daemon ends, and git with it.
fn ended() -> Error {
    let what = "git was ended before it had written the contents";
    Error::new(Kind::Unavailable, what).next("try again")
}

/// Objects of one repository, at most one for each path.
struct Group {
    top: String,
    /// By their paths in the repository.
    files: BTreeMap<String, Object>,
}

/// Writes the input of the script. Returns the resolved path of the directory.
fn prepare(tmp: &Path, objects: Vec<Object>) -> io::Result<(PathBuf, Vec<Group>)> {
    make(tmp)?;
    let tmp = fs::canonicalize(tmp)?;
    let groups = groups(objects);
    for (n, group) in groups.iter().enumerate() {
        let mut lines = Vec::new();
        for (inside, (oid, _)) in &group.files {
            // A symlink, too, is written as a file with its target.
            lines.extend_from_slice(format!("100644 {} 0\t{inside}\0", oid.as_str()).as_bytes());
        }
        fs::write(tmp.join(format!("in{n}")), lines)?;
    }
    Ok((tmp, groups))
}

fn groups(objects: Vec<Object>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (oid, path) in objects {
        let Some((top, inside)) = repository(Path::new(&path)) else {
            continue;
        };
        let (top, inside) = (top.display().to_string(), inside.display().to_string());
        let fitting = |group: &&mut Group| group.top == top && !group.files.contains_key(&inside);
        match groups.iter_mut().find(fitting) {
            Some(group) => {
                group.files.insert(inside, (oid, path));
            }
            None => {
                let files = BTreeMap::from([(inside, (oid, path))]);
                groups.push(Group { top, files });
            }
        }
    }
    // A repository inside another one may be the model's: those that may take long come last.
    groups.sort_by_key(|group| Path::new(&group.top).components().count());
    groups
}

/// The top directory of the repository that a path is in, and the path relative to it.
fn repository(path: &Path) -> Option<(&Path, &Path)> {
    let mut above = path.ancestors().skip(1);
    let top = above.find(|dir| fs::symlink_metadata(dir.join(".git")).is_ok())?;
    Some((top, path.strip_prefix(top).ok()?))
}

/// Programs that git runs can replace files: no symlink is followed, a pipe is not waited for, and nothing is read that is
/// too large to be compared.
pub fn open(path: &Path) -> io::Result<File> {
    let file = foreign::open(path, Links::Refuse)?;
    match file.metadata()?.len() <= HASHED_BYTES {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The content as the target of a symlink.
pub fn link_target(path: &Path) -> io::Result<String> {
    let mut target = String::new();
    open(path)?.take(LONGEST_LINK).read_to_string(&mut target)?;
    Ok(target)
}

fn failed(error: &io::Error) -> Error {
    let what = "the contents that git has cannot be read";
    Error::new(Kind::Unavailable, what).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_that_a_command_changed_are_those_of_git() {
        for (git, now, restored) in [
            (0o100_644, Some(0o777), 0o644),
            (0o100_644, Some(0o4755), 0o644),
            (0o100_644, Some(0o666), 0o644),
            (0o100_755, Some(0o600), 0o755),
            (0o100_755, Some(0o4755), 0o755),
            // Git does not see these.
            (0o100_644, Some(0o664), 0o664),
            (0o100_644, Some(0o600), 0o600),
            (0o100_755, Some(0o700), 0o700),
            (0o100_755, None, 0o755),
            (0o100_644, None, 0o644),
        ] {
            assert_eq!(permissions(git, now), restored, "{git:o} {now:?}");
        }
    }

    #[test]
    fn two_contents_of_one_path_are_in_two_groups() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        let path = dir.path().join("a b").display().to_string();
        let oid = |digit: &str| Oid::try_from(digit.repeat(40)).unwrap();
        let objects = vec![
            (oid("1"), path.clone()),
            (oid("2"), path),
            (oid("3"), "/nowhere/a".to_owned()),
        ];
        let groups = groups(objects);
        let files = groups.iter().map(|group| group.files.len());
        assert_eq!(files.collect::<Vec<_>>(), [1, 1]);
    }

    /// The filters of a repository that the model made may run until the time is over.
    #[test]
    fn repositories_inside_others_come_last() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("aaa/inner");
        fs::create_dir_all(inner.join(".git")).unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        let oid = Oid::try_from("1".repeat(40)).unwrap();
        let objects = [inner.join("a"), dir.path().join("b")];
        let objects = objects.map(|path| (oid.clone(), path.display().to_string()));
        let groups = groups(objects.into());
        let tops: Vec<&Path> = groups.iter().map(|group| Path::new(&group.top)).collect();
        assert_eq!(tops, [dir.path(), inner.as_path()]);
    }

    #[test]
    fn what_git_was_not_done_with_is_late_and_not_missing() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = fs::canonicalize(dir.path()).unwrap();
        let oid = Oid::try_from("1".repeat(40)).unwrap();
        let group = |path: &str| Group {
            top: "/".to_owned(),
            files: BTreeMap::from([(path.to_owned(), (oid.clone(), path.to_owned()))]),
        };
        for (n, name) in ["a", "b"].iter().enumerate() {
            let out = tmp.join(format!("out{n}"));
            fs::create_dir(&out).unwrap();
            fs::write(out.join(name), "half").unwrap();
        }
        fs::write(tmp.join("done0"), "").unwrap();
        let contents = written(&tmp, vec![group("a"), group("b"), group("c")]);
        let paths = contents.files.keys().map(|(_, path)| path.as_str());
        assert_eq!(paths.collect::<Vec<_>>(), ["a"]);
        let late = contents.late.iter().map(|(_, path)| path.as_str());
        assert_eq!(late.collect::<Vec<_>>(), ["b", "c"]);
    }
}
