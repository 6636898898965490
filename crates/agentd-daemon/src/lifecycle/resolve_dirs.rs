//! Where an agent's directories really are is decided when its settings are made, before any of its tools runs. The
//! settings then name them without symbolic links, and a link that appears later is an error: another agent's tool may
//! have put it there.

use crate::confine::expanded;
use agentd_core::spec::AgentSpec;
use std::fs;
use std::path::{Path, PathBuf};

/// Replaces the working directory and `writable` by what they lead to. What `before` has too stays as it was decided,
/// and a directory that does not exist stays as it is given.
pub async fn resolve_dirs(
    mut spec: AgentSpec,
    before: Option<&AgentSpec>,
    home: Option<String>,
) -> AgentSpec {
    let (cwd, writable) = match before {
        Some(before) => (before.cwd.clone(), before.writable.clone()),
        None => (None, Vec::new()),
    };
    // The file system may be slow.
    let resolved = tokio::task::spawn_blocking(move || {
        let home = home.map(PathBuf::from);
        if spec.cwd != cwd {
            spec.cwd = spec.cwd.map(|given| resolve(given, None));
        }
        for given in &mut spec.writable {
            if !writable.contains(given) {
                *given = resolve(std::mem::take(given), home.as_deref());
            }
        }
        spec
    });
    match resolved.await {
        Ok(spec) => spec,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The path without links. Without any, it stays as it is written: `~/notes`.
fn resolve(given: String, home: Option<&Path>) -> String {
    let path = expanded(&given, home);
    match fs::canonicalize(&path) {
        Ok(real) if real != path => real.into_os_string().into_string().unwrap_or(given),
        _ => given,
    }
}

#[cfg(test)]
mod tests {
    use super::resolve_dirs;
    use agentd_core::spec::AgentSpec;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn spec(dir: &Path, cwd: &str, writable: &[&str]) -> AgentSpec {
        AgentSpec {
            cwd: Some(dir.join(cwd).display().to_string()),
            writable: writable.iter().map(|path| (*path).to_owned()).collect(),
            ..AgentSpec::default()
        }
    }

    #[tokio::test]
    async fn a_link_is_followed_once_when_the_settings_are_made() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        for dir in ["tree", "home/notes", "home/other"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        symlink("tree", root.join("link")).unwrap();
        symlink("other", root.join("home/linked")).unwrap();
        let home = Some(root.join("home").display().to_string());
        let given = spec(&root, "link", &["~/notes", "~/linked", "~/none"]);
        let made = resolve_dirs(given.clone(), None, home.clone()).await;
        let other = root.join("home/other").display().to_string();
        let expected = spec(&root, "tree", &["~/notes", other.as_str(), "~/none"]);
        assert_eq!(made, expected);
        // What was decided is not decided again with other settings.
        fs::rename(root.join("tree"), root.join("moved")).unwrap();
        symlink("home", root.join("tree")).unwrap();
        let again = resolve_dirs(made.clone(), Some(&made), home.clone()).await;
        assert_eq!(again, made);
        let changed = resolve_dirs(given, Some(&made), home).await;
        assert_eq!(changed.cwd, spec(&root, "home", &[]).cwd);
    }
}
