//! The paths that begin with what was typed after `@`.

use crate::terminal::without_controls;
use std::path::Path;

const MOST: usize = 50;

/// Directories end with a slash. Hidden files are found if their dot was typed.
pub fn beginning(cwd: Option<&Path>, typed: &str) -> Vec<String> {
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
        let is_word = !name.contains(['"', '\n']) && without_controls(&name) == name;
        if !name.starts_with(begin) || is_hidden || !is_word {
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
}
