//! Prepares the write of a restore: the contents, in files that the process in the sandbox can read.

use super::sandbox::ToolSandbox;
use super::{contents, git, reach};
use crate::daemon::AgentHandle;
use crate::error::Result;
use crate::spawn::blocking;
use agentd_core::event::{
    Body, FileBefore, FileState, FilesPlan, Position, RestoreTarget, RestoredOutcome,
};
use agentd_core::files::work::WriteFile;
use agentd_core::files::{CannotRestore, is_link};
use agentd_core::id::Seq;
use agentd_sandbox::Shared;
use agentd_store::{ReadQuery, Texts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub type Outcomes = BTreeMap<String, RestoredOutcome>;

/// Writes the contents to files that the process can read. Returns what it is to write, and the files that cannot be
/// written.
pub async fn prepare(
    handle: &AgentHandle,
    sandbox: &ToolSandbox,
    plan: &FilesPlan,
    at: &Path,
    contents_dir: &Path,
) -> Result<(Vec<WriteFile>, Outcomes)> {
    let objects = plan.files.iter().filter_map(|file| match &file.target {
        RestoreTarget::Git { oid, .. } => Some((oid.clone(), file.path.clone())),
        RestoreTarget::Kept { .. } | RestoreTarget::Mode { .. } => None,
    });
    let (at, objects) = (at.join("git"), objects.collect());
    let of_git = git::contents(sandbox, &at, objects, git::TIME_OF_RESTORE).await?;
    let paths = plan.files.iter().map(|file| file.path.clone()).collect();
    let shared = reach::of(sandbox, paths).await?;
    let mut outcomes = BTreeMap::new();
    let mut files = Vec::new();
    for (n, file) in plan.files.iter().enumerate() {
        // The agent's settings may be others than when the restore began.
        if shared.get(&file.path) != Some(&Shared::Write) {
            let why = CannotRestore::OutOfReach.text().to_owned();
            outcomes.insert(file.path.clone(), RestoredOutcome::Failed { why });
            continue;
        }
        let content = contents_dir.join(n.to_string());
        let target = match &file.target {
            // These states need no content: the plan has all of them.
            RestoreTarget::Kept {
                state: Some(target @ (FileState::Absent | FileState::Symlink { .. })),
                ..
            } => Some(Prepared {
                target: target.clone(),
                content: None,
            }),
            RestoreTarget::Kept { at, state } => {
                let kept = kept(handle, *at, &content).await?;
                kept.map(|kept| kept.with_planned(state.as_ref()))
            }
            RestoreTarget::Mode { mode, hash } => Some(Prepared {
                target: FileState::File {
                    mode: *mode,
                    hash: hash.clone(),
                },
                content: None,
            }),
            RestoreTarget::Git { oid, mode, hash } => {
                let object = (oid.clone(), file.path.clone());
                if of_git.late.contains(&object) {
                    let why = CannotRestore::GitLate.text().to_owned();
                    outcomes.insert(file.path.clone(), RestoredOutcome::Failed { why });
                    continue;
                }
                let known = of_git.files.get(&object).cloned();
                let state = of_git_state(*mode, hash, &file.expected);
                match known {
                    Some(known) => blocking(move || copied(&known, &content, state)).await,
                    None => None,
                }
            }
        };
        match target {
            Some(Prepared { target, content }) => files.push(WriteFile {
                path: file.path.clone(),
                expected: file.expected.clone(),
                target,
                content,
            }),
            None => {
                let why = "its earlier content is no longer there".to_owned();
                outcomes.insert(file.path.clone(), RestoredOutcome::Failed { why });
            }
        }
    }
    Ok((files, outcomes))
}

/// The state that a path gets, and the file with the content.
struct Prepared {
    target: FileState,
    content: Option<PathBuf>,
}

impl Prepared {
    /// The plan may give the content other permission bits than those with which it was kept.
    fn with_planned(mut self, planned: Option<&FileState>) -> Self {
        if let (FileState::File { mode, .. }, Some(FileState::File { mode: planned, .. })) =
            (&mut self.target, planned)
        {
            *mode = *planned;
        }
        self
    }
}

/// A state from the repository, and whether it is a symlink.
struct OfGit {
    state: FileState,
    is_link: bool,
}

fn of_git_state(mode: u32, hash: &str, now: &FileState) -> OfGit {
    OfGit {
        state: git::state(mode, hash, now),
        is_link: is_link(mode),
    }
}

fn copied(from: &Path, to: &Path, of_git: OfGit) -> Option<Prepared> {
    if of_git.is_link {
        let target = git::link_target(from).ok()?;
        return Some(Prepared {
            target: FileState::Symlink { target },
            content: None,
        });
    }
    let mut content = git::open(from).ok()?;
    let mut copy = std::fs::File::create(to).ok()?;
    std::io::copy(&mut content, &mut copy).ok()?;
    Some(Prepared {
        target: of_git.state,
        content: Some(to.to_owned()),
    })
}

/// A state that the journal keeps. None if it was purged.
async fn kept(handle: &AgentHandle, at: Position, to: &Path) -> Result<Option<Prepared>> {
    let before = Seq(at.seq.0.saturating_sub(1));
    let query = ReadQuery {
        texts: Texts::WithoutLong,
        ..ReadQuery::all(at.agent, before, 1)
    };
    let page = handle.daemon.store.read(query).await?;
    let Some(Body::FileKept(kept)) = page.events.into_iter().next().map(|event| event.body) else {
        return Ok(None);
    };
    let target = match kept.before {
        FileBefore::Absent => FileState::Absent,
        FileBefore::Symlink { target } => FileState::Symlink { target },
        FileBefore::File { mode, hash, .. } => {
            let is_there = contents::write(&handle.daemon, at, to).await?;
            return Ok(is_there.then(|| Prepared {
                target: FileState::File { mode, hash },
                content: Some(to.to_owned()),
            }));
        }
    };
    Ok(Some(Prepared {
        target,
        content: None,
    }))
}
