//! What a request costs an agent, and the budgets of which 80 % is used.

use super::AgentState;
use crate::event::{Event, LimitKind, RequestEnded};
use crate::id::{ConversationId, Seq, TurnId};
use crate::spec::Budget;
use crate::usage::Spent;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// The part of a budget, in percent, after which the user is notified.
const NEAR_PERCENT: u128 = 80;

/// How many of the events that reached 80 % are kept.
const KEPT: usize = 64;

/// What a budget is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Turn(Option<TurnId>),
    Conversation(Option<ConversationId>),
    Day(i64),
}

/// The budgets of which 80 % is used, and the last events that made it so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NearLimits {
    /// The turn, conversation or day in which so much of a budget is used. Another one begins with nothing used, and under
    /// a higher limit the budget is removed.
    near: BTreeMap<LimitKind, Scope>,
    /// The last events that reached 80 %, the oldest first. They stay when the budget is removed from `near`, because a
    /// notification may be made long after the event.
    reached: VecDeque<(Seq, LimitKind)>,
    /// Of events up to here, `reached` is incomplete.
    forgotten_through: Seq,
}

impl NearLimits {
    /// The budgets of which this event used the last part of 80 %. None if that was too long ago: the fold of the journal
    /// up to the event still knows it.
    pub fn reached_by(&self, seq: Seq) -> Option<Vec<LimitKind>> {
        if seq <= self.forgotten_through {
            return None;
        }
        let reached = self.reached.iter().filter(|(at, _)| *at == seq);
        Some(reached.map(|(_, kind)| *kind).collect())
    }

    fn look(&mut self, (kind, scope): (LimitKind, Scope), used: u64, limit: Option<u64>, at: Seq) {
        let is_near = limit.is_some_and(|limit| {
            u128::from(used) * 100 >= u128::from(limit) * NEAR_PERCENT && used > 0
        });
        if !is_near {
            self.near.remove(&kind);
            return;
        }
        if self.near.insert(kind, scope) == Some(scope) {
            return;
        }
        self.reached.push_back((at, kind));
        if self.reached.len() > KEPT
            && let Some((oldest, _)) = self.reached.pop_front()
        {
            self.forgotten_through = oldest;
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
        let turn = self.turn.as_ref();
        let conversation = self.tree.current_conversation();
        let scopes: [(&Budget, Option<Spent>, Scope, [LimitKind; 2]); 3] = [
            (
                &limits.turn,
                turn.map(|turn| turn.spent),
                Scope::Turn(turn.map(|turn| turn.id)),
                [LimitKind::TurnTokens, LimitKind::TurnCost],
            ),
            (
                &limits.conversation,
                conversation.map(|conversation| conversation.spent),
                Scope::Conversation(self.tree.current()),
                [LimitKind::ConversationTokens, LimitKind::ConversationCost],
            ),
            (
                &limits.day,
                Some(self.spending.on_day_of(event.at)),
                Scope::Day(self.spending.day()),
                [LimitKind::DayTokens, LimitKind::DayCost],
            ),
        ];
        for (budget, spent, scope, [tokens, cost]) in scopes {
            let spent = spent.unwrap_or_default();
            let near = &mut self.near_limits;
            let used = spent.usage.total();
            near.look((tokens, scope), used, budget.tokens, event.seq);
            let usd = budget.usd.map(|usd| usd.0);
            near.look((cost, scope), spent.cost.0, usd, event.seq);
        }
    }
}
