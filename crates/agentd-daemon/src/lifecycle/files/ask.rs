//! A restore or an undo that is requested.

use crate::lifecycle::ops::Asked;
use agentd_core::event::Position;
use agentd_core::files::RestorePlan;
use agentd_core::id::{OpId, Seq};

/// What is to be begun.
pub struct Begin<'a> {
    pub op: OpId,
    pub undo_of: Option<OpId>,
    /// The position whose files are restored.
    pub to: Option<Position>,
    pub plan: RestorePlan,
    /// The head of the journal that the plan was made from.
    pub head: Seq,
    pub overwrite: bool,
    pub dry_run: bool,
    pub asked: &'a Asked,
}
