//! The project's layer of settings over the user's: it sets preferences, and narrows everything else. The result never
//! grants what the user's settings alone do not.

use super::agents::add;
use super::project::{Agents, ProjectSettings};
use super::{AgentDefaults, Catalog, Error};
use crate::spec::{ApprovalMode, LimitDefaults, Limits, Network, Sandbox};

impl Catalog {
    /// The catalog for new agents in a project: the defaults of the user, narrowed by the project. `of_environment` is
    /// the sandbox that agents without a setting get. An error names the first key that would widen the user's settings.
    pub fn narrowed(
        &self,
        project: &ProjectSettings,
        of_environment: Option<Sandbox>,
    ) -> Result<Self, Error> {
        let mut next = self.clone();
        let wanted = &project.agents;
        let before = &self.agents;
        let level = before.sandbox.or(of_environment).unwrap_or_default();
        let agents = &mut next.agents;
        agents.sandbox = sandbox(project, before, level)?;
        let level = agents.sandbox.unwrap_or(level);
        agents.network = network(project, before, level)?;
        agents.approval = approval(project, before)?;
        agents.limits = limits(project, before)?;
        add(&mut agents.permissions, &wanted.permissions);
        agents.reasoning = wanted.reasoning.or(agents.reasoning);
        agents.verbosity = wanted.verbosity.or(agents.verbosity);
        agents.fast = wanted.fast.or(agents.fast);
        next.choose_for(project)?;
        Ok(next)
    }

    /// The model that a project names without a provider.
    pub fn project_model(&self) -> Option<&str> {
        self.project_model.as_deref()
    }

    /// The provider and the model of a project.
    fn choose_for(&mut self, project: &ProjectSettings) -> Result<(), Error> {
        let Agents {
            provider, model, ..
        } = &project.agents;
        if let Some(name) = provider {
            if !self.providers.contains_key(name) {
                let known = self.names();
                let why = format!(
                    "unknown provider `{name}`: a project may only choose one that is built in or that you have \
                     configured: {known}"
                );
                return Err(project.wider(&["provider"], why));
            }
            // The user's model belongs to the user's provider.
            self.agents.provider.clone_from(provider);
            self.agents.model.clone_from(model);
            self.project_model = None;
        } else if model.is_some() {
            self.project_model.clone_from(model);
        }
        Ok(())
    }
}

fn sandbox(
    project: &ProjectSettings,
    before: &AgentDefaults,
    level: Sandbox,
) -> Result<Option<Sandbox>, Error> {
    let Some(wanted) = project.agents.sandbox else {
        return Ok(before.sandbox);
    };
    match width(wanted).cmp(&width(level)) {
        std::cmp::Ordering::Less => Ok(Some(wanted)),
        // Not stored if only the environment sets it: the daemon may have a narrower one.
        std::cmp::Ordering::Equal => Ok(before.sandbox),
        std::cmp::Ordering::Greater => {
            let why = format!(
                "it is wider than `{}`, your own setting; a project may only narrow it",
                level.name()
            );
            Err(project.wider(&["sandbox"], why))
        }
    }
}

const fn width(sandbox: Sandbox) -> u8 {
    match sandbox {
        Sandbox::ReadOnly => 0,
        Sandbox::WorkspaceWrite => 1,
        Sandbox::FullAccess => 2,
    }
}

/// What both allow: lists of hosts are intersected.
fn network(
    project: &ProjectSettings,
    before: &AgentDefaults,
    level: Sandbox,
) -> Result<Option<Network>, Error> {
    let Some(wanted) = &project.agents.network else {
        return Ok(before.network.clone());
    };
    if level == Sandbox::FullAccess {
        let why = "`full-access` has no sandbox that could limit the network; set `sandbox` too";
        return Err(project.wider(&["network"], why));
    }
    let both = match (before.network.clone().unwrap_or_default(), wanted) {
        (Network::On, wanted) => wanted.clone(),
        (Network::Off, _) | (_, Network::Off) => Network::Off,
        (own @ Network::Hosts(_), Network::On) => own,
        (Network::Hosts(own), Network::Hosts(wanted)) => {
            let both = own.and(wanted);
            match both.is_empty() {
                true => Network::Off,
                false => Network::Hosts(both),
            }
        }
    };
    Ok(Some(both))
}

/// `always` and `never` are both stricter than `on-request`. Neither is stricter than the other: under `never`, calls
/// inside the sandbox run unasked.
fn approval(
    project: &ProjectSettings,
    before: &AgentDefaults,
) -> Result<Option<ApprovalMode>, Error> {
    let own = before.approval.unwrap_or_default();
    match project.agents.approval {
        None => Ok(before.approval),
        Some(wanted) if wanted == own => Ok(before.approval),
        Some(wanted) if own == ApprovalMode::OnRequest => Ok(Some(wanted)),
        Some(_) => {
            let why = format!(
                "it is not stricter than `{}`, your own setting; a project may only make it stricter",
                own.name()
            );
            Err(project.wider(&["approval"], why))
        }
    }
}

fn limits(project: &ProjectSettings, before: &AgentDefaults) -> Result<LimitDefaults, Error> {
    let mut own = Limits::default();
    before.limits.apply(&mut own, &Default::default());
    let own = own.entries();
    let mut narrowed = before.limits.clone();
    for (key, wanted) in project.agents.limits.entries() {
        let most = own.iter().find(|(known, _)| *known == key);
        if let Some((_, Some(most))) = most
            && wanted > *most
        {
            let path: Vec<&str> = std::iter::once("limits").chain(key.split('.')).collect();
            let why = "it is larger than your own limit; a project may only make limits smaller";
            return Err(project.wider(&path, why));
        }
        narrowed.set(key, wanted);
    }
    Ok(narrowed)
}

#[cfg(test)]
mod tests;
