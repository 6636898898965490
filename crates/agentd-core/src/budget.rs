//! What a request may spend. The grant is made before the request is sent, so that a limit is never exceeded first
//! and noticed later.

use crate::event::{Grant, LimitKind};
use crate::spec::{AgentSpec, Budget, Limits, Runtime};
use crate::state::AgentState;
use crate::time::Timestamp;
use crate::usage::{MicroUsd, Price, Spent, Usage};

/// A shorter answer is useless: if there is less room than this, there is none.
const LEAST_OUTPUT_TOKENS: u64 = 64;

/// An answer may always be this long, unless the window is tiny. The input is overestimated, so there may be more room
/// than there seems to be.
const SURE_OUTPUT_TOKENS: u64 = 8192;

/// A money limit cannot be enforced for a model whose price is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a money limit is set, but the price of this model is unknown; \
     add the model's price to the configuration, or use a token limit"
)]
pub struct UnknownPrice;

/// Checked before a turn starts.
pub fn check_price(limits: &Limits, price: Option<Price>) -> Result<(), UnknownPrice> {
    if has_money_limit(limits) && price.is_none() {
        return Err(UnknownPrice);
    }
    Ok(())
}

/// A money limit cannot be enforced for a program that reports no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a money limit is set, but this agent's program reports no cost; use a time limit (`wall_ms`), or a \
     program with `contract: agent`"
)]
pub struct NoReportedCost;

/// Checks that the program of an outer agent reports what its money limits need.
pub fn check_reported(spec: &AgentSpec) -> Result<(), NoReportedCost> {
    let reports = spec
        .command
        .as_ref()
        .is_none_or(|command| command.contract.is_some());
    let is_known = !spec.is_outer() || spec.runtime == Runtime::Acp || reports;
    match has_money_limit(&spec.limits) && !is_known {
        true => Err(NoReportedCost),
        false => Ok(()),
    }
}

fn has_money_limit(limits: &Limits) -> bool {
    let scopes = [
        &limits.turn,
        &limits.conversation,
        &limits.day,
        &limits.subtree,
    ];
    scopes.iter().any(|budget| budget.usd.is_some())
}

/// How long the answer to a request of `input_tokens` may be. Providers refuse a request whose input and longest answer
/// are together larger than the model's window.
pub fn room_for_output(
    max_output_tokens: u64,
    input_tokens: u64,
    model_window: Option<u64>,
) -> u64 {
    let Some(window) = model_window else {
        return max_output_tokens;
    };
    let sure = SURE_OUTPUT_TOKENS.min(window / 8);
    let room = window.saturating_sub(input_tokens).max(sure).max(1);
    max_output_tokens.min(room)
}

/// What a request of `input_tokens` may spend in total, with its output shortened to fit, or the limit that leaves no
/// room for it.
pub fn grant(
    state: &AgentState,
    now: Timestamp,
    input_tokens: u64,
    max_output_tokens: u64,
    price: Option<Price>,
) -> Result<Grant, LimitKind> {
    let turn = state.turn.as_ref();
    let this_turn_ms = turn.map_or(0, |turn| turn.busy_ms(now));
    if turn.is_some_and(|turn| turn.iterations >= state.spec.limits.max_iterations) {
        return Err(LimitKind::Iterations);
    }
    let mut output_tokens = max_output_tokens;
    for scope in &scopes(state, now) {
        output_tokens = scope.fit(input_tokens, output_tokens, this_turn_ms, price)?;
    }
    Ok(Grant {
        input_tokens,
        output_tokens,
        cost: price.map(|price| most(input_tokens, output_tokens, price)),
    })
}

/// When the running turn reaches a time limit, and which one: the earliest. `None` while the turn waits for the user,
/// because its clock is stopped then.
pub fn deadline(state: &AgentState, now: Timestamp) -> Option<(Timestamp, LimitKind)> {
    let turn = state.turn.as_ref()?;
    if turn.waiting_since.is_some() {
        return None;
    }
    let scopes = scopes(state, now);
    let ends = scopes.iter().filter_map(|scope| {
        let left_ms = scope.budget.wall_ms?.saturating_sub(scope.spent.busy_ms);
        let at = turn.started_at.plus(turn.waited_ms).plus(left_ms);
        let [_, _, by_time] = scope.kinds;
        Some((at, by_time))
    });
    ends.min_by_key(|(at, _)| *at)
}

/// Each limit, with what has been used of it before this turn.
fn scopes(state: &AgentState, now: Timestamp) -> [Scope<'_>; 4] {
    let limits = &state.spec.limits;
    let turn = state.turn.as_ref();
    let conversation = state
        .tree
        .current_conversation()
        .map_or_else(Spent::default, |conversation| conversation.spent);
    [
        Scope {
            budget: &limits.turn,
            spent: turn.map_or_else(Spent::default, |turn| turn.spent),
            kinds: [
                LimitKind::TurnTokens,
                LimitKind::TurnCost,
                LimitKind::TurnTime,
            ],
        },
        Scope {
            budget: &limits.conversation,
            spent: conversation,
            kinds: [
                LimitKind::ConversationTokens,
                LimitKind::ConversationCost,
                LimitKind::ConversationTime,
            ],
        },
        Scope {
            budget: &limits.day,
            spent: state.spending.on_day_of(now),
            kinds: [LimitKind::DayTokens, LimitKind::DayCost, LimitKind::DayTime],
        },
        Scope {
            budget: &limits.subtree,
            spent: state.subtree_spent(),
            kinds: [
                LimitKind::SubtreeTokens,
                LimitKind::SubtreeCost,
                LimitKind::SubtreeTime,
            ],
        },
    ]
}

/// The highest possible cost: all of the input may have to be written to the cache first.
fn most(input_tokens: u64, output_tokens: u64, price: Price) -> MicroUsd {
    let dearest = Price {
        input: price.input.max(price.cache_write),
        ..price
    };
    dearest.of(&Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    })
}

struct Scope<'a> {
    budget: &'a Budget,
    spent: Spent,
    /// The limits of tokens, cost and time.
    kinds: [LimitKind; 3],
}

impl Scope<'_> {
    /// How long the output may be within this budget.
    fn fit(
        &self,
        input_tokens: u64,
        output_tokens: u64,
        this_turn_ms: u64,
        price: Option<Price>,
    ) -> Result<u64, LimitKind> {
        let [by_tokens, by_cost, by_time] = self.kinds;
        if let Some(wall_ms) = self.budget.wall_ms
            && self.spent.busy_ms.saturating_add(this_turn_ms) >= wall_ms
        {
            return Err(by_time);
        }
        let mut output_tokens = output_tokens;
        let least = LEAST_OUTPUT_TOKENS.min(output_tokens);
        if let Some(limit) = self.budget.tokens {
            let left = limit.saturating_sub(self.spent.usage.total());
            output_tokens = output_tokens.min(left.saturating_sub(input_tokens));
            if output_tokens < least || output_tokens == 0 {
                return Err(by_tokens);
            }
        }
        if let Some(limit) = self.budget.usd {
            let left = limit.saturating_sub(self.spent.cost);
            output_tokens = output_tokens.min(affordable_output(left, input_tokens, price));
            if output_tokens < least || output_tokens == 0 {
                return Err(by_cost);
            }
        }
        Ok(output_tokens)
    }
}

/// How many output tokens `left` pays for after the input. Zero if there is no price.
fn affordable_output(left: MicroUsd, input_tokens: u64, price: Option<Price>) -> u64 {
    let Some(price) = price.map(|price| price.at(input_tokens)) else {
        return 0;
    };
    // The price of the input is rounded up, so the rest pays for whole output tokens exactly.
    let Some(left) = left.0.checked_sub(most(input_tokens, 0, price).0) else {
        return 0;
    };
    let tokens = (u128::from(left) * 1_000_000).checked_div(u128::from(price.output.0));
    match tokens {
        Some(tokens) => u64::try_from(tokens).unwrap_or(u64::MAX),
        // The output is free.
        None => u64::MAX,
    }
}

/// What an attempt must have used if the provider did not report it: its input, and what it wrote.
pub fn charge_without_usage(grant: &Grant, written_bytes: usize) -> Usage {
    Usage {
        input_tokens: grant.input_tokens,
        output_tokens: (written_bytes as u64).div_ceil(3),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
