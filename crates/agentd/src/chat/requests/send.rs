//! Sends a prompt with the files that it names.

use super::{Target, load, paths};
use crate::chat::effect::FileNotes;
use crate::error::{Error, Exit};
use crate::{attach, keys, mentions, providers};
use agentd_client::api::{NewAttachment, Send};
use agentd_core::event::PromptMode;
use std::path::PathBuf;
use uuid::Uuid;

impl Target {
    /// Sends a prompt. `typed` is the part that the user typed, with the files that the user chose.
    pub(super) async fn send(
        &self,
        text: &str,
        (typed, chosen): (String, Vec<String>),
        mode: PromptMode,
        key: Uuid,
    ) -> Result<FileNotes, Error> {
        let resolved = mentions::resolve(&self.client, &self.id, &typed).await?;
        let mentioned = match self.cwd.clone() {
            Some(cwd) => apart(move || attach::mentioned(&cwd, &typed, &chosen)).await?,
            None => attach::Mentioned::default(),
        };
        let mut attachments = mentioned.attachments;
        attachments.extend(resolved.attachments);
        let send = Send {
            text: resolved.text.unwrap_or_else(|| text.to_owned()),
            attachments,
            // The client may have to send the prompt again after it was accepted.
            key: Some(key.to_string()),
            mode,
            notify: false,
            env: keys::env_of(&self.client, &self.id).await?,
        };
        self.client.send(&self.id, &send).await?;
        Ok(FileNotes {
            missing: mentioned.missing,
            omitted: self.omitted(&send.attachments).await,
        })
    }

    /// Warnings about files that the model does not accept. The prompt is with the daemon: if the agent cannot be read now,
    /// there are none.
    async fn omitted(&self, attachments: &[NewAttachment]) -> Vec<String> {
        if attachments.is_empty() {
            return Vec::new();
        }
        match load::agent(&self.client, &self.id).await {
            Ok(agent) => attach::omitted(attachments, &agent).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// The file that the user chose with `/attach`, as it stands in the prompt.
    pub(super) async fn locate(&self, typed: String) -> Result<String, Error> {
        let cwd = self.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
        let home = providers::variable("HOME").map(PathBuf::from);
        apart(move || attach::locate(&cwd, home.as_deref(), &typed)).await
    }

    /// The paths that complete what was typed after `/attach`.
    pub(super) async fn files(&self, typed: String) -> Vec<String> {
        let cwd = self.cwd.clone();
        let home = providers::variable("HOME").map(PathBuf::from);
        let found = tokio::task::spawn_blocking(move || {
            paths::anywhere(cwd.as_deref(), home.as_deref(), &typed)
        });
        // Without the task there is nothing to offer.
        found.await.unwrap_or_default()
    }

    /// The paths that complete what was typed after `@`.
    pub(super) async fn paths(&self, typed: String) -> Vec<String> {
        let cwd = self.cwd.clone();
        let found = tokio::task::spawn_blocking(move || paths::completing(cwd.as_deref(), &typed));
        // Without the task there is nothing to offer.
        found.await.unwrap_or_default()
    }
}

/// Reads files on a thread of its own: a slow disk must not stop the chat.
async fn apart<T: std::marker::Send + 'static>(
    read: impl FnOnce() -> Result<T, Error> + std::marker::Send + 'static,
) -> Result<T, Error> {
    let read = tokio::task::spawn_blocking(read);
    read.await
        .map_err(|_| Error::new(Exit::Failed, "the files cannot be read"))?
}
