//! The settings of an agent that continues a session of another program.

use super::Args;
use crate::described::Described;
use crate::error::{Error, Exit};
use crate::output::Output;
use crate::providers;
use agentd_core::import_history::Found;
use agentd_core::spec::AgentSpec;
use std::path::PathBuf;

/// The settings of the agent. If its directory does not exist here, it works in the current one, and the text says so.
pub async fn of(
    found: &Found,
    args: &Args,
    out: &mut Output,
) -> Result<(AgentSpec, Option<String>), Error> {
    let info = &found.info;
    let kept = args.keep_model.then(|| info.known_provider()).flatten();
    if args.keep_model && kept.is_none() {
        let provider = info.provider.as_deref().unwrap_or("none");
        let what = format!("--keep-model: no provider here is the history's `{provider}`");
        return Err(Error::new(Exit::Usage, what).next("pass --provider and --model"));
    }
    let (provider, model) = match kept {
        Some(provider) => (Some(provider.to_owned()), info.model.clone()),
        None => (args.provider.clone(), args.model.clone()),
    };
    let cwd = info.cwd.as_ref().map(PathBuf::from);
    let here = cwd.clone().filter(|cwd| cwd.is_absolute() && cwd.is_dir());
    let moved = match (&cwd, &here) {
        (Some(cwd), None) => Some(format!(
            "{} does not exist here: it works in the current directory",
            cwd.display()
        )),
        _ => None,
    };
    let described = Described::of_model(provider, model, here);
    let mut spec = described.spec(&providers::catalog()?, out).await?;
    spec.title.clone_from(&info.title);
    Ok((spec, moved))
}
