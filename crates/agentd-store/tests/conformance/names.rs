//! Names and aliases: each leads to one agent.

use crate::author::Author;
use crate::subject::Subject;
use agentd_core::event::{AgentArchived, AgentRenamed, AgentRestored};
use agentd_store::{Append, Error, Store};

async fn do_to(
    store: &dyn Store,
    author: &mut Author,
    event: agentd_core::event::NewEvent,
) -> Result<(), Error> {
    let append = Append::new(author.fence, vec![event]);
    store.append(append).await.map(drop)
}

pub async fn names_and_old_names_lead_to_their_agent_and_to_no_other<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let mut two = Author::create(&*store, 2, "two").await;
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
    taken(do_to(&*store, &mut two, event).await, "one");
    let mut third = Author::claim(&*store, 3).await;
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
    do_to(&*store, &mut one, event).await.unwrap();
    assert_eq!(store.find("one").await.unwrap(), Some(one.agent));
    assert_eq!(store.find("uno").await.unwrap(), Some(one.agent));
    let event = rename(&mut two, "uno");
    taken(do_to(&*store, &mut two, event).await, "uno");
    let event = rename(&mut one, "one");
    do_to(&*store, &mut one, event).await.unwrap();
    assert_eq!(store.find("uno").await.unwrap(), Some(one.agent));

    // An archived agent gives its names back.
    let event = one.event(None, AgentArchived {});
    do_to(&*store, &mut one, event).await.unwrap();
    assert_eq!(store.find("one").await.unwrap(), None);
    assert_eq!(store.find("uno").await.unwrap(), None);
    let event = rename(&mut two, "uno");
    do_to(&*store, &mut two, event).await.unwrap();

    // It is restored without the old name that another agent has by now…
    let event = one.event(None, AgentRestored {});
    do_to(&*store, &mut one, event).await.unwrap();
    assert_eq!(store.find("one").await.unwrap(), Some(one.agent));
    assert_eq!(store.find("uno").await.unwrap(), Some(two.agent));
    // …but not at all while another agent has its current name.
    let event = one.event(None, AgentArchived {});
    do_to(&*store, &mut one, event).await.unwrap();
    let event = rename(&mut two, "one");
    do_to(&*store, &mut two, event).await.unwrap();
    let event = one.event(None, AgentRestored {});
    taken(do_to(&*store, &mut one, event).await, "one");
    assert!(store.load(one.agent).await.unwrap().state.archived);
    assert!(store.verify(None).await.unwrap().is_clean());
}

/// An alias blocked its name for ever, though its agent had another one.
pub async fn an_alias_gives_way_to_a_new_name<S: Subject>() {
    let subject = S::new().await;
    let store = subject.open().await;
    let mut one = Author::create(&*store, 1, "one").await;
    let mut two = Author::create(&*store, 2, "two").await;
    for name in ["uno", "eins"] {
        let name = name.to_owned();
        let event = one.event(None, AgentRenamed { name });
        do_to(&*store, &mut one, event).await.unwrap();
    }
    // To an agent that is made, and to one that is renamed.
    let three = Author::create(&*store, 3, "one").await;
    let name = "uno".to_owned();
    let event = two.event(None, AgentRenamed { name });
    do_to(&*store, &mut two, event).await.unwrap();
    assert_eq!(store.find("one").await.unwrap(), Some(three.agent));
    assert_eq!(store.find("uno").await.unwrap(), Some(two.agent));
    assert_eq!(store.find("eins").await.unwrap(), Some(one.agent));
    // What the other agents do later takes none of them back.
    let name = "un".to_owned();
    let event = one.event(None, AgentRenamed { name });
    do_to(&*store, &mut one, event).await.unwrap();
    assert_eq!(store.find("one").await.unwrap(), Some(three.agent));
    assert_eq!(store.find("eins").await.unwrap(), Some(one.agent));
    // A restored agent takes its name back from an alias, or comes back under another one.
    let archived = one.event(None, AgentArchived {});
    do_to(&*store, &mut one, archived).await.unwrap();
    let four = Author::create(&*store, 4, "un").await;
    let name = "vier".to_owned();
    let renamed = one.event(None, AgentRenamed { name });
    let restored = one.event(None, AgentRestored {});
    let append = Append::new(one.fence, vec![renamed, restored]);
    store.append(append).await.unwrap();
    assert_eq!(store.find("un").await.unwrap(), Some(four.agent));
    assert_eq!(store.find("vier").await.unwrap(), Some(one.agent));
    assert!(store.verify(None).await.unwrap().is_clean());
}
