//! The lab: the real program, killed at every failpoint of its life, and what came of it compared with what
//! was promised.
//!
//! - [`spec`]: what one run is, in one line: a scenario, a seed, faults.
//! - [`plan`]: which runs there are; [`engine`]: carries them out.
//! - [`worker`]: one run, in a process of its own: whoever loses its parent comes to it.
//! - [`testbed`]: where a run takes place, and what is written down about it.
//! - [`clients`], [`reader`]: who asks and who watches; [`rest`]: when all is quiet.
//! - [`watch`]: faults as they happen; [`processes`]: who is there.
//! - [`injected_bugs`]: mistakes that are made on purpose, and the promise that each breaks.
//! - [`scenario`]: what is asked for, one file each.
//! - [`check`]: reads what a run left behind, and says which promises were broken. It shares no code
//!   with the product.
//! - [`below`]: faults below the process: disk, power, clock, descriptors, memory.
//! - [`report`], [`timeline`]: what people see; [`caught`]: whether the lab can fail.
//! - [`tool`], [`hook`]: what agents and hooks run, which says that it ran.

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
pub mod plan;
pub mod processes;
pub mod reader;
pub mod record;
pub mod report;
pub mod scenario;
pub mod spec;
pub mod testbed;
pub mod timeline;
pub mod tool;
pub mod watch;
pub mod worker;
