//! Daemon, link, runtime and journal under random schedules: what was acknowledged happens once, and a
//! reset happens whole or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it tried"
)]

use agentd_core::event::{Body, PromptMode, TurnStatus};
use agentd_core::id::{ConversationId, Incarnation, OpId, PromptId, Seq};
use agentd_core::state::{AgentState, Outcome};
use agentd_core::wire;
use agentd_testkit::sim::{Op, SCHEDULES, Sim, Wanted, Way, everything, op, trouble};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// A runner that prints how to repeat the same schedules.
fn runner(cases: u32) -> TestRunner {
    let mut config = agentd_testkit::cases(cases);
    if config.rng_seed == RngSeed::Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        config.rng_seed = RngSeed::Fixed(u64::from(now.subsec_nanos()));
    }
    println!("PROPTEST_RNG_SEED={}", config.rng_seed);
    TestRunner::new(config)
}

/// What happened in the schedules: a simulation in which hardly anything happens proves nothing.
#[derive(Debug, Default)]
struct Tried {
    kills: u64,
    rests: u64,
    events: BTreeMap<&'static str, u64>,
    turns: BTreeMap<String, u64>,
    resets: BTreeMap<String, u64>,
}

impl Tried {
    fn add(&mut self, sim: &Sim) {
        self.kills += u64::from(sim.kills);
        self.rests += u64::from(sim.rests);
        for event in sim.events() {
            *self.events.entry(event.body.kind().name()).or_default() += 1;
            if let Body::ResetBegan(began) = &event.body {
                let source = format!("{:?}", began.source);
                *self.resets.entry(source).or_default() += 1;
            }
            if let Body::TurnEnded(turn) = &event.body {
                let status = format!("{:?}", turn.status);
                *self.turns.entry(status).or_default() += 1;
            }
        }
    }

    fn events(&self, kind: &str) -> u64 {
        self.events.get(kind).copied().unwrap_or(0)
    }
}

/// Runs this many schedules of these ops, and checks each after every op and at its end.
fn tried(cases: u32, op: impl Strategy<Value = Op>) -> Tried {
    let tried = RefCell::new(Tried::default());
    runner(cases)
        .run(&prop::collection::vec(op, 1..300), |ops| {
            let mut sim = Sim::new();
            for op in &ops {
                sim.apply(*op);
                sim.check();
            }
            sim.run_until_idle();
            sim.check();
            check(&sim)?;
            // What was stopped goes on where it was.
            sim.apply(Op::StartAgent);
            sim.run_until_idle();
            sim.check();
            check(&sim)?;
            let is_done = sim.kept.state().turn.is_none();
            prop_assert!(is_done && sim.kept.state().inbox.waiting().len() == 0);
            tried.borrow_mut().add(&sim);
            Ok(())
        })
        .unwrap();
    let tried = tried.into_inner();
    println!("{tried:#?}");
    tried
}

/// goose#11808, langgraph#7417: a tool that had run is run again after a crash.
/// goose#9037: a queued prompt is lost.
#[test]
fn whatever_is_killed_or_cut_each_prompt_is_taken_once_and_each_tool_runs_once() {
    let tried = tried(SCHEDULES, op());
    assert!(tried.kills > 1000 && tried.rests > 1000);
    for kind in [
        "reset_ended",
        "reset_withdrawn",
        "pointer_moved",
        "agent_stopped",
        "agent_failed",
        "prompts_set_aside",
        "prompts_requeued",
        "approval_answered",
    ] {
        assert!(tried.events(kind) > 100, "hardly any {kind}");
    }
}

/// The same with compactions and automatic resets.
#[test]
fn what_an_agent_does_to_its_conversation_by_itself_changes_nothing_of_that() {
    let tried = tried(2_000, everything());
    assert!(tried.kills > 1000 && tried.rests > 1000);
    for (kind, least) in [("compacted", 300), ("reset_scheduled", 30)] {
        assert!(tried.events(kind) > least, "hardly any {kind}");
    }
    for source in ["User", "Tool", "Idle", "ContextSize"] {
        let made = tried.resets.get(source).copied().unwrap_or(0);
        assert!(made > 10, "hardly any reset by {source}");
    }
}

/// What must hold when everything is idle.
fn check(sim: &Sim) -> Result<(), TestCaseError> {
    let state = sim.kept.state();
    let failed = state.failed.is_some();
    prop_assert!(state.turn.is_none() || failed, "a turn never ended");
    prop_assert!(state.resets.under_way().is_none(), "a reset never ended");
    let waiting = state.inbox.waiting().len();
    let may_wait = state.stopped || failed;
    prop_assert!(waiting == 0 || may_wait, "a prompt was never taken");
    prop_assert!(!state.stopped || !sim.is_awake(), "stopped, and it runs");
    for (call, times) in &sim.effects {
        prop_assert_eq!(*times, 1, "{} ran more than once", call);
    }
    check_turns(sim)?;
    check_prompts(sim)?;
    check_resets(sim)?;
    check_compactions(sim)?;
    check_writers(sim)
}

/// Each accepted compaction has ended, or waits for an agent that may not run; none was made twice.
fn check_compactions(sim: &Sim) -> Result<(), TestCaseError> {
    let state = sim.kept.state();
    let waits = state.compactions.asked();
    let may_wait = state.stopped || state.failed.is_some();
    prop_assert!(waits.is_none() || may_wait, "a compaction never ended");
    for op in &sim.compactions {
        let is_over = state.compactions.outcome(*op).is_some();
        prop_assert!(
            is_over || waits == Some(*op),
            "nobody knows how {} went",
            op
        );
    }
    let mut made = BTreeMap::new();
    for event in sim.events() {
        if let (Body::Compacted(_), Some(turn)) = (&event.body, event.turn) {
            *made.entry(turn).or_insert(0) += 1;
        }
    }
    prop_assert!(made.values().all(|times| *times == 1), "made twice");
    Ok(())
}

fn check_turns(sim: &Sim) -> Result<(), TestCaseError> {
    let (mut started, mut ended) = (0, 0);
    for event in sim.events() {
        match &event.body {
            Body::TurnStarted(_) => started += 1,
            Body::TurnEnded(turn) => {
                ended += 1;
                let gave_up = turn.status == TurnStatus::Lost;
                prop_assert!(!gave_up || sim.kills >= 3, "lost after {} kills", sim.kills);
            }
            _ => {}
        }
    }
    let under_way = u32::from(sim.kept.state().turn.is_some());
    prop_assert_eq!(started, ended + under_way);
    Ok(())
}

/// Each prompt exists once, and was answered once, or waits, or was set aside with its conversation, or was removed.
fn check_prompts(sim: &Sim) -> Result<(), TestCaseError> {
    let mut accepted = BTreeMap::<String, PromptId>::new();
    let mut taken = BTreeMap::<PromptId, u32>::new();
    let mut named = Vec::new();
    let mut removed = BTreeSet::new();
    for event in sim.events() {
        match &event.body {
            Body::PromptQueued(queued) => {
                if let Some(key) = &queued.key {
                    let twice = accepted.insert(key.clone(), queued.prompt);
                    prop_assert_eq!(twice, None, "{} was accepted twice", key);
                }
            }
            Body::PromptsTaken(body) => {
                // A runtime may not know yet that the user has removed it: then it takes nothing.
                for prompt in body.prompts.iter().filter(|it| !removed.contains(*it)) {
                    *taken.entry(*prompt).or_default() += 1;
                }
            }
            Body::PromptsRemoved(body) => {
                for prompt in &body.prompts {
                    prop_assert!(removed.insert(*prompt), "removed twice");
                }
            }
            Body::PromptsSetAside(body) => named.extend(body.prompts.iter().copied()),
            _ => {}
        }
    }
    let inbox = &sim.kept.state().inbox;
    for sent in &sim.prompts {
        prop_assert!(sent.is_acknowledged);
        let prompt = accepted.get(&sent.key).copied();
        let Some(prompt) = prompt else {
            return Err(TestCaseError::fail(format!("{} is nowhere", sent.key)));
        };
        let waits = inbox.waiting().filter(|queued| queued.prompt == prompt);
        let aside = inbox.set_aside_prompts();
        let aside = aside.filter(|queued| queued.prompt == prompt).count();
        let taken = taken.get(&prompt).copied().unwrap_or(0) as usize;
        let removed = usize::from(removed.contains(&prompt));
        let times = taken + waits.count() + aside + removed;
        prop_assert_eq!(times, 1, "{} is there {} times", sent.key, times);
        prop_assert!(aside == 0 || named.contains(&prompt));
    }
    Ok(())
}

/// Each op that began has one end, and moved the pointer once or not at all. Prompts that were accepted meanwhile belong
/// to the conversation that it led to.
fn check_resets(sim: &Sim) -> Result<(), TestCaseError> {
    let state = sim.kept.state();
    let mut began = BTreeMap::<OpId, u32>::new();
    let mut moved = BTreeMap::<OpId, u32>::new();
    for event in sim.events() {
        let (times, op) = match &event.body {
            Body::ResetBegan(body) => (&mut began, Some(body.op)),
            Body::ConversationBegan(body) => (&mut moved, body.op),
            Body::PointerMoved(body) => (&mut moved, body.op),
            _ => continue,
        };
        if let Some(op) = op {
            *times.entry(op).or_default() += 1;
        }
    }
    for asked in &sim.resets {
        let op = asked.order.op;
        let times = |of: &BTreeMap<OpId, u32>| of.get(&op).copied().unwrap_or(0);
        let times = (times(&began), times(&moved));
        match &asked.answer {
            Some(Ok(Outcome::Ended {
                began, ended, old, ..
            })) => {
                prop_assert_eq!(times, (1, 1));
                check_accepted_during(sim, *began, *ended, *old)?;
            }
            Some(Ok(Outcome::Withdrawn { .. })) => prop_assert_eq!(times, (1, 0)),
            Some(Err(_)) => prop_assert_eq!(times, (0, 0)),
            None => prop_assert!(false, "nobody knows how {} went", op),
        }
        if let Some(Ok(outcome)) = &asked.answer {
            prop_assert_eq!(state.resets.outcome(op), Some(*outcome));
        }
    }
    Ok(())
}

fn check_accepted_during(
    sim: &Sim,
    began: Seq,
    ended: Seq,
    old: ConversationId,
) -> Result<(), TestCaseError> {
    let is_during = |seq: Seq| seq > began && seq < ended;
    let mut accepted = Vec::new();
    for event in sim.events() {
        match &event.body {
            // Without its key it is the same prompt, carried along.
            Body::PromptQueued(queued) if queued.key.is_some() && is_during(event.seq) => {
                accepted.push(queued.prompt);
            }
            Body::PromptsSetAside(aside) if is_during(event.seq) => {
                let own = aside.prompts.iter().any(|prompt| accepted.contains(prompt));
                prop_assert!(!own, "set aside by the reset that it came after");
            }
            Body::PromptsTaken(taken) if event.conversation == old => {
                let late = taken.prompts.iter().any(|prompt| accepted.contains(prompt));
                prop_assert!(!late, "taken in the conversation that was left");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Only the newest incarnation writes requests, and only before it has recorded its own end.
fn check_writers(sim: &Sim) -> Result<(), TestCaseError> {
    let mut newest = Incarnation(0);
    let mut at_rest = true;
    for event in sim.events() {
        match &event.body {
            Body::IncarnationBegan(began) => {
                prop_assert!(began.incarnation > newest);
                (newest, at_rest) = (began.incarnation, false);
            }
            Body::IncarnationEnded(ended) => {
                prop_assert_eq!(ended.incarnation, newest);
                at_rest = true;
            }
            Body::RequestSent(sent) => {
                prop_assert_eq!(sent.request.incarnation, newest);
                prop_assert!(!at_rest);
            }
            Body::TurnStarted(_) | Body::TurnEnded(_) | Body::ToolStarted(_) => {
                prop_assert!(!at_rest);
            }
            _ => {}
        }
    }
    Ok(())
}

/// For an idle agent, the request after an undo is, byte for byte, what it would have been
/// without the reset, whatever was killed meanwhile. An undo passes over a conversation without any message.
#[test]
fn reset_and_undo_of_an_idle_agent_leave_no_trace_in_the_next_request() {
    let compared = RefCell::new(0_u32);
    let trouble = || prop::collection::vec(trouble(), 0..20);
    let schedule = (prop::collection::vec(op(), 1..80), trouble(), trouble());
    runner(1_500)
        .run(&schedule, |(ops, first, second)| {
            let idle = || {
                let mut sim = Sim::run(&ops);
                sim.run_until_idle();
                sim.apply(Op::StartAgent);
                sim.run_until_idle();
                sim
            };
            let mut plain = idle();
            if !has_messages(&plain) {
                return Ok(());
            }
            let mut undone = idle();
            for (way, trouble) in [(Way::Fresh, &first), (Way::Undo, &second)] {
                undone.apply(Op::Reset(Wanted {
                    way,
                    keep_queue: false,
                    force: true,
                }));
                trouble.iter().for_each(|op| undone.apply(*op));
                undone.run_until_idle();
                undone.check();
            }
            let (plain, undone) = (next_request(&mut plain), next_request(&mut undone));
            prop_assert_eq!(plain, undone);
            *compared.borrow_mut() += 1;
            Ok(())
        })
        .unwrap();
    println!("{} requests compared", compared.borrow());
}

/// The body of the request for the next prompt.
/// Whether the current conversation has any message.
fn has_messages(sim: &Sim) -> bool {
    let mut events = sim.events().iter();
    let Some(first) = events.next() else {
        return false;
    };
    let mut state = AgentState::new(first.agent);
    state.apply(first);
    events.for_each(|event| {
        state.apply(event);
    });
    let current = state.tree.current_conversation();
    current.is_some_and(|current| current.has_messages())
}

fn next_request(sim: &mut Sim) -> Option<String> {
    sim.is_recording = true;
    sim.apply(Op::Prompt(agentd_core::event::PromptMode::Queue));
    sim.run_until_idle();
    let first = sim.sent.first();
    first.map(|request| wire::encode(request).to_string())
}

/// The user removes the prompt while the runtime's message that it takes it is on its way: the turn ends without a
/// request.
#[test]
fn a_prompt_that_is_removed_while_its_turn_begins_is_never_sent() {
    let mut sim = Sim::run(&[
        Op::StartDaemon,
        Op::Prompt(PromptMode::Queue),
        Op::Flow(4),
        Op::Reply(0),
    ]);
    sim.run_until_idle();
    sim.is_recording = true;
    sim.apply(Op::Prompt(PromptMode::Queue));
    // The runtime learns of the prompt and answers that it takes it; the daemon has not read that yet.
    while !sim.is_awake() {
        sim.apply(Op::Flow(1));
    }
    sim.apply(Op::RemovePrompt(0));
    sim.run_until_idle();
    sim.check();
    assert_eq!(sim.sent, []);
    check_prompts(&sim).unwrap();
}
