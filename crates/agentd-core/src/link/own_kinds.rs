//! The kinds of events that a runtime writes. The daemon accepts no other kind over a link: it writes prompts, settings,
//! approvals and resets itself, after it has checked the caller.

use crate::event::Kind;

/// Whether a runtime may append events of this kind, to its own agent.
pub const fn is_a_runtimes(kind: Kind) -> bool {
    match kind {
        Kind::IncarnationBegan
        | Kind::IncarnationEnded
        | Kind::CheckpointSet
        | Kind::ResetScheduled
        | Kind::PromptsTaken
        | Kind::PromptBlocked
        | Kind::TurnStarted
        | Kind::TurnPaused
        | Kind::TurnContinued
        | Kind::TurnEnded
        | Kind::RequestSent
        | Kind::RequestEnded
        | Kind::ToolStarted
        | Kind::ToolEnded
        | Kind::TaskStarted
        | Kind::TaskEnded
        | Kind::CommandsTaken
        | Kind::ApprovalRequested
        | Kind::ApprovalWithdrawn
        | Kind::Compacted
        | Kind::MessageAdded
        | Kind::ResultAdded
        | Kind::Notice
        | Kind::InstructionsChanged
        | Kind::McpListed
        | Kind::QuestionAsked
        | Kind::PlanSet
        | Kind::Summary
        | Kind::Context
        | Kind::Note
        | Kind::FileKept
        | Kind::FilesScanned => true,
        Kind::QuestionAnswered
        | Kind::AgentCreated
        | Kind::SpecSet
        | Kind::AgentRenamed
        | Kind::AgentImported
        | Kind::AgentArchived
        | Kind::AgentRestored
        | Kind::AgentStarted
        | Kind::AgentStopped
        | Kind::AgentFailed
        | Kind::AgentHeld
        | Kind::AgentReleased
        | Kind::ConversationBegan
        | Kind::ConversationSealed
        | Kind::PointerMoved
        | Kind::ResetBegan
        | Kind::ResetStepped
        | Kind::ResetWithdrawn
        | Kind::ResetEnded
        | Kind::PromptQueued
        | Kind::PromptRouted
        | Kind::PromptsSetAside
        | Kind::PromptsRequeued
        | Kind::PromptEdited
        | Kind::PromptMoved
        | Kind::PromptsRemoved
        | Kind::CommandStarted
        | Kind::CommandEnded
        | Kind::SubagentStarted
        | Kind::SubagentEnded
        | Kind::SubagentOf
        | Kind::ParentTold
        | Kind::ApprovalAnswered
        | Kind::HookStarted
        | Kind::HookEnded
        | Kind::CompactionAsked
        | Kind::Operation
        | Kind::Purged
        | Kind::Quarantined
        | Kind::Prompt
        | Kind::CommandLine
        | Kind::CommandOutput
        | Kind::Instruction
        | Kind::HookOutput
        | Kind::CallRevised
        | Kind::ScheduleAdded
        | Kind::ScheduleMoved
        | Kind::SchedulePaused
        | Kind::ScheduleResumed
        | Kind::ScheduleRemoved
        | Kind::ScheduleFired
        | Kind::SchedulePrompt
        | Kind::FilesRestoreBegan
        | Kind::FilesRestoreEnded
        | Kind::FilesPlan
        | Kind::FilesRestored => false,
    }
}
