//! The rules that the trusted files of a project add to those of an agent when its process starts: `.agentd/config.toml` and
//! `.claude/settings.json`.

use agentd_core::spec::{AgentSpec, Rule};
use agentd_daemon::layout::Layout;
use agentd_daemon::project::{claude, settings};
use std::path::Path;

pub fn add(spec: &mut AgentSpec, layout: &Layout, home: Option<&str>) {
    let Some(cwd) = spec.cwd.as_deref().map(Path::new) else {
        return;
    };
    let home = home.map(Path::new);
    let of_project = settings::rules(layout, cwd).into_iter();
    let of_project = of_project.chain(claude::rules(layout, cwd, home));
    // An agent that was created under these rules has them already.
    let new = |rule: &Rule| !spec.permissions.contains(rule);
    let new: Vec<Rule> = of_project.filter(new).collect();
    spec.permissions.extend(new);
}
