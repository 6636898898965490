//! Tests of the real daemon with real runtimes and tools; only the model is fake. They kill it, replace it, and use every
//! route.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says what it did, and panics where it cannot go on"
)]

mod acp_agents;
mod acp_client;
mod acp_cut;
mod acp_elicitation;
mod acp_fixture;
mod acp_hostile;
mod acp_purge;
mod acp_waits;
mod admission;
mod adoption;
mod approvals;
mod attachments;
mod auto_reset;
mod backup;
mod backup_edges;
mod bindings;
mod callers;
mod command_agents;
mod command_contract;
mod compact;
mod crash;
mod daily;
mod disk;
mod doctor;
mod doctor_more;
mod environment;
mod exactly_once;
mod files_commands;
mod files_disk;
mod files_fixture;
mod files_fork;
mod files_hostile;
mod files_listed;
mod files_more;
mod files_restore;
mod files_sandbox;
mod first_request;
mod fork;
#[path = "../fixture/golden.rs"]
mod golden;
mod held;
mod home_copied;
mod home_lost;
mod hooks_calls;
mod hooks_compact;
mod hooks_crash;
mod hooks_docs;
mod hooks_fixture;
mod hooks_forms;
mod hooks_life;
mod hooks_reset;
mod hooks_sandbox;
mod hooks_session;
mod hooks_trust;
mod hooks_turn;
mod imports;
mod instructions;
mod kept_files;
mod keys;
mod keys_supplied;
mod known_content;
mod lab;
mod limits;
mod log;
mod mcp;
mod mcp_live;
mod mcp_peers;
mod mcp_questions;
mod model_tools;
mod needs;
mod network;
mod notifications;
mod odd_files;
mod phases;
mod plan;
mod preferences;
mod processes;
mod project_rules;
mod project_settings;
mod purge;
mod queue;
mod reset;
mod reset_keeps;
mod restored_home;
mod retention;
mod retries;
mod rewind;
mod runnable;
mod sandbox;
mod schedules;
mod search;
mod secrets;
mod server_tools;
mod service;
mod sockets;
mod stops;
mod streams;
mod subagent_hooks;
mod subagent_kills;
mod subagents;
mod tasks;
mod test_daemon;
mod time_limit;
mod titles;
mod tool_env;
mod user_commands;
mod visible_writes;
