//! The options that reset and rewind share: how the current conversation ends.

use crate::render::time;
use agentd_client::api::Reset;
use agentd_core::id::OpId;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Leaving {
    /// Reason, recorded in the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Kill the process if the turn has not ended within the grace period
    #[arg(long)]
    force: bool,
    /// Do not run PreReset hooks, which may refuse
    #[arg(long)]
    skip_hooks: bool,
    /// Also end the background tasks and subagents
    #[arg(long)]
    kill_background: bool,
    /// Move queued prompts to the new conversation
    #[arg(long)]
    keep_queue: bool,
    /// Time that the running turn gets to end
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time::duration)]
    grace: Duration,
    /// Id of this operation; a repeated command with the same id applies it once
    #[arg(long, value_name = "ID")]
    op: Option<OpId>,
    /// Fail unless the agent still has this generation; `agentd show` prints it
    #[arg(long, value_name = "N")]
    if_generation: Option<u64>,
}

impl Leaving {
    /// The request, without its target.
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
