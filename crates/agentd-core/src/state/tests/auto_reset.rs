//! When an automatic reset is due. Time is a value here.

use crate::event::*;
use crate::fixture::{self, Journal, prompt_id};
use crate::id::OpId;
use crate::message::Block;
use crate::spec::{AgentSpec, AutoReset};
use crate::state::Phase;
use crate::time::Timestamp;
use crate::usage::Usage;

fn with(auto_reset: AutoReset) -> Journal {
    let mut journal = Journal::new();
    let spec = AgentSpec {
        auto_reset,
        ..AgentSpec::default()
    };
    let spec = Box::new(spec);
    journal.push(SpecSet { spec });
    journal
}

/// A turn that ends at `at` and whose answer has this many tokens.
fn turn(journal: &mut Journal, n: u128, at: i64, tokens: u64) {
    journal.start_turn(n);
    journal.prompt(n, "go on");
    let request = fixture::request(1, n as u64);
    journal.send(request, Purpose::Answer);
    journal.push(RequestEnded {
        request,
        outcome: RequestOutcome::Completed,
        usage: Usage {
            input_tokens: tokens,
            ..Usage::default()
        },
        estimated: false,
        cost: None,
        provider_request: None,
    });
    journal.reply(vec![Block::text("done")]);
    journal.at = Timestamp::from_millis(at);
    journal.end_turn(TurnStatus::Completed);
}

fn begin(journal: &mut Journal, source: ResetSource) -> OpId {
    let op = OpId::from_bytes([8; 16]);
    journal.push(ResetBegan {
        op,
        to: ResetTo::Fresh,
        force: false,
        kill_background: false,
        keep_queue: true,
        clear_log: false,
        skip_hooks: false,
        grace_ms: 1,
        was_awake: false,
        source,
    });
    op
}

fn withdraw(journal: &mut Journal, op: OpId, at: i64) {
    journal.at = Timestamp::from_millis(at);
    let why = ResetRefusal::Hook;
    journal.push(ResetWithdrawn { op, why });
}

const fn ms(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[test]
fn off_by_default() {
    let mut journal = with(AutoReset::default());
    turn(&mut journal, 1, 5_000, u64::MAX);
    journal.push(ResetScheduled {});
    let state = journal.state();
    assert_eq!(state.auto_reset(ms(i64::MAX)), None);
    assert_eq!((state.phase(), state.idle_reset_at()), (Phase::Idle, None));
}

#[test]
fn after_a_silence_and_not_before() {
    let mut journal = with(AutoReset {
        idle_ms: Some(1_000),
        ..AutoReset::default()
    });
    assert_eq!(
        journal.state().idle_reset_at(),
        None,
        "nothing was said yet"
    );
    turn(&mut journal, 1, 5_000, 10);
    let state = journal.state();
    assert_eq!(state.idle_reset_at(), Some(ms(6_000)));
    assert_eq!(state.auto_reset(ms(5_999)), None);
    assert_eq!(state.auto_reset(ms(6_000)), Some(ResetSource::Idle));
    assert_eq!((state.phase(), state.needs_process()), (Phase::Idle, false));
    // While a prompt is queued, the conversation is not idle.
    let mut asked = journal.clone();
    asked.queue(prompt_id(50), PromptMode::Queue, "hello");
    assert_eq!(asked.state().auto_reset(ms(9_000)), None);
    let mut stopped = journal.clone();
    stopped.push(AgentStopped {});
    assert_eq!(stopped.state().auto_reset(ms(9_000)), None);
    // After a refusal, it is tried after another idle period.
    let op = begin(&mut journal, ResetSource::Idle);
    assert_eq!(journal.state().auto_reset(ms(9_000)), None);
    withdraw(&mut journal, op, 9_000);
    assert_eq!(journal.state().idle_reset_at(), Some(ms(10_000)));
}

#[test]
fn over_a_size_before_anything_new_begins() {
    let mut journal = with(AutoReset {
        over_tokens: Some(100),
        ..AutoReset::default()
    });
    turn(&mut journal, 1, 5_000, 99);
    assert_eq!(journal.state().reset_due(), None);
    turn(&mut journal, 2, 6_000, 100);
    journal.queue(prompt_id(50), PromptMode::Queue, "hello");
    let state = journal.state();
    assert_eq!(state.reset_due(), Some(ResetSource::ContextSize));
    assert_eq!(
        (state.phase(), state.needs_process()),
        (Phase::Resetting, false)
    );
    // After a refusal the prompt is answered, and the next turn is another reason.
    let op = begin(&mut journal, ResetSource::ContextSize);
    withdraw(&mut journal, op, 7_000);
    let state = journal.state();
    assert_eq!((state.reset_due(), state.phase()), (None, Phase::Running));
    assert!(state.needs_process());
    turn(&mut journal, 3, 8_000, 100);
    assert_eq!(journal.state().reset_due(), Some(ResetSource::ContextSize));
    // A compaction made it small.
    let through = journal.events.last().unwrap().position();
    journal.push(Compacted { through });
    assert_eq!(journal.state().reset_due(), None);
}

#[test]
fn by_its_own_wish_at_the_end_of_the_turn() {
    let mut journal = with(AutoReset {
        by_tool: true,
        ..AutoReset::default()
    });
    journal.start_turn(1);
    journal.prompt(1, "go on");
    journal.push(ResetScheduled {});
    assert_eq!(journal.state().reset_due(), None, "its turn goes on");
    assert_eq!(journal.state().phase(), Phase::Running);
    journal.end_turn(TurnStatus::Completed);
    assert_eq!(journal.state().reset_due(), Some(ResetSource::Tool));
    let op = begin(&mut journal, ResetSource::Tool);
    withdraw(&mut journal, op, 9_000);
    assert_eq!(journal.state().reset_due(), None, "once");
}

/// Otherwise an undo would be reversed immediately.
#[test]
fn a_conversation_that_was_taken_up_again_is_left_alone() {
    let mut journal = with(AutoReset {
        idle_ms: Some(1_000),
        over_tokens: Some(100),
        ..AutoReset::default()
    });
    turn(&mut journal, 1, 5_000, 100);
    let (old, new) = (journal.conversation, fixture::conversation(9));
    journal.conversation = new;
    journal.begin(BeginSource::Reset, Some(old), None);
    assert_eq!(
        journal.state().auto_reset(ms(i64::MAX)),
        None,
        "nothing was said in it"
    );
    journal.conversation = old;
    journal.at = ms(20_000);
    let (direction, op) = (Direction::Undo, None);
    journal.push(PointerMoved {
        to: old,
        direction,
        op,
    });
    let state = journal.state();
    assert_eq!(state.reset_due(), None);
    assert_eq!(state.idle_reset_at(), Some(ms(21_000)));
    turn(&mut journal, 2, 22_000, 100);
    assert_eq!(journal.state().reset_due(), Some(ResetSource::ContextSize));
}
