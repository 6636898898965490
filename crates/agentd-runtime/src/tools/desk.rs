//! What every tool has at hand.

use super::ToolboxOptions;
use super::secrets::Secrets;
use super::tool::Traits;
use crate::link::Asking;
use agentd_core::id::{BootId, TaskId};
use agentd_core::permission::{Subject, decide, stricter};
use agentd_core::spec::{Decision, Rule};
use agentd_process::task::{Limits, ShimProgram};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(super) struct Desk {
    pub cwd: PathBuf,
    pub state: PathBuf,
    pub env: BTreeMap<String, String>,
    pub output_bytes: usize,
    pub kept_bytes: u64,
    pub max_tasks: usize,
    pub secrets: Secrets,
    pub shim: ShimProgram,
    pub lab: Option<PathBuf>,
    pub task_limits: Limits,
    pub boot: BootId,
    pub asking: Option<Asking>,
    rules: Vec<Rule>,
    ask_by_default: bool,
}

impl Desk {
    pub fn new(options: ToolboxOptions) -> Self {
        Self {
            cwd: options.cwd,
            state: options.state,
            env: options.env.into_iter().collect(),
            output_bytes: options.output_bytes,
            kept_bytes: options.kept_bytes,
            max_tasks: options.max_tasks,
            secrets: options.secrets,
            shim: options.shim,
            lab: options.lab,
            task_limits: options.task_limits,
            boot: options.boot,
            asking: options.asking,
            rules: options.rules,
            ask_by_default: options.ask_by_default,
        }
    }

    /// What the rules say about a call. It must be allowed for each of its subjects.
    pub fn decide(&self, tool: &str, traits: Traits, subjects: &[Subject]) -> Decision {
        let default = match traits.approval && self.ask_by_default {
            true => Decision::Ask,
            false => Decision::Allow,
        };
        let decisions = subjects
            .iter()
            .map(|subject| decide(&self.rules, tool, subject, default));
        decisions.reduce(stricter).unwrap_or(default)
    }

    /// Where all that is known about a task is.
    pub fn task_dir(&self, task: TaskId) -> PathBuf {
        self.state.join("tasks").join(task.to_string())
    }
}
