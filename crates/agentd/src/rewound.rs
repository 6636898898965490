//! A rewind of a conversation together with its files.

use crate::error::Error;
use agentd_client::Client;
use agentd_client::api::{FilesOutcome, Receipt, RestoreFiles, RestoredFiles, Rewind};
use agentd_core::id::OpId;
use serde::Serialize;

/// What was done: the conversation is not rewound if its files cannot be.
#[derive(Debug, Serialize)]
pub struct Rewound {
    #[serde(flatten)]
    pub receipt: Option<Receipt>,
    pub files: RestoredFiles,
}

/// Rewinds the conversation, and returns files to what they were there. Nothing is done if files were changed by something
/// else than the agent, unless they may be overwritten.
pub async fn with_files(
    client: &Client,
    name: &str,
    rewind: &Rewind,
    overwrite: bool,
) -> Result<Rewound, Error> {
    let trial = RestoreFiles {
        to: rewind.to.clone(),
        conversation: rewind.conversation,
        overwrite,
        dry_run: true,
        ..RestoreFiles::default()
    };
    let files = client.restore_files(name, &trial).await?;
    if files.outcome == FilesOutcome::Conflict {
        let receipt = None;
        return Ok(Rewound { receipt, files });
    }
    let receipt = client.rewind(name, rewind).await?;
    let restore = RestoreFiles {
        // The position was named in the conversation that the rewind has left.
        conversation: rewind.conversation.or(Some(receipt.old)),
        dry_run: false,
        op: rewind.op.and_then(of_files),
        ..trial
    };
    let files = client.restore_files(name, &restore).await?;
    let receipt = Some(receipt);
    Ok(Rewound { receipt, files })
}

/// The op of the restore that belongs to a rewind.
fn of_files(rewind: OpId) -> Option<OpId> {
    format!("{rewind} files").parse().ok()
}
