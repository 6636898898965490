//! The lab: kills the real program at every failpoint, and compares the result with what was
//! promised.
//!
//! - [`spec`]: the description of one run, in one line: a scenario, a seed, faults.
//! - [`options`]: what the user chooses; [`plan`]: which runs there are; [`engine`]: executes them.
//! - [`worker`]: one run, in its own process, which adopts the run's orphans.
//! - [`testbed`]: the environment of a run, and its record.
//! - [`clients`], [`reader`]: the clients that send and that watch; [`idle`]: waiting until all is idle.
//! - [`watch`]: faults while they happen; [`processes`]: the processes of a run.
//! - [`injected_bugs`]: bugs on purpose, and the promise that each violates.
//! - [`scenario`]: what clients do in a run, one file each; [`restored`]: the journals of homes that they restored.
//! - [`check`]: reads the record of a run, and reports which promises were violated. It shares no code
//!   with the product.
//! - [`below`]: faults below the process: disk, power, clock, descriptors, memory.
//! - [`report`], [`timeline`]: the printed report; [`caught`]: whether the lab can fail.
//! - [`tool`], [`hook`]: the programs that agents and hooks run, which record that they ran.

pub mod below;
pub mod caught;
pub mod check;
pub mod clients;
pub mod dice;
pub mod engine;
pub mod failpoints;
pub mod hook;
pub mod idle;
pub mod injected_bugs;
pub mod options;
pub mod plan;
pub mod processes;
pub mod reader;
pub mod record;
pub mod report;
pub mod restored;
pub mod scenario;
pub mod spec;
pub mod testbed;
pub mod timeline;
pub mod tool;
pub mod watch;
pub mod worker;
