//! `--op`: the id of a change, chosen by the caller.

use agentd_core::id::OpId;

#[derive(Debug, clap::Args)]
pub struct Op {
    /// Id of this change (up to 128 bytes); a repeated command with the same id applies it once
    #[arg(long = "op", value_name = "ID")]
    pub id: Option<OpId>,
}
