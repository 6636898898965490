//! The paths that complete what was typed after `@` or `/attach`.

use crate::terminal::without_controls;
use std::collections::VecDeque;
use std::path::Path;

const MOST: usize = 50;
/// How many entries of directories are looked at for a path that only resembles what was typed.
const MOST_SEEN: usize = 20_000;
/// Directories of files that programs make: a path in them is found if it is typed from its beginning.
const MADE: [&str; 6] = [
    "target",
    "node_modules",
    "__pycache__",
    "dist",
    "build",
    "venv",
];

/// The paths that begin with what was typed; if there are none, those that resemble it, best first.
pub fn completing(cwd: Option<&Path>, typed: &str) -> Vec<String> {
    let found = beginning(cwd, typed);
    match found.is_empty() && !typed.is_empty() {
        true => resembling(cwd, typed),
        false => found,
    }
}

/// The same for a path that may begin with `~/`, which stands for `home`.
pub fn anywhere(cwd: Option<&Path>, home: Option<&Path>, typed: &str) -> Vec<String> {
    match (typed.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => {
            let found = beginning(Some(home), below).into_iter();
            found.map(|path| format!("~/{path}")).collect()
        }
        _ => completing(cwd, typed),
    }
}

/// The paths below the directory that contain the typed characters in their order, best first. No symbolic link is followed.
fn resembling(cwd: Option<&Path>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut found = Vec::new();
    let mut seen = 0;
    let mut dirs = VecDeque::from([String::new()]);
    while let Some(dir) = dirs.pop_front() {
        let at = cwd.unwrap_or_else(|| Path::new(".")).join(&dir);
        // A directory that cannot be read has no paths.
        let Ok(entries) = std::fs::read_dir(at) else {
            continue;
        };
        for entry in entries.flatten() {
            seen += 1;
            let Some(name) = entry
                .file_name()
                .to_str()
                .filter(|it| is_word(it))
                .map(str::to_owned)
            else {
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{dir}{name}");
            let is_dir = entry.file_type().is_ok_and(|it| it.is_dir());
            let shown = if is_dir { format!("{path}/") } else { path };
            if let Some(rank) = rank(&typed, &shown.to_lowercase()) {
                found.push((rank, shown.clone()));
            }
            if is_dir && !MADE.contains(&name.as_str()) {
                dirs.push_back(shown);
            }
        }
        if seen > MOST_SEEN {
            break;
        }
    }
    found.sort();
    found.truncate(MOST);
    found.into_iter().map(|(_, path)| path).collect()
}

/// How well a path fits, the smallest first: the name begins with it, the name contains it, the path contains it, or all its
/// characters are there in order. Of equals, the shorter one. Both in lower case.
fn rank(typed: &str, path: &str) -> Option<(u8, usize)> {
    let whole = path.trim_end_matches('/');
    let name = whole.rsplit('/').next().unwrap_or(whole);
    let class = if name.starts_with(typed) {
        0
    } else if name.contains(typed) {
        1
    } else if whole.contains(typed) {
        2
    } else {
        let mut rest = whole.chars();
        let has_all = typed.chars().all(|c| rest.any(|it| it == c));
        has_all.then_some(3)?
    };
    Some((class, path.len()))
}

fn is_word(name: &str) -> bool {
    !name.contains(['"', '\n']) && without_controls(name) == name
}

/// Directories end with a slash. Hidden files are found if their dot was typed.
fn beginning(cwd: Option<&Path>, typed: &str) -> Vec<String> {
    let (dir, begin) = match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    let cwd = cwd.unwrap_or_else(|| Path::new("."));
    // A directory that cannot be read has no paths.
    let Ok(entries) = std::fs::read_dir(cwd.join(dir)) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_hidden = name.starts_with('.') && !begin.starts_with('.');
        if !name.starts_with(begin) || is_hidden || !is_word(&name) {
            continue;
        }
        let end = if entry.path().is_dir() { "/" } else { "" };
        found.push(format!("{dir}{name}{end}"));
    }
    found.sort();
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["src/lib.rs", "src/line.rs", "src/.git", "sub/x", "a b"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |typed: &str| beginning(Some(dir.path()), typed);
        assert_eq!(found("s"), ["src/", "sub/"]);
        assert_eq!(found("src/l"), ["src/lib.rs", "src/line.rs"]);
        assert_eq!(found("src/."), ["src/.git"]);
        assert_eq!(found("a"), ["a b"]);
        assert_eq!(found("nowhere/x"), [""; 0]);
    }

    #[test]
    fn a_path_to_attach_may_be_anywhere() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["home/my pics/a b.png", "project/a.txt"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let (home, project) = (dir.path().join("home"), dir.path().join("project"));
        let found = |typed: &str| anywhere(Some(&project), Some(&home), typed);
        assert_eq!(found("~/my"), ["~/my pics/"]);
        assert_eq!(found("~/my pics/a"), ["~/my pics/a b.png"]);
        assert_eq!(found("../home/m"), ["../home/my pics/"]);
        let whole = format!("{}/", home.display());
        assert_eq!(found(&whole), [format!("{whole}my pics/")]);
        assert_eq!(found("a"), ["a.txt"]);
    }

    #[test]
    fn without_a_path_that_begins_like_it_those_that_resemble_it_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "src/lib.rs",
            "src/deep/library.rs",
            "src/deep/lab/x-i-b.rs",
            "target/lib.rs",
            ".git/lib.rs",
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("src", dir.path().join("link")).unwrap();
        let found = |typed: &str| completing(Some(dir.path()), typed);
        assert_eq!(
            found("lib"),
            ["src/lib.rs", "src/deep/library.rs", "src/deep/lab/x-i-b.rs"]
        );
        assert_eq!(
            found("SDL"),
            [
                "src/deep/lab/",
                "src/deep/library.rs",
                "src/deep/lab/x-i-b.rs"
            ]
        );
        assert_eq!(found("s"), ["src/"]);
        assert_eq!(found("zzz"), [""; 0]);
    }
}
