//! Paths as the model gives them: found, named for rules and for people.

use super::failure::Failure;
use agentd_core::permission::Subject;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// As many links in a row as Linux follows.
const MAX_LINKS: usize = 40;

/// Where a path leads from `cwd`, without `.` and `..`. The same file is meant in the rules and in
/// what is done: `..` is taken from the text, not from where a link leads.
pub(super) fn locate(cwd: &Path, given: &str) -> Result<PathBuf, Failure> {
    if given.is_empty() {
        return Err(Failure::new("The path is empty; give the path of a file."));
    }
    if given.contains('\0') {
        return Err(Failure::new("`path` holds a NUL, which no path does."));
    }
    Ok(normalised(&cwd.join(given)))
}

fn normalised(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Where the links on the way lead, and the last one too; the end need not be there.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        match (fs::read_link(&path), path.parent()) {
            (Ok(target), Some(parent)) => path = normalised(&real(parent).join(target)),
            _ => break,
        }
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path,
    }
}

/// As people and the model are told of it: from `cwd` where it is inside.
pub(super) fn shown(cwd: &Path, path: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// What rules say something about, where a call names this path.
pub fn named(cwd: &Path, given: &str) -> Result<Vec<Subject>, Failure> {
    Ok(subjects(cwd, &locate(cwd, given)?))
}

/// What the rules are asked about: the path as given, and the file that it leads to where links make
/// that another one. A call must be allowed for both.
pub(super) fn subjects(cwd: &Path, path: &Path) -> Vec<Subject> {
    let mut given = names(cwd, path);
    let real = names(&real(cwd), &real(path));
    if real == given {
        return vec![Subject::Names(given)];
    }
    if real.first() == given.first() {
        // Only the way to `cwd` has links.
        given.extend(real);
        return vec![Subject::Names(given)];
    }
    vec![Subject::Names(given), Subject::Names(real)]
}

pub(super) fn names(cwd: &Path, path: &Path) -> Vec<String> {
    let mut names = vec![shown(cwd, path)];
    let whole = path.display().to_string();
    if names[0] != whole {
        names.push(whole);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{Subject, locate, real, shown, subjects};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn paths_are_told_from_here_and_without_detours() {
        let cwd = Path::new("/home/me/tree");
        for (given, expected) in [
            ("a", "a"),
            ("./a//b/", "a/b"),
            ("a/../b", "b"),
            ("/home/me/tree/b", "b"),
            ("../tree/b", "b"),
            ("..", "/home/me"),
            ("../../../../etc/passwd", "/etc/passwd"),
            ("/home/me/treehouse", "/home/me/treehouse"),
            (".", "."),
            ("~/a", "~/a"),
        ] {
            let path = locate(cwd, given).unwrap();
            assert_eq!(shown(cwd, &path), expected, "{given}");
        }
        assert!(locate(cwd, "").is_err());
        assert!(locate(cwd, "a\0b").is_err());
    }

    fn texts(subjects: &[Subject]) -> Vec<&str> {
        let first = subjects.iter().map(|subject| match subject {
            Subject::Names(names) => names[0].as_str(),
            Subject::Command(_) => panic!("a path"),
        });
        first.collect()
    }

    #[test]
    fn a_link_counts_as_what_it_leads_to_as_well() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(cwd.join("secrets")).unwrap();
        fs::write(cwd.join("secrets/a"), "").unwrap();
        symlink("secrets", cwd.join("link")).unwrap();
        symlink("nowhere/b", cwd.join("dangling")).unwrap();
        symlink("round", cwd.join("round")).unwrap();
        let at = |name: &str| subjects(&cwd, &cwd.join(name));
        assert_eq!(texts(&at("secrets/a")), ["secrets/a"]);
        assert_eq!(texts(&at("link/a")), ["link/a", "secrets/a"]);
        assert_eq!(texts(&at("link/new/b")), ["link/new/b", "secrets/new/b"]);
        assert_eq!(texts(&at("dangling")), ["dangling", "nowhere/b"]);
        assert_eq!(real(&cwd.join("round")), cwd.join("round"));
    }

    #[test]
    fn a_link_on_the_way_to_the_directory_makes_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("link")).unwrap();
        let cwd = base.join("link");
        let [Subject::Names(names)] = &subjects(&cwd, &cwd.join("a"))[..] else {
            panic!("one thing")
        };
        assert!(names.contains(&base.join("link/a").display().to_string()));
        assert!(names.contains(&base.join("real/a").display().to_string()));
    }
}
