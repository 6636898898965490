//! What the context learns from the journal.

use super::ToolContext;
use agentd_core::event::Body;

impl ToolContext {
    /// Follows the journal.
    pub fn recorded(&self, body: &Body) {
        match body {
            Body::FilesPlan(plan) => self.restores.began(plan),
            Body::FilesRestored(restored) => {
                for (path, left) in self.restores.ended(restored) {
                    self.scans.restored(&path, left);
                }
            }
            Body::ToolEnded(_) | Body::TaskEnded(_) => self.ended_tasks.count(),
            _ => {}
        }
    }
}
