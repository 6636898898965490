//! The id of a change, where the caller has one.

use agentd_core::id::OpId;

#[derive(Debug, clap::Args)]
pub struct Op {
    /// An id for this change (up to 128 bytes): repeated under the same one, it is made once
    #[arg(long = "op", value_name = "ID")]
    pub id: Option<OpId>,
}
