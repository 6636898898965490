//! The MCP servers that a project brings: `.mcp.json` in the root of the project and in the directories below it down to
//! the working directory. A file counts once the user has trusted its content. Its values stay in memory.

use crate::layout::Layout;
use agentd_core::hook::digest;
use agentd_core::mcp::file::{self, Found};
use agentd_failpoint as failpoint;
use std::io;
use std::path::{Path, PathBuf};

pub const BELOW: &str = ".mcp.json";

/// The servers of trusted files for this working directory, and the entries that are skipped. A file further down takes
/// precedence.
pub fn servers(layout: &Layout, cwd: &Path) -> Found {
    let mut all = Found::default();
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return all;
    };
    for dir in super::dirs(&cwd).into_iter().rev() {
        let path = dir.join(BELOW);
        let bytes = match super::read(dir, Path::new(BELOW)) {
            Ok(bytes) => bytes,
            Err(error) if is_missing(&error) => continue,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "MCP servers ignored: not readable");
                continue;
            }
        };
        let is_trusted = super::trusted::is_trusted(layout, &path, &digest(&[&bytes]));
        if !is_trusted && !failpoint::injected_bug("settings_untrusted") {
            tracing::info!(path = %path.display(), "MCP servers ignored: not trusted");
            continue;
        }
        match parse(&bytes) {
            Ok(found) => {
                let path = path.display();
                for skipped in &found.skipped {
                    tracing::warn!(%path, %skipped, "MCP server ignored");
                }
                let skipped = found.skipped.iter().map(|it| format!("{path}: {it}"));
                all.skipped.extend(skipped);
                all.servers.extend(found.servers);
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "MCP servers ignored: not valid");
            }
        }
    }
    all
}

/// The files for this working directory that the user has not trusted, or not with their present content.
pub fn untrusted(layout: &Layout, cwd: &Path) -> Vec<PathBuf> {
    let Ok(cwd) = std::fs::canonicalize(cwd) else {
        return Vec::new();
    };
    let dirs = super::dirs(&cwd).into_iter();
    let found = dirs.filter_map(|dir| {
        let bytes = super::read(dir, Path::new(BELOW)).ok()?;
        let path = dir.join(BELOW);
        let is_trusted = super::trusted::is_trusted(layout, &path, &digest(&[&bytes]));
        (!is_trusted).then_some(path)
    });
    found.collect()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The servers in a project's file, or what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Found, String> {
    file::parse(&String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::trusted;
    use std::fs;

    #[test]
    fn a_file_counts_while_its_content_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let layout = Layout::new(root.join("state"));
        layout.make().unwrap();
        let work = root.join("work");
        fs::create_dir_all(work.join(".git")).unwrap();
        let path = work.join(BELOW);
        let text = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
        fs::write(&path, text).unwrap();
        assert_eq!(servers(&layout, &work), Found::default());
        assert_eq!(untrusted(&layout, &work), std::slice::from_ref(&path));
        let hash = digest(&[text.as_bytes()]);
        let all = [(path.display().to_string(), hash)].into_iter().collect();
        trusted::write(&layout, &all).unwrap();
        let found = servers(&layout, &work).servers;
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
        assert!(untrusted(&layout, &work).is_empty());
        fs::write(&path, text.replace('x', "y")).unwrap();
        assert_eq!(servers(&layout, &work), Found::default());
    }
}
