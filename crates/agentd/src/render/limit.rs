//! The limits of an agent, in words.

use super::{time, usage};
use agentd_core::event::LimitKind;
use agentd_core::spec::{Budget, Limits};

/// What a limit is about, and the setting that raises it.
pub const fn meaning(limit: LimitKind) -> (&'static str, &'static str) {
    match limit {
        LimitKind::Iterations => ("model requests of one turn", "limits.max_iterations"),
        LimitKind::TurnTokens => ("tokens of one turn", "limits.turn.tokens"),
        LimitKind::TurnCost => ("cost of one turn", "limits.turn.usd"),
        LimitKind::TurnTime => ("time of one turn", "limits.turn.wall_ms"),
        LimitKind::ConversationTokens => {
            ("tokens of one conversation", "limits.conversation.tokens")
        }
        LimitKind::ConversationCost => ("cost of one conversation", "limits.conversation.usd"),
        LimitKind::ConversationTime => ("time of one conversation", "limits.conversation.wall_ms"),
        LimitKind::DayTokens => ("tokens of one day", "limits.day.tokens"),
        LimitKind::DayCost => ("cost of one day", "limits.day.usd"),
        LimitKind::DayTime => ("time of one day", "limits.day.wall_ms"),
        LimitKind::SubtreeTokens => (
            "tokens of the agent and its subagents",
            "limits.subtree.tokens",
        ),
        LimitKind::SubtreeCost => ("cost of the agent and its subagents", "limits.subtree.usd"),
        LimitKind::SubtreeTime => (
            "time of the agent and its subagents",
            "limits.subtree.wall_ms",
        ),
    }
}

/// The number at which it is reached, for people; none if these limits have none.
pub fn value(limit: LimitKind, limits: &Limits) -> Option<String> {
    let tokens = |budget: &Budget| budget.tokens.map(usage::tokens);
    let cost = |budget: &Budget| {
        budget
            .usd
            .map(|usd| usage::known_cost(usd.0 as f64 / 1e6, 0))
    };
    let time = |budget: &Budget| budget.wall_ms.map(time::took);
    match limit {
        LimitKind::Iterations => Some(limits.max_iterations.to_string()),
        LimitKind::TurnTokens => tokens(&limits.turn),
        LimitKind::TurnCost => cost(&limits.turn),
        LimitKind::TurnTime => time(&limits.turn),
        LimitKind::ConversationTokens => tokens(&limits.conversation),
        LimitKind::ConversationCost => cost(&limits.conversation),
        LimitKind::ConversationTime => time(&limits.conversation),
        LimitKind::DayTokens => tokens(&limits.day),
        LimitKind::DayCost => cost(&limits.day),
        LimitKind::DayTime => time(&limits.day),
        LimitKind::SubtreeTokens => tokens(&limits.subtree),
        LimitKind::SubtreeCost => cost(&limits.subtree),
        LimitKind::SubtreeTime => time(&limits.subtree),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_core::usage::MicroUsd;

    #[test]
    fn a_limit_has_its_number_in_its_own_unit() {
        let mut limits = Limits {
            max_iterations: 7,
            ..Limits::default()
        };
        limits.turn.usd = Some(MicroUsd(2_500_000));
        limits.day.tokens = Some(20_000);
        limits.conversation.wall_ms = Some(14_000);
        for (limit, expected) in [
            (LimitKind::Iterations, Some("7")),
            (LimitKind::TurnCost, Some("$2.50")),
            (LimitKind::DayTokens, Some("20.0k")),
            (LimitKind::ConversationTime, Some("14 s")),
            (LimitKind::SubtreeTokens, None),
        ] {
            assert_eq!(value(limit, &limits).as_deref(), expected, "{limit:?}");
        }
    }
}
