//! What became of a call that replaces the content of one file, as the file shows.

use super::blocking::{self, Stop};
use super::context::{ToolContext, Within};
use super::escalate::Escalation;
use super::failure::Failure;
use super::file_work::{Ended, Fact, FileWork, Left, within};
use super::output::number;
use super::replace::Target;
use agentd_core::event::FileChange;
use agentd_core::id::CallId;
use agentd_core::recover::CallFact;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A call that an earlier process began.
#[derive(Serialize, Deserialize)]
pub(super) struct Replaced {
    /// As the call names it.
    pub path: String,
    pub call: CallId,
    pub change: FileChange,
    pub said: Summary,
}

/// What the result of a call says.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) enum Summary {
    Wrote { length: usize },
    Edited,
}

impl Summary {
    pub fn of(self, name: &str, change: &FileChange) -> String {
        let length = match self {
            Self::Edited => return format!("Edited {name}."),
            Self::Wrote { length } => number(length as u64),
        };
        match &change.before {
            None => format!("Wrote {length} bytes to {name}, a new file."),
            Some(before) if *before == change.after => {
                format!("{name} already has this content ({length} bytes).")
            }
            Some(_) => format!("Wrote {length} bytes to {name}."),
        }
    }
}

impl FileWork for Replaced {
    const NAME: &'static str = "replaced";
    type Report = Fact;

    fn carry_out(&self, context: Within<'_>, _stop: &Stop) -> Result<Fact, Failure> {
        let target = Target::of(context, &self.path)?;
        // The temporary file may exist, and is not needed any more.
        target.remove_unready(&self.call);
        let now = target.hash()?;
        let change = &self.change;
        Ok(if now.as_ref() == Some(&change.after) {
            let text = self.said.of(&target.name, change);
            // The scan after the turn must not take it for the change of a command.
            let left = Left::wrote(context, &target.path, &change.after, None);
            Fact::Ended(Ended::new(target.written(change, text), vec![left]))
        } else if now == change.before {
            Fact::NotStarted
        } else {
            Fact::Unknown
        })
    }
}

/// The outcome of a call that an earlier process began.
pub(super) async fn fact<W: FileWork<Report = Fact> + Send + 'static>(
    context: Arc<ToolContext>,
    escalation: Escalation,
    work: W,
) -> CallFact {
    let looked = blocking::whole(move || {
        let fact = within(&context, &escalation, &work, &Stop::default());
        fact.map(|fact| fact.tell(&context))
    });
    match looked.await {
        Ok(Ok(fact)) => fact,
        _ => CallFact::Unknown,
    }
}
