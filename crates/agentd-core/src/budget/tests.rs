//! Tests of what a request is granted.

use super::*;
use crate::event::{RequestEnded, RequestOutcome, SpecSet, TurnStatus};
use crate::fixture::{self, Journal};
use crate::spec::AgentSpec;

const NOW: Timestamp = Timestamp::from_millis(1_000);

const PRICE: Price = Price {
    input: MicroUsd(3_000_000),
    output: MicroUsd(15_000_000),
    cache_read: MicroUsd(300_000),
    cache_write: MicroUsd(3_750_000),
    long_context: None,
};

/// An agent in a turn, with these limits, that has used this much in it.
fn agent(limits: Limits, used: &[Usage]) -> AgentState {
    let mut journal = Journal::new();
    let spec = AgentSpec {
        limits,
        ..AgentSpec::default()
    };
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    journal.start_turn(1);
    for (n, usage) in used.iter().enumerate() {
        let request = fixture::request(1, n as u64 + 1);
        journal.send(request, crate::event::Purpose::Answer);
        journal.push(RequestEnded {
            request,
            outcome: RequestOutcome::Completed,
            usage: *usage,
            estimated: false,
            cost: Some(PRICE.of(usage)),
            provider_request: None,
        });
    }
    journal.state()
}

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    }
}

#[test]
fn without_a_limit_all_of_it_is_granted() {
    let state = agent(Limits::default(), &[]);
    let granted = grant(&state, NOW, 500, 8192, None).unwrap();
    let cost = None;
    let expected = Grant {
        input_tokens: 500,
        output_tokens: 8192,
        cost,
    };
    assert_eq!(granted, expected);
}

#[test]
fn an_answer_fits_into_the_window_beside_its_input() {
    for (max, input, window, room) in [
        (64_000, 10_000, None, 64_000),
        (64_000, 10_000, Some(200_000), 64_000),
        (64_000, 160_000, Some(200_000), 40_000),
        // The input is only estimated: the provider decides whether it fits.
        (64_000, 199_000, Some(200_000), 8_192),
        (64_000, 300_000, Some(200_000), 8_192),
        (8_192, 3_000, Some(9_000), 6_000),
        (8_192, 9_000, Some(9_000), 1_125),
        (1_000, 199_000, Some(200_000), 1_000),
        (1_000, 5, Some(0), 1),
    ] {
        let found = room_for_output(max, input, window);
        assert_eq!(found, room, "{max} {input} {window:?}");
    }
}

#[test]
fn tokens_of_every_kind_count_those_of_the_cache_among_them() {
    let used = Usage {
        input_tokens: 100,
        output_tokens: 100,
        cache_read_tokens: 300,
        cache_write_tokens: 200,
    };
    let state = agent(limits(|l| l.turn.tokens = Some(1_000)), &[used]);
    let granted = grant(&state, NOW, 100, 8192, None).unwrap();
    assert_eq!(granted.output_tokens, 200);
}

#[test]
fn an_output_too_short_to_be_an_answer_is_no_grant() {
    let state = agent(limits(|l| l.turn.tokens = Some(1_000)), &[]);
    let at_the_edge = grant(&state, NOW, 936, 8192, None).unwrap();
    assert_eq!(at_the_edge.output_tokens, 64);
    let past_it = grant(&state, NOW, 937, 8192, None);
    assert_eq!(past_it, Err(LimitKind::TurnTokens));
}

#[test]
fn but_one_that_is_meant_to_be_short_is() {
    let state = agent(limits(|l| l.turn.tokens = Some(1_000)), &[]);
    assert_eq!(grant(&state, NOW, 990, 10, None).unwrap().output_tokens, 10);
    let refused = grant(&state, NOW, 991, 10, None);
    assert_eq!(refused, Err(LimitKind::TurnTokens));
}

#[test]
fn a_limit_of_nothing_grants_nothing() {
    let none = agent(limits(|l| l.day.tokens = Some(0)), &[]);
    assert_eq!(grant(&none, NOW, 0, 0, None), Err(LimitKind::DayTokens));
    let none = agent(limits(|l| l.turn.wall_ms = Some(0)), &[]);
    assert_eq!(grant(&none, NOW, 1, 100, None), Err(LimitKind::TurnTime));
}

#[test]
fn the_tightest_limit_shortens_the_output() {
    let state = agent(
        limits(|l| {
            l.turn.tokens = Some(5_000);
            l.conversation.tokens = Some(900);
            l.day.tokens = Some(2_000);
        }),
        &[],
    );
    assert_eq!(
        grant(&state, NOW, 100, 8192, None).unwrap().output_tokens,
        800
    );
}

#[test]
fn each_scope_and_measure_names_its_own_limit() {
    type Case = (fn(&mut Limits), LimitKind);
    let cases: [Case; 12] = [
        (|l| l.turn.tokens = Some(1), LimitKind::TurnTokens),
        (|l| l.turn.usd = Some(MicroUsd(1)), LimitKind::TurnCost),
        (|l| l.turn.wall_ms = Some(1), LimitKind::TurnTime),
        (
            |l| l.conversation.tokens = Some(1),
            LimitKind::ConversationTokens,
        ),
        (
            |l| l.conversation.usd = Some(MicroUsd(1)),
            LimitKind::ConversationCost,
        ),
        (
            |l| l.conversation.wall_ms = Some(1),
            LimitKind::ConversationTime,
        ),
        (|l| l.day.tokens = Some(1), LimitKind::DayTokens),
        (|l| l.day.usd = Some(MicroUsd(1)), LimitKind::DayCost),
        (|l| l.day.wall_ms = Some(1), LimitKind::DayTime),
        (|l| l.subtree.tokens = Some(1), LimitKind::SubtreeTokens),
        (
            |l| l.subtree.usd = Some(MicroUsd(1)),
            LimitKind::SubtreeCost,
        ),
        (|l| l.subtree.wall_ms = Some(1), LimitKind::SubtreeTime),
    ];
    for (change, kind) in cases {
        let state = agent(limits(change), &[]);
        let later = Timestamp::from_millis(1_001);
        assert_eq!(grant(&state, later, 100, 1000, Some(PRICE)), Err(kind));
    }
}

#[test]
fn iterations_are_the_answers_of_this_turn() {
    let two = limits(|l| l.max_iterations = 2);
    let one_done = agent(two.clone(), &[usage(1, 1)]);
    assert!(grant(&one_done, NOW, 1, 100, None).is_ok());
    let two_done = agent(two, &[usage(1, 1), usage(1, 1)]);
    assert_eq!(
        grant(&two_done, NOW, 1, 100, None),
        Err(LimitKind::Iterations)
    );
}

/// If all of a grant is used, with all of the input written to the cache, the budget is still not exceeded.
#[test]
fn whatever_a_granted_request_uses_the_money_suffices() {
    for left in [3_000, 4_321, 10_007, 50_000, 999_999] {
        let state = agent(limits(|l| l.turn.usd = Some(MicroUsd(left))), &[]);
        for input in [0, 1, 7, 333, 500] {
            let granted = grant(&state, NOW, input, 8192, Some(PRICE)).unwrap();
            let worst = Usage {
                cache_write_tokens: input,
                output_tokens: granted.output_tokens,
                ..Usage::default()
            };
            let cost = PRICE.of(&worst);
            assert!(cost <= MicroUsd(left), "{left} {input}: {cost:?}");
            assert_eq!(granted.cost, Some(cost), "and that much is reserved");
        }
    }
}

#[test]
fn money_is_not_left_lying_about_either() {
    let state = agent(limits(|l| l.turn.usd = Some(MicroUsd(15_000))), &[]);
    let granted = grant(&state, NOW, 0, 8192, Some(PRICE)).unwrap();
    assert_eq!(granted.output_tokens, 1_000);
}

#[test]
fn free_output_does_not_make_the_input_free() {
    let price = Price {
        output: MicroUsd(0),
        ..PRICE
    };
    let state = agent(limits(|l| l.turn.usd = Some(MicroUsd(10))), &[]);
    let refused = grant(&state, NOW, 1_000, 8192, Some(price));
    assert_eq!(refused, Err(LimitKind::TurnCost));
    let granted = grant(&state, NOW, 2, 8192, Some(price)).unwrap();
    assert_eq!(granted.output_tokens, 8192);
}

#[test]
fn what_was_spent_is_taken_off() {
    let spent = usage(1_000, 1_000);
    let state = agent(
        limits(|l| l.conversation.usd = Some(MicroUsd(33_000))),
        &[spent],
    );
    assert_eq!(PRICE.of(&spent), MicroUsd(18_000));
    let granted = grant(&state, NOW, 0, 8192, Some(PRICE)).unwrap();
    assert_eq!(granted.output_tokens, 1_000);
}

#[test]
fn time_is_that_of_turns_and_ends_at_the_limit() {
    let state = agent(limits(|l| l.turn.wall_ms = Some(500)), &[]);
    let just_before = Timestamp::from_millis(1_499);
    assert!(grant(&state, just_before, 1, 100, None).is_ok());
    let at_it = Timestamp::from_millis(1_500);
    assert_eq!(grant(&state, at_it, 1, 100, None), Err(LimitKind::TurnTime));
    let set_back = Timestamp::from_millis(0);
    assert!(grant(&state, set_back, 1, 100, None).is_ok());
}

#[test]
fn a_new_day_has_its_own_budget_and_a_conversation_has_not() {
    let mut journal = Journal::new();
    let spec = AgentSpec {
        limits: limits(|l| {
            l.day.tokens = Some(1_000);
            l.conversation.tokens = Some(3_000);
        }),
        ..AgentSpec::default()
    };
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    journal.start_turn(1);
    let request = fixture::request(1, 1);
    journal.send(request, crate::event::Purpose::Answer);
    journal.push(RequestEnded {
        request,
        outcome: RequestOutcome::Completed,
        usage: usage(900, 100),
        estimated: false,
        cost: None,
        provider_request: None,
    });
    journal.end_turn(TurnStatus::Completed);
    let state = journal.state();
    assert_eq!(grant(&state, NOW, 10, 500, None), Err(LimitKind::DayTokens));
    let tomorrow = Timestamp::from_millis(1_000 + 24 * 60 * 60 * 1_000);
    let granted = grant(&state, tomorrow, 10, 5_000, None).unwrap();
    assert_eq!(granted.output_tokens, 990);
}

#[test]
fn a_money_limit_needs_a_price_in_every_scope() {
    let scopes: [fn(&mut Limits); 4] = [
        |l| l.turn.usd = Some(MicroUsd(1)),
        |l| l.conversation.usd = Some(MicroUsd(1)),
        |l| l.day.usd = Some(MicroUsd(1)),
        |l| l.subtree.usd = Some(MicroUsd(1)),
    ];
    for change in scopes {
        let limits = limits(change);
        assert_eq!(check_price(&limits, None), Err(UnknownPrice));
        assert_eq!(check_price(&limits, Some(PRICE)), Ok(()));
    }
    assert_eq!(check_price(&Limits::default(), None), Ok(()));
    let by_tokens = limits(|l| l.turn.tokens = Some(1));
    assert_eq!(check_price(&by_tokens, None), Ok(()));
}

#[test]
fn a_try_without_usage_is_charged_its_input_and_what_it_wrote() {
    let grant = Grant {
        input_tokens: 120,
        output_tokens: 1_000,
        cost: None,
    };
    assert_eq!(charge_without_usage(&grant, 0), usage(120, 0));
    assert_eq!(charge_without_usage(&grant, 10), usage(120, 4));
}

#[test]
fn a_day_s_spending_stays_with_the_newest_day_seen() {
    let state = agent(Limits::default(), &[usage(7, 3)]);
    let today = state.spending.on_day_of(NOW);
    assert_eq!(today.usage, usage(7, 3));
    let earlier = Timestamp::from_millis(-100_000_000);
    assert_eq!(state.spending.on_day_of(earlier).usage, usage(7, 3));
    let later = Timestamp::from_millis(100_000_000);
    assert_eq!(state.spending.on_day_of(later), Spent::default());
}
