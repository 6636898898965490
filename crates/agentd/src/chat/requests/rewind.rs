//! A rewind of the conversation, its files, or both.

use crate::chat::effect::{Change, Conflicts, FilesPlan, Parts, RewindTo};
use crate::conversation::Which;
use crate::error::{Error, Exit};
use crate::keys;
use crate::render::count;
use crate::render::files::{self, counted};
use crate::rewound::with_files;
use agentd_client::Client;
use agentd_client::api::{FilesOutcome, Receipt, Reset, RestoreFiles, RestoredFiles, Rewind};
use agentd_core::plain::quoted;

/// Time that a running turn gets to end before a rewind.
const GRACE_MS: u64 = 15_000;

/// Which files a rewind would write. If there are none, it is carried out.
pub async fn plan(client: &Client, id: &str, to: RewindTo, parts: Parts) -> Result<Change, Error> {
    let trial = RestoreFiles {
        to: to.at.clone(),
        conversation: to.conversation,
        dry_run: true,
        ..RestoreFiles::default()
    };
    let planned = client.restore_files(id, &trial).await?;
    let conflicts = match planned.outcome {
        FilesOutcome::Conflict => Conflicts::Overwrite,
        FilesOutcome::Unchanged => {
            let done = rewind(client, id, (to, parts), Conflicts::Keep).await?;
            return Ok(Change::Done(done));
        }
        _ => Conflicts::Keep,
    };
    Ok(Change::Planned(FilesPlan {
        to,
        parts,
        conflicts,
        lines: files::restored(&planned),
    }))
}

/// What was done, as a message.
pub async fn rewind(
    client: &Client,
    id: &str,
    (to, parts): (RewindTo, Parts),
    conflicts: Conflicts,
) -> Result<String, Error> {
    keys::merge_env(client, id).await?;
    let how = Reset {
        grace_ms: Some(GRACE_MS),
        ..Reset::default()
    };
    let RewindTo { at, conversation } = to;
    let overwrite = conflicts == Conflicts::Overwrite;
    match parts {
        Parts::Conversation => {
            let rewind = Rewind::new(at, conversation, how);
            let receipt = client.rewind(id, &rewind).await?;
            back(client, id, &receipt).await
        }
        Parts::Files => {
            let restore = RestoreFiles {
                to: at,
                conversation,
                overwrite,
                ..RestoreFiles::default()
            };
            restored(&client.restore_files(id, &restore).await?)
        }
        Parts::Both => {
            let rewind = Rewind::new(at, conversation, how);
            let rewound = with_files(client, id, &rewind, overwrite).await?;
            let files = match (rewound.failed, &rewound.files) {
                (Some(failed), _) => Err(failed),
                (None, Some(files)) => restored(files),
                (None, None) => Ok(String::new()),
            };
            match &rewound.receipt {
                Some(receipt) => both(back(client, id, receipt).await?, files),
                None => files,
            }
        }
    }
}

/// The conversation is back, whatever has become of the files.
fn both(back: String, files: Result<String, Error>) -> Result<String, Error> {
    match files {
        Ok(files) => Ok(format!("{back}; {files}")),
        Err(error) => Err(error.about(format!("{back}; files were not restored"))),
    }
}

async fn back(client: &Client, id: &str, receipt: &Receipt) -> Result<String, Error> {
    let new = Which::from(receipt.new).number(client, id).await;
    Ok(format!(
        "back at that turn, in conversation {new}; /undo returns"
    ))
}

fn restored(done: &RestoredFiles) -> Result<String, Error> {
    let name = done.agent.name.as_deref().unwrap_or("NAME");
    let files = count(done.files.len() as u64, "file");
    let skipped = match done.not_restored.len() {
        0 => String::new(),
        skipped => format!("; {skipped} not restored: agentd files list {name}"),
    };
    match done.outcome {
        FilesOutcome::Done | FilesOutcome::Planned => Ok(format!(
            "{}; agentd files undo {name} takes it back{skipped}",
            counted(done)
        )),
        FilesOutcome::Unchanged => Ok(format!("files are what they were{skipped}")),
        FilesOutcome::Conflict => {
            let paths: Vec<_> = done.files.iter().map(|file| quoted(&file.path)).collect();
            let what = format!("{files} in conflict; no file was written");
            let error = Error::new(Exit::Refused, what).because(paths.join(", "));
            Err(error.next("/rewind asks whether to overwrite them"))
        }
        FilesOutcome::Failed => {
            let what = "some files could not be restored";
            Err(Error::new(Exit::Failed, what).next(format!("agentd diff {name}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_that_fails_after_the_rewind_does_not_hide_the_rewind() {
        let error = Error::new(Exit::Refused, "a turn is running").next("wait");
        let error = both("back at that turn".to_owned(), Err(error)).unwrap_err();
        let failure = error.failure();
        assert_eq!(failure.error, "back at that turn; files were not restored");
        assert_eq!(failure.why, Some("a turn is running"));
        assert_eq!((failure.exit, failure.next), (3, Some("wait")));
    }
}
