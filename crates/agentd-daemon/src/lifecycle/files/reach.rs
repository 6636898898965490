//! Which paths the sandbox of the tools shows as they are. An approved escalation, a cache or another directory of the
//! agent's own can be where a restore's process finds something else, or nothing.

use super::sandbox::ToolSandbox;
use crate::error::{Error, Kind, Result};
use crate::spawn::blocking;
use agentd_core::files::{CannotRestore, NotRestored, RestorePlan, Unchanged, Wanted};
use agentd_sandbox::Shared;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the process in the sandbox may do at each path. A sandbox that tools do not have hides nothing.
pub async fn of(sandbox: &ToolSandbox, paths: Vec<String>) -> Result<BTreeMap<String, Shared>> {
    let Some(confined) = sandbox.confined()? else {
        let all = paths.into_iter().map(|path| (path, Shared::Write));
        return Ok(all.collect());
    };
    let shared = blocking(move || {
        let at: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let shared = agentd_sandbox::shared(&confined.policy, &at)?;
        Ok(paths.into_iter().zip(shared).collect())
    });
    shared.await.map_err(|error: agentd_sandbox::Error| {
        let what = "the sandbox of the agent's tools cannot be set up";
        Error::new(Kind::Refused, what).because(error)
    })
}

/// The plan without the paths that the sandbox of the tools cannot write: they are neither read nor written.
pub async fn plan(sandbox: &ToolSandbox, plan: RestorePlan) -> Result<RestorePlan> {
    if plan.wanted.is_empty() && plan.unchanged.is_empty() {
        return Ok(plan);
    }
    let wanted = plan.wanted.iter().map(|wanted| &wanted.path);
    let unchanged = plan.unchanged.iter().map(|unchanged| &unchanged.path);
    let paths = wanted.chain(unchanged).cloned();
    let shared = of(sandbox, paths.collect()).await?;
    Ok(within(plan, &shared))
}

fn within(mut plan: RestorePlan, shared: &BTreeMap<String, Shared>) -> RestorePlan {
    let is_within = |wanted: &Wanted| shared.get(&wanted.path) == Some(&Shared::Write);
    let (wanted, out): (Vec<Wanted>, Vec<Wanted>) = plan.wanted.into_iter().partition(is_within);
    plan.wanted = wanted;
    let not_restored = |path: String, why| NotRestored::new(Some(path), None, why);
    let out = out.into_iter();
    let out = out.map(|wanted| not_restored(wanted.path, CannotRestore::OutOfReach));
    plan.not_restored.extend(out);
    // Nothing is to be written there. What the sandbox does not show as the host has it cannot be compared.
    let is_shown = |it: &Unchanged| shared.get(&it.path).is_some_and(|it| *it != Shared::No);
    let (shown, hidden): (Vec<_>, Vec<_>) = plan.unchanged.into_iter().partition(is_shown);
    plan.unchanged = shown;
    let hidden = hidden.into_iter();
    let hidden = hidden.map(|it| not_restored(it.path, CannotRestore::NotChecked));
    plan.not_restored.extend(hidden);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::event::{FileState, Position};
    use agentd_core::files::Target;
    use agentd_core::id::{AgentId, Seq};

    #[test]
    fn only_what_the_sandbox_can_write_is_planned_and_the_rest_is_named() {
        let wanted = |path: &str| Wanted {
            path: path.to_owned(),
            target: Target::Kept {
                at: Position {
                    agent: AgentId::from_bytes([1; 16]),
                    seq: Seq(1),
                },
                state: FileState::Absent,
                size: 0,
            },
            expected: Vec::new(),
            unsure: false,
        };
        let plan = RestorePlan {
            wanted: ["/hidden", "/read", "/unknown", "/work"].map(wanted).into(),
            ..RestorePlan::default()
        };
        let shared = [
            ("/hidden", Shared::No),
            ("/read", Shared::Read),
            ("/work", Shared::Write),
        ];
        let shared = shared.map(|(path, shared)| (path.to_owned(), shared));
        let plan = within(plan, &shared.into());
        assert_eq!(plan.wanted, [wanted("/work")]);
        let out = plan.not_restored.iter();
        let out = out.map(|it| (it.path.as_deref().unwrap(), it.why));
        let why = CannotRestore::OutOfReach;
        let expected = [("/hidden", why), ("/read", why), ("/unknown", why)];
        assert_eq!(out.collect::<Vec<_>>(), expected);
    }
}
