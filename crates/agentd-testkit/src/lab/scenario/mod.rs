//! What clients do in a run, one file per scenario. A scenario does not know about faults: it behaves like a user,
//! and repeats a request that got no answer.

mod accepted;
mod approvals;
mod background;
mod backup;
mod commands;
mod crash_loop;
mod crowd;
mod files;
mod fork;
mod hooks;
mod interrupt;
mod leftovers;
mod mcp;
mod outer;
mod queue;
mod reader;
mod resets;
mod restore;
mod rewind;
mod schedule;
mod sleep;
mod standard;
mod subagents;
mod webhooks;

use super::below;
use super::testbed::{Result, Stuck, Testbed};

pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// Whether each failpoint that it passes is hit.
    pub is_traced: bool,
    run: fn(&Testbed) -> Result<()>,
}

pub const ALL: [Scenario; 25] = [
    Scenario {
        name: "standard",
        about: "files, project instructions, stream, parallel tools, a chain, an approval, a background task, compaction, reset, undo",
        is_traced: true,
        run: standard::run,
    },
    Scenario {
        name: "hooks",
        about: "hooks around calls, turns, a compaction, a reset and its undo",
        is_traced: true,
        run: hooks::run,
    },
    Scenario {
        name: "rewind",
        about: "rewind to before a compaction, undo, redo, and again in mid-turn",
        is_traced: true,
        run: rewind::run,
    },
    Scenario {
        name: "fork",
        about: "a fork while a question waits and a task runs",
        is_traced: true,
        run: fork::run,
    },
    Scenario {
        name: "subagents",
        about: "subagents, waited for and in the background, and a reset of their parent",
        is_traced: true,
        run: subagents::run,
    },
    Scenario {
        name: "background",
        about: "tasks that end in mid-turn, during a reset, and without a process",
        is_traced: true,
        run: background::run,
    },
    Scenario {
        name: "queue",
        about: "queued prompts, one with a file, that are edited, moved and removed while a turn runs",
        is_traced: true,
        run: queue::run,
    },
    Scenario {
        name: "commands",
        about: "commands of the user, alone, while a turn runs, and while a reset clears the conversation",
        is_traced: true,
        run: commands::run,
    },
    Scenario {
        name: "restore",
        about: "files of several turns that are restored and undone",
        is_traced: true,
        run: restore::run,
    },
    Scenario {
        name: "files",
        about: "files that tools and a command create and edit, under the eyes of a reader",
        is_traced: true,
        run: files::run,
    },
    Scenario {
        name: "mcp",
        about: "calls of an MCP server, one that changes its list, and a reset",
        is_traced: true,
        run: mcp::run,
    },
    Scenario {
        name: "webhooks",
        about: "messages of a bound address, and answers to a webhook that is broken, silent and slow",
        is_traced: true,
        run: webhooks::run,
    },
    Scenario {
        name: "outer",
        about: "an agent whose program is a command, a reset and its undo",
        is_traced: true,
        run: outer::run_command,
    },
    Scenario {
        name: "outer_acp",
        about: "the same with an agent of the Agent Client Protocol",
        is_traced: true,
        run: outer::run_acp,
    },
    Scenario {
        name: "schedule",
        about: "schedules, one with a reset, on a clock that jumps ahead and back",
        is_traced: true,
        run: schedule::run,
    },
    Scenario {
        name: "backup",
        about: "full and incremental backups of agents that work, a purge between them, and homes that are restored",
        is_traced: true,
        run: backup::run,
    },
    Scenario {
        name: "interrupt",
        about: "an interrupt in mid-turn, with a queued prompt",
        is_traced: false,
        run: interrupt::run,
    },
    Scenario {
        name: "crash_loop",
        about: "a turn that crashes its process each time",
        is_traced: false,
        run: crash_loop::run,
    },
    Scenario {
        name: "resets",
        about: "reset, undo and redo with a queue, each requested twice",
        is_traced: false,
        run: resets::run,
    },
    Scenario {
        name: "approvals",
        about: "a question that two clients answer, and a tool tries to",
        is_traced: false,
        run: approvals::run,
    },
    Scenario {
        name: "sleep",
        about: "an agent that is put to sleep between prompts",
        is_traced: false,
        run: sleep::run,
    },
    Scenario {
        name: "crowd",
        about: "several agents at once",
        is_traced: false,
        run: crowd::run,
    },
    Scenario {
        name: "reader",
        about: "a reader that is killed, and reconnects with its cursor",
        is_traced: false,
        run: reader::run,
    },
    Scenario {
        name: "accepted",
        about: "prompts that are sent and not waited for",
        is_traced: false,
        run: accepted::run,
    },
    Scenario {
        name: "leftovers",
        about: "a command that leaves processes behind",
        is_traced: false,
        run: leftovers::run,
    },
];

/// Runs a scenario.
pub fn run(testbed: &Testbed) -> Result<()> {
    let name = &testbed.spec.scenario;
    let found = ALL.iter().find(|scenario| scenario.name == name);
    let run = found.map(|scenario| scenario.run);
    let below = below::ALL.iter().find(|below| below.name == name);
    let run = run.or(below.map(|below| below.run));
    run.ok_or_else(|| Stuck::Wrong(format!("there is no scenario {name}")))?(testbed)
}

/// The names of all scenarios.
pub fn names() -> Vec<&'static str> {
    let own = ALL.iter().map(|scenario| scenario.name);
    own.chain(below::ALL.iter().map(|below| below.name))
        .collect()
}
