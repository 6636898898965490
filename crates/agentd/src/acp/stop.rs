//! How a turn ended, as the protocol says it.

use agent_client_protocol::v1::schema::StopReason;
use agentd_core::event::{LimitKind, StopReason as ReplyStop, TurnEnded, TurnStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Stopped(StopReason),
    /// The prompt is answered with an error, which says why.
    Failed,
}

/// Whether the editor has asked to cancel the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cancel {
    #[default]
    No,
    Asked,
}

/// `reply` is why the last reply of the turn stopped. A prompt that the editor cancelled is always answered with
/// `cancelled`, however its turn ended meanwhile.
pub fn of_turn(ended: &TurnEnded, reply: Option<ReplyStop>, cancel: Cancel) -> End {
    if cancel == Cancel::Asked || ended.withdrawn {
        return End::Stopped(StopReason::Cancelled);
    }
    End::Stopped(match ended.status {
        TurnStatus::Completed => match reply {
            Some(ReplyStop::MaxTokens) => StopReason::MaxTokens,
            Some(ReplyStop::Refusal) => StopReason::Refusal,
            _ => StopReason::EndTurn,
        },
        TurnStatus::Interrupted => StopReason::Cancelled,
        TurnStatus::Limited => match ended.limit {
            Some(
                LimitKind::TurnTokens
                | LimitKind::ConversationTokens
                | LimitKind::DayTokens
                | LimitKind::SubtreeTokens,
            ) => StopReason::MaxTokens,
            _ => StopReason::MaxTurnRequests,
        },
        TurnStatus::Failed | TurnStatus::Lost => return End::Failed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(limit: LimitKind) -> TurnEnded {
        TurnEnded {
            limit: Some(limit),
            ..TurnEnded::with(TurnStatus::Limited)
        }
    }

    #[test]
    fn the_whole_table() {
        use StopReason as Stop;
        let ended = TurnEnded::with;
        let table = [
            (ended(TurnStatus::Completed), None, Some(Stop::EndTurn)),
            (
                ended(TurnStatus::Completed),
                Some(ReplyStop::MaxTokens),
                Some(Stop::MaxTokens),
            ),
            (
                ended(TurnStatus::Completed),
                Some(ReplyStop::Refusal),
                Some(Stop::Refusal),
            ),
            (ended(TurnStatus::Interrupted), None, Some(Stop::Cancelled)),
            (
                limited(LimitKind::Iterations),
                None,
                Some(Stop::MaxTurnRequests),
            ),
            (
                limited(LimitKind::TurnCost),
                None,
                Some(Stop::MaxTurnRequests),
            ),
            (limited(LimitKind::DayTokens), None, Some(Stop::MaxTokens)),
            (ended(TurnStatus::Failed), None, None),
            (ended(TurnStatus::Lost), None, None),
        ];
        for (turn, reply, expected) in table {
            let expected = expected.map_or(End::Failed, End::Stopped);
            assert_eq!(of_turn(&turn, reply, Cancel::No), expected, "{turn:?}");
            let cancelled = of_turn(&turn, reply, Cancel::Asked);
            assert_eq!(cancelled, End::Stopped(Stop::Cancelled), "{turn:?}");
        }
    }
}
