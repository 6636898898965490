//! The list of agents: every line once, page by page, and a total that says so.

use crate::author::{Author, agent_id, conversation_id};
use crate::subject::Subject;
use agentd_core::event::{
    AgentArchived, AgentCreated, AgentRenamed, BeginSource, Context, ConversationBegan, Mode,
    Origin, SpecSet, TurnEnded, TurnStarted, TurnStatus,
};
use agentd_core::id::AgentId;
use agentd_core::message::Wire;
use agentd_core::spec::AgentSpec;
use agentd_core::state::Phase;
use agentd_core::time::Timestamp;
use agentd_core::usage::Spent;
use agentd_store::{AgentPage, AgentQuery, AgentSort, Error, SpendingQuery, Store};
use std::sync::Arc;
use tokio::task::JoinSet;

/// What is asked of the list, but for the page.
fn ask(sort: AgentSort, limit: usize) -> AgentQuery {
    AgentQuery {
        sort,
        limit,
        ..AgentQuery::default()
    }
}

/// All pages of a list, and how many there were.
async fn pages(store: &dyn Store, mut query: AgentQuery) -> (Vec<AgentPage>, Vec<AgentId>) {
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

/// Which of them an agent is, by its number: every third is a oneshot, every fifth runs, every
/// seventh has failed, every eleventh is archived.
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

async fn create(store: Arc<dyn Store>, number: u64) {
    let mut author = Author::claim(&*store, number).await;
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
    author.append(&*store, events).await;
}

async fn many(store: &Arc<dyn Store>, count: u64) {
    let mut creating = JoinSet::new();
    for number in 1..=count {
        creating.spawn(create(Arc::clone(store), number));
    }
    while let Some(created) = creating.join_next().await {
        created.unwrap();
    }
}

pub async fn every_line_comes_once_whatever_the_page_and_the_order<S: Subject>() {
    // claude-code#73089: a list that is cut off looks like loss.
    let subject = S::new().await;
    let store = subject.open().await;
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
                let (pages, mut agents) = pages(&*store, query).await;
                assert!(pages.iter().all(|page| page.total == expected.len() as u64));
                let lines = pages.iter().flat_map(|page| &page.agents);
                match sort {
                    AgentSort::Name => assert!(lines.is_sorted_by_key(|line| &line.name)),
                    AgentSort::Recent => {
                        assert!(lines.is_sorted_by_key(|line| std::cmp::Reverse(line.updated_at)))
                    }
                }
                agents.sort();
                assert_eq!(agents, expected, "{sort:?}, {limit} a page");
            }
        }
    }
    // A page of one order is no page of the other.
    for (sort, other) in [
        (AgentSort::Recent, AgentSort::Name),
        (AgentSort::Name, AgentSort::Recent),
    ] {
        let page = store.agents(ask(sort, 10)).await.unwrap();
        let query = AgentQuery {
            after: page.next,
            ..ask(other, 10)
        };
        let refused = store.agents(query).await;
        assert!(matches!(refused, Err(Error::WrongCursor)));
    }
}

pub async fn a_line_says_what_the_journal_says<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
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
        author.append(&*store, events).await;
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
}

pub async fn what_agents_have_spent_is_added_up<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    assert_eq!(store.usage(None).await.unwrap().requests, 0);
    let mut total = Spent::default();
    for number in 1..=3 {
        let mut author = Author::create(&*store, number, &format!("agent-{number}")).await;
        for _ in 0..number {
            let events = author.turn("words", "answer");
            author.append(&*store, events).await;
        }
        let spent = store.usage(Some(author.agent)).await.unwrap();
        assert_eq!((spent.requests, spent.cost.0), (number, number * 42));
        total.merge(&spent);
        // An archived agent has spent it all the same.
        if number == 2 {
            let event = author.event(None, AgentArchived {});
            author.append(&*store, vec![event]).await;
        }
    }
    assert_eq!(store.usage(None).await.unwrap(), total);
    let refused = store.usage(Some(agent_id(9))).await;
    assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
}

fn context(model: &str) -> Context {
    Context {
        provider: "p".to_owned(),
        wire: Wire::AnthropicMessages,
        model: model.to_owned(),
        system: "words ".repeat(2000),
        tools: Vec::new(),
        server_tools: Vec::new(),
        max_output_tokens: 1,
        temperature: None,
        thinking_tokens: None,
        effort: None,
        verbosity: None,
        fast: false,
        omits: Vec::new(),
        kept: None,
    }
}

const DAY: i64 = 86_400_000;

/// The model is that of the context which the conversation shows, or else that of the settings.
pub async fn spending_is_told_by_conversation_model_and_day<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut author = Author::create(&*store, 1, "one").await;
    let spec = Box::new(AgentSpec {
        model: Some("of the settings".to_owned()),
        ..AgentSpec::default()
    });
    let mut events = vec![author.event(None, SpecSet { spec })];
    events.extend(author.turn("before any context", "answer"));
    events.push(author.event(None, context("small")));
    for _ in 0..2 {
        events.extend(author.turn("words", "answer"));
    }
    author.append(&*store, events).await;
    let (first, at) = (author.conversation, author.head);
    author.at += DAY;
    let mut events = vec![author.event(None, context("large"))];
    events.extend(author.turn("another day", "answer"));
    author.append(&*store, events).await;
    let next_day = Timestamp::from_millis(author.at);
    // A branch shows the context of the conversation that it branched off.
    author.conversation = conversation_id(1001);
    let began = ConversationBegan {
        source: BeginSource::Rewind,
        parent: Some(first),
        from: Some(Origin {
            agent: author.agent,
            conversation: first,
            seq: at,
        }),
        op: None,
    };
    let mut events = vec![author.event(None, began)];
    events.extend(author.turn("in the branch", "answer"));
    author.append(&*store, events).await;
    let other = {
        let mut other = Author::create(&*store, 2, "two").await;
        let events = other.turn("words", "answer");
        other.append(&*store, events).await;
        other
    };
    let told = async |query: SpendingQuery| -> Vec<(AgentId, bool, Option<String>, i64, u64, u64)> {
        let rows = store.spending(query).await.unwrap().into_iter();
        let rows = rows.map(|row| {
            let (requests, cost) = (row.spent.requests, row.spent.cost.0);
            let day = row.day - Timestamp::from_millis(1_700_000_000_000).day();
            (
                row.agent,
                row.conversation == first,
                row.model,
                day,
                requests,
                cost,
            )
        });
        rows.collect()
    };
    let one = SpendingQuery {
        agent: Some(author.agent),
        since: None,
    };
    let row = |is_first: bool, model: &str, day: i64, requests: u64| {
        let model = Some(model.to_owned());
        (author.agent, is_first, model, day, requests, requests * 42)
    };
    let expected = vec![
        row(true, "large", 1, 1),
        row(true, "of the settings", 0, 1),
        row(true, "small", 0, 2),
        row(false, "small", 1, 1),
    ];
    assert_eq!(told(one).await, expected);
    let since = SpendingQuery {
        since: Some(Timestamp::from_millis(next_day.as_millis() - 60_000)),
        ..one
    };
    assert_eq!(
        told(since).await,
        [expected[0].clone(), expected[3].clone()]
    );
    let all = told(SpendingQuery::default()).await;
    assert_eq!(all.len(), 5);
    assert!(all.contains(&(other.agent, false, None, 0, 1, 42)));
    let requests: u64 = all.iter().map(|row| row.4).sum();
    assert_eq!(requests, store.usage(None).await.unwrap().requests);
    let nobody = SpendingQuery {
        agent: Some(agent_id(9)),
        since: None,
    };
    let refused = store.spending(nobody).await;
    assert!(matches!(refused, Err(Error::NoSuchAgent { .. })));
}
