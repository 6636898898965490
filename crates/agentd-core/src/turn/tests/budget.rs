//! Limits: granted before a request is sent, so that none is exceeded.

use super::harness::{Act, Rig, allowed, calls, finishes, says, text, used};
use crate::event::{Body, FailureClass, Grant, LimitKind, StopReason, TurnStatus};
use crate::message::CallOutcome;
use crate::time::Timestamp;
use crate::turn::Input;
use crate::usage::{MicroUsd, Price, Usage};

const PRICE: Price = Price {
    input: MicroUsd(1_000_000),
    output: MicroUsd(2_000_000),
    cache_read: MicroUsd(100_000),
    cache_write: MicroUsd(1_000_000),
    long_context: None,
};

fn granted(rig: &Rig) -> Grant {
    let bodies = rig.journal.events.iter().rev().map(|event| &event.body);
    let mut grants = bodies.filter_map(|body| match body {
        Body::RequestSent(sent) => Some(sent.grant),
        _ => None,
    });
    grants.next().unwrap()
}

fn limit(rig: &Rig) -> Option<LimitKind> {
    let last = rig.machine.agent().last_turn.as_ref()?;
    assert_eq!(last.status, TurnStatus::Limited);
    last.limit
}

fn says_for(input: u64, output: u64) -> Act {
    Act::Replied {
        reply: text("some answer"),
        stop: StopReason::EndTurn,
        usage: Some(used(input, output)),
    }
}

/// One round of a tool, so that the model must be asked again.
fn one_round(rig: &mut Rig) -> Vec<String> {
    let (request, _) = rig.sent.last().unwrap();
    let call = format!("call_{}_{}_0", request.incarnation, request.n);
    rig.on(calls(&["shell"]));
    rig.on(allowed(&call));
    rig.on(finishes(&call, CallOutcome::Ok)).0
}

#[test]
fn a_request_is_granted_its_estimated_input_and_the_longest_output() {
    let mut rig = Rig::with(|_, policy| policy.price = Some(PRICE));
    rig.prompt("hi");
    let grant = granted(&rig);
    let estimated = crate::request::estimate_tokens(&rig.sent[0].1);
    assert_eq!(grant.input_tokens, estimated);
    assert_eq!(grant.output_tokens, 1000);
    assert_eq!(grant.cost, Some(MicroUsd(estimated + 2000)));
}

#[test]
fn a_request_asks_for_no_more_than_the_window_leaves() {
    let mut rig = Rig::with(|_, policy| {
        policy.model_window = Some(3_000);
        policy.context.max_output_tokens = 64_000;
    });
    rig.prompt("hi");
    let grant = granted(&rig);
    assert_eq!(grant.input_tokens + grant.output_tokens, 3_000);
    assert_eq!(rig.sent[0].1.context.max_output_tokens, grant.output_tokens);
}

#[test]
fn max_iterations_ends_the_turn_before_the_request_too_many() {
    let mut rig = Rig::with(|spec, _| spec.limits.max_iterations = 2);
    rig.prompt("hi");
    let seen = one_round(&mut rig);
    assert_eq!(seen.last().unwrap(), "send 2.2");
    let seen = one_round(&mut rig);
    assert_eq!(
        seen.last().unwrap(),
        "append turn_ended limited iterations, checkpoint_set"
    );
    assert_eq!(rig.sent.len(), 2);
    assert_eq!(limit(&rig), Some(LimitKind::Iterations));
}

#[test]
fn an_answer_within_max_iterations_completes() {
    let mut rig = Rig::with(|spec, _| spec.limits.max_iterations = 1);
    rig.prompt("hi").ends_with("send 2.1");
    rig.on(says("hello")).completes();
    rig.prompt("again").ends_with("send 2.2");
}

#[test]
fn failed_tries_and_summaries_are_no_iterations() {
    let mut rig = Rig::with(|spec, _| spec.limits.max_iterations = 1);
    rig.prompt("before");
    rig.on(says("something to summarize"));
    rig.prompt("hi").ends_with("send 2.2");
    rig.on(super::harness::fails(FailureClass::Overloaded));
    rig.give(Input::BackoffOver).ends_with("send 2.3");
    rig.on(super::harness::fails(FailureClass::ContextOverflow))
        .ends_with("send 2.4");
    rig.on(says("a summary")).ends_with("send 2.5");
    rig.on(says("hello")).completes();
}

#[test]
fn tokens_that_are_left_shorten_the_output() {
    let mut rig = Rig::with(|spec, _| spec.limits.turn.tokens = Some(400));
    rig.prompt("hi");
    let grant = granted(&rig);
    assert_eq!(grant.input_tokens + grant.output_tokens, 400);
    assert_eq!(rig.sent[0].1.context.max_output_tokens, grant.output_tokens);
    // Only the request is shorter; the recorded context is unchanged.
    assert_eq!(
        rig.machine.window().context().unwrap().max_output_tokens,
        1000
    );
}

#[test]
fn tokens_that_are_used_up_end_the_turn() {
    let mut rig = Rig::with(|spec, _| spec.limits.turn.tokens = Some(400));
    rig.prompt("hi");
    rig.on(Act::Replied {
        reply: super::harness::calling(&[("shell", "{}")]),
        stop: StopReason::ToolUse,
        usage: Some(used(300, 50)),
    });
    rig.on(allowed("call_2_1_0"));
    rig.on(finishes("call_2_1_0", CallOutcome::Ok))
        .ends_with("append turn_ended limited turn_tokens, checkpoint_set");
    // A turn's budget applies to that turn only; the next one has its own.
    rig.prompt("again").ends_with("send 2.2");
}

#[test]
fn a_conversation_s_tokens_are_those_of_all_its_turns() {
    let mut rig = Rig::with(|spec, _| spec.limits.conversation.tokens = Some(1000));
    rig.prompt("hi");
    rig.on(says_for(500, 400));
    rig.prompt("again")
        .ends_with("append turn_ended limited conversation_tokens, checkpoint_set");
    assert_eq!(limit(&rig), Some(LimitKind::ConversationTokens));
}

#[test]
fn money_that_is_left_shortens_the_output_and_is_never_overdrawn() {
    let mut rig = Rig::with(|spec, policy| {
        spec.limits.turn.usd = Some(MicroUsd(1_000));
        policy.price = Some(PRICE);
    });
    rig.prompt("hi");
    let grant = granted(&rig);
    assert!(grant.output_tokens < 1000);
    assert!(grant.cost.unwrap() <= MicroUsd(1_000));
    assert_eq!(grant.output_tokens, (1_000 - grant.input_tokens) / 2);
}

#[test]
fn money_that_is_used_up_ends_the_turn() {
    let mut rig = Rig::with(|spec, policy| {
        spec.limits.conversation.usd = Some(MicroUsd(1_000));
        policy.price = Some(PRICE);
    });
    rig.prompt("hi");
    rig.on(says_for(300, 300));
    rig.prompt("again")
        .ends_with("append turn_ended limited conversation_cost, checkpoint_set");
}

/// A money limit on a model of unknown price is an error. No request is sent at a guessed price.
#[test]
fn money_and_an_unknown_price_send_nothing() {
    let mut rig = Rig::with(|spec, _| spec.limits.day.usd = Some(MicroUsd(1_000_000)));
    rig.prompt("hi")
        .ends_with("append turn_ended limited day_cost, checkpoint_set");
    assert_eq!(rig.sent.len(), 0);
}

#[test]
fn time_that_is_used_up_ends_the_turn_and_calls_that_have_not_begun() {
    let mut rig = Rig::with(|spec, _| spec.limits.turn.wall_ms = Some(5_000));
    rig.prompt("hi");
    rig.journal.at = Timestamp::from_millis(5_999);
    let seen = one_round(&mut rig);
    assert_eq!(seen.last().unwrap(), "send 2.2");
    rig.journal.at = Timestamp::from_millis(6_000);
    rig.on(calls(&["shell"])).ends_with(
        "append tool_ended call_2_2_0 interrupted, result, turn_ended limited turn_time, checkpoint_set",
    );
}

#[test]
fn a_conversation_s_time_is_that_of_its_turns_and_not_of_the_nights_between() {
    let mut rig = Rig::with(|spec, _| spec.limits.conversation.wall_ms = Some(5_000));
    rig.prompt("hi");
    rig.journal.at = Timestamp::from_millis(4_000);
    rig.on(says("hello"));
    rig.journal.at = Timestamp::from_millis(1_000_000);
    rig.prompt("again").ends_with("send 2.2");
    rig.journal.at = Timestamp::from_millis(1_002_000);
    rig.on(calls(&["shell"]));
    assert_eq!(limit(&rig), Some(LimitKind::ConversationTime));
}

/// goose#7472: a clock that is set back changes nothing.
#[test]
fn a_clock_that_is_set_back_gives_no_new_day_and_no_negative_time() {
    const DAY: i64 = 86_400_000;
    let mut rig = Rig::with(|spec, _| spec.limits.day.tokens = Some(1000));
    rig.journal.at = Timestamp::from_millis(10 * DAY);
    rig.prompt("hi");
    rig.on(says_for(500, 400));
    rig.journal.at = Timestamp::from_millis(9 * DAY);
    rig.prompt("yesterday")
        .ends_with("append turn_ended limited day_tokens, checkpoint_set");
    rig.journal.at = Timestamp::from_millis(11 * DAY);
    rig.prompt("tomorrow").ends_with("send 2.2");
}

#[test]
fn the_first_limit_that_leaves_no_room_is_named() {
    let mut rig = Rig::with(|spec, _| {
        spec.limits.turn.tokens = Some(1_000_000);
        spec.limits.day.tokens = Some(10);
    });
    rig.prompt("hi")
        .ends_with("append turn_ended limited day_tokens, checkpoint_set");
    assert_eq!(limit(&rig), Some(LimitKind::DayTokens));
}

/// A request that the provider refuses costs nothing, nor does one that it never got. A gateway does not know.
#[test]
fn a_rejected_request_costs_nothing() {
    for (class, status, is_free) in [
        (FailureClass::Rejected, Some(400), true),
        (FailureClass::Rejected, Some(429), true),
        (FailureClass::Unavailable, Some(500), true),
        (FailureClass::Overloaded, Some(529), true),
        (FailureClass::Unavailable, Some(502), false),
        (FailureClass::Unavailable, Some(504), false),
        (FailureClass::Rejected, None, false),
        (FailureClass::Dropped, None, false),
        (FailureClass::Unreachable, None, true),
    ] {
        let mut rig = Rig::with(|_, policy| policy.price = Some(PRICE));
        rig.prompt("hi").ends_with("send 2.1");
        let request = rig.sent.last().unwrap().0;
        rig.give(Input::RequestFailed {
            request,
            class,
            status,
            retry_after_ms: None,
            detail: "no".to_owned(),
            partial: Default::default(),
        });
        let ended = rig
            .journal
            .events
            .iter()
            .find_map(|event| match &event.body {
                Body::RequestEnded(ended) => Some(ended.clone()),
                _ => None,
            });
        let ended = ended.unwrap();
        assert_eq!(ended.cost == Some(MicroUsd(0)), is_free, "{status:?}");
        assert_eq!(ended.usage == Usage::default(), is_free, "{status:?}");
        assert_eq!(ended.estimated, !is_free);
    }
    // Also if the price of the model is unknown: the sum stays known.
    let mut rig = Rig::asked();
    let request = rig.sent.last().unwrap().0;
    rig.give(Input::RequestFailed {
        request,
        class: FailureClass::Rejected,
        status: Some(400),
        retry_after_ms: None,
        detail: "no".to_owned(),
        partial: Default::default(),
    });
    assert_eq!(rig.machine.agent().spending.lifetime.unpriced, 0);
}
