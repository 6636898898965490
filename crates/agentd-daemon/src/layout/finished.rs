//! What a finished one-shot agent has no use for: the layers of its caches, its lock, its socket, and directories without a file.

use super::{Layout, remove_tree};
use agentd_core::id::AgentId;
use std::fs;
use std::io;
use std::path::Path;

/// The layers of caches; see `confine/caches`.
const CACHES: [&str; 2] = ["caches", "caches-elsewhere"];
/// What such a directory is called while it is removed.
const REMOVED: &str = "removed";

impl Layout {
    /// Whether something may be left to remove: the lock goes last.
    pub fn has_runtime_lock(&self, agent: AgentId) -> bool {
        self.runtime_lock(agent).exists()
    }

    /// Removes directories without a file, and the socket of the tools. The caches get other names, for
    /// [`Self::remove_set_aside`]. False if a process runs the agent. The caller ensures that none is started, and that nothing
    /// runs in the agent's sandbox.
    pub fn set_aside(&self, agent: AgentId) -> io::Result<bool> {
        if self.holder(agent)?.is_some() {
            return Ok(false);
        }
        let dir = self.agent_dir(agent);
        for name in CACHES {
            let removed = dir.join(name).with_extension(REMOVED);
            // A killed daemon may have left it.
            gone(remove_tree(&removed))?;
            gone(fs::rename(dir.join(name), removed))?;
        }
        gone(remove_tree(&self.tool_socket_dir(agent)))?;
        for entry in entries(&dir)? {
            let path = entry?.path();
            if path.extension().is_none_or(|it| it != REMOVED) && has_no_file(&path)? {
                gone(remove_tree(&path))?;
            }
        }
        // Nothing writes to it any more.
        let log = self.runtime_log(agent);
        match fs::symlink_metadata(&log) {
            Ok(file) if file.is_file() && file.len() == 0 => gone(fs::remove_file(&log))?,
            _ => {}
        }
        Ok(true)
    }

    /// Removes the caches that were set aside. They can be large.
    pub fn remove_set_aside(&self, agent: AgentId) -> io::Result<()> {
        let dir = self.agent_dir(agent);
        for name in CACHES {
            gone(remove_tree(&dir.join(name).with_extension(REMOVED)))?;
        }
        Ok(())
    }

    /// Removes the lock of the agent's process, and the agent's directory if it is empty. The caller ensures as for
    /// [`Self::set_aside`].
    pub fn forget_process(&self, agent: AgentId) -> io::Result<()> {
        if self.holder(agent)?.is_some() {
            return Ok(());
        }
        // An error means that it has files.
        let _has_files = fs::remove_dir(self.agent_dir(agent));
        gone(fs::remove_file(self.proof(agent)))?;
        gone(fs::remove_file(self.runtime_lock(agent)))
    }
}

fn entries(dir: &Path) -> io::Result<Vec<io::Result<fs::DirEntry>>> {
    match fs::read_dir(dir) {
        Ok(entries) => Ok(entries.collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether it is a directory in which there are only directories. One that cannot be read may have a file.
fn has_no_file(path: &Path) -> io::Result<bool> {
    let mut dirs = vec![path.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = match fs::symlink_metadata(&dir)?.is_dir() {
            true => fs::read_dir(&dir),
            false => return Ok(false),
        };
        let Ok(entries) = entries else {
            return Ok(false);
        };
        for entry in entries {
            dirs.push(entry?.path());
        }
    }
    Ok(true)
}

fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_stays_and_the_rest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        layout.make().unwrap();
        let agent = AgentId::from_bytes([1; 16]);
        let at = |name: &str| layout.agent_dir(agent).join(name);
        for name in [
            "caches/upper/.npm",
            "caches/work",
            "home/.config",
            "tmp/a/b",
            "outputs",
        ] {
            layout.make_below(&at(name)).unwrap();
        }
        layout.make_below(&at("home/empty")).unwrap();
        fs::write(at("caches/upper/.npm/file"), "cached").unwrap();
        fs::write(at("home/.config/file"), "written").unwrap();
        fs::write(at("runtime.log"), "").unwrap();
        fs::write(layout.runtime_lock(agent), "").unwrap();
        layout.write_proof(agent, "digest").unwrap();
        assert!(layout.set_aside(agent).unwrap());
        assert!(
            layout.has_runtime_lock(agent),
            "killed here, it is tried again"
        );
        assert!(at("caches.removed").exists() && !at("caches").exists());
        assert!(layout.set_aside(agent).unwrap());
        layout.remove_set_aside(agent).unwrap();
        layout.forget_process(agent).unwrap();
        let left: Vec<_> = fs::read_dir(layout.agent_dir(agent)).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert!(at("home/.config/file").exists() && at("home/empty").exists());
        assert!(!layout.has_runtime_lock(agent) && !layout.proof(agent).exists());
    }
}
