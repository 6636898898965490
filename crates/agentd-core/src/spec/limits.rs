//! The limits of an agent.

use super::Budget;
use serde::{Deserialize, Serialize};

/// The limits of an agent. An absent field means no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Model requests in one turn, so that an unproductive loop ends. Default: 100.
    pub max_iterations: u32,
    /// Tokens in one answer of the model. Default: the longest answer of the model, or 8192 if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// What one turn may use. Default: no limit.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub turn: Budget,
    /// What one conversation may use. Default: no limit.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub conversation: Budget,
    /// What the agent may use in one day. Default: no limit.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub day: Budget,
    /// What the agent and all agents below it may use together. Default: no limit.
    #[serde(skip_serializing_if = "Budget::is_unlimited")]
    pub subtree: Budget,
    /// Background tasks that run at the same time. Default: 16.
    pub max_tasks: u32,
    /// Subagents that run at the same time. Default: 8.
    pub max_children: u32,
    /// Levels of subagents below it; 0 means that it cannot start any. Default: 1.
    pub max_depth: u32,
    /// Prompts in the queue. Default: 100.
    pub max_queue: u32,
    /// How much of one tool's output the model sees, in bytes. Default: 32768.
    pub tool_output_bytes: u64,
    /// How much of the output of one command is kept, in bytes; the rest is dropped. Default: 67108864.
    pub task_output_bytes: u64,
    /// How much of all output together is kept, in bytes; when it is exceeded, the oldest is deleted. Default:
    /// 1073741824.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_output_bytes: Option<u64>,
    /// How much of what files were before the agent changed them is kept, in bytes; when it is exceeded, the oldest is
    /// deleted. 0 keeps nothing. Default: 268435456.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_history_bytes: Option<u64>,
    /// How much memory one command may use, in bytes: all its processes together if it can have a cgroup, otherwise
    /// each process. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_memory_bytes: Option<u64>,
    /// How many processes one command may have at the same time, if it can have a cgroup. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_processes: Option<u64>,
    /// How many files each process of a command may have open. Default: the system's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_open_files: Option<u64>,
    /// How many calls of its own the program of an outer agent may report in one turn. Default: 2000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_calls: Option<u64>,
    /// How much such a program may say in one turn, in bytes: text, and reports of calls. Default: 16777216.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_bytes: Option<u64>,
    /// How much memory all processes of the agent may use together, in bytes, if it has a scope of systemd. Default: no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How much CPU time all processes of the agent may use together, in percent of one CPU, if it has a scope of
    /// systemd. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<u32>,
}

impl Limits {
    pub fn program_calls(&self) -> u64 {
        self.program_calls.unwrap_or(2000)
    }

    pub fn program_bytes(&self) -> u64 {
        self.program_bytes.unwrap_or(16 << 20)
    }

    pub fn kept_output_bytes(&self) -> u64 {
        self.kept_output_bytes.unwrap_or(1 << 30)
    }

    pub fn file_history_bytes(&self) -> u64 {
        self.file_history_bytes.unwrap_or(256 << 20)
    }

    /// How much of the history of files is left when it was larger than its limit: less than the limit, so that not
    /// every change deletes something.
    pub fn file_history_left(&self) -> u64 {
        let limit = self.file_history_bytes();
        limit - limit / 10
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 100,
            max_output_tokens: None,
            turn: Budget::default(),
            conversation: Budget::default(),
            day: Budget::default(),
            subtree: Budget::default(),
            max_tasks: 16,
            max_children: 8,
            max_depth: 1,
            max_queue: 100,
            tool_output_bytes: 32_768,
            task_output_bytes: 67_108_864,
            kept_output_bytes: None,
            file_history_bytes: None,
            task_memory_bytes: None,
            task_processes: None,
            task_open_files: None,
            program_calls: None,
            program_bytes: None,
            memory_bytes: None,
            cpu_percent: None,
        }
    }
}
