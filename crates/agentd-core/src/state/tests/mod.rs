//! Tests of the first fold: one file per part of the state.

mod agent;
mod auto_reset;
mod files;
mod inbox;
mod lifecycle;
mod tree;
mod turn;
