//! What the approval modes mean, in a few words.

use agentd_core::spec::ApprovalMode;

pub const fn meaning(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::OnRequest => {
            "on-request: calls run in the sandbox; you are asked before a call leaves it"
        }
        ApprovalMode::Always => "always: you are asked before every call that changes something",
        ApprovalMode::Never => {
            "never: you are not asked; a call that would leave the sandbox is refused"
        }
    }
}
