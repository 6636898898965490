//! File tools change an existing file only if the model knows its present content, which is recorded in the journal: see
//! [`SeenFiles`].

use super::contents::{KEPT_FILE_BYTES, MAX_KNOWN_BYTES, id};
use super::context::ToolContext;
use super::escalate::Escalation;
use super::failure::{Failure, Stale};
use super::output::number;
use super::replace::Target;
use agentd_core::window::SeenFiles;
use agentd_failpoint as failpoint;
use agentd_files::foreign::{self, Links};
use similar::TextDiff;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// How much of a difference is shown.
const SHOWN_BYTES: usize = 4000;
/// After this time a coarser difference is shown.
const DIFF_TIME: Duration = Duration::from_millis(300);
/// Unchanged lines that are shown around a change.
const AROUND: usize = 2;

const NO_DIFFERENCE: &str = "The difference cannot be shown.";

/// A change of an existing file that a call wants.
pub(super) struct Wanted<'a> {
    pub context: &'a ToolContext,
    pub target: &'a Target,
    /// The hash of the file's present content.
    pub now: &'a str,
    pub seen: &'a SeenFiles,
    pub escalation: &'a Escalation,
}

impl Wanted<'_> {
    /// Refuses the change if the model knows another content than the present one.
    pub fn check_unchanged(&self) -> Result<(), Failure> {
        if failpoint::injected_bug("files_unread") {
            return Ok(());
        }
        match self.known() {
            Some(known) if known != self.now => Err(self.changed(known)),
            _ => Ok(()),
        }
    }

    /// Refuses the change if the model does not know the present content.
    pub fn check(&self) -> Result<(), Failure> {
        if failpoint::injected_bug("files_unread") {
            return Ok(());
        }
        let name = &self.target.name;
        match self.known() {
            Some(known) if known == self.now => Ok(()),
            Some(known) => Err(self.changed(known)),
            // The user has seen the call, and read_file cannot leave the sandbox.
            None if !self.escalation.is_none() && self.context.is_confined() => Ok(()),
            None if self.size() > MAX_KNOWN_BYTES => Err(Failure::new(format!(
                "{name} exists and has more than {} bytes, so you cannot know its content; nothing was written. \
                 To replace it, remove it with shell first.",
                number(MAX_KNOWN_BYTES)
            ))),
            None => Err(Failure::new(format!(
                "{name} exists, and you have not read it in this conversation; nothing was written. Read it with \
                 read_file first, then repeat the call."
            ))),
        }
    }

    fn known(&self) -> Option<&str> {
        self.seen.content_of(&id(&self.target.path))
    }

    fn changed(&self, known: &str) -> Failure {
        let stale = Stale {
            name: self.target.name.clone(),
            known: known.to_owned(),
            now: short_text(&self.target.path),
        };
        Failure::stale(has_changed(&stale.name, NO_DIFFERENCE), stale)
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.target.path).map_or(0, |metadata| metadata.len())
    }
}

fn has_changed(name: &str, difference: &str) -> String {
    format!(
        "{name} has changed since you last read or wrote it, for example by a command or by the user; nothing was \
         written. {difference}\nRead the file again, then repeat your change if it is still right."
    )
}

/// Tells how a file has changed since the model read it, if that is the reason of the failure.
pub(super) fn with_difference(context: &ToolContext, failure: Failure) -> Failure {
    match failure.as_stale() {
        Some(stale) => Failure::new(has_changed(&stale.name, &what_changed(context, stale))),
        None => failure,
    }
}

fn what_changed(context: &ToolContext, stale: &Stale) -> String {
    let old = context.contents.get(&stale.known);
    let (Some(old), Some(new)) = (old, &stale.now) else {
        return NO_DIFFERENCE.to_owned();
    };
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(&*old, new.as_str());
    let diff = diff
        .unified_diff()
        .context_radius(AROUND)
        .header("the content that you know", "the content now")
        .to_string();
    // Secrets are redacted before the text is cut: a part of one would not be recognised.
    let diff = context.secrets.redact(&diff);
    let shown = &diff[..diff.floor_char_boundary(SHOWN_BYTES)];
    match shown.len() < diff.len() {
        false => format!("What changed:\n{}", shown.trim_end()),
        true => {
            let whole_lines = shown.rfind('\n').map_or(shown, |end| &shown[..end]);
            format!("The beginning of what changed:\n{whole_lines}\n…")
        }
    }
}

/// The content of a text file, unless it is large.
fn short_text(path: &Path) -> Option<String> {
    foreign::read_text(path, Links::Follow, KEPT_FILE_BYTES as u64).ok()
}

#[cfg(test)]
mod tests;
