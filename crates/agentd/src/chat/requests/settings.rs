//! The settings of the agent, and the commands that its files and skills add.

use super::Target;
use crate::chat::command_files;
use crate::chat::commands::Own;
use crate::chat::effect::Change;
use crate::error::Error;
use crate::keys;
use crate::providers;
use agentd_core::spec::AgentSpec;
use std::path::PathBuf;

impl Target {
    /// The commands of files, and the skills.
    pub async fn commands(&self) -> Vec<Own> {
        let home = providers::variable("HOME").map(PathBuf::from);
        let mut own = command_files::read(home.as_deref(), self.cwd.as_deref());
        let context = self.client.context(&self.id).await;
        let skills = context.map(|context| context.skills).unwrap_or_default();
        own.extend(skills.iter().map(|it| Own::skill(&it.name, &it.path)));
        own
    }

    /// Changes the settings of the agent.
    pub(super) async fn set(&self, change: impl FnOnce(&mut AgentSpec)) -> Result<(), Error> {
        keys::merge_env(&self.client, &self.id).await?;
        let mut spec = self.client.spec(&self.id).await?;
        change(&mut spec);
        self.client.set_spec(&self.id, &spec).await?;
        Ok(())
    }

    pub(super) async fn set_model(&self, model: String) -> Result<Change, Error> {
        let mut provider = None;
        self.set(|spec| {
            provider.clone_from(&spec.provider);
            spec.model = Some(model.clone());
        })
        .await?;
        let catalog = providers::catalog().ok();
        let known = catalog
            .zip(provider)
            .and_then(|(catalog, provider)| catalog.model(&provider, &model));
        Ok(Change::Model {
            message: match known {
                Some(_) => format!("model: {model}"),
                None => format!(
                    "model: {model}; agentd does not know it: its prices and its window are unknown"
                ),
            },
            window: known.and_then(|known| known.window),
        })
    }
}
