//! Step 5: a new owner goes on.

use super::look::Cut;
use super::{Requests, take_over};
use crate::demo::claims::Claims;
use crate::demo::driver::Driver;
use crate::demo::evidence::{self, Verdict, is_so};
use crate::demo::model::text_of;
use crate::demo::pen::{events, failed};
use crate::demo::writer::COUNT_TO;
use crate::error::Error;
use agentd_core::event::{After, MessageStatus, Note, TurnStatus};
use agentd_core::id::AgentId;
use agentd_core::request;
use agentd_core::window::{Entry, Window};
use agentd_store::{Append, Fence, SqliteStore, Store as _};

pub async fn tell(
    claims: &mut Claims<'_>,
    store: &SqliteStore,
    agent: AgentId,
    cut: &Cut,
) -> Result<Driver<Requests>, Error> {
    claims.step("Take the agent over, and go on")?;
    let mut driver = take_over(store, agent, After::Crash).await?;
    let refused = stale_is_refused(store, &driver).await;
    claims.check(
        "the dead process's right to write has ended with it",
        refused,
    )?;

    let window = driver.machine().window();
    claims.check(
        "its half-written reply is in the conversation, marked interrupted",
        is_so(
            interrupted(window).as_ref() == Some(&cut.text),
            "",
            format!("there is {:?}", interrupted(window)),
        ),
    )?;
    let notices = window.items().iter();
    let notices = notices.filter(|item| matches!(item.entry, Entry::Notice(_)));
    let notices = notices.count();
    claims.check(
        "the model is told so once, in a notice, not in the user's words",
        is_so(notices == 1, "", format!("there are {notices} notices")),
    )?;
    let next = window
        .context()
        .and_then(|context| request::answer(window, context));
    let next = next.as_ref().map_or_else(
        || Err("there is nothing to send".to_owned()),
        evidence::is_valid,
    );
    claims.check(
        "the next request is valid, and nothing had to be repaired",
        next,
    )?;

    driver.go_on().await?;
    let loaded = store.load(agent).await.map_err(failed)?;
    let last = loaded.state.last_turn.as_ref();
    let ended = last.map(|turn| (Some(turn.id), turn.status));
    claims.check(
        "the very turn that was cut off went on, and completed",
        is_so(
            ended == Some((cut.turn, TurnStatus::Completed)) && loaded.state.turn.is_none(),
            "",
            format!("the last turn is {last:?}"),
        ),
    )?;
    let counted = evidence::counts_to(COUNT_TO, &[&cut.text, &loaded.window.last_text()]);
    claims.check(
        "both halves of the reply make a whole, not a word twice",
        counted,
    )?;
    Ok(driver)
}

/// Tries to write as the dead process would.
async fn stale_is_refused(store: &SqliteStore, driver: &Driver<Requests>) -> Verdict {
    let current = driver.machine().agent().tree.current();
    let stale = Fence {
        epoch: driver.pen.fence.epoch - 1,
        ..driver.pen.fence
    };
    let note = Note {
        about: None,
        text: "A word from the grave.".to_owned(),
    };
    let note = current.map(|conversation| events(conversation, None, [note.into()]));
    let append = Append::new(stale, note.unwrap_or_default());
    match store.append(append).await {
        Err(agentd_store::Error::StaleFence { .. }) => Ok(String::new()),
        other => Err(format!("its append came to {other:?}")),
    }
}

fn interrupted(window: &Window) -> Option<String> {
    window.items().iter().find_map(|item| match &item.entry {
        Entry::Reply {
            status: MessageStatus::Interrupted,
            blocks,
        } => Some(text_of(blocks)),
        _ => None,
    })
}
