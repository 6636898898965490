//! The directories of restores of files that are in progress.

use super::Layout;
use agentd_core::digest::sha256;
use agentd_core::id::{AgentId, OpId};
use std::path::PathBuf;

impl Layout {
    fn restores(&self) -> PathBuf {
        self.home().join("restores")
    }

    /// Two agents may have restores with the same op. An op can be any text: the directory has the name of a digest.
    pub fn restore_dir(&self, agent: AgentId, op: OpId) -> PathBuf {
        let mut of = agent.as_bytes().to_vec();
        of.extend_from_slice(op.as_bytes());
        self.restores().join(sha256(&of))
    }

    /// The directories of all restores.
    pub fn all_restores(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.restores());
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restores_of_two_agents_with_one_op_have_two_directories() {
        let layout = Layout::new("/home");
        let op = OpId::from_bytes([1; 16]);
        let dir = |n| layout.restore_dir(AgentId::from_bytes([n; 16]), op);
        assert_eq!(dir(1), dir(1));
        assert_ne!(dir(1), dir(2));
    }
}
