//! A rewind of a conversation together with its files.

use crate::error::Error;
use agentd_client::Client;
use agentd_client::api::{FilesOutcome, Receipt, RestoreFiles, RestoredFiles, Rewind};
use agentd_core::id::OpId;
use serde::Serialize;

/// What was done. The conversation is not rewound if its files are in conflict.
#[derive(Debug, Serialize)]
pub struct Rewound {
    #[serde(flatten)]
    pub receipt: Option<Receipt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<RestoredFiles>,
    /// Why files were not restored after the rewind, for example because a turn has begun in between.
    #[serde(skip)]
    pub failed: Option<Error>,
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
        return Ok(Rewound {
            receipt: None,
            files: Some(files),
            failed: None,
        });
    }
    let receipt = client.rewind(name, rewind).await?;
    let restore = RestoreFiles {
        // The position was named in the conversation that the rewind has left.
        conversation: rewind.conversation.or(Some(receipt.old)),
        dry_run: false,
        op: rewind.op.and_then(of_files),
        ..trial
    };
    let restored = client.restore_files(name, &restore).await;
    Ok(rewound(name, &rewind.to, receipt, restored))
}

/// The conversation is rewound, whatever has become of the files: the receipt is not dropped.
fn rewound(
    name: &str,
    to: &str,
    receipt: Receipt,
    restored: Result<RestoredFiles, agentd_client::Error>,
) -> Rewound {
    let (files, failed) = match restored {
        Ok(files) => (Some(files), None),
        Err(error) => {
            let conversation = receipt.old;
            let next =
                format!("agentd files restore {name} --to {to} --conversation {conversation}");
            (None, Some(Error::from(error).next(next)))
        }
    };
    Rewound {
        receipt: Some(receipt),
        files,
        failed,
    }
}

/// The op of the restore that belongs to a rewind.
fn of_files(rewind: OpId) -> Option<OpId> {
    format!("{rewind} files").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_client::{Kind, Problem};
    use agentd_core::id::ConversationId;
    use agentd_core::reset::Killed;
    use serde_json::json;

    /// A turn may begin between the rewind and the restore.
    #[test]
    fn the_receipt_stays_if_the_restore_is_refused() {
        let receipt: Receipt = serde_json::from_value(json!({
            "op": OpId::from_bytes([1; 16]),
            "old": ConversationId::from_bytes([2; 16]),
            "new": ConversationId::from_bytes([3; 16]),
            "killed": Killed::default(),
            "kept": [],
            "set_aside": [],
            "hooks": [],
            "undo": "agentd reset coder --undo",
        }))
        .unwrap();
        let problem = Problem::new(Kind::Conflict, "a turn of `coder` is running");
        let refused = Err(agentd_client::Error::Problem(Box::new(problem)));
        let old = receipt.old;
        let rewound = rewound("coder", "1", receipt, refused);
        let printed = serde_json::to_value(&rewound).unwrap();
        assert_eq!(printed["old"], old.to_string());
        assert!(printed.get("files").is_none(), "{printed}");
        let failed = rewound.failed.unwrap();
        assert_eq!(failed.code(), 3);
        assert_eq!(failed.failure().error, "a turn of `coder` is running");
        let next = format!("agentd files restore coder --to 1 --conversation {old}");
        assert_eq!(failed.advice(), Some(next.as_str()));
    }
}
