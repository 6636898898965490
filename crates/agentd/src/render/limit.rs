//! The limits of an agent, in words.

use agentd_core::event::LimitKind;

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
