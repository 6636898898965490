//! `agentd chat`: a conversation with an agent on a whole screen.
//!
//! [`App`](app::App) is pure: keys, events, answers and the time go in, and what is to be done comes out as data. `draw` turns
//! it into a screen, and `run` owns the terminal and the connection and carries the effects out.

mod app;
mod approvals;
mod command_files;
pub mod commands;
mod completion;
mod composer;
mod draw;
pub mod effect;
mod focused;
mod key_help;
mod keyboard;
mod layout;
pub mod modes;
mod own_command;
mod pager;
mod past;
mod picker;
mod queue;
pub mod requests;
mod run;
mod screen;
mod scrollback;
mod side;
mod style;
mod unsent;

pub use run::run;
