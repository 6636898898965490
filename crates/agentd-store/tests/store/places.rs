//! What is looked up and not searched for: where turns ended, and whose silence ends next.

use crate::lab::{Author, Lab, run};
use agentd_core::event::SpecSet;
use agentd_core::id::Seq;
use agentd_core::spec::{AgentSpec, AutoReset};
use agentd_core::time::Timestamp;
use agentd_store::{Store as _, TurnQuery, Turns};

#[test]
fn turns_are_found_by_number_and_by_id() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::claim(&store, 1).await;
        let mut events = author.created("one");
        for n in 0..7 {
            events.extend(author.turn(&format!("prompt {n}"), "answer"));
        }
        author.append(&store, events).await;
        let look = async |which, through: u64| {
            let query = TurnQuery {
                agent: author.agent,
                conversation: author.conversation,
                through: Seq(through),
                which,
            };
            store.turn_ends(query).await.unwrap()
        };
        let all = look(Turns::Newest(100), u64::MAX).await;
        assert_eq!((all.events.len(), all.total), (7, 7));
        assert!(all.events.is_sorted_by_key(|event| event.seq));
        let two = look(Turns::Newest(2), u64::MAX).await;
        assert_eq!((&two.events[..], two.total), (&all.events[5..], 7));
        for (n, event) in all.events.iter().enumerate() {
            let nth = look(Turns::Nth(n), u64::MAX).await;
            assert_eq!(nth.events, [event.clone()]);
            let turn = event.turn.unwrap();
            assert_eq!(look(Turns::Id(turn), u64::MAX).await.events, nth.events);
            // Up to there, and no further.
            let before = look(Turns::Id(turn), event.seq.0 - 1).await;
            assert_eq!((before.events.len(), before.total), (0, n));
        }
        assert_eq!(look(Turns::Nth(7), u64::MAX).await.events, []);
    });
}

#[test]
fn silences_are_listed_in_their_order_and_go_with_a_prompt() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut authors = Vec::new();
        for (number, idle_ms) in [(1, Some(9_000)), (2, Some(1_000)), (3, None)] {
            let mut author = Author::claim(&store, number).await;
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
            author.append(&store, events).await;
            authors.push(author);
        }
        let silences = store.idle_resets(10).await.unwrap();
        let agents: Vec<_> = silences.iter().map(|(agent, _)| *agent).collect();
        assert_eq!(agents, [authors[1].agent, authors[0].agent]);
        assert!(silences[0].1 > Timestamp::from_millis(0));
        assert_eq!(store.idle_resets(1).await.unwrap(), silences[..1]);
        let (_, prompt) = authors[1].prompt("are you there?");
        authors[1].append(&store, prompt).await;
        assert_eq!(store.idle_resets(10).await.unwrap(), silences[1..]);
    });
}
