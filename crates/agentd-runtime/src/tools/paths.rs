//! Paths as the model gives them: resolving them, and naming them for rules and for display.

use super::failure::Failure;
use agentd_core::lexical_path::normalised;
use agentd_core::message::{Arguments, ToolCall};
use agentd_core::patch::{self, Patch};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The number of symbolic links that Linux follows for one path.
const MAX_LINKS: usize = 40;

/// The absolute path, without `.` and `..`. The rules and the tools must mean the same file, so `..` is removed from
/// the text, not resolved through links.
pub(super) fn locate(cwd: &Path, given: &str) -> Result<PathBuf, Failure> {
    if given.is_empty() {
        return Err(Failure::new("The path is empty; give a path."));
    }
    if given.contains('\0') {
        return Err(Failure::new("The path contains a NUL byte."));
    }
    Ok(normalised(&cwd.join(given)))
}

/// The paths that a call of any tool names.
pub(super) fn named_by(cwd: &Path, call: &ToolCall) -> Vec<PathBuf> {
    let Arguments::Object(arguments) = &call.arguments else {
        return Vec::new();
    };
    let names = ["file_path", "path", "cwd", "workdir"].into_iter();
    let given = names.filter_map(|name| arguments.get(name)?.as_str());
    let input = arguments.get("input").and_then(Value::as_str);
    let patch = input.filter(|_| call.name == patch::TOOL);
    let patch = patch.and_then(|input| Patch::parse(input).ok());
    let patched = patch.iter().flat_map(Patch::paths);
    let given = given.chain(patched);
    given.filter_map(|given| locate(cwd, given).ok()).collect()
}

/// The path with all links resolved, the last component included; the last components need not exist.
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

/// The path for display: relative to `cwd` if it is inside.
pub(super) fn shown(cwd: &Path, path: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// The names of a file for the rules: those of the path as given, and those of the resolved path if links make it a different
/// one. A call must be allowed for both.
pub(super) fn names_of_file(cwd: &Path, path: &Path) -> Vec<Vec<String>> {
    let mut given = names(cwd, path);
    let real = names(&real(cwd), &real(path));
    if real == given {
        return vec![given];
    }
    if real.first() == given.first() {
        // Only the path of `cwd` itself contains links.
        given.extend(real);
        return vec![given];
    }
    vec![given, real]
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
    use super::{locate, names_of_file, real, shown};
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

    fn texts(files: &[Vec<String>]) -> Vec<&str> {
        files.iter().map(|names| names[0].as_str()).collect()
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
        let at = |name: &str| names_of_file(&cwd, &cwd.join(name));
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
        let [names] = &names_of_file(&cwd, &cwd.join("a"))[..] else {
            panic!("one thing")
        };
        assert!(names.contains(&base.join("link/a").display().to_string()));
        assert!(names.contains(&base.join("real/a").display().to_string()));
    }
}
