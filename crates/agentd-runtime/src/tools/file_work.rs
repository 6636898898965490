//! File work: one step of a file tool, which looks at files or changes them. It is data, and so is its report, because it is
//! done in another process: in the view of the file tools, see [`FileProcesses`](super::file_process::FileProcesses).
//!
//! Without a sandbox it is done in place. On a kernel without namespaces it is done on a thread under Landlock.

use super::blocking::{Stop, broken};
use super::contents::KEPT_FILE_BYTES;
use super::context::{ToolContext, Within};
use super::escalate::Escalation;
use super::failure::{Failure, no_sandbox, said};
use super::file_process::{Lasting, NoReport};
use super::known_content::with_difference;
use agentd_core::event::FileSeen;
use agentd_core::message::{Block, CallOutcome};
use agentd_core::recover::CallFact;
use agentd_core::turn::Finished;
use agentd_process::task::Confined;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// One step of a file tool.
pub(super) trait FileWork: Serialize + DeserializeOwned + Sync {
    /// Unique among all file work.
    const NAME: &'static str;
    type Report: Serialize + DeserializeOwned + Send;

    /// Does it. `context` may be that of another process: what later calls need to know must be in the report.
    fn carry_out(&self, context: Within<'_>, stop: &Stop) -> Result<Self::Report, Failure>;
}

/// File work as a request to a process of the file tools: its name in the first line, then the work.
fn packed<W: FileWork>(work: &W) -> serde_json::Result<Vec<u8>> {
    let mut request = format!("{}\n", W::NAME).into_bytes();
    serde_json::to_writer(&mut request, work)?;
    Ok(request)
}

/// The name and the work of a request.
pub(super) fn unpacked(request: &[u8]) -> Option<(&str, &[u8])> {
    let end = request.iter().position(|byte| *byte == b'\n')?;
    let (name, work) = request.split_at_checked(end)?;
    Some((std::str::from_utf8(name).ok()?, work))
}

/// Why file work has no report.
pub(super) enum NotDone {
    /// It failed, and nothing was changed.
    Failed(Failure),
    /// The process that did it ended. What it was to change may be changed; it will not change any more.
    Lost(Failure),
}

impl From<NotDone> for Failure {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::Failed(failure) | NotDone::Lost(failure) => failure,
        }
    }
}

/// Does file work under the restrictions of the agent's tools, with what the user has approved in addition. Blocks.
pub(super) fn within<W: FileWork>(
    context: &ToolContext,
    escalation: &Escalation,
    work: &W,
    stop: &Stop,
) -> Result<W::Report, NotDone> {
    // A process that is still alive could do afterwards what is found to be not done.
    let ready = context.files.end_leftovers();
    ready.map_err(|why| {
        NotDone::Failed(Failure::new(format!(
            "The files cannot be accessed: {why}."
        )))
    })?;
    let confined = context.file_sandbox(escalation).map_err(NotDone::Failed)?;
    let within = context.under(escalation);
    let is_by_path = matches!(escalation, Escalation::Needs(_));
    let done = match &confined {
        None => work.carry_out(within, stop).map_err(NotDone::Failed),
        Some(confined) if context.files.has_views() => in_view(within, confined, work, stop),
        // What is approved may lie beside a closed directory, which Landlock cannot leave out. Each file is compared with
        // the approval, by its path without links: see [`ToolContext::check_covered`].
        Some(_) if is_by_path => work.carry_out(within, stop).map_err(NotDone::Failed),
        Some(confined) => on_thread(within, confined, work, stop),
    };
    done.map_err(|not_done| match not_done {
        NotDone::Failed(failure) => {
            let failure = with_difference(context, failure);
            NotDone::Failed(context.with_note(failure, escalation))
        }
        lost @ NotDone::Lost(_) => lost,
    })
}

fn in_view<W: FileWork>(
    within: Within<'_>,
    confined: &Confined,
    work: &W,
    stop: &Stop,
) -> Result<W::Report, NotDone> {
    let Within {
        context,
        escalation,
    } = within;
    let failed = |why: String| Failure::new(format!("The files cannot be accessed: {why}."));
    let policy = context.file_policy(escalation, confined);
    let request = packed(work);
    let request = request.map_err(|error| NotDone::Failed(failed(error.to_string())))?;
    let lasting = match escalation {
        Escalation::None => Lasting::Kept,
        Escalation::Needs(_) | Escalation::Unnamed => Lasting::OneCall,
    };
    let setup = || serde_json::to_vec(&context.setup(escalation));
    let asked = context.files.ask(&policy, lasting, setup, &request, stop);
    let report = asked.map_err(|none| match none {
        NoReport::NotAsked(why) => NotDone::Failed(failed(why)),
        NoReport::Lost(why) => NotDone::Lost(failed(why)),
    })?;
    match serde_json::from_slice::<Result<W::Report, Failure>>(&report) {
        Ok(report) => report.map_err(NotDone::Failed),
        Err(error) => Err(NotDone::Lost(failed(error.to_string()))),
    }
}

/// The kernel restricts single threads, and a restriction cannot be lifted.
fn on_thread<W: FileWork>(
    within: Within<'_>,
    confined: &Confined,
    work: &W,
    stop: &Stop,
) -> Result<W::Report, NotDone> {
    let done = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            agentd_sandbox::restrict_thread(&confined.policy).map_err(no_sandbox)?;
            work.carry_out(within, stop)
        });
        thread.join().unwrap_or_else(|_| Err(broken()))
    });
    done.map_err(NotDone::Failed)
}

/// How a call left a file: for later calls, and for the scan after the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// `None` if no other process finds the file at its path: it is in the `/tmp` of the agent's tools.
    path: Option<String>,
    /// The hash of its content; `None` if it was removed.
    content: Option<String>,
    mode: Option<u32>,
    /// The content, if it is a text and not large.
    text: Option<String>,
}

impl Left {
    /// `path` is without links.
    pub fn wrote(context: Within<'_>, path: &Path, hash: &str, text: Option<&str>) -> Self {
        let text = text.filter(|text| text.len() <= KEPT_FILE_BYTES);
        Self {
            path: shared(context, path),
            content: Some(hash.to_owned()),
            mode: mode(path),
            text: text.map(str::to_owned),
        }
    }

    pub fn removed(context: Within<'_>, path: &Path) -> Self {
        Self {
            path: shared(context, path),
            content: None,
            mode: None,
            text: None,
        }
    }

    /// The model knows this text now; the file is as it was.
    pub const fn read(hash: String, text: String) -> Self {
        Self {
            path: None,
            content: Some(hash),
            mode: None,
            text: Some(text),
        }
    }

    fn remember(self, context: &ToolContext) {
        if let (Some(hash), Some(text)) = (&self.content, &self.text) {
            context.contents.keep(hash, text.as_bytes());
        }
        let Some(path) = self.path else { return };
        match &self.content {
            Some(hash) => context.scans.wrote(Path::new(&path), hash, self.mode),
            None => context.scans.removed(Path::new(&path)),
        }
    }
}

fn shared(context: Within<'_>, path: &Path) -> Option<String> {
    context
        .shares(path)
        .then(|| path.to_str())?
        .map(str::to_owned)
}

/// The permission bits of a file.
fn mode(path: &Path) -> Option<u32> {
    let metadata = fs::symlink_metadata(path).ok()?;
    metadata
        .is_file()
        .then(|| metadata.permissions().mode() & 0o7777)
}

/// The result of a call, and how it left files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ended {
    outcome: CallOutcome,
    blocks: Vec<Block>,
    seen: Vec<FileSeen>,
    left: Vec<Left>,
}

impl Ended {
    pub fn new(finished: Finished, left: Vec<Left>) -> Self {
        Self {
            outcome: finished.outcome,
            blocks: finished.blocks,
            seen: finished.seen,
            left,
        }
    }

    /// The result, once this process remembers how the files were left.
    pub fn finish(self, context: &ToolContext) -> Finished {
        for left in self.left {
            left.remember(context);
        }
        Finished {
            seen: self.seen,
            ..Finished::new(self.outcome, self.blocks)
        }
    }
}

/// What became of a call that changes files, as the files show.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Fact {
    Ended(Ended),
    NotStarted,
    Unknown,
}

impl Fact {
    pub fn tell(self, context: &ToolContext) -> CallFact {
        match self {
            Self::Ended(ended) => CallFact::Ended(ended.finish(context)),
            Self::NotStarted => CallFact::NotStarted,
            Self::Unknown => CallFact::Unknown,
        }
    }

    /// The result of a call whose process has ended in the middle of it.
    pub fn after_loss(self, context: &ToolContext, lost: &Failure) -> Finished {
        match self {
            Self::Ended(ended) => ended.finish(context),
            Self::NotStarted => {
                let text = format!("{} Nothing was changed; repeat the call.", lost.text());
                said(CallOutcome::Error, text)
            }
            Self::Unknown => {
                let text = format!(
                    "{} Whether the files were changed is unknown; read them again.",
                    lost.text()
                );
                said(CallOutcome::Unknown, text)
            }
        }
    }
}
