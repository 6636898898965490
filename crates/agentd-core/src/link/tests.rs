//! Each side by itself; the test kit simulates both together.

use super::*;
use crate::event::{Note, PromptsTaken};
use crate::fixture::{self, Journal};

const ID: RuntimeId = RuntimeId::from_bytes([7; 16]);
const OTHER: RuntimeId = RuntimeId::from_bytes([8; 16]);

fn hello(runtime: RuntimeId, seen: Option<(u64, u64)>) -> Hello {
    Hello {
        v: VERSION,
        agent: fixture::agent(1),
        runtime,
        secret: Secret::default(),
        seen: seen.map(|(incarnation, head)| Seen {
            incarnation: Incarnation(incarnation),
            head: Seq(head),
        }),
        env: Default::default(),
        stored: Default::default(),
        lent: None,
        build: None,
    }
}

fn woken() -> (Runtime, Journal) {
    let journal = Journal::new();
    let mut runtime = Runtime::new(fixture::agent(1), ID, Secret::default(), None);
    runtime.connected();
    let welcome = Welcome {
        incarnation: Incarnation(1),
        state: journal.state(),
        window: journal.window(),
        draft: None,
        env: Default::default(),
        stored: Default::default(),
        lent: Default::default(),
        holds_turns: false,
    };
    runtime.received(Down::Welcome(Box::new(welcome)));
    (runtime, journal)
}

fn note(journal: &Journal) -> NewEvent {
    let (about, text) = (None, "a note".to_owned());
    NewEvent {
        at: journal.at,
        conversation: journal.conversation,
        turn: None,
        body: Note { about, text }.into(),
    }
}

#[test]
fn everything_that_is_said_can_be_read_again() {
    let journal = Journal::new();
    let events = vec![note(&journal)];
    let (n, ends) = (3, None);
    let incarnation = Incarnation(1);
    let up = Up::Append(Append {
        incarnation,
        n,
        events,
        ends,
    });
    let text = serde_json::to_string(&up).unwrap();
    assert_eq!(serde_json::from_str::<Up>(&text).unwrap(), up);
    let events = journal.events.clone();
    let down = Down::Events { events };
    let text = serde_json::to_string(&down).unwrap();
    assert_eq!(serde_json::from_str::<Down>(&text).unwrap(), down);
}

#[test]
fn an_append_is_sent_again_until_it_is_answered() {
    let (mut runtime, mut journal) = woken();
    let event = note(&journal);
    let sent = runtime.append(vec![event.clone()], None);
    assert!(matches!(&sent[..], [Did::Send(Up::Append(append))] if append.n == 1));
    runtime.disconnected();
    runtime.connected();
    let (events, appended) = (Vec::new(), 0);
    let again = runtime.received(Down::Resumed { events, appended });
    assert_eq!(again, sent);
    let placed = journal.place(event);
    let (n, first) = (1, placed.seq);
    let did = runtime.received(Down::Appended { n, first });
    assert_eq!(did, [Did::Arrived(vec![placed]), Did::Appended]);
    // The same answer again has no effect.
    assert_eq!(runtime.received(Down::Appended { n, first }), []);
}

#[test]
fn an_append_whose_answer_was_lost_is_not_sent_again() {
    let (mut runtime, mut journal) = woken();
    let event = note(&journal);
    runtime.append(vec![event.clone()], None);
    runtime.disconnected();
    runtime.connected();
    let placed = journal.place(event);
    let (events, appended) = (vec![placed.clone()], 1);
    let did = runtime.received(Down::Resumed { events, appended });
    assert_eq!(did, [Did::Arrived(vec![placed]), Did::Appended]);
}

#[test]
fn what_is_out_of_order_is_not_taken_in() {
    let (mut runtime, mut journal) = woken();
    let prompts = Vec::new();
    let first = journal.push(PromptsTaken { prompts });
    let second = journal.place(note(&journal));
    let gap = Down::Events {
        events: vec![second.clone()],
    };
    assert_eq!(runtime.received(gap), [Did::Reconnect]);
    let both = Down::Events {
        events: vec![first.clone(), second.clone()],
    };
    let did = runtime.received(both.clone());
    assert_eq!(did, [Did::Arrived(vec![first, second])]);
    assert_eq!(runtime.received(both), [], "nothing comes twice");
}

#[test]
fn one_process_has_the_agent_until_it_is_gone() {
    let state = Journal::new().state();
    let mut daemon = Daemon::default();
    let first = daemon.hello(&hello(ID, None), &state);
    assert_eq!(first, Greeting::Welcome(Incarnation(1)));
    let second = daemon.hello(&hello(OTHER, None), &state);
    assert_eq!(second, Greeting::Refuse(Refusal::Taken));
    // Its welcome may have been lost.
    assert_eq!(daemon.hello(&hello(ID, None), &state), first);
    daemon.gone();
    let second = daemon.hello(&hello(OTHER, None), &state);
    assert_eq!(second, Greeting::Welcome(Incarnation(2)));
    assert!(daemon.may_write(Incarnation(2)) && !daemon.may_write(Incarnation(1)));
    let late = daemon.hello(&hello(ID, Some((1, 2))), &state);
    assert_eq!(late, Greeting::Refuse(Refusal::Stale));
}

#[test]
fn a_new_daemon_adopts_the_running_process_and_no_older_one() {
    let state = Journal::new().state();
    let mut daemon = Daemon::default();
    let adopted = daemon.hello(&hello(ID, Some((4, 1))), &state);
    assert_eq!(adopted, Greeting::Resume { after: Seq(1) });
    let older = daemon.hello(&hello(OTHER, Some((3, 1))), &state);
    assert_eq!(older, Greeting::Refuse(Refusal::Stale));
    let ahead = Daemon::default().hello(&hello(ID, Some((4, 99))), &state);
    assert_eq!(ahead, Greeting::Refuse(Refusal::Confused));
}

/// Whatever happens in between, an append is answered exactly once.
#[test]
fn an_answer_behind_a_gap_comes_again_with_what_was_missed() {
    let (mut runtime, mut journal) = woken();
    let event = note(&journal);
    runtime.append(vec![event.clone()], None);
    let missed = journal.push(PromptsTaken {
        prompts: Vec::new(),
    });
    let placed = journal.place(event);
    let (n, first) = (1, placed.seq);
    let did = runtime.received(Down::Appended { n, first });
    assert_eq!(did, [Did::Reconnect]);
    runtime.disconnected();
    runtime.connected();
    let (events, appended) = (vec![missed.clone(), placed.clone()], 1);
    let did = runtime.received(Down::Resumed { events, appended });
    let arrived = Did::Arrived(vec![missed, placed]);
    assert_eq!(did, [arrived, Did::Appended]);
}

#[test]
fn what_hooks_are_asked_is_asked_again_until_they_have_answered() {
    use crate::hook::{HookEvent, HookInput, HookInvocation, Verdict};
    use crate::id::InvocationId;
    let (mut runtime, _) = woken();
    let id = InvocationId::from_bytes([3; 16]);
    let invocation = HookInvocation::new(id, HookInput::sample(HookEvent::Stop));
    let sent = runtime.invoke(invocation.clone());
    assert_eq!(sent, [Did::Send(Up::InvokeHooks(Box::new(invocation)))]);
    runtime.disconnected();
    runtime.connected();
    let (events, appended) = (Vec::new(), 0);
    let again = runtime.received(Down::Resumed { events, appended });
    assert_eq!(again, sent);
    let verdict = Verdict::default();
    let answered = Down::HooksAnswered {
        id,
        verdict: verdict.clone(),
    };
    assert_eq!(
        runtime.received(answered.clone()),
        [Did::HooksAnswered(id, verdict)]
    );
    assert_eq!(runtime.received(answered), [], "nothing comes twice");
}

#[test]
fn a_runtime_of_an_accepted_version_is_heard() {
    let state = Journal::new().state();
    for (v, is_heard) in [
        (OLDEST_VERSION - 1, false),
        (OLDEST_VERSION, true),
        (VERSION, true),
        (VERSION + 1, false),
    ] {
        let hello = Hello {
            v,
            ..hello(ID, None)
        };
        let greeting = Daemon::default().hello(&hello, &state);
        assert_eq!(greeting != Greeting::Refuse(Refusal::Version), is_heard);
    }
}

/// A build of version 7 cannot read the events of schedules: it would reconnect for ever at the first of them.
#[test]
fn a_runtime_that_does_not_know_all_events_is_refused() {
    let state = Journal::new().state();
    for v in [6, 7] {
        let hello = Hello {
            v,
            ..hello(ID, None)
        };
        let greeting = Daemon::default().hello(&hello, &state);
        assert_eq!(greeting, Greeting::Refuse(Refusal::Version), "{v}");
    }
}

/// Regression: the daemon looked at the file of the process, which the kernel shows to root only.
#[test]
fn a_process_says_its_build_and_another_one_is_outdated() {
    let mut runtime = Runtime::new(
        fixture::agent(1),
        ID,
        Secret::default(),
        Some("1:2".to_owned()),
    );
    let sent = runtime.connected();
    let [Did::Send(up @ Up::Hello(_))] = &sent[..] else {
        panic!("{sent:?}")
    };
    let text = serde_json::to_string(up).unwrap();
    let Up::Hello(own) = serde_json::from_str::<Up>(&text).unwrap() else {
        panic!("{text}")
    };
    assert!(!own.is_outdated(Some("1:2")));
    assert!(own.is_outdated(Some("1:3")));
    assert!(!own.is_outdated(None), "the daemon's is unknown");
    // A process that says none.
    let silent = hello(ID, None);
    assert!(!silent.is_outdated(Some("1:2")));
    let older = Hello {
        v: VERSION - 1,
        ..silent
    };
    assert!(older.is_outdated(Some("1:2")));
    assert!(!older.is_outdated(None));
}

#[test]
fn every_frame_of_the_daemon_is_read_as_it_was_written() {
    let welcome = Welcome {
        incarnation: Incarnation(3),
        state: AgentState::new(fixture::agent(1)),
        window: Window::new(),
        draft: None,
        env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        stored: ["A".to_owned()].into(),
        lent: Default::default(),
        holds_turns: true,
    };
    let frames = [
        Down::Welcome(Box::new(welcome)),
        Down::Events { events: Vec::new() },
        Down::Refused {
            why: Refusal::Taken,
        },
    ];
    for down in frames {
        let text = serde_json::to_vec(&down).unwrap();
        assert_eq!(Down::read(&text).unwrap(), down);
    }
    for frame in ["", "{}", "[]", r#"{"say":"welcome"}"#, r#"{"say":"what"}"#] {
        assert!(Down::read(frame.as_bytes()).is_err(), "{frame}");
    }
}

/// A new daemon does not know what the earlier one told the runtime. It asks again when the turn begins.
#[test]
fn turns_are_held_until_the_order_or_the_next_daemon() {
    for down in [
        Down::Order {
            order: Order::BeginTurns,
            turn: None,
        },
        Down::Resumed {
            events: Vec::new(),
            appended: 0,
        },
    ] {
        let journal = Journal::new();
        let mut runtime = Runtime::new(fixture::agent(1), ID, Secret::default(), None);
        runtime.connected();
        let welcome = Welcome {
            incarnation: Incarnation(1),
            state: journal.state(),
            window: journal.window(),
            draft: None,
            env: Default::default(),
            stored: Default::default(),
            lent: Default::default(),
            holds_turns: true,
        };
        runtime.received(Down::Welcome(Box::new(welcome)));
        let told = Did::Told(Order::BeginTurns, None);
        assert_eq!(runtime.received(down), [told]);
        // Once.
        runtime.disconnected();
        runtime.connected();
        let resumed = Down::Resumed {
            events: Vec::new(),
            appended: 0,
        };
        assert_eq!(runtime.received(resumed), []);
    }
}
