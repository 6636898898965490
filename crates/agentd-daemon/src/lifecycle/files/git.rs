//! Contents that a git repository has, as they would be in a work tree. Git runs in the sandbox of the agent's tools: its
//! configuration can run programs.

use super::sandbox::{Program, ToolSandbox};
use super::worker::make;
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_core::event::{FileState, Oid};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Each argument is the top directory of a repository. The objects of argument n are in the file `in` n; an index of its
/// own gets them, and they are written to the directory `out` n as git would write them to a work tree.
const SCRIPT: &str = r#"n=0
for top; do
  GIT_INDEX_FILE="$TMPDIR/index$n"; export GIT_INDEX_FILE
  git --no-optional-locks -C "$top" update-index -z --index-info <"$TMPDIR/in$n" &&
    git --no-optional-locks -C "$top" checkout-index -q -a --prefix="$TMPDIR/out$n/" </dev/null
  n=$((n+1))
done"#;

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

/// The contents of objects: files in the directory. An object that git does not have is missing.
pub async fn contents(
    sandbox: &ToolSandbox,
    dir: &Path,
    objects: Vec<Object>,
) -> Result<BTreeMap<Object, PathBuf>> {
    if objects.is_empty() {
        return Ok(BTreeMap::new());
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
    };
    sandbox.run(dir, program).await?;
    let mut contents = BTreeMap::new();
    for (n, group) in groups.into_iter().enumerate() {
        let out = tmp.join(format!("out{n}"));
        let files = group.files.into_iter();
        contents.extend(files.map(|(inside, object)| (object, out.join(inside))));
    }
    let there = move || {
        contents.retain(|_, file| open(file).is_ok());
        contents
    };
    Ok(blocking(there).await)
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
    groups
}

/// The top directory of the repository that a path is in, and the path relative to it.
fn repository(path: &Path) -> Option<(&Path, &Path)> {
    let mut above = path.ancestors().skip(1);
    let top = above.find(|dir| fs::symlink_metadata(dir.join(".git")).is_ok())?;
    Some((top, path.strip_prefix(top).ok()?))
}

/// Programs that git runs can replace files: no symlink is followed, and a pipe is not waited for.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let file = File::from(file);
    match file.metadata()?.is_file() {
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
}
