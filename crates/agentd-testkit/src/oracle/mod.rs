//! Strict checkers of model request bodies, written from the providers' documented rules and
//! known 400 answers. They share nothing with the product's own request building and repair.

pub mod anthropic;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;

mod media;
mod openai;
mod schema;
mod shape;
mod violation;

#[cfg(test)]
mod judge;

pub use violation::{Verdict, Violation};
