//! The list of event kinds. Names, versions and classes are derived from it.

use super::*;
use serde_json::Value;

/// What a kind may contain, and therefore what purge may delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Structural,
    Content,
}

/// Why a stored event cannot be read by this build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("unknown event kind `{kind}`: it was written by a newer agentd; upgrade to read it")]
    UnknownKind { kind: String },
    #[error(
        "event kind `{kind}` has version {found}, but this agentd reads up to {known}; upgrade to read it"
    )]
    NewerVersion {
        kind: &'static str,
        found: u32,
        known: u32,
    },
    #[error("the body of a `{kind}` event is damaged: {reason}")]
    Damaged { kind: &'static str, reason: String },
    #[error("a `{kind}` event has no body, although this kind is never purged")]
    MissingBody { kind: &'static str },
}

macro_rules! kinds {
    ($($class:ident { $($variant:ident = $name:literal v $version:literal),* $(,)? })*) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($($variant,)*)* }

        /// The body of an event.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body {
            $($($variant($variant),)*)*
            /// A content event whose body was purged.
            Gone(Kind),
        }

        impl Kind {
            pub const ALL: &'static [Self] = &[$($(Self::$variant,)*)*];

            pub const fn name(self) -> &'static str {
                match self { $($(Self::$variant => $name,)*)* }
            }

            /// The newest version of this kind's body. New events are written in it.
            pub const fn version(self) -> u32 {
                match self { $($(Self::$variant => $version,)*)* }
            }

            pub const fn class(self) -> Class {
                match self { $($(Self::$variant => Class::$class,)*)* }
            }
        }

        impl Body {
            pub const fn kind(&self) -> Kind {
                match self {
                    $($(Self::$variant(_) => Kind::$variant,)*)*
                    Self::Gone(kind) => *kind,
                }
            }

            /// The body as JSON text; `None` if it was purged.
            pub fn to_json(&self) -> Result<Option<String>, serde_json::Error> {
                match self {
                    $($(Self::$variant(body) => serde_json::to_string(body).map(Some),)*)*
                    Self::Gone(_) => Ok(None),
                }
            }

            pub fn to_value(&self) -> Result<Option<Value>, serde_json::Error> {
                match self {
                    $($(Self::$variant(body) => serde_json::to_value(body).map(Some),)*)*
                    Self::Gone(_) => Ok(None),
                }
            }

            pub fn from_json(kind: &str, version: u32, json: &str) -> Result<Self, DecodeError> {
                match Kind::known(kind, version)? {
                    $($(Kind::$variant => serde_json::from_str(json).map(Self::$variant)
                        .map_err(|error| DecodeError::Damaged { kind: $name, reason: error.to_string() }),)*)*
                }
            }

            pub fn from_value(kind: &str, version: u32, value: Value) -> Result<Self, DecodeError> {
                match Kind::known(kind, version)? {
                    $($(Kind::$variant => serde_json::from_value(value).map(Self::$variant)
                        .map_err(|error| DecodeError::Damaged { kind: $name, reason: error.to_string() }),)*)*
                }
            }
        }

        $($(impl From<$variant> for Body {
            fn from(body: $variant) -> Self { Self::$variant(body) }
        })*)*
    };
}

kinds! {
    Structural {
        AgentCreated = "agent_created" v 1,
        SpecSet = "spec_set" v 4,
        AgentRenamed = "agent_renamed" v 1,
        AgentImported = "agent_imported" v 1,
        AgentArchived = "agent_archived" v 1,
        AgentRestored = "agent_restored" v 1,
        AgentStarted = "agent_started" v 1,
        AgentStopped = "agent_stopped" v 1,
        AgentFailed = "agent_failed" v 1,
        AgentHeld = "agent_held" v 1,
        AgentReleased = "agent_released" v 1,
        IncarnationBegan = "incarnation_began" v 1,
        IncarnationEnded = "incarnation_ended" v 1,
        ConversationBegan = "conversation_began" v 1,
        ConversationSealed = "conversation_sealed" v 1,
        PointerMoved = "pointer_moved" v 1,
        CheckpointSet = "checkpoint_set" v 1,
        ResetScheduled = "reset_scheduled" v 1,
        ResetBegan = "reset_began" v 2,
        ResetStepped = "reset_stepped" v 1,
        ResetWithdrawn = "reset_withdrawn" v 2,
        ResetEnded = "reset_ended" v 1,
        PromptQueued = "prompt_queued" v 1,
        PromptRouted = "prompt_routed" v 1,
        PromptsTaken = "prompts_taken" v 1,
        PromptsSetAside = "prompts_set_aside" v 1,
        PromptsRequeued = "prompts_requeued" v 1,
        PromptBlocked = "prompt_blocked" v 1,
        PromptEdited = "prompt_edited" v 1,
        PromptMoved = "prompt_moved" v 1,
        PromptsRemoved = "prompts_removed" v 1,
        TurnStarted = "turn_started" v 1,
        TurnPaused = "turn_paused" v 1,
        TurnContinued = "turn_continued" v 1,
        TurnEnded = "turn_ended" v 3,
        RequestSent = "request_sent" v 1,
        RequestEnded = "request_ended" v 3,
        ToolStarted = "tool_started" v 4,
        ToolEnded = "tool_ended" v 1,
        TaskStarted = "task_started" v 1,
        TaskEnded = "task_ended" v 1,
        CommandStarted = "command_started" v 1,
        CommandEnded = "command_ended" v 1,
        CommandsTaken = "commands_taken" v 1,
        SubagentStarted = "subagent_started" v 1,
        SubagentEnded = "subagent_ended" v 1,
        SubagentOf = "subagent_of" v 1,
        ParentTold = "parent_told" v 1,
        ApprovalRequested = "approval_requested" v 1,
        ApprovalAnswered = "approval_answered" v 1,
        ApprovalWithdrawn = "approval_withdrawn" v 1,
        HookStarted = "hook_started" v 1,
        HookEnded = "hook_ended" v 1,
        CompactionAsked = "compaction_asked" v 1,
        Compacted = "compacted" v 1,
        Operation = "operation" v 3,
        ScheduleAdded = "schedule_added" v 1,
        ScheduleMoved = "schedule_moved" v 1,
        SchedulePaused = "schedule_paused" v 1,
        ScheduleResumed = "schedule_resumed" v 1,
        ScheduleRemoved = "schedule_removed" v 1,
        ScheduleFired = "schedule_fired" v 1,
        FilesRestoreBegan = "files_restore_began" v 2,
        FilesRestoreEnded = "files_restore_ended" v 1,
        Purged = "purged" v 2,
        Quarantined = "quarantined" v 1,
    }
    Content {
        Prompt = "prompt" v 2,
        SchedulePrompt = "schedule_prompt" v 1,
        MessageAdded = "message" v 2,
        ResultAdded = "result" v 1,
        Notice = "notice" v 3,
        InstructionsChanged = "instructions_changed" v 1,
        McpListed = "mcp_listed" v 1,
        QuestionAsked = "question_asked" v 1,
        QuestionAnswered = "question_answered" v 1,
        CommandLine = "command_line" v 1,
        CommandOutput = "command_output" v 1,
        Instruction = "instruction" v 1,
        Summary = "summary" v 1,
        Context = "context" v 2,
        Note = "note" v 1,
        HookOutput = "hook_output" v 1,
        CallRevised = "call_revised" v 1,
        PlanSet = "plan_set" v 1,
        FileKept = "file_kept" v 1,
        FilesScanned = "files_scanned" v 5,
        FilesPlan = "files_plan" v 3,
        FilesRestored = "files_restored" v 1,
    }
}

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether such an event shows that the agent is used. The others also happen when the daemon starts and stops.
    pub const fn is_use(self) -> bool {
        !matches!(
            self,
            Self::IncarnationBegan
                | Self::IncarnationEnded
                | Self::HookStarted
                | Self::HookEnded
                | Self::HookOutput
                | Self::McpListed
                | Self::Purged
                | Self::Quarantined
        )
    }

    pub const fn is_content(self) -> bool {
        matches!(self.class(), Class::Content)
    }

    /// Whether this build can read such an event.
    pub fn check(name: &str, version: u32) -> Result<(), DecodeError> {
        Self::known(name, version).map(|_| ())
    }

    fn known(name: &str, version: u32) -> Result<Self, DecodeError> {
        let kind = Self::parse(name).ok_or_else(|| DecodeError::UnknownKind {
            kind: name.to_owned(),
        })?;
        if version > kind.version() {
            return Err(DecodeError::NewerVersion {
                kind: kind.name(),
                found: version,
                known: kind.version(),
            });
        }
        Ok(kind)
    }
}

impl Body {
    /// A row whose body was purged. Only content events can be purged.
    pub fn purged(kind: &str, version: u32) -> Result<Self, DecodeError> {
        let kind = Kind::known(kind, version)?;
        if kind.is_content() {
            Ok(Self::Gone(kind))
        } else {
            Err(DecodeError::MissingBody { kind: kind.name() })
        }
    }

    /// The text in this event that a user could search for.
    pub fn words(&self) -> Vec<String> {
        let mut out = Vec::new();
        let blocks = match self {
            Self::Prompt(prompt) => &prompt.blocks,
            Self::SchedulePrompt(prompt) => &prompt.blocks,
            Self::MessageAdded(message) => &message.blocks,
            Self::ResultAdded(result) => &result.blocks,
            Self::HookOutput(output) => {
                let answer = &output.answer;
                let texts = [&answer.context, &answer.reason, &answer.message];
                out.extend(texts.into_iter().flatten().cloned());
                return out;
            }
            Self::PlanSet(plan) => {
                out.extend(plan.steps.iter().map(|step| step.step.clone()));
                out.extend(plan.explanation.clone());
                return out;
            }
            Self::CommandLine(command) => {
                out.push(command.line.clone());
                return out;
            }
            Self::CommandOutput(command) => {
                out.push(command.output.clone());
                return out;
            }
            Self::QuestionAsked(asked) => {
                out.push(asked.question.message.clone());
                return out;
            }
            Self::McpListed(McpListed {
                problem: Some(text),
                ..
            })
            | Self::Notice(Notice { text, .. })
            | Self::Summary(Summary { text, .. })
            | Self::Instruction(Instruction { text })
            | Self::Note(Note { text, .. }) => {
                out.push(text.clone());
                return out;
            }
            _ => return out,
        };
        for block in blocks {
            block.words(&mut out);
        }
        out
    }
}
