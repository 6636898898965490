//! What is looked up and not searched for: where turns ended, and whose silence ends next.

use crate::author::{Author, agent_id};
use crate::subject::Subject;
use agentd_core::event::{
    AgentArchived, AgentStopped, MissedPolicy, OverlapPolicy, ScheduleAction, ScheduleAdded,
    ScheduleRule, SpecSet, TaskEnded, TaskExit, TaskStarted,
};
use agentd_core::id::{AgentId, BootId, CallId, ScheduleId, Seq, TaskId, TurnId};
use agentd_core::spec::{AgentSpec, AutoReset};
use agentd_core::time::Timestamp;
use agentd_store::{TurnQuery, Turns};

pub async fn turns_are_found_by_number_and_by_id<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::claim(&*store, 1).await;
    let mut events = author.created("one");
    for n in 0..7 {
        events.extend(author.turn(&format!("prompt {n}"), "answer"));
    }
    author.append(&*store, events).await;
    let look = async |which, through: u64| {
        let query = TurnQuery {
            agent: author.agent,
            conversation: author.conversation,
            through: Seq(through),
            which,
        };
        store.turn_ends(query).await.unwrap()
    };
    let count = async |through: u64| {
        let counted = store.count_turn_ends(author.agent, author.conversation, Seq(through));
        counted.await.unwrap()
    };
    let all = look(Turns::Newest(100), u64::MAX).await;
    assert_eq!((all.len(), count(u64::MAX).await), (7, 7));
    assert!(all.is_sorted_by_key(|event| event.seq));
    assert_eq!(look(Turns::Newest(2), u64::MAX).await, all[5..]);
    for (n, event) in all.iter().enumerate() {
        let nth = [event.clone()];
        assert_eq!(look(Turns::Nth(n), u64::MAX).await, nth);
        assert_eq!(look(Turns::NthLast(6 - n), u64::MAX).await, nth);
        let turn = event.turn.unwrap();
        assert_eq!(look(Turns::Id(turn), u64::MAX).await, nth);
        // Up to there, and no further.
        assert_eq!(look(Turns::Id(turn), event.seq.0 - 1).await, []);
        assert_eq!(count(event.seq.0 - 1).await, n);
    }
    assert_eq!(look(Turns::Nth(7), u64::MAX).await, []);
}

pub async fn silences_are_listed_in_their_order_and_go_with_a_prompt<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut authors = Vec::new();
    for (number, idle_ms) in [(1, Some(9_000)), (2, Some(1_000)), (3, None)] {
        let mut author = Author::claim(&*store, number).await;
        let mut events = author.created(&format!("agent-{number}"));
        let spec = AgentSpec {
            auto_reset: AutoReset {
                idle_ms,
                ..AutoReset::default()
            },
            ..AgentSpec::default()
        };
        let spec = Box::new(spec);
        events.push(author.event(None, SpecSet { spec }));
        events.extend(author.turn("hello", "hello"));
        author.append(&*store, events).await;
        authors.push(author);
    }
    let silences = store.idle_resets(10).await.unwrap();
    let agents: Vec<_> = silences.iter().map(|(agent, _)| *agent).collect();
    assert_eq!(agents, [authors[1].agent, authors[0].agent]);
    assert!(silences[0].1 > Timestamp::from_millis(0));
    assert_eq!(store.idle_resets(1).await.unwrap(), silences[..1]);
    let (_, prompt) = authors[1].prompt("are you there?");
    authors[1].append(&*store, prompt).await;
    assert_eq!(store.idle_resets(10).await.unwrap(), silences[1..]);
}

pub async fn schedules_are_listed_by_their_due_times_and_wait_while_the_agent_is_stopped<
    S: Subject,
>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    assert_eq!(store.due_schedules(10).await.unwrap(), []);
    assert_eq!(store.with_schedules().await.unwrap(), []);
    let mut authors = Vec::new();
    for (number, next) in [(1_u8, 9_000), (2, 4_000)] {
        let name = format!("agent-{number}");
        let mut author = Author::create(&*store, u64::from(number), &name).await;
        let schedule = ScheduleId::from_bytes([number; 16]);
        let at = Timestamp::from_millis(next);
        let zone = "UTC".to_owned();
        let added = author.event(
            None,
            ScheduleAdded {
                schedule,
                name: "once".to_owned(),
                rule: ScheduleRule::At { at, zone },
                action: ScheduleAction::Reset,
                missed: MissedPolicy::Once,
                overlap: OverlapPolicy::Skip,
                next: Some(at),
            },
        );
        author.append(&*store, vec![added]).await;
        authors.push(author);
    }
    let due = |n: usize, at| (authors[n].agent, Timestamp::from_millis(at));
    let all = [due(1, 4_000), due(0, 9_000)];
    assert_eq!(store.due_schedules(10).await.unwrap(), all);
    assert_eq!(store.due_schedules(1).await.unwrap(), all[..1]);
    // It waits while the agent is stopped, and is still a schedule.
    let stopped = authors[1].event(None, AgentStopped {});
    authors[1].append(&*store, vec![stopped]).await;
    assert_eq!(store.due_schedules(10).await.unwrap(), all[1..]);
    assert_eq!(store.with_schedules().await.unwrap().len(), 2);
    store = subject.reopen(store).await;
    assert_eq!(store.due_schedules(10).await.unwrap(), all[1..]);
    assert_eq!(store.with_schedules().await.unwrap().len(), 2);
}

pub async fn agents_with_background_tasks_are_found_until_the_tasks_end<S: Subject>() {
    let subject = S::new().await;
    let mut store = subject.open().await;
    assert_eq!(store.with_tasks().await.unwrap(), []);
    let mut author = Author::create(&*store, 1, "one").await;
    Author::create(&*store, 2, "two").await;
    let tasks = [3, 4].map(|n| TaskId::from_bytes([n; 16]));
    for task in tasks {
        let started = TaskStarted {
            task,
            call: CallId::new("call"),
            tool: "shell".to_owned(),
            boot: BootId::from_bytes([9; 16]),
        };
        let event = author.event(None, started);
        author.append(&*store, vec![event]).await;
        assert_eq!(store.with_tasks().await.unwrap(), [author.agent]);
    }
    store = subject.reopen(store).await;
    for (left, task) in [1, 0].into_iter().zip(tasks) {
        assert_eq!(store.with_tasks().await.unwrap(), [author.agent]);
        let ended = TaskEnded::by_itself(task, TaskExit::Code { code: 0 });
        let event = author.event(None, ended);
        author.append(&*store, vec![event]).await;
        assert_eq!(store.with_tasks().await.unwrap().len(), left);
    }
}

pub async fn agents_and_turns_are_found_by_a_range_of_ids<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut turns = Vec::new();
    for number in 1..=4 {
        let mut author = Author::create(&*store, number, &format!("agent-{number}")).await;
        let events = author.turn("words", "answer");
        turns.extend(events.last().and_then(|event| event.turn));
        author.append(&*store, events).await;
        if number == 3 {
            let event = author.event(None, AgentArchived {});
            author.append(&*store, vec![event]).await;
        }
    }
    let agents = async |from, to, limit| {
        let found = store.agents_between(agent_id(from)..=agent_id(to), limit);
        found.await.unwrap()
    };
    assert_eq!(agents(2, 3, 10).await, [agent_id(2), agent_id(3)]);
    assert_eq!(agents(1, 9, 2).await, [agent_id(1), agent_id(2)]);
    assert_eq!(agents(5, 9, 2).await, [] as [AgentId; 0]);
    // Of one agent, and of no other.
    let all = TurnId::from_bytes([0; 16])..=TurnId::from_bytes([0xff; 16]);
    let found = store.turns_between(agent_id(2), all, 10).await.unwrap();
    assert_eq!(found, [turns[1]]);
    let found = store.turns_between(agent_id(2), turns[0]..=turns[0], 10);
    assert_eq!(found.await.unwrap(), [] as [TurnId; 0]);
}
