//! How a conversation is left for another one: what reset and rewind have in common.

use crate::render::time;
use agentd_client::api::Reset;
use agentd_core::id::OpId;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Leaving {
    /// Why, for whoever reads the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// End what does not end by itself within the grace
    #[arg(long)]
    force: bool,
    /// Do not ask PreReset hooks, which may refuse
    #[arg(long)]
    skip_hooks: bool,
    /// End its background tasks too
    #[arg(long)]
    kill_background: bool,
    /// Take prompts that wait along to the new conversation
    #[arg(long)]
    keep_queue: bool,
    /// How long what runs may take to end
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time::duration)]
    grace: Duration,
    /// An id for this: repeated under the same one, it is done once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Only if the agent is still of this generation, as `agentd show` has it
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
}

impl Leaving {
    /// All but where it goes.
    pub fn ask(&self) -> Reset {
        Reset {
            reason: self.reason.clone(),
            force: self.force,
            skip_hooks: self.skip_hooks,
            kill_background: self.kill_background,
            keep_queue: self.keep_queue,
            grace_ms: Some(time::millis(self.grace)),
            op: self.op,
            if_generation: self.if_generation,
            ..Reset::default()
        }
    }
}
