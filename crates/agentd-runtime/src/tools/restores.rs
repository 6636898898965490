//! What restores of files left: a scan does not take it for a change by commands.

use super::scans::LeftFile;
use agentd_core::event::{
    FileState, FilesPlan, FilesRestored, PlannedFile, RestoreTarget, RestoredOutcome,
};
use agentd_core::files::is_link;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The plan of the restore that has begun.
#[derive(Debug, Default)]
pub(super) struct Restores(Mutex<Option<FilesPlan>>);

impl Restores {
    pub fn began(&self, plan: &FilesPlan) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan.clone());
    }

    /// The paths that a restore has written, with how it left them; `None` if that is not known.
    pub fn ended(&self, restored: &FilesRestored) -> Vec<(PathBuf, Option<LeftFile>)> {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plan) = plan.take_if(|plan| plan.op == restored.op) else {
            return Vec::new();
        };
        let files = restored.files.iter();
        let written = files.filter(|file| file.outcome == RestoredOutcome::Restored);
        let written: BTreeSet<&str> = written.map(|file| file.path.as_str()).collect();
        let planned = plan.files.into_iter();
        let planned = planned.filter(|file| written.contains(file.path.as_str()));
        planned.map(left_by).collect()
    }
}

fn left_by(file: PlannedFile) -> (PathBuf, Option<LeftFile>) {
    let content = |hash, mode| {
        Some(LeftFile {
            content: Some(hash),
            mode,
        })
    };
    let left = match file.target {
        RestoreTarget::Kept { state, .. } => match state {
            Some(FileState::File { mode, hash }) => content(hash, Some(mode)),
            Some(FileState::Absent) => Some(LeftFile {
                content: None,
                mode: None,
            }),
            Some(FileState::Symlink { .. }) | None => None,
        },
        RestoreTarget::Git { mode, .. } if is_link(mode) => None,
        // Git's mode has only one bit that counts.
        RestoreTarget::Git { hash, .. } => content(hash, None),
        RestoreTarget::Mode { mode, hash } => content(hash, Some(mode)),
    };
    (PathBuf::from(file.path), left)
}
