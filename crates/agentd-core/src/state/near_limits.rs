//! What a request costs an agent, and the budgets of which 80 % is used.

use super::AgentState;
use crate::event::{Event, LimitKind, RequestEnded};
use crate::id::Seq;
use crate::spec::Budget;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a budget, in percent, after which the user is notified.
const NEAR_PERCENT: u128 = 80;

/// For each budget of which 80 % is used, the event that made it so. An entry is removed when less of the budget is used
/// again: in another turn, conversation or day, or under a higher limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NearLimits(BTreeMap<LimitKind, Seq>);

impl NearLimits {
    /// The budget of which this event used the last part of 80 %.
    pub fn reached_by(&self, seq: Seq) -> Option<LimitKind> {
        let mut reached = self.0.iter().filter(|(_, at)| **at == seq);
        reached.next().map(|(kind, _)| *kind)
    }

    fn look(&mut self, kind: LimitKind, used: u64, limit: Option<u64>, at: Seq) {
        let is_near = limit.is_some_and(|limit| {
            u128::from(used) * 100 >= u128::from(limit) * NEAR_PERCENT && used > 0
        });
        match is_near {
            true => {
                self.0.entry(kind).or_insert(at);
            }
            false => {
                self.0.remove(&kind);
            }
        }
    }
}

impl AgentState {
    pub(super) fn end_request(&mut self, event: &Event, body: &RequestEnded) -> bool {
        self.spending.charge(event.at, body);
        self.tree.charge(event.conversation, body);
        if self.is_answer(body) {
            let tokens = body.usage.total();
            self.tree.answered(event.conversation, tokens);
        }
        let is_known = self.in_turn(event, |turn| turn.request_ended(body));
        self.look_at_limits(event);
        is_known
    }

    fn look_at_limits(&mut self, event: &Event) {
        let limits = &self.spec.limits;
        let turn = self.turn.as_ref().map(|turn| turn.spent);
        let conversation = self.tree.current_conversation();
        let conversation = conversation.map(|conversation| conversation.spent);
        let today = Some(self.spending.on_day_of(event.at));
        let scopes: [(&Budget, Option<Spent>, [LimitKind; 2]); 3] = [
            (
                &limits.turn,
                turn,
                [LimitKind::TurnTokens, LimitKind::TurnCost],
            ),
            (
                &limits.conversation,
                conversation,
                [LimitKind::ConversationTokens, LimitKind::ConversationCost],
            ),
            (
                &limits.day,
                today,
                [LimitKind::DayTokens, LimitKind::DayCost],
            ),
        ];
        for (budget, spent, [tokens, cost]) in scopes {
            let spent = spent.unwrap_or_default();
            let near = &mut self.near_limits;
            near.look(tokens, spent.usage.total(), budget.tokens, event.seq);
            let usd = budget.usd.map(|usd| usd.0);
            near.look(cost, spent.cost.0, usd, event.seq);
        }
    }
}
