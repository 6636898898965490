//! A child for tests of the driver: it is in a turn, and says only what the test says.

use super::Outer;
use super::child::{Answer, Child};
use super::talk::{Begun, Talk};
use agentd_core::outer::Delivery;
use agentd_core::spec::{ApprovalMode, Rule};
use async_trait::async_trait;
use std::sync::Arc;

struct Silent;

#[async_trait]
impl Child for Silent {
    async fn deliver(&self, _turn: u64, _delivery: Delivery) -> Result<(), String> {
        Ok(())
    }

    async fn interrupt(&self) {}

    async fn answer(&self, _question: &str, _answer: Answer) {}

    async fn kill(&self) {}

    async fn close(&self) {}
}

/// A child in its first turn, with an open call; and with a question about it, if there is one.
pub(crate) fn in_turn(rules: &[Rule], approval: ApprovalMode, question: Option<&str>) -> Outer {
    let talk = Arc::new(Talk::default());
    let outer = Outer::new(Arc::new(Silent), talk, rules, approval);
    assert!(outer.talk().begin(outer.new_turn()) == Begun::Yes);
    outer.talk().open_call("c", question.map(str::to_owned));
    outer
}
