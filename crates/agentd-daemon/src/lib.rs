//! The daemon: it owns the store, supervises the agents' processes, and serves the API over a socket.
//!
//! It may **not** decide what core can decide. No module imports a module that is listed after it:
//!
//! - [`layout`]: the paths and locks of the state directory; [`home`]: its identity, and whether it still exists.
//! - `error`: why a request was not carried out; `id_prefix`: ids that a user shortened.
//! - [`service`]: the service manager that started the daemon.
//! - `spawn`: starts the daemon's tasks, and handles their panics.
//! - `durable_file`: small files that are replaced atomically.
//! - [`secrets`]: the keys that the user stored; `envs`: the agents' environment variables.
//! - [`services`]: sockets and files of the user that tools may use by choice; [`confine`]: the sandbox of tools.
//! - [`project`]: the files of a project, and which of them the user trusts; [`tool_env`]: the environment of tools.
//! - `scopes`: a systemd scope for the processes of each agent.
//! - `runtimes`: starts and watches the processes that run agents.
//! - `bindings`: the outside addresses that are bound to agents.
//! - `daemon`: the state that all parts share, and the handle of one agent.
//! - `view`: an agent as the API shows it; `turns`: its turns; `answer`: the answer to a prompt.
//! - `hooks`: runs users' programs when an event happens.
//! - `outbox`: sends notifications, and the answers of bindings.
//! - `purge_log`: the lists of purges beside backups.
//! - `lifecycle`: what can be done to an agent, one file per verb.
//! - [`backup`]: backups of the whole home: made, scheduled, checked and restored.
//! - `supervisor`: carries out what core decides about the agents' processes.
//! - `http`: the API over HTTP, one file per noun; `link`: messages to and from runtimes.
//! - `run`: runs the daemon, from acquiring its lock to its shutdown.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod agent_name;
mod answer;
pub mod backup;
mod bindings;
mod caller;
mod claims;
pub mod clock;
pub mod confine;
mod daemon;
mod durable_file;
mod ending;
mod envs;
mod error;
pub mod home;
mod hook_sources;
mod hooks;
mod http;
mod id_prefix;
pub mod layout;
mod lent;
mod lifecycle;
mod link;
mod outbox;
pub mod project;
mod prompt;
mod purge_log;
mod run;
mod runtimes;
mod scopes;
pub mod secrets;
pub mod service;
pub mod services;
mod settings;
mod sockets;
mod spawn;
pub mod stop_mark;
mod supervisor;
mod title;
pub mod tool_env;
mod transcript;
mod trust;
mod turns;
pub mod users_own;
mod view;

pub use run::{OpenStore, StartError, run};
pub use settings::{Reload, ScheduledBackups, Settings};
