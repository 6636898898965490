//! Starts the program. The test targets, the lab, the siege and the benches all use this harness, so that each of them
//! runs `agentd` in the same completely specified environment. It never panics: a test unwraps what it returns.
//!
//! - [`Program`]: which program, its directories and its environment; makes commands, clients and callers' variables.
//! - [`TestDir`]: a root directory with a state directory and a working directory in it.
//! - [`DaemonProcess`]: a running `agentd daemon run` that answers; it ends when it is dropped.
//! - [`Terminal`]: a command in a pseudo-terminal, with a model of its screen; [`Picture`]: that screen with its colours.
//! - [`Webhooks`]: a service on loopback that receives messages, and is down, slow or broken on demand.
//! - [`Poll`]: waits for a condition.

mod daemon_process;
mod picture;
mod poll;
mod program;
mod terminal;
mod test_dir;
mod webhooks;

pub use daemon_process::{DaemonProcess, Error};
pub use picture::Picture;
pub use poll::{Poll, TimedOut};
pub use program::{Program, clean_command, model_env};
pub use terminal::{Size, Terminal};
pub use test_dir::TestDir;
pub use webhooks::{Received, Reply, Webhooks, is_signed};
