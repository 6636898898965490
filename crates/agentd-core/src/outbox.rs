//! What is sent outside about an agent: notifications to the user, and the answers of bindings.
//!
//! The journal is the outbox: each destination has a cursor over it, which moves on when a message was accepted. So
//! nothing is stored twice and nothing is lost. A message may be sent again after a crash, with the same id, which is
//! derived from the event that it is about.
//!
//! - [`webhook`]: ids, signatures, and when a message is sent again.
//! - [`routed`]: which turns answer the prompts that a destination is interested in.
//! - [`notice`]: which events the user is notified of.
//! - [`binding`]: outside addresses, and which events their webhooks are told of.

pub mod binding;
pub mod notice;
pub mod routed;
pub mod webhook;
