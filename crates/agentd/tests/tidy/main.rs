//! Rules of this repository that no compiler or linter checks. They are checked on the text of the files.
//!
//! Each rule is a function from files to findings, a test that applies it to the repository, and a test that applies it to
//! an invented file, to show that it can fail. A finding names the position, the rule, and what to do.
//!
//! - [`citations`]: what a text refers to is in the repository.
//! - [`history`]: no statement rewrites an event.
//! - [`layers`]: crates depend downwards only; [`cycles`]: so do the modules of a crate.
//! - [`rooms`]: where SQL, processes and the environment may be used; [`pure`]: not in the core.
//! - [`shape`]: size, head and name of files.
//! - [`leftovers`]: unfinished work, machine paths, sleeping and ignored tests.
//! - [`words`]: identifiers and phrases that are retired; [`messages`]: those that the documentation quotes.
//!
//! The rest reads text: [`tree`] the repository, [`lexer`] a Rust file without its comments and
//! strings, [`paths`] the paths it names, [`modules`] what the modules of a crate use of each other,
//! [`manifest`] the dependencies in a `Cargo.toml`.

mod citations;
mod cycles;
mod history;
mod layers;
mod leftovers;
mod lexer;
mod manifest;
mod messages;
mod modules;
mod paths;
mod pure;
mod rooms;
mod shape;
mod tree;
mod words;
