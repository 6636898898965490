//! The events that hooks can run for.

use crate::spec::Runtime;
use serde::{Deserialize, Serialize};

/// Spelled as in hooks files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HookEvent {
    SessionStart,
    SessionEnd,
    UserPromptSubmit,
    PreToolUse,
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    PreCompact,
    PostCompact,
    Notification,
    PreReset,
    Interrupt,
    AgentExit,
    AgentRestart,
    DaemonStart,
    DaemonStop,
}

impl HookEvent {
    pub const ALL: [Self; 20] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::Stop,
        Self::StopFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::PostCompact,
        Self::Notification,
        Self::PreReset,
        Self::Interrupt,
        Self::AgentExit,
        Self::AgentRestart,
        Self::DaemonStart,
        Self::DaemonStop,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Notification => "Notification",
            Self::PreReset => "PreReset",
            Self::Interrupt => "Interrupt",
            Self::AgentExit => "AgentExit",
            Self::AgentRestart => "AgentRestart",
            Self::DaemonStart => "DaemonStart",
            Self::DaemonStop => "DaemonStop",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The event that was probably meant.
    pub fn nearest(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        let near = Self::ALL.into_iter().map(|event| {
            let known = event.name().to_lowercase();
            (strsim::damerau_levenshtein(&known, &lower), event)
        });
        let (distance, event) = near.min()?;
        (distance <= 2 + name.len() / 4).then_some(event)
    }

    /// Whether a handler may refuse it.
    pub const fn can_block(self) -> bool {
        matches!(
            self,
            Self::UserPromptSubmit
                | Self::PreToolUse
                | Self::PermissionRequest
                | Self::PostToolUse
                | Self::Stop
                | Self::SubagentStop
                | Self::PreCompact
                | Self::PreReset
        )
    }

    /// Whether it is about a tool call, which a handler may allow, deny or ask about.
    pub const fn is_about_permission(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    pub const fn is_about_a_tool(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PermissionRequest
                | Self::PostToolUse
                | Self::PostToolUseFailure
        )
    }

    /// Whether plain output of a handler is context for the model.
    pub const fn takes_plain_context(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPromptSubmit)
    }

    /// The timeout of a handler that sets none.
    pub const fn time_limit_ms(self) -> u64 {
        match self {
            Self::UserPromptSubmit => 30_000,
            Self::PreReset => 10_000,
            Self::Interrupt => 1_000,
            _ => 600_000,
        }
    }

    /// The field of the input that a matcher is compared with.
    pub const fn subject(self) -> Option<&'static str> {
        match self {
            Self::PreToolUse
            | Self::PermissionRequest
            | Self::PostToolUse
            | Self::PostToolUseFailure => Some("tool_name"),
            Self::SessionStart => Some("source"),
            Self::SessionEnd => Some("reason"),
            Self::PreCompact | Self::PostCompact => Some("trigger"),
            Self::Notification => Some("notification_type"),
            _ => None,
        }
    }

    /// Whether it can happen to an agent with this runtime. agentd does not see what other runtimes do inside a turn.
    pub const fn can_invoke_for(self, runtime: Runtime) -> bool {
        match runtime {
            Runtime::Native => true,
            Runtime::Acp | Runtime::Command => !matches!(
                self,
                Self::PreToolUse
                    | Self::PermissionRequest
                    | Self::PostToolUse
                    | Self::PostToolUseFailure
                    | Self::PreCompact
                    | Self::PostCompact
                    | Self::SubagentStart
                    | Self::SubagentStop
            ),
        }
    }

    /// Whether it is about the daemon and not about an agent.
    pub const fn is_of_the_daemon(self) -> bool {
        matches!(self, Self::DaemonStart | Self::DaemonStop)
    }
}

impl std::fmt::Display for HookEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
