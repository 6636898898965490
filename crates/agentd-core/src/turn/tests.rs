//! Tests of the turn machine.
