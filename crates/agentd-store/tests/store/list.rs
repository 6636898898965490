//! The list of agents and their names: every line once, page by page, with the right total.

use crate::lab::{Author, Lab, agent_id, run};
use agentd_core::event::{
    AgentArchived, AgentCreated, AgentRenamed, AgentRestored, BeginSource, ConversationBegan, Mode,
    TurnEnded, TurnStarted, TurnStatus,
};
use agentd_core::id::AgentId;
use agentd_core::state::Phase;
use agentd_store::{
    AgentCursor, AgentPage, AgentQuery, AgentSort, Append, Error, SqliteStore, Store as _,
};
use tokio::task::JoinSet;

/// A query of the list, without the page.
fn ask(sort: AgentSort, limit: usize) -> AgentQuery {
    AgentQuery {
        sort,
        limit,
        ..AgentQuery::default()
    }
}

/// All pages of a list, and how many there were.
async fn pages(store: &SqliteStore, mut query: AgentQuery) -> (Vec<AgentPage>, Vec<AgentId>) {
    let mut pages = Vec::new();
    let mut agents = Vec::new();
    loop {
        let page = store.agents(query.clone()).await.unwrap();
        agents.extend(page.agents.iter().map(|agent| agent.id));
        let next = page.next.clone();
        pages.push(page);
        match next {
            Some(next) => query.after = Some(next),
            None => return (pages, agents),
        }
    }
}

/// The properties of an agent, by its number: every third is a one-shot agent, every fifth is running, every seventh has
/// failed, every eleventh is archived.
fn mode(number: u64) -> Mode {
    match number.is_multiple_of(3) {
        true => Mode::Oneshot,
        false => Mode::Persistent,
    }
}

fn phase(number: u64) -> Phase {
    match (number.is_multiple_of(5), number.is_multiple_of(7)) {
        (true, _) => Phase::Running,
        (_, true) => Phase::Failed,
        _ => Phase::Idle,
    }
}

fn archived(number: u64) -> bool {
    number.is_multiple_of(11)
}

async fn create(store: SqliteStore, number: u64) {
    let mut author = Author::claim(&store, number).await;
    // Ten at a time were used in the very same second.
    author.at += (number / 10) as i64 * 5000;
    let created = AgentCreated {
        name: format!("agent-{:04}", number * 7919 % 1000),
        mode: mode(number),
    };
    let began = ConversationBegan {
        source: BeginSource::Create,
        parent: None,
        from: None,
        op: None,
    };
    let mut events = vec![author.event(None, created), author.event(None, began)];
    if phase(number) != Phase::Idle {
        let turn = Some(author.turn_id());
        events.push(author.event(turn, TurnStarted::default()));
        if phase(number) == Phase::Failed {
            let ended = TurnEnded::with(TurnStatus::Failed);
            events.push(author.event(turn, ended));
        }
    }
    if archived(number) {
        events.push(author.event(None, AgentArchived {}));
    }
    let at = events[0].at;
    events.iter_mut().for_each(|event| event.at = at);
    author.append(&store, events).await;
}

async fn many(store: &SqliteStore, count: u64) {
    let mut creating = JoinSet::new();
    for number in 1..=count {
        creating.spawn(create(store.clone(), number));
    }
    while let Some(created) = creating.join_next().await {
        created.unwrap();
    }
}

#[test]
fn every_line_comes_once_whatever_the_page_and_the_order() {
    // claude-code#73089: a list that is cut off looks like loss.
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        many(&store, 230).await;
        for sort in [AgentSort::Recent, AgentSort::Name] {
            for (mode_asked, phase_asked, archived_asked, prefix) in [
                (None, None, false, None),
                (None, None, true, None),
                (Some(Mode::Oneshot), None, false, None),
                (None, Some(Phase::Running), false, None),
                (None, Some(Phase::Failed), true, None),
                (Some(Mode::Persistent), Some(Phase::Idle), false, None),
                (None, None, false, Some("agent-01")),
                (
                    Some(Mode::Oneshot),
                    Some(Phase::Idle),
                    false,
                    Some("agent-0"),
                ),
                (None, None, false, Some("nobody")),
            ] {
                let wanted = |number: &u64| {
                    let name = format!("agent-{:04}", number * 7919 % 1000);
                    mode_asked.is_none_or(|asked| asked == mode(*number))
                        && phase_asked.is_none_or(|asked| asked == phase(*number))
                        && archived(*number) == archived_asked
                        && prefix.is_none_or(|prefix| name.starts_with(prefix))
                };
                let mut expected: Vec<AgentId> = (1..=230).filter(wanted).map(agent_id).collect();
                expected.sort();
                for limit in [1, 7, 1000] {
                    let query = AgentQuery {
                        mode: mode_asked,
                        phase: phase_asked,
                        archived: archived_asked,
                        name_prefix: prefix.map(str::to_owned),
                        ..ask(sort, limit)
                    };
                    let (pages, mut agents) = pages(&store, query).await;
                    assert!(pages.iter().all(|page| page.total == expected.len() as u64));
                    let lines = pages.iter().flat_map(|page| &page.agents);
                    match sort {
                        AgentSort::Name => assert!(lines.is_sorted_by_key(|line| &line.name)),
                        AgentSort::Recent => assert!(
                            lines.is_sorted_by_key(|line| std::cmp::Reverse(line.updated_at))
                        ),
                    }
                    agents.sort();
                    assert_eq!(agents, expected, "{sort:?}, {limit} a page");
                }
            }
        }
        // A page of one order is no page of the other.
        let cursor = AgentCursor::Recent {
            updated_at: 0,
            row: 0,
        };
        let query = AgentQuery {
            after: Some(cursor),
            ..ask(AgentSort::Name, 10)
        };
        let refused = store.agents(query).await;
        assert!(matches!(refused, Err(Error::WrongCursor)));
    });
}

#[test]
fn a_line_says_what_the_journal_says() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut author = Author::create(&store, 1, "one").await;
        let line = |page: AgentPage| page.agents.into_iter().next().unwrap();
        for n in 0..30 {
            let events = match n % 3 {
                0 => author.turn("words", "answer"),
                1 => author.reset(),
                _ => vec![author.event(
                    None,
                    AgentRenamed {
                        name: format!("name-{n}"),
                    },
                )],
            };
            author.append(&store, events).await;
            let page = store.agents(ask(AgentSort::Recent, 1)).await.unwrap();
            let line = line(page);
            let state = store.load(author.agent).await.unwrap().state;
            assert_eq!(line.name, state.name);
            assert_eq!(line.phase, state.phase());
            assert_eq!(line.generation, state.generation());
            assert_eq!(line.conversations, state.tree.len() as u64);
            assert_eq!(line.spent, state.spending.lifetime);
            assert_eq!(line.created_at, state.created_at);
            assert!(state.updated_at.since(line.updated_at) < 1000);
            assert_eq!(store.usage(Some(author.agent)).await.unwrap(), line.spent);
            assert_eq!(store.usage(None).await.unwrap(), line.spent);
        }
        let conversations = store.conversations(author.agent).await.unwrap();
        assert_eq!(conversations.len(), 11);
        assert!(conversations.is_sorted_by_key(|conversation| conversation.ordinal));
    });
}

async fn do_to(
    store: &SqliteStore,
    author: &mut Author,
    event: agentd_core::event::NewEvent,
) -> Result<(), Error> {
    let append = Append::new(author.fence, vec![event]);
    store.append(append).await.map(drop)
}

#[test]
fn names_and_old_names_lead_to_their_agent_and_to_no_other() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut one = Author::create(&store, 1, "one").await;
        let mut two = Author::create(&store, 2, "two").await;
        let taken = |refused: Result<(), Error>, wanted: &str| {
            let Err(Error::NameTaken { name }) = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(name, wanted);
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("choose another"), "{text}");
        };
        let rename = |author: &mut Author, name: &str| {
            let name = name.to_owned();
            author.event(None, AgentRenamed { name })
        };
        assert_eq!(store.find("one").await.unwrap(), Some(one.agent));
        assert_eq!(store.find("nobody").await.unwrap(), None);

        let event = rename(&mut two, "one");
        taken(do_to(&store, &mut two, event).await, "one");
        let mut third = Author::claim(&store, 3).await;
        let events = third.created("two");
        taken(
            store
                .append(Append::new(third.fence, events))
                .await
                .map(drop),
            "two",
        );
        let loaded = store.load(third.agent).await;
        assert!(matches!(loaded, Err(Error::NoSuchAgent { .. })));

        // An old name stays with its agent.
        let event = rename(&mut one, "uno");
        do_to(&store, &mut one, event).await.unwrap();
        assert_eq!(store.find("one").await.unwrap(), Some(one.agent));
        assert_eq!(store.find("uno").await.unwrap(), Some(one.agent));
        let event = rename(&mut two, "uno");
        taken(do_to(&store, &mut two, event).await, "uno");
        let event = rename(&mut one, "one");
        do_to(&store, &mut one, event).await.unwrap();
        assert_eq!(store.find("uno").await.unwrap(), Some(one.agent));

        // An archived agent gives its names back.
        let event = one.event(None, AgentArchived {});
        do_to(&store, &mut one, event).await.unwrap();
        assert_eq!(store.find("one").await.unwrap(), None);
        assert_eq!(store.find("uno").await.unwrap(), None);
        let event = rename(&mut two, "uno");
        do_to(&store, &mut two, event).await.unwrap();

        // It is restored without its old name, which another agent has by now…
        let event = one.event(None, AgentRestored {});
        do_to(&store, &mut one, event).await.unwrap();
        assert_eq!(store.find("one").await.unwrap(), Some(one.agent));
        assert_eq!(store.find("uno").await.unwrap(), Some(two.agent));
        // …but it is not restored while another agent has its current name.
        let event = one.event(None, AgentArchived {});
        do_to(&store, &mut one, event).await.unwrap();
        let event = rename(&mut two, "one");
        do_to(&store, &mut two, event).await.unwrap();
        let event = one.event(None, AgentRestored {});
        taken(do_to(&store, &mut one, event).await, "one");
        assert!(store.load(one.agent).await.unwrap().state.archived);
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

/// Regression: an alias reserved its name permanently, although its agent had another name.
#[test]
fn an_alias_gives_way_to_a_new_name() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        let mut one = Author::create(&store, 1, "one").await;
        let mut two = Author::create(&store, 2, "two").await;
        for name in ["uno", "eins"] {
            let name = name.to_owned();
            let event = one.event(None, AgentRenamed { name });
            do_to(&store, &mut one, event).await.unwrap();
        }
        // To an agent that is made, and to one that is renamed.
        let three = Author::create(&store, 3, "one").await;
        let name = "uno".to_owned();
        let event = two.event(None, AgentRenamed { name });
        do_to(&store, &mut two, event).await.unwrap();
        assert_eq!(store.find("one").await.unwrap(), Some(three.agent));
        assert_eq!(store.find("uno").await.unwrap(), Some(two.agent));
        assert_eq!(store.find("eins").await.unwrap(), Some(one.agent));
        // What the other agents do later takes none of them back.
        let name = "un".to_owned();
        let event = one.event(None, AgentRenamed { name });
        do_to(&store, &mut one, event).await.unwrap();
        assert_eq!(store.find("one").await.unwrap(), Some(three.agent));
        assert_eq!(store.find("eins").await.unwrap(), Some(one.agent));
        // A restored agent takes its name back from an alias, or comes back under another one.
        let archived = one.event(None, AgentArchived {});
        do_to(&store, &mut one, archived).await.unwrap();
        let four = Author::create(&store, 4, "un").await;
        let name = "vier".to_owned();
        let renamed = one.event(None, AgentRenamed { name });
        let restored = one.event(None, AgentRestored {});
        let append = Append::new(one.fence, vec![renamed, restored]);
        store.append(append).await.unwrap();
        assert_eq!(store.find("un").await.unwrap(), Some(four.agent));
        assert_eq!(store.find("vier").await.unwrap(), Some(one.agent));
        assert!(store.verify(None).await.unwrap().is_clean());
    });
}

/// claude-code#73089: a list that does not say how many there are looks like loss.
#[test]
fn a_total_that_is_wrong_is_found_by_verify() {
    let lab = Lab::new();
    run(async {
        let store = lab.open();
        many(&store, 12).await;
        assert!(store.verify(None).await.unwrap().is_clean());
    });
    let harm = "UPDATE listing SET agents = agents + 1 WHERE listed = 1";
    lab.journal().execute_batch(harm).unwrap();
    run(async {
        let report = lab.open().verify(None).await.unwrap();
        let told = report
            .file
            .iter()
            .any(|line| line.contains("the list's agent counts"));
        assert!(told, "{report:?}");
    });
}
