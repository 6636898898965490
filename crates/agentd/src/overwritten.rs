//! The present content of a file that a call would write as a whole, so that the user sees what changes.

use crate::attach;
use agentd_client::api::Call;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;

/// A larger file is not compared.
const MOST: u64 = 1024 * 1024;

/// The text of the file. None if there is no such file below the agent's directory, or it cannot be shown. No symbolic link
/// is followed: a tool could let one lead to a file that tools cannot read.
pub fn text(call: &Call) -> Option<String> {
    if call.tool != "write_file" {
        return None;
    }
    let dir = Path::new(call.cwd.as_deref()?);
    let path = Path::new(call.input.get("file_path").and_then(Value::as_str)?);
    let path = path.strip_prefix(dir).unwrap_or(path);
    let file = attach::below(dir, path.to_str()?)?;
    let mut text = String::new();
    let read = file.take(MOST + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MOST).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::spec::{Network, Sandbox};
    use serde_json::json;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_file_of_the_directory_is_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "old\n").unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        let call = |tool: &str, path: &str| Call {
            tool: tool.to_owned(),
            input: json!({ "file_path": path, "content": "new\n" }),
            cwd: Some(dir.path().display().to_string()),
            sandbox: Sandbox::WorkspaceWrite,
            network: Network::On,
            needs: Vec::new(),
            hash: String::new(),
        };
        let old = Some("old\n".to_owned());
        assert_eq!(text(&call("write_file", "a")), old);
        let whole = dir.path().join("a").display().to_string();
        assert_eq!(text(&call("write_file", &whole)), old);
        assert_eq!(text(&call("write_file", "link")), None);
        assert_eq!(text(&call("write_file", "/etc/passwd")), None);
        assert_eq!(text(&call("write_file", "nothing")), None);
        assert_eq!(text(&call("edit_file", "a")), None);
    }
}
